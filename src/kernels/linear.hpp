#pragma once

#include <cstdint>

namespace taper::kernels {

/// Sizes of a linear layer: x is [rows, in_features], w [out_features, in_features], y [rows, out_features].
struct LinearParams {
  std::int64_t rows = 0, in_features = 0, out_features = 0;
};

/// y = x w^T + b. `b` is [out_features] or null.
template <class T>
void linear_forward(const LinearParams& p, const T* x, const T* w, const T* b, T* y);

/// Gradient to the input, dx = dy w, or += with `add`.
template <class T>
void linear_backward_input(const LinearParams& p, const T* dy, const T* w, T* dx, bool add);

/// Gradient to the weight, dw = dy^T x, or += with `add`.
template <class T>
void linear_backward_weight(const LinearParams& p, const T* dy, const T* x, T* dw, bool add);

/// Gradient to the bias, db = the sum of the rows of dy, or += with `add`; summed in double.
template <class T>
void linear_backward_bias(const LinearParams& p, const T* dy, T* db, bool add);

/// Where the gradients of a linear layer go; null where nobody needs one. Each has an own `add`.
template <class T>
struct LinearGradients {
  T* dx = nullptr;
  T* dw = nullptr;
  T* db = nullptr;
  bool add_dx = false, add_dw = false, add_db = false;
};

/// All gradients that are asked for. `x` is read for dw only, `w` for dx only.
template <class T>
void linear_backward(const LinearParams& p, const T* dy, const T* x, const T* w, const LinearGradients<T>& gradients);

}  // namespace taper::kernels
