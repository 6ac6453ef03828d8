#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/parallel.hpp"

// What softmax and cross entropy share: rows along the middle of [outer, n, inner], taken a group of columns at a time.

namespace taper::kernels {

/// The most columns in a group.
inline constexpr std::int64_t kSoftmaxColumns = 64;

/// Calls `body(first, width, row)` for groups of `width` neighbouring rows along the middle of [outer, n, inner]:
/// element j of row c of the group is at first + j * inner + c, and `row` is its number in [outer, inner].
template <class Body>
void for_each_softmax_group(std::int64_t outer, std::int64_t n, std::int64_t inner, const Body& body) {
  if (inner == 0) return;
  const std::int64_t groups = (inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
  constexpr std::int64_t kCost = 16;
  parallel_for(outer * groups, std::max<std::int64_t>(n, 1) * std::min(inner, kSoftmaxColumns) * kCost,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t unit = first; unit < last; ++unit) {
                   const std::int64_t o = unit / groups, column = unit % groups * kSoftmaxColumns;
                   body(o * n * inner + column, std::min(inner - column, kSoftmaxColumns), o * inner + column);
                 }
               });
}

/// top[c] = the largest element of row c of a group at x; NaN if the row holds one.
template <class T>
void row_maximum(const T* x, std::int64_t n, std::int64_t inner, std::int64_t width, T* top) {
  for (std::int64_t c = 0; c < width; ++c) top[c] = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t c = 0; c < width; ++c) {
      const T v = x[j * inner + c];
      top[c] = v > top[c] || std::isnan(v) ? v : top[c];
    }
}

}  // namespace taper::kernels
