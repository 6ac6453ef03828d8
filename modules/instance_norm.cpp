#include "catalogue.hpp"
#include "norm.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

using autograd::Op;
using kernels::RowNormParams;

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

constexpr Op kInstanceNorm = row_norm_op(
    "instance_norm",
    "dx = w / sqrt(var + eps) * (dy - mean(dy) - h * mean(dy * h)), dw = sum of dy * h, db = sum of dy, h being the "
    "normalised x and the means those over one channel of one sample");

// --- checks ---------------------------------------------------------------------------------------------------------

void check_spatial_size(const char* where, const Shape& input, ShapeText text) {
  if (input.slice(2, input.rank()).numel() == 1)
    fail(ErrorKind::shape, where, ": too few values for each channel of a sample: expected more than 1, got 1 in ",
         text(input));
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor instance_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, const InstanceNormFuncOptions& options) {
  const char* where = kInstanceNorm.name;
  check_companions(where, input, running_mean, running_var, weight, bias);
  check_eps(where, options.eps);
  check_momentum(where, options.momentum);
  const bool tracked = running_mean.defined();
  if (!options.use_input_stats) {
    if (!tracked)
      fail(ErrorKind::config, where,
           ": running statistics are missing: expected running_mean and running_var without use_input_stats, got none");
    return batch_norm(input, running_mean, running_var, weight, bias, {.training = false, .eps = options.eps});
  }
  const Shape& shape = input.shape();
  const Shape spatial = shape.slice(2, shape.rank());
  check_spatial_size(where, shape, plain_text);

  const std::int64_t samples = input.numel() > 0 ? shape[0] : 0;
  const RowNormParams params{
      .samples = samples, .groups = shape[1], .channels = 1, .spatial = spatial.numel(), .eps = options.eps};
  const Tensor moments = new_moments(kernels::row_norm_memory(params));
  const Tensor y = apply_norm(kInstanceNorm, input, weight, bias, params, moments);
  if (tracked && samples > 0)
    update_running_stats(running_mean, running_var, options.momentum, spatial.numel(), samples, moments);
  return y;
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

template <int N>
InstanceNorm<N>::InstanceNorm(Options options) : Layer<Options, RunningNorm>(std::move(options)) {
  const Options& o = this->options_;
  this->make_tensors(Options::kType, o.num_features, o.affine, o.affine && o.bias, o.track_running_stats);
}

template <int N>
Tensor InstanceNorm<N>::forward(const Tensor& x) {
  const Options& o = this->options_;
  const Shape& shape = x.shape();
  check_spatial_input(Options::kType, shape, N);
  const bool batched = shape.rank() == N + 2;
  check_features(Options::kType, "num_features", shape, shape[batched ? 1 : 0], *o.num_features);
  const Tensor y = functional::instance_norm(
      batched ? x : x.unsqueeze(0), this->running_mean, this->running_var, this->weight, this->bias,
      {.use_input_stats = this->is_training() || !o.track_running_stats, .momentum = o.momentum, .eps = o.eps});
  return batched ? y : y.squeeze(0);
}

template <int N>
Shape InstanceNorm<N>::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& input = inputs[0];
  complete_channels(Options::kType, "num_features", options.num_features, input, N);
  if (!options.track_running_stats) check_spatial_size(Options::kType, input, batched_text);
  return input;
}

template class InstanceNorm<1>;
template class InstanceNorm<2>;
template class InstanceNorm<3>;

// --- fields ---------------------------------------------------------------------------------------------------------

template <int N>
void fields(InstanceNormOptions<N>& o, FieldVisitor& visit) {
  running_norm_fields(o, visit, kNonNegative, "share of the newest batch in the running statistics");
}

template void fields(InstanceNormOptions<1>&, FieldVisitor&);
template void fields(InstanceNormOptions<2>&, FieldVisitor&);
template void fields(InstanceNormOptions<3>&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_instance_norm_layers(std::vector<LayerType>& types) {
  const char* example = R"({"num_features": 5, "eps": 0.01, "affine": true})";
  add_layer<InstanceNorm1d>(types, "Normalises each channel of each sample: [N, C, L] -> [N, C, L].", example,
                            {{2, 5, 7}});
  add_layer<InstanceNorm2d>(types, "Normalises each channel of each sample: [N, C, H, W] -> [N, C, H, W].", example,
                            {{2, 5, 3, 4}});
  add_layer<InstanceNorm3d>(types, "Normalises each channel of each sample: [N, C, D, H, W] -> [N, C, D, H, W].",
                            example, {{2, 5, 3, 2, 4}});
}

}  // namespace taper::nn
