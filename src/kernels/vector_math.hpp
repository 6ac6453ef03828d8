#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/lanes.hpp"

// exp, log and their relatives for float and double, written so that compilers turn a loop over them into vector
// code: no branches, no calls, no tables. A result depends on the argument alone and has the same bits in scalar and
// in vector code for one instruction set, because nothing is reordered and `fused` says what is. Special values are
// those of the standard library; the errors given are the largest measured over all exponents, in units in the last
// place (ulp). All are for numbers (V is float or double) and for vectors of them, lane by lane.
//
// Sources: e^x of doubles, sine and cosine after FreeBSD's msun, log and tanh after S. Moshier's Cephes library.

namespace taper::kernels {

/// What a function of numbers or of vectors of numbers works on: the type of an element, and unsigned integers of the
/// same size.
template <class V>
struct Elements {
  using Type = std::remove_cvref_t<decltype(V{}[0])>;
  using Word = std::conditional_t<sizeof(Type) == 4, std::uint32_t, std::uint64_t>;
  using Bits [[gnu::vector_size(sizeof(V))]] = Word;
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
#elif defined(__AVX2__) && defined(__FMA__)
  return Full<float>::type(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#else
  return a * b + c;
#endif
}
inline Full<double>::type fused(Full<double>::type a, Full<double>::type b, Full<double>::type c) {
#if defined(__AVX512F__)
  return Full<double>::type(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
#elif defined(__AVX2__) && defined(__FMA__)
  return Full<double>::type(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#else
  return a * b + c;
#endif
}
/// `b` in every element, if it is a number.
template <class V, class B>
[[gnu::always_inline]] inline V spread_over(B b) {
  if constexpr (std::is_same_v<V, B>)
    return b;
  else
    return V{} + b;
}
/// The same where one of the three is the same number for all elements.
template <class V, class B, class C>
inline V fused(V a, B b, C c) {
  return fused(a, spread_over<V>(b), spread_over<V>(c));
}

/// The larger of a bound and x; x if it is NaN.
template <class V>
[[gnu::always_inline]] inline V at_least(Element<V> bound, V x) {
  // GCC 12 makes two instructions of the comparison with a constant.
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, Full<float>::type>)
    return V(_mm512_maskz_max_ps(0xffff, _mm512_set1_ps(bound), __m512(x)));
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<V, Full<float>::type>) return V(_mm256_max_ps(_mm256_set1_ps(bound), __m256(x)));
#endif
  const V least = V{} + bound;
  return least > x ? least : x;
}
/// The smaller of a bound and x; x if it is NaN.
template <class V>
[[gnu::always_inline]] inline V at_most(Element<V> bound, V x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, Full<float>::type>)
    return V(_mm512_maskz_min_ps(0xffff, _mm512_set1_ps(bound), __m512(x)));
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<V, Full<float>::type>) return V(_mm256_min_ps(_mm256_set1_ps(bound), __m256(x)));
#endif
  const V most = V{} + bound;
  return most < x ? most : x;
}

/// c in every element.
template <class V>
inline V each(double c) {
  return V{} + static_cast<Element<V>>(c);
}

/// The bits of the sign, alone.
template <class V>
inline typename Elements<V>::Bits sign_bits() {
  return std::bit_cast<typename Elements<V>::Bits>(-V{});
}
template <class V>
inline V magnitude_of(V x) {
  using Bits = typename Elements<V>::Bits;
  return std::bit_cast<V>(std::bit_cast<Bits>(x) & ~sign_bits<V>());
}
/// `magnitude`, which has no sign, with that of x.
template <class V>
inline V with_sign_of(V magnitude, V x) {
  using Bits = typename Elements<V>::Bits;
  return std::bit_cast<V>(std::bit_cast<Bits>(magnitude) | (std::bit_cast<Bits>(x) & sign_bits<V>()));
}

/// c[0] + c[1] x + c[2] x^2 + ..., even and odd powers apart, so that neither waits for the other.
template <int N, class V>
[[gnu::always_inline]] inline V polynomial(const Element<V> (&c)[N], V x) {
  const V square = x * x;
  V last = V{} + c[N - 1], before = V{} + c[N - 2];
#pragma GCC unroll 32
  for (int k = N - 3; k >= 0; --k) {
    const V next = fused(last, square, V{} + c[k]);
    last = before;
    before = next;
  }
  return fused(last, x, before);
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

/// e^x for x <= 0, as `vector_exp`.
template <class V>
inline V vector_exp_negative(V x) {
  const auto [shifted, rest] = exp_parts(at_least<V>(sizeof(Element<V>) == sizeof(float) ? -104 : -746, x));
  return scaled_by_power(1 + rest, shifted);
}

/// e^x: 0.9 ulp.
template <class V>
inline V vector_exp(V x) {
  return vector_exp_negative(at_most<V>(sizeof(Element<V>) == sizeof(float) ? 89 : 710, x));
}

/// e^x - 1 for x <= 0; elsewhere unspecified, NaN for NaN: 1 ulp.
template <class V>
inline V vector_expm1_negative(V x) {
  const auto [shifted, rest] = exp_parts(at_least<V>(-40, x));
  const V scale = power_of_two(shifted);
  return x == 0 ? x : fused(scale, rest, scale - 1);
}

/// log m for m = 1 + r in [sqrt(1/2), sqrt(2)), with n ln 2 added.
template <class V>
inline V log_of_parts(V r, V n) {
  using T = Element<V>;
  if constexpr (sizeof(T) == sizeof(float)) {
    // log m = r - r^2 / 2 + r^3 p,  ln 2 = 0.693359375 - 2.12e-4
    constexpr T kP[] = {3.3333331174e-1f,  -2.4999993993e-1f, 2.0000714765e-1f,  -1.6668057665e-1f, 1.4249322787e-1f,
                        -1.2420140846e-1f, 1.1676998740e-1f,  -1.1514610310e-1f, 7.0376836292e-2f};
    const V s = r * r, p = polynomial(kP, r);
    return fused(n, T(0.693359375), r + (fused(r * s, p, n * T(-2.12194440e-4)) - T(0.5) * s));
  } else {
    // log m = r - r^2 / 2 + t (r^2 / 2 + q(t^2)) with t = r / (2 + r)
    constexpr T kQ[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                        2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                        1.479819860511658591e-01};
    const V t = r / (2 + r), z = t * t, half = 0.5 * r * r, q = z * polynomial(kQ, z);
    return n * 6.93147180369123816490e-01 - ((half - fused(t, half + q, n * 1.90821492927058770002e-10)) - r);
  }
}

/// The natural logarithm: 0.9 ulp.
template <class V>
inline V vector_log(V x) {
  using T = Element<V>;
  using Bits = typename Elements<V>::Bits;
  constexpr bool single = sizeof(T) == sizeof(float);
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr int kMantissa = Ieee<T>::mantissa;
  // x = m 2^n with m in [sqrt(1/2), sqrt(2)); a denormal x is scaled up first
  const auto denormal = x < std::numeric_limits<T>::min();
  const V scaled = denormal ? x * (single ? T(0x1p25) : T(0x1p54)) : x;
  const Bits root = std::bit_cast<Bits>(each<V>(0.70710678118654752)), one = std::bit_cast<Bits>(each<V>(1));
  const Bits from_root = std::bit_cast<Bits>(scaled) - root, low = ((Bits{} + 1) << kMantissa) - 1;
  const V m = std::bit_cast<V>((from_root & low) + root);
  // The exponent, offset so that it is not negative, in the low bits of a number.
  const Bits exponent = ((from_root + one) >> kMantissa) & (single ? 0x1ff : 0xfff);
  const V offset = each<V>(Ieee<T>::whole) + (single ? T(127) : T(1023));
  const V n = std::bit_cast<V>(std::bit_cast<Bits>(each<V>(Ieee<T>::whole)) + exponent) - offset -
              (denormal ? each<V>(single ? 25 : 54) : V{});
  const V y = log_of_parts(m - 1, n);
  const V positive = x < kInfinity ? y : x;
  const V some = x == 0 ? each<V>(-kInfinity) : positive;
  return x < 0 ? each<V>(std::numeric_limits<T>::quiet_NaN()) : some;
}

/// log(1 + x): 1.5 ulp.
template <class V>
inline V vector_log1p(V x) {
  // u = 1 + x rounded,  log(1 + x) = log u + (1 + x - u) / u;  the second term is NaN for u = 0 and infinity
  const V u = 1 + x, first = vector_log(u), second = (x - (u - 1)) / u;
  const V y = second != second ? first : first + second;
  return u == 1 ? x : y;
}

/// The hyperbolic tangent: 1.3 ulp.
template <class V>
inline V vector_tanh(V x) {
  using T = Element<V>;
  // tanh a = 1 - 2 / (e^2a + 1), or a + a^3 p(a^2) where that cancels
  const V a = magnitude_of(x), s = x * x, far = 1 - 2 / (vector_exp(a + a) + 1);
  V p;
  if constexpr (sizeof(T) == sizeof(float)) {
    constexpr T kP[] = {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f, 2.06390887954e-2f,
                        -5.70498872745e-3f};
    p = polynomial(kP, s);
  } else {
    constexpr T kTop[] = {-1.61468768441708447952e3, -9.92877231001918586564e1, -9.64399179425052238628e-1};
    constexpr T kBottom[] = {4.84406305325125486048e3, 2.23548839060100448583e3, 1.12811678491632931402e2, 1};
    p = polynomial(kTop, s) / polynomial(kBottom, s);
  }
  const V near = fused(a, s * p, a);
  return with_sign_of(a < T(0.625) ? near : far, x);
}

/// 1 / (1 + e^-x): 1.8 ulp.
template <class V>
inline V vector_sigmoid(V x) {
  using T = Element<V>;
  // e^-|x| cannot overflow; where it is small, e / (1 + e) = e - e e / (1 + e) loses less.
  const V e = vector_exp_negative(-magnitude_of(x)), y = (x < 0 ? e : each<V>(1)) / (1 + e);
  return ((x < 0) & (e < T(0.5))) ? fused(-e, y, e) : y;
}

/// What the normal distribution says of |x|: e^(-x^2 / 2), and the probability of what lies beyond, on one side: 5 ulp,
/// of double 6, where these are normal numbers.
template <class V>
struct NormalTail {
  V bell, beyond;
};

template <class V>
inline NormalTail<V> normal_tail(V x) {
  using T = Element<V>;
  constexpr bool single = sizeof(T) == sizeof(float);
  const V a = at_most<V>(single ? 15 : 39, magnitude_of(x));
  // square + rest = a^2 exactly, since an error of the exponent would be one of the power many times over
  const V square = a * a;
#ifdef __FMA__
  const V rest = fused(a, a, -square);
#else
  using Bits = typename Elements<V>::Bits;
  const V high = std::bit_cast<V>(std::bit_cast<Bits>(a) & ~(((Bits{} + 1) << (Ieee<T>::mantissa / 2 + 1)) - 1)),
          low = a - high;
  const V rest = ((high * high - square) + 2 * (high * low)) + low * low;
#endif
  const V power = vector_exp_negative(T(-0.5) * square), bell = fused(power, T(-0.5) * rest, power);
  // beyond = e^(-a^2 / 2) p(a) / q(a): the quotient is off by 7e-9 of it at most, or by 1e-16
  if constexpr (single) {
    constexpr T kP[] = {0.5000000017f, 0.4352558975f, 0.1809435385f, 0.03984903655f, 0.00399661197f};
    constexpr T kQ[] = {1, 1.66839663f, 1.193071577f, 0.4634109698f, 0.09989404963f, 0.0100178796f};
    return {bell, bell * (polynomial(kP, a) / polynomial(kQ, a))};
  } else {
    constexpr T kP[] = {0.499999999999999985,   0.775857720903000193,    0.595444671969380317,
                        0.290313293143354106,   0.0981308959658345121,   0.0237513508882017444,
                        0.00411598301721242516, 0.000494150670642881566, 0.0000375791653587098953,
                        1.39930481186435658e-6};
    constexpr T kQ[] = {1,
                        2.34960000260885916,
                        2.56559891008297019,
                        1.71883986481470198,
                        0.784801316254237121,
                        0.256106513066271508,
                        0.0607674450510942085,
                        0.0104114363973317166,
                        0.0012421595801411335,
                        0.0000941969984233546493,
                        3.50753700625502544e-6};
    return {bell, bell * (polynomial(kP, a) / polynomial(kQ, a))};
  }
}

}  // namespace taper::kernels
