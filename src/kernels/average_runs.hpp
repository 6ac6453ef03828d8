#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/sum_run.hpp"

namespace taper::kernels {

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor, of sums as `sum_run` takes them.
template <class T>
[[gnu::noinline]] void average_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  parallel_for(runs, std::max<std::int64_t>(n, 8), [=](std::int64_t first, std::int64_t last) {
    constexpr std::int64_t kSome = 64;
    for (std::int64_t i = first; i < last; i += kSome) {
      double sum[kSome];
      const std::int64_t count = std::min(kSome, last - i);
      const T* const from = x + i * n;
      if (sizeof(T) == sizeof(float) && n > 0 && n < kRowLanes && count > 4) {
        // Short ones are summed in order, beside each other.
        T turned[kRowLanes * kSome];
        pack_transposed(from, n, count, n, turned, kSome);
        sum_places(turned, kSome, n, count, sum);
      } else if (n <= kLongRun) {
        sum_rows(from, n, count, sum);
      } else {
        for (std::int64_t c = 0; c < count; ++c) sum[c] = sum_run(from + c * n, n);
      }
      for (std::int64_t c = 0; c < count; ++c) y[i + c] = static_cast<T>(sum[c] / divisor);
    }
  });
}

}  // namespace taper::kernels
