#include "taper/nn/dropout.hpp"

#include <cmath>

#include "base/fail.hpp"
#include "catalogue.hpp"
#include "core/random_state.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/random_fill.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

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
void dropout_forward(const ForwardArgs& args) {
  const auto& drawn = args.attributes_as<Drawn>();
  const std::int64_t n = args.output.numel;
  T* mask = args.aux[0].as<T>();
  kernels::fill_dropout_mask(drawn.start, mask, n, drawn.p, drawn.scale);
  kernels::binary<kernels::Mul>(n, args.inputs[0].as<T>(), mask, args.output.as<T>());
}

template <class T>
void dropout_backward(const BackwardArgs& args) {
  const auto shape = args.output_gradient.shape();
  const GradientSlot& dx = args.input_gradients[0];
  const T* mask = args.aux[0].as<T>();
  kernels::binary_grad<kernels::Mul>(kernels::grad_plan(shape, shape, shape, 0), 0, args.output_gradient.as<T>(), mask,
                                     mask, dx.as<T>(), dx.add);
}

constexpr Op kDropout{.name = "dropout",
                      .derivative = "dx = dy * mask, the mask being 0 or 1 / (1 - p)",
                      .forward = {dropout_forward<float>, dropout_forward<double>, nullptr},
                      .backward = {dropout_backward<float>, dropout_backward<double>, nullptr}};

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace {

void check(const char* where, const Tensor& input, double p) {
  check_floating(where, input.dtype());
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::config, where, ": p is no probability: expected 0 to 1, got ", p);
}

/// One drawn factor for each channel of [N, C, spatial...] or [C, spatial...].
Tensor drop_channels(const char* where, const Tensor& input, int spatial, double p, bool training) {
  check(where, input, p);
  check_spatial_input(where, input.shape(), spatial);
  if (!training || p == 0) return input;
  Shape factors = input.shape();
  for (int d = input.shape().rank() - spatial; d < input.shape().rank(); ++d) factors = factors.with(d, 1);
  return mul(input, functional::dropout(ones(factors, input.dtype()), p));
}

}  // namespace

namespace functional {

Tensor dropout(const Tensor& input, double p, bool training) {
  check("dropout", input, p);
  if (!training || p == 0) return input;
  const Generator taken = detail::take_positions(Stream::dropout, std::uint64_t(input.numel()));
  const Drawn drawn{{taken.seed, taken.stream, taken.position}, p, p < 1 ? 1 / (1 - p) : 0};
  return apply(kDropout, {input}, input.shape(), input.dtype(), drawn, {empty_like(input)});
}

Tensor dropout1d(const Tensor& input, double p, bool training) {
  return drop_channels("dropout1d", input, 1, p, training);
}
Tensor dropout2d(const Tensor& input, double p, bool training) {
  return drop_channels("dropout2d", input, 2, p, training);
}
Tensor dropout3d(const Tensor& input, double p, bool training) {
  return drop_channels("dropout3d", input, 3, p, training);
}

Tensor alpha_dropout(const Tensor& input, double p, bool training) {
  check("alpha_dropout", input, p);
  if (!training || p == 0) return input;
  if (p == 1) return mul(input, 0);
  // y = a m x + b (m - 1 + p), m being 0 or 1, b = a times minus the limit of SELU, a such that the variance stays
  constexpr double kLimit = 1.7580993408473766;
  const double a = 1 / std::sqrt((kLimit * kLimit * p + 1) * (1 - p)), b = a * kLimit;
  const Tensor kept = mul(dropout(ones_like(input), p), 1 - p);
  return add(mul(input, mul(kept, a)), mul(add(kept, p - 1), b));
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

Dropout::Dropout(DropoutOptions options) : Layer(options) {}
Tensor Dropout::forward(const Tensor& x) { return functional::dropout(x, options_.p, is_training()); }
Shape Dropout::infer(Options&, std::span<const Shape> inputs) { return inputs[0]; }

template <int N>
ChannelDropout<N>::ChannelDropout(ChannelDropoutOptions<N> options) : Layer<ChannelDropoutOptions<N>>(options) {}

template <int N>
Tensor ChannelDropout<N>::forward(const Tensor& x) {
  constexpr auto* drop = N == 1 ? functional::dropout1d : N == 2 ? functional::dropout2d : functional::dropout3d;
  return drop(x, this->options_.p, this->is_training());
}

template <int N>
Shape ChannelDropout<N>::infer(ChannelDropoutOptions<N>&, std::span<const Shape> inputs) {
  if (inputs[0].rank() != N + 2)
    fail(ErrorKind::shape, "dropout", N, "d: wrong number of dimensions: expected ", N + 2, "-D batched input, got ",
         batched_text(inputs[0]));
  return inputs[0];
}

template class ChannelDropout<1>;
template class ChannelDropout<2>;
template class ChannelDropout<3>;

AlphaDropout::AlphaDropout(AlphaDropoutOptions options) : Layer(options) {}
Tensor AlphaDropout::forward(const Tensor& x) { return functional::alpha_dropout(x, options_.p, is_training()); }
Shape AlphaDropout::infer(Options&, std::span<const Shape> inputs) { return inputs[0]; }

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(DropoutOptions& o, FieldVisitor& visit) {
  visit({"p", "probability of an element to become 0 in training", kProbability}, o.p);
}
template <int N>
void fields(ChannelDropoutOptions<N>& o, FieldVisitor& visit) {
  visit({"p", "probability of a channel to become 0 in training", kProbability}, o.p);
}
void fields(AlphaDropoutOptions& o, FieldVisitor& visit) {
  visit({"p", "probability of an element to be dropped in training", kProbability}, o.p);
}
template void fields(Dropout1dOptions&, FieldVisitor&);
template void fields(Dropout2dOptions&, FieldVisitor&);
template void fields(Dropout3dOptions&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_dropout_layers(std::vector<LayerType>& types) {
  add_layer<Dropout>(types, "In training, sets elements to 0 with probability p and scales the others: [*] -> [*].",
                     R"({"p": 0.3})", {{2, 3, 5}});
  add_layer<Dropout1d>(types, "In training, sets channels to 0 with probability p: [N, C, L] -> [N, C, L].",
                       R"({"p": 0.3})", {{2, 3, 5}});
  add_layer<Dropout2d>(types, "In training, sets channels to 0 with probability p: [N, C, H, W] -> [N, C, H, W].",
                       R"({"p": 0.3})", {{2, 3, 5, 7}});
  add_layer<Dropout3d>(types, "In training, sets channels to 0 with probability p: [N, C, D, H, W] -> [N, C, D, H, W].",
                       R"({"p": 0.3})", {{2, 3, 2, 5, 3}});
  add_layer<AlphaDropout>(types, "Dropout that keeps mean and variance of what SELU gives: [*] -> [*].",
                          R"({"p": 0.3})", {{2, 3, 5}});
}

}  // namespace taper::nn
