#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/pool_description.hpp"
#include "taper/nn/sizes.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------
//
// Beyond PyTorch: padding that differs between the two sides or is "same", and dilation.

struct AvgPool1dOptions {
  static constexpr const char* kType = "AvgPool1d";
  static constexpr int kDims = 1;
  Sizes<1> kernel_size = 0;
  MaybeSizes<1> stride = {};  ///< left out: the kernel size
  PoolPadding<1> padding = 0;
  Sizes<1> dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

struct AvgPool2dOptions {
  static constexpr const char* kType = "AvgPool2d";
  static constexpr int kDims = 2;
  Sizes<2> kernel_size = 0;
  MaybeSizes<2> stride = {};  ///< left out: the kernel size
  PoolPadding<2> padding = 0;
  Sizes<2> dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override = {};
};

struct AvgPool3dOptions {
  static constexpr const char* kType = "AvgPool3d";
  static constexpr int kDims = 3;
  Sizes<3> kernel_size = 0;
  MaybeSizes<3> stride = {};  ///< left out: the kernel size
  PoolPadding<3> padding = 0;
  Sizes<3> dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override = {};
};

struct AdaptiveAvgPool1dOptions {
  static constexpr const char* kType = "AdaptiveAvgPool1d";
  static constexpr int kDims = 1;
  Sizes<1> output_size = -1;
};

struct AdaptiveAvgPool2dOptions {
  static constexpr const char* kType = "AdaptiveAvgPool2d";
  static constexpr int kDims = 2;
  OptionalSizes<2> output_size = -1;
};

struct AdaptiveAvgPool3dOptions {
  static constexpr const char* kType = "AdaptiveAvgPool3d";
  static constexpr int kDims = 3;
  OptionalSizes<3> output_size = -1;
};

void fields(AvgPool1dOptions& options, FieldVisitor& visitor);
void fields(AvgPool2dOptions& options, FieldVisitor& visitor);
void fields(AvgPool3dOptions& options, FieldVisitor& visitor);
void fields(AdaptiveAvgPool1dOptions& options, FieldVisitor& visitor);
void fields(AdaptiveAvgPool2dOptions& options, FieldVisitor& visitor);
void fields(AdaptiveAvgPool3dOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// Averages windows that slide over the last dimension: [N, C, L] -> [N, C, L'], or [C, L] -> [C, L'] with
/// L' = floor or ceil((L + padding on both sides - dilation (kernel_size - 1) - 1) / stride) + 1. Padding counts as
/// zeros unless `count_include_pad` is off; what hangs over the right padding in `ceil_mode` never counts. Padding is
/// at most half the dilated kernel; "same" needs a stride of 1 and puts an odd zero on the right. A dilated window
/// between whose elements the whole input lies gives 0. Source: PyTorch, AvgPool1d. Beyond PyTorch: "same", sides that
/// differ, `dilation`. Errors: `ErrorKind::config` (options), `ErrorKind::shape`, `ErrorKind::type` for int64.
Tensor avg_pool1d(const Tensor& input, const AvgPool1dOptions& options);

/// The same over height and width: [N, C, H, W] -> [N, C, H', W'], or without N. `divisor_override` replaces the number
/// of counted positions. Source: PyTorch, AvgPool2d. Differs: a divisor must be positive.
Tensor avg_pool2d(const Tensor& input, const AvgPool2dOptions& options);

/// The same over depth, height and width: [N, C, D, H, W] -> [N, C, D', H', W'], or without N. Source: PyTorch,
/// AvgPool3d. Differs: the input may be smaller than the kernel, as in 1-d and 2-d.
Tensor avg_pool3d(const Tensor& input, const AvgPool3dOptions& options);

/// Averages the windows [floor(i L / O), ceil((i + 1) L / O)), i < O, of any input length: [N, C, L] -> [N, C, O], or
/// [C, L] -> [C, O]. O may be larger than L; O = 0 and C = 0 give an empty result. Source: PyTorch, AdaptiveAvgPool1d.
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dOptions& options);

/// The same over height and width: [N, C, H, W] -> [N, C, O0, O1]; an open extent keeps the input's.
/// Source: PyTorch, AdaptiveAvgPool2d. Differs: an empty spatial extent is an error on every path.
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dOptions& options);

/// The same over depth, height and width: [N, C, D, H, W] -> [N, C, O0, O1, O2]. Source: PyTorch, AdaptiveAvgPool3d.
/// Differs: no channels give an empty result, as in 1-d and 2-d.
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dOptions& options);

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// The function that belongs to the options `O`, as a layer.
template <class O>
class AveragePool : public Layer<O> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid.
  explicit AveragePool(O options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(O& options, std::span<const Shape> inputs);
  /// What the layer does to an input of these extents, window by window.
  PoolDescription describe(const Sizes<O::kDims>& input) const;
};

using AvgPool1d = AveragePool<AvgPool1dOptions>;                  ///< applies `functional::avg_pool1d`
using AvgPool2d = AveragePool<AvgPool2dOptions>;                  ///< applies `functional::avg_pool2d`
using AvgPool3d = AveragePool<AvgPool3dOptions>;                  ///< applies `functional::avg_pool3d`
using AdaptiveAvgPool1d = AveragePool<AdaptiveAvgPool1dOptions>;  ///< applies `functional::adaptive_avg_pool1d`
using AdaptiveAvgPool2d = AveragePool<AdaptiveAvgPool2dOptions>;  ///< applies `functional::adaptive_avg_pool2d`
using AdaptiveAvgPool3d = AveragePool<AdaptiveAvgPool3dOptions>;  ///< applies `functional::adaptive_avg_pool3d`

}  // namespace taper::nn

#pragma GCC visibility pop
