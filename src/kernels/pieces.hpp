#pragma once

#include "kernels/vector_base.hpp"

namespace taper::kernels {

/// c[0] + d (c[1] + d (c[2] + ...)) of the coefficients c[k][piece], where all pieces are among kPieces from kFirst on.
template <class V, int kPieces = 16, int kFirst = 0, int kTerms>
inline TwoParts<V> on_piece(const Element<V> (&c)[kTerms][16], BitsOf<V> piece, V d) {
  V q = looked_up_in<V, kPieces, kFirst>(c[kTerms - 1], piece);
#pragma GCC unroll 32
  for (int k = kTerms - 2; k >= 1; --k) q = fused(q, d, looked_up_in<V, kPieces, kFirst>(c[k], piece));
  const V first = looked_up_in<V, kPieces, kFirst>(c[0], piece), high = fused(q, d, first);
  return {high, fused(q, d, first - high)};
}

/// The function that has, on each of up to sixteen pieces from 0 on, coefficients for the distance of a from the middle
/// of its piece. The middles are where a + `start` is a power of two and the three quarters to the next; a piece's
/// number counts the quarters, modulo 16.
template <class V, int kPieces = 16, int kFirst = 0, int kTerms>
inline TwoParts<V> in_pieces(const Element<V> (&c)[kTerms][16], Element<V> start, V a) {
  using Bits = BitsOf<V>;
  constexpr int kShift = Ieee<Element<V>>::mantissa - 2;
  constexpr auto kQuarter = BitsOf<Element<V>>(1) << kShift;
  const Bits place = std::bit_cast<Bits>(a + start) + kQuarter / 2;
  return on_piece<V, kPieces, kFirst>(c, place >> kShift, a - (std::bit_cast<V>(place & -(Bits{} + kQuarter)) - start));
}

}  // namespace taper::kernels
