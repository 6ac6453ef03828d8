#pragma once

#include "taper/autograd.hpp"

/// Small float64 ops for tests of the engine alone, written as a user would write them.
namespace taper::test {

using namespace autograd;

/// y = a * b
inline constexpr Op kProduct{
    .name = "product",
    .derivative = "da = dy b, db = dy a",
    .forward = {nullptr,
                [](const ForwardArgs& args) {
                  const double *a = args.inputs[0].as<double>(), *b = args.inputs[1].as<double>();
                  double* y = args.output.as<double>();
                  for (std::int64_t i = 0; i < args.output.numel; ++i) y[i] = a[i] * b[i];
                },
                nullptr},
    .backward = {nullptr,
                 [](const BackwardArgs& args) {
                   for (std::size_t k = 0; k < 2; ++k) {
                     const GradientSlot& slot = args.input_gradients[k];
                     if (!slot) continue;
                     const double *dy = args.output_gradient.as<double>(), *other = args.inputs[1 - k].as<double>();
                     double* dx = slot.as<double>();
                     for (std::int64_t i = 0; i < args.output.numel; ++i)
                       dx[i] = (slot.add ? dx[i] : 0.0) + dy[i] * other[i];
                   }
                 },
                 nullptr},
    .needs = {needs_input(1), needs_input(0)},
};

/// y = a + b; both gradients are dy.
inline constexpr Op kPlus{
    .name = "plus",
    .derivative = "da = db = dy",
    .forward = {nullptr,
                [](const ForwardArgs& args) {
                  const double *a = args.inputs[0].as<double>(), *b = args.inputs[1].as<double>();
                  double* y = args.output.as<double>();
                  for (std::int64_t i = 0; i < args.output.numel; ++i) y[i] = a[i] + b[i];
                },
                nullptr},
    .backward = {nullptr, [](const BackwardArgs&) {}, nullptr},
    .passes_gradient = 3,
};

inline Tensor product(const Tensor& a, const Tensor& b) { return apply(kProduct, {a, b}, a.shape(), a.dtype()); }
inline Tensor plus(const Tensor& a, const Tensor& b) { return apply(kPlus, {a, b}, a.shape(), a.dtype()); }

}  // namespace taper::test
