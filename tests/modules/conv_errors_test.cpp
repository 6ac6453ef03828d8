#include "base/fail.hpp"
#include "config/model_json.hpp"
#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "support/numbers.hpp"
#include "support/peak_memory.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/conv.hpp"

using namespace taper;
using test::kHuge;
namespace F = taper::nn::functional;
using test::message_of;

// Known faults of other frameworks' convolutions, by their public number, for every number of spatial dimensions.

namespace {

template <int N>
struct Convolution {
  static constexpr int n = N;
  using Options = nn::ConvFuncOptions<N>;
  using Layer = nn::Conv<N>;
  using LayerOptions = nn::ConvOptions<N>;

  static std::string op() { return cat("conv", N, "d"); }
  static Tensor conv(const Tensor& x, const Tensor& w, const Tensor& b, const Options& o) {
    if constexpr (N == 1) return F::conv1d(x, w, b, o);
    if constexpr (N == 2) return F::conv2d(x, w, b, o);
    if constexpr (N == 3) return F::conv3d(x, w, b, o);
  }
  /// [first..., 7, 5, 11], the last N of these extents.
  static Shape shape(const Shape& first) { return first.concat(Shape{7, 5, 11}.slice(3 - N, 3)); }
  /// [first..., k, k, k], N times.
  static Shape shape(const Shape& first, std::int64_t k) { return first.concat(Shape{k, k, k}.slice(0, N)); }
  /// The error of a call with zeros, behind the name of the operation.
  static std::string error(const Shape& x, const Shape& w, const Options& options, const Tensor& b = Tensor()) {
    const std::string text = message_of([&] { conv(zeros(x), zeros(w), b, options); });
    return text.rfind(op(), 0) == 0 ? text.substr(op().size()) : text;
  }
  static std::string error_of_layer(const LayerOptions& options) {
    return message_of([&] { Layer layer(options); });
  }
  /// " in dimension d", which a single dimension does not need.
  static std::string in_dimension(int d) { return N > 1 ? cat(" in dimension ", d) : ""; }
};

/// Calls `check` for one, two and three spatial dimensions.
template <class Check>
void for_convolutions(const Check& check) {
  check(Convolution<1>{});
  check(Convolution<2>{});
  check(Convolution<3>{});
}

}  // namespace

TEST_CASE("pytorch 85111, 71080, 91594: groups 0 divides", "[fault-65]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    CHECK(D::error(D::shape({1, 1}, 1), D::shape({1, 1}, 1), {.groups = 0}) ==
          ": groups must be positive: expected >= 1, got 0");
    CHECK(D::error(D::shape({2, 4}), D::shape({6, 4}, 3), {.groups = -2}) ==
          ": groups must be positive: expected >= 1, got -2");
    CHECK(D::error_of_layer({.in_channels = 4, .out_channels = 6, .kernel_size = 3, .groups = 0}) ==
          cat("Conv", D::n, "d: groups is out of range: expected >= 1, got 0"));
  });
  CHECK(message_of([] {
          F::conv1d(ones({5, 1, 224}), ones({2, 1, 3}), Tensor(), {.stride = 2, .padding = 1, .groups = 0});
        }) == "conv1d: groups must be positive: expected >= 1, got 0");
}

TEST_CASE("pytorch 27598, 73193: stride or dilation 0 divides; of several the first bad one is named", "[fault-67]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    const Shape x = D::shape({1, 1}, 32), w = D::shape({1, 1}, 3);
    CHECK(D::error(x, w, {.stride = 0}) == ": stride must be positive: expected >= 1, got 0");
    CHECK(D::error(x, w, {.stride = -3}) == ": stride must be positive: expected >= 1, got -3");
    CHECK(D::error(x, w, {.dilation = 0}) == ": dilation must be positive: expected >= 1, got 0");
    CHECK(D::error(x, w, {.dilation = -1}) == ": dilation must be positive: expected >= 1, got -1");
    CHECK(D::error(x, w, {.padding = -1}) == ": padding must not be negative: expected >= 0, got -1");
    CHECK(D::error(x, w, {.stride = 0, .dilation = 0, .groups = 0}) ==
          ": groups must be positive: expected >= 1, got 0");
    CHECK(D::error(x, w, {.stride = 0, .dilation = 0}) == ": stride must be positive: expected >= 1, got 0");
    CHECK(D::error_of_layer({.in_channels = 1, .out_channels = 1, .kernel_size = 3, .stride = 0}) ==
          cat("Conv", D::n, "d: stride is out of range: expected >= 1, got 0"));
    CHECK(D::error_of_layer({.in_channels = 1, .out_channels = 1, .kernel_size = 3, .dilation = 0}) ==
          cat("Conv", D::n, "d: dilation is out of range: expected >= 1, got 0"));
    CHECK(D::error_of_layer({.in_channels = 1, .out_channels = 1, .kernel_size = 3, .padding = -1}) ==
          cat("Conv", D::n, "d: padding is out of range: expected >= 0, got -1"));
  });
  CHECK(message_of([] {
          F::conv2d(ones({1, 1, 32, 32}), ones({1, 1, 3, 3}), Tensor(), {.stride = {1, 0}});
        }) == "conv2d: stride must be positive: expected >= 1, got 0 in dimension 1");
}

TEST_CASE("CVE-2021-29526, CVE-2021-37675, CVE-2021-41209: an empty filter or input divides by its channels",
          "[fault-69]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    const Shape none = D::shape({0, 0}, 0);
    CHECK(D::error(none, none, {.padding = "same"}) == cat(": weight has no channels: expected >= 1, got 0 in ", none));
    const Shape no_inputs = D::shape({3, 0}, 2), no_channels = D::shape({2, 0});
    CHECK(D::error(D::shape({2, 4}), no_inputs, {}) ==
          cat(": weight has no channels: expected >= 1, got 0 in ", no_inputs));
    CHECK(D::error(no_channels, D::shape({3, 1}, 2), {}) ==
          cat(": no channels: expected >= 1, got 0 in ", no_channels));
    CHECK(D::error(D::shape({2, 4}), D::shape({6, 4}, 0), {}) ==
          ": kernel_size must be positive: expected >= 1, got 0");
    CHECK(D::error_of_layer({.in_channels = 4, .out_channels = 0, .kernel_size = 3}) ==
          cat("Conv", D::n, "d: out_channels is out of range: expected >= 1, got 0"));
    CHECK(D::error_of_layer({.in_channels = 4, .out_channels = 6, .kernel_size = 0}) ==
          cat("Conv", D::n, "d: kernel_size is out of range: expected >= 1, got 0"));
  });
}

TEST_CASE("CVE-2021-29517: an empty volume and an empty filter of another size", "[fault-70]") {
  CHECK(message_of([] {
          F::conv3d(zeros({2, 2, 2, 2, 0}), zeros({0, 0, 2, 6, 2}), Tensor(), {.stride = {56, 39, 34}});
        }) == "conv3d: weight has no channels: expected >= 1, got 0 in [0, 0, 2, 6, 2]");
}

TEST_CASE("CVE-2022-35996: a zero spatial extent is refused however it is padded", "[fault-71]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    for (const nn::ConvPadding<D::n> padding : {nn::ConvPadding<D::n>(0), {1}, {"same"}})
      for (const PadMode mode : {PadMode::zeros, PadMode::reflect, PadMode::replicate, PadMode::circular})
        CHECK(D::error(D::shape({1, 1}, 0), D::shape({1, 1}, 1), {.padding = padding, .padding_mode = mode}) ==
              ": input size must be positive: expected >= 1, got 0" + D::in_dimension(0));
  });
  CHECK(message_of([] {
          F::conv2d(zeros({1, 1, 2, 0}), zeros({1, 1, 1, 1}), Tensor(), {.padding = 1});
        }) == "conv2d: input size must be positive: expected >= 1, got 0 in dimension 1");
}

TEST_CASE("CVE-2021-29524, CVE-2021-29538, CVE-2021-29522: a batch of none has zero weight gradients", "[fault-72]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    for (const PadMode mode : {PadMode::zeros, PadMode::circular}) {
      const Tensor x = zeros(D::shape({0, 4})).requires_grad_(), w = ones(D::shape({6, 2}, 3)).requires_grad_();
      const Tensor b = ones({6}).requires_grad_();
      const Tensor y = D::conv(x, w, b, {.padding = 1, .groups = 2, .padding_mode = mode});
      CHECK(y.shape() == D::shape({0, 6}));
      y.sum().backward();
      CHECK(x.grad().shape() == x.shape());
      CHECK(w.grad().shape() == w.shape());
      CHECK(w.grad().template to_vector<float>() == std::vector<float>(std::size_t(w.numel()), 0.0f));
      CHECK(b.grad().template to_vector<float>() == std::vector<float>(6, 0.0f));
    }
  });
}

TEST_CASE("CVE-2021-29540, CVE-2021-29520: channels that differ from the filter's", "[fault-74]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    const Shape x = D::shape({1, 2}, 1), w = D::shape({1, 1}, 1);
    CHECK(D::error(x, w, {.stride = 66}) ==
          cat(": input does not fit the weight: expected 1 channels, got 2 in ", x, "; weight ", w, ", groups 1"));
    const Shape grouped = D::shape({6, 3}, 2), input = D::shape({5, 4});
    CHECK(D::error(input, grouped, {.groups = 3}) ==
          cat(": input does not fit the weight: expected 9 channels, got 4 in ", input, "; weight ", grouped,
              ", groups 3"));
    CHECK(D::error(input, grouped, {.groups = 4}) ==
          ": out_channels must be divisible by groups: expected a multiple of 4, got 6");
    CHECK(D::error_of_layer({.in_channels = 4, .out_channels = 6, .kernel_size = 2, .groups = 3}) ==
          cat(D::op(), ": in_channels must be divisible by groups: expected a multiple of 3, got 4"));
    CHECK(D::error_of_layer({.in_channels = 9, .out_channels = 7, .kernel_size = 2, .groups = 3}) ==
          cat(D::op(), ": out_channels must be divisible by groups: expected a multiple of 3, got 7"));
  });
}

TEST_CASE("CVE-2021-29546: a bias of another length", "[fault-86]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    for (const std::int64_t n : {0, 5})
      CHECK(D::error(D::shape({0, 4}), D::shape({6, 4}, 3), {}, zeros({n})) ==
            cat(": bias does not fit the weight: expected [6], got [", n, "]"));
    CHECK(D::error(D::shape({2, 4}), D::shape({6, 4}, 3), {}, zeros({1, 6})) ==
          ": bias does not fit the weight: expected [6], got [1, 6]");
  });
}

TEST_CASE("pytorch 1246, 16018, 55781: a weight cut out of a larger one or transposed", "[fault-76]") {
  const Tensor x = arange(1, 19, 1, DType::float64).reshape({1, 2, 3, 3});
  const auto gradients = [&](const Tensor& base, const auto& view) {
    const Tensor input = x.clone().requires_grad_(), leaf = base.clone().requires_grad_();
    const Tensor y = F::conv2d(input, view(leaf));
    (y * y).sum().backward();
    return std::vector<std::vector<double>>{y.to_vector<double>(), input.grad().to_vector<double>(),
                                            view(leaf.grad()).template to_vector<double>()};
  };
  const auto same = [](const Tensor& t) { return t; };
  const auto transposed = [](const Tensor& t) { return t.transpose(0, 1); };
  const Tensor w = arange(-7, 9, 1, DType::float64).reshape({2, 2, 2, 2});
  CHECK(gradients(w, transposed) == gradients(w.transpose(0, 1), same));
  const Tensor big = arange(0, 144, 1, DType::float64).reshape({3, 3, 4, 4}), even = tensor({0, 2});
  const auto cut = [&](const Tensor& t) {
    return t.index_select(0, even).index_select(1, even).narrow(2, 1, 2).narrow(3, 2, 2);
  };
  CHECK(gradients(big, cut) == gradients(cut(big), same));
}

TEST_CASE("modular 6712: a large padding of a permuted input gives the same bits every time", "[fault-53]") {
  const Tensor x = from_data(test::numbers<float>(2 * 5 * 3 * 7, 1), {5, 7, 2, 3}).permute({2, 3, 0, 1});
  const Tensor w = from_data(test::numbers<float>(4 * 3 * 2 * 3, 2), {4, 3, 2, 3});
  const auto run = [&] {
    return F::conv2d(x, w, Tensor(), {.stride = {2, 3}, .padding = {13, 17}}).to_vector<float>();
  };
  const auto first = run();
  for (int i = 0; i < 20; ++i) CHECK(test::same_bits(run(), first));
  const Tensor packed = from_data(x.to_vector<float>(), x.shape());
  CHECK(F::conv2d(packed, w, Tensor(), {.stride = {2, 3}, .padding = {13, 17}}).to_vector<float>() == first);
}

TEST_CASE("tensorflow 47525, 25614: the input is never copied once for each tap", "[fault-79]") {
  const Tensor x = zeros({3, 281, 293}), w = zeros({2, 3, 11, 7});
  NoGradGuard guard;
  F::conv2d(x.narrow(1, 0, 20), w);  // what a thread keeps for its packed blocks
  const auto growth = peak_growth([&] { F::conv2d(x, w, Tensor(), {.padding = "same"}); });
  if (growth) CHECK(*growth < 4 << 20);  // the copies would take 76 MB
}

TEST_CASE("pytorch 73190: sizes beyond 63 bits are refused before anything is allocated", "[fault-9]") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    const Shape x = D::shape({1, 1}, 5), w = D::shape({1, 1}, 3);
    CHECK(D::error(x, w, {.padding = kHuge}) ==
          cat(": padded input overflows 64 bits: expected a size below 2^63, got input size 5 and padding ", kHuge,
              D::in_dimension(0)));
    CHECK(D::error(x, w, {.dilation = kHuge}) ==
          cat(": dilated kernel overflows 64 bits: expected dilation * (kernel_size - 1) + 1 below 2^63, got dilation ",
              kHuge, " and kernel_size 3", D::in_dimension(0)));
    CHECK(D::error(x, w, {.stride = kHuge, .dilation = kHuge / 2}) ==
          cat(": padded input is smaller than the dilated kernel: expected >= ", kHuge + 1, ", got 5",
              D::in_dimension(0)));
  });
  CHECK(message_of([] {
          F::conv2d(ones({1, 1, 5, 5}), ones({1, 1, 3, 3}), Tensor(), {.padding = kHuge / 2});
        }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 4611686018427387907 in "
        "dimension 3");
  // Far apart, but allowed: one window, whose outer taps lie in the padding.
  const Tensor y = F::conv2d(ones({1, 5, 7}), ones({1, 1, 3, 3}), Tensor(),
                             {.stride = kHuge, .padding = kHuge / 4, .dilation = kHuge / 4});
  CHECK(y.shape() == Shape{1, 1, 1});
  CHECK(y.item() == 1);
}

TEST_CASE("what does not fit is named in every number of dimensions") {
  for_convolutions([](auto d) {
    using D = decltype(d);
    const Shape x = D::shape({2, 4}), w = D::shape({6, 4}, 3), flat = {5, 5};
    CHECK(D::error(D::shape({1, 2, 4}), w, {}) == cat(": wrong number of dimensions: expected ", D::n + 1,
                                                      "-D unbatched or ", D::n + 2, "-D batched input, got ", D::n + 3,
                                                      "-D ", D::shape({1, 2, 4})));
    CHECK(D::error(x, flat, {}) ==
          cat(": weight has the wrong number of dimensions: expected ", D::n + 2, "-D, got 2-D [5, 5]"));
    CHECK(D::error(x, w, {.stride = 2, .padding = "same"}) == ": padding 'same' needs stride 1: expected 1, got 2");
    CHECK(D::error(D::shape({2, 4}, 5), w, {.padding = 5, .padding_mode = PadMode::reflect}) ==
          cat(": padding is too large for padding_mode reflect: expected <= 4, got 5", D::in_dimension(0),
              "; input size 5"));
    CHECK(D::error(D::shape({2, 4}, 5), w, {.padding = 6, .padding_mode = PadMode::circular}) ==
          cat(": padding is too large for padding_mode circular: expected <= 5, got 6", D::in_dimension(0),
              "; input size 5"));
    CHECK(D::error(D::shape({2, 4}, 5), D::shape({6, 4}, 7), {}) ==
          cat(": padded input is smaller than the dilated kernel: expected >= 7, got 5", D::in_dimension(0)));
    const auto typed = [&](DType input, DType weight) {
      return message_of([&] { D::conv(zeros(x, input), zeros(w, weight), Tensor(), {}); });
    };
    const std::string unsupported =
        D::op() + ": element type not supported: expected float32 or float64, got int64; convert with to()";
    CHECK(typed(DType::int64, DType::float32) == unsupported);
    CHECK(typed(DType::float32, DType::int64) == unsupported);
    CHECK(typed(DType::float32, DType::float64) ==
          D::op() + ": element types differ: expected float32, got float64; convert with to()");
    CHECK(D::error_of_layer({.out_channels = 3, .kernel_size = 2}) ==
          D::op() +
              ": in_channels is missing: expected a number, got none; only a model that knows its input's shape "
              "can infer it");
    CHECK(D::error_of_layer({.in_channels = 3, .out_channels = 3, .kernel_size = 2, .stride = 3, .padding = "same"}) ==
          D::op() + ": padding 'same' needs stride 1: expected 1, got 3");
  });
  CHECK(message_of([] {
          nn::Conv2d({.in_channels = 3, .out_channels = 3, .kernel_size = {2, 3, 1}});
        }) == "sizes: one number for all places or one for each: expected 1 or 2, got 3");
  CHECK(message_of([] { nn::Conv3d({.in_channels = 3, .out_channels = 3, .kernel_size = 2, .padding = "all"}); }) ==
        "padding: unknown word: expected numbers, \"same\" or \"valid\", got \"all\"");
}

TEST_CASE("a config's convolutions are refused with the same sentences, at the key they speak of") {
  // What stands behind the kernel of a Conv2d of [4, 7, 11] on line 2, and the error behind "m.json:2:".
  const auto error = [](const std::string& options) {
    const std::string text = config::parse_model(R"({"input": {"shape": [4, 7, 11]}, "layers": [
{"type": "Conv2d", "out_channels": 6, )" + options + "}]}",
                                                 "m.json")
                                 .errors;
    return text.substr(0, text.find('\n'));
  };
  const std::string chain = "; shapes: input [4, 7, 11] -> Conv2d";
  CHECK(error(R"("kernel_size": [3, 0])") ==
        "m.json:2:54: error: /layers/0/kernel_size (layer Conv2d 0): expected >= 1, got 0");
  CHECK(error(R"("kernel_size": 1e20)") ==
        "m.json:2:54: error: /layers/0/kernel_size (layer Conv2d 0): expected an integer, got 1e20");
  CHECK(
      error(R"("kernel_size": [3, 2, 1])") ==
      "m.json:2:54: error: /layers/0/kernel_size (layer Conv2d 0): expected a list of 2 integers, got 3 in [3, 2, 1]");
  CHECK(error(R"("kernel_size": 3, "stride": [1, 0])") ==
        "m.json:2:67: error: /layers/0/stride (layer Conv2d 0): expected >= 1, got 0");
  CHECK(error(R"("kernel_size": 3, "stride": true)") ==
        "m.json:2:67: error: /layers/0/stride (layer Conv2d 0): expected an integer, got true");
  CHECK(error(R"("kernel_size": 3, "padding": "some")") ==
        R"(m.json:2:68: error: /layers/0/padding (layer Conv2d 0): expected numbers, "same" or "valid", got "some")");
  CHECK(error(R"("kernel_size": 3, "padding": [1, -1])") ==
        "m.json:2:68: error: /layers/0/padding (layer Conv2d 0): expected >= 0, got -1");
  CHECK(error(R"("kernel_size": 3, "dilation": 0)") ==
        "m.json:2:69: error: /layers/0/dilation (layer Conv2d 0): expected >= 1, got 0");
  CHECK(error(R"("kernel_size": 3, "groups": 0)") ==
        "m.json:2:67: error: /layers/0/groups (layer Conv2d 0): expected >= 1, got 0");
  CHECK(error(R"("kernel_size": 3, "groups": 5)") ==
        "m.json:2:67: error: /layers/0/groups (layer Conv2d 0): conv2d: in_channels must be divisible by groups: "
        "expected a multiple of 5, got 4" +
            chain);
  CHECK(error(R"("kernel_size": 3, "padding_mode": "mirror")") ==
        "m.json:2:73: error: /layers/0/padding_mode (layer Conv2d 0): expected zeros, reflect, replicate or circular, "
        "got mirror");
  CHECK(error(R"("kernel_size": 3, "stride": 2, "padding": "same")") ==
        "m.json:2:81: error: /layers/0/padding (layer Conv2d 0): conv2d: padding 'same' needs stride 1: expected 1, "
        "got 2" +
            chain);
  CHECK(error(R"("kernel_size": 12)") ==
        "m.json:2:1: error: /layers/0 (layer Conv2d 0): conv2d: padded input is smaller than the dilated kernel: "
        "expected >= 12, got 7 in dimension 0" +
            chain);
  CHECK(error(R"("kernel_size": 3, "in_channels": 5)") ==
        "m.json:2:72: error: /layers/0/in_channels (layer Conv2d 0): conv2d: in_channels does not fit the input: "
        "expected 4, got 5 in [N, 4, 7, 11]" +
            chain);
  CHECK(error(R"("kernel_size": 3, "padding": 7, "padding_mode": "reflect")") ==
        "m.json:2:68: error: /layers/0/padding (layer Conv2d 0): conv2d: padding is too large for padding_mode "
        "reflect: expected <= 6, got 7 in dimension 0; input size 7" +
            chain);
  CHECK(error(R"("kernel_size": 3, "padding": 4611686018427387904)") ==
        "m.json:2:68: error: /layers/0/padding (layer Conv2d 0): conv2d: padded input overflows 64 bits: expected a "
        "size below 2^63, got input size 7 and padding 4611686018427387904 in dimension 0" +
            chain);
  CHECK(error(R"("kernel_size": 3, "out_chanels": 7)") ==
        "m.json:2:57: error: /layers/0/out_chanels (layer Conv2d 0): unknown key; did you mean out_channels?");
}
