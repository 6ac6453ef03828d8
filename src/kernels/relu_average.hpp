#pragma once

#include "kernels/avg_pool.hpp"

// ReLU and the averages of two by two elements side by side in one pass: the results of ReLU are never written. What
// comes out is, bit for bit, what `map` and `avg_pool` give one after another, and their gradient: float32, on
// processors whose vectors can be read and written in part.
namespace taper::kernels {

/// Whether the other two are made for the pool and this processor.
bool relu_average_fits(const AvgPoolParams& p);

/// The elements of the array that tells which elements ReLU keeps.
std::int64_t relu_average_bits(const AvgPoolParams& p);

/// y = avg_pool(max(x, 0))
void relu_average(const AvgPoolParams& p, const float* x, float* y, std::uint16_t* positive);

/// The gradient to x, which is overwritten.
void relu_average_backward(const AvgPoolParams& p, const float* dy, const std::uint16_t* positive, float* dx);

}  // namespace taper::kernels
