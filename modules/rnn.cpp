#include "taper/nn/rnn.hpp"

#include <type_traits>

#include "base/checked.hpp"
#include "catalogue.hpp"
#include "recurrent.hpp"
#include "spatial.hpp"
#include "taper/creation.hpp"
#include "taper/nn/dropout.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

using kernels::RecurrentParams;

namespace {

// --- geometry -------------------------------------------------------------------------------------------------------

/// A sequence of vectors, as the layers see their input.
struct SequenceGeometry {
  std::int64_t steps, batch, input_size;
  bool batched;
};

SequenceGeometry geometry_of(const char* where, const Shape& input, bool batch_first) {
  const int rank = input.rank();
  if (rank != 2 && rank != 3)
    fail(ErrorKind::shape, where, ": wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got ",
         rank, "-D ", input);
  const SequenceGeometry g =
      rank == 2 ? SequenceGeometry{input[0], 1, input[1], false}
                : SequenceGeometry{input[batch_first ? 1 : 0], input[batch_first ? 0 : 1], input[2], true};
  if (g.steps == 0) fail(ErrorKind::shape, where, ": the sequence has no steps: expected >= 1, got 0 in ", input);
  return g;
}

Shape states_shape(const SequenceGeometry& g, std::int64_t states, std::int64_t hidden) {
  return g.batched ? Shape{states, g.batch, hidden} : Shape{states, hidden};
}

void check_input_size(const char* where, const Shape& input, bool batch_first, std::int64_t expected) {
  if (input.back() == expected) return;
  const char* const before = input.rank() == 2 ? "L, " : batch_first ? "N, L, " : "L, N, ";
  fail(ErrorKind::shape, where, ": input does not fit input_size: expected [", before, expected, "], got ", input);
}

std::string suffix_of(std::size_t layer, std::size_t direction) {
  return cat("_l", layer, direction > 0 ? "_reverse" : "");
}

std::int64_t directions(bool bidirectional) { return bidirectional ? 2 : 1; }

// --- running --------------------------------------------------------------------------------------------------------

/// What a call computes from: the input, the weights of all layers, the states or nothing.
struct RnnCall {
  CellKind cell;
  const char* where;
  std::span<const RecurrentWeights> weights;
  RecurrentSettings settings;
  SequenceGeometry geometry = {};
  std::int64_t hidden = 0, projection = 0;

  std::size_t directions() const { return settings.bidirectional ? 2 : 1; }
  std::size_t layers() const { return weights.size() / directions(); }
  bool time_first() const { return !geometry.batched || !settings.batch_first; }
  /// The numbers in h; there are `hidden` in c.
  std::int64_t state() const { return projection > 0 ? projection : hidden; }
  Shape states(std::int64_t size) const { return states_shape(geometry, std::int64_t(weights.size()), size); }
};

void check_call(RnnCall& call, const Tensor& input, const LSTMState& state) {
  const char* const where = call.where;
  check_floating(where, input.dtype());
  call.geometry = geometry_of(where, input.shape(), call.settings.batch_first);
  if (call.weights.empty() || call.weights.size() % call.directions() != 0)
    fail(ErrorKind::config, where, ": weights do not make whole layers: expected ",
         call.directions() == 1 ? "at least 1" : "a multiple of 2", ", got ", call.weights.size());
  const double p = call.settings.dropout;
  if (!(p >= 0 && p <= 1)) fail(ErrorKind::config, where, ": dropout is no probability: expected 0 to 1, got ", p);
  const Shape& first = call.weights[0].weight_ih.shape();
  if (first.rank() == 2) check_input_size(where, input.shape(), call.settings.batch_first, first[1]);
  std::int64_t width = call.geometry.input_size;
  for (std::size_t i = 0; i < call.weights.size(); ++i) {
    const std::size_t layer = i / call.directions();
    const std::string suffix = suffix_of(layer, i % call.directions());
    if (layer > 0) width = std::int64_t(call.directions()) * call.state();
    const std::int64_t hidden = check_weights(where, call.cell, call.weights[i], suffix, width, input.dtype());
    const std::int64_t projection = projection_of(call.weights[i]);
    if (i == 0) call.hidden = hidden, call.projection = projection;
    if (hidden != call.hidden)
      fail(ErrorKind::shape, where, ": weight_hh", suffix, " has another hidden_size: expected ", call.hidden, ", got ",
           hidden);
    if (projection != call.projection)
      fail(ErrorKind::shape, where, ": weight_hr", suffix, " has another proj_size: expected ", call.projection,
           ", got ", projection);
  }
  if (state.h.defined() != state.c.defined() && has_c(call.cell))
    fail(ErrorKind::config, where, ": one state is missing: expected h_0 and c_0 or neither, got ",
         state.h.defined() ? "h_0" : "c_0");
  check_state(where, "h_0", state.h, call.states(call.state()), input.dtype());
  check_state(where, "c_0", state.c, call.states(call.hidden), input.dtype());
}

/// The state of one layer and direction, [N, size].
Tensor state_at(const RnnCall& call, const Tensor& states, std::int64_t size, std::size_t i, DType dtype) {
  const Shape shape{call.geometry.batch, size};
  if (!states.defined()) return zeros(shape, dtype);
  return states.select(0, std::int64_t(i)).reshape(shape);
}

/// Final states in the order of the weights; only filled in when they are asked for.
struct Finals {
  bool wanted;
  std::vector<Tensor> h, c;
};

/// One layer in one direction: [steps, batch, ..] or [batch, steps, ..] as `x` is.
Tensor run_direction(const RnnCall& call, const Tensor& x, std::size_t i, const LSTMState& state, Finals& finals) {
  const auto [steps, batch, input_size, batched] = call.geometry;
  const bool reverse = i % call.directions() > 0, time_first = call.time_first();
  const RecurrentParams params{call.cell, !time_first,      reverse,     steps,
                               batch,     x.shape().back(), call.hidden, call.projection};
  const Shape shape = x.shape().with(x.shape().rank() - 1, call.state());
  const Tensor h_0 = state_at(call, state.h, call.state(), i, x.dtype());
  const Tensor c_0 = has_c(call.cell) ? state_at(call, state.c, call.hidden, i, x.dtype()) : Tensor();
  Tensor c_n;
  const bool with_c = finals.wanted && has_c(call.cell);
  const Tensor y = run_recurrent(params, x, call.weights[i], h_0, c_0, shape, with_c ? &c_n : nullptr);
  if (with_c) finals.c.push_back(c_n);
  if (finals.wanted)
    finals.h.push_back(y.select(time_first ? 0 : 1, reverse ? 0 : steps - 1).reshape({batch, call.state()}));
  return y;
}

LSTMResult run(RnnCall call, const Tensor& input, const LSTMState& state, bool with_states) {
  check_call(call, input, state);
  Finals finals{with_states, {}, {}};
  Tensor x = input;
  for (std::size_t layer = 0; layer < call.layers(); ++layer) {
    const std::size_t i = layer * call.directions();
    Tensor y = run_direction(call, x, i, state, finals);
    if (call.settings.bidirectional) y = cat({y, run_direction(call, x, i + 1, state, finals)}, -1);
    const bool last = layer + 1 == call.layers();
    x = last ? y : functional::dropout(y, call.settings.dropout, call.settings.training);
  }
  LSTMResult result{.output = x, .h_n = {}, .c_n = {}};
  const auto joined = [&](const std::vector<Tensor>& states, std::int64_t size) {
    const Shape shape = call.states(size);
    return reshape(stack(states, 0), {shape.begin(), shape.end()});
  };
  if (with_states) result.h_n = joined(finals.h, call.state());
  if (with_states && has_c(call.cell)) result.c_n = joined(finals.c, call.hidden);
  return result;
}

}  // namespace

// --- functions ------------------------------------------------------------------------------------------------------

namespace functional {

RecurrentResult rnn(const Tensor& input, std::span<const RecurrentWeights> weights, const Tensor& h_0,
                    Nonlinearity nonlinearity, const RecurrentSettings& settings) {
  const LSTMResult all = run({cell_of(nonlinearity), "rnn", weights, settings}, input, {h_0, {}}, true);
  return {all.output, all.h_n};
}

LSTMResult lstm(const Tensor& input, std::span<const RecurrentWeights> weights, const LSTMState& state,
                const RecurrentSettings& settings) {
  return run({CellKind::lstm, "lstm", weights, settings}, input, state, true);
}

RecurrentResult gru(const Tensor& input, std::span<const RecurrentWeights> weights, const Tensor& h_0,
                    const RecurrentSettings& settings) {
  const LSTMResult all = run({CellKind::gru, "gru", weights, settings}, input, {h_0, {}}, true);
  return {all.output, all.h_n};
}

}  // namespace functional

// --- layers ---------------------------------------------------------------------------------------------------------

namespace {

CellKind cell_of(const RNNOptions& options) { return nn::cell_of(options.nonlinearity); }
CellKind cell_of(const LSTMOptions&) { return CellKind::lstm; }
CellKind cell_of(const GRUOptions&) { return CellKind::gru; }

LSTMState both(const Tensor& h_0) { return {h_0, {}}; }
LSTMState both(const LSTMState& state) { return state; }

template <class O>
LSTMResult run_layer(const Recurrent<O>& layer, const Tensor& x, const LSTMState& state, bool with_states) {
  const O& o = layer.options();
  const CellKind cell = cell_of(o);
  return run({cell, name_of(cell), layer.weights, {o.batch_first, o.dropout, o.bidirectional, layer.is_training()}}, x,
             state, with_states);
}

std::int64_t proj_size_of(const LSTMOptions& options) { return options.proj_size; }
template <class O>
std::int64_t proj_size_of(const O&) {
  return 0;
}

/// The numbers in h, and in one direction of the output.
template <class O>
std::int64_t state_size(const O& options) {
  const std::int64_t projection = proj_size_of(options);
  return projection > 0 ? projection : options.hidden_size;
}

/// Refuses initial states that are not all of them.
template <class O>
void check_count(std::size_t inputs) {
  if (inputs == 1 || inputs == kMaxInputs<O>) return;
  fail(ErrorKind::config, O::kType, ": takes the input and all initial states or none: expected 1 or ", kMaxInputs<O>,
       " inputs, got ", inputs);
}

template <class O>
LSTMState states_among(std::span<const Tensor> inputs) {
  check_count<O>(inputs.size());
  LSTMState state;
  if (inputs.size() > 1) state.h = inputs[1];
  if (inputs.size() > 2) state.c = inputs[2];
  return state;
}

}  // namespace

template <class O>
Recurrent<O>::Recurrent(O options) : Layer<O>(options) {
  const CellKind cell = cell_of(options);
  const std::int64_t d = directions(options.bidirectional), h = options.hidden_size;
  const std::int64_t input = given(name_of(cell), "input_size", options.input_size);
  const std::int64_t projection = proj_size_of(options);
  check_projection(name_of(cell), projection, h);
  const std::int64_t above = checked::mul(d, state_size(options)).value_or(-1);  // a negative extent is refused
  for (std::int64_t i = 0; i < options.num_layers * d; ++i)
    weights.push_back(initial_weights(cell, i < d ? input : above, h, options.bias, projection));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string suffix = suffix_of(i / std::size_t(d), i % std::size_t(d));
    this->register_parameter("weight_ih" + suffix, weights[i].weight_ih);
    this->register_parameter("weight_hh" + suffix, weights[i].weight_hh);
    this->register_parameter("bias_ih" + suffix, weights[i].bias_ih);
    this->register_parameter("bias_hh" + suffix, weights[i].bias_hh);
    this->register_parameter("weight_hr" + suffix, weights[i].weight_hr);
  }
}

template <class O>
Tensor Recurrent<O>::forward(const Tensor& x) {
  return run_layer(*this, x, {}, false).output;
}

template <class O>
Tensor Recurrent<O>::forward_all(std::span<const Tensor> inputs) {
  return run_layer(*this, inputs[0], states_among<O>(inputs), false).output;
}

template <class O>
std::vector<Tensor> Recurrent<O>::forward_outputs(std::span<const Tensor> inputs) {
  const LSTMResult all = run_layer(*this, inputs[0], states_among<O>(inputs), true);
  std::vector<Tensor> results = {all.output, all.h_n};
  if (kHasC<O>) results.push_back(all.c_n);
  return results;
}

template <class O>
typename Recurrent<O>::Result Recurrent<O>::forward_with_state(const Tensor& x, const State& state) {
  const LSTMResult all = run_layer(*this, x, both(state), true);
  if constexpr (kHasC<O>) {
    return all;
  } else {
    return {all.output, all.h_n};
  }
}

template <class O>
Shape Recurrent<O>::infer(O& options, std::span<const Shape> inputs) {
  const char* const where = name_of(cell_of(options));
  const Shape& input = inputs[0];
  check_count<O>(inputs.size());
  const SequenceGeometry g = geometry_of(where, input, options.batch_first);
  complete_option(where, "input_size", options.input_size, g.input_size, input);
  const std::int64_t d = directions(options.bidirectional), h = options.hidden_size;
  check_projection(where, proj_size_of(options), h);
  const std::int64_t width = checked::mul(d, state_size(options)).value_or(-1);  // a negative extent is refused
  // Refuses layers whose parameters cannot be counted; there are at most 4 gates.
  const Shape parameters{options.num_layers * d * 4, h, width}, first{4, h, g.input_size};
  // The first extent of any input is a placeholder, and so is the batch's where it is the first of x.
  const bool batch_known = g.batched && !options.batch_first;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Shape& state = inputs[i];
    const std::int64_t size = i == 1 ? state_size(options) : h;
    if (state.rank() == input.rank() && state.back() == size && (!batch_known || state[1] == g.batch)) continue;
    fail(ErrorKind::shape, where, i == 1 ? ": h_0" : ": c_0", " does not fit: expected [", options.num_layers * d, ", ",
         batch_known ? cat(g.batch, ", ")
         : g.batched ? "N, "
                     : "",
         size, "], got ", state);
  }
  return input.with(input.rank() - 1, width);
}

template <class O>
std::vector<std::string> Recurrent<O>::further_outputs(const O&) {
  return kHasC<O> ? std::vector<std::string>{"h_n", "c_n"} : std::vector<std::string>{"h_n"};
}

template <class O>
std::vector<Outline> Recurrent<O>::infer_further(const O& options, std::span<const Shape> inputs) {
  const SequenceGeometry g = geometry_of(name_of(cell_of(options)), inputs[0], options.batch_first);
  const std::int64_t states = options.num_layers * directions(options.bidirectional);
  std::vector<Outline> outlines = {states_shape(g, states, state_size(options))};
  if (kHasC<O>) outlines.push_back(states_shape(g, states, options.hidden_size));
  return outlines;
}

template class Recurrent<RNNOptions>;
template class Recurrent<LSTMOptions>;
template class Recurrent<GRUOptions>;

// --- fields ---------------------------------------------------------------------------------------------------------

std::span<const char* const> names_of(Nonlinearity) {
  static constexpr const char* kNames[] = {"tanh", "relu"};
  return kNames;
}

namespace {

constexpr Rule kLayers{.min = 1, .max = 1024};

template <class Options>
void recurrent_fields(Options& o, FieldVisitor& visit) {
  visit({"input_size", "extent of the input's last dimension; null: inferred", kPositive}, o.input_size);
  visit({"hidden_size", "numbers in the hidden state of each direction", kPositive, true}, o.hidden_size);
  visit({"num_layers", "layers on top of each other", kLayers}, o.num_layers);
  if constexpr (requires { o.nonlinearity; })
    visit({"nonlinearity", "what makes the new state from the sum"}, o.nonlinearity);
  visit({"bias", "add learned numbers to both products"}, o.bias);
  visit({"batch_first", "the input is [N, L, input_size]; else its first dimension is time"}, o.batch_first);
  visit({"dropout", "probability of an output between layers to become 0 in training", kProbability}, o.dropout);
  visit({"bidirectional", "also run from the last step to the first, and join both"}, o.bidirectional);
  if constexpr (requires { o.proj_size; })
    visit({"proj_size", "numbers that the hidden state is projected to; 0: no projection", kNonNegative}, o.proj_size);
}

}  // namespace

void fields(RNNOptions& o, FieldVisitor& visit) { recurrent_fields(o, visit); }
void fields(LSTMOptions& o, FieldVisitor& visit) { recurrent_fields(o, visit); }
void fields(GRUOptions& o, FieldVisitor& visit) { recurrent_fields(o, visit); }

// --- catalogue ------------------------------------------------------------------------------------------------------

void add_rnn_layers(std::vector<LayerType>& types) {
  add_layer<RNN>(types, "A plain recurrent network's states at all steps: [N, L, C] -> [N, L, D * H] with batch_first.",
                 R"({"input_size": 5, "hidden_size": 3, "batch_first": true, "nonlinearity": "tanh"})", {{2, 7, 5}}, 1,
                 kMaxInputs<RNNOptions>);
  add_layer<LSTM>(types,
                  "Long short-term memory, its states at all steps: [N, L, C] -> [N, L, D * H] with batch_first.",
                  R"({"input_size": 5, "hidden_size": 3, "batch_first": true, "num_layers": 2, "dropout": 0.25})",
                  {{2, 7, 5}}, 1, kMaxInputs<LSTMOptions>);
  add_layer<GRU>(types,
                 "Gated recurrent units, their states at all steps: [N, L, C] -> [N, L, D * H] with batch_first.",
                 R"({"input_size": 5, "hidden_size": 3, "batch_first": true, "bidirectional": true})", {{2, 7, 5}}, 1,
                 kMaxInputs<GRUOptions>);
}

}  // namespace taper::nn
