#pragma once

#include <cstdint>

#include "kernels/double_lanes.hpp"
#include "kernels/loop_hints.hpp"

namespace taper::kernels {

/// The sum of the lanes and of the n % (2 N) elements left over at `x`.
template <int N, class T>
inline double fold_row(Lanes<N> s, const T* x, std::int64_t n) {
  if ((n & N) != 0) {
    s += Lanes<N>::load(x);
    x += N;
  }
  if constexpr (N == 1)
    return s.v;
  else
    return fold_row<N / 2>(s.folded(), x, n);
}

/// The sum of the `n` contiguous elements at `x`, in double; 0 when there are none.
///
/// The order of the additions depends on `n` alone and holds on every instruction set, so all that average
/// one run of elements (pooling windows, `mean`, `sum`) agree bit for bit: below 16 elements from left to
/// right; from 16 on in 16 lanes, element `i` in lane `i % 16`, which are then folded to 8, 4, 2 and 1, and
/// each fold takes in as many of the elements left over as it has lanes. One element comes back unchanged,
/// -0 too.
template <class T>
inline double sum_row(const T* x, std::int64_t n) {
  constexpr int kLanes = 16;
  if (n <= 0) return 0.0;
  // s = ((x_0 + x_1) + x_2) + ...
  if (n < kLanes) {
    double s = static_cast<double>(x[0]);
    for (std::int64_t i = 1; i < n; ++i) s += static_cast<double>(x[i]);
    return s;
  }
  // lane_j = x_j + x_{j+16} + x_{j+32} + ...
  auto lanes = Lanes<kLanes>::load(x);
  const T* const end = x + n / kLanes * kLanes;
  for (x += kLanes; x != end; x += kLanes) lanes += Lanes<kLanes>::load(x);
  return fold_row<kLanes / 2>(lanes.folded(), x, n);
}

/// `terms` places `step` apart.
struct Places {
  std::int64_t step, terms;
};

/// y_i = sum over o < outer.terms and t < inner.terms of x_{i + o outer.step + t inner.step} for i < N, in that order.
template <int N, class T>
[[gnu::always_inline]] inline void sum_places(const T* x, Places outer, Places inner, double* y) {
  auto sum = Lanes<N>::load(x);
  for (std::int64_t o = 0;;) {
    const T* place = x;
    for (std::int64_t t = 1; t < inner.terms; ++t) sum += Lanes<N>::load(place += inner.step);
    if (++o == outer.terms) break;
    sum += Lanes<N>::load(x += outer.step);
  }
  sum.store(y);
}

/// The same for i < n.
template <class T>
void sum_places(const T* x, Places outer, Places inner, std::int64_t n, double* y) {
  std::int64_t i = 0;
  for (; i + 4 * kRegisterDoubles <= n; i += 4 * kRegisterDoubles)
    sum_places<4 * kRegisterDoubles>(x + i, outer, inner, y + i);
  for (; i + kRegisterDoubles <= n; i += kRegisterDoubles) sum_places<kRegisterDoubles>(x + i, outer, inner, y + i);
  if (i < n && n >= kRegisterDoubles)
    i = n - kRegisterDoubles, sum_places<kRegisterDoubles>(x + i, outer, inner, y + i);
  for (; n < kRegisterDoubles && i < n; ++i) sum_places<1>(x + i, outer, inner, y + i);
}

/// y_i = lane_i + lane_{i + half}, and + x_i if there is `x`; `y` may be `lane`.
template <class T>
void fold_runs(const double* lane, std::int64_t half, const T* x, std::int64_t n, double* y) {
  if (x) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) y[i] = lane[i] + lane[i + half] + static_cast<double>(x[i]);
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) y[i] = lane[i] + lane[i + half];
  }
}

/// y_i = sum_row(x + i, k), with the same bits, for windows of 16 elements and more: lane j of window i is lane 0 of
/// window i + j, so all windows share their lanes.
template <class T>
void sum_long_runs(const T* x, std::int64_t k, std::int64_t n, double* y) {
  constexpr std::int64_t kLanes = 16, kBlock = 512;
  double lane[kBlock + kLanes];
  for (std::int64_t i = 0; i < n; i += kBlock, x += kBlock, y += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    std::int64_t left = k / kLanes * kLanes;  // where the elements left over begin
    sum_places(x, Places{0, 1}, Places{kLanes, k / kLanes}, count + kLanes - 1, lane);
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
      fold_runs(lane, half, (k & half) != 0 ? x + left : static_cast<const T*>(nullptr), count + half - 1,
                half == 1 ? y : lane);
      left += k & half;
    }
  }
}

/// Runs up to this length have a loop of their own in `sum_runs`.
inline constexpr std::int64_t kShortRun = 5;

/// y_i = x_{i S} + ... + x_{i S + K - 1}
template <int S, int K, class T>
void sum_short_runs(const T* x, std::int64_t n, double* y) {
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = 0; i < n; ++i) {
    const T* const run = x + i * S;
    double s = static_cast<double>(run[0]);
    if constexpr (K > 1) s += static_cast<double>(run[1]);
    if constexpr (K > 2) s += static_cast<double>(run[2]);
    if constexpr (K > 3) s += static_cast<double>(run[3]);
    if constexpr (K > 4) s += static_cast<double>(run[4]);
    y[i] = s;
  }
}

template <int S, class T>
void sum_short_runs(const T* x, std::int64_t k, std::int64_t n, double* y) {
  static_assert(kShortRun == 5);
  if (k == 1) return sum_short_runs<S, 1>(x, n, y);
  if (k == 2) return sum_short_runs<S, 2>(x, n, y);
  if (k == 3) return sum_short_runs<S, 3>(x, n, y);
  if (k == 4) return sum_short_runs<S, 4>(x, n, y);
  sum_short_runs<S, 5>(x, n, y);
}

/// Whether `sum_runs` has loops that take the runs of this length and distance together.
inline bool has_run_loops(std::int64_t k, std::int64_t xs) {
  return xs == 1 || (xs == 2 && k <= kShortRun) || (xs == k && k <= 4);
}

/// y_i = sum_row(x + i * xs, k) for i < n, with the same bits; k >= 1. `x` and `y` do not overlap.
template <class T>
void sum_runs(const T* x, std::int64_t k, std::int64_t xs, std::int64_t n, double* y) {
  if (xs == 1 && k <= kShortRun) return sum_short_runs<1>(x, k, n, y);
  if (xs == 2 && k <= kShortRun) return sum_short_runs<2>(x, k, n, y);
  if (xs == 3 && k == 3) return sum_short_runs<3, 3>(x, n, y);
  if (xs == 4 && k == 4) return sum_short_runs<4, 4>(x, n, y);
  if (xs == 1 && k < 16) return sum_places(x, {0, 1}, {1, k}, n, y);
  if (xs == 1) return sum_long_runs(x, k, n, y);
  for (std::int64_t i = 0; i < n; ++i) y[i] = sum_row(x + i * xs, k);
}

}  // namespace taper::kernels
