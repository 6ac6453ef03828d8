#pragma once

#include "base/resample.hpp"

namespace taper::kernels {

/// Resizing of `planes` blocks of depth, height and width. With fewer spatial dimensions the ones in front stay as
/// they are here.
struct UpsampleParams {
  std::int64_t planes = 0;
  Resampling axis[3];
  bool cubic = false;  ///< four elements along height and width make one, by the axes' linear rules; depth stays
};

/// y = x at the places that the axes name, in double, rounded once. An input that an output does not need, with a
/// weight of 0, does not reach it: not even as NaN.
///
/// `x` is [planes, in...], `y` is [planes, out...]; they do not overlap.
template <class T>
void upsample(const UpsampleParams& p, const T* x, T* y);

/// The adjoint: each input position gathers gradient * weight from the outputs that read it, in double, and is written
/// once; 0 where there is none. `add` adds to `dx` instead of overwriting it.
template <class T>
void upsample_backward(const UpsampleParams& p, const T* dy, T* dx, bool add);

}  // namespace taper::kernels
