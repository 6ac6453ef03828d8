#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

struct LinearOptions {
  static constexpr const char* kType = "Linear";
  std::optional<std::int64_t> in_features = {};  ///< left out in JSON: the input's last extent
  std::int64_t out_features = -1;
  bool bias = true;
};

void fields(LinearOptions& options, FieldVisitor& visitor);

namespace functional {

/// y = x W^T + b over the last dimension: [*, in_features] -> [*, out_features], also without leading dimensions.
/// `weight` is [out_features, in_features], `bias` [out_features] or undefined. Source: PyTorch, linear.
/// Errors: `ErrorKind::shape`, `ErrorKind::type`.
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = Tensor());

}  // namespace functional

/// Applies `functional::linear` with parameters of its own, float32 and uniform in +-1 / sqrt(in_features) at first.
class Linear : public Layer<LinearOptions> {
 public:
  /// Errors: `ErrorKind::config` for options out of range or without `in_features`.
  explicit Linear(LinearOptions options);
  Tensor forward(const Tensor& x) override { return functional::linear(x, weight, bias); }
  static Shape infer(Options& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [out_features, in_features]
  Tensor bias;    ///< [out_features], or undefined
};

}  // namespace taper::nn

#pragma GCC visibility pop
