#include <limits>

#include "catalogue.hpp"
#include "norm.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

using autograd::Op;
using kernels::RowNormParams;

// --- records --------------------------------------------------------------------------------------------------------

namespace {

constexpr Op kLayerNorm =
    row_norm_op("layer_norm",
                "dx = (g - mean(g) - h * mean(g * h)) / sqrt(var + eps), g = dy * w, dw = sum of dy * h, db = sum of "
                "dy, h being the normalised x and the means those over one row");
constexpr Op kRMSNorm = row_norm_op("rms_norm",
                                    "dx = (g - h * mean(g * h)) / sqrt(mean(x^2) + eps), g = dy * w, dw = sum of "
                                    "dy * h, h being the normalised x and the means those over one row");
constexpr Op kGroupNorm =
    row_norm_op("group_norm",
                "dx = (g - mean(g) - h * mean(g * h)) / sqrt(var + eps), g = dy * w, dw = sum of dy * h, db = sum of "
                "dy, h being the normalised x and the means those over one group of one sample");

// --- rows of the last dimensions ------------------------------------------------------------------------------------

void check_normalized_shape(const char* where, const Extents& normalized) {
  if (normalized.values.empty())
    fail(ErrorKind::config, where, ": normalized_shape is empty: expected at least one extent, got []");
}

/// "[*, 3, 5]", or "[N, *, 3, 5]" with the batch in front.
std::string with_any(const char* front, const Shape& tail) { return cat(front, to_string(tail).substr(1)); }

/// The shape of the last dimensions of `input`, which `text` shows; `front` stands for those before.
Shape check_tail(const char* where, const Extents& normalized, const Shape& input, int least_rank, const char* front,
                 ShapeText text) {
  check_normalized_shape(where, normalized);
  const Shape tail = normalized.shape();
  const int first = input.rank() - tail.rank();
  if (input.rank() < least_rank + tail.rank() || !(input.slice(first, input.rank()) == tail))
    fail(ErrorKind::shape, where, ": input does not fit normalized_shape: expected ", with_any(front, tail), ", got ",
         text(input));
  return tail;
}

Tensor norm_of_tail(const Op& op, const Tensor& input, const Extents& normalized, const Tensor& weight,
                    const Tensor& bias, double eps, bool centered) {
  check_floating(op.name, input.dtype());
  const Shape tail = check_tail(op.name, normalized, input.shape(), 0, "[*, ", plain_text);
  check_eps(op.name, eps);
  check_companion(op.name, "weight", weight, input, tail, "normalized_shape");
  check_companion(op.name, "bias", bias, input, tail, "normalized_shape");
  const std::int64_t rows = input.numel() > 0 ? input.numel() / tail.numel() : 0;
  const RowNormParams params{.samples = rows, .channels = tail.numel(), .eps = eps, .centered = centered};
  return apply_norm(op, input, weight, bias, params, new_moments(kernels::row_norm_memory(params)));
}

// --- groups of channels ---------------------------------------------------------------------------------------------

void check_groups(const char* where, std::int64_t channels, std::int64_t groups) {
  if (groups < 1) fail(ErrorKind::config, where, ": num_groups must be positive: expected >= 1, got ", groups);
  if (channels % groups != 0)
    fail(ErrorKind::config, where, ": num_groups must divide the channels: expected a divisor of ", channels, ", got ",
         groups);
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor layer_norm(const Tensor& input, const Extents& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  return norm_of_tail(kLayerNorm, input, normalized_shape, weight, bias, eps, true);
}

Tensor rms_norm(const Tensor& input, const Extents& normalized_shape, const Tensor& weight, std::optional<double> eps) {
  const double epsilon = input.dtype() == DType::float32 ? double(std::numeric_limits<float>::epsilon())
                                                         : std::numeric_limits<double>::epsilon();
  return norm_of_tail(kRMSNorm, input, normalized_shape, weight, Tensor(), eps.value_or(epsilon), false);
}

Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  const char* where = kGroupNorm.name;
  check_companions(where, input, Tensor(), Tensor(), weight, bias);
  check_eps(where, eps);
  const Shape& shape = input.shape();
  check_groups(where, shape[1], num_groups);
  if (shape[0] == 1 && input.numel() == num_groups)
    fail(ErrorKind::shape, where, ": too few values for each group: expected more than 1, got 1 in ", shape);
  const std::int64_t samples = input.numel() > 0 ? shape[0] : 0;
  const RowNormParams params{.samples = samples,
                             .groups = num_groups,
                             .channels = shape[1] / num_groups,
                             .spatial = shape.slice(2, shape.rank()).numel(),
                             .eps = eps};
  return apply_norm(kGroupNorm, input, weight, bias, params, new_moments(kernels::row_norm_memory(params)));
}

Tensor normalize(const Tensor& input, double p, std::int64_t dim, double eps) {
  check_floating("normalize", input.dtype());
  check_eps("normalize", eps);
  return input / clamp(norm(input, p, normalize_dim("normalize", dim, input.shape().rank()), true), eps, std::nullopt);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

LayerNorm::LayerNorm(LayerNormOptions options) : Layer(options) {
  check_normalized_shape(LayerNormOptions::kType, options.normalized_shape);
  const Shape shape = options.normalized_shape.shape();
  if (options.elementwise_affine) weight = ones(shape);
  if (options.elementwise_affine && options.bias) bias = zeros(shape);
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Tensor LayerNorm::forward(const Tensor& x) {
  return functional::layer_norm(x, options_.normalized_shape, weight, bias, options_.eps);
}

RMSNorm::RMSNorm(RMSNormOptions options) : Layer(options) {
  check_normalized_shape(RMSNormOptions::kType, options.normalized_shape);
  if (options.elementwise_affine) weight = ones(options.normalized_shape.shape());
  register_parameter("weight", weight);
}

Tensor RMSNorm::forward(const Tensor& x) {
  return functional::rms_norm(x, options_.normalized_shape, weight, options_.eps);
}

GroupNorm::GroupNorm(GroupNormOptions options) : Layer(options) {
  const std::int64_t channels = given(GroupNormOptions::kType, "num_channels", options.num_channels);
  check_groups(GroupNormOptions::kType, channels, options.num_groups);
  if (options.affine) weight = ones({channels});
  if (options.affine && options.bias) bias = zeros({channels});
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Tensor GroupNorm::forward(const Tensor& x) {
  check_channels(GroupNormOptions::kType, x);
  check_features(GroupNormOptions::kType, "num_channels", x.shape(), x.shape()[1], *options_.num_channels);
  return functional::group_norm(x, options_.num_groups, weight, bias, options_.eps);
}

namespace {

/// The batch is a placeholder, so `normalized_shape` cannot reach it.
template <class Options>
Shape infer_tail(const Options& options, const Shape& input) {
  check_tail(Options::kType, options.normalized_shape, input, 1, "[N, *, ", batched_text);
  return input;
}

}  // namespace

Shape LayerNorm::infer(Options& options, std::span<const Shape> inputs) { return infer_tail(options, inputs[0]); }
Shape RMSNorm::infer(Options& options, std::span<const Shape> inputs) { return infer_tail(options, inputs[0]); }

Shape GroupNorm::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& input = inputs[0];
  if (input.rank() < 2)
    fail(ErrorKind::shape, Options::kType, ": input has no channels: expected [N, C, *], got ", batched_text(input));
  complete_option(Options::kType, "num_channels", options.num_channels, input[1], input);
  if (input[1] == 0)
    fail(ErrorKind::shape, Options::kType, ": no channels: expected >= 1, got 0 in ", batched_text(input));
  check_groups(Options::kType, input[1], options.num_groups);
  return input;
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(LayerNormOptions& o, FieldVisitor& visit) {
  visit({"normalized_shape", "the input's last extents, over which it is normalised", kNonNegative, true},
        o.normalized_shape);
  visit({"eps", "added to the variance", kNonNegative}, o.eps);
  visit({"elementwise_affine", "multiply by a learned weight and add a learned bias, one for each element of a row"},
        o.elementwise_affine);
  visit({"bias", "with elementwise_affine: have a bias"}, o.bias);
}

void fields(RMSNormOptions& o, FieldVisitor& visit) {
  visit({"normalized_shape", "the input's last extents, over which it is normalised", kNonNegative, true},
        o.normalized_shape);
  visit({"eps", "added to the mean square; null: the element type's own", kNonNegative}, o.eps);
  visit({"elementwise_affine", "multiply by a learned weight, one for each element of a row"}, o.elementwise_affine);
}

void fields(GroupNormOptions& o, FieldVisitor& visit) {
  visit({"num_groups", "groups of channels that are normalised together", kPositive, true}, o.num_groups);
  visit({"num_channels", "channels of the input; null: inferred", kPositive}, o.num_channels);
  visit({"eps", "added to the variance", kNonNegative}, o.eps);
  visit({"affine", "multiply by a learned weight and add a learned bias, one for each channel"}, o.affine);
  visit({"bias", "with affine: have a bias"}, o.bias);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_layer_norm_layers(std::vector<LayerType>& types) {
  add_layer<LayerNorm>(types, "Normalises each row of the last dimensions: [*, shape] -> [*, shape].",
                       R"({"normalized_shape": [3, 5], "eps": 0.01})", {{2, 7, 3, 5}});
  add_layer<RMSNorm>(types,
                     "Divides each row of the last dimensions by its root mean square: [*, shape] "
                     "-> [*, shape].",
                     R"({"normalized_shape": 5, "eps": 0.01})", {{2, 7, 5}});
  add_layer<GroupNorm>(types, "Normalises groups of channels of each sample: [N, C, *] -> [N, C, *].",
                       R"({"num_groups": 2, "num_channels": 6, "eps": 0.01})", {{2, 6, 5}});
}

}  // namespace taper::nn
