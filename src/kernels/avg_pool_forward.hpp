#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/avg_pool_sums.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/sum_row.hpp"
#include "kernels/sum_run.hpp"

/// The forward of average pools over any axes; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// A pool in the form the loops take: axes [D, H, W], what is left of the options.
struct Pool {
  std::int64_t planes;
  PoolAxis d, h, w;
  bool count_include_pad = false;
  double divisor = 0;  ///< the one divisor of all windows; 0 when it differs between windows
};

/// Windows of a row that are worked on at once, and positions that they span together at most.
inline constexpr std::int64_t kTile = 1024, kSpan = 4096;
/// What vectors that go over the end of a row may read.
inline constexpr std::int64_t kSlack = 64;

/// What windows of a tile count, and what their sums are divided by.
template <class A>
struct Counts {
  double count[kSpan];
  A by[kSpan + kLanes<A>], rest[kSpan + kLanes<A>];
  double rows;  ///< that `made` is for
  Divisor<A> made;

  /// Of windows [o0, o0 + n).
  void set(const PoolAxis& axis, bool count_include_pad, std::int64_t o0, std::int64_t n) {
    axis.for_counts(count_include_pad, o0, o0 + n, [=, this](std::int64_t a, std::int64_t b, std::int64_t counted) {
      std::fill(count + (a - o0), count + (b - o0), static_cast<double>(counted));
    });
    rows = 0;
  }
  /// Of `n` windows that count `other_rows` in other axes.
  template <class T>
  const Divisor<A>& divisor(double other_rows, std::int64_t n, T zero) {
    if (rows != other_rows) made = Divisor<A>::each(rows = other_rows, count, n, by, rest, zero);
    return made;
  }
};

/// The same pool with all planes in one, where no row of windows would reach into two.
inline Pool joined(Pool p) {
  const auto in = checked::mul(p.planes, p.h.in);
  if (p.planes == 0 || p.d.in != 1 || p.d.out != 1 || !p.h.is_tiled() || !in) return p;
  p.h.in = *in;
  p.h.out *= p.planes;
  p.planes = 1;
  return p;
}

/// How the windows of a row are summed; see the loops in avg_pool_sums.hpp.
enum class Way { taps, groups, spans, long_spans, sliding };

inline Way way_of(const PoolAxis& axis) {
  if (axis.is_adaptive) return axis.longest() <= kShort ? Way::spans : Way::long_spans;
  const std::int64_t k = axis.window.kernel, s = axis.window.stride;
  if (k > kShort) return k / 4 >= s ? Way::sliding : Way::long_spans;
  if (k == s && k >= 2 && k <= 4) return Way::groups;
  return s <= 2 || axis.out == 1 ? Way::taps : Way::spans;
}

/// Windows [o0, o1) of a row, and the positions [first, last) that they span, which go into the padding.
struct Tile {
  std::int64_t o0, o1;
  std::int64_t first, last;
  std::int64_t outputs() const { return o1 - o0; }
};

inline Tile tile_of(const PoolAxis& axis, std::int64_t o0, std::int64_t o1) {
  if (axis.is_adaptive) return {o0, o1, axis.at(o0).first, axis.at(o1 - 1).last};
  const Window1d& w = axis.window;
  return {o0, o1, o0 * w.stride - w.padding_left, (o1 - 1) * w.stride - w.padding_left + w.kernel};
}

/// Lists where windows lie in a tile's rows, and completes the last four.
inline void list_spans(const PoolAxis& axis, const Tile& t, Span* spans) {
  auto cursor = axis.cursor(t.o0);
  for (std::int64_t i = 0; i < t.outputs(); ++i, cursor.next()) {
    const WindowBounds w = axis.is_adaptive ? cursor.bounds() : WindowBounds{};
    const std::int64_t first = axis.is_adaptive ? w.first - t.first : i * axis.window.stride;
    const std::int64_t length = axis.is_adaptive ? w.last - w.first : axis.window.kernel;
    spans[i] = {static_cast<std::int32_t>(first), static_cast<std::int32_t>(first + length)};
  }
  std::fill(spans + t.outputs(), spans + t.outputs() + 3, spans[t.outputs() - 1]);
}

/// Buffers of the forward, on the stack.
template <class A>
struct ForwardBuffers {
  alignas(64) A columns[kSlack + kSpan + kSlack];  ///< rows of the sums of columns
  Counts<A> counts;                                ///< where that differs
  Span spans[kTile + 3], inner_spans[kTile + 3];   ///< of windows summed in the buffer, and where they are
};

/// One row of outputs, number `unit` of all planes.
struct OutputRow {
  std::int64_t plane, d, h;
  OutputRow(const Pool& p, std::int64_t unit)
      : plane(unit / (p.d.out * p.h.out)), d(unit / p.h.out % p.d.out), h(unit % p.h.out) {}
  /// To the row `rows` further, which is of the same slice or the first of the next one.
  void advance(const Pool& p, std::int64_t rows) {
    if ((h += rows) < p.h.out) return;
    h = 0;
    if (++d < p.d.out) return;
    d = 0;
    ++plane;
  }
};

/// Forward of one pool, with sums in A.
template <class A, class T>
class Forward {
 public:
  Forward(const Pool& pool, const T* x, T* y)
      : p_(joined(pool)), way_(way_of(pool.w)), divisor_(Divisor<A>::all(pool.divisor, T())), x_(x), y_(y) {}

  void run() const {
    const std::int64_t rows = p_.d.out * p_.h.out, size = p_.d.in * p_.h.in * p_.w.in;
    parallel_for(p_.planes * rows, size / rows + p_.w.out, [self = *this](std::int64_t first, std::int64_t last) {
      ForwardBuffers<A> buffers;
      self.rows(first, last, buffers);
    });
  }

 private:
  void rows(std::int64_t first, std::int64_t last, ForwardBuffers<A>& b) const {
    const std::int64_t most = way_ == Way::sliding && p_.divisor != 0 ? kSpan : kTile;
    const std::int64_t step = std::min(p_.w.windows_within(kSpan), most);
    if (step == 0) {
      for (std::int64_t unit = first; unit < last; ++unit) wide_row(unit);
      return;
    }
    if (const Tile inner = inner_tile(step); inner.outputs() > 0) return long_rows(first, last, inner, step, b);
    // Rows of more than one tile are taken a few at a time, as they lie in memory.
    const std::int64_t chunk = step >= p_.w.out ? last - first : 8;
    for (std::int64_t unit = first; unit < last; unit += chunk)
      for (std::int64_t o = 0; o < p_.w.out; o += step)
        tile_rows(tile_of(p_.w, o, std::min(o + step, p_.w.out)), unit, std::min(unit + chunk, last), b);
  }

  /// The windows of a row that can be summed where they are; none where that does not pay.
  Tile inner_tile(std::int64_t step) const {
    constexpr Tile none{0, 0, 0, 0};
    if constexpr (!std::is_same_v<A, T>) return none;
    if (!p_.d.takes_one() || !p_.h.takes_one() || way_ == Way::long_spans || way_ == Way::sliding) return none;
    if (p_.w.is_adaptive) return p_.w.in / p_.w.out >= 4 && step >= p_.w.out ? tile_of(p_.w, 0, p_.w.out) : none;
    const Window1d& w = p_.w.window;
    const std::int64_t vector = kLanes<A>, o0 = (w.padding_left + w.stride - 1) / w.stride;
    const std::int64_t room = p_.w.in + w.padding_left - w.kernel - (way_ == Way::taps ? w.stride - 1 : 0);
    const std::int64_t n = room < 0 ? 0 : (room / w.stride + 1 - o0) / vector * vector;
    return n >= 4 * vector && (way_ != Way::spans || w.kernel >= 4) ? tile_of(p_.w, o0, o0 + n) : none;
  }

  /// Rows whose windows are mostly summed where they are.
  void long_rows(std::int64_t first, std::int64_t last, const Tile& inner, std::int64_t step,
                 ForwardBuffers<A>& b) const {
    const std::int64_t width = p_.w.in, left = inner.o0, right = inner.o1;
    const std::int64_t most = std::min(inner.outputs(), kTile);
    if (way_ == Way::spans) list_spans(p_.w, tile_of(p_.w, inner.o0, inner.o0 + most), b.inner_spans);
    const Divisor<A> divisor = inner_divisor(inner, b);
    OutputRow row(p_, first);
    for (std::int64_t unit = first, rows; unit < last; unit += rows, row.advance(p_, rows)) {
      rows = std::min({last - unit, p_.h.alike_from(row.h), std::max<std::int64_t>(1, kSpan / width)});
      const T* const x =
          x_ + ((row.plane * p_.d.in + p_.d.at(row.d).first) * p_.h.in + p_.h.at(row.h).first) * width + inner.first;
      T* const y = y_ + unit * p_.w.out + left;
      const Repeat down{rows, p_.h.window.stride * width, p_.w.out};
      if (left > 0) tile_rows(tile_of(p_.w, 0, left), unit, unit + rows, b);
      for (std::int64_t o = 0; o < inner.outputs(); o += most) {
        const std::int64_t n = std::min(most, inner.outputs() - o);
        if constexpr (std::is_same_v<A, T>) average(x + o * stride(), n, down, divisor, b.inner_spans, y + o);
      }
      for (std::int64_t o = right; o < p_.w.out; o += step)
        tile_rows(tile_of(p_.w, o, std::min(o + step, p_.w.out)), unit, unit + rows, b);
    }
  }

  std::int64_t stride() const { return p_.w.window.stride; }
  std::int64_t kernel() const { return p_.w.window.kernel; }
  std::int64_t shortest() const { return p_.w.is_adaptive ? p_.w.longest() - 1 : kernel(); }

  /// Of windows in one row of which no border cuts anything off.
  Divisor<A> inner_divisor(const Tile& inner, ForwardBuffers<A>& b) const {
    if (p_.divisor != 0) return divisor_;
    if (!p_.w.is_adaptive) return Divisor<A>::all(static_cast<double>(kernel()), T());
    b.counts.set(p_.w, p_.count_include_pad, inner.o0, inner.outputs());
    return b.counts.divisor(1, inner.outputs(), T());
  }

  /// Windows of output rows [first, last).
  void tile_rows(const Tile& t, std::int64_t first, std::int64_t last, ForwardBuffers<A>& b) const {
    const std::int64_t pitch = t.last - t.first, width = p_.w.out;
    const std::int64_t batch = way_ == Way::sliding ? 1 : std::max<std::int64_t>(2 * kTile / pitch, 1);
    if (p_.divisor == 0) b.counts.set(p_.w, p_.count_include_pad, t.o0, t.outputs());
    if (way_ == Way::spans || way_ == Way::long_spans) list_spans(p_.w, t, b.spans);
    A* const columns = b.columns + kSlack;
    // Where no row of the input is stays -0, which changes no sum.
    if (t.first < 0 || t.last > p_.w.in) std::fill(columns, columns + std::min(batch, last - first) * pitch, A(-0.0));
    OutputRow row(p_, first);
    for (std::int64_t unit = first, rows; unit < last; unit += rows, row.advance(p_, rows)) {
      const WindowBounds d = p_.d.at(row.d), h = p_.h.at(row.h);
      rows = std::min({batch, last - unit, p_.h.alike_from(row.h)});
      const Repeat down{rows, p_.h.window.stride * p_.w.in, pitch};
      T* const y = y_ + unit * width + t.o0;
      const Divisor<A> divisor = p_.divisor != 0
                                     ? divisor_
                                     : b.counts.divisor(static_cast<double>(d.counted(p_.count_include_pad)) *
                                                            static_cast<double>(h.counted(p_.count_include_pad)),
                                                        t.outputs(), T());
      sum_columns(row, d, h, t, down, columns);
      if (way_ != Way::sliding) {
        average(columns, t.outputs(), {rows, pitch, width}, divisor, b.spans, y);
      } else if (!slide(t, columns, divisor, y)) {
        sum_columns(row, d, h, t, down, columns);
        slide_exactly(t, columns, divisor, y);
      }
    }
  }

  /// Sums the rows of a window of the other axes over a tile's columns.
  void sum_columns(const OutputRow& row, const WindowBounds& d, const WindowBounds& h, const Tile& t,
                   const Repeat& down, A* columns) const {
    const std::int64_t width = p_.w.in, from = std::max<std::int64_t>(t.first, 0), to = std::min(t.last, width);
    sum_rows(x_ + ((row.plane * p_.d.in + d.first) * p_.h.in + h.first) * width + from,
             Rows{p_.h.in * width, d.last - d.first}, Rows{width, h.last - h.first}, to - from, down,
             columns + (from - t.first), AsItIs());
    if (way_ != Way::sliding) return;
    // Sliding uses the columns up.
    std::fill(columns, columns + (from - t.first), A(-0.0));
    std::fill(columns + (to - t.first), columns + (t.last - t.first), A(-0.0));
  }

  /// y_o = sum over window o / divisor_o in each row.
  void average(const A* x, std::int64_t n, const Repeat& rows, const Divisor<A>& divisor, const Span* spans,
               T* y) const {
    if (way_ == Way::spans) return average_spans(x, spans, shortest(), n, rows, divisor, y);
    if constexpr (std::is_same_v<A, double>)
      if (way_ == Way::long_spans) return average_long_spans(x, spans, n, rows, divisor, y);
    const std::int64_t k = kernel();
    if (way_ == Way::taps && (stride() == 1 || n == 1)) return average_taps<1>(x, k, n, rows, divisor, y);
    if (way_ == Way::taps) return average_taps<2>(x, k, n, rows, divisor, y);
    if (k == 2) return average_groups<2>(x, n, rows, divisor, y);
    if (k == 3) return average_groups<3>(x, n, rows, divisor, y);
    average_groups<4>(x, n, rows, divisor, y);
  }

  /// The same for long windows that overlap. Whether it could: sums from others are not exact enough for float64, and
  /// do not serve windows behind an infinity.
  bool slide(const Tile& t, A* columns, const Divisor<A>& divisor, T* y) const {
    if constexpr (sizeof(T) < sizeof(A)) {
      const std::int64_t n = t.last - t.first - kernel() + 1;
      std::fill(columns + (t.last - t.first), columns + (t.last - t.first) + kLanes<A>, A(0));
      if (stride() == 1)
        return slide_sums(columns, kernel(), n, [&](std::int64_t o, const Vec<A>& sums, std::int64_t some) {
          const Vec<A> quotients = divisor(sums, o);
          some == kLanes<A> ? store<A>(quotients, y + o) : store_first<A>(quotients, some, y + o);
        });
      // They go behind the columns that are still to leave windows.
      A* const to = columns - kLanes<A>;
      const bool all = slide_sums(columns, kernel(), n,
                                  [to](std::int64_t o, const Vec<A>& sums, std::int64_t) { store<A>(sums, to + o); });
      for (std::int64_t o = 0; o < t.outputs(); ++o) y[o] = static_cast<T>(divisor(to[o * stride()], o));
      return all;
    }
    return false;
  }
  void slide_exactly(const Tile& t, const A* columns, const Divisor<A>& divisor, T* y) const {
    if constexpr (std::is_same_v<A, double>) {
      double sums[kSpan];
      sum_runs(columns, kernel(), t.last - t.first - kernel() + 1, sums);
      for (std::int64_t o = 0; o < t.outputs(); ++o) y[o] = static_cast<T>(divisor(sums[o * stride()], o));
    }
  }

  /// Windows wider than the buffers, row by row: y_o = (row_0 + row_1 + ...) / divisor
  void wide_row(std::int64_t unit) const {
    const OutputRow row(p_, unit);
    const WindowBounds d = p_.d.at(row.d), h = p_.h.at(row.h);
    const double rows =
        static_cast<double>(d.counted(p_.count_include_pad)) * static_cast<double>(h.counted(p_.count_include_pad));
    const T* const x = x_ + row.plane * p_.d.in * p_.h.in * p_.w.in;
    T* const y = y_ + unit * p_.w.out;
    auto cursor = p_.w.cursor(0);
    for (std::int64_t o = 0; o < p_.w.out; ++o, cursor.next()) {
      const WindowBounds b = cursor.bounds();
      double sum = 0;
      for (std::int64_t i = d.first; i < d.last; ++i)
        for (std::int64_t j = h.first; j < h.last; ++j)
          sum += sum_row(x + (i * p_.h.in + j) * p_.w.in + b.first, b.last - b.first);
      const double divisor = p_.divisor != 0 ? p_.divisor : rows * static_cast<double>(b.counted(p_.count_include_pad));
      y[o] = static_cast<T>(sum / divisor);
    }
  }

  const Pool p_;
  const Way way_;
  const Divisor<A> divisor_;  ///< where all windows share one
  const T* const x_;
  T* const y_;
};

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor
template <class T>
void forward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  parallel_for(runs, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) y[i] = static_cast<T>(sum_run(x + i * n, n) / divisor);
  });
}

}  // namespace taper::kernels::average
