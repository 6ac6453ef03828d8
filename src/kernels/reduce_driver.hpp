#pragma once

#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/reduce_plan.hpp"
#include "kernels/sum_run.hpp"
#include "kernels/sum_terms.hpp"

// The loops that the reductions share, over the first array of a plan.

namespace taper::kernels {

/// Calls `step(column, element, index)` for every element of the group of `width` outputs at `start`, in order;
/// `element` is its offset in x, `index` its number among the reduced elements.
template <class Step>
void for_each_element(const ReducePlan& p, const Offsets& start, std::int64_t width, const Step& step) {
  const std::int64_t n = p.rows.extent, row = p.rows.stride[0];
  for_each_block(p, start, [&](const Offsets& o, std::int64_t done) {
    if (width == 1) {
      for (std::int64_t j = 0; j < n; ++j) step(0, o.at[0] + j * row, done + j);
      return;
    }
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) step(c, o.at[0] + j * row + c, done + j);
  });
}

/// sum[c] = sum of term(c, element) over the elements of output c of the group.
template <class Term>
void sum_group(const ReducePlan& p, const Offsets& start, std::int64_t width, double* sum, const Term& term) {
  for (std::int64_t c = 0; c < width; ++c) sum[c] = 0;
  const std::int64_t n = p.rows.extent, row = p.rows.stride[0];
  for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
    const std::int64_t at = o.at[0];
    if (width == 1) {
      sum[0] += sum_terms(n, [&](std::int64_t j) { return term(0, at + j * row); });
      return;
    }
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(term(c, at + j * row + c));
  });
}

/// sum[c] += x_{j, c} for `n` rows of `width` columns: eight rows are added in a tree of their own type, then in
/// double.
template <class T>
[[gnu::noinline]] void add_rows(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, double* sum) {
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    const T *const a = x + j * row, *const b = a + row, *const c = b + row, *const d = c + row, *const e = d + row,
                   *const f = e + row, *const g = f + row, *const h = g + row;
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
[[gnu::noinline]] void add_block(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, double* sum) {
  constexpr std::int64_t kWide = 128;
  const std::int64_t side = kWide / width, turns = n / side;
  if (row == width && side >= 4 && turns >= 8) {
    double wide[kWide] = {};
    add_rows(x, turns, side * width, side * width, wide);
    for (std::int64_t k = 0; k < side; ++k)
      for (std::int64_t c = 0; c < width; ++c) sum[c] += wide[k * width + c];
    x += turns * side * row;
    n -= turns * side;
  }
  add_rows(x, n, row, width, sum);
}

/// sum[c] = sum of the stored elements of output c; a contiguous run by `sum_run`.
template <class T>
void sum_group(const ReducePlan& p, const Offsets& start, std::int64_t width, double* sum, const T* x) {
  const std::int64_t row = p.rows.stride[0];
  for (std::int64_t c = 0; c < width; ++c) sum[c] = 0;
  if (width > 1 || row > 1) {
    for_each_block(p, start,
                   [&](const Offsets& o, std::int64_t) { add_block(x + o.at[0], p.rows.extent, row, width, sum); });
    return;
  }
  bool first = true;
  for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
    const double run = sum_run(x + o.at[0], p.rows.extent);
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

/// Whether every output is reduced from contiguous runs.
inline bool over_runs(const ReducePlan& p) { return p.columns.extent == 1 && p.rows.stride[0] == 1; }

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

/// Where `n` gradients for `dx` are put, and what brings them from there: dx itself, or some memory to be added to it.
template <class T>
struct GradientRun {
  static constexpr std::int64_t kMost = 256;
  T fresh[kMost];

  T* place(T* dx, bool add) { return add ? fresh : dx; }
  void finish(T* dx, std::int64_t n, bool add) const {
    if (add)
      for (std::int64_t k = 0; k < n; ++k) dx[k] += fresh[k];
  }
};

/// dx_i = slope(c, i) for every element i of output c of the group. A slope does not depend on what is stored before.
template <class T, class Slope>
void write_group(const ReducePlan& p, const Offsets& start, std::int64_t width, T* dx, bool add, const Slope& slope) {
  const bool run = width == 1 && p.rows.stride[0] == 1;
  GradientRun<T> gradients;
  for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
    const std::int64_t n = p.rows.extent, step = run ? GradientRun<T>::kMost : 1;
    for (std::int64_t j = 0; j < n; j += step) {
      const std::int64_t at = o.at[0] + j * p.rows.stride[0], length = run ? std::min(step, n - j) : width;
      T* const to = gradients.place(dx + at, add);
      if (run) {
        TAPER_INDEPENDENT_TURNS
        for (std::int64_t k = 0; k < length; ++k) to[k] = slope(0, at + k);
      } else {
        TAPER_INDEPENDENT_TURNS
        for (std::int64_t k = 0; k < length; ++k) to[k] = slope(k, at + k);
      }
      gradients.finish(dx + at, length, add);
    }
  });
}

/// dx_i = slope(output, element i) for every element.
template <class T, class Slope>
void spread(const ReducePlan& p, std::int64_t cost, T* dx, bool add, const Slope& slope) {
  for_each_group(p, cost, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    write_group(p, start, width, dx, add, [&, out](std::int64_t c, std::int64_t i) { return slope(out + c, i); });
  });
}

}  // namespace taper::kernels
