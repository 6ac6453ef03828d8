#pragma once

#include <cstdint>

namespace taper::kernels {

// Cross entropy and negative log likelihood of x [outer, classes, inner], for float and double. There is one loss and
// one target a row along the classes: [outer, inner] of them. A mean divides the sum of the losses by `target_weight`
// (class indices) or by the number of rows (probabilities); a weight of 0 means 0.

struct ClassLoss {
  std::int64_t outer, classes, inner;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::int64_t rows() const { return outer * inner; }
};

/// The gradient that reaches row r from above: dy[r] * scale, or dy[0] * scale when the losses were reduced to one.
template <class T>
struct LossGrad {
  const T* dy;
  bool reduced;
  double scale = 1;
  double at(std::int64_t r) const { return static_cast<double>(dy[reduced ? 0 : r]) * scale; }
};

/// The first of `count` targets that is neither `ignore_index` nor in [0, classes); -1 if there is none. The other
/// functions ask for targets that passed.
std::int64_t find_bad_target(const std::int64_t* target, std::int64_t count, std::int64_t classes,
                             std::int64_t ignore_index);

/// The summed weight of the targets that are not ignored; `weight` [classes] may be null for all ones.
template <class T>
double target_weight(const ClassLoss& p, const std::int64_t* target, const T* weight);

/// loss_r = (1 - s) w_t (lse - x_t) + s / classes sum_c w_c (lse - x_c), with s the label smoothing, t the row's
/// target and lse = log(sum e^x), which is stored in `lse` [rows] for the gradient. An ignored row gives 0.
template <class T>
void cross_entropy(const ClassLoss& p, const T* x, const std::int64_t* target, const T* weight, T* loss, double* lse);
template <class T>
void cross_entropy_grad(const ClassLoss& p, const LossGrad<T>& dy, const T* x, const std::int64_t* target,
                        const T* weight, const double* lse, T* dx, bool add);

/// loss_r = sum_c w_c q_c (lse - x_c), q = (1 - s) probability + s / classes; `probability` has the shape of x.
template <class T>
void cross_entropy_probabilities(const ClassLoss& p, const T* x, const T* probability, const T* weight, T* loss,
                                 double* lse);
/// Writes the gradients of x and of the probabilities to `dx` and `dq`; either may be null.
template <class T>
void cross_entropy_probabilities_grad(const ClassLoss& p, const LossGrad<T>& dy, const T* x, const T* probability,
                                      const T* weight, const double* lse, T* dx, bool add_dx, T* dq, bool add_dq);

/// loss_r = -w_t x_t: the negative log likelihood when x holds log-probabilities. `label_smoothing` is not used.
template <class T>
void nll(const ClassLoss& p, const T* x, const std::int64_t* target, const T* weight, T* loss);
template <class T>
void nll_grad(const ClassLoss& p, const LossGrad<T>& dy, const std::int64_t* target, const T* weight, T* dx, bool add);

}  // namespace taper::kernels
