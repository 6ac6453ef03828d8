#include "taper/nn/lp_pool.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/json_error.hpp"
#include "support/numbers.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/pool.hpp"

using namespace taper;
using test::kNaN;
using test::row;
namespace F = taper::nn::functional;
using Values = std::vector<double>;

namespace {

/// The output and the gradient of its sum; NaN is NaN.
void check_lp_pool(const Values& x, const nn::LPPool1dOptions& options, const Values& y, const Values& dx) {
  const Tensor input = row(x).requires_grad_();
  const Tensor output = F::lp_pool1d(input, options);
  output.sum().backward();
  const auto close = [&](const Tensor& got, const Values& expected) {
    const auto values = got.to_vector<double>();
    REQUIRE(values.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK((std::isnan(expected[i]) ? std::isnan(values[i]) : std::abs(values[i] - expected[i]) < 5.1e-5));
  };
  CAPTURE(x, options.norm_type);
  close(output, y);
  close(input.grad(), dx);
}

}  // namespace

TEST_CASE("lp_pool1d takes no absolute value: odd powers keep signs, roots of negative sums are NaN") {
  check_lp_pool({1, 2, 3, 4, 5, 6}, {.norm_type = 2, .kernel_size = 2}, {2.2361, 5, 7.8102},
                {.4472, .8944, .6, .8, .6402, .7682});
  check_lp_pool({-1, -3, 2, 1}, {.norm_type = 1, .kernel_size = 2}, {-4, 3}, {1, 1, 1, 1});
  check_lp_pool({-1, -3, 2, 1}, {.norm_type = 2, .kernel_size = 2}, {3.1623, 2.2361}, {-.3162, -.9487, .8944, .4472});
  check_lp_pool({-1, -3, 2, 1}, {.norm_type = 3, .kernel_size = 2}, {kNaN, 2.0801}, {kNaN, kNaN, .9245, .2311});
  check_lp_pool({-1, 4}, {.norm_type = 0.5, .kernel_size = 2}, {kNaN}, {kNaN, kNaN});
}

TEST_CASE("where a window's sum is 0 no gradient flows") {
  check_lp_pool({0, 0, 1, 2}, {.norm_type = 1, .kernel_size = 2}, {0, 3}, {0, 0, 1, 1});
  check_lp_pool({0, 0, 1, 2}, {.norm_type = 2, .kernel_size = 2}, {0, 2.2361}, {0, 0, .4472, .8944});
  check_lp_pool({-1, 1}, {.norm_type = 3, .kernel_size = 2}, {0}, {0, 0});
  check_lp_pool({-1, 1}, {.norm_type = 1, .kernel_size = 2}, {0}, {0, 0});
  // A power below 1 has an infinite slope at 0, as in PyTorch.
  check_lp_pool({0, 0}, {.norm_type = 0.5, .kernel_size = 2}, {0}, {kNaN, kNaN});
}

TEST_CASE("a window cut off by ceil_mode is multiplied by the whole kernel") {
  check_lp_pool({1, 2, 3, 4, 5}, {.norm_type = 2, .kernel_size = 2, .ceil_mode = true}, {2.2361, 5, 7.0711},
                {.4472, .8944, .6, .8, 1.4142});
  const auto description = nn::LPPool2d({.norm_type = 2, .kernel_size = {2, 3}, .ceil_mode = true}).describe({3, 4});
  CHECK(description.multiplier == 6);
  CHECK(description.divisor({1, 1}) == 1);
  CHECK(nn::LPPool1d({.norm_type = 2, .kernel_size = 2, .ceil_mode = true}).describe(3).to_string() ==
        R"(LPPool1d(norm_type=2.0, kernel_size=2, stride=null, ceil_mode=true)
padding counts in the divisor; times 2
input 3, output 2, dropped 0
window  positions  elements  padding  divisor  overlap
     0     [0, 2)         2        0        2        -
     1     [2, 3)         1        0        1        0
)");
}

TEST_CASE("with p = 1 lp pools are average pools times the kernel's volume, in every number of dimensions") {
  manual_seed(3);
  const Tensor x = uniform({2, 3, 5, 7, 11}, 0.1, 1, DType::float64);
  const auto expect = [](const Tensor& y, const Tensor& average, double volume) {
    CHECK(test::golden_difference(y, average * volume, {1e-15, 1}) == "");
  };
  expect(F::lp_pool3d(x, {.norm_type = 1, .kernel_size = {2, 3, 5}, .stride = {1, 2, 3}}),
         F::avg_pool3d(x, {.kernel_size = {2, 3, 5}, .stride = {1, 2, 3}}), 30);
  const Tensor planes = x.select(0, 1);
  expect(F::lp_pool2d(planes, {.norm_type = 1, .kernel_size = {2, 3}, .ceil_mode = true}),
         F::avg_pool2d(planes, {.kernel_size = {2, 3}, .ceil_mode = true}), 6);
  const Tensor rows = planes.select(0, 2);
  expect(F::lp_pool1d(rows, {.norm_type = 1, .kernel_size = 4, .stride = 3}),
         F::avg_pool1d(rows, {.kernel_size = 4, .stride = 3}), 4);
}

TEST_CASE("an infinite p gives the largest or the smallest magnitude") {
  const double infinite = std::numeric_limits<double>::infinity();
  check_lp_pool({1, -2, 3, 4, 5}, {.norm_type = infinite, .kernel_size = 2}, {2, 4}, {0, -1, 0, 1, 0});
  check_lp_pool({1, -2, 3, -4, 5}, {.norm_type = -infinite, .kernel_size = 2}, {1, 3}, {1, 0, 1, 0, 0});
  const Tensor x = from_data(Values{1, -7, 3, -5, 2, 6, 4, -8}, {1, 2, 2, 2});
  const auto values = [](const Tensor& y) { return y.to_vector<double>(); };
  CHECK(values(F::lp_pool2d(x, {.norm_type = infinite, .kernel_size = {2, 1}})) == Values{3, 7, 4, 8});
  CHECK(values(F::lp_pool3d(x, {.norm_type = infinite, .kernel_size = {2, 1, 2}})) == Values{7, 8});
  CHECK(values(F::lp_pool3d(x, {.norm_type = -infinite, .kernel_size = {2, 1, 2}})) == Values{1, 3});
  CHECK(nn::LPPool1d({.norm_type = infinite, .kernel_size = 2}).describe(5).to_string() ==
        R"(LPPool1d(norm_type=inf, kernel_size=2, stride=null, ceil_mode=false)
input 5, output 2, dropped 1
window  positions  elements  padding  overlap
     0     [0, 2)         2        0        -
     1     [2, 4)         2        0        0
)");
}

TEST_CASE("lp pools refuse bad options and inputs by their own name") {
  CHECK_THROWS_WITH(F::lp_pool1d(ones({2, 5}), {.norm_type = 0, .kernel_size = 2}),
                    "lp_pool1d: norm_type must be a number other than 0: expected one, got 0");
  CHECK_THROWS_WITH(nn::LPPool2d({.kernel_size = 2}),
                    "lp_pool2d: norm_type must be a number other than 0: expected one, got 0");
  CHECK_THROWS_WITH(nn::LPPool1d({.norm_type = kNaN, .kernel_size = 2}),
                    "LPPool1d: norm_type is out of range: expected a number, got nan");
  CHECK_THROWS_WITH(F::lp_pool2d(ones({2, 3, 5}), {.norm_type = 2, .kernel_size = {2, 0}}),
                    "lp_pool2d: kernel_size must be positive: expected >= 1, got 0 in dimension 1");
  CHECK_THROWS_WITH(F::lp_pool1d(ones({2, 5}), {.norm_type = 2, .kernel_size = 2, .stride = 0}),
                    "lp_pool1d: stride must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(F::lp_pool1d(ones({2, 3}), {.norm_type = 2, .kernel_size = 5}),
                    "lp_pool1d: output size is too small: expected >= 1, got 0; input size 3, kernel_size 5, stride 5, "
                    "padding 0, dilation 1");
  CHECK_THROWS_WITH(F::lp_pool1d(ones({3}), {.norm_type = 2, .kernel_size = 2}),
                    "lp_pool1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 1-D [3]");
  CHECK(test::json_error("LPPool2d", R"("norm_type": 0, "kernel_size": 2)", "[3, 5, 7]") ==
        "error: /layers/0/norm_type (layer LPPool2d 0): lp_pool2d: norm_type must be a number other than 0: expected "
        "one, got 0; shapes: input [3, 5, 7] -> LPPool2d");
  CHECK(test::json_error("LPPool1d", R"("kernel_size": 2)", "[3, 7]") ==
        "error: /layers/0 (layer LPPool1d 0): missing key: expected norm_type, got none");
  CHECK_THROWS_WITH(F::lp_pool1d(ones({2, 3}, DType::int64), {.norm_type = 2, .kernel_size = 2}),
                    "lp_pool1d: element type not supported: expected float32 or float64, got int64; convert with to()");
}

TEST_CASE("an lp pool prints all its options and takes an empty batch") {
  CHECK(nn::LPPool3d({.norm_type = 1.5, .kernel_size = {1, 2, 3}, .stride = 2}).to_string() ==
        "LPPool3d(norm_type=1.5, kernel_size=[1, 2, 3], stride=2, ceil_mode=false)");
  const Tensor x = zeros({0, 3, 7}).requires_grad_();
  const Tensor y = F::lp_pool1d(x, {.norm_type = 2, .kernel_size = 3});
  CHECK(y.shape() == Shape{0, 3, 2});
  y.sum().backward();
  CHECK(x.grad().shape() == Shape{0, 3, 7});
}
