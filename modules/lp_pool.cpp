#include "taper/nn/lp_pool.hpp"

#include <cmath>

#include "base/window.hpp"
#include "catalogue.hpp"
#include "pool_geometry.hpp"
#include "spatial.hpp"
#include "taper/nn/max_pool.hpp"
#include "taper/nn/pool.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

// --- geometry, for any number of spatial dimensions -----------------------------------------------------------------

namespace {

constexpr const char* kNames[] = {"lp_pool1d", "lp_pool2d", "lp_pool3d"};

template <class O>
constexpr const char* kPoolName = kNames[O::kDims - 1];

template <class O>
std::array<Window1d, O::kDims> windows_of(const O& options) {
  const auto windows = checked_windows(kPoolName<O>, WindowKind::average_pool, options);
  if (options.norm_type == 0 || std::isnan(options.norm_type))
    fail(ErrorKind::config, kPoolName<O>, ": norm_type must be a number other than 0: expected one, got ",
         options.norm_type);
  return windows;
}

template <class O>
double volume(const O& options) {
  double product = 1;
  for (const std::int64_t k : options.kernel_size.values) product *= double(k);
  return product;
}

template <class O>
Shape output_shape(const O& options, const Shape& input) {
  constexpr int N = O::kDims;
  const auto windows = windows_of(options);
  check_spatial_input(kPoolName<O>, input, N);
  std::array<std::int64_t, N> out;
  output_size(kPoolName<O>, windows, WindowKind::average_pool, {input.end() - N, std::size_t(N)}, out);
  return with_last(input, out);
}

/// The average of each window.
template <int N>
Tensor average(const Tensor& x, const LPPoolOptions<N>& o) {
  if constexpr (N == 1)
    return functional::avg_pool1d(x, {.kernel_size = o.kernel_size, .stride = o.stride, .ceil_mode = o.ceil_mode});
  else if constexpr (N == 2)
    return functional::avg_pool2d(x, {.kernel_size = o.kernel_size, .stride = o.stride, .ceil_mode = o.ceil_mode});
  else
    return functional::avg_pool3d(x, {.kernel_size = o.kernel_size, .stride = o.stride, .ceil_mode = o.ceil_mode});
}

/// The maximum of each window.
template <int N>
Tensor maximum(const Tensor& x, const LPPoolOptions<N>& o) {
  const MaxPoolOptions<N> options{.kernel_size = o.kernel_size, .stride = o.stride, .ceil_mode = o.ceil_mode};
  if constexpr (N == 1)
    return functional::max_pool1d(x, options);
  else if constexpr (N == 2)
    return functional::max_pool2d(x, options);
  else
    return functional::max_pool3d(x, options);
}

template <class O>
Tensor pool_powers(const Tensor& x, const O& options) {
  check_floating(kPoolName<O>, x.dtype());
  output_shape(options, x.shape());
  if (std::isinf(options.norm_type))
    return options.norm_type > 0 ? maximum(abs(x), options) : neg(maximum(neg(abs(x)), options));
  const Tensor mean = average(pow(x, options.norm_type), options);
  // sign * relu(abs) is the mean itself; its gradient at 0 is 0, where the root's is infinite.
  return pow(sign(mean) * relu(abs(mean)) * volume(options), 1 / options.norm_type);
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor lp_pool1d(const Tensor& input, const LPPool1dOptions& options) { return pool_powers(input, options); }
Tensor lp_pool2d(const Tensor& input, const LPPool2dOptions& options) { return pool_powers(input, options); }
Tensor lp_pool3d(const Tensor& input, const LPPool3dOptions& options) { return pool_powers(input, options); }

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

template <class O>
PowerPool<O>::PowerPool(O options) : Layer<O>(std::move(options)) {
  windows_of(this->options_);
}

template <class O>
Tensor PowerPool<O>::forward(const Tensor& x) {
  return pool_powers(x, this->options_);
}

template <class O>
Shape PowerPool<O>::infer(O& options, std::span<const Shape> inputs) {
  return output_shape(options, inputs[0]);
}

template <class O>
PoolDescription PowerPool<O>::describe(const Sizes<O::kDims>& input) const {
  const bool averages = std::isfinite(this->options_.norm_type);
  return describe_sliding(
      {.layer = this->to_string(), .averages = averages, .multiplier = averages ? volume(this->options_) : 1},
      kPoolName<O>, windows_of(this->options_), WindowKind::average_pool, input.values);
}

template class PowerPool<LPPool1dOptions>;
template class PowerPool<LPPool2dOptions>;
template class PowerPool<LPPool3dOptions>;

// --- fields ---------------------------------------------------------------------------------------------------------

template <int N>
void fields(LPPoolOptions<N>& o, FieldVisitor& visit) {
  visit({"norm_type", "the power p of (sum of x^p)^(1/p), not 0", kAny, true}, o.norm_type);
  visit({"kernel_size", "extent of the window", kPositive, true}, o.kernel_size);
  visit({"stride", "distance between windows; null: the kernel size", kPositive}, o.stride);
  visit({"ceil_mode", "round the output size up instead of down"}, o.ceil_mode);
}
template void fields(LPPool1dOptions&, FieldVisitor&);
template void fields(LPPool2dOptions&, FieldVisitor&);
template void fields(LPPool3dOptions&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_lp_pool_layers(std::vector<LayerType>& types) {
  add_layer<LPPool1d>(types, "The power mean of windows over the last dimension: [N, C, L] -> [N, C, L'].",
                      R"({"norm_type": 2, "kernel_size": 3, "stride": 2})", {{2, 3, 11}});
  add_layer<LPPool2d>(types, "The power mean of windows over height and width: [N, C, H, W] -> [N, C, H', W'].",
                      R"({"norm_type": 2, "kernel_size": [2, 3], "stride": [2, 1]})", {{2, 3, 7, 5}});
  add_layer<LPPool3d>(types,
                      "The power mean of windows over depth, height and width: [N, C, D, H, W] -> [N, C, D', H', W'].",
                      R"({"norm_type": 2, "kernel_size": [2, 3, 2], "stride": [1, 2, 3]})", {{2, 3, 3, 5, 7}});
}

}  // namespace taper::nn
