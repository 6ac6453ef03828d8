#pragma once

#include <cstdint>

namespace taper::kernels {

/// x [outer, channels, inner] with one slope w for each channel.
struct PReLUParams {
  std::int64_t outer, channels, inner;
};

template <class T>
void prelu(const PReLUParams& p, const T* x, const T* w, T* y);

/// A null `dx` or `dw` is not computed. The sums for dw are in double, in an order that depends on the sizes alone;
/// they take a small scratch memory of their own.
template <class T>
void prelu_backward(const PReLUParams& p, const T* x, const T* w, const T* dy, T* dx, bool add_dx, T* dw, bool add_dw);

}  // namespace taper::kernels
