#include "taper/nn/loss.hpp"

#include <set>

#include "core/memory.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/golden_options.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"

using namespace taper;
using namespace taper::nn;
using functional::binary_cross_entropy_with_logits;
using functional::cross_entropy;
using functional::huber_loss;
using functional::l1_loss;
using functional::mse_loss;
using functional::nll_loss;
using functional::smooth_l1_loss;

namespace {

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

Tensor f64(std::initializer_list<NestedList> values) { return tensor(values, DType::float64); }

/// Pseudo-random numbers around 0 that no two elements share.
Tensor spread(const Shape& shape, double step = 0.37) {
  std::vector<double> values(std::size_t(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(1.0 + step * double(i) * double(i + 3)) * 1.7;
  return from_data(values, shape);
}

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

TEST_CASE("cross entropy of a row worked by hand", "[loss]") {
  // softmax of (log 1, log 2, log 5) is (1, 2, 5) / 8
  const Tensor x = f64({std::log(1.0), std::log(2.0), std::log(5.0)}).requires_grad_();
  const Tensor y = cross_entropy(x, scalar(1, DType::int64));
  CHECK(y.item() == Approx(std::log(4.0)));
  y.backward();
  CHECK(test::golden_difference(x.grad(), f64({0.125, -0.75, 0.625}), {1e-14, 1}) == "");
}

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
