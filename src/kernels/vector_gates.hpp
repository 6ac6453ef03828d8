#pragma once

#include <limits>
#include <numbers>

#include "kernels/gelu_pieces.hpp"
#include "kernels/normal_tail.hpp"
#include "kernels/vector_math.hpp"

// Numbers times what lets a part of them through: x / (1 + e^-z), z being odd in x, and x Phi(x), Phi being the normal
// distribution function. Both are max(x, 0) less a tail that is even in x. Tails are multiplied by their power of two
// last, so that they are accurate where the power alone would be a denormal number or 0; |x| is limited to where the
// tail is 0. The errors are given for results of any size.

namespace taper::kernels {

/// max(x, 0) - tail; NaN for -infinity, as in PyTorch.
template <class V>
[[gnu::always_inline]] inline V gated(V x, V tail) {
  using Limits = std::numeric_limits<Element<V>>;
  return x == -Limits::infinity() ? each<V>(Limits::quiet_NaN()) : at_least<V>(0, x) - tail;
}
/// The derivative of that, from the tail's derivative for x < 0.
template <class V>
[[gnu::always_inline]] inline V gate_slope(V x, V tail_slope) {
  return x < 0 ? tail_slope : 1 - tail_slope;
}

/// a e^-z / (1 + e^-z) for a and z from 0 on, z being the sum of both parts.
template <class V>
[[gnu::always_inline]] inline V logistic_tail(V a, TwoParts<V> z) {
  const auto [shifted, rest] = exp_parts(-z.high, -z.low);
  // 1 + e^-z = d + lost,  a / (1 + e^-z) = q
  const V scale = power_of_two(near_shifted(shifted)), above = 1 + scale, d = fused(scale, rest, above);
  const V lost = fused(scale, rest, above - d), share = rough_reciprocal(d), rough = a * share;
  const V q = fused(fused(-lost, rough, division_rest(a, rough, d)), share, rough);
  return scaled_down(fused(q, rest, q), shifted);
}

/// The derivative of -x / (1 + e^z), for z < 0 and its `slope`, x z'.
template <class V>
[[gnu::always_inline]] inline V logistic_tail_slope(V slope, TwoParts<V> z) {
  const auto [shifted, rest] = exp_parts(-z.high, -z.low);
  // e / (1 + e) (1 - slope / (1 + e))
  const V scale = power_of_two(near_shifted(shifted)), share = 1 / fused(scale, rest, 1 + scale),
          y = share * fused(-slope, share, Element<V>(1));
  return scaled_down(fused(y, rest, y), shifted);
}

/// x / (1 + e^-x): 1.8 ulp.
template <class V>
[[gnu::always_inline]] inline V vector_silu(V x) {
  const V a = at_most<V>(by_size<V>(120, 760), magnitude_of(x));
  return gated(x, logistic_tail(a, {a, V{}}));
}
template <class V>
[[gnu::always_inline]] inline V vector_silu_slope(V x) {
  const V a = at_most<V>(by_size<V>(120, 760), magnitude_of(x));
  return gate_slope(x, logistic_tail_slope(a, {a, V{}}));
}

/// What the approximation x / (1 + e^-z) of gelu, z = 2 sqrt(2 / pi) (x + 0.044715 x^3), is of a = |x|.
template <class V>
struct GeluArgument {
  V a, square;
  TwoParts<V> z;
};

/// 2 sqrt(2 / pi) and 0.044715 of it, each less its rounding.
inline constexpr double kGeluFirst = 1.5957691216057308, kGeluFirstLow = -9.9693088091109203e-17,
                        kGeluThird = 0.07135481627260025, kGeluThirdLow = -6.1751499181553155e-19;
template <class V>
inline constexpr Element<V> kGeluTanhEnd = by_size<V>(12, 24);

template <class V>
[[gnu::always_inline]] inline GeluArgument<V> gelu_argument(V a) {
  using T = Element<V>;
  constexpr T kFirst = T(kGeluFirst), kThird = T(kGeluThird);
  constexpr T kFirstLow = T(kGeluFirst - kFirst + kGeluFirstLow), kThirdLow = T(kGeluThird - kThird + kGeluThirdLow);
  const V square = a * a, third = kThird * square;
  // z = a w,  w = first + third a^2, with what their roundings lose
  const V w = kFirst + third, left = w - kFirst, lost = (kFirst - (w - left)) + (third - left);
  const V square_low = product_rest(a, a, square);
  const V third_low = fused(square_low, kThird, fused(square, kThirdLow, product_rest(V{} + kThird, square, third)));
  const V z = a * w;
  return {a, square, {z, fused(a, lost + (third_low + kFirstLow), product_rest(a, w, z))}};
}

/// x / (1 + e^-z): 1.8 ulp.
template <class V>
[[gnu::always_inline]] inline V vector_gelu_tanh(V x) {
  const GeluArgument<V> g = gelu_argument(at_most<V>(kGeluTanhEnd<V>, magnitude_of(x)));
  return gated(x, logistic_tail(g.a, g.z));
}
template <class V>
[[gnu::always_inline]] inline V vector_gelu_tanh_slope(V x) {
  const GeluArgument<V> g = gelu_argument(at_most<V>(kGeluTanhEnd<V>, magnitude_of(x)));
  const V slope = g.a * fused(g.square, Element<V>(3 * kGeluThird), Element<V>(kGeluFirst));
  return gate_slope(x, logistic_tail_slope(slope, g.z));
}

/// e^(-a^2 / 2)
template <class V>
[[gnu::always_inline]] inline ExpParts<V> normal_bell(V a) {
  const V half = Element<V>(-0.5) * a, square = a * half;
  return exp_parts(square, product_rest(a, half, square));
}

/// x Phi(x), wherever x is.
template <class V>
[[gnu::always_inline]] inline V gelu_anywhere(V x) {
  using Tail = NormalTail<Element<V>>;
  const V a = at_most<V>(Tail::end, magnitude_of(x));
  const ExpParts<V> power = normal_bell(a);
  const auto [tail, low] = in_pieces<V>(Tail::tail, Tail::start, a);
  return gated(x, scaled_down(tail + fused(tail, power.rest, fused(low, power.rest, low)), power.shifted));
}

#ifdef __AVX2__
/// The same up to `end`, in the first `kPieces` pieces.
template <int kPieces>
[[gnu::always_inline]] inline FullFloat gelu_near(FullFloat x) {
  using V = FullFloat;
  const V a = at_most<V>(GeluPieces::end, magnitude_of(x));
  const auto piece = std::bit_cast<BitsOf<V>>(fused(a * (a + 6), GeluPieces::steps, V{} + Ieee<float>::whole));
  const V d = a - looked_up_in<V, kPieces>(GeluPieces::middle, piece);
  return at_least<V>(0, x) - on_piece<V, kPieces>(GeluPieces::tail, piece, d).high;
}

/// The same where the processor looks up sixteen numbers: sooner if none is far below 0, as is usual.
inline FullFloat gelu_in_pieces(FullFloat x) {
  const FullFloat near = gelu_near<16>(x);
  constexpr float kFar = -5.3f;  // behind it the roundings of the steps of the polynomial count
  if (!is_all_from(kFar, x)) [[unlikely]]
    return x >= kFar ? near : gelu_anywhere(x);
  return near;
}
#if !defined(__AVX512F__)
/// The same, out of line.
[[gnu::noinline]] inline FullFloat gelu_beyond(FullFloat x) { return gelu_in_pieces(x); }
#endif
#endif

/// x Phi(x): 1.6 ulp.
template <class V>
[[gnu::always_inline]] inline V vector_gelu(V x) {
#ifdef __AVX2__
  if constexpr (std::is_same_v<V, float>) return gelu_in_pieces(x + FullFloat{})[0];
#if !defined(__AVX512F__)
  // Eight numbers are looked up in half the time.
  if constexpr (std::is_same_v<V, FullFloat>)
    return is_all_within(-GeluPieces::eight, GeluPieces::eight, x) ? gelu_near<8>(x) : gelu_beyond(x);
#endif
  if constexpr (std::is_same_v<V, FullFloat>) return gelu_in_pieces(x);
#endif
  return gelu_anywhere(x);
}

/// Its slope, in the first `kPieces` pieces.
template <int kPieces, class V>
[[gnu::always_inline]] inline V gelu_slope_near(V x) {
  using Tail = NormalTail<Element<V>>;
  constexpr int kFirst = kPieces == 8 ? 13 : 0;  // the piece of 0, where others are left out
  const V a = at_most<V>(Tail::end, magnitude_of(x));
  const ExpParts<V> power = normal_bell(a);
  const V slope = in_pieces<V, kPieces, kFirst>(Tail::slope, Tail::start, a).high;
  const V tail = fused(slope, power.rest, slope);
  return gate_slope(x, kPieces == 8 ? tail * power_of_two(power.shifted) : scaled_down(tail, power.shifted));
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/// The same, out of line.
[[gnu::noinline]] inline FullFloat gelu_slope_beyond(FullFloat x) { return gelu_slope_near<16>(x); }
#endif
template <class V>
[[gnu::always_inline]] inline V vector_gelu_slope(V x) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (std::is_same_v<V, FullFloat>)
    return is_all_within(-GeluPieces::eight, GeluPieces::eight, x) ? gelu_slope_near<8>(x) : gelu_slope_beyond(x);
#endif
  return gelu_slope_near<16>(x);
}

/// beta x with what its rounding loses, where that counts.
template <class V>
[[gnu::always_inline]] inline TwoParts<V> softplus_argument(V x, Element<V> beta) {
  const V z = x * beta;
  return {z, magnitude_of(z) < by_size<V>(120, 760) ? product_rest(x, V{} + beta, z) : V{}};
}

/// log(1 + e^(beta x)) / beta: 2 ulp.
template <class V>
[[gnu::always_inline]] inline V vector_softplus(V x, Element<V> beta) {
  const auto [z, beyond] = softplus_argument(x, beta);
  const auto [shifted, rest] =
      exp_parts(at_least<V>(by_size<V>(-170, -1400), -magnitude_of(z)), z < 0 ? beyond : -beyond);
  // log(1 + e) = e, and e may be a denormal number, where e is small
  const V scale = power_of_two(near_shifted(shifted)), power = 1 + rest;
  const V e = power * scale, low = (rest - (power - 1)) * scale;
  const auto small = z * z > by_size<V>(900, 2025);
  const V share = (small ? power : vector_log1p_fraction(e, low)) / beta;
  const V tail = scaled_down(share, small ? shifted : each<V>(Ieee<Element<V>>::whole));
  return z > 0 ? x + tail : tail;
}
template <class V>
[[gnu::always_inline]] inline V vector_softplus_slope(V x, Element<V> beta) {
  const auto [z, beyond] = softplus_argument(x, beta);
  return vector_sigmoid(z, z < 0 ? beyond : -beyond);
}

}  // namespace taper::kernels
