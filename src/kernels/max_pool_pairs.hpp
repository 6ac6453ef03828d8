#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/window.hpp"
#include "kernels/extreme_of.hpp"
#include "kernels/loop_hints.hpp"

// Vectors of windows of a max pool, and windows of four elements side by side.

namespace taper::kernels {

/// Whether `v` takes the place of `best`, which came before it.
template <class V>
[[gnu::always_inline]] inline auto exceeds(V v, V best) {
  return (v > best) | (v != v);
}

/// Pairs of neighbours, of which two vectors hold one for each window, the first or second of every pair: windows are
/// in the order that the parts of 16 bytes of both vectors, in turns, give.
template <class T, int N = kFullVector<T>, class = std::make_integer_sequence<int, N>>
struct PairLanes;

template <class T, int N, int... l>
struct PairLanes<T, N, std::integer_sequence<int, l...>> {
  static constexpr int kPart = 16 / static_cast<int>(sizeof(T)), kHalf = kPart / 2;

  template <int kSecond, class V>
  [[gnu::always_inline]] static V of_pairs(V a, V b) {
    return __builtin_shufflevector(a, b,
                                   (l / kPart * kPart + l % kHalf * 2 + kSecond + (l % kPart < kHalf ? 0 : N))...);
  }
  /// The windows in their order.
  template <class V>
  [[gnu::always_inline]] static V ordered(V v) {
    return __builtin_shufflevector(v, v, (l % (N / 2) / kHalf * kPart + l % kHalf + (l < N / 2 ? 0 : kHalf))...);
  }
};

/// Replaces `best`, and the place `where` it is, where `v` exceeds it.
template <class V, class P>
[[gnu::always_inline]] inline void take_larger(const V& v, const P& at, V& best, P& where) {
#if defined(__AVX512F__)
  if constexpr (sizeof v == 64 && sizeof best[0] == 4) {
    const auto is_taken = static_cast<__mmask16>(_mm512_cmp_ps_mask(__m512(v), __m512(best), _CMP_GT_OQ) |
                                                 _mm512_cmp_ps_mask(__m512(v), __m512(v), _CMP_UNORD_Q));
    best = V(_mm512_mask_mov_ps(__m512(best), is_taken, __m512(v)));
    where = P(_mm512_mask_mov_epi32(__m512i(where), is_taken, __m512i(at)));
    return;
  }
#endif
  const auto is_taken = exceeds(v, best);
  best = is_taken ? v : best;
  where = is_taken ? at : where;
}

/// y_o = the largest element of window o, index_o its place unless that is null, for `n` windows of four neighbours
/// side by side, as many as fill a vector or more: pairs of pairs. x is at place `at` of its plane; places beside each
/// other are below 2^31. Memory is asked for `ahead` bytes in front, unless that is 0.
template <class T>
[[gnu::noinline]] void pool_quads(const T* x, std::int64_t at, std::int64_t n, std::uintptr_t ahead, T* y,
                                  std::int64_t* index) {
  constexpr int N = kFullVector<T>;
  using V = typename Several<T, N>::type;
  using Offset = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Places = typename Several<Offset, N>::type;
  using Lanes = PairLanes<T>;
  // The larger of each pair of neighbours, and the places of these.
  const auto pair =
      [](const V& a, const V& b, const Places& a_at, const Places& b_at, Places& where) __attribute__((always_inline)) {
    V best = Lanes::template of_pairs<0>(a, b);
    Places best_at = Lanes::template of_pairs<0>(a_at, b_at);
    take_larger(Lanes::template of_pairs<1>(a, b), Lanes::template of_pairs<1>(a_at, b_at), best, best_at);
    where = Lanes::ordered(best_at);
    return V(Lanes::ordered(best));
  };
  Places lanes;
  for (int l = 0; l < N; ++l) lanes[l] = static_cast<Offset>(l);
  for (std::int64_t block = 0; block < n; block += N) {
    // The last vector overlaps the one before, which changes nothing.
    const std::int64_t o = std::min(block, n - N);
    const T* const from = x + 4 * o;
    if (ahead > 0) fetch_run(from, 4 * N, ahead);
    Places where[2], all;
    V best[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
      best[i] = pair(several_at<T, N>(from + 2 * i * N), several_at<T, N>(from + (2 * i + 1) * N), lanes + 2 * i * N,
                     lanes + (2 * i + 1) * N, where[i]);
    best[0] = pair(best[0], best[1], where[0], where[1], all);
    std::memcpy(y + o, &best[0], sizeof best[0]);
    if (index == nullptr) continue;
    Offset offsets[N];
    std::memcpy(offsets, &all, sizeof all);
    for (int k = 0; k < N; ++k) index[o + k] = at + 4 * o + offsets[k];
  }
}

}  // namespace taper::kernels
