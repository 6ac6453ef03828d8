#include "taper/nn/conv.hpp"

#include "bias.hpp"
#include "catalogue.hpp"
#include "conv_common.hpp"
#include "fused_records.hpp"

namespace taper {

std::span<const char* const> names_of(PadMode) {
  static constexpr const char* names[] = {"zeros", "reflect", "replicate", "circular"};
  return names;
}

}  // namespace taper

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::ConvParams;

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void conv_forward(const ForwardArgs& args) {
  kernels::conv_forward(args.attributes_as<ConvParams>(), args.inputs[0].as<T>(), args.inputs[1].as<T>(),
                        bias_of<T>(args), args.output.as<T>());
}

template <class T>
void conv_backward(const BackwardArgs& args) {
  const auto& params = args.attributes_as<ConvParams>();
  const T* dy = args.output_gradient.as<T>();
  if (const GradientSlot& dx = args.input_gradients[0])
    kernels::conv_backward_input(params, dy, args.inputs[1].as<T>(), dx.as<T>(), dx.add);
  const GradientSlot &dw = args.input_gradients[1], &db = bias_gradient(args);
  kernels::conv_backward_parameters(params, dy, args.inputs[0].as<T>(), dw.as<T>(), dw.add, db.as<T>(), db.add);
}

constexpr Op conv_op(const char* name) {
  return {.name = name,
          .derivative =
              "dx_j = sum of w_t dy_i over outputs i whose tap t reads j; dw_t = sum of x_j dy_i; "
              "db = sum of dy over batch and positions",
          .forward = {conv_forward<float>, conv_forward<double>, nullptr},
          .backward = {conv_backward<float>, conv_backward<double>, nullptr},
          .needs = {autograd::needs_input(1), autograd::needs_input(0)}};
}
constexpr Op kConv[] = {conv_op("conv1d"), conv_op("conv2d"), conv_op("conv3d")};

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
           ": expected <= ", limit, ", got ", padding, N > 1 ? cat(" in dimension ", d) : "", "; input size ",
           input[d]);
  }
}

/// Checks everything about shapes and options but the channels of the input.
template <int N>
ConvGeometry<N> conv_geometry(const char* where, const Shape& input, std::int64_t out_channels, const Sizes<N>& kernel,
                              const ConvFuncOptions<N>& options) {
  ConvGeometry<N> g;
  g.windows = windows_of(where, kernel, options);
  std::copy(input.end() - N, input.end(), g.in.begin());
  output_size(where, g.windows, WindowKind::convolution, g.in, g.out);
  check_padding_mode<N>(where, options.padding_mode, g.windows, g.in);
  g.output = output_shape(input, out_channels, g.out);
  return g;
}

/// The geometry of a call with tensors: also the weight and the input's channels are checked.
template <int N>
ConvGeometry<N> call_geometry(const char* where, const Shape& input, const Shape& weight,
                              const ConvFuncOptions<N>& options) {
  check_weight(where, weight, N, options.groups);
  check_divisible(where, "out_channels", weight[0], options.groups);
  check_spatial_input(where, input, N);
  const std::int64_t channels = input.back(N), expected = weight[1] * options.groups;
  if (channels != expected)
    fail(ErrorKind::shape, where, ": input does not fit the weight: expected ", expected, " channels, got ", channels,
         " in ", input, "; weight ", weight, ", groups ", options.groups);
  return conv_geometry(where, input, weight[0], kernel_of<N>(weight), options);
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

template <int N>
Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, const ConvFuncOptions<N>& options) {
  const Op& op = kConv[N - 1];
  check_floating(op.name, input.dtype());
  check_floating(op.name, weight.dtype());
  ConvGeometry<N> g = call_geometry(op.name, input.shape(), weight.shape(), options);
  if (bias.defined()) check_bias(op.name, bias, weight.shape()[0]);
  const bool zeros = options.padding_mode == PadMode::zeros;
  const Tensor x = zeros ? input : padded_input<N>(input, options.padding_mode, g.windows);
  ConvParams params{.batch = input.dim() == N + 2 ? input.shape()[0] : 1,
                    .in_channels = input.shape().back(N),
                    .out_channels = weight.shape()[0],
                    .groups = options.groups};
  set_windows(params, g.windows, {x.shape().end() - N, std::size_t(N)}, g.out);
  return apply_with_bias(op, x, weight, bias, g.output, params);
}

}  // namespace

const Op& conv_record(int dims) { return kConv[dims - 1]; }

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv1dFuncOptions& options) {
  return convolution(input, weight, bias, options);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dFuncOptions& options) {
  return convolution(input, weight, bias, options);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv3dFuncOptions& options) {
  return convolution(input, weight, bias, options);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

namespace {

template <int N>
ConvFuncOptions<N> sliding(const ConvOptions<N>& o) {
  return {.stride = o.stride,
          .padding = o.padding,
          .dilation = o.dilation,
          .groups = o.groups,
          .padding_mode = o.padding_mode};
}

/// Refuses options that no input could make valid; `in_channels` must be known.
template <int N>
void check_layer(const char* where, const ConvOptions<N>& options) {
  check_channels(where, *options.in_channels, options.out_channels, options.groups);
  windows_of(where, options.kernel_size, sliding(options));
}

template <int N>
Shape weight_shape(const ConvOptions<N>& options) {
  return Shape{options.out_channels, *options.in_channels / options.groups}.concat(Shape(options.kernel_size.values));
}

}  // namespace

template <int N>
Conv<N>::Conv(ConvOptions<N> options) : Layer<ConvOptions<N>>(options) {
  const char* where = kConv[N - 1].name;
  given(where, "in_channels", options.in_channels);
  check_layer(where, options);
  const Shape shape = weight_shape(options);
  weight = initial_parameter(shape, shape);
  if (options.bias) bias = initial_parameter({options.out_channels}, shape);
  this->register_parameter("weight", weight);
  this->register_parameter("bias", bias);
}

template <int N>
Tensor Conv<N>::forward(const Tensor& x) {
  return convolution(x, weight, bias, sliding(this->options_));
}

template <int N>
Shape Conv<N>::infer(ConvOptions<N>& options, std::span<const Shape> inputs) {
  const char* where = kConv[N - 1].name;
  const Shape& input = inputs[0];
  complete_channels(where, "in_channels", options.in_channels, input, N);
  check_layer(where, options);
  const Shape shape = weight_shape(options);  // refuses a size beyond 63 bits
  return conv_geometry(where, input, shape[0], options.kernel_size, sliding(options)).output;
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;

// --- fields ---------------------------------------------------------------------------------------------------------

template <int N>
void fields(ConvOptions<N>& o, FieldVisitor& visit) {
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

template void fields(ConvOptions<1>&, FieldVisitor&);
template void fields(ConvOptions<2>&, FieldVisitor&);
template void fields(ConvOptions<3>&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_conv_layers(std::vector<LayerType>& types) {
  add_layer<Conv1d>(
      types, "Slides learned kernels over the last dimension: [N, Cin, L] -> [N, Cout, L'].",
      R"({"in_channels": 4, "out_channels": 6, "kernel_size": 3, "stride": 2, "padding": 1, "groups": 2})",
      {{3, 4, 11}});
  add_layer<Conv2d>(
      types, "Slides learned kernels over height and width: [N, Cin, H, W] -> [N, Cout, H', W'].",
      R"({"in_channels": 4, "out_channels": 6, "kernel_size": [2, 3], "stride": [2, 1], "padding": [0, 1], "groups": 2})",
      {{2, 4, 7, 5}});
  add_layer<Conv3d>(
      types, "Slides learned kernels over depth, height and width: [N, Cin, D, H, W] -> [N, Cout, D', H', W'].",
      R"({"in_channels": 2, "out_channels": 3, "kernel_size": [2, 3, 1], "padding": "same", "dilation": [1, 2, 1]})",
      {{2, 2, 3, 5, 4}});
}

}  // namespace taper::nn
