#include "kernels/conv_transpose.hpp"

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/oracle_conv_transpose.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

/// 3 samples of 4 x 5 x 7 positions in 6 channels to 4 channels, in 2 groups.
oracle::ConvTranspose definition() {
  return {.batch = 3,
          .in_channels = 6,
          .out_channels = 4,
          .groups = 2,
          .in = {4, 5, 7},
          .kernel = {2, 3, 5},
          .stride = {1, 3, 2},
          .padding = {1, 0, 2},
          .output_padding = {0, 2, 1},
          .dilation = {2, 1, 1}};
}

ConvParams params_of(const oracle::ConvTranspose& p) {
  ConvParams q{.batch = p.batch, .in_channels = p.out_channels, .out_channels = p.in_channels, .groups = p.groups};
  for (int d = 0; d < 3; ++d) {
    q.in[d] = p.out(d);
    q.out[d] = p.in[d];
    q.kernel[d] = p.kernel[d];
    q.stride[d] = p.stride[d];
    q.padding[d] = p.padding[d];
    q.dilation[d] = p.dilation[d];
  }
  return q;
}

template <class T>
struct TransposedProblem {
  oracle::ConvTranspose p = definition();
  std::vector<T> x = numbers<T>(std::int64_t(p.x_size()), 1), w = numbers<T>(std::int64_t(p.w_size()), 2),
                 b = numbers<T>(p.out_channels, 3), dy = numbers<T>(std::int64_t(p.y_size()), 4);

  struct Result {
    std::vector<T> y, dx, dw, db;
  };

  /// Everything the kernels compute, into gradients of `before`.
  Result run(bool add, T before) const {
    Result r{std::vector<T>(dy.size(), T(NAN)), std::vector<T>(x.size(), before), std::vector<T>(w.size(), before),
             std::vector<T>(b.size(), before)};
    conv_transpose_forward(params_of(p), x.data(), w.data(), b.data(), r.y.data());
    conv_transpose_backward_input(params_of(p), dy.data(), w.data(), r.dx.data(), add);
    conv_transpose_backward_weight(params_of(p), dy.data(), x.data(), r.dw.data(), add);
    conv_transpose_backward_bias(params_of(p), dy.data(), r.db.data(), add);
    return r;
  }
};

std::vector<double> doubles(const auto& values) { return {values.begin(), values.end()}; }

}  // namespace

TEMPLATE_TEST_CASE("a transposed convolution agrees with its definition and leaves nothing of what was there", "",
                   float, double) {
  const TransposedProblem<TestType> problem;
  const auto& p = problem.p;
  const auto r = problem.run(false, TestType(NAN));
  const auto g = p.backward(doubles(problem.x), doubles(problem.w), doubles(problem.dy));
  const double bound = tolerance<TestType>();
  CHECK(relative_error(r.y, p.forward(doubles(problem.x), doubles(problem.w), doubles(problem.b))) < bound);
  CHECK(relative_error(r.dx, g.dx) < bound);
  CHECK(relative_error(r.dw, g.dw) < bound);
  CHECK(relative_error(r.db, g.db) < bound);
}

TEST_CASE("the gradients of a transposed convolution add to their buffers when asked") {
  const TransposedProblem<double> problem;
  const auto fresh = problem.run(false, NAN), added = problem.run(true, 2);
  const auto check = [](const std::vector<double>& sum, std::vector<double> part) {
    for (double& v : part) v += 2;
    CHECK(relative_error(sum, part) < 1e-14);
  };
  check(added.dx, fresh.dx);
  check(added.dw, fresh.dw);
  check(added.db, fresh.db);
}

TEST_CASE("a transposed convolution without bias is one with a bias of zero") {
  TransposedProblem<float> problem;
  problem.b.assign(4, 0.0f);
  std::vector<float> y(problem.dy.size(), NAN);
  conv_transpose_forward<float>(params_of(problem.p), problem.x.data(), problem.w.data(), nullptr, y.data());
  CHECK(y == problem.run(false, NAN).y);
}

TEMPLATE_TEST_CASE("a transposed convolution has the same bits for one, two and three threads", "", float, double) {
  const TransposedProblem<TestType> problem;
  CHECK(same_on_any_threads([&] { return problem.run(false, 0).y; }));
  CHECK(same_on_any_threads([&] { return problem.run(false, 0).dx; }));
  CHECK(same_on_any_threads([&] { return problem.run(false, 0).dw; }));
  CHECK(same_on_any_threads([&] { return problem.run(false, 0).db; }));
}
