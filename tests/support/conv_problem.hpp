#pragma once

#include <algorithm>

#include "kernels/conv.hpp"
#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/oracle_conv.hpp"

// Convolutions that the tests of the kernels share, and how they are checked.

namespace taper::test {

using kernels::ConvParams;

/// A convolution over one dimension.
inline ConvParams line(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t length,
                       std::int64_t out_length, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                       std::int64_t dilation, std::int64_t groups) {
  return {
      batch,           in, out, groups, {1, 1, length}, {1, 1, out_length}, {1, 1, kernel}, {1, 1, stride}, {0, 0, pad},
      {1, 1, dilation}};
}

inline ConvParams params(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t length,
                         std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0, std::int64_t dilation = 1,
                         std::int64_t groups = 1) {
  const std::int64_t out_length = (length + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  return line(batch, in, out, length, out_length, kernel, stride, pad, dilation, groups);
}

inline oracle::Conv definition(const ConvParams& p) {
  const auto three = [](const std::int64_t(&v)[3]) { return oracle::Conv::Extents{v[0], v[1], v[2]}; };
  return {p.batch,      p.in_channels,   p.out_channels,  p.groups,         three(p.in),
          three(p.out), three(p.kernel), three(p.stride), three(p.padding), three(p.dilation)};
}

inline std::int64_t volume(const std::int64_t (&v)[3]) { return v[0] * v[1] * v[2]; }

template <class T>
struct Result {
  std::vector<T> y, dx, dw, db;
};

template <class T>
struct Problem {
  std::vector<T> x, w, b, dy;

  explicit Problem(const ConvParams& p)
      : x(numbers<T>(size(p.batch * p.in_channels * volume(p.in)), 1)),
        w(numbers<T>(size(p.out_channels * (p.in_channels / p.groups) * volume(p.kernel)), 2)),
        b(numbers<T>(size(p.out_channels), 3)),
        dy(numbers<T>(size(p.batch * p.out_channels * volume(p.out)), 4)) {}

  /// Everything the kernels compute, into buffers of `before` (NaN: nothing of them may survive).
  Result<T> run(const ConvParams& p, bool add = false, T before = T(NAN)) const {
    Result<T> r{std::vector<T>(dy.size(), T(NAN)), std::vector<T>(x.size(), before), std::vector<T>(w.size(), before),
                std::vector<T>(b.size(), before)};
    kernels::conv_forward(p, x.data(), w.data(), b.data(), r.y.data());
    kernels::conv_backward_input(p, dy.data(), w.data(), r.dx.data(), add);
    kernels::conv_backward_parameters(p, dy.data(), x.data(), r.dw.data(), add, r.db.data(), add);
    return r;
  }
};

/// The largest error of the output and the three gradients.
template <class T>
double error_of(const ConvParams& p) {
  const Problem<T> problem(p);
  const Result<T> r = problem.run(p);
  const auto y = oracle::conv_forward(definition(p), problem.x, problem.w, problem.b);
  const auto g = oracle::conv_backward(definition(p), problem.x, problem.w, problem.dy);
  return std::max(
      {relative_error(r.y, y), relative_error(r.dx, g.dx), relative_error(r.dw, g.dw), relative_error(r.db, g.db)});
}

inline ConvParams planes(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t groups,
                         const std::int64_t (&size)[3], const std::int64_t (&kernel)[3], std::int64_t stride,
                         std::int64_t pad, std::int64_t dilation) {
  ConvParams p{.batch = batch, .in_channels = in, .out_channels = out, .groups = groups};
  for (int d = 0; d < 3; ++d) {
    p.in[d] = size[d], p.kernel[d] = kernel[d];
    if (kernel[d] > 1) p.stride[d] = stride, p.padding[d] = pad, p.dilation[d] = dilation;
    p.out[d] = (size[d] + 2 * p.padding[d] - p.dilation[d] * (kernel[d] - 1) - 1) / p.stride[d] + 1;
  }
  return p;
}

/// Both sums over the signal, adding too, without bias and on any number of threads.
inline void check_sums(const ConvParams& p) {
  CAPTURE(p.batch, p.in_channels, p.out_channels, p.in[1], p.in[2]);
  CHECK(error_of<float>(p) < tolerance<float>());
  const Problem<float> problem(p);
  auto added = problem.run(p, true, 2.0f).dx;
  for (float& v : added) v -= 2;
  const auto fresh = problem.run(p);
  CHECK(relative_error(added, {fresh.dx.begin(), fresh.dx.end()}) < 2 * tolerance<float>());
  CHECK(same_on_any_threads([&] { return problem.run(p).y; }));
  CHECK(same_on_any_threads([&] { return problem.run(p).dx; }));
  std::vector<float> y(fresh.y.size(), NAN), with_bias(fresh.y.size(), 1.0f);
  kernels::conv_forward(p, problem.x.data(), problem.w.data(), static_cast<const float*>(nullptr), y.data());
  kernels::conv_forward(p, problem.x.data(), problem.w.data(), static_cast<const float*>(nullptr), with_bias.data(),
                        true);
  for (float& v : y) v += 1;
  CHECK(relative_error(with_bias, {y.begin(), y.end()}) < 2 * tolerance<float>());
}

}  // namespace taper::test
