#pragma once

#include <algorithm>
#include <cstring>

#include "base/resample.hpp"
#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"

// Rows resized to twice or half their size, what images mostly are: pairs of elements in vectors.

namespace taper::kernels {

namespace {

/// Whether outputs 2 j and 2 j + 1 are copies of input j or lie a quarter beside it, as `is_nearest` says: what images
/// are mostly resized by.
[[maybe_unused]] TAPER_FOR_SIZE bool doubles(const Resampling& axis) {
  return axis.rule != Resampling::Rule::aligned && axis.out == 2 * axis.in && (axis.step == 0 || axis.step == 0.5);
}

/// Whether output j lies in the middle of inputs 2 j and 2 j + 1.
[[maybe_unused]] TAPER_FOR_SIZE bool halves(const Resampling& axis) {
  return axis.rule == Resampling::Rule::linear && axis.in == 2 * axis.out && (axis.step == 0 || axis.step == 2);
}

/// Whether elements of T have loops of their own for these.
template <class T>
constexpr bool kDoubling = kVectorWidth > 16 && sizeof(T) == sizeof(float);

/// y_2j = y_2j+1 = x_j for j < n, where at(j) are the elements from x_j on: as many as fill a V, and n as many or more.
template <class V, class At>
[[maybe_unused]] void copy_twice(const At& at, std::int64_t n, float* y) {
  constexpr int kAll = sizeof(V) / sizeof(float);
  constexpr auto kEach = std::make_integer_sequence<int, kAll>();
  for (std::int64_t j = 0; j < n; j += kAll) {
    const std::int64_t c = std::min(j, n - kAll);
    const V v = at(c), first = in_turns<0>(v, v, kEach), second = in_turns<1>(v, v, kEach);
    std::memcpy(y + 2 * c, &first, sizeof v);
    std::memcpy(y + 2 * c + kAll, &second, sizeof v);
  }
}
template <class V>
[[maybe_unused]] void copy_twice(const float* x, std::int64_t n, float* y) {
  const auto at = [x](std::int64_t j) __attribute__((always_inline)) {
    V v;
    std::memcpy(&v, x + j, sizeof v);
    return v;
  };
  copy_twice<V>(at, n, y);
}

/// y_2j and y_2j+1 lie a quarter before and behind x_j for j < n, at least kDoubles; x_-1 and x_n are read too.
[[maybe_unused]] inline void blend_twice(const double* x, std::int64_t n, float* y) {
  constexpr auto kEach = std::make_integer_sequence<int, kDoubles>();
  for (std::int64_t j = 0; j < n; j += kDoubles) {
    const std::int64_t c = std::min(j, n - kDoubles);
    const Doubles middle = 0.75 * load(x + c);
    const AsManyFloats before = as_floats(0.25 * load(x + c - 1) + middle),
                       behind = as_floats(middle + 0.25 * load(x + c + 1)), first = in_turns<0>(before, behind, kEach),
                       second = in_turns<1>(before, behind, kEach);
    std::memcpy(y + 2 * c, &first, sizeof first);
    std::memcpy(y + 2 * c + kDoubles, &second, sizeof second);
  }
}

/// The elements x_0, x_2, ... of two vectors (`kFrom` = 0), or x_1, x_3, ...: those of both in turns.
template <int kFrom, int... L>
[[gnu::always_inline]] inline Doubles every_second(const double* x, std::integer_sequence<int, L...>) {
  return __builtin_shufflevector(load(x), load(x + kDoubles), (L / 2 * 2 + kFrom + L % 2 * kDoubles)...);
}
/// What `every_second` put in turns in order.
template <int... L>
[[gnu::always_inline]] inline AsManyFloats in_order(AsManyFloats v, std::integer_sequence<int, L...>) {
  return __builtin_shufflevector(v, v, (L % (kDoubles / 2) * 2 + L / (kDoubles / 2))...);
}

/// dx_j = the sum of what its pair of outputs gathered where these are its copies, else what they and those beside them
/// send to the input that they were blended from; or added to it. One double behind sum_2n may be loaded.
template <class T>
[[gnu::noinline]] void join_pairs(const double* sum, std::int64_t n, bool are_copies, T* dx, bool add) {
  constexpr auto kEach = std::make_integer_sequence<int, kDoubles>();
  std::int64_t j = 0;
  if constexpr (kDoubling<T>)
    for (; j < n && n >= kDoubles && !add; j += kDoubles) {
      j = std::min(j, n - kDoubles);
      const double* const at = sum + 2 * j;
      Doubles all = every_second<0>(at, kEach);
      if (are_copies)
        all += every_second<1>(at, kEach);
      else
        all = 0.25 * every_second<0>(at - 1, kEach) + 0.75 * all + 0.75 * every_second<1>(at, kEach) +
              0.25 * every_second<0>(at + 2, kEach);
      const AsManyFloats v = in_order(as_floats(all), kEach);
      std::memcpy(dx + j, &v, sizeof v);
    }
  for (; j < n; ++j) {
    const double* const at = sum + 2 * j;
    const double all = are_copies ? at[0] + at[1] : 0.25 * at[-1] + 0.75 * at[0] + 0.75 * at[1] + 0.25 * at[2];
    dx[j] = static_cast<T>(add ? static_cast<double>(dx[j]) + all : all);
  }
}

}  // namespace

}  // namespace taper::kernels
