#include <algorithm>
#include <cmath>

#include "kernels/reduce.hpp"
#include "kernels/reduce_driver.hpp"
#include "kernels/vector_math.hpp"

namespace taper::kernels {

namespace {

/// dx_i = factor(i) dy / (number of equals) where key(i) is y, else 0; NaN is taken for equal to NaN.
template <class T, class Key, class Factor>
void spread_over_equals(const ReducePlan& plan, const T* dy, const T* y, T* dx, bool add, const Key& key,
                        const Factor& factor) {
  const auto chosen = [&](std::int64_t o, std::int64_t i) {
    return key(i) == y[o] || (std::isnan(key(i)) && std::isnan(y[o]));
  };
  for_each_group(plan, 2, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    std::int64_t equals[kReduceColumns] = {};
    for_each_element(plan, start, width,
                     [&](std::int64_t c, std::int64_t i, std::int64_t) { equals[c] += chosen(out + c, i) ? 1 : 0; });
    write_group(plan, start, width, dx, add, [&](std::int64_t c, std::int64_t i) {
      return chosen(out + c, i) ? factor(i) * dy[out + c] / static_cast<T>(equals[c]) : T(0);
    });
  });
}

/// to_i = from_i, or to_i += from_i; one value for all i where `step` is 0.
template <class T>
[[gnu::noinline]] void put_row(const T* from, std::int64_t step, T* to, std::int64_t n, bool add) {
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

/// dx_i = dy / divisor
template <class T>
void spread_quotients(const ReducePlan& plan, const T* dy, T divisor, T* dx, bool add) {
  if (in_runs(plan))
    return for_each_run(plan, dx, [=, n = plan.rows.extent](std::int64_t o, T* run) {
      const T value = dy[o] / divisor;
      put_row(&value, 0, run, n, add);
    });
  for_each_group(plan, 1, [=, &plan](std::int64_t out, std::int64_t width, const Offsets& start) {
    T value[kReduceColumns];
    for (std::int64_t c = 0; c < width; ++c) value[c] = dy[out + c] / divisor;
    const bool run = width == 1 && plan.rows.stride[0] == 1;
    for_each_block(plan, start, [&](const Offsets& o, std::int64_t) {
      const std::int64_t rows = run ? 1 : plan.rows.extent;
      for (std::int64_t j = 0; j < rows; ++j)
        put_row(value, run ? 0 : 1, dx + o.at[0] + j * plan.rows.stride[0], run ? plan.rows.extent : width, add);
    });
  });
}

/// dx_i = 2 (x_i - mean) / divisor dy, of the variance; of its root y, if there is one, divided by 2 y.
template <class T>
void deviation_grad(const ReducePlan& plan, double correction, const T* dy, const T* x, const T* y, T* dx, bool add) {
  const double divisor = degrees_of_freedom(plan, correction);
  for_each_group(plan, 3, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    double mean[kReduceColumns], slope[kReduceColumns];
    mean_group(plan, start, width, mean, x);
    for (std::int64_t c = 0; c < width; ++c) {
      const double deviation = y != nullptr ? static_cast<double>(y[out + c]) : 0.5;
      slope[c] = (deviation == 0 ? 0 : static_cast<double>(dy[out + c]) / deviation) / divisor;
    }
    write_group(plan, start, width, dx, add, [x, &slope, &mean](std::int64_t c, std::int64_t i) {
      return T(slope[c] * (static_cast<double>(x[i]) - mean[c]));
    });
  });
}

}  // namespace

template <class T>
void reduce_sum_grad(const ReducePlan& plan, const T* dy, T* dx, bool add) {
  spread_quotients(plan, dy, T(1), dx, add);
}

template <class T>
void reduce_mean_grad(const ReducePlan& plan, const T* dy, T* dx, bool add) {
  spread_quotients(plan, dy, static_cast<T>(plan.count), dx, add);
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
void reduce_prod_grad(const ReducePlan& plan, const T* dy, const T* x, T* dx, bool add) {
  // dx_i = dy times the product of the others, which is 0 beside a zero
  for_each_group(plan, 2, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    double others[kReduceColumns];
    std::int64_t zeros[kReduceColumns] = {};
    for (std::int64_t c = 0; c < width; ++c) others[c] = 1;
    for_each_element(plan, start, width, [&](std::int64_t c, std::int64_t i, std::int64_t) {
      x[i] == 0 ? void(++zeros[c]) : void(others[c] *= static_cast<double>(x[i]));
    });
    write_group(plan, start, width, dx, add, [&](std::int64_t c, std::int64_t i) {
      const double rest = zeros[c] - (x[i] == 0 ? 1 : 0) > 0 ? 0.0
                          : x[i] == 0                        ? others[c]
                                                             : others[c] / static_cast<double>(x[i]);
      return T(static_cast<double>(dy[out + c]) * rest);
    });
  });
}

template <class T>
void reduce_extreme_grad(const ReducePlan& plan, const T* dy, const T* x, const T* y, T* dx, bool add) {
  // dx_i = dy / (number of equals) where x_i = y, else 0
  spread_over_equals(
      plan, dy, y, dx, add, [x](std::int64_t i) { return x[i]; }, [](std::int64_t) { return T(1); });
}

template <class T>
void reduce_logsumexp_grad(const ReducePlan& plan, const T* dy, const T* x, const T* y, T* dx, bool add) {
  // dx_i = e^(x_i - y) dy
  spread(plan, 18, dx, add, [=](std::int64_t o, std::int64_t i) { return dy[o] * vector_exp(x[i] - y[o]); });
}

template <class T>
void reduce_norm_grad(const ReducePlan& plan, double p, const T* dy, const T* x, const T* y, T* dx, bool add) {
  const auto sign = [](T v) { return T((v > 0) - (v < 0)); };
  if (p == 0) {
    spread(plan, 1, dx, add, [](std::int64_t, std::int64_t) { return T(0); });
  } else if (p == 1) {
    // dx_i = sign(x_i) dy
    spread(plan, 2, dx, add, [=](std::int64_t o, std::int64_t i) { return sign(x[i]) * dy[o]; });
  } else if (p == 2) {
    // dx_i = x_i / y dy
    spread(plan, 4, dx, add, [=](std::int64_t o, std::int64_t i) { return y[o] == 0 ? T(0) : x[i] * (dy[o] / y[o]); });
  } else if (std::isinf(p)) {
    // dx_i = sign(x_i) dy / (number of equals) where |x_i| = y
    spread_over_equals(
        plan, dy, y, dx, add, [x](std::int64_t i) { return std::abs(x[i]); },
        [=](std::int64_t i) { return sign(x[i]); });
  } else {
    // dx_i = sign(x_i) (|x_i| / y)^(p-1) dy
    spread(plan, 24, dx, add, [=](std::int64_t o, std::int64_t i) {
      if (x[i] == 0 || y[o] == 0) return T(0);
      return sign(x[i]) * T(std::pow(std::abs(static_cast<double>(x[i])) / static_cast<double>(y[o]), p - 1)) * dy[o];
    });
  }
}

template <class T>
void arg_extreme_grad(const ReducePlan& plan, const T* dy, const std::int64_t* index, T* dx, bool add) {
  // dx_i = dy at the chosen element, else 0
  for_each_group(plan, 1, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    for_each_element(plan, start, width, [&](std::int64_t c, std::int64_t i, std::int64_t j) {
      const T d = j == index[out + c] ? dy[out + c] : T(0);
      dx[i] = add ? dx[i] + d : d;
    });
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
