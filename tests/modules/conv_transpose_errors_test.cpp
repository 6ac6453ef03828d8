#include "base/fail.hpp"
#include "support/catch.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "support/numbers.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/conv_transpose.hpp"

using namespace taper;
using test::json_error;
using test::kHuge;
using test::message_of;
namespace F = taper::nn::functional;

// What transposed convolutions refuse; known faults of other frameworks' convolutions, by their public number, for
// every number of spatial dimensions.

namespace {

template <int N>
struct Transposed {
  using Options = nn::ConvTransposeFuncOptions<N>;
  using LayerOptions = nn::ConvTransposeOptions<N>;

  static std::string op() { return cat("conv_transpose", N, "d"); }
  static std::string layer() { return cat("ConvTranspose", N, "d"); }
  static Tensor call(const Tensor& x, const Tensor& w, const Tensor& b, const Options& o) {
    if constexpr (N == 1) return F::conv_transpose1d(x, w, b, o);
    if constexpr (N == 2) return F::conv_transpose2d(x, w, b, o);
    if constexpr (N == 3) return F::conv_transpose3d(x, w, b, o);
  }
  /// [first..., 7, 5, 11], the last N of these extents.
  static Shape shape(const Shape& first) { return first.concat(Shape{7, 5, 11}.slice(3 - N, 3)); }
  /// [first..., k, k, k], N times.
  static Shape shape(const Shape& first, std::int64_t k) { return first.concat(Shape{k, k, k}.slice(0, N)); }
  /// The error of a call with zeros, behind the name of the operation.
  static std::string error(const Shape& x, const Shape& w, const Options& options, const Tensor& b = Tensor()) {
    const std::string text = message_of([&] { call(zeros(x), zeros(w), b, options); });
    return text.rfind(op(), 0) == 0 ? text.substr(op().size()) : text;
  }
  static std::string layer_error(const LayerOptions& options) {
    return message_of([&] { nn::ConvTranspose<N> layer(options); });
  }
  /// " in dimension d", which a single dimension does not need.
  static std::string in_dimension(int d) { return N > 1 ? cat(" in dimension ", d) : ""; }
};

/// Calls `check` for one, two and three spatial dimensions.
template <class Check>
void for_transposed(const Check& check) {
  check(Transposed<1>{});
  check(Transposed<2>{});
  check(Transposed<3>{});
}

}  // namespace

TEST_CASE("groups 0 of a transposed convolution (pytorch 85111, 71080, 91594)", "[fault-65]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    CHECK(D::error(D::shape({1, 1}, 1), D::shape({1, 1}, 1), {.groups = 0}) ==
          ": groups must be positive: expected >= 1, got 0");
    CHECK(D::error(D::shape({2, 4}), D::shape({4, 6}, 3), {.groups = -2}) ==
          ": groups must be positive: expected >= 1, got -2");
    CHECK(D::layer_error({.in_channels = 4, .out_channels = 6, .kernel_size = 3, .groups = 0}) ==
          D::layer() + ": groups is out of range: expected >= 1, got 0");
  });
}

TEST_CASE("stride or dilation 0 of a transposed convolution; of several the first bad one (pytorch 27598, 73193)",
          "[fault-67]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    const Shape x = D::shape({1, 1}, 4), w = D::shape({1, 1}, 3);
    CHECK(D::error(x, w, {.stride = 0}) == ": stride must be positive: expected >= 1, got 0");
    CHECK(D::error(x, w, {.stride = -3}) == ": stride must be positive: expected >= 1, got -3");
    CHECK(D::error(x, w, {.dilation = 0}) == ": dilation must be positive: expected >= 1, got 0");
    CHECK(D::error(x, w, {.padding = -1}) == ": padding must not be negative: expected >= 0, got -1");
    CHECK(D::error(x, w, {.output_padding = -1}) == ": output_padding must not be negative: expected >= 0, got -1");
    CHECK(D::error(x, w, {.stride = 0, .groups = 0, .dilation = 0}) ==
          ": groups must be positive: expected >= 1, got 0");
    CHECK(D::error(x, w, {.stride = 0, .dilation = 0}) == ": stride must be positive: expected >= 1, got 0");
    CHECK(D::layer_error({.in_channels = 1, .out_channels = 1, .kernel_size = 3, .stride = 0}) ==
          D::layer() + ": stride is out of range: expected >= 1, got 0");
    CHECK(D::layer_error({.in_channels = 1, .out_channels = 1, .kernel_size = 3, .dilation = 0}) ==
          D::layer() + ": dilation is out of range: expected >= 1, got 0");
  });
}

TEST_CASE("an empty filter or input of a transposed convolution (CVE-2021-29526, CVE-2021-37675, CVE-2021-41209)",
          "[fault-69]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    for (const Shape& w : {D::shape({0, 0}, 0), D::shape({0, 3}, 2), D::shape({4, 0}, 2)})
      CHECK(D::error(D::shape({2, 4}), w, {}) == cat(": weight has no channels: expected >= 1, got 0 in ", w));
    const Shape none = D::shape({2, 0});
    CHECK(D::error(none, D::shape({3, 2}, 2), {}) == cat(": no channels: expected >= 1, got 0 in ", none));
    CHECK(D::error(D::shape({2, 4}), D::shape({4, 6}, 0), {}) ==
          ": kernel_size must be positive: expected >= 1, got 0");
  });
}

TEST_CASE("an empty volume and an empty filter of another size, transposed (CVE-2021-29517)", "[fault-70]") {
  CHECK(message_of([] {
          F::conv_transpose3d(zeros({2, 2, 2, 2, 0}), zeros({0, 0, 2, 6, 2}), Tensor(), {.stride = {56, 39, 34}});
        }) == "conv_transpose3d: weight has no channels: expected >= 1, got 0 in [0, 0, 2, 6, 2]");
}

TEST_CASE("a zero spatial extent of a transposed convolution is refused (CVE-2022-35996)", "[fault-71]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    for (const std::int64_t padding : {0, 1})
      CHECK(D::error(D::shape({1, 1}, 0), D::shape({1, 1}, 5), {.padding = padding}) ==
            ": input size must be positive: expected >= 1, got 0" + D::in_dimension(0));
  });
  CHECK(message_of([] {
          F::conv_transpose2d(zeros({2, 3, 5, 0}), zeros({3, 2, 1, 1}));
        }) == "conv_transpose2d: input size must be positive: expected >= 1, got 0 in dimension 1");
}

TEST_CASE("a batch of none has zero weight gradients, transposed (CVE-2021-29524, CVE-2021-29538, CVE-2021-29522)",
          "[fault-72]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    const Tensor x = zeros(D::shape({0, 4})).requires_grad_(), w = ones(D::shape({4, 3}, 3)).requires_grad_();
    const Tensor b = ones({6}).requires_grad_();
    const Tensor y = D::call(x, w, b, {.padding = 1, .groups = 2});
    CHECK(y.shape() == D::shape({0, 6}));
    y.sum().backward();
    CHECK(x.grad().shape() == x.shape());
    CHECK(w.grad().template to_vector<float>() == std::vector<float>(std::size_t(w.numel()), 0.0f));
    CHECK(b.grad().template to_vector<float>() == std::vector<float>(6, 0.0f));
  });
}

TEST_CASE("channels that differ from the transposed filter's (CVE-2021-29540, CVE-2021-29520)", "[fault-74]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    const Shape x = D::shape({1, 2}, 1), w = D::shape({1, 1}, 1), grouped = D::shape({6, 3}, 2);
    CHECK(D::error(x, w, {.stride = 66}) ==
          cat(": input does not fit the weight: expected 1 channels, got 2 in ", x, "; weight ", w));
    CHECK(D::error(D::shape({5, 6}), grouped, {.groups = 4}) ==
          ": in_channels must be divisible by groups: expected a multiple of 4, got 6");
    CHECK(D::layer_error({.in_channels = 4, .out_channels = 6, .kernel_size = 2, .groups = 3}) ==
          D::op() + ": in_channels must be divisible by groups: expected a multiple of 3, got 4");
    CHECK(D::layer_error({.in_channels = 9, .out_channels = 7, .kernel_size = 2, .groups = 3}) ==
          D::op() + ": out_channels must be divisible by groups: expected a multiple of 3, got 7");
  });
}

TEST_CASE("a bias of another length, transposed (CVE-2021-29546)", "[fault-86]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    for (const std::int64_t n : {0, 3})
      CHECK(D::error(D::shape({0, 4}), D::shape({4, 3}, 2), {.groups = 2}, zeros({n})) ==
            cat(": bias does not fit the weight: expected [6], got [", n, "]"));
  });
}

TEST_CASE("a transposed filter cut out of a larger one or permuted (pytorch 1246, 16018, 55781)", "[fault-76]") {
  const auto gradients = [](const Tensor& base, const auto& view) {
    const Tensor x = arange(1, 19, 1, DType::float64).reshape({1, 2, 3, 3}).requires_grad_();
    const Tensor leaf = base.clone().requires_grad_();
    const Tensor y = F::conv_transpose2d(x, view(leaf), Tensor(), {.stride = {2, 3}});
    (y * y).sum().backward();
    return std::vector<std::vector<double>>{y.to_vector<double>(), x.grad().to_vector<double>(),
                                            view(leaf.grad()).template to_vector<double>()};
  };
  const auto same = [](const Tensor& t) { return t; };
  const auto swapped = [](const Tensor& t) { return t.transpose(0, 1); };
  const Tensor w = arange(-7, 9, 1, DType::float64).reshape({2, 2, 2, 2});
  CHECK(gradients(w, swapped) == gradients(w.transpose(0, 1), same));
  const Tensor big = arange(0, 144, 1, DType::float64).reshape({3, 3, 4, 4}), even = tensor({0, 2});
  const auto cut = [&](const Tensor& t) {
    return t.index_select(0, even).index_select(1, even).narrow(2, 1, 2).narrow(3, 2, 2);
  };
  CHECK(gradients(big, cut) == gradients(cut(big), same));
}

TEST_CASE("a permuted input gives the same bits every time, transposed (modular 6712)", "[fault-53]") {
  const Tensor x = from_data(test::numbers<float>(2 * 5 * 3 * 7, 1), {5, 7, 2, 3}).permute({2, 3, 0, 1});
  const Tensor w = from_data(test::numbers<float>(3 * 4 * 2 * 3, 2), {3, 4, 2, 3});
  const auto run = [&](const Tensor& input) {
    return F::conv_transpose2d(input, w, Tensor(), {.stride = {2, 3}, .padding = {3, 5}}).to_vector<float>();
  };
  const auto first = run(x);
  for (int i = 0; i < 20; ++i) CHECK(test::same_bits(run(x), first));
  CHECK(run(from_data(x.to_vector<float>(), x.shape())) == first);
}

TEST_CASE("sizes of transposed convolutions beyond 63 bits are refused before anything is allocated (pytorch 73190)",
          "[fault-9]") {
  for_transposed([](auto d) {
    using D = decltype(d);
    const Shape x = D::shape({1, 1}, 5), w = D::shape({1, 1}, 3);
    const auto overflow = [](std::int64_t stride, std::int64_t padding) {
      return cat(": output size overflows 64 bits: expected below 2^63, got input size 5, kernel_size 3, stride ",
                 stride, ", padding ", padding, ", dilation 1", D::in_dimension(0));
    };
    CHECK(D::error(x, w, {.stride = kHuge}) == overflow(kHuge, 0));
    CHECK(D::error(x, w, {.padding = kHuge}) == overflow(1, kHuge));
    CHECK(D::error(x, w, {.stride = kHuge / 2, .output_padding = kHuge / 2 - 1}) == overflow(kHuge / 2, 0));
    CHECK(D::error(x, w, {.dilation = kHuge}) ==
          cat(": dilated kernel overflows 64 bits: expected dilation * (kernel_size - 1) + 1 below 2^63, got dilation ",
              kHuge, " and kernel_size 3", D::in_dimension(0)));
  });
  CHECK(message_of([] {
          F::conv_transpose2d(ones({1, 1, 2, 2}), ones({1, 1, 1, 1}), Tensor(), {.stride = std::int64_t{1} << 40});
        }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 1099511627777 in dimension 3");
  CHECK(Transposed<1>::layer_error(
            {.in_channels = std::int64_t{1} << 40, .out_channels = std::int64_t{1} << 40, .kernel_size = 3}) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 1099511627776 in dimension 1");
}

TEST_CASE("transposed convolutions name what does not fit") {
  const Tensor x = ones({2, 4, 11}), w = ones({4, 6, 3});
  const auto error = [&](const nn::ConvTranspose1dFuncOptions& options) {
    return message_of([&] { F::conv_transpose1d(x, w, Tensor(), options); });
  };
  CHECK(error({.stride = 0}) == "conv_transpose1d: stride must be positive: expected >= 1, got 0");
  CHECK(error({.stride = -2}) == "conv_transpose1d: stride must be positive: expected >= 1, got -2");
  CHECK(error({.padding = -1}) == "conv_transpose1d: padding must not be negative: expected >= 0, got -1");
  CHECK(error({.dilation = 0}) == "conv_transpose1d: dilation must be positive: expected >= 1, got 0");
  CHECK(error({.groups = 0}) == "conv_transpose1d: groups must be positive: expected >= 1, got 0");
  CHECK(error({.stride = 0, .groups = 0, .dilation = 0}) ==
        "conv_transpose1d: groups must be positive: expected >= 1, got 0");
  CHECK(error({.stride = 0, .dilation = 0}) == "conv_transpose1d: stride must be positive: expected >= 1, got 0");
  CHECK(error({.groups = 3}) ==
        "conv_transpose1d: in_channels must be divisible by groups: expected a multiple of 3, got 4");
  CHECK(error({.output_padding = -1}) ==
        "conv_transpose1d: output_padding must not be negative: expected >= 0, got -1");
  CHECK(error({.output_padding = 1}) ==
        "conv_transpose1d: output_padding must be less than stride or dilation: expected < 1, got 1; stride 1, "
        "dilation 1");
  CHECK(error({.stride = 2, .output_padding = 3, .dilation = 3}) ==
        "conv_transpose1d: output_padding must be less than stride or dilation: expected < 3, got 3; stride 2, "
        "dilation 3");
  CHECK(error({.padding = 7}) ==
        "conv_transpose1d: output size is too small: expected >= 1, got -1; input size 11, kernel_size 3, stride 1, "
        "padding 7, dilation 1");
  CHECK(message_of([&] {
          F::conv_transpose2d(ones({4, 3, 5}), ones({4, 2, 1, 1}), Tensor(),
                              {.stride = {2, 3}, .output_padding = {1, 3}});
        }) ==
        "conv_transpose2d: output_padding must be less than stride or dilation: expected < 3, got 3 in dimension 1; "
        "stride 3, dilation 1");
  CHECK(message_of([&] {
          F::conv_transpose1d(ones({2, 4, 11, 1}), w);
        }) ==
        "conv_transpose1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D "
        "[2, 4, 11, 1]");
  CHECK(message_of([&] {
          F::conv_transpose3d(ones({4, 3, 5, 7, 2, 1}), ones({4, 2, 1, 1, 1}));
        }) ==
        "conv_transpose3d: wrong number of dimensions: expected 4-D unbatched or 5-D batched input, got 6-D "
        "[4, 3, 5, 7, 2, 1]");
  CHECK(message_of([&] {
          F::conv_transpose1d(x, ones({4, 6}));
        }) == "conv_transpose1d: weight has the wrong number of dimensions: expected 3-D, got 2-D [4, 6]");
  CHECK(message_of([&] {
          F::conv_transpose1d(x, ones({3, 6, 3}));
        }) ==
        "conv_transpose1d: input does not fit the weight: expected 3 channels, got 4 in [2, 4, 11]; weight [3, 6, 3]");
  CHECK(message_of([&] { F::conv_transpose1d(x, w, ones({4})); }) ==
        "conv_transpose1d: bias does not fit the weight: expected [6], got [4]");
  CHECK(message_of([&] {
          F::conv_transpose1d(x, w, ones({6, 1}));
        }) == "conv_transpose1d: bias does not fit the weight: expected [6], got [6, 1]");
  CHECK(message_of([&] { F::conv_transpose1d(x.to(DType::int64), w); }) ==
        "conv_transpose1d: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK(message_of([&] { F::conv_transpose1d(x, w.to(DType::int64)); }) ==
        "conv_transpose1d: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK(message_of([&] { F::conv_transpose1d(x, w.to(DType::float64)); }) ==
        "conv_transpose1d: element types differ: expected float32, got float64; convert with to()");
}

TEST_CASE("ConvTranspose's constructor refuses what no input could make valid") {
  using Options = nn::ConvTranspose1dOptions;
  const auto error = [](const Options& options) { return message_of([&] { nn::ConvTranspose1d layer(options); }); };
  CHECK(error({.out_channels = 3, .kernel_size = 2}) ==
        "conv_transpose1d: in_channels is missing: expected a number, got none; only a model that knows its input's "
        "shape can infer it");
  CHECK(error({.in_channels = 0, .out_channels = 3, .kernel_size = 2}) ==
        "ConvTranspose1d: in_channels is out of range: expected >= 1, got 0");
  CHECK(error({.in_channels = 5, .kernel_size = 2}) ==
        "ConvTranspose1d: out_channels is out of range: expected >= 1, got 0");
  CHECK(error({.in_channels = 5, .out_channels = 3}) ==
        "ConvTranspose1d: kernel_size is out of range: expected >= 1, got 0");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .stride = 0}) ==
        "ConvTranspose1d: stride is out of range: expected >= 1, got 0");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .padding = -1}) ==
        "ConvTranspose1d: padding is out of range: expected >= 0, got -1");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .output_padding = -1}) ==
        "ConvTranspose1d: output_padding is out of range: expected >= 0, got -1");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .stride = 2, .output_padding = 2}) ==
        "conv_transpose1d: output_padding must be less than stride or dilation: expected < 2, got 2; stride 2, "
        "dilation 1");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .groups = 0}) ==
        "ConvTranspose1d: groups is out of range: expected >= 1, got 0");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .groups = 3}) ==
        "conv_transpose1d: in_channels must be divisible by groups: expected a multiple of 3, got 5");
  CHECK(error({.in_channels = 6, .out_channels = 5, .kernel_size = 2, .groups = 3}) ==
        "conv_transpose1d: out_channels must be divisible by groups: expected a multiple of 3, got 5");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .dilation = 0}) ==
        "ConvTranspose1d: dilation is out of range: expected >= 1, got 0");
  CHECK(error({.in_channels = 5, .out_channels = 3, .kernel_size = 2, .padding_mode = PadMode::reflect}) ==
        "conv_transpose1d: padding_mode is not supported: expected zeros, got reflect");
}

TEST_CASE("ConvTranspose in JSON says what does not fit before a model is built") {
  const auto error = [](const std::string& options) {
    return json_error("ConvTranspose2d", R"("out_channels": 6, "kernel_size": 3, )" + options, "[4, 5, 7]");
  };
  CHECK(error(R"("stride": [2, 1], "output_padding": [1, 0], "groups": 2, "bias": false)") == "no error");
  CHECK(error(R"("stride": 0)") == "error: /layers/0/stride (layer ConvTranspose2d 0): expected >= 1, got 0");
  CHECK(error(R"("stride": 2, "output_padding": [1, 2])") ==
        "error: /layers/0/output_padding (layer ConvTranspose2d 0): conv_transpose2d: output_padding must be less than "
        "stride or dilation: expected < 2, got 2 in dimension 1; stride 2, dilation 1; shapes: input [4, 5, 7] -> "
        "ConvTranspose2d");
  CHECK(error(R"("groups": 3)") ==
        "error: /layers/0/groups (layer ConvTranspose2d 0): conv_transpose2d: in_channels must be divisible by groups: "
        "expected a multiple of 3, got 4; shapes: input [4, 5, 7] -> ConvTranspose2d");
  CHECK(error(R"("groups": 0)") == "error: /layers/0/groups (layer ConvTranspose2d 0): expected >= 1, got 0");
  CHECK(error(R"("in_channels": 5)") ==
        "error: /layers/0/in_channels (layer ConvTranspose2d 0): conv_transpose2d: in_channels does not fit the input: "
        "expected 4, got 5 in [N, 4, 5, 7]; shapes: input [4, 5, 7] -> ConvTranspose2d");
  CHECK(error(R"("padding": 5)") ==
        "error: /layers/0/kernel_size (layer ConvTranspose2d 0): conv_transpose2d: output size is too small: expected "
        ">= 1, got [-3, -1]; input size [5, 7], kernel_size [3, 3], stride [1, 1], padding [5, 5], dilation [1, 1]; "
        "shapes: input [4, 5, 7] -> ConvTranspose2d");
  CHECK(error(R"("padding": "same")") ==
        "error: /layers/0/padding (layer ConvTranspose2d 0): expected an integer, got a string \"same\"");
  CHECK(error(R"("padding_mode": "circular")") ==
        "error: /layers/0/padding_mode (layer ConvTranspose2d 0): conv_transpose2d: padding_mode is not supported: "
        "expected zeros, got circular; shapes: input [4, 5, 7] -> ConvTranspose2d");
  CHECK(error(R"("dilation": 9223372036854775807)") ==
        "error: /layers/0/dilation (layer ConvTranspose2d 0): conv_transpose2d: dilated kernel overflows 64 bits: "
        "expected dilation * (kernel_size - 1) + 1 below 2^63, got dilation 9223372036854775807 and kernel_size 3 in "
        "dimension 0; shapes: input [4, 5, 7] -> ConvTranspose2d");
  CHECK(error(R"("stride": 9223372036854775807)") ==
        "error: /layers/0/kernel_size (layer ConvTranspose2d 0): conv_transpose2d: output size overflows 64 bits: "
        "expected below 2^63, got input size 5, kernel_size 3, stride 9223372036854775807, padding 0, dilation 1 in "
        "dimension 0; shapes: input [4, 5, 7] -> ConvTranspose2d");
  CHECK(json_error("ConvTranspose1d", R"("out_channels": 6, "kernel_size": 3)", "[4, 5, 7]") ==
        "error: /layers/0 (layer ConvTranspose1d 0): conv_transpose1d: wrong number of dimensions: expected 3-D with "
        "the batch, got 4-D [N, 4, 5, 7]; shapes: input [4, 5, 7] -> ConvTranspose1d");
}
