#pragma once

#include <limits>

#include "kernels/tanh_pieces.hpp"
#include "kernels/vector_base.hpp"

// exp, log and their relatives for float and double, written so that compilers turn a loop over them into vector
// code: no branches, no calls; but floats in 64 bytes are best given as vectors, whose sixteen lanes some functions
// look up in tables at once. A result depends on the argument alone and has the same bits in scalar and in vector code
// for one instruction set, because nothing is reordered and `fused` says what is. Special values are those of the
// standard library; the errors given are the largest measured over all exponents, in units in the last place (ulp). All
// are for numbers (V is float or double) and for vectors of them, lane by lane.
//
// Sources: log and tanh after S. Moshier's Cephes library, log of doubles after FreeBSD's msun; e^r has polynomials of
// least error.

namespace taper::kernels {

/// e^x = 2^n (1 + rest), `shifted` being n + Ieee<T>::whole and rest in [-0.30, 0.42].
template <class V>
struct ExpParts {
  V shifted, rest;
};

/// The parts of e^(x + beyond), `beyond` being what x cannot hold.
template <class V>
inline ExpParts<V> exp_parts(V x, V beyond = V{}) {
  using T = Element<V>;
  const V shifted = fused(x, T(1.44269504088896340736), Ieee<T>::whole), n = shifted - Ieee<T>::whole;
  // x = n ln 2 + r,  r = high + low,  rest = r + r^2 (1/2 + r q(r)),  whose largest error is 3e-9 or 6e-18 of e^r
  if constexpr (sizeof(T) == sizeof(float)) {
    const V high = fused(n, -6.9314575195e-1f, x), low = fused(n, -1.4286067653e-6f, beyond), r = high + low, s = r * r;
    const V q = fused(s, fused(r, 1.3820669847e-3f, 8.3686746657e-3f), fused(r, 4.1668266058e-2f, 1.6666521132e-1f));
    return {shifted, high + fused(s, fused(q, r, 4.9999994040e-1f), low)};
  } else {
    constexpr T kQ[] = {1.6666666666666438e-1, 4.166666666660401e-2,  8.333333333497778e-3,
                        1.3888888926770035e-3, 1.9841269471146335e-4, 2.480150872029666e-5,
                        2.7557636468532887e-6, 2.762517049978141e-7,  2.4979763309489292e-8};
    const V high = fused(n, -6.93147180369123816490e-1, x), low = fused(n, -1.90821492927058770002e-10, beyond);
    const V r = high + low;
    return {shifted, high + fused(r * r, fused(polynomial(kQ, r), r, 0.5), low)};
  }
}

/// The least argument of interest to e^x: less gives 0 all the same.
template <class V>
inline constexpr Element<V> kLeastPower = by_size<V>(-104, -746);

/// v, or 0 where e^x is 0: scaled by a power of two, that is exact, and processors take long for what is too small.
template <class V>
inline V unless_vanishing(V x, V v) {
  return x <= kLeastPower<V> ? V{} : v;
}

#ifdef __AVX512F__
/// Whether V's function is that for vectors of 64 bytes: of one number too, which counts as sixteen.
template <class V>
inline constexpr bool kInPieces = std::is_same_v<V, FullFloat> || std::is_same_v<V, float>;

/// f(x) for either.
template <class V, class F>
inline V all_or_one(F f, V x) {
  if constexpr (std::is_same_v<V, float>)
    return f(x + FullFloat{})[0];
  else
    return f(x);
}

/// e^x = 2^n e^r for sixteenths n, the roots of two in two parts, for x up to the bound of `vector_exp`, where the
/// processor looks up sixteen numbers.
inline FullFloat exp_in_pieces(FullFloat x) {
  static constexpr float kRoot[] = {1,          1.0442737f, 1.0905077f, 1.1387886f, 1.1892071f, 1.2418578f,
                                    1.2968396f, 1.3542556f, 1.4142135f, 1.4768262f, 1.5422108f, 1.6104903f,
                                    1.6817929f, 1.7562522f, 1.8340081f, 1.9152066f};
  static constexpr float kRootLow[] = {0,          4.833e-8f,  -1.308e-8f, 5.386e-8f,  3.798e-8f, 4.497e-8f,
                                       -4.019e-8f, -1.012e-8f, 2.42e-8f,   -4.501e-8f, 8.071e-9f, 9.836e-9f,
                                       -2.476e-8f, -9.236e-9f, -1.124e-8f, 9.845e-9f};
  // Adding it rounds to sixteenths, whose number is then in the low bits.
  constexpr float kSixteenths = Ieee<float>::whole / 16;
  const FullFloat shifted = fused(x, 1.442695041f, kSixteenths), n = shifted - kSixteenths;
  // x = n ln 2 + r,  e^r = 1 + r + r^2 q(r) within 2e-9
  const FullFloat r = fused(n, -3.1946185e-5f, fused(n, -6.9311523e-1f, x));
  const FullFloat rest = fused(r * r, fused(r, 1.6667052e-1f, 5.000162e-1f), r);
  const BitsOf<FullFloat> piece = std::bit_cast<BitsOf<FullFloat>>(shifted);
  const FullFloat root = looked_up(kRoot, piece);
  return times_power(unless_vanishing(x, root + fused(root, rest, looked_up(kRootLow, piece))), n);
}
#endif

/// e^x for x <= 0, as `vector_exp`.
template <class V>
inline V vector_exp_negative(V x) {
#ifdef __AVX512F__
  if constexpr (kInPieces<V>) return all_or_one(exp_in_pieces, x);
#endif
  const auto [shifted, rest] = exp_parts(at_least<V>(kLeastPower<V>, x));
  return scaled_down(unless_vanishing(x, 1 + rest), shifted);
}

/// `vector_exp` by these parts.
template <class V>
inline V exp_anywhere(V x) {
  x = at_most<V>(by_size<V>(89, 710), x);
  const auto [shifted, rest] = exp_parts(at_least<V>(kLeastPower<V>, x));
  return scaled_by_power(unless_vanishing(x, 1 + rest), shifted);
}

/// Whether e^x and e^-x are normal numbers in all lanes, where that saves operations.
template <class V>
inline bool has_normal_power([[maybe_unused]] V x) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (std::is_same_v<V, FullFloat> || std::is_same_v<V, FullDouble>)
    return is_all_from(by_size<V>(-87, -708), negative_of(x));
#endif
  return false;
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/// `exp_anywhere`, where not all have a normal power; masks make many 0.
template <class V>
[[gnu::noinline]] V exp_beyond(V x) {
  return is_all_from(-kLeastPower<V>, -x) ? V{} : exp_anywhere(x);
}
#endif

/// e^x: 0.9 ulp.
template <class V>
inline V vector_exp(V x) {
#ifdef __AVX512F__
  if constexpr (kInPieces<V>) return all_or_one(exp_in_pieces, at_most<V>(89, x));
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<V, FullFloat> || std::is_same_v<V, FullDouble>) {
    if (!has_normal_power(x)) [[unlikely]]
      return exp_beyond(x);
    const auto [shifted, rest] = exp_parts(x);
    return moved_by_power(1 + rest, shifted);
  }
#endif
  return exp_anywhere(x);
}

/// c (e^x - 1) for x <= 0, where c is `factor` + `beyond`; elsewhere unspecified, NaN for NaN: 1.9 ulp.
template <class V>
inline V vector_expm1_negative(V x, Element<V> factor = 1, Element<V> beyond = 0) {
  const auto [shifted, rest] = exp_parts(at_least<V>(-40, x));
  const V scale = power_of_two(shifted), less = scale - 1, y = fused(scale, rest, less);
  const V low = fused(scale, rest, less - y);
  return x == 0 ? factor * x : fused(y, factor, fused(low, factor, beyond * y));
}

/// log m for m = 1 + r in [sqrt(1/2), sqrt(2)), with n ln 2 and `beyond` added.
template <class V>
inline V log_of_parts(V r, V n, V beyond = V{}) {
  using T = Element<V>;
  if constexpr (sizeof(T) == sizeof(float)) {
    // log m = r - r^2 / 2 + r^3 p,  ln 2 = 0.693359375 - 2.12e-4
    constexpr T kP[] = {3.3333331174e-1f,  -2.4999993993e-1f, 2.0000714765e-1f,  -1.6668057665e-1f, 1.4249322787e-1f,
                        -1.2420140846e-1f, 1.1676998740e-1f,  -1.1514610310e-1f, 7.0376836292e-2f};
    const V s = r * r, p = polynomial(kP, r);
    return fused(n, T(0.693359375), r + (fused(r * s, p, fused(n, T(-2.12194440e-4), beyond)) - T(0.5) * s));
  } else {
    // log m = r - r^2 / 2 + t (r^2 / 2 + q(t^2)) with t = r / (2 + r)
    constexpr T kQ[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                        2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                        1.479819860511658591e-01};
    const V t = r / (2 + r), z = t * t, half = 0.5 * r * r, q = z * polynomial(kQ, z);
    return n * 6.93147180369123816490e-01 -
           ((half - fused(t, half + q, fused(n, 1.90821492927058770002e-10, beyond))) - r);
  }
}

/// x = 2^n (1 + r) with 1 + r in [sqrt(1/2), sqrt(2)), for normal x; 0, infinity and NaN give numbers of no meaning.
template <class V>
struct LogParts {
  V r, n;
};

template <class V>
inline LogParts<V> normal_log_parts(V x) {
  using T = Element<V>;
  using Bits = BitsOf<V>;
  constexpr bool single = sizeof(T) == sizeof(float);
  constexpr int kMantissa = Ieee<T>::mantissa;
  const Bits root = std::bit_cast<Bits>(each<V>(0.70710678118654752)), one = std::bit_cast<Bits>(each<V>(1));
  const Bits from_root = std::bit_cast<Bits>(x) - root, low = ((Bits{} + 1) << kMantissa) - 1;
  const V m = std::bit_cast<V>((from_root & low) + root);
  // The exponent, offset so that it is not negative, in the low bits of a number.
  const Bits exponent = ((from_root + one) >> kMantissa) & (single ? 0x1ff : 0xfff);
  const V offset = each<V>(Ieee<T>::whole) + (single ? T(127) : T(1023));
  return {m - 1, std::bit_cast<V>(std::bit_cast<Bits>(each<V>(Ieee<T>::whole)) + exponent) - offset};
}

/// The same of denormal numbers too, which are scaled up first.
template <class V>
inline LogParts<V> log_parts(V x) {
  constexpr bool single = sizeof(Element<V>) == sizeof(float);
  const auto denormal = x < std::numeric_limits<Element<V>>::min();
  const auto [r, n] = normal_log_parts(denormal ? x * each<V>(single ? 0x1p25 : 0x1p54) : x);
  return {r, n - (denormal ? each<V>(single ? 25 : 54) : V{})};
}

#ifdef __AVX512F__
/// log x where the processor takes numbers apart: m c = 1 + r for m in [3/4, 3/2) and a c for each of 16 pieces of it,
/// log x = n ln 2 - log c + log(1 + r). Near 1, c is 1; else the float near the middle's inverse whose logarithm is
/// nearest to a multiple of 2^-16, and ln 2 = 22713 / 32768 + 1.43e-6, so that the first two terms add up exactly.
/// Special values need no care.
inline FullFloat log_in_pieces(FullFloat x) {
  static constexpr float kFactor[] = {1,           0.91786164f, 0.86289614f, 0.8212983f, 0.77943087f, 0.74152845f,
                                      0.71087205f, 0.6792614f,  1.3020586f,  1.2577115f, 1.2099724f,  1.1691363f,
                                      1.1174376f,  1.0800376f,  1.0434434f,  1};
  static constexpr float kLog[] = {0.0f,         0.08570862f,  0.14746094f,   0.1968689f,   0.24919128f,  0.29904175f,
                                   0.34126282f,  0.38674927f,  -0.26394653f,  -0.22929382f, -0.19059753f, -0.15626526f,
                                   -0.11103821f, -0.07699585f, -0.042526245f, 0.0f};
  // log(1 + r) = r + r^2 p(r),  r in [-0.032, 0.063], within 3e-9 of it
  const FullFloat m = mantissa_of(x), n = exponent_of(x) - exponent_of(m);
  const BitsOf<FullFloat> piece = std::bit_cast<BitsOf<FullFloat>>(m) >> 19;
  const FullFloat r = fused(m, looked_up(kFactor, piece), -1.0f), s = r * r;
  const FullFloat p = fused(s, fused(r, 0.1885575f, -0.25006695f), fused(r, 0.33334446f, -0.50000001f));
  return fused(n, 0.693145751953125f, looked_up(kLog, piece)) + (r + fused(s, p, n * 1.42860677e-6f));
}
#endif

/// `vector_log` by these parts.
template <class V>
inline V log_anywhere(V x) {
  using T = Element<V>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const auto [r, n] = log_parts(x);
  const V y = log_of_parts(r, n);
  const V positive = x < kInfinity ? y : x;
  const V some = x == 0 ? each<V>(-kInfinity) : positive;
  return x < 0 ? each<V>(std::numeric_limits<T>::quiet_NaN()) : some;
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/// `log_anywhere`, where not all are normal numbers.
[[gnu::noinline]] inline FullFloat log_beyond(FullFloat x) { return log_anywhere(x); }
#endif

/// The natural logarithm: 1.1 ulp.
template <class V>
inline V vector_log(V x) {
#ifdef __AVX512F__
  if constexpr (kInPieces<V>) return all_or_one(log_in_pieces, x);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<V, FullFloat>) {
    if (!is_all_within(std::numeric_limits<float>::min(), std::numeric_limits<float>::max(), x)) [[unlikely]]
      return log_beyond(x);
    const auto [r, n] = normal_log_parts(x);
    return log_of_parts(r, n);
  }
#endif
  return log_anywhere(x);
}

/// log(1 + x): 1.5 ulp.
template <class V>
inline V vector_log1p(V x) {
  // u = 1 + x rounded,  log(1 + x) = log u + (1 + x - u) / u;  the second term is NaN for u = 0 and infinity
  const V u = 1 + x, first = vector_log(u), second = (x - (u - 1)) / u;
  const V y = second != second ? first : first + second;
  return u == 1 ? x : y;
}

/// log(1 + x + beyond) for x in [0, 1] and `beyond` what x cannot hold: 0.8 ulp.
template <class V>
inline V vector_log1p_fraction(V x, V beyond = V{}) {
  using T = Element<V>;
  // 1 + x = 2^n (1 + r); the derivative is 1 / (1 + x), nearly
  const auto large = x > T(0.41421356);
  const V r = large ? T(0.5) * (x - 1) : x;
  return log_of_parts(r, large ? each<V>(1) : V{}, fused(beyond * x, T(-0.5), beyond));
}

#ifdef __AVX512F__
/// tanh x where the processor looks up sixteen numbers.
inline FullFloat tanh_in_pieces(FullFloat x) {
  using V = FullFloat;
  const V a = at_most<V>(TanhPieces::end, magnitude_of(x));
  return with_sign_of(in_pieces<V>(TanhPieces::value, TanhPieces::start, a).high, x);
}
#endif

/// The hyperbolic tangent: 1.3 ulp.
template <class V>
inline V vector_tanh(V x) {
  using T = Element<V>;
#ifdef __AVX512F__
  if constexpr (kInPieces<V>) return all_or_one(tanh_in_pieces, x);
#endif
  // tanh a = 1 - 2 / (e^2a + 1), or a + a^3 p(a^2) where that cancels
  const V a = magnitude_of(x), s = x * x;
  const auto [shifted, rest] = exp_parts(at_most<V>(by_size<V>(40, 80), a + a));  // from there on it is 1
  const V far = 1 - 2 / ((1 + rest) * power_of_two(shifted) + 1);
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

/// 1 / (1 + e^-x), `beyond` being what -|x| cannot hold of it: 1.8 ulp.
template <class V>
inline V vector_sigmoid(V x, V beyond = V{}) {
  using T = Element<V>;
  // e^-|x| cannot overflow; where it is small, e / (1 + e) = e - e e / (1 + e) loses less.
  const auto [shifted, rest] = exp_parts(at_least<V>(kLeastPower<V>, negative_of(x)), beyond);
  const V e = has_normal_power(x) ? moved_by_power(1 + rest, shifted) : scaled_down(1 + rest, shifted);
  const V y = (x < 0 ? e : each<V>(1)) / (1 + e);
  return ((x < 0) & (e < T(0.5))) ? fused(-e, y, e) : y;
}

}  // namespace taper::kernels
