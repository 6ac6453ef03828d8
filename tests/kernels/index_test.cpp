#include "kernels/index.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "taper/shape.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

TEST_CASE("the first index out of range is found") {
  const Ints index = {0, 2, 3, -1};
  CHECK(find_bad_index(index.data(), 4, 3) == 2);
  CHECK(find_bad_index(index.data(), 4, 4) == 3);
  CHECK(find_bad_index(index.data(), 3, 4) == -1);
  CHECK(find_bad_index(index.data(), 0, 0) == -1);
  CHECK(find_bad_index(index.data(), 1, 0) == 0);
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{7}, INT64_MIN, INT64_MAX})
    for (std::int64_t i = 0; i < 23; ++i) {
      Ints many(23, 6);
      many[0] = 0;
      CHECK(find_bad_index(many.data(), 23, 7) == -1);
      many[std::size_t(i)] = bad;
      CHECK(find_bad_index(many.data(), 23, 7) == i);
    }
}

TEST_CASE("rows are selected, and the gradients of a repeated row add up") {
  const Ints x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // [2, 3, 2]
  const Ints index = {2, 0, 2, 2};
  Ints y(16);
  index_select(x.data(), index.data(), y.data(), 2, 3, 2, 4);
  CHECK(y == Ints{5, 6, 1, 2, 5, 6, 5, 6, 11, 12, 7, 8, 11, 12, 11, 12});
  const Values dy = {1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80};
  Values dx(12, 99);
  index_select_grad(dy.data(), index.data(), dx.data(), 2, 3, 2, 4, false);
  CHECK(dx == Values{3, 4, 0, 0, 13, 16, 30, 40, 0, 0, 130, 160});
  index_select_grad(dy.data(), index.data(), dx.data(), 2, 3, 2, 4, true);
  CHECK(dx == Values{6, 8, 0, 0, 26, 32, 60, 80, 0, 0, 260, 320});
  index_select_grad<double>(nullptr, nullptr, dx.data(), 2, 3, 2, 0, false);
  CHECK(dx == Values(12, 0));
}

TEST_CASE("gather reads along any dimension, from an index that may be smaller") {
  const Shape xs{3, 4, 2};
  Values x(24);
  for (std::size_t i = 0; i < 24; ++i) x[i] = double(i);
  for (int dim : {0, 1, 2}) {
    const Shape is = dim == 1 ? Shape{2, 5, 1} : dim == 0 ? Shape{5, 3, 2} : Shape{2, 3, 4};
    Ints index(std::size_t(is.numel()));
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = std::int64_t(i * 5 % 7) % xs[dim];
    Values y(index.size()), dy = numbers<double>(is.numel(), 1), dx(24, 99), added(24, 1), expected(24, 0);
    for (std::int64_t a = 0, i = 0; a < is[0]; ++a)
      for (std::int64_t b = 0; b < is[1]; ++b)
        for (std::int64_t c = 0; c < is[2]; ++c, ++i) {
          std::int64_t at[3] = {a, b, c};
          at[dim] = index[std::size_t(i)];
          const auto from = std::size_t((at[0] * 4 + at[1]) * 2 + at[2]);
          y[std::size_t(i)] = x[from];
          expected[from] += dy[std::size_t(i)];
        }
    Values gathered(index.size(), 99);
    const GatherShape s{xs, is, dim};
    gather(s, x.data(), index.data(), gathered.data());
    CHECK(gathered == y);
    gather_grad(s, dy.data(), index.data(), dx.data(), false);
    CHECK(distance(dx, expected) < 1e-15);
    gather_grad(s, dy.data(), index.data(), added.data(), true);
    for (double& v : added) v -= 1;
    CHECK(distance(added, expected) < 1e-14);
  }
}

namespace {

template <class T>
bool gathers_by_coordinates(const Shape& xs, const Shape& is, int dim, std::uint64_t seed) {
  Ints index(std::size_t(is.numel()));
  for (std::size_t i = 0; i < index.size(); ++i)
    index[i] = std::int64_t(random_bits(seed, Stream::data, i) % 1000) % xs[dim];
  const auto x = numbers<T>(xs.numel(), seed, -100, 100);
  std::vector<T> y(index.size(), T(77)), expected(index.size());
  const auto dy = numbers<double>(is.numel(), seed + 1);
  Values dx(x.size(), 77), expected_dx(x.size()), added = numbers<double>(xs.numel(), seed + 2), expected_added = added;
  for (std::size_t i = 0; i < index.size(); ++i) {
    std::int64_t rest = std::int64_t(i), from = 0, stride = 1;
    for (int d = xs.rank() - 1; d >= 0; --d) {
      from += (d == dim ? index[i] : rest % is[d]) * stride;
      rest /= is[d];
      stride *= xs[d];
    }
    expected[i] = x[std::size_t(from)];
    expected_dx[std::size_t(from)] += dy[i];
    expected_added[std::size_t(from)] += dy[i];
  }
  const GatherShape s{xs, is, dim};
  gather(s, x.data(), index.data(), y.data());
  gather_grad(s, dy.data(), index.data(), dx.data(), false);
  gather_grad(s, dy.data(), index.data(), added.data(), true);
  return y == expected && dx == expected_dx && added == expected_added;
}

}  // namespace

TEST_CASE("gather agrees with going by coordinates on 2,000 random shapes of one to five dimensions") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    std::uint64_t position = 0;
    const auto below = [&](std::int64_t n) {
      return std::int64_t(random_bits(seed, Stream::init, position++) % std::uint64_t(n));
    };
    const int rank = 1 + int(below(5)), dim = int(below(rank));
    Shape xs, is;
    for (int d = 0; d < rank; ++d) {
      const std::int64_t extent = 1 + below(rank == 1 ? 40 : d == rank - 1 ? 19 : 5);
      xs = xs.concat(Shape{extent});
      is = is.concat(Shape{d == dim ? below(12) : 1 + below(extent)});
    }
    INFO(seed << ", dimension " << dim << " of " << rank);
    const bool agrees = seed % 3 == 0   ? gathers_by_coordinates<float>(xs, is, dim, seed)
                        : seed % 3 == 1 ? gathers_by_coordinates<double>(xs, is, dim, seed)
                                        : gathers_by_coordinates<std::int64_t>(xs, is, dim, seed);
    CHECK(agrees);
  }
}

TEST_CASE("gather begins and ends within a row where threads do") {
  for (const Shape& is : {Shape{1999, 7}, Shape{3, 701, 7}, Shape{3, 7, 701}})
    for (int dim = 0; dim < is.rank(); ++dim) {
      INFO(is[0] << " " << is[1] << " " << dim);
      Ints index(std::size_t(is.numel()));
      for (std::size_t i = 0; i < index.size(); ++i)
        index[i] = std::int64_t(random_bits(3, Stream::data, i) % 1000) % is[dim];
      CHECK(gathers_by_coordinates<float>(is, is, dim, 3));
      const auto x = numbers<float>(is.numel(), 1);
      CHECK(same_on_any_threads([&] {
        std::vector<float> y(x.size(), 77);
        gather(GatherShape{is, is, dim}, x.data(), index.data(), y.data());
        return y;
      }));
    }
}

TEMPLATE_TEST_CASE("rows of any length are selected, and their gradients added in order", "", float, double) {
  using T = TestType;
  for (const std::int64_t inner : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 53})
    for (const std::int64_t outer : {1, 3})
      for (const std::int64_t count : {0, 1, 5, 37, 20011}) {
        const std::int64_t n = 11;
        Ints index(std::size_t(count), 0);
        for (std::size_t j = 0; j < index.size(); ++j) index[j] = std::int64_t(j * j * 3 % 11);
        const auto x = numbers<T>(outer * n * inner, 1), dy = numbers<T>(outer * count * inner, 2);
        std::vector<T> y(dy.size(), T(77)), expected(dy.size()), dx(x.size(), T(77)), expected_dx(x.size());
        auto added = numbers<T>(outer * n * inner, 3), expected_added = added;
        for (std::int64_t o = 0; o < outer; ++o)
          for (std::int64_t j = 0; j < count; ++j)
            for (std::int64_t i = 0; i < inner; ++i) {
              const auto at = std::size_t((o * count + j) * inner + i);
              const auto from = std::size_t((o * n + index[std::size_t(j)]) * inner + i);
              expected[at] = x[from];
              expected_dx[from] += dy[at];
              expected_added[from] += dy[at];
            }
        index_select(x.data(), index.data(), y.data(), outer, n, inner, count);
        index_select_grad(dy.data(), index.data(), dx.data(), outer, n, inner, count, false);
        index_select_grad(dy.data(), index.data(), added.data(), outer, n, inner, count, true);
        INFO(outer << " " << inner << " " << count);
        CHECK(y == expected);
        CHECK(dx == expected_dx);
        CHECK(added == expected_added);
      }
}

TEMPLATE_TEST_CASE("gradients of columns that many rows select are added in order, of any number", "", float, double) {
  using T = TestType;
  for (const std::int64_t n : {1, 11, 1024, 1025})
    for (const std::int64_t count : {n / 2, n - n / 2, n, std::int64_t{1024}, std::int64_t{1025}, std::int64_t{2500}})
      for (const std::int64_t outer : {4, 7}) {
        Ints index(std::size_t(count), 0);
        for (std::size_t j = 0; j < index.size(); ++j)
          index[j] = std::int64_t(random_bits(5, Stream::data, j) % std::uint64_t(n));
        const auto dy = numbers<T>(outer * count, 2);
        auto dx = numbers<T>(outer * n, 3), added = dx, expected = std::vector<T>(dx.size()), expected_added = dx;
        for (std::int64_t o = 0; o < outer; ++o)
          for (std::int64_t j = 0; j < count; ++j) {
            const auto to = std::size_t(o * n + index[std::size_t(j)]);
            expected[to] += dy[std::size_t(o * count + j)];
            expected_added[to] += dy[std::size_t(o * count + j)];
          }
        index_select_grad(dy.data(), index.data(), dx.data(), outer, n, 1, count, false);
        index_select_grad(dy.data(), index.data(), added.data(), outer, n, 1, count, true);
        INFO(outer << " " << n << " " << count);
        CHECK(dx == expected);
        CHECK(added == expected_added);
      }
}

TEST_CASE("gradients by index have the same bits on any number of threads") {
  Ints index(3001);
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = std::int64_t(i * i % 11);
  const auto dy = numbers<float>(3001 * 212, 1);
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(11 * 53);
    index_select_grad(dy.data(), index.data(), dx.data(), 1, 11, 53, 3001, false);
    return dx;
  }));
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(53 * 11);
    index_select_grad(dy.data(), index.data(), dx.data(), 53, 11, 1, 3001, false);
    return dx;
  }));
  Ints each(3001 * 212);
  for (std::size_t i = 0; i < each.size(); ++i) each[i] = std::int64_t(i * i % 11);
  const auto x = numbers<float>(3001 * 212 * 11, 2);
  for (const std::int64_t width : {53, 1}) {
    const Shape xs{3001 * 212 / width, 11}, is{3001 * 212 / width, width};
    CHECK(same_on_any_threads([&] {
      std::vector<float> dx(std::size_t(xs.numel()));
      gather_grad(GatherShape{xs, is, 1}, dy.data(), each.data(), dx.data(), false);
      return dx;
    }));
    CHECK(same_on_any_threads([&] {
      std::vector<float> y(each.size());
      gather(GatherShape{xs, is, 1}, x.data(), each.data(), y.data());
      return y;
    }));
  }
  CHECK(same_on_any_threads([&] {
    std::vector<float> y(3001 * 3001);
    index_select(x.data(), index.data(), y.data(), 3001, 11, 1, 3001);
    return y;
  }));
}
