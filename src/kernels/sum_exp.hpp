#pragma once

#include <cstdint>

#include "kernels/packs.hpp"
#include "kernels/vector_math.hpp"

namespace taper::kernels {

/// The sum of e^(x_j - top) over a contiguous row.
template <class T>
double sum_exp(const T* x, std::int64_t n, T top) {
  double sum[1];
  // sum = e^(x_0 - top) + e^(x_1 - top) + ...
  sum_packs<T, 1, 1>(
      n, sum, [=](auto at, auto& sums) __attribute__((always_inline)) {
        sums[0] += vector_exp(at(x, -std::numeric_limits<T>::infinity()) - top);
      });
  return sum[0];
}

}  // namespace taper::kernels
