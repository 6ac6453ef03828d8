#include "taper/nn/activation.hpp"

#include "catalogue.hpp"
#include "spatial.hpp"

namespace taper {

std::span<const char* const> names_of(Gelu) {
  static constexpr const char* names[] = {"none", "tanh"};
  return names;
}

}  // namespace taper

namespace taper::nn {

// --- layers ---------------------------------------------------------------------------------------------------------

namespace {

Tensor activate(const Tensor& x, const ReLUOptions&) { return relu(x); }
Tensor activate(const Tensor& x, const LeakyReLUOptions& o) { return leaky_relu(x, o.negative_slope); }
Tensor activate(const Tensor& x, const GELUOptions& o) { return gelu(x, o.approximate); }
Tensor activate(const Tensor& x, const ELUOptions& o) { return elu(x, o.alpha); }
Tensor activate(const Tensor& x, const SELUOptions&) { return selu(x); }
Tensor activate(const Tensor& x, const SiLUOptions&) { return silu(x); }
Tensor activate(const Tensor& x, const SoftplusOptions& o) { return softplus(x, o.beta, o.threshold); }
Tensor activate(const Tensor& x, const SigmoidOptions&) { return sigmoid(x); }
Tensor activate(const Tensor& x, const TanhOptions&) { return tanh(x); }
Tensor activate(const Tensor& x, const SoftmaxOptions& o) { return softmax(x, o.dim); }
Tensor activate(const Tensor& x, const LogSoftmaxOptions& o) { return log_softmax(x, o.dim); }

Tensor activate(const Tensor& x, const Softmax2dOptions&) {
  if (x.dim() != 3 && x.dim() != 4)
    fail(ErrorKind::shape, "softmax2d: wrong number of dimensions: expected 3-D unbatched or 4-D batched input, got ",
         x.dim(), "-D ", x.shape());
  return softmax(x, -3);
}

const char* function_name(const SoftmaxOptions&) { return "softmax"; }
const char* function_name(const LogSoftmaxOptions&) { return "log_softmax"; }

}  // namespace

template <class O>
Tensor Activation<O>::forward(const Tensor& x) {
  check_floating(O::kType, x.dtype());
  return activate(x, this->options_);
}

template <class O>
Shape Activation<O>::infer(O& options, std::span<const Shape> inputs) {
  if constexpr (requires { options.dim; }) normalize_dim(function_name(options), options.dim, inputs[0].rank());
  if (std::is_same_v<O, Softmax2dOptions> && inputs[0].rank() != 4)
    fail(ErrorKind::shape, "softmax2d: wrong number of dimensions: expected 4-D batched input, got ",
         batched_text(inputs[0]));
  return inputs[0];
}

template class Activation<ReLUOptions>;
template class Activation<LeakyReLUOptions>;
template class Activation<GELUOptions>;
template class Activation<ELUOptions>;
template class Activation<SELUOptions>;
template class Activation<SiLUOptions>;
template class Activation<SoftplusOptions>;
template class Activation<SigmoidOptions>;
template class Activation<TanhOptions>;
template class Activation<SoftmaxOptions>;
template class Activation<LogSoftmaxOptions>;
template class Activation<Softmax2dOptions>;

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(ReLUOptions&, FieldVisitor&) {}
void fields(LeakyReLUOptions& o, FieldVisitor& visit) {
  visit({"negative_slope", "slope for x < 0"}, o.negative_slope);
}
void fields(GELUOptions& o, FieldVisitor& visit) {
  visit({"approximate", "\"tanh\" for the approximation by tanh"}, o.approximate);
}
void fields(ELUOptions& o, FieldVisitor& visit) { visit({"alpha", "minus the limit for x -> -infinity"}, o.alpha); }
void fields(SELUOptions&, FieldVisitor&) {}
void fields(SiLUOptions&, FieldVisitor&) {}
void fields(SoftplusOptions& o, FieldVisitor& visit) {
  visit({"beta", "how sharp the bend is", kAboveZero}, o.beta);
  visit({"threshold", "above beta x = threshold the function is x"}, o.threshold);
}
void fields(SigmoidOptions&, FieldVisitor&) {}
void fields(TanhOptions&, FieldVisitor&) {}
void fields(SoftmaxOptions& o, FieldVisitor& visit) { visit({"dim", "the dimension that sums to 1"}, o.dim); }
void fields(LogSoftmaxOptions& o, FieldVisitor& visit) {
  visit({"dim", "the dimension whose exponentials sum to 1"}, o.dim);
}
void fields(Softmax2dOptions&, FieldVisitor&) {}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_activation_layers(std::vector<LayerType>& types) {
  const Shape input{2, 3, 5};
  add_layer<ReLU>(types, "max(x, 0): [*] -> [*].", "{}", {input});
  add_layer<LeakyReLU>(types, "x for x > 0, else negative_slope x: [*] -> [*].", R"({"negative_slope": 0.2})", {input});
  add_layer<GELU>(types, "x times the normal distribution function of x: [*] -> [*].", R"({"approximate": "tanh"})",
                  {input});
  add_layer<ELU>(types, "x for x > 0, else alpha (e^x - 1): [*] -> [*].", R"({"alpha": 0.7})", {input});
  add_layer<SELU>(types, "ELU with the scale and alpha that keep activations normalised: [*] -> [*].", "{}", {input});
  add_layer<SiLU>(types, "x times its sigmoid: [*] -> [*].", "{}", {input});
  add_layer<Softplus>(types, "log(1 + e^(beta x)) / beta, a smooth ReLU: [*] -> [*].", R"({"beta": 2, "threshold": 3})",
                      {input});
  add_layer<Sigmoid>(types, "1 / (1 + e^-x): [*] -> [*].", "{}", {input});
  add_layer<Tanh>(types, "The hyperbolic tangent: [*] -> [*].", "{}", {input});
  add_layer<Softmax>(types, "Exponentials that sum to 1 along a dimension: [*] -> [*].", R"({"dim": 1})", {input});
  add_layer<LogSoftmax>(types, "The logarithm of Softmax: [*] -> [*].", R"({"dim": 1})", {input});
  add_layer<Softmax2d>(types, "Softmax over the channels at each place: [N, C, H, W] -> [N, C, H, W].", "{}",
                       {{2, 3, 5, 7}});
}

}  // namespace taper::nn
