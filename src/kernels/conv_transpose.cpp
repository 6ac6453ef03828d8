#include "kernels/conv_transpose.hpp"

#include <algorithm>

#include "kernels/parallel.hpp"

namespace taper::kernels {

template <class T>
void conv_transpose_forward(const ConvParams& p, const T* x, const T* w, const T* b, T* y) {
  const std::int64_t positions = p.in[0] * p.in[1] * p.in[2];
  if (b != nullptr) {
    // y[n, c, q] = b[c], to which the products are added
    parallel_for(p.batch * p.in_channels, positions, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t plane = first; plane < last; ++plane)
        std::fill_n(y + plane * positions, positions, b[plane % p.in_channels]);
    });
  }
  conv_backward_input(p, x, w, y, b != nullptr);
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
