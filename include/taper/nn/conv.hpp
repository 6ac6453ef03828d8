#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/sizes.hpp"
#include "taper/ops.hpp"

#pragma GCC visibility push(default)

namespace taper {

/// PyTorch's names of `padding_mode`.
std::span<const char* const> names_of(PadMode);

}  // namespace taper

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// How a kernel slides over N spatial dimensions; its size and the channels are the weight's.
template <int N>
struct ConvFuncOptions {
  Sizes<N> stride = 1;
  ConvPadding<N> padding = 0;  ///< numbers, "same" (stride 1 only; an odd extra zero goes to the right) or "valid"
  Sizes<N> dilation = 1;
  std::int64_t groups = 1;
  PadMode padding_mode = PadMode::zeros;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;

/// A convolution layer over N spatial dimensions.
template <int N>
struct ConvOptions {
  static constexpr const char* kType = N == 1 ? "Conv1d" : N == 2 ? "Conv2d" : "Conv3d";
  std::optional<std::int64_t> in_channels = {};  ///< left out in JSON: the input's channels
  std::int64_t out_channels = 0;
  Sizes<N> kernel_size = 0;
  Sizes<N> stride = 1;
  ConvPadding<N> padding = 0;
  Sizes<N> dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  PadMode padding_mode = PadMode::zeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <int N>
[[gnu::visibility("default")]] void fields(ConvOptions<N>& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// Slides kernels over the last dimension (cross-correlation: they are not flipped):
/// [N, Cin, L] -> [N, Cout, L'], or without N, with
/// L' = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
/// `weight` is [Cout, Cin / groups, kernel], `bias` [Cout] or undefined. Source: PyTorch, Conv1d.
/// Errors: `ErrorKind::config` (options), `ErrorKind::shape`, `ErrorKind::type`. Differs: an empty spatial extent is
/// an error however it is padded.
Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor(),
              const Conv1dFuncOptions& options = {});

/// The same over height and width: [N, Cin, H, W] -> [N, Cout, H', W'], or without N; `weight` is
/// [Cout, Cin / groups, kernel H, kernel W]. Source: PyTorch, Conv2d.
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor(),
              const Conv2dFuncOptions& options = {});

/// The same over depth, height and width: [N, Cin, D, H, W] -> [N, Cout, D', H', W'], or without N; `weight` is
/// [Cout, Cin / groups, kernel D, kernel H, kernel W]. Source: PyTorch, Conv3d.
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor(),
              const Conv3dFuncOptions& options = {});

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::conv1d`, `conv2d` or `conv3d` with parameters of its own, float32 and uniform in
/// +-1 / sqrt(in_channels / groups * the product of kernel_size) at first.
template <int N>
class Conv : public Layer<ConvOptions<N>> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid or without `in_channels`.
  explicit Conv(ConvOptions<N> options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(ConvOptions<N>& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [out_channels, in_channels / groups, kernel_size...]
  Tensor bias;    ///< [out_channels], or undefined
};

using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

}  // namespace taper::nn

#pragma GCC visibility pop
