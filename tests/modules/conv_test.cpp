#include "taper/nn/conv.hpp"

#include <algorithm>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/infer.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using test::infer;
namespace F = taper::nn::functional;
using test::counted;
using test::relative_error;

namespace {

using Numbers = std::vector<double>;

/// conv1d of 1, 2, ... , with the gradient 1, 2, ...
struct ConvRun {
  ConvRun(const Shape& shape, const Tensor& w, const Tensor& b, const nn::Conv1dFuncOptions& options) {
    const Tensor x = counted(1, shape).requires_grad_();
    const Tensor result = F::conv1d(x, w, b, options);
    result.backward(counted(1, result.shape()));
    y = result.to_vector<double>();
    dx = x.grad().to_vector<double>();
  }
  Numbers y, dx;
};

Numbers padded_with(PadMode mode) {
  return ConvRun({1, 4}, tensor({{{1, 0, 0}}}, DType::float64), Tensor(), {.padding = 1, .padding_mode = mode}).y;
}

}  // namespace

TEST_CASE("conv1d gives PyTorch's values and gradients") {
  const Tensor w = tensor({{{1, -1, 2}}, {{.5, 0, 1}}}, DType::float64), b = tensor({.1, -.2}, DType::float64);
  const ConvRun strided({1, 1, 5}, w, b, {.stride = 2, .padding = 1});
  CHECK(relative_error(strided.y, {3.1, 7.1, -.9, 1.8, 4.8, 1.8}) < 1e-15);
  CHECK(strided.dx == Numbers{-1, 10.5, -2, 15, -3});
  const ConvRun dilated({1, 1, 7}, w, b, {.dilation = 2});
  CHECK(relative_error(dilated.y, {8.1, 10.1, 12.1, 5.3, 6.8, 8.3}) < 1e-15);
  CHECK(dilated.dx == Numbers{3, 4.5, 5, -2, 3, 9, 12});
  const ConvRun grouped({1, 2, 4}, tensor({{{1, 2}}, {{3, 4}}}, DType::float64), Tensor(), {.groups = 2});
  CHECK(grouped.y == Numbers{5, 8, 11, 39, 46, 53});
  CHECK(grouped.dx == Numbers{1, 4, 7, 6, 12, 31, 38, 24});
}

TEST_CASE("padding same keeps the length, an odd extra zero going to the right") {
  const Tensor pair = ones({1, 1, 2}, DType::float64);
  const ConvRun odd({1, 3}, pair, Tensor(), {.padding = "same"});
  CHECK(odd.y == Numbers{3, 5, 3});
  CHECK(odd.dx == Numbers{1, 3, 5});
  const ConvRun wide({1, 3}, pair, Tensor(), {.padding = "same", .dilation = 3});
  CHECK(wide.y == Numbers{3, 1, 2});
  CHECK(wide.dx == Numbers{2, 3, 1});
  const ConvRun three({1, 3}, tensor({{{1, 10, 100}}}, DType::float64), Tensor(), {.padding = "same", .dilation = 2});
  CHECK(three.y == Numbers{310, 20, 31});
  CHECK(three.dx == Numbers{13, 20, 130});
}

TEST_CASE("padding modes fill as PyTorch does") {
  CHECK(padded_with(PadMode::zeros) == Numbers{0, 1, 2, 3});
  CHECK(padded_with(PadMode::reflect) == Numbers{2, 1, 2, 3});
  CHECK(padded_with(PadMode::replicate) == Numbers{1, 1, 2, 3});
  CHECK(padded_with(PadMode::circular) == Numbers{4, 1, 2, 3});
}

TEST_CASE("padding modes reach their limits: reflect below the size, circular up to it, replicate any") {
  const Tensor x = counted(1, {1, 3}), w = ones({1, 1, 1}, DType::float64);
  const auto filled = [&](PadMode mode, std::int64_t padding) {
    return F::conv1d(x, w, Tensor(), {.padding = padding, .padding_mode = mode}).to_vector<double>();
  };
  CHECK(filled(PadMode::reflect, 2) == Numbers{3, 2, 1, 2, 3, 2, 1});
  CHECK(filled(PadMode::circular, 3) == Numbers{1, 2, 3, 1, 2, 3, 1, 2, 3});
  CHECK(filled(PadMode::replicate, 5) == Numbers{1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3});
  CHECK_THROWS_WITH(filled(PadMode::reflect, 3),
                    "conv1d: padding is too large for padding_mode reflect: expected <= 2, got 3; input size 3");
  CHECK_THROWS_WITH(filled(PadMode::circular, 4),
                    "conv1d: padding is too large for padding_mode circular: expected <= 3, got 4; input size 3");
}

TEST_CASE("conv1d takes inputs without a batch and batches of none") {
  const Tensor x = counted(1, {3, 2, 7}), w = counted(-7, {5, 2, 3}), b = counted(0, {5});
  const Tensor all = F::conv1d(x, w, b, {.stride = 2});
  const Tensor one = F::conv1d(x.select(0, 1), w, b, {.stride = 2});
  CHECK(one.shape() == Shape{5, 3});
  CHECK(one.to_vector<double>() == all.select(0, 1).to_vector<double>());
  CHECK(F::conv1d(zeros({0, 2, 7}, DType::float64), w, b).shape() == Shape{0, 5, 5});
  CHECK(F::conv1d(zeros({0, 2, 7}, DType::float64), w, b, {.padding = 1, .padding_mode = PadMode::circular}).shape() ==
        Shape{0, 5, 7});
}

TEST_CASE("conv1d names what does not fit") {
  const Tensor x = ones({2, 4, 11}), w = ones({6, 4, 3});
  const auto call = [&](const nn::Conv1dFuncOptions& options) { return F::conv1d(x, w, Tensor(), options); };
  CHECK_THROWS_WITH(call({.stride = 0}), "conv1d: stride must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(call({.padding = -1}), "conv1d: padding must not be negative: expected >= 0, got -1");
  CHECK_THROWS_WITH(call({.dilation = 0}), "conv1d: dilation must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(call({.groups = 0}), "conv1d: groups must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(call({.groups = 5}),
                    "conv1d: out_channels must be divisible by groups: expected a multiple of 5, got 6");
  CHECK_THROWS_WITH(
      call({.groups = 2}),
      "conv1d: input does not fit the weight: expected 8 channels, got 4 in [2, 4, 11]; weight [6, 4, 3], "
      "groups 2");
  CHECK_THROWS_WITH(call({.stride = 2, .padding = "same"}), "conv1d: padding 'same' needs stride 1: expected 1, got 2");
  CHECK_THROWS_WITH(call({.padding = "some"}),
                    "padding: unknown word: expected numbers, \"same\" or \"valid\", got \"some\"");
  CHECK_THROWS_WITH(call({.dilation = 6}),
                    "conv1d: padded input is smaller than the dilated kernel: expected >= 13, got 11");
  CHECK_THROWS_WITH(F::conv1d(ones({2, 4, 11, 1}), w),
                    "conv1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D "
                    "[2, 4, 11, 1]");
  CHECK_THROWS_WITH(F::conv1d(ones({4, 11}), ones({6, 3})),
                    "conv1d: weight has the wrong number of dimensions: expected 3-D, got 2-D [6, 3]");
  CHECK_THROWS_WITH(F::conv1d(x, ones({6, 4, 0})), "conv1d: kernel_size must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(F::conv1d(x, ones({0, 4, 3})), "conv1d: weight has no channels: expected >= 1, got 0 in [0, 4, 3]");
  CHECK_THROWS_WITH(F::conv1d(ones({2, 0, 11}), w), "conv1d: no channels: expected >= 1, got 0 in [2, 0, 11]");
  CHECK_THROWS_WITH(F::conv1d(ones({2, 4, 0}), w), "conv1d: input size must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(F::conv1d(x, w, ones({5})), "conv1d: bias does not fit the weight: expected [6], got [5]");
  CHECK_THROWS_WITH(F::conv1d(x.to(DType::int64), w),
                    "conv1d: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::conv1d(x, w.to(DType::int64)),
                    "conv1d: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::conv1d(x, w, ones({6}, DType::int64)),
                    "conv1d: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::conv1d(x, w.to(DType::float64)),
                    "conv1d: element types differ: expected float32, got float64; convert with to()");
}

TEST_CASE("Conv1d's constructor refuses what no input could make valid") {
  CHECK_THROWS_WITH(nn::Conv1d({.out_channels = 3, .kernel_size = 2}),
                    "conv1d: in_channels is missing: expected a number, got none; only a model that knows its input's "
                    "shape can infer it");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 0, .out_channels = 3, .kernel_size = 2}),
                    "Conv1d: in_channels is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .kernel_size = 2}),
                    "Conv1d: out_channels is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .out_channels = 3}),
                    "Conv1d: kernel_size is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .stride = 0}),
                    "Conv1d: stride is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .padding = -1}),
                    "Conv1d: padding is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .dilation = 0}),
                    "Conv1d: dilation is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .groups = 0}),
                    "Conv1d: groups is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .groups = 3}),
                    "conv1d: in_channels must be divisible by groups: expected a multiple of 3, got 5");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 6, .out_channels = 5, .kernel_size = 2, .groups = 3}),
                    "conv1d: out_channels must be divisible by groups: expected a multiple of 3, got 5");
  CHECK_THROWS_WITH(nn::Conv1d({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .stride = 3, .padding = "same"}),
                    "conv1d: padding 'same' needs stride 1: expected 1, got 3");
}

TEST_CASE("Conv1d infers its input channels and refuses wrong ones") {
  nn::Conv1dOptions options{.out_channels = 32, .kernel_size = 3, .padding = 1};
  const Shape input{1, 12, 25};
  CHECK(nn::find_layer_type("Conv1d")->infer(&options, {&input, 1}) == Shape{1, 32, 25});
  CHECK(options.in_channels == 12);
  CHECK_THROWS_WITH(infer(nn::Conv1dOptions{.in_channels = 3, .out_channels = 5, .kernel_size = 2}, input),
                    "conv1d: in_channels does not fit the input: expected 12, got 3 in [N, 12, 25]");
  CHECK_THROWS_WITH(infer(nn::Conv1dOptions{.out_channels = 5, .kernel_size = 2}, {1, 25}),
                    "conv1d: wrong number of dimensions: expected 3-D with the batch, got 2-D [N, 25]");
  CHECK_THROWS_WITH(infer(nn::Conv1dOptions{.out_channels = 5, .kernel_size = 27}, input),
                    "conv1d: padded input is smaller than the dilated kernel: expected >= 27, got 25");
  CHECK_THROWS_WITH(infer(nn::Conv1dOptions{.out_channels = 5, .kernel_size = 2, .groups = 0}, input),
                    "conv1d: groups must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(infer(nn::Conv1dOptions{.out_channels = 5, .kernel_size = 2, .groups = 5}, input),
                    "conv1d: in_channels must be divisible by groups: expected a multiple of 5, got 12");
  CHECK_THROWS_WITH(
      infer(nn::Conv1dOptions{.out_channels = 5, .kernel_size = 3, .padding = 26, .padding_mode = PadMode::circular},
            input),
      "conv1d: padding is too large for padding_mode circular: expected <= 25, got 26; input size 25");
}

TEST_CASE("Conv1d starts within its bound, equally for equal seeds") {
  manual_seed(11);
  const nn::Conv1d first({.in_channels = 10, .out_channels = 106, .kernel_size = 5, .groups = 2});
  manual_seed(11);
  const nn::Conv1d again({.in_channels = 10, .out_channels = 106, .kernel_size = 5, .groups = 2});
  CHECK(first.weight.shape() == Shape{106, 5, 5});
  CHECK(first.weight.dtype() == DType::float32);
  CHECK(first.weight.to_vector<float>() == again.weight.to_vector<float>());
  CHECK(first.bias.to_vector<float>() == again.bias.to_vector<float>());
  for (const Tensor& tensor : {first.weight, first.bias}) {  // fan_in 5 * 5: bound 1 / 5
    const auto values = tensor.to_vector<double>();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(*low >= -0.2);
    CHECK(*low < -0.18);
    CHECK(*high <= 0.2);
    CHECK(*high > 0.18);
  }
}

TEST_CASE("Conv1d has PyTorch's parameter names and prints all its options") {
  nn::Conv1d layer({.in_channels = 12, .out_channels = 32, .kernel_size = 3, .padding = "same"});
  REQUIRE(layer.named_parameters().size() == 2);
  CHECK(layer.named_parameters()[0].name == "weight");
  CHECK(layer.named_parameters()[1].name == "bias");
  CHECK(layer.to_string() ==
        "Conv1d(in_channels=12, out_channels=32, kernel_size=3, stride=1, padding=\"same\", dilation=1, groups=1, "
        "bias=true, padding_mode=\"zeros\")");
  nn::Conv1d plain({.in_channels = 2, .out_channels = 3, .kernel_size = 5, .bias = false});
  CHECK(plain.named_parameters().size() == 1);
  CHECK(plain(ones({2, 7})).shape() == Shape{3, 3});
}

TEST_CASE("conv2d of a plane worked by hand: every dimension has its own kernel, stride, padding and dilation") {
  const Tensor x = counted(1, {1, 3, 4}).requires_grad_();  // 1 2 3 4 | 5 6 7 8 | 9 10 11 12
  const Tensor w = tensor({{{{1, 10}, {100, 1000}}}}, DType::float64);
  const Tensor plain = F::conv2d(x, w);
  CHECK(plain.shape() == Shape{1, 2, 3});
  CHECK(plain.to_vector<double>() == Numbers{6521, 7632, 8743, 10965, 12076, 13187});
  const Tensor y =
      F::conv2d(x, w, tensor({.5}, DType::float64), {.stride = {2, 1}, .padding = {0, 1}, .dilation = {1, 3}});
  CHECK(y.shape() == Shape{1, 1, 3});
  CHECK(y.to_vector<double>() == Numbers{7030.5, 8541.5, 602.5});  // taps at columns -1 and 2, 0 and 3, 1 and 4
  y.backward(tensor({{{1, 2, 3}}}, DType::float64));
  CHECK(x.grad().to_vector<double>() == Numbers{2, 3, 10, 20, 200, 300, 1000, 2000, 0, 0, 0, 0});
}

TEST_CASE("conv3d of a block worked by hand") {
  const Tensor x = counted(1, {1, 2, 2, 3}).requires_grad_();
  const Tensor y =
      F::conv3d(x, tensor({{{{{1, 10}}, {{100, 1000}}}}}, DType::float64), Tensor(), {.padding = {0, 0, 1}});
  CHECK(y.shape() == Shape{1, 1, 2, 4});
  CHECK(y.to_vector<double>() == Numbers{7010, 8721, 9832, 903, 10040, 12054, 13165, 1206});
  y.sum().backward();
  CHECK(x.grad().to_vector<double>() == Numbers{11, 11, 11, 11, 11, 11, 1100, 1100, 1100, 1100, 1100, 1100});
}

TEST_CASE("Conv2d and Conv3d start within their bounds, print all their options and infer their input channels") {
  manual_seed(7);
  const nn::Conv2d flat({.in_channels = 6, .out_channels = 68, .kernel_size = {4, 3}, .stride = {1, 2}, .groups = 2});
  CHECK(flat.weight.shape() == Shape{68, 3, 4, 3});
  const nn::Conv3d deep({.in_channels = 3, .out_channels = 71, .kernel_size = {2, 3, 2}, .bias = false});
  CHECK(deep.weight.shape() == Shape{71, 3, 2, 3, 2});
  CHECK(!deep.bias.defined());
  for (const Tensor& tensor : {flat.weight, flat.bias, deep.weight}) {  // fan_in 36: bound 1 / 6
    const auto values = tensor.to_vector<double>();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(*low >= -1.0 / 6);
    CHECK(*low < -0.15);
    CHECK(*high <= 1.0 / 6);
    CHECK(*high > 0.15);
  }
  CHECK(flat.to_string() ==
        "Conv2d(in_channels=6, out_channels=68, kernel_size=[4, 3], stride=[1, 2], padding=0, dilation=1, groups=2, "
        "bias=true, padding_mode=\"zeros\")");
  nn::Conv3dOptions options{.out_channels = 5, .kernel_size = {1, 3, 2}, .stride = {2, 1, 3}, .padding = {1, 0, 2}};
  const Shape input{1, 4, 7, 5, 11};
  CHECK(nn::find_layer_type("Conv3d")->infer(&options, {&input, 1}) == Shape{1, 5, 5, 3, 5});
  CHECK(options.in_channels == 4);
}
