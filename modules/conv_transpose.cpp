#include "taper/nn/conv_transpose.hpp"

#include "bias.hpp"
#include "catalogue.hpp"
#include "conv_common.hpp"
#include "kernels/conv_transpose.hpp"

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::ConvParams;

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void conv_transpose_forward(const ForwardArgs& args) {
  kernels::conv_transpose_forward(args.attributes_as<ConvParams>(), args.inputs[0].as<T>(), args.inputs[1].as<T>(),
                                  bias_of<T>(args), args.output.as<T>());
}

template <class T>
void conv_transpose_backward(const BackwardArgs& args) {
  const auto& params = args.attributes_as<ConvParams>();
  const T* dy = args.output_gradient.as<T>();
  if (const GradientSlot& dx = args.input_gradients[0])
    kernels::conv_transpose_backward_input(params, dy, args.inputs[1].as<T>(), dx.as<T>(), dx.add);
  if (const GradientSlot& dw = args.input_gradients[1])
    kernels::conv_transpose_backward_weight(params, dy, args.inputs[0].as<T>(), dw.as<T>(), dw.add);
  if (const GradientSlot& db = bias_gradient(args))
    kernels::conv_transpose_backward_bias(params, dy, db.as<T>(), db.add);
}

constexpr Op transpose_op(const char* name) {
  return {.name = name,
          .derivative =
              "dx_i = sum of w_t dy_j over outputs j that tap t of input i is added to; dw_t = sum of x_i dy_j; "
              "db = sum of dy over batch and positions",
          .forward = {conv_transpose_forward<float>, conv_transpose_forward<double>, nullptr},
          .backward = {conv_transpose_backward<float>, conv_transpose_backward<double>, nullptr},
          .needs = {autograd::needs_input(1), autograd::needs_input(0)}};
}
constexpr Op kTranspose[] = {transpose_op("conv_transpose1d"), transpose_op("conv_transpose2d"),
                             transpose_op("conv_transpose3d")};

// --- geometry, for any number of spatial dimensions -----------------------------------------------------------------

/// The checked windows that take an output back to its input.
template <int N>
std::array<Window1d, N> windows_of(const char* where, const Sizes<N>& kernel,
                                   const ConvTransposeFuncOptions<N>& options) {
  std::array<Window1d, N> windows;
  for (int d = 0; d < N; ++d)
    windows[std::size_t(d)] = {.kernel = kernel[d],
                               .stride = options.stride[d],
                               .padding_left = options.padding[d],
                               .padding_right = options.padding[d],
                               .dilation = options.dilation[d]};
  check_options(where, windows, WindowKind::convolution);
  check_output_padding(where, windows, options.output_padding.values);
  return windows;
}

/// Checks everything about shapes and options but the channels of the input.
template <int N>
ConvGeometry<N> transpose_geometry(const char* where, const Shape& input, std::int64_t out_channels,
                                   const Sizes<N>& kernel, const ConvTransposeFuncOptions<N>& options) {
  ConvGeometry<N> g;
  g.windows = windows_of(where, kernel, options);
  std::copy(input.end() - N, input.end(), g.in.begin());
  transposed_output_size(where, g.windows, options.output_padding.values, g.in, g.out);
  g.output = output_shape(input, out_channels, g.out);
  return g;
}

/// The geometry of a call with tensors: also the weight and the input's channels are checked.
template <int N>
ConvGeometry<N> call_geometry(const char* where, const Shape& input, const Shape& weight,
                              const ConvTransposeFuncOptions<N>& options) {
  check_weight(where, weight, N, options.groups);
  check_divisible(where, "in_channels", weight[0], options.groups);
  check_spatial_input(where, input, N);
  if (input.back(N) != weight[0])
    fail(ErrorKind::shape, where, ": input does not fit the weight: expected ", weight[0], " channels, got ",
         input.back(N), " in ", input, "; weight ", weight);
  return transpose_geometry(where, input, weight[1] * options.groups, kernel_of<N>(weight), options);
}

template <int N>
Tensor transposed(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const ConvTransposeFuncOptions<N>& options) {
  const Op& op = kTranspose[N - 1];
  check_floating(op.name, input.dtype());
  check_floating(op.name, weight.dtype());
  const ConvGeometry<N> g = call_geometry(op.name, input.shape(), weight.shape(), options);
  const std::int64_t out_channels = g.output.back(N);
  if (bias.defined()) check_bias(op.name, bias, out_channels);
  ConvParams params{.batch = input.dim() == N + 2 ? input.shape()[0] : 1,
                    .in_channels = out_channels,
                    .out_channels = weight.shape()[0],
                    .groups = options.groups};
  set_windows(params, g.windows, g.out, g.in);
  return apply_with_bias(op, input, weight, bias, g.output, params);
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dFuncOptions& options) {
  return transposed(input, weight, bias, options);
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dFuncOptions& options) {
  return transposed(input, weight, bias, options);
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dFuncOptions& options) {
  return transposed(input, weight, bias, options);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

namespace {

template <int N>
ConvTransposeFuncOptions<N> sliding(const ConvTransposeOptions<N>& o) {
  return {.stride = o.stride,
          .padding = o.padding,
          .output_padding = o.output_padding,
          .groups = o.groups,
          .dilation = o.dilation};
}

/// Refuses options that no input could make valid; `in_channels` must be known.
template <int N>
void check_layer(const char* where, const ConvTransposeOptions<N>& options) {
  check_channels(where, *options.in_channels, options.out_channels, options.groups);
  windows_of(where, options.kernel_size, sliding(options));
  if (options.padding_mode != PadMode::zeros)
    fail(ErrorKind::config, where, ": padding_mode is not supported: expected zeros, got ",
         names_of(options.padding_mode)[std::size_t(options.padding_mode)]);
}

template <int N>
Shape weight_shape(const ConvTransposeOptions<N>& options) {
  return Shape{*options.in_channels, options.out_channels / options.groups}.concat(Shape(options.kernel_size.values));
}

/// The output padding that gives the wanted extents.
template <int N>
Sizes<N> padding_for(const char* where, const Shape& input, const Sizes<N>& wanted,
                     const ConvTransposeOptions<N>& options) {
  check_spatial_input(where, input, N);
  ConvTransposeFuncOptions<N> least = sliding(options);
  least.output_padding = 0;
  const auto g = transpose_geometry(where, input, options.out_channels, options.kernel_size, least);
  Sizes<N> padding;
  for (std::size_t d = 0; d < std::size_t(N); ++d) {
    const std::int64_t stride = options.stride.values[d], low = g.out[d];
    if (wanted.values[d] < low || wanted.values[d] - low >= stride)
      fail(ErrorKind::shape, where, ": output_size cannot be reached: expected ", low, stride > 1 ? " to " : "",
           stride > 1 ? cat(low + (stride - 1)) : "", ", got ", wanted.values[d], N > 1 ? cat(" in dimension ", d) : "",
           "; input size ", g.in[d], ", stride ", stride);
    padding.values[d] = wanted.values[d] - low;
  }
  return padding;
}

}  // namespace

template <int N>
ConvTranspose<N>::ConvTranspose(ConvTransposeOptions<N> options) : Layer<ConvTransposeOptions<N>>(options) {
  const char* where = kTranspose[N - 1].name;
  given(where, "in_channels", options.in_channels);
  check_layer(where, options);
  const Shape shape = weight_shape(options);
  weight = initial_parameter(shape, shape);
  if (options.bias) bias = initial_parameter({options.out_channels}, shape);
  this->register_parameter("weight", weight);
  this->register_parameter("bias", bias);
}

template <int N>
Tensor ConvTranspose<N>::forward(const Tensor& x) {
  return transposed(x, weight, bias, sliding(this->options_));
}

template <int N>
Tensor ConvTranspose<N>::forward(const Tensor& x, const Sizes<N>& output_size) {
  ConvTransposeFuncOptions<N> options = sliding(this->options_);
  options.output_padding = padding_for(kTranspose[N - 1].name, x.shape(), output_size, this->options_);
  return transposed(x, weight, bias, options);
}

template <int N>
Shape ConvTranspose<N>::infer(ConvTransposeOptions<N>& options, std::span<const Shape> inputs) {
  const char* where = kTranspose[N - 1].name;
  const Shape& input = inputs[0];
  complete_channels(where, "in_channels", options.in_channels, input, N);
  check_layer(where, options);
  weight_shape(options);  // refuses a size beyond 63 bits
  return transpose_geometry(where, input, options.out_channels, options.kernel_size, sliding(options)).output;
}

template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

// --- fields ---------------------------------------------------------------------------------------------------------

template <int N>
void fields(ConvTransposeOptions<N>& o, FieldVisitor& visit) {
  visit({"in_channels", "channels of the input; null: inferred", kPositive}, o.in_channels);
  visit({"out_channels", "channels of the output", kPositive, true}, o.out_channels);
  visit({"kernel_size", "extent of the kernel", kPositive, true}, o.kernel_size);
  visit({"stride", "distance between kernels in the output", kPositive}, o.stride);
  visit({"padding", "taken off both sides of the output", kNonNegative}, o.padding);
  visit({"output_padding", "added to one side of the output, less than stride or dilation", kNonNegative},
        o.output_padding);
  visit({"groups", "blocks of channels that do not see each other", kPositive}, o.groups);
  visit({"bias", "add a learned number to each output channel"}, o.bias);
  visit({"dilation", "distance between the kernel's taps", kPositive}, o.dilation);
  visit({"padding_mode", "zeros; no other mode is defined"}, o.padding_mode);
}

template void fields(ConvTransposeOptions<1>&, FieldVisitor&);
template void fields(ConvTransposeOptions<2>&, FieldVisitor&);
template void fields(ConvTransposeOptions<3>&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_conv_transpose_layers(std::vector<LayerType>& types) {
  add_layer<ConvTranspose1d>(
      types, "Adds a learned kernel to the output for every position: [N, Cin, L] -> [N, Cout, L'].",
      R"({"in_channels": 4, "out_channels": 6, "kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1, "groups": 2})",
      {{3, 4, 5}});
  add_layer<ConvTranspose2d>(
      types, "Adds a learned kernel over height and width for every position: [N, Cin, H, W] -> [N, Cout, H', W'].",
      R"({"in_channels": 4, "out_channels": 6, "kernel_size": [2, 3], "stride": [2, 1], "padding": [0, 1], "groups": 2})",
      {{2, 4, 3, 5}});
  add_layer<ConvTranspose3d>(
      types,
      "Adds a learned kernel over depth, height and width for every position: "
      "[N, Cin, D, H, W] -> [N, Cout, D', H', W'].",
      R"({"in_channels": 2, "out_channels": 3, "kernel_size": [2, 3, 1], "stride": [1, 1, 2], "dilation": [1, 2, 1], "padding": [0, 1, 0]})",
      {{2, 2, 2, 3, 4}});
}

}  // namespace taper::nn
