#pragma once

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

struct BilinearOptions {
  static constexpr const char* kType = "Bilinear";
  std::optional<std::int64_t> in1_features = {};  ///< left out in JSON: the first input's last extent
  std::optional<std::int64_t> in2_features = {};  ///< the second's
  std::int64_t out_features = 0;
  bool bias = true;
};

void fields(BilinearOptions& options, FieldVisitor& visitor);

namespace functional {

/// y_o = x1^T W_o x2 + b_o: [*, in1], [*, in2] -> [*, out]. `weight` is [out, in1, in2], `bias` [out] or undefined.
/// Source: PyTorch, Bilinear. Errors: `ErrorKind::shape`, `ErrorKind::type`.
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = Tensor());

}  // namespace functional

/// Applies `functional::bilinear` with parameters of its own, float32 and uniform in +-1 / sqrt(in1_features) at first.
class Bilinear : public Layer<BilinearOptions> {
 public:
  /// Errors: `ErrorKind::config` for options out of range or without `in1_features` and `in2_features`.
  explicit Bilinear(BilinearOptions options);
  Tensor forward_all(std::span<const Tensor> inputs) override;
  static Shape infer(Options& options, std::span<const Shape> inputs);

  Tensor weight;  ///< [out_features, in1_features, in2_features]
  Tensor bias;    ///< [out_features], or undefined
};

}  // namespace taper::nn

#pragma GCC visibility pop
