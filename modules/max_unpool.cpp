#include "taper/nn/max_unpool.hpp"

#include "base/checked.hpp"
#include "base/window.hpp"
#include "catalogue.hpp"
#include "core/effect.hpp"
#include "kernels/index.hpp"
#include "kernels/max_unpool.hpp"
#include "pool_geometry.hpp"
#include "taper/autograd.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using kernels::MaxUnpoolParams;

// --- records --------------------------------------------------------------------------------------------------------

namespace {

template <class T>
void max_unpool_forward(const ForwardArgs& args) {
  kernels::max_unpool(args.attributes_as<MaxUnpoolParams>(), args.inputs[0].as<T>(), args.inputs[1].as<std::int64_t>(),
                      args.output.as<T>());
}
template <class T>
void max_unpool_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::max_unpool_backward(args.attributes_as<MaxUnpoolParams>(), args.output_gradient.as<T>(),
                               args.inputs[1].as<std::int64_t>(), dx.as<T>(), dx.add);
}

constexpr Op unpool_op(const char* name) {
  return {.name = name,
          .derivative = "dx_i = dy_index_i",
          .forward = {max_unpool_forward<float>, max_unpool_forward<double>, nullptr},
          .backward = {max_unpool_backward<float>, max_unpool_backward<double>, nullptr},
          .needs = {autograd::needs_input(1)}};
}

constexpr Op kUnpool[] = {unpool_op("max_unpool1d"), unpool_op("max_unpool2d"), unpool_op("max_unpool3d")};

// --- geometry, for any number of spatial dimensions -----------------------------------------------------------------

template <int N>
constexpr const char* function_name(const MaxUnpoolOptions<N>&) {
  return kUnpool[N - 1].name;
}

template <int N>
void check(const MaxUnpoolOptions<N>& options) {
  // as of the max pool that is inverted, whose padding a max pool would still check
  check_options(function_name(options), sliding_windows(options), WindowKind::convolution);
  if (!options.output_size) return;
  for (const std::int64_t size : options.output_size->values)
    if (size < 1)
      fail(ErrorKind::config, function_name(options), ": output_size must be positive: expected >= 1, got ", size);
}

std::string in_dimension(int d, int n) { return n > 1 ? cat(" in dimension ", d) : ""; }

/// (length - 1) stride - 2 padding + kernel, or nothing where that leaves 64 bits.
std::optional<std::int64_t> default_size(const Window1d& w, std::int64_t length) {
  const auto travel = checked::mul(length - 1, w.stride), padding = checked::mul(w.padding_left, 2);
  const auto reach = travel ? checked::add(*travel, w.kernel) : std::nullopt;
  return reach && padding ? checked::sub(*reach, *padding) : std::nullopt;
}

/// The output's extent in dimension `d` over an input of `length`.
template <int N>
std::int64_t output_extent(const MaxUnpoolOptions<N>& options, const Window1d& w, std::int64_t length, int d) {
  const char* where = function_name(options);
  const auto size = default_size(w, length);
  if (!size)
    fail(ErrorKind::shape, where, ": output size overflows 64 bits: expected a size below 2^63, got input size ",
         length, " and stride ", w.stride, in_dimension(d, N));
  if (options.output_size) {
    const std::int64_t wanted = (*options.output_size)[d];
    const std::int64_t least = std::max<std::int64_t>(checked::sub(*size, w.stride - 1).value_or(1), 1);
    const std::int64_t most = checked::add(*size, w.stride - 1).value_or(wanted);
    if (wanted < least || wanted > most)
      fail(ErrorKind::shape, where, ": output_size does not fit the input: expected ", least, " to ", most, ", got ",
           wanted, in_dimension(d, N), "; input size ", length);
    return wanted;
  }
  if (*size < 1)
    fail(ErrorKind::shape, where, ": output size is too small: expected >= 1, got ", *size, in_dimension(d, N),
         "; input size ", length, ", kernel_size ", w.kernel, ", stride ", w.stride, ", padding ", w.padding_left);
  return *size;
}

template <int N>
Shape output_shape(const MaxUnpoolOptions<N>& options, const Shape& input) {
  check(options);
  check_spatial_input(function_name(options), input, N);
  const std::span<const std::int64_t> in(input.end() - N, std::size_t(N));
  check_adaptive_input(function_name(options), in);
  const auto windows = sliding_windows(options);
  std::array<std::int64_t, N> out;
  for (int d = 0; d < N; ++d)
    out[std::size_t(d)] = output_extent(options, windows[std::size_t(d)], in[std::size_t(d)], d);
  return with_last(input, out);
}

struct IndexCheck {
  const char* where;
  std::int64_t out;
};

void check_places(const ForwardArgs& args) {
  const auto [where, out] = args.attributes_as<IndexCheck>();
  const auto* values = args.inputs[0].as<std::int64_t>();
  const std::int64_t bad = kernels::find_bad_index(values, args.inputs[0].numel, out);
  if (bad >= 0)
    fail(ErrorKind::shape, where, ": index out of range: expected 0 to ", out - 1, ", got ", values[bad],
         " for element ", bad);
}

/// Refuses indices that are not whole numbers, one for each element of the input, within a plane of the output.
void check_indices(const char* where, const Tensor& indices, const Shape& input, const MaxUnpoolParams& p) {
  if (indices.dtype() != DType::int64)
    fail(ErrorKind::type, where, ": indices must be whole numbers: expected int64, got ", indices.dtype());
  if (!(indices.shape() == input))
    fail(ErrorKind::shape, where, ": indices do not fit the input: expected ", input, ", got ", indices.shape());
  detail::run_effect("check index", check_places, {indices}, {}, IndexCheck{where, p.out});
}

template <int N>
Tensor unpool(const Tensor& input, const Tensor& indices, const MaxUnpoolOptions<N>& options) {
  const Op& op = kUnpool[N - 1];
  check_floating(op.name, input.dtype());
  const Shape output = output_shape(options, input.shape());
  const auto extent = [](const Shape& shape) { return shape.slice(shape.rank() - N, shape.rank()).numel(); };
  const MaxUnpoolParams params{planes(input.shape(), N), extent(input.shape()), extent(output)};
  check_indices(op.name, indices, input.shape(), params);
  return apply(op, {input, indices}, output, input.dtype(), params);
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dOptions& options) {
  return unpool(input, indices, options);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dOptions& options) {
  return unpool(input, indices, options);
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dOptions& options) {
  return unpool(input, indices, options);
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

template <int N>
MaxUnpool<N>::MaxUnpool(Options options) : Layer<Options>(options) {
  check(options);
}

template <int N>
Tensor MaxUnpool<N>::forward(const Tensor& input, const Tensor& indices) {
  return unpool(input, indices, this->options_);
}

template <int N>
Tensor MaxUnpool<N>::forward(const Tensor& input, const Tensor& indices, const Sizes<N>& output_size) {
  Options options = this->options_;
  options.output_size = output_size;
  return unpool(input, indices, options);
}

template <int N>
Tensor MaxUnpool<N>::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() != 2)
    fail(ErrorKind::config, Options::kType, ": takes an input and its indices: expected 2, got ", inputs.size());
  return forward(inputs[0], inputs[1]);
}

template <int N>
Shape MaxUnpool<N>::infer(Options& options, std::span<const Shape> inputs) {
  const Shape output = output_shape(options, inputs[0]);
  if (!(inputs[1] == inputs[0]))
    fail(ErrorKind::shape, function_name(options), ": indices do not fit the input: expected ", batched_text(inputs[0]),
         ", got ", batched_text(inputs[1]));
  return output;
}

template class MaxUnpool<1>;
template class MaxUnpool<2>;
template class MaxUnpool<3>;

// --- fields ---------------------------------------------------------------------------------------------------------

template <int N>
void fields(MaxUnpoolOptions<N>& o, FieldVisitor& visit) {
  visit({"kernel_size", "extent of the max pool's window", kPositive, true}, o.kernel_size);
  visit({"stride", "distance between its windows; null: the kernel size", kPositive}, o.stride);
  visit({"padding", "its padding on both sides", kNonNegative}, o.padding);
  visit({"output_size", "extents of the output, each less than a stride off; null: what the other options say",
         kPositive},
        o.output_size);
}

template void fields(MaxUnpool1dOptions&, FieldVisitor&);
template void fields(MaxUnpool2dOptions&, FieldVisitor&);
template void fields(MaxUnpool3dOptions&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_max_unpool_layers(std::vector<LayerType>& types) {
  add_layer<MaxUnpool1d>(types,
                         "Puts elements where a max pool found them, among zeros: [N, C, L], [N, C, L] -> [N, C, L'].",
                         R"({"kernel_size": 3})", {{2, 3, 11}, {2, 3, 11}}, 2, 2);
  add_layer<MaxUnpool2d>(
      types, "Puts elements where a max pool found them, among zeros: [N, C, H, W], [N, C, H, W] -> [N, C, H', W'].",
      R"({"kernel_size": [3, 2], "stride": [3, 1], "padding": [1, 0], "output_size": [9, 6]})",
      {{2, 3, 3, 5}, {2, 3, 3, 5}}, 2, 2);
  add_layer<MaxUnpool3d>(types,
                         "Puts elements where a max pool found them, among zeros: [N, C, D, H, W], [N, C, D, H, W] -> "
                         "[N, C, D', H', W'].",
                         R"({"kernel_size": [2, 3, 5]})", {{2, 3, 2, 3, 1}, {2, 3, 2, 3, 1}}, 2, 2);
}

}  // namespace taper::nn
