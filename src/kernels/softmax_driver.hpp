#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/ceil_div.hpp"
#include "kernels/double_lanes.hpp"
#include "kernels/extreme_of.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/sum_exp.hpp"
#include "kernels/vector_math.hpp"

// What softmax and cross entropy share: rows along the middle of [outer, n, inner], taken some neighbours at a time.

namespace taper::kernels {

/// The most rows that are taken together.
inline constexpr std::int64_t kSoftmaxRows = 64;

/// The elements of a contiguous row that is short. Many such float32 rows are turned, to be worked on side by side.
inline constexpr std::int64_t kShortRow = 16;

/// What the maximum of no numbers is.
template <class T>
inline constexpr T kNothing = -std::numeric_limits<T>::infinity();

/// Some neighbouring rows: element j of row c is at `first` + j `step` + c `pitch`, and row 0 is number `row` of
/// [outer, inner]. The elements of a row lie together or, with `inner` > 1, those of all rows do.
struct SoftmaxGroup {
  std::int64_t first, width, row, n, step, pitch;
  bool turns;  ///< contiguous rows that are short, and many

  bool contiguous() const { return step == 1; }
  std::int64_t at(std::int64_t j, std::int64_t c) const { return first + j * step + c * pitch; }
  std::int64_t begin(std::int64_t c) const { return first + c * pitch; }
};

/// Calls `body(group)` for groups of all rows. Contiguous rows that are short come together so that the processor goes
/// on with the next row while what it folds from one is on its way.
template <class Body>
void for_each_softmax_group(std::int64_t outer, std::int64_t n, std::int64_t inner, const Body& body) {
  constexpr std::int64_t kCost = 16, kElements = 2048;
  if (inner == 0) return;
  const bool contiguous = inner == 1;
  const std::int64_t length = std::max<std::int64_t>(n, 1);
  const std::int64_t groups = ceil_div(inner, kSoftmaxRows);
  const std::int64_t step = contiguous ? std::clamp<std::int64_t>(kElements / length, 1, kSoftmaxRows) : 1;
  const bool turns = contiguous && n <= kShortRow && outer >= kShortRow;
  parallel_for(outer * groups, length * std::min(inner, kSoftmaxRows) * kCost,
               [=](std::int64_t first, std::int64_t last) {
                 for (std::int64_t unit = first; unit < last; unit += step) {
                   const std::int64_t o = unit / groups, column = unit % groups * kSoftmaxRows;
                   const std::int64_t width = contiguous ? last - unit : inner - column;
                   body(SoftmaxGroup{o * n * inner + column, std::min(width, contiguous ? step : kSoftmaxRows),
                                     o * inner + column, n, inner, contiguous ? n : 1, turns});
                 }
               });
}

/// Calls `body(at, i, rows)` for rows that lie side by side: at packs of them, elements `i`, `i` + step, ... of each,
/// `rows` in number. So what is kept for a row is read and written once for some elements.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_column_pack(const SoftmaxGroup& g, const Body& body) {
  constexpr std::int64_t kElements = 8;
  for (std::int64_t j = 0; j < g.n; j += kElements)
    for_each_pack_of<T>(
        g.width, [&, j ](auto at)
                     __attribute__((always_inline)) { body(at, g.first + j * g.step, std::min(kElements, g.n - j)); });
}

/// Calls `body(at, i)` for packs of such rows and each of their elements `i`, in the order of memory: what is stored
/// is then not behind what is loaded next by a multiple of a page, for which it would be taken.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_element_pack(const SoftmaxGroup& g, const Body& body) {
  for (std::int64_t j = 0, i = g.first; j < g.n; ++j, i += g.step)
    for_each_pack_of<T>(
        g.width, [&, i ](auto at) __attribute__((always_inline)) { body(at, i); });
}

/// top[c] = the largest element of row c of a group that is not NaN, or -inf.
template <class T>
void row_maxima(const SoftmaxGroup& g, const T* x, T* top) {
  if (g.contiguous()) {
    for (std::int64_t c = 0; c < g.width; ++c) top[c] = largest_of(x + g.begin(c), g.n)[0];
    return;
  }
  std::fill_n(top, g.width, kNothing<T>);
  for_each_column_pack<T>(
      g, [=](auto at, std::int64_t i, std::int64_t rows) __attribute__((always_inline)) {
        Vector<T> best = at(top);
        for (; rows > 0; --rows, i += g.step) best = larger(at(x + i), best);
        at.store(top, best);
      });
}

/// sum[c] = the sum of e^(x_j - top[c]) of rows that lie side by side, in order; `keep(at, i, e)` takes the terms.
template <class T, class Keep>
[[gnu::always_inline]] inline void sum_exponentials(const SoftmaxGroup& g, const T* x, const T* top,
                                                    double (&sum)[kSoftmaxRows], const Keep& keep) {
  std::fill_n(sum, kSoftmaxRows, 0.0);
  for_each_column_pack<T>(
      g, [&, x, top, step = g.step ](auto at, std::int64_t i, std::int64_t rows) __attribute__((always_inline)) {
        const Vector<T> above = at(top);
        LongPack<T> all(sum + at.i);
        for (; rows > 0; --rows, i += step) {
          const Vector<T> e = vector_exp(at(x + i) - above);
          keep(at, i, e);
          all += LongPack<T>(e);
        }
        all.store(sum + at.i);
      });
}

/// e_j = e^(x_j - top) for a short row, in whole packs, and their sum: in the order of rows that are turned, so that a
/// row gives the same bits however many there are.
template <class T>
[[gnu::noinline]] double short_exponentials(const T* x, std::int64_t n, T top, T* e) {
  for (AnyPack at{0, n}; at; at.next<T>()) WholePack{at.i}.store(e, vector_exp(at(x) - top));
  double sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += static_cast<double>(e[j]);
  return sum;
}

/// The group whose rows lie side by side in `turned`, where they are copied to.
template <class T>
SoftmaxGroup turn(const SoftmaxGroup& g, const T* x, T* turned) {
  pack_transposed(x + g.first, g.n, g.width, g.n, turned, kSoftmaxRows);
  return {0, g.width, g.row, g.n, kSoftmaxRows, 1, false};
}

/// The largest element of every row of a group, and log_sum[c] = log(sum e^(x_j - top[c])).
template <class T>
[[gnu::noinline]] void log_sums(const SoftmaxGroup& g, const T* x, T* top, double* log_sum) {
  if (sizeof(T) == sizeof(float) && g.turns) {
    T turned[kShortRow * kSoftmaxRows];
    return log_sums(turn(g, x, turned), turned, top, log_sum);
  }
  row_maxima(g, x, top);
  if (g.contiguous()) {
    T e[kShortRow];
    for (std::int64_t c = 0; c < g.width; ++c) {
      const T* const from = x + g.begin(c);
      log_sum[c] = g.n <= kShortRow ? short_exponentials(from, g.n, top[c], e) : sum_exp(from, g.n, top[c]);
    }
  } else {
    double sum[kSoftmaxRows];
    sum_exponentials(g, x, top, sum, [](auto, std::int64_t, const auto&) {});
    std::copy_n(sum, g.width, log_sum);
  }
  for (AnyPack at{0, g.width}; at; at.next<double>()) at.store(log_sum, vector_log(at(log_sum)));
}

}  // namespace taper::kernels
