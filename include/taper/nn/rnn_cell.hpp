#pragma once

#include "taper/nn/rnn.hpp"

#pragma GCC visibility push(default)

// One step of a recurrent network. Source: PyTorch, RNNCell, LSTMCell and GRUCell.
//
// Shapes: input [N, input_size], states [N, hidden_size]; unbatched [input_size] and [hidden_size].
namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

struct RNNCellOptions {
  static constexpr const char* kType = "RNNCell";
  using State = Tensor;
  std::optional<std::int64_t> input_size = {};  ///< left out in JSON: the input's last extent
  std::int64_t hidden_size = -1;
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
};

struct LSTMCellOptions {
  static constexpr const char* kType = "LSTMCell";
  using State = LSTMState;
  std::optional<std::int64_t> input_size = {};
  std::int64_t hidden_size = -1;
  bool bias = true;
};

struct GRUCellOptions {
  static constexpr const char* kType = "GRUCell";
  using State = Tensor;
  std::optional<std::int64_t> input_size = {};
  std::int64_t hidden_size = -1;
  bool bias = true;
};

void fields(RNNCellOptions& options, FieldVisitor& visitor);
void fields(LSTMCellOptions& options, FieldVisitor& visitor);
void fields(GRUCellOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

/// The state after one step of `rnn`, `lstm` or `gru`; a state that is left out is zero.
/// Errors: `ErrorKind::shape`, `ErrorKind::type`, `ErrorKind::config` (one of two states).
Tensor rnn_cell(const Tensor& input, const RecurrentWeights& weights, const Tensor& h = Tensor(),
                Nonlinearity nonlinearity = Nonlinearity::tanh);
LSTMState lstm_cell(const Tensor& input, const RecurrentWeights& weights, const LSTMState& state = {});
Tensor gru_cell(const Tensor& input, const RecurrentWeights& weights, const Tensor& h = Tensor());

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// What the cells share. Parameters have PyTorch's names (`weight_ih`, ...) and are float32 and uniform in
/// +-1 / sqrt(hidden_size) at first.
template <class O>
class RecurrentCell : public Layer<O> {
 public:
  using State = typename O::State;

  /// Errors: `ErrorKind::config` for options out of range or without `input_size`.
  explicit RecurrentCell(O options);
  /// The new hidden state.
  Tensor forward(const Tensor& x) override;
  /// The input, and the states where there are further inputs: h for RNNCell and GRUCell, h and c for LSTMCell.
  Tensor forward_all(std::span<const Tensor> inputs) override;
  /// As `forward_all`, then for LSTMCell the new c.
  std::vector<Tensor> forward_outputs(std::span<const Tensor> inputs) override;
  std::vector<std::string> further_outputs() const override { return further_outputs(this->options_); }
  /// The new state.
  State forward_with_state(const Tensor& x, const State& state = {});
  static Shape infer(O& options, std::span<const Shape> inputs);
  static std::vector<std::string> further_outputs(const O& options);
  static std::vector<Outline> infer_further(const O& options, std::span<const Shape> inputs);

  RecurrentWeights weights;
};

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh): [N, input_size] -> [N, hidden_size].
using RNNCell = RecurrentCell<RNNCellOptions>;
using LSTMCell = RecurrentCell<LSTMCellOptions>;
using GRUCell = RecurrentCell<GRUCellOptions>;

extern template class RecurrentCell<RNNCellOptions>;
extern template class RecurrentCell<LSTMCellOptions>;
extern template class RecurrentCell<GRUCellOptions>;

}  // namespace taper::nn

#pragma GCC visibility pop
