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
  using Bits = typename Ieee<T>::Bits;
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
