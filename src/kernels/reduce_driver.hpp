#pragma once

#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/reduce_plan.hpp"
#include "kernels/sum_run.hpp"
#include "kernels/vector_power.hpp"

// The loops that the reductions share, over the first array of a plan.

namespace taper::kernels {

/// a^p for a from 0 on, with the accuracy of T; with p = 0 it is 1 for all but zeros.
template <class T>
[[gnu::noinline]] Doubles raised(Doubles a, double p) {
  const Doubles one = Doubles{} + 1, power = Doubles{} + p;
  if (p == 0) return a != 0 ? one : Doubles{};
  return sizeof(T) == sizeof(float) ? rough_positive_power<true>(a, power) : vector_power(a, power);
}

/// all_c = all_c, all_(c + width), ... joined, for each of `width` columns of stretches, which are repeated there.
template <class T, class Join>
TAPER_FOR_SIZE void join_stretch(const ReducePlan& p, std::int64_t width, T* all, const Join& join) {
  for (std::int64_t rows = rows_of_stretch(p, width); rows > 1;) {
    const std::int64_t half = (rows + 1) / 2, n = (rows - half) * width;
    for (std::int64_t i = 0; i < n; ++i) all[i] = join(all[i], all[half * width + i]);
    rows = half;
  }
}

/// The columns of the first row of a stretch for all its rows.
template <class T>
[[gnu::noinline]] void repeat_stretch(const ReducePlan& p, std::int64_t width, T* all) {
  repeat_all(all, width, rows_of_stretch(p, width) * width);
}

/// A number for each element of a stretch: its column's.
template <class T>
struct PerColumn {
  T of[kFarColumns];

  /// `value(c)` is column c's.
  template <class Value>
  [[gnu::always_inline]] PerColumn(const ReducePlan& p, std::int64_t width, const Value& value) {
    for (std::int64_t c = 0; c < width; ++c) of[c] = value(c);
    repeat_stretch(p, width, of);
  }
};

/// How far ahead runs are asked for.
template <class T>
std::uintptr_t runs_ahead(const ReducePlan& p) {
  return far_ahead_of(read_bytes<T>(p));
}

/// sum[i] += term(x_{j, i}, i) for turns * kRows rows of `width` columns: the terms of kRows rows, which lie `apart`
/// elements from each other, are added in a tree, then to the sum; those of the next turn lie `step` elements further.
template <int kRows, class T, class Term>
[[gnu::always_inline]] inline void add_trees(const T* x, std::int64_t turns, std::int64_t step, std::int64_t apart,
                                             std::int64_t width, double* sum, const Term& term) {
  for (; turns > 0; --turns, x += step) {
    const std::int64_t later = kRows == 8 ? 4 * apart : 0;
    const T *const a = x, *const b = a + apart, *const c = b + apart, *const d = c + apart;
    const T *const e = a + later, *const f = b + later, *const g = c + later, *const h = d + later;
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < width; ++i) {
      auto all = term(a[i], i);
      if constexpr (kRows >= 4) all = (all + term(b[i], i)) + (term(c[i], i) + term(d[i], i));
      if constexpr (kRows == 8) all = all + ((term(e[i], i) + term(f[i], i)) + (term(g[i], i) + term(h[i], i)));
      sum[i] += static_cast<double>(all);
    }
  }
}

/// The same for `n` rows, kRows of which are added at a time; where they are far, four that lie a quarter of all apart,
/// as processors read several runs of memory in turn faster than one.
template <int kRows, class T, class Term>
[[gnu::always_inline]] inline void add_terms(const T* x, std::int64_t n, std::int64_t row, std::int64_t width,
                                             bool is_far, double* sum, const Term& term) {
  if (kRows > 4 && is_far) [[unlikely]] {
    add_trees<4>(x, n / 4, row, n / 4 * row, width, sum, term);
  } else {
    const std::int64_t turns = n / kRows;
    add_trees<kRows>(x, turns, is_far ? row : kRows * row, is_far ? turns * row : row, width, sum, term);
  }
  const std::int64_t rest = n % (is_far ? 4 : kRows);
  add_trees<1>(x + (n - rest) * row, rest, row, 0, width, sum, term);
}

/// sum[c] += x_{j, c} for `n` rows of `width` columns.
template <class T>
[[gnu::noinline]] void add_rows(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, bool is_far,
                                double* sum) {
  constexpr int kRows = sizeof(T) == sizeof(float) ? 8 : 4;  // the library is kept small
  add_terms<kRows>(
      x, n, row, width, is_far, sum, [](T v, std::int64_t) __attribute__((always_inline)) { return v; });
}

/// The same for rows that follow each other: of narrow ones, several are taken for one long row first.
template <class T>
[[gnu::noinline]] void add_block(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, bool is_far,
                                 double* sum) {
  constexpr std::int64_t kWide = 128;
  const std::int64_t side = kWide / width;
  if (row == width && side >= 4 && n / side >= 8) {
    const std::int64_t turns = n / side;
    double wide[kWide] = {};
    add_rows(x, turns, side * width, side * width, is_far, wide);
    for (std::int64_t k = 0; k < side; ++k)
      for (std::int64_t c = 0; c < width; ++c) sum[c] += wide[k * width + c];
    x += turns * side * row;
    n -= turns * side;
  }
  add_rows(x, n, row, width, is_far, sum);
}

/// The same for at most kFarColumns columns, of many rows in parallel.
template <class T>
void add_columns(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, bool is_far, double* sum) {
  add_in_pieces(n, width, sum, [=](std::int64_t first, std::int64_t count, double* slot) {
    add_block(x + first * row, count, row, width, is_far, slot);
  });
}

/// Fewer blocks than these are worked on one by one.
inline constexpr std::int64_t kLeastBlocks = 8;

/// Whether a group's columns are a few rows that lie a stride apart, to be joined in one pass.
inline bool in_few_rows(const ReducePlan& p, std::int64_t width) {
  return width > 1 && p.reduced_rank == 0 && p.count > 0 && p.count <= kFewRows;
}

/// sum[c] = sum of the stored elements of output c; a contiguous run by `sum_run`, and
/// many short runs as rows, whose columns are added up at the end.
template <class T>
[[gnu::noinline]] void sum_group(const ReducePlan& p, const Offsets& start, std::int64_t width, double* sum,
                                 const T* x) {
  const std::int64_t row = p.rows.stride[0];
  if (in_few_rows(p, width)) return sum_places(x + start.at[0], row, p.count, width, sum);
  for (std::int64_t c = 0; c < width; ++c) sum[c] = 0;
  if (width > 1 || row > 1) {
    for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
      add_columns(x + o.at[0], p.rows.extent, row, width, is_far<T>(p), sum);
    });
    return;
  }
  // Wide vectors of float32 alone: the library is kept small.
  if (kVectorWidth > 16 && sizeof(T) == sizeof(float) && p.reduced_rank > 0 &&
      p.reduced[p.reduced_rank - 1].extent >= kLeastBlocks && p.count > 0 && p.rows.extent <= kLongRun) {
    const ReducePlan runs = runs_as_rows(p);
    for (std::int64_t c = 0; c < p.rows.extent; c += kWideColumns) {
      const std::int64_t n = std::min(kWideColumns, p.rows.extent - c);
      double columns[kWideColumns];
      Offsets from = start;
      from.at[0] += c;
      sum_group(runs, from, n, columns, x);
      sum[0] += sum_row(columns, n);
    }
    return;
  }
  bool first = true;
  for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
    const double run = sum_run(x + o.at[0], p.rows.extent, runs_ahead<T>(p));
    sum[0] = first ? run : sum[0] + run;
    first = false;
  });
}

/// Whether output o is reduced from elements [o n, (o + 1) n).
inline bool in_runs(const ReducePlan& p) {
  return p.columns.extent == 1 && p.rows.stride[0] == 1 && p.reduced_rank == 0 &&
         (p.kept_rank == 0 || (p.kept_rank == 1 && p.kept[0].stride[0] == p.rows.extent));
}

/// Whether that is so in each of several blocks.
inline bool in_blocks_of_runs(const ReducePlan& p) {
  return p.columns.extent == 1 && p.rows.stride[0] == 1 && p.reduced_rank > 0 && p.count > 0 && p.kept_rank == 1 &&
         p.kept[0].stride[0] == p.rows.extent;
}

/// Calls a body that is known by its address.
template <class Body, class T>
[[gnu::noinline]] void run_body(const void* body, std::int64_t output, T* run) {
  (*static_cast<const Body*>(body))(output, run);
}

/// Calls `run_body(body, o, x + o n)` for o from `first` up to `last`, for the runs of kPlaces parts in turn; what is
/// next there is asked for.
template <class T>
[[gnu::noinline]] void for_runs_apart(T* x, std::int64_t n, std::int64_t first, std::int64_t last, const void* body,
                                      void (*run_body)(const void*, std::int64_t, T*)) {
  const std::int64_t part = (last - first) / kPlaces;
  for_places(
      x + first * n, n, part, 1, kPlaceAhead<T>,
      [=](std::int64_t, std::int64_t run, std::int64_t, NextPlaces next) __attribute__((always_inline)) {
        fetch_for(x, n, next);
        run_body(body, first + run, x + (first + run) * n);
      });
  for (std::int64_t o = first + kPlaces * part; o < last; ++o) run_body(body, o, x + o * n);
}

/// Calls `body(output, run)` for every output of a plan that is `in_runs`; in order if `body` asks for memory itself.
template <bool kInOrder = false, class T, class Body>
void for_each_run(const ReducePlan& p, T* x, const Body& body) {
  const std::int64_t n = p.rows.extent;
  const bool is_apart = !kInOrder && n <= kLongRun && reads_apart(read_bytes<T>(p));
  parallel_for(
      p.outputs, std::max<std::int64_t>(n, 8), [=](std::int64_t first, std::int64_t last) __attribute__((flatten)) {
        if (is_apart) return for_runs_apart(x, n, first, last, &body, run_body<Body, T>);
        for (std::int64_t o = first; o < last; ++o) body(o, x + o * n);
      });
}

/// Whether short runs are turned: the baseline is kept small.
template <class T>
inline constexpr bool kTurnsRuns = kVectorWidth > 16;

/// What is done to columns: a gradient, or a reduction that fills y.
template <class T>
using ColumnKernel = void (*)(const ReducePlan&, double number, const T* dy, const T* x, const T* y, T* dx);

/// Runs up to this length are short, and planes of so many elements small.
inline constexpr std::int64_t kTurnedRun = 64;

/// Elements [o n m, (o + 1) n m), which are the rows and columns of outputs [o m, (o + 1) m): a run where m = 1.
struct Planes {
  std::int64_t n, m, count;
};

/// Does it to planes [first, first + kReduceColumns), or as many as there are, which are turned to be columns, and dx
/// back; or, with `add`, adds to dx. There may be no x; and no dx: then y is filled.
template <class T>
TAPER_FOR_SIZE void turn_some_planes(const Planes& planes, std::int64_t first, double number, const T* dy, const T* x,
                                     const T* y, T* dx, bool add, ColumnKernel<T> kernel) {
  // Rows do not follow each other: they would be stretches, in which a run's elements are joined in another order.
  constexpr std::int64_t kRow = kReduceColumns + kLanes<T>;
  T turned[kTurnedRun * kRow], gradients[kTurnedRun * kRow], of_outputs[2][kTurnedRun / 2 * kRow];
  const auto [n, m, count] = planes;
  const std::int64_t size = n * m, row = m * kRow, width = std::min(kReduceColumns, count - first);
  ReducePlan columns;
  columns.rows = {n, {row, row, row}};
  columns.kept[0] = {m, {kRow, kRow, kRow}};
  columns.kept_rank = m > 1;
  columns.columns = {width, {1, 1, 1}};
  columns.outputs = m * width;
  columns.count = n;
  dy += first * m, y += first * m;
  const T *dys = dy, *ys = y;
  if (x != nullptr) pack_transposed(x + first * size, size, width, size, turned, kRow);
  if (m > 1) {
    dys = of_outputs[0], ys = of_outputs[1];
    for (int i = 0; i < 2 && dx != nullptr; ++i) pack_transposed(i == 0 ? dy : y, m, width, m, of_outputs[i], width);
  }
  kernel(columns, number, dys, turned, ys, gradients);
  if (dx == nullptr) {
    if (m > 1) pack_transposed(ys, width, m, width, const_cast<T*>(y), m);
    return;
  }
  dx += first * size;
  pack_transposed(gradients, kRow, size, width, add ? turned : dx, size);
  if (add)
    for (std::int64_t i = 0; i < width * size; ++i) dx[i] += turned[i];
}

/// The same for all of them.
template <class T>
TAPER_FOR_SIZE void turn_planes(const Planes& planes, double number, const T* dy, const T* x, const T* y, T* dx,
                                bool add, ColumnKernel<T> kernel) {
  constexpr std::int64_t kSome = kReduceColumns;
  parallel_for(ceil_div(planes.count, kSome), kSome * planes.n * planes.m * 4,
               [=](std::int64_t first, std::int64_t last) {
                 for (; first < last; ++first)
                   turn_some_planes(planes, first * kSome, number, dy, x, y, dx, add, kernel);
               });
}

/// Does it to all runs of a plan by columns if they are short, which takes far less time where much is done once a run.
/// Returns whether they are.
template <class T>
TAPER_FOR_SIZE bool turn_runs(const ReducePlan& p, double number, const T* dy, const T* x, const T* y, T* dx, bool add,
                              ColumnKernel<T> kernel) {
  if (!in_runs(p) || p.count == 0 || p.count > kTurnedRun) return false;
  turn_planes({p.count, 1, p.outputs}, number, dy, x, y, dx, add, kernel);
  return true;
}

/// The same for many small planes of several columns, whose results must not depend on what else is reduced.
template <class T>
TAPER_FOR_SIZE bool turn_small_planes(const ReducePlan& p, double number, const T* dy, const T* x, const T* y, T* dx,
                                      bool add, ColumnKernel<T> kernel) {
  constexpr std::int64_t kMany = 16;
  const std::int64_t n = p.rows.extent, m = p.columns.extent;
  if (p.reduced_rank > 0 || p.kept_rank != 1 || p.kept[0].extent < kMany || m == 1 || n * m > kTurnedRun ||
      p.rows.stride[0] != m || p.kept[0].stride[0] != n * m)
    return false;
  turn_planes({n, m, p.kept[0].extent}, number, dy, x, y, dx, add, kernel);
  return true;
}

/// The divisor of a variance.
inline double degrees_of_freedom(const ReducePlan& p, double correction) {
  return std::max(0.0, static_cast<double>(p.count) - correction);
}

/// mean[c] = the mean of output c of the group.
template <class T>
void mean_group(const ReducePlan& p, const Offsets& start, std::int64_t width, double* mean, const T* x) {
  sum_group(p, start, width, mean, x);
  for (std::int64_t c = 0; c < width; ++c) mean[c] /= static_cast<double>(p.count);
}

}  // namespace taper::kernels
