#include "kernels/max_unpool.hpp"

#include <algorithm>

#include "kernels/parallel.hpp"

namespace taper::kernels {

template <class T>
void max_unpool(const MaxUnpoolParams& p, const T* x, const std::int64_t* index, T* y) {
  parallel_for(p.planes, p.in + p.out, [&](std::int64_t first, std::int64_t last) {
    std::fill(y + first * p.out, y + last * p.out, T(0));
    // y[index_i] = x_i
    for (std::int64_t plane = first; plane < last; ++plane)
      for (std::int64_t i = plane * p.in; i < (plane + 1) * p.in; ++i) y[plane * p.out + index[i]] = x[i];
  });
}

template <class T>
void max_unpool_backward(const MaxUnpoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  parallel_for(p.planes, p.in, [&](std::int64_t first, std::int64_t last) {
    // dx_i = dy[index_i]
    for (std::int64_t plane = first; plane < last; ++plane)
      for (std::int64_t i = plane * p.in; i < (plane + 1) * p.in; ++i) {
        const T d = dy[plane * p.out + index[i]];
        dx[i] = add ? dx[i] + d : d;
      }
  });
}

template void max_unpool(const MaxUnpoolParams&, const float*, const std::int64_t*, float*);
template void max_unpool_backward(const MaxUnpoolParams&, const float*, const std::int64_t*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void max_unpool(const MaxUnpoolParams&, const double*, const std::int64_t*, double*);
template void max_unpool_backward(const MaxUnpoolParams&, const double*, const std::int64_t*, double*, bool);
#endif

}  // namespace taper::kernels
