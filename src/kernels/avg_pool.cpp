#include "kernels/avg_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "kernels/avg_pool_backward.hpp"
#include "kernels/avg_pool_forward.hpp"
#include "kernels/dilated_avg_pool.hpp"

namespace taper::kernels {

namespace {

using average::Pool;

bool is_unit(const FixedAxis& a) {
  return a.in == 1 && a.out == 1 && a.window.kernel == 1 && a.window.padding_left == 0;
}

/// Windows of one element each, all of them.
bool is_pointwise(const FixedAxis& a) { return a.window.kernel == 1 && a.window.padding_left == 0 && a.in == a.out; }

/// One window that is the whole axis.
bool is_whole(const FixedAxis& a) { return a.out == 1 && a.window.padding_left == 0 && a.window.kernel == a.in; }

FixedAxis make_axis(std::int64_t in, std::int64_t out, Window1d window) {
  // A single window from the start on never reaches past the input, nor moves.
  if (out == 1 && window.padding_left == 0 && window.padding_right == 0)
    window.stride = window.kernel = std::min(window.kernel, in);
  return {in, out, window};
}

FixedAxis unit_axis() { return {1, 1, {}}; }

/// `outer` with `n` contiguous elements in the place of each of its positions, if 64 bits hold that.
std::optional<FixedAxis> widened(const FixedAxis& outer, std::int64_t n) {
  const auto in = checked::mul(outer.in, n), kernel = checked::mul(outer.window.kernel, n);
  const auto stride = checked::mul(outer.window.stride, n), left = checked::mul(outer.window.padding_left, n),
             right = checked::mul(outer.window.padding_right, n);
  if (!in || !kernel || !stride || !left || !right) return std::nullopt;
  return make_axis(*in, outer.out, {*kernel, *stride, *left, *right});
}

/// The same pool with as few axes as it needs: axes whose one window is the whole axis join the one before,
/// so that a window over whole rows is one run; axes in front with windows of one element become planes.
Pool<FixedAxis> simplified(Pool<FixedAxis> p) {
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

Pool<FixedAxis> make_pool(const AvgPoolParams& q) {
  const auto axis = [&](int i) {
    return make_axis(q.in[i], q.out[i], {q.kernel[i], q.stride[i], q.padding_left[i], q.padding_right[i]});
  };
  Pool<FixedAxis> p = simplified({q.planes, axis(0), axis(1), axis(2), q.count_include_pad, 0});
  const auto d = p.d.uniform_count(p.count_include_pad), h = p.h.uniform_count(p.count_include_pad),
             w = p.w.uniform_count(p.count_include_pad);
  if (q.divisor_override != 0)
    p.divisor = static_cast<double>(q.divisor_override);
  else if (d && h && w)
    p.divisor = static_cast<double>(*d) * static_cast<double>(*h) * static_cast<double>(*w);
  return p;
}

/// Whether the windows cut each plane into runs of memory, long enough to be taken one by one.
bool is_runs(const Pool<FixedAxis>& p) {
  const Window1d& w = p.w.window;
  return is_unit(p.d) && is_unit(p.h) && w.padding_left == 0 && w.stride == w.kernel && p.w.in % w.kernel == 0 &&
         p.w.in / w.kernel == p.w.out && (w.kernel > kShortRun || p.w.out == 1);
}

/// A kernel of one element has nothing between its elements.
bool is_dilated(const AvgPoolParams& q) {
  for (int i = 0; i < 3; ++i)
    if (q.dilation[i] > 1 && q.kernel[i] > 1) return true;
  return false;
}

/// Windows of an adaptive pool that divide its input evenly are a fixed pool's.
std::optional<AvgPoolParams> even(const AdaptiveAvgPoolParams& q) {
  AvgPoolParams p{.planes = q.planes};
  for (int i = 0; i < 3; ++i) {
    if (q.in[i] % q.out[i] != 0) return std::nullopt;
    p.in[i] = q.in[i];
    p.out[i] = q.out[i];
    p.kernel[i] = p.stride[i] = q.in[i] / q.out[i];
  }
  return p;
}

Pool<AdaptiveAxis> make_pool(const AdaptiveAvgPoolParams& q) {
  return {q.planes, {q.in[0], q.out[0]}, {q.in[1], q.out[1]}, {q.in[2], q.out[2]}, false, 0};
}

bool is_empty(const AdaptiveAvgPoolParams& q) { return q.out[0] == 0 || q.out[1] == 0 || q.out[2] == 0; }

}  // namespace

template <class T>
void avg_pool(const AvgPoolParams& params, const T* x, T* y) {
  if (is_dilated(params)) return dilated_avg_pool(params, x, y);
  const Pool<FixedAxis> p = make_pool(params);
  if (is_runs(p)) return average::forward_runs(p.planes * p.w.out, p.w.window.kernel, p.divisor, x, y);
  average::forward(p, x, y);
}

template <class T>
void avg_pool_backward(const AvgPoolParams& params, const T* dy, T* dx, bool add) {
  if (is_dilated(params)) return dilated_avg_pool_backward(params, dy, dx, add);
  const Pool<FixedAxis> p = make_pool(params);
  if (is_runs(p)) return average::backward_runs(p.planes * p.w.out, p.w.window.kernel, p.divisor, dy, dx, add);
  average::backward(p, dy, dx, add);
}

template <class T>
void adaptive_avg_pool(const AdaptiveAvgPoolParams& params, const T* x, T* y) {
  if (is_empty(params)) return;
  if (const auto fixed = even(params)) return avg_pool(*fixed, x, y);
  average::forward(make_pool(params), x, y);
}

template <class T>
void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams& params, const T* dy, T* dx, bool add) {
  if (is_empty(params)) {
    if (!add) std::fill(dx, dx + params.planes * params.in[0] * params.in[1] * params.in[2], T(0));
    return;
  }
  if (const auto fixed = even(params)) return avg_pool_backward(*fixed, dy, dx, add);
  average::backward(make_pool(params), dy, dx, add);
}

template void avg_pool(const AvgPoolParams&, const float*, float*);
template void avg_pool(const AvgPoolParams&, const double*, double*);
template void avg_pool_backward(const AvgPoolParams&, const float*, float*, bool);
template void avg_pool_backward(const AvgPoolParams&, const double*, double*, bool);
template void adaptive_avg_pool(const AdaptiveAvgPoolParams&, const float*, float*);
template void adaptive_avg_pool(const AdaptiveAvgPoolParams&, const double*, double*);
template void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams&, const float*, float*, bool);
template void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams&, const double*, double*, bool);

}  // namespace taper::kernels
