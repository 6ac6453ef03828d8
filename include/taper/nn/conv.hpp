#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/sizes.hpp"
#include "taper/ops.hpp"

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

struct Conv1dOptions {
  static constexpr const char* kType = "Conv1d";
  std::optional<std::int64_t> in_channels = {};  ///< left out in JSON: the input's channels
  std::int64_t out_channels = 0;
  Sizes<1> kernel_size = 0;
  Sizes<1> stride = 1;
  ConvPadding<1> padding = 0;
  Sizes<1> dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  PadMode padding_mode = PadMode::zeros;
};

void fields(Conv1dOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// Slides kernels over the last dimension (cross-correlation: they are not flipped):
/// [N, Cin, L] -> [N, Cout, L'], or without N, with
/// L' = floor((L + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
/// `weight` is [Cout, Cin / groups, kernel], `bias` [Cout] or undefined. Source: PyTorch, Conv1d.
/// Errors: `ErrorKind::config` (options), `ErrorKind::shape`, `ErrorKind::type`.
Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor(),
              const Conv1dFuncOptions& options = {});

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::conv1d` with parameters of its own, float32 and uniform in
/// +-1 / sqrt(in_channels / groups * kernel_size) at first.
class Conv1d : public Layer<Conv1dOptions> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid or without `in_channels`.
  explicit Conv1d(Conv1dOptions options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [out_channels, in_channels / groups, kernel_size]
  Tensor bias;    ///< [out_channels], or undefined
};

}  // namespace taper::nn
