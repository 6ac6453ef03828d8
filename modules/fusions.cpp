#include "core/fusion.hpp"

#include <cstdlib>

#include "bias.hpp"
#include "fused_records.hpp"
#include "kernels/avg_pool.hpp"
#include "kernels/conv_average.hpp"
#include "kernels/max_pool.hpp"
#include "kernels/relu_average.hpp"
#include "ops/records.hpp"

// Chains of operations that a plan does in one pass.

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;

namespace {

// --- a convolution along short lines, ReLU, the average of each line -------------------------------------------------

struct ConvAverage {
  kernels::ConvParams conv;
  double divisor;
};

/// Whether each plane is one line, and one window.
bool averages_lines(const kernels::AvgPoolParams& p) {
  for (int d = 0; d < 3; ++d)
    if (p.out[d] != 1 || p.kernel[d] != p.in[d] || p.padding_left[d] != 0 || p.padding_right[d] != 0) return false;
  return p.in[0] == 1 && p.in[1] == 1 && p.dilation[2] == 1;
}

std::size_t fits(const ForwardArgs& first, const ForwardArgs& last, void* attributes) {
  const auto& conv = first.attributes_as<kernels::ConvParams>();
  const auto& pool = last.attributes_as<kernels::AvgPoolParams>();
  if (!averages_lines(pool) || pool.in[2] != conv.out[2] || !kernels::conv_average_fits(conv)) return 0;
  const std::int64_t divisor = pool.divisor_override != 0 ? pool.divisor_override : pool.in[2];
  constexpr std::int64_t most = 1 << 24;  // such divisors are floats
  if (std::abs(divisor) > most) return 0;
  new (attributes) ConvAverage{conv, static_cast<double>(divisor)};
  return std::size_t(kernels::conv_average_bits(conv)) * sizeof(std::uint16_t);
}

void forward(const ForwardArgs& args) {
  const auto& [conv, divisor] = args.attributes_as<ConvAverage>();
  kernels::conv_average(conv, divisor, args.inputs[0].as<float>(), args.inputs[1].as<float>(), bias_of<float>(args),
                        args.output.as<float>(), args.aux[0].as<std::uint16_t>());
}

void backward(const BackwardArgs& args) {
  const auto& [conv, divisor] = args.attributes_as<ConvAverage>();
  const GradientSlot &dw = args.input_gradients[1], &db = bias_gradient(args);
  kernels::conv_average_backward(conv, divisor, args.output_gradient.as<float>(), args.aux[0].as<std::uint16_t>(),
                                 args.inputs[0].as<float>(), dw.as<float>(), dw.add, db.as<float>(), db.add);
}

// --- ReLU, averages of two by two -----------------------------------------------------------------------------------

std::size_t fits_pairs(const ForwardArgs&, const ForwardArgs& last, void* attributes) {
  const auto& pool = last.attributes_as<kernels::AvgPoolParams>();
  if (!kernels::relu_average_fits(pool)) return 0;
  new (attributes) kernels::AvgPoolParams(pool);
  return std::size_t(kernels::relu_average_bits(pool)) * sizeof(std::uint16_t);
}

void forward_pairs(const ForwardArgs& args) {
  kernels::relu_average(args.attributes_as<kernels::AvgPoolParams>(), args.inputs[0].as<float>(),
                        args.output.as<float>(), args.aux[0].as<std::uint16_t>());
}

void backward_pairs(const BackwardArgs& args) {
  kernels::relu_average_backward(args.attributes_as<kernels::AvgPoolParams>(), args.output_gradient.as<float>(),
                                 args.aux[0].as<std::uint16_t>(), args.input_gradients[0].as<float>());
}

// --- ReLU, maxima: the other way round ------------------------------------------------------------------------------

std::size_t fits_maxima(const ForwardArgs&, const ForwardArgs& last, void* attributes) {
  if (last.aux.empty()) return 0;  // no gradient reads which were the largest
  new (attributes) kernels::SlidingPoolParams(last.attributes_as<kernels::SlidingPoolParams>());
  return std::size_t(last.output.numel) * sizeof(std::int64_t);
}

void forward_maxima(const ForwardArgs& args) {
  float* y = args.output.as<float>();
  std::int64_t* index = args.aux[0].as<std::int64_t>();
  const auto& pool = args.attributes_as<kernels::SlidingPoolParams>();
  kernels::max_pool(pool, args.inputs[0].as<float>(), y, index);
  kernels::keep_positive(pool.planes * pool.out[0] * pool.out[1] * pool.out[2], y, index);
}

void backward_maxima(const BackwardArgs& args) {
  kernels::max_pool_backward(args.attributes_as<kernels::SlidingPoolParams>(), args.output_gradient.as<float>(),
                             args.aux[0].as<std::int64_t>(), args.input_gradients[0].as<float>(), false);
}

}  // namespace

}  // namespace taper::nn

namespace taper::detail {

std::span<const Fusion> fusions() {
  static const autograd::Op *const conv_average[] = {&nn::conv_record(1), &relu_record(), &nn::avg_pool_record(1)},
                                   *const relu_average[] = {&relu_record(), &nn::avg_pool_record(2)},
                                   *const relu_max[] = {&relu_record(), &nn::max_pool_record(2)};
  static const Fusion all[] = {{.name = "conv1d, relu, avg_pool1d",
                                .chain = conv_average,
                                .attribute_bytes = sizeof(nn::ConvAverage),
                                .fits = nn::fits,
                                .forward = nn::forward,
                                .backward = nn::backward},
                               {.name = "relu, avg_pool2d",
                                .chain = relu_average,
                                .attribute_bytes = sizeof(kernels::AvgPoolParams),
                                .fits = nn::fits_pairs,
                                .forward = nn::forward_pairs,
                                .backward = nn::backward_pairs},
                               {.name = "relu, max_pool2d",
                                .chain = relu_max,
                                .attribute_bytes = sizeof(kernels::SlidingPoolParams),
                                .fits = nn::fits_maxima,
                                .forward = nn::forward_maxima,
                                .backward = nn::backward_maxima}};
  return all;
}

bool works_in_place(const Command& command) {
  const autograd::Op& relu = relu_record();
  return command.kind == Command::Kind::forward
             ? command.forward == relu.forward[0]
             : command.kind == Command::Kind::backward && command.backward == relu.backward[0];
}

}  // namespace taper::detail
