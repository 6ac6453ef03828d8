#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/vector_math.hpp"

namespace taper::kernels {

/// The sum of e^(x_j - top) over a contiguous row; the exponentials are left in `y` unless that is null.
template <class T>
double sum_exp(const T* x, std::int64_t n, T top, T* y) {
  constexpr std::int64_t kBlock = 64;
  T block[kBlock];
  double sum = 0;
  for (std::int64_t from = 0; from < n; from += kBlock) {
    const std::int64_t size = std::min(n - from, kBlock);
    T* const e = y == nullptr ? block : y + from;
    // e_j = e^(x_j - top), sum = e_0 + e_1 + ...
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < size; ++j) e[j] = vector_exp(x[from + j] - top);
    sum += sum_of(
        size, [e](auto at) __attribute__((always_inline)) { return at(e); });
  }
  return sum;
}

}  // namespace taper::kernels
