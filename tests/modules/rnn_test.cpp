#include "taper/nn/rnn.hpp"

#include <algorithm>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/recurrent_stack.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"
#include "taper/optim.hpp"

using namespace taper;
namespace F = taper::nn::functional;
using nn::RecurrentWeights;
using test::leaves_of;
using test::projected_stack;
using test::stack_of;

namespace {

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
