#pragma once

#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/reduce_plan.hpp"
#include "kernels/sum_run.hpp"
#include "kernels/vector_power.hpp"

// The loops that the reductions share, over the first array of a plan.

namespace taper::kernels {

/// Whether the elements of a group's only output lie side by side.
inline bool is_run(const ReducePlan& p, std::int64_t width) { return width == 1 && p.rows.stride[0] == 1; }

/// Calls `body(element, n)` for stretches of `n` neighbouring elements, `element` being the offset of the first: the
/// rows of the group's `width` columns or, where one column is a run, parts of it.
template <class Body>
[[gnu::always_inline]] inline void for_each_stretch(const ReducePlan& p, const Offsets& start, std::int64_t width,
                                                    const Body& body) {
  const bool run = is_run(p, width);
  const std::int64_t step = run ? kReduceColumns : 1, stride = p.rows.stride[0];
  for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
    for (std::int64_t j = 0; j < p.rows.extent; j += step)
      body(o.at[0] + j * stride, run ? std::min(step, p.rows.extent - j) : width);
  });
}

/// a^p for a from 0 on, with the accuracy of T; with p = 0 it is 1 for all but zeros.
template <class T>
[[gnu::noinline]] Doubles raised(Doubles a, double p) {
  const Doubles one = Doubles{} + 1, power = Doubles{} + p;
  if (p == 0) return a != 0 ? one : Doubles{};
  return sizeof(T) == sizeof(float) ? rough_positive_power<true>(a, power) : vector_power(a, power);
}

/// A number for each element of a stretch: its column's.
template <class T>
struct PerColumn {
  T of[kReduceColumns];

  /// `value(c)` is column c's.
  template <class Value>
  [[gnu::always_inline]] PerColumn(const ReducePlan& p, std::int64_t width, const Value& value) {
    for (std::int64_t c = 0; c < width; ++c) of[c] = value(c);
    if (is_run(p, width)) std::fill(of + 1, of + kReduceColumns, of[0]);
  }
};

/// Whether caches hardly hold what is reduced.
template <class T>
bool is_far(const ReducePlan& p) {
  return double(p.outputs) * double(p.count) * sizeof(T) >= kFarRead;
}

/// sum[c] += x_{j, c} for `n` rows of `width` columns: eight rows are added in a tree of their own type, then in
/// double. Memory that `is_far` is asked for row by row.
template <class T>
[[gnu::noinline]] void add_rows(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, bool is_far,
                                double* sum) {
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    const T *const a = x + j * row, *const b = a + row, *const c = b + row, *const d = c + row, *const e = d + row,
                   *const f = e + row, *const g = f + row, *const h = g + row;
    if (is_far) [[unlikely]]
      fetch_rows(a + kRowsAhead * row, 8, row, width);
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < width; ++i)
      sum[i] += static_cast<double>(((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i])));
  }
  for (; j < n; ++j) {
    const T* const a = x + j * row;
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < width; ++i) sum[i] += static_cast<double>(a[i]);
  }
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

/// The same for at most kWideColumns columns, of many rows in parallel.
template <class T>
void add_columns(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, bool is_far, double* sum) {
  struct Rows {
    const T* x;
    std::int64_t row, width;
    bool is_far;
  } const rows{x, row, width, is_far};
  const auto add = [](const void* body, std::int64_t first, std::int64_t count, double* slot) {
    const Rows& r = *static_cast<const Rows*>(body);
    add_block(r.x + first * r.row, count, r.row, r.width, r.is_far, slot);
  };
  add_in_pieces(n, width, sum, add, &rows);
}

/// Fewer blocks than these are worked on one by one.
inline constexpr std::int64_t kLeastBlocks = 8;

/// sum[c] = sum of the stored elements of output c; a contiguous run by `sum_run` or `sum_exactly`, and
/// many short runs as rows, whose columns are added up at the end.
template <class T>
[[gnu::noinline]] void sum_group(const ReducePlan& p, const Offsets& start, std::int64_t width, double* sum, const T* x,
                                 bool exactly = false) {
  const std::int64_t row = p.rows.stride[0];
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
    const double run = exactly ? sum_exactly(x + o.at[0], p.rows.extent) : sum_run(x + o.at[0], p.rows.extent);
    sum[0] = first ? run : sum[0] + run;
    first = false;
  });
}

/// Whether output o is reduced from elements [o n, (o + 1) n).
inline bool in_runs(const ReducePlan& p) {
  return p.columns.extent == 1 && p.rows.stride[0] == 1 && p.reduced_rank == 0 &&
         (p.kept_rank == 0 || (p.kept_rank == 1 && p.kept[0].stride[0] == p.rows.extent));
}

/// Calls `body(output, run)` for every output of a plan that is `in_runs`.
template <class T, class Body>
void for_each_run(const ReducePlan& p, T* x, const Body& body) {
  const std::int64_t n = p.rows.extent;
  parallel_for(p.outputs, std::max<std::int64_t>(n, 8), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) body(o, x + o * n);
  });
}

/// to_i = from_i, or to_i += from_i; one value for all i where `step` is 0. Aligned, as rows of ten take half
/// as long again where some of its jumps lie badly.
template <class T>
[[gnu::noinline, gnu::aligned(16)]] void put_row(const T* from, std::int64_t step, T* to, std::int64_t n, bool add) {
  const T value = *from;
  if (step == 0 && add)
    for (std::int64_t i = 0; i < n; ++i) to[i] += value;
  else if (step == 0)
    for (std::int64_t i = 0; i < n; ++i) to[i] = value;
  else if (add)
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  else
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
}

/// Whether short runs are turned: the baseline and float64 are kept small.
template <class T>
inline constexpr bool kTurnsRuns = kVectorWidth > 16 && sizeof(T) == sizeof(float);

/// Works on short runs as columns, which take far less time where much is done once a run: `kernel(plan,
/// number, dy, x, y, dx)` is called for some outputs, dy and y being where theirs begin, and their elements the columns
/// of that x and, unless there is none, of that dx, which is turned back to dx or, with `add`, added to it. Returns
/// whether the plan is of such runs.
template <class T>
[[gnu::noinline]] bool turn_runs(const ReducePlan& p, double number, const T* dy, const T* x, const T* y, T* dx,
                                 bool add,
                                 void (*kernel)(const ReducePlan&, double, const T*, const T*, const T*, T*)) {
  constexpr std::int64_t kRow = kReduceColumns, kMost = 64;
  if (!in_runs(p) || p.count == 0 || p.count > kMost) return false;
  parallel_for(ceil_div(p.outputs, kRow), kRow * p.count * 4,
               [=, n = p.count, outputs = p.outputs](std::int64_t first, std::int64_t last) {
                 T turned[kMost * kRow], gradients[kMost * kRow];
                 for (std::int64_t o = first * kRow; o < std::min(last * kRow, outputs); o += kRow) {
                   const std::int64_t width = std::min(kRow, outputs - o);
                   ReducePlan columns;
                   columns.rows = {n, {kRow, kRow, kRow}};
                   columns.columns = {width, {1, 1, 1}};
                   columns.outputs = width;
                   columns.count = n;
                   pack_transposed(x + o * n, n, width, n, turned, kRow);
                   kernel(columns, number, dy + o, turned, y + o, gradients);
                   if (dx == nullptr) continue;
                   T* const to = dx + o * n;
                   pack_transposed(gradients, kRow, n, width, add ? turned : to, n);
                   if (add) put_row(turned, 1, to, width * n, true);
                 }
               });
  return true;
}

/// The divisor of a variance.
inline double degrees_of_freedom(const ReducePlan& p, double correction) {
  return std::max(0.0, static_cast<double>(p.count) - correction);
}

/// mean[c] = the mean of output c of the group.
template <class T>
void mean_group(const ReducePlan& p, const Offsets& start, std::int64_t width, double* mean, const T* x) {
  sum_group(p, start, width, mean, x, true);
  for (std::int64_t c = 0; c < width; ++c) mean[c] /= static_cast<double>(p.count);
}

}  // namespace taper::kernels
