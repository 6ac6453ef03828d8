#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/max_pool.hpp"
#include "support/catch.hpp"
#include "support/draw.hpp"
#include "support/guarded.hpp"
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

/// Windows of `k` positions one step apart, `padding` positions beyond both ends of each axis, over `n` positions.
kernels::SlidingPoolParams one_apart(std::int64_t planes, const std::int64_t (&n)[3], const std::int64_t (&k)[3],
                                     const std::int64_t (&padding)[3]) {
  kernels::SlidingPoolParams p{.planes = planes};
  for (int i = 0; i < 3; ++i) {
    p.in[i] = n[i], p.out[i] = n[i] + 2 * padding[i] - k[i] + 1, p.kernel[i] = k[i];
    p.padding_left[i] = p.padding_right[i] = padding[i];
  }
  return p;
}

/// Any position of each window, or, now and then, none.
std::vector<std::int64_t> choose(const kernels::SlidingPoolParams& p, Draw& draw) {
  std::vector<std::int64_t> index;
  for (std::int64_t plane = 0; plane < p.planes; ++plane)
    for (std::int64_t d = 0; d < p.out[0]; ++d)
      for (std::int64_t h = 0; h < p.out[1]; ++h)
        for (std::int64_t w = 0; w < p.out[2]; ++w) {
          const auto any = [&](int axis, std::int64_t o) {
            const std::int64_t start = o * p.stride[axis] - p.padding_left[axis],
                               first = std::max<std::int64_t>(start, 0);
            return first + draw.below(std::min(start + p.kernel[axis], p.in[axis]) - first);
          };
          const std::int64_t i = any(0, d), j = any(1, h), k = any(2, w), at = (i * p.in[1] + j) * p.in[2] + k;
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

/// Checks that gradients are what the definition says, written and added, on any number of threads; nothing behind them
/// is written, and nothing around what is read.
void check_gradients(const kernels::SlidingPoolParams& p, Draw& draw) {
  const auto index = choose(p, draw);
  std::vector<float> dy(index.size());
  for (float& v : dy) v = float(draw.below(100)) - 50;
  dy.front() = std::numeric_limits<float>::infinity();
  const std::vector<float> expected = scattered(p, dy, index);
  CHECK(test::same_on_any_threads([&] {
    std::vector<float> dx(expected.size() + 64, 7.0f), sum(expected.size(), 2.0f);
    kernels::max_pool_backward(p, dy.data(), index.data(), dx.data(), false);
    CHECK(std::equal(expected.begin(), expected.end(), dx.begin()));
    CHECK(std::all_of(dx.end() - 64, dx.end(), [](float v) { return v == 7; }));
    kernels::max_pool_backward(p, dy.data(), index.data(), sum.data(), true);
    CHECK(std::equal(expected.begin(), expected.end(), sum.begin(), [](float a, float b) { return a + 2 == b; }));
    return dx;
  }));
  for (const bool at_end : {false, true}) {
    const Guarded<float> gradients(dy, at_end);
    const Guarded<std::int64_t> chosen(index, at_end);
    std::vector<float> dx(expected.size());
    kernels::max_pool_backward(p, gradients.data, chosen.data, dx.data(), false);
    CHECK(dx == expected);
  }
}

}  // namespace

TEST_CASE("windows side by side give each element the gradient of the one that chose it, on any number of threads") {
  Draw draw(17);
  for (std::int64_t width = 1; width <= 40; width += width < 20 ? 1 : 5)
    for (const std::int64_t k : {1, 2, 3, 4, 5})
      for (const std::int64_t rows : {1, 2, 3, 17}) {
        CAPTURE(width, k, rows);
        check_gradients(side_by_side(3, {std::min<std::int64_t>(rows, 3), rows > 3 ? 1 : 2 * rows + 1, width},
                                     {rows >= 3 ? 2 : 1, rows, k}),
                        draw);
      }
}

TEST_CASE("windows one step apart give each element the gradients of those that chose it, on any number of threads") {
  Draw draw(18);
  for (const std::int64_t width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 40, 300, 2014, 2100, 4025, 9000})
    for (const std::int64_t k : {1, 2, 3, 4})
      for (const std::int64_t height : {1, 2, 5, 90})
        for (const std::int64_t depth : {1, 3}) {
          if (width * height * depth > 30000) continue;
          const std::int64_t rows = std::min<std::int64_t>(height, 3),
                             slices = draw.one_in(2) ? 1 : std::min<std::int64_t>(depth, 2);
          const std::int64_t padding[] = {draw.below(slices / 2 + 1), draw.below(rows / 2 + 1), draw.below(k / 2 + 1)};
          if (width + 2 * padding[2] < k) continue;
          CAPTURE(width, k, height, depth, padding[0], padding[1], padding[2]);
          check_gradients(one_apart(2, {depth, height, width}, {slices, rows, k}, padding), draw);
        }
}

TEST_CASE("gradients of nine rows of windows are summed in double") {
  // Of 27 windows all choose the element between them: in float32, 1 + 2^-25 + ... would stay 1 in most orders.
  const auto p = one_apart(1, {8, 8, 8}, {3, 3, 3}, {1, 1, 1});
  const std::int64_t middle = (3 * 8 + 3) * 8 + 3;
  std::vector<std::int64_t> index(512, -1);
  std::vector<float> dy(512, std::ldexp(1.0f, -24) * 0.75f);
  for (std::int64_t d = 2; d < 5; ++d)
    for (std::int64_t h = 2; h < 5; ++h)
      for (std::int64_t w = 2; w < 5; ++w) index[std::size_t((d * 8 + h) * 8 + w)] = middle;
  dy[(2 * 8 + 2) * 8 + 2] = 1;
  std::vector<float> dx(512);
  kernels::max_pool_backward(p, dy.data(), index.data(), dx.data(), false);
  CHECK(dx[std::size_t(middle)] == float(1 + 26 * 0.75 * std::ldexp(1.0, -24)));
}
