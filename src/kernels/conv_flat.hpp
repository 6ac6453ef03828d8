#pragma once

#include "kernels/conv_sweep.hpp"

// Sums over a single channel of small planes, or short lines, that are as wide as their results: what a tap finds of a
// plane is the plane itself, moved by one distance, but for elements across a border, which masks leave out. So a plane
// is one run, whose vectors need not end where lines do: float32, on AVX2. Both tell by false that they are not made
// for the sizes or the processor, and do nothing then.
namespace taper::kernels {

/// y = the sums of a sweep, plus `b`, which may be null, or += with `add`.
bool flat_sum(const Sweep& s, const float* x, const float* w, const float* b, float* y, bool add);

/// The gradient of the weight, dw, from that of a forward sweep's results, dy: overwritten, or added to.
bool flat_gradient(const Sweep& s, const float* dy, const float* x, float* dw, bool add);

inline bool flat_sum(const Sweep&, const double*, const double*, const double*, double*, bool) { return false; }
inline bool flat_gradient(const Sweep&, const double*, const double*, double*, bool) { return false; }

}  // namespace taper::kernels
