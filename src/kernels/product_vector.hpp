#pragma once

#include "kernels/product.hpp"

// The vectors that products are made of.
namespace taper::kernels {

template <class T>
using Vector = typename Full<T>::type;

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
inline void store_part(const Vector<T>& v, int n, T* y, bool add);
/// The first n elements of a vector, then zeros; nothing beyond is read.
template <class T>
inline Vector<T> load_part(const T* x, std::int64_t n);

#if defined(__AVX512F__)
inline __mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
template <>
inline Vector<float> load_part(const float* x, std::int64_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), x);
}
template <>
inline Vector<double> load_part(const double* x, std::int64_t n) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>(first_lanes(n)), x);
}
template <>
inline void store_part(const Vector<float>& v, int n, float* y, bool add) {
  _mm512_mask_storeu_ps(y, first_lanes(n), add ? load_part(y, n) + v : v);
}
template <>
inline void store_part(const Vector<double>& v, int n, double* y, bool add) {
  _mm512_mask_storeu_pd(y, static_cast<__mmask8>(first_lanes(n)), add ? load_part(y, n) + v : v);
}
#elif defined(__AVX2__)
template <>
inline Vector<float> load_part(const float* x, std::int64_t n) {
  return _mm256_maskload_ps(x, first_lanes(n, 4));
}
template <>
inline Vector<double> load_part(const double* x, std::int64_t n) {
  return _mm256_maskload_pd(x, first_lanes(n, 8));
}
template <>
inline void store_part(const Vector<float>& v, int n, float* y, bool add) {
  _mm256_maskstore_ps(y, first_lanes(n, 4), add ? load_part(y, n) + v : v);
}
template <>
inline void store_part(const Vector<double>& v, int n, double* y, bool add) {
  _mm256_maskstore_pd(y, first_lanes(n, 8), add ? load_part(y, n) + v : v);
}
#else
template <class T>
inline Vector<T> load_part(const T* x, std::int64_t n) {
  T part[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) part[i] = i < n ? x[i] : 0;
  return load(part);
}
template <class T>
inline void store_part(const Vector<T>& v, int n, T* y, bool add) {
  T part[kLanes<T>];
  store(v, part);
  for (int i = 0; i < n; ++i) y[i] = add ? y[i] + part[i] : part[i];
}
#endif

}  // namespace taper::kernels
