#pragma once

#include "kernels/conv.hpp"

namespace taper::kernels {

/// A transposed convolution from x to y is given by the convolution `p` that takes y to x: the forward of the one is
/// the input gradient of the other. So x is [batch, out_channels, out...], w [out_channels, in_channels / groups,
/// kernel...] and y [batch, in_channels, in...], by the names in `p`. `in` may be longer than the windows reach; what
/// no window reaches is the bias.

/// y = the transpose of w applied to x, + b. `b` is [p.in_channels] or null.
template <class T>
void conv_transpose_forward(const ConvParams& p, const T* x, const T* w, const T* b, T* y);

/// Gradient to the input, shaped as x: overwrites dx, or adds to it with `add`.
template <class T>
void conv_transpose_backward_input(const ConvParams& p, const T* dy, const T* w, T* dx, bool add);

/// Gradient to the weight, shaped as w: overwrites dw, or adds to it with `add`.
template <class T>
void conv_transpose_backward_weight(const ConvParams& p, const T* dy, const T* x, T* dw, bool add);

/// Gradient to the bias, [p.in_channels]: the sum of dy over batch and positions, in double.
template <class T>
void conv_transpose_backward_bias(const ConvParams& p, const T* dy, T* db, bool add);

}  // namespace taper::kernels
