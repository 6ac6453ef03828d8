#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __AVX__
#include <immintrin.h>
#endif

#include "kernels/lanes.hpp"

// exp, log and their relatives for float and double, written so that compilers turn a loop over them into vector
// code: no branches, no calls, no tables. A result depends on the argument alone and has the same bits in scalar and
// in vector code for one instruction set, because nothing is reordered and `fused` says what is. Special values are
// those of the standard library; the errors given are the largest measured over all exponents, in units in the last
// place (ulp). Where the standard library is faster in float64, the overload for double is the standard library's.
//
// Sources: e^x of doubles after FreeBSD's msun, log and tanh after S. Moshier's Cephes library, erf after N. Juffa.

namespace taper::kernels {

/// What a function of numbers or of vectors of numbers works on: the type of an element, and integers of the same size.
template <class V>
struct Elements {
  using Type = std::remove_cvref_t<decltype(V{}[0])>;
  using Bits = decltype(V{} < V{});
};
template <>
struct Elements<float> {
  using Type = float;
  using Bits = std::uint32_t;
};
template <>
struct Elements<double> {
  using Type = double;
  using Bits = std::uint64_t;
};
template <class V>
using Element = typename Elements<V>::Type;

/// How the floating type T is stored.
template <class T>
struct Ieee;
template <>
struct Ieee<float> {
  static constexpr int mantissa = 23;
  static constexpr float whole = 12582912;  // 1.5 * 2^23: adding it rounds to a whole number, kept in the low bits
};
template <>
struct Ieee<double> {
  static constexpr int mantissa = 52;
  static constexpr double whole = 6755399441055744;  // 1.5 * 2^52
};

/// 2^n, where `shifted` is n + Ieee<T>::whole and n the exponent of a normal number.
template <class V>
inline V power_of_two(V shifted) {
  using Bits = typename Elements<V>::Bits;
  return std::bit_cast<V>((std::bit_cast<Bits>(shifted) << Ieee<Element<V>>::mantissa) + std::bit_cast<Bits>(V{} + 1));
}

/// a b + c, rounded once where the processor can do that: for numbers and for vectors alike.
inline float fused(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
inline double fused(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
inline Full<float>::type fused(Full<float>::type a, Full<float>::type b, Full<float>::type c) {
#if defined(__AVX512F__)
  return Full<float>::type(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__FMA__)
  return Full<float>::type(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#else
  return a * b + c;
#endif
}
inline Full<double>::type fused(Full<double>::type a, Full<double>::type b, Full<double>::type c) {
#if defined(__AVX512F__)
  return Full<double>::type(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
#elif defined(__FMA__)
  return Full<double>::type(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#else
  return a * b + c;
#endif
}
/// The same where one of the three is the same number for all elements.
template <class V, class B, class C>
inline V fused(V a, B b, C c) {
  return fused(a, V{} + b, V{} + c);
}

/// e^x = 2^n (1 + rest), `shifted` being n + Ieee<T>::whole and rest in [-0.30, 0.42].
template <class V>
struct ExpParts {
  V shifted, rest;
};

template <class V>
inline ExpParts<V> exp_parts(V x) {
  using T = Element<V>;
  const V shifted = fused(x, T(1.44269504088896340736), Ieee<T>::whole), n = shifted - Ieee<T>::whole;
  // x = n ln 2 + r
  if constexpr (sizeof(T) == sizeof(float)) {
    // rest = r + r^2 q(r),  r = high + low,  whose largest error is 3e-9 of e^r
    const V high = fused(n, -6.9314575195e-1f, x), low = n * -1.4286067653e-6f, r = high + low;
    const V cubic =
        fused(fused(fused(V{} + 1.3820669847e-3f, r, 8.3686746657e-3f), r, 4.1668266058e-2f), r, 1.6666521132e-1f);
    return {shifted, high + fused(r * r, fused(cubic, r, 4.9999994040e-1f), low)};
  } else {
    // rest = r - r c / (2 - c),  r = high - low
    const V high = x - n * 6.93147180369123816490e-1, low = n * 1.90821492927058770002e-10, r = high - low, s = r * r;
    const V c =
        r -
        s * (1.66666666666666019037e-1 +
             s * (-2.77777777770155933842e-3 +
                  s * (6.61375632143793436117e-5 + s * (-1.65339022054652515390e-6 + s * 4.13813679705723846039e-8))));
    return {shifted, high - (low - r * c / (2 - c))};
  }
}

/// v 2^n, where `shifted` is n + Ieee<T>::whole and n may be beyond the exponents of normal numbers.
template <class V>
inline V scaled_by_power(V v, V shifted) {
  using T = Element<V>;
  const V n = shifted - Ieee<T>::whole;
#ifdef __AVX512F__
  // GCC 12 takes the unmasked functions for a use of what is not initialised.
  if constexpr (std::is_same_v<V, Full<float>::type>) return V(_mm512_maskz_scalef_ps(0xffff, __m512(v), __m512(n)));
  if constexpr (std::is_same_v<V, Full<double>::type>) return V(_mm512_maskz_scalef_pd(0xff, __m512d(v), __m512d(n)));
#endif
  // 2^n in two factors
  const V half = n * T(0.5) + Ieee<T>::whole;
  return v * power_of_two(half) * power_of_two(n - (half - Ieee<T>::whole) + Ieee<T>::whole);
}

/// e^x: 0.9 ulp. The other functions are for numbers; this one is for vectors too, lane by lane.
template <class V>
inline V vector_exp(V x) {
  using T = Element<V>;
  constexpr bool single = sizeof(T) == sizeof(float);
  const V low = V{} + (single ? T(-104) : T(-746)), high = V{} + (single ? T(89) : T(710));
  x = low > x ? low : x;
  x = high < x ? high : x;
  const auto [shifted, rest] = exp_parts(x);
  return scaled_by_power(1 + rest, shifted);
}

/// e^x - 1 for x <= 0; elsewhere unspecified, NaN for NaN: 1 ulp.
template <class T>
inline T vector_expm1_negative(T x) {
  const T bounded = x < T(-40) ? T(-40) : x;
  const auto [shifted, rest] = exp_parts(bounded);
  const T scale = power_of_two(shifted);
  return x == 0 ? x : scale * rest + (scale - 1);
}

/// log m for m = 1 + r in [sqrt(1/2), sqrt(2)), with n ln 2 added.
inline float log_of_parts(float r, float n) {
  // log m = r - r^2 / 2 + r^3 p,  ln 2 = 0.693359375 - 2.12e-4
  const float s = r * r;
  const float p = (((((((7.0376836292e-2f * r - 1.1514610310e-1f) * r + 1.1676998740e-1f) * r - 1.2420140846e-1f) * r +
                      1.4249322787e-1f) *
                         r -
                     1.6668057665e-1f) *
                        r +
                    2.0000714765e-1f) *
                       r -
                   2.4999993993e-1f) *
                      r +
                  3.3333331174e-1f;
  return r + (r * s * p - 2.12194440e-4f * n - 0.5f * s) + 0.693359375f * n;
}
inline double log_of_parts(double r, double n) {
  // log m = r - r^2 / 2 + t (r^2 / 2 + q(t^2)) with t = r / (2 + r)
  const double t = r / (2 + r), z = t * t, half = 0.5 * r * r;
  const double q = z * (6.666666666666735130e-01 +
                        z * (3.999999999940941908e-01 +
                             z * (2.857142874366239149e-01 +
                                  z * (2.222219843214978396e-01 +
                                       z * (1.818357216161805012e-01 +
                                            z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01))))));
  return n * 6.93147180369123816490e-01 - ((half - (t * (half + q) + n * 1.90821492927058770002e-10)) - r);
}

/// The natural logarithm: 0.9 ulp.
template <class T>
inline T vector_log(T x) {
  using Bits = typename Elements<T>::Bits;
  constexpr bool single = sizeof(T) == sizeof(float);
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kLift = single ? T(0x1p25) : T(0x1p54);
  constexpr int kMantissa = Ieee<T>::mantissa;
  constexpr Bits kSign = single ? 0x100 : 0x800;
  // x = m 2^n with m in [sqrt(1/2), sqrt(2)); a denormal x is scaled up first
  const bool denormal = x < std::numeric_limits<T>::min();
  const T scaled = denormal ? x * kLift : x;
  const Bits root = std::bit_cast<Bits>(T(0.70710678118654752));
  const Bits from_root = std::bit_cast<Bits>(scaled) - root;
  const T m = std::bit_cast<T>((from_root & ((Bits(1) << kMantissa) - 1)) + root);
  const Bits exponent = ((from_root >> kMantissa) ^ kSign) - kSign;
  const T n = std::bit_cast<T>(std::bit_cast<Bits>(Ieee<T>::whole) + exponent) - Ieee<T>::whole -
              (denormal ? (single ? T(25) : T(54)) : T(0));
  const T y = log_of_parts(m - 1, n);
  const T positive = x < kInfinity ? y : x;
  const T some = x == 0 ? -kInfinity : positive;
  return x < 0 ? std::numeric_limits<T>::quiet_NaN() : some;
}

/// log(1 + x): 1.5 ulp.
template <class T>
inline T vector_log1p(T x) {
  // u = 1 + x rounded,  log(1 + x) = log u + (1 + x - u) / u;  the second term is NaN for u = 0 and infinity
  const T u = 1 + x, first = vector_log(u), second = (x - (u - 1)) / u;
  const T y = second != second ? first : first + second;
  return u == 1 ? x : y;
}

/// The hyperbolic tangent: 1.3 ulp.
template <class T>
inline T vector_tanh(T x) {
  // tanh a = 1 - 2 / (e^2a + 1), or a + a^3 p(a^2) where that cancels
  const T a = std::abs(x), s = x * x, far = 1 - 2 / (vector_exp(a + a) + 1);
  T p;
  if constexpr (sizeof(T) == sizeof(float)) {
    p = (((-5.70498872745e-3f * s + 2.06390887954e-2f) * s - 5.37397155531e-2f) * s + 1.33314422036e-1f) * s -
        3.33332819422e-1f;
  } else {
    const T top = (-9.64399179425052238628e-1 * s - 9.92877231001918586564e1) * s - 1.61468768441708447952e3;
    p = top / (((s + 1.12811678491632931402e2) * s + 2.23548839060100448583e3) * s + 4.84406305325125486048e3);
  }
  const T near = a + a * (s * p);
  return std::copysign(a < T(0.625) ? near : far, x);
}

/// 1 / (1 + e^-x): 1.8 ulp.
template <class T>
inline T vector_sigmoid(T x) {
  // e^-|x| cannot overflow; where it is small, e / (1 + e) = e - e e / (1 + e) loses less.
  const T e = vector_exp(-std::abs(x)), y = (x < 0 ? e : 1) / (1 + e);
  return x < 0 && e < T(0.5) ? e - e * y : y;
}

/// The error function: 1.2 ulp in float; of double, the standard library's.
inline double vector_erf(double x) { return std::erf(x); }
inline float vector_erf(float x) {
  // erf a = 1 - e^q(a), or a + a p(a^2) where that cancels; the polynomials are N. Juffa's.
  const float a = std::abs(x), t = a > 4 ? 4 : a, s = x * x;
  const float q = ((((-1.72853470e-5f * t + 3.83197126e-4f) * (t * t) + (-3.88396438e-3f * t + 2.42546219e-2f)) * t -
                    1.06777877e-1f) *
                       t -
                   6.34846687e-1f) *
                      t -
                  1.28717512e-1f;
  const float p =
      ((((-5.96761703e-4f * s + 4.99119423e-3f) * s - 2.67681349e-2f) * s + 1.12819925e-1f) * s - 3.76125336e-1f) * s +
      1.28379166e-1f;
  const float far = 1 - vector_exp(q * t - t), near = a + a * p;
  return std::copysign(a < 0.927734375f ? near : far, x);
}

}  // namespace taper::kernels
