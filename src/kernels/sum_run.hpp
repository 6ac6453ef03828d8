#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ceil_div.hpp"
#include "kernels/lanes.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sum_row.hpp"

// The sum of a contiguous run of any length, as `sum`, `mean` and the pools over a whole input take it.

namespace taper::kernels {

/// The longest run that `sum_row` sums.
constexpr std::int64_t kLongRun = 4096;

/// `sum_row`, once for all that is here.
template <class T>
[[gnu::noinline]] double sum_one_row(const T* x, std::int64_t n, std::uintptr_t ahead = 0) {
  return sum_row(x, n, ahead);
}

/// The sum of a long run of float32: four elements of each of 16 lanes are added in a tree of float32, then in double.
/// Where that overflows, the sum is taken again in double alone.
inline double sum_long_run(const float* x, std::int64_t n, std::uintptr_t ahead) {
  constexpr std::int64_t kTogether = 16, kHalf = kTogether / 2, kBlock = 4 * kTogether;
  constexpr int kVectors = kTogether / kLanes<float>;
  Doubles sums[2 * kVectors]{};
  const float *from = x, *const end = x + n / kBlock * kBlock;
  for (; from != end; from += kBlock)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const float* const at = from + v * kLanes<float>;
      const Vector<float> four =
          (load(at) + load(at + kTogether)) + (load(at + 2 * kTogether) + load(at + 3 * kTogether));
      sums[2 * v] += as_doubles(half_of<0>(four));
      sums[2 * v + 1] += as_doubles(half_of<1>(four));
    }
  double sum[kHalf];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) store<double>(sums[v] + sums[v + kVectors], sum + v * kDoubles);
  const double all = fold_row<1>(Lanes<kHalf>::load(sum).folded(), end, 0).v + sum_one_row(end, n % kBlock);
  return all - all == 0 ? all : sum_one_row(x, n, ahead);
}

/// Of double, which is added in double anyway.
inline double sum_long_run(const double* x, std::int64_t n, std::uintptr_t ahead) { return sum_one_row(x, n, ahead); }

/// The sum of a run that caches hardly hold: of kPlaces parts of it, each the sum of its blocks. They are read in turn
/// if it `is_apart`.
template <class T>
[[gnu::noinline]] double sum_far_run(const T* x, std::int64_t n, bool is_apart, std::uintptr_t ahead) {
  constexpr std::int64_t kBlock = 256, kAhead = 4 * kBlock;
  const std::int64_t part = n / kPlaces / kBlock * kBlock;
  double sum[kPlaces] = {};
  if (is_apart) {
    for_places(
        x, kBlock, part / kBlock, 1, kAhead,
        [&](std::int64_t p, std::int64_t block, std::int64_t, const NextPlaces& next)
            __attribute__((always_inline)) { sum[p] += sum_wide_row(x + block * kBlock, kBlock, next); });
  } else {
    const T* at = x;
    for (double& of_part : sum)
      for (const T* const end = at + part; at != end; at += kBlock) of_part += sum_one_row(at, kBlock, ahead);
  }
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + sum_one_row(x + kPlaces * part, n - kPlaces * part);
}

/// The sum of `n` contiguous elements; a long run in parallel, in pieces whose size depends on `n` alone. `ahead` is as
/// for `sum_row` where there are many shorter ones.
template <class T>
[[gnu::noinline]] double sum_run(const T* x, std::int64_t n, std::uintptr_t ahead = 0) {
  if (n <= kLongRun) return sum_one_row(x, n, ahead);
  ahead = std::max(ahead, far_ahead_of(double(n) * sizeof(T)));
  constexpr std::int64_t kSlots = 64, kInMemory = 1 << 22;
  const std::int64_t piece = std::max<std::int64_t>(8 * kLongRun, (n / kSlots / kLongRun + 1) * kLongRun);
  const std::int64_t pieces = ceil_div(n, piece);
  const bool is_apart = reads_apart(double(n) * sizeof(T));
  double slots[kSlots];
  parallel_for(pieces, piece / 2, [=, to = &slots[0]](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      const T* const from = x + k * piece;
      const std::int64_t size = std::min(piece, n - k * piece);
      // What comes from memory is summed in double as fast as it comes.
      to[k] = n > kInMemory ? sum_far_run(from, size, is_apart, ahead) : sum_long_run(from, size, ahead);
    }
  });
  tree_sum(slots, pieces, 1);
  return slots[0];
}

}  // namespace taper::kernels
