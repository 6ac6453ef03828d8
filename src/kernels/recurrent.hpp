#pragma once

#include <cstdint>

namespace taper::kernels {

enum class RecurrentCell : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru };

/// Blocks of rows in the weights: LSTM i, f, g, o; GRU r, z, n.
constexpr std::int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

/// One layer in one direction over a whole sequence. x is [steps, batch, input_size], y [steps, batch, state_size],
/// or [batch, steps, ..] both with `batch_first`. `reverse` starts at the last step.
struct RecurrentParams {
  RecurrentCell cell = RecurrentCell::rnn_tanh;
  bool batch_first = false, reverse = false;
  std::int64_t steps = 0, batch = 0, input_size = 0, hidden_size = 0;
  std::int64_t proj_size = 0;  ///< of LSTM: what h is projected to; 0: nothing

  /// The elements of h.
  std::int64_t state_size() const { return proj_size > 0 ? proj_size : hidden_size; }
};

/// w_ih is [gates * hidden_size, input_size], w_hh [gates * hidden_size, state_size], the biases [gates * hidden_size]
/// (both or none), h0 [batch, state_size]; c0 [batch, hidden_size] is read by LSTM only, w_hr [proj_size, hidden_size]
/// by LSTM with a projection.
template <class T>
struct RecurrentInputs {
  const T *x, *w_ih, *w_hh;
  const T *b_ih = nullptr, *b_hh = nullptr;
  const T *h0, *c0 = nullptr;
  const T* w_hr = nullptr;
};

/// Where one gradient goes; null where nobody needs it.
template <class T>
struct RecurrentGradient {
  T* data = nullptr;
  bool add = false;
};
template <class T>
struct RecurrentGradients {
  RecurrentGradient<T> x, w_ih, w_hh, b_ih, b_hh, h0, c0, w_hr;
};

/// Elements of the memory that a call works in. What the forward leaves there the backward reads; its own part, which
/// is the larger one, only has to exist if there will be a backward.
std::int64_t recurrent_memory(const RecurrentParams& p, bool with_backward);

/// With a_t = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh in the blocks of the gates:
///
///     RNN   h = tanh(a) or max(a, 0)
///     LSTM  i, f, o = sigmoid(a), g = tanh(a);  c_t = f c_{t-1} + i g;  h_t = o tanh(c_t), or W_hr of it
///     GRU   r, z = sigmoid(a), n = tanh(W_in x_t + b_in + r (W_hn h_{t-1} + b_hn));  h_t = n + z (h_{t-1} - n)
///
/// y holds all h_t; `c_n`, unless null, receives the last c of LSTM, [batch, hidden_size]. steps >= 1.
template <class T>
void recurrent_forward(const RecurrentParams& p, const RecurrentInputs<T>& in, T* y, T* c_n, T* memory);

/// All gradients that are asked for, back through time. `memory` is as the forward left it, and may be used again;
/// `dc_n` is null where c_n takes no part.
template <class T>
void recurrent_backward(const RecurrentParams& p, const RecurrentInputs<T>& in, const T* y, const T* dy, const T* dc_n,
                        T* memory, const RecurrentGradients<T>& gradients);

}  // namespace taper::kernels
