#pragma once

#include "kernels/recurrent.hpp"
#include "taper/nn/rnn.hpp"
#include "taper/nn/rnn_cell.hpp"

// What the recurrent layers and the recurrent cells share.
namespace taper::nn {

using CellKind = kernels::RecurrentCell;

/// Whether what `Options` describes has a second state, and how many inputs it takes with all states.
template <class Options>
constexpr bool kHasC = std::is_same_v<Options, LSTMOptions> || std::is_same_v<Options, LSTMCellOptions>;
template <class Options>
constexpr std::size_t kMaxInputs = kHasC<Options> ? 3 : 2;

/// "rnn", "lstm" or "gru".
const char* name_of(CellKind cell);
constexpr bool has_c(CellKind cell) { return cell == CellKind::lstm; }
CellKind cell_of(Nonlinearity nonlinearity);

/// What the projection makes of the hidden state; 0 without one.
std::int64_t projection_of(const RecurrentWeights& weights);

/// Refuses a projection to as many numbers or more. Errors: `ErrorKind::config`.
void check_projection(const char* where, std::int64_t proj_size, std::int64_t hidden_size);

/// Refuses weights that do not belong to `hidden_size` of `weight_hh`, to this many input features or to the input's
/// element type. `suffix` is what their names end in, "_l0". Returns the hidden size.
std::int64_t check_weights(const char* where, CellKind cell, const RecurrentWeights& weights, const std::string& suffix,
                           std::int64_t input_size, DType dtype);

/// Refuses an initial state that is given and of another shape or type. Errors: `ErrorKind::shape`,
/// `ErrorKind::type`.
void check_state(const char* where, const char* name, const Tensor& state, const Shape& expected, DType dtype);

/// The state, or zeros.
Tensor state_or_zeros(const Tensor& state, const Shape& shape, DType dtype);

/// One layer in one direction as one recorded operation, whose result y has the shape `output`. `c_n`, unless null,
/// receives the last c of LSTM, [batch, hidden_size], which gradients flow through too. Everything has been checked.
Tensor run_recurrent(const kernels::RecurrentParams& params, const Tensor& x, const RecurrentWeights& weights,
                     const Tensor& h_0, const Tensor& c_0, const Shape& output, Tensor* c_n = nullptr);

/// Uniform in +-1 / sqrt(hidden_size), the biases undefined unless asked for, the projection unless its size is above
/// 0.
RecurrentWeights initial_weights(CellKind cell, std::int64_t input_size, std::int64_t hidden_size, bool bias,
                                 std::int64_t proj_size = 0);

}  // namespace taper::nn
