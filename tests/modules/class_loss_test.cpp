#include <cmath>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/spread.hpp"
#include "taper/nn/loss.hpp"

using namespace taper;
using namespace taper::nn;
using functional::binary_cross_entropy_with_logits;
using functional::cross_entropy;
using functional::mse_loss;
using functional::nll_loss;
using test::message_of;
using test::spread;

TEST_CASE("cross entropy of a row worked by hand", "[loss]") {
  // softmax of (log 1, log 2, log 5) is (1, 2, 5) / 8
  const Tensor x = tensor({std::log(1.0), std::log(2.0), std::log(5.0)}, DType::float64).requires_grad_();
  const Tensor y = cross_entropy(x, scalar(1, DType::int64));
  CHECK(y.item() == Approx(std::log(4.0)));
  y.backward();
  CHECK(test::relative_error(x.grad().to_vector<double>(), {0.125, -0.75, 0.625}) < 1e-14);
}

TEST_CASE("a class index out of range is refused with its row and value (pytorch 43840)", "[loss][fault-87]") {
  const Tensor x = spread({2, 3});
  CHECK(message_of([&] {
          cross_entropy(x, tensor({0, 1000}));
        }) == "cross_entropy: class index out of range: expected 0 to 2, got 1000 in row 1");
  CHECK(message_of([&] {
          nll_loss(x, tensor({-1, 2}));
        }) == "nll_loss: class index out of range: expected 0 to 2, got -1 in row 0");
  CHECK(message_of([&] { cross_entropy(x, tensor({2, 255}), {.ignore_index = 255}); }) == "no error");
  CHECK(message_of([&] { cross_entropy(spread({3}), scalar(3, DType::int64)); }) ==
        "cross_entropy: class index out of range: expected 0 to 2, got 3");
  CHECK(message_of([&] {
          cross_entropy(spread({2, 3, 5}), tensor({{0, 1, 2, 0, 1}, {2, 2, 0, 7, 1}}));
        }) == "cross_entropy: class index out of range: expected 0 to 2, got 7 at [1, 3]");
}

TEST_CASE(
    "an ignored target counts nothing, whatever the reduction, weights and smoothing (pytorch 15508, 69339, 72056)",
    "[loss][fault-89]") {
  const Tensor targets = tensor({0, 1, 255, 0, 1, 2}), kept = tensor({0, 1, 0, 1, 2});
  const Tensor x = spread({6, 3});
  std::vector<double> rows = x.to_vector<double>();
  rows.erase(rows.begin() + 6, rows.begin() + 9);
  const Tensor without = from_data(rows, {5, 3});
  for (const Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum})
    for (const bool weighted : {false, true})
      for (const double smoothing : {0.0, 0.1}) {
        const auto options = [&](std::int64_t ignored) {
          return CrossEntropyLossOptions{.weight = weighted ? std::vector{0.2, 0.3, 0.7} : std::vector<double>{},
                                         .ignore_index = ignored,
                                         .label_smoothing = smoothing,
                                         .reduction = reduction};
        };
        const Tensor a = x.clone().requires_grad_(), b = without.clone().requires_grad_();
        const Tensor y = cross_entropy(a, targets, options(255)), z = cross_entropy(b, kept, options(-100));
        y.backward(ones_like(y));
        z.backward(ones_like(z));
        std::vector<double> expected = z.to_vector<double>(), gradient = b.grad().to_vector<double>();
        if (reduction == Reduction::none) expected.insert(expected.begin() + 2, 0.0);
        gradient.insert(gradient.begin() + 6, 3, 0.0);
        if (reduction == Reduction::none) CHECK(y.to_vector<double>()[2] == 0);
        CHECK(test::relative_error(y.to_vector<double>(), expected) < 1e-15);
        CHECK(a.grad().to_vector<double>() == gradient);
      }
  const Tensor two = cross_entropy(spread({2, 2}), tensor({-100, 1}), {.weight = {.2, .3}, .label_smoothing = .1});
  CHECK(two.item() > 0);
}

TEST_CASE("a mean over no targets is 0 with zero gradients", "[loss][fault-90]") {
  const Tensor x = spread({2, 3}).requires_grad_();
  const auto zero = [&](const Tensor& y) {
    x.zero_grad();
    y.backward();
    return y.item() == 0 && x.grad().to_vector<double>() == std::vector<double>(std::size_t(x.numel()), 0.0);
  };
  CHECK(zero(cross_entropy(x, tensor({-100, -100}))));
  CHECK(zero(cross_entropy(x, tensor({-100, -100}), {.weight = {1, 2, 3}, .label_smoothing = 0.5})));
  CHECK(zero(cross_entropy(x, tensor({1, 1}), {.weight = {1, 0, 1}})));
  CHECK(zero(nll_loss(x, tensor({-100, -100}))));
  const Tensor nothing = zeros({0, 3}, DType::float64).requires_grad_();
  CHECK(cross_entropy(nothing, zeros({0}, DType::int64)).item() == 0);
  CHECK(cross_entropy(nothing, zeros({0, 3}, DType::float64)).item() == 0);
  CHECK(mse_loss(nothing, zeros({0, 3}, DType::float64)).item() == 0);
  CHECK(binary_cross_entropy_with_logits(nothing, zeros({0, 3}, DType::float64)).item() == 0);
}

TEST_CASE("class losses refuse shapes, types and options that do not fit", "[loss]") {
  const Tensor x = spread({2, 3}), t = tensor({0, 1});
  CHECK(message_of([&] {
          cross_entropy(x, tensor({0, 1, 2}));
        }) == "cross_entropy: class indices have the wrong shape for scores [2, 3]: expected [2], got [3]");
  CHECK(message_of([&] {
          cross_entropy(x, tensor({0.0, 1.0}));
        }) ==
        "cross_entropy: class indices have the wrong element type: expected int64, got float32; convert with to()");
  CHECK(message_of([&] {
          cross_entropy(x, zeros({2, 3}));
        }) == "cross_entropy: element types differ: expected float64, got float32; convert with to()");
  CHECK(message_of([&] {
          cross_entropy(zeros({2, 3}, DType::int64), t);
        }) == "cross_entropy: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK(message_of([&] { cross_entropy(scalar(1, DType::float64), t); }) ==
        "cross_entropy: no class dimension: expected [K], [N, K] or [N, K, d1, ...], got []");
  CHECK(message_of([&] {
          cross_entropy(zeros({2, 0}), t);
        }) == "cross_entropy: no classes: expected >= 1, got 0 in [2, 0]");
  CHECK(message_of([&] {
          cross_entropy(x, t, {.weight = {1, 2}});
        }) == "cross_entropy: weight must have one number for each class: expected 3, got 2");
  CHECK(message_of([&] { cross_entropy(x, t, {.label_smoothing = 1.5}); }) ==
        "cross_entropy: label_smoothing is out of range: expected <= 1, got 1.5");
  CHECK(message_of([&] { CrossEntropyLoss({.label_smoothing = -0.5}); }) ==
        "CrossEntropyLoss: label_smoothing is out of range: expected >= 0, got -0.5");
}
