#pragma once

#include <cstdint>

namespace taper::kernels {

// Softmax along the middle of x [outer, n, inner], for float and double. Sums run in double in a fixed order. A row
// that holds NaN or +inf, or nothing but -inf, gives NaN. The gradients are computed from the output y; `dx` may be
// `dy`, and y may be x.

/// y = e^(x - max) / sum e^(x - max)
template <class T>
void softmax(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner);
/// dx = y (dy - sum dy y)
template <class T>
void softmax_grad(const T* dy, const T* y, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner, bool add);

/// Softmax of the rows of x [rows, n], in which a row of nothing but -inf gives zeros.
template <class T>
void masked_softmax(const T* x, T* y, std::int64_t rows, std::int64_t n);

/// y = x - max - log(sum e^(x - max))
template <class T>
void log_softmax(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner);
/// dx = dy - e^y sum dy
template <class T>
void log_softmax_grad(const T* dy, const T* y, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner, bool add);

}  // namespace taper::kernels
