#pragma once

#include <cstdint>

#include "kernels/parallel.hpp"
#include "kernels/pool_lanes.hpp"
#include "kernels/product.hpp"
#include "kernels/sum_run.hpp"

/// Average pools whose windows cut memory into runs; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// Float32 runs that are summed beside each other, which those that are summed in order are.
inline constexpr std::int64_t kBesideRuns = 64;

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor
template <class T>
void forward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  parallel_for(runs, n, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += kBesideRuns) {
      double sum[kBesideRuns];
      const std::int64_t count = std::min(kBesideRuns, last - i);
      if (sizeof(T) == sizeof(float) && n > 0 && n < kRowLanes) {
        T turned[kRowLanes * kBesideRuns];
        pack_transposed(x + i * n, n, count, n, turned, kBesideRuns);
        sum_places(turned, kBesideRuns, n, count, sum);
      } else {
        for (std::int64_t c = 0; c < count; ++c) sum[c] = sum_run(x + (i + c) * n, n);
      }
      for (std::int64_t c = 0; c < count; ++c) y[i + c] = static_cast<T>(sum[c] / divisor);
    }
  });
}

/// dx_i = value for i < n, or += with `add`
template <class T>
[[gnu::noinline]] void fill_run(T value, std::int64_t n, bool add, T* dx) {
  const Vec<T> all = Vec<T>{} + value;
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store<T>(add ? load<T>(dx + i) + all : all, dx + i);
  if (i < n) store_first<T>(add ? load_first<T>(dx + i, n - i) + all : all, n - i, dx + i);
}

/// dx_{i n}, ..., dx_{i n + n - 1} = dy_i / divisor
template <class T>
void backward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* dy, T* dx, bool add) {
  parallel_for(runs, n, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      fill_run(static_cast<T>(static_cast<double>(dy[i]) / divisor), n, add, dx + i * n);
  });
}

}  // namespace taper::kernels::average
