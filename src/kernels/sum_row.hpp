#pragma once

#include <cstdint>

#include "kernels/double_lanes.hpp"
#include "kernels/loop_hints.hpp"

namespace taper::kernels {

/// The lanes that `sum_row` takes; shorter rows are summed in order.
inline constexpr int kRowLanes = 16;

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
  constexpr int kLanes = kRowLanes;
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

/// y_i = x_i + x_{i + step} + ... + x_{i + (terms - 1) step} for i < N, in that order.
template <int N, class T>
[[gnu::always_inline]] inline void sum_places(const T* x, std::int64_t step, std::int64_t terms, double* y) {
  auto sum = Lanes<N>::load(x);
  for (std::int64_t t = 1; t < terms; ++t) sum += Lanes<N>::load(x += step);
  sum.store(y);
}

/// The same for i < n.
template <class T>
void sum_places(const T* x, std::int64_t step, std::int64_t terms, std::int64_t n, double* y) {
  std::int64_t i = 0;
  constexpr int kSome = kVectorWidth / 8;
  for (; i + kSome <= n; i += kSome) sum_places<kSome>(x + i, step, terms, y + i);
  for (; i < n; ++i) sum_places<1>(x + i, step, terms, y + i);
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
  constexpr std::int64_t kLanes = kRowLanes, kBlock = 512;
  double lane[kBlock + kLanes];
  for (std::int64_t i = 0; i < n; i += kBlock, x += kBlock, y += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    std::int64_t left = k / kLanes * kLanes;  // where the elements left over begin
    sum_places(x, kLanes, k / kLanes, count + kLanes - 1, lane);
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
      fold_runs(lane, half, (k & half) != 0 ? x + left : static_cast<const T*>(nullptr), count + half - 1,
                half == 1 ? y : lane);
      left += k & half;
    }
  }
}

/// y_i = sum_row(x + i, k) for i < n, with the same bits; k >= 1. `x` and `y` do not overlap.
template <class T>
void sum_runs(const T* x, std::int64_t k, std::int64_t n, double* y) {
  if (k < kRowLanes) return sum_places(x, 1, k, n, y);
  sum_long_runs(x, k, n, y);
}

}  // namespace taper::kernels
