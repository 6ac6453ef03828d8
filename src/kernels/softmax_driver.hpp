#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/parallel.hpp"
#include "kernels/store_run.hpp"
#include "kernels/sum_exp.hpp"
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

/// Rows of so many elements and more, each contiguous, are worked on one at a time, in vectors.
inline constexpr std::int64_t kLongRow = 16;

/// top[c] = the largest element of row c of a group at x; NaN if the row holds one.
template <class T>
void row_maximum(const T* x, std::int64_t n, std::int64_t inner, std::int64_t width, T* top) {
  if (inner == 1 && n >= kLongRow) {
    top[0] = extreme_of<true>(x, n);
    return;
  }
  const auto larger = [](T v, T best) { return v > best || v != v ? v : best; };
  for (std::int64_t c = 0; c < width; ++c) top[c] = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t c = 0; c < width; ++c) top[c] = larger(x[j * inner + c], top[c]);
}

/// Calls `use(j, c, i, e^argument(i, c))` for the elements j of the rows c of a group at `first`, where i is the place
/// of the element; j rises. The arguments of some elements are taken before the first of them is used.
template <class T, class Argument, class Use>
void for_each_exp(std::int64_t first, std::int64_t n, std::int64_t inner, std::int64_t width, const Argument& argument,
                  const Use& use) {
  // A block of exponentials is vector code; one very short row gains nothing from that.
  if (inner == 1 && n < 8) {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = first + j * inner + c;
        use(j, c, i, vector_exp(argument(i, c)));
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
