#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/sum_row.hpp"

/// The loops of average pools over any axes; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// Elements of a row that are worked on at once; what the buffers on the stack hold.
constexpr std::int64_t kTile = 1024;
/// Input rows of one unit of backward work.
constexpr std::int64_t kRowBlock = 64;

/// A pool in the form the loops take: axes [D, H, W], what is left of the options.
template <class Axis>
struct Pool {
  std::int64_t planes;
  Axis d, h, w;
  bool count_include_pad = false;
  double divisor = 0;  ///< the one divisor of all windows; 0 when it differs between windows
};

/// Calls `body` with a function that divides by `divisor`: by a product where that gives the same bits.
template <class Body>
void with_quotient(double divisor, const Body& body) {
  // The reciprocal of a power of two is exact, and so is the product with it.
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  if ((std::bit_cast<std::uint64_t>(divisor) & kFraction) == 0)
    body([inverse = 1 / divisor](double s) { return s * inverse; });
  else
    body([divisor](double s) { return s / divisor; });
}

/// y_i = s_i / divisor, rounded once.
template <class T>
void divide_row(const double* s, std::int64_t n, double divisor, T* y) {
  with_quotient(divisor, [=](const auto& quotient) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(quotient(s[i]));
  });
}

/// y_o = sums_o / divisor of window o, for windows [o0, o1); `rows` is what the other axes count.
template <class T>
void divide_windows(const Pool<FixedAxis>& p, double rows, const double* sums, std::int64_t o0, std::int64_t o1, T* y) {
  if (p.divisor != 0) return divide_row(sums, o1 - o0, p.divisor, y);
  p.w.for_counts(p.count_include_pad, o0, o1, [&](std::int64_t a, std::int64_t b, std::int64_t count) {
    const double divisor = rows * static_cast<double>(count);
    if (b - a == 1)
      y[a - o0] = static_cast<T>(sums[a - o0] / divisor);
    else
      divide_row(sums + (a - o0), b - a, divisor, y + (a - o0));
  });
}

template <class T>
void divide_windows(const Pool<AdaptiveAxis>& p, double rows, const double* sums, std::int64_t o0, std::int64_t o1,
                    T* y) {
  auto cursor = p.w.cursor(o0);
  for (std::int64_t o = o0; o < o1; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    y[o - o0] = static_cast<T>(sums[o - o0] / (rows * static_cast<double>(b.last - b.first)));
  }
}

/// The elements of a row at positions [first, last), those in front of and behind the input being zeros.
template <class S>
struct RowPart {
  const S* x;
  std::int64_t first, last;
};

/// sums_o = sum of window o, for windows [o0, o1).
template <class S>
void sum_windows(const FixedAxis& axis, const RowPart<S>& row, std::int64_t o0, std::int64_t o1, double* sums) {
  const auto border = [&](std::int64_t o) {
    const WindowBounds b = axis.at(o);
    sums[o - o0] = sum_row(row.x + (b.first - row.first), b.last - b.first);
  };
  const Window1d& w = axis.window;
  std::int64_t o = o0;
  for (; o < o1 && o * w.stride - w.padding_left < row.first; ++o) border(o);
  const std::int64_t reach = row.last + w.padding_left - w.kernel;
  const bool all = (o1 - 1) * w.stride <= reach;
  const std::int64_t inside = all ? o1 : reach < 0 ? o : reach / w.stride + 1;
  if (o < inside) {
    const std::int64_t at = o * w.stride - w.padding_left - row.first;
    sum_runs(row.x + at, w.kernel, w.stride, inside - o, sums + (o - o0), 1);
    o = inside;
  }
  for (; o < o1; ++o) border(o);
}

template <class S>
void sum_windows(const AdaptiveAxis& axis, const RowPart<S>& row, std::int64_t o0, std::int64_t o1, double* sums) {
  auto cursor = axis.cursor(o0);
  for (std::int64_t o = o0; o < o1; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    sums[o - o0] = sum_row(row.x + (b.first - row.first), b.last - b.first);
  }
}

/// sum_c = the rows `d` x `h` of a plane at column c, from the first row down; at least one row.
template <class T>
void sum_columns(const T* x, const IndexRange& d, const IndexRange& h, std::int64_t height, std::int64_t pitch,
                 std::int64_t n, double* sum) {
  std::int64_t rows = (d.last - d.first) * (h.last - h.first);
  std::int64_t i = d.first, j = h.first;
  const auto next = [&] {
    const T* row = x + (i * height + j) * pitch;
    if (++j == h.last) j = h.first, ++i;
    --rows;
    return row;
  };
  const T* const r0 = next();
  if (rows == 0) {
    for (std::int64_t c = 0; c < n; ++c) sum[c] = static_cast<double>(r0[c]);
    return;
  }
  const T* const r1 = next();
  if (rows == 0) {
    for (std::int64_t c = 0; c < n; ++c) sum[c] = static_cast<double>(r0[c]) + static_cast<double>(r1[c]);
    return;
  }
  const T* const r2 = next();
  for (std::int64_t c = 0; c < n; ++c)
    sum[c] = static_cast<double>(r0[c]) + static_cast<double>(r1[c]) + static_cast<double>(r2[c]);
  while (rows > 0) {
    const T* const row = next();
    for (std::int64_t c = 0; c < n; ++c) sum[c] += static_cast<double>(row[c]);
  }
}

/// The positions of a row that windows [o0, o1) span. With short windows they go into the padding, whose
/// zeros (-0, which changes no sum) let every window be summed alike; longer windows stop at the input.
inline IndexRange columns_of(const FixedAxis& axis, std::int64_t o0, std::int64_t o1) {
  const Window1d& w = axis.window;
  if (w.kernel > kShortRun) return {axis.at(o0).first, axis.at(o1 - 1).last};
  return {o0 * w.stride - w.padding_left, (o1 - 1) * w.stride - w.padding_left + w.kernel};
}
inline IndexRange columns_of(const AdaptiveAxis& axis, std::int64_t o0, std::int64_t o1) {
  return {axis.at(o0).first, axis.at(o1 - 1).last};
}

/// One row of outputs of one plane: the windows with rows `bd` x `bh`, `step` of which fit the buffers.
template <class Axis, class T>
void forward_row(const Pool<Axis>& p, std::int64_t step, const WindowBounds& bd, const WindowBounds& bh, const T* x,
                 T* y) {
  const double rows =
      static_cast<double>(bd.counted(p.count_include_pad)) * static_cast<double>(bh.counted(p.count_include_pad));
  const IndexRange d{bd.first, bd.last}, h{bh.first, bh.last};
  const std::int64_t width = p.w.in, outputs = p.w.out;
  double sums[kTile];
  if ((d.last - d.first) * (h.last - h.first) == 1) {
    const RowPart<T> row{x + (d.first * p.h.in + h.first) * width, 0, width};
    for (std::int64_t o = 0; o < outputs; o += kTile) {
      const std::int64_t end = std::min(o + kTile, outputs);
      sum_windows(p.w, row, o, end, sums);
      divide_windows(p, rows, sums, o, end, y + o);
    }
    return;
  }
  if (step > 0) {
    double columns[kTile];
    for (std::int64_t o = 0; o < outputs; o += step) {
      const std::int64_t end = std::min(o + step, outputs);
      const IndexRange c = columns_of(p.w, o, end);
      const std::int64_t first = std::max<std::int64_t>(c.first, 0), last = std::min(c.last, width);
      std::fill(columns, columns + (first - c.first), -0.0);
      sum_columns(x + first, d, h, p.h.in, width, last - first, columns + (first - c.first));
      std::fill(columns + (last - c.first), columns + (c.last - c.first), -0.0);
      sum_windows(p.w, RowPart<double>{columns, c.first, c.last}, o, end, sums);
      divide_windows(p, rows, sums, o, end, y + o);
    }
    return;
  }
  // Windows wider than the buffer: row by row, y_o = (row_0 + row_1 + ...) / divisor
  auto cursor = p.w.cursor(0);
  for (std::int64_t o = 0; o < outputs; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    double sum = 0;
    for (std::int64_t i = d.first; i < d.last; ++i)
      for (std::int64_t j = h.first; j < h.last; ++j)
        sum += sum_row(x + (i * p.h.in + j) * width + b.first, b.last - b.first);
    const double divisor = p.divisor != 0 ? p.divisor : rows * static_cast<double>(b.counted(p.count_include_pad));
    y[o] = static_cast<T>(sum / divisor);
  }
}

template <class Axis, class T>
void forward(const Pool<Axis>& p, const T* x, T* y) {
  const std::int64_t rows = p.d.out * p.h.out;
  const std::int64_t step = std::min(p.w.windows_within(kTile), kTile);
  const std::int64_t size = p.d.in * p.h.in * p.w.in;
  parallel_for(p.planes * rows, size / rows + p.w.out, [&](std::int64_t first, std::int64_t last) {
    std::int64_t plane = first / rows, d = first % rows / p.h.out, h = first % p.h.out;
    for (std::int64_t unit = first; unit < last; ++unit) {
      forward_row(p, step, p.d.at(d), p.h.at(h), x + plane * size, y + unit * p.w.out);
      if (++h < p.h.out) continue;
      h = 0;
      if (++d < p.d.out) continue;
      d = 0;
      ++plane;
    }
  });
}

/// dx_i = (g_first + ... + g_{last - 1}) / divisor over the windows of position i, for i in [i0, i1); `g` is
/// given from window `origin` on, `dx` from position i0 on.
template <class Axis, class S, class T>
void gather_row(const Axis& axis, const S* g, std::int64_t origin, double divisor, std::int64_t i0, std::int64_t i1,
                T* dx) {
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

/// dx_{K o}, ..., dx_{K o + K - 1} = g_o / divisor
template <int K, class S, class T>
void spread(const S* g, std::int64_t n, double divisor, T* dx) {
  with_quotient(divisor, [=](const auto& quotient) {
    for (std::int64_t o = 0; o < n; ++o) {
      const T value = static_cast<T>(quotient(static_cast<double>(g[o])));
      for (int j = 0; j < K; ++j) dx[o * K + j] = value;
    }
  });
}

/// The gradient of positions [i0, i1), at most `kTile` of them and of the windows over them. With `margin`, `g`
/// has `kShortRun` zeros before its first window and behind its last.
template <class S, class T>
void gradient_row(const AdaptiveAxis& axis, const S* g, std::int64_t origin, double divisor, std::int64_t i0,
                  std::int64_t i1, bool, T* dx) {
  if (axis.in < axis.out || i0 != 0 || i1 != axis.in) return gather_row(axis, g, origin, divisor, i0, i1, dx);
  // Neighbouring windows of a whole row share one position at most: dx_i = (g_{o-1} + g_o) / divisor
  auto cursor = axis.cursor(0);
  std::int64_t done = 0;
  for (std::int64_t o = 0; o < axis.out; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    if (b.first < done)
      dx[b.first] = static_cast<T>((static_cast<double>(g[o - 1]) + static_cast<double>(g[o])) / divisor);
    std::fill(dx + done, dx + b.last, static_cast<T>(static_cast<double>(g[o]) / divisor));
    done = b.last;
  }
}

template <class S, class T>
void gradient_row(const FixedAxis& axis, const S* g, std::int64_t origin, double divisor, std::int64_t i0,
                  std::int64_t i1, bool margin, T* dx) {
  const auto [k, s, p, unused_right, unused_dilation, unused_ceil] = axis.window;
  std::int64_t a = i0, b = i0;  // the part with a loop of its own
  if (k == s && (k == 2 || k == 3)) {
    const std::int64_t o0 = (i0 + p + s - 1) / s, o1 = std::min(axis.out, (i1 + p) / s);
    if (o0 < o1) {
      a = o0 * s - p, b = o1 * s - p;
      if (k == 2)
        spread<2>(g + (o0 - origin), o1 - o0, divisor, dx + (a - i0));
      else
        spread<3>(g + (o0 - origin), o1 - o0, divisor, dx + (a - i0));
    }
  } else if (s < k && (k - 1) / s < kShortRun) {
    // Positions that no border keeps from a window; those of one phase i % s lie in equally many.
    a = margin ? i0 : std::max(i0, k - 1 - p);
    b = margin ? i1 : std::min(i1, axis.out * s - p);
    if (a < b) {
      double sums[kTile];
      for (std::int64_t i = a; i < std::min(a + s, b); ++i) {
        const std::int64_t newest = (i + p) / s, n = (k - 1 - (i + p) % s) / s + 1;
        sum_runs(g + (newest - n + 1 - origin), n, 1, (b - 1 - i) / s + 1, sums + (i - a), s);
      }
      divide_row(sums, b - a, divisor, dx + (a - i0));
    }
  }
  if (a >= b) return gather_row(axis, g, origin, divisor, i0, i1, dx);
  gather_row(axis, g, origin, divisor, i0, a, dx);
  gather_row(axis, g, origin, divisor, b, i1, dx + (b - i0));
}

/// sum_o = sum over the rows of dy_o / divisor of its window, or of dy_o alone when all divisors are the same;
/// `n` windows from `o0` on.
template <class Axis, class T>
void sum_gradients(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, std::int64_t o0,
                   std::int64_t n, double* sum) {
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
    return divide_windows(p, rows, sum, o0, o0 + n, sum);
  }
  std::fill(sum, sum + n, 0.0);
  for (std::int64_t i = d.first; i < d.last; ++i)
    for (std::int64_t j = h.first; j < h.last; ++j) {
      const T* row = dy + (i * p.h.out + j) * p.w.out + o0;
      const double r = rows_of(i, j);
      p.w.for_counts(p.count_include_pad, o0, o0 + n, [&](std::int64_t a, std::int64_t b, std::int64_t count) {
        const double divisor = r * static_cast<double>(count);
        for (std::int64_t o = a; o < b; ++o) sum[o - o0] += static_cast<double>(row[o - o0]) / divisor;
      });
    }
}

/// dx of positions [i0, i1) of a row that the windows `d` x `h` hold.
template <class Axis, class T>
void gradient_tile(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, std::int64_t i0,
                   std::int64_t i1, T* dx) {
  const std::int64_t origin = i0 == 0 ? 0 : p.w.over(i0).first;
  const std::int64_t n = (i1 == p.w.in ? p.w.out : p.w.over(i1 - 1).last) - origin;
  if (p.divisor != 0 && (d.last - d.first) * (h.last - h.first) == 1) {
    const T* row = dy + (d.first * p.h.out + h.first) * p.w.out + origin;
    return gradient_row(p.w, row, origin, p.divisor, i0, i1, false, dx);
  }
  double buffer[kTile + 2 * kShortRun];
  double* const g = buffer + kShortRun;
  sum_gradients(p, dy, d, h, origin, n, g);
  std::fill(buffer, g, 0.0);
  std::fill(g + n, g + n + kShortRun, 0.0);
  gradient_row(p.w, static_cast<const double*>(g), origin, p.divisor != 0 ? p.divisor : 1.0, i0, i1, true, dx);
}

/// As `gradient_tile` when a position lies in more windows than the buffers hold: dx_i = sum over windows, in
/// pieces.
template <class Axis, class T>
T gradient_of_many(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, const IndexRange& w) {
  double g[kTile], sum = 0;
  for (std::int64_t o = w.first; o < w.last; o += kTile) {
    const std::int64_t n = std::min(kTile, w.last - o);
    sum_gradients(p, dy, d, h, o, n, g);
    sum += sum_row(g, n);
  }
  return static_cast<T>(p.divisor != 0 ? sum / p.divisor : sum);
}

/// Writes `value` to, or adds it to, `n` positions of each of `rows` rows.
template <class T>
void store_rows(const T* value, std::int64_t n, std::int64_t rows, std::int64_t pitch, T* dx, bool add) {
  for (std::int64_t r = 0; r < rows; ++r, dx += pitch) {
    if (add) {
      for (std::int64_t i = 0; i < n; ++i) dx[i] += value[i];
    } else if (dx != value) {
      std::memcpy(dx, value, static_cast<std::size_t>(n) * sizeof(T));
    }
  }
}

/// `rows` input rows at `dx` that lie in the same windows `d` x `h`; `step` of their positions fit the buffers.
template <class Axis, class T>
void backward_rows(const Pool<Axis>& p, std::int64_t step, const T* dy, const IndexRange& d, const IndexRange& h,
                   std::int64_t rows, T* dx, bool add) {
  const std::int64_t width = p.w.in;
  if (d.first >= d.last || h.first >= h.last) {
    if (!add) std::fill(dx, dx + rows * width, T(0));
    return;
  }
  T buffer[kTile];
  if (step > 0) {
    for (std::int64_t i = 0; i < width; i += step) {
      const std::int64_t end = std::min(i + step, width);
      T* const value = add ? buffer : dx + i;
      gradient_tile(p, dy, d, h, i, end, value);
      store_rows(value, end - i, rows, width, dx + i, add);
    }
    return;
  }
  Sweep<Axis> sweep(p.w, 0);
  for (std::int64_t i = 0; i < width;) {
    const IndexRange w = sweep.over();
    const std::int64_t end = std::min({sweep.end(), width, i + kTile});
    std::fill(buffer, buffer + (end - i), w.first < w.last ? gradient_of_many(p, dy, d, h, w) : T(0));
    store_rows(static_cast<const T*>(buffer), end - i, rows, width, dx + i, add);
    if ((i = end) < width) sweep.to(i);
  }
}

template <class Axis, class T>
void backward(const Pool<Axis>& p, const T* dy, T* dx, bool add) {
  const std::int64_t height = p.h.in, width = p.w.in;
  const std::int64_t step = std::min(p.w.positions_within(kTile), kTile);
  const std::int64_t blocks = (height - 1) / kRowBlock + 1;
  const std::int64_t units = p.d.in * blocks;
  const std::int64_t outputs = p.d.out * p.h.out * p.w.out;
  const std::int64_t work = std::min(height, kRowBlock) * width + outputs / units;
  parallel_for(p.planes * units, work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t plane = unit / units, d = unit % units / blocks;
      const std::int64_t h0 = unit % blocks * kRowBlock, h1 = std::min(h0 + kRowBlock, height);
      const IndexRange over_d = p.d.over(d);
      Sweep<Axis> sweep(p.h, h0);
      for (std::int64_t h = h0;;) {
        const std::int64_t end = std::min(sweep.end(), h1);
        backward_rows(p, step, dy + plane * outputs, over_d, sweep.over(), end - h,
                      dx + ((plane * p.d.in + d) * height + h) * width, add);
        if (end >= h1) break;
        sweep.to(h = end);
      }
    }
  });
}

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor
template <class T>
void forward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  parallel_for(runs, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) y[i] = static_cast<T>(sum_row(x + i * n, n) / divisor);
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
