#include "kernels/max_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/loop_hints.hpp"
#include "kernels/max_pool_columns.hpp"
#include "kernels/max_pool_halves.hpp"
#include "kernels/max_pool_lines.hpp"
#include "kernels/max_pool_plan.hpp"
#include "kernels/max_pool_rows.hpp"
#include "kernels/max_pool_separable.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

// --- one window -----------------------------------------------------------------------------------------------------

/// The largest of the elements that it took in, and where it is, or of runs and where that one begins.
template <class T>
struct Largest {
  T best;
  std::int64_t at;

  [[gnu::always_inline]] void take(T v, std::int64_t i) {
    const bool is_taken = exceeds(v, best);
    best = is_taken ? v : best, at = is_taken ? i : at;
  }
  /// Takes in x_i for i from `first` to before `last`, `step` apart.
  [[gnu::always_inline]] void take(const T* x, std::int64_t first, std::int64_t last, std::int64_t step) {
    for (std::int64_t i = first; i < last; i += step) take(x[i], i);
  }
};

/// Elements that are taken one by one: calls would take longer.
constexpr std::int64_t kFew = 8;

/// Where the first of `n` elements is that is `best`, their largest; where the last NaN is if that is NaN.
template <class T>
std::int64_t place_of_largest(T best, const T* x, std::int64_t n) {
  if (best == best) return place_of(best, x, n);
  std::int64_t at = n - 1;
  while (x[at] == x[at]) --at;
  return at;
}

/// Where the largest of `n` elements is.
template <class T>
std::int64_t find_largest(const T* x, std::int64_t n) {
  if (n >= kFew) return place_of_largest(extreme_of<true>(x, n), x, n);
  Largest<T> largest{x[0], 0};
  largest.take(x, 1, n, 1);
  return largest.at;
}

/// Where in the plane the largest element of the window `d` x `h` x `w` is.
template <class T>
std::int64_t find_in_window(const MaxPool& p, const T* x, const Taps& d, const Taps& h, const Taps& w) {
  const std::int64_t width = p.w.in, first = (d.first * p.h.in + h.first) * width + w.first;
  // Whole rows that follow each other are one run.
  const bool whole_rows = h.step == 1 && w.step == 1 && w.first == 0 && w.last == width;
  const std::int64_t n = whole_rows ? (h.last - h.first) * width : w.last - w.first;
  const std::int64_t end = whole_rows ? h.first + 1 : h.last;
  const bool is_short = w.step > 1 || n < kFew;
  Largest<T> largest{x[first], first};
  for (std::int64_t i = d.first; i < d.last; i += d.step)
    for (std::int64_t j = h.first; j < end; j += h.step) {
      const std::int64_t from = (i * p.h.in + j) * width + w.first;
      if (is_short)
        largest.take(x, from, from + n, w.step);
      else
        largest.take(extreme_of<true>(x + from, n), from);
    }
  return is_short ? largest.at : largest.at + place_of_largest(largest.best, x + largest.at, n);
}

/// A row of windows, one by one.
template <class T>
void forward_row(const MaxPool& p, const Taps& d, const Taps& h, const T* x, T* y, std::int64_t* index) {
  // The baseline is kept small.
  const bool in_one_row = kVectorWidth > 16 && d.first + d.step >= d.last && h.first + h.step >= h.last;
  const std::int64_t row = (d.first * p.h.in + h.first) * p.w.in;
  auto cursor = p.w.cursor(0);
  for (std::int64_t o = 0; o < p.w.out; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    const Taps w = p.w.is_adaptive ? Taps{b.first, b.last, 1} : window_taps(p.w.window, p.w.in, o);
    std::int64_t at;
    if (in_one_row && w.last - w.first < kFew) {
      Largest<T> largest{x[row + w.first], row + w.first};
      largest.take(x, row + w.first + w.step, row + w.last, w.step);
      at = largest.at;
    } else {
      at = find_in_window(p, x, d, h, w);
    }
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
  return kVectorWidth == 32 && std::is_same_v<T, float> && !p.d.is_adaptive && !p.h.is_adaptive && !p.w.is_adaptive &&
         p.d.window.dilation == 1 && p.h.window.dilation == 1 && w.dilation == 1 && w.stride == 2 &&
         (w.kernel == 2 || w.kernel == 3) && w.padding_left <= 1 && p.has_narrow_places();
}

/// Whether windows are taken together with their neighbours by rows, which those share that are a step or two apart,
/// and more of a row where nothing else brings several together: in one row, and of doubles. Long windows that hardly
/// overlap stay alone.
template <class T>
bool goes_by_rows(const MaxPool& p) {
  const Window1d& w = p.w.window;
  if (!RowMaxima<T>::fits(p.w) || (w.kernel > 8 && p.w.out < 8)) return false;
  return w.stride <= 2 || p.is_one_row() || (sizeof(T) == 8 && p.w.out > 2);
}
/// Whether windows are whole rows, which are one run.
bool takes_rows(const PoolAxis& w) {
  return w.out == 1 && !w.is_adaptive && w.window.kernel >= w.in && w.window.dilation == 1;
}
bool goes_by_columns(const MaxPool& p) {
  if (takes_rows(p.w)) return false;
  const std::int64_t columns = p.w.is_adaptive ? p.w.in : (p.w.window.kernel - 1) * p.w.window.dilation + 1;
  return !p.is_one_row() && columns <= ColumnMaxima::kMost;
}

/// The rows [first, last) of all windows.
template <class T>
TAPER_FOR_SIZE void pool_rows(const MaxPool& p, std::int64_t first, std::int64_t last, const T* x, T* y,
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
      std::int64_t plane = first / (p.d.out * p.h.out), deep = first / p.h.out % p.d.out, down = first % p.h.out;
      Taps d = taps_at(p.d, deep);
      for (std::int64_t unit = first; unit < std::min(first + some, last); ++unit) {
        const Taps h = taps_at(p.h, down);
        for (std::int64_t i = d.first; i < d.last; i += d.step)
          for (std::int64_t j = h.first; j < h.last; j += h.step) {
            const std::int64_t place = i * slice + j * p.w.in;
            maxima.take(x + plane * size + place, place, (plane * p.d.in + i) * p.h.in + j,
                        (p.planes - plane) * size - place);
          }
        maxima.store(y + unit * out + o, index ? index + unit * out + o : nullptr);
        if (++down < p.h.out) continue;
        down = 0;
        if (++deep == p.d.out) deep = 0, ++plane;
        d = taps_at(p.d, deep);
      }
    }
}

/// Whether planes of one row may as well be the rows of one plane, which are worked on some at a time.
bool is_joined(const MaxPool& p) {
  return p.d.in == 1 && p.h.in == 1 && p.is_one_row() && p.planes > 1 && p.w.in > 0 &&
         p.planes < (std::int64_t{1} << 30) / p.w.in;
}

/// Whether each window is a whole plane, which is one run.
TAPER_FOR_SIZE bool takes_planes(const MaxPool& p) {
  return p.outputs() == 1 && p.d.is_tiled() && p.h.is_tiled() && p.w.is_tiled();
}
template <class T>
[[gnu::noinline]] void forward_planes(std::int64_t planes, std::int64_t size, const T* x, T* y, std::int64_t* index) {
  parallel_for(planes, size, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t plane = first; plane < last; ++plane) {
      const T* const from = x + plane * size;
      const std::int64_t at = find_largest(from, size);
      y[plane] = from[at];
      if (index) index[plane] = at;
    }
  });
}

template <class T>
void forward(const MaxPool& p, const T* x, T* y, std::int64_t* index) {
  if (index == nullptr && is_joined(p)) {
    MaxPool rows = p;
    rows.h = {p.planes, p.planes, {.kernel = 1, .stride = 1}};
    rows.planes = 1;
    return forward(rows, x, y, index);
  }
  const std::int64_t rows = p.d.out * p.h.out, size = p.size();
  if (takes_planes(p)) return forward_planes(p.planes, size, x, y, index);
  // Places of float32 take 32 bits.
  const bool has_room = sizeof(T) == 8 || p.has_narrow_places();
  auto row = has_room && goes_by_rows<T>(p) ? nullptr : forward_row<T>;
  if constexpr (std::is_same_v<T, float>)
    if (row != nullptr && has_room && goes_by_columns(p)) row = forward_columns;
  auto several = pool_rows<T>;
#if defined(__AVX2__) && !defined(__AVX512F__)
  if (goes_by_lines<T>(p, index != nullptr)) {
    row = nullptr, several = pool_lines<false, T>;
    if constexpr (std::is_same_v<T, float>)
      if (index != nullptr) several = pool_lines<true, T>;
  } else if constexpr (std::is_same_v<T, float>) {
    if (is_separable(p))
      row = nullptr, several = pool_separably<pool_rows<float>>;
    else if (is_small<T>(p))
      row = nullptr, several = pool_by_halves;
  }
#endif
  const std::int64_t cost = size / rows + (1 + 2 * p.choices()) * p.w.out;
  parallel_for(p.planes * rows, cost, [=, &p](std::int64_t first, std::int64_t last) {
    if (row == nullptr) return several(p, first, last, x, y, index);
    for (std::int64_t unit = first; unit < last; ++unit)
      row(p, taps_at(p.d, unit % rows / p.h.out), taps_at(p.h, unit % p.h.out), x + unit / rows * size,
          y + unit * p.w.out, index ? index + unit * p.w.out : nullptr);
  });
}

}  // namespace

template <class T>
void max_pool_any(const SlidingPoolParams& p, const T* x, T* y, std::int64_t* index) {
  forward(make_max_pool(p), x, y, index);
}

template <class T>
void adaptive_max_pool(const AdaptivePoolParams& p, const T* x, T* y, std::int64_t* index) {
  if (!p.is_empty()) forward(make_max_pool(p), x, y, index);
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

template void max_pool_any(const SlidingPoolParams&, const float*, float*, std::int64_t*);
template void adaptive_max_pool(const AdaptivePoolParams&, const float*, float*, std::int64_t*);
#ifndef TAPER_ONLY_FLOAT32
template void max_pool_any(const SlidingPoolParams&, const double*, double*, std::int64_t*);
template void adaptive_max_pool(const AdaptivePoolParams&, const double*, double*, std::int64_t*);
#endif

}  // namespace taper::kernels
