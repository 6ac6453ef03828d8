#pragma once

#include "kernels/avg_pool.hpp"

namespace taper::kernels {

/// The average pools that `avg_pool` hands on: those with a dilation. Elements are added in the order of the window's
/// taps, in double.
template <class T>
void dilated_avg_pool(const AvgPoolParams& p, const T* x, T* y);
template <class T>
void dilated_avg_pool_backward(const AvgPoolParams& p, const T* dy, T* dx, bool add);

}  // namespace taper::kernels
