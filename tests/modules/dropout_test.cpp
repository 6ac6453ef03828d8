#include "taper/nn/dropout.hpp"

#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/json_error.hpp"
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

TEST_CASE("channel dropout drops whole channels of each sample, batched or not, and scales the others") {
  const struct {
    Tensor (*drop)(const Tensor&, double, bool);
    Shape batched;
  } kinds[] = {{F::dropout1d, {31, 101, 3}}, {F::dropout2d, {31, 101, 3, 2}}, {F::dropout3d, {31, 101, 3, 2, 5}}};
  for (const auto& kind : kinds) {
    const auto drop = kind.drop;
    const Shape& shape = kind.batched;
    manual_seed(7);
    const Tensor x = uniform(shape, 1, 2, DType::float64).requires_grad_();
    const Tensor y = drop(x, 0.3, true);
    y.backward(ones_like(y));
    const auto in = x.to_vector<double>(), out = y.to_vector<double>(), factors = x.grad().to_vector<double>();
    const std::size_t plane = in.size() / (31 * 101);
    std::int64_t dropped = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double factor = factors[i / plane * plane];
      if (factors[i] != factor || out[i] != in[i] * factor) FAIL_CHECK("element " << i);
      dropped += i % plane == 0 && factor == 0;
    }
    CHECK(std::abs(double(dropped) / (31 * 101) - 0.3) < 0.03);
    CHECK(std::count(factors.begin(), factors.end(), 1 / (1 - 0.3)) ==
          std::int64_t(in.size()) - dropped * std::int64_t(plane));
    manual_seed(7);
    const Tensor sample = drop(ones(shape.slice(1, shape.rank())), 0.3, true);
    CHECK(sample.shape() == shape.slice(1, shape.rank()));
    CHECK(drop(x, 0.3, false).impl() == x.impl());
    CHECK(drop(x, 0, true).impl() == x.impl());
    CHECK(drop(x.detach(), 1, true).abs().max().item() == 0);
    CHECK(drop(zeros(shape.with(0, 0)), 0.3, true).shape() == shape.with(0, 0));
    CHECK(test::same_on_any_threads([&] {
      manual_seed(13);
      return drop(x.detach(), 0.3, true).to_vector<double>();
    }));
  }
}

TEST_CASE("alpha dropout keeps mean and variance of normal numbers") {
  manual_seed(7);
  const Tensor x = randn({100003}, DType::float64).requires_grad_();
  const Tensor y = F::alpha_dropout(x, 0.2);
  CHECK(std::abs(y.mean().item()) < 0.02);
  CHECK(std::abs(y.var(0).item() - 1) < 0.03);
  y.sum().backward();
  const double limit = 1.7580993408473766, a = 1 / std::sqrt((limit * limit * 0.2 + 1) * 0.8);
  const auto in = x.to_vector<double>(), out = y.to_vector<double>(), slope = x.grad().to_vector<double>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double kept = slope[i] == 0 ? -limit * a * 0.8 : a * in[i] + limit * a * 0.2;
    if (std::abs(out[i] - kept) > 1e-14 || (slope[i] != 0 && std::abs(slope[i] - a) > 1e-15))
      FAIL_CHECK("element " << i);
  }
  CHECK(F::alpha_dropout(x, 0.2, false).impl() == x.impl());
  CHECK(F::alpha_dropout(x.detach(), 1).abs().max().item() == 0);
}

TEST_CASE("the further dropouts refuse what they do not take") {
  CHECK_THROWS_WITH(F::dropout1d(ones({3})),
                    "dropout1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 1-D [3]");
  CHECK_THROWS_WITH(
      F::dropout2d(ones({2, 3})),
      "dropout2d: wrong number of dimensions: expected 3-D unbatched or 4-D batched input, got 2-D [2, 3]");
  CHECK_THROWS_WITH(F::dropout3d(ones({2, 0, 3, 5, 7})),
                    "dropout3d: no channels: expected >= 1, got 0 in [2, 0, 3, 5, 7]");
  CHECK_THROWS_WITH(F::dropout1d(ones({2, 3}), 1.5), "dropout1d: p is no probability: expected 0 to 1, got 1.5");
  CHECK_THROWS_WITH(F::alpha_dropout(ones({2, 3}), -0.5),
                    "alpha_dropout: p is no probability: expected 0 to 1, got -0.5");
  CHECK_THROWS_WITH(F::alpha_dropout(ones({2, 3}), NAN),
                    "alpha_dropout: p is no probability: expected 0 to 1, got nan");
  CHECK_THROWS_WITH(F::dropout2d(ones({2, 3, 5}, DType::int64)),
                    "dropout2d: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(nn::Dropout2d({.p = 2}), "Dropout2d: p is out of range: expected <= 1, got 2");
  CHECK_THROWS_WITH(nn::AlphaDropout({.p = -1}), "AlphaDropout: p is out of range: expected >= 0, got -1");
  CHECK(test::json_error("Dropout1d", "", "[3]") ==
        "error: /layers/0 (layer Dropout1d 0): dropout1d: wrong number of dimensions: expected 3-D batched input, got "
        "[N, "
        "3]; shapes: input [3] -> Dropout1d");
  CHECK(test::json_error("Dropout3d", R"("p": 1.5)", "[3, 5, 7, 2]") ==
        "error: /layers/0/p (layer Dropout3d 0): expected <= 1, got 1.5");
}

TEST_CASE("the further dropouts do nothing in evaluation") {
  const Tensor x = ones({2, 3, 5, 7});
  nn::Dropout2d channels({.p = 0.9});
  nn::AlphaDropout alpha({.p = 0.9});
  for (nn::Module* layer : {static_cast<nn::Module*>(&channels), static_cast<nn::Module*>(&alpha)}) {
    CHECK((*layer)(x).impl() != x.impl());
    layer->eval();
    CHECK((*layer)(x).impl() == x.impl());
  }
}
