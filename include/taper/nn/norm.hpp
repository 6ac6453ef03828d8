#pragma once

#include "taper/nn/module.hpp"
#include "taper/nn/sizes.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

/// Of BatchNorm1d, BatchNorm2d and BatchNorm3d, by N.
template <int N>
struct BatchNormOptions {
  static constexpr const char* kType = N == 1 ? "BatchNorm1d" : N == 2 ? "BatchNorm2d" : "BatchNorm3d";
  std::optional<std::int64_t> num_features = {};  ///< left out in JSON: the input's channels
  double eps = 1e-5;
  /// Share of the newest batch in the running statistics; none: equal shares. (From a plain number GCC 12 does not
  /// compile a class that has such a layer as a member.)
  std::optional<double> momentum = std::make_optional(0.1);
  bool affine = true;
  bool track_running_stats = true;
  bool bias = true;
};
using BatchNorm1dOptions = BatchNormOptions<1>;
using BatchNorm2dOptions = BatchNormOptions<2>;
using BatchNorm3dOptions = BatchNormOptions<3>;

/// Of InstanceNorm1d, InstanceNorm2d and InstanceNorm3d, by N.
template <int N>
struct InstanceNormOptions {
  static constexpr const char* kType = N == 1 ? "InstanceNorm1d" : N == 2 ? "InstanceNorm2d" : "InstanceNorm3d";
  std::optional<std::int64_t> num_features = {};  ///< left out in JSON: the input's channels
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
  bool bias = true;
};
using InstanceNorm1dOptions = InstanceNormOptions<1>;
using InstanceNorm2dOptions = InstanceNormOptions<2>;
using InstanceNorm3dOptions = InstanceNormOptions<3>;

struct LayerNormOptions {
  static constexpr const char* kType = "LayerNorm";
  Extents normalized_shape = {};
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
};

struct RMSNormOptions {
  static constexpr const char* kType = "RMSNorm";
  Extents normalized_shape = {};
  std::optional<double> eps = {};
  bool elementwise_affine = true;
};

struct GroupNormOptions {
  static constexpr const char* kType = "GroupNorm";
  std::int64_t num_groups = 0;
  std::optional<std::int64_t> num_channels = {};  ///< left out in JSON: the input's channels
  double eps = 1e-5;
  bool affine = true;
  bool bias = true;
};

template <int N>
[[gnu::visibility("default")]] void fields(BatchNormOptions<N>& options, FieldVisitor& visitor);
template <int N>
[[gnu::visibility("default")]] void fields(InstanceNormOptions<N>& options, FieldVisitor& visitor);
void fields(LayerNormOptions& options, FieldVisitor& visitor);
void fields(RMSNormOptions& options, FieldVisitor& visitor);
void fields(GroupNormOptions& options, FieldVisitor& visitor);

struct BatchNormFuncOptions {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
};

struct InstanceNormFuncOptions {
  bool use_input_stats = true;
  double momentum = 0.1;
  double eps = 1e-5;
};

// --- functions ------------------------------------------------------------------------------------------------------
//
// All of them give (x - mean) / sqrt(variance + eps) * weight + bias in the shape of x, the variance being the biased
// one; weight and bias are left out where undefined. Means are exact to the last digits however large they are, and
// constant input gives the bias. An input without elements gives an empty result and gradients of 0.
// Errors: `ErrorKind::shape`, `ErrorKind::type`, `ErrorKind::config` (eps below 0, momentum outside [0, 1]).

namespace functional {

/// One mean and variance for each channel of [N, C, *]. In training those of the batch, and then
/// running = (1 - momentum) running + momentum (the batch's mean, unbiased variance) where running statistics are
/// given; otherwise the running statistics [C]. All others are [C] too. Source: PyTorch, batch_norm. Errors: also a
/// training batch with one value for each channel. Differs: momentum outside [0, 1] is an error.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                  const BatchNormFuncOptions& options = {});

/// One mean and variance for each channel of each sample of [N, C, *], or, without `use_input_stats`, the running
/// statistics [C]; with both, the running ones are updated by the samples' average. Source: PyTorch, instance_norm.
/// Errors: also one value for each channel of a sample.
Tensor instance_norm(const Tensor& input, const Tensor& running_mean = Tensor(), const Tensor& running_var = Tensor(),
                     const Tensor& weight = Tensor(), const Tensor& bias = Tensor(),
                     const InstanceNormFuncOptions& options = {});

/// One mean and variance for each position of [*, normalized_shape...] but the last dimensions, which are
/// `normalized_shape`, as are `weight` and `bias`. Source: PyTorch, layer_norm.
Tensor layer_norm(const Tensor& input, const Extents& normalized_shape, const Tensor& weight = Tensor(),
                  const Tensor& bias = Tensor(), double eps = 1e-5);

/// x / sqrt(mean of x^2 + eps) * weight over the last dimensions; without eps that of the element type, the distance
/// from 1 to the next number. Source: PyTorch, rms_norm.
Tensor rms_norm(const Tensor& input, const Extents& normalized_shape, const Tensor& weight = Tensor(),
                std::optional<double> eps = {});

/// One mean and variance for each group of C / num_groups channels of each sample of [N, C, *]; weight and bias are
/// [C]. Source: PyTorch, group_norm. Errors: also a batch of one sample with one value in each group.
Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight = Tensor(),
                  const Tensor& bias = Tensor(), double eps = 1e-5);

/// x / max(p-norm of x along `dim`, eps): [*] -> [*]. Source: PyTorch, normalize.
Tensor normalize(const Tensor& input, double p = 2, std::int64_t dim = 1, double eps = 1e-12);

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// What batch and instance norm keep beside their options. Weight and bias start as 1 and 0, float32.
class RunningNorm : public Module {
 public:
  /// Running mean 0, running variance 1, no batch counted.
  void reset_running_stats();

  Tensor weight;               ///< [num_features], or undefined
  Tensor bias;                 ///< [num_features], or undefined
  Tensor running_mean;         ///< [num_features], or undefined
  Tensor running_var;          ///< [num_features], or undefined
  Tensor num_batches_tracked;  ///< int64, of one element, or undefined

 protected:
  /// Makes and registers what is asked for. Errors: `ErrorKind::config` without `num_features`.
  void make_tensors(const char* type, const std::optional<std::int64_t>& num_features, bool weighted, bool biased,
                    bool tracked);
};

/// Applies `functional::batch_norm`: in training mode, or without running statistics, with those of the batch.
/// Differs: eps must be positive in every mode, as it must in training.
template <int N>
class BatchNorm : public Layer<BatchNormOptions<N>, RunningNorm> {
 public:
  using Options = BatchNormOptions<N>;
  /// Errors: `ErrorKind::config` for options out of range or without `num_features`.
  explicit BatchNorm(Options options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);
};
using BatchNorm1d = BatchNorm<1>;  ///< [N, C] or [N, C, L]
using BatchNorm2d = BatchNorm<2>;  ///< [N, C, H, W]
using BatchNorm3d = BatchNorm<3>;  ///< [N, C, D, H, W]

/// Applies `functional::instance_norm`: in evaluation with running statistics where these are tracked. As in PyTorch,
/// num_batches_tracked stays 0. Differs: an input with other than num_features channels is always an error.
template <int N>
class InstanceNorm : public Layer<InstanceNormOptions<N>, RunningNorm> {
 public:
  using Options = InstanceNormOptions<N>;
  /// Errors: `ErrorKind::config` for options out of range or without `num_features`.
  explicit InstanceNorm(Options options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);
};
using InstanceNorm1d = InstanceNorm<1>;  ///< [N, C, L] or [C, L]
using InstanceNorm2d = InstanceNorm<2>;  ///< [N, C, H, W] or [C, H, W]
using InstanceNorm3d = InstanceNorm<3>;  ///< [N, C, D, H, W] or [C, D, H, W]

/// Applies `functional::layer_norm` with a weight and bias of its own, 1 and 0 at first.
class LayerNorm : public Layer<LayerNormOptions> {
 public:
  /// Errors: `ErrorKind::config` for options out of range or an empty `normalized_shape`.
  explicit LayerNorm(LayerNormOptions options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [normalized_shape...], or undefined
  Tensor bias;    ///< [normalized_shape...], or undefined
};

/// Applies `functional::rms_norm` with a weight of its own, 1 at first.
class RMSNorm : public Layer<RMSNormOptions> {
 public:
  explicit RMSNorm(RMSNormOptions options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [normalized_shape...], or undefined
};

/// Applies `functional::group_norm` with a weight and bias of its own, 1 and 0 at first.
class GroupNorm : public Layer<GroupNormOptions> {
 public:
  /// Errors: `ErrorKind::config` for options out of range, without `num_channels`, or groups that do not divide them.
  explicit GroupNorm(GroupNormOptions options);
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [num_channels], or undefined
  Tensor bias;    ///< [num_channels], or undefined
};

}  // namespace taper::nn

#pragma GCC visibility pop
