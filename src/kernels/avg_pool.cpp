#include "kernels/avg_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "kernels/avg_pool_backward.hpp"
#include "kernels/avg_pool_forward.hpp"
#include "kernels/dilated_avg_pool.hpp"

namespace taper::kernels {

namespace {

using average::kShort;
using average::Pool;

/// Windows of one element each, all of them.
bool is_pointwise(const PoolAxis& a) {
  return !a.is_adaptive && a.window.kernel == 1 && a.window.padding_left == 0 && a.in == a.out;
}
bool is_unit(const PoolAxis& a) { return a.in == 1 && is_pointwise(a); }

/// One window that is the whole axis.
bool is_whole(const PoolAxis& a) {
  return !a.is_adaptive && a.out == 1 && a.window.padding_left == 0 && a.window.kernel == a.in;
}

PoolAxis make_axis(std::int64_t in, std::int64_t out, Window1d window) {
  // A single window from the start on never reaches past the input, nor moves.
  if (out == 1 && window.padding_left == 0 && window.padding_right == 0)
    window.stride = window.kernel = std::min(window.kernel, in);
  return {in, out, window};
}

PoolAxis adaptive_axis(std::int64_t in, std::int64_t out) {
  return in % out == 0 ? PoolAxis{in, out, {in / out, in / out}} : PoolAxis{in, out, {}, true};
}

PoolAxis unit_axis() { return {1, 1}; }

/// `outer` with `n` contiguous elements in the place of each of its positions, if 64 bits hold that.
std::optional<PoolAxis> widened(const PoolAxis& outer, std::int64_t n) {
  if (outer.is_adaptive) return std::nullopt;
  const auto in = checked::mul(outer.in, n), kernel = checked::mul(outer.window.kernel, n);
  const auto stride = checked::mul(outer.window.stride, n), left = checked::mul(outer.window.padding_left, n),
             right = checked::mul(outer.window.padding_right, n);
  if (!in || !kernel || !stride || !left || !right) return std::nullopt;
  return make_axis(*in, outer.out, {*kernel, *stride, *left, *right});
}

/// The same pool with as few axes as it needs: axes whose one window is the whole axis join the one before,
/// so that a window over whole rows is one run; axes in front with windows of one element become planes.
Pool simplified(Pool p) {
  while (is_whole(p.w) && !(is_unit(p.h) && is_unit(p.d))) {
    const auto joined = widened(p.h, p.w.in);
    if (!joined) break;
    p.w = *joined;
    p.h = p.d;
    p.d = unit_axis();
  }
  if (is_pointwise(p.d)) {
    p.planes *= p.d.in;
    p.d = unit_axis();
    if (is_pointwise(p.h)) {
      p.planes *= p.h.in;
      p.h = unit_axis();
    }
  }
  return p;
}

Pool make_pool(std::int64_t planes, const PoolAxis (&axis)[3], bool count_include_pad, std::int64_t divisor_override) {
  Pool p = simplified({planes, axis[0], axis[1], axis[2], count_include_pad, 0});
  const auto d = p.d.uniform_count(count_include_pad), h = p.h.uniform_count(count_include_pad),
             w = p.w.uniform_count(count_include_pad);
  if (divisor_override != 0)
    p.divisor = static_cast<double>(divisor_override);
  else if (d && h && w)
    p.divisor = static_cast<double>(*d) * static_cast<double>(*h) * static_cast<double>(*w);
  return p;
}

Pool make_pool(const AvgPoolParams& q) {
  PoolAxis axis[3];
  for (int i = 0; i < 3; ++i)
    axis[i] = make_axis(q.in[i], q.out[i], {q.kernel[i], q.stride[i], q.padding_left[i], q.padding_right[i]});
  return make_pool(q.planes, axis, q.count_include_pad, q.divisor_override);
}

Pool make_pool(const AdaptiveAvgPoolParams& q) {
  PoolAxis axis[3];
  for (int i = 0; i < 3; ++i) axis[i] = adaptive_axis(q.in[i], q.out[i]);
  return make_pool(q.planes, axis, false, 0);
}

/// Whether the windows cut each plane into runs of memory, long enough to be taken one by one.
bool is_runs(const Pool& p) {
  return is_unit(p.d) && is_unit(p.h) && p.w.is_tiled() && (p.w.window.kernel > kShort || p.w.out == 1);
}

/// A kernel of one element has nothing between its elements.
bool is_dilated(const AvgPoolParams& q) {
  for (int i = 0; i < 3; ++i)
    if (q.dilation[i] > 1 && q.kernel[i] > 1) return true;
  return false;
}

/// Whether the one window of each plane is the plane. Only where there are planes do 64 bits hold their size.
bool is_global(const AvgPoolParams& q) {
  if (q.planes <= 0) return false;
  for (int i = 0; i < 3; ++i)
    if (q.out[i] != 1 || q.kernel[i] != q.in[i] || q.padding_left[i] != 0 || q.padding_right[i] != 0) return false;
  return true;
}

std::int64_t plane_size(const AvgPoolParams& q) { return q.in[0] * q.in[1] * q.in[2]; }

/// What a global pool divides by.
double global_divisor(const AvgPoolParams& q) {
  return static_cast<double>(q.divisor_override != 0 ? q.divisor_override : plane_size(q));
}

bool is_empty(const AdaptiveAvgPoolParams& q) { return q.out[0] == 0 || q.out[1] == 0 || q.out[2] == 0; }

/// Whether float32 is exact enough for sums over windows of such extents, and for what divides them.
bool is_short(std::int64_t depth, std::int64_t height, std::int64_t width, double divisor) {
  constexpr double kExact = 1 << 24;
  return static_cast<double>(depth) * static_cast<double>(height) * static_cast<double>(width) <= kShort &&
         divisor <= kExact;
}

template <class T>
void forward(const Pool& p, const T* x, T* y) {
  if (is_runs(p)) return average::forward_runs(p.planes * p.w.out, p.w.window.kernel, p.divisor, x, y);
  if (sizeof(T) == sizeof(float) && is_short(p.d.longest(), p.h.longest(), p.w.longest(), p.divisor))
    average::Forward<T, T>(p, x, y).run();
  else
    average::Forward<double, T>(p, x, y).run();
}

template <class T>
void backward(const Pool& p, const T* dy, T* dx, bool add) {
  using average::is_side_by_side;
  if (is_runs(p)) return average::backward_runs(p.planes * p.w.out, p.w.window.kernel, p.divisor, dy, dx, add);
  if (sizeof(T) == sizeof(float) && is_side_by_side(p.w) &&
      is_short(p.d.most_windows(), p.h.most_windows(), p.w.most_windows(), p.divisor))
    average::Backward<T, T>(p, dy, dx, add).run();
  else
    average::Backward<double, T>(p, dy, dx, add).run();
}

}  // namespace

template <class T>
void avg_pool(const AvgPoolParams& params, const T* x, T* y) {
  if (is_dilated(params)) return dilated_avg_pool(params, x, y);
  if (is_global(params)) return average::forward_runs(params.planes, plane_size(params), global_divisor(params), x, y);
  forward(make_pool(params), x, y);
}

template <class T>
void avg_pool_backward(const AvgPoolParams& params, const T* dy, T* dx, bool add) {
  if (is_dilated(params)) return dilated_avg_pool_backward(params, dy, dx, add);
  if (is_global(params))
    return average::backward_runs(params.planes, plane_size(params), global_divisor(params), dy, dx, add);
  backward(make_pool(params), dy, dx, add);
}

template <class T>
void adaptive_avg_pool(const AdaptiveAvgPoolParams& params, const T* x, T* y) {
  if (!is_empty(params)) forward(make_pool(params), x, y);
}

template <class T>
void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams& params, const T* dy, T* dx, bool add) {
  if (!is_empty(params)) return backward(make_pool(params), dy, dx, add);
  if (!add) std::fill(dx, dx + params.planes * params.in[0] * params.in[1] * params.in[2], T(0));
}

template void avg_pool(const AvgPoolParams&, const float*, float*);
template void avg_pool_backward(const AvgPoolParams&, const float*, float*, bool);
template void adaptive_avg_pool(const AdaptiveAvgPoolParams&, const float*, float*);
template void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams&, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void avg_pool(const AvgPoolParams&, const double*, double*);
template void avg_pool_backward(const AvgPoolParams&, const double*, double*, bool);
template void adaptive_avg_pool(const AdaptiveAvgPoolParams&, const double*, double*);
template void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams&, const double*, double*, bool);
#endif

}  // namespace taper::kernels
