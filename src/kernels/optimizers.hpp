#pragma once

#include <cstdint>

namespace taper::kernels {

// One step of an optimiser over `n` parameters p with gradients g, in one pass, for float and double. The order of the
// operations is that of PyTorch's single-tensor implementation. State buffers have the length of p,
// and no two buffers overlap.

struct SgdStep {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  bool first = false;  ///< the first step: the momentum buffer is set, not read
};

/// `momentum` may be null when `s.momentum` is 0.
template <class T>
void sgd_step(const SgdStep& s, T* p, const T* g, T* momentum, std::int64_t n);

struct AdamStep {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;  ///< AdamW: the weight decay shrinks p itself
  bool maximize = false;
  std::int64_t step = 1;  ///< counted from 1
};

/// `max_square` is null without amsgrad.
template <class T>
void adam_step(const AdamStep& s, T* p, const T* g, T* average, T* square, T* max_square, std::int64_t n);

struct RmspropStep {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool maximize = false;
};

/// `average` is null unless centered, `buffer` may be null when `s.momentum` is 0.
template <class T>
void rmsprop_step(const RmspropStep& s, T* p, const T* g, T* square, T* average, T* buffer, std::int64_t n);

struct AdagradStep {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, eps = 1e-10;
  bool maximize = false;
  std::int64_t step = 1;  ///< counted from 1
};

template <class T>
void adagrad_step(const AdagradStep& s, T* p, const T* g, T* sum, std::int64_t n);

/// sum g^2 in double, in blocks of fixed size joined by a fixed tree: the part of a gradient norm that one tensor
/// gives.
template <class T>
double sum_of_squares(const T* g, std::int64_t n);

}  // namespace taper::kernels
