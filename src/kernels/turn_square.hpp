#pragma once

#include <utility>

#include "kernels/vectors.hpp"

// Squares of elements, one vector a side, turned in the processor's registers.
namespace taper::kernels {

/// Exchanges the squares of S x S elements off the diagonals of all squares of twice that side.
template <int S, class V, int... I>
[[gnu::always_inline]] inline void exchange(V* v, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if (i & S) continue;
    const V a = v[i], b = v[i + S];
    v[i] = __builtin_shufflevector(a, b, (I & S ? n + I - S : I)...);
    v[i + S] = __builtin_shufflevector(a, b, (I & S ? n + I : I + S)...);
  }
}

/// The first (`High` = 0) or second halves of the 16-byte parts of two vectors, their elements taking turns.
template <int Quad, int High, class V, int... I>
[[gnu::always_inline]] inline V interleave(const V& a, const V& b, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  return __builtin_shufflevector(a, b, (I / Quad * Quad + High * Quad / 2 + I % Quad / 2 + (I % 2 != 0 ? n : 0))...);
}

/// v[i][j] = v[j][i] for as many vectors as one has elements.
template <class T>
[[gnu::always_inline]] inline void turn_square(Vector<T>* v) {
  using V = Vector<T>;
  constexpr int n = kVectorWidth / static_cast<int>(sizeof(T)), quad = 16 / static_cast<int>(sizeof(T));
  constexpr auto lanes = std::make_integer_sequence<int, n>();
  // Parts of 16 bytes go to their places,
  if constexpr (n > 2 * quad) exchange<2 * quad>(v, lanes);
  if constexpr (n > quad) exchange<quad>(v, lanes);
    // and within them two rounds of card shuffling turn four rows of four, one turns two of two.
#pragma GCC unroll 8
  for (int j = 0; j < n; j += quad)
#pragma GCC unroll 2
    for (int round = 1; round < quad; round *= 2) {
      V w[quad];
#pragma GCC unroll 4
      for (int r = 0; r < quad / 2; ++r) {
        w[2 * r] = interleave<quad, 0>(v[j + r], v[j + r + quad / 2], lanes);
        w[2 * r + 1] = interleave<quad, 1>(v[j + r], v[j + r + quad / 2], lanes);
      }
#pragma GCC unroll 4
      for (int r = 0; r < quad; ++r) v[j + r] = w[r];
    }
}

}  // namespace taper::kernels
