#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/ceil_div.hpp"
#include "kernels/double_lanes.hpp"
#include "kernels/extreme_of.hpp"
#include "kernels/loop_hints.hpp"
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

/// Whether several elements of rows that lie side by side fill vectors where one each does not.
template <class T>
inline constexpr bool kWidens = kVectorWidth > 16 && sizeof(T) == sizeof(float);

/// What the maximum of no numbers is; `static` lest it is exported.
template <class T>
static constexpr T kNothing = -std::numeric_limits<T>::infinity();

/// Some neighbouring rows: element j of row c is at `first` + j `step` + c `pitch`, and row 0 is number `row` of
/// [outer, inner]. The elements of a row lie together or, with `inner` > 1, those of all rows do.
struct SoftmaxGroup {
  std::int64_t first, width, row, n, step, pitch;
  bool turns;                              ///< contiguous rows that are short, and many
  std::int64_t columns = width, rest = 0;  ///< of `side_by_side`

  bool contiguous() const { return step == 1; }
  /// Whether several elements of a row are taken together.
  template <class T>
  bool is_wide() const {
    return kWidens<T> && columns != width;
  }
  std::int64_t at(std::int64_t j, std::int64_t c) const { return first + j * step + c * pitch; }
  std::int64_t begin(std::int64_t c) const { return first + c * pitch; }
};

/// What is kept for the rows of a group that is `side_by_side`, at most; a vector may reach beyond it.
inline constexpr std::int64_t kSideBySide = 512, kKept = kSideBySide + 16;

/// The group with several elements of each of its `columns` rows taken for one each of as many rows, so that they fill
/// vectors; there are `rest` elements more. Groups of float32, where `kWidens`, that pay.
SoftmaxGroup side_by_side(const SoftmaxGroup& group);

/// Calls `visit(body, group)` for groups of all rows, which are `side_by_side` where that is asked for. Contiguous rows
/// that are short come together so that the processor goes on with the next row while what it folds from one is on its
/// way.
void visit_softmax_groups(std::int64_t outer, std::int64_t n, std::int64_t inner, bool beside,
                          void (*visit)(const void* body, const SoftmaxGroup&), const void* body);

/// Calls `body(group)` for the groups.
template <class Body>
void for_each_softmax_group(std::int64_t outer, std::int64_t n, std::int64_t inner, const Body& body,
                            bool beside = false) {
  visit_softmax_groups(
      outer, n, inner, beside, [](const void* b, const SoftmaxGroup& g) { (*static_cast<const Body*>(b))(g); }, &body);
}

/// v_c = v_c, v_(c + columns), ... joined, for each of the columns of such a group.
template <class V, class Join>
[[gnu::noinline]] void join_columns(const SoftmaxGroup& g, V* v, const Join& join) {
  for (std::int64_t c = 0; c < g.columns; c += kLanes<V>) {
    Vector<V> all = load(v + c);
    for (std::int64_t i = c + g.columns; i < g.width; i += g.columns) all = join(load(v + i), all);
    store<V>(all, v + c);
  }
}

/// The same for sums.
template <class T>
void add_up_columns(const SoftmaxGroup& g, double* v) {
  if (g.is_wide<T>()) join_columns(g, v, [](Doubles a, Doubles b) { return a + b; });
}

/// v_(c + columns), v_(c + 2 columns), ... = v_c
template <class T, class V>
void repeat_columns(const SoftmaxGroup& g, V* v) {
  if (g.is_wide<T>()) repeat_all(v, g.columns, g.width);
}

/// Calls `body(first, n, width)` for what the rows of a group have in common, and for the rest.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_part(const SoftmaxGroup& g, const Body& body) {
  std::int64_t first = g.first, n = g.n, width = g.width;
  for (;; first += n * g.step, n = 1, width = g.rest) {
    body(first, n, width);
    if (!kWidens<T> || g.rest == 0 || width == g.rest) [[likely]]
      return;
  }
}

/// Calls `body(at, i, rows)` for rows that lie side by side: at packs of them, elements `i`, `i` + step, ... of each,
/// `rows` in number. So what is kept for a row is read and written once for some elements.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_column_pack(const SoftmaxGroup& g, const Body& body) {
  constexpr std::int64_t kElements = 8;
  for_each_part<T>(
      g, [&](std::int64_t first, std::int64_t n, std::int64_t width) __attribute__((always_inline)) {
        for (std::int64_t j = 0; j < n; j += kElements)
          for_each_pack_of<T>(
              width, [&, j ](auto at)
                         __attribute__((always_inline)) { body(at, first + j * g.step, std::min(kElements, n - j)); });
      });
}

/// Calls `body(at, i)` for packs of such rows and each of their elements `i`, in the order of memory: what is stored
/// is then not behind what is loaded next by a multiple of a page, for which it would be taken.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_element_pack(const SoftmaxGroup& g, const Body& body) {
  for_each_part<T>(
      g, [&](std::int64_t first, std::int64_t n, std::int64_t width) __attribute__((always_inline)) {
        for (std::int64_t j = 0, i = first; j < n; ++j, i += g.step)
          for_each_pack_of<T>(
              width, [&, i ](auto at) __attribute__((always_inline)) { body(at, i); });
      });
}

/// top[c] = the largest element of row c of a group that is not NaN, or -inf; repeated for one that is `side_by_side`.
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
  if (g.is_wide<T>()) join_columns(g, top, larger_of<Vector<T>>);
  repeat_columns<T>(g, top);
}

/// sum[c] = the sum of e^(x_j - top[c]) of rows that lie side by side, in order; `keep(at, i, e)` takes the terms.
template <class T, class Keep>
[[gnu::always_inline]] inline void sum_exponentials(const SoftmaxGroup& g, const T* x, const T* top, double* sum,
                                                    const Keep& keep) {
  clear(sum, g.width + kLanes<T>);
  // e^-inf where a pack of the rest ends
  const T absent = kWidens<T> && g.rest > 0 ? kNothing<T> : T(0);
  for_each_column_pack<T>(
      g,
      [&, x, top, absent, step = g.step ](auto at, std::int64_t i, std::int64_t rows) __attribute__((always_inline)) {
        const Vector<T> above = at(top);
        LongPack<T> all(sum + at.i);
        for (; rows > 0; --rows, i += step) {
          const Vector<T> e = vector_exp(at(x + i, absent) - above);
          keep(at, i, e);
          all += LongPack<T>(e);
        }
        all.store(sum + at.i);
      });
  add_up_columns<T>(g, sum);
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
    double sum[kKept];
    sum_exponentials(g, x, top, sum, [](auto, std::int64_t, const auto&) {});
    std::copy_n(sum, g.columns, log_sum);
  }
  for (AnyPack at{0, g.columns}; at; at.next<double>()) at.store(log_sum, vector_log(at(log_sum)));
}

}  // namespace taper::kernels
