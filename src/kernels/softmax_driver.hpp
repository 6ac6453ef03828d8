#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/parallel.hpp"
#include "kernels/vector_math.hpp"

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
  const auto larger = [](T v, T best) { return v > best || std::isnan(v) ? v : best; };
  constexpr int kLanes = 8;
  if (inner == 1 && n >= 2 * kLanes) {
    T lane[kLanes];
    std::copy(x, x + kLanes, lane);
    std::int64_t j = kLanes;
    for (; j + kLanes <= n; j += kLanes)
      for (int l = 0; l < kLanes; ++l) lane[l] = larger(x[j + l], lane[l]);
    for (; j < n; ++j) lane[0] = larger(x[j], lane[0]);
    top[0] = lane[0];
    for (int l = 1; l < kLanes; ++l) top[0] = larger(lane[l], top[0]);
    return;
  }
  for (std::int64_t c = 0; c < width; ++c) top[c] = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t c = 0; c < width; ++c) top[c] = larger(x[j * inner + c], top[c]);
}

/// Calls `use(j, c, i, e^argument(i, c))` for the elements j of the rows c of a group at `first`, where i is the place
/// of the element; j rises. The arguments of some elements are taken before the first of them is used.
template <class T, class Argument, class Use>
void for_each_exp(std::int64_t first, std::int64_t n, std::int64_t inner, std::int64_t width, const Argument& argument,
                  const Use& use) {
  // A block of exponentials is vector code; float64 and one very short row gain nothing from that.
  if (sizeof(T) == sizeof(double) || (inner == 1 && n < 8)) {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = first + j * inner + c;
        use(j, c, i, std::exp(argument(i, c)));
      }
    return;
  }
  T e[kSoftmaxColumns];
  const std::int64_t step = kSoftmaxColumns / width;
  for (std::int64_t from = 0; from < n; from += step) {
    const std::int64_t to = std::min(from + step, n);
    if (inner == 1) {
      for (std::int64_t j = from; j < to; ++j) e[j - from] = vector_exp(argument(first + j, std::int64_t{0}));
      for (std::int64_t j = from; j < to; ++j) use(j, std::int64_t{0}, first + j, e[j - from]);
      continue;
    }
    for (std::int64_t j = from; j < to; ++j)
      for (std::int64_t c = 0; c < width; ++c) e[(j - from) * width + c] = argument(first + j * inner + c, c);
    for (std::int64_t k = 0; k < (to - from) * width; ++k) e[k] = vector_exp(e[k]);
    for (std::int64_t j = from; j < to; ++j)
      for (std::int64_t c = 0; c < width; ++c) use(j, c, first + j * inner + c, e[(j - from) * width + c]);
  }
}

}  // namespace taper::kernels
