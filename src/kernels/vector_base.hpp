#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/vectors.hpp"

// What functions of numbers and of vectors of numbers are made of: V is float, double or a vector of them, and what is
// said of a number holds lane by lane.

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
template <class V>
using BitsOf = typename Elements<V>::Bits;

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

/// One of two constants, that for V's elements.
template <class V>
constexpr Element<V> by_size(double of_float, double of_double) {
  return static_cast<Element<V>>(sizeof(Element<V>) == sizeof(float) ? of_float : of_double);
}

/// c in every element.
template <class V>
inline V each(double c) {
  return V{} + static_cast<Element<V>>(c);
}

// The processor's instructions for what the language has no word for, or GCC 12 no single instruction: a b + c rounded
// once, the larger and the smaller of two (b if one is NaN), v 2^n, 1 / x within 2^-14 of it, the whole n and the m in
// [3/4, 3/2) of x = 2^n m (m is NaN if x < 0) or the n for m in [1, 2), whether all lanes are `least` or more, v[place]
// for each lane, and sixteen numbers looked up.

using FullFloat = Vector<float>;
using FullDouble = Vector<double>;

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

#if defined(__AVX512F__)

inline FullFloat fused(FullFloat a, FullFloat b, FullFloat c) {
  return FullFloat(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
}
inline FullDouble fused(FullDouble a, FullDouble b, FullDouble c) {
  return FullDouble(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(c)));
}
// GCC 12 takes the unmasked functions for a use of what is not initialised.
inline FullFloat larger(FullFloat a, FullFloat b) {
  return FullFloat(_mm512_maskz_max_ps(0xffff, __m512(a), __m512(b)));
}
inline FullFloat smaller(FullFloat a, FullFloat b) {
  return FullFloat(_mm512_maskz_min_ps(0xffff, __m512(a), __m512(b)));
}
inline FullFloat times_power(FullFloat v, FullFloat n) {
  return FullFloat(_mm512_maskz_scalef_ps(0xffff, __m512(v), __m512(n)));
}
inline FullDouble times_power(FullDouble v, FullDouble n) {
  return FullDouble(_mm512_maskz_scalef_pd(0xff, __m512d(v), __m512d(n)));
}
inline FullFloat root_of(FullFloat x) {
  // From 2^-100 on, y = 1 / sqrt(x) within 2^-14 gives s near x y, twice as exact each time, at half the cost.
  const BitsOf<FullFloat> above = BitsOf<FullFloat>(x) - 0x0d800000u;
  if (_mm512_cmplt_epu32_mask(__m512i(above), _mm512_set1_epi32(0x7f800000 - 0x0d800000)) != 0xffff) [[unlikely]]
    return FullFloat(_mm512_maskz_sqrt_ps(0xffff, __m512(x)));
  const FullFloat y = FullFloat(_mm512_maskz_rsqrt14_ps(0xffff, __m512(x))), rough = x * y, half = y * 0.5f;
  const FullFloat less = fused(-rough, half, FullFloat{} + 0.5f), s = fused(rough, less, rough);
  return fused(fused(-s, s, x), fused(half, less, half), s);
}
inline FullDouble root_of(FullDouble x) { return FullDouble(_mm512_maskz_sqrt_pd(0xff, __m512d(x))); }
inline FullFloat rough_reciprocal(FullFloat x) { return FullFloat(_mm512_maskz_rcp14_ps(0xffff, __m512(x))); }
inline FullFloat exponent_of(FullFloat x) { return FullFloat(_mm512_maskz_getexp_ps(0xffff, __m512(x))); }
inline FullFloat mantissa_of(FullFloat x) {
  return FullFloat(_mm512_maskz_getmant_ps(0xffff, __m512(x), _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan));
}
inline bool is_all_from(float least, FullFloat x) {
  return _mm512_cmp_ps_mask(__m512(x), _mm512_set1_ps(least), _CMP_GE_OQ) == 0xffff;
}
inline FullFloat permuted(FullFloat v, BitsOf<FullFloat> place) {
  return FullFloat(_mm512_maskz_permutexvar_ps(0xffff, __m512i(place), __m512(v)));
}
inline FullFloat looked_up(const float (&table)[16], BitsOf<FullFloat> index) { return permuted(load(table), index); }
inline FullDouble looked_up(const double (&table)[16], BitsOf<FullDouble> index) {
  return FullDouble(_mm512_permutex2var_pd(_mm512_loadu_pd(table), __m512i(index), _mm512_loadu_pd(table + 8)));
}

#elif defined(__AVX2__)

#ifdef __FMA__
inline FullFloat fused(FullFloat a, FullFloat b, FullFloat c) {
  return FullFloat(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
}
inline FullDouble fused(FullDouble a, FullDouble b, FullDouble c) {
  return FullDouble(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
}
#endif
inline FullFloat root_of(FullFloat x) { return FullFloat(_mm256_sqrt_ps(__m256(x))); }
inline FullDouble root_of(FullDouble x) { return FullDouble(_mm256_sqrt_pd(__m256d(x))); }
inline FullFloat larger(FullFloat a, FullFloat b) { return FullFloat(_mm256_max_ps(__m256(a), __m256(b))); }
inline FullDouble larger(FullDouble a, FullDouble b) { return FullDouble(_mm256_max_pd(__m256d(a), __m256d(b))); }
inline FullFloat smaller(FullFloat a, FullFloat b) { return FullFloat(_mm256_min_ps(__m256(a), __m256(b))); }
inline FullDouble smaller(FullDouble a, FullDouble b) { return FullDouble(_mm256_min_pd(__m256d(a), __m256d(b))); }
inline bool is_all_from(float least, FullFloat x) {
  return _mm256_movemask_ps(_mm256_cmp_ps(__m256(x), _mm256_set1_ps(least), _CMP_GE_OQ)) == 0xff;
}
inline bool is_all_from(double least, FullDouble x) {
  return _mm256_movemask_pd(_mm256_cmp_pd(__m256d(x), _mm256_set1_pd(least), _CMP_GE_OQ)) == 0xf;
}
inline bool is_all_within(float least, float most, FullFloat x) {
  return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(__m256(x), _mm256_set1_ps(least), _CMP_GE_OQ),
                                          _mm256_cmp_ps(__m256(x), _mm256_set1_ps(most), _CMP_LE_OQ))) == 0xff;
}
inline FullFloat permuted(FullFloat v, BitsOf<FullFloat> place) {
  return FullFloat(_mm256_permutevar8x32_ps(__m256(v), __m256i(place)));
}
inline FullFloat looked_up(const float (&table)[16], BitsOf<FullFloat> index) {
  const FullFloat low = permuted(load(table), index), high = permuted(load(table + 8), index);
  return FullFloat(_mm256_blendv_ps(__m256(low), __m256(high), __m256(index << 28)));
}

#endif

template <class V>
[[gnu::always_inline]] inline V fused(V a, V b, V c) {
  return a * b + c;
}
template <class V>
[[gnu::always_inline]] inline V larger(V a, V b) {
  return a > b ? a : b;
}
template <class V>
[[gnu::always_inline]] inline V smaller(V a, V b) {
  return a < b ? a : b;
}
template <class V>
inline V root_of(V x) {
  constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(Element<V>));
  for (int k = 0; k < kLanes; ++k) x[k] = std::sqrt(x[k]);
  return x;
}
template <class V>
[[gnu::always_inline]] inline V rough_reciprocal(V x) {
  return 1 / x;
}

/// `b` in every element, if it is a number.
template <class V, class B>
[[gnu::always_inline]] inline V spread_over(B b) {
  if constexpr (std::is_same_v<V, B>)
    return b;
  else
    return V{} + b;
}
/// a b + c where one of the three is the same number for all elements.
template <class V, class B, class C>
inline V fused(V a, B b, C c) {
  return fused(a, spread_over<V>(b), spread_over<V>(c));
}

/// The larger of a bound and x; x if it is NaN.
template <class V>
[[gnu::always_inline]] inline V at_least(Element<V> bound, V x) {
  return larger(V{} + bound, x);
}
/// The smaller of a bound and x; x if it is NaN.
template <class V>
[[gnu::always_inline]] inline V at_most(Element<V> bound, V x) {
  return smaller(V{} + bound, x);
}

/// The bits of the sign, alone.
template <class V>
inline BitsOf<V> sign_bits() {
  return std::bit_cast<BitsOf<V>>(-V{});
}
template <class V>
inline V magnitude_of(V x) {
  return std::bit_cast<V>(std::bit_cast<BitsOf<V>>(x) & ~sign_bits<V>());
}
/// -|x|
template <class V>
inline V negative_of(V x) {
  return std::bit_cast<V>(std::bit_cast<BitsOf<V>>(x) | sign_bits<V>());
}
/// -1, 0 or 1; of NaN 0. As a difference of T, which vectors hold as many of as of x.
template <class T>
inline T sign_of(T x) {
  return (x > 0 ? T(1) : T(0)) - (x < 0 ? T(1) : T(0));
}
/// `magnitude`, which has no sign, with that of x.
template <class V>
inline V with_sign_of(V magnitude, V x) {
  return std::bit_cast<V>(std::bit_cast<BitsOf<V>>(magnitude) | (std::bit_cast<BitsOf<V>>(x) & sign_bits<V>()));
}

/// 2^n, where `shifted` is n + Ieee<T>::whole and n the exponent of a normal number.
template <class V>
inline V power_of_two(V shifted) {
  return std::bit_cast<V>((std::bit_cast<BitsOf<V>>(shifted) << Ieee<Element<V>>::mantissa) +
                          std::bit_cast<BitsOf<V>>(V{} + 1));
}

/// `shifted`, but of n no less than where 2^n begins to be small. What is left of the least n of interest, twice beyond
/// the exponents of normal numbers, is the exponent of a normal number too.
template <class V>
inline V near_shifted(V shifted) {
  return at_least<V>(Ieee<Element<V>>::whole + by_size<V>(-120, -1000), shifted);
}

/// v 2^n, where `shifted` is n + Ieee<T>::whole and neither v nor the result is too small or large to be normal.
template <class V>
inline V moved_by_power(V v, V shifted) {
  return std::bit_cast<V>(std::bit_cast<BitsOf<V>>(v) +
                          (std::bit_cast<BitsOf<V>>(shifted) << Ieee<Element<V>>::mantissa));
}

/// v 2^n, where `shifted` is n + Ieee<T>::whole and n is at most twice beyond the exponents of normal numbers.
template <class V>
inline V scaled_by_power(V v, V shifted) {
  using T = Element<V>;
  const V n = shifted - Ieee<T>::whole;
  if constexpr (requires { times_power(v, n); }) {
    return times_power(v, n);
  } else {
    // 2^n in two factors
    const V half = n * T(0.5) + Ieee<T>::whole;
    return v * power_of_two(half) * power_of_two(n - (half - Ieee<T>::whole) + Ieee<T>::whole);
  }
}

/// The same for n <= 0: fewer operations where the processor has none for it.
template <class V>
inline V scaled_down(V v, V shifted) {
  if constexpr (requires { times_power(v, v); }) {
    return scaled_by_power(v, shifted);
  } else {
    const V near = near_shifted(shifted);
    return v * power_of_two(near) * power_of_two(shifted - near + Ieee<Element<V>>::whole);
  }
}

/// A value as the sum of two numbers.
template <class V>
struct TwoParts {
  V high, low;
};

/// x without the lower half of its mantissa.
template <class V>
inline V upper_half(V x) {
  constexpr auto kLower = (BitsOf<Element<V>>(1) << (Ieee<Element<V>>::mantissa / 2 + 1)) - 1;
  return std::bit_cast<V>(std::bit_cast<BitsOf<V>>(x) & ~(BitsOf<V>{} + kLower));
}

/// a b - p for p = a b rounded, exactly as long as nothing overflows or vanishes.
template <class V>
inline V product_rest(V a, V b, V p) {
#ifdef __FMA__
  return fused(a, b, -p);
#else
  const V high = upper_half(a), low = a - high, top = upper_half(b), bottom = b - top;
  return ((high * top - p) + high * bottom + low * top) + low * bottom;
#endif
}

/// a - q d, nearly exactly, for q near a / d.
template <class V>
inline V division_rest(V a, V q, V d) {
#ifdef __FMA__
  return fused(-q, d, a);
#else
  const V p = q * d;
  return (a - p) - product_rest(q, d, p);
#endif
}

/// table[index % 16] in every lane; kPieces may be 8 if those are a vector's lanes, and all indices kFirst (0 or 13) or
/// one of the seven behind it.
template <class V, int kPieces = 16, int kFirst = 0>
inline V looked_up_in(const Element<V> (&table)[16], BitsOf<V> index) {
  if constexpr (kPieces == 8 && kFirst == 13) {
    return permuted(__builtin_shufflevector(load(table), load(table + 8), 0, 1, 2, 3, 4, 13, 14, 15), index);
  } else if constexpr (kPieces == 8) {
    return permuted(load(table), index);
  } else if constexpr (requires { looked_up(table, index); }) {
    return looked_up(table, index);
  } else {
    constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(Element<V>));
    Element<V> lanes[kLanes];
    for (int k = 0; k < kLanes; ++k) lanes[k] = table[index[k] & 15];
    V v;
    std::memcpy(&v, lanes, sizeof v);
    return v;
  }
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

}  // namespace taper::kernels
