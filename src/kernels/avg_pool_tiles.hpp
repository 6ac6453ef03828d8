#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/avg_pool_loops.hpp"
#include "kernels/avg_pool_uneven.hpp"
#include "kernels/ceil_div.hpp"
#include "kernels/parallel.hpp"

/// Average pools of few elements side by side, that cut memory without a rest: nothing is listed for them; for
/// avg_pool.cpp alone. What they compute has the bits of other loops.
namespace taper::kernels::average {

/// Windows of so many elements at most have loops, and gradients of so many.
inline constexpr std::int64_t kTileMost = 4, kSpreadMost = 16;

/// y_i = (x_{k i} + ... + x_{k i + k - 1}) / divisor for i < n, 2 <= k <= kTileMost
inline void average_tiles(const float* x, std::int64_t n, std::int64_t k, double divisor, bool is_far, bool streams,
                          float* y) {
  constexpr std::int64_t kWidth = kLanes<float>;
  auto* const sum = k == 2   ? sum_beside<2, 2, float, float>
                    : k == 3 ? sum_beside<3, 3, float, float>
                             : sum_beside<4, 4, float, float>;
  alignas(kVectorWidth) float one[2 * kWidth], last[(kTileMost + 1) * kWidth];
  Factors<float>::set_all(one, divisor);
  const std::int64_t whole = n / kWidth * kWidth, rest = n - whole;
  Line<float, float> line{x, y, one};
  if (whole > 0)
    (kVectorWidth == 32 && streams && k == 2 ? sum_beside<2, 2, float, float, true> : sum)(&line, 1, whole, 0,
                                                                                           is_far ? far_ahead() : 0);
  if (rest == 0) return;
  // The last windows fill no vector, and nothing may be read behind them.
  clear(last, k * kWidth);
  copy_run(x + k * whole, k * rest, last);
  line = {last, y + whole, one};
  sum(&line, 1, rest, 0, 0);
}

#if defined(__AVX2__) && defined(__FMA__)
inline constexpr bool kHasTiles = true;

/// dx_{k i}, ..., dx_{k i + k - 1} = dy_i / divisor for i < n, 2 <= k <= kSpreadMost; past the caches if it `streams`
[[gnu::noinline]] inline void spread_tiles(const float* dy, std::int64_t n, std::int64_t k, double divisor,
                                           bool streams, float* dx) {
  constexpr std::int64_t kWidth = kLanes<float>;
  using Places = BitsOf<Vector<float>>;
  alignas(kVectorWidth) float one[2 * kWidth];
  Factors<float>::set_all(one, divisor);
  const auto factor = Factors<float>::at(one, 0);
  // Vector v of k takes gradients floor((v lanes + l) / k) in its lanes l.
  Places from[kSpreadMost];
  for (std::int64_t v = 0; v < k; ++v)
    from[v] = reinterpret_cast<Places>(quotients(some_from<Ints>(v * kWidth, k * kWidth), 1, 0, k));
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Vector<float> g = factor.times(load(dy + i));
    for (std::int64_t v = 0; v < k; ++v, dx += kWidth) {
      const Vector<float> copies = permuted(g, from[v]);
      if (streams) [[unlikely]]
        stream<float>(copies, dx);
      else
        store<float>(copies, dx);
    }
  }
  if (i == n) return;
  const Vector<float> g = factor.times(load_first(dy + i, n - i));
  std::int64_t left = k * (n - i);
  for (std::int64_t v = 0; left > 0; ++v, left -= kWidth, dx += kWidth)
    store_some<float>(permuted(g, from[v]), left, dx);
}
#else
inline constexpr bool kHasTiles = false;  // the baseline is kept small

inline void spread_tiles(const float*, std::int64_t, std::int64_t, double, bool, float*) {}
#endif

/// The averages of n such windows, or the gradients of their elements.
inline void pool_tiles(std::int64_t n, std::int64_t k, double divisor, bool backward, const float* x, float* y) {
  constexpr std::int64_t kWidth = kLanes<float>;
  const double bytes = double(n) * double(k) * sizeof(float), filled = backward ? bytes : double(n) * sizeof(float);
  const bool is_far = bytes >= kFarRead;
  const bool streams =
      filled >= static_cast<double>((backward ? spread_times : 1) * beyond_caches) && lanes_until_aligned(y) == 0;
  // Whole vectors of windows, so that what is filled is aligned.
  parallel_for(ceil_div(n, kWidth), (k + 1) * kWidth, [=](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = first * kWidth, count = std::min(n, last * kWidth) - begin;
    if (!backward)
      average_tiles(x + k * begin, count, k, divisor, is_far, streams, y + begin);
    else
      spread_tiles(x + begin, count, k, divisor, streams, y + k * begin);
    if (streams) end_stream();
  });
}

}  // namespace taper::kernels::average
