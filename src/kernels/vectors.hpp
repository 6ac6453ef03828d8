#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__AVX2__) || defined(__FMA__)
#include <immintrin.h>
#endif

// The compiler's vectors, how wide the processor's are, its instructions, and how vectors are read and stored.

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
/// Whether loops avoid loads and stores of parts of vectors: with AVX2 they take several times as long as whole ones.
/// Of float32 alone, as the library is kept small.
template <class T>
inline constexpr bool kAvoidsParts = kVectorWidth == 32 && sizeof(T) == sizeof(float);

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

template <class V, class T, int... L>
[[gnu::always_inline]] inline V every(const T* x, std::int64_t step, std::integer_sequence<int, L...>) {
  return V{x[L * step]...};
}
/// The elements x_0, x_step, x_{2 step}, ...: as many as fill a V.
template <class V, class T>
[[gnu::always_inline]] inline V every(const T* x, std::int64_t step) {
  return every<V>(x, step, std::make_integer_sequence<int, sizeof(V) / sizeof(T)>());
}

template <int kHalf, class V, int... L>
[[gnu::always_inline]] inline auto half_of(const V& v, std::integer_sequence<int, L...>) {
#if defined(__AVX2__)
  // GCC 12 would move halves across, which takes AMD's older processors several times as long.
  if constexpr (sizeof(V) == 32) {
    using Half = typename Several<std::remove_cvref_t<decltype(v[0])>, sizeof...(L)>::type;
    return Half(kHalf == 0 ? _mm256_castps256_ps128(__m256(v)) : _mm256_extractf128_ps(__m256(v), 1));
  } else
#endif
    return __builtin_shufflevector(v, v, (kHalf * static_cast<int>(sizeof...(L)) + L)...);
}
/// The first half of a vector (0) or the second one (1).
template <int kHalf, class V>
[[gnu::always_inline]] inline auto half_of(const V& v) {
  return half_of<kHalf>(v, std::make_integer_sequence<int, sizeof(V) / sizeof(v[0]) / 2>());
}

#if defined(__AVX2__)
/// A half of a (0 or 1) and behind it one of b: what takes several times as long as one instruction on processors that
/// work on halves.
template <int kOfA, int kOfB, class V>
[[gnu::always_inline]] inline V two_halves(const V& a, const V& b) {
  const __m256 first = kOfA == 0 ? __m256(a) : _mm256_castps128_ps256(__m128(half_of<1>(a)));
  return V(kOfB == 1 ? _mm256_blend_ps(first, __m256(b), 0xf0) : _mm256_insertf128_ps(first, __m128(half_of<0>(b)), 1));
}
#endif

/// The lanes of two vectors in turn: the first vector of them (`kHalf` = 0), or the second.
template <int kHalf, class V, int... L>
[[gnu::always_inline]] inline V in_turns(const V& a, const V& b, std::integer_sequence<int, L...>) {
  constexpr int n = sizeof...(L);
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (sizeof(V) == 32) {
    constexpr int half = n / 2;
    const V low = __builtin_shufflevector(a, b, (L / half * half + L % half / 2 + L % 2 * n)...);
    const V high = __builtin_shufflevector(a, b, (L / half * half + L % half / 2 + half / 2 + L % 2 * n)...);
    return two_halves<kHalf, kHalf>(low, high);
  }
#endif
  return __builtin_shufflevector(a, b, (L / 2 + kHalf * n / 2 + L % 2 * n)...);
}

#if defined(__AVX2__)
/// Selects the first n elements of a vector.
template <class T>
[[gnu::always_inline]] inline auto first_lanes(std::int64_t n) {
#if defined(__AVX512F__)
  return static_cast<std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>>((1u << n) - 1);
#else
  constexpr int each = sizeof(T) / 4;
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n) * each), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
#endif
}
#endif

/// The first `n` elements, at most all of a vector, then zeros; nothing beyond is read.
template <class T>
[[gnu::always_inline]] inline Vector<T> load_first(const T* x, std::int64_t n) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return Vector<T>(_mm512_maskz_loadu_ps(first_lanes<T>(n), x));
  else
    return Vector<T>(_mm512_maskz_loadu_pd(first_lanes<T>(n), x));
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    return Vector<T>(_mm256_maskload_ps(x, first_lanes<T>(n)));
  else
    return Vector<T>(_mm256_maskload_pd(x, first_lanes<T>(n)));
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
    _mm512_mask_storeu_ps(y, first_lanes<T>(n), v);
  else
    _mm512_mask_storeu_pd(y, first_lanes<T>(n), v);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    _mm256_maskstore_ps(y, first_lanes<T>(n), v);
  else
    _mm256_maskstore_pd(y, first_lanes<T>(n), v);
#else
  T part[kLanes<T>];
  store(v, part);
  for (std::int64_t i = 0; i < n; ++i) y[i] = part[i];
#endif
}

}  // namespace taper::kernels
