#pragma once

#include "kernels/product.hpp"

// What products do with vectors.
namespace taper::kernels {

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
template <>
inline Several<float, 8>::type multiply_add(Several<float, 8>::type a, Several<float, 8>::type b,
                                            Several<float, 8>::type c) {
  return _mm256_fmadd_ps(a, b, c);
}
#elif defined(__AVX2__) && defined(__FMA__)
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
template <class T>
inline void store_part(const Vector<T>& v, std::int64_t n, T* y, bool add) {
  store_first<T>(add ? load_first(y, n) + v : v, n, y);
}

}  // namespace taper::kernels
