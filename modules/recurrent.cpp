#include "recurrent.hpp"

#include <cmath>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Input;
using autograd::needs_input;
using autograd::Op;
using kernels::RecurrentInputs;
using kernels::RecurrentParams;

// --- records --------------------------------------------------------------------------------------------------------

namespace {

// The inputs of an operation in order: x, w_ih, w_hh, h0, c0 for LSTM, w_hr with a projection, both biases or none.

constexpr std::size_t kProjection = 5;

std::size_t first_bias(const RecurrentParams& p) { return 4 + (has_c(p.cell) ? 1 : 0) + (p.proj_size > 0 ? 1 : 0); }

std::int64_t rows_of(const RecurrentParams& p) { return p.steps * p.batch; }

template <class T>
RecurrentInputs<T> inputs_of(const RecurrentParams& p, std::span<const autograd::Operand> inputs) {
  const std::size_t biases = first_bias(p);
  const bool bias = inputs.size() > biases;
  return {.x = inputs[0].as<T>(),
          .w_ih = inputs[1].as<T>(),
          .w_hh = inputs[2].as<T>(),
          .b_ih = bias ? inputs[biases].as<T>() : nullptr,
          .b_hh = bias ? inputs[biases + 1].as<T>() : nullptr,
          .h0 = inputs[3].as<T>(),
          .c0 = has_c(p.cell) ? inputs[4].as<T>() : nullptr,
          .w_hr = p.proj_size > 0 ? inputs[kProjection].as<T>() : nullptr};
}

/// The last c inside an output or its gradient; null where it is not part of it.
template <class T>
T* last_c(const RecurrentParams& p, const autograd::Operand& output) {
  const std::int64_t y = rows_of(p) * p.state_size();
  return output.numel > y ? output.as<T>() + y : nullptr;
}

template <class T>
void recurrent_forward(const ForwardArgs& args) {
  const auto& p = args.attributes_as<RecurrentParams>();
  T* const c_n = args.aux.size() > 1 ? args.aux[1].as<T>() : last_c<T>(p, args.output);
  kernels::recurrent_forward(p, inputs_of<T>(p, args.inputs), args.output.as<T>(), c_n, args.aux[0].as<T>());
}

template <class T>
void recurrent_backward(const BackwardArgs& args) {
  const auto& p = args.attributes_as<RecurrentParams>();
  const auto gradient = [&](std::size_t i, bool exists = true) -> kernels::RecurrentGradient<T> {
    if (!exists || i >= args.input_gradients.size()) return {};
    const GradientSlot& slot = args.input_gradients[i];
    return {slot.as<T>(), slot.add};
  };
  const std::size_t biases = first_bias(p);
  kernels::recurrent_backward(p, inputs_of<T>(p, args.inputs), args.output.as<T>(), args.output_gradient.as<T>(),
                              last_c<T>(p, args.output_gradient), args.aux[0].as<T>(),
                              {.x = gradient(0),
                               .w_ih = gradient(1),
                               .w_hh = gradient(2),
                               .b_ih = gradient(biases),
                               .b_hh = gradient(biases + 1),
                               .h0 = gradient(3),
                               .c0 = gradient(4, has_c(p.cell)),
                               .w_hr = gradient(kProjection, p.proj_size > 0)});
}

/// Going back in time reads W_hh, the further inputs (the states before the first step, the projection) and every h.
constexpr std::uint32_t through_time(int further) {
  std::uint32_t inputs = needs_input(2);
  for (int i = 0; i < further; ++i) inputs |= needs_input(3 + i);
  return inputs | autograd::kNeedsOutput;
}

constexpr Op record(const char* name, const char* derivative, int further) {
  const std::uint32_t common = through_time(further);
  return {.name = name,
          .derivative = derivative,
          .forward = {recurrent_forward<float>, recurrent_forward<double>, nullptr},
          .backward = {recurrent_backward<float>, recurrent_backward<double>, nullptr},
          .needs = {common | needs_input(1), common | needs_input(0), common, common}};
}

constexpr Op kTanh =
    record("rnn_tanh", "da_t = (dy_t + W_hh^T da_{t+1}) (1 - h_t^2), dx = W_ih^T da, dW_hh = sum da_t h_{t-1}^T", 1);
constexpr Op kRelu =
    record("rnn_relu", "da_t = (dy_t + W_hh^T da_{t+1}) [h_t > 0], dx = W_ih^T da, dW_hh = sum da_t h_{t-1}^T", 1);
constexpr Op kLstm = record("lstm",
                            "dc_t = dc_{t+1} f_{t+1} + dh_t o_t (1 - tanh(c_t)^2), da_i = dc g i (1 - i), "
                            "da_f = dc c_{t-1} f (1 - f), da_g = dc i (1 - g^2), da_o = dh tanh(c) o (1 - o)",
                            2);
constexpr Op kProjectedLstm = record("lstm",
                                     "as without a projection, with W_hr^T dh_t in place of dh_t; dW_hr = sum dh_t "
                                     "(o_t tanh(c_t))^T",
                                     3);
constexpr Op kGru = record("gru",
                           "da_n = dh (1 - z) (1 - n^2), da_z = dh (h_{t-1} - n) z (1 - z), "
                           "da_r = da_n (W_hn h_{t-1} + b_hn) r (1 - r), dh_{t-1} = dh z + W_hh^T da",
                           1);

const Op& op_of(const RecurrentParams& p) {
  switch (p.cell) {
    case CellKind::rnn_tanh:
      return kTanh;
    case CellKind::rnn_relu:
      return kRelu;
    case CellKind::lstm:
      return p.proj_size > 0 ? kProjectedLstm : kLstm;
    case CellKind::gru:
      break;
  }
  return kGru;
}

/// The tensor's name is `name` and `suffix`.
void check_one(const char* where, const char* name, const std::string& suffix, const Tensor& tensor,
               const Shape& expected, DType dtype) {
  if (!(tensor.shape() == expected))
    fail(ErrorKind::shape, where, ": ", name, suffix, " does not fit: expected ", expected, ", got ", tensor.shape());
  if (tensor.dtype() != dtype)
    fail(ErrorKind::type, where, ": element types differ: expected ", dtype, ", got ", tensor.dtype(), " in ", name,
         suffix, "; convert with to()");
}

}  // namespace

const char* name_of(CellKind cell) { return cell == CellKind::lstm ? "lstm" : cell == CellKind::gru ? "gru" : "rnn"; }

CellKind cell_of(Nonlinearity nonlinearity) {
  return nonlinearity == Nonlinearity::relu ? CellKind::rnn_relu : CellKind::rnn_tanh;
}

// --- checks ---------------------------------------------------------------------------------------------------------

std::int64_t projection_of(const RecurrentWeights& weights) {
  return weights.weight_hr.defined() ? weights.weight_hr.shape()[0] : 0;
}

void check_projection(const char* where, std::int64_t proj_size, std::int64_t hidden_size) {
  if (proj_size >= hidden_size)
    fail(ErrorKind::config, where, ": proj_size must be smaller than hidden_size: expected < ", hidden_size, ", got ",
         proj_size);
}

namespace {

/// Refuses W_hr unless it is [P, H], P < H, and W_hh [gates * H, P].
void check_projected(const char* where, const RecurrentWeights& weights, const std::string& suffix, std::int64_t gates,
                     DType dtype) {
  const Shape& shape = weights.weight_hr.shape();
  if (shape.rank() != 2 || shape[0] < 1 || shape[1] < 1)
    fail(ErrorKind::shape, where, ": weight_hr", suffix, " does not fit: expected [proj_size, hidden_size], got ",
         shape);
  const std::int64_t projection = shape[0], hidden = shape[1];
  check_projection(where, projection, hidden);
  check_one(where, "weight_hr", suffix, weights.weight_hr, shape, dtype);
  check_one(where, "weight_hh", suffix, weights.weight_hh, {gates * hidden, projection}, dtype);
}

}  // namespace

std::int64_t check_weights(const char* where, CellKind cell, const RecurrentWeights& weights, const std::string& suffix,
                           std::int64_t input_size, DType dtype) {
  const Shape& shape = weights.weight_hh.shape();
  const std::int64_t gates = kernels::gates_of(cell);
  const bool projects = weights.weight_hr.defined();
  if (projects && !has_c(cell))
    fail(ErrorKind::config, where, ": weight_hr", suffix, " is for an lstm only: expected none, got ",
         weights.weight_hr.shape());
  if (projects) check_projected(where, weights, suffix, gates, dtype);
  if (!projects && (shape.rank() != 2 || shape[1] < 1 || shape[0] / gates != shape[1] || shape[0] % gates != 0))
    fail(ErrorKind::shape, where, ": weight_hh", suffix, " does not fit: expected [", gates,
         " * hidden_size, hidden_size], got ", shape);
  const std::int64_t rows = shape[0], hidden = rows / gates;
  check_one(where, "weight_hh", suffix, weights.weight_hh, shape, dtype);
  check_one(where, "weight_ih", suffix, weights.weight_ih, {rows, input_size}, dtype);
  if (weights.bias_ih.defined() != weights.bias_hh.defined())
    fail(ErrorKind::shape, where, ": one bias is missing: expected bias_ih", suffix, " and bias_hh", suffix,
         " or neither, got one");
  if (weights.bias_ih.defined()) {
    check_one(where, "bias_ih", suffix, weights.bias_ih, {rows}, dtype);
    check_one(where, "bias_hh", suffix, weights.bias_hh, {rows}, dtype);
  }
  return hidden;
}

void check_state(const char* where, const char* name, const Tensor& state, const Shape& expected, DType dtype) {
  if (state.defined()) check_one(where, name, "", state, expected, dtype);
}

// --- calls ----------------------------------------------------------------------------------------------------------

Tensor state_or_zeros(const Tensor& state, const Shape& shape, DType dtype) {
  return state.defined() ? state : zeros(shape, dtype);
}

Tensor run_recurrent(const RecurrentParams& params, const Tensor& x, const RecurrentWeights& weights, const Tensor& h_0,
                     const Tensor& c_0, const Shape& output, Tensor* c_n) {
  // No more than 16 numbers are kept for each hidden one, and this refuses sizes for which they cannot be counted.
  const Shape bound{params.steps, params.batch, params.hidden_size, 16};
  // The last four are filled in below.
  Input inputs[8] = {x, weights.weight_ih, weights.weight_hh, h_0, x, x, x, x};
  std::size_t count = 4;
  if (has_c(params.cell)) inputs[count++] = c_0;
  if (params.proj_size > 0) inputs[count++] = weights.weight_hr;
  if (weights.bias_ih.defined()) {
    inputs[count++] = weights.bias_ih;
    inputs[count++] = weights.bias_hh;
  }
  bool differentiable = false;
  for (std::size_t i = 0; i < count; ++i) differentiable |= inputs[i].tensor->requires_grad();
  const bool with_backward = differentiable && autograd::is_grad_enabled();
  const Tensor memory = empty({kernels::recurrent_memory(params, with_backward)}, x.dtype());
  const Shape c_shape{params.batch, params.hidden_size};
  const bool together = c_n != nullptr && with_backward;
  if (c_n != nullptr && !together) *c_n = empty(c_shape, x.dtype());
  const Input aux[] = {memory, c_n != nullptr ? *c_n : memory};
  const std::int64_t size = output.numel();
  const Tensor y = apply(op_of(params), {inputs, count}, together ? Shape{size + c_shape.numel()} : output, x.dtype(),
                         &params, sizeof params, {aux, c_n != nullptr && !together ? 2U : 1U});
  if (!together) return y;
  // What is recorded has one result, so that both gradients arrive at once.
  *c_n = y.narrow(0, size, c_shape.numel()).reshape({c_shape[0], c_shape[1]});
  return reshape(y.narrow(0, 0, size), {output.begin(), output.end()});
}

RecurrentWeights initial_weights(CellKind cell, std::int64_t input_size, std::int64_t hidden_size, bool bias,
                                 std::int64_t proj_size) {
  const std::int64_t gates = kernels::gates_of(cell);
  const std::int64_t rows = checked::mul(gates, hidden_size).value_or(-1);  // a negative extent is refused
  const double bound = 1 / std::sqrt(double(hidden_size));
  const std::int64_t state = proj_size > 0 ? proj_size : hidden_size;
  RecurrentWeights weights{uniform({rows, input_size}, -bound, bound), uniform({rows, state}, -bound, bound)};
  if (bias) {
    weights.bias_ih = uniform({rows}, -bound, bound);
    weights.bias_hh = uniform({rows}, -bound, bound);
  }
  if (proj_size > 0) weights.weight_hr = uniform({proj_size, hidden_size}, -bound, bound);
  return weights;
}

}  // namespace taper::nn
