#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/lanes.hpp"

namespace taper::kernels {

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
  // lane_j = x_j + x_{j+16} + x_{j+32} + ..., in registers
  constexpr int kVectors = kLanes / kDoubles;
  Doubles sum[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sum[v] = ElementsAt{v * kDoubles}(x);
  const T* const end = x + n / kLanes * kLanes;
  for (x += kLanes; x != end; x += kLanes)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[v] += ElementsAt{v * kDoubles}(x);
  if (n % kLanes == 0) return fold(sum);
  double lane[kLanes];
  std::memcpy(lane, sum, sizeof lane);
  // s = sum of the lanes and of the n % 16 elements left
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
    if ((n & half) != 0) {
      for (int j = 0; j < half; ++j) lane[j] += static_cast<double>(x[j]);
      x += half;
    }
  }
  return lane[0];
}

/// Runs up to this length have a loop of their own in `sum_runs`.
inline constexpr std::int64_t kShortRun = 5;

/// y_{i * ys} = x_{i * xs} + ... + x_{i * xs + K - 1}
template <int K, class T>
void sum_short_runs(const T* x, std::int64_t xs, std::int64_t n, double* y, std::int64_t ys) {
  const auto sum = [x](std::int64_t at) {
    double s = static_cast<double>(x[at]);
    for (int j = 1; j < K; ++j) s += static_cast<double>(x[at + j]);
    return s;
  };
  if (xs == 1 && ys == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = sum(i);
  } else if (xs == 2 && ys == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = sum(2 * i);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i * ys] = sum(i * xs);
  }
}

/// y[i * ys] = sum_row(x + i * xs, k) for i < n, with the same bits; k >= 1.
template <class T>
void sum_runs(const T* x, std::int64_t k, std::int64_t xs, std::int64_t n, double* y, std::int64_t ys) {
  static_assert(kShortRun == 5);
  switch (k) {
    case 1:
      return sum_short_runs<1>(x, xs, n, y, ys);
    case 2:
      return sum_short_runs<2>(x, xs, n, y, ys);
    case 3:
      return sum_short_runs<3>(x, xs, n, y, ys);
    case 4:
      return sum_short_runs<4>(x, xs, n, y, ys);
    case 5:
      return sum_short_runs<5>(x, xs, n, y, ys);
    default:
      for (std::int64_t i = 0; i < n; ++i) y[i * ys] = sum_row(x + i * xs, k);
  }
}

}  // namespace taper::kernels
