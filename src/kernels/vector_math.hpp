#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// exp, log and their relatives for float and double, written so that compilers turn a loop over them into vector
// code: no branches, no calls, no tables. A result depends on the argument alone and has the same bits in scalar and
// in vector code of any width, because nothing here is fused or reordered. Special values are those of the standard
// library; the errors given are the largest measured over all exponents, in units in the last place (ulp). Where the
// standard library is faster in float64, the overload for double is the standard library's.
//
// Sources: e^x after FreeBSD's msun, log and tanh after S. Moshier's Cephes library, erf after N. Juffa.

namespace taper::kernels {

/// How the floating type T is stored.
template <class T>
struct Ieee;
template <>
struct Ieee<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa = 23;
  static constexpr float whole = 12582912;  // 1.5 * 2^23: adding it rounds to a whole number, kept in the low bits
};
template <>
struct Ieee<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa = 52;
  static constexpr double whole = 6755399441055744;  // 1.5 * 2^52
};

/// 2^n, where `shifted` is n + Ieee<T>::whole and n the exponent of a normal number.
template <class T>
inline T power_of_two(T shifted) {
  using Bits = typename Ieee<T>::Bits;
  return std::bit_cast<T>((std::bit_cast<Bits>(shifted) << Ieee<T>::mantissa) + std::bit_cast<Bits>(T(1)));
}

/// e^x = 2^n (1 + rest), `shifted` being n + Ieee<T>::whole and rest in [-0.30, 0.42].
template <class T>
struct ExpParts {
  T shifted, rest;
};

template <class T>
inline ExpParts<T> exp_parts(T x) {
  const T shifted = x * T(1.44269504088896340736) + Ieee<T>::whole, n = shifted - Ieee<T>::whole;
  // x = n ln 2 + high - low,  rest = e^(high - low) - 1 = high - (low - r c / (2 - c))
  if constexpr (sizeof(T) == sizeof(float)) {
    const T high = x - n * 6.9314575195e-1f, low = n * 1.4286067653e-6f, r = high - low, s = r * r;
    const T c = r - s * (1.6666625440e-1f - s * 2.7667332906e-3f);
    return {shifted, high - (low - r * c / (2 - c))};
  } else {
    const T high = x - n * 6.93147180369123816490e-1, low = n * 1.90821492927058770002e-10, r = high - low, s = r * r;
    const T c =
        r -
        s * (1.66666666666666019037e-1 +
             s * (-2.77777777770155933842e-3 +
                  s * (6.61375632143793436117e-5 + s * (-1.65339022054652515390e-6 + s * 4.13813679705723846039e-8))));
    return {shifted, high - (low - r * c / (2 - c))};
  }
}

/// e^x: 0.9 ulp.
template <class T>
inline T vector_exp(T x) {
  constexpr T low = sizeof(T) == sizeof(float) ? T(-104) : T(-746), high = sizeof(T) == sizeof(float) ? T(89) : T(710);
  x = x < low ? low : x;
  x = x > high ? high : x;
  const auto [shifted, rest] = exp_parts(x);
  // 2^n in two factors, since n may be beyond the exponents of normal numbers.
  const T n = shifted - Ieee<T>::whole, half = n * T(0.5) + Ieee<T>::whole;
  return (1 + rest) * power_of_two(half) * power_of_two(n - (half - Ieee<T>::whole) + Ieee<T>::whole);
}

/// e^x for loops that hold more than exponentials: in float64 the standard library's is faster there.
inline float loop_exp(float x) { return vector_exp(x); }
inline double loop_exp(double x) { return std::exp(x); }

/// e^x - 1 for x <= 0; elsewhere unspecified, NaN for NaN: 1 ulp.
template <class T>
inline T vector_expm1_negative(T x) {
  const T bounded = x < T(-40) ? T(-40) : x;
  const auto [shifted, rest] = exp_parts(bounded);
  const T scale = power_of_two(shifted);
  return x == 0 ? x : scale * rest + (scale - 1);
}

/// The natural logarithm: 0.8 ulp in float; of double, the standard library's.
inline double vector_log(double x) { return std::log(x); }
inline float vector_log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::uint32_t kMantissa = 0x7fffff, kSign = 0x100;
  // x = m 2^n with m in [sqrt(1/2), sqrt(2)); a denormal x is scaled by 2^25 first
  const bool denormal = x < std::numeric_limits<float>::min();
  const float scaled = denormal ? x * 0x1p25f : x;
  const std::uint32_t root = std::bit_cast<std::uint32_t>(0.707106781f);
  const std::uint32_t from_root = std::bit_cast<std::uint32_t>(scaled) - root;
  const float m = std::bit_cast<float>((from_root & kMantissa) + root);
  const std::uint32_t exponent = ((from_root >> 23) ^ kSign) - kSign;
  const float n = std::bit_cast<float>(std::bit_cast<std::uint32_t>(Ieee<float>::whole) + exponent) -
                  Ieee<float>::whole - (denormal ? 25.0f : 0.0f);
  // log m = r - r^2 / 2 + r^3 p,  ln 2 = 0.693359375 - 2.12e-4
  const float r = m - 1, s = r * r;
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
  const float y = r + (r * s * p - 2.12194440e-4f * n - 0.5f * s) + 0.693359375f * n;
  const float positive = x < kInfinity ? y : x;
  const float some = x == 0 ? -kInfinity : positive;
  return x < 0 ? std::numeric_limits<float>::quiet_NaN() : some;
}

/// log(1 + x): 1.5 ulp in float; of double, the standard library's.
inline double vector_log1p(double x) { return std::log1p(x); }
inline float vector_log1p(float x) {
  // u = 1 + x rounded,  log(1 + x) = log u + (1 + x - u) / u;  the second term is NaN for u = 0 and infinity
  const float u = 1 + x, first = vector_log(u), second = (x - (u - 1)) / u;
  const float y = std::isnan(second) ? first : first + second;
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

/// 1 / (1 + e^-x): 1.8 ulp in float; of double by the standard library's exp.
inline double vector_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline float vector_sigmoid(float x) {
  // e^-|x| cannot overflow; where it is small, e / (1 + e) = e - e e / (1 + e) loses less.
  const float e = vector_exp(-std::abs(x)), y = (x < 0 ? e : 1) / (1 + e);
  return x < 0 && e < 0.5f ? e - e * y : y;
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
