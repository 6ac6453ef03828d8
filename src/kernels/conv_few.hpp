#pragma once

#include "kernels/conv_sweep.hpp"

namespace taper::kernels {

/// The sums of `count` sweeps, whose results lie between each other, plus `b`, which may be null, or added to y with
/// `add`: for so few products that a plan, copies and blocks would take longer, every line of results is summed from
/// the signal as it lies. Float32, on processors whose vectors can be read and written in part. False where there are
/// more products; it then does nothing.
bool few_sum(const Sweep* sweeps, int count, const float* x, const float* w, const float* b, float* y, bool add);

inline bool few_sum(const Sweep*, int, const double*, const double*, const double*, double*, bool) { return false; }

}  // namespace taper::kernels
