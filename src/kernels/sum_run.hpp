#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ceil_div.hpp"
#include "kernels/lanes.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sum_row.hpp"

// The sum of a contiguous run of any length, as `sum`, `mean` and the pools over a whole input take it.

namespace taper::kernels {

/// Shorter runs are summed by `sum_row`, which takes no longer, longer ones than kLongRun by several threads.
constexpr std::int64_t kShortRun = 208, kLongRun = 4096;

/// The sum of `n` elements in 16 lanes: up to eight of each are added in float32, pair by pair, then in double. A sum
/// too large for float32 is taken again in double alone. Memory that `is_far` is asked for in front.
[[gnu::noinline]] inline double sum_in_parts(const float* x, std::int64_t n, bool is_far) {
  constexpr std::int64_t kWidth = kRowLanes, kHalf = kWidth / 2, kMost = 8;
  constexpr int kVectors = kWidth / kLanes<float>;
  Doubles sums[2 * kVectors]{};
  const float* at = x;
  for (std::int64_t left = n / kWidth; left > 0; left -= kMost) {
    Vector<float> part[kVectors]{};
    // Two lines at a time: processors fetch best for loads that step by no more.
#pragma GCC unroll 1
    for (const float* const end = at + std::min(left, kMost) / 2 * (2 * kWidth); at != end; at += 2 * kWidth) {
      if (is_far) [[unlikely]]
        fetch_run(at, 2 * kWidth, far_ahead());
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        part[v] += load(at + v * kLanes<float>) + load(at + kWidth + v * kLanes<float>);
    }
    if (left < kMost && left % 2 != 0) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) part[v] += load(at + v * kLanes<float>);
      at += kWidth;
    }
#pragma GCC unroll 8
    for (int v = 0; v < 2 * kVectors; ++v) sums[v] += as_doubles(half_of(part[v / 2], v % 2));
  }
  double sum[kHalf];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) store<double>(sums[v] + sums[v + kVectors], sum + v * kDoubles);
  const double all = fold_row<1>(Lanes<kHalf>::load(sum), at, n % kWidth).v;
  return all - all == 0 ? all : sum_row(x, n);
}

/// The same of double, whose additions are in double anyway.
inline double sum_in_parts(const double* x, std::int64_t n, bool) { return sum_row(x, n); }

/// The sum of `n` contiguous elements; a long run in parallel, in pieces whose size depends on `n` alone.
template <class T>
[[gnu::noinline]] double sum_run(const T* x, std::int64_t n, bool is_far = false) {
  if (n < kShortRun) return sum_row(x, n);
  if (n <= kLongRun) return sum_in_parts(x, n, is_far);
  constexpr std::int64_t kSlots = 64, kInMemory = 1 << 22;
  const std::int64_t piece = std::max<std::int64_t>(8 * kLongRun, (n / kSlots / kLongRun + 1) * kLongRun);
  const std::int64_t pieces = ceil_div(n, piece);
  double slots[kSlots];
  parallel_for(pieces, piece / 8, [=, to = &slots[0]](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      const T* const from = x + k * piece;
      const std::int64_t size = std::min(piece, n - k * piece);
      // One run from memory takes a tenth less time by `sum_row`.
      to[k] = n > kInMemory ? sum_row(from, size) : sum_in_parts(from, size, is_far);
    }
  });
  tree_sum(slots, pieces, 1);
  return slots[0];
}

/// The same in double alone, but for long runs: for means near which elements may lie so close that they tell.
template <class T>
double sum_exactly(const T* x, std::int64_t n) {
  return n <= kLongRun ? sum_row(x, n) : sum_run(x, n);
}

}  // namespace taper::kernels
