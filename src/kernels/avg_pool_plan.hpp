#pragma once

#include <cstdint>

#include "kernels/avg_pool_long.hpp"
#include "kernels/avg_pool_small.hpp"
#include "kernels/pool_reads.hpp"

/// What an average pool's pass is prepared with: which loops it takes, and which rows are read for which.
namespace taper::kernels::average {

/// Windows with at most this many columns are summed in the type of the elements, if they have few rows.
inline constexpr std::int64_t kShort = 16;
/// Results of a row that are worked on at once where their windows are listed, and columns that these span at most.
inline constexpr std::int64_t kTile = 1024, kSpan = 4096;
/// Columns of the rows that are worked on at once, if these are several.
inline constexpr std::int64_t kBatch = 2048;
/// Rows of one unit of work at most.
inline constexpr std::int64_t kRows = 128;
/// What vectors that go over the end of a row may read.
inline constexpr std::int64_t kSlack = 64;

/// A pool in the form the loops take: axes [D, H, W], what is left of the options.
struct Pool {
  std::int64_t planes = 0;
  PoolAxis d = {}, h = {}, w = {};
  bool count_include_pad = false;
  double divisor = 0;  ///< the one divisor of all windows; 0 when it differs between windows
};

/// How the sums along a row are taken, `spread` backward alone; see the loops in avg_pool_loops.hpp.
enum class Way { taps, spread, short_spans, spans, sliding };

/// From where to where a pass goes: from elements to windows, or from the gradients of windows to those of elements.
/// Each result is a sum over what it reads along each axis.
struct Course {
  const Pool& pool;
  Reads d, h, w;
  bool backward;
  Way way = Way::taps;
  Small small = Small::none;
};

[[gnu::noinline]] inline Way way_of(const Reads& r, bool backward) {
  if (r.step > 1 || r.dilation > 0)
    return r.den == 1 && r.num <= 2 && r.most() <= kSpan / r.step ? Way::taps : Way::spans;
  const std::int64_t most = r.most();
  if (r.den == 1 && most <= kShort) return r.num <= 2 || (r.num <= 4 && r.num == most) ? Way::taps : Way::short_spans;
  if (r.den == 1) return most / 4 >= r.num && most <= kLongest ? Way::sliding : Way::spans;
  if (backward && r.to >= r.from && r.least() <= kShort) return Way::spread;
  return most <= kShort ? Way::short_spans : Way::spans;
}

/// Whether windows begin at each element of rows of which each is summed alone, and are long: float32 then keeps what
/// it must.
inline bool slides_along_rows(const Course& c) {
  return c.d.takes_one() && c.h.takes_one() && c.w.num == 1 && c.way == Way::sliding;
}

/// Windows that have loops of their own: those of one row's width and of the same kind in both axes.
[[gnu::noinline]] inline Small small_of(const Course& c) {
  // Gradients of windows that differ in what they count along the depth are not added before they are scaled.
  if (c.d.dilation > 0 || (c.backward && c.pool.divisor == 0 && !c.d.takes_one())) return Small::none;
  if (c.w.from > kTile || c.w.to > 2 * kTile) return Small::none;
  const auto both = [&](std::int64_t num, std::int64_t den, std::int64_t low, std::int64_t high) {
    const auto is = [=](const Reads& r) {
      return r.num == num && r.den == den && r.low == low && r.high == high && r.step == 1 && r.dilation == 0;
    };
    return is(c.h) && is(c.w);
  };
  if (both(2, 1, 0, 2)) return Small::pairs;
  if (both(1, 1, -1, 2)) return Small::threes;
  if (both(2, 1, -1, 2)) return Small::strided_threes;
  if (both(1, 2, 0, 2)) return Small::pairs_back;
  if (both(1, 2, 0, 3)) return Small::strided_threes_back;
  return Small::none;
}

/// Results [o0, o1) of a row, and the columns [c0, c1) that they read, some of which may be beside the source.
struct Tile {
  std::int64_t o0, o1;
  std::int64_t c0, c1;
  std::int64_t results() const { return o1 - o0; }
  std::int64_t columns() const { return c1 - c0; }
};

/// What windows count along an axis.
struct Counts {
  const PoolAxis& axis;
  bool count_include_pad, is_one;  ///< each one, where all windows have one divisor

  [[gnu::noinline]] double of(std::int64_t o) const {
    if (is_one) return 1;
    // Most windows lie in the input.
    const Window1d& w = axis.window;
    const std::int64_t start = o * w.stride - w.padding_left;
    if (!axis.is_adaptive && start >= 0 && axis.in - start > w.dilation * (w.kernel - 1))
      return static_cast<double>(w.kernel);
    return static_cast<double>(axis.counted(o, count_include_pad));
  }
  /// Lists what windows [first, last) count.
  [[gnu::noinline]] void list(std::int64_t first, std::int64_t last, double* count) const {
    if (!axis.is_adaptive) {
      for (std::int64_t o = first; o < last; ++o) *count++ = of(o);
      return;
    }
    const Reads elements = elements_of_windows(axis);
    ReadsCursor cursor(elements, first);
    for (std::int64_t o = first; o < last; ++o, cursor.next()) {
      const IndexRange window = cursor.range();
      *count++ = static_cast<double>(window.last - window.first);
    }
  }
  /// What each of some windows counts; 0 when that differs.
  double same(const Taps& t) const {
    double all = 0;
    for (std::int64_t o = t.first; o < t.last; o += t.step) {
      const double own = of(o);
      if (o > t.first && own != all) return 0;
      all = own;
    }
    return all;
  }
};

inline std::int64_t count_of(const Taps& t) { return (t.last - t.first + t.step - 1) / t.step; }

/// Lists the rows [first, last) of results, from the first on, and what they read of the source, whose rows and those
/// of the results are `from_width` and `to_width` long; `counts` tells of windows.
[[gnu::noinline]] inline std::int64_t list_rows(const Reads& reads, bool backward, std::int64_t first,
                                                std::int64_t last, std::int64_t from_width, std::int64_t to_width,
                                                const Counts& counts, bool sorts, Row* rows) {
  std::int64_t n = 0;
  if (reads.takes_one()) {
    for (Row row{first * from_width, 1, first * to_width, 1, 1}; n < last - first; ++n) {
      rows[n] = row;
      row.from += from_width;
      row.to += to_width;
    }
    return n;
  }
  ReadsCursor cursor(reads, first);
  for (std::int64_t i = first; i < last; ++i, cursor.next()) {
    const Taps taps = cursor.taps();
    const std::int64_t from = taps.first * from_width, count = count_of(taps);
    if (n > 0 && backward && reads.den > 1 && rows[n - 1].from == from && rows[n - 1].count == count) {
      ++rows[n - 1].copies;
      continue;
    }
    rows[n++] = {from, count, i * to_width, 1, backward ? counts.same(taps) : counts.of(i)};
  }
  // Those that read as many follow each other.
  if (sorts)
    for (std::int64_t i = 1, at; i < n; ++i) {
      const Row row = rows[i];
      for (at = i; at > 0 && rows[at - 1].count > row.count; --at) rows[at] = rows[at - 1];
      rows[at] = row;
    }
  return n;
}

/// Buffers of a pass, on the stack.
template <class A, class T>
struct Buffers {
  alignas(64) A columns[2 * kSlack + kSpan + kSlack];  ///< sums of columns
  A sums[kSpan + kSlack];        ///< sums of windows that are not stored by the loop that takes them
  A one[2 * kLanes<A>];          ///< the factor of all results
  A by[2 * kSpan + 4 * kSlack];  ///< factors of results or columns, in up to four tables,
  double made[4];                ///< each for windows that count so much in other axes
  double count[kSpan];           ///< what windows of a tile count
  T results[kSpan + kSlack];     ///< of rows that are not stored where they belong by the loop that makes them
  Row rows[kRows];
  Line<A, T> lines[kRows];
  std::int64_t row_count;
  union {
    Span spans[kTile];
    Spread<A> spread;
  };
  Buffers() {}
};

}  // namespace taper::kernels::average
