#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/max_pool.hpp"
#include "support/catch.hpp"
#include "support/draw.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using test::Draw;

namespace {

/// Windows side by side, `k` of an axis, over `n` of them.
kernels::SlidingPoolParams side_by_side(std::int64_t planes, const std::int64_t (&n)[3], const std::int64_t (&k)[3]) {
  kernels::SlidingPoolParams p{.planes = planes};
  for (int i = 0; i < 3; ++i) p.in[i] = n[i] * k[i], p.out[i] = n[i], p.kernel[i] = p.stride[i] = k[i];
  return p;
}

/// Any position of each window, or, now and then, none.
std::vector<std::int64_t> choose(const kernels::SlidingPoolParams& p, Draw& draw) {
  std::vector<std::int64_t> index;
  for (std::int64_t plane = 0; plane < p.planes; ++plane)
    for (std::int64_t d = 0; d < p.out[0]; ++d)
      for (std::int64_t h = 0; h < p.out[1]; ++h)
        for (std::int64_t w = 0; w < p.out[2]; ++w) {
          const std::int64_t i = d * p.kernel[0] + draw.below(p.kernel[0]),
                             j = h * p.kernel[1] + draw.below(p.kernel[1]),
                             k = w * p.kernel[2] + draw.below(p.kernel[2]), at = (i * p.in[1] + j) * p.in[2] + k;
          const std::int64_t none[] = {-1, INT64_MIN, INT64_MAX, at + (std::int64_t{1} << 32),
                                       at - (std::int64_t{5} << 33)};
          index.push_back(draw.one_in(7) ? none[draw.below(5)] : at);
        }
  return index;
}

/// The definition: an output's gradient goes where its index says, if that is in the plane.
std::vector<float> scattered(const kernels::SlidingPoolParams& p, const std::vector<float>& dy,
                             const std::vector<std::int64_t>& index) {
  const std::int64_t size = p.in[0] * p.in[1] * p.in[2], outputs = p.out[0] * p.out[1] * p.out[2];
  std::vector<float> dx(std::size_t(p.planes * size), 0.0f);
  for (std::int64_t o = 0; o < p.planes * outputs; ++o) {
    const std::int64_t at = index[std::size_t(o)];
    if (at >= 0 && at < size) dx[std::size_t(o / outputs * size + at)] += dy[std::size_t(o)];
  }
  return dx;
}

}  // namespace

TEST_CASE("windows side by side give each element the gradient of the one that chose it, on any number of threads") {
  Draw draw(17);
  for (std::int64_t width = 1; width <= 40; width += width < 20 ? 1 : 5)
    for (const std::int64_t k : {1, 2, 3, 4, 5})
      for (const std::int64_t rows : {1, 2, 3, 17}) {
        const auto p = side_by_side(3, {std::min<std::int64_t>(rows, 3), rows > 3 ? 1 : 2 * rows + 1, width},
                                    {rows >= 3 ? 2 : 1, rows, k});
        const auto index = choose(p, draw);
        std::vector<float> dy(index.size());
        for (float& v : dy) v = float(draw.below(100)) - 50;
        dy.front() = std::numeric_limits<float>::infinity();
        const std::vector<float> expected = scattered(p, dy, index);
        CAPTURE(width, k, rows);
        CHECK(test::same_on_any_threads([&] {
          std::vector<float> dx(expected.size() + 64, 7.0f), sum(expected.size(), 2.0f);
          kernels::max_pool_backward(p, dy.data(), index.data(), dx.data(), false);
          CHECK(std::equal(expected.begin(), expected.end(), dx.begin()));
          CHECK(std::all_of(dx.end() - 64, dx.end(), [](float v) { return v == 7; }));
          kernels::max_pool_backward(p, dy.data(), index.data(), sum.data(), true);
          CHECK(std::equal(expected.begin(), expected.end(), sum.begin(), [](float a, float b) { return a + 2 == b; }));
          return dx;
        }));
      }
}
