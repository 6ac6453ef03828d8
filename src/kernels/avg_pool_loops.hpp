#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/avg_pool_columns.hpp"
#include "kernels/pool_lanes.hpp"
#include "kernels/sum_row.hpp"

/// The loops of average pools, forward and backward: sums of rows, and sums along a row. They are templates over A, in
/// which is summed, and T, in which memory is.
namespace taper::kernels::average {

/// Columns that the results of a row which are worked on at once span at most, where these are brought together.
inline constexpr std::int64_t kSpan = 4096;

/// Where a window of a tile lies in the tile's columns.
struct Span {
  std::int32_t first, count;
};

/// What is filled at once: a vector, or, past the caches, a line, which takes as long as several if it comes in parts.
template <bool streams, class T>
inline constexpr std::int64_t kFilled = streams ? kLine / static_cast<int>(sizeof(T)) : kLanes<T>;

/// Fills `count` rows side by side, each of n elements as at x and no shorter than what is filled at once; past the
/// caches if it `streams`. There is room for as much behind x. What reaches into the rows behind, which will be as at
/// `next` if that is known, is completed there; what `has_begun` in front of y is left.
template <bool streams, class T>
[[gnu::always_inline]] inline void repeat_rows(T* x, std::int64_t n, T* y, std::int64_t count, bool has_begun,
                                               const T* next) {
  constexpr std::int64_t kAll = kLanes<T>, kSome = kFilled<streams, T>;
  copy_run(x, kSome, x + n);
  T* const end = y + n * count;
  const std::int64_t beside = lanes_until_aligned(y, kSome * sizeof(T));
  if (!has_begun) copy_run(x, beside, y);
  const T* from = x + beside;
  const auto take = [&]() __attribute__((always_inline)) {
    const Vector<T> v = load<T>(from);
    from += kAll;
    from -= from >= x + n ? n : 0;
    return v;
  };
  for (y += beside; end - y >= kSome; y += kSome)
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < kSome; i += kAll) store_aligned<streams>(take(), y + i);
  T both[2 * kSome];
  for (std::int64_t i = 0; i < kSome; i += kAll) store<T>(take(), both + i);
  if (next && end > y) {
    copy_run(next, kSome, both + (end - y));
    for (std::int64_t i = 0; i < kSome; i += kAll) stream<T>(load<T>(both + i), y + i);
  } else {
    copy_run(both, end - y, y);
  }
}

/// Stores rows of n results, which begin `apart` elements after each other, where they belong: as many copies of each
/// as `rows` says, `pitch` apart, from `to` on; or adds them.
template <class T>
[[gnu::noinline, gnu::aligned(64)]] void store_copies(T* x, std::int64_t apart, std::int64_t n, T* const* to,
                                                      const Row* rows, std::int64_t count, std::int64_t pitch, bool add,
                                                      bool streams) {
  bool has_begun = false;
  for (std::int64_t l = 0; l < count; ++l, x += apart) {
    const std::int64_t copies = rows[l].copies;
    if (!add && n == pitch && n >= (streams ? kFilled<true, T> : kLanes<T>)) {
      if (!streams) {
        repeat_rows<false, T>(x, n, to[l], copies, false, nullptr);
        continue;
      }
      const bool is_joined = l + 1 < count && to[l + 1] == to[l] + copies * n;
      repeat_rows<true, T>(x, n, to[l], copies, has_begun, is_joined ? x + apart : nullptr);
      has_begun = is_joined;
    } else {
      for (std::int64_t c = 0; c < copies; ++c) copy_run(x, n, to[l] + c * pitch, add);
    }
  }
}

// --- windows --------------------------------------------------------------------------------------------------------

/// The sum of k terms in four lanes: those left over by fours go to the last lanes first. What a window's sum
/// is depends on k alone, whichever of the loops below takes it.
template <class Term>
[[gnu::always_inline]] inline auto sum_terms_of(std::int64_t k, const Term& term) {
  if (k == 1) return term(0);
  if (k == 2) return term(0) + term(1);
  if (k == 3) return term(0) + (term(1) + term(2));
  const std::int64_t whole = k / 4 * 4;
  auto s0 = term(0), s1 = term(1), s2 = term(2), s3 = term(3);
  if (whole < k) s3 += term(k - 1);
  if (whole + 1 < k) s2 += term(k - 2);
  if (whole + 2 < k) s1 += term(k - 3);
  for (std::int64_t t = 4; t < whole; t += 4) s0 += term(t), s1 += term(t + 1), s2 += term(t + 2), s3 += term(t + 3);
  return (s0 + s1) + (s2 + s3);
}

/// y_o = x_{S o} + ... + x_{S o + S - 1} for S > 1 or K = S, or x_{2 o} + x_{2 o + 1} + x_{2 o + 2} for S = 2, K = 3,
/// as many windows at a time as fill a vector. Reads what windows would hold that complete the last vector; two vectors
/// more where K = 3. Memory `ahead` of them is asked for, unless that is 0; averages may be stored past the caches, in
/// whole vectors.
template <int S, int K, class A, class T, bool streams = false>
[[gnu::noinline]] void sum_beside(const Line<A, T>* lines, std::int64_t count, std::int64_t n, std::int64_t by_step,
                                  std::uintptr_t ahead) {
  using All = std::make_integer_sequence<int, kLanes<A>>;
  constexpr bool overlaps = S == 2 && K == 3;
  static_assert(overlaps || K == S);
  const bool is_plain = by_step == 0 && ahead == 0;
  for (std::int64_t l = 0; l < count; ++l) {
    const Line<A, T> line = lines[l];
    auto factor = Factors<A>::at(line.by, 0);
    [[maybe_unused]] Vector<A> even{};
    if constexpr (overlaps) even = every_second<0>(load<A>(line.from), load<A>(line.from + kLanes<A>), All());
    for (std::int64_t o = 0; o < n; o += kLanes<A>) {
      const A* const at = line.from + S * o;
      const auto vector = [=](int i) __attribute__((always_inline)) { return load<A>(at + i * kLanes<A>); };
      if (!is_plain) [[unlikely]] {
        if (by_step != 0) factor = Factors<A>::at(line.by, o);
        fetch_ahead<S>(at, ahead);
      }
      Vector<A> v;
      if constexpr (overlaps) {
        // Of the third terms all but the last are first terms.
        const Vector<A> first = even, odd = every_second<1>(vector(0), vector(1), All());
        even = every_second<0>(vector(2), vector(3), All());
        v = first + (odd + moved<1>(first, even, All()));
      } else if constexpr (S == 1) {
        v = vector(0);
      } else if constexpr (S == 2) {
        v = sum_pairs(vector(0), vector(1), All());
      } else if constexpr (S == 3) {
        v = sum_threes(vector(0), vector(1), vector(2), All());
      } else if constexpr (kLanes<A> >= 4) {
        v = sum_fours(vector(0), vector(1), vector(2), vector(3), All());
      } else {
        v = sum_pairs(sum_pairs(vector(0), vector(1), All()), sum_pairs(vector(2), vector(3), All()), All());
      }
      if constexpr (streams)
        stream<T>(factor.times(v), line.to + o);
      else
        store_some<A>(factor.times(v), n - o, line.to + o);
    }
  }
}

/// Where the terms of windows that begin at each element lie: term t of window o at `from[o + t / 2 * pair]`, `odd`
/// elements further on where t is odd.
struct Terms {
  std::int64_t k, odd, pair;
};

/// y_o = the sum of the terms of window o, as `sum_terms_of` takes it, of two or more: of two or three for K = 2, of K
/// = 3, or of more, of which K - 4 are left over by fours; of any for K = 0. Reads what windows would hold that
/// complete the last vector.
template <int K, class A, class T>
[[gnu::noinline]] void sum_terms(const Line<A, T>* lines, std::int64_t count, std::int64_t n, const Terms& terms,
                                 std::int64_t by_step, std::uintptr_t ahead) {
  const std::int64_t k = K == 3 ? K : terms.k, rest = K >= 4 ? K - 4 : k % 4;
  const std::int64_t odd = terms.odd, pair = terms.pair, end = k / 4 * 2 * pair;
  const Vector<A> none = A(-0.0) - Vector<A>{};  // -0 leaves what is added to it
  const bool is_plain = by_step == 0 && ahead == 0;
  for (std::int64_t l = 0; l < count; ++l) {
    const Line<A, T> line = lines[l];
    auto factor = Factors<A>::at(line.by, 0);
    for (std::int64_t o = 0; o < n; o += kLanes<A>) {
      const A* at = line.from + o;
      if (!is_plain) [[unlikely]] {
        if (by_step != 0) factor = Factors<A>::at(line.by, o);
        fetch_ahead<1>(at, ahead);
      }
      // Two terms, the first of which is so much further on.
      const auto even_at = [&](std::int64_t further) __attribute__((always_inline)) { return load<A>(at + further); };
      const auto odd_at = [&](std::int64_t further) __attribute__((always_inline)) {
        return load<A>(at + odd + further);
      };
      Vector<A> sum;
      if (K >= 4 || (K == 0 && k > 3)) {
        // Those left over come first, as they do where the first four terms are what they are added to.
        Vector<A> s0 = none, s1 = none, s2 = none, s3 = none;
        if (rest == 1) s3 = even_at(end);
        if (rest == 2) s3 = odd_at(end), s2 = even_at(end);
        if (rest == 3) s3 = even_at(end + pair), s2 = odd_at(end), s1 = even_at(end);
        std::int64_t fours = k / 4;
        do {
          s0 += even_at(0), s1 += odd_at(0), s2 += even_at(pair), s3 += odd_at(pair);
          at += 2 * pair;
        } while (--fours > 0);
        sum = (s0 + s1) + (s2 + s3);
      } else {
        sum = even_at(0) + (k == 2 ? odd_at(0) : odd_at(0) + even_at(pair));
      }
      store_some<A>(factor.times(sum), n - o, line.to + o);
    }
  }
}

/// The same for any of them.
template <class A, class T>
void sum_terms(const Line<A, T>* lines, std::int64_t count, std::int64_t n, const Terms& terms, std::int64_t by_step,
               std::uintptr_t ahead) {
  const std::int64_t k = terms.k;
  if (k == 1) return sum_beside<1, 1>(lines, count, n, by_step, ahead);
  if constexpr (!kHasSmall) return sum_terms<0>(lines, count, n, terms, by_step, ahead);
  auto* sum = sum_terms<2, A, T>;
  if constexpr (std::is_same_v<A, T>)
    if (k == 3) sum = sum_terms<3, A, T>;
  constexpr decltype(sum) kMore[] = {sum_terms<4, A, T>, sum_terms<5, A, T>, sum_terms<6, A, T>, sum_terms<7, A, T>};
  (k > 3 ? kMore[k % 4] : sum)(lines, count, n, terms, by_step, ahead);
}

/// Copies each second of 2 n elements of each line to `to`, and then the others: n is a multiple of a vector.
template <class A, class T>
[[gnu::noinline]] void split_lines(const Line<A, T>* lines, std::int64_t count, std::int64_t n, std::uintptr_t ahead,
                                   A* to) {
  using All = std::make_integer_sequence<int, kLanes<A>>;
  for (std::int64_t l = 0; l < count; ++l, to += n) {
    const A* x = lines[l].from;
    for (const A* const end = to + n; to != end; to += kLanes<A>, x += 2 * kLanes<A>) {
      const Vector<A> a = load<A>(x), b = load<A>(x + kLanes<A>);
      if (ahead != 0) [[unlikely]]
        fetch_ahead<2>(x, ahead);
      store<A>(every_second<0>(a, b, All()), to);
      store<A>(every_second<1>(a, b, All()), to + n);
    }
  }
}

/// y_o = x_{2 o} + x_{2 o + step} + ... of k terms, k step <= kSpan. Reads up to 64 elements behind the last of them.
template <class A, class T>
TAPER_FOR_SIZE void sum_strided(const Line<A, T>* lines, std::int64_t count, std::int64_t n, std::int64_t k,
                                std::int64_t step, std::int64_t by_step, std::uintptr_t ahead) {
  constexpr std::int64_t kSome = 512, kLines = 16;
  alignas(64) A columns[2 * (kSome + 2 * kLanes<A>)+kSpan];
  // The terms begin at every second element or, where `step` is odd, half of them between these.
  const std::int64_t reach = (k - 1) * step / 2;
  for (std::int64_t o = 0; o < n; o += kSome) {
    const std::int64_t some = std::min(n - o, kSome), width = rounded_up<A>(rounded_up<A>(some) + reach);
    const Terms terms{k, step / 2 + (step % 2 == 0 ? 0 : width), step};
    Line<A, T> part[kLines];
    const std::int64_t most = width < kSome / kLines ? kLines : 1;
    for (std::int64_t l = 0, now; l < count; l += now) {
      now = std::min(count - l, most);
      for (std::int64_t i = 0; i < now; ++i) {
        const Line<A, T>& line = lines[l + i];
        part[i] = {line.from + 2 * o, line.to + o, line.by + by_step * o * Factors<A>::kElements};
      }
      split_lines(part, now, width, ahead, columns);
      for (std::int64_t i = 0; i < now; ++i) part[i].from = columns + 2 * i * width;
      sum_terms(part, now, some, terms, by_step, 0);
    }
  }
}

/// y_o = x_{s o} + x_{s o + step} + ... of k terms: for s <= 2, and for k = s <= 4 that lie side by side, where A is T;
/// for s = 2 in the baseline only k <= 3 that do. Reads up to 64 elements behind the last window. Memory that `is_far`
/// is asked for before.
template <class A, class T>
void sum_taps(const Line<A, T>* lines, std::int64_t count, std::int64_t n, std::int64_t k, std::int64_t s,
              std::int64_t step, std::int64_t by_step, bool is_far) {
  const std::uintptr_t ahead = is_far && std::is_same_v<A, float> ? far_ahead() : 0;
  if constexpr (std::is_same_v<A, T>)
    if (s > 1 && step == 1 && k <= 4) {
      decltype(&sum_beside<2, 2, A, T>) sum = nullptr;
      if (s == 4) sum = sum_beside<4, 4, A, T>;
      if (s == 3) sum = sum_beside<3, 3, A, T>;
      if (s == 2 && k == 3) sum = sum_beside<2, 3, A, T>;
      if (s == 2 && k == 2) sum = sum_beside<2, 2, A, T>;
      if (sum) return sum(lines, count, n, by_step, ahead);
    }
  if constexpr (kHasSmall)
    if (s == 2) return sum_strided(lines, count, n, k, step, by_step, ahead);
  sum_terms(lines, count, n, Terms{k, step, 2 * step}, by_step, ahead);
}

/// sum_o = the elements of any window of at most 16, in four lanes; four windows at a time, of one line after the
/// other. `sums` has room to complete the last four. Reads at most four elements in front of a window. The lines are
/// then from their sums.
template <class A, class T>
[[gnu::noinline]] void sum_short_spans(Line<A, T>* lines, std::int64_t count, const Span* spans, std::int64_t n,
                                       A* sums) {
  using V = Four<A>;
  using Bits = typename FourOf<A>::Bits;
  // The last r of four lanes.
  alignas(32) static constexpr Bits kLast[] = {{0, 0, 0, 0}, {0, 0, 0, -1}, {0, 0, -1, -1}, {0, -1, -1, -1}};
  const Span* span = spans;
  const Line<A, T>*line = lines, *const last_line = lines + count - 1;
  const A* x = line->from;
  for (std::int64_t o = 0; o < count * n; o += 4) {
    V lanes[4], sum;
#ifdef __AVX2__  // the baseline is kept small
#pragma GCC unroll 4
#endif
    for (int i = 0; i < 4; ++i) {
      const A* const first = x + span->first;
      const std::int64_t k = span->count;
      V v;
      std::memcpy(&v, first + k - 4, sizeof v);
      v = reinterpret_cast<V>(reinterpret_cast<Bits>(v) & kLast[k & 3]);
      for (std::int64_t t = 4; t <= k; t += 4) {
        V four;
        std::memcpy(&four, first + t - 4, sizeof four);
        v += four;
      }
      lanes[i] = v;
      if (++span == spans + n) {
        span = spans;
        if (line != last_line) ++line;
        x = line->from;
      }
    }
    sum_fours(lanes, sum);
    std::memcpy(sums + o, &sum, sizeof sum);
  }
  for (std::int64_t l = 0; l < count; ++l) lines[l].from = sums + l * n;
}

/// The sum of x_first, x_{first + step}, ... below x_last: as `sum_row` takes it, or as of terms of type A.
template <class A, class X>
A sum_span(const X* x, std::int64_t first, std::int64_t last, std::int64_t step) {
  if (step == 1) return static_cast<A>(sum_row(x + first, last - first));
  if (first >= last) return A(0);
  return sum_terms_of((last - first - 1) / step + 1,
                      [=](std::int64_t t) { return static_cast<A>(x[first + t * step]); });
}

/// The same for windows one by one; those that are alike are summed once.
template <class A>
[[gnu::noinline]] void sum_spans(const A* x, const Span* spans, std::int64_t step, std::int64_t n, A* sums) {
  for (std::int64_t o = 0; o < n; ++o) {
    const auto [first, terms] = spans[o];
    const bool same = o > 0 && first == spans[o - 1].first && terms == spans[o - 1].count;
    sums[o] = same ? sums[o - 1] : sum_span<A>(x, first, first + terms, step);
  }
}

// --- windows over elements ------------------------------------------------------------------------------------------

/// Where positions of each vector take their sums from, counted from what is loaded for the vector: from window
/// `newest` and those in front of it, in which all lie, and perhaps from `oldest`. These patterns of vectors repeat.
/// What is loaded for each are the windows from `at` on, and from those in front of it, `least` vectors. The one window
/// more that some positions lie in is among the only ones or in front.
struct Spread {
  static constexpr std::int64_t kPatterns = 64;
  std::int32_t newest[kPatterns * kLanes<float>], oldest[kPatterns * kLanes<float>];
  std::int32_t at[kPatterns];
  std::int64_t period, advance;  ///< of patterns, and how far windows are apart that are a period apart
  std::int64_t least;
  bool has_more, is_among;
};

/// y_i = g_newest + ... + g_oldest, of `least` windows and perhaps one more; times the one factor of all lines if it
/// `scales`. Of one line `sums` may have the sums of `least` windows up to each.
template <class A, class T>
[[gnu::noinline, gnu::aligned(64)]] void spread_lines(const Line<A, T>* lines, std::int64_t count, std::int64_t n,
                                                      const Spread& spread, bool scales, const A* sums) {
  const auto factors = Factors<A>::at(lines->by, 0);
  const std::int64_t least = spread.least, advance = spread.advance, step = spread.period * kLanes<A>;
  const std::int64_t terms = sums ? 1 : least;
  const bool has_more = spread.has_more;
  for (std::int64_t first = 0; first < std::min(step, n); first += kLanes<A>) {
    const Permutation<A> newest(spread.newest + first), oldest(spread.oldest + first);
    const auto store_sums = [ =, at = spread.at[first / kLanes<A>] ](const auto& sum) __attribute__((always_inline)) {
      for (const Line<A, T>*line = lines, *const end = lines + count; line != end; ++line) {
        const A *const g = line->from + at, *const s = sums ? sums + at : g;
        T* y = line->to + first;
        std::int64_t i = 0;
        for (std::int64_t left = n - first; left > 0; left -= step, i += advance, y += step) {
          const Vector<A> all = sum(g + i, s + i);
          store_some<A>(scales ? factors.times(all) : all, left, y);
        }
      }
    };
    if (spread.is_among && !has_more)
      store_sums([=](const A* g, const A*) __attribute__((always_inline)) { return newest(load<A>(g)); });
    else if (spread.is_among)
      store_sums([=](const A* g, const A*) __attribute__((always_inline)) {
        const Vector<A> all = load<A>(g);
        return newest(all) + oldest(all);
      });
    else
      store_sums([=](const A* g, const A* s) __attribute__((always_inline)) {
        Vector<A> all = load<A>(s);
        for (std::int64_t t = 1; t < terms; ++t) all += load<A>(s - t);
        all = newest(all);
        return has_more ? all + oldest(load<A>(g - least)) : all;
      });
  }
}

/// Rows of at most so many vectors stay in registers: of 64 floats. The baseline, which is kept small, has no such
/// loop.
inline constexpr int kRowVectors = kVectorWidth > 16 ? 256 / kVectorWidth : 0;

/// The same of float32 for `least` = 1 and no window more, of rows of at most V vectors, each of them stored as often
/// as `rows` says, one after the other: while stores wait for memory the next row is made, and it is asked for `ahead`
/// bytes before.
template <int V>
[[gnu::noinline, gnu::aligned(64)]] void spread_copies(const Line<float, float>* lines, const Row* rows,
                                                       std::int64_t count, std::int64_t n, const Spread& spread,
                                                       std::uintptr_t ahead) {
  constexpr std::int64_t kAll = kLanes<float>;
  const auto factors = Factors<float>::at(lines->by, 0);
  const std::int32_t* newest[V];
  std::int64_t at[V];
  for (std::int64_t v = 0; v < V; ++v) {
    newest[v] = spread.newest + v % spread.period * kAll;
    at[v] = spread.at[v % spread.period] + v / spread.period * spread.advance;
  }
  for (std::int64_t l = 0; l < count; ++l) {
    Vector<float> row[V] = {};
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v)
      if (v * kAll < n) row[v] = factors.times(Permutation<float>(newest[v])(load<float>(lines[l].from + at[v])));
    float* y = lines[l].to;
    if (ahead > 0) fetch_run(y, n * rows[l].copies, ahead);
    for (std::int64_t c = rows[l].copies; c > 0; --c, y += n) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) store_some<float>(row[v], n - v * kAll, y + v * kAll);
    }
  }
}

/// The same for rows of any number of vectors up to `kRowVectors`.
template <int V = kRowVectors>
void spread_row_copies(const Line<float, float>* lines, const Row* rows, std::int64_t count, std::int64_t n,
                       const Spread& spread, std::uintptr_t ahead) {
  if constexpr (V > 1)
    if (n <= V / 2 * kLanes<float>) return spread_row_copies<V / 2>(lines, rows, count, n, spread, ahead);
  if constexpr (V > 0) spread_copies<V>(lines, rows, count, n, spread, ahead);
}

}  // namespace taper::kernels::average
