#pragma once

#include "taper/nn/module.hpp"
#include "taper/ops.hpp"

#pragma GCC visibility push(default)

namespace taper {

/// PyTorch's names of GELU's `approximate`.
std::span<const char* const> names_of(Gelu);

}  // namespace taper

namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

struct ReLUOptions {
  static constexpr const char* kType = "ReLU";
};
struct LeakyReLUOptions {
  static constexpr const char* kType = "LeakyReLU";
  double negative_slope = 0.01;
};
struct GELUOptions {
  static constexpr const char* kType = "GELU";
  Gelu approximate = Gelu::none;
};
struct ELUOptions {
  static constexpr const char* kType = "ELU";
  double alpha = 1;
};
struct SELUOptions {
  static constexpr const char* kType = "SELU";
};
struct SiLUOptions {
  static constexpr const char* kType = "SiLU";
};
struct SoftplusOptions {
  static constexpr const char* kType = "Softplus";
  double beta = 1;
  double threshold = 20;  ///< above beta x = threshold the function is x itself
};
struct SigmoidOptions {
  static constexpr const char* kType = "Sigmoid";
};
struct TanhOptions {
  static constexpr const char* kType = "Tanh";
};
/// Differs: PyTorch guesses a dimension left out from the rank; here it is the last.
struct SoftmaxOptions {
  static constexpr const char* kType = "Softmax";
  std::int64_t dim = -1;
};
struct LogSoftmaxOptions {
  static constexpr const char* kType = "LogSoftmax";
  std::int64_t dim = -1;
};
struct Softmax2dOptions {
  static constexpr const char* kType = "Softmax2d";
};

void fields(ReLUOptions& options, FieldVisitor& visitor);
void fields(LeakyReLUOptions& options, FieldVisitor& visitor);
void fields(GELUOptions& options, FieldVisitor& visitor);
void fields(ELUOptions& options, FieldVisitor& visitor);
void fields(SELUOptions& options, FieldVisitor& visitor);
void fields(SiLUOptions& options, FieldVisitor& visitor);
void fields(SoftplusOptions& options, FieldVisitor& visitor);
void fields(SigmoidOptions& options, FieldVisitor& visitor);
void fields(TanhOptions& options, FieldVisitor& visitor);
void fields(SoftmaxOptions& options, FieldVisitor& visitor);
void fields(LogSoftmaxOptions& options, FieldVisitor& visitor);
void fields(Softmax2dOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

using taper::elu;
using taper::gelu;
using taper::leaky_relu;
using taper::log_softmax;
using taper::relu;
using taper::selu;
using taper::sigmoid;
using taper::silu;
using taper::softmax;
using taper::softplus;
using taper::tanh;

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// Applies the function of the same name: any shape to the same shape.
template <class O>
class Activation : public Layer<O> {
 public:
  /// Errors: `ErrorKind::config` for options out of range.
  explicit Activation(O options = {}) : Layer<O>(options) {}
  /// Errors: `ErrorKind::type` for int64; for the softmaxes `ErrorKind::shape` when there is no dimension `dim`.
  Tensor forward(const Tensor& x) override;
  static Shape infer(O& options, std::span<const Shape> inputs);
};

using ReLU = Activation<ReLUOptions>;
using LeakyReLU = Activation<LeakyReLUOptions>;
using GELU = Activation<GELUOptions>;
using ELU = Activation<ELUOptions>;
using SELU = Activation<SELUOptions>;
using SiLU = Activation<SiLUOptions>;
using Softplus = Activation<SoftplusOptions>;
using Sigmoid = Activation<SigmoidOptions>;
using Tanh = Activation<TanhOptions>;
using Softmax = Activation<SoftmaxOptions>;
using LogSoftmax = Activation<LogSoftmaxOptions>;
/// Over the channels of [N, C, H, W] or [C, H, W].
using Softmax2d = Activation<Softmax2dOptions>;

extern template class Activation<ReLUOptions>;
extern template class Activation<LeakyReLUOptions>;
extern template class Activation<GELUOptions>;
extern template class Activation<ELUOptions>;
extern template class Activation<SELUOptions>;
extern template class Activation<SiLUOptions>;
extern template class Activation<SoftplusOptions>;
extern template class Activation<SigmoidOptions>;
extern template class Activation<TanhOptions>;
extern template class Activation<SoftmaxOptions>;
extern template class Activation<LogSoftmaxOptions>;
extern template class Activation<Softmax2dOptions>;

}  // namespace taper::nn

#pragma GCC visibility pop
