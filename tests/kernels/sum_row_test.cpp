#include "kernels/sum_row.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/draw.hpp"

using namespace taper;
using test::Draw;

/// Whether the sums of rows taken together are those of each.
template <class T>
bool sums_rows(std::int64_t n, Draw& draw) {
  constexpr std::int64_t kRows = 7;
  const auto values = draw.values(kRows * n);
  const std::vector<T> x(values.begin(), values.end());
  double sum[kRows];
  kernels::sum_rows(x.data(), n, kRows, sum);
  bool same = true;
  for (std::int64_t i = 0; i < kRows; ++i) same &= sum[i] == kernels::sum_row(x.data() + i * n, n);
  return same;
}

TEST_CASE("the order of a row's sum depends on its length alone") {
  Draw draw(12);
  bool same = true, near_exact = true;
  for (std::int64_t n = 1; n <= 130; ++n) {
    const auto x = draw.values(n + 3);
    std::vector<double> lane(x.begin(), x.begin() + n);
    double expected = lane[0];
    if (n < 16) {
      for (std::int64_t i = 1; i < n; ++i) expected += lane[std::size_t(i)];
    } else {
      std::vector<double> lanes(16);
      std::int64_t at = n / 16 * 16;
      for (std::size_t j = 0; j < 16; ++j) {
        lanes[j] = x[j];
        for (std::size_t i = j + 16; i < std::size_t(at); i += 16) lanes[j] += x[i];
      }
      for (std::size_t half = 8; half > 0; half /= 2) {
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
