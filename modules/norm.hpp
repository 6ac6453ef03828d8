#pragma once

#include "core/dispatch.hpp"
#include "kernels/row_norm.hpp"
#include "spatial.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/norm.hpp"

// What the norms share.
namespace taper::nn {

// --- records --------------------------------------------------------------------------------------------------------

/// Attributes of a norm's node: inputs are x, then the weight and the bias, each if there is one.
template <class Params>
struct NormCall {
  Params params;
  bool weighted = false, biased = false;

  template <class T>
  const T* weight(std::span<const autograd::Operand> inputs) const {
    return weighted ? inputs[1].as<T>() : nullptr;
  }
  template <class T>
  const T* bias(std::span<const autograd::Operand> inputs) const {
    return biased ? inputs[weighted ? 2 : 1].as<T>() : nullptr;
  }
  template <class T>
  kernels::NormGradients<T> gradients(std::span<const autograd::GradientSlot> slots) const {
    const autograd::GradientSlot dx = slots[0], dw = weighted ? slots[1] : autograd::GradientSlot{},
                                 db = biased ? slots[weighted ? 2 : 1] : autograd::GradientSlot{};
    return {dx.as<T>(), dw.as<T>(), db.as<T>(), dx.add, dw.add, db.add};
  }
};

/// Calls `body(Type<T>())` with the C++ type of a floating `dtype`.
template <class Body>
void visit_floating(DType dtype, const Body& body) {
  dtype == DType::float32 ? body(Type<float>()) : body(Type<double>());
}

/// Memory for `n` moments, as an auxiliary array of a record.
inline Tensor new_moments(std::int64_t n) {
  static_assert(sizeof(kernels::Moments) == 4 * sizeof(double));
  return empty({n, 4}, DType::float64);
}

/// Records one norm; a weight or bias that is not defined is left out.
template <class Params>
Tensor apply_norm(const autograd::Op& op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Params& params, const Tensor& moments) {
  const NormCall<Params> call{params, weight.defined(), bias.defined()};
  const autograd::Input inputs[] = {input, call.weighted ? weight : bias, bias};
  const std::size_t count = 1 + std::size_t(call.weighted) + std::size_t(call.biased);
  const autograd::Input aux[] = {moments};
  return autograd::apply(op, {inputs, count}, input.shape(), input.dtype(), &call, sizeof call, aux);
}

template <class T>
void row_norm_forward(const autograd::ForwardArgs& args);
template <class T>
void row_norm_backward(const autograd::BackwardArgs& args);

/// The record of a norm by rows.
constexpr autograd::Op row_norm_op(const char* name, const char* derivative) {
  return {.name = name,
          .derivative = derivative,
          .forward = {row_norm_forward<float>, row_norm_forward<double>, nullptr},
          .backward = {row_norm_backward<float>, row_norm_backward<double>, nullptr},
          .needs = {autograd::needs_input(0) | autograd::needs_input(1), autograd::needs_input(0)}};
}

// --- checks ---------------------------------------------------------------------------------------------------------

/// Refuses eps below 0. Errors: `ErrorKind::config`.
void check_eps(const char* where, double eps);
/// Refuses momentum outside [0, 1]. Errors: `ErrorKind::config`.
void check_momentum(const char* where, double momentum);
/// Refuses a weight, bias or running statistic of another shape or type; undefined ones are fine. `fits` says what the
/// shape should fit. Errors: `ErrorKind::shape`, `ErrorKind::type`.
void check_companion(const char* where, const char* what, const Tensor& tensor, const Tensor& input,
                     const Shape& expected, const char* fits);
/// Refuses other than [N, C, *] with at least one channel. Errors: `ErrorKind::shape`, `ErrorKind::type`.
void check_channels(const char* where, const Tensor& input);
/// Refuses running statistics of which only one is there, or that do not fit.
void check_running(const char* where, const Tensor& mean, const Tensor& variance, const Tensor& input);
/// Weight, bias and running statistics [C].
void check_companions(const char* where, const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                      const Tensor& weight, const Tensor& bias);
/// Refuses a layer's input whose channels are not the option's. Errors: `ErrorKind::shape`.
void check_features(const char* where, const char* key, const Shape& input, std::int64_t channels, std::int64_t option);

/// Moves running statistics towards `samples` * C moments of `count` elements each; `momentum` is the new share. Given
/// the number of `batches` before this one, an int64 scalar, the share is that of one batch instead.
void update_running_stats(const Tensor& mean, const Tensor& variance, double momentum, std::int64_t count,
                          std::int64_t samples, const Tensor& moments, const Tensor& batches = Tensor());

/// The fields of batch and instance norm, in PyTorch's order.
template <class Options>
void running_norm_fields(Options& o, FieldVisitor& visit, const Rule& eps, const char* momentum_help) {
  visit({"num_features", "channels of the input; null: inferred", kPositive}, o.num_features);
  visit({"eps", "added to the variance", eps}, o.eps);
  visit({"momentum", momentum_help, kProbability}, o.momentum);
  visit({"affine", "multiply by a learned weight and add a learned bias, one for each channel"}, o.affine);
  visit({"track_running_stats", "keep running statistics for evaluation"}, o.track_running_stats);
  visit({"bias", "with affine: have a bias"}, o.bias);
}

}  // namespace taper::nn
