#include "kernels/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/average_runs.hpp"
#include "kernels/ceil_div.hpp"
#include "kernels/extreme_of.hpp"
#include "kernels/fold_run.hpp"
#include "kernels/lanes.hpp"
#include "kernels/reduce_driver.hpp"
#include "kernels/sum_exp.hpp"

namespace taper::kernels {

namespace {

/// What sums and products are kept in: integers wrap, and so go through their unsigned type.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

/// Whether `x` replaces `best`: it is better, or it is NaN and `best` is not.
template <class T>
bool beats(Extreme extreme, T x, T best) {
  return (extreme == Extreme::max ? x > best : x < best) || (x != x && best == best);
}

/// square_c += (x_{j, c} - mean_c)^2 for `n` rows of `width` columns.
template <class T>
[[gnu::noinline]] void add_squares(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, bool is_far,
                                   const double* mean, double* square) {
  add_terms<4>(
      x, n, row, width, is_far, square, [=](T v, std::int64_t c) __attribute__((always_inline)) {
        const double d = static_cast<double>(v) - mean[c];
        return d * d;
      });
}

/// square[c] += the sum of squared differences from mean[c], of a group.
template <class T>
[[gnu::noinline]] void squares_of_group(const ReducePlan& p, const Offsets& start, std::int64_t width, const T* x,
                                        const double* mean, double* square) {
  const bool run = is_run(p, width);
  for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
    const T* const from = x + o.at[0];
    if (run)
      square[0] += squares_of_run(from, p.rows.extent, mean[0]);
    else
      add_in_pieces(p.rows.extent, width, square,
                    [=, row = p.rows.stride[0], far = is_far<T>(p)](std::int64_t first, std::int64_t n, double* slot) {
                      add_squares(from + first * row, n, row, width, far, mean, slot);
                    });
  });
}

/// all[c] = `nothing` with the elements of column c of a group of integers, in any order.
template <class T, class Join>
[[gnu::always_inline]] inline void fold_group(const ReducePlan& p, const Offsets& start, std::int64_t width, const T* x,
                                              Accumulator<T> nothing, Accumulator<T>* all, const Join& join) {
  std::fill_n(all, rows_of_stretch(p, width) * width, nothing);
  for_each_stretch(p, start, width, [=](std::int64_t at, std::int64_t n) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) all[i] = join(all[i], Accumulator<T>(x[at + i]));
  });
  join_stretch(p, width, all, join);
}

/// product_c *= x_{j, c} for c < N and `n` rows, in order.
template <int N, class T>
[[gnu::always_inline]] inline void multiply_places(const T* x, std::int64_t n, std::int64_t row, double* product) {
  auto all = Lanes<N>::load(product);
  for (; n > 0; --n, x += row) all *= Lanes<N>::load(x);
  all.store(product);
}

/// The same for c < width.
template <class T>
[[gnu::noinline]] void multiply_rows(const T* x, std::int64_t n, std::int64_t row, std::int64_t width,
                                     double* product) {
  constexpr std::int64_t kTurn = 8;
  for (std::int64_t j = 0; j < n; j += kTurn, x += kTurn * row) {
    const std::int64_t some = std::min(kTurn, n - j);
    for_lanes(
        width, [=](auto lanes, std::int64_t c)
                   __attribute__((always_inline)) { multiply_places<lanes>(x + c, some, row, product + c); });
  }
}

/// The best of the `n` elements at x.
template <class T>
[[gnu::noinline]] T best_of(Extreme extreme, const T* x, std::int64_t n) {
  return extreme == Extreme::max ? extreme_of<true>(x, n) : extreme_of<false>(x, n);
}

/// y_i = the best of the n elements at x + i n, for i < runs, of which there are at least four.
template <class T>
[[gnu::noinline]] void best_of_short_runs(Extreme extreme, const T* x, std::int64_t n, std::int64_t runs, T* y) {
  const auto extremes = extreme == Extreme::max ? extremes_of_four<true> : extremes_of_four<false>;
  const std::int64_t fours = runs / 4;
  parallel_for(fours, 4 * std::max<std::int64_t>(n, 8), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = 4 * first; i < 4 * last; i += 4) extremes(x + i * n, n, y + i);
    const std::int64_t end = runs - 4;  // these begin among the last whole four
    if (last == fours && runs % 4 != 0) extremes(x + end * n, n, y + end);
  });
}

/// best[c] = the best of best[c] and of what stands in column c of the `n` rows; of many in parallel.
template <class T>
[[gnu::noinline]] void best_of_rows(Extreme extreme, const T* x, std::int64_t n, std::int64_t row, std::int64_t width,
                                    bool is_far, T* best) {
  const auto join = extreme == Extreme::max ? extreme_of_rows<true, T> : extreme_of_rows<false, T>;
  const std::int64_t piece = rows_of_piece(n, width);
  if constexpr (kAvoidsParts<T>)
    if (n <= piece && width < kFullVector<T>)
      return (extreme == Extreme::max ? extreme_of_narrow_rows<true> : extreme_of_narrow_rows<false>)(x, n, row, width,
                                                                                                      best);
  if (n <= piece) return join(x, n, row, width, is_far, best);
  const std::int64_t pieces = ceil_div(n, piece);
  T slots[kPiecesColumns];
  parallel_for(pieces, piece * width, [=, to = &slots[0]](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      const T* const from = x + k * piece * row;
      std::copy_n(from, width, to + k * width);
      best_of_rows(extreme, from, std::min(piece, n - k * piece), row, width, is_far, to + k * width);
    }
  });
  best_of_rows(extreme, slots, pieces, width, width, false, best);
}

/// best[c] = the best element of output c of a group.
template <class T>
[[gnu::noinline]] void best_of_group(const ReducePlan& p, const Offsets& start, std::int64_t width, Extreme extreme,
                                     const T* x, T* best) {
  for_each_block(p, start, [&](const Offsets& o, std::int64_t done) {
    const T* const from = x + o.at[0];
    if (width == 1 && p.rows.stride[0] == 1) {
      const T run = best_of(extreme, from, p.rows.extent);
      if (done == 0 || beats(extreme, run, best[0])) best[0] = run;
      return;
    }
    if (done == 0) std::copy_n(from, width, best);
    best_of_rows(extreme, from, p.rows.extent, p.rows.stride[0], width, is_far<T>(p), best);
  });
}

/// power_i = |x_i|^p; 1 for all but zeros where p is 0.
template <class T>
[[gnu::noinline]] void powers_of(const T* x, std::int64_t n, double p, double* power) {
  if (p == 1) {
    for (std::int64_t i = 0; i < n; ++i) power[i] = std::abs(static_cast<double>(x[i]));
    return;
  }
  for (AnyPack at{0, n}; at; at.next<T>()) {
    LongPack<T> a(magnitude_of(at(x)));
    a.apply([=](Doubles v) { return raised<T>(v, p); });
    a.store(power + at.i);
  }
}

/// y[c] = the best |x| of column c of a group.
template <class T>
[[gnu::noinline]] void extreme_magnitudes(const ReducePlan& p, const Offsets& start, std::int64_t width,
                                          Extreme extreme, const T* x, T* y) {
  T best[kFarColumns];
  std::fill_n(best, rows_of_stretch(p, width) * width,
              extreme == Extreme::max ? T(0) : std::numeric_limits<T>::infinity());
  for_each_stretch(p, start, width, [=, to = &best[0]](std::int64_t at, std::int64_t n) {
    T magnitude[kFarColumns];
    for (std::int64_t i = 0; i < n; ++i) magnitude[i] = std::abs(x[at + i]);
    best_of_rows(extreme, magnitude, 1, n, n, false, to);
  });
  join_stretch(p, width, best, [=](T a, T b) { return beats(extreme, b, a) ? b : a; });
  std::copy_n(best, width, y);
}

/// sum_c += e^(x_{j, c} - shift_c) for `n` rows of `width` columns.
template <class T>
[[gnu::noinline]] void add_exponentials(const T* x, std::int64_t n, std::int64_t row, std::int64_t width,
                                        const T* shift, double* sum) {
  T term[kFarColumns];
  for (std::int64_t j = 0; j < n; ++j) {
    for (AnyPack at{0, width}; at; at.next<T>()) at.store(term, vector_exp(at(x + j * row) - at(shift)));
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(term[c]);
  }
}

/// An integer of the size of T, so that one vector holds as many of both.
template <class T>
using Number = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// place_c = the first of the `n` rows in which column c is best_c, or NaN; -1 if there is none.
template <class T>
[[gnu::noinline]] void places_of_rows(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, const T* best,
                                      Number<T>* place) {
  for (std::int64_t c = 0; c < width; ++c) place[c] = -1;
  for (std::int64_t j = n - 1; j >= 0; --j) {
    const T* const a = x + j * row;
    const auto number = static_cast<Number<T>>(j);
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t c = 0; c < width; ++c) {
      const T v = a[c], b = best[c];
      const Number<T> found = place[c];
      place[c] = v == b ? number : v != v ? number : found;
    }
  }
}

/// Reduces small planes by columns; returns whether they are.
template <class T, void (*kReduce)(const ReducePlan&, const T*, T*)>
bool reduce_small_planes(const ReducePlan& plan, const T* x, T* y) {
  if constexpr (kTurnsRuns<T> && std::is_floating_point_v<T>)
    return turn_small_planes<T>(plan, 0, x, x, y, nullptr, false,
                                [](const ReducePlan& columns, double, const T*, const T* xs, const T* ys, T*) {
                                  kReduce(columns, xs, const_cast<T*>(ys));
                                });
  return false;
}

/// y_o = (the sum of output o's runs in all blocks) / divisor, if these are short; returns whether they are.
template <class T>
bool average_blocks(const ReducePlan& plan, double divisor, const T* x, T* y) {
  const std::int64_t n = plan.rows.extent;
  if (kVectorWidth <= 16 || !in_blocks_of_runs(plan) || n > kTurnedRun) return false;
  constexpr std::int64_t kFewOutputs = 8;  // float32 ones are taken by `sum_group`, as columns
  if (plan.outputs < kFewOutputs && sizeof(T) == sizeof(float)) return false;
  parallel_for(plan.outputs, plan.count, [=, &plan](std::int64_t first, std::int64_t last) {
    for (; first < last; first += kSomeRuns) {
      const std::int64_t some = std::min(kSomeRuns, last - first);
      double total[kSomeRuns], sum[kSomeRuns];
      clear(total, some);
      for_each_block(plan, {{first * n, 0, 0}}, [&](const Offsets& o, std::int64_t) {
        const T* const from = x + o.at[0];
        sum_some_runs(from, n, some, 0, sum);
        for (std::int64_t c = 0; c < some; ++c) total[c] += sum[c];
      });
      for (std::int64_t c = 0; c < some; ++c) y[first + c] = static_cast<T>(total[c] / divisor);
    }
  });
  return true;
}

}  // namespace

template <class T>
void reduce_sum(const ReducePlan& plan, const T* x, T* y) {
  // y = sum x
  if constexpr (!std::is_integral_v<T>) {
    if (in_runs(plan)) return average_runs(plan.outputs, plan.rows.extent, 1, x, y);
    if (average_blocks(plan, 1, x, y)) return;
  }
  if (reduce_small_planes<T, reduce_sum<T>>(plan, x, y)) return;
  const auto sums_of = [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    if constexpr (!std::is_integral_v<T>)
      if (in_few_rows(plan, width))
        return join_places<false>(x + start.at[0], plan.rows.stride[0], plan.count, width, y + out);
    Accumulator<T> sum[kFarColumns];
    if constexpr (std::is_integral_v<T>)
      fold_group(plan, start, width, x, 0, sum, [](auto a, auto b) { return a + b; });
    else
      sum_group(plan, start, width, sum, x);
    for (std::int64_t c = 0; c < width; ++c) y[out + c] = T(sum[c]);
  };
  for_each_group<T>(plan, 1, sums_of, std::is_integral_v<T> ? kReduceColumns : kWideColumns);
}

template <class T>
void reduce_mean(const ReducePlan& plan, const T* x, T* y) {
  // y = sum x / count
  if (in_runs(plan)) return average_runs(plan.outputs, plan.rows.extent, static_cast<double>(plan.rows.extent), x, y);
  if (average_blocks(plan, static_cast<double>(plan.count), x, y)) return;
  if (reduce_small_planes<T, reduce_mean<T>>(plan, x, y)) return;
  const auto means_of = [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    double mean[kFarColumns];
    mean_group(plan, start, width, mean, x);
    for (std::int64_t c = 0; c < width; ++c) y[out + c] = T(mean[c]);
  };
  for_each_group<T>(plan, 1, means_of, kWideColumns);
}

template <class T>
void reduce_var(const ReducePlan& plan, double correction, const T* x, T* y) {
  const double divisor = degrees_of_freedom(plan, correction);
  // y = sum (x - mean)^2 / divisor
  if (in_runs(plan))
    return for_each_run<true>(
        plan, x, [=, n = plan.rows.extent, ahead = runs_ahead<T>(plan)](std::int64_t o, const T* run) {
          y[o] = T(squares_of_run(run, n, sum_run(run, n, ahead) / static_cast<double>(n)) / divisor);
        });
  for_each_group<T>(plan, 3, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    double mean[kFarColumns], square[kFarColumns];
    std::fill_n(square, width, 0.0);
    mean_group(plan, start, width, mean, x);
    squares_of_group(plan, start, width, x, mean, square);
    for (std::int64_t c = 0; c < width; ++c) y[out + c] = T(square[c] / divisor);
  });
}

template <class T>
void reduce_std(const ReducePlan& plan, double correction, const T* x, T* y) {
  reduce_var(plan, correction, x, y);
  for (std::int64_t o = 0; o < plan.outputs; ++o) y[o] = std::sqrt(y[o]);
}

template <class T>
void reduce_prod(const ReducePlan& plan, const T* x, T* y) {
  // y = x_0 x_1 x_2 ...
  if constexpr (!std::is_integral_v<T>)
    if (in_runs(plan))
      return for_each_run(
          plan, x, [=, n = plan.rows.extent](std::int64_t o, const T* run) { y[o] = T(product_of_run(run, n)); });
  for_each_group<T>(plan, 1, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    if constexpr (!std::is_integral_v<T>)
      if (in_few_rows(plan, width))
        return join_places<true>(x + start.at[0], plan.rows.stride[0], plan.count, width, y + out);
    Accumulator<T> product[kFarColumns];
    std::fill_n(product, width, 1);
    if constexpr (std::is_integral_v<T>)
      fold_group(plan, start, width, x, 1, product, [](auto a, auto b) { return a * b; });
    else
      for_each_block(plan, start, [&](const Offsets& o, std::int64_t) {
        const T* const from = x + o.at[0];
        if (is_run(plan, width))
          product[0] *= product_of_run(from, plan.rows.extent);
        else
          multiply_rows(from, plan.rows.extent, plan.rows.stride[0], width, product);
      });
    for (std::int64_t c = 0; c < width; ++c) y[out + c] = T(product[c]);
  });
}

template <class T>
void reduce_extreme(const ReducePlan& plan, Extreme extreme, const T* x, T* y) {
  // y = the best x
  if (in_runs(plan)) {
    constexpr std::int64_t kShort = 16;
    if constexpr (kVectorWidth > 16 && sizeof(T) == sizeof(float))  // the library is kept small
      if (plan.rows.extent < kShort && plan.outputs >= 4)
        return best_of_short_runs(extreme, x, plan.rows.extent, plan.outputs, y);
    return for_each_run(plan, x,
                        [=, n = plan.rows.extent](std::int64_t o, const T* run) { y[o] = best_of(extreme, run, n); });
  }
  for_each_group<T>(
      plan, 1,
      [&](std::int64_t out, std::int64_t width, const Offsets& start) {
        T best[kFarColumns];
        best_of_group(plan, start, width, extreme, x, best);
        for (std::int64_t c = 0; c < width; ++c) y[out + c] = best[c];
      },
      kWideColumns);
}

template <class T>
void arg_extreme(const ReducePlan& plan, Extreme extreme, const T* x, T* y, std::int64_t* index) {
  // index = the first place of the best x
  if (in_runs(plan))
    return for_each_run(plan, x, [=, n = plan.rows.extent](std::int64_t o, const T* run) {
      const T best = best_of(extreme, run, n);
      index[o] = place_of(best, run, n);
      if (y != nullptr) y[o] = best;
    });
  for_each_group<T>(plan, 2, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    T best[kFarColumns];
    best_of_group(plan, start, width, extreme, x, best);
    for (std::int64_t c = 0; c < width; ++c) index[out + c] = -1;
    for_each_block(plan, start, [&](const Offsets& o, std::int64_t done) {
      constexpr std::int64_t kRows = std::int64_t{1} << 30;  // whose numbers fit
      for (std::int64_t j = 0; j < plan.rows.extent; j += kRows) {
        Number<T> place[kFarColumns];
        const std::int64_t row = plan.rows.stride[0];
        places_of_rows(x + o.at[0] + j * row, std::min(kRows, plan.rows.extent - j), row, width, best, place);
        for (std::int64_t c = 0; c < width; ++c)
          if (index[out + c] < 0 && place[c] >= 0) index[out + c] = done + j + place[c];
      }
    });
    if (y != nullptr)
      for (std::int64_t c = 0; c < width; ++c) y[out + c] = best[c];
  });
}

template <class T>
[[gnu::noinline]] void reduce_logsumexp(const ReducePlan& plan, const T* x, T* y) {
  if (kTurnsRuns<T> && turn_runs<T>(plan, 0, x, x, y, nullptr, false,
                                    [](const ReducePlan& columns, double, const T*, const T* xs, const T* ys, T*) {
                                      reduce_logsumexp(columns, xs, const_cast<T*>(ys));
                                    }))
    return;
  for_each_group<T>(plan, 20, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    T shift[kFarColumns];
    double sum[kFarColumns];
    std::fill_n(shift, width, T(0));
    std::fill_n(sum, width, 0.0);
    best_of_group(plan, start, width, Extreme::max, x, shift);
    for (std::int64_t c = 0; c < width; ++c)
      if (std::isinf(shift[c])) shift[c] = 0;
    // y = max + log(sum e^(x - max)), an infinite maximum being left out
    const bool run = is_run(plan, width);
    for_each_block(plan, start, [&](const Offsets& o, std::int64_t) {
      const T* const from = x + o.at[0];
      if (run)
        sum[0] += sum_exp<T>(from, plan.rows.extent, shift[0]);
      else
        add_in_pieces(
            plan.rows.extent, width, sum,
            [=, row = plan.rows.stride[0], below = &shift[0]](std::int64_t first, std::int64_t n, double* slot) {
              add_exponentials(from + first * row, n, row, width, below, slot);
            });
    });
    for (std::int64_t c = 0; c < width; ++c) y[out + c] = T(static_cast<double>(shift[c]) + std::log(sum[c]));
  });
}

template <class T>
void reduce_norm(const ReducePlan& plan, double p, const T* x, T* y) {
  if (p == 2 && in_runs(plan))
    return for_each_run(plan, x, [=, n = plan.rows.extent](std::int64_t o, const T* run) {
      y[o] = T(std::sqrt(squares_of_run(run, n)));
    });
  for_each_group<T>(plan, p == 1 || p == 2 ? 2 : 24, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    if (std::isinf(p)) return extreme_magnitudes(plan, start, width, p > 0 ? Extreme::max : Extreme::min, x, y + out);
    double sum[kFarColumns];
    clear(sum, rows_of_stretch(plan, width) * width);
    if (p == 2) {
      double zeros[kFarColumns];
      std::fill_n(zeros, width, 0.0);
      squares_of_group(plan, start, width, x, zeros, sum);
    } else {
      const bool run = is_run(plan, width);
      for_each_stretch(plan, start, width, [=, to = &sum[0]](std::int64_t at, std::int64_t n) {
        double term[kFarColumns];
        powers_of(x + at, n, p, term);
        if (run) return void(to[0] += sum_row(term, n));
        TAPER_INDEPENDENT_TURNS
        for (std::int64_t i = 0; i < n; ++i) to[i] += term[i];
      });
      if (!run) join_stretch(plan, width, sum, [](double a, double b) { return a + b; });
    }
    // y = (sum |x|^p)^(1/p)
    for (std::int64_t c = 0; c < width; ++c)
      y[out + c] = T(p == 1 || p == 0 ? sum[c] : p == 2 ? std::sqrt(sum[c]) : std::pow(sum[c], 1 / p));
  });
}

#define TAPER_INSTANTIATE_REDUCE_FLOATING(T)                            \
  template void reduce_mean<T>(const ReducePlan&, const T*, T*);        \
  template void reduce_var<T>(const ReducePlan&, double, const T*, T*); \
  template void reduce_std<T>(const ReducePlan&, double, const T*, T*); \
  template void reduce_logsumexp<T>(const ReducePlan&, const T*, T*);   \
  template void reduce_norm<T>(const ReducePlan&, double, const T*, T*)
TAPER_INSTANTIATE_REDUCE_FLOATING(float);

#define TAPER_INSTANTIATE_REDUCE(T)                                          \
  template void reduce_sum<T>(const ReducePlan&, const T*, T*);              \
  template void reduce_prod<T>(const ReducePlan&, const T*, T*);             \
  template void reduce_extreme<T>(const ReducePlan&, Extreme, const T*, T*); \
  template void arg_extreme<T>(const ReducePlan&, Extreme, const T*, T*, std::int64_t*)
TAPER_INSTANTIATE_REDUCE(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_REDUCE_FLOATING(double);
TAPER_INSTANTIATE_REDUCE(double);
TAPER_INSTANTIATE_REDUCE(std::int64_t);
#endif

}  // namespace taper::kernels
