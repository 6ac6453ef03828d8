#include "taper/nn/rnn_cell.hpp"

#include "support/catch.hpp"
#include "support/infer.hpp"
#include "support/kernel_check.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::infer_all;
namespace F = taper::nn::functional;

namespace {

nn::RecurrentWeights weights_of(std::int64_t gates) {
  return {test::spread({gates * 5, 2}, 0.41), test::spread({gates * 5, 5}, 0.29), test::spread({gates * 5}, 0.61),
          test::spread({gates * 5}, 0.83)};
}

}  // namespace

TEST_CASE("cells step by step are the layer over the sequence") {
  manual_seed(8);
  nn::LSTM layer({.input_size = 2, .hidden_size = 5});
  nn::LSTMCell cell({.input_size = 2, .hidden_size = 5});
  cell.weights = layer.weights[0];
  const Tensor x = uniform({3, 7, 2}, -1, 1);
  const auto whole = layer.forward_with_state(x);
  nn::LSTMState state;
  for (std::int64_t t = 0; t < 3; ++t) state = cell.forward_with_state(x.select(0, t), state);
  CHECK(test::distance(state.h.to_vector<float>(), whole.h_n.to_vector<double>()) < 1e-6);
  CHECK(test::distance(state.c.to_vector<float>(), whole.c_n.to_vector<double>()) < 1e-6);
}

TEST_CASE("cells have the gradients of their values, batched and unbatched") {
  for (const bool batched : {true, false}) {
    const Tensor x = test::spread(batched ? Shape{3, 2} : Shape{2}).requires_grad_();
    const Shape state = batched ? Shape{3, 5} : Shape{5};
    const Tensor h = test::spread(state, 0.19).requires_grad_(), c = test::spread(state, 0.23).requires_grad_();
    const auto check = [&](std::int64_t gates, auto function) {
      const nn::RecurrentWeights w = weights_of(gates);
      std::vector<Tensor> leaves = {x, h, c, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh};
      for (const Tensor& leaf : leaves) leaf.requires_grad_();
      const auto report = autograd::gradcheck([&](const std::vector<Tensor>&) { return function(w); }, leaves);
      INFO(report.to_string());
      CHECK(report.ok);
      CHECK(function(w).shape().back() == 5);
    };
    check(1, [&](const auto& w) { return F::rnn_cell(x, w, h); });
    check(3, [&](const auto& w) { return F::gru_cell(x, w, h); });
    check(4, [&](const auto& w) { return F::lstm_cell(x, w, {h, c}).h; });
    check(4, [&](const auto& w) { return F::lstm_cell(x, w, {h, c}).c; });
  }
}

TEST_CASE("cells name what does not fit") {
  const auto w = weights_of(4);
  const Tensor x = ones({3, 2}, DType::float64), state = zeros({3, 5}, DType::float64);
  CHECK_THROWS_WITH(F::lstm_cell(ones({2, 3, 2}, DType::float64), w),
                    "lstm_cell: wrong number of dimensions: expected 1-D unbatched or 2-D batched input, got 3-D "
                    "[2, 3, 2]");
  CHECK_THROWS_WITH(F::lstm_cell(ones({3, 4}, DType::float64), w),
                    "lstm_cell: input does not fit input_size: expected [N, 2], got [3, 4]");
  CHECK_THROWS_WITH(F::lstm_cell(ones({4}, DType::float64), w),
                    "lstm_cell: input does not fit input_size: expected [2], got [4]");
  nn::RecurrentWeights projected = w;
  projected.weight_hr = zeros({2, 3}, DType::float64);
  CHECK_THROWS_WITH(F::lstm_cell(x, projected),
                    "lstm_cell: weight_hr is for whole sequences only: expected none, got [2, 3]");
  CHECK_THROWS_WITH(F::lstm_cell(x, w, {.h = state}),
                    "lstm_cell: one state is missing: expected h and c or neither, got h");
  CHECK_THROWS_WITH(F::lstm_cell(x, w, {zeros({2, 5}, DType::float64), state}),
                    "lstm_cell: h does not fit: expected [3, 5], got [2, 5]");
  CHECK_THROWS_WITH(F::gru_cell(x, w),
                    "gru_cell: weight_hh does not fit: expected [3 * hidden_size, hidden_size], got [20, 5]");
  CHECK_THROWS_WITH(F::rnn_cell(ones({3, 2}, DType::int64), w),
                    "rnn_cell: element type not supported: expected float32 or float64, got int64; convert with to()");
}

TEST_CASE("cell layers infer their input size, take states as inputs and refuse what does not fit") {
  CHECK(infer_all<nn::GRUCellOptions>({.hidden_size = 3}, {{2, 5}}) == Shape{2, 3});
  CHECK(infer_all<nn::LSTMCellOptions>({.hidden_size = 3}, {{2, 5}, {2, 3}, {2, 3}}) == Shape{2, 3});
  CHECK_THROWS_WITH(infer_all<nn::LSTMCellOptions>({.hidden_size = 3}, {{2, 5}, {2, 3}}),
                    "LSTMCell: takes the input and all states or none: expected 1 or 3 inputs, got 2");
  CHECK_THROWS_WITH(infer_all<nn::GRUCellOptions>({.hidden_size = 3}, {{2, 5}, {2, 5}}),
                    "gru_cell: h does not fit: expected [2, 3], got [2, 5]");
  CHECK_THROWS_WITH(infer_all<nn::RNNCellOptions>({.input_size = 4, .hidden_size = 3}, {{1, 5}}),
                    "rnn_cell: input_size does not fit the input: expected 5, got 4 in [N, 5]");
  CHECK_THROWS_WITH(nn::RNNCell({.input_size = 2}), "RNNCell: hidden_size is out of range: expected >= 1, got -1");
  CHECK_THROWS_WITH(nn::RNNCell({.hidden_size = 2}),
                    "rnn_cell: input_size is missing: expected a number, got none; only a model that knows its "
                    "input's shape can infer it");
  manual_seed(3);
  nn::GRUCell cell({.input_size = 2, .hidden_size = 3});
  CHECK(cell.named_parameters()[1].name == "weight_hh");
  CHECK(cell.named_parameters()[1].tensor.shape() == Shape{9, 3});
  CHECK(cell.to_string() == "GRUCell(input_size=2, hidden_size=3, bias=true)");
  const Tensor inputs[] = {ones({5, 2}), ones({5, 3})};
  CHECK(test::same_bits(cell.forward_all(inputs).to_vector<float>(),
                        cell.forward_with_state(inputs[0], inputs[1]).to_vector<float>()));
  CHECK(cell(ones({0, 2})).shape() == Shape{0, 3});
}
