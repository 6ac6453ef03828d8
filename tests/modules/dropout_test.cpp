#include "taper/nn/dropout.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
namespace F = taper::nn::functional;

TEST_CASE("dropout keeps about 1 - p of the elements, scaled so that their mean stays") {
  manual_seed(5);
  const Tensor y = F::dropout(ones({100003}, DType::float64), 0.2);
  const auto values = y.to_vector<double>();
  const auto dropped = double(std::count(values.begin(), values.end(), 0.0));
  CHECK(double(std::count(values.begin(), values.end(), 1 / (1 - 0.2))) + dropped == 100003);
  CHECK(std::abs(dropped / 100003 - 0.2) < 0.005);  // four standard deviations
}

TEST_CASE("dropout's gradient passes where its input did, with the same factor") {
  const Tensor x = rand({7, 11}, DType::float64).requires_grad_();
  const Tensor y = F::dropout(x, 0.4);
  y.backward(x.detach());
  CHECK(x.grad().to_vector<double>() == y.to_vector<double>());
  CHECK(autograd::Tape::of(y).entries().back().op == "dropout");
}

TEST_CASE("dropout draws anew each time, repeats after manual_seed, and disturbs no other stream") {
  const Tensor x = ones({101});
  manual_seed(3);
  const auto first = F::dropout(x).to_vector<float>(), second = F::dropout(x).to_vector<float>();
  const auto weights = rand({5}).to_vector<float>();
  manual_seed(3);
  CHECK(F::dropout(x).to_vector<float>() == first);
  CHECK(first != second);
  manual_seed(3);
  CHECK(rand({5}).to_vector<float>() == weights);
}

TEST_CASE("dropout gives the same bits on any number of threads") {
  const Tensor x = ones({70001});
  CHECK(test::same_on_any_threads([&] {
    manual_seed(13);
    return F::dropout(x, 0.3).to_vector<float>();
  }));
}

TEST_CASE("dropout at its ends: p = 0 and evaluation change nothing, p = 1 gives zeros and a zero gradient") {
  const Tensor x = tensor({1, -2, 3}, DType::float64).requires_grad_();
  CHECK(F::dropout(x, 0).impl() == x.impl());
  CHECK(F::dropout(x, 0.5, false).impl() == x.impl());
  const Tensor y = F::dropout(x, 1);
  CHECK(y.abs().to_vector<double>() == std::vector<double>{0, 0, 0});
  y.sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{0, 0, 0});
}

TEST_CASE("Dropout works in training mode only") {
  nn::Dropout layer({.p = 0.9});
  const Tensor x = ones({1009});
  CHECK(layer(x).to_vector<float>() != x.to_vector<float>());
  layer.eval();
  CHECK(layer(x).to_vector<float>() == x.to_vector<float>());
  CHECK(layer.to_string() == "Dropout(p=0.9)");
}

TEST_CASE("dropout refuses what is no probability, and whole numbers") {
  CHECK_THROWS_WITH(F::dropout(ones({2}), 1.5), "dropout: p is no probability: expected 0 to 1, got 1.5");
  CHECK_THROWS_WITH(F::dropout(ones({2}), -0.5), "dropout: p is no probability: expected 0 to 1, got -0.5");
  CHECK_THROWS_WITH(nn::Dropout({.p = 1.5}), "Dropout: p is out of range: expected <= 1, got 1.5");
  CHECK_THROWS_WITH(F::dropout(tensor({1, 2})),
                    "dropout: element type not supported: expected float32 or float64, got int64; convert with to()");
}
