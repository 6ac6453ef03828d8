#include "taper/nn/pool.hpp"

#include "catalogue.hpp"
#include "fused_records.hpp"
#include "kernels/avg_pool.hpp"
#include "pool_geometry.hpp"
#include "taper/autograd.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::AdaptivePoolParams;
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
void adaptive_avg_forward(const ForwardArgs& args) {
  kernels::adaptive_avg_pool(args.attributes_as<AdaptivePoolParams>(), args.inputs[0].as<T>(), args.output.as<T>());
}
template <class T>
void adaptive_avg_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::adaptive_avg_pool_backward(args.attributes_as<AdaptivePoolParams>(), args.output_gradient.as<T>(),
                                      dx.as<T>(), dx.add);
}

constexpr Op avg_op(const char* name) {
  return {.name = name,
          .derivative = "dx_j = sum of dy_i / divisor_i over the windows i that hold j",
          .forward = {avg_forward<float>, avg_forward<double>, nullptr},
          .backward = {avg_backward<float>, avg_backward<double>, nullptr}};
}
constexpr Op adaptive_avg_op(const char* name) {
  return {.name = name,
          .derivative = "dx_j = sum of dy_i / (end_i - start_i) over the windows i that hold j",
          .forward = {adaptive_avg_forward<float>, adaptive_avg_forward<double>, nullptr},
          .backward = {adaptive_avg_backward<float>, adaptive_avg_backward<double>, nullptr}};
}

constexpr Op kAvg[] = {avg_op("avg_pool1d"), avg_op("avg_pool2d"), avg_op("avg_pool3d")};
constexpr Op kAdaptiveAvg[] = {adaptive_avg_op("adaptive_avg_pool1d"), adaptive_avg_op("adaptive_avg_pool2d"),
                               adaptive_avg_op("adaptive_avg_pool3d")};

// --- geometry, for any number of spatial dimensions -----------------------------------------------------------------

template <class O>
constexpr const Op& kAvgRecord = Sliding<O> ? kAvg[O::kDims - 1] : kAdaptiveAvg[O::kDims - 1];

template <class O>
using AverageParams = std::conditional_t<Sliding<O>, AvgPoolParams, AdaptivePoolParams>;

template <class O>
std::optional<std::int64_t> divisor_of(const O& options) {
  if constexpr (requires { options.divisor_override; })
    return options.divisor_override;
  else
    return std::nullopt;
}

template <class O>
void check_divisor(const O& options) {
  const auto divisor = divisor_of(options);
  if (divisor && *divisor < 1)
    fail(ErrorKind::config, kAvgRecord<O>.name, ": divisor_override must be positive: expected >= 1, got ", *divisor);
}

template <class O>
Shape average_geometry(const O& options, const Shape& input, AverageParams<O>& params) {
  if constexpr (Sliding<O>) {
    check_divisor(options);
    params.count_include_pad = options.count_include_pad;
    params.divisor_override = divisor_of(options).value_or(0);
  }
  return pool_geometry(kAvgRecord<O>.name, WindowKind::average_pool, options, input, params);
}

template <class O>
Tensor pool_averages(const Tensor& input, const O& options) {
  constexpr const Op& op = kAvgRecord<O>;
  check_floating(op.name, input.dtype());
  AverageParams<O> params;
  const Shape output = average_geometry(options, input.shape(), params);
  return apply(op, {input}, output, input.dtype(), params);
}

}  // namespace

const Op& avg_pool_record(int dims) { return kAvg[dims - 1]; }

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor avg_pool1d(const Tensor& input, const AvgPool1dOptions& options) { return pool_averages(input, options); }
Tensor avg_pool2d(const Tensor& input, const AvgPool2dOptions& options) { return pool_averages(input, options); }
Tensor avg_pool3d(const Tensor& input, const AvgPool3dOptions& options) { return pool_averages(input, options); }
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dOptions& options) {
  return pool_averages(input, options);
}
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dOptions& options) {
  return pool_averages(input, options);
}
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dOptions& options) {
  return pool_averages(input, options);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

template <class O>
AveragePool<O>::AveragePool(O options) : Layer<O>(std::move(options)) {
  check_pool(kAvgRecord<O>.name, WindowKind::average_pool, this->options_);
  check_divisor(this->options_);
}

template <class O>
Tensor AveragePool<O>::forward(const Tensor& x) {
  return pool_averages(x, this->options_);
}

template <class O>
[[gnu::cold]] Shape AveragePool<O>::infer(O& options, std::span<const Shape> inputs) {
  AverageParams<O> params;
  return average_geometry(options, inputs[0], params);
}

template <class O>
[[gnu::cold]] PoolDescription AveragePool<O>::describe(const Sizes<O::kDims>& input) const {
  const O& options = this->options_;
  PoolDescription head{.layer = this->to_string(), .divisor_override = divisor_of(options)};
  if constexpr (Sliding<O>) head.count_include_pad = options.count_include_pad;
  return describe_pool(std::move(head), kAvgRecord<O>.name, WindowKind::average_pool, options, input.values);
}

template class AveragePool<AvgPool1dOptions>;
template class AveragePool<AvgPool2dOptions>;
template class AveragePool<AvgPool3dOptions>;
template class AveragePool<AdaptiveAvgPool1dOptions>;
template class AveragePool<AdaptiveAvgPool2dOptions>;
template class AveragePool<AdaptiveAvgPool3dOptions>;

// --- fields ---------------------------------------------------------------------------------------------------------

namespace {

// The fields that all sliding average pools share.
template <class Options>
[[gnu::cold]] void sliding_fields(Options& o, FieldVisitor& visit) {
  visit({"kernel_size", "extent of the window", kPositive, true}, o.kernel_size);
  visit({"stride", "distance between windows; null: the kernel size", kPositive}, o.stride);
  visit({"padding",
         "zeros on both sides, at most half the kernel size, \"same\" for the input's size; [before, after] for a "
         "dimension whose sides differ",
         kNonNegative},
        o.padding);
  visit({"dilation", "distance between a window's elements", kPositive}, o.dilation);
  visit({"ceil_mode", "round the output size up instead of down"}, o.ceil_mode);
  visit({"count_include_pad", "count padding in the average"}, o.count_include_pad);
}

template <class Options>
[[gnu::cold]] void sliding_fields_with_divisor(Options& o, FieldVisitor& visit) {
  sliding_fields(o, visit);
  visit({"divisor_override", "divide by this number instead of the counted positions", kPositive}, o.divisor_override);
}

}  // namespace

[[gnu::cold]] void fields(AvgPool1dOptions& o, FieldVisitor& visit) { sliding_fields(o, visit); }
[[gnu::cold]] void fields(AvgPool2dOptions& o, FieldVisitor& visit) { sliding_fields_with_divisor(o, visit); }
[[gnu::cold]] void fields(AvgPool3dOptions& o, FieldVisitor& visit) { sliding_fields_with_divisor(o, visit); }

[[gnu::cold]] void fields(AdaptiveAvgPool1dOptions& o, FieldVisitor& visit) {
  visit({"output_size", "extent of the output", kNonNegative, true}, o.output_size);
}

[[gnu::cold]] void fields(AdaptiveAvgPool2dOptions& o, FieldVisitor& visit) {
  visit({"output_size", "extents of the output; null keeps the input's", kNonNegative, true}, o.output_size);
}

[[gnu::cold]] void fields(AdaptiveAvgPool3dOptions& o, FieldVisitor& visit) {
  visit({"output_size", "extents of the output; null keeps the input's", kNonNegative, true}, o.output_size);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

[[gnu::cold]] void add_pool_layers(std::vector<LayerType>& types) {
  add_layer<AvgPool1d>(types, "Averages windows over the last dimension: [N, C, L] -> [N, C, L'].",
                       R"({"kernel_size": 3, "stride": 2, "padding": 1})", {{2, 3, 11}});
  add_layer<AvgPool2d>(types, "Averages windows over height and width: [N, C, H, W] -> [N, C, H', W'].",
                       R"({"kernel_size": [2, 3], "stride": [2, 1], "padding": [1, 0]})", {{2, 3, 7, 5}});
  add_layer<AvgPool3d>(types, "Averages windows over depth, height and width: [N, C, D, H, W] -> [N, C, D', H', W'].",
                       R"({"kernel_size": [2, 3, 2], "stride": [1, 2, 3], "padding": [0, 1, 1]})", {{2, 3, 3, 5, 7}});
  add_layer<AdaptiveAvgPool1d>(types, "Averages any length to a fixed one: [N, C, L] -> [N, C, O].",
                               R"({"output_size": 3})", {{2, 3, 11}});
  add_layer<AdaptiveAvgPool2d>(types, "Averages any height and width to fixed ones: [N, C, H, W] -> [N, C, O0, O1].",
                               R"({"output_size": [3, 2]})", {{2, 3, 7, 5}});
  add_layer<AdaptiveAvgPool3d>(
      types, "Averages any depth, height and width to fixed ones: [N, C, D, H, W] -> [N, C, O0, O1, O2].",
      R"({"output_size": [2, null, 3]})", {{2, 3, 3, 5, 7}});
}

}  // namespace taper::nn
