#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/packs.hpp"
#include "kernels/vector_math.hpp"

// Sine and cosine of vectors, after FreeBSD's msun: the angle less a multiple of pi / 2, then two polynomials.

namespace taper::kernels {

/// An angle as n pi / 2 + high + low, n being in the low bits of `shifted`.
struct ReducedAngle {
  Doubles shifted, high, low;
};

/// For |x| < 2^20 pi / 2.
inline ReducedAngle reduced_angle(Doubles x) {
  const Doubles shifted = fused(x, 6.36619772367581382433e-1, Ieee<double>::whole), n = shifted - Ieee<double>::whole;
  // The first two products are exact: pi / 2 in parts of 33 bits.
  const Doubles first = x - n * 1.57079632673412561417, second = n * 6.07710050630396597660e-11;
  const Doubles r = first - second, rest = ((first - r) - second) - n * 2.02226624879595063154e-21, high = r + rest;
  return {shifted, high, (r - high) + rest};
}

/// Whether bit `k` of the quadrant is set, in every lane.
inline auto quadrant_bit(Doubles shifted, std::uint32_t cosine, int k) {
  using Bits = typename Elements<Doubles>::Bits;
  return ((std::bit_cast<Bits>(shifted) + cosine) & (std::uint64_t{1} << k)) != 0;
}

/// The sine, or with `cosine` = 1 the cosine, of moderate angles: 0.8 ulp.
inline Doubles near_sine(Doubles x, std::uint32_t cosine) {
  constexpr double kS[] = {8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                           -2.50507602534068634195e-08, 1.58969099521155010221e-10};
  constexpr double kC[] = {4.16666666666666019037e-02,  -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                           -2.75573143513906633035e-07, 2.08757232129817482790e-09,  -1.13596475577881948265e-11};
  const auto [shifted, r, low] = reduced_angle(x);
  const Doubles z = r * r, v = z * r, half = 0.5 * z, w = 1 - half;
  const Doubles s = r - ((z * (0.5 * low - v * polynomial(kS, z)) - low) - v * -1.66666666666666324348e-01);
  const Doubles c = w + (((1 - w) - half) + (z * (z * polynomial(kC, z)) - r * low));
  const Doubles y = quadrant_bit(shifted, cosine, 0) ? c : s;
  return quadrant_bit(shifted, cosine, 1) ? -y : y;
}

/// The same with float's accuracy, for |x| < 2^28 pi / 2.
inline Doubles near_sine_of_float(Doubles x, std::uint32_t cosine) {
  constexpr double kS[] = {-0.166666666416265235595, 0.0083333293858894631756, -0.000198393348360966317347,
                           0.0000027183114939898219064};
  constexpr double kC[] = {-0.499999997251031003120, 0.0416666233237390631894, -0.00138867637746099294692,
                           0.0000243904487962774090654};
  const Doubles shifted = fused(x, 6.36619772367581382433e-1, Ieee<double>::whole), n = shifted - Ieee<double>::whole;
  const Doubles r = (x - n * 1.57079631090164184570) - n * 1.58932547735281966916e-8, z = r * r;
  const Doubles s = r + (r * z) * polynomial(kS, z), c = 1 + z * polynomial(kC, z);
  const Doubles y = quadrant_bit(shifted, cosine, 0) ? c : s;
  return quadrant_bit(shifted, cosine, 1) ? -y : y;
}

#ifdef __FMA__
/// The same in float alone, for |x| <= kNearAngle: 0.9 ulp.
inline constexpr float kNearAngle = 6400;
[[gnu::always_inline]] inline FullFloat nearest_sine(FullFloat x, std::uint32_t cosine) {
  using V = FullFloat;
  using Bits = BitsOf<V>;
  // x = n pi / 2 + r + low: the second part of pi / 2 has so few bits that its products are exact.
  const V shifted = fused(x, 6.36619772e-1f, Ieee<float>::whole), n = shifted - Ieee<float>::whole;
  const V first = fused(n, -1.57079637f, x), r = fused(n, 4.37139533e-8f, first);
  const V low = fused(n, -2.56334407e-12f, fused(n, 4.37139533e-8f, first - r));
  const V z = r * r, half = r * -0.5f, w = fused(half, r, 1.0f);
  const V p = fused(z, fused(z, -1.9503068e-4f, 8.3320709e-3f), -1.6666653192e-1f);
  const V q = fused(z, fused(z, 2.4419195e-5f, -1.388719421e-3f), 4.1666643182e-2f);
  const V s = r + fused(r * z, p, low), c = w + fused(z * z, q, fused(-r, low, fused(half, r, 1 - w)));
  const Bits quadrant = std::bit_cast<Bits>(shifted) + cosine;
  const V y = (quadrant & 1) != 0 ? c : s;
  return std::bit_cast<V>(std::bit_cast<Bits>(y) ^ ((quadrant << 30) & sign_bits<V>()));
}
#endif

inline Vector<double> near_sine_of(Vector<double> x, std::uint32_t cosine) { return near_sine(x, cosine); }
inline Vector<float> near_sine_of(Vector<float> x, std::uint32_t cosine) {
  return in_doubles([cosine](Doubles half) { return near_sine_of_float(half, cosine); }, x);
}

/// Where the angle is beyond `most`, the standard library's sine or cosine in its place.
template <class V>
[[gnu::noinline, gnu::cold]] V with_far_sines(V x, V y, Element<V> most, std::uint32_t cosine) {
  constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(Element<V>));
  for (int k = 0; k < kLanes; ++k)
    if (std::abs(x[k]) > most) y[k] = cosine != 0 ? std::cos(x[k]) : std::sin(x[k]);
  return y;
}

/// The sine, or with `cosine` = 1 the cosine, of angles that may be far.
template <class V>
[[gnu::noinline]] V any_sine(V x, std::uint32_t cosine) {
  constexpr Element<V> kMost = sizeof(Element<V>) == sizeof(float) ? 4e8 : 1.6e6;
  V y = near_sine_of(x, cosine);
  if (cosine == 0) y = x == 0 ? x : y;
  const auto far = magnitude_of(x) > kMost;
  std::int64_t words[sizeof far / sizeof(std::int64_t)], any = 0;
  std::memcpy(words, &far, sizeof far);
  for (const std::int64_t word : words) any |= word;
  return any == 0 ? y : with_far_sines(x, y, kMost, cosine);
}

/// y where the angle is near, elsewhere `any_sine`: an element's sine does not depend on what stands beside it.
template <class V>
[[gnu::noinline]] V with_any_sines(V x, V y, Element<V> most, std::uint32_t cosine) {
  const V far = any_sine(x, cosine);
  return magnitude_of(x) <= most ? y : far;
}

/// The sine, or with `cosine` = 1 the cosine: 1 ulp. Of near angles in place: a call takes a tenth more time.
template <class V>
[[gnu::always_inline]] inline V vector_sine(V x, std::uint32_t cosine) {
#ifdef __FMA__
  if constexpr (std::is_same_v<V, FullFloat>) {
    V y = nearest_sine(x, cosine);
    if (cosine == 0) y = x == 0 ? x : y;
    return is_all_from(-kNearAngle, negative_of(x)) ? y : with_any_sines(x, y, kNearAngle, cosine);
  }
#endif
  return any_sine(x, cosine);
}

}  // namespace taper::kernels
