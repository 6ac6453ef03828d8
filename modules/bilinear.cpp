#include "taper/nn/bilinear.hpp"

#include <cmath>

#include "catalogue.hpp"
#include "spatial.hpp"
#include "taper/creation.hpp"
#include "taper/nn/linear.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

namespace {

Shape leading(const Shape& shape) { return shape.slice(0, shape.rank() - 1); }

/// Inputs must agree in all but the last dimension.
void check_leading(const Shape& first, const Shape& second) {
  if (first.rank() == 0 || second.rank() == 0 || !(leading(first) == leading(second)))
    fail(ErrorKind::shape, "bilinear: inputs differ before the last dimension: expected as in ", first, ", got ",
         second);
}

void check_shapes(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() != 3)
    fail(ErrorKind::shape,
         "bilinear: weight has another rank: expected [out_features, in1_features, in2_features], got ",
         weight.shape());
  check_leading(input1.shape(), input2.shape());
  const Tensor* const inputs[] = {&input1, &input2};
  for (int i = 0; i < 2; ++i)
    if (inputs[i]->shape().back() != weight.shape()[i + 1])
      fail(ErrorKind::shape, "bilinear: input ", i + 1, " does not fit in", i + 1, "_features: expected [*, ",
           weight.shape()[i + 1], "], got ", inputs[i]->shape());
  if (bias.defined() && !(bias.shape() == Shape{weight.shape()[0]}))
    fail(ErrorKind::shape, "bilinear: bias does not fit out_features: expected [", weight.shape()[0], "], got ",
         bias.shape());
}

void check_types(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  check_floating("bilinear", input1.dtype());
  for (const Tensor* other : {&input2, &weight, &bias})
    if (other->defined() && other->dtype() != input1.dtype())
      fail(ErrorKind::type, "bilinear: element types differ: expected ", input1.dtype(), ", got ", other->dtype());
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  check_types(input1, input2, weight, bias);
  check_shapes(input1, input2, weight, bias);
  const std::int64_t outputs = weight.shape()[0], n1 = weight.shape()[1], n2 = weight.shape()[2];
  // y_o = sum_i x1_i (W_oi . x2)
  const Tensor rows = linear(input2, weight.reshape(Shape{outputs * n1, n2}));
  const Tensor products = mul(rows.reshape(leading(input1.shape()).concat({outputs, n1})), input1.unsqueeze(-2));
  const Tensor y = products.sum(-1);
  return bias.defined() ? add(y, bias) : y;
}

}  // namespace functional

// --- layer ----------------------------------------------------------------------------------------------------------

Bilinear::Bilinear(BilinearOptions options) : Layer(options) {
  const std::int64_t n1 = given("bilinear", "in1_features", options.in1_features),
                     n2 = given("bilinear", "in2_features", options.in2_features);
  const double bound = 1 / std::sqrt(double(n1));
  weight = uniform({options.out_features, n1, n2}, -bound, bound);
  register_parameter("weight", weight);
  if (options.bias) {
    bias = uniform({options.out_features}, -bound, bound);
    register_parameter("bias", bias);
  }
}

Tensor Bilinear::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() != 2) fail(ErrorKind::config, "bilinear: takes two inputs: expected 2, got ", inputs.size());
  return functional::bilinear(inputs[0], inputs[1], weight, bias);
}

Shape Bilinear::infer(Options& options, std::span<const Shape> inputs) {
  if (inputs.size() != 2) fail(ErrorKind::config, "bilinear: takes two inputs: expected 2, got ", inputs.size());
  if (inputs[0].rank() < 2 || inputs[1].rank() < 2 || !(leading(inputs[0]) == leading(inputs[1])))
    fail(ErrorKind::shape, "bilinear: inputs differ before the last dimension: expected as in ",
         batched_text(inputs[0]), ", got ", batched_text(inputs[1]));
  complete_option("bilinear", "in1_features", options.in1_features, inputs[0].back(), inputs[0]);
  complete_option("bilinear", "in2_features", options.in2_features, inputs[1].back(), inputs[1]);
  const Shape form{options.out_features, *options.in1_features, *options.in2_features};  // refuses sizes beyond 63 bits
  return leading(inputs[0]).concat({form[0]});
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(BilinearOptions& o, FieldVisitor& visit) {
  visit({"in1_features", "the first input's last extent; follows from it when left out", kPositive}, o.in1_features);
  visit({"in2_features", "the second input's last extent; follows from it when left out", kPositive}, o.in2_features);
  visit({"out_features", "the output's last extent", kPositive, true}, o.out_features);
  visit({"bias", "whether a learned bias is added"}, o.bias);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_bilinear_layers(std::vector<LayerType>& types) {
  add_layer<Bilinear>(
      types, "A learned bilinear form for each output: [*, in1_features], [*, in2_features] -> [*, out_features].",
      R"({"in1_features": 3, "in2_features": 5, "out_features": 2})", {{2, 7, 3}, {2, 7, 5}}, 2, 2);
}

}  // namespace taper::nn
