#include "taper/nn/upsample.hpp"

#include <cmath>

#include "catalogue.hpp"
#include "kernels/upsample.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/nn/pool.hpp"

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::UpsampleParams;

// --- options --------------------------------------------------------------------------------------------------------

namespace {

constexpr int kMostDimensions = 3;

template <class T>
const char* word_for() {
  return std::is_integral_v<T> ? "integer" : "number";
}

}  // namespace

template <class T>
PerDimension<T>::PerDimension(std::initializer_list<T> list) : count(int(list.size())) {
  if (list.size() < 1 || list.size() > std::size_t(kMostDimensions))
    fail(ErrorKind::config, "sizes: one number for all dimensions or one for each: expected 1 to ", kMostDimensions,
         ", got ", list.size());
  std::copy(list.begin(), list.end(), values);
}

FieldType field_type(const PerDimension<std::int64_t>*) { return {.kind = FieldType::sizes, .nullable = true}; }
FieldType field_type(const PerDimension<double>*) { return {.kind = FieldType::numbers, .nullable = true, .arity = 1}; }

template <class T>
Value to_value(const PerDimension<T>& value) {
  if (!value.given()) return Value();
  if (value.count == 1) return Value(value.values[0]);
  return Value(Value::List(value.values, value.values + value.count));
}

template <class T>
std::string from_value(const Value& from, PerDimension<T>& to) {
  PerDimension<T> read;
  const auto* list = from.get<Value::List>();
  const std::size_t count = list ? list->size() : from.is_null() ? 0 : 1;
  if (list && (count < 1 || count > std::size_t(kMostDimensions)))
    return cat("expected a list of 1 to ", kMostDimensions, " ", word_for<T>(), "s, got ", count, " in ",
               to_json(from));
  for (read.count = 0; read.count < int(count); ++read.count) {
    const Value& one = list ? (*list)[std::size_t(read.count)] : from;
    std::string problem = taper::from_value(one, read.values[read.count]);
    if (!problem.empty()) return problem;
  }
  to = read;
  return "";
}

template struct PerDimension<std::int64_t>;
template struct PerDimension<double>;
template Value to_value(const PerDimension<std::int64_t>&);
template Value to_value(const PerDimension<double>&);
template std::string from_value(const Value&, PerDimension<std::int64_t>&);
template std::string from_value(const Value&, PerDimension<double>&);

std::span<const char* const> names_of(UpsampleMode) {
  static constexpr const char* names[] = {"nearest",       "linear",  "bilinear", "trilinear",
                                          "nearest-exact", "bicubic", "area"};
  return names;
}

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kName = "interpolate";

template <class T>
void upsample_forward(const ForwardArgs& args) {
  kernels::upsample(args.attributes_as<UpsampleParams>(), args.inputs[0].as<T>(), args.output.as<T>());
}
template <class T>
void upsample_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::upsample_backward(args.attributes_as<UpsampleParams>(), args.output_gradient.as<T>(), dx.as<T>(), dx.add);
}

constexpr Op kInterpolate{.name = kName,
                          .derivative = "dx_j = sum of dy_i times the weight with which output i reads j",
                          .forward = {upsample_forward<float>, upsample_forward<double>, nullptr},
                          .backward = {upsample_backward<float>, upsample_backward<double>, nullptr}};

// --- geometry, for any number of spatial dimensions -----------------------------------------------------------------

const char* mode_name(UpsampleMode mode) { return names_of(mode)[std::size_t(mode)]; }

/// The spatial dimensions that an interpolating mode is for; 0 for modes that are for any.
int dimensions_of(UpsampleMode mode) {
  switch (mode) {
    case UpsampleMode::linear:
      return 1;
    case UpsampleMode::bilinear:
    case UpsampleMode::bicubic:
      return 2;
    case UpsampleMode::trilinear:
      return 3;
    case UpsampleMode::nearest:
    case UpsampleMode::nearest_exact:
    case UpsampleMode::area:
      return 0;
  }
  return 0;
}

/// Refuses options that no input could make valid.
void check_options(const UpsampleOptions& o) {
  if (o.size.given() == o.scale_factor.given())
    fail(ErrorKind::config, kName, o.size.given() ? ": size and scale_factor are both given" : ": no size is given",
         ": expected size or scale_factor, got ", o.size.given() ? "both" : "neither");
  if (o.align_corners && dimensions_of(o.mode) == 0)
    fail(ErrorKind::config, kName,
         ": align_corners needs an interpolating mode: expected mode linear, bilinear, trilinear or bicubic, got ",
         mode_name(o.mode));
  if (o.recompute_scale_factor.value_or(false) && o.size.given())
    fail(ErrorKind::config, kName, ": recompute_scale_factor needs a scale_factor: expected scale_factor, got size");
  for (int d = 0; d < o.size.count; ++d)
    if (o.size[d] < 1) fail(ErrorKind::config, kName, ": size must be positive: expected >= 1, got ", o.size[d]);
  for (int d = 0; d < o.scale_factor.count; ++d)
    if (!(o.scale_factor[d] > 0))
      fail(ErrorKind::config, kName, ": scale_factor must be positive: expected > 0, got ", o.scale_factor[d]);
}

/// Refuses an input of the wrong rank for the mode and for the lists of numbers.
void check_dimensions(const UpsampleOptions& o, std::string (*text)(const Shape&), const Shape& input) {
  const int rank = input.rank(), dims = rank - 2;
  if (dims < 1 || dims > kMostDimensions)
    fail(ErrorKind::shape, kName, ": wrong number of dimensions: expected 3-D to 5-D batched input, got ", rank, "-D ",
         text(input));
  if (dimensions_of(o.mode) != 0 && dimensions_of(o.mode) != dims)
    fail(ErrorKind::shape, kName, ": mode does not fit the input: expected ",
         mode_name(UpsampleMode(int(UpsampleMode::linear) + dims - 1)), " for ", rank, "-D ", text(input), ", got ",
         mode_name(o.mode));
  const auto check_count = [&](const char* key, int count) {
    if (count > 1 && count != dims)
      fail(ErrorKind::shape, kName, ": ", key, " does not fit the input: expected ",
           dims == 1 ? "1 number" : cat("1 or ", dims, " numbers"), ", got ", count, " for ", text(input));
  };
  check_count("size", o.size.count);
  check_count("scale_factor", o.scale_factor.count);
}

/// floor(in * factor), PyTorch's rule.
std::int64_t scaled(std::int64_t in, double factor) {
  const double size = std::floor(double(in) * factor);
  const auto whole = checked::to_int64(size);
  if (!whole)
    fail(ErrorKind::shape, kName, ": output size overflows 64 bits: expected below 2^63, got input size ", in,
         " and scale_factor ", factor);
  if (*whole < 1)
    fail(ErrorKind::shape, kName, ": output size is too small: expected >= 1, got ", *whole, "; input size ", in,
         ", scale_factor ", factor);
  return *whole;
}

Resampling resampling(const UpsampleOptions& o, int d, std::int64_t in) {
  Resampling axis{.in = in};
  axis.out = o.size.given() ? o.size[d] : scaled(in, o.scale_factor[d]);
  axis.rule = o.mode == UpsampleMode::nearest         ? Resampling::Rule::nearest
              : o.mode == UpsampleMode::nearest_exact ? Resampling::Rule::nearest_exact
              : o.align_corners.value_or(false)       ? Resampling::Rule::aligned
                                                      : Resampling::Rule::linear;
  if (o.scale_factor.given() && !o.recompute_scale_factor.value_or(false)) axis.step = 1 / o.scale_factor[d];
  return axis;
}

struct ResizeGeometry {
  UpsampleParams params;
  Shape output;
};

/// `text` writes the input in messages.
ResizeGeometry geometry_of(const UpsampleOptions& o, const Shape& input, std::string (*text)(const Shape&)) {
  check_options(o);
  check_dimensions(o, text, input);
  const int dims = input.rank() - 2;
  check_spatial_input(kName, input, dims);
  const std::span<const std::int64_t> in(input.end() - dims, std::size_t(dims));
  check_adaptive_input(kName, in);
  ResizeGeometry g;
  g.params.planes = planes(input, dims);
  g.params.cubic = o.mode == UpsampleMode::bicubic;
  g.output = input;
  for (int d = 0; d < dims; ++d) {
    const Resampling axis = resampling(o, d, in[std::size_t(d)]);
    g.params.axis[kMostDimensions - dims + d] = axis;
    g.output = g.output.with(2 + d, axis.out);
  }
  return g;
}

/// The means of the parts that an input is cut into.
Tensor averaged(const Tensor& input, const ResizeGeometry& g) {
  const auto size = [&](int d) { return g.params.axis[d].out; };
  switch (input.dim()) {
    case 3:
      return functional::adaptive_avg_pool1d(input, {.output_size = size(2)});
    case 4:
      return functional::adaptive_avg_pool2d(input, {.output_size = {size(1), size(2)}});
    default:
      return functional::adaptive_avg_pool3d(input, {.output_size = {size(0), size(1), size(2)}});
  }
}

template <class T>
void write_out(PerDimension<T>& numbers, int dims) {
  if (numbers.count != 1) return;
  std::fill(numbers.values, numbers.values + dims, numbers.values[0]);
  numbers.count = dims;
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor interpolate(const Tensor& input, const UpsampleOptions& options) {
  check_floating(kName, input.dtype());
  const ResizeGeometry g = geometry_of(options, input.shape(), to_string);
  if (options.mode == UpsampleMode::area) return averaged(input, g);
  return autograd::apply(kInterpolate, {input}, g.output, input.dtype(), g.params);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

Upsample::Upsample(UpsampleOptions options) : Layer(options) { check_options(options); }

Shape Upsample::infer(Options& options, std::span<const Shape> inputs) {
  const Shape output = geometry_of(options, inputs[0], batched_text).output;
  write_out(options.size, output.rank() - 2);
  write_out(options.scale_factor, output.rank() - 2);
  return output;
}

// --- fields ---------------------------------------------------------------------------------------------------------

void fields(UpsampleOptions& o, FieldVisitor& visit) {
  visit({"size", "extents of the output; this or scale_factor", kPositive}, o.size);
  visit({"scale_factor", "extents of the output as multiples of the input's, rounded down", kAboveZero},
        o.scale_factor);
  visit({"mode", "which elements of the input make one of the output"}, o.mode);
  visit({"align_corners", "of interpolating modes: keep the outer elements in their places"}, o.align_corners);
  visit({"recompute_scale_factor", "find the places from the sizes instead of from scale_factor"},
        o.recompute_scale_factor);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_upsample_layers(std::vector<LayerType>& types) {
  add_layer<Upsample>(types, "Resizes one to three spatial dimensions: [N, C, ...] -> [N, C, ...].",
                      R"({"scale_factor": [1.5, 2.3], "mode": "bilinear"})", {{2, 3, 4, 5}});
}

}  // namespace taper::nn
