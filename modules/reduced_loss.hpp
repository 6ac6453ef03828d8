#pragma once

#include "kernels/cross_entropy.hpp"
#include "taper/autograd.hpp"
#include "taper/nn/loss.hpp"

// What the files of losses share.
namespace taper::nn {

/// The gradient that reaches the single losses from above; `divisor` is that of a mean.
template <class T>
kernels::LossGrad<T> loss_gradient(const autograd::BackwardArgs& args, Reduction reduction, double divisor) {
  const double scale = reduction == Reduction::mean ? (divisor == 0 ? 0 : 1 / divisor) : 1;
  return {.dy = args.output_gradient.as<T>(), .reduced = reduction != Reduction::none, .scale = scale};
}

/// The sum or mean of losses; a mean over nothing is 0.
inline double reduced(double sum, Reduction reduction, double divisor) {
  if (reduction == Reduction::sum) return sum;
  return divisor == 0 ? 0 : sum / divisor;
}

/// `values` as a tensor, as long as the operation that reads it.
Tensor weight_tensor(const std::vector<double>& values, DType dtype);

}  // namespace taper::nn
