#include "taper/nn/prelu.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/json_error.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
namespace F = taper::nn::functional;

TEST_CASE("prelu takes one slope for all, or one for each channel") {
  const Tensor x = tensor({{{1.0, -2.0}, {-3.0, 4.0}, {-5.0, 0.0}}}, DType::float64).requires_grad_();
  const Tensor one = tensor({0.5}, DType::float64), each = tensor({0.5, 2.0, 3.0}, DType::float64).requires_grad_();
  CHECK(F::prelu(x, one).to_vector<double>() == std::vector<double>{1, -1, -1.5, 4, -2.5, 0});
  const Tensor y = F::prelu(x, each);
  CHECK(y.to_vector<double>() == std::vector<double>{1, -1, -6, 4, -15, 0});
  y.backward(tensor({{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}}, DType::float64));
  CHECK(x.grad().to_vector<double>() == std::vector<double>{1, 1, 6, 4, 15, 18});  // at 0 the slope, as in PyTorch
  CHECK(each.grad().to_vector<double>() == std::vector<double>{-4, -9, -25});
}

TEST_CASE("prelu passes what is not finite on, and its slope's gradient stays clear of it") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({inf, -inf, NAN, -2.0}, DType::float64), w = tensor({0.5}, DType::float64).requires_grad_();
  const auto y = F::prelu(x, w).to_vector<double>();
  CHECK(y[0] == inf);
  CHECK(y[1] == -inf);
  CHECK(std::isnan(y[2]));
  F::prelu(tensor({inf, -2.0}, DType::float64), w).sum().backward();
  CHECK(w.grad().item() == -2);
}

TEST_CASE("prelu refuses slopes that do not fit") {
  CHECK_THROWS_WITH(F::prelu(ones({2, 3, 5}), ones({5})),
                    "prelu: num_parameters does not fit the input: expected 1 or 3, got 5 for [2, 3, 5]");
  CHECK_THROWS_WITH(F::prelu(ones({3}), ones({2})),
                    "prelu: num_parameters does not fit the input: expected 1 or 3, got 2 for [3]");
  CHECK_THROWS_WITH(F::prelu(scalar(1, DType::float32), ones({2})),
                    "prelu: num_parameters does not fit the input: expected 1, got 2 for []");
  CHECK_THROWS_WITH(F::prelu(ones({2, 3}), ones({3, 1})),
                    "prelu: weight is no list of slopes: expected [num_parameters], got [3, 1]");
  CHECK_THROWS_WITH(F::prelu(ones({2, 3}), ones({0})),
                    "prelu: weight is no list of slopes: expected [num_parameters], got [0]");
  CHECK_THROWS_WITH(F::prelu(ones({2, 3}), ones({3}, DType::float64)),
                    "prelu: weight and input differ in type: expected float32, got float64");
  CHECK_THROWS_WITH(F::prelu(tensor({1, 2}), ones({1})),
                    "prelu: element type not supported: expected float32 or float64, got int64; convert with to()");
  nn::PReLU layer({.num_parameters = 7});
  CHECK_THROWS_WITH(layer(ones({2, 3})),
                    "prelu: num_parameters does not fit the input: expected 1 or 3, got 7 for [2, 3]");
  CHECK_THROWS_WITH(nn::PReLU({.num_parameters = 0}), "PReLU: num_parameters is out of range: expected >= 1, got 0");
  CHECK(
      test::json_error("PReLU", R"("num_parameters": 7)", "[3, 5]") ==
      "error: /layers/0/num_parameters (layer PReLU 0): prelu: num_parameters does not fit the input: expected 1 or 3, "
      "got 7 for [1, 3, 5]; shapes: input [3, 5] -> PReLU");
  CHECK(test::json_error("PReLU", R"("num_parameters": 0)", "[3, 5]") ==
        "error: /layers/0/num_parameters (layer PReLU 0): expected >= 1, got 0");
}

TEST_CASE("a PReLU layer starts at its init") {
  const nn::PReLU usual, chosen({.num_parameters = 3, .init = -0.5});
  CHECK(usual.weight.to_vector<double>() == std::vector<double>{0.25});
  CHECK(chosen.weight.to_vector<double>() == std::vector<double>(3, -0.5));
  CHECK(chosen.to_string() == "PReLU(num_parameters=3, init=-0.5)");
}
