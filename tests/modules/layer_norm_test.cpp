#include <limits>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/infer.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/norm.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::infer;
namespace F = taper::nn::functional;
using test::relative_error;

namespace {

using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("layer norm gives hand-worked values and gradients") {
  const Tensor x = tensor({{1, 3}, {-4, 4}}, DType::float64).requires_grad_();
  const Tensor w = tensor({2, 3}, DType::float64).requires_grad_(),
               b = tensor({10, 20}, DType::float64).requires_grad_();
  const Tensor y = F::layer_norm(x, 2, w, b, 3);
  const double s = 1 / std::sqrt(1.0 + 3), t = 4 / std::sqrt(16.0 + 3);
  CHECK(relative_error(y.to_vector<double>(), {10 - 2 * s, 20 + 3 * s, 10 - 2 * t, 20 + 3 * t}) < 1e-15);
  y.backward(tensor({{1, 0}, {0, 1}}, DType::float64));
  // The first row: g = 2 0, mean(g) = 1, h = -s s, mean(g h) = -s: dx = s (g - 1 + s h)
  CHECK(relative_error(x.grad().to_vector<double>(), {s * (1 - s * s), s * (-1 + s * s), t / 4 * (-1.5 + 1.5 * t * t),
                                                      t / 4 * (1.5 - 1.5 * t * t)}) < 1e-15);
  CHECK(relative_error(w.grad().to_vector<double>(), {-s, t}) < 1e-15);
  CHECK(b.grad().to_vector<double>() == Doubles{1, 1});
}

TEST_CASE("rms norm gives hand-worked values, its eps being the element type's unless given") {
  const Tensor x = tensor({{1, 7}, {-4, 4}}, DType::float64);
  CHECK(relative_error(F::rms_norm(x, 2, tensor({2, 3}, DType::float64)).to_vector<double>(), {0.4, 4.2, -2, 3}) <
        1e-15);
  CHECK(relative_error(F::rms_norm(x, {2}, {}, 9).to_vector<double>(),
                       {1 / std::sqrt(34.0), 7 / std::sqrt(34.0), -0.8, 0.8}) < 1e-15);
  const double tiny = std::ldexp(1.0, -30);
  const double expected = tiny / std::sqrt(tiny * tiny + std::ldexp(1.0, -23));
  CHECK(relative_error(F::rms_norm(full({1}, tiny), 1).to_vector<float>(), {expected}) < 1e-12);
  CHECK(F::rms_norm(full({1}, tiny, DType::float64), 1).item() ==
        Approx(tiny / std::sqrt(tiny * tiny + std::numeric_limits<double>::epsilon())).epsilon(1e-12));
  CHECK(F::rms_norm(zeros({2, 3}), 3).to_vector<double>() == Doubles(6, 0));
}

TEST_CASE("group norm gives hand-worked values, each group of channels of each sample by itself") {
  const Tensor x = tensor({{1, 3, -4, 4}, {7, 7, 0, 2}}, DType::float64);
  const Tensor w = tensor({1, 2, 3, 4}, DType::float64), b = tensor({0, 10, 20, 30}, DType::float64);
  const double s = 1 / std::sqrt(1.0 + 3), t = 4 / std::sqrt(16.0 + 3);
  CHECK(relative_error(F::group_norm(x, 2, w, b, 3).to_vector<double>(),
                       {-s, 10 + 2 * s, 20 - 3 * t, 30 + 4 * t, 0, 10, 20 - 3 * s, 30 + 4 * s}) < 1e-15);
}

TEST_CASE("group norm of groups of one channel is instance norm, of one group layer norm over the channels") {
  const Tensor x = rand({2, 6, 5}), w = rand({6}), b = rand({6});
  CHECK(F::group_norm(x, 6, w, b).to_vector<float>() == F::instance_norm(x, {}, {}, w, b).to_vector<float>());
  CHECK(F::group_norm(x, 1).to_vector<float>() == F::layer_norm(x, {6, 5}).to_vector<float>());
}

TEST_CASE("normalize divides by the norm along a dimension, or by eps") {
  const Tensor x = tensor({{3, 4}, {0, 0}}, DType::float64).requires_grad_();
  const Tensor y = F::normalize(x);
  CHECK(relative_error(y.to_vector<double>(), {0.6, 0.8, 0, 0}) < 1e-15);
  CHECK(relative_error(F::normalize(x, 1, 0).to_vector<double>(), {1, 1, 0, 0}) < 1e-15);
  CHECK(relative_error(F::normalize(x, std::numeric_limits<double>::infinity(), -1, 8).to_vector<double>(),
                       {0.375, 0.5, 0, 0}) < 1e-15);
  const Tensor z = tensor({{3, 4, 1}, {2, -1, 5}}, DType::float64).requires_grad_();
  CHECK(autograd::gradcheck([](const auto& in) { return F::normalize(in[0]); }, {z}).ok);
  CHECK(autograd::gradcheck([](const auto& in) { return F::normalize(in[0], 3, 0); }, {z}).ok);
  CHECK_THROWS_WITH(F::normalize(x, 2, 2), "normalize: dimension out of range: expected -2 to 1, got 2");
  CHECK_THROWS_WITH(F::normalize(x, 2, 1, -1), "normalize: eps is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(F::normalize(ones({2, 3}, DType::int64)),
                    "normalize: element type not supported: expected float32 or float64, got int64; convert with to()");
}

TEST_CASE("the rows' norms have PyTorch's parameters, one and zero at first") {
  nn::LayerNorm layer({.normalized_shape = {3, 5}});
  REQUIRE(layer.named_parameters().size() == 2);
  CHECK(layer.named_parameters()[0].name == "weight");
  CHECK(layer.weight.shape() == Shape{3, 5});
  CHECK(layer.weight.to_vector<double>() == Doubles(15, 1));
  CHECK(layer.bias.to_vector<double>() == Doubles(15, 0));
  CHECK(nn::LayerNorm({.normalized_shape = 3, .bias = false}).named_parameters().size() == 1);
  CHECK(nn::LayerNorm({.normalized_shape = 3, .elementwise_affine = false}).state_dict().empty());
  CHECK(nn::RMSNorm({.normalized_shape = 3}).named_parameters().size() == 1);
  CHECK(nn::RMSNorm({.normalized_shape = 3, .elementwise_affine = false}).state_dict().empty());
  CHECK(nn::GroupNorm({.num_groups = 2, .num_channels = 6}).parameter_count() == 12);
  CHECK(nn::GroupNorm({.num_groups = 2, .num_channels = 6, .bias = false}).parameter_count() == 6);
  CHECK(nn::GroupNorm({.num_groups = 2, .num_channels = 6, .affine = false}).state_dict().empty());
  CHECK(layer.to_string() == "LayerNorm(normalized_shape=[3, 5], eps=1e-05, elementwise_affine=true, bias=true)");
  CHECK(nn::RMSNorm({.normalized_shape = 7}).to_string() ==
        "RMSNorm(normalized_shape=7, eps=null, elementwise_affine=true)");
}

TEST_CASE("the rows' norms take empty rows and no rows, and give zero gradients", "[fault-72]") {
  const auto check = [](const Tensor& y, const Tensor& x, const Tensor& w) {
    CHECK(y.shape() == x.shape());
    y.sum().backward();
    CHECK(x.grad().shape() == x.shape());
    CHECK(w.grad().to_vector<double>() == Doubles(std::size_t(w.numel()), 0));
    w.zero_grad();
  };
  for (const Shape& shape : {Shape{0, 3}, Shape{0, 5, 3}, Shape{2, 0, 3}}) {
    const Tensor x = empty(shape).requires_grad_(), w = ones({3}).requires_grad_();
    check(F::layer_norm(x, 3, w), x, w);
    x.zero_grad();
    check(F::rms_norm(x, 3, w), x, w);
  }
  for (const Shape& shape : {Shape{0, 6}, Shape{0, 6, 5}, Shape{2, 6, 0}}) {
    const Tensor x = empty(shape).requires_grad_(), w = ones({6}).requires_grad_();
    check(F::group_norm(x, 2, w), x, w);
  }
  const Tensor x = empty({2, 0}).requires_grad_(), w = ones({0}).requires_grad_();
  check(F::layer_norm(x, 0, w), x, w);
}

TEST_CASE("layer_norm and rms_norm name what does not fit") {
  const Tensor x = ones({2, 3, 5});
  CHECK_THROWS_WITH(F::layer_norm(x, {}),
                    "layer_norm: normalized_shape is empty: expected at least one extent, got []");
  CHECK_THROWS_WITH(F::layer_norm(x, 3),
                    "layer_norm: input does not fit normalized_shape: expected [*, 3], got [2, 3, 5]");
  CHECK_THROWS_WITH(F::layer_norm(x, {5, 3}),
                    "layer_norm: input does not fit normalized_shape: expected [*, 5, 3], got [2, 3, 5]");
  CHECK_THROWS_WITH(F::layer_norm(x, {1, 2, 3, 5}),
                    "layer_norm: input does not fit normalized_shape: expected [*, 1, 2, 3, 5], got [2, 3, 5]");
  CHECK_THROWS_WITH(F::layer_norm(tensor(1.5), 1),
                    "layer_norm: input does not fit normalized_shape: expected [*, 1], got []");
  CHECK_THROWS_WITH(F::layer_norm(x, -5), "shape: extents must not be negative: expected >= 0, got -5 in dimension 0");
  CHECK_THROWS_WITH(F::layer_norm(x, {3, 5}, ones({1})),
                    "layer_norm: weight does not fit normalized_shape: expected [3, 5], got [1]");
  CHECK_THROWS_WITH(F::layer_norm(x, {3, 5}, ones({3, 5}), ones({5})),
                    "layer_norm: bias does not fit normalized_shape: expected [3, 5], got [5]");
  CHECK_THROWS_WITH(F::layer_norm(x, 5, {}, {}, -1), "layer_norm: eps is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(
      F::layer_norm(ones({2, 5}, DType::int64), 5),
      "layer_norm: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::layer_norm(x, 5, ones({5}, DType::float64)),
                    "layer_norm: element types differ: expected float32, got float64 of weight; convert with to()");
  CHECK_THROWS_WITH(F::rms_norm(x, 3), "rms_norm: input does not fit normalized_shape: expected [*, 3], got [2, 3, 5]");
  CHECK_THROWS_WITH(F::rms_norm(x, 5, ones({1})),
                    "rms_norm: weight does not fit normalized_shape: expected [5], got [1]");
  CHECK_THROWS_WITH(F::rms_norm(x, 5, {}, -0.5), "rms_norm: eps is out of range: expected >= 0, got -0.5");
  CHECK_THROWS_WITH(F::rms_norm(x, {}), "rms_norm: normalized_shape is empty: expected at least one extent, got []");
}

TEST_CASE("group_norm names what does not fit") {
  const Tensor x = ones({2, 6, 5});
  CHECK_THROWS_WITH(F::group_norm(x, 0), "group_norm: num_groups must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(F::group_norm(x, -2), "group_norm: num_groups must be positive: expected >= 1, got -2");
  CHECK_THROWS_WITH(F::group_norm(x, 4),
                    "group_norm: num_groups must divide the channels: expected a divisor of 6, got 4");
  CHECK_THROWS_WITH(F::group_norm(x, 7),
                    "group_norm: num_groups must divide the channels: expected a divisor of 6, got 7");
  CHECK_THROWS_WITH(F::group_norm(x, 2, ones({1})),
                    "group_norm: weight does not fit the channels: expected [6], got [1]");
  CHECK_THROWS_WITH(F::group_norm(x, 2, ones({6}), ones({2})),
                    "group_norm: bias does not fit the channels: expected [6], got [2]");
  CHECK_THROWS_WITH(F::group_norm(ones({6}), 2),
                    "group_norm: wrong number of dimensions: expected at least 2-D input, got 1-D [6]");
  CHECK_THROWS_WITH(F::group_norm(ones({2, 0, 5}), 1), "group_norm: no channels: expected >= 1, got 0 in [2, 0, 5]");
  CHECK_THROWS_WITH(F::group_norm(ones({1, 6}), 6),
                    "group_norm: too few values for each group: expected more than 1, got 1 in [1, 6]");
  CHECK(F::group_norm(ones({2, 6}), 6).to_vector<double>() == Doubles(12, 0));  // as in PyTorch
  CHECK_THROWS_WITH(F::group_norm(x, 2, {}, {}, -1), "group_norm: eps is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(nn::GroupNorm({.num_groups = 2, .num_channels = 6})(ones({2, 4, 5})),
                    "GroupNorm: input does not fit num_channels: expected 6 channels, got 4 in [2, 4, 5]");
}

TEST_CASE("the rows' norms refuse at construction what no input could make valid") {
  CHECK_THROWS_WITH(nn::LayerNorm({}), "LayerNorm: normalized_shape is empty: expected at least one extent, got []");
  CHECK_THROWS_WITH(nn::LayerNorm({.normalized_shape = {3, -5}}),
                    "LayerNorm: normalized_shape is out of range: expected >= 0, got -5");
  CHECK_THROWS_WITH(nn::LayerNorm({.normalized_shape = 3, .eps = -1}),
                    "LayerNorm: eps is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(nn::RMSNorm({}), "RMSNorm: normalized_shape is empty: expected at least one extent, got []");
  CHECK_THROWS_WITH(nn::RMSNorm({.normalized_shape = 3, .eps = -1}),
                    "RMSNorm: eps is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(nn::GroupNorm({.num_channels = 6}), "GroupNorm: num_groups is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(
      nn::GroupNorm({.num_groups = 2}),
      "GroupNorm: num_channels is missing: expected a number, got none; only a model that knows its input's "
      "shape can infer it");
  CHECK_THROWS_WITH(nn::GroupNorm({.num_groups = 4, .num_channels = 6}),
                    "GroupNorm: num_groups must divide the channels: expected a divisor of 6, got 4");
}

TEST_CASE("the rows' norms check shapes before there is data") {
  CHECK(infer(nn::LayerNormOptions{.normalized_shape = {5, 7}}, {1, 3, 5, 7}) == Shape{1, 3, 5, 7});
  CHECK(infer(nn::RMSNormOptions{.normalized_shape = 7}, {1, 7}) == Shape{1, 7});
  CHECK_THROWS_WITH(infer(nn::LayerNormOptions{.normalized_shape = 5}, {1, 3, 7}),
                    "LayerNorm: input does not fit normalized_shape: expected [N, *, 5], got [N, 3, 7]");
  CHECK_THROWS_WITH(infer(nn::RMSNormOptions{.normalized_shape = {1, 7}}, {1, 7}),
                    "RMSNorm: input does not fit normalized_shape: expected [N, *, 1, 7], got [N, 7]");
  nn::GroupNormOptions options{.num_groups = 3};
  const Shape input{1, 6, 5};
  CHECK(nn::find_layer_type("GroupNorm")->infer(&options, {&input, 1}) == input);
  CHECK(options.num_channels == 6);
  CHECK_THROWS_WITH(infer(nn::GroupNormOptions{.num_groups = 4}, {1, 6}),
                    "GroupNorm: num_groups must divide the channels: expected a divisor of 6, got 4");
  CHECK_THROWS_WITH(infer(nn::GroupNormOptions{.num_groups = 2, .num_channels = 4}, {1, 6}),
                    "GroupNorm: num_channels does not fit the input: expected 6, got 4 in [N, 6]");
  CHECK_THROWS_WITH(infer(nn::GroupNormOptions{.num_groups = 2}, {1}),
                    "GroupNorm: input has no channels: expected [N, C, *], got [N]");
}

TEST_CASE("JSON says what is wrong with a LayerNorm") {
  const auto error = [](const char* options) { return test::json_error("LayerNorm", options, "[3, 5]"); };
  const std::string place = "error: /layers/0", at = place + "/normalized_shape", layer = " (layer LayerNorm 0): ";
  CHECK(error(R"("normalized_shape": 5)") == "no error");
  CHECK(error(R"("normalized_shape": [3, 5])") == "no error");
  CHECK(error("") == place + layer + "missing key: expected normalized_shape, got none");
  CHECK(error(R"("normalized_shape": [])") == at + layer + "expected 1 to 8 extents, got 0");
  CHECK(error(R"("normalized_shape": [1, 1, 1, 1, 1, 1, 1, 1, 5])") == at + layer + "expected 1 to 8 extents, got 9");
  CHECK(error(R"("normalized_shape": [3, -5])") == at + layer + "expected >= 0, got -5");
  CHECK(error(R"("normalized_shape": [3, 5.5])") == at + "/1" + layer + "expected an integer, got 5.5");
  CHECK(error(R"("normalized_shape": null)") == at + layer + "expected an integer, got null");
  CHECK(
      error(R"("normalized_shape": [5, 3])") ==
      at + layer +
          "LayerNorm: input does not fit normalized_shape: expected [N, *, 5, 3], got [N, 3, 5]; shapes: input [3, 5] "
          "-> LayerNorm");
}

TEST_CASE("JSON says what is wrong with an RMSNorm or a GroupNorm") {
  const auto rms = [](const char* options) { return test::json_error("RMSNorm", options, "[3, 5]"); };
  CHECK(rms(R"("normalized_shape": 5, "eps": null)") == "no error");
  CHECK(rms(R"("normalized_shape": 5, "eps": -1)") == "error: /layers/0/eps (layer RMSNorm 0): expected >= 0, got -1");
  CHECK(rms(R"("normalized_shape": 5, "bias": true)") ==
        "error: /layers/0/bias (layer RMSNorm 0): unknown key: expected type, name, inputs, normalized_shape, eps or "
        "elementwise_affine");
  const auto group = [](const char* options) { return test::json_error("GroupNorm", options, "[6, 5]"); };
  CHECK(group(R"("num_groups": 3)") == "no error");
  CHECK(group("") == "error: /layers/0 (layer GroupNorm 0): missing key: expected num_groups, got none");
  CHECK(group(R"("num_groups": 0)") == "error: /layers/0/num_groups (layer GroupNorm 0): expected >= 1, got 0");
  CHECK(group(R"("num_groups": 4)") ==
        "error: /layers/0/num_groups (layer GroupNorm 0): GroupNorm: num_groups must divide the channels: expected a "
        "divisor of 6, got 4; shapes: input [6, 5] -> GroupNorm");
  CHECK(
      group(R"("num_groups": 2, "num_channels": 4)") ==
      "error: /layers/0/num_channels (layer GroupNorm 0): GroupNorm: num_channels does not fit the input: expected 6, "
      "got 4 in [N, 6, 5]; shapes: input [6, 5] -> GroupNorm");
}
