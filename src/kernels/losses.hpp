#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cross_entropy.hpp"

namespace taper::kernels {

// Losses of one prediction x and one target t each, for float and double.

/// loss[i] = l.f(x[i] - t[i]) for i < n.
template <class L, class T>
void pair_loss(const L& l, const T* x, const T* t, T* loss, std::int64_t n);
/// dx[i] = l.df(x[i] - t[i]) * dy_i; the gradient of the targets is the negative of it (pass -scale).
template <class L, class T>
void pair_loss_grad(const L& l, const LossGrad<T>& dy, const T* x, const T* t, T* dx, std::int64_t n, bool add);

/// The sum of loss[i] over i < n, in double, in an order fixed by n.
template <class L, class T>
double pair_loss_sum(const L& l, const T* x, const T* t, std::int64_t n);
/// The sum of n losses that are stored.
template <class T>
double sum_losses(const T* loss, std::int64_t n);

/// (x - t)^2
struct Mse {
  template <class T>
  T f(T d) const {
    return d * d;
  }
  template <class T>
  T df(T d) const {
    return 2 * d;
  }
};

/// |x - t|; the gradient at 0 is 0.
struct L1 {
  template <class T>
  T f(T d) const {
    return std::abs(d);
  }
  template <class T>
  T df(T d) const {
    return T((d > 0) - (d < 0));
  }
};

/// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = x - t; beta 0 is L1.
struct SmoothL1 {
  double beta = 1;
  template <class T>
  T f(T d) const {
    const T z = std::abs(d);
    return z < T(beta) ? T(0.5) * z * z / T(beta) : z - T(0.5 * beta);
  }
  template <class T>
  T df(T d) const {
    return std::abs(d) < T(beta) ? d / T(beta) : T((d > 0) - (d < 0));
  }
};

/// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = x - t.
struct Huber {
  double delta = 1;
  template <class T>
  T f(T d) const {
    const T z = std::abs(d);
    return z <= T(delta) ? T(0.5) * z * z : T(delta) * (z - T(0.5 * delta));
  }
  template <class T>
  T df(T d) const {
    return std::abs(d) <= T(delta) ? d : T(delta) * T((d > 0) - (d < 0));
  }
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
