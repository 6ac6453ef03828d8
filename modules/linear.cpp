#include "taper/nn/linear.hpp"

#include <cmath>

#include "bias.hpp"
#include "catalogue.hpp"
#include "kernels/linear.hpp"
#include "taper/creation.hpp"

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::LinearParams;

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void linear_forward(const ForwardArgs& args) {
  kernels::linear_forward(args.attributes_as<LinearParams>(), args.inputs[0].as<T>(), args.inputs[1].as<T>(),
                          bias_of<T>(args), args.output.as<T>());
}

template <class T>
void linear_backward(const BackwardArgs& args) {
  const GradientSlot &dx = args.input_gradients[0], &dw = args.input_gradients[1], &db = bias_gradient(args);
  kernels::linear_backward<T>(args.attributes_as<LinearParams>(), args.output_gradient.as<T>(), args.inputs[0].as<T>(),
                              args.inputs[1].as<T>(), {dx.as<T>(), dw.as<T>(), db.as<T>(), dx.add, dw.add, db.add});
}

constexpr Op kLinear{.name = "linear",
                     .derivative = "dx = dy W, dW = dy^T x, db = sum of dy over all leading dimensions",
                     .forward = {linear_forward<float>, linear_forward<double>, nullptr},
                     .backward = {linear_backward<float>, linear_backward<double>, nullptr},
                     .needs = {autograd::needs_input(1), autograd::needs_input(0)}};

// --- geometry -------------------------------------------------------------------------------------------------------

/// What is probably wrong when `wanted` features meet this shape: its last dimensions together hold as many.
std::string missing_flatten(const Shape& input, std::int64_t wanted) {
  std::int64_t features = 1;
  for (int d = input.rank() - 1; d >= 1; --d) {
    features *= input[d];
    if (features == wanted && d < input.rank() - 1) return "; a Flatten or squeeze may be missing";
  }
  return "";
}

Shape output_shape(const Shape& input, std::int64_t out_features) { return input.with(input.rank() - 1, out_features); }

void check_shapes(const Shape& input, const Shape& weight) {
  if (weight.rank() != 2)
    fail(ErrorKind::shape, "linear: weight is no matrix: expected [out_features, in_features], got ", weight);
  const std::int64_t features = weight[1];
  if (input.rank() == 0 || input.back() != features)
    fail(ErrorKind::shape, "linear: input does not fit in_features: expected [*, ", features, "], got ", input,
         missing_flatten(input, features));
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_floating("linear", input.dtype());
  check_floating("linear", weight.dtype());
  check_shapes(input.shape(), weight.shape());
  const std::int64_t in = weight.shape()[1], out = weight.shape()[0];
  const Shape output = output_shape(input.shape(), out);
  const LinearParams params{planes(input.shape(), 1), in, out};
  if (bias.defined()) check_bias("linear", bias, out);
  return apply_with_bias(kLinear, input, weight, bias, output, params);
}

}  // namespace functional

// --- layer ----------------------------------------------------------------------------------------------------------

Linear::Linear(LinearOptions options) : Layer(options) {
  const std::int64_t in = given("linear", "in_features", options.in_features);
  const double bound = in > 0 ? 1 / std::sqrt(double(in)) : 0;
  weight = uniform({options.out_features, in}, -bound, bound);
  if (options.bias) bias = uniform({options.out_features}, -bound, bound);
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Shape Linear::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& input = inputs[0];
  if (input.rank() < 2)
    fail(ErrorKind::shape, "linear: input has no features: expected [N, *, in_features], got ", batched_text(input));
  const std::string hint = options.in_features ? missing_flatten(input, *options.in_features) : "";
  complete_option("linear", "in_features", options.in_features, input.back(), input, hint);
  const Shape weight{options.out_features, *options.in_features};  // refuses a size beyond 63 bits
  return output_shape(input, weight[0]);
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(LinearOptions& o, FieldVisitor& visit) {
  visit({"in_features", "extent of the input's last dimension; null: inferred", kNonNegative}, o.in_features);
  visit({"out_features", "extent of the output's last dimension", kNonNegative, true}, o.out_features);
  visit({"bias", "add a learned number to each output feature"}, o.bias);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_linear_layers(std::vector<LayerType>& types) {
  add_layer<Linear>(types, "A learned affine map of the last dimension: [*, in_features] -> [*, out_features].",
                    R"({"in_features": 5, "out_features": 3})", {{2, 7, 5}});
}

}  // namespace taper::nn
