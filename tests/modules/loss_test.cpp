#include "taper/nn/loss.hpp"

#include <set>

#include "base/memory.hpp"
#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/golden_options.hpp"
#include "support/message_of.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using namespace taper::nn;
using functional::binary_cross_entropy_with_logits;
using functional::cross_entropy;
using functional::huber_loss;
using functional::l1_loss;
using functional::mse_loss;
using functional::nll_loss;
using functional::smooth_l1_loss;
using test::message_of;
using test::spread;

namespace {

/// Runs all stored cases of losses in one element type and returns the names of the types seen.
std::set<std::string> run_stored(DType dtype, const test::Tolerance& tolerance) {
  std::set<std::string> types;
  const auto golden = test::read_golden("losses.json");
  for (const auto& stored : golden.at("cases")) {
    CAPTURE(stored.at("name").get<std::string>());
    const std::string name = stored.at("loss").at("type");
    const LossType* type = find_loss_type(name);
    REQUIRE(type != nullptr);
    types.insert(name);
    const auto loss = type->make(test::options_from(*type, stored.at("loss")).get());
    const Tensor x = test::golden_tensor(stored.at("input"), dtype).requires_grad_();
    const Tensor y = (*loss)(x, test::golden_tensor(stored.at("target"), dtype));
    CHECK(test::golden_difference(y, test::golden_tensor(stored.at("output"), DType::float64), tolerance) == "");
    y.backward(test::golden_tensor(stored.at("grad_output"), dtype));
    CHECK(test::golden_difference(x.grad(), test::golden_tensor(stored.at("grad_input"), DType::float64), tolerance) ==
          "");
  }
  return types;
}

}  // namespace

TEST_CASE("losses in float64 give PyTorch's numbers and gradients", "[loss]") {
  const auto seen = run_stored(DType::float64, {1e-12, 1e-3});
  std::set<std::string> offered;
  for (const LossType& type : loss_types()) offered.insert(type.name);
  CHECK(seen == offered);
}

TEST_CASE("losses in float32 give PyTorch's numbers and gradients", "[loss]") { run_stored(DType::float32, {1e-6, 1}); }

TEST_CASE("every loss passes the gradient check", "[loss]") {
  const Tensor x = spread({2, 3, 5}).requires_grad_(), t = spread({2, 3, 5}, 0.53).requires_grad_();
  const Tensor classes = tensor({{0, 2, -100, 1, 1}, {2, 2, 0, 1, -100}});
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const auto check = [&](const Tensor& target, const auto& f) {
      std::vector<Tensor> inputs{x};
      if (target.requires_grad()) inputs.push_back(target);
      const auto report = autograd::gradcheck(
          [&](const std::vector<Tensor>& in) { return f(in[0], in.size() > 1 ? in[1] : target); }, inputs);
      CHECK(report.to_string() == autograd::GradcheckReport{.op = report.op}.to_string());
      CHECK(report.ok);
    };
    using T = const Tensor&;
    check(classes, [&](T a, T b) {
      return cross_entropy(a, b, {.weight = {0.5, 1.25, 2}, .label_smoothing = 0.25, .reduction = reduction});
    });
    check(t, [&](T a, T b) {
      return cross_entropy(a, b, {.weight = {0.5, 1.25, 2}, .label_smoothing = 0.25, .reduction = reduction});
    });
    check(classes, [&](T a, T b) { return nll_loss(a, b, {.weight = {0.5, 1.25, 2}, .reduction = reduction}); });
    check(t, [&](T a, T b) { return mse_loss(a, b, {.reduction = reduction}); });
    check(t, [&](T a, T b) { return l1_loss(a, b, {.reduction = reduction}); });
    check(t, [&](T a, T b) { return smooth_l1_loss(a, b, {.beta = 0.7, .reduction = reduction}); });
    check(t, [&](T a, T b) { return huber_loss(a, b, {.delta = 1.3, .reduction = reduction}); });
    check(t, [&](T a, T b) {
      return binary_cross_entropy_with_logits(
          a, b, {.weight = {0.5, 2, 1, 3, 0.25}, .pos_weight = {2.5}, .reduction = reduction});
    });
  }
}

TEST_CASE("gradients of both sides add up when prediction and target come from one tensor", "[loss]") {
  // L = mean (2 x - x)^2, so dL/dx = 2 x / n
  const Tensor x = spread({3, 2}).requires_grad_();
  mse_loss(mul(x, 2), x).backward();
  std::vector<double> expected = x.to_vector<double>();
  for (double& value : expected) value *= 2.0 / 6;
  CHECK(test::relative_error(x.grad().to_vector<double>(), expected) < 1e-15);
}

TEST_CASE("losses refuse shapes, types and options that do not fit", "[loss]") {
  const Tensor x = spread({2, 3});
  CHECK(message_of([&] { mse_loss(x, spread({3})); }) ==
        "mse_loss: target and input have different shapes: expected [2, 3], got [3]; reshape one of them");
  CHECK(message_of([&] {
          l1_loss(x, zeros({2, 3}));
        }) ==
        "l1_loss: target and input have different element types: expected float64, got float32; convert with to()");
  CHECK(message_of([&] { smooth_l1_loss(x, x, {.beta = -1}); }) ==
        "smooth_l1_loss: beta is out of range: expected >= 0, got -1");
  CHECK(message_of([&] { huber_loss(x, x, {.delta = 0}); }) ==
        "huber_loss: delta is out of range: expected > 0, got 0");
  CHECK(message_of([&] {
          binary_cross_entropy_with_logits(x, x, {.weight = {1, 2}});
        }) ==
        "binary_cross_entropy_with_logits: weight must have one number or one for each position of the last dimension "
        "of [2, 3]: expected 3, got 2");
  CHECK(message_of([&] {
          binary_cross_entropy_with_logits(x, x, {.pos_weight = {1, 2, 3, 4}});
        }) ==
        "binary_cross_entropy_with_logits: pos_weight must have one number or one for each position of the last "
        "dimension of [2, 3]: expected 3, got 4");
  MSELoss loss;
  CHECK(message_of([&] { loss.forward_all(std::vector<Tensor>{x}); }) ==
        "MSELoss: takes a prediction and its target: expected 2, got 1");
}

TEST_CASE("a loss prints its options and runs as a module of two inputs", "[loss]") {
  CrossEntropyLoss loss({.weight = {0.5, 2}, .reduction = Reduction::sum});
  CHECK(loss.to_string() ==
        "CrossEntropyLoss(weight=[0.5, 2.0], ignore_index=-100, label_smoothing=0.0, reduction=\"sum\")");
  const std::vector<Tensor> inputs{spread({3, 2}), tensor({0, 1, 0})};
  CHECK(loss.forward_all(inputs).item() == loss(inputs[0], inputs[1]).item());
}

TEST_CASE("losses allocate nothing in steady state", "[loss]") {
  const Tensor x = spread({7, 5}).requires_grad_(), like = spread({7, 5}, 0.11), t = tensor({0, 1, 2, 3, 4, -100, 1});
  CrossEntropyLoss classes({.weight = {1, 2, 3, 4, 5}, .label_smoothing = 0.1});
  BCEWithLogitsLoss binary({.weight = {2}, .pos_weight = {1, 2, 3, 4, 5}});
  MSELoss squares;
  const auto round = [&] {
    classes(x, t).backward();
    binary(x, like).backward();
    squares(x, like).backward();
    x.zero_grad();
  };
  for (int i = 0; i < 3; ++i) round();
  const auto before = detail::memory_stats();
  for (int i = 0; i < 50; ++i) round();
  const auto after = detail::memory_stats();
  if (detail::kKeepsBlocks) CHECK(after.system_allocations == before.system_allocations);
  CHECK(after.live_bytes == before.live_bytes);
}
