#pragma once

#include "kernels/product.hpp"

#ifdef __FMA__
#include <immintrin.h>
#endif

// The vectors that products are made of.
namespace taper::kernels {

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(kVectorBytes)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
inline Vector<T> load(const T* x) {
  Vector<T> v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
template <class T>
inline void store(const Vector<T>& v, T* y) {
  std::memcpy(y, &v, sizeof v);
}

// c + a b. The build forbids the compiler to fuse by itself; here it is wanted on every vector alike.
template <class V>
inline V multiply_add(V a, V b, V c) {
  return c + a * b;
}
#if defined(__AVX512F__)
template <>
inline Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
  return _mm512_fmadd_ps(a, b, c);
}
template <>
inline Vector<double> multiply_add(Vector<double> a, Vector<double> b, Vector<double> c) {
  return _mm512_fmadd_pd(a, b, c);
}
#elif defined(__FMA__)
template <>
inline Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
  return _mm256_fmadd_ps(a, b, c);
}
template <>
inline Vector<double> multiply_add(Vector<double> a, Vector<double> b, Vector<double> c) {
  return _mm256_fmadd_pd(a, b, c);
}
#endif

/// y[i] = v[i] for i < n, or += with `add`; y is not touched beyond.
#if defined(__AVX512F__)
template <class T>
inline void store_part(const Vector<T>& v, int n, T* y, bool add) {
  if constexpr (sizeof(T) == sizeof(float)) {
    const __mmask16 mask = static_cast<__mmask16>((1u << n) - 1);
    _mm512_mask_storeu_ps(y, mask, add ? _mm512_maskz_loadu_ps(mask, y) + v : v);
  } else {
    const __mmask8 mask = static_cast<__mmask8>((1u << n) - 1);
    _mm512_mask_storeu_pd(y, mask, add ? _mm512_maskz_loadu_pd(mask, y) + v : v);
  }
}
#else
// Not inlined: where it is, the compiler keeps all sums of a tile in memory.
template <class T>
[[gnu::noinline]] void store_part(Vector<T> v, int n, T* y, bool add) {
  T part[kLanes<T>];
  store(v, part);
  for (int i = 0; i < n; ++i) y[i] = add ? y[i] + part[i] : part[i];
}
#endif

/// The first n elements of a vector, then zeros; nothing beyond is read.
template <class T>
inline Vector<T> load_part(const T* x, std::int64_t n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == sizeof(float))
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), x);
  else
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), x);
#else
  T part[kLanes<T>] = {};
  copy_run(x, n, part);
  return load(part);
#endif
}

}  // namespace taper::kernels
