#pragma once

#include "kernels/conv.hpp"

// Convolutions over planes whose lines fill no vector: float32, on processors whose vectors can be read and written in
// part. Both tell by false that the other ways are faster, and do nothing then.
namespace taper::kernels {

/// Gradient to the input: overwrites dx, or adds to it with `add`.
bool plane_backward_input(const ConvParams& p, const float* dy, const float* w, float* dx, bool add);

inline bool plane_backward_input(const ConvParams&, const double*, const double*, double*, bool) { return false; }

}  // namespace taper::kernels
