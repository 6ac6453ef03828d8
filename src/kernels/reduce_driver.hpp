#pragma once

#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/reduce_plan.hpp"
#include "kernels/sum_row.hpp"
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

/// sum[c] += x_{j, c} for `n` rows of `width` columns, four rows at a time.
template <class T>
void add_rows(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, double* sum) {
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const T *const a = x + j * row, *const b = a + row, *const c = b + row, *const d = c + row;
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < width; ++i)
      sum[i] += (static_cast<double>(a[i]) + static_cast<double>(b[i])) +
                (static_cast<double>(c[i]) + static_cast<double>(d[i]));
  }
  for (; j < n; ++j) {
    const T* const a = x + j * row;
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < width; ++i) sum[i] += static_cast<double>(a[i]);
  }
}

/// sum[c] = sum of the stored elements of output c; a contiguous run by `sum_row`.
template <class T>
void sum_group(const ReducePlan& p, const Offsets& start, std::int64_t width, double* sum, const T* x) {
  const std::int64_t row = p.rows.stride[0];
  if (width > 1) {
    for (std::int64_t c = 0; c < width; ++c) sum[c] = 0;
    for_each_block(p, start,
                   [&](const Offsets& o, std::int64_t) { add_rows(x + o.at[0], p.rows.extent, row, width, sum); });
    return;
  }
  if (row > 1) {
    sum_group(p, start, width, sum, [x](std::int64_t, std::int64_t i) { return x[i]; });
    return;
  }
  bool first = true;
  sum[0] = 0;
  for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
    const double run = sum_row(x + o.at[0], p.rows.extent);
    sum[0] = first ? run : sum[0] + run;
    first = false;
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
