#include "kernels/conv.hpp"

#include <sys/mman.h>

#include "support/conv_problem.hpp"

using namespace taper::kernels;
using namespace taper::test;

namespace {

/// Output for one input channel and whole-number x, and the gradient to x for dy = 1, 2, 3, ...
struct Golden {
  std::vector<double> y, dx;
};

Golden golden(const ConvParams& p, const std::vector<double>& w, const std::vector<double>& b) {
  std::vector<double> x(size(p.batch * p.in_channels * volume(p.in))),
      dy(size(p.batch * p.out_channels * volume(p.out)));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i + 1);
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = double(i + 1);
  Golden g{std::vector<double>(dy.size(), NAN), std::vector<double>(x.size(), NAN)};
  conv_forward(p, x.data(), w.data(), b.empty() ? nullptr : b.data(), g.y.data());
  conv_backward_input(p, dy.data(), w.data(), g.dx.data(), false);
  return g;
}

}  // namespace

TEST_CASE("a convolution gives the values PyTorch gives") {
  const std::vector<double> w{1, -1, 2, .5, 0, 1}, b{.1, -.2};
  auto g = golden(params(1, 1, 2, 5, 3, 2, 1), w, b);
  CHECK(relative_error(g.y, {3.1, 7.1, -.9, 1.8, 4.8, 1.8}) < 1e-15);
  CHECK(g.dx == std::vector<double>{-1, 10.5, -2, 15, -3});
  g = golden(params(1, 1, 2, 7, 3, 1, 0, 2), w, b);
  CHECK(relative_error(g.y, {8.1, 10.1, 12.1, 5.3, 6.8, 8.3}) < 1e-15);
  CHECK(g.dx == std::vector<double>{3, 4.5, 5, -2, 3, 9, 12});
  g = golden(params(1, 2, 2, 4, 2, 1, 0, 1, 2), {1, 2, 3, 4}, {});
  CHECK(g.y == std::vector<double>{5, 8, 11, 39, 46, 53});
  CHECK(g.dx == std::vector<double>{1, 4, 7, 6, 12, 31, 38, 24});
}

TEST_CASE("asymmetric padding is the left padding and the output length") {
  // 'same': the odd zero goes to the right.
  auto g = golden(line(1, 1, 1, 3, 3, 2, 1, 0, 1, 1), {1, 1}, {});
  CHECK(g.y == std::vector<double>{3, 5, 3});
  CHECK(g.dx == std::vector<double>{1, 3, 5});
  g = golden(line(1, 1, 1, 3, 3, 2, 1, 1, 3, 1), {1, 1}, {});
  CHECK(g.y == std::vector<double>{3, 1, 2});
  CHECK(g.dx == std::vector<double>{2, 3, 1});
  g = golden(line(1, 1, 1, 3, 3, 3, 1, 2, 2, 1), {1, 10, 100}, {});
  CHECK(g.y == std::vector<double>{310, 20, 31});
  CHECK(g.dx == std::vector<double>{13, 20, 130});
}

TEMPLATE_TEST_CASE("a convolution agrees with its definition for every small geometry", "", float, double) {
  for (std::int64_t length = 1; length <= 7; ++length)
    for (std::int64_t kernel = 1; kernel <= 4; ++kernel)
      for (std::int64_t stride = 1; stride <= 3; ++stride)
        for (std::int64_t pad = 0; pad <= 2; ++pad)
          for (std::int64_t dilation = 1; dilation <= 3; ++dilation)
            for (std::int64_t groups = 1; groups <= 3; ++groups) {
              if (length + 2 * pad < dilation * (kernel - 1) + 1) continue;
              const auto p = params(2, 2 * groups, 3 * groups, length, kernel, stride, pad, dilation, groups);
              const double error = error_of<TestType>(p);
              CAPTURE(length, kernel, stride, pad, dilation, groups);
              if (error >= tolerance<TestType>()) CHECK(error < tolerance<TestType>());
            }
}

TEMPLATE_TEST_CASE("a convolution agrees with its definition across the blocks it is cut into", "", float, double) {
  const ConvParams problems[] = {
      params(3, 3, 32, 10, 3, 1, 1),       params(1, 101, 7, 139, 3, 1, 1), params(5, 7, 103, 53, 5, 1, 2),
      params(2, 37, 13, 61, 11, 1, 5, 2),  params(2, 5, 97, 263, 3, 2, 1),  params(3, 97, 5, 29, 7, 3, 4),
      params(2, 6, 9, 137, 4, 1, 3, 2, 3), params(17, 2, 3, 131, 2, 5, 0),  params(131, 3, 2, 1, 1),
      params(1, 13, 11, 2, 9, 1, 17, 4),   params(7, 31, 1, 19, 1),         params(2, 23, 23, 41, 3, 1, 1, 1, 23),
      params(3, 2, 5, 3, 2, 7, 9),         params(1, 1, 1, 2053, 3, 1, 1)};
  for (const auto& p : problems) {
    CAPTURE(p.batch, p.in_channels, p.out_channels, p.in[2], p.kernel[2], p.stride[2], p.padding[2], p.dilation[2],
            p.groups);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("a convolution over two or three dimensions agrees with its definition", "", float, double) {
  const ConvParams problems[] = {{2, 3, 5, 1, {1, 7, 11}, {1, 5, 4}, {1, 3, 5}, {1, 1, 2}, {0, 0, 0}, {1, 1, 1}},
                                 {2, 6, 4, 2, {1, 13, 7}, {1, 5, 9}, {1, 2, 3}, {1, 3, 1}, {0, 1, 2}, {1, 2, 1}},
                                 {1, 2, 3, 1, {5, 7, 11}, {3, 7, 4}, {2, 3, 5}, {2, 1, 3}, {1, 1, 2}, {1, 1, 1}},
                                 {3, 4, 2, 2, {7, 5, 3}, {4, 9, 2}, {3, 1, 2}, {1, 1, 2}, {0, 2, 1}, {1, 3, 2}},
                                 {2, 3, 3, 3, {1, 17, 23}, {1, 17, 23}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
                                 {2, 13, 7, 1, {1, 19, 17}, {1, 19, 17}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
                                 {2, 3, 5, 1, {1, 19, 17}, {1, 17, 17}, {1, 5, 1}, {1, 1, 1}, {0, 1, 0}, {1, 1, 1}},
                                 {2, 3, 5, 1, {6, 5, 7}, {8, 5, 7}, {3, 1, 1}, {1, 1, 1}, {2, 0, 0}, {1, 1, 1}},
                                 {2, 3, 5, 1, {7, 5, 1}, {4, 5, 1}, {3, 1, 1}, {2, 1, 1}, {1, 0, 0}, {1, 1, 1}},
                                 {1, 31, 37, 1, {3, 9, 11}, {3, 9, 11}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}};
  for (const auto& p : problems) {
    CAPTURE(p.in[0], p.in[1], p.in[2], p.kernel[0], p.kernel[1], p.kernel[2]);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
  }
}

TEST_CASE("a float32 convolution of positive numbers is right to four units in the last place") {
  // Sums of hundreds to thousands of terms that do not cancel, in the output and in all gradients.
  for (const auto& p : {params(3, 43, 47, 251, 7, 1, 3), params(2, 101, 3, 509, 11, 2, 5), params(5, 1, 2, 1021, 3)}) {
    CAPTURE(p.in_channels, p.out_channels);
    Problem<float> problem(p);
    for (auto* v : {&problem.x, &problem.w, &problem.b, &problem.dy})
      for (float& value : *v) value = std::abs(value);
    const Result<float> r = problem.run(p);
    const auto y = taper::oracle::conv_forward(definition(p), problem.x, problem.w, problem.b);
    const auto g = taper::oracle::conv_backward(definition(p), problem.x, problem.w, problem.dy);
    CHECK(relative_error(r.y, y) < tolerance<float>());
    CHECK(relative_error(r.dx, g.dx) < tolerance<float>());
    CHECK(relative_error(r.dw, g.dw) < tolerance<float>());
    CHECK(relative_error(r.db, g.db) < tolerance<float>());
  }
}

TEMPLATE_TEST_CASE("a convolution of a signal that reaches too far for slabs agrees with its definition", "", float,
                   double) {
  // A stride, or taps, so far apart that what a few positions need is longer than the working memory.
  for (const auto& p : {params(3, 5, 7, 331, 3, 67, 1), params(2, 4, 38, 2503, 3, 1, 1100, 1201, 2)}) {
    CAPTURE(p.stride[2], p.dilation[2]);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
    const Problem<TestType> problem(p);
    auto added = problem.run(p, true, TestType(2)).dw;
    for (TestType& v : added) v -= 2;
    const auto fresh = problem.run(p).dw;
    CHECK(relative_error(added, {fresh.begin(), fresh.end()}) < 2 * tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("a convolution of long lines and many channels into few agrees with its definition", "", float,
                   double) {
  // So many channels of the longest part of a line do not fit the working memory.
  for (const auto& p : {params(1, 96, 24, 1568, 1), params(1, 149, 7, 1031, 1), params(1, 67, 5, 1100, 3, 1, 1)}) {
    CAPTURE(p.in_channels, p.kernel[2]);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("a convolution of few terms along short lines agrees with its definition", "", float, double) {
  // Lines of one vector and of two, rows that fill no tile, groups, more positions than one chain and one float32 sum.
  for (const auto& p : {params(13, 3, 32, 10, 3, 1, 1), params(7, 2, 5, 29, 7, 1, 2, 2), params(211, 5, 37, 23, 2),
                        params(11, 6, 51, 17, 3, 1, 4, 1, 3), params(3, 31, 2, 16, 2, 1, 1), params(401, 1, 3, 13, 3),
                        params(29, 7, 19, 1, 9, 1, 4)}) {
    CAPTURE(p.batch, p.in_channels, p.out_channels, p.in[2]);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
    const Problem<TestType> problem(p);
    auto added = problem.run(p, true, TestType(2));
    const auto fresh = problem.run(p);
    for (auto* v : {&added.dw, &added.db})
      for (TestType& value : *v) value -= 2;
    CHECK(relative_error(added.dw, {fresh.dw.begin(), fresh.dw.end()}) < 2 * tolerance<TestType>());
    CHECK(relative_error(added.db, {fresh.db.begin(), fresh.db.end()}) < 2 * tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("a convolution over planes whose lines fill no vector agrees with its definition", "", float,
                   double) {
  const auto plane = [](std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t height, std::int64_t width,
                        std::int64_t tall, std::int64_t wide, std::int64_t groups = 1, std::int64_t dilation = 1,
                        std::int64_t pad = 0) {
    ConvParams p{.batch = batch, .in_channels = in, .out_channels = out, .groups = groups};
    p.in[1] = height, p.in[2] = width;
    p.kernel[1] = tall, p.kernel[2] = wide;
    p.dilation[1] = p.dilation[2] = dilation;
    p.padding[1] = pad;
    p.out[1] = height + 2 * pad - dilation * (tall - 1), p.out[2] = width - dilation * (wide - 1);
    return p;
  };
  for (const auto& p : {plane(3, 6, 16, 14, 13, 5, 4), plane(2, 5, 31, 11, 10, 3, 5), plane(5, 8, 62, 9, 7, 3, 2, 2),
                        plane(2, 3, 13, 16, 15, 2, 3, 1, 3), plane(1, 7, 47, 13, 16, 5, 1, 1, 1, 1)}) {
    CAPTURE(p.in_channels, p.out_channels, p.in[1], p.in[2]);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
    const Problem<TestType> problem(p);
    auto added = problem.run(p, true, TestType(2)).dx;
    for (TestType& v : added) v -= 2;
    const auto fresh = problem.run(p).dx;
    CHECK(relative_error(added, {fresh.begin(), fresh.end()}) < 2 * tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("the input gradients of strided convolutions agree with their definition", "", float, double) {
  // Of few channels, whose results of all remainders by the stride are summed from one copy of the gradient.
  const ConvParams problems[] = {{2, 1, 16, 1, {1, 28, 28}, {1, 14, 14}, {1, 4, 4}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
                                 {2, 1, 32, 1, {1, 128, 128}, {1, 64, 64}, {1, 4, 4}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
                                 {1, 2, 64, 1, {1, 60, 60}, {1, 30, 30}, {1, 4, 4}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
                                 {2, 2, 24, 1, {1, 26, 14}, {1, 13, 14}, {1, 3, 3}, {1, 2, 1}, {0, 1, 1}, {1, 1, 1}},
                                 {2, 2, 24, 1, {1, 26, 14}, {1, 13, 13}, {1, 3, 2}, {1, 2, 1}, {0, 1, 0}, {1, 1, 1}},
                                 {8, 1, 32, 1, {1, 1, 1024}, {1, 1, 256}, {1, 1, 8}, {1, 1, 4}, {0, 0, 2}, {1, 1, 1}},
                                 {1, 2, 8, 1, {6, 12, 28}, {3, 6, 14}, {2, 4, 4}, {2, 2, 2}, {0, 1, 1}, {1, 1, 1}},
                                 {1, 6, 20, 2, {1, 21, 36}, {1, 7, 18}, {1, 3, 5}, {1, 3, 2}, {0, 0, 2}, {1, 1, 1}}};
  for (const auto& p : problems) {
    CAPTURE(p.in_channels, p.in[1], p.in[2], p.kernel[1], p.kernel[2], p.stride[1]);
    CHECK(error_of<TestType>(p) < tolerance<TestType>());
  }
}

TEMPLATE_TEST_CASE("the gradients of weight and bias are computed in one pass, or one of them alone", "", float,
                   double) {
  for (const auto& p : {params(13, 3, 32, 10, 3, 1, 1), params(3, 5, 7, 61, 3, 2)}) {
    const Problem<TestType> problem(p);
    const auto g = taper::oracle::conv_backward(definition(p), problem.x, problem.w, problem.dy);
    const TestType *x = problem.x.data(), *dy = problem.dy.data();
    TestType* const none = nullptr;
    for (const bool through_one : {false, true}) {
      std::vector<TestType> dw(g.dw.size(), NAN), db(g.db.size(), NAN);
      if (through_one) {
        conv_backward_parameters(p, dy, x, dw.data(), false, none, false);
        conv_backward_parameters(p, dy, x, none, false, db.data(), false);
      } else {
        conv_backward_weight(p, dy, x, dw.data(), false);
        conv_backward_bias(p, dy, db.data(), false);
      }
      CHECK(relative_error(dw, g.dw) < tolerance<TestType>());
      CHECK(relative_error(db, g.db) < tolerance<TestType>());
    }
  }
}

TEST_CASE("a convolution whose kernel lies in the padding gives the bias and zero gradients") {
  // One position, read by none of the outputs: both taps of both windows are padding.
  const ConvParams p = line(1, 1, 1, 1, 2, 2, 3, 5, 1, 1);
  const std::vector<float> x{7}, w{1, 2}, b{3}, dy{1, 1};
  std::vector<float> y(2, NAN), dx(1, NAN), dw(2, NAN);
  conv_forward(p, x.data(), w.data(), b.data(), y.data());
  conv_backward_input(p, dy.data(), w.data(), dx.data(), false);
  conv_backward_weight(p, dy.data(), x.data(), dw.data(), false);
  CHECK(y == std::vector<float>{3, 3});
  CHECK(dx == std::vector<float>{0});
  CHECK(dw == std::vector<float>{0, 0});
}

TEST_CASE("a convolution of an empty batch has zero weight gradients") {
  const auto p = params(0, 2, 3, 5, 2);
  std::vector<float> dw(12, NAN), db(3, NAN);
  conv_forward<float>(p, nullptr, dw.data(), db.data(), nullptr);
  conv_backward_input<float>(p, nullptr, dw.data(), nullptr, false);
  conv_backward_weight<float>(p, nullptr, nullptr, dw.data(), false);
  conv_backward_bias<float>(p, nullptr, db.data(), false);
  CHECK(dw == std::vector<float>(12, 0.0f));
  CHECK(db == std::vector<float>(3, 0.0f));
  dw.assign(12, 5.0f);
  conv_backward_weight<float>(p, nullptr, nullptr, dw.data(), true);
  CHECK(dw == std::vector<float>(12, 5.0f));
}

TEST_CASE("a convolution with channels along the vectors agrees with its definition") {
  // Several samples at a time, several bands of channels, terms in several steps and more than one float32 sum; lines
  // cut into parts, planes into lines, slices; strides, dilation, groups, padding on one side alone and none.
  for (const auto& p :
       {params(23, 32, 32, 10, 3, 1, 1), params(3, 33, 101, 50, 3, 1, 1), params(2, 200, 40, 7, 3, 1, 1),
        params(2, 35, 64, 301, 2), line(3, 40, 64, 21, 21, 4, 1, 3, 1, 1), params(3, 64, 96, 45, 3, 2, 1, 1, 2),
        planes(3, 35, 64, 1, {1, 7, 7}, {1, 3, 3}, 1, 1, 1), planes(2, 33, 48, 1, {1, 9, 28}, {1, 3, 3}, 1, 0, 1),
        planes(2, 33, 48, 1, {1, 19, 29}, {1, 3, 3}, 2, 2, 2), planes(1, 9, 64, 1, {1, 30, 30}, {1, 5, 5}, 1, 2, 1),
        planes(2, 17, 32, 1, {3, 5, 7}, {2, 3, 3}, 1, 1, 1), planes(2, 17, 32, 1, {4, 5, 7}, {1, 3, 2}, 1, 0, 1),
        planes(1, 512, 32, 1, {1, 3, 7}, {1, 3, 3}, 1, 1, 1), planes(3, 64, 64, 2, {1, 6, 6}, {1, 3, 3}, 1, 1, 1),
        planes(11, 34, 64, 2, {1, 6, 6}, {1, 3, 3}, 1, 1, 1), planes(5, 16, 2, 1, {1, 5, 5}, {1, 3, 3}, 1, 1, 1),
        planes(1, 2, 3, 1, {1, 4, 4}, {1, 3, 3}, 1, 1, 1),
        // Gradients of several sums whose results lie between each other, or that leave positions out.
        planes(2, 33, 40, 1, {3, 6, 9}, {3, 3, 3}, 2, 1, 1), planes(3, 70, 24, 2, {1, 15, 14}, {1, 4, 4}, 2, 1, 1),
        planes(5, 33, 40, 1, {3, 6, 9}, {3, 3, 3}, 2, 1, 1), planes(2, 64, 20, 1, {1, 32, 32}, {1, 3, 3}, 2, 1, 1),
        planes(2, 20, 17, 1, {1, 13, 17}, {1, 5, 4}, 3, 2, 2), planes(1, 64, 600, 1, {1, 5, 5}, {1, 3, 3}, 2, 1, 1),
        params(5, 37, 41, 29, 1, 2), params(9, 48, 33, 23, 2, 5), params(2, 40, 33, 800, 4, 2, 1),
        // Wide kernels, positions that lie in the padding, slices of several samples, weights packed step by step.
        planes(3, 9, 32, 1, {1, 14, 14}, {1, 9, 9}, 1, 4, 1), params(4, 20, 32, 11, 9, 1, 4),
        params(3, 33, 33, 40, 15, 1, 7), planes(2, 40, 32, 1, {1, 6, 7}, {1, 3, 3}, 1, 5, 1),
        planes(6, 20, 32, 1, {4, 4, 5}, {3, 3, 3}, 1, 1, 1), planes(1, 1000, 64, 1, {1, 3, 5}, {1, 3, 3}, 1, 1, 1),
        planes(4, 80, 64, 1, {1, 16, 32}, {1, 3, 3}, 1, 1, 1)})
    check_sums(p);
}

TEST_CASE("a convolution of few products agrees with its definition") {
  // Lines of one vector and more, several rows at a time and what is left of them, samples, groups, slices; strides of
  // the signal and of the result, among which positions stay that no tap reaches, and taps that reach no line.
  for (const auto& p :
       {planes(1, 2, 2, 1, {1, 4, 4}, {1, 3, 3}, 1, 1, 1), planes(2, 1, 5, 1, {1, 3, 5}, {1, 2, 3}, 1, 1, 1),
        planes(1, 1, 2, 1, {1, 2, 37}, {1, 1, 3}, 1, 1, 1), planes(1, 4, 6, 2, {1, 3, 4}, {1, 2, 2}, 1, 0, 1),
        planes(2, 1, 1, 1, {3, 4, 5}, {2, 2, 2}, 1, 1, 1), planes(1, 1, 3, 1, {1, 7, 9}, {1, 3, 3}, 2, 1, 1),
        planes(1, 2, 1, 1, {1, 9, 8}, {1, 2, 2}, 3, 0, 1), planes(1, 1, 2, 1, {1, 3, 3}, {1, 3, 3}, 1, 4, 2),
        planes(1, 1, 2, 1, {3, 5, 7}, {2, 1, 2}, 2, 1, 1), params(1, 2, 3, 21, 4, 2, 1), params(2, 2, 1, 11, 2, 5),
        params(3, 3, 3, 7, 1, 1, 0, 1, 3)})
    check_sums(p);
}

TEST_CASE("the gradients of a convolution add to their buffers when asked") {
  for (const std::int64_t stride : {1, 2}) {
    const auto p = params(3, 5, 7, 23, 3, stride, 1);
    const Problem<double> problem(p);
    const auto fresh = problem.run(p), added = problem.run(p, true, 2.0);
    const auto check = [](const std::vector<double>& sum, std::vector<double> part) {
      for (double& v : part) v += 2;
      CHECK(relative_error(sum, part) < 1e-14);
    };
    check(added.dx, fresh.dx);
    check(added.dw, fresh.dw);
    check(added.db, fresh.db);
  }
}

TEMPLATE_TEST_CASE("a weight gradient that is summed in slices agrees with its definition and adds when asked", "",
                   float, double) {
  // Few channels and many positions: along one line, over planes, with the positions along the vectors, and read where
  // the signal lies, also with lines of a page. Of parts of a line as long as there is room for.
  for (const auto& p : {params(11, 19, 23, 1031, 3, 1, 1), params(13, 2, 5, 4099, 17, 1, 8), params(5, 31, 37, 1031, 1),
                        params(3, 17, 29, 1024, 1), params(211, 17, 19, 13, 1), params(5, 9, 61, 919, 1),
                        params(3, 7, 75, 917, 3, 1, 1),
                        ConvParams{7, 17, 29, 1, {1, 31, 37}, {1, 31, 37}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}}}) {
    CAPTURE(p.in_channels, p.in[1]);
    const Problem<TestType> problem(p);
    auto expected = taper::oracle::conv_backward(definition(p), problem.x, problem.w, problem.dy).dw;
    CHECK(relative_error(problem.run(p).dw, expected) < tolerance<TestType>());
    for (double& v : expected) v += 2;
    CHECK(relative_error(problem.run(p, true, TestType(2)).dw, expected) < tolerance<TestType>());
    CHECK(same_on_any_threads([&] { return problem.run(p).dw; }));
  }
}

TEST_CASE("a convolution without bias is one with a bias of zero") {
  const auto p = params(2, 3, 5, 11, 3, 1, 1);
  Problem<float> problem(p);
  problem.b.assign(5, 0.0f);
  std::vector<float> y(problem.dy.size(), NAN);
  conv_forward(p, problem.x.data(), problem.w.data(), static_cast<const float*>(nullptr), y.data());
  CHECK(y == problem.run(p).y);
}

TEMPLATE_TEST_CASE("a convolution has the same bits for one, two and three threads", "", float, double) {
  // The last are of small planes, of which a thread takes several at a time, some of fewer samples than threads;
  // weights summed in slices, and for half of the channels at a time.
  for (const auto& p :
       {params(7, 31, 37, 113, 5, 1, 2), params(5, 33, 39, 127, 3, 2, 1, 2, 3),
        planes(5, 16, 24, 1, {1, 16, 16}, {1, 3, 3}, 1, 1, 1), planes(1, 33, 40, 1, {1, 15, 14}, {1, 3, 3}, 1, 1, 1),
        planes(2, 37, 41, 1, {1, 14, 15}, {1, 4, 4}, 2, 1, 1), planes(11, 35, 32, 1, {1, 4, 4}, {1, 3, 3}, 1, 1, 1)}) {
    CAPTURE(p.groups, p.in[1], p.in[2]);
    const Problem<TestType> problem(p);
    CHECK(same_on_any_threads([&] { return problem.run(p).y; }));
    CHECK(same_on_any_threads([&] { return problem.run(p).dx; }));
    CHECK(same_on_any_threads([&] { return problem.run(p).dw; }));
    CHECK(same_on_any_threads([&] { return problem.run(p).db; }));
  }
}

TEST_CASE("mlx 3138, 3248: a signal of more than 2^32 elements is read where it lies") {
  // Pages that nobody writes take no memory, and few are read.
  const std::int64_t length = (std::int64_t{1} << 32) + 4099, stride = length / 3 + 1;
  const std::size_t bytes = size(length) * 2 * sizeof(float);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;  // the system does not lend what it does not have
  float* const x = static_cast<float*>(memory);
  const auto p = params(1, 2, 1, length, 2, stride, 0, 1);
  REQUIRE(p.out[2] == 3);
  std::vector<float> expected(3, 0.0f), dw(4, NAN);
  const std::vector<float> w{1, 10, 100, 1000}, dy{2, 3, 5};
  std::vector<double> expected_dw(4, 0.0);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t channel = 0; channel < 2; ++channel)
      for (std::int64_t t = 0; t < 2; ++t) {
        const float value = float(1 + i + 3 * t + 7 * channel);
        x[channel * length + i * stride + t] = value;
        expected[size(i)] += w[size(channel * 2 + t)] * value;
        expected_dw[size(channel * 2 + t)] += dy[size(i)] * value;
      }
  std::vector<float> y(3, NAN);
  conv_forward(p, x, w.data(), static_cast<const float*>(nullptr), y.data());
  conv_backward_weight(p, dy.data(), x, dw.data(), false);
  CHECK(y == expected);
  CHECK(relative_error(dw, expected_dw) == 0);
  munmap(memory, bytes);
}
