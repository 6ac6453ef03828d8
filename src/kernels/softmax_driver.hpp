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

/// top[c] = the largest element of row c of a group; NaN if the row holds one, or -inf.
template <class T>
void row_maxima(const SoftmaxGroup& g, const T* x, T* top) {
  if (g.contiguous()) {
    for (std::int64_t c = 0; c < g.width; ++c) top[c] = largest_of(x + g.begin(c), g.n)[0];
    return;
  }
  for_each_pack<T>(
      g.width, [&](auto at) __attribute__((always_inline)) {
        Vector<T> best = pack_of(kNothing<T>);
        for (std::int64_t j = 0; j < g.n; ++j) best = better_of<true, Vector<T>>(at(x + g.at(j, 0)), best);
        at.store(top, best);
      });
}

/// Calls `use(c, i, e^argument(i, c))` for the elements of rows that lie side by side, where i is the place of the
/// element, which rises. The arguments of some elements are taken before the first of them is used.
template <class T, class Argument, class Use>
void for_each_exp(const SoftmaxGroup& g, const Argument& argument, const Use& use) {
  T e[kSoftmaxRows];
  const std::int64_t width = g.width, step = kSoftmaxRows / width;
  for (std::int64_t from = 0; from < g.n; from += step) {
    const std::int64_t to = std::min(from + step, g.n);
    for (std::int64_t j = from; j < to; ++j)
      for (std::int64_t c = 0; c < width; ++c) e[(j - from) * width + c] = argument(g.first + j * g.step + c, c);
    for (AnyPack at{0, (to - from) * width}; at; at.next<T>()) at.store(e, vector_exp(at(e)));
    for (std::int64_t j = from; j < to; ++j)
      for (std::int64_t c = 0; c < width; ++c) use(c, g.first + j * g.step + c, e[(j - from) * width + c]);
  }
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
    T e[kLanes<T>];
    for (AnyPack at{0, g.width}; at; at.next<T>()) {
      const Vector<T> above = at(top);
      Lanes<kLanes<T>> sum{};
      for (std::int64_t j = 0; j < g.n; ++j) {
        store<T>(vector_exp(at(x + g.at(j, 0)) - above), e);
        sum.add(e);
      }
      double sums[kLanes<T>];
      sum.store(sums);
      std::copy_n(sums, std::min<std::int64_t>(kLanes<T>, g.width - at.i), log_sum + at.i);
    }
  }
  for (AnyPack at{0, g.width}; at; at.next<double>()) at.store(log_sum, vector_log(at(log_sum)));
}

}  // namespace taper::kernels
