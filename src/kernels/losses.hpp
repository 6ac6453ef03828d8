#pragma once

#include <cstdint>

#include "kernels/cross_entropy.hpp"

namespace taper::kernels {

// Losses of one prediction x and one target t each, for float and double.

/// loss[i] = f(x[i] - t[i]) for i < n, f being that of one of the losses below.
template <class L, class T>
void pair_loss(const L& l, const T* x, const T* t, T* loss, std::int64_t n);
/// dx[i] = f'(x[i] - t[i]) * dy_i; the gradient of the targets is the negative of it (pass -scale).
template <class L, class T>
void pair_loss_grad(const L& l, const LossGrad<T>& dy, const T* x, const T* t, T* dx, std::int64_t n, bool add);

/// The sum of loss[i] over i < n, in double, in an order fixed by n.
template <class L, class T>
double pair_loss_sum(const L& l, const T* x, const T* t, std::int64_t n);
/// The sum of n losses that are stored.
template <class T>
double sum_losses(const T* loss, std::int64_t n);

/// (x - t)^2
struct Mse {};

/// |x - t|; the gradient at 0 is 0.
struct L1 {};

/// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = x - t; beta 0 is L1.
struct SmoothL1 {
  double beta = 1;
};

/// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = x - t.
struct Huber {
  double delta = 1;
};

/// Binary cross entropy of logits. `weight` and `pos_weight` may be null (all ones) and repeat after their length, so
/// that one value a class or one for everything needs no copy.
template <class T>
struct BceWithLogits {
  const T* weight = nullptr;
  std::int64_t weight_length = 1;
  const T* pos_weight = nullptr;
  std::int64_t pos_weight_length = 1;
};

/// loss = weight ((1 - t) x + (1 + (pos_weight - 1) t) log(1 + e^-x)), stable for any x.
template <class T>
void bce_with_logits(const BceWithLogits<T>& p, const T* x, const T* t, T* loss, std::int64_t n);
/// The sum of loss[i] over i < n.
template <class T>
double bce_with_logits_sum(const BceWithLogits<T>& p, const T* x, const T* t, std::int64_t n);
template <class T>
void bce_with_logits_grad(const BceWithLogits<T>& p, const LossGrad<T>& dy, const T* x, const T* t, T* dx,
                          std::int64_t n, bool add);
/// The gradient of the targets.
template <class T>
void bce_with_logits_target_grad(const BceWithLogits<T>& p, const LossGrad<T>& dy, const T* x, T* dt, std::int64_t n,
                                 bool add);

}  // namespace taper::kernels
