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

// Windows of a max pool with stride two, or four side by side, a vector of them at a time: their largest elements, and
// where these are, stay in registers over all taps.

namespace taper::kernels {

/// Whether `v` takes the place of `best`, which came before it.
template <class V>
[[gnu::always_inline]] inline auto exceeds(V v, V best) {
  return (v > best) | (v != v);
}

/// The same windows in every place of a row: `taps` neighbours in each of the rows `h` of the slices `d`, of planes
/// with `height` rows of `width`.
struct RowWindows {
  Taps d, h;
  std::int64_t taps, height, width;
};

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

/// y_o = the largest element of window o, index_o its place, for `n` windows at x, x + 2, ..., of which there are as
/// many as fill a vector, with two taps or more; x is at place `at` of its plane.
template <bool kIndexed, class T>
[[gnu::noinline]] void pool_vectors(const RowWindows& w, const T* x, std::int64_t at, std::int64_t n, T* y,
                                    std::int64_t* index) {
  constexpr int N = kFullVector<T>;
  using V = typename Several<T, N>::type;
  using Offset = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Places = typename Several<Offset, N>::type;
  using Lanes = PairLanes<T>;
  for (std::int64_t block = 0; block < n; block += N) {
    // The last vector overlaps the one before, which changes nothing.
    const std::int64_t o = std::min(block, n - N);
    V best = V{} - std::numeric_limits<T>::infinity();
    Places where = {};
    const auto take = [&](V v, Places offsets) __attribute__((always_inline)) {
      const auto is_taken = exceeds(v, best);
      best = is_taken ? v : best;
      if (kIndexed) where = is_taken ? offsets : where;
    };
    for (std::int64_t i = w.d.first; i < w.d.last; i += w.d.step)
      for (std::int64_t j = w.h.first; j < w.h.last; j += w.h.step) {
        const std::int64_t row = ((i - w.d.first) * w.height + (j - w.h.first)) * w.width;
        std::int64_t t = w.taps % 2;
        const T* from = x + 2 * o + row;
        Places offsets = Places{} + static_cast<Offset>(row);
        if (t != 0) {
          take(Lanes::template of_pairs<0>(several_at<T, N>(from), several_at<T, N>(from + N)), offsets);
          ++from;
          offsets += 1;
        }
        for (; t < w.taps; t += 2, from += 2, offsets += 2) {
          const V a = several_at<T, N>(from), b = several_at<T, N>(from + N);
          const V first = Lanes::template of_pairs<0>(a, b), second = Lanes::template of_pairs<1>(a, b);
          const auto is_second = exceeds(second, first);
          take(is_second ? second : first, is_second ? offsets + 1 : offsets);
        }
      }
    best = Lanes::ordered(best);
    std::memcpy(y + o, &best, sizeof best);
    if (!kIndexed) continue;
    where = Lanes::ordered(where);
    Offset offsets[N];
    std::memcpy(offsets, &where, sizeof where);
    for (int k = 0; k < N; ++k) index[o + k] = at + 2 * (o + k) + offsets[k];
  }
}

/// The same for windows of four neighbours in one row, side by side, that fill a vector or more: pairs of pairs. In
/// several rows an element of the first pair would win over an equal one of the second in a row before it.
template <class T>
void pool_quads(RowWindows w, const T* x, std::int64_t at, std::int64_t n, T* y, std::int64_t* index) {
  constexpr std::int64_t N = kFullVector<T>, kSome = 4 * N;
  const auto pool = index ? pool_vectors<true, T> : pool_vectors<false, T>;
  T pair[2 * kSome];
  std::int64_t where[2 * kSome];
  w.taps = 2;
  for (std::int64_t block = 0; block < n; block += kSome) {
    const std::int64_t count = std::clamp(n - block, N, kSome), o = std::min(block, n - count);
    fetch_run(x + 4 * o, 4 * count, memory_ahead);
    pool(w, x + 4 * o, at + 4 * o, 2 * count, pair, where);
    pool({{0, 1, 1}, {0, 1, 1}, 2, 1, 2 * count}, pair, 0, count, y + o, index ? index + o : nullptr);
    for (std::int64_t i = o; index && i < o + count; ++i) index[i] = where[index[i]];
  }
}

}  // namespace taper::kernels
