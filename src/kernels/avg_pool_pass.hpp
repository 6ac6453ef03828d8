#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>

#include "kernels/avg_pool_plan.hpp"
#include "kernels/parallel.hpp"

/// Average pools over any axes, forward and backward; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// One pass of one pool, with sums in A.
template <class A, class T>
class Pass {
 public:
  TAPER_FOR_SIZE Pass(const Course& c, const T* x, T* y, bool add)
      : c_(c),
        way_(c.way),
        small_(kHasSmall && std::is_same_v<A, float> ? small_of(c) : Small::none),
        strided_(std::is_same_v<A, float> && is_strided(c)),
        by_spans_(!strided_ && (way_ == Way::short_spans || way_ == Way::spans)),
        in_source_(by_spans_ && lies_in_source(c)),
        one_slice_(c.d.takes_one()),
        block_rows_(block_rows(c.h, c.w.from, small_, reads_buffer())),
        blocks_(block_rows_ >= c.h.to ? 1 : ceil_div(c.h.to, block_rows_)),
        one_row_(one_slice_ && c.h.takes_one()),
        repeats_(c.pool.h.is_tiled()),
        reads_rows_(c.backward && repeats_ && one_slice_),
        has_copies_(c.backward && c.h.den > 1),
        x_(x),
        y_(y),
        add_(add),
        read_(c.pool.bytes<T>(c.d.from, c.h.from, c.w.from)),
        filled_(c.pool.bytes<T>(c.d.to, c.h.to, c.w.to)),
        streams_(filled_ >= static_cast<double>(beyond_caches)),
        is_far_(is_far()),
        ahead_(ahead()),
        together_(planes_together(c, blocks_)),
        in_registers_(has_copies_ && !add && !streams_ && !differs() && way_ == Way::spread && c.w.least() == 1 &&
                      c.w.most() == 1 && c.w.to <= kRowVectors * kLanes<float>) {}

  void run() const {
    const std::int64_t units = c_.d.to * blocks_;
    // Windows that overlap or differ take a few times as long as others.
    const double cost = c_.pool.h.is_tiled() && c_.pool.w.is_tiled() ? 1 : 3;
    const double work =
        cost * (read_ + filled_) / (sizeof(T) * double(std::max<std::int64_t>(c_.pool.planes, 1) * units));
    parallel_for(c_.pool.planes * units, static_cast<std::int64_t>(work),
                 [this](std::int64_t first, std::int64_t last) {
                   Buffers<A, T> buffers;
                   this->units(first, last, buffers);
                   if (streams_) end_stream();
                 });
  }

 private:
  using LineOf = Line<A, T>;

  /// Whether rows that are read together, or those that are filled, are so many that caches hardly hold them.
  bool is_far() const {
    const bool many = c_.backward ? has_copies_ && !streams_ : one_row_ || c_.h.num >= 4 * c_.h.den;
    return sizeof(T) == sizeof(float) && many && std::max(read_, filled_) >= kFarRead;
  }
  /// Whether small windows and rows in registers read, or fill, what caches hardly hold.
  bool is_memory() const { return c_.backward ? read_ + filled_ >= kFarFilled : read_ >= kFarRead; }
  /// How far ahead they then ask for it. Threes read three rows at once, which hides their order.
  std::uintptr_t ahead() const {
    const std::int64_t row = c_.backward ? 0 : std::int64_t{sizeof(T)} * c_.w.from;
    return !is_memory() ? 0 : small_ == Small::strided_threes ? memory_ahead : far_ahead(row);
  }
  /// The slices that slice `i` reads.
  Taps slice_taps(std::int64_t i) const { return one_slice_ ? Taps{i, i + 1, 1} : ReadsCursor(c_.d, i).taps(); }
  Counts counts(const PoolAxis& axis) const { return {axis, c_.pool.count_include_pad, c_.pool.divisor != 0}; }
  double counted(const PoolAxis& axis, std::int64_t o) const { return counts(axis).of(o); }
  bool differs() const { return c_.pool.divisor == 0; }
  /// Whether rows of gradients are multiplied by their factors rather than the results.
  bool scales_rows() const { return c_.backward && differs(); }
  bool scales_results() const { return !c_.backward && differs(); }

  // --- tiles --------------------------------------------------------------------------------------------------------

  /// Results that one tile has at most; 0 if there is not room for the columns of one.
  std::int64_t tile_results() const {
    const Reads& w = c_.w;
    std::int64_t most = way_ == Way::short_spans || way_ == Way::spans ? kTile : kSpan;
    if (way_ == Way::spread)
      if (period() > Spread::kPatterns) most = Spread::kPatterns * kLanes<A>;
    if (in_source_ && w.from <= kSpan) return most;
    const std::int64_t room = kSpan * w.den - (w.high - w.low) - (w.den - 1);
    if (room < 0) return 0;
    most = std::min(most, room / w.num + 1);
    return std::is_same_v<A, float> && most < w.to ? most - most % block() : most;
  }
  /// Long windows of float32: after so many results the ones behind are summed as if they were the first.
  std::int64_t block() const { return way_ == Way::sliding ? c_.w.most() / kLanes<A> * kLanes<A> : 1; }
  /// After how many vectors results lie to what they read as before.
  std::int64_t period() const { return c_.w.den / std::gcd(c_.w.den, kLanes<A> * c_.w.num); }

  /// The tile from result o0 on, of at most so many.
  TAPER_FOR_SIZE Tile tile_at(std::int64_t o0, std::int64_t most) const {
    const Reads& w = c_.w;
    std::int64_t o1 = std::min(w.to, o0 + most);
    // Where windows are summed as they lie in memory, those beside the source are apart, and others of long rows are
    // taken at once, but for the last.
    if (std::is_same_v<A, T> && one_row_ && w.den == 1 && w.to > 4 * kShort) {
      const std::int64_t inner = (w.num - 1 - w.low) / w.num, room = w.from - w.high;
      const std::int64_t end = room < 0 ? 0 : std::min(room / w.num + 1, w.to);
      if (o0 < inner)
        o1 = std::min(o1, inner);
      else if (o1 < end - kSlack && !add_ && !differs() &&
               (way_ == Way::taps || (std::is_same_v<A, float> && way_ == Way::sliding)))
        o1 = end - kSlack - (end - kSlack - o0) % block();
      else if (o0 < end)
        o1 = std::min(o1, end);
    }
    const IndexRange first = ReadsCursor(w, o0).range(), last = ReadsCursor(w, o1 - 1).range();
    if (in_source_)
      return {o0, o1, std::clamp<std::int64_t>(first.first, 0, w.from), std::clamp<std::int64_t>(last.last, 0, w.from)};
    return {o0, o1, std::min(first.first, first.last - 1), last.last};
  }

  void prepare(const Tile& t, Buffers<A, T>& b) const {
    const Reads& w = c_.w;
    if (way_ == Way::spread) list_patterns(w, t, kLanes<A>, period(), b.spread);
    if (strided_) list_fours(w.most(), w.num, b.four);
    if (by_spans_) list_spans(w, t, in_source_, b.spans);
    prepare_factors(t, b);
    if (t.c0 < 0 || t.c1 > w.from || way_ == Way::sliding)
      clear(b.columns, 3 * kSlack + std::min(kSpan, listed_rows() * rounded_up<A>(t.columns())));
  }

  [[gnu::noinline]] void prepare_factors(const Tile& t, Buffers<A, T>& b) const {
    std::fill(b.made, b.made + 4, -1.0);
    if (differs()) {
      const std::int64_t first = scales_rows() ? std::max<std::int64_t>(t.c0, 0) : t.o0;
      const std::int64_t last = scales_rows() ? std::min(t.c1, c_.w.from) : t.o1;
      counts(c_.pool.w).list(first, last, b.count);
    }
    Factors<A>::set_all(b.one, differs() ? 1 : c_.pool.divisor);
  }

  /// The factors of a tile's `n` windows that count so many rows in other axes. Where the table must be made and `keep`
  /// is set, nothing.
  const A* factors(double rows, std::int64_t n, bool keep, Buffers<A, T>& b) const {
    return factors_at(n <= kTile ? static_cast<std::int64_t>(rows) & 3 : 0, rows, n, keep, b);
  }
  /// The same in one of four tables. The vector behind the last is of ones.
  [[gnu::noinline]] const A* factors_at(std::int64_t slot, double rows, std::int64_t n, bool keep,
                                        Buffers<A, T>& b) const {
    A* const by = b.by + slot * (kTile + kLanes<A>)*Factors<A>::kElements;
    if (b.made[slot] == rows) return by;
    if (keep && b.made[slot] >= 0) return nullptr;
    b.made[slot] = rows;
    for (std::int64_t i = 0; i < rounded_up<A>(n) + kLanes<A>; ++i)
      if (i % kLanes<A> != 0 && i < n && b.count[i] == b.count[i - 1])
        Factors<A>::repeat(by, i);
      else
        Factors<A>::set(by, i, i < n ? std::max(rows * b.count[i], 1.0) : 1.0);
    return by;
  }

  // --- small windows ------------------------------------------------------------------------------------------------

  /// Blocks of rows under windows that have loops of their own.
  void small_units(std::int64_t first, std::int64_t last, Buffers<A, T>& b) const {
    const std::int64_t slice_size = c_.h.from * c_.w.from;
    prepare_factors({0, c_.w.to, 0, c_.w.from}, b);
    clear(b.sums, c_.w.from);
    SmallRows<A> rows;
    rows.width = c_.w.from, rows.to_width = c_.w.to;
    rows.zeros = b.sums, rows.is_far = is_memory(), rows.ahead = ahead_;
    rows.streams = streams_ && !add_ && c_.w.to % kLanes<A> == 0 && lanes_until_aligned(y_) == 0;
    rows.windows = c_.backward ? c_.h.from : c_.h.to;
    const bool scales_before = scales_small_before();
    rows.by_step = differs() && !scales_before ? 1 : 0;
    rows.by[0] = rows.by[1] = rows.by[2] = b.one;
    const A* scaled_by[3] = {};
    double slices = -1;
    // Small planes take no longer than a few divisions: what is the same for all of them is known from the first.
    std::int64_t block = 0, slice = 0, i = 0, plane = 0;
    if (first > 0) {
      block = first % blocks_, slice = first / blocks_;
      i = slice % c_.d.to, plane = slice / c_.d.to;
    }
    // What the thread may read, and will fill.
    const T* const x_end = x_ + c_.pool.planes * c_.d.from * slice_size;
    const T* const y_end = y_ + (last / blocks_ * c_.h.to + last % blocks_ * block_rows_) * c_.w.to;
    std::int64_t from_row = 0, row_count = 0, to_row = 0, to_end = 0, depth = 0;
    Taps d{};
    for (std::int64_t unit = first; unit < last; ++unit) {
      if (unit == first || blocks_ > 1) {
        to_row = block * block_rows_, to_end = std::min(to_row + block_rows_, c_.h.to);
        from_row = std::max<std::int64_t>(ReadsCursor(c_.h, to_row).range().first, 0);
        const std::int64_t end = std::min(ReadsCursor(c_.h, to_end - 1).range().last, c_.h.from);
        row_count = std::max<std::int64_t>(end - from_row, 0);
      }
      if (unit == first || c_.d.to > 1) {
        d = slice_taps(i);
        depth = count_of(d);
        const double count = differs() ? counted(c_.pool.d, i) : slices;
        if (count != slices) list_small_factors(count, rows.windows, scales_before ? scaled_by : rows.by, b);
        slices = count;
      }
      rows.to_first = to_row, rows.to_last = to_end;
      rows.first = from_row, rows.rows = depth > 0 ? row_count : 0;
      rows.x = x_ + (plane * c_.d.from + d.first) * slice_size + from_row * c_.w.from;
      rows.y = y_ + (slice * c_.h.to + to_row) * c_.w.to;
      if (scales_before) {
        small_scaled(rows, scaled_by, b.columns);
        rows.x = b.columns;
      } else if (depth > 1) {
        const Row sums{0, depth, 0, 1, 0};
        const LineOf line{};
        sum_lines(rows.x, Rows{0, 1}, slice_size * d.step, rows.rows * rows.width, &sums, 1, &line, false, b.columns, 0,
                  is_far_);
        rows.x = b.columns;
      }
      rows.more_readable = rows.x == b.columns ? kSlack : x_end - (rows.x + rows.rows * rows.width);
      rows.more_storable = add_ ? kSlack : y_end - (rows.y + (to_end - to_row) * rows.to_width);
      add_ ? add_small(small_, rows, kSpan / c_.w.to / c_.h.den * c_.h.den, b.results) : small_loop<A>(small_)(rows);
      if (++block < blocks_) continue;
      block = 0, ++slice;
      if (++i < c_.d.to) continue;
      i = 0, ++plane;
    }
  }
  /// Whether what small windows read is scaled before.
  bool scales_small_before() const { return scales_rows() && small_ != Small::strided_threes_back; }
  /// Whether it is first summed or scaled.
  bool reads_buffer() const { return scales_small_before() || !one_slice_; }

  /// The factors of windows that count so many slices.
  [[gnu::noinline]] void list_small_factors(double slices, std::int64_t windows, const A* (&tables)[3],
                                            Buffers<A, T>& b) const {
    const std::int64_t rows[3] = {0, std::min<std::int64_t>(1, windows - 1), windows - 1};
    for (std::int64_t k = 0; k < 3; ++k)
      tables[k] = factors_at(k, slices * counted(c_.pool.h, rows[k]), c_.backward ? c_.w.from : c_.w.to, false, b);
  }

  // --- rows ---------------------------------------------------------------------------------------------------------

  [[gnu::noinline]] void units(std::int64_t first, std::int64_t last, Buffers<A, T>& b) const {
    if constexpr (kHasSmall && std::is_same_v<A, float>)
      if (small_ != Small::none) return small_units(first, last, b);
    const std::int64_t most = tile_results();
    if (most == 0) {
      // Short windows are not wide.
      if constexpr (std::is_same_v<A, double>) wide_units(first, last, b);
      return;
    }
    const std::int64_t chunk = most >= c_.w.to ? last - first : together_;
    for (std::int64_t unit = first, end; unit < last; unit = end) {
      end = std::min(unit + chunk, last);
      for (std::int64_t o = 0; o < c_.w.to;) {
        const Tile t = tile_at(o, most);
        prepare(t, b);
        for (std::int64_t u = unit; u < end; u += together_)
          tile_rows(t, u, std::min(together_, end - u), u == unit, b);
        o = t.o1;
      }
    }
  }

  std::int64_t listed_rows() const { return std::min(block_rows_, c_.h.to * together_); }
  /// Lists the rows of a block.
  [[gnu::noinline]] void list(std::int64_t block, Buffers<A, T>& b) const {
    const std::int64_t first = block * block_rows_, last = std::min(first + block_rows_, c_.h.to);
    b.row_count =
        list_rows(c_.h, c_.backward, first, last, c_.w.from, c_.w.to, counts(c_.pool.h), c_.h.den > 1, b.rows);
    if (together_ > 1) repeat_rows(c_, together_, b.rows, b.row_count);
  }

  /// The rows of a unit, which is a block of a slice's rows, or of some units together.
  void tile_rows(const Tile& t, std::int64_t unit, std::int64_t units, bool is_first, Buffers<A, T>& b) const {
    // One unit is often all, and takes less time than divisions.
    const std::int64_t slice = unit == 0 ? 0 : unit / blocks_, block = unit == 0 ? 0 : unit % blocks_;
    const std::int64_t plane = c_.d.to == 1 || slice == 0 ? slice : slice / c_.d.to, i = slice - plane * c_.d.to;
    if (is_first || (blocks_ > 1 && !repeats_)) list(repeats_ ? 0 : block, b);
    // Where windows lie side by side, all blocks are as the first one, further on.
    const std::int64_t past = repeats_ ? block * block_rows_ : 0;
    std::int64_t row_count = units == together_ ? b.row_count : units * c_.h.to;
    if (repeats_ && blocks_ > 1 && block + 1 == blocks_) row_count = (c_.h.to - past) / b.rows[0].copies;
    const Taps d = slice_taps(i);
    const double d_count = !differs() ? 1 : c_.backward ? counts(c_.pool.d).same(d) : counted(c_.pool.d, i);
    const std::int64_t n = t.results();
    // Columns that are read, and where they begin.
    const std::int64_t first = std::max<std::int64_t>(t.c0, 0), width = std::min(t.c1, c_.w.from) - first;
    const std::int64_t from_row =
        (plane * c_.d.from + d.first) * c_.h.from + (past == 0 ? 0 : past * c_.h.num / c_.h.den);
    const T* const x = x_ + from_row * c_.w.from + first;
    T* const y = y_ + (slice * c_.h.to + past) * c_.w.to + t.o0;
    // Columns of the source are aligned.
    const std::int64_t margin = first - t.c0, pitch = joins(t) ? width : rounded_up<A>(t.columns());
    A* const columns = b.columns + kSlack + rounded_up<A>(margin) - margin;
    const bool is_staged = add_ || has_copies_;
    const std::int64_t filled = is_staged ? results_pitch<T>(n) : (n + 1) / 2;
    std::int64_t batch =
        way_ == Way::sliding ? 1 : std::clamp<std::int64_t>(kBatch / std::max(pitch, filled), 1, kRows);
    if (is_far_) {
      const std::int64_t each = c_.backward ? n * b.rows->copies : width * b.rows->count;
      batch = std::clamp<std::int64_t>(kNearBatch / (each + 1), 1, batch);
    }
    for (std::int64_t r = 0, count; r < row_count; r += count) {
      const Row* const rows = b.rows + r;
      count = 0;
      const A* by = b.one;
      // In front of the first row nothing can be read: it alone is copied.
      const std::int64_t most = way_ == Way::short_spans && x + rows->from == x_ ? 1 : std::min(batch, row_count - r);
      for (; count < most; ++count) {
        if (differs() && (count == 0 || rows[count].counted != rows[count - 1].counted))
          by = factors(d_count * rows[count].counted, scales_rows() ? width : n, count > 0, b);
        if (!by) break;
        b.lines[count] = {columns + count * pitch, y + rows[count].to, by};
      }
      const std::int64_t step = c_.w.from * c_.h.step;
      bool is_summed = take_lines(x, t, rows, count, b.lines);
      if constexpr (kHasStrided && !kAsksAmong<T> && std::is_same_v<A, float>)
        if (!is_summed && strided_ && is_far_) {
          sum_lines_in_order(x, rows, count, step, width, true, columns + margin, pitch);
          is_summed = true;
        }
      if (!is_summed) {
        sum_lines(x, Rows{c_.h.from * c_.w.from * d.step, count_of(d)}, step, width, rows, count, b.lines,
                  scales_rows(), columns + margin, pitch, is_far_);
        if (scales_rows())
          for (std::int64_t l = 0; l < count; ++l) {
            if (d_count * rows[l].counted == 0 && count_of(d) * rows[l].count > 0)
              sum_differing(x, d, rows[l], width, columns + margin + l * pitch, b);
            b.lines[l].by = b.one;
          }
      }
      finish_lines(t, rows, count, b);
    }
  }

  /// Whether windows of a line lie side by side, and so do the lines, or what is kept of them: they are then as one.
  bool joins(const Tile& t) const {
    return kHasStrided && std::is_same_v<A, float> && (strided_ || way_ == Way::taps) && !add_ && !differs() &&
           c_.w.is_beside() && (c_.w.is_tiled() || !(one_row_ || reads_rows_)) && t.results() == c_.w.to;
  }

  /// Whether lines can be taken from the source, as they are.
  TAPER_FOR_SIZE bool take_lines(const T* x, const Tile& t, const Row* rows, std::int64_t count, LineOf* lines) const {
    if constexpr (std::is_same_v<A, T>) {
      const std::int64_t size = c_.pool.planes * c_.d.from * c_.h.from * c_.w.from;
      // What is read beside the columns.
      const bool shares = c_.w.num == 2 && c_.w.high - c_.w.low != 2;
      const bool exact = way_ == Way::taps && t.results() % kLanes<A> == 0 && !shares;
      const std::int64_t before = by_spans_ || strided_ ? 4 : way_ == Way::spread ? 1 : 0;
      const std::int64_t behind = by_spans_ || exact ? 0 : kSlack;
      if (!(one_row_ || reads_rows_) || scales_rows() || t.c0 < 0 || t.c1 > c_.w.from ||
          x + rows[0].from - x_ < before || x + rows[count - 1].from + t.columns() + behind > x_ + size)
        return false;
      for (std::int64_t l = 0; l < count; ++l) lines[l].from = x + rows[l].from;
      return true;
    }
    return false;
  }

  /// Sums of columns of rows of windows that do not count the same.
  [[gnu::cold, gnu::noinline]] void sum_differing(const T* x, const Taps& d, const Row& row, std::int64_t n, A* sum,
                                                  Buffers<A, T>& b) const {
    clear(sum, n);
    const std::int64_t first = row.from / c_.w.from;
    const Row here{};
    LineOf line{};
    for (std::int64_t i = d.first; i < d.last; i += d.step)
      for (std::int64_t j = first; j < first + row.count * c_.h.step; j += c_.h.step) {
        line.by = factors(counted(c_.pool.d, i) * counted(c_.pool.h, j), n, false, b);
        sum_few_rows<1>(x + ((i - d.first) * c_.h.from + j) * c_.w.from, 0, 1, n, &here, &line, 1, true, true, sum, 0);
      }
  }

  /// What the lines are made of is summed, scaled and stored.
  [[gnu::noinline]] void finish_lines(const Tile& t, const Row* rows, std::int64_t count, Buffers<A, T>& b) const {
    const std::int64_t n = t.results(), joined = joins(t) ? count : 1;
    if (!add_ && !has_copies_) return store_lines(t, b.lines, count / joined, n * joined, b);
    if constexpr (std::is_same_v<A, T> && std::is_same_v<T, float>)
      if (in_registers_) return spread_row_copies(b.lines, rows, count, n, b.spread, ahead_);
    T *to[kRows], *results = b.results;
    for (std::int64_t l = 0; l < count; ++l, results += results_pitch<T>(n)) {
      to[l] = b.lines[l].to;
      b.lines[l].to = results;
    }
    store_lines(t, b.lines, count, n, b);
    store_copies(b.results, results_pitch<T>(n), n, to, rows, count, c_.w.to, add_, streams_);
  }

  /// The same of `count` lines of n results, which are stored once, where their lines say.
  TAPER_FOR_SIZE void store_lines(const Tile& t, LineOf* lines, std::int64_t count, std::int64_t n,
                                  Buffers<A, T>& b) const {
    const std::int64_t by_step = scales_results() ? 1 : 0;
    if constexpr (kHasStrided && std::is_same_v<A, float>)
      if (strided_) return average_strided(lines, count, n, b.four, by_step);
    std::int64_t k = c_.w.most(), s = c_.w.num, step = c_.w.step;
    if (way_ == Way::spread) {
      const std::int64_t least = b.spread.least;
      if (least <= kShort) return spread_lines<A, T>(lines, count, n, b.spread, !differs(), nullptr);
      if constexpr (std::is_same_v<A, double>)  // as all long sums are
        for (const LineOf* const end = lines + count; lines != end; ++lines) {
          sum_long_windows(lines->from, least, 1, t.columns() - least + 1, sizeof(T) == sizeof(A), b.sums + least - 1);
          spread_lines<A, T>(lines, 1, n, b.spread, !differs(), b.sums);
        }
      return;
    }
    // Windows as long as a vector are the first that are faster doubled.
    if constexpr (std::is_same_v<A, float>)
      if (way_ == Way::sliding || (way_ == Way::taps && k == kLanes<A> && kLanes<A> == kShort && s * step == 1))
        return sum_doubled(lines, count, n, k, by_step);
    if (way_ == Way::sliding) {
      if constexpr (std::is_same_v<A, double>) sum_long_windows(lines->from, k, s, n, sizeof(T) == sizeof(A), b.sums);
      lines->from = b.sums;
    } else if (way_ == Way::short_spans) {
      sum_short_spans(lines, count, b.spans, n, b.sums);
    } else if (way_ == Way::spans) {
      for (std::int64_t l = 0; l < count; ++l) {
        A* const sums = b.sums + l * n;
        sum_spans(lines[l].from, b.spans, step, n, sums);
        lines[l].from = sums;
      }
    }
    if (way_ != Way::taps) s = k = step = 1;
    sum_taps(lines, count, n, k, s, step, by_step, is_far_ && one_row_ && way_ == Way::taps);
  }

  // --- windows wider than the buffers -------------------------------------------------------------------------------

  [[gnu::cold]] void wide_units(std::int64_t first, std::int64_t last, Buffers<A, T>& b) const {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t slice = unit / blocks_;
      list(unit % blocks_, b);
      for (std::int64_t r = 0; r < b.row_count / together_; ++r) wide_row(slice, b.rows[r]);
    }
  }

  /// y_i = the sum of what is read, row by row, over the divisor
  [[gnu::cold]] void wide_row(std::int64_t slice, const Row& row) const {
    const std::int64_t first_row = row.from / c_.w.from;
    const Pool& p = c_.pool;
    const Taps d = ReadsCursor(c_.d, slice % c_.d.to).taps();
    const T* const x = x_ + slice / c_.d.to * c_.d.from * c_.h.from * c_.w.from;
    T* const y = y_ + slice * c_.h.to * c_.w.to + row.to;
    ReadsCursor cursor(c_.w, 0);
    Taps before{-1, -1, 1};
    double sum = 0;
    for (std::int64_t o = 0; o < c_.w.to; ++o, cursor.next()) {
      const Taps w = cursor.taps();
      if (w.first != before.first || w.last != before.last) {
        before = w;
        sum = 0;
        for (std::int64_t i = d.first; i < d.last; i += d.step)
          for (std::int64_t j = first_row; j < first_row + row.count * c_.h.step; j += c_.h.step) {
            const T* const from = x + (i * c_.h.from + j) * c_.w.from;
            if (!scales_rows()) {
              sum += sum_span<double>(from, w.first, w.last, w.step);
              continue;
            }
            const double rows = counted(p.d, i) * counted(p.h, j);
            for (std::int64_t k = w.first; k < w.last; k += w.step)
              sum += static_cast<double>(from[k]) / std::max(rows * counted(p.w, k), 1.0);
          }
      }
      double divisor = p.divisor != 0 ? p.divisor : 1;
      if (p.divisor == 0 && !c_.backward)
        divisor = std::max(counted(p.d, slice % c_.d.to) * row.counted * counted(p.w, o), 1.0);
      for (std::int64_t c = 0; c < row.copies; ++c) {
        T& to = y[c * c_.w.to + o];
        to = add_ ? to + static_cast<T>(sum / divisor) : static_cast<T>(sum / divisor);
      }
    }
  }

  const Course& c_;
  const Way way_;
  const Small small_;
  const bool strided_;
  const bool by_spans_;                     ///< whether windows are listed
  const bool in_source_;                    ///< and as they lie in the source, not beside it
  const bool one_slice_;                    ///< whether each slice of results is made of one slice
  const std::int64_t block_rows_, blocks_;  ///< rows of a block, blocks of a slice
  const bool one_row_;                      ///< and each row of one row
  const bool repeats_;                      ///< whether all blocks of rows are alike
  const bool reads_rows_;                   ///< whether each row of results is made of one row
  const bool has_copies_;                   ///< whether several rows of results may be alike
  const T* const x_;
  T* const y_;
  const bool add_;
  const double read_, filled_;  ///< bytes
  const bool streams_;          ///< whether results go past the caches
  const bool is_far_;
  const std::uintptr_t ahead_;
  const std::int64_t together_;  ///< planes whose rows are listed as one's
  const bool in_registers_;      ///< whether rows of float32 that are stored several times stay in registers
};

}  // namespace taper::kernels::average
