#include "taper/nn/activation.hpp"

#include <cmath>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using test::relative_error;

namespace {

template <class L>
std::vector<double> values(typename L::Options options = {}) {
  L layer(options);
  return layer(tensor({-3, -.5, 0, 1, 25}, DType::float64)).template to_vector<double>();
}

}  // namespace

TEST_CASE("activation layers compute their definitions with their options") {
  const double e = std::exp(1.0), a = 1.6732632423543772, s = 1.0507009873554805;
  CHECK(values<nn::ReLU>() == std::vector<double>{0, 0, 0, 1, 25});
  CHECK(relative_error(values<nn::LeakyReLU>(), {-.03, -.005, 0, 1, 25}) < 1e-15);
  CHECK(values<nn::LeakyReLU>({.negative_slope = .25}) == std::vector<double>{-.75, -.125, 0, 1, 25});
  CHECK(relative_error(values<nn::ELU>({.alpha = 2}), {2 * std::expm1(-3), 2 * std::expm1(-.5), 0, 1, 25}) < 1e-15);
  CHECK(relative_error(values<nn::SELU>(), {s * a * std::expm1(-3), s * a * std::expm1(-.5), 0, s, 25 * s}) < 1e-15);
  CHECK(relative_error(values<nn::Sigmoid>(), {1 / (1 + std::exp(3)), 1 / (1 + std::exp(.5)), .5, e / (1 + e), 1}) <
        1e-10);
  CHECK(relative_error(values<nn::Tanh>(), {std::tanh(-3), std::tanh(-.5), 0, std::tanh(1), 1}) < 1e-15);
  CHECK(relative_error(values<nn::SiLU>(), {-3 / (1 + std::exp(3)), -.5 / (1 + std::exp(.5)), 0, e / (1 + e), 25}) <
        1e-10);
  CHECK(relative_error(values<nn::GELU>(), {-1.5 * std::erfc(3 / std::sqrt(2)), -.25 * std::erfc(.5 / std::sqrt(2)), 0,
                                            .5 * std::erfc(-1 / std::sqrt(2)), 25}) < 1e-15);
  CHECK(values<nn::GELU>({.approximate = Gelu::tanh}) != values<nn::GELU>());
  CHECK(relative_error(values<nn::Softplus>({.beta = 2, .threshold = 4}),
                       {std::log1p(std::exp(-6)) / 2, std::log1p(std::exp(-1)) / 2, std::log(2) / 2,
                        std::log1p(std::exp(2)) / 2, 25}) < 1e-15);
}

TEST_CASE("Softmax and LogSoftmax normalise the dimension they are told, the last by default") {
  nn::Softmax columns({.dim = 0}), rows;
  nn::LogSoftmax log_columns({.dim = 0});
  const Tensor x = tensor({{0, 1, 2}, {0, 1, 2}}, DType::float64);
  CHECK(relative_error(columns(x).to_vector<double>(), std::vector<double>(6, .5)) < 1e-15);
  CHECK(relative_error(log_columns(x).to_vector<double>(), std::vector<double>(6, -std::log(2))) < 1e-15);
  CHECK(relative_error(rows(x).sum(1).to_vector<double>(), {1, 1}) < 1e-15);
}

TEST_CASE("activation layers refuse whole numbers, dimensions out of range and options out of range") {
  nn::ReLU layer;
  nn::LeakyReLU leaky;
  nn::Softmax softmax({.dim = 2});
  CHECK_THROWS_WITH(layer(tensor({1, 2})),
                    "ReLU: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(leaky(tensor({1, 2})),
                    "LeakyReLU: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(softmax(ones({2, 3})), "softmax: dimension out of range: expected -2 to 1, got 2");
  CHECK_THROWS_WITH(nn::Softplus({.beta = 0}), "Softplus: beta is out of range: expected > 0, got 0");
  const Shape input{2, 3};
  nn::SoftmaxOptions options{.dim = -3};
  CHECK_THROWS_WITH(nn::find_layer_type("Softmax")->infer(&options, {&input, 1}),
                    "softmax: dimension out of range: expected -2 to 1, got -3");
  nn::LogSoftmaxOptions log_options{.dim = 2};
  CHECK_THROWS_WITH(nn::find_layer_type("LogSoftmax")->infer(&log_options, {&input, 1}),
                    "log_softmax: dimension out of range: expected -2 to 1, got 2");
}

TEST_CASE("activation layers print their options") {
  CHECK(nn::ReLU().to_string() == "ReLU()");
  CHECK(nn::LeakyReLU().to_string() == "LeakyReLU(negative_slope=0.01)");
  CHECK(nn::GELU({.approximate = Gelu::tanh}).to_string() == "GELU(approximate=\"tanh\")");
  CHECK(nn::Softplus().to_string() == "Softplus(beta=1.0, threshold=20.0)");
  CHECK(nn::Softmax({.dim = 1}).to_string() == "Softmax(dim=1)");
}

TEST_CASE("Softmax2d normalises over the channels at each place") {
  nn::Softmax2d layer;
  const Tensor x = randn({2, 3, 5, 7}, DType::float64);
  CHECK(layer(x).to_vector<double>() == softmax(x, 1).to_vector<double>());
  CHECK(layer(x.select(0, 1)).to_vector<double>() == softmax(x.select(0, 1), 0).to_vector<double>());
  CHECK_THROWS_WITH(
      layer(ones({2, 3})),
      "softmax2d: wrong number of dimensions: expected 3-D unbatched or 4-D batched input, got 2-D [2, 3]");
  const Shape input{1, 3, 5};
  nn::Softmax2dOptions options;
  CHECK_THROWS_WITH(nn::find_layer_type("Softmax2d")->infer(&options, {&input, 1}),
                    "softmax2d: wrong number of dimensions: expected 4-D batched input, got [N, 3, 5]");
}
