#include "taper/nn/linear.hpp"

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/infer.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::infer;
namespace F = taper::nn::functional;
using test::relative_error;

TEST_CASE("linear gives PyTorch's values and gradients") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, DType::float64).requires_grad_();
  const Tensor w = tensor({{1, -2, 3}, {0, 1, .5}}, DType::float64).requires_grad_();
  const Tensor b = tensor({.1, -.2}, DType::float64).requires_grad_();
  const Tensor y = F::linear(x, w, b);
  CHECK(y.shape() == Shape{2, 2});
  CHECK(relative_error(y.to_vector<double>(), {6.1, 3.3, 12.1, 7.8}) < 1e-15);
  y.backward(tensor({{1, 2}, {3, 4}}, DType::float64));
  CHECK(x.grad().to_vector<double>() == std::vector<double>{1, 0, 4, 3, -2, 11});
  CHECK(w.grad().to_vector<double>() == std::vector<double>{13, 17, 21, 18, 24, 30});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{4, 6});
}

TEST_CASE("linear takes any leading dimensions, none and a batch of none") {
  const Tensor w = ones({3, 5}), b = full({3}, 2);
  CHECK(F::linear(ones({5}), w, b).shape() == Shape{3});
  CHECK(F::linear(ones({5}), w, b).to_vector<float>() == std::vector<float>{7, 7, 7});
  CHECK(F::linear(ones({2, 7, 11, 5}), w).shape() == Shape{2, 7, 11, 3});
  CHECK(F::linear(ones({0, 5}), w, b).shape() == Shape{0, 3});
}

TEST_CASE("linear without input features gives the bias") {
  const Tensor b = tensor({1, 2, 3}, DType::float32).requires_grad_();
  const Tensor y = F::linear(ones({2, 0}), ones({3, 0}), b);
  CHECK(y.to_vector<float>() == std::vector<float>{1, 2, 3, 1, 2, 3});
  y.sum().backward();
  CHECK(b.grad().to_vector<float>() == std::vector<float>{2, 2, 2});
  CHECK(F::linear(ones({2, 0}), ones({3, 0})).to_vector<float>() == std::vector<float>(6, 0.F));
}

TEST_CASE("linear is one recorded operation") {
  const Tensor w = ones({3, 5}).requires_grad_(), b = ones({3}).requires_grad_();
  const auto tape = autograd::Tape::of(F::linear(ones({2, 5}), w, b));
  REQUIRE(tape.size() == 3);
  CHECK(tape.entries().back().op == "linear");
}

TEST_CASE("linear names what does not fit") {
  const Tensor w = ones({9, 32}), b = ones({9});
  CHECK_THROWS_WITH(
      F::linear(ones({2, 32, 1}), w, b),
      "linear: input does not fit in_features: expected [*, 32], got [2, 32, 1]; a Flatten or squeeze may "
      "be missing");
  CHECK_THROWS_WITH(F::linear(ones({2, 8, 4}), w, b),
                    "linear: input does not fit in_features: expected [*, 32], got [2, 8, 4]; a Flatten or squeeze may "
                    "be missing");
  CHECK_THROWS_WITH(F::linear(ones({2, 31}), w, b),
                    "linear: input does not fit in_features: expected [*, 32], got [2, 31]");
  CHECK_THROWS_WITH(F::linear(ones({32, 1}), w, b),
                    "linear: input does not fit in_features: expected [*, 32], got [32, 1]");
  CHECK_THROWS_WITH(F::linear(tensor(1.5), w, b), "linear: input does not fit in_features: expected [*, 32], got []");
  CHECK_THROWS_WITH(F::linear(ones({2, 32}), ones({9, 32, 1}), b),
                    "linear: weight is no matrix: expected [out_features, in_features], got [9, 32, 1]");
  CHECK_THROWS_WITH(F::linear(ones({2, 32}), w, ones({7})),
                    "linear: bias does not fit the weight: expected [9], got [7]");
  CHECK_THROWS_WITH(F::linear(ones({2, 32}, DType::int64), w, b),
                    "linear: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::linear(ones({2, 32}), ones({9, 32}, DType::int64), b),
                    "linear: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::linear(ones({2, 32}), w, ones({9}, DType::int64)),
                    "linear: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::linear(ones({2, 32}, DType::float64), w, b),
                    "linear: element types differ: expected float64, got float32; convert with to()");
}

TEST_CASE("Linear's constructor refuses what no input could make valid") {
  CHECK_THROWS_WITH(nn::Linear({.out_features = 3}),
                    "linear: in_features is missing: expected a number, got none; only a model that knows its input's "
                    "shape can infer it");
  CHECK_THROWS_WITH(nn::Linear({.in_features = -1, .out_features = 3}),
                    "Linear: in_features is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(nn::Linear({.in_features = 5}), "Linear: out_features is out of range: expected >= 0, got -1");
}

TEST_CASE("Linear infers its input features and refuses wrong ones") {
  nn::LinearOptions options{.out_features = 3};
  const Shape input{2, 7, 5};
  CHECK(nn::find_layer_type("Linear")->infer(&options, {&input, 1}) == Shape{2, 7, 3});
  CHECK(options.in_features == 5);
  CHECK(infer(nn::LinearOptions{.in_features = 5, .out_features = 3}, input) == Shape{2, 7, 3});
  CHECK_THROWS_WITH(
      infer(nn::LinearOptions{.in_features = 32, .out_features = 9}, {1, 32, 1}),
      "linear: in_features does not fit the input: expected 1, got 32 in [N, 32, 1]; a Flatten or squeeze "
      "may be missing");
  CHECK_THROWS_WITH(infer(nn::LinearOptions{.in_features = 11, .out_features = 9}, {1, 7}),
                    "linear: in_features does not fit the input: expected 7, got 11 in [N, 7]");
  CHECK_THROWS_WITH(infer(nn::LinearOptions{.out_features = 9}, {1}),
                    "linear: input has no features: expected [N, *, in_features], got [N]");
  CHECK_THROWS_WITH(infer(nn::LinearOptions{.out_features = std::int64_t{1} << 62}, {1, 7}),
                    "shape: number of elements overflows 64 bits: expected a product below 2^63, got 7 in dimension 1");
}

TEST_CASE("Linear starts within its bound, differently for each layer, and equally for equal seeds") {
  manual_seed(7);
  const nn::Linear first({.in_features = 16, .out_features = 101}), second({.in_features = 16, .out_features = 101});
  manual_seed(7);
  const nn::Linear again({.in_features = 16, .out_features = 101});
  const auto w = first.weight.to_vector<double>(), b = first.bias.to_vector<double>();
  CHECK(first.weight.dtype() == DType::float32);
  CHECK(w == again.weight.to_vector<double>());
  CHECK(b == again.bias.to_vector<double>());
  CHECK(w != second.weight.to_vector<double>());
  for (const auto& values : {w, b}) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(*low >= -0.25);
    CHECK(*low < -0.23);
    CHECK(*high <= 0.25);
    CHECK(*high > 0.23);
  }
}

TEST_CASE("Linear has PyTorch's parameter names and prints all its options") {
  nn::Linear layer({.in_features = 5, .out_features = 3});
  REQUIRE(layer.named_parameters().size() == 2);
  CHECK(layer.named_parameters()[0].name == "weight");
  CHECK(layer.named_parameters()[0].tensor.shape() == Shape{3, 5});
  CHECK(layer.named_parameters()[1].name == "bias");
  CHECK(layer.to_string() == "Linear(in_features=5, out_features=3, bias=true)");
  const nn::Linear plain({.in_features = 5, .out_features = 3, .bias = false});
  CHECK(plain.named_parameters().size() == 1);
  const nn::Linear none({.in_features = 0, .out_features = 3});
  CHECK(none.bias.to_vector<float>() == std::vector<float>{0, 0, 0});
}
