#include <cmath>

#include "base/fail.hpp"
#include "base/random.hpp"
#include "core/node.hpp"
#include "taper/creation.hpp"

namespace taper::autograd {

namespace {

/// Weights in [0.5, 1.5) that make every output count differently; a plain sum would hide symmetric mistakes.
Tensor projection(const Shape& shape) {
  Tensor weights = empty(shape, DType::float64);
  double* w = weights.data<double>();
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    w[i] = 0.5 + uniform_double(random_bits(0x7A9E2, Stream::data, std::uint64_t(i)));
  return weights;
}

double dot(const Tensor& a, const Tensor& b) {
  const double *x = a.data<double>(), *y = b.data<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) sum += x[i] * y[i];
  return sum;
}

/// Copies a value in and out around a disturbance, so that an error in between leaves the input as it was.
struct Restored {
  double& place;
  double value = place;
  ~Restored() { place = value; }
};

}  // namespace

std::string GradcheckReport::to_string() const {
  return ok ? cat("gradient of ", op, " agrees")
            : cat("gradient of ", op, " with respect to input ", input, ", element ", element, ": analytic ", analytic,
                  ", numeric ", numeric);
}

GradcheckReport gradcheck(Tensor (*function)(const std::vector<Tensor>&, void*), void* context,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  std::vector<std::size_t> checked;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    if (inputs[i].dtype() != DType::float64)
      fail(ErrorKind::type, "gradcheck: inputs must be float64: expected float64, got ", inputs[i].dtype(),
           " in input ", i);
    checked.push_back(i);
  }
  if (checked.empty()) fail(ErrorKind::tape, "gradcheck: no input requires grad: expected at least 1, got 0");

  const Tensor output = function(inputs, context);
  if (output.dtype() != DType::float64)
    fail(ErrorKind::type, "gradcheck: the result must be float64: expected float64, got ", output.dtype());
  const Tensor weights = projection(output.shape());
  std::vector<Tensor> wrt;
  for (const std::size_t i : checked) wrt.push_back(inputs[i]);
  const std::vector<Tensor> analytic = grad({output}, wrt, {weights}, {.allow_unused = true});

  GradcheckReport report{.op = output.impl()->node->op->name};
  const NoGradGuard no_grad;
  for (std::size_t k = 0; k < checked.size(); ++k) {
    double* x = inputs[checked[k]].data<double>();
    for (std::int64_t e = 0; e < inputs[checked[k]].numel(); ++e) {
      const Restored kept{x[e]};
      const auto at = [&](double offset) {
        x[e] = kept.value + offset;
        return dot(function(inputs, context), weights);
      };
      // f'(x) = (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h + O(h^4)
      const double h = options.eps * std::max(1.0, std::abs(kept.value));
      const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      const double found = analytic[k].defined() ? analytic[k].data<double>()[e] : 0.0;
      if (std::abs(found - numeric) <= options.atol + options.rtol * std::abs(numeric)) continue;
      report.ok = false;
      report.input = checked[k];
      report.element = e;
      report.analytic = found;
      report.numeric = numeric;
      return report;
    }
  }
  return report;
}

}  // namespace taper::autograd
