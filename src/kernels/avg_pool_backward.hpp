#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/avg_pool_forward.hpp"
#include "kernels/avg_pool_sums.hpp"
#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/store_run.hpp"

/// The backward of average pools over any axes; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// Input rows of one unit of backward work at most, if they lie in more than one window.
inline constexpr std::int64_t kRowBlock = 128;

/// dx_i = value for i < n, or += with `add`
template <class T>
[[gnu::noinline]] void fill_run(T value, std::int64_t n, bool add, T* dx) {
  const Vec<T> all = Vec<T>{} + value;
  for_vectors<T>(
      n, [&](std::int64_t i) { store<T>(add ? load<T>(dx + i) + all : all, dx + i); },
      [&](std::int64_t i, std::int64_t some) {
        store_first<T>(add ? load_first<T>(dx + i, some) + all : all, some, dx + i);
      });
}

// --- positions side by side -----------------------------------------------------------------------------------------

/// Where positions take their gradients from, as many positions at a time as fill a vector: from window
/// `newest.lane`, counted from the vector's first one, and the windows in front of it. All positions lie in all of
/// them but the last, in which those lie that have an `oldest.lane`.
template <class A>
struct Spread {
  static constexpr std::int64_t kVectors = 64;
  Origins<A> newest[kVectors], oldest[kVectors];
  std::int32_t next[kVectors], advance[kVectors];  ///< the vector behind this one, and how far its first window is
};

/// Vectors of a fixed pool differ by where in a stride they begin.
template <class A>
void list_fixed(const PoolAxis& axis, Spread<A>& spread) {
  const Window1d& w = axis.window;
  for (std::int64_t phase = 0; phase < w.stride; ++phase) {
    std::int64_t at = phase, newest = 0;
    for (std::int64_t l = 0; l < kLanes<A>; ++l) {
      using Index = typename Origins<A>::Index;
      spread.newest[phase].lane[l] = static_cast<Index>(newest);
      spread.oldest[phase].lane[l] = static_cast<Index>(at <= (w.kernel - 1) % w.stride ? newest : -1);
      if (++at == w.stride) at = 0, ++newest;
    }
    spread.next[phase] = static_cast<std::int32_t>(at);
    spread.advance[phase] = static_cast<std::int32_t>(newest);
  }
}

/// Positions of an adaptive pool with no more outputs than inputs lie in one window or two.
template <class A>
void list_adaptive(const PoolAxis& axis, std::int64_t i0, std::int64_t i1, Spread<A>& spread) {
  using Index = typename Origins<A>::Index;
  Sweep sweep(axis, i0);
  std::int64_t base = 0;
  for (std::int64_t i = i0, v = 0; i < i1; ++v) {
    for (std::int64_t l = 0; l < kLanes<A>; ++l, ++i) {
      if (i < i1 && i >= sweep.end()) sweep.to(i);
      const std::int64_t newest = sweep.over().last - 1;
      if (l == 0 && v > 0) spread.advance[v - 1] = static_cast<std::int32_t>(newest - base);
      if (l == 0) base = newest;
      spread.newest[v].lane[l] = static_cast<Index>(newest - base);
      spread.oldest[v].lane[l] = static_cast<Index>(newest > sweep.over().first ? newest - base : -1);
    }
    spread.next[v] = static_cast<std::int32_t>(v + 1);
    spread.advance[v] = 0;
  }
}

/// Sums of gradients of windows, of `terms` of them up to each: those in `sums` if there are such, else term by term.
template <class A>
struct Windows {
  const A* g;
  std::int64_t terms;
  const A* sums;

  [[gnu::always_inline]] Vec<A> sum(std::int64_t at) const {
    if (sums) return load<A>(sums + at);
    Vec<A> s = load<A>(g + at);
    for (std::int64_t t = 1; t < terms; ++t) s += load<A>(g + at - t);
    return s;
  }
};

/// dx_i = g_newest + ... + g_oldest for `n` positions from vector `first` on, whose first window is at `at`; for every
/// row of gradients of windows in `rows` rows `pitch` apart.
template <class A, class T>
[[gnu::noinline]] void spread_rows(Windows<A> windows, const Spread<A>& spread, std::int64_t first, std::int64_t at,
                                   std::int64_t n, Repeat repeat, std::int64_t rows, std::int64_t pitch, bool add,
                                   T* dx) {
  // What is added is rounded before.
  const auto rounded = [](const Vec<A>& s) {
    T some[kLanes<A>];
    store<A>(s, some);
    return load<A>(some);
  };
  for (std::int64_t g = 0; g < repeat.count; ++g, at += repeat.x_step, dx += repeat.y_step) {
    std::int64_t v = first, window = at;
    const auto next = [&] {
      Vec<A> sum = permuted<A>(load<A>(windows.g + window - windows.terms), spread.oldest[v]);
      if (windows.terms > 0) sum = permuted<A>(windows.sum(window), spread.newest[v]) + sum;
      window += spread.advance[v];
      v = spread.next[v];
      return sum;
    };
    for_vectors<A>(
        n,
        [&](std::int64_t i) {
          const Vec<A> s = next();
          for (T *to = dx + i, *end = to + rows * pitch; to != end; to += pitch)
            store<A>(add ? load<A>(to) + rounded(s) : s, to);
        },
        [&](std::int64_t i, std::int64_t some) {
          const Vec<A> s = next();
          for (T *to = dx + i, *end = to + rows * pitch; to != end; to += pitch)
            store_first<A>(add ? load_first<A>(to, some) + rounded(s) : s, some, to);
        });
  }
}

// --- rows -----------------------------------------------------------------------------------------------------------

/// Whether the gradients of positions are taken side by side; else those that lie in the same windows are alike and
/// taken together.
inline bool is_side_by_side(const PoolAxis& axis) {
  return axis.is_adaptive ? axis.in >= axis.out : axis.window.stride <= kShort;
}

/// Positions [i0, i1) of a row, and the windows [o0, o1) over them, which lie in a buffer's row of `pitch` elements
/// behind `margin` zeros and in front of others, for positions that lie in fewer.
struct BackwardTile {
  std::int64_t i0, i1, o0, o1;
  std::int64_t margin, pitch;
  std::int64_t vector, at;  ///< the first vector, and where its first window is in the buffer's row
  std::int64_t positions() const { return i1 - i0; }
  std::int64_t windows() const { return o1 - o0; }
};

/// Rows of a block that lie in the same windows [o0, o1) of their axis, `rows` of them from `h` on; and the same again
/// every `step` rows and windows further, `count` times.
struct RowGroups {
  std::int64_t h, rows, o0, o1;
  std::int64_t count, h_step, o_step;
  double counted;  ///< what each of the windows counts; 0 when that differs

  /// Takes in the rows of `next`, of one group, if they come next.
  bool takes(const RowGroups& next) {
    if (next.rows != rows || next.o1 - next.o0 != o1 - o0 || next.counted != counted || counted == 0) return false;
    const std::int64_t by_h = next.h - h, by_o = next.o0 - o0;
    if (count == 1) h_step = by_h, o_step = by_o;
    if (by_h != count * h_step || by_o != count * o_step) return false;
    ++count;
    return true;
  }
};

/// Buffers of the backward, on the stack.
template <class A>
struct BackwardBuffers {
  alignas(64) A g[kSlack + kSpan + kSlack];  ///< rows of gradients of windows
  Counts<A> counts;                          ///< of windows, where that differs
  Spread<A> spread;
  RowGroups groups[kRowBlock];
  std::int64_t group_count;
};

/// What becomes of a sum of gradients: it is divided, and added to what is there or not.
template <class A>
struct AddQuotients {
  Divisor<A> divisor;
  bool add;
  bool depends_on_column() const { return divisor.each_by != nullptr; }
  [[gnu::always_inline]] Vec<A> operator()(const Vec<A>& sum, std::int64_t o, const A* there) const {
    const Vec<A> quotients = divisor(sum, o);
    return add ? load<A>(there) + quotients : quotients;
  }
};

/// Backward of one pool, with sums in A.
template <class A, class T>
class Backward {
 public:
  Backward(const Pool& pool, const T* dy, T* dx, bool add)
      : p_(joined(pool)),
        most_(pool.w.most_windows()),
        divisor_(Divisor<A>::all(pool.divisor, T())),
        dy_(dy),
        dx_(dx),
        add_(add) {}

  void run() const {
    const std::int64_t blocks = blocks_of_slice(), units = p_.d.in * blocks;
    const std::int64_t work = std::min(p_.h.in, rows_of_block()) * p_.w.in + p_.d.out * p_.h.out * p_.w.out / units;
    parallel_for(p_.planes * units, work, [self = *this](std::int64_t first, std::int64_t last) {
      BackwardBuffers<A> buffers;
      if (self.most_ > kSpan / 8 * 3)
        self.wide_rows(first, last, buffers);
      else
        self.rows(first, last, buffers);
    });
  }

 private:
  void rows(std::int64_t first, std::int64_t last, BackwardBuffers<A>& b) const {
    const std::int64_t step = positions_of_tile();
    const std::int64_t chunk = step >= p_.w.in ? last - first : 1;
    for (std::int64_t unit = first; unit < last; unit += chunk)
      for (std::int64_t i = 0; i < p_.w.in; i += step)
        tile_rows(i, std::min(i + step, p_.w.in), unit, std::min(unit + chunk, last), b);
  }

  /// Where windows lie side by side, blocks are whole windows.
  std::int64_t rows_of_block() const {
    const std::int64_t k = p_.h.window.kernel;
    return p_.h.is_tiled() ? std::max<std::int64_t>(kRowBlock / k, 1) * k : kRowBlock;
  }
  std::int64_t blocks_of_slice() const { return (p_.h.in - 1) / rows_of_block() + 1; }

  std::int64_t positions_of_tile() const {
    if (!p_.w.is_adaptive && is_side_by_side(p_.w)) {
      // The windows over a tile, with the zeros beside them, fill the buffer.
      const std::int64_t windows = kSpan - 2 * most_;
      return std::max<std::int64_t>(1, std::min(p_.w.in, p_.w.window.stride * windows));
    } else if (is_side_by_side(p_.w)) {
      return Spread<A>::kVectors * kLanes<A>;
    } else {
      return std::max<std::int64_t>(1, p_.w.positions_within(kTile));
    }
  }

  BackwardTile tile_of(std::int64_t i0, std::int64_t i1) const {
    const PoolAxis& axis = p_.w;
    const std::int64_t o0 = i0 == 0 ? 0 : axis.over(i0).first, o1 = i1 == axis.in ? axis.out : axis.over(i1 - 1).last;
    BackwardTile t{i0, i1, o0, o1, most_ - 1, most_ - 1 + o1 - o0, 0, 0};
    if (!axis.is_adaptive) {
      const Window1d& w = axis.window;
      t.pitch = t.margin + std::max(o1, (i1 - 1 + w.padding_left) / w.stride + 1) - o0;
      t.vector = (i0 + w.padding_left) % w.stride;
      t.at = t.margin + (i0 + w.padding_left) / w.stride - o0;
    } else {
      t.at = t.margin + axis.over(i0).last - 1 - o0;
    }
    return t;
  }

  /// Positions [i0, i1) of the rows of units [first, last); a unit is a block of a slice's rows.
  void tile_rows(std::int64_t i0, std::int64_t i1, std::int64_t first, std::int64_t last, BackwardBuffers<A>& b) const {
    const BackwardTile t = tile_of(i0, i1);
    const std::int64_t blocks = blocks_of_slice();
    if (p_.divisor == 0) b.counts.set(p_.w, p_.count_include_pad, t.o0, t.windows());
    if (is_side_by_side(p_.w)) p_.w.is_adaptive ? list_adaptive(p_.w, i0, i1, b.spread) : list_fixed(p_.w, b.spread);
    std::fill(b.g, b.g + kSlack + kSpan + kSlack, A(0));
    for (std::int64_t unit = first; unit < last; ++unit) {
      if (unit == first || blocks > 1) list_groups(unit % blocks, b);
      for (std::int64_t i = 0; i < b.group_count; ++i) store_groups(unit / blocks, b.groups[i], t, b);
    }
  }

  /// Lists the rows of a block by the windows that they lie in.
  void list_groups(std::int64_t block, BackwardBuffers<A>& b) const {
    const std::int64_t h0 = block * rows_of_block(), h1 = std::min(h0 + rows_of_block(), p_.h.in);
    if (p_.h.is_tiled()) {
      const std::int64_t k = p_.h.window.kernel, o = h0 / k;
      b.groups[0] = {h0, k, o, o + 1, (h1 - h0) / k, k, 1, counted(p_.h, o, o + 1)};
      b.group_count = 1;
      return;
    }
    b.group_count = 0;
    Sweep sweep(p_.h, h0);
    for (std::int64_t h = h0;;) {
      const auto [o0, o1] = sweep.over();
      const std::int64_t end = std::min(sweep.end(), h1);
      const RowGroups group{h, end - h, o0, o1, 1, 0, 0, counted(p_.h, o0, o1)};
      RowGroups* open = b.groups;
      while (open != b.groups + b.group_count && !open->takes(group)) ++open;
      if (open == b.groups + b.group_count) b.groups[b.group_count++] = group;
      if (end >= h1) return;
      sweep.to(h = end);
    }
  }

  /// What each of the windows [o0, o1) of an axis counts; 0 when that differs.
  double counted(const PoolAxis& axis, std::int64_t o0, std::int64_t o1) const {
    if (p_.divisor != 0) return 1;
    std::int64_t all = 0;
    for (std::int64_t o = o0; o < o1; ++o) {
      const std::int64_t own = axis.at(o).counted(p_.count_include_pad);
      if (o > o0 && own != all) return 0;
      all = own;
    }
    return static_cast<double>(all);
  }

  /// The gradients of some rows of a slice.
  void store_groups(std::int64_t slice, const RowGroups& groups, const BackwardTile& t, BackwardBuffers<A>& b) const {
    const std::int64_t width = p_.w.in, outputs = p_.d.out * p_.h.out * p_.w.out;
    const T* const dy = dy_ + slice / p_.d.in * outputs;
    T* const dx = dx_ + (slice * p_.h.in + groups.h) * width;
    const IndexRange d = p_.d.over(slice % p_.d.in);
    const std::int64_t batch = std::max<std::int64_t>(2 * kTile / t.pitch, 1);
    for (std::int64_t i = 0; i < groups.count; i += batch) {
      const std::int64_t count = std::min(batch, groups.count - i);
      const Repeat spread{count, t.pitch, groups.h_step * width};
      T* const to = dx + i * spread.y_step + t.i0;
      const IndexRange h{groups.o0 + i * groups.o_step, groups.o1 + i * groups.o_step};
      if (d.first < d.last && h.first < h.last) {
        const Repeat sums{count, groups.o_step * p_.w.out, t.pitch};
        sum_gradients(dy, d, h, groups.counted, t.o0, t.windows(), sums, b.counts, b.g + kSlack + t.margin);
        store_rows(t, b, spread, groups.rows, to);
      } else if (!add_) {
        for (std::int64_t g = 0; g < count; ++g)
          for (std::int64_t r = 0; r < groups.rows; ++r)
            fill_run(T(0), t.positions(), false, to + g * spread.y_step + r * width);
      }
    }
  }

  /// The gradients of positions from those of the windows in the buffer.
  void store_rows(const BackwardTile& t, const BackwardBuffers<A>& b, const Repeat& repeat, std::int64_t rows,
                  T* dx) const {
    const A* const g = b.g + kSlack;
    if (!is_side_by_side(p_.w)) return gather_rows(g + t.margin, t, repeat, rows, dx);
    if (!p_.w.is_adaptive && p_.w.window.stride == 1 && most_ <= kShort)
      return average_rows(g + t.at - (most_ - 1), t, repeat, rows, dx);
    Windows<A> windows{g, most_ - 1, nullptr};
    if constexpr (std::is_same_v<A, double>)
      if (most_ > kShort + 1) return slide_rows(windows, t, b.spread, repeat, rows, dx);
    spread_rows(windows, b.spread, t.vector, t.at, t.positions(), repeat, rows, p_.w.in, add_, dx);
  }

  /// The same where every window is one position behind the one before: sums of gradients as in the forward.
  void average_rows(const A* g, const BackwardTile& t, const Repeat& repeat, std::int64_t rows, T* dx) const {
    const Divisor<A> one = Divisor<A>::all(1, T());
    if (rows == 1 && !add_) return average_taps<1>(g, most_, t.positions(), repeat, one, dx);
    T values[kSpan];
    for (std::int64_t i = 0; i < repeat.count; ++i) {
      average_taps<1>(g + i * repeat.x_step, most_, t.positions(), {1, 0, 0}, one, values);
      for (std::int64_t r = 0; r < rows; ++r)
        store_run(dx + i * repeat.y_step + r * p_.w.in, t.positions(), add_, [&](std::int64_t j) { return values[j]; });
    }
  }

  /// The same where positions lie in many windows, which share their sums.
  void slide_rows(Windows<A> windows, const BackwardTile& t, const Spread<A>& spread, const Repeat& repeat,
                  std::int64_t rows, T* dx) const {
    alignas(64) double sums[kSlack + kSpan + kSlack] = {};
    const std::int64_t n = repeat.count * t.pitch - windows.terms + 1;
    double* const to = sums + windows.terms - 1;
    const auto store_sums = [to](std::int64_t o, const Doubles& s, std::int64_t) { store<double>(s, to + o); };
    if (sizeof(T) == sizeof(double) || !slide_sums(windows.g, windows.terms, n, store_sums))
      sum_runs(windows.g, windows.terms, n, to);
    windows.sums = sums;
    spread_rows(windows, spread, t.vector, t.at, t.positions(), repeat, rows, p_.w.in, add_, dx);
  }

  /// The same, all positions together that lie in the same windows; `g` begins at window t.o0.
  void gather_rows(const A* g, const BackwardTile& t, const Repeat& repeat, std::int64_t rows, T* dx) const {
    for (std::int64_t i = 0; i < repeat.count; ++i, g += repeat.x_step, dx += repeat.y_step) {
      Sweep sweep(p_.w, t.i0);
      for (std::int64_t at = t.i0;;) {
        const auto [first, last] = sweep.over();
        const std::int64_t end = std::min(sweep.end(), t.i1);
        const T value = first < last ? static_cast<T>(sum_row(g + (first - t.o0), last - first)) : T(0);
        for (std::int64_t r = 0; r < rows; ++r) fill_run(value, end - at, add_, dx + r * p_.w.in + (at - t.i0));
        if (end >= t.i1) break;
        sweep.to(at = end);
      }
    }
  }

  /// g_o = sum over the rows `d` x `h` of dy_o / divisor of its window, for `n` windows from o0 on; `h_counts` is what
  /// all of `h` count, or 0.
  void sum_gradients(const T* dy, const IndexRange& d, const IndexRange& h, double h_counts, std::int64_t o0,
                     std::int64_t n, const Repeat& repeat, Counts<A>& counts, A* g) const {
    const std::int64_t width = p_.w.out;
    const auto add_rows = [&](const IndexRange& i, const IndexRange& j, const Divisor<A>& divisor, bool add) {
      sum_rows(dy + (i.first * p_.h.out + j.first) * width + o0, Rows{p_.h.out * width, i.last - i.first},
               Rows{width, j.last - j.first}, n, repeat, g, AddQuotients<A>{divisor, add});
    };
    if (p_.divisor != 0) return add_rows(d, h, divisor_, false);
    const double d_counts = counted(p_.d, d.first, d.last);
    if (d_counts * h_counts != 0) return add_rows(d, h, counts.divisor(d_counts * h_counts, n, T()), false);
    for (std::int64_t i = d.first; i < d.last; ++i)
      for (std::int64_t j = h.first; j < h.last; ++j)
        add_rows({i, i + 1}, {j, j + 1}, counts.divisor(counted(p_.d, i, i + 1) * counted(p_.h, j, j + 1), n, T()),
                 i > d.first || j > h.first);
  }

  /// As `rows` when positions lie in more windows than the buffers hold: dx_i = sum over windows, in pieces.
  void wide_rows(std::int64_t first, std::int64_t last, BackwardBuffers<A>& b) const {
    const std::int64_t blocks = blocks_of_slice(), width = p_.w.in;
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t slice = unit / blocks;
      list_groups(unit % blocks, b);
      for (std::int64_t g = 0; g < b.group_count; ++g)
        for (std::int64_t n = 0; n < b.groups[g].count; ++n)
          wide_group(slice, b.groups[g], n, dx_ + (slice * p_.h.in + b.groups[g].h + n * b.groups[g].h_step) * width,
                     b);
    }
  }

  void wide_group(std::int64_t slice, const RowGroups& groups, std::int64_t number, T* dx,
                  BackwardBuffers<A>& b) const {
    const T* const dy = dy_ + slice / p_.d.in * p_.d.out * p_.h.out * p_.w.out;
    const IndexRange d = p_.d.over(slice % p_.d.in),
                     h{groups.o0 + number * groups.o_step, groups.o1 + number * groups.o_step};
    Sweep sweep(p_.w, 0);
    for (std::int64_t i = 0; i < p_.w.in;) {
      const IndexRange w = sweep.over();
      const std::int64_t end = std::min(sweep.end(), p_.w.in);
      A sum = 0;
      for (std::int64_t o = w.first; o < w.last && d.first < d.last && h.first < h.last; o += kTile) {
        const std::int64_t n = std::min(kTile, w.last - o);
        if (p_.divisor == 0) b.counts.set(p_.w, p_.count_include_pad, o, n);
        sum_gradients(dy, d, h, groups.counted, o, n, {1, 0, 0}, b.counts, b.g);
        sum += static_cast<A>(sum_row(b.g, n));
      }
      for (std::int64_t r = 0; r < groups.rows; ++r) fill_run(static_cast<T>(sum), end - i, add_, dx + r * p_.w.in + i);
      if ((i = end) < p_.w.in) sweep.to(i);
    }
  }

  const Pool p_;
  const std::int64_t most_;
  const Divisor<A> divisor_;  ///< where all windows share one
  const T* const dy_;
  T* const dx_;
  const bool add_;
};

/// dx_{i n}, ..., dx_{i n + n - 1} = dy_i / divisor
template <class T>
void backward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* dy, T* dx, bool add) {
  parallel_for(runs, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      fill_run(static_cast<T>(static_cast<double>(dy[i]) / divisor), n, add, dx + i * n);
  });
}

}  // namespace taper::kernels::average
