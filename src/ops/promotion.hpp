#pragma once

#include "taper/dtype.hpp"

namespace taper {

/// The element type two operands are computed in: a floating one wins over int64, float64 over float32.
constexpr DType promoted(DType a, DType b) {
  if (a == b) return a;
  return a == DType::float64 || b == DType::float64 ? DType::float64 : DType::float32;
}

}  // namespace taper
