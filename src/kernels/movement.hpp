#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "taper/shape.hpp"

namespace taper::kernels {

// Copies that rearrange, for float, double and int64 (gradients: float and double).

/// y[.., i_{dims[k]}, ..] = x[.., i_k, ..]: dimension k of y is dimension dims[k] of x, which has shape `x_shape`.
/// The gradient of a permutation is the inverse permutation of dy, hence `add`.
template <class T>
void permute(std::span<const std::int64_t> x_shape, std::span<const int> dims, const T* x, T* y, bool add = false);

/// y [outer, length, inner] = x [outer, n, inner] from `start` on along the middle.
template <class T>
void narrow(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
            std::int64_t length);
/// Writes dy into that part of dx and zeros into the rest; with `add` adds to the part and leaves the rest.
template <class T>
void narrow_grad(const T* dy, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
                 std::int64_t length, bool add);
/// Puts part [outer, length, inner] into y [outer, n, inner] from `start` on, leaving the rest: one step of `cat`,
/// whose gradient is `narrow` (or `narrow_add`).
template <class T>
void place(const T* part, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
           std::int64_t length);
/// y [outer, length, inner] += that part of x: the gradient of `place` where one is already there.
template <class T>
void narrow_add(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
                std::int64_t length);

/// y[i] = value
template <class T>
void fill(T* y, std::int64_t n, T value);
/// y[i] = start + i step, computed in double; for int64 in integers, wrapping.
template <class T>
using RangeNumber = std::conditional_t<std::is_integral_v<T>, T, double>;
template <class T>
void arange(T* y, std::int64_t n, RangeNumber<T> start, RangeNumber<T> step);
/// `n` numbers from `start` to `end`, both exact, computed from the nearer end.
template <class T>
void linspace(T* y, std::int64_t n, double start, double end);

}  // namespace taper::kernels
