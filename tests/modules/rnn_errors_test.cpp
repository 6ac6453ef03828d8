#include "support/catch.hpp"
#include "support/infer.hpp"
#include "support/json_error.hpp"
#include "support/message_of.hpp"
#include "support/recurrent_stack.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"
#include "taper/nn/rnn.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::infer_all;
namespace F = taper::nn::functional;
using test::projected_stack;
using test::stack_of;
using test::weights_of;

TEST_CASE("an LSTM's projection names what does not fit") {
  manual_seed(2);
  const Tensor x = ones({7, 2, 3}, DType::float64), h = zeros({2, 2, 2}, DType::float64),
               c = zeros({2, 2, 5}, DType::float64);
  const auto with = [&](auto change) {
    auto weights = projected_stack(3, 5, 2, 2, 1);
    change(weights);
    return weights;
  };
  const auto whole = with([](auto&) {});
  CHECK_THROWS_WITH(F::lstm(x, whole, {c, c}), "lstm: h_0 does not fit: expected [2, 2, 2], got [2, 2, 5]");
  CHECK_THROWS_WITH(F::lstm(x, whole, {h, h}), "lstm: c_0 does not fit: expected [2, 2, 5], got [2, 2, 2]");
  const auto refused = [&](auto change) { return test::message_of([&] { F::lstm(x, with(change)); }); };
  const auto z = [](const Shape& shape, DType dtype = DType::float64) { return zeros(shape, dtype); };
  CHECK(refused([&](auto& w) {
          w[1].weight_hr = z({5, 5});
        }) == "lstm: proj_size must be smaller than hidden_size: expected < 5, got 5");
  CHECK(refused([&](auto& w) { w[1].weight_hr = z({10}); }) ==
        "lstm: weight_hr_l1 does not fit: expected [proj_size, hidden_size], got [10]");
  CHECK(refused([&](auto& w) {
          w[0].weight_hr = z({0, 5});
        }) == "lstm: weight_hr_l0 does not fit: expected [proj_size, hidden_size], got [0, 5]");
  CHECK(refused([&](auto& w) {
          w[0].weight_hr = z({2, 5}, DType::float32);
        }) == "lstm: element types differ: expected float64, got float32 in weight_hr_l0; convert with to()");
  CHECK(refused([&](auto& w) {
          w[0].weight_hh = z({20, 5});
        }) == "lstm: weight_hh_l0 does not fit: expected [20, 2], got [20, 5]");
  CHECK(refused([&](auto& w) {
          w[1].weight_ih = z({20, 5});
        }) == "lstm: weight_ih_l1 does not fit: expected [20, 2], got [20, 5]");
  CHECK(refused([&](auto& w) {
          w[1].weight_hr = z({3, 5}), w[1].weight_hh = z({20, 3});
        }) == "lstm: weight_hr_l1 has another proj_size: expected 2, got 3");
  CHECK(refused([&](auto& w) {
          w[1].weight_hr = Tensor(), w[1].weight_hh = z({20, 5});
        }) == "lstm: weight_hr_l1 has another proj_size: expected 2, got 0");
  auto gru = stack_of(3, 3, 5, 1, 1);
  gru[0].weight_hr = z({2, 5});
  CHECK_THROWS_WITH(F::gru(x, gru), "gru: weight_hr_l0 is for an lstm only: expected none, got [2, 5]");
  CHECK_THROWS_WITH(F::rnn(x, gru), "rnn: weight_hr_l0 is for an lstm only: expected none, got [2, 5]");
  for (const std::int64_t size : {3, 5})
    CHECK_THROWS_WITH(nn::LSTM({.input_size = 2, .hidden_size = 3, .proj_size = size}),
                      "lstm: proj_size must be smaller than hidden_size: expected < 3, got " + std::to_string(size));
  CHECK_THROWS_WITH(nn::LSTM({.input_size = 2, .hidden_size = 3, .proj_size = -1}),
                    "LSTM: proj_size is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(infer_all<nn::LSTMOptions>({.hidden_size = 3, .proj_size = 2}, {{7, 2, 5}, {1, 2, 3}, {1, 2, 3}}),
                    "lstm: h_0 does not fit: expected [1, 2, 2], got [1, 2, 3]");
}

TEST_CASE("recurrent functions name what does not fit") {
  manual_seed(2);
  const auto weights = stack_of(4, 3, 5, 2, 1);
  const Tensor x = ones({7, 2, 3}, DType::float64), state = zeros({2, 2, 5}, DType::float64);
  CHECK_THROWS_WITH(F::lstm(ones({7}, DType::float64), weights),
                    "lstm: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 1-D [7]");
  CHECK_THROWS_WITH(F::lstm(ones({1, 7, 2, 3}, DType::float64), weights),
                    "lstm: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D "
                    "[1, 7, 2, 3]");
  CHECK_THROWS_WITH(F::lstm(ones({0, 2, 3}, DType::float64), weights),
                    "lstm: the sequence has no steps: expected >= 1, got 0 in [0, 2, 3]");
  CHECK_THROWS_WITH(F::lstm(ones({0, 3}, DType::float64), weights),
                    "lstm: the sequence has no steps: expected >= 1, got 0 in [0, 3]");
  CHECK_THROWS_WITH(F::lstm(ones({2, 0, 3}, DType::float64), weights, {}, {.batch_first = true}),
                    "lstm: the sequence has no steps: expected >= 1, got 0 in [2, 0, 3]");
  CHECK_THROWS_WITH(F::lstm(ones({7, 2, 4}, DType::float64), weights),
                    "lstm: input does not fit input_size: expected [L, N, 3], got [7, 2, 4]");
  CHECK_THROWS_WITH(F::lstm(ones({2, 7, 4}, DType::float64), weights, {}, {.batch_first = true}),
                    "lstm: input does not fit input_size: expected [N, L, 3], got [2, 7, 4]");
  CHECK_THROWS_WITH(F::lstm(ones({7, 4}, DType::float64), weights),
                    "lstm: input does not fit input_size: expected [L, 3], got [7, 4]");
  CHECK_THROWS_WITH(F::lstm(ones({7, 2, 3}, DType::int64), weights),
                    "lstm: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::lstm(ones({7, 2, 3}), weights),
                    "lstm: element types differ: expected float32, got float64 in weight_hh_l0; convert with to()");
  CHECK_THROWS_WITH(F::lstm(x, {}), "lstm: weights do not make whole layers: expected at least 1, got 0");
  CHECK_THROWS_WITH(F::lstm(x, {weights.data(), 1}, {}, {.bidirectional = true}),
                    "lstm: weights do not make whole layers: expected a multiple of 2, got 1");
  CHECK_THROWS_WITH(F::lstm(x, weights, {.h = state}),
                    "lstm: one state is missing: expected h_0 and c_0 or neither, got h_0");
  CHECK_THROWS_WITH(F::lstm(x, weights, {.c = state}),
                    "lstm: one state is missing: expected h_0 and c_0 or neither, got c_0");
  CHECK_THROWS_WITH(F::lstm(x, weights, {state, zeros({2, 3, 5}, DType::float64)}),
                    "lstm: c_0 does not fit: expected [2, 2, 5], got [2, 3, 5]");
  CHECK_THROWS_WITH(F::lstm(x, weights, {zeros({1, 2, 5}, DType::float64), state}),
                    "lstm: h_0 does not fit: expected [2, 2, 5], got [1, 2, 5]");
  CHECK_THROWS_WITH(F::lstm(ones({7, 3}, DType::float64), weights, {state, state}),
                    "lstm: h_0 does not fit: expected [2, 5], got [2, 2, 5]");
  CHECK_THROWS_WITH(F::lstm(x, weights, {zeros({2, 2, 5}), state}),
                    "lstm: element types differ: expected float64, got float32 in h_0; convert with to()");
  CHECK_THROWS_WITH(F::lstm(x, weights, {}, {.dropout = 1.5}),
                    "lstm: dropout is no probability: expected 0 to 1, got 1.5");
  CHECK_THROWS_WITH(F::lstm(x, weights, {}, {.dropout = NAN}),
                    "lstm: dropout is no probability: expected 0 to 1, got nan");
}

TEST_CASE("recurrent functions name weights that do not fit, with their layer") {
  manual_seed(2);
  const Tensor x = ones({7, 2, 3}, DType::float64);
  const auto with = [&](auto change) {
    auto weights = stack_of(3, 3, 5, 2, 2);
    change(weights);
    return weights;
  };
  const nn::RecurrentSettings both{.bidirectional = true};
  CHECK_THROWS_WITH(F::gru(x, with([](auto& w) {
                             w[3].weight_ih = zeros({15, 5}, DType::float64);
                           }),
                           {}, both),
                    "gru: weight_ih_l1_reverse does not fit: expected [15, 10], got [15, 5]");
  CHECK_THROWS_WITH(F::gru(x, with([](auto& w) {
                             w[1].weight_hh = zeros({20, 5}, DType::float64);
                           }),
                           {}, both),
                    "gru: weight_hh_l0_reverse does not fit: expected [3 * hidden_size, hidden_size], got [20, 5]");
  CHECK_THROWS_WITH(F::gru(x, with([](auto& w) { w[1].weight_hh = zeros({15}, DType::float64); }), {}, both),
                    "gru: weight_hh_l0_reverse does not fit: expected [3 * hidden_size, hidden_size], got [15]");
  CHECK_THROWS_WITH(F::gru(x, with([](auto& w) { w[1] = weights_of(3, 3, 7); }), {}, both),
                    "gru: weight_hh_l0_reverse has another hidden_size: expected 5, got 7");
  CHECK_THROWS_WITH(F::gru(x, with([](auto& w) { w[0].bias_hh = zeros({5}, DType::float64); }), {}, both),
                    "gru: bias_hh_l0 does not fit: expected [15], got [5]");
  CHECK_THROWS_WITH(F::gru(x, with([](auto& w) { w[2].bias_hh = Tensor(); }), {}, both),
                    "gru: one bias is missing: expected bias_ih_l1 and bias_hh_l1 or neither, got one");
  CHECK_THROWS_WITH(F::rnn(x, with([](auto&) {})),
                    "rnn: weight_hh_l0 does not fit: expected [1 * hidden_size, hidden_size], got [15, 5]");
}

TEST_CASE("recurrent constructors refuse what no input could make valid") {
  CHECK_THROWS_WITH(nn::LSTM({.hidden_size = 3}),
                    "lstm: input_size is missing: expected a number, got none; only a model that knows its input's "
                    "shape can infer it");
  CHECK_THROWS_WITH(nn::LSTM({.input_size = 0, .hidden_size = 3}),
                    "LSTM: input_size is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::LSTM({.input_size = 2}), "LSTM: hidden_size is out of range: expected >= 1, got -1");
  CHECK_THROWS_WITH(nn::GRU({.input_size = 2, .hidden_size = 0}),
                    "GRU: hidden_size is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::RNN({.input_size = 2, .hidden_size = 3, .num_layers = 0}),
                    "RNN: num_layers is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::RNN({.input_size = 2, .hidden_size = 3, .num_layers = 1025}),
                    "RNN: num_layers is out of range: expected <= 1024, got 1025");
  CHECK_THROWS_WITH(nn::RNN({.input_size = 2, .hidden_size = 3, .dropout = 1.5}),
                    "RNN: dropout is out of range: expected <= 1, got 1.5");
  CHECK_THROWS_WITH(nn::RNN({.input_size = 2, .hidden_size = 3, .dropout = -0.5}),
                    "RNN: dropout is out of range: expected >= 0, got -0.5");
}

TEST_CASE("recurrent layers infer their input size and refuse wrong shapes") {
  CHECK(infer_all<nn::LSTMOptions>({.hidden_size = 3, .bidirectional = true}, {{2, 7, 5}}) == Shape{2, 7, 6});
  CHECK(infer_all<nn::GRUOptions>({.hidden_size = 3}, {{7, 5}}) == Shape{7, 3});
  nn::RNNOptions options{.hidden_size = 3};
  const Shape input{2, 7, 5};
  nn::find_layer_type("RNN")->infer(&options, {&input, 1});
  CHECK(options.input_size == 5);
  CHECK_THROWS_WITH(infer_all<nn::RNNOptions>({.input_size = 4, .hidden_size = 3}, {{1, 7, 5}}),
                    "rnn: input_size does not fit the input: expected 5, got 4 in [N, 7, 5]");
  CHECK_THROWS_WITH(infer_all<nn::RNNOptions>({.hidden_size = 3}, {{1, 7, 5, 2}}),
                    "rnn: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D "
                    "[1, 7, 5, 2]");
  CHECK(infer_all<nn::LSTMOptions>({.hidden_size = 3, .num_layers = 2}, {{7, 2, 5}, {2, 2, 3}, {2, 2, 3}}) ==
        Shape{7, 2, 3});
  CHECK_THROWS_WITH(infer_all<nn::LSTMOptions>({.hidden_size = 3}, {{7, 2, 5}, {1, 2, 3}}),
                    "LSTM: takes the input and all initial states or none: expected 1 or 3 inputs, got 2");
  CHECK_THROWS_WITH(infer_all<nn::LSTMOptions>({.hidden_size = 3}, {{7, 2, 5}, {1, 2, 3}, {1, 7, 3}}),
                    "lstm: c_0 does not fit: expected [1, 2, 3], got [1, 7, 3]");
  CHECK_THROWS_WITH(infer_all<nn::GRUOptions>({.hidden_size = std::int64_t{1} << 62}, {{7, 2, 5}}),
                    "shape: number of elements overflows 64 bits: expected a product below 2^63, got " +
                        std::to_string(std::int64_t{1} << 62) + " in dimension 1");
}

TEST_CASE("recurrent layers in JSON refuse what no layer takes") {
  const auto error = [](const std::string& options, const std::string& shape = "[7, 5]") {
    return test::json_error("LSTM", options, shape);
  };
  CHECK(error(R"("hidden_size": 3, "batch_first": true)") == "no error");
  CHECK(error("") == "error: /layers/0 (layer LSTM 0): missing key: expected hidden_size, got none");
  CHECK(error(R"("hidden_size": 0)") == "error: /layers/0/hidden_size (layer LSTM 0): expected >= 1, got 0");
  CHECK(error(R"("hidden_size": 3, "dropout": 2)") == "error: /layers/0/dropout (layer LSTM 0): expected <= 1, got 2");
  CHECK(error(R"("hidden_size": 3, "num_layers": 0)") ==
        "error: /layers/0/num_layers (layer LSTM 0): expected >= 1, got 0");
  CHECK(error(R"("hidden_size": 3, "proj_size": 2)") == "no error");
  CHECK(error(R"("hidden_size": 3, "proj_size": 3)") ==
        "error: /layers/0/proj_size (layer LSTM 0): lstm: proj_size must be smaller than hidden_size: expected < 3, "
        "got 3; shapes: input [7, 5] -> LSTM");
  CHECK(error(R"("hidden_size": 3, "proj_size": -1)") ==
        "error: /layers/0/proj_size (layer LSTM 0): expected >= 0, got -1");
  for (const char* type : {"RNN", "GRU"})
    CHECK(test::json_error(type, R"("hidden_size": 3, "proj_size": 2)", "[7, 5]")
              .find(std::string("error: /layers/0/proj_size (layer ") + type + " 0): unknown key: expected type, ") ==
          0);
  CHECK(error(R"("hidden_size": 3, "nonlinearity": "relu")").find("nonlinearity (layer LSTM 0): unknown key") !=
        std::string::npos);
  CHECK(error(R"("hidden_size": 3, "input_size": 4)") ==
        "error: /layers/0/input_size (layer LSTM 0): lstm: input_size does not fit the input: expected 5, got 4 in "
        "[N, 7, 5]; shapes: input [7, 5] -> LSTM");
  CHECK(error(R"("hidden_size": 3)", "[2, 7, 5]") ==
        "error: /layers/0 (layer LSTM 0): lstm: wrong number of dimensions: expected 2-D unbatched or 3-D batched "
        "input, got 4-D [1, 2, 7, 5]; shapes: input [2, 7, 5] -> LSTM");
  CHECK(test::json_error("RNN", R"("hidden_size": 3, "nonlinearity": "sine")", "[7, 5]") ==
        "error: /layers/0/nonlinearity (layer RNN 0): expected tanh or relu, got sine");
}
