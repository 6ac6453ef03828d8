#include "taper/nn/rnn_cell.hpp"

#include <type_traits>

#include "catalogue.hpp"
#include "recurrent.hpp"
#include "spatial.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

namespace {

const char* where_of(CellKind cell) {
  return cell == CellKind::lstm ? "lstm_cell" : cell == CellKind::gru ? "gru_cell" : "rnn_cell";
}

void check_input(const char* where, const Shape& input) {
  if (input.rank() != 1 && input.rank() != 2)
    fail(ErrorKind::shape, where, ": wrong number of dimensions: expected 1-D unbatched or 2-D batched input, got ",
         input.rank(), "-D ", input);
}

/// One step; the state is undefined or whole.
LSTMState run(CellKind cell, const Tensor& input, const RecurrentWeights& weights, const LSTMState& state) {
  const char* const where = where_of(cell);
  check_floating(where, input.dtype());
  check_input(where, input.shape());
  const Shape& stored = weights.weight_ih.shape();
  if (stored.rank() == 2 && stored[1] != input.shape().back())
    fail(ErrorKind::shape, where, ": input does not fit input_size: expected [", input.dim() == 2 ? "N, " : "",
         stored[1], "], got ", input.shape());
  if (weights.weight_hr.defined())
    fail(ErrorKind::config, where, ": weight_hr is for whole sequences only: expected none, got ",
         weights.weight_hr.shape());
  const std::int64_t hidden = check_weights(where, cell, weights, "", input.shape().back(), input.dtype());
  const Shape shape = input.shape().with(input.shape().rank() - 1, hidden);
  if (has_c(cell) && state.h.defined() != state.c.defined())
    fail(ErrorKind::config, where, ": one state is missing: expected h and c or neither, got ",
         state.h.defined() ? "h" : "c");
  check_state(where, "h", state.h, shape, input.dtype());
  check_state(where, "c", state.c, shape, input.dtype());
  const kernels::RecurrentParams params{
      cell, false, false, 1, input.dim() == 2 ? input.size(0) : 1, input.shape().back(), hidden};
  const Tensor h = state_or_zeros(state.h, shape, input.dtype());
  if (!has_c(cell)) return {run_recurrent(params, input, weights, h, Tensor(), shape), {}};
  const Tensor c = state_or_zeros(state.c, shape, input.dtype());
  Tensor c_n;
  const Tensor h_n = run_recurrent(params, input, weights, h, c, shape, &c_n);
  return {h_n, reshape(c_n, {shape.begin(), shape.end()})};
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

Tensor rnn_cell(const Tensor& input, const RecurrentWeights& weights, const Tensor& h, Nonlinearity nonlinearity) {
  return run(cell_of(nonlinearity), input, weights, {h, {}}).h;
}

LSTMState lstm_cell(const Tensor& input, const RecurrentWeights& weights, const LSTMState& state) {
  return run(CellKind::lstm, input, weights, state);
}

Tensor gru_cell(const Tensor& input, const RecurrentWeights& weights, const Tensor& h) {
  return run(CellKind::gru, input, weights, {h, {}}).h;
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

namespace {

CellKind cell_of(const RNNCellOptions& options) { return nn::cell_of(options.nonlinearity); }
CellKind cell_of(const LSTMCellOptions&) { return CellKind::lstm; }
CellKind cell_of(const GRUCellOptions&) { return CellKind::gru; }

/// Refuses states that are not all of them.
template <class O>
void check_states_given(std::size_t inputs) {
  if (inputs == 1 || inputs == kMaxInputs<O>) return;
  fail(ErrorKind::config, O::kType, ": takes the input and all states or none: expected 1 or ", kMaxInputs<O>,
       " inputs, got ", inputs);
}

/// One step from the input and all states or none.
template <class O>
LSTMState run_on(const O& options, std::span<const Tensor> inputs, const RecurrentWeights& weights) {
  check_states_given<O>(inputs.size());
  LSTMState state;
  if (inputs.size() > 1) state.h = inputs[1];
  if (inputs.size() > 2) state.c = inputs[2];
  return run(cell_of(options), inputs[0], weights, state);
}

}  // namespace

template <class O>
RecurrentCell<O>::RecurrentCell(O options) : Layer<O>(options) {
  const CellKind cell = cell_of(options);
  const std::int64_t input = given(where_of(cell), "input_size", options.input_size);
  weights = initial_weights(cell, input, options.hidden_size, options.bias);
  this->register_parameter("weight_ih", weights.weight_ih);
  this->register_parameter("weight_hh", weights.weight_hh);
  this->register_parameter("bias_ih", weights.bias_ih);
  this->register_parameter("bias_hh", weights.bias_hh);
}

template <class O>
Tensor RecurrentCell<O>::forward(const Tensor& x) {
  return run(cell_of(this->options_), x, weights, {}).h;
}

template <class O>
Tensor RecurrentCell<O>::forward_all(std::span<const Tensor> inputs) {
  return run_on(this->options_, inputs, weights).h;
}

template <class O>
std::vector<Tensor> RecurrentCell<O>::forward_outputs(std::span<const Tensor> inputs) {
  const LSTMState after = run_on(this->options_, inputs, weights);
  return kHasC<O> ? std::vector<Tensor>{after.h, after.c} : std::vector<Tensor>{after.h};
}

template <class O>
typename RecurrentCell<O>::State RecurrentCell<O>::forward_with_state(const Tensor& x, const State& state) {
  if constexpr (kHasC<O>) {
    return run(cell_of(this->options_), x, weights, state);
  } else {
    return run(cell_of(this->options_), x, weights, {state, {}}).h;
  }
}

template <class O>
Shape RecurrentCell<O>::infer(O& options, std::span<const Shape> inputs) {
  const char* const where = where_of(cell_of(options));
  const Shape& input = inputs[0];
  check_states_given<O>(inputs.size());
  check_input(where, input);
  complete_option(where, "input_size", options.input_size, input.back(), input);
  // Refuses a layer whose parameters cannot be counted; there are at most 4 gates.
  const Shape ih{4, options.hidden_size, input.back()}, hh{4, options.hidden_size, options.hidden_size};
  const Shape state = input.with(input.rank() - 1, options.hidden_size);
  for (std::size_t i = 1; i < inputs.size(); ++i)
    if (!(inputs[i] == state))
      fail(ErrorKind::shape, where, i == 1 ? ": h" : ": c", " does not fit: expected ", state, ", got ", inputs[i]);
  return state;
}

template <class O>
std::vector<std::string> RecurrentCell<O>::further_outputs(const O&) {
  return kHasC<O> ? std::vector<std::string>{"c"} : std::vector<std::string>{};
}

template <class O>
std::vector<Outline> RecurrentCell<O>::infer_further(const O& options, std::span<const Shape> inputs) {
  return std::vector<Outline>(kHasC<O> ? 1 : 0, inputs[0].with(inputs[0].rank() - 1, options.hidden_size));
}

template class RecurrentCell<RNNCellOptions>;
template class RecurrentCell<LSTMCellOptions>;
template class RecurrentCell<GRUCellOptions>;

// --- fields ---------------------------------------------------------------------------------------------------------

namespace {

template <class Options>
void cell_fields(Options& o, FieldVisitor& visit) {
  visit({"input_size", "extent of the input's last dimension; null: inferred", kPositive}, o.input_size);
  visit({"hidden_size", "numbers in the hidden state", kPositive, true}, o.hidden_size);
  visit({"bias", "add learned numbers to both products"}, o.bias);
}

}  // namespace

void fields(RNNCellOptions& o, FieldVisitor& visit) {
  cell_fields(o, visit);
  visit({"nonlinearity", "what makes the new state from the sum"}, o.nonlinearity);
}
void fields(LSTMCellOptions& o, FieldVisitor& visit) { cell_fields(o, visit); }
void fields(GRUCellOptions& o, FieldVisitor& visit) { cell_fields(o, visit); }

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_rnn_cell_layers(std::vector<LayerType>& types) {
  const char* const example = R"({"input_size": 5, "hidden_size": 3})";
  add_layer<RNNCell>(types, "One step of a plain recurrent network: [N, C] and the state [N, H] or none -> [N, H].",
                     example, {{2, 5}}, 1, 2);
  add_layer<LSTMCell>(types, "One step of long short-term memory: [N, C] and both states [N, H] or none -> [N, H].",
                      example, {{2, 5}}, 1, 3);
  add_layer<GRUCell>(types, "One step of gated recurrent units: [N, C] and the state [N, H] or none -> [N, H].",
                     example, {{2, 5}}, 1, 2);
}

}  // namespace taper::nn
