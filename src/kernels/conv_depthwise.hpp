#pragma once

#include "kernels/conv_sweep.hpp"

// Sums over a single channel, as those of convolutions with one channel a group, where cutting into blocks takes longer
// than the few terms of a result: float32, one or two dimensions.
namespace taper::kernels {

/// y = the sums of some sweeps, whose results lie between each other, plus `b`, which may be null, or += with `add`.
/// False if it is not made for the sizes; nothing is done then.
bool depthwise_sum(const Sweep* sweeps, int count, const float* x, const float* w, const float* b, float* y, bool add);

inline bool depthwise_sum(const Sweep*, int, const double*, const double*, const double*, double*, bool) {
  return false;
}

}  // namespace taper::kernels
