#include "support/conv_problem.hpp"
#include "support/guarded.hpp"

using namespace taper::kernels;
using namespace taper::test;

TEMPLATE_TEST_CASE("a convolution with one channel a group agrees with its definition", "", float, double) {
  const auto plane = [](std::int64_t batch, std::int64_t groups, std::int64_t height, std::int64_t width,
                        std::int64_t tall, std::int64_t wide, std::int64_t down, std::int64_t right) {
    return ConvParams{batch,
                      groups,
                      groups,
                      groups,
                      {1, height, width},
                      {1, height + 2 * down - tall + 1, width + 2 * right - wide + 1},
                      {1, tall, wide},
                      {1, 1, 1},
                      {0, down, right},
                      {1, 1, 1}};
  };
  // Lines of one vector and of many, planes of several bands, lines of several parts, kernels that lie in the padding,
  // results beside the padding only, more taps than one chain.
  for (const auto& p :
       {params(2, 5, 5, 67, 7, 1, 3, 1, 5), params(3, 2, 2, 12301, 5, 1, 2, 1, 2), params(2, 3, 3, 6151, 3, 1, 0, 1, 3),
        params(2, 3, 3, 131, 5, 1, 11, 3, 3), params(1, 2, 2, 5, 3, 1, 7, 2, 2), params(2, 3, 3, 89, 67, 1, 5, 1, 3),
        plane(2, 3, 31, 17, 3, 3, 1, 1), plane(1, 2, 211, 83, 5, 3, 2, 1), plane(2, 3, 7, 32, 3, 5, 0, 2),
        plane(1, 2, 3, 6143, 2, 3, 1, 1), plane(3, 2, 5, 3, 4, 2, 3, 1), plane(1, 3, 71, 13, 1, 13, 0, 0)}) {
    CAPTURE(p.groups, p.in[1], p.in[2], p.kernel[1], p.kernel[2], p.padding[1], p.padding[2]);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
    const Problem<TestType> problem(p);
    const auto fresh = problem.run(p);
    auto added = problem.run(p, true, TestType(2)).dx;
    for (TestType& v : added) v -= 2;
    CHECK(relative_error(added, {fresh.dx.begin(), fresh.dx.end()}) < 2 * tolerance<TestType>());
    CHECK(same_on_any_threads([&] { return problem.run(p).y; }));
    CHECK(same_on_any_threads([&] { return problem.run(p).dx; }));
  }
}

TEST_CASE("a convolution with one channel a group and steps agrees with its definition") {
  // Strides of two along lines, columns and both, and others; planes of several bands, lines of several parts and
  // longer than are split, of one vector and less; even and odd sizes, kernels smaller than the stride, dilation,
  // padding on which whole windows lie, samples and channels whose planes are copied together.
  const auto plane = [](std::int64_t batch, std::int64_t groups, std::int64_t height, std::int64_t width,
                        std::int64_t tall, std::int64_t wide, std::int64_t down, std::int64_t right, std::int64_t pad,
                        std::int64_t dilation = 1) {
    ConvParams p{.batch = batch, .in_channels = groups, .out_channels = groups, .groups = groups};
    p.in[1] = height, p.in[2] = width, p.kernel[1] = tall, p.kernel[2] = wide, p.stride[1] = down, p.stride[2] = right;
    for (int d = 1; d < 3; ++d) {
      p.padding[d] = pad, p.dilation[d] = dilation;
      p.out[d] = (p.in[d] + 2 * pad - dilation * (p.kernel[d] - 1) - 1) / p.stride[d] + 1;
    }
    return p;
  };
  for (const auto& p : {plane(3, 5, 28, 28, 3, 3, 2, 2, 1),
                        plane(2, 3, 14, 14, 3, 3, 2, 2, 1),
                        plane(2, 7, 7, 9, 5, 5, 2, 2, 2),
                        plane(1, 2, 111, 113, 3, 3, 2, 2, 1),
                        plane(1, 2, 9, 700, 3, 3, 2, 2, 1),
                        plane(2, 3, 13, 33, 2, 2, 2, 2, 0),
                        plane(2, 3, 13, 34, 3, 2, 2, 1, 1),
                        plane(2, 3, 12, 35, 2, 3, 1, 2, 1),
                        plane(2, 2, 17, 19, 3, 3, 3, 2, 1),
                        plane(2, 2, 17, 19, 4, 4, 3, 3, 2),
                        plane(2, 2, 17, 19, 1, 3, 2, 2, 0),
                        plane(1, 3, 15, 21, 3, 3, 2, 2, 2, 2),
                        plane(2, 3, 16, 23, 3, 3, 2, 2, 4, 3),
                        plane(2, 2, 3, 2, 3, 3, 2, 2, 5),
                        plane(1, 2, 61, 67, 7, 7, 2, 2, 3),
                        plane(1, 1, 30, 30, 9, 9, 2, 2, 4),
                        plane(5, 1, 1, 1, 2, 2, 2, 2, 1),
                        params(3, 5, 5, 257, 3, 2, 1, 1, 5),
                        params(2, 3, 3, 13001, 5, 2, 2, 1, 3),
                        params(2, 3, 3, 6200, 3, 3, 1, 1, 3),
                        params(7, 3, 3, 31, 4, 2, 1, 1, 3),
                        params(2, 3, 3, 90, 2, 2, 9, 3, 3),
                        planes(2, 3, 3, 3, {5, 9, 11}, {3, 3, 3}, 2, 1, 1),
                        planes(2, 3, 3, 3, {1, 9, 40}, {1, 3, 3}, 2, 1, 1)}) {
    check_sums(p);
    const Problem<float> problem(p);
    CHECK(same_on_any_threads([&] { return problem.run(p).dw; }));
  }
}

TEST_CASE("a strided convolution with one channel a group keeps what is no number to where it is read") {
  ConvParams p = planes(1, 2, 2, 2, {1, 9, 21}, {1, 3, 3}, 2, 1, 1);
  Problem<float> problem(p);
  problem.x[9 * 21 - 1] = NAN, problem.x[9 * 21] = -INFINITY;
  std::fill(problem.w.begin(), problem.w.end(), 1.0f);
  const auto y = problem.run(p).y;
  for (std::size_t i = 0; i < y.size(); ++i) {
    CAPTURE(i);
    if (i == 5 * 11 - 1)
      CHECK(std::isnan(y[i]));
    else if (i == 5 * 11)
      CHECK(y[i] == -INFINITY);
    else
      CHECK(std::isfinite(y[i]));
  }
}

namespace {

/// One channel a group of planes as wide as their results.
ConvParams same_plane(std::int64_t batch, std::int64_t groups, std::int64_t height, std::int64_t width,
                      std::int64_t tall, std::int64_t wide, std::int64_t down, std::int64_t dilation = 1) {
  ConvParams p{.batch = batch, .in_channels = groups, .out_channels = groups, .groups = groups};
  p.in[1] = height, p.in[2] = width, p.kernel[1] = tall, p.kernel[2] = wide;
  p.padding[1] = down, p.padding[2] = dilation * (wide - 1) / 2, p.dilation[1] = p.dilation[2] = dilation;
  for (int d = 1; d < 3; ++d) p.out[d] = p.in[d] + 2 * p.padding[d] - p.dilation[d] * (p.kernel[d] - 1);
  return p;
}

}  // namespace

TEST_CASE("a convolution with one channel a group of small planes agrees with its definition") {
  // One part of a vector, one vector, and all numbers of vectors that are summed together; planes taller than their
  // results and less tall; taps that reach no element; many samples, whose sums are joined; kernels of fewer taps than
  // are summed beside each other.
  for (const auto& p :
       {same_plane(5, 7, 1, 7, 1, 3, 0), same_plane(3, 11, 1, 13, 1, 5, 0), same_plane(67, 3, 1, 25, 1, 3, 0),
        same_plane(2, 5, 1, 31, 1, 5, 0), same_plane(3, 7, 1, 43, 1, 3, 0), same_plane(19, 2, 4, 4, 3, 3, 1),
        same_plane(11, 3, 5, 5, 3, 3, 1), same_plane(7, 5, 7, 7, 3, 3, 1), same_plane(5, 3, 8, 6, 5, 3, 2),
        same_plane(13, 2, 14, 13, 3, 3, 1), same_plane(5, 7, 7, 5, 3, 3, 0), same_plane(5, 7, 3, 5, 2, 3, 2),
        same_plane(5, 7, 6, 5, 3, 3, 2, 2), same_plane(5, 7, 2, 3, 3, 5, 3), same_plane(3, 5, 1, 2, 1, 7, 0),
        same_plane(31, 3, 9, 7, 2, 1, 0), same_plane(5, 3, 17, 19, 3, 3, 1), same_plane(3, 5, 1, 1, 5, 5, 2)}) {
    check_sums(p);
    const Problem<float> problem(p);
    auto added = problem.run(p, true, 2.0f).dw;
    for (float& v : added) v -= 2;
    const auto fresh = problem.run(p).dw;
    CHECK(relative_error(added, {fresh.begin(), fresh.end()}) < 2 * tolerance<float>());
    CHECK(same_on_any_threads([&] { return problem.run(p).dw; }));
  }
}

TEST_CASE("a convolution with one channel a group of small planes keeps what is no number in its plane") {
  for (const auto& p : {same_plane(4, 5, 1, 11, 1, 3, 0), same_plane(4, 5, 7, 5, 3, 3, 1)}) {
    Problem<float> problem(p);
    const std::size_t plane = size(volume(p.in)), channel = 2;
    const auto fresh = problem.run(p);
    // All of one plane of each side, in the last sample but one.
    const std::size_t first = (2 * 5 + channel) * plane;
    std::fill_n(problem.x.begin() + first, plane, NAN);
    std::fill_n(problem.dy.begin() + first, plane, INFINITY);
    const auto r = problem.run(p);
    for (std::size_t i = 0; i < r.y.size(); ++i) {
      CAPTURE(i);
      const bool is_other = i < first || i >= first + plane;
      CHECK(std::isfinite(r.y[i]) == is_other);
      CHECK(std::isfinite(r.dx[i]) == is_other);
    }
    const std::size_t taps = size(volume(p.kernel));
    for (std::size_t i = 0; i < r.dw.size(); ++i) CHECK(std::isfinite(r.dw[i]) == (i / taps != channel));
    CHECK(std::equal(r.y.begin(), r.y.begin() + std::ptrdiff_t(first), fresh.y.begin()));
  }
}

TEST_CASE("a convolution with one channel a group of small planes stays between the ends of its arrays") {
  for (const auto& p : {same_plane(3, 5, 1, 11, 1, 3, 0), same_plane(3, 5, 1, 2, 1, 7, 0),
                        same_plane(4, 5, 7, 5, 3, 3, 1), same_plane(2, 5, 8, 8, 3, 3, 1)})
    for (const bool at_end : {false, true}) {
      CAPTURE(p.in[1], p.in[2], at_end);
      const Problem<float> problem(p);
      auto expected = problem.run(p);
      // Alone and with that of the bias the gradient may be summed in another order.
      conv_backward_weight(p, problem.dy.data(), problem.x.data(), expected.dw.data(), false);
      const Guarded<float> x(problem.x, at_end), w(problem.w, at_end), b(problem.b, at_end), dy(problem.dy, at_end),
          y(expected.y, at_end), dx(expected.dx, at_end), dw(expected.dw, at_end);
      conv_forward(p, x.data, w.data, b.data, y.data);
      conv_backward_input(p, dy.data, w.data, dx.data, false);
      conv_backward_weight(p, dy.data, x.data, dw.data, false);
      CHECK(std::equal(expected.y.begin(), expected.y.end(), y.data));
      CHECK(std::equal(expected.dx.begin(), expected.dx.end(), dx.data));
      CHECK(std::equal(expected.dw.begin(), expected.dw.end(), dw.data));
    }
}
