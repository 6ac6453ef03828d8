#pragma once

#include "spatial.hpp"
#include "taper/autograd.hpp"

// What operations of an input, a weight and a bias that may be missing share.
namespace taper::nn {

/// The bias, null where there is none.
template <class T>
const T* bias_of(const autograd::ForwardArgs& args) {
  return args.inputs.size() > 2 ? args.inputs[2].as<T>() : nullptr;
}

/// Where the bias's gradient goes; nowhere when there is no bias.
inline const autograd::GradientSlot& bias_gradient(const autograd::BackwardArgs& args) {
  static constexpr autograd::GradientSlot none{};
  return args.input_gradients.size() > 2 ? args.input_gradients[2] : none;
}

/// Refuses a bias that is not [out_channels] floating numbers. Errors: `ErrorKind::shape`, `ErrorKind::type`.
inline void check_bias(const char* where, const Tensor& bias, std::int64_t out_channels) {
  check_floating(where, bias.dtype());
  if (!(bias.shape() == Shape{out_channels}))
    fail(ErrorKind::shape, where, ": bias does not fit the weight: expected [", out_channels, "], got ", bias.shape());
}

/// Records an operation; a bias that is not defined is left out.
template <class Params>
Tensor apply_with_bias(const autograd::Op& op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Shape& output, const Params& params) {
  if (!bias.defined()) return autograd::apply(op, {input, weight}, output, input.dtype(), params);
  return autograd::apply(op, {input, weight, bias}, output, input.dtype(), params);
}

}  // namespace taper::nn
