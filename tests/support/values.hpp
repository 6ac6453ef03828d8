#pragma once

#include "support/numbers.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

/// Tensors from numbers, and back.
namespace taper::test {

inline Values values(const Tensor& x) { return x.to_vector<double>(); }

/// [1, n]
inline Tensor row(const Values& x) { return from_data(x, {1, std::int64_t(x.size())}); }

/// from, from + 1, ... in float64, row by row.
inline Tensor counted(std::int64_t from, const Shape& shape) {
  return arange(from, from + shape.numel(), 1, DType::float64).reshape(shape);
}

}  // namespace taper::test
