#include "kernels/max_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/max_pool_pairs.hpp"
#include "kernels/max_pool_small.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"

namespace taper::kernels {

namespace {

/// Windows of a row that are worked on at once; what the buffer on the stack holds.
constexpr std::int64_t kMaxPoolTile = 512;
/// Positions of one unit of backward work.
constexpr std::int64_t kMaxPoolBlock = 2048;

struct MaxPool {
  std::int64_t planes;
  PoolAxis d, h, w;
  IndexRange inner;  ///< the windows of a row that no border cuts off, if they are worth to be taken together
};

// --- one window -----------------------------------------------------------------------------------------------------

/// Where the largest of x_0, ..., x_{n - 1} is.
template <class T>
std::int64_t find_largest(const T* x, std::int64_t n) {
  constexpr int kLanes = 16;
  std::int64_t at = 0;
  if (n < 2 * kLanes) {
    for (std::int64_t i = 1; i < n; ++i) at = exceeds(x[i], x[at]) ? i : at;
    return at;
  }
  // top_l = max of x_l, x_{l + 16}, ...; then the place of max of top
  T top[kLanes];
  std::copy(x, x + kLanes, top);
  std::int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) top[l] = exceeds(x[i + l], top[l]) ? x[i + l] : top[l];
  for (; i < n; ++i) top[0] = exceeds(x[i], top[0]) ? x[i] : top[0];
  T best = top[0];
  for (int l = 1; l < kLanes; ++l) best = exceeds(top[l], best) ? top[l] : best;
  if (best != best) {
    for (at = n - 1; x[at] == x[at];) --at;
    return at;
  }
  while (x[at] != best) ++at;
  return at;
}

/// As `find_largest` for the positions of a row.
template <class T>
std::int64_t find_largest(const T* x, const Taps& taps) {
  if (taps.step == 1) return taps.first + find_largest(x + taps.first, taps.last - taps.first);
  std::int64_t at = taps.first;
  for (std::int64_t i = at; i < taps.last; i += taps.step) at = exceeds(x[i], x[at]) ? i : at;
  return at;
}

/// Where in the plane the largest element of the window `d` x `h` x `w` is.
template <class T>
std::int64_t find_in_window(const MaxPool& p, const T* x, const Taps& d, const Taps& h, const Taps& w) {
  const std::int64_t width = p.w.in;
  std::int64_t at = (d.first * p.h.in + h.first) * width + w.first;
  const bool whole_rows = h.step == 1 && w.step == 1 && w.first == 0 && w.last == width;
  for (std::int64_t i = d.first; i < d.last; i += d.step) {
    if (whole_rows) {
      const std::int64_t from = (i * p.h.in + h.first) * width;
      const std::int64_t found = from + find_largest(x + from, (h.last - h.first) * width);
      at = exceeds(x[found], x[at]) ? found : at;
      continue;
    }
    for (std::int64_t j = h.first; j < h.last; j += h.step) {
      const std::int64_t from = (i * p.h.in + j) * width;
      const std::int64_t found = from + find_largest(x + from, w);
      at = exceeds(x[found], x[at]) ? found : at;
    }
  }
  return at;
}

// --- a row of windows -----------------------------------------------------------------------------------------------

/// best_o = max(best_o, x_{s o}, x_{s o + step}, ..., x_{s o + (K - 1) step}), `where` following it; `at` is the place
/// of x_0. S is the stride, or 0.
template <int S, int K, bool kIndexed, class I, class T>
void take_taps(const T* x, std::int64_t stride, std::int64_t step, I at, std::int64_t n, T* best, I* where) {
  const std::int64_t s = S > 0 ? S : stride;
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t o = 0; o < n; ++o) {
    T b = best[o];
    I w = kIndexed ? where[o] : I(0);
    const auto take_tap = [&](int t) {
      const T v = x[o * s + t * step];
      const bool take = exceeds(v, b);
      b = take ? v : b;
      if (kIndexed) w = take ? at + static_cast<I>(t * step) : w;
    };
    // Written out: a loop inside would keep the outer one from becoming vectors.
    take_tap(0);
    if constexpr (K > 1) take_tap(1);
    if constexpr (K > 2) take_tap(2);
    best[o] = b;
    if (kIndexed) {
      where[o] = w;
      at += static_cast<I>(s);
    }
  }
}

template <int K, bool kIndexed, class I, class T>
void take_taps(const T* x, std::int64_t stride, std::int64_t step, I at, std::int64_t n, T* best, I* where) {
  if (stride == 1) return take_taps<1, K, kIndexed>(x, stride, step, at, n, best, where);
  take_taps<0, K, kIndexed>(x, stride, step, at, n, best, where);
}

/// The same over all `taps` positions of a window's row. Float64 takes them one by one, to keep the library small.
template <bool kIndexed, class I, class T>
void take_row(const T* x, std::int64_t stride, std::int64_t step, std::int64_t taps, I at, std::int64_t n, T* best,
              I* where) {
  constexpr int most = sizeof(T) == 4 ? 3 : 1;
  for (std::int64_t left = taps; left > 0;) {
    const std::int64_t k = left < most ? 1 : most;
    if (k > 1)
      take_taps<most, kIndexed>(x, stride, step, at, n, best, where);
    else
      take_taps<1, kIndexed>(x, stride, step, at, n, best, where);
    x += k * step;
    if (kIndexed) at += static_cast<I>(k * step);
    left -= k;
  }
}

/// The same for long windows of neighbours with stride 1, by maxima over 2, 4, 8, ... neighbours. A window is two such
/// maxima that overlap: what is chosen first among equals, or last among NaN, does not depend on that.
template <bool kIndexed, class I, class T>
void take_long_row(const T* x, std::int64_t taps, I at, std::int64_t n, T* best, I* where) {
  T m[2 * kMaxPoolTile];
  I place[kIndexed ? 2 * kMaxPoolTile : 1];
  std::int64_t count = n + taps - 1, width = 1;
  std::copy(x, x + count, m);
  if (kIndexed)
    for (std::int64_t i = 0; i < count; ++i) place[i] = at + static_cast<I>(i);
  // m_i = max(x_i, ..., x_{i + 2 width - 1}) = max(m_i, m_{i + width})
  for (; 2 * width <= taps; width *= 2) {
    count -= width;
    for (std::int64_t i = 0; i < count; ++i) {
      const T here = m[i], there = m[i + width];
      const bool take = exceeds(there, here);
      m[i] = take ? there : here;
      if (!kIndexed) continue;
      const I at_here = place[i], at_there = place[i + width];
      place[i] = take ? at_there : at_here;
    }
  }
  // best_o = max(best_o, m_o, m_{o + taps - width})
  for (const std::int64_t from : {std::int64_t{0}, taps - width}) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t o = 0; o < n; ++o) {
      const T before = best[o], v = m[o + from];
      const bool take = exceeds(v, before);
      best[o] = take ? v : before;
      if (!kIndexed) continue;
      const I at_before = where[o], at_v = place[o + from];
      where[o] = take ? at_v : at_before;
    }
  }
}

/// The last of the positions.
std::int64_t last_of(const Taps& taps) { return taps.first + (taps.last - 1 - taps.first) / taps.step * taps.step; }

/// Windows [o0, o1) of a row, which no border cuts off; `x` has `room` elements. Vectors are completed by windows that
/// nobody asks for where that stays within the input.
template <bool kIndexed, class I, class T>
void inner_windows(const MaxPool& p, const Taps& d, const Taps& h, std::int64_t o0, std::int64_t o1, const T* x,
                   std::int64_t room, T* y, std::int64_t* index) {
  constexpr std::int64_t kWhole = 16;
  const Window1d& w = p.w.window;
  const std::int64_t step = std::min(w.dilation, p.w.in);
  const bool is_long = w.stride == 1 && step == 1 && w.kernel > 6 && w.kernel <= kMaxPoolTile;
  T best[kMaxPoolTile];
  I where[kMaxPoolTile];
  for (std::int64_t o = o0; o < o1; o += kMaxPoolTile) {
    const std::int64_t n = std::min(kMaxPoolTile, o1 - o), stride = n > 1 ? w.stride : 1;
    const std::int64_t start = o * w.stride - w.padding_left;
    const std::int64_t corner = (d.first * p.h.in + h.first) * p.w.in + start;
    const std::int64_t whole = ceil_div(n, kWhole) * kWhole;
    const std::int64_t last = (last_of(d) * p.h.in + last_of(h)) * p.w.in + start + (w.kernel - 1) * step;
    const bool completes = n > 1 && stride <= kWhole && last + (whole - 1) * stride < room;
    const std::int64_t count = completes ? whole : n;
    std::fill(best, best + count, -std::numeric_limits<T>::infinity());
    if (kIndexed)
      for (std::int64_t i = 0; i < count; ++i) where[i] = static_cast<I>(corner + i * stride);
    for (std::int64_t i = d.first; i < d.last; i += d.step)
      for (std::int64_t j = h.first; j < h.last; j += h.step) {
        const std::int64_t at = (i * p.h.in + j) * p.w.in + start;
        if (is_long)
          take_long_row<kIndexed>(x + at, w.kernel, static_cast<I>(at), count, best, where);
        else
          take_row<kIndexed>(x + at, stride, step, w.kernel, static_cast<I>(at), count, best, where);
      }
    std::copy(best, best + n, y + o);
    if (kIndexed && index) std::copy(where, where + n, index + o);
  }
}

/// Whether a place in a plane and some strides together stay below 2^31.
bool has_narrow_places(const MaxPool& p) { return p.d.in * p.h.in * p.w.in < std::int64_t{1} << 30; }

/// The same; indices of float32 only where places are narrow.
template <class T>
void inner_windows(const MaxPool& p, const Taps& d, const Taps& h, std::int64_t o0, std::int64_t o1, const T* x,
                   std::int64_t room, T* y, std::int64_t* index) {
  const bool is_narrow = has_narrow_places(p);
  if (const Window1d& w = p.w.window; w.dilation == 1 && w.kernel > 1 && o1 - o0 > 1 && is_narrow) {
    const std::int64_t at = (d.first * p.h.in + h.first) * p.w.in + o0 * w.stride - w.padding_left;
    const RowWindows windows{d, h, w.kernel, p.h.in, p.w.in};
    std::int64_t* const places = index ? index + o0 : nullptr;
    if (w.stride == 2 && pool_pairs(windows, x + at, room - at, at, o1 - o0, y + o0, places)) return;
    const bool is_row = last_of(d) == d.first && last_of(h) == h.first;
    if (kVectorWidth == 64 && is_row && w.stride == 4 && w.kernel == 4 && o1 - o0 >= kFullVector<T>)
      return pool_quads(windows, x + at, at, o1 - o0, y + o0, places);
  }
  // Places as wide as the elements make the faster loop. For float64 there is one loop, to keep the library small.
  using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  if constexpr (sizeof(T) == 4)
    if (!index) return inner_windows<false, Place>(p, d, h, o0, o1, x, room, y, index);
  inner_windows<true, Place>(p, d, h, o0, o1, x, room, y, index);
}

/// y_o = x[index_o], the largest element of window o.
template <class T>
void one_window(const MaxPool& p, const Taps& d, const Taps& h, const Taps& w, std::int64_t o, const T* x, T* y,
                std::int64_t* index) {
  const std::int64_t at = find_in_window(p, x, d, h, w);
  y[o] = x[at];
  if (index) index[o] = at;
}

template <class T>
void fixed_forward_row(const MaxPool& p, const Taps& d, const Taps& h, const T* x, std::int64_t room, T* y,
                       std::int64_t* index) {
  const auto one_by_one = [&](std::int64_t o, std::int64_t end) {
    for (; o < end; ++o) one_window(p, d, h, window_taps(p.w.window, p.w.in, o), o, x, y, index);
  };
  if (index && sizeof(T) == 4 && !has_narrow_places(p)) return one_by_one(0, p.w.out);
  one_by_one(0, p.inner.first);
  inner_windows(p, d, h, p.inner.first, p.inner.last, x, room, y, index);
  one_by_one(p.inner.last, p.w.out);
}

template <class T>
void adaptive_forward_row(const MaxPool& p, const Taps& d, const Taps& h, const T* x, std::int64_t, T* y,
                          std::int64_t* index) {
  auto cursor = p.w.cursor(0);
  for (std::int64_t o = 0; o < p.w.out; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    one_window(p, d, h, {b.first, b.last, 1}, o, x, y, index);
  }
}

// --- planes ---------------------------------------------------------------------------------------------------------

Taps taps_at(const PoolAxis& axis, std::int64_t o) {
  if (!axis.is_adaptive) return window_taps(axis.window, axis.in, o);
  const WindowBounds b = axis.at(o);
  return {b.first, b.last, 1};
}

/// Whether rows of windows have loops of their own, for finite elements.
template <class T>
bool is_small(const MaxPool& p) {
  const Window1d& w = p.w.window;
  return kVectorWidth > 16 && std::is_same_v<T, float> && !p.d.is_adaptive && !p.h.is_adaptive && !p.w.is_adaptive &&
         p.d.window.dilation == 1 && p.h.window.dilation == 1 && w.dilation == 1 && w.stride == 2 &&
         (w.kernel == 2 || w.kernel == 3) && w.padding_left <= 1 && has_narrow_places(p);
}

/// The rows [h, h + count) of windows over the slices `d`; returns whether there are loops and all elements are finite.
template <class T>
bool small_rows(const MaxPool& p, const Taps& d, std::int64_t h, std::int64_t count, bool is_far, const T* x, T* y,
                std::int64_t* index) {
  const Window1d &down = p.h.window, &across = p.w.window;
  const SmallWindows windows{{d.first, d.last},   p.h.in,        p.w.in,  down.kernel, down.stride, down.padding_left,
                             across.padding_left, across.kernel, p.w.out, is_far};
  return pool_small(windows, x, h, h + count, y, index);
}

template <class T>
void forward(const MaxPool& p, const T* x, T* y, std::int64_t* index) {
  constexpr std::int64_t kSome = 16;  // rows of windows, whose elements stay near
  const std::int64_t rows = p.d.out * p.h.out, size = p.d.in * p.h.in * p.w.in;
  const bool small = is_small<T>(p);
  const bool is_far = far_ahead() > 0 && double(p.planes) * double(size) * sizeof(T) >= kFarRead;
  parallel_for(p.planes * rows, size / rows + p.w.out, [=, &p](std::int64_t first, std::int64_t last) {
    std::int64_t plane = first / rows, d = first % rows / p.h.out, h = first % p.h.out;
    for (std::int64_t unit = first, count; unit < last; unit += count) {
      const auto forward_row = p.w.is_adaptive ? adaptive_forward_row<T> : fixed_forward_row<T>;
      const Taps depth = taps_at(p.d, d);
      count = small ? std::min({last - unit, p.h.out - h, kSome}) : 1;
      T* const to = y + unit * p.w.out;
      std::int64_t* const places = index ? index + unit * p.w.out : nullptr;
      if (!small || !small_rows(p, depth, h, count, is_far, x + plane * size, to, places))
        for (std::int64_t r = 0; r < count; ++r)
          forward_row(p, depth, taps_at(p.h, h + r), x + plane * size, (p.planes - plane) * size, to + r * p.w.out,
                      places ? places + r * p.w.out : nullptr);
      if ((h += count) < p.h.out) continue;
      h = 0;
      if (++d < p.d.out) continue;
      d = 0;
      ++plane;
    }
  });
}

/// The outputs whose windows reach into positions [first, last).
IndexRange outputs_over(const PoolAxis& axis, std::int64_t first, std::int64_t last) {
  return {axis.over(first).first, axis.over(last - 1).last};
}

/// Whether a position lies in so few windows that the sum of their gradients needs no double.
bool is_in_few(const MaxPool& p) {
  std::int64_t most = 1;
  for (const PoolAxis* axis : {&p.d, &p.h, &p.w}) {
    if (axis->is_adaptive) return false;
    most *= std::min<std::int64_t>(axis->window.dilation * (axis->window.kernel - 1) / axis->window.stride, 8) + 1;
  }
  return most <= 8;
}

/// Some positions of a plane, `n` of them from `origin` on, and the outputs that may have chosen them.
struct Block {
  std::int64_t origin, n;
  IndexRange d, h, w;
  std::uintptr_t ahead;  ///< how far ahead memory to be filled is asked for; 0: not at all
};

/// Calls visit(i, o) for all outputs o of a block's windows, i being the place in the block that was chosen; places
/// elsewhere are not below its size.
template <class Visit>
void for_choices(const MaxPool& p, const Block& b, const std::int64_t* index, const Visit& visit) {
  const std::uintptr_t ahead = far_ahead();
  for (std::int64_t i = b.d.first; i < b.d.last; ++i)
    for (std::int64_t j = b.h.first; j < b.h.last; ++j) {
      const std::int64_t row = (i * p.h.out + j) * p.w.out;
      if (ahead > 0) fetch_run(index + row, p.w.out, ahead);
      for (std::int64_t o = row + b.w.first; o < row + b.w.last; ++o)
        visit(static_cast<std::uint64_t>(index[o]) - static_cast<std::uint64_t>(b.origin), o);
    }
}

/// dx_i = sum of dy_o over the outputs o with index_o = i, for the positions of a block.
template <class T>
void backward_block(const MaxPool& p, const Block& b, const T* dy, const std::int64_t* index, T* dx, bool add) {
  double sum[kMaxPoolBlock + 1];  // behind the last position: what went elsewhere
  std::fill(sum, sum + b.n, 0.0);
  const auto n = static_cast<std::uint64_t>(b.n);
  for_choices(p, b, index,
              [&](std::uint64_t at, std::int64_t o) { sum[std::min(at, n)] += static_cast<double>(dy[o]); });
  dx += b.origin;
  if (add)
    for (std::int64_t i = 0; i < b.n; ++i) dx[i] += static_cast<T>(sum[i]);
  else
    for (std::int64_t i = 0; i < b.n; ++i) dx[i] = static_cast<T>(sum[i]);
}

/// The same where few outputs can have chosen one position.
template <class T>
void backward_few(const MaxPool& p, const Block& b, const T* dy, const std::int64_t* index, T* dx, bool add) {
  dx += b.origin;
  if (b.ahead > 0) fetch_run(dx, b.n, b.ahead);
  if (!add) std::fill(dx, dx + b.n, T(0));
  const auto n = static_cast<std::uint64_t>(b.n);
  for_choices(p, b, index, [&](std::uint64_t at, std::int64_t o) {
    if (at < n) dx[at] += dy[o];
  });
}

template <class T>
void backward(const MaxPool& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  const std::int64_t depth = p.d.in, height = p.h.in, width = p.w.in;
  // A block is one run of memory: a part of a row, rows of a slice, or slices.
  const std::int64_t bw = std::min(width, kMaxPoolBlock);
  const std::int64_t bh = bw < width ? 1 : std::min(height, kMaxPoolBlock / width);
  const std::int64_t bd = bh < height || bw < width ? 1 : std::min(depth, kMaxPoolBlock / (height * width));
  const std::int64_t across = ceil_div(width, bw), down = ceil_div(height, bh), deep = ceil_div(depth, bd);
  const std::int64_t blocks = across * down * deep, size = depth * height * width;
  const std::int64_t outputs = p.d.out * p.h.out * p.w.out;
  const bool few = is_in_few(p);
  const double bytes = double(p.planes) * (double(size + outputs) * sizeof(T) + double(outputs) * sizeof *index);
  const std::uintptr_t ahead = bytes >= kFarFilled ? far_ahead() : 0;
  parallel_for(p.planes * blocks, (size + outputs) / blocks, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t plane = unit / blocks, block = unit % blocks;
      const std::int64_t d = block / (across * down) * bd, h = block / across % down * bh, w = block % across * bw;
      const std::int64_t d1 = std::min(d + bd, depth), h1 = std::min(h + bh, height), w1 = std::min(w + bw, width);
      const Block b{(d * height + h) * width + w, (d1 - d) * (h1 - h) * (w1 - w), outputs_over(p.d, d, d1),
                    outputs_over(p.h, h, h1),     outputs_over(p.w, w, w1),       ahead};
      const auto run = few ? backward_few<T> : backward_block<T>;
      run(p, b, dy + plane * outputs, index + plane * outputs, dx + plane * size, add);
    }
  });
}

// --- parameters -----------------------------------------------------------------------------------------------------

IndexRange inner_range(const PoolAxis& axis) {
  const Window1d& w = axis.window;
  if (axis.is_adaptive) return {0, 0};
  const std::int64_t reach = axis.in + w.padding_left - 1 - w.dilation * (w.kernel - 1);
  const std::int64_t first = ceil_div(w.padding_left, w.stride);
  std::int64_t last = reach < 0 ? 0 : std::min(axis.out, reach / w.stride + 1);
  // A few long windows are faster one by one.
  if (last - first < 8 && w.kernel > 8) last = 0;
  return first < last ? IndexRange{first, last} : IndexRange{axis.out, axis.out};
}

MaxPool make_pool(const SlidingPoolParams& q) {
  const auto axis = [&](int i) {
    return PoolAxis{q.in[i],
                    q.out[i],
                    {.kernel = q.kernel[i],
                     .stride = q.stride[i],
                     .padding_left = q.padding_left[i],
                     .padding_right = q.padding_right[i],
                     .dilation = q.dilation[i]}};
  };
  return {q.planes, axis(0), axis(1), axis(2), inner_range(axis(2))};
}

/// Windows of an adaptive pool that divide an axis evenly are a fixed pool's.
MaxPool make_pool(const AdaptivePoolParams& q) {
  const auto axis = [&](int i) {
    const std::int64_t size = q.in[i] / q.out[i];
    return q.in[i] % q.out[i] == 0 ? PoolAxis{q.in[i], q.out[i], {size, size}} : PoolAxis{q.in[i], q.out[i], {}, true};
  };
  return {q.planes, axis(0), axis(1), axis(2), inner_range(axis(2))};
}

bool is_empty(const AdaptivePoolParams& q) { return q.out[0] == 0 || q.out[1] == 0 || q.out[2] == 0; }

}  // namespace

template <class T>
void max_pool(const SlidingPoolParams& p, const T* x, T* y, std::int64_t* index) {
  forward(make_pool(p), x, y, index);
}

template <class T>
void max_pool_backward(const SlidingPoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  backward(make_pool(p), dy, index, dx, add);
}

template <class T>
void adaptive_max_pool(const AdaptivePoolParams& p, const T* x, T* y, std::int64_t* index) {
  if (!is_empty(p)) forward(make_pool(p), x, y, index);
}

template <class T>
void adaptive_max_pool_backward(const AdaptivePoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  if (!is_empty(p)) return backward(make_pool(p), dy, index, dx, add);
  if (!add) std::fill(dx, dx + p.planes * p.in[0] * p.in[1] * p.in[2], T(0));
}

void keep_positive(std::int64_t n, float* y, std::int64_t* index) {
  parallel_for(n, 2, [=](std::int64_t first, std::int64_t last) {
    // y_o = max(y_o, 0)
    for (std::int64_t o = first; o < last; ++o) {
      const bool is_kept = !(y[o] <= 0);
      y[o] = is_kept ? y[o] : 0;
      index[o] = is_kept ? index[o] : -1;
    }
  });
}

template void max_pool(const SlidingPoolParams&, const float*, float*, std::int64_t*);
template void max_pool_backward(const SlidingPoolParams&, const float*, const std::int64_t*, float*, bool);
template void adaptive_max_pool(const AdaptivePoolParams&, const float*, float*, std::int64_t*);
template void adaptive_max_pool_backward(const AdaptivePoolParams&, const float*, const std::int64_t*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void max_pool(const SlidingPoolParams&, const double*, double*, std::int64_t*);
template void max_pool_backward(const SlidingPoolParams&, const double*, const std::int64_t*, double*, bool);
template void adaptive_max_pool(const AdaptivePoolParams&, const double*, double*, std::int64_t*);
template void adaptive_max_pool_backward(const AdaptivePoolParams&, const double*, const std::int64_t*, double*, bool);
#endif

}  // namespace taper::kernels
