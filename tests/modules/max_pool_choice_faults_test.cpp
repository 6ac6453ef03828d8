#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/max_pools.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

// Faults of other frameworks with what max pools choose, with their gradients, and with adaptive windows, by their
// public number.
using namespace taper;
using test::message_of;
using test::out_of_range;
using test::pooled;
using test::pooled_both;
using test::Refusal;
using test::refusal_of;
using test::same_values;
using test::unfit;
namespace F = taper::nn::functional;
using A1 = nn::AdaptiveMaxPool1dOptions;
using A2 = nn::AdaptiveMaxPool2dOptions;
using A3 = nn::AdaptiveMaxPool3dOptions;
using Values = std::vector<double>;
using Indices = std::vector<std::int64_t>;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// Values, indices and the gradient of the sum.
struct Step {
  Values values;
  Indices indices;
  Values gradient;
};

template <class O>
Step step(const Tensor& x, const O& options) {
  const Tensor leaf = x.detach().clone().requires_grad_();
  const auto [values, indices] = pooled_both(leaf, options);
  values.sum().backward();
  return {values.template to_vector<double>(), indices.template to_vector<std::int64_t>(),
          leaf.grad().to_vector<double>()};
}

Tensor row(const Values& x) { return from_data(x, {1, 1, std::int64_t(x.size())}); }

/// The largest element of [first, last) of a row.
double largest(const Values& x, std::int64_t first, std::int64_t last) {
  return *std::max_element(x.begin() + first, x.begin() + last);
}

/// The windows of an adaptive pool over a rising row, as [first, last] pairs: the last from the row itself, the first
/// from the row reversed.
std::vector<std::pair<std::int64_t, std::int64_t>> windows(std::int64_t length, std::int64_t out) {
  const Tensor rising = arange(0, double(length), 1, DType::float64).reshape({1, length});
  const auto last = F::adaptive_max_pool1d_with_indices(rising, {.output_size = out}).indices.to_vector<std::int64_t>();
  const auto first =
      F::adaptive_max_pool1d_with_indices(neg(rising), {.output_size = out}).indices.to_vector<std::int64_t>();
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (std::size_t i = 0; i < first.size(); ++i) found.push_back({first[i], last[i] + 1});
  return found;
}

}  // namespace

// --- gradients and what is chosen -----------------------------------------------------------------------------------

TEST_CASE("CVE-2021-29577, CVE-2023-25664, CVE-2021-29579, pytorch 194803: a gradient has its output's shape") {
  const Tensor x3 = ones({10, 6, 3, 7, 7}).requires_grad_(), x2 = ones({3, 2, 4, 5}).requires_grad_(),
               x1 = ones({1, 1, 1, 1}).requires_grad_();
  const auto refused = [](const Tensor& y, const Tensor& gradient) {
    return message_of([&] { y.backward(gradient); });
  };
  CHECK(refused(F::max_pool3d(x3, {.kernel_size = 1}), ones({3, 1, 1, 1, 1})) ==
        "backward: the gradient does not fit the tensor: expected [10, 6, 3, 7, 7], got [3, 1, 1, 1, 1]");
  CHECK(refused(F::max_pool2d(x2, {.kernel_size = {2, 3}}), ones({16, 16, 16, 16})) ==
        "backward: the gradient does not fit the tensor: expected [3, 2, 2, 1], got [16, 16, 16, 16]");
  CHECK(refused(F::max_pool2d(x1, {.kernel_size = 1}), ones({0, 0, 0, 0})) ==
        "backward: the gradient does not fit the tensor: expected [1, 1, 1, 1], got [0, 0, 0, 0]");
  CHECK(refused(F::adaptive_max_pool2d(x1, {.output_size = 1}), ones({1, 2, 1, 1})) ==
        "backward: the gradient does not fit the tensor: expected [1, 1, 1, 1], got [1, 2, 1, 1]");
}

TEST_CASE("CVE-2022-35968: negative extents are refused by themselves") {
  CHECK(message_of([] {
          ones({-536870912, -536870912, -536870912, -536870912});
        }) == "shape: extents must not be negative: expected >= 0, got -536870912 in dimension 0");
}

TEST_CASE("CVE-2021-37674, CVE-2021-29574: the gradient of an empty batch is empty") {
  const Tensor x = ones({0, 2, 7, 5, 3}).requires_grad_();
  F::max_pool3d(x, {.kernel_size = {2, 3, 1}, .padding = {1, 1, 0}}).sum().backward();
  CHECK(x.grad().shape() == x.shape());
  const Tensor a = ones({0, 2, 7, 5}).requires_grad_();
  F::adaptive_max_pool2d(a, {.output_size = {3, 11}}).sum().backward();
  CHECK(a.grad().shape() == a.shape());
}

TEST_CASE("pytorch 171869: samples of a batch do not see each other, forward and backward") {
  const Tensor x = test::spread({2, 3, 5, 7, 11});
  const nn::MaxPool3dOptions o{.kernel_size = {2, 3, 5}, .stride = {1, 2, 3}, .padding = {1, 0, 2}};
  const Step both = step(x, o), first = step(x.select(0, 0), o), second = step(x.select(0, 1), o);
  const auto joined = [](auto a, const auto& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  CHECK(both.values == joined(first.values, second.values));
  CHECK(both.indices == joined(first.indices, second.indices));
  CHECK(both.gradient == joined(first.gradient, second.gradient));
}

TEST_CASE("pytorch 1465: a window of minus infinity or NaN alone chooses within itself") {
  const Step low = step(row(Values(4, -kInf)), nn::MaxPool1dOptions{.kernel_size = 2});
  CHECK(low.values == Values{-kInf, -kInf});
  CHECK(low.indices == Indices{0, 2});
  CHECK(low.gradient == Values{1, 0, 1, 0});
  const Step nan = step(row(Values(4, kNaN)), nn::MaxPool1dOptions{.kernel_size = 2});
  CHECK(same_values(nan.values, {kNaN, kNaN}));
  CHECK(nan.indices == Indices{1, 3});
  CHECK(nan.gradient == Values{0, 1, 0, 1});
  const Step plane =
      step(row(Values(6, -kInf)).reshape({1, 2, 3}), nn::MaxPool2dOptions{.kernel_size = 2, .padding = 1});
  CHECK(plane.indices == Indices{0, 1, 3, 4});
  const Step block =
      step(row(Values(8, -kInf)).reshape({1, 2, 2, 2}), nn::MaxPool3dOptions{.kernel_size = 2, .padding = 1});
  CHECK(block.indices == Indices{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("pytorch 7645: NaN is not lost, and takes the gradient") {
  const auto check = [](const Values& x, const Values& gradient) {
    const Step found = step(row(x), A1{.output_size = 1});
    CHECK(same_values(found.values, {kNaN}));
    CHECK(found.gradient == gradient);
  };
  check({kNaN, kNaN}, {0, 1});
  check({0, kNaN}, {0, 1});
  check({kNaN, 0}, {1, 0});
  check({kInf, kNaN}, {0, 1});
  // Also in windows long enough for other loops.
  for (const std::size_t at : {0u, 40u, 63u, 99u}) {
    Values x(100, 1.0), gradient(100, 0.0);
    x[at] = kNaN;
    gradient[at] = 1;
    check(x, gradient);
  }
}

TEST_CASE("of equal values the first takes the value and the whole gradient") {
  const Step found = step(row({7, 7, 7, 7}), nn::MaxPool1dOptions{.kernel_size = 2});
  CHECK(found.indices == Indices{0, 2});
  CHECK(found.gradient == Values{1, 0, 1, 0});
  CHECK(step(row(Values(100, 7.0)), A1{.output_size = 1}).indices == Indices{0});
  CHECK(step(row(Values(105, 7.0)).reshape({1, 3, 5, 7}), nn::MaxPool3dOptions{.kernel_size = {3, 2, 7}, .stride = 2})
            .indices == Indices{0, 14});
}

TEST_CASE("modular 6712: large padding on a permuted input gives the same bits every time") {
  const Tensor x = test::spread({2, 11, 7, 3}).transpose(1, 3);
  const nn::MaxPool2dOptions o{.kernel_size = {6, 10}, .stride = 1, .padding = {3, 5}};
  const Step first = step(x, o);
  CHECK(first.values.size() == 2u * 3 * 8 * 12);
  for (int round = 0; round < 20; ++round) {
    const Step again = step(x, o);
    CHECK(again.values == first.values);
    CHECK(again.indices == first.indices);
    CHECK(again.gradient == first.gradient);
  }
  const auto values = x.to_vector<double>();
  CHECK(first.values[0] == std::max({largest(values, 0, 5), largest(values, 11, 16), largest(values, 22, 27)}));
}

// --- adaptive windows -----------------------------------------------------------------------------------------------

TEST_CASE("pytorch 42509: an empty output size is refused") {
  const auto refusal = [](const std::string& type, const std::string& expected) {
    const std::string text = "expected " + expected + ", got 0 in []";
    return Refusal{"output_size: " + text, "output_size: " + text,
                   "error: /layers/0/output_size (layer " + type + " 0): " + text};
  };
  CHECK(refusal_of<A1>(R"("output_size": [])", {2, 2, 2}) == refusal("AdaptiveMaxPool1d", "a list of 1 integers"));
  CHECK(refusal_of<A2>(R"("output_size": [])", {2, 2, 2, 2}) ==
        refusal("AdaptiveMaxPool2d", "a list of 2 integers or nulls"));
  CHECK(refusal_of<A3>(R"("output_size": [])", {2, 2, 2, 2, 2}) ==
        refusal("AdaptiveMaxPool3d", "a list of 3 integers or nulls"));
}

TEST_CASE("pytorch 70232, 89343, 83062: a negative output size is refused") {
  CHECK(refusal_of<A1>(R"("output_size": -2)", {1, 64, 8}) ==
        out_of_range<A1>("output_size", "must not be negative: expected >= 0, got -2"));
  CHECK(refusal_of<A2>(R"("output_size": [576460752303423488, -274877906944])", {16, 960, 4, 4}) ==
        out_of_range<A2>("output_size", "must not be negative: expected >= 0, got -274877906944", " in dimension 1"));
  CHECK(refusal_of<A3>(R"("output_size": [2, null, -1])", {2, 3, 4, 5, 6}) ==
        out_of_range<A3>("output_size", "must not be negative: expected >= 0, got -1", " in dimension 2"));
}

TEST_CASE("pytorch 78868: an output size of 0 gives an empty result and zero gradients") {
  const auto check = [](const auto& options, const Shape& input, const Shape& output) {
    const Tensor x = test::spread(input).requires_grad_();
    const auto [y, indices] = pooled_both(x, options);
    CHECK(y.shape() == output);
    CHECK(indices.shape() == output);
    y.sum().backward();
    CHECK(x.grad().to_vector<double>() == Values(std::size_t(input.numel()), 0.0));
  };
  check(A1{.output_size = 0}, {2, 3, 5}, {2, 3, 0});
  check(A2{.output_size = {std::nullopt, 0}}, {2, 3, 5, 7}, {2, 3, 5, 0});
  check(A3{.output_size = 0}, {1, 64, 10, 9, 8}, {1, 64, 0, 0, 0});
}

TEST_CASE("pytorch 42582, 73183, 107548: an output of more elements than 64 bits count is refused") {
  const auto sentence = [](const std::string& size, int dimension) {
    return "shape: number of elements overflows 64 bits: expected a product below 2^63, got " + size +
           " in dimension " + std::to_string(dimension);
  };
  CHECK(refusal_of<A1>(R"("output_size": 9132760301568586890)", {2, 2, 2}).function ==
        sentence("9132760301568586890", 2));
  CHECK(refusal_of<A1>(R"("output_size": 4611686018427387903)", {2, 2, 2}).function ==
        sentence("4611686018427387903", 2));
  CHECK(refusal_of<A2>(R"("output_size": [1250999896765, 1250999896764])", {128, 1024, 4, 4}) ==
        Refusal{sentence("1250999896764", 1), "no error",
                "error: /layers/0 (layer AdaptiveMaxPool2d 0): " + sentence("1250999896764", 1) +
                    "; shapes: input [1024, 4, 4] -> AdaptiveMaxPool2d"});
  CHECK(refusal_of<A3>(R"("output_size": 1879048192)", {2, 3, 5, 3, 7}).function == sentence("1879048192", 2));
  // Fewer elements than that, but more bytes.
  CHECK(message_of([] { F::adaptive_max_pool1d(ones({1, 2}), {.output_size = 4611686018427387903}); }) != "no error");
}

TEST_CASE("pytorch 81409: window ends are integers") {
  for (const auto& [in, out] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{5877, 2855}, {3697, 1}, {4757, 3527}, {560, 2219}}) {
    CAPTURE(in, out);
    const auto found = windows(in, out);
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < out; ++i) {
      const auto [first, last] = found[std::size_t(i)];
      wrong += first != i * in / out || last != ((i + 1) * in + out - 1) / out;
    }
    CHECK(wrong == 0);
  }
  const Tensor x = ones({1, 4757, 560});
  CHECK(F::adaptive_max_pool2d(x, {.output_size = {3527, 2219}}).sum().item() == 3527.0 * 2219.0);
}

TEST_CASE("pytorch 177040: extents whose product passes 31 bits") {
  const auto found = windows(70000, 40000);
  CHECK(found[0] == std::pair<std::int64_t, std::int64_t>{0, 2});
  CHECK(found[39998] == std::pair<std::int64_t, std::int64_t>{69996, 69999});
  CHECK(found[39999] == std::pair<std::int64_t, std::int64_t>{69998, 70000});
}

TEST_CASE("FlagGems 4915: windows end at the ceiling") {
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(windows(10, 3) == Pairs{{0, 4}, {3, 7}, {6, 10}});
  CHECK(windows(5, 3) == Pairs{{0, 2}, {1, 4}, {3, 5}});
  CHECK(windows(224, 13)[1] == std::pair<std::int64_t, std::int64_t>{17, 35});
}

TEST_CASE("an adaptive pool to more elements than it has repeats them") {
  const Step one = step(row({7}), A1{.output_size = 64});
  CHECK(one.values == Values(64, 7.0));
  CHECK(one.gradient == Values{64});
  const Step three = step(row({1, 2, 3}), A1{.output_size = 7});
  CHECK(three.values == Values{1, 1, 2, 2, 3, 3, 3});
  CHECK(three.gradient == Values{2, 2, 3});
}

TEST_CASE("javacpp 1587: one number, a list and an open extent mean what they say") {
  const Tensor x = test::spread({1, 64, 10, 9});
  CHECK(F::adaptive_max_pool2d(x, {.output_size = 7}).shape() == Shape({1, 64, 7, 7}));
  CHECK(F::adaptive_max_pool2d(x, {.output_size = {5, 7}}).shape() == Shape({1, 64, 5, 7}));
  CHECK(F::adaptive_max_pool2d(x, {.output_size = {std::nullopt, 7}}).shape() == Shape({1, 64, 10, 7}));
  const Tensor copy = F::adaptive_max_pool2d(x, {.output_size = {std::nullopt, std::nullopt}});
  CHECK(test::same_bits(copy.to_vector<double>(), x.to_vector<double>()));
}

TEST_CASE("an empty spatial extent or no channels are refused on every path") {
  CHECK(refusal_of<A2>(R"("output_size": 1)", {2, 3, 0, 7}).function ==
        "adaptive_max_pool2d: input size must be positive: expected >= 1, got 0 in dimension 0");
  CHECK(refusal_of<A1>(R"("output_size": 0)", {2, 3, 0}).function ==
        "adaptive_max_pool1d: input size must be positive: expected >= 1, got 0");
  CHECK(refusal_of<A3>(R"("output_size": 2)", {2, 0, 5, 7, 3}).function ==
        "adaptive_max_pool3d: no channels: expected >= 1, got 0 in [2, 0, 5, 7, 3]");
  CHECK(refusal_of<nn::MaxPool1dOptions>(R"("kernel_size": 2)", {2, 3, 0}).function ==
        "max_pool1d: input size must be positive: expected >= 1, got 0");
  CHECK(refusal_of<nn::MaxPool2dOptions>(R"("kernel_size": 2)", {2, 0, 5, 7}).function ==
        "max_pool2d: no channels: expected >= 1, got 0 in [2, 0, 5, 7]");
  CHECK(refusal_of<A1>(R"("output_size": null)", {1, 64, 8}).function == "output_size: expected an integer, got null");
}
