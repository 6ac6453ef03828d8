#include "taper/nn/pool.hpp"

#include "support/catch.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
namespace F = taper::nn::functional;

TEST_CASE("adaptive_avg_pool1d of 0..13 to 4 spreads its gradient as the forum thread shows") {
  const Tensor x = arange(0, 14, 1, DType::float32).requires_grad_();
  const Tensor y = F::adaptive_avg_pool1d(x.reshape({1, 1, 14}), {.output_size = 4});
  CHECK(y.to_vector<float>() == std::vector<float>{1.5F, 4.5F, 8.5F, 11.5F});
  y.backward(arange(1, 5, 1, DType::float32).reshape({1, 1, 4}));
  CHECK(x.grad().to_vector<float>() ==
        std::vector<float>{.25F, .25F, .25F, .75F, .5F, .5F, .5F, .75F, .75F, .75F, 1.75F, 1.F, 1.F, 1.F});
}

TEST_CASE("pools refuse bad options in the constructor, in the function and where the input does not fit") {
  CHECK_THROWS_WITH(nn::AvgPool2d({.kernel_size = {3, 2}, .padding = {1, 2}}),
                    "avg_pool2d: padding must be at most half the kernel size: expected <= 1, got 2 in dimension 1");
  CHECK_THROWS_WITH(F::avg_pool1d(ones({2, 3, 5}), {.kernel_size = 2, .stride = 0}),
                    "avg_pool1d: stride must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(F::avg_pool2d(ones({2, 3, 5, 7}), {.kernel_size = 2, .divisor_override = 0}),
                    "avg_pool2d: divisor_override must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(
      F::avg_pool1d(ones({2, 3, 5, 7}), {.kernel_size = 2}),
      "avg_pool1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D [2, 3, 5, 7]");
  CHECK_THROWS_WITH(
      F::adaptive_avg_pool1d(ones({2, 3}, DType::int64), {.output_size = 2}),
      "adaptive_avg_pool1d: element type not supported: expected float32 or float64, got int64; convert with to()");
}

TEST_CASE("a pool prints all its options") {
  CHECK(nn::AvgPool2d({.kernel_size = {2, 3}}).to_string() ==
        "AvgPool2d(kernel_size=[2, 3], stride=null, padding=0, dilation=1, ceil_mode=false, count_include_pad=true, "
        "divisor_override=null)");
}
