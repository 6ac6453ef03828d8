#include <cmath>

#include "base/fail.hpp"
#include "kernels/optimizers.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"
#include "taper/optim.hpp"

namespace taper::optim {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm) {
  if (!(max_norm >= 0))
    fail(ErrorKind::config, "clip_grad_norm_: max_norm is out of range: expected >= 0, got ", max_norm);
  const NoGradGuard no_grad;
  double squares = 0;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    squares += gradient.dtype() == DType::float32 ? kernels::sum_of_squares(gradient.data<float>(), gradient.numel())
                                                  : kernels::sum_of_squares(gradient.data<double>(), gradient.numel());
  }
  const double norm = std::sqrt(squares), scale = max_norm / (norm + 1e-6);
  // A NaN scales too, so that a broken gradient stays visible.
  if (scale >= 1) return norm;
  for (const Tensor& parameter : parameters)
    if (const Tensor gradient = parameter.grad(); gradient.defined()) gradient.mul_(scale);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  if (!(clip_value >= 0))
    fail(ErrorKind::config, "clip_grad_value_: clip_value is out of range: expected >= 0, got ", clip_value);
  const NoGradGuard no_grad;
  for (const Tensor& parameter : parameters)
    if (const Tensor gradient = parameter.grad(); gradient.defined())
      gradient.copy_(clamp(gradient, -clip_value, clip_value));
}

}  // namespace taper::optim
