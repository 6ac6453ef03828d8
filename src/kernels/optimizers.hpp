#pragma once

#include <cstdint>
#include <span>

namespace taper::kernels {

/// What a step changes of one parameter: `n` elements of p by their gradients g, and of state buffers, of which those
/// that an optimiser does without are null. No two of them overlap.
struct StepArrays {
  static constexpr std::size_t kMaxStates = 3;

  void* p;
  const void* g;
  void* state[kMaxStates];
  std::int64_t n;
};

// One step of an optimiser over all parameters, in one pass over all their elements, for float and double. The order of
// the operations is that of PyTorch's single-tensor implementation.

struct SgdStep {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  bool first = false;  ///< the first step: the momentum buffer is set, not read
};

/// State: the momentum, unless `s.momentum` is 0.
template <class T>
void sgd_step(const SgdStep& s, std::span<const StepArrays> arrays);

struct AdamStep {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false;
  bool decoupled = false;  ///< AdamW: the weight decay shrinks p itself
  bool maximize = false;
  std::int64_t step = 1;  ///< counted from 1
};

/// State: the averages of the gradient and of its square, and with amsgrad the largest of the latter.
template <class T>
void adam_step(const AdamStep& s, std::span<const StepArrays> arrays);

struct RmspropStep {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};

/// State: the average of the square; centered, that of the gradient; with momentum, what has been gathered.
template <class T>
void rmsprop_step(const RmspropStep& s, std::span<const StepArrays> arrays);

struct AdagradStep {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, eps = 1e-10;
  bool maximize = false;
  std::int64_t step = 1;  ///< counted from 1
};

/// State: the sum of squares.
template <class T>
void adagrad_step(const AdagradStep& s, std::span<const StepArrays> arrays);

/// sum g^2 in double, in blocks of fixed size joined by a fixed tree: the part of a gradient norm that one tensor
/// gives.
template <class T>
double sum_of_squares(const T* g, std::int64_t n);

}  // namespace taper::kernels
