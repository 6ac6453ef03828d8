#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/lanes.hpp"
#include "kernels/packs.hpp"
#include "kernels/reduce.hpp"
#include "kernels/reduce_driver.hpp"
#include "kernels/spread_runs.hpp"
#include "kernels/vector_math.hpp"

namespace taper::kernels {

namespace {

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

/// dx = the gradients that `gradients(element, n, to)` finds for the stretches of a group, or += them.
template <class T, class Gradients>
[[gnu::always_inline]] inline void write_group(const ReducePlan& p, const Offsets& start, std::int64_t width, T* dx,
                                               bool add, const Gradients& gradients) {
  for_each_stretch(
      p, start, width,
      [=](std::int64_t at, std::int64_t n) {
        T found[kFarColumns];
        gradients(at, n, found);
        put_row(found, 1, dx + at, n, add);
      },
      true);
}

/// The lanes in which x, or |x| of `magnitudes`, is y: NaN as well, beside which y is NaN.
template <class V>
[[gnu::always_inline]] inline auto is_equal(V x, V y, bool magnitudes) {
  const V v = magnitudes ? magnitude_of(x) : x;
  return (v == y) | (v != v);
}

/// number_i += 1 where x_i is equal to y_i, for i < n. There is room for kFarColumns of what is not x.
template <class T>
[[gnu::noinline]] void count_equals(const T* x, const T* y, bool magnitudes, std::int64_t n, T* number) {
  for (AnyPack at{0, n}; at; at.next<T>()) {
    const WholePack all{at.i};
    at.store(number, all(number) + (is_equal(at(x), all(y), magnitudes) ? pack_of(T(1)) : Vector<T>{}));
  }
}

/// dx_i = share_i, of `magnitudes` sign(x_i) share_i, where x_i is equal to y_i, else 0. There is room as there.
template <class T>
[[gnu::noinline]] void share_among_equals(const T* x, const T* y, const T* share, bool magnitudes, std::int64_t n,
                                          T* dx) {
  for (AnyPack at{0, n}; at; at.next<T>()) {
    const WholePack all{at.i};
    const Vector<T> v = at(x), part = all(share), turned = v < 0 ? -part : v > 0 ? part : part * 0;
    all.store(dx, is_equal(v, all(y), magnitudes) ? (magnitudes ? turned : part) : Vector<T>{});
  }
}

/// dx_i = dy / (number of equals) where x_i is y, else 0; of `magnitudes` sign(x_i) times that where |x_i| is y.
template <class T>
void spread_over_equals(const ReducePlan& plan, bool magnitudes, const T* dy, const T* x, const T* y, T* dx, bool add) {
  for_each_group<T>(plan, 2, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    const PerColumn<T> best(plan, width, [&](std::int64_t c) { return y[out + c]; });
    constexpr std::int64_t kMost = std::int64_t{1} << 23;  // T has all numbers up to it
    const std::int64_t counters = rows_of_stretch(plan, width) * width;
    std::int64_t equals[kFarColumns], counted = 0;
    T number[kFarColumns];
    clear(equals, counters);
    clear(number, counters);
    const auto add_numbers = [&] {
      for (std::int64_t i = 0; i < counters; ++i) equals[i] += static_cast<std::int64_t>(number[i]), number[i] = 0;
    };
    for_each_stretch(plan, start, width, [&](std::int64_t at, std::int64_t n) {
      count_equals(x + at, best.of, magnitudes, n, number);
      if (++counted % kMost == 0) add_numbers();
    });
    add_numbers();
    join_stretch(plan, width, equals, [](std::int64_t a, std::int64_t b) { return a + b; });
    const PerColumn<T> share(plan, width, [&](std::int64_t c) { return dy[out + c] / static_cast<T>(equals[c]); });
    write_group(plan, start, width, dx, add, [&](std::int64_t at, std::int64_t n, T* to) {
      share_among_equals(x + at, best.of, share.of, magnitudes, n, to);
    });
  });
}

/// The gradients of |x_1|^p + |x_2|^p + ..., of which y is the p-th root.
template <class T>
[[gnu::noinline]] void norm_gradients(const T* x, double p, const T* dy, const T* y, std::int64_t n, T* dx) {
  if (p == 0) {
    clear(dx, n);
  } else if (p == 1) {
    // dx_i = sign(x_i) dy
    for (std::int64_t i = 0; i < n; ++i) dx[i] = sign_of(x[i]) * dy[i];
  } else if (p == 2) {
    // dx_i = x_i / y dy
    for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] == 0 ? T(0) : x[i] * (dy[i] / y[i]);
  } else {
    // dx_i = sign(x_i) (|x_i| / y)^(p-1) dy
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const WholePack all{at.i};  // there is room for kFarColumns of what is not x
      const Vector<T> v = at(x), norm = all(y);
      LongPack<T> ratio(magnitude_of(v));
      ratio /= LongPack<T>(norm);
      ratio.apply([=](Doubles a) { return raised<T>(a, p - 1); });
      const Vector<T> d = ratio.rounded() * all(dy), signed_d = v < 0 ? -d : d;
      all.store(dx, ((v == 0) | (norm == 0)) ? Vector<T>{} : signed_d);
    }
  }
}

/// dx_i = dy / divisor
template <class T>
void spread_quotients(const ReducePlan& plan, const T* dy, double divisor, T* dx, bool add) {
  if (in_runs(plan)) return average::spread_runs(plan.outputs, plan.rows.extent, divisor, dy, dx, add);
  if (kTurnsRuns<T> &&
      turn_small_planes<T>(plan, divisor, dy, nullptr, dy, dx, add,
                           [](const ReducePlan& columns, double number, const T* dys, const T*, const T*, T* dxs) {
                             spread_quotients(columns, dys, number, dxs, false);
                           }))
    return;
  if (kVectorWidth > 16 && in_blocks_of_runs(plan)) {
    // The same runs again and again: memory is filled in its order.
    const std::int64_t n = plan.rows.extent, blocks = plan.count / n;
    const auto fill_blocks = [=, &plan](std::int64_t first, std::int64_t last) {
      for (std::int64_t block = first; block < last; ++block) {
        const Offsets o = offsets_of(plan.reduced, plan.reduced_rank, block);
        average::spread_runs(plan.outputs, n, divisor, dy, dx + o.at[0], add);
      }
    };
    if (blocks < kLeastBlocks) return fill_blocks(0, blocks);  // each of them in parallel
    return parallel_for(blocks, plan.outputs * n, fill_blocks);
  }
  for_each_group<T>(
      plan, 1,
      [=, &plan](std::int64_t out, std::int64_t width, const Offsets& start) {
        const PerColumn<T> value(plan, width, [=](std::int64_t c) { return dy[out + c] / static_cast<T>(divisor); });
        for_each_stretch(
            plan, start, width,
            [=, from = &value.of[0]](std::int64_t at, std::int64_t some) { put_row(from, 1, dx + at, some, add); },
            true);
      },
      kWideColumns);
}

/// dx_i = 2 (x_i - mean) / divisor dy, of the variance; of its root y, if there is one, divided by 2 y.
template <class T>
void deviation_grad(const ReducePlan& plan, double correction, const T* dy, const T* x, const T* y, T* dx, bool add) {
  const double divisor = degrees_of_freedom(plan, correction);
  const auto slope_of = [=](std::int64_t o) {
    const double deviation = y != nullptr ? static_cast<double>(y[o]) : 0.5;
    return (deviation == 0 ? 0 : static_cast<double>(dy[o]) / deviation) / divisor;
  };
  if constexpr (kVectorWidth > 16 && sizeof(T) == sizeof(float))  // the others are kept small
    if (in_runs(plan))
      return for_each_run<true>(
          plan, x, [=, n = plan.rows.extent, ahead = runs_ahead<T>(plan)](std::int64_t o, const T* run) {
            const double mean = sum_run(run, n, ahead) / static_cast<double>(n), slope = slope_of(o);
            T* const to = dx + o * n;
            std::int64_t i = 0;
            for (; i + kDoubles <= n; i += kDoubles) {
              AsManyFloats before, d = as_floats(slope * (ElementsAt{i}(run)-mean));
              std::memcpy(&before, to + i, sizeof before);
              if (add) [[unlikely]]
                d += before;
              std::memcpy(to + i, &d, sizeof d);
            }
            for (; i < n; ++i) {
              const T d = T(slope * (static_cast<double>(run[i]) - mean));
              to[i] = add ? to[i] + d : d;
            }
          });
  for_each_group<T>(
      plan, 3,
      [&](std::int64_t out, std::int64_t width, const Offsets& start) {
        double means[kFarColumns];
        mean_group(plan, start, width, means, x);
        const PerColumn<double> mean(plan, width, [&](std::int64_t c) { return means[c]; });
        const PerColumn<double> slope(plan, width, [&](std::int64_t c) { return slope_of(out + c); });
        write_group(plan, start, width, dx, add,
                    [=, slopes = &slope.of[0], less = &mean.of[0]](std::int64_t at, std::int64_t n, T* to) {
                      TAPER_INDEPENDENT_TURNS
                      for (std::int64_t i = 0; i < n; ++i)
                        to[i] = T(slopes[i] * (static_cast<double>(x[at + i]) - less[i]));
                    });
      },
      kWideColumns);
}

/// Takes the gradient of short runs by columns; returns whether they are short.
template <class T, void (*kGradient)(const ReducePlan&, const T*, const T*, const T*, T*, bool)>
bool turn_short_runs(const ReducePlan& plan, const T* dy, const T* x, const T* y, T* dx, bool add) {
  return kTurnsRuns<T> && turn_runs<T>(plan, 0, dy, x, y, dx, add,
                                       [](const ReducePlan& columns, double, const T* dys, const T* xs, const T* ys,
                                          T* dxs) { kGradient(columns, dys, xs, ys, dxs, false); });
}

}  // namespace

template <class T>
void reduce_sum_grad(const ReducePlan& plan, const T* dy, T* dx, bool add) {
  spread_quotients(plan, dy, 1, dx, add);
}

template <class T>
void reduce_mean_grad(const ReducePlan& plan, const T* dy, T* dx, bool add) {
  spread_quotients(plan, dy, static_cast<double>(plan.count), dx, add);
}

template <class T>
void reduce_var_grad(const ReducePlan& plan, double correction, const T* dy, const T* x, T* dx, bool add) {
  deviation_grad<T>(plan, correction, dy, x, nullptr, dx, add);
}

template <class T>
void reduce_std_grad(const ReducePlan& plan, double correction, const T* dy, const T* x, const T* y, T* dx, bool add) {
  deviation_grad(plan, correction, dy, x, y, dx, add);
}

template <class T>
[[gnu::noinline]] void reduce_prod_grad(const ReducePlan& plan, const T* dy, const T* x, T* dx, bool add) {
  if (kTurnsRuns<T> && turn_runs<T>(plan, 0, dy, x, dy, dx, add,
                                    [](const ReducePlan& columns, double, const T* dys, const T* xs, const T*, T* dxs) {
                                      reduce_prod_grad(columns, dys, xs, dxs, false);
                                    }))
    return;
  // dx_i = dy times the product of the others, which is 0 beside a zero
  for_each_group<T>(plan, 2, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    const std::int64_t factors = rows_of_stretch(plan, width) * width;
    double products[kFarColumns];
    T zeros[kFarColumns];  // how many, beyond 2^24 nearly
    std::fill_n(products, factors, 1.0);
    clear(zeros, factors);
    for_each_stretch(plan, start, width,
                     [=, product = &products[0], zero = &zeros[0]](std::int64_t at, std::int64_t n) {
                       TAPER_INDEPENDENT_TURNS
                       for (std::int64_t i = 0; i < n; ++i) {
                         const T v = x[at + i];
                         zero[i] += v == 0 ? T(1) : T(0);
                         product[i] *= static_cast<double>(v == 0 ? T(1) : v);
                       }
                     });
    join_stretch(plan, width, products, [](double a, double b) { return a * b; });
    join_stretch(plan, width, zeros, [](T a, T b) { return a + b; });
    // What is left for elements other than 0, and for a 0.
    const auto left = [&](std::int64_t c, T expected) {
      return static_cast<double>(dy[out + c]) * (zeros[c] == expected ? products[c] : 0.0);
    };
    const PerColumn<double> all(plan, width, [&](std::int64_t c) { return left(c, 0); });
    const PerColumn<T> others(plan, width, [&](std::int64_t c) { return T(left(c, 1)); });
    write_group(plan, start, width, dx, add,
                [=, product = &all.of[0], zero = &others.of[0]](std::int64_t at, std::int64_t n, T* to) {
                  TAPER_INDEPENDENT_TURNS
                  for (std::int64_t i = 0; i < n; ++i) {
                    const T v = x[at + i], of_zero = zero[i];
                    const double other = product[i] == 0 ? 0.0 : product[i] / static_cast<double>(v);
                    to[i] = v == 0 ? of_zero : T(other);
                  }
                });
  });
}

template <class T>
[[gnu::noinline]] void reduce_extreme_grad(const ReducePlan& plan, const T* dy, const T* x, const T* y, T* dx,
                                           bool add) {
  if (turn_short_runs<T, reduce_extreme_grad<T>>(plan, dy, x, y, dx, add)) return;
  spread_over_equals(plan, false, dy, x, y, dx, add);
}

template <class T>
[[gnu::noinline]] void reduce_logsumexp_grad(const ReducePlan& plan, const T* dy, const T* x, const T* y, T* dx,
                                             bool add) {
  if (turn_short_runs<T, reduce_logsumexp_grad<T>>(plan, dy, x, y, dx, add)) return;
  // dx_i = e^(x_i - y) dy
  for_each_group<T>(
      plan, 18,
      [&](std::int64_t out, std::int64_t width, const Offsets& start) {
        const PerColumn<T> slope(plan, width, [&](std::int64_t c) { return dy[out + c]; });
        const PerColumn<T> top(plan, width, [&](std::int64_t c) { return y[out + c]; });
        write_group(plan, start, width, dx, add,
                    [=, slopes = &slope.of[0], less = &top.of[0]](std::int64_t at, std::int64_t n, T* to) {
                      for (AnyPack i{0, n}; i; i.next<T>()) i.store(to, i(slopes) * vector_exp(i(x + at) - i(less)));
                    });
      },
      kWideColumns);
}

template <class T>
[[gnu::noinline]] void reduce_norm_grad(const ReducePlan& plan, double p, const T* dy, const T* x, const T* y, T* dx,
                                        bool add) {
  if (kTurnsRuns<T> && turn_runs<T>(plan, p, dy, x, y, dx, add,
                                    [](const ReducePlan& columns, double number, const T* dys, const T* xs, const T* ys,
                                       T* dxs) { reduce_norm_grad(columns, number, dys, xs, ys, dxs, false); }))
    return;
  if (std::isinf(p)) return spread_over_equals(plan, true, dy, x, y, dx, add);
  for_each_group<T>(
      plan, p == 1 || p == 2 ? 4 : 24,
      [&](std::int64_t out, std::int64_t width, const Offsets& start) {
        const PerColumn<T> slope(plan, width, [&](std::int64_t c) { return dy[out + c]; });
        const PerColumn<T> norm(plan, width, [&](std::int64_t c) { return y[out + c]; });
        write_group(plan, start, width, dx, add, [&](std::int64_t at, std::int64_t n, T* to) {
          norm_gradients(x + at, p, slope.of, norm.of, n, to);
        });
      },
      kWideColumns);
}

template <class T>
void arg_extreme_grad(const ReducePlan& plan, const T* dy, const std::int64_t* index, T* dx, bool add) {
  // dx_i = dy at the chosen element, else 0
  for_each_group<T>(plan, 1, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    const T nothing = 0;
    if (!add)
      for_each_stretch(plan, start, width,
                       [&](std::int64_t at, std::int64_t n) { put_row(&nothing, 0, dx + at, n, false); });
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t chosen = index[out + c], block = chosen / plan.rows.extent;
      const Offsets o = offsets_of(plan.reduced, plan.reduced_rank, block);
      dx[start.at[0] + o.at[0] + (chosen - block * plan.rows.extent) * plan.rows.stride[0] + c] += dy[out + c];
    }
  });
}

#define TAPER_INSTANTIATE_GRADIENTS(T)                                                                 \
  template void reduce_sum_grad<T>(const ReducePlan&, const T*, T*, bool);                             \
  template void reduce_mean_grad<T>(const ReducePlan&, const T*, T*, bool);                            \
  template void reduce_var_grad<T>(const ReducePlan&, double, const T*, const T*, T*, bool);           \
  template void reduce_std_grad<T>(const ReducePlan&, double, const T*, const T*, const T*, T*, bool); \
  template void reduce_prod_grad<T>(const ReducePlan&, const T*, const T*, T*, bool);                  \
  template void reduce_extreme_grad<T>(const ReducePlan&, const T*, const T*, const T*, T*, bool);     \
  template void arg_extreme_grad<T>(const ReducePlan&, const T*, const std::int64_t*, T*, bool);       \
  template void reduce_logsumexp_grad<T>(const ReducePlan&, const T*, const T*, const T*, T*, bool);   \
  template void reduce_norm_grad<T>(const ReducePlan&, double, const T*, const T*, const T*, T*, bool)
TAPER_INSTANTIATE_GRADIENTS(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_GRADIENTS(double);
#endif

}  // namespace taper::kernels
