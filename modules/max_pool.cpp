#include "taper/nn/max_pool.hpp"

#include "catalogue.hpp"
#include "fused_records.hpp"
#include "kernels/max_pool.hpp"
#include "pool_geometry.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::AdaptivePoolParams;
using kernels::SlidingPoolParams;

// --- records --------------------------------------------------------------------------------------------------------

namespace {

// The indices are aux 0, which is there when somebody reads them: the caller or the backward.
template <class T>
std::int64_t* index_of(const ForwardArgs& args) {
  return args.aux.empty() ? nullptr : args.aux[0].as<std::int64_t>();
}
template <class T>
void max_forward(const ForwardArgs& args) {
  kernels::max_pool(args.attributes_as<SlidingPoolParams>(), args.inputs[0].as<T>(), args.output.as<T>(),
                    index_of<T>(args));
}
template <class T>
void max_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::max_pool_backward(args.attributes_as<SlidingPoolParams>(), args.output_gradient.as<T>(),
                             args.aux[0].as<std::int64_t>(), dx.as<T>(), dx.add);
}
template <class T>
void adaptive_max_forward(const ForwardArgs& args) {
  kernels::adaptive_max_pool(args.attributes_as<AdaptivePoolParams>(), args.inputs[0].as<T>(), args.output.as<T>(),
                             index_of<T>(args));
}
template <class T>
void adaptive_max_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::adaptive_max_pool_backward(args.attributes_as<AdaptivePoolParams>(), args.output_gradient.as<T>(),
                                      args.aux[0].as<std::int64_t>(), dx.as<T>(), dx.add);
}

constexpr const char* kMaxDerivative = "dx_j = sum of dy_i over the windows i whose largest element is j";
constexpr Op max_op(const char* name) {
  return {.name = name,
          .derivative = kMaxDerivative,
          .forward = {max_forward<float>, max_forward<double>, nullptr},
          .backward = {max_backward<float>, max_backward<double>, nullptr}};
}
constexpr Op adaptive_max_op(const char* name) {
  return {.name = name,
          .derivative = kMaxDerivative,
          .forward = {adaptive_max_forward<float>, adaptive_max_forward<double>, nullptr},
          .backward = {adaptive_max_backward<float>, adaptive_max_backward<double>, nullptr}};
}

constexpr Op kMax[] = {max_op("max_pool1d"), max_op("max_pool2d"), max_op("max_pool3d")};
constexpr Op kAdaptiveMax[] = {adaptive_max_op("adaptive_max_pool1d"), adaptive_max_op("adaptive_max_pool2d"),
                               adaptive_max_op("adaptive_max_pool3d")};

// --- geometry, for any number of spatial dimensions -----------------------------------------------------------------

template <class O>
constexpr const Op& kMaxRecord = Sliding<O> ? kMax[O::kDims - 1] : kAdaptiveMax[O::kDims - 1];

template <class O>
using MaximumParams = std::conditional_t<Sliding<O>, SlidingPoolParams, AdaptivePoolParams>;

template <class O>
Shape maximum_geometry(const O& options, const Shape& input, MaximumParams<O>& params) {
  return pool_geometry(kMaxRecord<O>.name, WindowKind::pool, options, input, params);
}
template <class O>
Shape maximum_shape(const O& options, const Shape& input) {
  MaximumParams<O> params;
  return maximum_geometry(options, input, params);
}

template <class O>
MaxPooled pool_with_indices(const Tensor& input, const O& options) {
  constexpr const Op& op = kMaxRecord<O>;
  check_floating(op.name, input.dtype());
  MaximumParams<O> params;
  const Shape output = maximum_geometry(options, input.shape(), params);
  const Tensor indices = empty(output, DType::int64);
  return {apply(op, {input}, output, input.dtype(), params, {indices}), indices};
}

template <class O>
Tensor pool_maxima(const Tensor& input, const O& options) {
  if (autograd::is_grad_enabled() && input.requires_grad()) return pool_with_indices(input, options).values;
  constexpr const Op& op = kMaxRecord<O>;
  check_floating(op.name, input.dtype());
  MaximumParams<O> params;
  const Shape output = maximum_geometry(options, input.shape(), params);
  return apply(op, {input}, output, input.dtype(), params);
}

}  // namespace

const Op& max_pool_record(int dims) { return kMax[dims - 1]; }

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor max_pool1d(const Tensor& input, const MaxPool1dOptions& options) { return pool_maxima(input, options); }
Tensor max_pool2d(const Tensor& input, const MaxPool2dOptions& options) { return pool_maxima(input, options); }
Tensor max_pool3d(const Tensor& input, const MaxPool3dOptions& options) { return pool_maxima(input, options); }
MaxPooled max_pool1d_with_indices(const Tensor& input, const MaxPool1dOptions& options) {
  return pool_with_indices(input, options);
}
MaxPooled max_pool2d_with_indices(const Tensor& input, const MaxPool2dOptions& options) {
  return pool_with_indices(input, options);
}
MaxPooled max_pool3d_with_indices(const Tensor& input, const MaxPool3dOptions& options) {
  return pool_with_indices(input, options);
}

Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dOptions& options) {
  return pool_maxima(input, options);
}
Tensor adaptive_max_pool2d(const Tensor& input, const AdaptiveMaxPool2dOptions& options) {
  return pool_maxima(input, options);
}
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dOptions& options) {
  return pool_maxima(input, options);
}
MaxPooled adaptive_max_pool1d_with_indices(const Tensor& input, const AdaptiveMaxPool1dOptions& options) {
  return pool_with_indices(input, options);
}
MaxPooled adaptive_max_pool2d_with_indices(const Tensor& input, const AdaptiveMaxPool2dOptions& options) {
  return pool_with_indices(input, options);
}
MaxPooled adaptive_max_pool3d_with_indices(const Tensor& input, const AdaptiveMaxPool3dOptions& options) {
  return pool_with_indices(input, options);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

template <class O>
MaxPoolLayer<O>::MaxPoolLayer(O options) : Layer<O>(options) {
  check_pool(kMaxRecord<O>.name, WindowKind::pool, options);
}

template <class O>
Tensor MaxPoolLayer<O>::forward(const Tensor& x) {
  return pool_maxima(x, this->options_);
}

template <class O>
MaxPooled MaxPoolLayer<O>::forward_with_indices(const Tensor& x) {
  return pool_with_indices(x, this->options_);
}

template <class O>
std::vector<Tensor> MaxPoolLayer<O>::forward_outputs(std::span<const Tensor> inputs) {
  if (!this->options_.return_indices || inputs.size() != 1) return Module::forward_outputs(inputs);
  const MaxPooled pooled = pool_with_indices(inputs[0], this->options_);
  return {pooled.values, pooled.indices};
}

template <class O>
[[gnu::cold]] PoolDescription MaxPoolLayer<O>::describe(const Sizes<O::kDims>& input) const {
  return describe_pool({.layer = this->to_string(), .averages = false}, kMaxRecord<O>.name, WindowKind::pool,
                       this->options_, input.values);
}

template <class O>
[[gnu::cold]] Shape MaxPoolLayer<O>::infer(O& options, std::span<const Shape> inputs) {
  return maximum_shape(options, inputs[0]);
}

template <class O>
[[gnu::cold]] std::vector<std::string> MaxPoolLayer<O>::further_outputs(const O& options) {
  return options.return_indices ? std::vector<std::string>{"indices"} : std::vector<std::string>{};
}

template <class O>
[[gnu::cold]] std::vector<Outline> MaxPoolLayer<O>::infer_further(const O& options, std::span<const Shape> inputs) {
  if (!options.return_indices) return {};
  return {{maximum_shape(options, inputs[0]), Elements::int64}};
}

template class MaxPoolLayer<MaxPool1dOptions>;
template class MaxPoolLayer<MaxPool2dOptions>;
template class MaxPoolLayer<MaxPool3dOptions>;
template class MaxPoolLayer<AdaptiveMaxPool1dOptions>;
template class MaxPoolLayer<AdaptiveMaxPool2dOptions>;
template class MaxPoolLayer<AdaptiveMaxPool3dOptions>;

// --- fields ---------------------------------------------------------------------------------------------------------

namespace {

constexpr Field kReturnIndices{"return_indices", "offer where the values come from as a further output, \"indices\""};

}  // namespace

template <int N>
[[gnu::cold]] void fields(MaxPoolOptions<N>& o, FieldVisitor& visit) {
  visit({"kernel_size", "extent of the window", kPositive, true}, o.kernel_size);
  visit({"stride", "distance between windows; null: the kernel size", kPositive}, o.stride);
  visit({"padding", "never chosen, on both sides, at most half the kernel size", kNonNegative}, o.padding);
  visit({"dilation", "distance between the elements of a window", kPositive}, o.dilation);
  visit(kReturnIndices, o.return_indices);
  visit({"ceil_mode", "round the output size up instead of down"}, o.ceil_mode);
}

template <int N>
[[gnu::cold]] void fields(AdaptiveMaxPoolOptions<N>& o, FieldVisitor& visit) {
  visit({"output_size", N == 1 ? "extent of the output" : "extents of the output; null keeps the input's", kNonNegative,
         true},
        o.output_size);
  visit(kReturnIndices, o.return_indices);
}

template void fields(MaxPool1dOptions&, FieldVisitor&);
template void fields(MaxPool2dOptions&, FieldVisitor&);
template void fields(MaxPool3dOptions&, FieldVisitor&);
template void fields(AdaptiveMaxPool1dOptions&, FieldVisitor&);
template void fields(AdaptiveMaxPool2dOptions&, FieldVisitor&);
template void fields(AdaptiveMaxPool3dOptions&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

[[gnu::cold]] void add_max_pool_layers(std::vector<LayerType>& types) {
  add_layer<MaxPool1d>(types, "The largest elements of windows over the last dimension: [N, C, L] -> [N, C, L'].",
                       R"({"kernel_size": 3, "stride": 2, "padding": 1, "return_indices": true})", {{2, 3, 11}});
  add_layer<MaxPool2d>(types, "The largest elements of windows over height and width: [N, C, H, W] -> [N, C, H', W'].",
                       R"({"kernel_size": [2, 3], "stride": [2, 1], "padding": [1, 0], "dilation": [1, 2],
                                "return_indices": true})",
                       {{2, 3, 3, 5}});
  add_layer<MaxPool3d>(
      types, "The largest elements of windows over depth, height and width: [N, C, D, H, W] -> [N, C, D', H', W'].",
      R"({"kernel_size": [1, 3, 2], "stride": [2, 3, 1], "padding": [0, 1, 1], "return_indices": true})",
      {{2, 3, 3, 5, 2}});
  add_layer<AdaptiveMaxPool1d>(types, "The largest elements, of any length to a fixed one: [N, C, L] -> [N, C, O].",
                               R"({"output_size": 3, "return_indices": true})", {{2, 3, 11}});
  add_layer<AdaptiveMaxPool2d>(
      types, "The largest elements, of any height and width to fixed ones: [N, C, H, W] -> [N, C, O0, O1].",
      R"({"output_size": [3, 2], "return_indices": true})", {{2, 3, 7, 5}});
  add_layer<AdaptiveMaxPool3d>(
      types, "The largest elements, of any extents to fixed ones: [N, C, D, H, W] -> [N, C, O0, O1, O2].",
      R"({"output_size": [3, null, 2], "return_indices": true})", {{2, 3, 3, 2, 5}});
}

}  // namespace taper::nn
