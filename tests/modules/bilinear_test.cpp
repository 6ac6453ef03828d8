#include "taper/nn/bilinear.hpp"

#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
namespace F = taper::nn::functional;

namespace {

std::string bilinear_error(const std::string& options, const std::string& left = "[3]",
                           const std::string& right = "[5]") {
  const std::string errors =
      config::parse_model(R"({"inputs": {"left": {"shape": )" + left + R"(}, "right": {"shape": )" + right +
                              R"(}}, "layers": [{"type": "Bilinear", "inputs": ["left", "right"])" + options + "}]}",
                          "m.json")
          .errors;
  const std::size_t from = errors.find("error: ");
  return from == std::string::npos ? "no error" : errors.substr(from, errors.find('\n', from) - from);
}

}  // namespace

TEST_CASE("bilinear is one bilinear form for each output") {
  const Tensor left = tensor({{1.0, 2.0}}, DType::float64).requires_grad_(),
               right = tensor({{3.0, 5.0, 7.0}}, DType::float64).requires_grad_(),
               w = tensor({{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}, {{0.0, 0.0, 1.0}, {2.0, 0.0, 0.0}}}, DType::float64)
                       .requires_grad_(),
               b = tensor({0.5, -1.0}, DType::float64).requires_grad_();
  const Tensor y = F::bilinear(left, right, w, b);
  CHECK(y.to_vector<double>() == std::vector<double>{3 + 2 * 5 + 0.5, 7 + 2 * 2 * 3 - 1});
  y.backward(tensor({{1.0, 10.0}}, DType::float64));
  CHECK(left.grad().to_vector<double>() == std::vector<double>{3 + 10 * 7, 5 + 10 * 2 * 3});
  CHECK(right.grad().to_vector<double>() == std::vector<double>{1 + 10 * 4, 2, 10});
  CHECK(w.grad().to_vector<double>() == std::vector<double>{3, 5, 7, 6, 10, 14, 30, 50, 70, 60, 100, 140});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{1, 10});
}

TEST_CASE("bilinear takes any leading dimensions, none and empty ones too") {
  const Tensor w = randn({2, 3, 5});
  CHECK(F::bilinear(ones({3}), ones({5}), w).shape() == Shape{2});
  CHECK(F::bilinear(ones({7, 11, 3}), ones({7, 11, 5}), w).shape() == Shape{7, 11, 2});
  CHECK(F::bilinear(ones({0, 3}), ones({0, 5}), w).shape() == Shape{0, 2});
}

TEST_CASE("bilinear refuses what does not fit") {
  const Tensor w = ones({2, 3, 5});
  CHECK_THROWS_WITH(F::bilinear(ones({7, 3}), ones({11, 5}), w),
                    "bilinear: inputs differ before the last dimension: expected as in [7, 3], got [11, 5]");
  CHECK_THROWS_WITH(F::bilinear(ones({7, 3}), ones({5}), w),
                    "bilinear: inputs differ before the last dimension: expected as in [7, 3], got [5]");
  CHECK_THROWS_WITH(F::bilinear(tensor(1.0), tensor(1.0), w),
                    "bilinear: inputs differ before the last dimension: expected as in [], got []");
  CHECK_THROWS_WITH(F::bilinear(ones({7, 2}), ones({7, 5}), w),
                    "bilinear: input 1 does not fit in1_features: expected [*, 3], got [7, 2]");
  CHECK_THROWS_WITH(F::bilinear(ones({7, 3}), ones({7, 3}), w),
                    "bilinear: input 2 does not fit in2_features: expected [*, 5], got [7, 3]");
  CHECK_THROWS_WITH(
      F::bilinear(ones({7, 3}), ones({7, 5}), ones({3, 5})),
      "bilinear: weight has another rank: expected [out_features, in1_features, in2_features], got [3, 5]");
  CHECK_THROWS_WITH(F::bilinear(ones({7, 3}), ones({7, 5}), w, ones({3})),
                    "bilinear: bias does not fit out_features: expected [2], got [3]");
  CHECK_THROWS_WITH(F::bilinear(ones({7, 3}), ones({7, 5}, DType::float64), w),
                    "bilinear: element types differ: expected float32, got float64");
  CHECK_THROWS_WITH(F::bilinear(ones({7, 3}, DType::int64), ones({7, 5}), w),
                    "bilinear: element type not supported: expected float32 or float64, got int64; convert with to()");
  nn::Bilinear layer({.in1_features = 3, .in2_features = 5, .out_features = 2});
  CHECK_THROWS_WITH(layer.forward_all(std::vector<Tensor>{ones({7, 3})}),
                    "bilinear: takes two inputs: expected 2, got 1");
  CHECK_THROWS_WITH(layer.forward_all(std::vector<Tensor>{ones({7, 5}), ones({7, 3})}),
                    "bilinear: input 1 does not fit in1_features: expected [*, 3], got [7, 5]");
  CHECK_THROWS_WITH(
      nn::Bilinear({.in2_features = 5, .out_features = 2}),
      "bilinear: in1_features is missing: expected a number, got none; only a model that knows its input's "
      "shape can infer it");
  CHECK_THROWS_WITH(nn::Bilinear({.in1_features = 0, .in2_features = 5, .out_features = 2}),
                    "Bilinear: in1_features is out of range: expected >= 1, got 0");
}

TEST_CASE("bilinear in JSON takes its features from the inputs and refuses others") {
  CHECK(bilinear_error(R"(, "out_features": 2)") == "no error");
  CHECK(bilinear_error("") == "error: /layers/0 (layer Bilinear 0): missing key: expected out_features, got none");
  CHECK(bilinear_error(R"(, "out_features": 2, "in2_features": 3)") ==
        "error: /layers/0/in2_features (layer Bilinear 0): bilinear: in2_features does not fit the input: expected 5, "
        "got "
        "3 in [N, 5]; shapes: left [3], right [5] -> Bilinear");
  CHECK(bilinear_error(R"(, "out_features": 2)", "[3]", "[7, 5]") ==
        "error: /layers/0/inputs (layer Bilinear 0): bilinear: inputs differ before the last dimension: expected as in "
        "[N, 3], got [N, 7, 5]; shapes: left [3], right [7, 5] -> Bilinear");
  CHECK(bilinear_error(R"(, "out_features": 0)") ==
        "error: /layers/0/out_features (layer Bilinear 0): expected >= 1, got 0");
}

TEST_CASE("bilinear starts uniform in 1 / sqrt(in1_features), bias too") {
  manual_seed(3);
  nn::Bilinear layer({.in1_features = 4, .in2_features = 101, .out_features = 13});
  manual_seed(3);
  CHECK(layer.weight.to_vector<float>() == uniform({13, 4, 101}, -0.5, 0.5).to_vector<float>());
  CHECK(layer.bias.to_vector<float>() == uniform({13}, -0.5, 0.5).to_vector<float>());
  CHECK(!nn::Bilinear({.in1_features = 4, .in2_features = 3, .out_features = 5, .bias = false}).bias.defined());
}
