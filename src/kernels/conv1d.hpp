#pragma once

#include <cstdint>

namespace taper::kernels {

/// Sizes of a 1-d convolution (cross-correlation: the kernel is not flipped).
///
/// x is [batch, in_channels, length], w [out_channels, in_channels / groups, kernel], y [batch, out_channels,
/// out_length]. Output l, tap t reads position `l * stride + t * dilation - pad_left` of x, zero outside of it; the
/// right padding is what `out_length` implies.
struct Conv1dParams {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0;
  std::int64_t length = 0, out_length = 0;
  std::int64_t kernel = 1, stride = 1, pad_left = 0, dilation = 1, groups = 1;
};

/// y = x * w + b. `b` is [out_channels] or null.
template <class T>
void conv1d_forward(const Conv1dParams& p, const T* x, const T* w, const T* b, T* y);

/// Gradient to the input, [batch, in_channels, length]: overwrites dx, or adds to it with `add`.
template <class T>
void conv1d_backward_input(const Conv1dParams& p, const T* dy, const T* w, T* dx, bool add);

/// Gradient to the weight, [out_channels, in_channels / groups, kernel]: overwrites dw, or adds to it with `add`.
template <class T>
void conv1d_backward_weight(const Conv1dParams& p, const T* dy, const T* x, T* dw, bool add);

/// Gradient to the bias, [out_channels]: the sum of dy over batch and positions, in double.
template <class T>
void conv1d_backward_bias(const Conv1dParams& p, const T* dy, T* db, bool add);

}  // namespace taper::kernels
