#include "pool_geometry.hpp"

#include "support/catch.hpp"

namespace taper::nn {

TEST_CASE("The geometry of a sliding pool is its windows along the last axes") {
  const Window1d windows[] = {{.kernel = 3, .stride = 2, .padding_left = 1, .padding_right = 0},
                              {.kernel = 2, .stride = 1, .dilation = 2}};
  kernels::SlidingPoolParams p;
  const Shape output = sliding_geometry("pool", windows, WindowKind::average_pool, {4, 5, 8, 7}, p);
  CHECK(output == Shape{4, 5, 4, 5});
  CHECK(p.planes == 20);
  const auto axis = [&p](int d) {
    return std::vector{p.in[d],           p.out[d],           p.kernel[d],  p.stride[d],
                       p.padding_left[d], p.padding_right[d], p.dilation[d]};
  };
  CHECK(axis(0) == std::vector<std::int64_t>{1, 1, 1, 1, 0, 0, 1});
  CHECK(axis(1) == std::vector<std::int64_t>{8, 4, 3, 2, 1, 0, 1});
  CHECK(axis(2) == std::vector<std::int64_t>{7, 5, 2, 1, 0, 0, 2});
  CHECK_THROWS(sliding_geometry("pool", windows, WindowKind::average_pool, {8, 7}, p));
}

TEST_CASE("The geometry of an adaptive pool is its extents") {
  const std::optional<std::int64_t> extents[] = {3, 0}, open[] = {std::nullopt, 2};
  kernels::AdaptivePoolParams p;
  CHECK(adaptive_geometry("pool", extents, {2, 8, 7}, 0, p) == Shape{2, 3, 0});
  CHECK(p.planes == 2);
  CHECK(std::vector(p.in, p.in + 3) == std::vector<std::int64_t>{1, 8, 7});
  CHECK(std::vector(p.out, p.out + 3) == std::vector<std::int64_t>{1, 3, 0});
  CHECK_THROWS(adaptive_geometry("pool", extents, {0, 8, 7}, 1, p));
  CHECK_THROWS(adaptive_geometry("pool", extents, {2, 0, 7}, 0, p));
  CHECK(adaptive_geometry("pool", open, {2, 8, 7}, 0, p) == Shape{2, 8, 2});
}

}  // namespace taper::nn
