#include "taper/nn/dropout.hpp"

#include "base/fail.hpp"
#include "catalogue.hpp"
#include "core/random_state.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/random_fill.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

struct Drawn {
  kernels::RandomStart start;
  double p, scale;
};

template <class T>
void forward(const ForwardArgs& args) {
  const auto& drawn = args.attributes_as<Drawn>();
  const std::int64_t n = args.output.numel;
  T* mask = args.aux[0].as<T>();
  kernels::fill_dropout_mask(drawn.start, mask, n, drawn.p, drawn.scale);
  kernels::binary<kernels::Mul>(kernels::same_shape_plan(n), args.inputs[0].as<T>(), mask, args.output.as<T>());
}

template <class T>
void backward(const BackwardArgs& args) {
  const auto shape = args.output_gradient.shape();
  const GradientSlot& dx = args.input_gradients[0];
  const T* mask = args.aux[0].as<T>();
  kernels::binary_grad<kernels::Mul>(kernels::grad_plan(shape, shape, shape, 0), 0, args.output_gradient.as<T>(), mask,
                                     mask, dx.as<T>(), dx.add);
}

constexpr Op kDropout{.name = "dropout",
                      .derivative = "dx = dy * mask, the mask being 0 or 1 / (1 - p)",
                      .forward = {forward<float>, forward<double>, nullptr},
                      .backward = {backward<float>, backward<double>, nullptr}};

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor dropout(const Tensor& input, double p, bool training) {
  check_floating("dropout", input.dtype());
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::config, "dropout: p is no probability: expected 0 to 1, got ", p);
  if (!training || p == 0) return input;
  const Generator taken = detail::take_positions(Stream::dropout, std::uint64_t(input.numel()));
  const Drawn drawn{{taken.seed, taken.stream, taken.position}, p, p < 1 ? 1 / (1 - p) : 0};
  return apply(kDropout, {input}, input.shape(), input.dtype(), drawn, {empty_like(input)});
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

Dropout::Dropout(DropoutOptions options) : Layer(options) {}
Tensor Dropout::forward(const Tensor& x) { return functional::dropout(x, options_.p, is_training()); }
Shape Dropout::infer(Options&, std::span<const Shape> inputs) { return inputs[0]; }

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(DropoutOptions& o, FieldVisitor& visit) {
  visit({"p", "probability of an element to become 0 in training", kProbability}, o.p);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

std::vector<LayerType> dropout_layers() {
  return {layer_type<Dropout>("In training, sets elements to 0 with probability p and scales the others: [*] -> [*].",
                              R"({"p": 0.3})", {{2, 3, 5}})};
}

}  // namespace taper::nn
