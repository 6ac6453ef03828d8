#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/packs.hpp"
#include "kernels/vector_math.hpp"

namespace taper::kernels {

/// The sum of e^(x_j - top) over a contiguous row, in the order of `sum_packs`, with one copy of what is much code.
template <class T>
[[gnu::noinline, gnu::flatten]] double sum_exp(const T* x, std::int64_t n, T top) {
  constexpr std::int64_t kBlock = 16 * kLanes<T>;
  double total = 0;
  // total = e^(x_0 - top) + e^(x_1 - top) + ...
  for (std::int64_t first = 0; first < n; first += kBlock) {
    Vector<T> sum{};
    for (AnyPack at{first, std::min(n, first + kBlock)}; at; at.next<T>())
      sum += vector_exp(at(x, -std::numeric_limits<T>::infinity()) - top);
    total += sum_of_lanes(sum);
  }
  return total;
}

}  // namespace taper::kernels
