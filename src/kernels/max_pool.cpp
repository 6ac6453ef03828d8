#include "kernels/max_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/max_pool_columns.hpp"
#include "kernels/max_pool_rows.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"

namespace taper::kernels {

namespace {

/// Positions of one unit of backward work.
constexpr std::int64_t kMaxPoolBlock = 2048;

struct MaxPool {
  std::int64_t planes;
  PoolAxis d, h, w;
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

/// Whether a place in a plane and some strides together stay below 2^31.
bool has_narrow_places(const MaxPool& p) { return p.d.in * p.h.in * p.w.in < std::int64_t{1} << 30; }

/// A row of windows, one by one.
template <class T>
void forward_row(const MaxPool& p, const Taps& d, const Taps& h, const T* x, T* y, std::int64_t* index) {
  auto cursor = p.w.cursor(0);
  for (std::int64_t o = 0; o < p.w.out; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    const Taps w = p.w.is_adaptive ? Taps{b.first, b.last, 1} : window_taps(p.w.window, p.w.in, o);
    const std::int64_t at = find_in_window(p, x, d, h, w);
    y[o] = x[at];
    if (index) index[o] = at;
  }
}

/// The same by columns, if they all fit or those of any window do.
[[gnu::noinline]] void forward_columns(const MaxPool& p, const Taps& d, const Taps& h, const float* x, float* y,
                                       std::int64_t* index) {
  const Window1d& w = p.w.window;
  const std::int64_t reach = (w.kernel - 1) * w.dilation + 1;
  ColumnMaxima maxima;
  auto cursor = p.w.cursor(0);
  for (std::int64_t o = 0; o < p.w.out;) {
    const std::int64_t start = p.w.is_adaptive ? 0 : o * w.stride - w.padding_left,
                       n = p.w.is_adaptive ? p.w.out
                                           : std::min(p.w.out - o, (ColumnMaxima::kMost - reach) / w.stride + 1);
    maxima.find_columns(d, h, p.h.in, p.w.in, x, start, p.w.is_adaptive ? p.w.in : (n - 1) * w.stride + reach);
    for (std::int64_t i = 0; i < n; ++i, ++o, cursor.next()) {
      Taps taps{i * w.stride, i * w.stride + reach, w.dilation};
      if (p.w.is_adaptive) taps = {cursor.bounds().first, cursor.bounds().last, 1};
      const std::int64_t at = maxima.find(taps);
      y[o] = x[at];
      if (index) index[o] = at;
    }
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

/// Whether windows are taken together with their neighbours: by rows, which windows share that are a step or two
/// apart, or by columns. In one row, long windows that hardly overlap stay alone.
bool is_one_row(const MaxPool& p) {
  return p.d.window.kernel == 1 && p.h.window.kernel == 1 && !p.d.is_adaptive && !p.h.is_adaptive;
}
template <class T>
bool goes_by_rows(const MaxPool& p) {
  const Window1d& w = p.w.window;
  if (!RowMaxima<T>::fits(p.w) || (w.kernel > 8 && p.w.out < 8)) return false;
  return w.stride <= 2 || is_one_row(p);
}
bool goes_by_columns(const MaxPool& p) {
  const std::int64_t columns = p.w.is_adaptive ? p.w.in : (p.w.window.kernel - 1) * p.w.window.dilation + 1;
  return !is_one_row(p) && columns <= ColumnMaxima::kMost;
}

/// The rows [first, last) of all windows.
template <class T>
[[gnu::noinline]] void pool_rows(const MaxPool& p, std::int64_t first, std::int64_t last, const T* x, T* y,
                                 std::int64_t* index) {
  using Maxima = RowMaxima<T>;
  constexpr std::int64_t kSome = 16;  // whose elements stay near while parts of the rows are gone through
  const std::int64_t slice = p.h.in * p.w.in, size = p.d.in * slice, out = p.w.out;
  const bool is_shared = p.d.window.kernel > 1 || p.h.window.kernel > 1 || p.d.is_adaptive || p.h.is_adaptive;
  const std::int64_t some = out <= Maxima::kTile ? last - first : is_shared ? kSome : 1;
  Maxima maxima(p.w);
  for (; first < last; first += some)
    for (std::int64_t o = 0; o < out; o += Maxima::kTile) {
      maxima.go_to(o, std::min(Maxima::kTile, out - o));
      for (std::int64_t unit = first; unit < std::min(first + some, last); ++unit) {
        const std::int64_t plane = unit / (p.d.out * p.h.out), in_plane = unit % (p.d.out * p.h.out);
        const Taps d = taps_at(p.d, in_plane / p.h.out), h = taps_at(p.h, in_plane % p.h.out);
        for (std::int64_t i = d.first; i < d.last; i += d.step)
          for (std::int64_t j = h.first; j < h.last; j += h.step) {
            const std::int64_t place = i * slice + j * p.w.in;
            maxima.take(x + plane * size + place, place, (plane * p.d.in + i) * p.h.in + j,
                        (p.planes - plane) * size - place);
          }
        maxima.store(y + unit * out + o, index ? index + unit * out + o : nullptr);
      }
    }
}

/// Whether windows are four neighbours in one row, side by side, which are taken as pairs of pairs.
template <class T>
bool is_in_quads(const MaxPool& p) {
  return kVectorWidth == 64 && is_one_row(p) && p.w.is_tiled() && p.w.window.kernel == 4 && p.w.out >= kFullVector<T> &&
         has_narrow_places(p);
}
template <class T>
void forward_quads(const MaxPool& p, const Taps& d, const Taps& h, const T* x, T* y, std::int64_t* index) {
  const std::int64_t place = (d.first * p.h.in + h.first) * p.w.in;
  pool_quads<T>(x + place, place, p.w.out, y, index);
}

template <class T>
void forward(const MaxPool& p, const T* x, T* y, std::int64_t* index) {
  constexpr std::int64_t kSome = 16;  // rows of windows, whose elements stay near
  const std::int64_t rows = p.d.out * p.h.out, size = p.d.in * p.h.in * p.w.in;
  // Places of float32 take 32 bits.
  const bool small = is_small<T>(p), has_room = sizeof(T) == 8 || has_narrow_places(p);
  auto row = has_room && goes_by_rows<T>(p) ? nullptr : forward_row<T>;
  if constexpr (std::is_same_v<T, float>)
    if (row != nullptr && has_room && goes_by_columns(p)) row = forward_columns;
  if constexpr (kVectorWidth == 64)
    if (is_in_quads<T>(p)) row = forward_quads<T>;
  const bool is_far = double(p.planes) * double(size) * sizeof(T) >= kFarRead;
  parallel_for(p.planes * rows, size / rows + p.w.out, [=, &p](std::int64_t first, std::int64_t last) {
    if (row == nullptr && !small) return pool_rows(p, first, last, x, y, index);
    for (std::int64_t unit = first, count; unit < last; unit += count) {
      const std::int64_t plane = unit / rows, d = unit % rows / p.h.out, h = unit % p.h.out;
      count = small ? std::min({last - unit, p.h.out - h, kSome}) : 1;
      const T* const from = x + plane * size;
      T* const to = y + unit * p.w.out;
      std::int64_t* const places = index ? index + unit * p.w.out : nullptr;
      if (!small)
        row(p, taps_at(p.d, d), taps_at(p.h, h), from, to, places);
      else if (!small_rows(p, taps_at(p.d, d), h, count, is_far, from, to, places))
        pool_rows(p, unit, unit + count, x, y, index);
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
  const std::uintptr_t ahead = beside_ahead();
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
  const std::uintptr_t ahead = bytes >= kFarFilled ? beside_ahead() : 0;
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
  return {q.planes, axis(0), axis(1), axis(2)};
}

/// Windows of an adaptive pool that divide an axis evenly are a fixed pool's.
MaxPool make_pool(const AdaptivePoolParams& q) {
  const auto axis = [&](int i) {
    const std::int64_t size = q.in[i] / q.out[i];
    return q.in[i] % q.out[i] == 0 ? PoolAxis{q.in[i], q.out[i], {size, size}} : PoolAxis{q.in[i], q.out[i], {}, true};
  };
  return {q.planes, axis(0), axis(1), axis(2)};
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
