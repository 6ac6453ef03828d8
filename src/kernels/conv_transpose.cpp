#include "kernels/conv_transpose.hpp"

#include <algorithm>

namespace taper::kernels {

template <class T>
void conv_transpose_forward(const ConvParams& p, const T* x, const T* w, const T* b, T* y) {
  conv_backward_input(p, x, w, y, false, b);
}

template <class T>
void conv_transpose_backward_input(const ConvParams& p, const T* dy, const T* w, T* dx, bool add) {
  conv_forward<T>(p, dy, w, nullptr, dx, add);
}

template <class T>
void conv_transpose_backward_weight(const ConvParams& p, const T* dy, const T* x, T* dw, bool add) {
  conv_backward_weight(p, x, dy, dw, add);
}

template <class T>
void conv_transpose_backward_bias(const ConvParams& p, const T* dy, T* db, bool add) {
  ConvParams of_y;
  of_y.batch = p.batch;
  of_y.out_channels = p.in_channels;
  std::copy_n(p.in, 3, of_y.out);
  conv_backward_bias(of_y, dy, db, add);
}

template void conv_transpose_forward(const ConvParams&, const float*, const float*, const float*, float*);
template void conv_transpose_backward_input(const ConvParams&, const float*, const float*, float*, bool);
template void conv_transpose_backward_weight(const ConvParams&, const float*, const float*, float*, bool);
template void conv_transpose_backward_bias(const ConvParams&, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void conv_transpose_forward(const ConvParams&, const double*, const double*, const double*, double*);
template void conv_transpose_backward_input(const ConvParams&, const double*, const double*, double*, bool);
template void conv_transpose_backward_weight(const ConvParams&, const double*, const double*, double*, bool);
template void conv_transpose_backward_bias(const ConvParams&, const double*, double*, bool);
#endif

}  // namespace taper::kernels
