#include "taper/nn/conv.hpp"

#include <cmath>

#include "base/window.hpp"
#include "catalogue.hpp"
#include "kernels/conv1d.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"

namespace taper {

std::span<const char* const> names_of(PadMode) {
  static constexpr const char* names[] = {"zeros", "reflect", "replicate", "circular"};
  return names;
}

}  // namespace taper

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::Conv1dParams;

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void forward(const ForwardArgs& args) {
  const T* b = args.inputs.size() > 2 ? args.inputs[2].as<T>() : nullptr;
  kernels::conv1d_forward(args.attributes_as<Conv1dParams>(), args.inputs[0].as<T>(), args.inputs[1].as<T>(), b,
                          args.output.as<T>());
}

template <class T>
void backward(const BackwardArgs& args) {
  const auto& params = args.attributes_as<Conv1dParams>();
  const T* dy = args.output_gradient.as<T>();
  if (const GradientSlot& dx = args.input_gradients[0])
    kernels::conv1d_backward_input(params, dy, args.inputs[1].as<T>(), dx.as<T>(), dx.add);
  if (const GradientSlot& dw = args.input_gradients[1])
    kernels::conv1d_backward_weight(params, dy, args.inputs[0].as<T>(), dw.as<T>(), dw.add);
  if (args.input_gradients.size() < 3) return;
  if (const GradientSlot& db = args.input_gradients[2]) kernels::conv1d_backward_bias(params, dy, db.as<T>(), db.add);
}

constexpr Op kConv1d{.name = "conv1d",
                     .derivative =
                         "dx_j = sum of w_t dy_i over outputs i whose tap t reads j; dw_t = sum of x_j dy_i; "
                         "db = sum of dy over batch and positions",
                     .forward = {forward<float>, forward<double>, nullptr},
                     .backward = {backward<float>, backward<double>, nullptr},
                     .needs = {autograd::needs_input(1), autograd::needs_input(0)}};

// --- geometry, for any number of spatial dimensions -----------------------------------------------------------------

/// The checked windows of a kernel, "same" and "valid" being resolved to amounts.
template <int N>
std::array<Window1d, N> windows_of(const char* where, const Sizes<N>& kernel, const ConvFuncOptions<N>& options) {
  std::array<Window1d, N> windows;
  const bool numbers = options.padding.kind == ConvPadding<N>::numbers;
  for (int d = 0; d < N; ++d) {
    const std::int64_t padding = numbers ? options.padding.amounts[d] : 0;
    windows[std::size_t(d)] = {.kernel = kernel[d],
                               .stride = options.stride[d],
                               .padding_left = padding,
                               .padding_right = padding,
                               .dilation = options.dilation[d]};
  }
  if (options.padding.kind == ConvPadding<N>::same)
    pad_same(where, windows);
  else
    check_options(where, windows, WindowKind::convolution);
  return windows;
}

void check_groups(const char* where, std::int64_t groups) {
  if (groups < 1) fail(ErrorKind::config, where, ": groups must be positive: expected >= 1, got ", groups);
}

void check_divisible(const char* where, const char* key, std::int64_t channels, std::int64_t groups) {
  if (channels % groups != 0)
    fail(ErrorKind::config, where, ": ", key, " must be divisible by groups: expected a multiple of ", groups, ", got ",
         channels);
}

/// Refuses what a padding mode cannot fill: reflect and circular repeat the input once at most.
template <int N>
void check_padding_mode(const char* where, PadMode mode, const std::array<Window1d, N>& windows,
                        std::span<const std::int64_t> input) {
  if (mode != PadMode::reflect && mode != PadMode::circular) return;
  for (std::size_t d = 0; d < std::size_t(N); ++d) {
    const std::int64_t padding = std::max(windows[d].padding_left, windows[d].padding_right);
    const std::int64_t limit = mode == PadMode::reflect ? input[d] - 1 : input[d];
    if (padding > limit)
      fail(ErrorKind::shape, where, ": padding is too large for padding_mode ", names_of(mode)[std::size_t(mode)],
           ": expected <= ", limit, ", got ", padding, "; input size ", input[d]);
  }
}

template <int N>
struct ConvGeometry {
  std::array<Window1d, N> windows;
  std::array<std::int64_t, N> in, out;
  Shape output;
};

/// Checks everything about shapes and options but the channels of the input.
template <int N>
ConvGeometry<N> conv_geometry(const char* where, const Shape& input, std::int64_t out_channels, const Sizes<N>& kernel,
                              const ConvFuncOptions<N>& options) {
  ConvGeometry<N> g;
  g.windows = windows_of(where, kernel, options);
  std::copy(input.end() - N, input.end(), g.in.begin());
  output_size(where, g.windows, WindowKind::convolution, g.in, g.out);
  check_padding_mode<N>(where, options.padding_mode, g.windows, g.in);
  g.output = input.slice(0, input.rank() - N - 1).concat({out_channels}).concat(Shape(g.out));
  return g;
}

/// The geometry of a call with tensors: also the weight and the input's channels are checked.
template <int N>
ConvGeometry<N> call_geometry(const char* where, const Shape& input, const Shape& weight,
                              const ConvFuncOptions<N>& options) {
  if (weight.rank() != N + 2)
    fail(ErrorKind::shape, where, ": weight has the wrong number of dimensions: expected ", N + 2, "-D, got ",
         weight.rank(), "-D ", weight);
  if (weight[0] == 0)
    fail(ErrorKind::shape, where, ": weight has no output channels: expected >= 1, got 0 in ", weight);
  check_groups(where, options.groups);
  check_divisible(where, "out_channels", weight[0], options.groups);
  check_spatial_input(where, input, N);
  const std::int64_t channels = input.back(N), expected = weight[1] * options.groups;
  if (channels != expected)
    fail(ErrorKind::shape, where, ": input does not fit the weight: expected ", expected, " channels, got ", channels,
         " in ", input, "; weight ", weight, ", groups ", options.groups);
  Sizes<N> kernel;
  std::copy(weight.end() - N, weight.end(), kernel.values.begin());
  return conv_geometry(where, input, weight[0], kernel, options);
}

/// The input with its padding written out, as the modes other than zeros need it; `windows` lose theirs.
template <int N>
Tensor padded_input(const Tensor& input, PadMode mode, std::array<Window1d, N>& windows) {
  std::array<std::int64_t, 2 * N> amounts;
  for (int d = 0; d < N; ++d) {
    Window1d& window = windows[std::size_t(N - 1 - d)];
    amounts[std::size_t(2 * d)] = window.padding_left;
    amounts[std::size_t(2 * d + 1)] = window.padding_right;
    window.padding_left = window.padding_right = 0;
  }
  return pad(input, amounts, mode);
}

void check_bias(const char* where, const Tensor& bias, std::int64_t out_channels) {
  check_floating(where, bias.dtype());
  if (!(bias.shape() == Shape{out_channels}))
    fail(ErrorKind::shape, where, ": bias does not fit the weight: expected [", out_channels, "], got ", bias.shape());
}

/// Records one convolution; a bias that is not defined is left out.
template <class Params>
Tensor convolve(const Op& op, const Tensor& input, const Tensor& weight, const Tensor& bias, const Shape& output,
                const Params& params) {
  if (!bias.defined()) return apply(op, {input, weight}, output, input.dtype(), params);
  check_bias(op.name, bias, weight.shape()[0]);
  return apply(op, {input, weight, bias}, output, input.dtype(), params);
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv1dFuncOptions& options) {
  check_floating("conv1d", input.dtype());
  check_floating("conv1d", weight.dtype());
  ConvGeometry<1> g = call_geometry("conv1d", input.shape(), weight.shape(), options);
  const bool zeros = options.padding_mode == PadMode::zeros;
  const Tensor x = zeros ? input : padded_input<1>(input, options.padding_mode, g.windows);
  const Shape& shape = x.shape();
  const Conv1dParams params{.batch = shape.rank() == 3 ? shape[0] : 1,
                            .in_channels = shape.back(1),
                            .out_channels = weight.shape()[0],
                            .length = shape.back(),
                            .out_length = g.out[0],
                            .kernel = g.windows[0].kernel,
                            .stride = g.windows[0].stride,
                            .pad_left = g.windows[0].padding_left,
                            .dilation = g.windows[0].dilation,
                            .groups = options.groups};
  return convolve(kConv1d, x, weight, bias, g.output, params);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

namespace {

Conv1dFuncOptions sliding(const Conv1dOptions& o) {
  return {.stride = o.stride,
          .padding = o.padding,
          .dilation = o.dilation,
          .groups = o.groups,
          .padding_mode = o.padding_mode};
}

/// Refuses options that no input could make valid; `in_channels` must be known.
template <class Options>
void check_layer(const char* where, const Options& options) {
  check_groups(where, options.groups);
  check_divisible(where, "in_channels", *options.in_channels, options.groups);
  check_divisible(where, "out_channels", options.out_channels, options.groups);
  windows_of(where, options.kernel_size, sliding(options));
}

template <int N, class Options>
Shape weight_shape(const Options& options) {
  return Shape{options.out_channels, *options.in_channels / options.groups}.concat(Shape(options.kernel_size.values));
}

/// Uniform in +-1 / sqrt(fan_in), fan_in being what one output sums over.
Tensor initial(const Shape& shape, const Shape& weight) {
  const double bound = 1 / std::sqrt(double(weight.slice(1, weight.rank()).numel()));
  return uniform(shape, -bound, bound);
}

template <int N, class Options>
Shape infer_conv(const char* where, Options& options, const Shape& input) {
  if (input.rank() != N + 2)
    fail(ErrorKind::shape, where, ": wrong number of dimensions: expected ", N + 2, "-D with the batch, got ",
         input.rank(), "-D ", batched_text(input));
  complete_option(where, "in_channels", options.in_channels, input[1], input);
  check_spatial_input(where, input, N);
  check_layer(where, options);
  const Shape weight = weight_shape<N>(options);  // refuses a size beyond 63 bits
  return conv_geometry(where, input, weight[0], options.kernel_size, sliding(options)).output;
}

}  // namespace

Conv1d::Conv1d(Conv1dOptions options) : Layer(options) {
  given("conv1d", "in_channels", options.in_channels);
  check_layer("conv1d", options);
  const Shape shape = weight_shape<1>(options);
  weight = initial(shape, shape);
  if (options.bias) bias = initial({options.out_channels}, shape);
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Tensor Conv1d::forward(const Tensor& x) { return functional::conv1d(x, weight, bias, sliding(options_)); }

Shape Conv1d::infer(Options& options, std::span<const Shape> inputs) {
  return infer_conv<1>("conv1d", options, inputs[0]);
}

// --- fields ---------------------------------------------------------------------------------------------------------

namespace {

// The fields of a convolution in any number of dimensions, in PyTorch's order.
template <class Options>
void conv_fields(Options& o, FieldVisitor& visit) {
  visit({"in_channels", "channels of the input; null: inferred", kPositive}, o.in_channels);
  visit({"out_channels", "channels of the output", kPositive, true}, o.out_channels);
  visit({"kernel_size", "extent of the kernel", kPositive, true}, o.kernel_size);
  visit({"stride", "distance between windows", kPositive}, o.stride);
  visit({"padding", "added on both sides, \"same\" for the input's size, or \"valid\" for none", kNonNegative},
        o.padding);
  visit({"dilation", "distance between the kernel's taps", kPositive}, o.dilation);
  visit({"groups", "blocks of channels that do not see each other", kPositive}, o.groups);
  visit({"bias", "add a learned number to each output channel"}, o.bias);
  visit({"padding_mode", "what the padding holds"}, o.padding_mode);
}

}  // namespace

void fields(Conv1dOptions& o, FieldVisitor& visit) { conv_fields(o, visit); }

// --- catalogue ------------------------------------------------------------------------------------------------------

std::vector<LayerType> conv_layers() {
  return {layer_type<Conv1d>(
      "Slides learned kernels over the last dimension: [N, Cin, L] -> [N, Cout, L'].",
      R"({"in_channels": 4, "out_channels": 6, "kernel_size": 3, "stride": 2, "padding": 1, "groups": 2})",
      {{3, 4, 11}})};
}

}  // namespace taper::nn
