#include "kernels/sum_row.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "base/memory_ahead.hpp"
#include "kernels/reduce.hpp"
#include "kernels/sum_run.hpp"
#include "support/catch.hpp"
#include "support/draw.hpp"

using namespace taper;
using test::Draw;

/// Whether the sums of rows taken together are those of each.
template <class T>
bool sums_rows(std::int64_t n, Draw& draw) {
  constexpr std::int64_t kRows = 7;
  auto values = draw.values(kRows * n);
  for (double& v : values) v /= 3;  // so that sums of double are rounded, and differ by their order
  const std::vector<T> x(values.begin(), values.end());
  double sum[kRows];
  kernels::sum_rows(x.data(), n, kRows, 0, sum);
  bool same = true;
  for (std::int64_t i = 0; i < kRows; ++i) same &= sum[i] == kernels::sum_row(x.data() + i * n, n);
  return same;
}

TEST_CASE("the order of a row's sum depends on its length alone") {
  Draw draw(12);
  bool same = true, near_exact = true;
  for (std::int64_t n = 1; n <= 300; ++n) {
    const auto x = draw.values(n + 3);
    std::vector<double> lane(x.begin(), x.begin() + n);
    double expected = lane[0];
    if (n < 16) {
      for (std::int64_t i = 1; i < n; ++i) expected += lane[std::size_t(i)];
    } else {
      const std::size_t count = n < 192 ? 16 : 32;
      std::vector<double> lanes(count);
      std::int64_t at = n / std::int64_t(count) * std::int64_t(count);
      for (std::size_t j = 0; j < count; ++j) {
        lanes[j] = x[j];
        for (std::size_t i = j + count; i < std::size_t(at); i += count) lanes[j] += x[i];
      }
      for (std::size_t half = count / 2; half > 0; half /= 2) {
        for (std::size_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
        if ((std::size_t(n) & half) != 0)
          for (std::size_t j = 0; j < half; ++j) lanes[j] += x[std::size_t(at++)];
      }
      expected = lanes[0];
    }
    same &= kernels::sum_row(x.data(), n) == expected;
    long double exact = 0;
    for (std::int64_t i = 0; i < n; ++i) exact += static_cast<long double>(x[std::size_t(i)]);
    near_exact &= std::abs(double(exact) - expected) < 1e-10;
    double runs[3];
    kernels::sum_runs(x.data(), n, 3, runs);
    for (std::int64_t i = 0; i < 3; ++i) same &= runs[i] == kernels::sum_row(x.data() + i, n);
    same &= sums_rows<float>(n, draw) && sums_rows<double>(n, draw);
  }
  CHECK(same);
  CHECK(near_exact);
  CHECK(kernels::sum_row(static_cast<const float*>(nullptr), 0) == 0);
  const float negative_zero = -0.0f;
  CHECK(std::signbit(kernels::sum_row(&negative_zero, 1)));
}

namespace {

/// The sums or means of `runs` contiguous runs.
template <class T>
std::vector<T> of_runs(std::int64_t runs, const std::vector<T>& x, bool mean) {
  std::vector<T> y(std::size_t(runs), 77);
  const kernels::ReducePlan plan = kernels::reduce_plan(Shape{runs, std::int64_t(x.size()) / runs}, 0b10);
  mean ? kernels::reduce_mean(plan, x.data(), y.data()) : kernels::reduce_sum(plan, x.data(), y.data());
  return y;
}

}  // namespace

TEMPLATE_TEST_CASE("a mean over contiguous dimensions has the bits of a row sum", "", float, double) {
  Draw draw(6);
  for (std::int64_t n : {7, 49, 191, 192, 1001, 4096}) {
    auto values = draw.values(5 * n);
    for (double& v : values) v /= 3;  // so that sums of double are rounded, and differ by their order
    const std::vector<TestType> x(values.begin(), values.end()), y = of_runs(5, x, true);
    for (std::int64_t r = 0; r < 5; ++r)
      CHECK(y[std::size_t(r)] == TestType(kernels::sum_row(x.data() + r * n, n) / double(n)));
  }
}

namespace {

/// From how many bytes on memory is read in several places in turn, while this lives.
class ApartFrom {
 public:
  explicit ApartFrom(std::int64_t bytes) { detail::apart_from = bytes; }
  ~ApartFrom() { detail::apart_from = before_; }
  ApartFrom(const ApartFrom&) = delete;
  ApartFrom& operator=(const ApartFrom&) = delete;

 private:
  const std::int64_t before_ = detail::apart_from;
};
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Sums or means as `of_runs` has them where memory is read in that way.
template <class T>
std::vector<T> of_runs_apart(std::int64_t from, std::int64_t runs, const std::vector<T>& x, bool mean) {
  const ApartFrom here(from);
  return of_runs(runs, x, mean);
}

}  // namespace

TEMPLATE_TEST_CASE("runs read in several places in turn have the sums that they have in order", "", float, double) {
  Draw draw(41);
  for (const std::int64_t n : {1, 3, 15, 16, 49, 191, 192, 255, 1000, 4096, 4097, 20000})
    for (const std::int64_t runs : {1, 3, 4, 7, 9, 64, 269, 1100}) {
      if (n * runs > 300000) continue;
      auto values = draw.values(runs * n);
      for (double& v : values) v /= 3;
      const std::vector<TestType> x(values.begin(), values.end());
      CAPTURE(n, runs);
      CHECK(of_runs_apart(0, runs, x, false) == of_runs_apart(kNever, runs, x, false));
      CHECK(of_runs_apart(0, runs, x, true) == of_runs_apart(kNever, runs, x, true));
    }
}

TEMPLATE_TEST_CASE("a run that no cache holds has one sum, which is right", "", float, double) {
  const std::int64_t size = (1 << 22) + 70001;
  std::vector<TestType> x(static_cast<std::size_t>(size));
  double exact = 0;  // of multiples of 1/8, whose sums are
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = double(i * 2654435761U % 8191) / 8 - 300;
    x[i] = TestType(v);
    exact += v;
  }
  const auto apart = of_runs_apart(0, 1, x, false), in_order = of_runs_apart(kNever, 1, x, false);
  CHECK(apart == in_order);
  CHECK(in_order[0] == TestType(exact));
  // Thirds are rounded, and sums of double then differ by their order.
  for (TestType& v : x) v /= 3;
  CHECK(of_runs_apart(0, 1, x, false) == of_runs_apart(kNever, 1, x, false));
}

TEST_CASE("sums of float32 runs that one thread takes are sums in double, rounded once") {
  Draw draw(17);
  for (std::int64_t n = 1; n <= 4096; n += n < 700 ? 1 : 331) {
    const auto values = draw.values(2 * n);
    const std::vector<float> x(values.begin(), values.end()), y = of_runs(2, x, false);
    bool near = true;
    for (std::size_t r = 0; r < 2; ++r) {
      double exact = 0, size = 0;
      for (std::size_t i = r * std::size_t(n); i < (r + 1) * std::size_t(n); ++i)
        exact += double(x[i]), size += std::abs(double(x[i]));
      near &= std::abs(double(y[r]) - exact) <= 0x1p-24 * std::abs(exact) + 0x1p-40 * size;
    }
    INFO(n);
    CHECK(near);
  }
}

TEST_CASE("a mean of float32 is right where the sum is too large for it, and carries infinities and NaN") {
  constexpr float infinite = std::numeric_limits<float>::infinity(), large = 3e38f;
  for (std::size_t n : {4, 100, 208, 338, 1000, 4096, 50000}) {
    std::vector<float> x(n, large);
    INFO(n);
    CHECK(of_runs(1, x, true)[0] == large);
    for (std::size_t i = 0; i < n / 2; ++i) x[i] = -large;
    CHECK(of_runs(1, x, true)[0] == 0);
    for (const float odd : {infinite, -infinite}) {
      x[n / 3] = odd;
      CHECK(of_runs(1, x, true)[0] == odd);
    }
    x[n / 2] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(of_runs(1, x, true)[0]));
  }
}
