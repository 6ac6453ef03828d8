#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/lanes.hpp"
#include "kernels/sum_row.hpp"
#include "kernels/vector_base.hpp"
#include "kernels/vectors.hpp"

// Products and sums of squares of contiguous elements, in the lanes of vectors of doubles.

namespace taper::kernels {

/// `nothing` with the `n` elements at x by `fold_in(all, x_i)`; in the lanes of some vectors of doubles, which are
/// joined; kTurn vectors a turn.
template <int kTurn, class T, class FoldIn, class Join>
[[gnu::always_inline]] inline double fold_run(const T* x, std::int64_t n, double nothing, const FoldIn& fold_in,
                                              const Join& join) {
  constexpr int kVectors = std::min(kTurn, 4);
  Doubles all[kVectors];
#pragma GCC unroll 4
  for (Doubles& lanes : all) lanes = Doubles{} + nothing;
  const T* const end = x + n;
  for (; end - x >= kTurn * kDoubles; x += kTurn * kDoubles)
#pragma GCC unroll 8
    for (int v = 0; v < kTurn; ++v) all[v % kVectors] = fold_in(all[v % kVectors], ElementsAt{v * kDoubles}(x));
  if constexpr (kTurn > 1)
    for (; end - x >= kDoubles; x += kDoubles) all[0] = fold_in(all[0], ElementsAt{0}(x));
  double rest = nothing;
  for (; x != end; ++x) rest = fold_in(rest, static_cast<double>(*x));
  return join(fold(all, join), rest);
}

/// The sum of (x_i - mean)^2.
template <class T>
[[gnu::noinline]] double squares_of_run(const T* x, std::int64_t n, double mean) {
  constexpr int kTurn = kVectorWidth > 16 ? 4 : 1;
  return fold_run<kTurn>(
      x, n, 0,
      [=](auto sum, auto v) __attribute__((always_inline)) {
        const auto d = v - mean;
        return fused(d, d, sum);
      },
      [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}

/// The sum of x_i^2.
template <class T>
double squares_of_run(const T* x, std::int64_t n) {
  if constexpr (kVectorWidth == 16 || sizeof(T) != sizeof(float)) {  // the library is kept small
    return squares_of_run(x, n, 0);
  } else {
    // Four vectors a sum: some processors convert and add more slowly beside `fused`, and a row's end waits for every
    // sum that is to be joined.
    Doubles sum{};
    std::int64_t i = 0;
    for (; i + 4 * kDoubles <= n; i += 4 * kDoubles) {
      Doubles some{};
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const Doubles a = ElementsAt{i + v * kDoubles}(x);
        some = v == 0 ? a * a : fused(a, a, some);
      }
      sum += some;
    }
    for (; i + kDoubles <= n; i += kDoubles) {
      const Doubles a = ElementsAt{i}(x);
      sum = fused(a, a, sum);
    }
    double rest = 0;
    for (; i < n; ++i) rest += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    Doubles all[] = {sum};
    return fold(all) + rest;
  }
}

/// The product of the `n` elements at x.
template <class T>
[[gnu::noinline]] double product_of_run(const T* x, std::int64_t n) {
  const auto times = [](const auto& a, const auto& b) __attribute__((always_inline)) { return a * b; };
  constexpr int kTurn = kVectorWidth == 16 ? 1 : sizeof(T) == sizeof(float) ? 8 : 4;
  return fold_run<kTurn>(x, n, 1, times, times);
}

}  // namespace taper::kernels
