#pragma once

#include <cstdint>

#include "kernels/pool_params.hpp"

namespace taper::kernels {

struct AvgPoolParams : SlidingPoolParams {
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;  ///< 0: each window's own count
};

/// Sums of up to 64 elements of float32, 16 of them across, are taken in float32: down the rows by fours, and across in
/// four lanes, or in eight where the windows of an adaptive pool of rows differ. Longer ones of one row at each
/// element, up to 2048, are sums of sums in float32, each of neighbours that the window holds; one that is too large
/// for float32 is taken in double. All others are kept in double, where of float32 four rows may be added up first.
/// Each is divided once, exactly to the last place in float32. A dilated window without an element gives 0. A window
/// that is all of one run of memory is summed as `mean` is, by `sum_run`. What an output is depends on the shape and
/// its window: not on threads, the batch or, but for what double cannot hold of long windows that overlap, its
/// neighbours.
///
/// `x` is [planes, in...], `y` is [planes, out...]; they do not overlap.
template <class T>
void avg_pool(const AvgPoolParams& p, const T* x, T* y);
template <class T>
void adaptive_avg_pool(const AdaptivePoolParams& p, const T* x, T* y);

/// Each input position gathers gradient / divisor of the windows that hold it and is written once; 0 where
/// there is none. `add` adds to `dx` instead of overwriting it.
template <class T>
void avg_pool_backward(const AvgPoolParams& p, const T* dy, T* dx, bool add);
template <class T>
void adaptive_avg_pool_backward(const AdaptivePoolParams& p, const T* dy, T* dx, bool add);

}  // namespace taper::kernels
