#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/loop_hints.hpp"
#include "kernels/pool_lanes.hpp"
#include "kernels/sum_row.hpp"

/// The loops of average pools, forward and backward: sums of rows, and sums of windows of one row. They are templates
/// over A, in which is summed, and T, in which memory is. Their parameters are values, which what is stored cannot
/// change for all that the compiler knows, as it could what they refer to.
namespace taper::kernels::average {

/// Windows with at most this many rows and columns are summed in the type of the elements.
inline constexpr std::int64_t kShort = 16;

/// Where a window of a tile lies in the tile's rows.
struct Span {
  std::int32_t first, last;
};

/// `terms` rows `step` apart.
struct Rows {
  std::int64_t step, terms;
};

/// The same work on `count` rows, each `x_step` and `y_step` behind the one before.
struct Repeat {
  std::int64_t count, x_step, y_step;

  /// Makes rows of `n` elements that follow each other without a gap one row, where each takes `x` elements.
  void join(std::int64_t x, std::int64_t& n) {
    if (x_step != x || y_step != n) return;
    n *= count;
    count = 1;
  }
};

/// A sum that nothing is done to.
struct AsItIs {
  static bool depends_on_column() { return false; }
  template <class V>
  [[gnu::always_inline]] V operator()(const V& sum, std::int64_t, const void*) const {
    return sum;
  }
};

/// sums_v = x + (x + step) + ... over rows of rows, of the v-th vector from `x` on.
template <class A, int V, class T, class Read>
[[gnu::always_inline]] inline void sum_column(const T* x, const Rows& outer, const Rows& inner, const Read& read,
                                              Vec<A> (&sums)[V]) {
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) sums[v] = read(x + v * kLanes<A>);
  std::int64_t first = 1;
  for (std::int64_t o = 0; o < outer.terms; ++o, x += outer.step, first = 0)
    for (std::int64_t i = first; i < inner.terms; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[v] += read(x + i * inner.step + v * kLanes<A>);
}

/// sum_c = finish(x_c + x_{c + step} + ..., c, &sum_c) over rows of rows, from the first on; at least one.
template <class A, class T, class Finish>
[[gnu::noinline]] void sum_rows(const T* x, Rows outer, Rows inner, std::int64_t n, Repeat repeat, A* sum,
                                Finish finish) {
  if (outer.terms * inner.terms == 1 && !finish.depends_on_column()) repeat.join(n, n);
  const auto read = [](const T* at) { return load<A>(at); };
  for (std::int64_t r = 0; r < repeat.count; ++r, x += repeat.x_step, sum += repeat.y_step) {
    std::int64_t c = 0;
    const auto columns = [&](auto vectors) {
      constexpr int kVectors = decltype(vectors)::value;
      for (; c + kVectors * kLanes<A> <= n; c += kVectors * kLanes<A>) {
        Vec<A> s[kVectors];
        sum_column<A>(x + c, outer, inner, read, s);
        for (int v = 0; v < kVectors; ++v) {
          A* const to = sum + c + v * kLanes<A>;
          store<A>(finish(s[v], c + v * kLanes<A>, to), to);
        }
      }
    };
    columns(std::integral_constant<int, 4>());
    columns(std::integral_constant<int, 2>());
    columns(std::integral_constant<int, 1>());
    if (c == n) continue;
    Vec<A> s[1];
    sum_column<A>(
        x + c, outer, inner, [n = n - c](const T* at) { return load_first<A>(at, n); }, s);
    store_first<A>(finish(s[0], c, sum + c), n - c, sum + c);
  }
}

/// Stores quotients of a row of windows: what `divisor` makes of sum(o), of `n` windows.
template <class A, class T, class Sum>
[[gnu::always_inline]] inline void store_quotients(std::int64_t n, const Divisor<A>& divisor, T* y, const Sum& sum) {
  for_vectors<A>(
      n, [&](std::int64_t o) { store<A>(divisor(sum(o), o), y + o); },
      [&](std::int64_t o, std::int64_t some) { store_first<A>(divisor(sum(o), o), some, y + o); });
}

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

/// y_o = (x_{S o} + ... + x_{S o + k - 1}) / divisor_o, as many windows at a time as fill a vector. May read what
/// windows would hold that complete the last vector, and S - 1 elements more.
template <int S, class A, class T>
[[gnu::noinline]] void average_taps(const A* x, std::int64_t k, std::int64_t n, Repeat repeat, Divisor<A> divisor,
                                    T* y) {
  for (std::int64_t r = 0; r < repeat.count; ++r, x += repeat.x_step, y += repeat.y_step)
    store_quotients(n, divisor, y, [=](std::int64_t o) {
      return sum_terms_of(k, [at = x + S * o](std::int64_t t) {
        if constexpr (S == 1)
          return load<A>(at + t);
        else
          return every_second<0>(load<A>(at + t), load<A>(at + t + kLanes<A>),
                                 std::make_integer_sequence<int, kLanes<A>>());
      });
    });
}

/// The same for k = S.
template <int S, class A, class T>
[[gnu::noinline]] void average_groups(const A* x, std::int64_t n, Repeat repeat, Divisor<A> divisor, T* y) {
  if (!divisor.each_by) repeat.join(S * n, n);
  for (std::int64_t r = 0; r < repeat.count; ++r, x += repeat.x_step, y += repeat.y_step)
    store_quotients(n, divisor, y, [=](std::int64_t o) {
      Vec<A> v[S];
      for (int j = 0; j < S; ++j) v[j] = load<A>(x + S * o + j * kLanes<A>);
      return sum_neighbours<S, A>(v);
    });
}

/// The same for any windows, none longer than `shortest` + 1: four windows at a time, each in four lanes. `spans` has
/// windows to complete the last four. Reads at most three elements in front of a window, and none if it has four.
template <class A, class T>
[[gnu::noinline]] void average_spans(const A* x, const Span* spans, std::int64_t shortest, std::int64_t n,
                                     Repeat repeat, Divisor<A> divisor, T* y) {
  using V = Four<A>;
  using Bits = typename FourOf<A>::Bits;
  // The last r of four lanes.
  alignas(32) static constexpr Bits kLast[] = {
      {0, 0, 0, 0}, {0, 0, 0, -1}, {0, 0, -1, -1}, {0, -1, -1, -1}, {-1, -1, -1, -1}};
  const std::int64_t fours = shortest / 4;
  const auto sum_lanes = [&](const Span& span, V& sum) {
    std::memcpy(&sum, x + span.last - 4, sizeof sum);
    sum = reinterpret_cast<V>(reinterpret_cast<Bits>(sum) & kLast[span.last - span.first - 4 * fours]);
    for (std::int64_t i = 0; i < fours; ++i) {
      V v;
      std::memcpy(&v, x + span.first + 4 * i, sizeof v);
      sum += v;
    }
  };
  for (std::int64_t r = 0; r < repeat.count; ++r, x += repeat.x_step, y += repeat.y_step)
    for (std::int64_t o = 0; o < n; o += 4) {
      V lanes[4], sums;
      for (int i = 0; i < 4; ++i) sum_lanes(spans[o + i], lanes[i]);
      sum_fours(lanes, sums);
      divisor.divide(o, sums);
      const auto quotients = __builtin_convertvector(sums, Four<T>);
      if (o + 4 <= n)
        std::memcpy(y + o, &quotients, sizeof quotients);
      else
        for (std::int64_t i = 0; i < n - o; ++i) y[o + i] = quotients[i];
    }
}

/// The same for long windows, one by one: y_o = sum_row of the window / divisor_o
template <class X, class T>
[[gnu::noinline]] void average_long_spans(const X* x, const Span* spans, std::int64_t n, Repeat repeat,
                                          Divisor<double> divisor, T* y) {
  for (std::int64_t r = 0; r < repeat.count; ++r, x += repeat.x_step, y += repeat.y_step)
    for (std::int64_t o = 0; o < n; ++o)
      y[o] = static_cast<T>(divisor(sum_row(x + spans[o].first, spans[o].last - spans[o].first), o));
}

// --- long windows that overlap --------------------------------------------------------------------------------------

/// Calls store(o, sums, some) with x_o + ... + x_{o + k - 1} for o < n, the first `some` lanes of a vector from `o` on.
/// Each sum is the one before it, plus what comes and less what goes, so that an infinity would spoil those behind it:
/// whether there was none. Reads what windows would hold that complete the last vector.
template <class Store>
[[gnu::always_inline]] inline bool slide_sums(const double* x, std::int64_t k, std::int64_t n, const Store& store) {
  using All = std::make_integer_sequence<int, kDoubles>;
  Doubles before = Doubles{} + sum_row(x, k);
  // What changes from window o to the ones behind it.
  const auto changes_at = [=](std::int64_t o) {
    Doubles v = load<double>(x + o + k) - load<double>(x + o);
    v += moved_up<1>(v, All());
    if constexpr (kDoubles > 2) v += moved_up<2>(v, All());
    if constexpr (kDoubles > 4) v += moved_up<4>(v, All());
    return v;
  };
  for (std::int64_t o = 0; o < n; o += kDoubles) {
    const Doubles changes = changes_at(o);
    store(o, before + moved_up<1>(changes, All()), std::min<std::int64_t>(n - o, kDoubles));
    before += Doubles{} + changes[kDoubles - 1];
  }
  return before[0] - before[0] == 0;
}

}  // namespace taper::kernels::average
