#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

struct DropoutOptions {
  static constexpr const char* kType = "Dropout";
  double p = 0.5;  ///< probability of an element to become 0
};

/// Of Dropout1d, Dropout2d and Dropout3d, by N.
template <int N>
struct ChannelDropoutOptions {
  static constexpr const char* kType = N == 1 ? "Dropout1d" : N == 2 ? "Dropout2d" : "Dropout3d";
  double p = 0.5;  ///< probability of a channel to become 0
};
using Dropout1dOptions = ChannelDropoutOptions<1>;
using Dropout2dOptions = ChannelDropoutOptions<2>;
using Dropout3dOptions = ChannelDropoutOptions<3>;

struct AlphaDropoutOptions {
  static constexpr const char* kType = "AlphaDropout";
  double p = 0.5;  ///< probability of an element to be dropped
};

void fields(DropoutOptions& options, FieldVisitor& visitor);
template <int N>
[[gnu::visibility("default")]] void fields(ChannelDropoutOptions<N>& options, FieldVisitor& visitor);
void fields(AlphaDropoutOptions& options, FieldVisitor& visitor);

namespace functional {

/// In training, sets each element to 0 with probability `p` and multiplies the others by 1 / (1 - p); otherwise gives
/// back its input. Draws from the stream of dropout, which `manual_seed` sets; the same bits on any number of threads.
/// p = 1 gives zeros. Source: PyTorch, Dropout. Errors: `ErrorKind::config` for p outside [0, 1], `ErrorKind::type`.
Tensor dropout(const Tensor& input, double p = 0.5, bool training = true);

/// The same for whole channels, which become 0 or are scaled together: [N, C, L] or [C, L]. Source: PyTorch, Dropout1d.
/// Errors: also `ErrorKind::shape` for another rank or no channels.
Tensor dropout1d(const Tensor& input, double p = 0.5, bool training = true);
/// The same for [N, C, H, W] or [C, H, W]. Differs: PyTorch takes three dimensions for [N, C, L].
Tensor dropout2d(const Tensor& input, double p = 0.5, bool training = true);
/// The same for [N, C, D, H, W] or [C, D, H, W].
Tensor dropout3d(const Tensor& input, double p = 0.5, bool training = true);

/// In training, sets each element to the limit of SELU for x -> -infinity with probability `p`, then shifts and scales
/// all so that mean 0 and variance 1 stay: for networks of SELU. p = 1 gives zeros. Source: PyTorch, AlphaDropout.
/// Errors: as `dropout`.
Tensor alpha_dropout(const Tensor& input, double p = 0.5, bool training = true);

}  // namespace functional

/// Applies `functional::dropout` in training mode, else nothing: [*] -> [*].
class Dropout : public Layer<DropoutOptions> {
 public:
  /// Errors: `ErrorKind::config` for p outside [0, 1].
  explicit Dropout(DropoutOptions options = {});
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

/// Applies `functional::dropout1d`, `dropout2d` or `dropout3d` in training mode, else nothing:
/// [N, C, spatial...] -> [N, C, spatial...], or without N.
template <int N>
class ChannelDropout : public Layer<ChannelDropoutOptions<N>> {
 public:
  /// Errors: `ErrorKind::config` for p outside [0, 1].
  explicit ChannelDropout(ChannelDropoutOptions<N> options = {});
  Tensor forward(const Tensor& x) override;
  static Shape infer(ChannelDropoutOptions<N>& options, std::span<const Shape> inputs);
};
using Dropout1d = ChannelDropout<1>;
using Dropout2d = ChannelDropout<2>;
using Dropout3d = ChannelDropout<3>;

/// Applies `functional::alpha_dropout` in training mode, else nothing: [*] -> [*].
class AlphaDropout : public Layer<AlphaDropoutOptions> {
 public:
  /// Errors: `ErrorKind::config` for p outside [0, 1].
  explicit AlphaDropout(AlphaDropoutOptions options = {});
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

}  // namespace taper::nn

#pragma GCC visibility pop
