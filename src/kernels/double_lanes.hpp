#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/vectors.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace taper::kernels {

/// `N` doubles side by side, a power of two, in as many registers as they need, which must not change what is computed;
/// for loops that the compiler does not vectorise by itself. A register has `kMost` of them.
template <int N, int kMost = kLanes<double>, bool kOneRegister = (N <= kMost)>
struct Lanes {
  using Half = Lanes<N / 2, kMost>;
  Half low, high;

  template <class T>
  static Lanes load(const T* x) {
    return {Half::load(x), Half::load(x + N / 2)};
  }
  template <class T>
  void store(T* y) const {
    low.store(y), high.store(y + N / 2);
  }
  Lanes& operator+=(const Lanes& b) { return low += b.low, high += b.high, *this; }
  Lanes& operator*=(const Lanes& b) { return low *= b.low, high *= b.high, *this; }
  /// Adds the elements at x.
  template <class T>
  Lanes& add(const T* x) {
    return low.add(x), high.add(x + N / 2), *this;
  }
  /// Lane j and lane j + N / 2 added.
  Half folded() const {
    Half sum = low;
    return sum += high;
  }
};

template <int N, int kMost>
struct Lanes<N, kMost, true> {
  using Vector = typename Several<double, N>::type;
  Vector v;

  static Lanes load(const double* x) {
    Lanes a;
    std::memcpy(&a.v, x, sizeof(a.v));
    return a;
  }
  static Lanes load(const float* x) {
    // GCC 12 converts vectors in halves, or element by element.
#if defined(__AVX512F__)
    if constexpr (N == 8) return {Vector(_mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(x)))};
#endif
#if defined(__AVX2__)
    if constexpr (N == 4) return {_mm256_cvtps_pd(_mm_loadu_ps(x))};
#endif
#if defined(__SSE2__)
    if constexpr (N == 2) {
      double two;
      std::memcpy(&two, x, sizeof two);
      return {_mm_cvtps_pd(_mm_castpd_ps(_mm_set_sd(two)))};
    }
#endif
    typename Several<float, N>::type floats;
    std::memcpy(&floats, x, sizeof(floats));
    return {__builtin_convertvector(floats, Vector)};
  }
  void store(double* y) const { std::memcpy(y, &v, sizeof(v)); }
  void store(float* y) const {
#if defined(__AVX512F__)
    if constexpr (N == 8) return _mm256_storeu_ps(y, _mm512_maskz_cvtpd_ps(0xff, v));
#endif
#if defined(__AVX2__)
    if constexpr (N == 4) return _mm_storeu_ps(y, _mm256_cvtpd_ps(v));
#endif
    const auto floats = __builtin_convertvector(v, typename Several<float, N>::type);
    std::memcpy(y, &floats, sizeof(floats));
  }
  Lanes& operator+=(const Lanes& b) { return v += b.v, *this; }
  Lanes& operator*=(const Lanes& b) { return v *= b.v, *this; }
  template <class T>
  Lanes& add(const T* x) {
#if defined(__AVX512F__)
    // Times one, where products are added: where sums are, floats are converted.
    if constexpr (N == 4 && sizeof(T) == sizeof(float))
      return v = Vector(_mm256_fmadd_pd(__m256d(load(x).v), _mm256_set1_pd(1), __m256d(v))), *this;
    if constexpr (N == 8 && sizeof(T) == sizeof(float))
      return v = Vector(_mm512_fmadd_pd(__m512d(load(x).v), _mm512_set1_pd(1), __m512d(v))), *this;
#endif
    return *this += load(x);
  }
  Lanes<N / 2, kMost> folded() const {
    if constexpr (N > 2)
      return {half_of<0>(v) + half_of<1>(v)};
    else
      return {v[0] + v[1]};
  }
};

template <int kMost>
struct Lanes<1, kMost, true> {
  double v;

  template <class T>
  static Lanes load(const T* x) {
    return {static_cast<double>(*x)};
  }
  template <class T>
  void store(T* y) const {
    *y = static_cast<T>(v);
  }
  Lanes& operator+=(const Lanes& b) { return v += b.v, *this; }
  Lanes& operator*=(const Lanes& b) { return v *= b.v, *this; }
  template <class T>
  Lanes& add(const T* x) {
    return *this += load(x);
  }
};

}  // namespace taper::kernels
