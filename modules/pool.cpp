#include "taper/nn/pool.hpp"

#include "base/window.hpp"
#include "catalogue.hpp"
#include "kernels/avg_pool.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::AdaptiveAvgPoolParams;
using kernels::AvgPoolParams;

// --- records --------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void avg_forward(const ForwardArgs& args) {
  kernels::avg_pool(args.attributes_as<AvgPoolParams>(), args.inputs[0].as<T>(), args.output.as<T>());
}
template <class T>
void avg_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::avg_pool_backward(args.attributes_as<AvgPoolParams>(), args.output_gradient.as<T>(), dx.as<T>(), dx.add);
}
template <class T>
void adaptive_forward(const ForwardArgs& args) {
  kernels::adaptive_avg_pool(args.attributes_as<AdaptiveAvgPoolParams>(), args.inputs[0].as<T>(), args.output.as<T>());
}
template <class T>
void adaptive_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::adaptive_avg_pool_backward(args.attributes_as<AdaptiveAvgPoolParams>(), args.output_gradient.as<T>(),
                                      dx.as<T>(), dx.add);
}

constexpr Op avg_op(const char* name) {
  return {.name = name,
          .derivative = "dx_j = sum of dy_i / divisor_i over the windows i that hold j",
          .forward = {avg_forward<float>, avg_forward<double>, nullptr},
          .backward = {avg_backward<float>, avg_backward<double>, nullptr}};
}
constexpr Op adaptive_op(const char* name) {
  return {.name = name,
          .derivative = "dx_j = sum of dy_i / (end_i - start_i) over the windows i that hold j",
          .forward = {adaptive_forward<float>, adaptive_forward<double>, nullptr},
          .backward = {adaptive_backward<float>, adaptive_backward<double>, nullptr}};
}

constexpr Op kAvg[] = {avg_op("avg_pool1d"), avg_op("avg_pool2d")};
constexpr Op kAdaptive[] = {adaptive_op("adaptive_avg_pool1d"), adaptive_op("adaptive_avg_pool2d")};

// --- geometry of each kind, for any number of spatial dimensions ----------------------------------------------------

/// A pool's options as sliding windows. A stride left out is the kernel size.
template <class Options, int N>
std::array<Window1d, N> windows_of(const Options& options, const Sizes<N>& kernel) {
  std::array<Window1d, N> windows;
  for (int d = 0; d < N; ++d)
    windows[std::size_t(d)] = {.kernel = kernel[d],
                               .stride = options.stride.value_or(kernel)[d],
                               .padding_left = options.padding[d],
                               .padding_right = options.padding[d],
                               .dilation = 1,
                               .ceil_mode = options.ceil_mode};
  return windows;
}

void check_divisor(const char* where, const std::optional<std::int64_t>& divisor) {
  if (divisor && *divisor < 1)
    fail(ErrorKind::config, where, ": divisor_override must be positive: expected >= 1, got ", *divisor);
}

struct AvgGeometry {
  AvgPoolParams params;
  Shape output;
};

template <class Options, int N>
AvgGeometry avg_geometry(const Options& options, const Sizes<N>& kernel, const Shape& input) {
  const char* where = kAvg[N - 1].name;
  const auto windows = windows_of(options, kernel);
  check_options(where, windows, WindowKind::pool);
  check_spatial_input(where, input, N);
  AvgGeometry geometry;
  AvgPoolParams& p = geometry.params;
  const std::span<const std::int64_t> in(input.end() - N, std::size_t(N));
  const std::span<std::int64_t> out(p.out + 3 - N, std::size_t(N));
  output_size(where, windows, WindowKind::pool, in, out);
  for (int d = 0; d < N; ++d) {
    const Window1d& window = windows[std::size_t(d)];
    const int at = 3 - N + d;
    p.in[at] = in[std::size_t(d)];
    p.kernel[at] = window.kernel;
    p.stride[at] = window.stride;
    p.padding[at] = window.padding_left;
  }
  p.planes = planes(input, N);
  p.count_include_pad = options.count_include_pad;
  geometry.output = input.slice(0, input.rank() - N).concat(Shape(out));
  return geometry;
}

AvgGeometry geometry_of(const AvgPool1dOptions& options, const Shape& input) {
  return avg_geometry(options, options.kernel_size, input);
}
AvgGeometry geometry_of(const AvgPool2dOptions& options, const Shape& input) {
  check_divisor("avg_pool2d", options.divisor_override);
  AvgGeometry geometry = avg_geometry(options, options.kernel_size, input);
  geometry.params.divisor_override = options.divisor_override.value_or(0);
  return geometry;
}

struct AdaptiveGeometry {
  AdaptiveAvgPoolParams params;
  Shape output;
};

/// `wanted[d]` is the output extent, or nothing to keep the input's.
template <int N>
AdaptiveGeometry adaptive_geometry(const std::array<std::optional<std::int64_t>, N>& wanted, const Shape& input) {
  const char* where = kAdaptive[N - 1].name;
  check_spatial_input(where, input, N);
  const std::span<const std::int64_t> in(input.end() - N, std::size_t(N));
  AdaptiveGeometry geometry;
  AdaptiveAvgPoolParams& p = geometry.params;
  const std::span<std::int64_t> out(p.out + 3 - N, std::size_t(N));
  for (std::size_t d = 0; d < std::size_t(N); ++d) {
    p.in[3 - N + int(d)] = in[d];
    out[d] = wanted[d].value_or(in[d]);
  }
  check_adaptive(where, out);
  check_adaptive_input(where, in);
  p.planes = planes(input, N);
  geometry.output = input.slice(0, input.rank() - N).concat(Shape(out));
  return geometry;
}

AdaptiveGeometry geometry_of(const AdaptiveAvgPool1dOptions& options, const Shape& input) {
  return adaptive_geometry<1>({options.output_size[0]}, input);
}
AdaptiveGeometry geometry_of(const AdaptiveAvgPool2dOptions& options, const Shape& input) {
  return adaptive_geometry<2>(options.output_size.values, input);
}

template <class Options>
Tensor pool(const Op& op, const Tensor& input, const Options& options) {
  check_floating(op.name, input.dtype());
  const auto geometry = geometry_of(options, input.shape());
  return apply(op, {input}, geometry.output, input.dtype(), geometry.params);
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor avg_pool1d(const Tensor& input, const AvgPool1dOptions& options) { return pool(kAvg[0], input, options); }
Tensor avg_pool2d(const Tensor& input, const AvgPool2dOptions& options) { return pool(kAvg[1], input, options); }
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dOptions& options) {
  return pool(kAdaptive[0], input, options);
}
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dOptions& options) {
  return pool(kAdaptive[1], input, options);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

AvgPool1d::AvgPool1d(AvgPool1dOptions options) : Layer(options) {
  check_options("avg_pool1d", windows_of(options, options.kernel_size), WindowKind::pool);
}
AvgPool2d::AvgPool2d(AvgPool2dOptions options) : Layer(options) {
  check_options("avg_pool2d", windows_of(options, options.kernel_size), WindowKind::pool);
  check_divisor("avg_pool2d", options.divisor_override);
}
AdaptiveAvgPool1d::AdaptiveAvgPool1d(AdaptiveAvgPool1dOptions options) : Layer(options) {
  check_adaptive("adaptive_avg_pool1d", options.output_size.values);
}
AdaptiveAvgPool2d::AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions options) : Layer(options) {
  for (const auto& size : options.output_size.values)
    if (size) check_adaptive("adaptive_avg_pool2d", {&*size, 1});
}

Shape AvgPool1d::infer(Options& options, std::span<const Shape> inputs) {
  return geometry_of(options, inputs[0]).output;
}
Shape AvgPool2d::infer(Options& options, std::span<const Shape> inputs) {
  return geometry_of(options, inputs[0]).output;
}
Shape AdaptiveAvgPool1d::infer(Options& options, std::span<const Shape> inputs) {
  return geometry_of(options, inputs[0]).output;
}
Shape AdaptiveAvgPool2d::infer(Options& options, std::span<const Shape> inputs) {
  return geometry_of(options, inputs[0]).output;
}

// --- fields ---------------------------------------------------------------------------------------------------------

namespace {

// The fields that all sliding average pools share.
template <class Options>
void sliding_fields(Options& o, FieldVisitor& visit) {
  visit({"kernel_size", "extent of the window", kPositive, true}, o.kernel_size);
  visit({"stride", "distance between windows; null: the kernel size", kPositive}, o.stride);
  visit({"padding", "zeros on both sides, at most half the kernel size", kNonNegative}, o.padding);
  visit({"ceil_mode", "round the output size up instead of down"}, o.ceil_mode);
  visit({"count_include_pad", "count padding in the average"}, o.count_include_pad);
}

}  // namespace

void fields(AvgPool1dOptions& o, FieldVisitor& visit) { sliding_fields(o, visit); }

void fields(AvgPool2dOptions& o, FieldVisitor& visit) {
  sliding_fields(o, visit);
  visit({"divisor_override", "divide by this number instead of the counted positions", kPositive}, o.divisor_override);
}

void fields(AdaptiveAvgPool1dOptions& o, FieldVisitor& visit) {
  visit({"output_size", "extent of the output", kNonNegative, true}, o.output_size);
}

void fields(AdaptiveAvgPool2dOptions& o, FieldVisitor& visit) {
  visit({"output_size", "extents of the output; null keeps the input's", kNonNegative, true}, o.output_size);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

std::vector<LayerType> pool_layers() {
  return {
      layer_type<AvgPool1d>("Averages windows over the last dimension: [N, C, L] -> [N, C, L'].",
                            R"({"kernel_size": 3, "stride": 2, "padding": 1})", {{2, 3, 11}}),
      layer_type<AvgPool2d>("Averages windows over height and width: [N, C, H, W] -> [N, C, H', W'].",
                            R"({"kernel_size": [2, 3], "stride": [2, 1], "padding": [1, 0]})", {{2, 3, 7, 5}}),
      layer_type<AdaptiveAvgPool1d>("Averages any length to a fixed one: [N, C, L] -> [N, C, O].",
                                    R"({"output_size": 3})", {{2, 3, 11}}),
      layer_type<AdaptiveAvgPool2d>("Averages any height and width to fixed ones: [N, C, H, W] -> [N, C, O0, O1].",
                                    R"({"output_size": [3, 2]})", {{2, 3, 7, 5}}),
  };
}

}  // namespace taper::nn
