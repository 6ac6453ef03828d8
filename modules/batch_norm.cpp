#include "kernels/batch_norm.hpp"

#include "catalogue.hpp"
#include "core/effect.hpp"
#include "norm.hpp"
#include "taper/nn/norm.hpp"

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::Op;
using kernels::BatchNormParams;
using kernels::Moments;

// --- record ---------------------------------------------------------------------------------------------------------

namespace {

using Call = NormCall<BatchNormParams>;

template <class T>
void batch_norm_forward(const ForwardArgs& args) {
  const auto& call = args.attributes_as<Call>();
  const T* x = args.inputs[0].as<T>();
  Moments* moments = args.aux[0].as<Moments>();
  if (!call.params.fixed) kernels::batch_moments(call.params, x, moments);
  kernels::batch_norm(call.params, x, call.weight<T>(args.inputs), call.bias<T>(args.inputs), moments,
                      args.output.as<T>());
}

template <class T>
void batch_norm_backward(const BackwardArgs& args) {
  const auto& call = args.attributes_as<Call>();
  kernels::batch_norm_backward<T>(call.params, args.output_gradient.as<T>(), args.inputs[0].as<T>(),
                                  call.weight<T>(args.inputs), args.aux[0].as<Moments>(),
                                  call.gradients<T>(args.input_gradients));
}

constexpr Op kBatchNorm{
    .name = "batch_norm",
    .derivative =
        "dx = w / sqrt(var + eps) * (dy - mean(dy) - h * mean(dy * h)), dw = sum of dy * h, db = sum of dy, "
        "h being the normalised x; without the means where running statistics are used",
    .forward = {batch_norm_forward<float>, batch_norm_forward<double>, nullptr},
    .backward = {batch_norm_backward<float>, batch_norm_backward<double>, nullptr},
    .needs = {autograd::needs_input(0) | autograd::needs_input(1), autograd::needs_input(0)}};

// --- checks ---------------------------------------------------------------------------------------------------------

void check_batch_size(const Shape& input) {
  if (input.numel() == input[1])
    fail(ErrorKind::shape, "batch_norm: too few values for each channel in training: expected more than 1, got 1 in ",
         input, "; use a larger batch or eval()");
}

/// The moments that stand for running statistics.
void take_running_stats(const BatchNormParams& p, const Tensor& mean, const Tensor& variance, const Tensor& moments) {
  visit_floating(mean.dtype(), [&]<class T>(Type<T>) {
    const auto take = [](const ForwardArgs& args) {
      kernels::fixed_moments(args.attributes_as<BatchNormParams>(), args.inputs[0].as<T>(), args.inputs[1].as<T>(),
                             args.aux[0].as<Moments>());
    };
    detail::run_effect("take running statistics", take, {mean, variance}, {moments}, p);
  });
}

void check_rank(const char* where, const Shape& input, int spatial_dims, ShapeText text) {
  const int rank = input.rank(), batched = spatial_dims + 2;
  if (rank == batched || (spatial_dims == 1 && rank == 2)) return;
  fail(ErrorKind::shape, where, ": wrong number of dimensions: expected ", spatial_dims == 1 ? "2-D or " : "", batched,
       "-D input with the batch, got ", rank, "-D ", text(input));
}

/// `batches`: as for `update_running_stats`.
Tensor normalised(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, const BatchNormFuncOptions& options, const Tensor& batches) {
  const char* where = kBatchNorm.name;
  check_companions(where, input, running_mean, running_var, weight, bias);
  check_eps(where, options.eps);
  check_momentum(where, options.momentum);
  const bool tracked = running_mean.defined();
  if (!options.training && !tracked)
    fail(ErrorKind::config, where,
         ": running statistics are missing: expected running_mean and running_var outside training, got none");
  if (options.training && options.eps == 0)
    fail(ErrorKind::config, where, ": eps is out of range: expected > 0 in training, got 0");
  const Shape& shape = input.shape();
  if (options.training) check_batch_size(shape);

  const std::int64_t samples = input.numel() > 0 ? shape[0] : 0, channels = shape[1];
  const BatchNormParams params{.samples = samples,
                               .channels = channels,
                               .spatial = shape.slice(2, shape.rank()).numel(),
                               .eps = options.eps,
                               .fixed = !options.training};
  const Tensor moments = new_moments(samples > 0 ? kernels::batch_norm_memory(params) : 0);
  if (!options.training && samples > 0) take_running_stats(params, running_mean, running_var, moments);
  const Tensor y = apply_norm(kBatchNorm, input, weight, bias, params, moments);
  if (options.training && tracked && samples > 0)
    update_running_stats(running_mean, running_var, options.momentum, samples * params.spatial, 1, moments, batches);
  return y;
}

}  // namespace

// --- function -------------------------------------------------------------------------------------------------------

namespace functional {

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, const BatchNormFuncOptions& options) {
  return normalised(input, running_mean, running_var, weight, bias, options, Tensor());
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

template <int N>
BatchNorm<N>::BatchNorm(Options options) : Layer<Options, RunningNorm>(std::move(options)) {
  const Options& o = this->options_;
  this->make_tensors(Options::kType, o.num_features, o.affine, o.affine && o.bias, o.track_running_stats);
}

template <int N>
Tensor BatchNorm<N>::forward(const Tensor& x) {
  const Options& o = this->options_;
  check_rank(Options::kType, x.shape(), N, plain_text);
  check_features(Options::kType, "num_features", x.shape(), x.shape()[1], *o.num_features);
  const bool tracks = this->is_training() && this->running_mean.defined();
  const BatchNormFuncOptions options{.training = this->is_training() || !this->running_mean.defined(),
                                     .momentum = o.momentum.value_or(0),
                                     .eps = o.eps};
  const Tensor y = normalised(x, this->running_mean, this->running_var, this->weight, this->bias, options,
                              tracks && !o.momentum ? this->num_batches_tracked : Tensor());
  if (tracks) {
    const NoGradGuard no_grad;
    this->num_batches_tracked.add_(1);
  }
  return y;
}

template <int N>
Shape BatchNorm<N>::infer(Options& options, std::span<const Shape> inputs) {
  const Shape& input = inputs[0];
  check_rank(Options::kType, input, N, batched_text);
  complete_option(Options::kType, "num_features", options.num_features, input[1], input);
  if (input[1] == 0)
    fail(ErrorKind::shape, Options::kType, ": no channels: expected >= 1, got 0 in ", batched_text(input));
  return input;
}

template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;

// --- fields ---------------------------------------------------------------------------------------------------------

template <int N>
void fields(BatchNormOptions<N>& o, FieldVisitor& visit) {
  running_norm_fields(o, visit, kAboveZero,
                      "share of the newest batch in the running statistics; null: that of every batch");
}

template void fields(BatchNormOptions<1>&, FieldVisitor&);
template void fields(BatchNormOptions<2>&, FieldVisitor&);
template void fields(BatchNormOptions<3>&, FieldVisitor&);

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_batch_norm_layers(std::vector<LayerType>& types) {
  const char* example = R"({"num_features": 5, "eps": 0.01, "momentum": 0.3})";
  add_layer<BatchNorm1d>(types, "Normalises each channel over the batch: [N, C] -> [N, C], [N, C, L] -> [N, C, L].",
                         example, {{3, 5, 7}});
  add_layer<BatchNorm2d>(types, "Normalises each channel over the batch: [N, C, H, W] -> [N, C, H, W].", example,
                         {{2, 5, 3, 4}});
  add_layer<BatchNorm3d>(types, "Normalises each channel over the batch: [N, C, D, H, W] -> [N, C, D, H, W].", example,
                         {{2, 5, 3, 2, 4}});
}

}  // namespace taper::nn
