#include "kernels/avg_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/average_runs.hpp"
#include "kernels/avg_pool_pass.hpp"
#include "kernels/avg_pool_tiles.hpp"
#include "kernels/avg_pool_tiny.hpp"
#include "kernels/avg_pool_uneven.hpp"
#include "kernels/spread_runs.hpp"

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
  return !a.is_adaptive && a.out == 1 && a.window.padding_left == 0 && a.window.kernel == a.in &&
         a.window.dilation == 1;
}

/// Sets an axis where it is: copies of what was just written are slow.
void set_axis(PoolAxis& a, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
              std::int64_t left, std::int64_t right, std::int64_t dilation = 1) {
  if (kernel == 1) dilation = 1;
  // A single window never moves, and from the start on does not reach past the input.
  if (out == 1) {
    stride = 1;
    if (left == 0 && right == 0 && dilation == 1) stride = kernel = std::min(kernel, in);
  }
  a.in = in, a.out = out, a.is_adaptive = false;
  Window1d& w = a.window;
  w.kernel = kernel, w.stride = stride, w.padding_left = left, w.padding_right = right, w.dilation = dilation;
}

void set_adaptive_axis(PoolAxis& a, std::int64_t in, std::int64_t out) {
  a.in = in, a.out = out;
  a.is_adaptive = in % out != 0;
  if (!a.is_adaptive) a.window.kernel = a.window.stride = in / out;
}

PoolAxis unit_axis() { return {1, 1}; }

/// Puts `n` contiguous elements in the place of each position of `outer`; whether 64 bits hold that.
bool widen(PoolAxis& outer, std::int64_t n) {
  if (outer.is_adaptive || outer.window.dilation > 1) return false;
  const auto in = checked::mul(outer.in, n), kernel = checked::mul(outer.window.kernel, n);
  const auto stride = checked::mul(outer.window.stride, n), left = checked::mul(outer.window.padding_left, n),
             right = checked::mul(outer.window.padding_right, n);
  if (!in || !kernel || !stride || !left || !right) return false;
  set_axis(outer, *in, outer.out, *kernel, *stride, *left, *right);
  return true;
}

/// Makes a pool one of as few axes as it needs: axes whose one window is the whole axis join the one before,
/// so that a window over whole rows is one run; axes in front with windows of one element become planes.
void simplify(Pool& p) {
  while (is_whole(p.w) && !(is_unit(p.h) && is_unit(p.d)) && widen(p.h, p.w.in)) {
    p.w = p.h;
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
}

/// Sets the divisor of a pool whose axes are set.
void complete(Pool& p, std::int64_t divisor_override) {
  simplify(p);
  if (divisor_override != 0) {
    p.divisor = static_cast<double>(divisor_override);
    return;
  }
  double divisor = 1;
  for (const PoolAxis* axis : {&p.d, &p.h, &p.w}) {
    if (is_unit(*axis)) continue;
    divisor *= static_cast<double>(axis->uniform_count(p.count_include_pad));
  }
  p.divisor = divisor;
}

Pool make_pool(const AvgPoolParams& q) {
  Pool p{.planes = q.planes, .count_include_pad = q.count_include_pad};
  PoolAxis* const axis[3] = {&p.d, &p.h, &p.w};
  for (int i = 0; i < 3; ++i)
    if (q.in[i] != 1 || q.out[i] != 1 || q.kernel[i] != 1)
      set_axis(*axis[i], q.in[i], q.out[i], q.kernel[i], q.stride[i], q.padding_left[i], q.padding_right[i],
               q.dilation[i]);
  complete(p, q.divisor_override);
  return p;
}

Pool make_pool(const AdaptivePoolParams& q) {
  Pool p{.planes = q.planes};
  PoolAxis* const axis[3] = {&p.d, &p.h, &p.w};
  for (int i = 0; i < 3; ++i) set_adaptive_axis(*axis[i], q.in[i], q.out[i]);
  complete(p, 0);
  return p;
}

/// Whether the windows cut each plane into runs of memory.
bool is_side_by_side(const Pool& p) { return is_unit(p.d) && is_unit(p.h) && p.w.is_tiled(); }

/// Whether the runs are long enough to be taken one by one.
bool is_runs(const Pool& p) { return is_side_by_side(p) && (p.w.window.kernel > kShort || p.w.out == 1); }

/// Whether they are of few elements, `most` at most, and are taken together.
bool is_tiles(const Pool& p, std::int64_t most) {
  return average::kHasTiles && p.divisor != 0 && is_side_by_side(p) && p.w.window.kernel > 1 &&
         p.w.window.kernel <= most;
}

/// Whether the one window of each plane is the plane. Only where there are planes do 64 bits hold their size.
bool is_global(const AvgPoolParams& q) {
  if (q.planes <= 0) return false;
  for (int i = 0; i < 3; ++i)
    if (q.out[i] != 1 || q.kernel[i] != q.in[i] || q.padding_left[i] != 0 || q.padding_right[i] != 0 ||
        (q.dilation[i] != 1 && q.kernel[i] > 1))
      return false;
  return true;
}

std::int64_t plane_size(const AvgPoolParams& q) { return q.in[0] * q.in[1] * q.in[2]; }

/// What windows of so many elements divide by.
double divisor_of(const AvgPoolParams& q, std::int64_t elements) {
  return static_cast<double>(q.divisor_override != 0 ? q.divisor_override : elements);
}
double global_divisor(const AvgPoolParams& q) { return divisor_of(q, plane_size(q)); }

/// Whether windows of two by two elements cut all planes without a rest.
bool is_pairs(const AvgPoolParams& q) {
  for (int i = 1; i < 3; ++i)
    if (q.kernel[i] != 2 || q.stride[i] != 2 || q.padding_left[i] != 0 || q.in[i] != 2 * q.out[i] || q.dilation[i] != 1)
      return false;
  return average::kHasSmall && q.in[0] == 1 && q.kernel[0] == 1 && q.padding_left[0] == 0 && q.out[0] == 1 &&
         q.in[2] <= average::kTile;
}
template <class T>
void pool_pairs(const AvgPoolParams& q, bool is_backward, const T* x, T* y) {
  average::pool_pairs(q.planes * q.out[1], q.out[2], divisor_of(q, 4), is_backward, x, y);
}

/// The windows of a pool of rows alone; of no period where there are others.
[[gnu::noinline]] average::Uneven rows_of(const AdaptivePoolParams& q) {
  const std::int64_t common = std::gcd(q.in[2], q.out[2]), rows = q.planes * q.in[0] * q.in[1];
  return {q.in[0] == q.out[0] && q.in[1] == q.out[1] ? rows * common : 0, q.in[2] / common, q.out[2] / common};
}

/// Whether float32 is exact enough for sums of so many elements.
bool is_short(const Reads& d, const Reads& h, const Reads& w) {
  return double(d.most()) * double(h.most()) * double(w.most()) <= 4 * kShort && w.most() <= kShort;
}

/// Where windows lie side by side in memory, short rows become fewer long ones.
void join_rows(Pool& p) {
  constexpr std::int64_t kLong = 256;
  const auto can_halve = [&p] { return p.planes % 2 == 0 && p.planes > 0 && 2 * p.w.in <= kLong; };
  if (!can_halve() || !is_side_by_side(p)) return;
  do {
    p.planes /= 2;
    p.w.in *= 2;
    p.w.out *= 2;
  } while (can_halve());
}

/// Puts all planes in one, where no row of windows would reach into two.
void join_planes(Pool& p) {
  const auto in = checked::mul(p.planes, p.h.in);
  if (p.planes == 0 || !is_unit(p.d) || !p.h.is_tiled() || !in) return;
  p.h.in = *in;
  p.h.out *= p.planes;
  p.planes = 1;
}

/// From elements to windows, as which the loops for tiny planes know a pool.
[[maybe_unused]] TAPER_FOR_SIZE average::Course forward_of(const Pool& p) {
  return {p, elements_of_windows(p.d), elements_of_windows(p.h), elements_of_windows(p.w), false};
}

template <class T>
void pass(Pool& p, bool backward, const T* x, T* y, bool add) {
  if constexpr (average::kHasSmall && sizeof(T) == sizeof(float)) {
    const average::Course windows = forward_of(p);
    if (average::TinyPlanes::fits(windows)) {
      const average::TinyPlanes tiny(windows);
      return parallel_for(p.planes, tiny.work(), [=, &tiny](std::int64_t first, std::int64_t last) {
        backward ? tiny.spread(x, y, add, first, last) : tiny.average(x, y, first, last);
      });
    }
  }
  join_rows(p);
  join_planes(p);
  const auto reads = backward ? windows_over_elements : elements_of_windows;
  // Set where it is: copies of what was just written are slow.
  average::Course course{p, reads(p.d), reads(p.h), reads(p.w), backward};
  const bool widens = sizeof(T) == sizeof(float) && !is_short(course.d, course.h, course.w);
  course.way = average::way_of(course.w, backward, widens);
  if (!widens || average::slides_along_rows(course)) return average::Pass<T, T>(course, x, y, add).run();
  average::Pass<double, T>(course, x, y, add).run();
}

template <class T>
void forward(Pool&& p, const T* x, T* y) {
  const std::int64_t k = p.w.window.kernel;
  if (is_runs(p)) return average_runs(p.planes * p.w.out, k, p.divisor, x, y);
  if constexpr (sizeof(T) == sizeof(float))
    if (is_tiles(p, average::kTileMost)) return average::pool_tiles(p.planes * p.w.out, k, p.divisor, false, x, y);
  pass(p, false, x, y, false);
}

template <class T>
void backward(Pool&& p, const T* dy, T* dx, bool add) {
  const std::int64_t k = p.w.window.kernel;
  if (is_runs(p)) return average::spread_runs(p.planes * p.w.out, k, p.divisor, dy, dx, add);
  if constexpr (sizeof(T) == sizeof(float))
    if (!add && is_tiles(p, average::kSpreadMost))
      return average::pool_tiles(p.planes * p.w.out, k, p.divisor, true, dy, dx);
  pass(p, true, dy, dx, add);
}

}  // namespace

template <class T>
void avg_pool(const AvgPoolParams& params, const T* x, T* y) {
  if (is_global(params)) return average_runs(params.planes, plane_size(params), global_divisor(params), x, y);
  if constexpr (sizeof(T) == sizeof(float))
    if (is_pairs(params)) return pool_pairs(params, false, x, y);
  forward(make_pool(params), x, y);
}

template <class T>
void avg_pool_backward(const AvgPoolParams& params, const T* dy, T* dx, bool add) {
  if (is_global(params))
    return average::spread_runs(params.planes, plane_size(params), global_divisor(params), dy, dx, add);
  if constexpr (sizeof(T) == sizeof(float))
    if (!add && is_pairs(params)) return pool_pairs(params, true, dy, dx);
  backward(make_pool(params), dy, dx, add);
}

template <class T>
void adaptive_avg_pool(const AdaptivePoolParams& params, const T* x, T* y) {
  if (params.is_empty() || average::forward_uneven(rows_of(params), x, y)) return;
  forward(make_pool(params), x, y);
}

template <class T>
void adaptive_avg_pool_backward(const AdaptivePoolParams& params, const T* dy, T* dx, bool add) {
  if (!params.is_empty() && !add && average::backward_uneven(rows_of(params), dy, dx)) return;
  if (!params.is_empty()) return backward(make_pool(params), dy, dx, add);
  if (!add) std::fill(dx, dx + params.planes * params.in[0] * params.in[1] * params.in[2], T(0));
}

template void avg_pool(const AvgPoolParams&, const float*, float*);
template void avg_pool_backward(const AvgPoolParams&, const float*, float*, bool);
template void adaptive_avg_pool(const AdaptivePoolParams&, const float*, float*);
template void adaptive_avg_pool_backward(const AdaptivePoolParams&, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void avg_pool(const AvgPoolParams&, const double*, double*);
template void avg_pool_backward(const AvgPoolParams&, const double*, double*, bool);
template void adaptive_avg_pool(const AdaptivePoolParams&, const double*, double*);
template void adaptive_avg_pool_backward(const AdaptivePoolParams&, const double*, double*, bool);
#endif

}  // namespace taper::kernels
