#pragma once

#include <cstdint>

namespace taper::kernels {

/// Sizes of a convolution (cross-correlation: the kernel is not flipped) over depth, height and width. With fewer
/// spatial dimensions the ones in front stay as they are here.
///
/// x is [batch, in_channels, in...], w [out_channels, in_channels / groups, kernel...], y [batch, out_channels,
/// out...]. Along each dimension output i, tap t reads position `i * stride + t * dilation - padding` of x, zero
/// outside of it; `padding` is the one on the left, the one on the right is what `out` implies.
struct ConvParams {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  std::int64_t in[3] = {1, 1, 1};
  std::int64_t out[3] = {1, 1, 1};
  std::int64_t kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t padding[3] = {0, 0, 0};
  std::int64_t dilation[3] = {1, 1, 1};
};

/// y = x * w + b: overwrites y, or adds to it with `add`. `b` is [out_channels] or null; null with `add`.
template <class T>
void conv_forward(const ConvParams& p, const T* x, const T* w, const T* b, T* y, bool add = false);

/// Gradient to the input, shaped as x, plus `b`: overwrites dx, or adds to it with `add`. `b` is [in_channels] or null;
/// null with `add`.
template <class T>
void conv_backward_input(const ConvParams& p, const T* dy, const T* w, T* dx, bool add, const T* b = nullptr);

/// Gradient to the weight, shaped as w: overwrites dw, or adds to it with `add`.
template <class T>
void conv_backward_weight(const ConvParams& p, const T* dy, const T* x, T* dw, bool add);

/// Gradient to the bias, [out_channels]: the sum of dy over batch and positions, in double.
template <class T>
void conv_backward_bias(const ConvParams& p, const T* dy, T* db, bool add);

/// Both gradients in one pass where that is faster. What is null is not computed.
template <class T>
void conv_backward_parameters(const ConvParams& p, const T* dy, const T* x, T* dw, bool add_dw, T* db, bool add_db);

}  // namespace taper::kernels
