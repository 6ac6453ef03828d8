#pragma once

#include <cstdint>

#include "kernels/avg_pool_long.hpp"
#include "kernels/avg_pool_small.hpp"
#include "kernels/avg_pool_strided.hpp"
#include "kernels/ceil_div.hpp"
#include "kernels/pool_reads.hpp"

/// What an average pool's pass is prepared with: which loops it takes, and which rows are read for which.
namespace taper::kernels::average {

/// Windows with at most this many columns are summed in the type of the elements, if they have few rows.
inline constexpr std::int64_t kShort = 16;
/// Results of a row that are worked on at once where their windows are listed.
inline constexpr std::int64_t kTile = 1024;
/// Columns of the rows that are worked on at once, if these are several.
inline constexpr std::int64_t kBatch = 2048;
/// Of what caches hardly hold, elements that are worked on at once, so that they stay near.
inline constexpr std::int64_t kNearBatch = 4096;
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

  /// Of planes of so many elements.
  template <class T>
  double bytes(std::int64_t depth, std::int64_t height, std::int64_t width) const {
    return double(depth) * double(height) * double(width) * (double(planes) * sizeof(T));
  }
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
};

/// Whether there is room for all columns that a dilated window spans.
inline bool has_room(const Reads& r) { return r.most() <= kSpan / r.step; }

/// Where sums are of a wider type than what is read there are no loops for each width of a few.
[[gnu::noinline]] inline Way way_of(const Reads& r, bool backward, bool widens) {
  const std::int64_t most = r.most(), taps = kHasSmall ? 2 : 1;
  if (r.step > 1 || r.dilation > 0) return r.den == 1 && r.num <= taps && has_room(r) ? Way::taps : Way::spans;
  if (r.den == 1 && most <= kShort) {
    const bool few = !widens && r.num <= 4 && (r.num == most || (r.num == 2 && most == 3));
    return r.num <= taps || few ? Way::taps : Way::short_spans;
  }
  if (r.den == 1) return most / 4 >= r.num && most <= kLongest ? Way::sliding : Way::spans;
  if (backward && r.to >= r.from && r.least() <= kLongest) return Way::spread;
  return most <= kShort ? Way::short_spans : Way::spans;
}

/// Whether windows begin at each element of rows of which each is summed alone, and are long: float32 then keeps what
/// it must.
inline bool slides_along_rows(const Course& c) {
  return c.d.takes_one() && c.h.takes_one() && c.w.num == 1 && c.way == Way::sliding;
}

/// Whether the averages of short windows are taken and stored by one loop, for windows a fixed distance apart.
TAPER_FOR_SIZE inline bool is_strided(const Course& c) {
  return kHasStrided && !c.backward && c.d.takes_one() && c.w.den == 1 && c.w.num <= kShort &&
         c.way == Way::short_spans;
}

/// Whether windows that are listed are so as they lie in the source, not beside it: dilated ones are not where there is
/// room for them, and are summed with zeros beside the source as if these were written out.
TAPER_FOR_SIZE inline bool lies_in_source(const Course& c) {
  const Reads& w = c.w;
  return w.den > 1 || (c.way == Way::spans && (w.step == 1 || !has_room(w)));
}

/// Which these are: those of one row's width and of the same kind in both axes.
[[gnu::noinline]] inline Small small_of(const Course& c) {
  // Gradients of windows that differ in what they count along the depth are not added before they are scaled.
  if (c.d.dilation > 0 || (c.backward && c.pool.divisor == 0 && !c.d.takes_one())) return Small::none;
  if (c.w.from > kTile || c.w.to > 2 * kTile) return Small::none;
  static constexpr struct {
    std::int8_t num, den, low, high;
    Small kind;
  } kKinds[] = {{2, 1, 0, 2, Small::pairs},
                {1, 1, -1, 2, Small::threes},
                {2, 1, -1, 2, Small::strided_threes},
                {1, 2, 0, 2, Small::pairs_back},
                {1, 2, 0, 3, Small::strided_threes_back}};
  for (const auto& k : kKinds) {
    const auto is = [&k](const Reads& r) {
      return r.num == k.num && r.den == k.den && r.low == k.low && r.high == k.high && r.step == 1 && r.dilation == 0;
    };
    if (is(c.h) && is(c.w)) return k.kind;
  }
  return Small::none;
}

/// Rows of results of a block, whose source has rows of `width`; blocks repeat where windows lie side by side. Small
/// windows may read a buffer.
[[gnu::noinline]] inline std::int64_t block_rows(const Reads& h, std::int64_t width, Small small, bool reads_buffer) {
  if (small == Small::none) return h.den == 1 || h.den > kRows ? kRows : kRows / h.den * h.den;
  // What the rows of a block read stays near, or has room in the buffer.
  const std::int64_t columns = reads_buffer ? kSpan : 2 * kSpan;
  if (h.to <= kRows && (h.to * h.num + 2) * width <= columns) return h.to + h.to % h.den;
  const std::int64_t room = columns / width - 2;
  const std::int64_t most = std::clamp<std::int64_t>(room * h.den / h.num, 1, kRows), blocks = ceil_div(h.to, most);
  return ((h.to - 1) / blocks + h.den) / h.den * h.den;
}

/// How far rows of results lie apart where they are not stored where they belong at once.
template <class T>
std::int64_t results_pitch(std::int64_t n) {
  return rounded_up<T>(n) + kFilled<true, T>;
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

/// Without a division for most.
inline std::int64_t count_of(const Taps& t) {
  return t.step == 1 ? t.last - t.first : ceil_div(t.last - t.first, t.step);
}

/// Lists the rows [first, last) of results, from the first on, and what they read of the source, whose rows and those
/// of the results are `from_width` and `to_width` long; `counts` tells of windows.
[[gnu::noinline]] inline std::int64_t list_rows(const Reads& reads, bool backward, std::int64_t first,
                                                std::int64_t last, std::int64_t from_width, std::int64_t to_width,
                                                const Counts& counts, bool sorts, Row* rows) {
  std::int64_t n = 0;
  const bool is_spread = backward && reads.repeats_each() && first % reads.den == 0 && last % reads.den == 0;
  if (is_spread || reads.takes_one() || (reads.is_tiled() && !backward)) {
    // Windows side by side are all alike.
    const std::int64_t copies = is_spread ? reads.den : 1, count = is_spread ? 1 : reads.num;
    Row row{first / copies * count * from_width, count, first * to_width, copies, counts.of(0)};
    for (; first < last; first += copies) {
      rows[n++] = row;
      row.from += count * from_width;
      row.to += copies * to_width;
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

/// Planes whose rows are listed as one's, where they are few: small planes take no longer than what is found out about
/// each list.
TAPER_FOR_SIZE inline std::int64_t planes_together(const Course& c, std::int64_t blocks) {
  if (blocks > 1 || !c.d.takes_one() || c.d.to != 1 || c.h.den > 1 || c.pool.divisor == 0 || c.h.to == 0) return 1;
  return std::max<std::int64_t>(std::min(kRows / c.h.to, c.pool.planes), 1);
}

/// Repeats the list of a plane's rows for those behind it, up to so many planes.
TAPER_FOR_SIZE inline void repeat_rows(const Course& c, std::int64_t planes, Row* rows, std::int64_t& count) {
  const std::int64_t own = count, from = c.d.from * c.h.from * c.w.from, to = c.h.to * c.w.to;
  for (; count < planes * own; ++count) {
    // Field by field: a copy at once would wait for the stores of the single ones.
    const Row& row = rows[count - own];
    Row& next = rows[count];
    next.from = row.from + from, next.count = row.count;
    next.to = row.to + to, next.copies = row.copies;
    next.counted = row.counted;
  }
}

/// Lists where the windows of a tile lie in its columns; what they have beside the source too unless `clips`.
[[gnu::noinline]] inline void list_spans(const Reads& reads, const Tile& t, bool clips, Span* spans) {
  ReadsCursor cursor(reads, t.o0);
  for (std::int64_t i = 0; i < t.results(); ++i, cursor.next()) {
    const Taps taps = cursor.taps();
    const IndexRange r = clips ? IndexRange{taps.first, taps.last} : cursor.range();
    spans[i] = {static_cast<std::int32_t>(r.first - t.c0), static_cast<std::int32_t>(r.last - r.first)};
  }
}

/// Lists the patterns of vectors of so many lanes, which repeat after `period`.
[[gnu::noinline]] inline void list_patterns(const Reads& reads, const Tile& t, std::int64_t lanes, std::int64_t period,
                                            Spread& s) {
  const std::int64_t least = reads.least(), vectors = ceil_div(t.results(), lanes);
  s.period = std::min(period, Spread::kPatterns);
  s.least = least;
  s.has_more = least > 0 && reads.most() > least;
  s.is_among = least <= 1 && (!s.has_more || (lanes - 1) * reads.num <= (lanes - 3) * reads.den);
  const int back = s.is_among && s.has_more ? 1 : 0;
  ReadsCursor cursor(reads, t.o0);
  std::int32_t *newest = s.newest, *oldest = s.oldest;
  for (std::int64_t v = 0; v < std::min(s.period, vectors); ++v) {
    const std::int64_t base = cursor.range().last - 1 - back;
    s.at[v] = static_cast<std::int32_t>(base - t.c0);
    for (std::int64_t l = 0; l < lanes; ++l, cursor.next()) {
      const auto [first, last] = cursor.range();
      const auto lane = static_cast<std::int32_t>(last - 1 - base);
      const std::int32_t more = last - first > least ? lane - back : -1;
      *newest++ = least > 0 ? lane : more;
      *oldest++ = more;
    }
  }
  s.advance = cursor.range().last - 1 - back - t.c0 - s.at[0];
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
    Spread spread;
    FourStrided four;
  };
  Buffers() {}
};

}  // namespace taper::kernels::average
