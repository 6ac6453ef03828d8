#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/sum_run.hpp"

namespace taper::kernels {

/// How many runs are worked on at a time.
inline constexpr std::int64_t kSomeRuns = 64;

/// The sums of runs that are short, in order and beside each other, if there are some; returns whether they are.
[[gnu::always_inline]] inline bool sum_short_runs(const float* x, std::int64_t n, std::int64_t runs, double* sum) {
  if (n <= 0 || n >= kRowLanes || runs <= 4) return false;
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
  return true;
}
[[gnu::always_inline]] inline bool sum_short_runs(const double*, std::int64_t, std::int64_t, double*) { return false; }

/// The sums of at most kSomeRuns runs of at most kLongRun elements, as `sum_run` takes them.
template <class T>
[[gnu::always_inline]] inline void sum_some_runs(const T* x, std::int64_t n, std::int64_t runs, std::uintptr_t ahead,
                                                 double* sum) {
  if (!sum_short_runs(x, n, runs, sum)) sum_rows(x, n, runs, ahead, sum);
}

/// The same averages as `average_runs` has of kPlaces * `part` runs of at most kLongRun elements, which are read in
/// kPlaces places in turn: some short runs of each, or one.
template <class T>
[[gnu::noinline]] void average_apart(const T* x, std::int64_t part, std::int64_t n, double divisor, T* y) {
  constexpr std::int64_t kTurn = 1024 / sizeof(T);
  const std::int64_t some = std::clamp<std::int64_t>(kTurn / n, 1, kSomeRuns);
  for_places(
      x, n, part, some, kPlaceAhead<T>,
      [=](std::int64_t, std::int64_t run, std::int64_t count, NextPlaces next) __attribute__((always_inline)) {
        double sum[kSomeRuns];
        const T* const from = x + run * n;
        if (n >= kWideRow) {
          sum[0] = sum_wide_row(from, n, next);
        } else {
          fetch_for(from, count * n, next);
          sum_some_runs(from, n, count, 0, sum);
        }
        for (std::int64_t c = 0; c < count; ++c) y[run + c] = static_cast<T>(sum[c] / divisor);
      });
}

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor, of sums as `sum_run` takes them.
template <class T>
[[gnu::noinline]] void average_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  const double bytes = double(runs) * double(n) * sizeof(T);
  const std::uintptr_t ahead = far_ahead_of(bytes);
  const bool is_apart = reads_apart(bytes) && n > 0 && n <= kLongRun;
  parallel_for(runs, std::max<std::int64_t>(n, 8), [=](std::int64_t first, std::int64_t last) {
    if (is_apart) {
      const std::int64_t part = (last - first) / kPlaces;
      average_apart(x + first * n, part, n, divisor, y + first);
      first += kPlaces * part;
    }
    for (std::int64_t i = first; i < last; i += kSomeRuns) {
      double sum[kSomeRuns];
      const std::int64_t count = std::min(kSomeRuns, last - i);
      const T* const from = x + i * n;
      if (n <= kLongRun)
        sum_some_runs(from, n, count, ahead, sum);
      else
        for (std::int64_t c = 0; c < count; ++c) sum[c] = sum_run(from + c * n, n);
      for (std::int64_t c = 0; c < count; ++c) y[i + c] = static_cast<T>(sum[c] / divisor);
    }
  });
}

}  // namespace taper::kernels
