#include "taper/nn/norm.hpp"

#include "norm.hpp"

#include "core/effect.hpp"
#include "kernels/batch_norm.hpp"

namespace taper::nn {

using autograd::BackwardArgs;
using autograd::ForwardArgs;
using kernels::Moments;
using kernels::RowNormParams;

// --- records --------------------------------------------------------------------------------------------------------

template <class T>
void row_norm_forward(const ForwardArgs& args) {
  const auto& call = args.attributes_as<NormCall<RowNormParams>>();
  kernels::row_norm(call.params, args.inputs[0].as<T>(), call.weight<T>(args.inputs), call.bias<T>(args.inputs),
                    args.aux[0].as<Moments>(), args.output.as<T>());
}

template <class T>
void row_norm_backward(const BackwardArgs& args) {
  const auto& call = args.attributes_as<NormCall<RowNormParams>>();
  kernels::row_norm_backward<T>(call.params, args.output_gradient.as<T>(), args.inputs[0].as<T>(),
                                call.weight<T>(args.inputs), args.aux[0].as<Moments>(),
                                call.gradients<T>(args.input_gradients));
}

template void row_norm_forward<float>(const ForwardArgs&);
template void row_norm_forward<double>(const ForwardArgs&);
template void row_norm_backward<float>(const BackwardArgs&);
template void row_norm_backward<double>(const BackwardArgs&);

// --- checks ---------------------------------------------------------------------------------------------------------

void check_eps(const char* where, double eps) {
  if (!(eps >= 0)) fail(ErrorKind::config, where, ": eps is out of range: expected >= 0, got ", eps);
}

void check_momentum(const char* where, double momentum) {
  if (!(momentum >= 0 && momentum <= 1))
    fail(ErrorKind::config, where, ": momentum is out of range: expected 0 to 1, got ", momentum);
}

void check_companion(const char* where, const char* what, const Tensor& tensor, const Tensor& input,
                     const Shape& expected, const char* fits) {
  if (!tensor.defined()) return;
  check_floating(where, tensor.dtype());
  if (!(tensor.shape() == expected))
    fail(ErrorKind::shape, where, ": ", what, " does not fit ", fits, ": expected ", expected, ", got ",
         tensor.shape());
  if (tensor.dtype() != input.dtype())
    fail(ErrorKind::type, where, ": element types differ: expected ", input.dtype(), ", got ", tensor.dtype(), " of ",
         what, "; convert with to()");
}

void check_channels(const char* where, const Tensor& input) {
  check_floating(where, input.dtype());
  const Shape& shape = input.shape();
  if (shape.rank() < 2)
    fail(ErrorKind::shape, where, ": wrong number of dimensions: expected at least 2-D input, got ", shape.rank(),
         "-D ", shape);
  if (shape[1] == 0) fail(ErrorKind::shape, where, ": no channels: expected >= 1, got 0 in ", shape);
}

void check_companions(const char* where, const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                      const Tensor& weight, const Tensor& bias) {
  check_channels(where, input);
  if (running_mean.defined() != running_var.defined())
    fail(ErrorKind::config, where, ": one of the running statistics is missing: expected running_mean and running_var,",
         " got ", running_mean.defined() ? "running_mean" : "running_var", " alone");
  const Shape channels{input.shape()[1]};
  check_companion(where, "running_mean", running_mean, input, channels, "the channels");
  check_companion(where, "running_var", running_var, input, channels, "the channels");
  check_companion(where, "weight", weight, input, channels, "the channels");
  check_companion(where, "bias", bias, input, channels, "the channels");
}

void check_features(const char* where, const char* key, const Shape& input, std::int64_t channels,
                    std::int64_t option) {
  if (channels != option)
    fail(ErrorKind::shape, where, ": input does not fit ", key, ": expected ", option, " channels, got ", channels,
         " in ", input);
}

namespace {

struct RunningUpdate {
  double momentum;
  std::int64_t count, samples;
  bool counted;  ///< the momentum follows from the number of batches
};

template <class T>
void update_running(const autograd::ForwardArgs& args) {
  const auto& u = args.attributes_as<RunningUpdate>();
  const double share = u.counted ? 1 / (double(*args.inputs[3].as<std::int64_t>()) + 1) : u.momentum;
  kernels::update_running(share, u.count, u.samples, args.aux[0].numel, args.inputs[0].as<kernels::Moments>(),
                          args.aux[0].as<T>(), args.aux[1].as<T>());
}

}  // namespace

void update_running_stats(const Tensor& mean, const Tensor& variance, double momentum, std::int64_t count,
                          std::int64_t samples, const Tensor& moments, const Tensor& batches) {
  const bool counted = batches.defined();
  const auto update = mean.dtype() == DType::float32 ? update_running<float> : update_running<double>;
  detail::run_effect("update running statistics", update, {moments, mean, variance, counted ? batches : moments},
                     {mean, variance}, RunningUpdate{momentum, count, samples, counted});
}

// --- layers ---------------------------------------------------------------------------------------------------------

void RunningNorm::make_tensors(const char* type, const std::optional<std::int64_t>& num_features, bool weighted,
                               bool biased, bool tracked) {
  const std::int64_t channels = given(type, "num_features", num_features);
  if (weighted) weight = ones({channels});
  if (biased) bias = zeros({channels});
  if (tracked) {
    running_mean = zeros({channels});
    running_var = ones({channels});
    num_batches_tracked = zeros({}, DType::int64);
  }
  register_parameter("weight", weight);
  register_parameter("bias", bias);
  register_buffer("running_mean", running_mean);
  register_buffer("running_var", running_var);
  register_buffer("num_batches_tracked", num_batches_tracked);
}

void RunningNorm::reset_running_stats() {
  if (!running_mean.defined()) return;
  const NoGradGuard no_grad;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

}  // namespace taper::nn
