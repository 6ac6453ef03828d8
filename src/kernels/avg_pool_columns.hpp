#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/ceil_div.hpp"
#include "kernels/pool_lanes.hpp"

/// Sums of columns, with which average pools of several axes begin. They are templates over A, in which is summed, and
/// T, in which memory is.
namespace taper::kernels::average {

/// `count` rows, `step` elements apart.
struct Rows {
  std::int64_t step, count;
};

/// Rows of results that read the same rows of the source: what they read and where they are, in elements, from the
/// first row of the source and of the results on.
struct Row {
  std::int64_t from, count;
  std::int64_t to, copies;
  double counted;  ///< of the window in the axis, or of each of the windows that are read; 0 when that differs
};

/// A row of columns, and the row of results that is made of it.
template <class A, class T>
struct Line {
  const A* from;
  T* to;
  const A* by;  ///< what columns or results are multiplied by
};

/// Whether memory is asked for among the sums, which is far faster with AVX2, or in front of them.
template <class T>
inline constexpr bool kAsksAmong = kVectorWidth == 32 && std::is_same_v<T, float>;

/// sum_c = x_c + x_{c + step} + ... of K rows, in pairs, or of k for K = 0: four in pairs at a time, then one by one,
/// or less than four that are all. Times by_c if it `scales`; added to sum_c with `add`. For `count` lines of sums,
/// `pitch` apart. Zeros complete the last vector. Memory `ahead` of the rows is asked for, unless that is 0.
template <int K, class A, class T>
[[gnu::noinline]] void sum_few_rows(const T* x, std::int64_t step, std::int64_t k, std::int64_t n, const Row* rows,
                                    const Line<A, T>* lines, std::int64_t count, bool scales, bool add, A* sum,
                                    std::int64_t pitch, [[maybe_unused]] std::uintptr_t ahead = 0) {
  constexpr int kParts = kLanes<T> / kLanes<A>;
  static_assert(kParts <= 2);
  // No loop, which would keep the sums in memory.
  const auto each_part = [](const auto& f) __attribute__((always_inline)) {
    f(std::integral_constant<int, 0>());
    if constexpr (kParts > 1) f(std::integral_constant<int, 1>());
  };
  for (std::int64_t l = 0; l < count; ++l, sum += pitch) {
    const T* const from = x + rows[l].from;
    const A* const by = lines[l].by;
    [[maybe_unused]] const bool is_few = rows[l].count < 4;
    const auto store_sum = [=](std::int64_t c, const auto& load_at) __attribute__((always_inline)) {
      Vector<A> s[kParts];
      each_part([&](auto p) { s[p] = add ? load<A>(sum + c + p * kLanes<A>) : -Vector<A>{}; });
      const T* at = from + c;
      const auto add_rows = [&](auto some) __attribute__((always_inline)) {
        const auto row = [=](int r) __attribute__((always_inline)) { return load_at(at + r * step); };
        Vector<T> v = row(0);
        if constexpr (some == 2 && std::is_same_v<T, double>) {
          // One after the other: rows of zeros in front then change nothing.
          if (!scales) {
            s[0] = (s[0] + v) + row(1);
            return;
          }
        }
        if constexpr (some == 2) v += row(1);
        if constexpr (some == 4) v = (v + row(1)) + (row(2) + row(3));
        each_part([&](auto p) {
          const Vector<A> part = part_of<A>(v, p);
          s[p] += scales ? Factors<A>::multiply(part, by, c + p * kLanes<A>) : part;
        });
      };
      if constexpr (K > 0) {
        add_rows(std::integral_constant<int, K>());
      } else {
        std::int64_t left = k;
        for (; left >= 4; left -= 4, at += 4 * step) add_rows(std::integral_constant<int, 4>());
        if constexpr (std::is_same_v<A, float>)
          if (is_few) {
            // Among themselves first, as fours are.
            Vector<T> v = load_at(at);
            while (--left > 0) at += step, v += load_at(at);
            s[0] += scales ? Factors<A>::multiply(v, by, c) : v;
          }
        for (; left > 0; --left, at += step) add_rows(std::integral_constant<int, 1>());
      }
      each_part([&](auto p) {
        if (p == 0 || c + p * kLanes<A> < n) store<A>(s[p], sum + c + p * kLanes<A>);
      });
    };
    std::int64_t c = 0;
    [[maybe_unused]] Next next(reinterpret_cast<const char*>(from), static_cast<std::int64_t>(ahead));
    for (; c + kLanes<T> <= n; c += kLanes<T>) {
      if constexpr (kAsksAmong<T>)
        if (ahead > 0) next.fetch(k * kVectorWidth);
      store_sum(
          c, [](const T* at) __attribute__((always_inline)) { return load<T>(at); });
    }
    if (c < n)
      store_sum(
          c, [=](const T* at) __attribute__((always_inline)) { return load_first<T>(at, n - c); });
  }
}

#ifdef __AVX2__
/// Vectors of columns that are summed at once: their sums stay in registers.
template <class A>
inline constexpr std::int64_t kColumnVectors = 16 / sizeof(A);

/// sum_c = x_c + x_{c + step} + ... of each line's rows, as `sum_few_rows` takes it, for up to n vectors of columns; of
/// the last those in front of `last`, which zeros complete. For `count` lines of sums, `pitch` apart; and then for as
/// many columns in front of these, `blocks` times in all. Asks for memory that is `ahead` bytes behind what is read,
/// unless that is 0.
template <int n, class A>
[[gnu::noinline, gnu::aligned(64)]] void sum_few_columns(const float* x, const Row* rows, std::int64_t count,
                                                         std::int64_t step, std::int64_t last, std::int64_t blocks,
                                                         std::uintptr_t ahead, A* sums, std::int64_t pitch) {
  constexpr std::int64_t kAll = kLanes<float>;
  constexpr int kParts = sizeof(A) / sizeof(float);
  // Rows are found from one pointer by distances in bytes, which processors add by themselves.
  std::int64_t down = step * std::int64_t{sizeof(float)}, thrice = 3 * down;
  const auto row = [&](const float* from, int r, int v) __attribute__((always_inline)) {
    const char* const of_row = reinterpret_cast<const char*>(from) + (r < 3 ? r * down : thrice);
    const float* const at = reinterpret_cast<const float*>(of_row) + kAll * v;
    return v + 1 < n ? load<float>(at) : load_first<float>(at, last);
  };
  for (; blocks > 0; --blocks, x -= n * kAll, sums -= n * kAll) {
    A* sum = sums;
    for (const Row *line = rows, *const end = rows + count; line != end; ++line, sum += pitch) {
      const float* at = x + line->from;
      std::int64_t left = line->count;
      if (ahead > 0) fetch_run(at, left * step, ahead);
      Vector<A> s[kParts * n];
      Vector<float> first[n], second[n];
      const auto add = [&](int v, const Vector<float>& some) __attribute__((always_inline)) {
        s[kParts * v] += part_of<A>(some, 0);
        if constexpr (kParts > 1) s[kParts * v + 1] += part_of<A>(some, 1);
      };
#pragma GCC unroll 8
      for (int v = 0; v < kParts * n; ++v) s[v] = (left > 0 ? A(-0.0) : A(0)) - Vector<A>{};
      for (; left >= 4; left -= 4, at += 4 * step) {
#pragma GCC unroll 4
        for (int v = 0; v < n; ++v) first[v] = row(at, 0, v);
#pragma GCC unroll 4
        for (int v = 0; v < n; ++v) first[v] += row(at, 1, v);
#pragma GCC unroll 4
        for (int v = 0; v < n; ++v) second[v] = row(at, 2, v);
#pragma GCC unroll 4
        for (int v = 0; v < n; ++v) add(v, first[v] + (second[v] + row(at, 3, v)));
        asm("" : "+r"(down), "+r"(thrice));  // not to be kept in more pointers
      }
      for (; left > 0; --left, at += step)
#pragma GCC unroll 4
        for (int v = 0; v < n; ++v) add(v, row(at, 0, v));
#pragma GCC unroll 8
      for (int v = 0; v < kParts * n; ++v) store<A>(s[v], sum + kLanes<A> * v);
    }
  }
}

/// The same for any number of columns. Memory that `is_far` is asked for in its order, not a few columns of all lines
/// at a time, and in good time: it is fastest then. The first columns come last: zeros that complete the last vector
/// may reach into the next line.
template <class A>
TAPER_FOR_SIZE void sum_lines_in_order(const float* x, const Row* rows, std::int64_t count, std::int64_t step,
                                       std::int64_t n, bool is_far, A* sum, std::int64_t pitch) {
  constexpr int kMost = kColumnVectors<A>;
  constexpr std::int64_t kAll = kLanes<float>, kSome = kMost * kAll;
  if (n <= 0) return;
  const std::int64_t blocks = (n - 1) / kSome, before = blocks * kSome, vectors = ceil_div(n - before, kAll),
                     last = n - before - (vectors - 1) * kAll;
  auto* sum_columns = vectors > 1 ? sum_few_columns<2, A> : sum_few_columns<1, A>;
  if constexpr (kMost > 2)
    if (vectors > 2) sum_columns = vectors > 3 ? sum_few_columns<4, A> : sum_few_columns<3, A>;
  const std::uintptr_t ahead = is_far ? line_ahead() : 0;
  const std::int64_t some = is_far && n > kSome ? 1 : count;
  for (std::int64_t l = 0; l < count; l += some, rows += some, sum += some * pitch) {
    sum_columns(x + before, rows, some, step, last, 1, ahead, sum + before, pitch);
    if (blocks > 0)
      sum_few_columns<kMost, A>(x + before - kSome, rows, some, step, kAll, blocks, 0, sum + before - kSome, pitch);
  }
}
#endif

/// The sums of columns of rows of rows, for each of `lines` rows of results; the last vectors of lines are stored
/// before the first of those behind. With `scales` each line's are times its factors. Memory that `is_far` is read in
/// its order, a few rows at once, and asked for before: it is no faster otherwise.
template <class A, class T>
[[gnu::noinline]] void sum_lines(const T* x, Rows outer, std::int64_t step, std::int64_t n, const Row* rows,
                                 std::int64_t lines, const Line<A, T>* line, bool scales, A* sum, std::int64_t pitch,
                                 bool is_far) {
  constexpr std::int64_t kMany = std::is_same_v<T, float> ? 16 : 2;
#ifdef __AVX2__
  if constexpr (std::is_same_v<A, float> || (std::is_same_v<T, float> && kVectorWidth == 32))
    if (outer.count == 1 && !scales && !is_far) return sum_lines_in_order(x, rows, lines, step, n, false, sum, pitch);
#endif
  // Except in the baseline, few sums in float are left.
  constexpr bool kPairs = std::is_same_v<A, T> && (std::is_same_v<A, double> || kVectorWidth == 16);
  // Rows of a page are read at once, or four.
  constexpr std::int64_t kNear = detail::kPage / sizeof(T);
  constexpr bool kFour = kAsksAmong<T> && std::is_same_v<A, float>;
  const std::int64_t near = kFour ? 4 : std::max<std::int64_t>(4, kNear / step / 4 * 4);
  const std::uintptr_t ahead = is_far ? line_ahead() : 0;
  for (std::int64_t l = 0, some = 1; l < lines; l += some, sum += some * pitch) {
    const std::int64_t count = rows[l].count;
    // Lines of as many rows are summed by one loop.
    some = 1;
    if (outer.count > 0 && count > 0 && count <= kMany && !is_far)
      while (l + some < lines && rows[l + some].count == count) ++some;
    if (outer.count * count == 0) clear(sum, n);
    for (std::int64_t o = 0; o < outer.count; ++o)
      for (std::int64_t i = 0, most; i < count; i += most) {
        most = std::min(count - i, kMany);
        if (is_far && most > near && (kFour || most * step > kNear)) most = near;
        auto* sum_some = sum_few_rows<1, A, T>;
        if constexpr (kPairs)
          if (most == 2) sum_some = sum_few_rows<2, A, T>;
        if constexpr (std::is_same_v<T, float>)
          if (most > 1 && (count > 2 || !kPairs)) sum_some = sum_few_rows<0, A, T>;
        const T* const from = x + o * outer.step + i * step;
        if (!kAsksAmong<T> && is_far) fetch_run(from + rows[l].from, most * step, ahead);
        sum_some(from, step, most, n, rows + l, line + l, some, scales, o + i > 0, sum, pitch, ahead);
      }
  }
}

}  // namespace taper::kernels::average
