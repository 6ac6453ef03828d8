#include "taper/nn/conv_transpose.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "support/oracle_conv_transpose.hpp"
#include "support/sizes.hpp"
#include "support/spread.hpp"
#include "support/values.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using test::counted;
using test::message_of;
using test::relative_error;
using test::sizes_of;
namespace F = taper::nn::functional;

namespace {

using Numbers = std::vector<double>;

/// Numbers of 1/64, so that float32 holds what float64 has.
Numbers drawn(std::size_t n, std::uint64_t seed) {
  Numbers values = test::numbers<double>(std::int64_t(n), seed);
  for (double& v : values) v = std::round(v * 64) / 64;
  return values;
}

/// A case of up to three dimensions; what is in front of the last N is 1.
struct TransposedCase {
  oracle::ConvTranspose p;
  int dims = 1;
  bool batched = true, bias = true;

  static TransposedCase random(std::uint64_t seed) {
    std::uint64_t position = 0;
    const auto below = [&](std::int64_t n) {
      return std::int64_t(random_bits(seed, Stream::data, position++) % std::uint64_t(n));
    };
    TransposedCase c;
    c.dims = 1 + int(below(3));
    c.batched = below(4) != 0;
    c.bias = below(3) != 0;
    oracle::ConvTranspose& p = c.p;
    p.batch = c.batched ? 1 + below(3) : 1;
    p.groups = 1 + below(3);
    p.in_channels = p.groups * (1 + below(3));
    p.out_channels = p.groups * (1 + below(3));
    for (int d = 3 - c.dims; d < 3; ++d) {
      p.in[d] = 1 + below(c.dims == 1 ? 13 : c.dims == 2 ? 7 : 5);
      p.kernel[d] = 1 + below(c.dims == 1 ? 7 : 4);
      p.stride[d] = 1 + below(4);
      p.dilation[d] = 1 + below(3);
      p.output_padding[d] = below(std::max(p.stride[d], p.dilation[d]));
      p.padding[d] = below(6);
      while (p.out(d) < 1) --p.padding[d];
    }
    return c;
  }

  template <int N>
  Tensor call(const Tensor& x, const Tensor& w, const Tensor& b) const {
    const nn::ConvTransposeFuncOptions<N> options{.stride = sizes_of<N>(p.stride),
                                                  .padding = sizes_of<N>(p.padding),
                                                  .output_padding = sizes_of<N>(p.output_padding),
                                                  .groups = p.groups,
                                                  .dilation = sizes_of<N>(p.dilation)};
    if constexpr (N == 1) return F::conv_transpose1d(x, w, b, options);
    if constexpr (N == 2) return F::conv_transpose2d(x, w, b, options);
    if constexpr (N == 3) return F::conv_transpose3d(x, w, b, options);
  }

  Shape shape(bool with_batch, std::int64_t batch, std::int64_t channels, const std::int64_t* extents) const {
    const Shape spatial(std::span<const std::int64_t>(extents + 3 - dims, std::size_t(dims)));
    return with_batch ? Shape{batch, channels}.concat(spatial) : Shape{channels}.concat(spatial);
  }

  std::string text() const {
    std::string out = "dims " + std::to_string(dims) + (batched ? ", batch " : ", unbatched ") +
                      std::to_string(p.batch) + ", channels " + std::to_string(p.in_channels) + " to " +
                      std::to_string(p.out_channels) + ", groups " + std::to_string(p.groups) + (bias ? ", bias" : "");
    for (int d = 3 - dims; d < 3; ++d)
      out += "; in " + std::to_string(p.in[d]) + " kernel " + std::to_string(p.kernel[d]) + " stride " +
             std::to_string(p.stride[d]) + " padding " + std::to_string(p.padding[d]) + " output_padding " +
             std::to_string(p.output_padding[d]) + " dilation " + std::to_string(p.dilation[d]);
    return out;
  }

  /// What is wrong with the output or a gradient; "" if nothing.
  std::string difference(DType dtype, std::uint64_t seed) const {
    const Numbers x = drawn(p.x_size(), seed), w = drawn(p.w_size(), seed + 1), dy = drawn(p.y_size(), seed + 2);
    const Numbers b = bias ? drawn(std::size_t(p.out_channels), seed + 3) : Numbers();
    const std::int64_t out[3] = {p.out(0), p.out(1), p.out(2)};
    const auto leaf = [&](const Numbers& values, const Shape& shape) {
      return to(from_data(values, shape), dtype).requires_grad_();
    };
    const Tensor tx = leaf(x, shape(batched, p.batch, p.in_channels, p.in));
    const Tensor tw = leaf(w, shape(true, p.in_channels, p.out_channels / p.groups, p.kernel));
    const Tensor tb = bias ? leaf(b, {p.out_channels}) : Tensor();
    const Tensor y = dims == 1 ? call<1>(tx, tw, tb) : dims == 2 ? call<2>(tx, tw, tb) : call<3>(tx, tw, tb);
    if (!(y.shape() == shape(batched, p.batch, p.out_channels, out))) return "shape " + to_string(y.shape());
    y.backward(to(from_data(dy, y.shape()), dtype));
    const auto g = p.backward(x, w, dy);
    const double bound = dtype == DType::float32 ? 1e-6 : 1e-13;
    const auto off = [&](const Tensor& got, const Numbers& expected) {
      return !(relative_error(got.to_vector<double>(), expected) < bound);
    };
    if (off(y, p.forward(x, w, b))) return "forward";
    if (off(tx.grad(), g.dx)) return "gradient of the input";
    if (off(tw.grad(), g.dw)) return "gradient of the weight";
    return bias && off(tb.grad(), g.db) ? "gradient of the bias" : "";
  }
};

}  // namespace

TEST_CASE("conv_transpose1d gives PyTorch's values and gradients") {
  const Tensor x = tensor({{{1, 2, 3}}}, DType::float64).requires_grad_();
  const Tensor w = tensor({{{1, 2, 3}}}, DType::float64).requires_grad_();
  const Tensor y = F::conv_transpose1d(x, w, Tensor(), {.stride = 2, .padding = 1, .output_padding = 1});
  CHECK(y.to_vector<double>() == Numbers{2, 5, 4, 9, 6, 9});
  y.backward(counted(1, y.shape()));
  CHECK(x.grad().to_vector<double>() == Numbers{8, 20, 32});
  CHECK(w.grad().to_vector<double>() == Numbers{16, 22, 28});
}

TEST_CASE("what no kernel reaches is the bias") {
  const Tensor x = ones({1, 1, 1, 1}, DType::float64), w = ones({1, 1, 1, 1}, DType::float64),
               b = full({1}, 7, DType::float64);
  const Tensor y = F::conv_transpose2d(x, w, b, {.stride = {2, 1}, .output_padding = {1, 2}, .dilation = {1, 3}});
  CHECK(y.shape() == Shape{1, 1, 2, 3});
  CHECK(y.to_vector<double>() == Numbers{8, 7, 7, 7, 7, 7});
}

TEST_CASE("groups keep their channels apart and bias comes before dilation") {
  const Tensor x = counted(1, {2, 2}), w = counted(1, {2, 3, 2});
  const Tensor y = F::conv_transpose1d(x, w, Tensor(), {.groups = 2, .dilation = 3});
  CHECK(y.shape() == Shape{6, 5});
  // Channel 0 of the input, 1 2, times the kernels 1 2, 3 4, 5 6, with two zeros between the taps.
  CHECK(y.select(0, 0).to_vector<double>() == Numbers{1, 2, 0, 2, 4});
  CHECK(y.select(0, 2).to_vector<double>() == Numbers{5, 10, 0, 6, 12});
  CHECK(y.select(0, 3).to_vector<double>() == Numbers{21, 28, 0, 24, 32});
}

TEST_CASE("conv_transpose is the adjoint of conv") {
  // <conv(x), y> = <x, conv_transpose(y)>, with the same weight.
  const auto error = [](const Tensor& x, const Tensor& conv, const Tensor& y, const Tensor& transposed) {
    REQUIRE(conv.shape() == y.shape());
    REQUIRE(transposed.shape() == x.shape());
    const double a = (conv * y).sum().item(), b = (x * transposed).sum().item();
    return std::abs(a - b) / std::max(abs(conv * y).sum().item(), abs(x * transposed).sum().item());
  };
  {
    const Tensor x = test::spread({2, 6, 23}), w = test::spread({4, 3, 5}, 0.41), y = test::spread({2, 4, 9}, 0.53);
    CHECK(error(x, F::conv1d(x, w, Tensor(), {.stride = 3, .padding = 5, .dilation = 2, .groups = 2}), y,
                F::conv_transpose1d(y, w, Tensor(),
                                    {.stride = 3, .padding = 5, .output_padding = 0, .groups = 2, .dilation = 2})) <
          1e-12);
  }
  {
    const Tensor x = test::spread({3, 2, 13, 17}), w = test::spread({5, 2, 3, 4}, 0.41);
    const Tensor conv = F::conv2d(x, w, Tensor(), {.stride = {2, 3}, .padding = {1, 0}, .dilation = {1, 2}});
    const Tensor y = test::spread(conv.shape(), 0.53);
    CHECK(error(x, conv, y,
                F::conv_transpose2d(
                    y, w, Tensor(),
                    {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {0, 1}, .dilation = {1, 2}})) < 1e-12);
  }
  {
    const Tensor x = test::spread({1, 3, 5, 7, 11}), w = test::spread({3, 1, 2, 3, 5}, 0.41);
    const Tensor conv = F::conv3d(x, w, Tensor(), {.stride = {1, 2, 3}, .padding = {0, 1, 2}, .groups = 3});
    const Tensor y = test::spread(conv.shape(), 0.53);
    CHECK(error(x, conv, y,
                F::conv_transpose3d(
                    y, w, Tensor(),
                    {.stride = {1, 2, 3}, .padding = {0, 1, 2}, .output_padding = {0, 0, 1}, .groups = 3})) < 1e-12);
  }
}

TEST_CASE("transposed convolutions agree with their definition on 8,200 random cases in both types") {
  int count[4] = {}, uncovered = 0;
  for (std::uint64_t seed = 1; seed <= 8200; ++seed) {
    const TransposedCase c = TransposedCase::random(seed);
    ++count[c.dims];
    uncovered += c.p.output_padding[2] >= c.p.stride[2];
    for (const DType dtype : {DType::float32, DType::float64}) {
      const std::string wrong = c.difference(dtype, 7 * seed);
      if (wrong.empty()) continue;
      INFO("case " << seed << ", " << name_of(dtype) << ": " << c.text());
      CHECK(wrong == "");
    }
  }
  CHECK(std::min({count[1], count[2], count[3]}) > 2500);
  CHECK(uncovered > 900);
}

TEST_CASE("output_size chooses among the sizes that a convolution takes to the same one") {
  nn::ConvTranspose2d layer({.in_channels = 2,
                             .out_channels = 3,
                             .kernel_size = {3, 4},
                             .stride = {2, 3},
                             .padding = {1, 0},
                             .dilation = {1, 2}});
  const Tensor x = ones({1, 2, 5, 7});
  CHECK(layer(x).shape() == Shape{1, 3, 9, 25});
  CHECK(layer.forward(x, {10, 27}).shape() == Shape{1, 3, 10, 27});
  CHECK(layer.forward(x.select(0, 0), {9, 26}).shape() == Shape{3, 9, 26});
  CHECK(layer.forward(x, {10, 27}).narrow(2, 0, 9).narrow(3, 0, 25).to_vector<float>() == layer(x).to_vector<float>());
  CHECK(message_of([&] {
          layer.forward(x, {11, 25});
        }) ==
        "conv_transpose2d: output_size cannot be reached: expected 9 to 10, got 11 in dimension 0; input size 5, "
        "stride 2");
  CHECK(message_of([&] {
          layer.forward(x, {9, 24});
        }) ==
        "conv_transpose2d: output_size cannot be reached: expected 25 to 27, got 24 in dimension 1; input size 7, "
        "stride 3");
  CHECK(message_of([&] {
          layer.forward(x, {INT64_MIN, 25});
        }) ==
        "conv_transpose2d: output_size cannot be reached: expected 9 to 10, got -9223372036854775808 in dimension 0; "
        "input "
        "size 5, stride 2");
  nn::ConvTranspose1d plain({.in_channels = 2, .out_channels = 3, .kernel_size = 3, .dilation = 3});
  CHECK(message_of([&] {
          plain.forward(ones({2, 5}), 12);
        }) == "conv_transpose1d: output_size cannot be reached: expected 11, got 12; input size 5, stride 1");
}

TEST_CASE("ConvTranspose starts within its bound, which counts the output channels of a group") {
  manual_seed(11);
  const nn::ConvTranspose1d layer({.in_channels = 100, .out_channels = 18, .kernel_size = 3, .groups = 2});
  CHECK(layer.weight.shape() == Shape{100, 9, 3});
  CHECK(layer.bias.shape() == Shape{18});
  const auto values = layer.weight.to_vector<double>();  // fan_in 9 * 3: bound 0.19245
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  CHECK(*low >= -0.19246);
  CHECK(*low < -0.19);
  CHECK(*high <= 0.19246);
  CHECK(*high > 0.19);
  for (const double b : layer.bias.to_vector<double>()) CHECK(std::abs(b) <= 0.19246);
}

TEST_CASE("ConvTranspose has PyTorch's parameter names and prints all its options") {
  nn::ConvTranspose2d layer({.in_channels = 4, .out_channels = 6, .kernel_size = {2, 3}, .groups = 2});
  REQUIRE(layer.named_parameters().size() == 2);
  CHECK(layer.named_parameters()[0].name == "weight");
  CHECK(layer.named_parameters()[1].name == "bias");
  CHECK(layer.to_string() ==
        "ConvTranspose2d(in_channels=4, out_channels=6, kernel_size=[2, 3], stride=1, padding=0, output_padding=0, "
        "groups=2, bias=true, dilation=1, padding_mode=\"zeros\")");
  CHECK(nn::ConvTranspose3d({.in_channels = 2, .out_channels = 3, .kernel_size = 2, .bias = false})
            .named_parameters()
            .size() == 1);
}
