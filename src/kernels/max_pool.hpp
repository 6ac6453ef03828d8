#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/pool_params.hpp"

namespace taper::kernels {

/// y_o is the largest element of window o, index_o where in its plane it is: the first of equal ones; a NaN is larger
/// than any number, and of several the last one counts. Padding is never chosen. A null `index` is not written; `y` is
/// the same bits with and without it.
///
/// `x` is [planes, in...], `y` and `index` are [planes, out...]; none overlap.
template <class T>
inline void max_pool(const SlidingPoolParams& p, const T* x, T* y, std::int64_t* index);
template <class T>
void adaptive_max_pool(const AdaptivePoolParams& p, const T* x, T* y, std::int64_t* index);

/// `max_pool` of any windows.
template <class T>
void max_pool_any(const SlidingPoolParams& p, const T* x, T* y, std::int64_t* index);
/// The same with vectors of 64 bytes, where those are faster; returns whether they are, and all elements finite. What
/// is written is of no use otherwise.
bool max_pool_wide(const SlidingPoolParams& p, const float* x, float* y, std::int64_t* index);

/// y = max(y, 0), and -1 for its index where that is 0: what `max_pool` gives of max(x, 0), and the windows whose
/// gradients go nowhere. NaN stays.
void keep_positive(std::int64_t n, float* y, std::int64_t* index);

/// Each input position takes the sum of the gradients of the outputs it was chosen for, in double where one of them
/// might be in more than seven sums that are rounded; 0 where there are none. `add` adds to `dx` instead of overwriting
/// it. `index` is what the forward wrote; one that is outside its window's plane is passed over.
template <class T>
void max_pool_backward(const SlidingPoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add);
template <class T>
void adaptive_max_pool_backward(const AdaptivePoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add);

template <class T>
inline void max_pool(const SlidingPoolParams& p, const T* x, T* y, std::int64_t* index) {
  if constexpr (std::is_same_v<T, float>)
    if (max_pool_wide(p, x, y, index)) return;
  max_pool_any(p, x, y, index);
}

}  // namespace taper::kernels
