#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/double_lanes.hpp"
#include "kernels/loop_hints.hpp"

namespace taper::kernels {

/// The lanes that `sum_row` takes; shorter rows are summed in order. Rows of at least kWideRow elements have twice as
/// many, so that no addition waits for the one before.
inline constexpr int kRowLanes = 16, kWideRow = 192;

/// The lanes folded to M, and the elements of the n % (2 N) at `x` that each fold takes in.
template <int M, int N, int kMost, class T>
[[gnu::always_inline]] inline Lanes<M, kMost> fold_row(Lanes<N, kMost> s, const T* x, std::int64_t n) {
  if ((n & N) != 0) {
    s.add(x);
    x += N;
  }
  if constexpr (N == M)
    return s;
  else
    return fold_row<M>(s.folded(), x, n);
}

/// What a register has of a row's lanes. Sixteen floats that are converted and added take two thirds of the time four
/// at a time (measured on Zen 4) that they take eight at a time.
template <class T>
inline constexpr int kRowRegister = std::min(kLanes<double>, sizeof(T) == sizeof(float) ? 4 : 8);

/// Asks for as much memory as n elements take: `ahead` bytes in front of x, or what is next in several places.
template <class T>
[[gnu::always_inline]] inline void fetch_for(const T* x, std::int64_t n, std::uintptr_t ahead) {
  fetch_run(x, n, ahead);
}
template <class T>
[[gnu::always_inline]] inline void fetch_for(const T*, std::int64_t n, NextPlaces& next) {
  for (std::int64_t i = 0; i < n; i += 2 * kLine / sizeof(T)) next.fetch_two_lines();
}

/// The N lanes of a row of at least as many elements, folded to M. Memory is asked for as `fetch_for` does.
template <int M, int N, class T, class Ahead>
[[gnu::always_inline]] inline auto lanes_of_row(const T* x, std::int64_t n, Ahead ahead) {
  // lane_j = x_j + x_{j+N} + x_{j+2N} + ...
  auto lanes = Lanes<N, kRowRegister<T>>::load(x);
  const T* const end = x + n / N * N;
  // Rows lie behind each other, and converting them keeps the processor from seeing far ahead by itself. Two lines of
  // float32 at a time: processors fetch best for loads that step by no more.
  const auto add = [&] {
    fetch_for(x, N, ahead);
    lanes.add(x);
    x += N;
  };
  x += N;
  if constexpr (N == kRowLanes)
    if (((end - x) & N) != 0) add();
  while (x != end) {
    add();
    if constexpr (N == kRowLanes) add();
  }
  return fold_row<M>(lanes.folded(), x, n);
}

/// `sum_row` of a row of at least kWideRow elements.
template <class T, class Ahead>
[[gnu::always_inline]] inline double sum_wide_row(const T* x, std::int64_t n, const Ahead& ahead) {
  return lanes_of_row<1, 2 * kRowLanes>(x, n, ahead).v;
}

/// The sum of the `n` contiguous elements at `x`, in double; 0 when there are none.
///
/// The order of the additions depends on `n` alone and holds on every instruction set, so all that average
/// one run of elements (pooling windows, `mean`, `sum`) agree bit for bit: below 16 elements from left to
/// right; from 16 on in 16 lanes, element `i` in lane `i % 16`, from kWideRow on in 32, which are then folded to
/// 16, 8, 4, 2 and 1, and each fold takes in as many of the elements left over as it has lanes. One element comes back
/// unchanged, -0 too. `ahead` is as `far_ahead` where rows are read from memory.
template <class T>
inline double sum_row(const T* x, std::int64_t n, std::uintptr_t ahead = 0) {
  if (n <= 0) return 0.0;
  if (n >= kWideRow) return sum_wide_row(x, n, ahead);
  if (n >= kRowLanes) return lanes_of_row<1, kRowLanes>(x, n, ahead).v;
  // s = ((x_0 + x_1) + x_2) + ...
  double s = static_cast<double>(x[0]);
  for (std::int64_t i = 1; i < n; ++i) s += static_cast<double>(x[i]);
  return s;
}

/// The sums of four rows of 16 to kWideRow - 1 elements that follow each other, as `sum_row` takes them; the last lanes
/// of all four are folded at once.
template <class T>
inline void sum_four_rows(const T* x, std::int64_t n, std::uintptr_t ahead, double* sum) {
  using V = Several<double, 4>::type;
  using Elements = typename Several<T, 4>::type;
  const auto lanes = [=](const T* row) __attribute__((always_inline)) {
    return std::bit_cast<V>(lanes_of_row<4, kRowLanes>(row, n, ahead));
  };
  const V a = lanes(x), b = lanes(x + n), c = lanes(x + 2 * n), d = lanes(x + 3 * n);
  // Two lanes of each row, and of that two rows behind.
  V ac = __builtin_shufflevector(a, c, 0, 1, 4, 5) + __builtin_shufflevector(a, c, 2, 3, 6, 7);
  V bd = __builtin_shufflevector(b, d, 0, 1, 4, 5) + __builtin_shufflevector(b, d, 2, 3, 6, 7);
  const T* left = x + n / 4 * 4;
  if ((n & 2) != 0) {
    const auto two = [n](const T* p) __attribute__((always_inline)) {
      return __builtin_convertvector((Elements{p[0], p[1], p[2 * n], p[2 * n + 1]}), V);
    };
    ac += two(left);
    bd += two(left + n);
    left += 2;
  }
  V all = __builtin_shufflevector(ac, bd, 0, 4, 2, 6) + __builtin_shufflevector(ac, bd, 1, 5, 3, 7);
  if ((n & 1) != 0) all += __builtin_convertvector(every<Elements>(left, n), V);
  std::memcpy(sum, &all, sizeof all);
}

/// The same of four rows of 1 to 15 elements, each in order.
inline void sum_four_short_rows(const float* x, std::int64_t n, double* sum) {
  const auto elements = [=](std::int64_t k) __attribute__((always_inline)) {
    const auto v = every<Several<float, 4>::type>(x + k, n);
    float four[4];
    std::memcpy(four, &v, sizeof v);
    return Lanes<4>::load(four);
  };
  auto all = elements(0);
  for (std::int64_t k = 1; k < n; ++k) all += elements(k);
  all.store(sum);
}

/// sum_i = sum_row(x + i n, n, ahead) for i < rows, with the same bits.
template <class T>
void sum_rows(const T* x, std::int64_t n, std::int64_t rows, std::uintptr_t ahead, double* sum) {
  std::int64_t i = 0;
  if constexpr (kLanes<double> >= 4)  // the baseline is kept small
    if (n >= kRowLanes && n < kWideRow)
      for (; i + 4 <= rows; i += 4) sum_four_rows(x + i * n, n, ahead, sum + i);
  for (; i < rows; ++i) sum[i] = sum_row(x + i * n, n, ahead);
}

/// Calls `body(N, i)` for columns [i, i + N) that cover n of them: four vectors of doubles at a time, one, and one
/// column, N being the type of a constant.
template <class Body>
[[gnu::always_inline]] inline void for_lanes(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  constexpr int kSome = kVectorWidth / 8;
  if constexpr (kVectorWidth > 16)  // the baseline is kept small
    for (; i + 4 * kSome <= n; i += 4 * kSome) body(std::integral_constant<int, 4 * kSome>(), i);
  for (; i + kSome <= n; i += kSome) body(std::integral_constant<int, kSome>(), i);
  for (; i < n; ++i) body(std::integral_constant<int, 1>(), i);
}

/// y_i = x_i + x_{i + step} + ... + x_{i + (terms - 1) step}, in that order, or their product, for i < n.
template <bool kMultiplies, class T, class Y>
[[gnu::noinline]] void join_places(const T* x, std::int64_t step, std::int64_t terms, std::int64_t n, Y* y) {
  for_lanes(
      n, [=](auto lanes, std::int64_t i) __attribute__((always_inline)) {
        const T* at = x + i;
        auto all = Lanes<lanes>::load(at);
        for (std::int64_t t = 1; t < terms; ++t) {
          const auto next = Lanes<lanes>::load(at += step);
          if constexpr (kMultiplies)
            all *= next;
          else
            all += next;
        }
        all.store(y + i);
      });
}
template <class T, class Y>
void sum_places(const T* x, std::int64_t step, std::int64_t terms, std::int64_t n, Y* y) {
  join_places<false>(x, step, terms, n, y);
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
