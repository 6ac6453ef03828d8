#include "taper/nn/upsample.hpp"

#include "support/adjoint.hpp"
#include "support/catch.hpp"
#include "support/json_error.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/nn/pool.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using nn::UpsampleMode;
using test::json_error;
using test::message_of;
namespace F = taper::nn::functional;

namespace {

using Numbers = std::vector<double>;

Numbers resized(const Numbers& values, const nn::UpsampleOptions& options) {
  return F::interpolate(from_data(values, {1, 1, std::int64_t(values.size())}), options).to_vector<double>();
}

std::string error(const Shape& shape, const nn::UpsampleOptions& options) {
  return message_of([&] { F::interpolate(zeros(shape), options); });
}

}  // namespace

TEST_CASE("interpolate repeats the nearest elements or weighs the two around") {
  CHECK(resized({1, 2, 3}, {.scale_factor = 2}) == Numbers{1, 1, 2, 2, 3, 3});
  CHECK(resized({1, 2, 3, 4, 5}, {.size = 3}) == Numbers{1, 2, 4});
  CHECK(resized({1, 2, 3, 4, 5}, {.size = 3, .mode = UpsampleMode::nearest_exact}) == Numbers{1, 3, 5});
  CHECK(resized({1, 3, 7}, {.scale_factor = 2, .mode = UpsampleMode::linear}) == Numbers{1, 1.5, 2.5, 4, 6, 7});
  CHECK(resized({1, 3, 7}, {.size = 5, .mode = UpsampleMode::linear, .align_corners = true}) == Numbers{1, 2, 3, 5, 7});
  CHECK(resized({2, 4, 6, 8}, {.size = 1, .mode = UpsampleMode::linear}) == Numbers{5});
  CHECK(resized({2, 4, 6, 8}, {.size = 1, .mode = UpsampleMode::linear, .align_corners = true}) == Numbers{2});
}

TEST_CASE("bicubic goes through the elements with Keys's cubic, the outer ones going on outside") {
  const auto row = [](const nn::UpsampleOptions& options) {
    return F::interpolate(tensor({{{{1, 2, 4, 8}}}}, DType::float64), options).to_vector<double>();
  };
  const UpsampleMode bicubic = UpsampleMode::bicubic;
  CHECK(row({.size = {1, 4}, .mode = bicubic}) == Numbers{1, 2, 4, 8});
  // Half way between two elements the weights are -3/32, 19/32, 19/32, -3/32.
  CHECK(row({.size = {1, 7}, .mode = bicubic, .align_corners = true}) ==
        Numbers{1, (-3 + 19 + 38 - 12) / 32.0, 2, (-3 + 38 + 76 - 24) / 32.0, 4, (-6 + 76 + 152 - 24) / 32.0, 8});
  CHECK(row({.size = {1, 2}, .mode = bicubic}) == Numbers{(-3 + 19 + 38 - 12) / 32.0, (-6 + 76 + 152 - 24) / 32.0});
  const Tensor column = tensor({{{{1}, {2}, {4}, {8}}}}, DType::float64);
  CHECK(F::interpolate(column, {.size = {7, 1}, .mode = bicubic, .align_corners = true}).to_vector<double>() ==
        row({.size = {1, 7}, .mode = bicubic, .align_corners = true}));
}

TEST_CASE("area takes the means of the parts, by a factor those of the size that it gives") {
  const Numbers x = {1, 2, 4, 8, 16};
  CHECK(resized(x, {.size = 3, .mode = UpsampleMode::area}) == Numbers{1.5, 14 / 3.0, 12});
  CHECK(resized(x, {.scale_factor = 0.7, .mode = UpsampleMode::area}) == Numbers{1.5, 14 / 3.0, 12});
  CHECK(resized(x, {.scale_factor = 0.7, .mode = UpsampleMode::area, .recompute_scale_factor = false}) ==
        Numbers{1.5, 14 / 3.0, 12});
  const auto same = [](const Shape& shape, const nn::UpsampleOptions& options, auto pool) {
    const Tensor image = randn(shape, DType::float64);
    return F::interpolate(image, options).to_vector<double>() == pool(image).template to_vector<double>();
  };
  CHECK(same({2, 3, 5, 7}, {.size = {2, 11}, .mode = UpsampleMode::area}, [](const Tensor& t) {
    return F::adaptive_avg_pool2d(t, {.output_size = {2, 11}});
  }));
  CHECK(same({2, 3, 5, 2, 7}, {.size = {2, 3, 5}, .mode = UpsampleMode::area}, [](const Tensor& t) {
    return F::adaptive_avg_pool3d(t, {.output_size = {2, 3, 5}});
  }));
}

TEST_CASE("a factor is rounded down to a size, and its places are its own unless they are recomputed") {
  const Numbers x = {1, 2, 3, 4, 5};
  CHECK(resized(x, {.scale_factor = 1.7}) == Numbers{1, 1, 2, 2, 3, 3, 4, 5});
  CHECK(resized(x, {.scale_factor = 1.7, .recompute_scale_factor = true}) == Numbers{1, 1, 2, 2, 3, 4, 4, 5});
  CHECK(resized(x, {.scale_factor = 1.7, .recompute_scale_factor = false}) == Numbers{1, 1, 2, 2, 3, 3, 4, 5});
  CHECK(resized(x, {.size = 8}) == Numbers{1, 1, 2, 2, 3, 4, 4, 5});
  CHECK(resized(x, {.scale_factor = 0.39}) == Numbers{1});
  CHECK(resized(x, {.scale_factor = 1.7, .mode = UpsampleMode::linear, .recompute_scale_factor = true}) ==
        resized(x, {.size = 8, .mode = UpsampleMode::linear}));
}

TEST_CASE("the rank says how many dimensions are resized, each by its own number") {
  CHECK(F::interpolate(zeros({2, 3, 5}), {.scale_factor = 2}).shape() == Shape{2, 3, 10});
  CHECK(F::interpolate(zeros({2, 3, 5, 7}), {.scale_factor = 2}).shape() == Shape{2, 3, 10, 14});
  CHECK(F::interpolate(zeros({2, 3, 5, 7}), {.size = {11, 4}}).shape() == Shape{2, 3, 11, 4});
  CHECK(F::interpolate(zeros({2, 3, 5, 7, 4}), {.scale_factor = {2, 0.5, 1.3}}).shape() == Shape{2, 3, 10, 3, 5});
  const Tensor x = tensor({{{{1, 2}, {3, 4}}}}, DType::float64);
  CHECK(
      F::interpolate(x, {.size = {2, 3}, .mode = UpsampleMode::bilinear, .align_corners = true}).to_vector<double>() ==
      Numbers{1, 1.5, 2, 3, 3.5, 4});
  CHECK(
      F::interpolate(x, {.size = {3, 2}, .mode = UpsampleMode::bilinear, .align_corners = true}).to_vector<double>() ==
      Numbers{1, 2, 2, 3, 3, 4});
}

TEST_CASE("interpolate and its gradient are adjoint") {
  const auto off = [](const Shape& shape, const nn::UpsampleOptions& options) {
    return test::adjoint_error([&](const Tensor& x) { return F::interpolate(x, options); }, shape);
  };
  CHECK(off({2, 3, 11}, {.scale_factor = 2.3}) < 1e-12);
  CHECK(off({2, 3, 11}, {.size = 29, .mode = UpsampleMode::linear}) < 1e-12);
  CHECK(off({2, 3, 5, 7}, {.size = {13, 3}, .mode = UpsampleMode::nearest_exact}) < 1e-12);
  CHECK(off({2, 3, 5, 7}, {.scale_factor = {0.7, 3.1}, .mode = UpsampleMode::bilinear}) < 1e-12);
  CHECK(off({2, 3, 5, 7}, {.scale_factor = {0.7, 3.1}, .mode = UpsampleMode::bicubic}) < 1e-12);
  CHECK(off({2, 3, 5, 7}, {.size = {13, 3}, .mode = UpsampleMode::bicubic, .align_corners = true}) < 1e-12);
  CHECK(off({2, 3, 5, 7}, {.size = {13, 3}, .mode = UpsampleMode::area}) < 1e-12);
  CHECK(off({2, 3, 5, 2, 7}, {.size = {3, 5, 11}, .mode = UpsampleMode::trilinear, .align_corners = true}) < 1e-12);
}

TEST_CASE("a batch of none is resized to a batch of none, with a gradient of its shape") {
  const Tensor x = zeros({0, 3, 5}).requires_grad_();
  const Tensor y = F::interpolate(x, {.size = 7, .mode = UpsampleMode::linear});
  CHECK(y.shape() == Shape{0, 3, 7});
  y.sum().backward();
  CHECK(x.grad().shape() == Shape{0, 3, 5});
}

TEST_CASE("interpolate names what does not fit") {
  const Shape line{2, 3, 5}, image{2, 3, 5, 7};
  CHECK(error(line, {}) == "interpolate: no size is given: expected size or scale_factor, got neither");
  CHECK(error(line, {.size = 3, .scale_factor = 2}) ==
        "interpolate: size and scale_factor are both given: expected size or scale_factor, got both");
  CHECK(error(line, {.size = 3, .align_corners = false}) ==
        "interpolate: align_corners needs an interpolating mode: expected mode linear, bilinear, trilinear or bicubic, "
        "got nearest");
  CHECK(error(line, {.size = 3, .mode = UpsampleMode::nearest_exact, .align_corners = true}) ==
        "interpolate: align_corners needs an interpolating mode: expected mode linear, bilinear, trilinear or bicubic, "
        "got nearest-exact");
  CHECK(error(line, {.size = 3, .recompute_scale_factor = true}) ==
        "interpolate: recompute_scale_factor needs a scale_factor: expected scale_factor, got size");
  CHECK(error(line, {.size = 3, .recompute_scale_factor = false}) == "no error");
  CHECK(error(line, {.size = 0}) == "interpolate: size must be positive: expected >= 1, got 0");
  CHECK(error(image, {.size = {3, -2}}) == "interpolate: size must be positive: expected >= 1, got -2");
  CHECK(error(line, {.scale_factor = 0}) == "interpolate: scale_factor must be positive: expected > 0, got 0");
  CHECK(error(line, {.scale_factor = -1.5}) == "interpolate: scale_factor must be positive: expected > 0, got -1.5");
  CHECK(error(line, {.scale_factor = NAN}) == "interpolate: scale_factor must be positive: expected > 0, got nan");
  CHECK(error(line, {.scale_factor = 0.1}) ==
        "interpolate: output size is too small: expected >= 1, got 0; input size 5, scale_factor 0.1");
  CHECK(error(line, {.scale_factor = 1e19}) ==
        "interpolate: output size overflows 64 bits: expected below 2^63, got input size 5 and scale_factor 1e+19");
  CHECK(error(line, {.scale_factor = INFINITY}) ==
        "interpolate: output size overflows 64 bits: expected below 2^63, got input size 5 and scale_factor inf");
  CHECK(error(image, {.size = INT64_MAX}) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 9223372036854775807 in "
        "dimension 2");
  CHECK(error({2, 3}, {.size = 3}) ==
        "interpolate: wrong number of dimensions: expected 3-D to 5-D batched input, got 2-D [2, 3]");
  CHECK(error({2, 3, 2, 2, 2, 2}, {.size = 3}) ==
        "interpolate: wrong number of dimensions: expected 3-D to 5-D batched input, got 6-D [2, 3, 2, 2, 2, 2]");
  CHECK(error(line, {.size = 3, .mode = UpsampleMode::bilinear}) ==
        "interpolate: mode does not fit the input: expected linear for 3-D [2, 3, 5], got bilinear");
  CHECK(error(image, {.size = 3, .mode = UpsampleMode::linear}) ==
        "interpolate: mode does not fit the input: expected bilinear for 4-D [2, 3, 5, 7], got linear");
  CHECK(error(line, {.size = 3, .mode = UpsampleMode::bicubic}) ==
        "interpolate: mode does not fit the input: expected linear for 3-D [2, 3, 5], got bicubic");
  CHECK(error({2, 3, 5, 7, 1}, {.size = 3, .mode = UpsampleMode::bicubic}) ==
        "interpolate: mode does not fit the input: expected trilinear for 5-D [2, 3, 5, 7, 1], got bicubic");
  CHECK(error(line, {.size = 3, .mode = UpsampleMode::area, .align_corners = false}) ==
        "interpolate: align_corners needs an interpolating mode: expected mode linear, bilinear, trilinear or bicubic, "
        "got area");
  CHECK(error(line, {.size = 3, .mode = UpsampleMode::area, .recompute_scale_factor = true}) ==
        "interpolate: recompute_scale_factor needs a scale_factor: expected scale_factor, got size");
  CHECK(error({2, 3, 0}, {.size = 3, .mode = UpsampleMode::area}) ==
        "interpolate: input size must be positive: expected >= 1, got 0");
  CHECK(error({3, 5}, {.size = 3, .mode = UpsampleMode::area}) ==
        "interpolate: wrong number of dimensions: expected 3-D to 5-D batched input, got 2-D [3, 5]");
  CHECK(error({2, 3, 5, 7, 1}, {.size = 3, .mode = UpsampleMode::bilinear}) ==
        "interpolate: mode does not fit the input: expected trilinear for 5-D [2, 3, 5, 7, 1], got bilinear");
  CHECK(error(line, {.size = {3, 4}}) ==
        "interpolate: size does not fit the input: expected 1 number, got 2 for [2, 3, 5]");
  CHECK(error(image, {.scale_factor = {1, 2, 3}}) ==
        "interpolate: scale_factor does not fit the input: expected 1 or 2 numbers, got 3 for [2, 3, 5, 7]");
  CHECK(error({2, 0, 5}, {.size = 3}) == "interpolate: no channels: expected >= 1, got 0 in [2, 0, 5]");
  CHECK(error({2, 3, 0}, {.size = 3}) == "interpolate: input size must be positive: expected >= 1, got 0");
  CHECK(error({2, 3, 5, 0}, {.scale_factor = 2}) ==
        "interpolate: input size must be positive: expected >= 1, got 0 in dimension 1");
  CHECK(message_of([] {
          F::interpolate(zeros({2, 3, 5}, DType::int64), {.size = 3});
        }) == "interpolate: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK(message_of([] {
          F::interpolate(zeros({2, 3, 5}), {.size = {1, 2, 3, 4}});
        }) == "sizes: one number for all dimensions or one for each: expected 1 to 3, got 4");
}

TEST_CASE("Upsample's constructor refuses what no input could make valid") {
  const auto refused = [](const nn::UpsampleOptions& options) {
    return message_of([&] { nn::Upsample layer(options); });
  };
  CHECK(refused({}) == "interpolate: no size is given: expected size or scale_factor, got neither");
  CHECK(refused({.size = 3, .scale_factor = 2}) ==
        "interpolate: size and scale_factor are both given: expected size or scale_factor, got both");
  CHECK(refused({.size = {3, 0}}) == "Upsample: size is out of range: expected >= 1, got 0");
  CHECK(refused({.scale_factor = -2}) == "Upsample: scale_factor is out of range: expected > 0, got -2");
  CHECK(refused({.scale_factor = 2, .mode = UpsampleMode::area, .align_corners = true}) ==
        "interpolate: align_corners needs an interpolating mode: expected mode linear, bilinear, trilinear or bicubic, "
        "got area");
  CHECK(refused({.scale_factor = 2, .align_corners = true}) ==
        "interpolate: align_corners needs an interpolating mode: expected mode linear, bilinear, trilinear or bicubic, "
        "got nearest");
}

TEST_CASE("Upsample in JSON takes numbers and lists, and says what does not fit") {
  const auto answer = [](const std::string& options) { return json_error("Upsample", options, "[3, 5, 7]"); };
  CHECK(answer(R"("scale_factor": 2)") == "no error");
  CHECK(answer(R"("scale_factor": [2, 0.5], "mode": "bilinear", "align_corners": true)") == "no error");
  CHECK(answer(R"("size": [2, 11], "scale_factor": null, "mode": "nearest-exact")") == "no error");
  CHECK(answer(R"("size": 4, "align_corners": null)") == "no error");
  CHECK(answer(R"("size": 4, "mode": "bicubic", "align_corners": true)") == "no error");
  CHECK(answer(R"("scale_factor": 1.7, "mode": "area")") == "no error");
  CHECK(answer(R"("scale_factor": 2, "mode": "area", "align_corners": false)") ==
        "error: /layers/0/align_corners (layer Upsample 0): interpolate: align_corners needs an interpolating mode: "
        "expected mode linear, bilinear, trilinear or bicubic, got area; shapes: input [3, 5, 7] -> Upsample");
  CHECK(json_error("Upsample", R"("scale_factor": 2, "mode": "bicubic")", "[3, 5]") ==
        "error: /layers/0/mode (layer Upsample 0): interpolate: mode does not fit the input: expected linear for 3-D "
        "[N, 3, 5], got bicubic; shapes: input [3, 5] -> Upsample");
  CHECK(answer("") ==
        "error: /layers/0 (layer Upsample 0): interpolate: no size is given: expected size or scale_factor, got "
        "neither; shapes: input [3, 5, 7] -> Upsample");
  CHECK(answer(R"("size": 0)") == "error: /layers/0/size (layer Upsample 0): expected >= 1, got 0");
  CHECK(answer(R"("size": 2.5)") == "error: /layers/0/size (layer Upsample 0): expected an integer, got 2.5");
  CHECK(answer(R"("size": [2, 3, 4])") ==
        "error: /layers/0/size (layer Upsample 0): interpolate: size does not fit the input: expected 1 or 2 numbers, "
        "got 3 for [N, 3, 5, 7]; shapes: input [3, 5, 7] -> Upsample");
  CHECK(answer(R"("size": [2, null])") == "error: /layers/0/size (layer Upsample 0): expected an integer, got null");
  CHECK(answer(R"("size": [1, 2, 3, 4])") ==
        "error: /layers/0/size (layer Upsample 0): expected a list of 1 to 3 integers, got 4 in [1, 2, 3, 4]");
  CHECK(answer(R"("scale_factor": [])") ==
        "error: /layers/0/scale_factor (layer Upsample 0): expected a list of 1 to 3 numbers, got 0 in []");
  CHECK(answer(R"("scale_factor": [1, 0])") == "error: /layers/0/scale_factor (layer Upsample 0): expected > 0, got 0");
  CHECK(answer(R"("scale_factor": true)") ==
        "error: /layers/0/scale_factor (layer Upsample 0): expected a number, got true");
  CHECK(answer(R"("scale_factor": 0.1)") ==
        "error: /layers/0/scale_factor (layer Upsample 0): interpolate: output size is too small: expected >= 1, got "
        "0; input size 5, scale_factor 0.1; shapes: input [3, 5, 7] -> Upsample");
  CHECK(answer(R"("scale_factor": 2, "mode": "linear")") ==
        "error: /layers/0/mode (layer Upsample 0): interpolate: mode does not fit the input: expected bilinear for 4-D "
        "[N, 3, 5, 7], got linear; shapes: input [3, 5, 7] -> Upsample");
  CHECK(answer(R"("scale_factor": 2, "mode": "cubic")") ==
        "error: /layers/0/mode (layer Upsample 0): expected nearest, linear, bilinear, trilinear, nearest-exact, "
        "bicubic or area, got cubic; did you mean bicubic?");
}

TEST_CASE("a model writes out its Upsample's numbers, so that a sample without a batch is not mistaken for a batch") {
  nn::UpsampleOptions options{.scale_factor = 2};
  const Shape input{1, 3, 5, 7};
  CHECK(nn::find_layer_type("Upsample")->infer(&options, {&input, 1}) == Shape{1, 3, 10, 14});
  CHECK(options.scale_factor.count == 2);
  nn::Upsample layer(options);
  CHECK(message_of([&] {
          layer(zeros({3, 5, 7}));
        }) == "interpolate: scale_factor does not fit the input: expected 1 number, got 2 for [3, 5, 7]");
}

TEST_CASE("Upsample prints all its options") {
  CHECK(nn::Upsample({.scale_factor = 2}).to_string() ==
        "Upsample(size=null, scale_factor=2.0, mode=\"nearest\", align_corners=null, recompute_scale_factor=null)");
  CHECK(nn::Upsample({.size = {3, 5}, .mode = UpsampleMode::bilinear, .align_corners = true}).to_string() ==
        "Upsample(size=[3, 5], scale_factor=null, mode=\"bilinear\", align_corners=true, recompute_scale_factor=null)");
}
