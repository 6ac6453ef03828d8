#pragma once

#include <array>

#include "base/window.hpp"
#include "kernels/conv.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/nn/sizes.hpp"
#include "taper/ops.hpp"

// What convolutions and transposed convolutions share.
namespace taper::nn {

/// Refuses channels (`key` is the option's name) that do not split into groups. Errors: `ErrorKind::config`.
void check_divisible(const char* where, const char* key, std::int64_t channels, std::int64_t groups);

/// Refuses groups below 1 and channels that do not split into them. Errors: `ErrorKind::config`.
void check_channels(const char* where, std::int64_t in_channels, std::int64_t out_channels, std::int64_t groups);

/// Refuses a weight of the wrong rank or without channels (its first two dimensions), and groups below 1.
/// Errors: `ErrorKind::shape`, `ErrorKind::config`.
void check_weight(const char* where, const Shape& weight, int spatial_dims, std::int64_t groups);

/// A convolution's parameter at first: uniform in +-1 / sqrt(fan_in), fan_in being the product of all extents of the
/// weight but the first.
Tensor initial_parameter(const Shape& shape, const Shape& weight);

/// What both sides of a call look like: the windows slide over `in` to `out`, or transposed from `in` to `out`.
template <int N>
struct ConvGeometry {
  std::array<Window1d, N> windows;
  std::array<std::int64_t, N> in, out;
  Shape output;
};

/// The extents of a weight behind its two channel dimensions.
template <int N>
Sizes<N> kernel_of(const Shape& weight) {
  Sizes<N> kernel;
  std::copy(weight.end() - N, weight.end(), kernel.values.begin());
  return kernel;
}

/// `input` with other channels and spatial extents.
template <std::size_t N>
Shape output_shape(const Shape& input, std::int64_t channels, const std::array<std::int64_t, N>& spatial) {
  std::array<std::int64_t, N + 1> last;
  last[0] = channels;
  std::copy(spatial.begin(), spatial.end(), last.begin() + 1);
  return with_last(input, last);
}

/// Enters the windows and the sizes of both sides, one of each for every spatial dimension, into a kernel's parameters.
void set_windows(kernels::ConvParams& params, std::span<const Window1d> windows, std::span<const std::int64_t> in,
                 std::span<const std::int64_t> out);

}  // namespace taper::nn
