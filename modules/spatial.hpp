#pragma once

#include "base/fail.hpp"
#include "taper/tensor.hpp"

namespace taper::nn {

/// Refuses inputs that are not [N, C, spatial...] or [C, spatial...] of a floating type with at least one channel.
/// `where: expected a 2-D unbatched or 3-D batched input, got shape [..]`.
void check_spatial_input(const char* where, const Shape& shape, int spatial_dims);
void check_floating(const char* where, DType dtype);

/// The number of [spatial...] blocks: N * C.
inline std::int64_t planes(const Shape& shape, int spatial_dims) {
  std::int64_t n = 1;
  for (int d = 0; d < shape.rank() - spatial_dims; ++d) n *= shape[d];
  return n;
}

}  // namespace taper::nn
