#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/avg_pool_loops.hpp"
#include "kernels/double_lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/sum_row.hpp"
#include "kernels/sum_run.hpp"

/// The forward of average pools over any axes; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// How the sums of a tile's windows are taken: all of a buffer in one loop, those of eight rows at a time, or one by
/// one.
enum class Way { together, eight_rows, alone };

inline Way way_of(const FixedAxis& axis) {
  return has_run_loops(axis.window.kernel, axis.window.stride) ? Way::together : Way::alone;
}
inline Way way_of(const AdaptiveAxis& axis) { return axis.in / axis.out + 2 < 16 ? Way::eight_rows : Way::alone; }

/// Windows [o0, o1) of a row and what they have in common for all rows: the positions they span, which go into the
/// padding, whose zeros (-0, which changes no sum) let every window be summed alike.
struct ForwardTile {
  std::int64_t o0, o1;
  std::int64_t first, last;  ///< positions
  std::int64_t pitch;        ///< of the rows in the buffer
  std::int64_t outputs() const { return o1 - o0; }
};

/// Buffers of the forward, on the stack.
struct ForwardBuffers {
  alignas(64) double columns[kSpan];           ///< rows of the sums of columns
  alignas(64) double sums[kTile + kRows * 8];  ///< rows of the sums of windows
  alignas(64) double eight[kTile];             ///< of `Way::eight_rows`: the columns, eight rows side by side
  double counts[kTile];                        ///< what each window counts, where that differs
  Span spans[kTile];
};

inline ForwardTile forward_tile(const FixedAxis& axis, std::int64_t o0, std::int64_t o1, Way way, ForwardBuffers& b) {
  const Window1d& w = axis.window;
  ForwardTile t{o0, o1, o0 * w.stride - w.padding_left, (o1 - 1) * w.stride - w.padding_left + w.kernel, 0};
  const std::int64_t unit = way == Way::together ? 8 * w.stride : 8;
  t.pitch = (t.last - t.first + unit - 1) / unit * unit;
  for (std::int64_t o = 0; way != Way::together && o < t.outputs(); ++o) {
    const auto first = static_cast<std::int32_t>(o * w.stride);
    b.spans[o] = {first, first + static_cast<std::int32_t>(w.kernel)};
  }
  return t;
}

inline ForwardTile forward_tile(const AdaptiveAxis& axis, std::int64_t o0, std::int64_t o1, Way, ForwardBuffers& b) {
  auto cursor = axis.cursor(o0);
  ForwardTile t{o0, o1, cursor.bounds().first, 0, 0};
  for (std::int64_t o = o0; o < o1; ++o, cursor.next()) {
    const WindowBounds w = cursor.bounds();
    b.spans[o - o0] = {static_cast<std::int32_t>(w.first - t.first), static_cast<std::int32_t>(w.last - t.first)};
    t.last = w.last;
  }
  t.pitch = (t.last - t.first + 7) / 8 * 8;
  return t;
}

/// y_{8 i + r} = x_{r pitch + i} for r < 8
inline void interleave_eight(const double* x, std::int64_t pitch, std::int64_t n, double* y) {
  const double *x0 = x, *x1 = x0 + pitch, *x2 = x1 + pitch, *x3 = x2 + pitch, *x4 = x3 + pitch, *x5 = x4 + pitch,
               *x6 = x5 + pitch, *x7 = x6 + pitch;
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = 0; i < n; ++i) {
    y[8 * i] = x0[i];
    y[8 * i + 1] = x1[i];
    y[8 * i + 2] = x2[i];
    y[8 * i + 3] = x3[i];
    y[8 * i + 4] = x4[i];
    y[8 * i + 5] = x5[i];
    y[8 * i + 6] = x6[i];
    y[8 * i + 7] = x7[i];
  }
}

/// y_{r pitch + i} = x_{8 i + r} for r < 8
inline void deinterleave_eight(const double* x, std::int64_t pitch, std::int64_t n, double* y) {
  double *y0 = y, *y1 = y0 + pitch, *y2 = y1 + pitch, *y3 = y2 + pitch, *y4 = y3 + pitch, *y5 = y4 + pitch,
         *y6 = y5 + pitch, *y7 = y6 + pitch;
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = 0; i < n; ++i) {
    y0[i] = x[8 * i];
    y1[i] = x[8 * i + 1];
    y2[i] = x[8 * i + 2];
    y3[i] = x[8 * i + 3];
    y4[i] = x[8 * i + 4];
    y5[i] = x[8 * i + 5];
    y6[i] = x[8 * i + 6];
    y7[i] = x[8 * i + 7];
  }
}

/// y_{8 o + r} = sum over the window of x_{8 i + r} for r < 8, from left to right.
inline void sum_spans_of_eight(const double* x, const Span* spans, std::int64_t n, double* y) {
  for (std::int64_t o = 0; o < n; ++o) {
    const double *from = x + 8 * spans[o].first, *const end = x + 8 * spans[o].last;
    auto sum = Lanes<8>::load(from);
    for (from += 8; from != end; from += 8) sum += Lanes<8>::load(from);
    sum.store(y + 8 * o);
  }
}

/// Sums the windows of `rows` rows in `b.columns`; returns how far apart the rows are in `b.sums`.
template <class Axis>
std::int64_t sum_windows(const Axis& axis, const ForwardTile& t, Way way, std::int64_t rows, ForwardBuffers& b) {
  const std::int64_t n = t.outputs();
  if constexpr (std::is_same_v<Axis, FixedAxis>) {
    if (way == Way::together) {
      const std::int64_t pitch = t.pitch / axis.window.stride;
      sum_runs(b.columns, axis.window.kernel, axis.window.stride, (rows - 1) * pitch + n, b.sums);
      return pitch;
    }
  }
  if (way == Way::alone) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t o = 0; o < n; ++o)
        b.sums[r * n + o] = sum_row(b.columns + r * t.pitch + b.spans[o].first, b.spans[o].last - b.spans[o].first);
    return n;
  }
  const std::int64_t whole = (n + 7) / 8 * 8;
  alignas(64) double sums[kTile];
  interleave_eight(b.columns, t.pitch, t.pitch, b.eight);
  sum_spans_of_eight(b.eight, b.spans, n, sums);
  deinterleave_eight(sums, whole, whole, b.sums);
  return whole;
}

/// One row of outputs, number `unit` of all planes.
template <class Axis>
struct OutputRow {
  std::int64_t plane, d, h;
  OutputRow(const Pool<Axis>& p, std::int64_t unit)
      : plane(unit / (p.d.out * p.h.out)), d(unit / p.h.out % p.d.out), h(unit % p.h.out) {}
  void next(const Pool<Axis>& p) {
    if (++h < p.h.out) return;
    h = 0;
    if (++d < p.d.out) return;
    d = 0;
    ++plane;
  }
};

/// Windows [o0, o1) of output rows [first, last).
template <class Axis, class T>
void forward_rows(const Pool<Axis>& p, Way way, std::int64_t o0, std::int64_t o1, std::int64_t first, std::int64_t last,
                  const T* x, T* y, ForwardBuffers& b) {
  const std::int64_t width = p.w.in, size = p.d.in * p.h.in * width;
  const ForwardTile t = forward_tile(p.w, o0, o1, way, b);
  if (p.divisor == 0) count_windows(p.w, p.count_include_pad, o0, t.outputs(), b.counts);
  const std::int64_t from = std::max<std::int64_t>(t.first, 0), to = std::min(t.last, width), n = t.outputs();
  const std::int64_t batch = way == Way::eight_rows ? kRows
                             : way == Way::alone    ? 1
                                                    : std::max<std::int64_t>(kTile / t.pitch, 1);
  if (to - from != t.pitch || way == Way::eight_rows)
    std::fill(b.columns, b.columns + std::min(batch * t.pitch, kSpan), -0.0);
  OutputRow row(p, first);
  if constexpr (std::is_same_v<Axis, FixedAxis>) {
    // Windows of one row are summed where they are.
    if (way == Way::together && p.d.window.kernel * p.h.window.kernel == 1 && p.divisor != 0 &&
        to - from == t.last - t.first) {
      for (std::int64_t unit = first; unit < last; ++unit, row.next(p)) {
        const std::int64_t d = row.d * p.d.window.stride - p.d.window.padding_left,
                           h = row.h * p.h.window.stride - p.h.window.padding_left;
        const T* const window = x + row.plane * size + (d * p.h.in + h) * width + from;
        sum_runs(window, p.w.window.kernel, p.w.window.stride, n, b.sums);
        divide_row<T>(b.sums, n, p.divisor, y + unit * p.w.out + o0);
      }
      return;
    }
  }
  double counted[kTile];  // by the other axes, of each row
  for (std::int64_t unit = first; unit < last;) {
    const std::int64_t rows = std::min(batch, last - unit);
    for (std::int64_t r = 0; r < rows; ++r, row.next(p)) {
      const WindowBounds d = p.d.at(row.d), h = p.h.at(row.h);
      counted[r] =
          static_cast<double>(d.counted(p.count_include_pad)) * static_cast<double>(h.counted(p.count_include_pad));
      sum_columns(x + row.plane * size + from, {d.first, d.last}, {h.first, h.last}, p.h.in, width, to - from,
                  b.columns + r * t.pitch + (from - t.first));
    }
    const std::int64_t pitch = sum_windows(p.w, t, way, rows, b);
    T* const to_y = y + unit * p.w.out + o0;
    if (p.divisor != 0 && pitch == p.w.out) {
      divide_row<T>(b.sums, rows * pitch, p.divisor, to_y);
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        if (p.divisor != 0)
          divide_row<T>(b.sums + r * pitch, n, p.divisor, to_y + r * p.w.out);
        else
          divide_windows<T>(p, counted[r], b.counts, b.sums + r * pitch, o0, n, to_y + r * p.w.out);
      }
    }
    unit += rows;
  }
}

/// Windows wider than the buffers, row by row: y_o = (row_0 + row_1 + ...) / divisor
template <class Axis, class T>
void forward_wide(const Pool<Axis>& p, std::int64_t unit, const T* x, T* y) {
  const OutputRow row(p, unit);
  const WindowBounds d = p.d.at(row.d), h = p.h.at(row.h);
  const double rows =
      static_cast<double>(d.counted(p.count_include_pad)) * static_cast<double>(h.counted(p.count_include_pad));
  x += row.plane * p.d.in * p.h.in * p.w.in;
  y += unit * p.w.out;
  auto cursor = p.w.cursor(0);
  for (std::int64_t o = 0; o < p.w.out; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    double sum = 0;
    for (std::int64_t i = d.first; i < d.last; ++i)
      for (std::int64_t j = h.first; j < h.last; ++j)
        sum += sum_row(x + (i * p.h.in + j) * p.w.in + b.first, b.last - b.first);
    const double divisor = p.divisor != 0 ? p.divisor : rows * static_cast<double>(b.counted(p.count_include_pad));
    y[o] = static_cast<T>(sum / divisor);
  }
}

template <class Axis, class T>
void forward(const Pool<Axis>& p, const T* x, T* y) {
  const std::int64_t rows = p.d.out * p.h.out, size = p.d.in * p.h.in * p.w.in;
  const Way way = way_of(p.w);
  const bool narrow = p.w.windows_within(kTile / 2) > 0;
  const std::int64_t span = way == Way::eight_rows ? kTile / kRows - 8 : narrow ? kTile : kSpan;
  const std::int64_t step = std::min(p.w.windows_within(span), way == Way::eight_rows ? span : kTile);
  // Rows of more than one tile are taken a few at a time, as they lie in memory.
  const std::int64_t chunk = step >= p.w.out ? p.planes * rows : way == Way::together ? 1 : kRows;
  parallel_for(p.planes * rows, size / rows + p.w.out, [&](std::int64_t first, std::int64_t last) {
    ForwardBuffers buffers;
    for (std::int64_t unit = first; step == 0 && unit < last; ++unit) forward_wide(p, unit, x, y);
    for (std::int64_t unit = first; step > 0 && unit < last; unit += chunk)
      for (std::int64_t o = 0; o < p.w.out; o += step)
        forward_rows(p, way, o, std::min(o + step, p.w.out), unit, std::min(unit + chunk, last), x, y, buffers);
  });
}

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor
template <class T>
void forward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  parallel_for(runs, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) y[i] = static_cast<T>(sum_run(x + i * n, n) / divisor);
  });
}

}  // namespace taper::kernels::average
