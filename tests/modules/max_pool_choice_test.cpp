#include <algorithm>

#include "support/catch.hpp"
#include "support/draw.hpp"
#include "support/kernel_check.hpp"
#include "support/max_pools.hpp"
#include "support/numbers.hpp"
#include "support/oracle_max_pool.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

// What max pools choose where other frameworks chose wrong, and where their windows end.
using namespace taper;
using test::kInf;
using test::kNaN;
using test::pooled_both;
using test::same_values;
namespace F = taper::nn::functional;
using A1 = nn::AdaptiveMaxPool1dOptions;
using Values = std::vector<double>;
using Indices = std::vector<std::int64_t>;

namespace {

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

Tensor channel(const Values& x) { return from_data(x, {1, 1, std::int64_t(x.size())}); }

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

TEST_CASE("CVE-2021-37674, CVE-2021-29574: the gradient of an empty batch is empty") {
  const Tensor x = ones({0, 2, 7, 5, 3}).requires_grad_();
  F::max_pool3d(x, {.kernel_size = {2, 3, 1}, .padding = {1, 1, 0}}).sum().backward();
  CHECK(x.grad().shape() == x.shape());
  const Tensor a = ones({0, 2, 7, 5}).requires_grad_();
  F::adaptive_max_pool2d(a, {.output_size = {3, 11}}).sum().backward();
  CHECK(a.grad().shape() == a.shape());
}

TEST_CASE("pytorch 1465: a window of minus infinity or NaN alone chooses within itself", "[fault-45]") {
  const Step low = step(channel(Values(4, -kInf)), nn::MaxPool1dOptions{.kernel_size = 2});
  CHECK(low.values == Values{-kInf, -kInf});
  CHECK(low.indices == Indices{0, 2});
  CHECK(low.gradient == Values{1, 0, 1, 0});
  const Step nan = step(channel(Values(4, kNaN)), nn::MaxPool1dOptions{.kernel_size = 2});
  CHECK(same_values(nan.values, {kNaN, kNaN}));
  CHECK(nan.indices == Indices{1, 3});
  CHECK(nan.gradient == Values{0, 1, 0, 1});
  const Step plane =
      step(channel(Values(6, -kInf)).reshape({1, 2, 3}), nn::MaxPool2dOptions{.kernel_size = 2, .padding = 1});
  CHECK(plane.indices == Indices{0, 1, 3, 4});
  const Step block =
      step(channel(Values(8, -kInf)).reshape({1, 2, 2, 2}), nn::MaxPool3dOptions{.kernel_size = 2, .padding = 1});
  CHECK(block.indices == Indices{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("pytorch 7645: NaN is not lost, and takes the gradient", "[fault-46]") {
  const auto check = [](const Values& x, const Values& gradient) {
    const Step found = step(channel(x), A1{.output_size = 1});
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

TEST_CASE("of equal values the first takes the value and the whole gradient", "[fault-49]") {
  const Step found = step(channel({7, 7, 7, 7}), nn::MaxPool1dOptions{.kernel_size = 2});
  CHECK(found.indices == Indices{0, 2});
  CHECK(found.gradient == Values{1, 0, 1, 0});
  CHECK(step(channel(Values(100, 7.0)), A1{.output_size = 1}).indices == Indices{0});
  CHECK(
      step(channel(Values(105, 7.0)).reshape({1, 3, 5, 7}), nn::MaxPool3dOptions{.kernel_size = {3, 2, 7}, .stride = 2})
          .indices == Indices{0, 14});
}

TEST_CASE("modular 6712: a max pool with large padding of a permuted input gives the same bits every time",
          "[fault-53]") {
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

TEST_CASE("pytorch 81409: the windows of adaptive max pools end at integers", "[fault-58]") {
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

TEST_CASE("pytorch 177040: extents whose product passes 31 bits", "[fault-60]") {
  const auto found = windows(70000, 40000);
  CHECK(found[0] == std::pair<std::int64_t, std::int64_t>{0, 2});
  CHECK(found[39998] == std::pair<std::int64_t, std::int64_t>{69996, 69999});
  CHECK(found[39999] == std::pair<std::int64_t, std::int64_t>{69998, 70000});
}

TEST_CASE("FlagGems 4915: windows end at the ceiling", "[fault-61]") {
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(windows(10, 3) == Pairs{{0, 4}, {3, 7}, {6, 10}});
  CHECK(windows(5, 3) == Pairs{{0, 2}, {1, 4}, {3, 5}});
  CHECK(windows(224, 13)[1] == std::pair<std::int64_t, std::int64_t>{17, 35});
}

TEST_CASE("paddle 20997: every dimension uses its own kernel, stride, padding and dilation", "[fault-31]") {
  test::Draw draw(1);
  oracle::MaxPool pool{.planes = 2,
                       .in = {7, 11, 13},
                       .kernel = {2, 3, 5},
                       .stride = {1, 2, 3},
                       .padding = {0, 1, 2},
                       .dilation = {3, 1, 2}};
  const Values x = draw.values(pool.inputs()), dy = draw.values(pool.outputs());
  const auto index = pool.indices(x);
  const Tensor leaf = from_data(x, {1, 2, 7, 11, 13}).requires_grad_();
  const auto [values, indices] = F::max_pool3d_with_indices(
      leaf, {.kernel_size = {2, 3, 5}, .stride = {1, 2, 3}, .padding = {0, 1, 2}, .dilation = {3, 1, 2}});
  CHECK(values.to_vector<double>() == pool.forward(x, index));
  CHECK(indices.to_vector<std::int64_t>() == index);
  values.backward(from_data(dy, values.shape()));
  CHECK(leaf.grad().to_vector<double>() == pool.backward(dy, index));
}
