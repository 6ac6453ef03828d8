#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/pool_description.hpp"
#include "taper/nn/sizes.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// Of a power mean pool over N dimensions.
template <int N>
struct LPPoolOptions {
  static constexpr const char* kType = N == 1 ? "LPPool1d" : N == 2 ? "LPPool2d" : "LPPool3d";
  static constexpr int kDims = N;
  double norm_type = 0;
  Sizes<N> kernel_size = 0;
  MaybeSizes<N> stride = {};  ///< left out: the kernel size
  bool ceil_mode = false;
};
using LPPool1dOptions = LPPoolOptions<1>;
using LPPool2dOptions = LPPoolOptions<2>;
using LPPool3dOptions = LPPoolOptions<3>;

template <int N>
[[gnu::visibility("default")]] void fields(LPPoolOptions<N>& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// The power mean of windows over the last dimension, times the kernel's size before the root:
/// [N, C, L] -> [N, C, L'], or without N; y = (sum of x^p)^(1 / p), p being `norm_type`. There is no absolute value:
/// with p = 1 a negative sum stays negative, and a root of a negative sum is NaN. In `ceil_mode` the mean of a window
/// cut off by the border is multiplied by the whole kernel's size too. Where the sum is 0 no gradient flows (a
/// p below 1 still gives NaN at an x of 0). An infinite p gives the largest |x|, minus infinity the smallest. Source:
/// PyTorch, LPPool1d. Errors: `ErrorKind::config` (options, p of 0 or NaN), `ErrorKind::shape`, `ErrorKind::type` for
/// int64.
Tensor lp_pool1d(const Tensor& input, const LPPool1dOptions& options);
/// The same over height and width: [N, C, H, W] -> [N, C, H', W'], or without N. Source: PyTorch, LPPool2d.
Tensor lp_pool2d(const Tensor& input, const LPPool2dOptions& options);
/// The same over depth, height and width: [N, C, D, H, W] -> [N, C, D', H', W'], or without N. Source: PyTorch,
/// LPPool3d.
Tensor lp_pool3d(const Tensor& input, const LPPool3dOptions& options);

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// The function that belongs to the options `O`, as a layer.
template <class O>
class PowerPool : public Layer<O> {
 public:
  /// Errors: `ErrorKind::config` for options that no input could make valid.
  explicit PowerPool(O options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(O& options, std::span<const Shape> inputs);
  /// What the layer does to an input of these extents, window by window.
  PoolDescription describe(const Sizes<O::kDims>& input) const;
};

using LPPool1d = PowerPool<LPPool1dOptions>;  ///< applies `functional::lp_pool1d`
using LPPool2d = PowerPool<LPPool2dOptions>;  ///< applies `functional::lp_pool2d`
using LPPool3d = PowerPool<LPPool3dOptions>;  ///< applies `functional::lp_pool3d`

}  // namespace taper::nn

#pragma GCC visibility pop
