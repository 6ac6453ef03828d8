#pragma once

#include <type_traits>

#include "taper/nn/pool_description.hpp"
#include "taper/nn/registry.hpp"
#include "taper/nn/sizes.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// Of a max pool over N dimensions.
template <int N>
struct MaxPoolOptions {
  static constexpr const char* kType = N == 1 ? "MaxPool1d" : N == 2 ? "MaxPool2d" : "MaxPool3d";
  static constexpr int kDims = N;
  Sizes<N> kernel_size = 0;
  MaybeSizes<N> stride = {};  ///< left out: the kernel size
  Sizes<N> padding = 0;
  Sizes<N> dilation = 1;
  bool return_indices = false;  ///< whether a layer offers "indices" to other layers of a `Graph`
  bool ceil_mode = false;
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

/// Of an adaptive max pool over N dimensions.
template <int N>
struct AdaptiveMaxPoolOptions {
  static constexpr const char* kType = N == 1   ? "AdaptiveMaxPool1d"
                                       : N == 2 ? "AdaptiveMaxPool2d"
                                                : "AdaptiveMaxPool3d";
  static constexpr int kDims = N;
  std::conditional_t<N == 1, Sizes<1>, OptionalSizes<N>> output_size = -1;
  bool return_indices = false;  ///< whether a layer offers "indices" to other layers of a `Graph`
};
using AdaptiveMaxPool1dOptions = AdaptiveMaxPoolOptions<1>;
using AdaptiveMaxPool2dOptions = AdaptiveMaxPoolOptions<2>;
using AdaptiveMaxPool3dOptions = AdaptiveMaxPoolOptions<3>;

template <int N>
[[gnu::visibility("default")]] void fields(MaxPoolOptions<N>& options, FieldVisitor& visitor);
template <int N>
[[gnu::visibility("default")]] void fields(AdaptiveMaxPoolOptions<N>& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

/// What a max pool chose: the largest elements and, as int64, where each is in the flattened spatial extents of its
/// channel. Both have the same shape.
struct MaxPooled {
  Tensor values, indices;
};

namespace functional {

/// The largest element of each window that slides over the last dimension: [N, C, L] -> [N, C, L'], or
/// [C, L] -> [C, L'] with L' = floor or ceil((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1. Padding is
/// never chosen. The first of equal elements is chosen; a NaN is larger than any number, and of several NaN the last
/// one is chosen. The gradient goes to the chosen element alone. Source: PyTorch, MaxPool1d. Differs: a window whose
/// dilation steps over the whole input is an error, not minus infinity. Errors: `ErrorKind::config` (options),
/// `ErrorKind::shape`, `ErrorKind::type` for int64.
Tensor max_pool1d(const Tensor& input, const MaxPool1dOptions& options);
/// The same over height and width: [N, C, H, W] -> [N, C, H', W'], or without N. Source: PyTorch, MaxPool2d.
Tensor max_pool2d(const Tensor& input, const MaxPool2dOptions& options);
/// The same over depth, height and width: [N, C, D, H, W] -> [N, C, D', H', W'], or without N.
/// Source: PyTorch, MaxPool3d.
Tensor max_pool3d(const Tensor& input, const MaxPool3dOptions& options);

/// As `max_pool1d`, `max_pool2d` and `max_pool3d`, together with where the values come from.
MaxPooled max_pool1d_with_indices(const Tensor& input, const MaxPool1dOptions& options);
MaxPooled max_pool2d_with_indices(const Tensor& input, const MaxPool2dOptions& options);
MaxPooled max_pool3d_with_indices(const Tensor& input, const MaxPool3dOptions& options);

/// The largest element of each window [floor(i L / O), ceil((i + 1) L / O)), i < O: [N, C, L] -> [N, C, O], or
/// [C, L] -> [C, O]; chosen as in `max_pool1d`. O may be larger than L; O = 0 gives an empty result.
/// Source: PyTorch, AdaptiveMaxPool1d.
Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dOptions& options);
/// The same over height and width: [N, C, H, W] -> [N, C, O0, O1]; an open extent keeps the input's.
/// Source: PyTorch, AdaptiveMaxPool2d.
Tensor adaptive_max_pool2d(const Tensor& input, const AdaptiveMaxPool2dOptions& options);
/// The same over depth, height and width: [N, C, D, H, W] -> [N, C, O0, O1, O2]. Source: PyTorch, AdaptiveMaxPool3d.
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dOptions& options);

/// As the functions above, together with where the values come from.
MaxPooled adaptive_max_pool1d_with_indices(const Tensor& input, const AdaptiveMaxPool1dOptions& options);
MaxPooled adaptive_max_pool2d_with_indices(const Tensor& input, const AdaptiveMaxPool2dOptions& options);
MaxPooled adaptive_max_pool3d_with_indices(const Tensor& input, const AdaptiveMaxPool3dOptions& options);

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// What the layers below share; `O` are their options.
template <class O>
class MaxPoolLayer : public Layer<O> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid.
  explicit MaxPoolLayer(O options);
  /// The values, whatever `return_indices` says.
  Tensor forward(const Tensor& x) override;
  /// The values and where they come from, whatever `return_indices` says.
  MaxPooled forward_with_indices(const Tensor& x);
  /// The values, then with `return_indices` the indices.
  std::vector<Tensor> forward_outputs(std::span<const Tensor> inputs) override;
  std::vector<std::string> further_outputs() const override { return further_outputs(this->options_); }

  /// Every window over an input of these spatial extents: `describe(13)`, `describe({5, 7})`.
  PoolDescription describe(const Sizes<O::kDims>& input) const;

  static Shape infer(O& options, std::span<const Shape> inputs);
  static std::vector<std::string> further_outputs(const O& options);
  static std::vector<Outline> infer_further(const O& options, std::span<const Shape> inputs);
};

/// Applies `functional::max_pool1d`, `max_pool2d`, `max_pool3d`.
using MaxPool1d = MaxPoolLayer<MaxPool1dOptions>;
using MaxPool2d = MaxPoolLayer<MaxPool2dOptions>;
using MaxPool3d = MaxPoolLayer<MaxPool3dOptions>;
/// Applies `functional::adaptive_max_pool1d`, `adaptive_max_pool2d`, `adaptive_max_pool3d`.
using AdaptiveMaxPool1d = MaxPoolLayer<AdaptiveMaxPool1dOptions>;
using AdaptiveMaxPool2d = MaxPoolLayer<AdaptiveMaxPool2dOptions>;
using AdaptiveMaxPool3d = MaxPoolLayer<AdaptiveMaxPool3dOptions>;

extern template class MaxPoolLayer<MaxPool1dOptions>;
extern template class MaxPoolLayer<MaxPool2dOptions>;
extern template class MaxPoolLayer<MaxPool3dOptions>;
extern template class MaxPoolLayer<AdaptiveMaxPool1dOptions>;
extern template class MaxPoolLayer<AdaptiveMaxPool2dOptions>;
extern template class MaxPoolLayer<AdaptiveMaxPool3dOptions>;

}  // namespace taper::nn

#pragma GCC visibility pop
