#pragma once

#include "taper/nn/registry.hpp"

#pragma GCC visibility push(default)

// Recurrent layers over whole sequences. Source: PyTorch, RNN, LSTM and GRU.
//
// Shapes: L steps, N samples, H = hidden_size, D = 2 when bidirectional, else 1.
//
//     input    [L, N, input_size], with batch_first [N, L, input_size], unbatched [L, input_size]
//     output   [L, N, D * H], with batch_first [N, L, D * H], unbatched [L, D * H]
//     states   [D * num_layers, N, H], unbatched [D * num_layers, H], whatever batch_first says
//
// With LSTM's proj_size the output and h have that many numbers in place of H, c keeps H.
// Differs: packed sequences are not offered.
namespace taper::nn {

// --- options --------------------------------------------------------------------------------------------------------

enum class Nonlinearity { tanh, relu };
std::span<const char* const> names_of(Nonlinearity);

/// The final hidden states beside the output.
struct RecurrentResult {
  Tensor output, h_n;
};

/// The states of an LSTM; both or none are given.
struct LSTMState {
  Tensor h = {}, c = {};
};
struct LSTMResult {
  Tensor output, h_n, c_n;
};

struct RNNOptions {
  static constexpr const char* kType = "RNN";
  using State = Tensor;
  using Result = RecurrentResult;
  std::optional<std::int64_t> input_size = {};  ///< left out in JSON: the input's last extent
  std::int64_t hidden_size = -1;
  std::int64_t num_layers = 1;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  ///< of the outputs between the layers, in training
  bool bidirectional = false;
};

struct LSTMOptions {
  static constexpr const char* kType = "LSTM";
  using State = LSTMState;
  using Result = LSTMResult;
  std::optional<std::int64_t> input_size = {};
  std::int64_t hidden_size = -1;
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  std::int64_t proj_size = 0;  ///< numbers that h is projected to, fewer than `hidden_size`; 0: no projection
};

struct GRUOptions {
  static constexpr const char* kType = "GRU";
  using State = Tensor;
  using Result = RecurrentResult;
  std::optional<std::int64_t> input_size = {};
  std::int64_t hidden_size = -1;
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
};

void fields(RNNOptions& options, FieldVisitor& visitor);
void fields(LSTMOptions& options, FieldVisitor& visitor);
void fields(GRUOptions& options, FieldVisitor& visitor);

// --- functions ------------------------------------------------------------------------------------------------------

/// The parameters of one layer in one direction. The rows hold the gates one after another, H each: LSTM i, f, g, o;
/// GRU r, z, n; RNN the only one. With a projection of LSTM to P < H numbers P stands for H wherever h is read.
struct RecurrentWeights {
  Tensor weight_ih;                   ///< [gates * H, input_size], above the first layer [gates * H, D * H]
  Tensor weight_hh;                   ///< [gates * H, H], with a projection [gates * H, P]
  Tensor bias_ih = {}, bias_hh = {};  ///< [gates * H] each, or both undefined
  Tensor weight_hr = {};              ///< the projection of LSTM, [P, H], or undefined
};

struct RecurrentSettings {
  bool batch_first = false;
  double dropout = 0;  ///< counts in training only
  bool bidirectional = false;
  bool training = false;
};

namespace functional {

/// h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), or max(.., 0) in place of tanh.
/// `weights` are in the order of layers; of a bidirectional one the forward direction comes first. States that are
/// left out are zero. Errors: `ErrorKind::shape` (no steps among them), `ErrorKind::type`, `ErrorKind::config`.
RecurrentResult rnn(const Tensor& input, std::span<const RecurrentWeights> weights, const Tensor& h_0 = Tensor(),
                    Nonlinearity nonlinearity = Nonlinearity::tanh, const RecurrentSettings& settings = {});

/// i, f, o = sigmoid(..), g = tanh(..), c_t = f c_{t-1} + i g, h_t = o tanh(c_t), or W_hr times that;
/// else as `rnn`. Source of the projection: Sak et al. (2014).
LSTMResult lstm(const Tensor& input, std::span<const RecurrentWeights> weights, const LSTMState& state = {},
                const RecurrentSettings& settings = {});

/// r, z = sigmoid(..), n = tanh(W_in x_t + b_in + r (W_hn h_{t-1} + b_hn)), h_t = (1 - z) n + z h_{t-1}; else as `rnn`.
RecurrentResult gru(const Tensor& input, std::span<const RecurrentWeights> weights, const Tensor& h_0 = Tensor(),
                    const RecurrentSettings& settings = {});

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

/// What the recurrent layers share. Parameters have PyTorch's names (`weight_ih_l0`, `bias_hh_l1_reverse`,
/// `weight_hr_l0`) and are
/// float32 and uniform in +-1 / sqrt(hidden_size) at first.
template <class O>
class Recurrent : public Layer<O> {
 public:
  using State = typename O::State;
  using Result = typename O::Result;

  /// Errors: `ErrorKind::config` for options out of range or without `input_size`.
  explicit Recurrent(O options);
  /// The output of the last layer at every step.
  Tensor forward(const Tensor& x) override;
  /// The input, and the initial states where there are further inputs: h_0 for RNN and GRU, h_0 and c_0 for LSTM.
  Tensor forward_all(std::span<const Tensor> inputs) override;
  /// As `forward_all`, then h_n and for LSTM c_n.
  std::vector<Tensor> forward_outputs(std::span<const Tensor> inputs) override;
  std::vector<std::string> further_outputs() const override { return further_outputs(this->options_); }
  /// The output and the states after the last step, all differentiable.
  Result forward_with_state(const Tensor& x, const State& state = {});
  static Shape infer(O& options, std::span<const Shape> inputs);
  static std::vector<std::string> further_outputs(const O& options);
  static std::vector<Outline> infer_further(const O& options, std::span<const Shape> inputs);

  std::vector<RecurrentWeights> weights;  ///< layer after layer, the forward direction before the reverse one
};

/// Elman's network: [N, L, input_size] -> [N, L, D * hidden_size] with batch_first.
using RNN = Recurrent<RNNOptions>;
/// Long short-term memory. Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (1999).
using LSTM = Recurrent<LSTMOptions>;
/// Gated recurrent unit. Source: Cho et al. (2014), with the reset after the product as in PyTorch.
using GRU = Recurrent<GRUOptions>;

extern template class Recurrent<RNNOptions>;
extern template class Recurrent<LSTMOptions>;
extern template class Recurrent<GRUOptions>;

}  // namespace taper::nn

#pragma GCC visibility pop
