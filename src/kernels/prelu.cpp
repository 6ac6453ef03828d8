#include "kernels/prelu.hpp"

#include <algorithm>

#include "kernels/array.hpp"
#include "kernels/ceil_div.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Elements of one channel that are summed in one go.
constexpr std::int64_t kBlock = 4096;

/// Cuts every [inner] into blocks and calls `body(block, channel, first, last)` for elements [first, last) of each.
template <class Body>
void for_each_block(const PReLUParams& p, const Body& body) {
  const std::int64_t blocks = ceil_div(p.inner, kBlock);
  parallel_for(p.outer * p.channels * blocks, std::min(p.inner, kBlock), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::int64_t plane = b / blocks, first = plane * p.inner + b % blocks * kBlock;
      body(b, plane % p.channels, first, std::min(first + kBlock, (plane + 1) * p.inner));
    }
  });
}

}  // namespace

template <class T>
void prelu(const PReLUParams& p, const T* x, const T* w, T* y) {
  // y = x for x > 0, else w_c x
  for_each_block(p, [=](std::int64_t, std::int64_t c, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) y[i] = x[i] > 0 ? x[i] : w[c] * x[i];
  });
}

template <class T>
void prelu_backward(const PReLUParams& p, const T* x, const T* w, const T* dy, T* dx, bool add_dx, T* dw, bool add_dw) {
  const std::int64_t blocks = ceil_div(p.inner, kBlock);
  const Array<double> sums(dw ? p.outer * p.channels * blocks : 0);
  for_each_block(p, [=, &sums](std::int64_t b, std::int64_t c, std::int64_t first, std::int64_t last) {
    // dx = dy for x > 0, else w_c dy
    if (dx)
      for (std::int64_t i = first; i < last; ++i) {
        const T step = x[i] > 0 ? dy[i] : w[c] * dy[i];
        dx[i] = add_dx ? dx[i] + step : step;
      }
    if (!dw) return;
    // dw_c = sum of x dy over x <= 0
    double sum = 0;
    for (std::int64_t i = first; i < last; ++i) sum += x[i] > 0 ? 0.0 : double(x[i]) * double(dy[i]);
    sums[b] = sum;
  });
  if (!dw) return;
  for (std::int64_t c = 0; c < p.channels; ++c) {
    double sum = add_dw ? double(dw[c]) : 0;
    for (std::int64_t o = 0; o < p.outer; ++o)
      for (std::int64_t b = 0; b < blocks; ++b) sum += sums[(o * p.channels + c) * blocks + b];
    dw[c] = T(sum);
  }
}

template void prelu(const PReLUParams&, const float*, const float*, float*);
template void prelu_backward(const PReLUParams&, const float*, const float*, const float*, float*, bool, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void prelu(const PReLUParams&, const double*, const double*, double*);
template void prelu_backward(const PReLUParams&, const double*, const double*, const double*, double*, bool, double*,
                             bool);
#endif

}  // namespace taper::kernels
