#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/sizes.hpp"

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

struct AvgPool1dOptions {
  static constexpr const char* kType = "AvgPool1d";
  Sizes<1> kernel_size = 0;
  std::optional<Sizes<1>> stride = {};  ///< left out: the kernel size
  Sizes<1> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

struct AvgPool2dOptions {
  static constexpr const char* kType = "AvgPool2d";
  Sizes<2> kernel_size = 0;
  std::optional<Sizes<2>> stride = {};  ///< left out: the kernel size
  Sizes<2> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<std::int64_t> divisor_override = {};
};

struct AdaptiveAvgPool1dOptions {
  static constexpr const char* kType = "AdaptiveAvgPool1d";
  Sizes<1> output_size = -1;
};

struct AdaptiveAvgPool2dOptions {
  static constexpr const char* kType = "AdaptiveAvgPool2d";
  OptionalSizes<2> output_size = -1;
};

void fields(AvgPool1dOptions& options, FieldVisitor& visitor);
void fields(AvgPool2dOptions& options, FieldVisitor& visitor);
void fields(AdaptiveAvgPool1dOptions& options, FieldVisitor& visitor);
void fields(AdaptiveAvgPool2dOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// Averages windows that slide over the last dimension: [N, C, L] -> [N, C, L'], or [C, L] -> [C, L'] with
/// L' = floor or ceil((L + 2 padding - kernel_size) / stride) + 1. Padding counts as zeros unless `count_include_pad`
/// is off; what hangs over the right padding in `ceil_mode` never counts. Source: PyTorch, AvgPool1d. Errors:
/// `ErrorKind::config` (options), `ErrorKind::shape`, `ErrorKind::type` for int64.
Tensor avg_pool1d(const Tensor& input, const AvgPool1dOptions& options);

/// The same over height and width: [N, C, H, W] -> [N, C, H', W'], or without N. `divisor_override` replaces the number
/// of counted positions. Source: PyTorch, AvgPool2d. Differs: a divisor must be positive.
Tensor avg_pool2d(const Tensor& input, const AvgPool2dOptions& options);

/// Averages the windows [floor(i L / O), ceil((i + 1) L / O)), i < O, of any input length: [N, C, L] -> [N, C, O], or
/// [C, L] -> [C, O]. O may be larger than L; O = 0 gives an empty result. Source: PyTorch, AdaptiveAvgPool1d.
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dOptions& options);

/// The same over height and width: [N, C, H, W] -> [N, C, O0, O1]; an open extent keeps the input's.
/// Source: PyTorch, AdaptiveAvgPool2d. Differs: an empty spatial extent is an error on every path.
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dOptions& options);

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::avg_pool1d`.
class AvgPool1d : public Layer<AvgPool1dOptions> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid.
  explicit AvgPool1d(AvgPool1dOptions options);
  Tensor forward(const Tensor& x) override { return functional::avg_pool1d(x, options_); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

/// Applies `functional::avg_pool2d`.
class AvgPool2d : public Layer<AvgPool2dOptions> {
 public:
  explicit AvgPool2d(AvgPool2dOptions options);
  Tensor forward(const Tensor& x) override { return functional::avg_pool2d(x, options_); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

/// Applies `functional::adaptive_avg_pool1d`.
class AdaptiveAvgPool1d : public Layer<AdaptiveAvgPool1dOptions> {
 public:
  explicit AdaptiveAvgPool1d(AdaptiveAvgPool1dOptions options);
  Tensor forward(const Tensor& x) override { return functional::adaptive_avg_pool1d(x, options_); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

/// Applies `functional::adaptive_avg_pool2d`.
class AdaptiveAvgPool2d : public Layer<AdaptiveAvgPool2dOptions> {
 public:
  explicit AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions options);
  Tensor forward(const Tensor& x) override { return functional::adaptive_avg_pool2d(x, options_); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

}  // namespace taper::nn
