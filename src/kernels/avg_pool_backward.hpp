#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/avg_pool_loops.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/sum_row.hpp"

/// The backward of average pools over any axes; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// dx_i = (g_first + ... + g_{last - 1}) / divisor over the windows of position i, for i in [i0, i1); `g` is
/// given from window `origin` on, `dx` from position i0 on.
template <class Axis, class T>
void gather_row(const Axis& axis, const double* g, std::int64_t origin, double divisor, std::int64_t i0,
                std::int64_t i1, T* dx) {
  if (i0 >= i1) return;
  Sweep<Axis> sweep(axis, i0);
  for (std::int64_t i = i0;;) {
    const auto [first, last] = sweep.over();
    const std::int64_t end = std::min(sweep.end(), i1);
    const T value = first < last ? static_cast<T>(sum_row(g + (first - origin), last - first) / divisor) : T(0);
    std::fill(dx + (i - i0), dx + (end - i0), value);
    if (end >= i1) return;
    sweep.to(i = end);
  }
}

/// sum_o = sum over the rows of dy_o / divisor of its window, or of dy_o alone when all divisors are the same;
/// `n` windows from `o0` on, of which `count` is what the width counts.
template <class Axis, class T>
void sum_gradients(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, std::int64_t o0,
                   std::int64_t n, const double* count, double* sum) {
  const auto rows_of = [&](std::int64_t i, std::int64_t j) {
    return static_cast<double>(p.d.at(i).counted(p.count_include_pad)) *
           static_cast<double>(p.h.at(j).counted(p.count_include_pad));
  };
  if (p.divisor != 0) return sum_columns(dy + o0, d, h, p.h.out, p.w.out, n, sum);
  const double rows = rows_of(d.first, h.first);
  const bool one = (d.last - d.first) * (h.last - h.first) == 1;
  bool alike = true;  // whether all rows count the same
  for (std::int64_t i = d.first; !one && i < d.last; ++i)
    for (std::int64_t j = h.first; j < h.last; ++j) alike &= rows_of(i, j) == rows;
  if (alike) {
    sum_columns(dy + o0, d, h, p.h.out, p.w.out, n, sum);
    return divide_windows<T>(p, rows, count, sum, o0, n, sum);
  }
  std::fill(sum, sum + n, 0.0);
  for (std::int64_t i = d.first; i < d.last; ++i)
    for (std::int64_t j = h.first; j < h.last; ++j) {
      const T* row = dy + (i * p.h.out + j) * p.w.out + o0;
      const double r = rows_of(i, j);
      for (std::int64_t o = 0; o < n; ++o) sum[o] += static_cast<double>(row[o]) / (r * count[o]);
    }
}

/// How the gradient of a tile's positions is taken from that of its windows: one window after the other, all rows as
/// sums of neighbouring windows, or position by position.
enum class Spreading { windows, sums, positions };

inline Spreading spreading_of(const FixedAxis& axis) {
  const Window1d& w = axis.window;
  if (w.kernel == w.stride) return Spreading::windows;
  const bool overlap = w.kernel > w.stride && w.stride <= 16 && (w.kernel - 1) / w.stride < kTile / 16;
  return overlap || (w.stride == 1 && w.kernel <= kTile) ? Spreading::sums : Spreading::positions;
}
inline Spreading spreading_of(const AdaptiveAxis& axis) {
  return axis.in < axis.out ? Spreading::positions : Spreading::windows;
}

/// Positions [i0, i1) of a row, the windows [o0, o1) over them, and where those lie in a buffer's row: `margin` zeros,
/// the windows, zeros up to `pitch`.
struct BackwardTile {
  std::int64_t i0, i1, o0, o1;
  std::int64_t margin, pitch;
  std::int64_t stride;  ///< positions for each of the buffer's windows
  std::int64_t positions() const { return i1 - i0; }
  std::int64_t windows() const { return o1 - o0; }
};

/// Input rows that lie in the same windows of the other axes: `rows` of them from `dx` on.
template <class T>
struct RowGroup {
  const T* dy;  ///< the plane
  IndexRange d, h;
  std::int64_t rows;
  T* dx;
};

/// Buffers of the backward, on the stack.
template <class T>
struct BackwardBuffers {
  alignas(64) double g[kSpan];      ///< rows of gradients of windows
  alignas(64) double phase[kSpan];  ///< sums of gradients
  double counts[kSpan];             ///< what each window counts
  Span spans[kTile];                ///< of `Spreading::windows`: the positions of each window
  alignas(64) T dx[kSpan + kTile];  ///< rows of gradients of positions
};

/// dx_{K i}, ..., dx_{K i + K - 1} = g_i / divisor
template <int K, class T>
void spread(const double* g, std::int64_t n, double divisor, T* dx) {
  with_quotient<T>(divisor, [=](const auto& quotient) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) {
      const T value = static_cast<T>(quotient(g[i]));
      dx[i * K] = value;
      dx[i * K + 1] = value;
      if constexpr (K > 2) dx[i * K + 2] = value;
      if constexpr (K > 3) dx[i * K + 3] = value;
    }
  });
}

/// dx_i = g_o of the window that position i is in, g_{o - 1} + g_o where two share it, 0 behind the last. What is
/// written behind a window is overwritten by the next; `kRun` elements behind the row may be written too.
template <class T>
void spread_spans(const double* g, const Span* spans, std::int64_t n, std::int64_t positions, T* dx) {
  constexpr int kRun = 16;
  std::int32_t done = 0;
  for (std::int64_t o = 0; o < n; ++o) {
    const T value = static_cast<T>(g[o]);
    std::int32_t at = spans[o].first;
    if (at < done) dx[at++] = static_cast<T>(g[o - 1] + g[o]);
    done = spans[o].last;
    for (; at < done; at += kRun)
      for (int j = 0; j < kRun; ++j) dx[at + j] = value;
  }
  std::fill(dx + done, dx + std::max<std::int64_t>(positions, done), T(0));
}

/// dx_{i stride} = s_i / divisor
template <class T>
void store_phase(const double* s, std::int64_t n, std::int64_t stride, double divisor, T* dx) {
  with_quotient<T>(divisor, [=](const auto& quotient) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) dx[i * stride] = static_cast<T>(quotient(s[i]));
  });
}

/// dx_{2 i} = a_i / divisor, dx_{2 i + 1} = b_i / divisor
template <class T>
void store_phases(const double* a, const double* b, std::int64_t n, double divisor, T* dx) {
  with_quotient<T>(divisor, [=](const auto& quotient) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) {
      dx[2 * i] = static_cast<T>(quotient(a[i]));
      dx[2 * i + 1] = static_cast<T>(quotient(b[i]));
    }
  });
}

/// Where the gradients of a buffer's rows begin in `BackwardBuffers::dx`, and how far apart they are.
struct RowsAt {
  std::int64_t first, pitch;
};

/// Gradients of `rows` rows as sums of neighbouring windows: position i lies in windows newest - n + 1, ..., newest
/// with newest = (i + p) / s and n = (k - 1 - (i + p) % s) / s + 1.
template <class T>
RowsAt sum_positions(const FixedAxis& axis, const BackwardTile& t, std::int64_t rows, double divisor,
                     BackwardBuffers<T>& b) {
  const std::int64_t k = axis.window.kernel, s = axis.window.stride, p = axis.window.padding_left;
  const std::int64_t most = (k - 1) / s + 1, n = rows * t.pitch - (most - 1);
  const auto sum_phase = [&](std::int64_t phase, double* sum) {
    const std::int64_t windows = (k - 1 - phase) / s + 1;
    sum_runs(b.g + (most - windows), windows, 1, n, sum);
  };
  sum_phase(0, b.phase);
  if (s == 1) {
    divide_row<T>(b.phase, n, divisor, b.dx);
  } else if (s == 2) {
    double* const second = b.phase + kSpan / 2;
    sum_phase(1, second);
    store_phases(b.phase, second, n, divisor, b.dx);
  } else {
    for (std::int64_t phase = 0; phase < s; ++phase) {
      if (phase > 0) sum_phase(phase, b.phase);
      store_phase(b.phase, n, s, divisor, b.dx + phase);
    }
  }
  return {(t.i0 + p) % s, t.pitch * s};
}

/// Gradients of `rows` rows, the windows laid out one after the other.
template <class Axis, class T>
RowsAt spread_windows(const Axis& axis, const BackwardTile& t, std::int64_t rows, double divisor, BackwardBuffers<T>& b,
                      T* dx) {
  if constexpr (std::is_same_v<Axis, FixedAxis>) {
    const std::int64_t k = axis.window.kernel, n = rows * t.pitch;
    const RowsAt at{t.i0 + axis.window.padding_left - t.o0 * k, t.pitch * k};
    if (k == 2) return spread<2>(b.g, n, divisor, dx), at;
    if (k == 3) return spread<3>(b.g, n, divisor, dx), at;
    if (k == 4) return spread<4>(b.g, n, divisor, dx), at;
  }
  const std::int64_t n = t.positions();
  if (divisor != 1) divide_row<T>(b.g, rows * t.pitch, divisor, b.g);
  for (std::int64_t r = 0; r < rows; ++r) spread_spans(b.g + r * t.pitch, b.spans, t.windows(), n, b.dx + r * n);
  return {0, n};
}

/// Whether the tile is nothing but whole short windows, whose gradients need no buffer.
inline bool is_spread_whole(const AdaptiveAxis&, const BackwardTile&) { return false; }
inline bool is_spread_whole(const FixedAxis& axis, const BackwardTile& t) {
  const Window1d& w = axis.window;
  return w.kernel == w.stride && w.kernel > 1 && w.kernel < 5 && t.i0 + w.padding_left == t.o0 * w.kernel &&
         t.positions() == t.pitch * w.kernel;
}

/// Gradients of `rows` rows, each position asking for its windows.
template <class Axis, class T>
RowsAt gather_positions(const Axis& axis, const BackwardTile& t, std::int64_t rows, double divisor,
                        BackwardBuffers<T>& b) {
  const std::int64_t n = t.positions();
  for (std::int64_t r = 0; r < rows; ++r) gather_row(axis, b.g + r * t.pitch, t.o0, divisor, t.i0, t.i1, b.dx + r * n);
  return {0, n};
}

/// Writes `value` to, or adds it to, `n` positions of each of `rows` rows.
template <class T>
void store_rows(const T* value, std::int64_t n, std::int64_t rows, std::int64_t pitch, T* dx, bool add) {
  for (std::int64_t r = 0; r < rows; ++r, dx += pitch) {
    if (add) {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = 0; i < n; ++i) dx[i] += value[i];
    } else {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = 0; i < n; ++i) dx[i] = value[i];
    }
  }
}

/// Calls visit(group) for the groups of rows in `units` [first, last), in order; a unit is a block of a slice's rows.
template <class Axis, class T, class Visit>
void for_groups(const Pool<Axis>& p, std::int64_t first, std::int64_t last, const T* dy, T* dx, const Visit& visit) {
  const std::int64_t height = p.h.in, blocks = (height - 1) / kRowBlock + 1;
  const std::int64_t outputs = p.d.out * p.h.out * p.w.out;
  const IndexRange whole_d = p.d.over(0), whole_h = p.h.over(0);
  for (std::int64_t unit = first; unit < last; ++unit) {
    if (height == 1 && p.d.in == 1) {
      visit(RowGroup<T>{dy + unit * outputs, whole_d, whole_h, 1, dx + unit * p.w.in});
      continue;
    }
    const std::int64_t slice = unit / blocks, plane = slice / p.d.in;
    const std::int64_t h0 = unit % blocks * kRowBlock, h1 = std::min(h0 + kRowBlock, height);
    const IndexRange over_d = p.d.in == 1 ? whole_d : p.d.over(slice % p.d.in);
    Sweep<Axis> sweep(p.h, h0);
    for (std::int64_t h = h0;;) {
      const std::int64_t end = std::min(sweep.end(), h1);
      visit(RowGroup<T>{dy + plane * outputs, over_d, sweep.over(), end - h, dx + (slice * height + h) * p.w.in});
      if (end >= h1) break;
      sweep.to(h = end);
    }
  }
}

template <class Axis>
BackwardTile backward_tile(const Axis& axis, Spreading how, std::int64_t i0, std::int64_t i1) {
  const std::int64_t o0 = i0 == 0 ? 0 : axis.over(i0).first, o1 = i1 == axis.in ? axis.out : axis.over(i1 - 1).last;
  BackwardTile t{i0, i1, o0, o1, 0, o1 - o0, 1};
  if constexpr (std::is_same_v<Axis, FixedAxis>) {
    const Window1d& w = axis.window;
    const std::int64_t newest0 = (i0 + w.padding_left) / w.stride, newest1 = (i1 - 1 + w.padding_left) / w.stride;
    if (how == Spreading::sums) {
      t.margin = o0 - (newest0 - (w.kernel - 1) / w.stride);
      t.pitch = newest1 - newest0 + 1 + (w.kernel - 1) / w.stride;
      t.stride = w.stride;
    } else if (how == Spreading::windows) {
      t.pitch = newest1 - o0 + 1;
      t.stride = w.stride;
    }
  }
  return t;
}

/// Positions [i0, i1) of the rows of units [first, last).
template <class Axis, class T>
void backward_units(const Pool<Axis>& p, Spreading how, std::int64_t i0, std::int64_t i1, std::int64_t first,
                    std::int64_t last, const T* dy, T* dx, bool add, BackwardBuffers<T>& b) {
  const BackwardTile t = backward_tile(p.w, how, i0, i1);
  const std::int64_t n = t.windows();
  if (p.divisor == 0) count_windows(p.w, p.count_include_pad, t.o0, n, b.counts);
  auto cursor = p.w.cursor(t.o0);
  for (std::int64_t o = 0; how == Spreading::windows && o < n; ++o, cursor.next()) {
    const WindowBounds w = cursor.bounds();
    b.spans[o] = {static_cast<std::int32_t>(std::max(w.first, i0) - i0),
                  static_cast<std::int32_t>(std::min(w.last, i1) - i0)};
  }
  const std::int64_t batch = std::clamp<std::int64_t>(kTile / std::max(t.positions(), t.pitch * t.stride), 1, kGroups);
  RowGroup<T> groups[kGroups];
  std::int64_t count = 0;
  std::fill(b.g, b.g + std::min(batch * t.pitch, kSpan), 0.0);
  const double divisor = p.divisor == 0 ? 1.0 : p.divisor;
  const auto flush = [&] {
    if (count == 0) return;
    const bool direct = !add && count == 1 && groups[0].rows == 1 && is_spread_whole(p.w, t);
    const RowsAt at = [&] {
      if (how == Spreading::windows)
        return spread_windows(p.w, t, count, divisor, b, direct ? groups[0].dx + i0 : b.dx);
      if constexpr (std::is_same_v<Axis, FixedAxis>)
        if (how == Spreading::sums) return sum_positions(p.w, t, count, divisor, b);
      return gather_positions(p.w, t, count, divisor, b);
    }();
    for (std::int64_t r = 0; r < count && !direct; ++r)
      store_rows(b.dx + at.first + r * at.pitch, t.positions(), groups[r].rows, p.w.in, groups[r].dx + i0, add);
    count = 0;
  };
  for_groups(p, first, last, dy, dx, [&](const RowGroup<T>& group) {
    if (group.d.first >= group.d.last || group.h.first >= group.h.last) {
      if (add) return;
      for (std::int64_t r = 0; r < group.rows; ++r) {
        T* const row = group.dx + r * p.w.in + i0;
        std::fill(row, row + t.positions(), T(0));
      }
      return;
    }
    double* const g = b.g + count * t.pitch + t.margin;
    sum_gradients(p, group.dy, group.d, group.h, t.o0, n, b.counts, g);
    groups[count++] = group;
    if (count == batch) flush();
  });
  flush();
}

/// As `gradient_tile` when a position lies in more windows than the buffers hold: dx_i = sum over windows, in
/// pieces.
template <class Axis, class T>
T gradient_of_many(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, const IndexRange& w) {
  double g[kTile], count[kTile], sum = 0;
  for (std::int64_t o = w.first; o < w.last; o += kTile) {
    const std::int64_t n = std::min(kTile, w.last - o);
    count_windows(p.w, p.count_include_pad, o, n, count);
    sum_gradients(p, dy, d, h, o, n, count, g);
    sum += sum_row(g, n);
  }
  return static_cast<T>(p.divisor != 0 ? sum / p.divisor : sum);
}

/// As `backward_units` for rows whose positions lie in more windows than the buffers hold.
template <class Axis, class T>
void backward_wide(const Pool<Axis>& p, std::int64_t first, std::int64_t last, const T* dy, T* dx, bool add) {
  for_groups(p, first, last, dy, dx, [&](const RowGroup<T>& group) {
    const bool some = group.d.first < group.d.last && group.h.first < group.h.last;
    T buffer[kTile];
    Sweep<Axis> sweep(p.w, 0);
    for (std::int64_t i = 0; i < p.w.in;) {
      const IndexRange w = sweep.over();
      const std::int64_t end = std::min({sweep.end(), p.w.in, i + kTile});
      const T value = some && w.first < w.last ? gradient_of_many(p, group.dy, group.d, group.h, w) : T(0);
      std::fill(buffer, buffer + (end - i), value);
      store_rows<T>(buffer, end - i, group.rows, p.w.in, group.dx + i, add);
      if ((i = end) < p.w.in) sweep.to(i);
    }
  });
}

template <class Axis, class T>
void backward(const Pool<Axis>& p, const T* dy, T* dx, bool add) {
  const std::int64_t blocks = (p.h.in - 1) / kRowBlock + 1, units = p.d.in * blocks;
  const std::int64_t outputs = p.d.out * p.h.out * p.w.out;
  const std::int64_t work = std::min(p.h.in, kRowBlock) * p.w.in + outputs / units;
  const Spreading how = spreading_of(p.w);
  const std::int64_t step = how == Spreading::sums ? kTile / 2 : std::min(p.w.positions_within(kTile / 2), kTile);
  const std::int64_t chunk = step >= p.w.in ? p.planes * units : std::is_same_v<Axis, FixedAxis> ? 1 : kRows;
  parallel_for(p.planes * units, work, [&](std::int64_t first, std::int64_t last) {
    BackwardBuffers<T> buffers;
    if (step == 0) return backward_wide(p, first, last, dy, dx, add);
    for (std::int64_t unit = first; unit < last; unit += chunk)
      for (std::int64_t i = 0; i < p.w.in; i += step)
        backward_units(p, how, i, std::min(i + step, p.w.in), unit, std::min(unit + chunk, last), dy, dx, add, buffers);
  });
}

/// dx_{i n}, ..., dx_{i n + n - 1} = dy_i / divisor
template <class T>
void backward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* dy, T* dx, bool add) {
  parallel_for(runs, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const T value = static_cast<T>(static_cast<double>(dy[i]) / divisor);
      T* const run = dx + i * n;
      if (add)
        for (std::int64_t j = 0; j < n; ++j) run[j] += value;
      else
        for (std::int64_t j = 0; j < n; ++j) run[j] = value;
    }
  });
}

}  // namespace taper::kernels::average
