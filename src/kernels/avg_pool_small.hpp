#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "kernels/avg_pool_loops.hpp"
#include "kernels/parallel.hpp"

/// Planes under the smallest windows: rows and columns are summed in registers. Where these functions begin is fixed,
/// as their loops take a tenth longer across the end of a cache line.
namespace taper::kernels::average {

/// What is known of the windows: two by two side by side; three by three at each element or at every second one, from
/// one in front of the first element on. Forward and backward; where windows begin at each element, that is one.
enum class Small { none, pairs, threes, strided_threes, pairs_back, strided_threes_back };

/// Rows [to_first, to_last) of results, `to_width` wide, and `rows` rows, the first of them row `first`, that they
/// read, `width` wide.
template <class T>
struct SmallRows {
  const T* x;
  T* y;
  std::int64_t first, rows, width;
  std::int64_t to_first, to_last, to_width;
  std::int64_t more_readable, more_storable;  ///< elements behind the last rows
  const T* zeros;                             ///< read in the place of rows beside the source
  bool is_far;                                ///< whether caches hardly hold what is read, or filled
  std::uintptr_t ahead;                       ///< as `far_ahead`, if so
  bool streams;  ///< whether results are stored past the caches, if that is where rows are whole vectors

  const T* row(std::int64_t i) const {
    i -= first;
    return static_cast<std::uint64_t>(i) < static_cast<std::uint64_t>(rows) ? x + i * width : zeros;
  }
  /// Elements that may be read from the beginning of a row on, and be stored from that of row `i` of results on: those
  /// of rows behind it, too, which are stored later.
  std::int64_t readable(std::int64_t i) const { return (first + rows - i) * width + more_readable; }
  std::int64_t storable(std::int64_t i) const { return (to_last - i) * to_width + more_storable; }

  /// Rows of windows of two or three at every second element that have one factor, cut no column or row below off and
  /// have room behind them for all of the vectors that they are read and stored in.
  TAPER_FOR_SIZE std::int64_t rows_inside() const {
    const bool inside = 2 * to_width <= width && 2 * to_first >= first && 2 * to_last <= first + rows;
    const std::int64_t all = to_last - to_first;
    if (!inside || by_step != 0) return 0;
    if (more_readable >= 2 * kLanes<T> && more_storable >= kLanes<T>) return all;
    const std::int64_t rest = (ceil_div(to_width, kLanes<T>) * kLanes<T> - 1) / to_width;
    return all > 2 * rest ? all - rest : 0;
  }

  /// The row of results before which pairs' gradients cut no column off and have room behind them for the vectors that
  /// they are read and stored in; `to_first` if there is none.
  TAPER_FOR_SIZE std::int64_t last_spread() const {
    const bool more = more_readable >= kLanes<T> && more_storable >= 2 * kLanes<T>;
    const std::int64_t rest = more ? 0 : (kLanes<T> - 1) / width,
                       all = std::min(to_last / 2, first + rows) - to_first / 2;
    return to_width == 2 * width && to_first % 2 == 0 && all > 2 * rest ? to_first + 2 * (all - rest) : to_first;
  }

  const T* by[3];        ///< factors of the first row of windows, of others and of the last one
  std::int64_t windows;  ///< rows of windows
  std::int64_t by_step;  ///< 0: there is one vector of factors, for all rows of pairs

  int class_of(std::int64_t window) const { return window == 0 ? 0 : window + 1 < windows ? 1 : 2; }
  const T* factors(std::int64_t window) const { return by[class_of(window)]; }
};

/// Whether vectors of results may be stored past the caches.
inline constexpr bool kStreamsSmall = kVectorWidth >= 32;

/// The first vector of a row of `n` elements, and zeros behind.
template <class T>
[[gnu::always_inline]] inline Vector<T> load_some(const T* x, std::int64_t n) {
  if (n >= kLanes<T>) return load<T>(x);
  return n > 0 ? load_first<T>(x, n) : Vector<T>{};
}
/// The same where all of the vector may be read: loads of parts of vectors take long on AVX2.
template <class T>
[[gnu::always_inline]] inline Vector<T> load_kept(const T* x, std::int64_t n) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return Vector<T>(__m256i(load<T>(x)) & first_lanes<T>(n));
#else
  return load_some<T>(x, n);
#endif
}
/// The same where `readable` elements may be read.
template <class T>
[[gnu::always_inline]] inline Vector<T> load_some(const T* x, std::int64_t n, std::int64_t readable) {
  return kVectorWidth == 32 && readable >= kLanes<T> ? load_kept<T>(x, n) : load_some<T>(x, n);
}

/// -1, 0, 1, ..., as many as a vector has lanes, and -1: from the first on where the lanes before a row's first vector
/// come from, from the second on its own, and from the third on those behind its last.
template <class T>
static constexpr auto kBeside = [] {
  std::array<std::int32_t, kLanes<T> + 2> from{};
  for (int l = 0; l < kLanes<T> + 2; ++l) from[std::size_t(l)] = l <= kLanes<T> ? l - 1 : -1;
  return from;
}();

/// y_o = (x_{o - 1} + x_o + x_{o + 1}) times its factor, in both axes. Two vectors at a time are taken down the rows,
/// or the only one, so that each row is summed once.
template <class T>
[[gnu::noinline, gnu::aligned(64)]] void small_threes(const SmallRows<T>& s) {
  using All = std::make_integer_sequence<int, kLanes<T>>;
  constexpr int kLast = kLanes<T> - 1;
  constexpr std::int64_t kTwo = 2 * kLanes<T>;
  const std::int64_t width = s.width, to_width = s.to_width, begin = s.first, rows = s.rows, end = s.to_last;
  const std::int64_t by_step = s.by_step;
  const bool is_far = s.is_far, streams = kVectorWidth == 64 && s.streams;
  // What the next block reads and fills is asked for meanwhile.
  Next next_x(s.x, rows * width), next_y(s.y, (end - s.to_first) * to_width);
  // Vectors of columns from c on, which are `whole` but for the last ones of a row.
  const auto down =
      [ =, &s, &next_x, &next_y ](std::int64_t c, auto vectors, auto whole) __attribute__((always_inline)) {
    constexpr int V = vectors;
    const std::int64_t n = width - c, is_inside = c > 0 ? 1 : 0, has_more = n > V * kLanes<T> ? 1 : 0;
    const Permutation<T> before_of(kBeside<T>.data() + is_inside), behind_of(kBeside<T>.data() + 2 - has_more);
    // Where these are all columns, what is stored behind the end of a row is replaced by the next one.
    std::int64_t left = c > 0 ? 0 : s.storable(s.to_first), readable = s.readable(s.to_first - 1) - c;
    const T *by = s.by[0], *const zeros = s.zeros + c;
    typename Factors<T>::Pair factor[V];
    const auto set_factors = [&]() __attribute__((always_inline)) {
      for (int v = 0; v < V; ++v) factor[v] = Factors<T>::at(by, (c + v * kLanes<T>)*by_step);
    };
    set_factors();
    const T* x = s.x + (s.to_first - 1 - begin) * width + c;
    T* y = s.y + c;
    Vector<T> first[V] = {}, second[V] = {};
    for (std::int64_t l = s.to_first - 2; l < end; ++l, x += width, readable -= width) {
      const bool is_row = static_cast<std::uint64_t>(l + 1 - begin) < static_cast<std::uint64_t>(rows);
      const T* const row = is_row ? x : zeros;
      if (is_far) [[unlikely]] {
        next_x.fetch(V * kVectorWidth);
        if (!streams) next_y.fetch(V * kVectorWidth);
      }
      Vector<T> sum[V + 2] = {};  // the vectors, between the ones beside them
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sum[v + 1] = whole ? load<T>(row + v * kLanes<T>)
                           : load_some<T>(row + v * kLanes<T>, n - v * kLanes<T>, readable - v * kLanes<T>);
      Vector<T> third[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        Vector<T> before, behind;
        if (v > 0)
          before = moved<kLast>(sum[v], sum[v + 1], All());
        else if (whole)
          before = before_of(load<T>(row - is_inside));
        else
          before = is_inside != 0 ? load_some<T>(row - 1, n + 1, readable + 1) : moved<kLast>(sum[0], sum[1], All());
        if (v + 1 < V)
          behind = moved<1>(sum[v + 1], sum[v + 2], All());
        else if (whole)
          behind = behind_of(load<T>(row + v * kLanes<T> + has_more));
        else
          behind = has_more != 0 ? load<T>(row + v * kLanes<T> + 1) : moved<1>(sum[v + 1], sum[v + 2], All());
        third[v] = before + (sum[v + 1] + behind);
      }
      if (l >= s.to_first) [[likely]] {
        if (by_step != 0 && by != s.factors(l)) [[unlikely]] {
          by = s.factors(l);
          set_factors();
        }
        const std::int64_t count = std::max(to_width - c, left);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) {
          const Vector<T> average = factor[v].times(first[v] + (second[v] + third[v]));
          if (streams && whole) [[unlikely]]
            stream<T>(average, y + v * kLanes<T>);
          else if (whole)
            store<T>(average, y + v * kLanes<T>);
          else
            store_some<T>(average, count - v * kLanes<T>, y + v * kLanes<T>);
        }
        y += to_width, left -= to_width;
      }
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) first[v] = second[v], second[v] = third[v];
    }
  };
  constexpr std::integral_constant<int, 1> kOne;
  constexpr std::integral_constant<int, 2> kBoth;
  if (to_width <= kLanes<T> && width <= kLanes<T>) return down(0, kOne, std::false_type());
  // The last two vectors of a row begin within the ones before them, unless elements have factors of their own.
  const bool overlaps = by_step == 0 && width == to_width && width >= kTwo;
  for (std::int64_t c = 0; c < to_width; c += kTwo) {
    const std::int64_t from = overlaps ? std::min(c, to_width - kTwo) : c;
    if (std::min(width, to_width) - from >= kTwo)
      down(from, kBoth, std::true_type());
    else
      down(from, kBoth, std::false_type());
  }
}

/// x_{2 o} + x_{2 o + 1} for a vector of o, of two vectors of x, or with x_{2 o - 1} too, whose first one is the last
/// of `before`; that is then the elements x_{2 o + 1}.
template <int K, class T>
[[gnu::always_inline]] inline Vector<T> strided_sums(const Vector<T>& a, const Vector<T>& b, Vector<T>& before) {
  using All = std::make_integer_sequence<int, kLanes<T>>;
  const Vector<T> odd = every_second<1>(a, b, All());
  Vector<T> sum = every_second<0>(a, b, All()) + odd;
  if constexpr (K == 3) {
    sum += moved<kLanes<T> - 1>(before, odd, All());
    before = odd;
  }
  return sum;
}

/// y_o = (x_{2 o} + x_{2 o + 1}) times its factor in both axes, or with x_{2 o - 1} too: of rows `from` to s.to_last
template <Small kind, class T>
[[gnu::noinline, gnu::aligned(64)]] void small_strided(const SmallRows<T>& s, std::int64_t from) {
  constexpr int K = kind == Small::pairs ? 2 : 3;
  const std::int64_t n = s.width, to_width = s.to_width, last = s.to_last, by_step = s.by_step;
  const std::uintptr_t ahead = s.ahead;
  T* y = s.y + (from - s.to_first) * to_width;
  const T* x = s.x + (2 * from - s.first) * n;
  const std::int64_t end = s.first + s.rows;
  // What is stored behind the end of a row is replaced by the next one.
  std::int64_t left = s.storable(from);
  for (std::int64_t l = from; l < last; ++l, y += to_width, left -= to_width, x += 2 * n) {
    const T *const above = 2 * l > s.first && 2 * l <= end ? x - n : s.zeros, *const here = 2 * l < end ? x : s.zeros,
                   *const below = 2 * l + 1 < end ? x + n : s.zeros;
    // Where no window is cut off, rows may be read on into those that follow: loads of parts of vectors take long on
    // AVX2.
    const std::int64_t behind = kVectorWidth == 32 && 2 * to_width <= n ? s.readable(2 * l + 1) : n;
    const auto columns = [=](std::int64_t c) __attribute__((always_inline)) {
      if (behind - c >= kLanes<T>) {
        const Vector<T> sum = load<T>(here + c) + load<T>(below + c);
        return K == 2 ? sum : load<T>(above + c) + sum;
      }
      if (n <= c) return Vector<T>{};
      const Vector<T> sum = load_first<T>(here + c, n - c) + load_first<T>(below + c, n - c);
      return K == 2 ? sum : load_first<T>(above + c, n - c) + sum;
    };
    const T* const by = s.factors(l);
    Vector<T> before{};
    for (std::int64_t o = 0; o < to_width; o += kLanes<T>) {
      const Vector<T> sum = strided_sums<K, T>(columns(2 * o), columns(2 * o + kLanes<T>), before);
      fetch_ahead<4>(x + 4 * o, ahead);
      store_some<T>(Factors<T>::multiply(sum, by, o * by_step), left - o, y + o);
    }
  }
}

/// The same of the rows before `last`, where windows have one factor and no columns or rows below are cut off, with as
/// little as possible beside them, as rows are often short: they are read, and stored, on into those behind them.
template <Small kind, class T>
[[gnu::noinline, gnu::aligned(64)]] void strided_inside(const SmallRows<T>& s, std::int64_t last) {
  constexpr int K = kind == Small::pairs ? 2 : 3;
  const bool streams = K == 2 && kStreamsSmall && s.streams;
  const auto factor = Factors<T>::at(s.by[0], 0);
  const std::int64_t n = s.width, to_width = s.to_width;
  const std::uintptr_t ahead = s.ahead;
  const T *x = s.x + (2 * s.to_first - s.first) * n, *above = 2 * s.to_first > s.first ? x - n : s.zeros;
  T* y = s.y;
  for (T* const end = y + (last - s.to_first) * to_width; y != end; x += 2 * n, above = x - n, y += to_width) {
    Vector<T> before{};
    for (std::int64_t o = 0; o < to_width; o += kLanes<T>) {
      const auto columns = [=](std::int64_t c) __attribute__((always_inline)) {
        const Vector<T> sum = load<T>(x + c) + load<T>(x + n + c);
        return K == 2 ? sum : load<T>(above + c) + sum;
      };
      const Vector<T> sum = strided_sums<K, T>(columns(2 * o), columns(2 * o + kLanes<T>), before);
      fetch_ahead<4>(x + 4 * o, ahead);
      if (streams) [[unlikely]]
        stream<T>(factor.times(sum), y + o);
      else
        store<T>(factor.times(sum), y + o);
    }
  }
}

/// The same of all rows; behind the last of them nothing is written.
template <Small kind, class T>
void small_averages(const SmallRows<T>& s) {
  const std::int64_t whole = s.rows_inside();
  if (whole > 0) strided_inside<kind>(s, s.to_first + whole);
  if (s.to_first + whole < s.to_last) small_strided<kind>(s, s.to_first + whole);
}

/// sum = x times the factors of the first row of windows, of others or of the last one
template <class T>
[[gnu::noinline]] void small_scaled(const SmallRows<T>& s, const T* const (&by)[3], T* sum) {
  const T* x = s.x;
  for (std::int64_t i = s.first; i < s.first + s.rows; ++i, x += s.width, sum += s.width)
    for (std::int64_t c = 0; c < s.width; c += kLanes<T>)
      store_some<T>(Factors<T>::multiply(load_some<T>(x + c, s.width - c), by[s.class_of(i)], c), s.width - c, sum + c);
}

/// dx_{2 j} = g_j in both axes, for gradients g times their factors. Under pairs dx_{2 j + 1} = g_j too, under threes
/// it is g_j + g_{j + 1}. Of the columns of dx from c on, W times two vectors or the rest of the row; each row of
/// gradients is spread once.
template <Small kind, int W, class T>
[[gnu::noinline, gnu::aligned(64)]] void spread_columns(const SmallRows<T>& s, std::int64_t c) {
  using All = std::make_integer_sequence<int, kLanes<T>>;
  constexpr bool kSums = kind == Small::strided_threes_back;
  const std::int64_t from = c / 2, n = s.to_width - c, width = s.width - from, to_width = s.to_width, last = s.to_last;
  const bool differs = kSums && s.by_step != 0;
  const auto factor = Factors<T>::at(s.by[0], 0);
  const bool streams = kStreamsSmall && s.streams;
  const std::uintptr_t ahead = c == 0 && !streams ? s.ahead : 0;
  T* y = s.y + c;
  // Rows that are no longer are read on into those behind them, and what is stored behind their end is replaced.
  constexpr bool kReadsOn = kVectorWidth == 32 && W < 4;
  const bool alone = kReadsOn && !streams && c == 0 && n <= 2 * W * kLanes<T>;
  std::int64_t left = alone ? s.storable(s.to_first) : 0;
  std::int64_t readable = alone ? s.readable(s.to_first / 2) : 0;
  Vector<T> before[2 * W] = {};  // the row of gradients before, spread
  for (std::int64_t l = s.to_first - (kSums ? 2 : 0); l < last; l += 2, readable -= s.width) {
    const std::int64_t window = l / 2 + (kSums ? 1 : 0);
    const T *const g = s.row(window) + from, *const by = s.factors(window);
    const bool reads_on = kReadsOn && readable >= (W + 1) * kLanes<T>;
    const auto scaled = [=](int w) __attribute__((always_inline)) {
      const T* const at = g + w * kLanes<T>;
      const std::int64_t count = width - w * kLanes<T>;
      const Vector<T> v = reads_on ? load_kept<T>(at, count) : load_some<T>(at, count);
      return differs ? Factors<T>::multiply(v, by, from + w * kLanes<T>) : factor.times(v);
    };
    Vector<T> next[2 * W], even = scaled(0);
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      const bool is_read = kSums || w + 1 < W;
      const Vector<T> after = is_read ? scaled(w + 1) : even, odd = kSums ? even + moved<1>(even, after, All()) : even;
      next[2 * w] = in_turns<0>(even, odd, All());
      next[2 * w + 1] = in_turns<1>(even, odd, All());
      even = after;
    }
    if (!kSums || l >= s.to_first) {
      if (ahead > 0) fetch_run(y, 2 * to_width, ahead);
      const Vector<T>* const spread = kSums ? before : next;
      for (std::int64_t row = l; row < std::min(l + 2, last); ++row, y += to_width, left -= to_width) {
        if (kSums && row > l)
#pragma GCC unroll 8
          for (int v = 0; v < 2 * W; ++v) before[v] += next[v];
        if (streams) {
#pragma GCC unroll 8
          for (int v = 0; v < 2 * W; ++v)
            if (v * kLanes<T> < n) stream<T>(spread[v], y + v * kLanes<T>);
        } else if (kReadsOn && left >= 2 * W * kLanes<T>) {
#pragma GCC unroll 8
          for (int v = 0; v < 2 * W; ++v) store<T>(spread[v], y + v * kLanes<T>);
        } else {
#pragma GCC unroll 8
          for (int v = 0; v < 2 * W; ++v) store_some<T>(spread[v], n - v * kLanes<T>, y + v * kLanes<T>);
        }
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < 2 * W; ++v) before[v] = next[v];
  }
}

/// The same under pairs that cut no column off, of the rows before `last`, in their order: the last vector of a row of
/// gradients begins within the one before it, or is read, and stored, on into the rows behind it.
template <class T>
[[gnu::noinline, gnu::aligned(64)]] void spread_inside(const SmallRows<T>& s, std::int64_t last) {
  using All = std::make_integer_sequence<int, kLanes<T>>;
  const auto factor = Factors<T>::at(s.by[0], 0);
  const std::int64_t width = s.width, to_width = s.to_width, end = std::max<std::int64_t>(width - kLanes<T>, 0);
  const bool streams = s.streams;
  const std::uintptr_t ahead = streams ? 0 : s.ahead;
  const T* g = s.x + (s.to_first / 2 - s.first) * width;
  T* y = s.y;
  for (std::int64_t l = s.to_first; l < last; l += 2, g += width, y += 2 * to_width) {
    if (ahead > 0) fetch_run(y, 2 * to_width, ahead);
    for (std::int64_t o = 0;; o = std::min(o + kLanes<T>, end)) {
      const Vector<T> v = factor.times(load<T>(g + o)), a = in_turns<0>(v, v, All()), b = in_turns<1>(v, v, All());
      T *const above = y + 2 * o, *const below = above + to_width;
      if (streams) [[unlikely]] {
        // A line that was streamed would be waited for.
        const bool is_new = o % kLanes<T> == 0;
        if (is_new) stream<T>(a, above);
        stream<T>(b, above + kLanes<T>);
        if (is_new) stream<T>(a, below);
        stream<T>(b, below + kLanes<T>);
      } else {
        store<T>(a, above), store<T>(b, above + kLanes<T>);
        store<T>(a, below), store<T>(b, below + kLanes<T>);
      }
      if (o == end) break;
    }
  }
}

/// The same of all columns: of all rows, or, where rows are wide and lie in memory, of a few at a time, because it is
/// filled far faster in its order.
template <Small kind, class T>
void small_spread(const SmallRows<T>& s) {
  constexpr std::int64_t kTwo = 2 * kLanes<T>;
  constexpr bool kInside = kind == Small::pairs_back && kVectorWidth > 16;  // the baseline is kept small
  constexpr int kMost = kInside ? 2 : 4;
  constexpr int kFew = kind == Small::pairs_back ? 2 : 4;  // threes spread a row of gradients more for each few
  SmallRows<T> part = s;
  if constexpr (kInside) {
    if (const std::int64_t last = s.last_spread(); last > s.to_first) {
      spread_inside(s, last);
      part.to_first = last, part.y += (last - s.to_first) * s.to_width;
    }
  }
  const bool in_order = s.is_far && s.to_width > kMost * kTwo && (kind == Small::pairs_back || s.ahead > 0);
  const std::int64_t step = in_order ? kFew : part.to_last - part.to_first;
  for (; part.to_first < s.to_last; part.to_first = part.to_last, part.y += step * s.to_width) {
    part.to_last = std::min(part.to_first + step, s.to_last);
    for (std::int64_t c = 0; c < s.to_width;) {
      const std::int64_t n = s.to_width - c;
      const int w = n <= kTwo ? 1 : n <= 2 * kTwo ? 2 : kMost;
      auto* spread = spread_columns<kind, kMost, T>;
      if (w < kMost) spread = w == 1 ? spread_columns<kind, 1, T> : spread_columns<kind, 2, T>;
      spread(part, c);
      c += w * kTwo;
    }
  }
}

template <class T>
auto small_loop(Small kind) {
  return kind == Small::pairs            ? small_averages<Small::pairs, T>
         : kind == Small::threes         ? small_threes<T>
         : kind == Small::strided_threes ? small_averages<Small::strided_threes, T>
         : kind == Small::pairs_back     ? small_spread<Small::pairs_back, T>
                                         : small_spread<Small::strided_threes_back, T>;
}

/// Adds the results, `some` rows at a time, for which there is room in a buffer.
template <class T>
[[gnu::noinline]] void add_small(Small kind, SmallRows<T> rows, std::int64_t some, T* buffer) {
  const std::int64_t last_row = rows.to_last;
  for (T* y = std::exchange(rows.y, buffer); rows.to_first < last_row; rows.to_first = rows.to_last) {
    rows.to_last = std::min(rows.to_first + some, last_row);
    small_loop<T>(kind)(rows);
    const std::int64_t count = (rows.to_last - rows.to_first) * rows.to_width;
    copy_run(buffer, count, y, true);
    y += count;
  }
}

/// `rows` rows of windows of two by two elements, `width` in each, of planes that they cut without a rest: what is read
/// and filled is one plane, and no pass is prepared.
template <class T>
void pool_pairs(std::int64_t rows, std::int64_t width, double divisor, bool backward, const T* x, T* y) {
  const std::int64_t bytes = rows * width * std::int64_t{sizeof(T)};
  const bool is_far = backward ? 5 * bytes >= kFarFilled : 4 * bytes >= beyond_caches / 2;
  const bool streams = kStreamsSmall && 4 * bytes >= beyond_caches && (backward ? 2 * width : width) % kLanes<T> == 0 &&
                       lanes_until_aligned(y) == 0;
  parallel_for(rows, 5 * width, [=](std::int64_t first, std::int64_t last) {
    alignas(kVectorWidth) T one[2 * kLanes<T>];
    Factors<T>::set_all(one, divisor);
    SmallRows<T> all{};
    all.is_far = is_far;
    all.streams = streams;
    all.ahead = !is_far ? 0 : backward ? far_ahead() : far_ahead(std::int64_t{2 * sizeof(T)} * width);
    all.zeros = x, all.windows = rows;
    all.by[0] = all.by[1] = all.by[2] = one;
    const std::int64_t n = last - first, from = backward ? 1 : 2, to = backward ? 2 : 1;
    all.rows = from * n, all.width = from * width, all.to_last = to * n, all.to_width = to * width;
    all.x = x + first * from * all.width, all.y = y + first * to * all.to_width;
    backward ? small_spread<Small::pairs_back>(all) : small_averages<Small::pairs>(all);
    if (streams) end_stream();
  });
}

}  // namespace taper::kernels::average
