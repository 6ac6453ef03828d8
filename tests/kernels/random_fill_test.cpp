#include "kernels/random_fill.hpp"

#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

constexpr RandomStart kStart{42, Stream::init, 1000};
constexpr std::int64_t kMany = 100003;

template <class T>
double mean_of(const std::vector<T>& x) {
  double s = 0;
  for (const T v : x) s += double(v);
  return s / double(x.size());
}

template <class Fill>
auto filled(std::int64_t n, const Fill& fill) {
  return [=] {
    std::vector<float> y(static_cast<std::size_t>(n));
    fill(y.data(), n);
    return y;
  };
}

}  // namespace

TEST_CASE("an element depends on its position alone") {
  std::vector<double> whole(101), part(60);
  fill_uniform(kStart, whole.data(), 101, -1, 3);
  fill_uniform({42, Stream::init, 1041}, part.data(), 60, -1, 3);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 41));
  fill_normal(kStart, whole.data(), 101, 5, 2);
  fill_normal({42, Stream::init, 1042}, part.data(), 59, 5, 2);
  CHECK(std::equal(part.begin(), part.begin() + 59, whole.begin() + 42));
  std::vector<double> other(101);
  fill_uniform({42, Stream::dropout, 1000}, other.data(), 101, -1, 3);
  fill_uniform(kStart, whole.data(), 101, -1, 3);
  CHECK(other != whole);
  CHECK(whole[7] == -1 + 4 * uniform_double(random_bits(42, Stream::init, 1007)));
  CHECK(normal_positions(7) == 8);
  CHECK(normal_positions(8) == 8);
}

TEST_CASE("every fill draws the bits of its positions, of any number of elements from any position on") {
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 37, ~std::uint64_t{0} - 90})
    for (const std::int64_t n : {0, 1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 201}) {
      const RandomStart r{0xfedcba9876543210u, Stream::dropout, first};
      const auto size = static_cast<std::size_t>(n);
      std::vector<float> single(size), dropped(size), normal(size);
      std::vector<double> uniform(size), dropped_double(size), normal_double(size);
      std::vector<std::int64_t> whole(size);
      fill_uniform(r, single.data(), n, 0, 1);
      fill_uniform(r, uniform.data(), n, 0, 1);
      fill_normal(r, normal.data(), n, 0, 1);
      fill_normal(r, normal_double.data(), n, 0, 1);
      fill_dropout_mask(r, dropped.data(), n, 0.3, 1.5);
      fill_dropout_mask(r, dropped_double.data(), n, 0.3, 1.5);
      fill_randint(r, whole.data(), n, -5, 1000);
      bool same = true;
      for (std::size_t i = 0; i < size; ++i) {
        const auto bits = [&](std::size_t k) { return random_bits(r.seed, r.stream, first + k); };
        const double u = uniform_double(bits(i)), z = normal_pair(bits(i & ~1u), bits(i | 1u))[i & 1u];
        const double kept = u >= 0.3 ? 1.5 : 0;
        same = same && single[i] == uniform_float(bits(i)) && uniform[i] == u && normal[i] == float(z) &&
               normal_double[i] == z && dropped[i] == float(kept) && dropped_double[i] == kept &&
               whole[i] == std::int64_t(random_below(bits(i), 1005)) - 5;
      }
      INFO(first << " " << n);
      CHECK(same);
    }
}

TEST_CASE("uniform numbers fill their interval and never reach its end") {
  std::vector<float> y(kMany);
  fill_uniform(kStart, y.data(), kMany, 2, 5);
  CHECK(mean_of(y) == Approx(3.5).margin(0.02));
  const auto [low, high] = std::minmax_element(y.begin(), y.end());
  CHECK(*low >= 2);
  CHECK(*low < 2.001);
  CHECK(*high < 5);
  CHECK(*high > 4.999);
  // Between 1 and the next float there is nothing but 1.
  const double next = double(std::nextafter(1.0f, 2.0f));
  fill_uniform(kStart, y.data(), kMany, 1, next);
  for (const float v : y) REQUIRE(v == 1.0f);
}

TEST_CASE("normal numbers have the mean and deviation asked for") {
  std::vector<double> y(kMany);
  fill_normal(kStart, y.data(), kMany, 5, 2);
  const double mean = mean_of(y);
  CHECK(mean == Approx(5).margin(0.03));
  double square = 0, beyond = 0;
  for (const double v : y) {
    square += (v - mean) * (v - mean);
    beyond += std::abs(v - 5) > 4 ? 1 : 0;
  }
  CHECK(std::sqrt(square / double(kMany)) == Approx(2).margin(0.02));
  CHECK(beyond / double(kMany) == Approx(0.0455).margin(0.003));
}

TEST_CASE("integers cover their range evenly, also the widest") {
  std::vector<std::int64_t> y(kMany);
  fill_randint(kStart, y.data(), kMany, -3, 4);
  std::vector<int> seen(7);
  for (const std::int64_t v : y) ++seen.at(std::size_t(v + 3));
  for (const int count : seen) CHECK(count == Approx(kMany / 7.0).epsilon(0.03));
  fill_randint(kStart, y.data(), 100, INT64_MIN, INT64_MAX);
  CHECK(*std::min_element(y.begin(), y.begin() + 100) < 0);
  CHECK(*std::max_element(y.begin(), y.begin() + 100) > 0);
}

TEST_CASE("a dropout mask keeps the share asked for") {
  std::vector<float> y(kMany);
  fill_dropout_mask(kStart, y.data(), kMany, 0.25, 1 / 0.75);
  CHECK(mean_of(y) == Approx(1).margin(0.01));
  for (const float v : y) REQUIRE((v == 0 || v == float(1 / 0.75)));
  fill_dropout_mask(kStart, y.data(), 100, 0, 1);
  CHECK(std::count(y.begin(), y.begin() + 100, 1.0f) == 100);
  fill_dropout_mask(kStart, y.data(), 100, 1, 1);
  CHECK(std::count(y.begin(), y.begin() + 100, 0.0f) == 100);
}

TEST_CASE("random fills give the same bits on any number of threads") {
  CHECK(same_on_any_threads(filled(kMany, [](float* y, std::int64_t n) { fill_uniform(kStart, y, n, 0, 1); })));
  CHECK(same_on_any_threads(filled(kMany, [](float* y, std::int64_t n) { fill_normal(kStart, y, n, 0, 1); })));
  CHECK(same_on_any_threads(filled(kMany, [](float* y, std::int64_t n) { fill_dropout_mask(kStart, y, n, 0.5, 2); })));
}
