#pragma once

#include <cstdint>

#include "kernels/pool_params.hpp"

namespace taper::kernels {

/// y_o is the largest element of window o, index_o where in its plane it is: the first of equal ones; a NaN is larger
/// than any number, and of several the last one counts. Padding is never chosen. A null `index` is not written; `y` is
/// the same bits with and without it.
///
/// `x` is [planes, in...], `y` and `index` are [planes, out...]; none overlap.
template <class T>
void max_pool(const SlidingPoolParams& p, const T* x, T* y, std::int64_t* index);
template <class T>
void adaptive_max_pool(const AdaptivePoolParams& p, const T* x, T* y, std::int64_t* index);

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

}  // namespace taper::kernels
