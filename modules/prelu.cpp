#include "taper/nn/prelu.hpp"

#include "catalogue.hpp"
#include "kernels/prelu.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::PReLUParams;

namespace {

// --- record ---------------------------------------------------------------------------------------------------------

template <class T>
void prelu_forward(const ForwardArgs& args) {
  kernels::prelu(args.attributes_as<PReLUParams>(), args.inputs[0].as<T>(), args.inputs[1].as<T>(),
                 args.output.as<T>());
}

template <class T>
void prelu_backward(const BackwardArgs& args) {
  const GradientSlot &dx = args.input_gradients[0], &dw = args.input_gradients[1];
  kernels::prelu_backward(args.attributes_as<PReLUParams>(), args.inputs[0].as<T>(), args.inputs[1].as<T>(),
                          args.output_gradient.as<T>(), dx.as<T>(), dx.add, dw.as<T>(), dw.add);
}

constexpr Op kPReLU{.name = "prelu",
                    .derivative = "dx = dy where x > 0, else w dy; dw = sum of x dy where x <= 0",
                    .forward = {prelu_forward<float>, prelu_forward<double>, nullptr},
                    .backward = {prelu_backward<float>, prelu_backward<double>, nullptr},
                    .needs = {autograd::needs_input(0) | autograd::needs_input(1), autograd::needs_input(0)}};

// --- geometry -------------------------------------------------------------------------------------------------------

/// How the input's elements meet `slopes` slopes; refuses another number than 1 or the channels.
PReLUParams geometry(const Shape& input, std::int64_t slopes) {
  if (slopes == 1) return {1, 1, input.numel()};
  const int dim = input.rank() == 1 ? 0 : 1;
  if (input.rank() == 0 || input[dim] != slopes)
    fail(ErrorKind::shape, "prelu: num_parameters does not fit the input: expected 1",
         input.rank() == 0 ? "" : cat(" or ", input[dim]), ", got ", slopes, " for ", input);
  std::int64_t inner = 1;
  for (int d = dim + 1; d < input.rank(); ++d) inner *= input[d];
  return {dim == 0 ? 1 : input[0], slopes, inner};
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor prelu(const Tensor& input, const Tensor& weight) {
  check_floating("prelu", input.dtype());
  if (weight.dtype() != input.dtype())
    fail(ErrorKind::type, "prelu: weight and input differ in type: expected ", input.dtype(), ", got ", weight.dtype());
  if (weight.dim() > 1 || weight.numel() == 0)
    fail(ErrorKind::shape, "prelu: weight is no list of slopes: expected [num_parameters], got ", weight.shape());
  return apply(kPReLU, {input, weight}, input.shape(), input.dtype(), geometry(input.shape(), weight.numel()));
}

}  // namespace functional

// --- layer ----------------------------------------------------------------------------------------------------------

PReLU::PReLU(PReLUOptions options) : Layer(options), weight(full({options.num_parameters}, options.init)) {
  register_parameter("weight", weight);
}

Shape PReLU::infer(Options& options, std::span<const Shape> inputs) {
  geometry(inputs[0], options.num_parameters);
  return inputs[0];
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(PReLUOptions& o, FieldVisitor& visit) {
  visit({"num_parameters", "1, or the number of channels for a slope each", kPositive}, o.num_parameters);
  visit({"init", "the slopes at first"}, o.init);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_prelu_layers(std::vector<LayerType>& types) {
  add_layer<PReLU>(types, "x for x > 0, else a learned slope times x: [N, C, *] -> [N, C, *].",
                   R"({"num_parameters": 3, "init": 0.3})", {{2, 3}});
}

}  // namespace taper::nn
