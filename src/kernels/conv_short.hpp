#pragma once

#include "kernels/conv.hpp"

// Convolutions of few terms along short lines, where cutting into blocks and packing would take longer than the
// products: float32, on processors whose vectors can be read and written in part. Both tell by false that they are not
// made for the sizes or the processor, and do nothing then.
namespace taper::kernels {

/// y = x * w + b; `b` may be null.
bool short_forward(const ConvParams& p, const float* x, const float* w, const float* b, float* y);

/// The gradients to weight and bias in one pass, dw and db: overwritten, or added to; `db` may be null.
bool short_backward_parameters(const ConvParams& p, const float* dy, const float* x, float* dw, bool add_dw, float* db,
                               bool add_db);

inline bool short_forward(const ConvParams&, const double*, const double*, const double*, double*) { return false; }
inline bool short_backward_parameters(const ConvParams&, const double*, const double*, double*, bool, double*, bool) {
  return false;
}

}  // namespace taper::kernels
