#pragma once

#include <cstdint>

#include "kernels/loop_hints.hpp"

namespace taper::kernels {

/// gradient_i = value(i), or += with `add`; the values do not depend on the gradients stored before.
template <class T, class Value>
inline void store_run(T* gradient, std::int64_t n, bool add, const Value& value) {
  if (add) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) gradient[i] = T(static_cast<double>(gradient[i]) + value(i));
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) gradient[i] = T(value(i));
  }
}

}  // namespace taper::kernels
