#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "base/window.hpp"
#include "kernels/avg_pool.hpp"
#include "support/draw.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/oracle_pool.hpp"

// The kernels of average pools, run on the pools of the oracle and compared with it.

namespace taper::test {

using oracle::AvgPool;

inline kernels::AvgPoolParams params_of(const AvgPool& pool) {
  kernels::AvgPoolParams p{{.planes = pool.planes}, pool.count_include_pad, pool.divisor_override};
  std::vector<Window1d> windows;
  for (std::size_t d = 0; d < pool.in.size(); ++d)
    windows.push_back({pool.kernel[d], pool.stride[d], pool.padding[d], pool.right(d), pool.gap(d), pool.ceil_mode});
  std::vector<std::int64_t> out(pool.in.size());
  output_size("avg_pool", windows, WindowKind::average_pool, pool.in, out);
  for (std::size_t d = 0, at = 3 - pool.in.size(); d < pool.in.size(); ++d, ++at) {
    p.in[at] = pool.in[d];
    p.out[at] = out[d];
    p.kernel[at] = pool.kernel[d];
    p.stride[at] = pool.stride[d];
    p.padding_left[at] = pool.padding[d];
    p.padding_right[at] = pool.right(d);
    p.dilation[at] = pool.gap(d);
  }
  return p;
}

inline kernels::AdaptivePoolParams adaptive_params_of(const AvgPool& pool) {
  kernels::AdaptivePoolParams p{.planes = pool.planes};
  for (std::size_t d = 0, at = 3 - pool.in.size(); d < pool.in.size(); ++d, ++at) {
    p.in[at] = pool.in[d];
    p.out[at] = pool.adaptive[d];
  }
  return p;
}

inline std::int64_t inputs(const AvgPool& pool) { return pool.planes * AvgPool::numel(pool.in); }
inline std::int64_t outputs(const AvgPool& pool) { return pool.planes * AvgPool::numel(pool.out()); }

template <class T>
void forward_to(const AvgPool& pool, const T* x, T* y) {
  if (pool.adaptive.empty())
    kernels::avg_pool(params_of(pool), x, y);
  else
    kernels::adaptive_avg_pool(adaptive_params_of(pool), x, y);
}

template <class T>
void backward_to(const AvgPool& pool, const T* dy, T* dx, bool add) {
  if (pool.adaptive.empty())
    kernels::avg_pool_backward(params_of(pool), dy, dx, add);
  else
    kernels::adaptive_avg_pool_backward(adaptive_params_of(pool), dy, dx, add);
}

template <class T>
std::vector<T> run_forward(const AvgPool& pool, const std::vector<T>& x) {
  std::vector<T> y(static_cast<std::size_t>(outputs(pool)), std::numeric_limits<T>::quiet_NaN());
  forward_to(pool, x.data(), y.data());
  return y;
}

template <class T>
void run_backward(const AvgPool& pool, const std::vector<T>& dy, std::vector<T>& dx, bool add) {
  backward_to(pool, dy.data(), dx.data(), add);
}

/// A gradient buffer that starts as NaN, so that a position left unwritten shows.
template <class T>
std::vector<T> run_backward(const AvgPool& pool, const std::vector<T>& dy) {
  std::vector<T> dx(static_cast<std::size_t>(inputs(pool)), std::numeric_limits<T>::quiet_NaN());
  run_backward(pool, dy, dx, false);
  return dx;
}

template <class T>
bool near(const std::vector<T>& got, const Values& expected) {
  const double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-13;
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(double(got[i]) - expected[i]) <= tolerance * (1 + std::abs(expected[i])))) return false;
  return true;
}

/// What the definition gives for `x` and `dy`.
struct AvgPoolResults {
  AvgPoolResults(const AvgPool& pool, const Values& x, const Values& dy)
      : y(pool.forward(x)), dx(pool.backward(dy)), held(pool.held()) {}

  Values y, dx;
  std::vector<char> held;
};

template <class T>
bool agrees(const AvgPool& pool, const Values& x, const Values& dy, const AvgPoolResults& expected) {
  if (!near(run_forward(pool, as<T>(x)), expected.y)) return false;
  const std::vector<T> written = run_backward(pool, as<T>(dy));
  if (!near(written, expected.dx)) return false;
  // Where no window is, the gradient is 0 exactly.
  for (std::size_t i = 0; i < written.size(); ++i)
    if (!expected.held[i % expected.held.size()] && written[i] != 0) return false;
  // Adding is the written gradient added once.
  std::vector<T> added(written.size()), sums(written.size());
  for (std::size_t i = 0; i < added.size(); ++i) {
    added[i] = T(double(i % 13) - 6);
    sums[i] = added[i] + written[i];
  }
  run_backward(pool, as<T>(dy), added, true);
  return same_bits(added, sums);
}

/// Forward and backward, writing and adding, float32 and float64, against the definition.
inline bool agrees(const AvgPool& pool, Draw& draw) {
  const Values x = draw.values(inputs(pool)), dy = draw.values(outputs(pool));
  const AvgPoolResults expected(pool, x, dy);
  return agrees<double>(pool, x, dy, expected) && agrees<float>(pool, x, dy, expected);
}

inline AvgPool fixed(std::vector<std::int64_t> in, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                     std::vector<std::int64_t> padding, bool ceil_mode = false, bool count_include_pad = true,
                     std::int64_t divisor_override = 0, std::int64_t planes = 1) {
  return {planes, in, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override, {}, {}, {}};
}

inline AvgPool adaptive(std::vector<std::int64_t> in, std::vector<std::int64_t> out, std::int64_t planes = 1) {
  return {.planes = planes, .in = in, .kernel = {}, .stride = {}, .padding = {}, .adaptive = out};
}

inline AvgPool dilated(std::vector<std::int64_t> in, std::vector<std::int64_t> kernel,
                       std::vector<std::int64_t> dilation, std::int64_t planes) {
  AvgPool pool = fixed(in, kernel, {1, 2}, {1, 2}, true, false, 0, planes);
  pool.dilation = dilation;
  return pool;
}

/// What belongs to one of some equal parts.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::int64_t part, std::int64_t parts) {
  const auto size = static_cast<std::ptrdiff_t>(all.size()) / parts;
  return std::vector<T>(all.begin() + part * size, all.begin() + (part + 1) * size);
}

/// 1, 2, 3, ...
inline Values rising(std::int64_t n) {
  Values v;
  for (std::int64_t i = 1; i <= n; ++i) v.push_back(double(i));
  return v;
}

}  // namespace taper::test
