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
  alignas(32) static constexpr std::int32_t kSelect[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kSelect + 8 - n * bytes / 4));
}

/// Stores the first n of eight elements of 4 bytes by halves: with a mask that takes several times as long.
[[gnu::noinline]] inline void store_halves(__m256 v, std::int64_t n, void* y) {
  auto* to = static_cast<float*>(y);
  if (n == 8) return _mm256_storeu_ps(to, v);
  __m128 part = _mm256_castps256_ps128(v);
  if ((n & 4) != 0) {
    _mm_storeu_ps(to, part);
    part = _mm256_extractf128_ps(v, 1);
    to += 4;
  }
  if ((n & 2) != 0) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
    part = _mm_movehl_ps(part, part);
    to += 2;
  }
  if ((n & 1) != 0) _mm_store_ss(to, part);
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
  store_halves(__m256(v), n * static_cast<std::int64_t>(sizeof(T) / sizeof(float)), y);
#else
  T part[kLanes<T>];
  store(v, part);
  for (std::int64_t i = 0; i < n; ++i) y[i] = part[i];
#endif
}

}  // namespace taper::kernels
