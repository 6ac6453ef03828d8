#pragma once

#include "taper/nn/registry.hpp"
#include "taper/nn/sizes.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// Of the inverse of a max pool over N dimensions.
template <int N>
struct MaxUnpoolOptions {
  static constexpr const char* kType = N == 1 ? "MaxUnpool1d" : N == 2 ? "MaxUnpool2d" : "MaxUnpool3d";
  static constexpr int kDims = N;
  Sizes<N> kernel_size = 0;
  MaybeSizes<N> stride = {};  ///< left out: the kernel size
  Sizes<N> padding = 0;
  /// Left out: (input - 1) stride - 2 padding + kernel_size; may differ from that by less than the stride.
  /// An argument of `forward` in PyTorch.
  MaybeSizes<N> output_size = {};
};
using MaxUnpool1dOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dOptions = MaxUnpoolOptions<3>;

template <int N>
[[gnu::visibility("default")]] void fields(MaxUnpoolOptions<N>& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// Puts each element where `indices` says, in a channel of zeros: [N, C, L], [N, C, L] -> [N, C, L'], or without N.
/// `indices` is int64, as `max_pool1d_with_indices` gives it. Where several elements go to one place the last one
/// stays, and each of them gets the gradient of the place. Source: PyTorch, MaxUnpool1d. Errors: `ErrorKind::config`
/// (options), `ErrorKind::shape`, also for an index outside the output, `ErrorKind::type`.
Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dOptions& options);
/// The same over height and width: [N, C, H, W], [N, C, H, W] -> [N, C, H', W']. Source: PyTorch, MaxUnpool2d.
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dOptions& options);
/// The same over depth, height and width: [N, C, D, H, W], [N, C, D, H, W] -> [N, C, D', H', W'].
/// Source: PyTorch, MaxUnpool3d.
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dOptions& options);

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies `functional::max_unpool1d`, `max_unpool2d`, `max_unpool3d` to its two inputs.
template <int N>
class MaxUnpool : public Layer<MaxUnpoolOptions<N>> {
 public:
  using Options = MaxUnpoolOptions<N>;
  static constexpr Elements kReads[] = {Elements::floating, Elements::int64};
  static constexpr std::int64_t kExampleIndices = 31;

  /// Errors: `ErrorKind::config` for options that no input could make valid.
  explicit MaxUnpool(Options options);
  Tensor forward(const Tensor& input, const Tensor& indices);
  /// With an output size for this call alone.
  Tensor forward(const Tensor& input, const Tensor& indices, const Sizes<N>& output_size);
  /// Errors: `ErrorKind::config` unless there are the input and its indices.
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor forward(const Tensor& x) override { return forward_all({&x, 1}); }
  static Shape infer(Options& options, std::span<const Shape> inputs);
};
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;

extern template class MaxUnpool<1>;
extern template class MaxUnpool<2>;
extern template class MaxUnpool<3>;

}  // namespace taper::nn

#pragma GCC visibility pop
