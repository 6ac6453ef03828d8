#pragma once

#include "taper/nn/conv.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// How a transposed kernel is laid over N spatial dimensions; its size and the channels are the weight's.
template <int N>
struct ConvTransposeFuncOptions {
  Sizes<N> stride = 1;
  Sizes<N> padding = 0;         ///< taken off both sides of the output
  Sizes<N> output_padding = 0;  ///< added to one side of the output; less than stride or dilation
  std::int64_t groups = 1;
  Sizes<N> dilation = 1;
};
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions<1>;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions<2>;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions<3>;

/// A transposed convolution layer over N spatial dimensions.
template <int N>
struct ConvTransposeOptions {
  static constexpr const char* kType = N == 1 ? "ConvTranspose1d" : N == 2 ? "ConvTranspose2d" : "ConvTranspose3d";
  std::optional<std::int64_t> in_channels = {};  ///< left out in JSON: the input's channels
  std::int64_t out_channels = 0;
  Sizes<N> kernel_size = 0;
  Sizes<N> stride = 1;
  Sizes<N> padding = 0;
  Sizes<N> output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Sizes<N> dilation = 1;
  PadMode padding_mode = PadMode::zeros;  ///< no other mode is defined
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

template <int N>
[[gnu::visibility("default")]] void fields(ConvTransposeOptions<N>& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// Adds a kernel to the output for every input position, which is the gradient of a convolution to its input:
/// [N, Cin, L] -> [N, Cout, L'], or without N, with
/// L' = (L - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.
/// `weight` is [Cin, Cout / groups, kernel], `bias` [Cout] or undefined. Source: PyTorch, ConvTranspose1d.
/// Errors: `ErrorKind::config` (options), `ErrorKind::shape`, `ErrorKind::type`.
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor(),
                        const ConvTranspose1dFuncOptions& options = {});

/// The same over height and width: [N, Cin, H, W] -> [N, Cout, H', W'], or without N; `weight` is
/// [Cin, Cout / groups, kernel H, kernel W]. Source: PyTorch, ConvTranspose2d.
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor(),
                        const ConvTranspose2dFuncOptions& options = {});

/// The same over depth, height and width: [N, Cin, D, H, W] -> [N, Cout, D', H', W'], or without N; `weight` is
/// [Cin, Cout / groups, kernel D, kernel H, kernel W]. Source: PyTorch, ConvTranspose3d.
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor(),
                        const ConvTranspose3dFuncOptions& options = {});

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::conv_transpose1d`, `conv_transpose2d` or `conv_transpose3d` with parameters of its own,
/// float32 and uniform in +-1 / sqrt(out_channels / groups * the product of kernel_size) at first.
template <int N>
class ConvTranspose : public Layer<ConvTransposeOptions<N>> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid or without `in_channels`.
  explicit ConvTranspose(ConvTransposeOptions<N> options);
  Tensor forward(const Tensor& x) override;
  /// With the spatial extents `output_size`, which stand in for `output_padding`: a convolution of stride s has the
  /// same output size for s input sizes. Errors: `ErrorKind::shape` for one that no output padding below the stride
  /// gives.
  Tensor forward(const Tensor& x, const Sizes<N>& output_size);
  static Shape infer(ConvTransposeOptions<N>& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [in_channels, out_channels / groups, kernel_size...]
  Tensor bias;    ///< [out_channels], or undefined
};

using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

}  // namespace taper::nn

#pragma GCC visibility pop
