#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ceil_div.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sum_row.hpp"

// The sum of a contiguous run of any length, as `sum`, `mean` and the pools over a whole input take it.

namespace taper::kernels {

/// The longest run that `sum_row` sums.
constexpr std::int64_t kLongRun = 4096;

/// The sum of a long run: four elements of each of 16 lanes are added in a tree of their own type, then in double.
template <class T>
double sum_long_run(const T* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 16, kHalf = kLanes / 2, kBlock = 4 * kLanes;
  // In halves as wide as a vector, which stay in registers, as they would not if they were also read in other parts.
  double low[kHalf] = {}, high[kHalf] = {}, sum[kHalf];
  const T* const end = x + n / kBlock * kBlock;
  const auto four_of = [&x](std::int64_t i) __attribute__((always_inline)) {
    return static_cast<double>((x[i] + x[i + kLanes]) + (x[i + 2 * kLanes] + x[i + 3 * kLanes]));
  };
  for (; x != end; x += kBlock) {
    for (std::int64_t i = 0; i < kHalf; ++i) low[i] += four_of(i);
    for (std::int64_t i = 0; i < kHalf; ++i) high[i] += four_of(i + kHalf);
  }
  for (std::int64_t i = 0; i < kHalf; ++i) sum[i] = low[i] + high[i];
  return fold_row<1>(Lanes<kHalf>::load(sum).folded(), x, 0).v + sum_row(x, n % kBlock);
}

/// The sum of `n` contiguous elements; a long run in parallel, in pieces whose size depends on `n` alone.
template <class T>
[[gnu::noinline]] double sum_run(const T* x, std::int64_t n) {
  if (n <= kLongRun) return sum_row(x, n);
  constexpr std::int64_t kSlots = 64, kInMemory = 1 << 22;
  const std::int64_t piece = std::max<std::int64_t>(8 * kLongRun, (n / kSlots / kLongRun + 1) * kLongRun);
  const std::int64_t pieces = ceil_div(n, piece);
  double slots[kSlots];
  parallel_for(pieces, piece / 8, [=, to = &slots[0]](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      const T* const from = x + k * piece;
      const std::int64_t size = std::min(piece, n - k * piece);
      // The memory is no faster than `sum_row`, and likes to be read strictly from first to last.
      to[k] = n > kInMemory ? sum_row(from, size) : sum_long_run(from, size);
    }
  });
  tree_sum(slots, pieces, 1);
  return slots[0];
}

}  // namespace taper::kernels
