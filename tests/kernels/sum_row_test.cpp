#include "kernels/sum_row.hpp"

#include <cmath>
#include <limits>
#include <vector>

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
  const std::vector<T> x = draw.thirds<T>(kRows * n);
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
    const std::vector<TestType> x = draw.thirds<TestType>(5 * n), y = of_runs(5, x, true);
    for (std::int64_t r = 0; r < 5; ++r)
      CHECK(y[std::size_t(r)] == TestType(kernels::sum_row(x.data() + r * n, n) / double(n)));
  }
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
