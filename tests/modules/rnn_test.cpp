#include "taper/nn/rnn.hpp"

#include <algorithm>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"
#include "taper/optim.hpp"

using namespace taper;
namespace F = taper::nn::functional;
using nn::RecurrentWeights;

namespace {

template <class O>
Shape infer(O options, const std::vector<Shape>& inputs) {
  return nn::find_layer_type(O::kType)->infer(&options, inputs);
}

/// Weights of one layer and direction, float64 leaves.
RecurrentWeights weights_of(std::int64_t gates, std::int64_t in, std::int64_t hidden, bool bias = true) {
  const auto draw = [](const Shape& shape) { return uniform(shape, -1, 1, DType::float64).requires_grad_(); };
  const std::int64_t rows = gates * hidden;
  RecurrentWeights w{draw({rows, in}), draw({rows, hidden})};
  if (bias) w.bias_ih = draw({rows}), w.bias_hh = draw({rows});
  return w;
}

/// As `stack_of`, of an LSTM with a projection.
std::vector<RecurrentWeights> projected_stack(std::int64_t in, std::int64_t hidden, std::int64_t projection, int layers,
                                              int directions, bool bias = true) {
  const auto draw = [](const Shape& shape) { return uniform(shape, -1, 1, DType::float64).requires_grad_(); };
  std::vector<RecurrentWeights> all;
  for (int i = 0; i < layers * directions; ++i) {
    all.push_back(weights_of(4, i < directions ? in : directions * projection, hidden, bias));
    all.back().weight_hh = draw({4 * hidden, projection});
    all.back().weight_hr = draw({projection, hidden});
  }
  return all;
}

/// `layers` layers over `in` features, in two directions if `directions` is 2.
std::vector<RecurrentWeights> stack_of(std::int64_t gates, std::int64_t in, std::int64_t hidden, int layers,
                                       int directions, bool bias = true) {
  std::vector<RecurrentWeights> all;
  for (int i = 0; i < layers * directions; ++i)
    all.push_back(weights_of(gates, i < directions ? in : directions * hidden, hidden, bias));
  return all;
}

/// All leaves in one list, in the order of the layers.
std::vector<Tensor> leaves_of(const std::vector<RecurrentWeights>& weights) {
  std::vector<Tensor> leaves;
  for (const auto& w : weights) {
    leaves.insert(leaves.end(), {w.weight_ih, w.weight_hh});
    if (w.bias_ih.defined()) leaves.insert(leaves.end(), {w.bias_ih, w.bias_hh});
    if (w.weight_hr.defined()) leaves.push_back(w.weight_hr);
  }
  return leaves;
}

/// What a function gives, in one row.
Tensor flat(const std::vector<Tensor>& parts) {
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) rows.push_back(part.flatten());
  return cat(rows);
}

}  // namespace

TEST_CASE("an LSTM of one number takes the steps one can work out by hand") {
  // All weights 0, so that only the biases speak: i = sigmoid(ln 3) = 3/4, f = 1/2, g = tanh(b), o = 1/2.
  const double ln3 = std::log(3.0);
  const RecurrentWeights w{zeros({4, 1}, DType::float64), zeros({4, 1}, DType::float64),
                           tensor({ln3, 0., 0.5, 0.}, DType::float64), zeros({4}, DType::float64)};
  const auto r = F::lstm(ones({2, 1, 1}, DType::float64), {&w, 1},
                         {tensor({{{0.25}}}, DType::float64), tensor({{{2.}}}, DType::float64)});
  const double g = std::tanh(0.5), c1 = 0.5 * 2 + 0.75 * g, c2 = 0.5 * c1 + 0.75 * g;
  CHECK(test::relative_error(r.output.to_vector<double>(), {std::tanh(c1) / 2, std::tanh(c2) / 2}) < 1e-15);
  CHECK(test::relative_error(r.c_n.to_vector<double>(), {c2}) < 1e-15);
  CHECK(r.h_n.to_vector<double>() == std::vector<double>{r.output.to_vector<double>()[1]});
}

TEST_CASE("a GRU resets after the product, as PyTorch does") {
  // W_hn h + b_hn = 3, r = 1/2, z = 1/2: n = tanh(1.5), and a reset before the product would give another number.
  const RecurrentWeights w{zeros({3, 1}, DType::float64), tensor({{0.}, {0.}, {2.}}, DType::float64),
                           zeros({3}, DType::float64), tensor({0., 0., 2.}, DType::float64)};
  const auto r = F::gru(ones({1, 1, 1}, DType::float64), {&w, 1}, tensor({{{0.5}}}, DType::float64));
  CHECK(test::relative_error(r.output.to_vector<double>(), {0.5 * std::tanh(1.5) + 0.25}) < 1e-15);
}

TEST_CASE("recurrent functions have the gradients of all their outputs") {
  manual_seed(3);
  const Tensor x = test::spread({5, 3, 2}).requires_grad_();
  const Tensor h = test::spread({4, 3, 5}, 0.53).requires_grad_(), c = test::spread({4, 3, 5}, 0.71).requires_grad_();
  for (const bool bias : {true, false})
    for (const bool batch_first : {true, false}) {
      const nn::RecurrentSettings settings{.batch_first = batch_first, .bidirectional = true};
      const Tensor input = batch_first ? test::spread({3, 5, 2}).requires_grad_() : x;
      const auto check = [&](std::int64_t gates, bool with_c, auto function) {
        const auto weights = stack_of(gates, 2, 5, 2, 2, bias);
        std::vector<Tensor> inputs = leaves_of(weights);
        inputs.insert(inputs.end(), {input, h});
        if (with_c) inputs.push_back(c);
        const auto report =
            autograd::gradcheck([&](const std::vector<Tensor>&) { return function(weights, settings); }, inputs);
        INFO(report.to_string());
        CHECK(report.ok);
      };
      check(1, false, [&](const auto& w, const auto& s) {
        const auto r = F::rnn(input, w, h, nn::Nonlinearity::tanh, s);
        return flat({r.output, r.h_n});
      });
      check(3, false, [&](const auto& w, const auto& s) {
        const auto r = F::gru(input, w, h, s);
        return flat({r.output, r.h_n});
      });
      check(4, true, [&](const auto& w, const auto& s) {
        const auto r = F::lstm(input, w, {h, c}, s);
        return flat({r.output, r.h_n, r.c_n});
      });
      check(4, true, [&](const auto& w, const auto& s) { return F::lstm(input, w, {h, c}, s).c_n; });
    }
}

TEST_CASE("an LSTM with a projection has the gradients of all its outputs") {
  manual_seed(3);
  const Tensor h = test::spread({4, 3, 2}, 0.53).requires_grad_(), c = test::spread({4, 3, 5}, 0.71).requires_grad_();
  for (const bool bias : {true, false})
    for (const bool batch_first : {true, false}) {
      const Tensor x = test::spread(batch_first ? Shape{3, 7, 3} : Shape{7, 3, 3}).requires_grad_();
      const auto weights = projected_stack(3, 5, 2, 2, 2, bias);
      std::vector<Tensor> inputs = leaves_of(weights);
      inputs.insert(inputs.end(), {x, h, c});
      const nn::RecurrentSettings settings{.batch_first = batch_first, .bidirectional = true};
      const auto report = autograd::gradcheck(
          [&](const std::vector<Tensor>&) {
            const auto r = F::lstm(x, weights, {h, c}, settings);
            return flat({r.output, r.h_n, r.c_n});
          },
          inputs);
      INFO(report.to_string());
      CHECK(report.ok);
    }
}

TEST_CASE("a projection is the product with W_hr of what the LSTM would give, and is what the next step reads") {
  manual_seed(3);
  const RecurrentWeights w = projected_stack(3, 5, 2, 1, 1)[0];
  const Tensor x = test::spread({1, 7, 3});
  RecurrentWeights plain = w;
  plain.weight_hr = Tensor();
  plain.weight_hh = zeros({20, 5}, DType::float64);  // the state before the first step is 0
  const auto projected = F::lstm(x, {&w, 1}), unprojected = F::lstm(x, {&plain, 1});
  const Tensor expected = matmul(unprojected.output.reshape({7, 5}), w.weight_hr.transpose(0, 1));
  CHECK(test::relative_error(projected.output.to_vector<double>(), expected.to_vector<double>()) < 1e-14);
  CHECK(projected.c_n.to_vector<double>() == unprojected.c_n.to_vector<double>());
}

TEST_CASE("a layer in one direction is one recorded operation, however long the sequence is") {
  nn::LSTM lstm({.input_size = 2, .hidden_size = 3});
  const auto tape = autograd::Tape::of(lstm(ones({31, 5, 2})));
  REQUIRE(tape.size() == 5);  // four parameters
  CHECK(tape.entries().back().op == "lstm");
  nn::GRU deep({.input_size = 2, .hidden_size = 3, .num_layers = 2, .bidirectional = true});
  const auto entries = autograd::Tape::of(deep(ones({7, 5, 2}))).entries();
  CHECK(std::count_if(entries.begin(), entries.end(), [](const auto& e) { return e.op == "gru"; }) == 4);
}

TEST_CASE("recurrent layers have PyTorch's shapes, batched, batch first, unbatched and without samples") {
  nn::LSTM lstm({.input_size = 2, .hidden_size = 3, .num_layers = 2, .bidirectional = true});
  const auto check = [](const nn::LSTMResult& r, const Shape& output, const Shape& state) {
    CHECK(r.output.shape() == output);
    CHECK(r.h_n.shape() == state);
    CHECK(r.c_n.shape() == state);
  };
  check(lstm.forward_with_state(ones({7, 5, 2})), {7, 5, 6}, {4, 5, 3});
  check(lstm.forward_with_state(ones({7, 2})), {7, 6}, {4, 3});
  check(lstm.forward_with_state(ones({7, 0, 2})), {7, 0, 6}, {4, 0, 3});
  nn::LSTM first({.input_size = 2, .hidden_size = 3, .num_layers = 2, .batch_first = true, .bidirectional = true});
  check(first.forward_with_state(ones({5, 7, 2})), {5, 7, 6}, {4, 5, 3});
  check(first.forward_with_state(ones({7, 2})), {7, 6}, {4, 3});
}

TEST_CASE("an LSTM with a projection has PyTorch's shapes and parameters") {
  nn::LSTM lstm({.input_size = 5, .hidden_size = 7, .num_layers = 2, .bidirectional = true, .proj_size = 3});
  const auto check = [&](const Tensor& x, const Shape& output, const Shape& h_n, const Shape& c_n) {
    const auto r = lstm.forward_with_state(x);
    CHECK(r.output.shape() == output);
    CHECK(r.h_n.shape() == h_n);
    CHECK(r.c_n.shape() == c_n);
  };
  check(ones({11, 2, 5}), {11, 2, 6}, {4, 2, 3}, {4, 2, 7});
  check(ones({11, 5}), {11, 6}, {4, 3}, {4, 7});
  check(ones({11, 0, 5}), {11, 0, 6}, {4, 0, 3}, {4, 0, 7});
  const auto parameters = lstm.named_parameters();
  REQUIRE(parameters.size() == 20);
  CHECK(parameters[1].tensor.shape() == Shape{28, 3});
  CHECK(parameters[4].name == "weight_hr_l0");
  CHECK(parameters[4].tensor.shape() == Shape{3, 7});
  CHECK(parameters[10].tensor.shape() == Shape{28, 6});
  CHECK(parameters[19].name == "weight_hr_l1_reverse");
  const double bound = 1 / std::sqrt(7.0);
  for (const auto& [name, tensor] : parameters)
    for (const double value : tensor.to_vector<double>()) CHECK(std::abs(value) <= bound);
  nn::LSTMOptions options{.hidden_size = 7, .num_layers = 2, .proj_size = 3};
  const nn::LayerType& type = *nn::find_layer_type("LSTM");
  const std::vector<Shape> inputs = {{11, 2, 5}, {2, 2, 3}, {2, 2, 7}};
  CHECK(type.infer(&options, inputs) == Shape{11, 2, 3});
  CHECK(type.infer_further(&options, inputs).at(0).shape == Shape{2, 2, 3});
  CHECK(type.infer_further(&options, inputs).at(1).shape == Shape{2, 2, 7});
}

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
  CHECK_THROWS_WITH(infer<nn::LSTMOptions>({.hidden_size = 3, .proj_size = 2}, {{7, 2, 5}, {1, 2, 3}, {1, 2, 3}}),
                    "lstm: h_0 does not fit: expected [1, 2, 2], got [1, 2, 3]");
}

TEST_CASE("the layout of the batch changes nothing but the layout") {
  manual_seed(5);
  nn::GRU time({.input_size = 3, .hidden_size = 5, .num_layers = 2, .bidirectional = true});
  nn::GRU batch({.input_size = 3, .hidden_size = 5, .num_layers = 2, .batch_first = true, .bidirectional = true});
  batch.load_state_dict(time.state_dict());
  const Tensor x = uniform({7, 19, 3}, -1, 1);
  const Tensor expected = time(x).transpose(0, 1);
  CHECK(test::same_bits(batch(x.transpose(0, 1)).to_vector<float>(), expected.to_vector<float>()));
}

TEST_CASE("a sequence in two parts with the state handed over is the whole sequence") {
  manual_seed(9);
  nn::LSTM lstm({.input_size = 3, .hidden_size = 5, .num_layers = 2});
  const Tensor x = uniform({7, 2, 3}, -1, 1);
  const auto whole = lstm.forward_with_state(x), first = lstm.forward_with_state(x.narrow(0, 0, 3));
  const auto rest = lstm.forward_with_state(x.narrow(0, 3, 4), {first.h_n, first.c_n});
  CHECK(test::distance(cat({first.output, rest.output}).to_vector<float>(), whole.output.to_vector<double>()) < 1e-6);
  CHECK(test::distance(rest.c_n.to_vector<float>(), whole.c_n.to_vector<double>()) < 1e-6);
  CHECK(test::same_bits(lstm(x).to_vector<float>(), whole.output.to_vector<float>()));
}

TEST_CASE("dropout between layers acts in training alone, never after the last layer, and by its own stream") {
  manual_seed(1);
  nn::RNN net({.input_size = 2, .hidden_size = 11, .num_layers = 2, .dropout = 0.5});
  nn::RNN single({.input_size = 2, .hidden_size = 11, .dropout = 0.5});
  const Tensor x = uniform({3, 5, 2}, -1, 1);
  manual_seed(4);
  const auto once = net(x).to_vector<float>();
  manual_seed(4);
  CHECK(net(x).to_vector<float>() == once);
  CHECK(net(x).to_vector<float>() != once);
  CHECK(single(x).to_vector<float>() == single(x).to_vector<float>());
  net.eval();
  const auto plain = net(x).to_vector<float>();
  CHECK(net(x).to_vector<float>() == plain);
  CHECK(plain != once);
  // All of it dropped: the second layer sees zeros.
  nn::RNN blind({.input_size = 2, .hidden_size = 11, .num_layers = 2, .dropout = 1});
  CHECK(blind(x).to_vector<float>() == blind(neg(x)).to_vector<float>());
}

TEST_CASE("recurrent layers have PyTorch's parameter names and print all their options") {
  const nn::LSTM lstm({.input_size = 2, .hidden_size = 3, .num_layers = 2, .bidirectional = true});
  const auto parameters = lstm.named_parameters();
  REQUIRE(parameters.size() == 16);
  const std::vector<std::string> names = {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                          "weight_ih_l0_reverse"};
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(parameters[i].name == names[i]);
  CHECK(parameters[8].name == "weight_ih_l1");
  CHECK(parameters[15].name == "bias_hh_l1_reverse");
  CHECK(parameters[0].tensor.shape() == Shape{12, 2});
  CHECK(parameters[1].tensor.shape() == Shape{12, 3});
  CHECK(parameters[8].tensor.shape() == Shape{12, 6});
  CHECK(lstm.to_string() ==
        "LSTM(input_size=2, hidden_size=3, num_layers=2, bias=true, batch_first=false, dropout=0.0, "
        "bidirectional=true, proj_size=0)");
  const nn::RNN rnn({.input_size = 2, .hidden_size = 3, .nonlinearity = nn::Nonlinearity::relu, .bias = false});
  CHECK(rnn.named_parameters().size() == 2);
  CHECK(rnn.to_string() ==
        "RNN(input_size=2, hidden_size=3, num_layers=1, nonlinearity=\"relu\", bias=false, batch_first=false, "
        "dropout=0.0, bidirectional=false)");
  CHECK(nn::GRU({.input_size = 2, .hidden_size = 3}).named_parameters()[0].tensor.shape() == Shape{9, 2});
}

TEST_CASE("recurrent layers start uniform in the bound of their hidden size") {
  manual_seed(7);
  const nn::GRU gru({.input_size = 2, .hidden_size = 16});
  for (const auto& [name, tensor] : gru.named_parameters()) {
    INFO(name);
    const auto values = tensor.to_vector<double>();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(*low >= -0.25);
    CHECK(*low < -0.2);
    CHECK(*high <= 0.25);
    CHECK(*high > 0.2);
  }
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
  CHECK(infer<nn::LSTMOptions>({.hidden_size = 3, .bidirectional = true}, {{2, 7, 5}}) == Shape{2, 7, 6});
  CHECK(infer<nn::GRUOptions>({.hidden_size = 3}, {{7, 5}}) == Shape{7, 3});
  nn::RNNOptions options{.hidden_size = 3};
  const Shape input{2, 7, 5};
  nn::find_layer_type("RNN")->infer(&options, {&input, 1});
  CHECK(options.input_size == 5);
  CHECK_THROWS_WITH(infer<nn::RNNOptions>({.input_size = 4, .hidden_size = 3}, {{1, 7, 5}}),
                    "rnn: input_size does not fit the input: expected 5, got 4 in [N, 7, 5]");
  CHECK_THROWS_WITH(infer<nn::RNNOptions>({.hidden_size = 3}, {{1, 7, 5, 2}}),
                    "rnn: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D "
                    "[1, 7, 5, 2]");
  CHECK(infer<nn::LSTMOptions>({.hidden_size = 3, .num_layers = 2}, {{7, 2, 5}, {2, 2, 3}, {2, 2, 3}}) ==
        Shape{7, 2, 3});
  CHECK_THROWS_WITH(infer<nn::LSTMOptions>({.hidden_size = 3}, {{7, 2, 5}, {1, 2, 3}}),
                    "LSTM: takes the input and all initial states or none: expected 1 or 3 inputs, got 2");
  CHECK_THROWS_WITH(infer<nn::LSTMOptions>({.hidden_size = 3}, {{7, 2, 5}, {1, 2, 3}, {1, 7, 3}}),
                    "lstm: c_0 does not fit: expected [1, 2, 3], got [1, 7, 3]");
  CHECK_THROWS_WITH(infer<nn::GRUOptions>({.hidden_size = std::int64_t{1} << 62}, {{7, 2, 5}}),
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

TEST_CASE("recurrent layers take their initial states as further inputs") {
  manual_seed(6);
  nn::LSTM lstm({.input_size = 2, .hidden_size = 3});
  const Tensor x = uniform({5, 7, 2}, -1, 1), h = uniform({1, 7, 3}, -1, 1), c = uniform({1, 7, 3}, -1, 1);
  const Tensor inputs[] = {x, h, c};
  CHECK(test::same_bits(lstm.forward_all(inputs).to_vector<float>(),
                        lstm.forward_with_state(x, {h, c}).output.to_vector<float>()));
  CHECK_THROWS_WITH(lstm.forward_all({inputs, 2}),
                    "LSTM: takes the input and all initial states or none: expected 1 or 3 inputs, got 2");
  nn::GRU gru({.input_size = 2, .hidden_size = 3});
  CHECK(test::same_bits(gru.forward_all({inputs, 2}).to_vector<float>(),
                        gru.forward_with_state(x, h).output.to_vector<float>()));
  CHECK_THROWS_WITH(gru.forward_all(inputs),
                    "GRU: takes the input and all initial states or none: expected 1 or 2 inputs, got 3");
}

TEST_CASE("recurrent layers give their last states as further results") {
  manual_seed(6);
  nn::LSTM lstm({.input_size = 2, .hidden_size = 3, .num_layers = 2, .bidirectional = true});
  CHECK(lstm.further_outputs() == std::vector<std::string>{"h_n", "c_n"});
  CHECK(nn::GRU({.input_size = 2, .hidden_size = 3}).further_outputs() == std::vector<std::string>{"h_n"});
  const Tensor x = uniform({5, 7, 2}, -1, 1);
  const auto expected = lstm.forward_with_state(x);
  const auto results = lstm.forward_outputs({&x, 1});
  REQUIRE(results.size() == 3);
  CHECK(results[0].to_vector<float>() == expected.output.to_vector<float>());
  CHECK(results[1].to_vector<float>() == expected.h_n.to_vector<float>());
  CHECK(results[2].to_vector<float>() == expected.c_n.to_vector<float>());
  nn::LSTMOptions options{.hidden_size = 3, .num_layers = 2};
  const nn::LayerType& type = *nn::find_layer_type("LSTM");
  const Shape input{5, 7, 2}, alone{5, 2};
  CHECK(type.infer_further(&options, {&input, 1}).at(1).shape == Shape{2, 7, 3});
  CHECK(type.infer_further(&options, {&alone, 1}).at(0).shape == Shape{2, 3});
}

TEST_CASE("an LSTM learns to remember the sign of the first step") {
  manual_seed(9);
  nn::LSTM lstm({.input_size = 1, .hidden_size = 7});
  const Tensor x = uniform({13, 31, 1}, -1, 1), target = gt(x.select(0, 0), 0).to(DType::float32);
  optim::Adam adam(lstm.parameters(), {.lr = 0.05});
  double loss_value = 1;
  for (int step = 0; step < 150; ++step) {
    adam.zero_grad();
    const Tensor error = lstm(x).select(0, 12).narrow(1, 0, 1) - target * 0.9;
    const Tensor loss = (error * error).mean();
    loss.backward();
    adam.step();
    loss_value = loss.item();
  }
  CHECK(loss_value < 0.02);
}
