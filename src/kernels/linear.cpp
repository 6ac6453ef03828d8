#include "kernels/linear.hpp"

#include <algorithm>

#include "kernels/gemm.hpp"
#include "kernels/product.hpp"
#include "kernels/reduce_driver.hpp"

namespace taper::kernels {

template <class T>
void linear_forward(const LinearParams& p, const T* x, const T* w, const T* b, T* y) {
  gemm<T>({.m = p.rows,
           .n = p.out_features,
           .k = p.in_features,
           .lda = p.in_features,
           .ldb = p.in_features,
           .ldc = p.out_features,
           .transpose_b = true,
           .any_order = true},
          x, w, y, b);
}

template <class T>
void linear_backward_input(const LinearParams& p, const T* dy, const T* w, T* dx, bool add) {
  gemm<T>({.m = p.rows,
           .n = p.in_features,
           .k = p.out_features,
           .lda = p.out_features,
           .ldb = p.in_features,
           .ldc = p.in_features,
           .add = add},
          dy, w, dx);
}

template <class T>
void linear_backward_weight(const LinearParams& p, const T* dy, const T* x, T* dw, bool add) {
  gemm<T>({.m = p.out_features,
           .n = p.in_features,
           .k = p.rows,
           .lda = p.out_features,
           .ldb = p.in_features,
           .ldc = p.in_features,
           .transpose_a = true,
           .add = add},
          dy, x, dw);
}

template <class T>
void linear_backward_bias(const LinearParams& p, const T* dy, T* db, bool add) {
  const bool far = is_far(double(p.rows) * double(p.out_features) * sizeof(T));
  const std::int64_t widest = far ? kFarColumns : kWideColumns, blocks = ceil_div(p.out_features, widest);
  const std::int64_t work = std::min<std::int64_t>(p.rows, 1 << 24) * widest / 2;
  parallel_for(blocks, work, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t f = block * widest, n = std::min(widest, p.out_features - f);
      double sum[kFarColumns];
      // sum[i] = sum over rows of dy[row, f + i]
      std::fill_n(sum, n, 0.0);
      add_columns(dy + f, p.rows, p.out_features, n, far, sum);
      for (std::int64_t i = 0; i < n; ++i)
        db[f + i] = static_cast<T>(add ? static_cast<double>(db[f + i]) + sum[i] : sum[i]);
    }
  });
}

template <class T>
void linear_backward(const LinearParams& p, const T* dy, const T* x, const T* w, const LinearGradients<T>& gradients) {
  if (gradients.dx != nullptr) linear_backward_input(p, dy, w, gradients.dx, gradients.add_dx);
  if (gradients.dw != nullptr) linear_backward_weight(p, dy, x, gradients.dw, gradients.add_dw);
  if (gradients.db != nullptr) linear_backward_bias(p, dy, gradients.db, gradients.add_db);
}

template void linear_forward(const LinearParams&, const float*, const float*, const float*, float*);
template void linear_backward_input(const LinearParams&, const float*, const float*, float*, bool);
template void linear_backward_weight(const LinearParams&, const float*, const float*, float*, bool);
template void linear_backward_bias(const LinearParams&, const float*, float*, bool);
template void linear_backward(const LinearParams&, const float*, const float*, const float*,
                              const LinearGradients<float>&);
#ifndef TAPER_ONLY_FLOAT32
template void linear_forward(const LinearParams&, const double*, const double*, const double*, double*);
template void linear_backward_input(const LinearParams&, const double*, const double*, double*, bool);
template void linear_backward_weight(const LinearParams&, const double*, const double*, double*, bool);
template void linear_backward_bias(const LinearParams&, const double*, double*, bool);
template void linear_backward(const LinearParams&, const double*, const double*, const double*,
                              const LinearGradients<double>&);
#endif

}  // namespace taper::kernels
