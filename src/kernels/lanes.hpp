#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/vectors.hpp"

// Sums of terms in double, in a fixed number of lanes that fill the processor's vectors: the order of the additions
// depends on the number of terms alone.

namespace taper::kernels {

/// Some doubles side by side, and as many floats.
inline constexpr int kDoubles = kVectorWidth / 8;
using Doubles = Vector<double>;
using AsManyFloats = Several<float, kDoubles>::type;

// GCC 12 would convert the halves one by one, and takes what has no mask for a use of what is not initialised.
[[gnu::always_inline]] inline Doubles as_doubles(AsManyFloats v) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(0xff, v);
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(v);
#else
  return __builtin_convertvector(v, Doubles);
#endif
}
[[gnu::always_inline]] inline AsManyFloats as_floats(const Doubles& v) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtpd_ps(0xff, v);
#elif defined(__AVX2__)
  return _mm256_cvtpd_ps(v);
#else
  return __builtin_convertvector(v, AsManyFloats);
#endif
}

template <int... I>
[[gnu::always_inline]] inline Vector<float> joined(AsManyFloats low, AsManyFloats high,
                                                   std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(low, high, I...);
}
/// The vector of two halves.
[[gnu::always_inline]] inline Vector<float> joined(AsManyFloats low, AsManyFloats high) {
  return joined(low, high, std::make_integer_sequence<int, 2 * kDoubles>());
}

/// What `f` makes of vectors of floats in double, a half of each at a time.
template <class F, class... V>
[[gnu::always_inline]] inline Vector<float> in_doubles(const F& f, const V&... x) {
  return joined(as_floats(f(as_doubles(half_of<0>(x))...)), as_floats(f(as_doubles(half_of<1>(x))...)));
}

/// The elements from `i` on: what a term reads by `at(x)` where it means x[i].
struct ElementsAt {
  std::int64_t i;
  [[gnu::always_inline]] Doubles operator()(const double* x) const {
    Doubles v;
    std::memcpy(&v, x + i, sizeof v);
    return v;
  }
  [[gnu::always_inline]] Doubles operator()(const float* x) const {
    AsManyFloats v;
    std::memcpy(&v, x + i, sizeof v);
    return as_doubles(v);
  }
};

/// Element `i` alone.
struct ElementAt {
  std::int64_t i;
  template <class T>
  [[gnu::always_inline]] double operator()(const T* x) const {
    return static_cast<double>(x[i]);
  }
};

/// Two sums of one pass.
struct SumPair {
  double first = 0, second = 0;

  SumPair& operator+=(const SumPair& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};

/// The lanes of some vectors of doubles joined to one number, folded to the lower half again and again.
template <class V, int N, class Join>
[[gnu::always_inline]] inline double fold(V (&all)[N], const Join& join) {
#pragma GCC unroll 4
  for (int half = N / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int v = 0; v < half; ++v) all[v] = join(all[v], all[v + half]);
  if constexpr (sizeof(V) > 16) {
    decltype(half_of<0>(all[0])) rest[] = {join(half_of<0>(all[0]), half_of<1>(all[0]))};
    return fold(rest, join);
  } else {
    return join(all[0][0], all[0][1]);
  }
}

/// The sum of some vectors' lanes.
template <int N>
[[gnu::always_inline]] inline double fold(Doubles (&sum)[N]) {
  return fold(
      sum, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}

/// Sums in 16 lanes, which are folded to 8, 4, 2 and 1 at the end.
class LaneSum {
 public:
  static constexpr int kLanes = 16, kVectors = kLanes / kDoubles;

  [[gnu::always_inline]] LaneSum() {
    // One by one: GCC 12 would fill all of them in memory.
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum_[v] = Doubles{};
  }
  [[gnu::always_inline]] Doubles& operator[](int v) { return sum_[v]; }
  [[gnu::always_inline]] double total() { return fold(sum_); }

 private:
  Doubles sum_[kVectors];
};

/// The sum of the terms 0 .. n - 1 of which `term(at)` gives one or several.
template <class Term>
inline double sum_of(std::int64_t n, const Term& term) {
  LaneSum sum;
  std::int64_t i = 0;
  for (; i + LaneSum::kLanes <= n; i += LaneSum::kLanes)
#pragma GCC unroll 8
    for (int v = 0; v < LaneSum::kVectors; ++v) sum[v] += term(ElementsAt{i + v * kDoubles});
  double rest = 0;
  for (; i < n; ++i) rest += term(ElementAt{i});
  return sum.total() + rest;
}

}  // namespace taper::kernels
