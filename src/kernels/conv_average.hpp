#pragma once

#include "kernels/conv.hpp"

// A convolution along short lines, ReLU, and the average of each line, in one pass: the results of the convolution are
// never written. What comes out is, bit for bit, what `conv_forward`, `map` and `avg_pool` give one after another, and
// their gradients: float32, on processors whose vectors can be read and written in part.
namespace taper::kernels {

/// Whether the other two are made for the sizes and this processor.
bool conv_average_fits(const ConvParams& p);

/// The elements of the array that tells which results are positive.
std::int64_t conv_average_bits(const ConvParams& p);

/// y[n, f] = sum over i of max(x * w + b, 0)[n, f, i] / divisor; `b` may be null. The divisor is a float.
void conv_average(const ConvParams& p, double divisor, const float* x, const float* w, const float* b, float* y,
                  std::uint16_t* positive);

/// The gradients to weight and bias: overwritten, or added to; `db` may be null.
void conv_average_backward(const ConvParams& p, double divisor, const float* dy, const std::uint16_t* positive,
                           const float* x, float* dw, bool add_dw, float* db, bool add_db);

}  // namespace taper::kernels
