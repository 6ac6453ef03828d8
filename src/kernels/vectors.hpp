#pragma once

#include <cstdint>

#if defined(__AVX2__) || defined(__FMA__)
#include <immintrin.h>
#endif

// The compiler's vectors, how wide the processor's are, and its instructions.

namespace taper::kernels {

/// Bytes of the widest vectors the file is compiled for.
#if defined(__AVX512F__)
inline constexpr int kVectorWidth = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorWidth = 32;
#else
inline constexpr int kVectorWidth = 16;
#endif

/// `N` elements of T side by side.
template <class T, int N>
struct Several {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};

/// As many T as fill a vector.
template <class T>
using Full = Several<T, kVectorWidth / static_cast<int>(sizeof(T))>;

#if defined(__AVX2__) && !defined(__AVX512F__)
/// Selects the first n of the elements of a vector that are `bytes` long.
inline __m256i first_lanes(std::int64_t n, std::int64_t bytes) {
  alignas(32) static constexpr std::int32_t kSelect[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kSelect + 8 - n * bytes / 4));
}
#endif

}  // namespace taper::kernels
