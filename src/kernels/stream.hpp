#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/loop_hints.hpp"
#include "kernels/vectors.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/// Results that go past the caches, so that what they replace is not read first.
namespace taper::kernels {

using detail::beyond_caches;
using detail::spread_times;

/// From how many elements behind y on vectors are aligned, or what has so many bytes.
template <class T>
std::int64_t lanes_until_aligned(const T* y, std::size_t bytes = kVectorWidth) {
  return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(y) % bytes / sizeof(T));
}

/// Stores where `y` is aligned as vectors are. `end_stream` comes before other threads may read it.
template <class T>
[[gnu::always_inline]] inline void stream(const Vector<T>& v, T* y) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(y), reinterpret_cast<__m512i>(v));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(y), reinterpret_cast<__m256i>(v));
#else
  store<T>(v, y);
#endif
}
/// Stores where `y` is aligned, past the caches if it `streams`.
template <bool streams, class V, class T>
[[gnu::always_inline]] inline void store_aligned(const V& v, T* y) {
  if constexpr (streams)
    stream<T>(v, y);
  else
    store<T>(v, y);
}
/// Makes what was streamed known to other threads.
inline void end_stream() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

/// Whether so many bytes of results are filled past the caches. Measured with vectors of 64 bytes alone.
inline bool fills_past(double bytes) { return kVectorWidth == 64 && bytes >= static_cast<double>(beyond_caches); }

/// Fills the elements [first, last) of y past the caches: `piece(i, n, to)` computes the n from i on, 2 KB at most
/// at a time, at `to`: in y, or near.
template <class T, class Piece>
[[gnu::always_inline]] inline void fill_past(T* y, std::int64_t first, std::int64_t last, const Piece& piece) {
  constexpr std::int64_t kSome = 2048 / sizeof(T);
  alignas(kVectorWidth) T some[kSome];
  const std::int64_t begin = std::min(first + lanes_until_aligned(y + first), last);
  const std::int64_t end = begin + (last - begin) / kSome * kSome;
  for (std::int64_t i = first, n; i < last; i += n) {
    n = i < begin ? begin - i : i < end ? kSome : last - i;
    if (n < kSome) {
      piece(i, n, y + i);
      continue;
    }
    piece(i, n, &some[0]);
    for (std::int64_t j = 0; j < n; j += kLanes<T>) stream<T>(load(some + j), y + i + j);
  }
  end_stream();
}

}  // namespace taper::kernels
