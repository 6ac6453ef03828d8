#include "kernels/softmax.hpp"

#include "ops/strips.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

namespace taper {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;

namespace {

template <class T>
void softmax_forward(const ForwardArgs& args) {
  const Strips s = strips_of(args.output.shape(), args.attributes_as<int>());
  kernels::softmax(args.inputs[0].as<T>(), args.output.as<T>(), s.outer, s.n, s.inner);
}

template <class T>
void softmax_backward(const BackwardArgs& args) {
  const Strips s = strips_of(args.output.shape(), args.attributes_as<int>());
  const GradientSlot& dx = args.input_gradients[0];
  kernels::softmax_grad(args.output_gradient.as<T>(), args.output.as<T>(), dx.as<T>(), s.outer, s.n, s.inner, dx.add);
}

template <class T>
void log_softmax_forward(const ForwardArgs& args) {
  const Strips s = strips_of(args.output.shape(), args.attributes_as<int>());
  kernels::log_softmax(args.inputs[0].as<T>(), args.output.as<T>(), s.outer, s.n, s.inner);
}

template <class T>
void log_softmax_backward(const BackwardArgs& args) {
  const Strips s = strips_of(args.output.shape(), args.attributes_as<int>());
  const GradientSlot& dx = args.input_gradients[0];
  kernels::log_softmax_grad(args.output_gradient.as<T>(), args.output.as<T>(), dx.as<T>(), s.outer, s.n, s.inner,
                            dx.add);
}

constexpr Op kSoftmax{.name = "softmax",
                      .derivative = "dx = y * (dy - sum(dy * y))",
                      .forward = {softmax_forward<float>, softmax_forward<double>, nullptr},
                      .backward = {softmax_backward<float>, softmax_backward<double>, nullptr},
                      .needs = {autograd::kNeedsOutput}};
constexpr Op kLogSoftmax{.name = "log_softmax",
                         .derivative = "dx = dy - e^y * sum(dy)",
                         .forward = {log_softmax_forward<float>, log_softmax_forward<double>, nullptr},
                         .backward = {log_softmax_backward<float>, log_softmax_backward<double>, nullptr},
                         .needs = {autograd::kNeedsOutput}};

Tensor along(const Op& op, const Tensor& x, std::int64_t dim) {
  return apply(op, {x}, x.shape(), x.dtype(), normalize_dim(op.name, dim, x.shape().rank()));
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t dim) { return along(kSoftmax, x, dim); }
Tensor log_softmax(const Tensor& x, std::int64_t dim) { return along(kLogSoftmax, x, dim); }

}  // namespace taper
