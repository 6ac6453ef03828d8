#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/sum_run.hpp"

namespace taper::kernels {

/// How many runs are worked on at a time.
inline constexpr std::int64_t kSomeRuns = 64;

/// The sums of short runs, in order and beside each other.
[[gnu::always_inline]] inline void sum_short_runs(const float* x, std::int64_t n, std::int64_t runs, double* sum) {
  if constexpr (kVectorWidth == 64) {
    float turned[kRowLanes * kSomeRuns];
    pack_transposed(x, n, runs, n, turned, kSomeRuns);
    sum_places(turned, kSomeRuns, n, runs, sum);
  } else {
    for (std::int64_t i = 0; i < runs; i += 4) {
      const std::int64_t four = std::min(i, runs - 4);  // the last four may begin among those before
      sum_four_short_rows(x + four * n, n, sum + four);
    }
  }
}
[[gnu::always_inline]] inline void sum_short_runs(const double* x, std::int64_t n, std::int64_t runs, double* sum) {
  sum_rows(x, n, runs, sum);
}

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor, of sums as `sum_run` takes them.
template <class T>
[[gnu::noinline]] void average_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  parallel_for(runs, std::max<std::int64_t>(n, 8), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += kSomeRuns) {
      double sum[kSomeRuns];
      const std::int64_t count = std::min(kSomeRuns, last - i);
      const T* const from = x + i * n;
      const bool are_short = sizeof(T) == sizeof(float) && n > 0 && n < kRowLanes && count > 4;
      if (are_short) {
        sum_short_runs(from, n, count, sum);
      } else if (n <= kLongRun) {
        sum_rows(from, n, count, sum);
      } else {
        for (std::int64_t c = 0; c < count; ++c) sum[c] = sum_run(from + c * n, n);
      }
      for (std::int64_t c = 0; c < count; ++c) y[i + c] = static_cast<T>(sum[c] / divisor);
    }
  });
}

}  // namespace taper::kernels
