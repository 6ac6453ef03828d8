#pragma once

#include <string>

#include "taper/autograd.hpp"
#include "taper/creation.hpp"

/// What tests of the engine alone share: small float64 ops as a user would write them, leaves, sentences.
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

/// A float64 tensor whose gradient is kept.
inline Tensor leaf(std::initializer_list<NestedList> values) { return tensor(values, DType::float64).requires_grad_(); }

/// The sentence without the positions of nodes, which depend on what ran before.
inline std::string without_positions(std::string sentence) {
  for (std::size_t at = sentence.find('#'); at != std::string::npos; at = sentence.find('#', at + 1)) {
    std::size_t end = at + 1;
    while (end < sentence.size() && sentence[end] >= '0' && sentence[end] <= '9') ++end;
    sentence.replace(at + 1, end - at - 1, "N");
  }
  return sentence;
}

}  // namespace taper::test
