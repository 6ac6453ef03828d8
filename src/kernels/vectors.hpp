#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

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

/// As many T as fill a vector, and how many these are.
template <class T>
inline constexpr int kLanes = kVectorWidth / static_cast<int>(sizeof(T));
template <class T>
using Vector = typename Several<T, kLanes<T>>::type;

template <class T>
[[gnu::always_inline]] inline Vector<T> load(const T* x) {
  Vector<T> v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store(const Vector<T>& v, T* y) {
  std::memcpy(y, &v, sizeof v);
}

#if defined(__AVX512F__)
/// Selects the first n of a vector's elements.
inline __mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
#elif defined(__AVX2__)
/// Selects the first n of a vector's elements that are `bytes` long.
inline __m256i first_lanes(std::int64_t n, std::int64_t bytes) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n * bytes / 4)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/// The first `n` elements, at most all of a vector, then zeros; nothing beyond is read.
template <class T>
[[gnu::always_inline]] inline Vector<T> load_first(const T* x, std::int64_t n) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return Vector<T>(_mm512_maskz_loadu_ps(first_lanes(n), x));
  else
    return Vector<T>(_mm512_maskz_loadu_pd(static_cast<__mmask8>(first_lanes(n)), x));
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    return Vector<T>(_mm256_maskload_ps(x, first_lanes(n, sizeof(T))));
  else
    return Vector<T>(_mm256_maskload_pd(x, first_lanes(n, sizeof(T))));
#else
  T part[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) part[i] = i < n ? x[i] : 0;
  return load(part);
#endif
}

/// Stores the first `n` elements, at most all of a vector; nothing beyond is written.
template <class T>
[[gnu::always_inline]] inline void store_first(const Vector<T>& v, std::int64_t n, T* y) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    _mm512_mask_storeu_ps(y, first_lanes(n), v);
  else
    _mm512_mask_storeu_pd(y, static_cast<__mmask8>(first_lanes(n)), v);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    _mm256_maskstore_ps(y, first_lanes(n, sizeof(T)), v);
  else
    _mm256_maskstore_pd(y, first_lanes(n, sizeof(T)), v);
#else
  T part[kLanes<T>];
  store(v, part);
  for (std::int64_t i = 0; i < n; ++i) y[i] = part[i];
#endif
}

}  // namespace taper::kernels
