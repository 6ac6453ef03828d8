#pragma once

#include "taper/autograd.hpp"

namespace taper::detail {

/// `autograd::apply` to two inputs and nothing else: what most arithmetic is. With their number known, their lists are.
Tensor apply_to_two(const autograd::Op& op, const Tensor& a, const Tensor& b, const Shape& output_shape,
                    DType output_dtype);

}  // namespace taper::detail
