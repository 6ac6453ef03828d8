#include "base/fail.hpp"
#include "kernels/activations.hpp"
#include "ops/map_op.hpp"
#include "ops/records.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

namespace taper {

using autograd::apply;
using autograd::Op;

namespace {

/// Functions of a real number take integers as float32, as PyTorch does.
Tensor as_floating(const Tensor& x) { return is_floating(x.dtype()) ? x : to(x, DType::float32); }

template <class F>
Tensor map(const Op& op, const Tensor& x, const F& f = {}) {
  const Tensor real = as_floating(x);
  return apply(op, {real}, real.shape(), real.dtype(), f);
}

constexpr Op kNeg = map_op<kernels::Neg>("neg", "dx = -dy");
constexpr Op kExp = map_op<kernels::Exp>("exp", "dx = dy * y");
constexpr Op kLog = map_op<kernels::Log>("log", "dx = dy / x");
constexpr Op kLog1p = map_op<kernels::Log1p>("log1p", "dx = dy / (1 + x)");
constexpr Op kSqrt = map_op<kernels::Sqrt>("sqrt", "dx = dy / (2 y)");
constexpr Op kRsqrt = map_op<kernels::Rsqrt>("rsqrt", "dx = -dy * y^3 / 2");
constexpr Op kReciprocal = map_op<kernels::Reciprocal>("reciprocal", "dx = -dy * y^2");
constexpr Op kAbs = map_op<kernels::Abs>("abs", "dx = dy * sign(x)");
constexpr Op kSign = map_op<kernels::Sign>("sign", "dx = 0");
constexpr Op kSin = map_op<kernels::Sine>("sin", "dx = dy * cos(x)");
constexpr Op kCos = map_op<kernels::Sine>("cos", "dx = -dy * sin(x)");
constexpr Op kTanh = map_op<kernels::Tanh>("tanh", "dx = dy * (1 - y^2)");
constexpr Op kSigmoid = map_op<kernels::Sigmoid>("sigmoid", "dx = dy * y * (1 - y)");
constexpr Op kRelu = map_op<kernels::Relu>("relu", "dx = dy where y > 0, else 0");
constexpr Op kLeakyRelu = map_op<kernels::LeakyRelu>("leaky_relu", "dx = dy * (x > 0 ? 1 : negative_slope)");
constexpr Op kGelu = map_op<kernels::Gelu>("gelu", "dx = dy * (Phi(x) + x * phi(x))");
constexpr Op kGeluTanh =
    map_op<kernels::GeluTanh>("gelu_tanh", "dx = dy * d/dx of x/2 (1 + tanh(c (x + 0.044715 x^3)))");
constexpr Op kSilu = map_op<kernels::Silu>("silu", "dx = dy * s(x) (1 + x (1 - s(x)))");
constexpr Op kElu = map_op<kernels::Elu>("elu", "dx = dy * (x > 0 ? 1 : alpha e^x)");
constexpr Op kSelu = map_op<kernels::Selu>("selu", "dx = dy * scale * (x > 0 ? 1 : alpha e^x)");
constexpr Op kSoftplus = map_op<kernels::Softplus>("softplus", "dx = dy * (beta x > threshold ? 1 : s(beta x))");
constexpr Op kClamp = map_op<kernels::Clamp>("clamp", "dx = dy where min <= x <= max, else 0");

}  // namespace

// Integers keep their type where the result of an integer is one.
Tensor neg(const Tensor& x) { return is_floating(x.dtype()) ? map<kernels::Neg>(kNeg, x) : sub(0, x); }
Tensor abs(const Tensor& x) { return is_floating(x.dtype()) ? map<kernels::Abs>(kAbs, x) : maximum(x, neg(x)); }
Tensor sign(const Tensor& x) { return is_floating(x.dtype()) ? map<kernels::Sign>(kSign, x) : sub(gt(x, 0), lt(x, 0)); }

Tensor exp(const Tensor& x) { return map<kernels::Exp>(kExp, x); }
Tensor log(const Tensor& x) { return map<kernels::Log>(kLog, x); }
Tensor log1p(const Tensor& x) { return map<kernels::Log1p>(kLog1p, x); }
Tensor sqrt(const Tensor& x) { return map<kernels::Sqrt>(kSqrt, x); }
Tensor rsqrt(const Tensor& x) { return map<kernels::Rsqrt>(kRsqrt, x); }
Tensor reciprocal(const Tensor& x) { return map<kernels::Reciprocal>(kReciprocal, x); }
Tensor sin(const Tensor& x) { return map<kernels::Sine>(kSin, x); }
Tensor cos(const Tensor& x) { return map(kCos, x, kernels::Sine{.cosine = 1}); }
Tensor tanh(const Tensor& x) { return map<kernels::Tanh>(kTanh, x); }
Tensor sigmoid(const Tensor& x) { return map<kernels::Sigmoid>(kSigmoid, x); }
Tensor relu(const Tensor& x) {
  return is_floating(x.dtype()) ? map<kernels::Relu>(kRelu, x) : clamp(x, 0, std::nullopt);
}
const autograd::Op& relu_record() { return kRelu; }
Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return map(kLeakyRelu, x, kernels::LeakyRelu{.negative_slope = negative_slope});
}
Tensor gelu(const Tensor& x, Gelu approximate) {
  return approximate == Gelu::none ? map<kernels::Gelu>(kGelu, x) : map<kernels::GeluTanh>(kGeluTanh, x);
}
Tensor silu(const Tensor& x) { return map<kernels::Silu>(kSilu, x); }
Tensor elu(const Tensor& x, double alpha) { return map(kElu, x, kernels::Elu{.alpha = alpha}); }
Tensor selu(const Tensor& x) { return map<kernels::Selu>(kSelu, x); }
Tensor softplus(const Tensor& x, double beta, double threshold) {
  return map(kSoftplus, x, kernels::Softplus{.beta = beta, .threshold = threshold});
}

Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  if (!min && !max) fail(ErrorKind::config, "clamp: no bound given: expected min, max or both, got neither");
  const bool whole = !is_floating(x.dtype()) && (!min || min->is_integer) && (!max || max->is_integer);
  if (whole) {
    const Tensor raised = min ? maximum(x, full({}, *min, DType::int64)) : x;
    return max ? minimum(raised, full({}, *max, DType::int64)) : raised;
  }
  kernels::Clamp bounds;
  if (min) bounds.min = min->value;
  if (max) bounds.max = max->value;
  return map(kClamp, x, bounds);
}

// --- element types --------------------------------------------------------------------------------------------------

namespace {

template <class From>
void cast_from(const autograd::Operand& x, const autograd::Operand& y, bool add) {
  switch (y.dtype) {
    case DType::float32:
      return kernels::cast(x.as<From>(), y.as<float>(), x.numel, add);
    case DType::float64:
      return kernels::cast(x.as<From>(), y.as<double>(), x.numel, add);
    case DType::int64:
      return kernels::cast(x.as<From>(), y.as<std::int64_t>(), x.numel, add);
  }
}

template <class From>
void cast_forward(const autograd::ForwardArgs& args) {
  cast_from<From>(args.inputs[0], args.output, false);
}

// Indexed by the input's type, while the gradient comes in the output's.
void cast_backward(const autograd::BackwardArgs& args) {
  const autograd::GradientSlot& dx = args.input_gradients[0];
  if (args.output_gradient.dtype == DType::float32) return cast_from<float>(args.output_gradient, dx.gradient, dx.add);
  cast_from<double>(args.output_gradient, dx.gradient, dx.add);
}

constexpr Op kCast{.name = "to",
                   .derivative = "dx = dy in the type of x",
                   .forward = {cast_forward<float>, cast_forward<double>, cast_forward<std::int64_t>},
                   .backward = {cast_backward, cast_backward, nullptr}};
constexpr Op kClone{.name = "clone",
                    .derivative = "dx = dy",
                    .forward = {cast_forward<float>, cast_forward<double>, cast_forward<std::int64_t>},
                    .backward = {cast_backward, cast_backward, nullptr},
                    .passes_gradient = 1};

}  // namespace

Tensor to(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : apply(kCast, {x}, x.shape(), dtype); }

Tensor clone(const Tensor& x) { return apply(kClone, {x}, x.shape(), x.dtype()); }

}  // namespace taper
