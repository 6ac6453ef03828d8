#pragma once

#include "taper/nn/module.hpp"

namespace taper::nn {

struct DropoutOptions {
  static constexpr const char* kType = "Dropout";
  double p = 0.5;  ///< probability of an element to become 0
};

void fields(DropoutOptions& options, FieldVisitor& visitor);

namespace functional {

/// In training, sets each element to 0 with probability `p` and multiplies the others by 1 / (1 - p); otherwise gives
/// back its input. Draws from the stream of dropout, which `manual_seed` sets; the same bits on any number of threads.
/// p = 1 gives zeros. Source: PyTorch, Dropout. Errors: `ErrorKind::config` for p outside [0, 1], `ErrorKind::type`.
Tensor dropout(const Tensor& input, double p = 0.5, bool training = true);

}  // namespace functional

/// Applies `functional::dropout` in training mode, else nothing: [*] -> [*].
class Dropout : public Layer<DropoutOptions> {
 public:
  /// Errors: `ErrorKind::config` for p outside [0, 1].
  explicit Dropout(DropoutOptions options = {});
  Tensor forward(const Tensor& x) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);
};

}  // namespace taper::nn
