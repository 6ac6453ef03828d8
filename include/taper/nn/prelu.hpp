#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

struct PReLUOptions {
  static constexpr const char* kType = "PReLU";
  std::int64_t num_parameters = 1;  ///< one slope for all, or one for each channel
  double init = 0.25;
};

void fields(PReLUOptions& options, FieldVisitor& visitor);

namespace functional {

/// x for x > 0, else a learned slope times x: [*] -> [*]. `weight` holds one slope, or one for each channel: dimension
/// 1 of the input, batched or not as in PyTorch, the only dimension of a vector. Source: PyTorch, PReLU. Errors:
/// `ErrorKind::shape`, `ErrorKind::type`.
Tensor prelu(const Tensor& input, const Tensor& weight);

}  // namespace functional

/// Applies `functional::prelu` with slopes of its own, `init` at first.
class PReLU : public Layer<PReLUOptions> {
 public:
  /// Errors: `ErrorKind::config` for options out of range.
  explicit PReLU(PReLUOptions options = {});
  Tensor forward(const Tensor& x) override { return functional::prelu(x, weight); }
  static Shape infer(Options& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [num_parameters]
};

}  // namespace taper::nn

#pragma GCC visibility pop
