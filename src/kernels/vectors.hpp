#pragma once

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

}  // namespace taper::kernels
