#pragma once

#include "kernels/conv_sweep.hpp"

namespace taper::kernels {

/// The most sweeps that are summed together.
inline constexpr int kMostTurns = 8;

/// The sums of `count` sweeps plus `b`, which may be null, or added to y with `add`, with the rows of the result along
/// the vectors and its positions one by one: whatever the length of its lines, all lanes are used. Several sweeps read
/// the same signal and have the same strides of the result; their positions lie between each other, and a position of
/// none is zero plus `b`. Float32, on processors whose vectors can be read and written in part. False where the other
/// ways are faster; it then does nothing.
bool turned_sum(const Sweep* sweeps, int count, const float* x, const float* w, const float* b, float* y, bool add);

inline bool turned_sum(const Sweep*, int, const double*, const double*, const double*, double*, bool) { return false; }

}  // namespace taper::kernels
