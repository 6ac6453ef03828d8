#include "base/fail.hpp"
#include "core/apply.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/elementwise.hpp"
#include "ops/map_op.hpp"
#include "ops/promotion.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

namespace taper {

using autograd::apply;
using autograd::apply_in_place;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Input;
using autograd::Op;
using autograd::Operand;

namespace {

// --- records --------------------------------------------------------------------------------------------------------

kernels::BroadcastPlan plan_of(const Operand& out, const Operand& a, const Operand& b) {
  if (a.numel == out.numel && b.numel == out.numel) return kernels::same_shape_plan(out.numel);
  return kernels::broadcast_plan(out.shape(), {a.shape(), b.shape()});
}

template <class F, class T>
[[gnu::noinline]] void broadcast_forward(const ForwardArgs& args) {
  const Operand &a = args.inputs[0], &b = args.inputs[1];
  kernels::binary<F>(plan_of(args.output, a, b), a.as<T>(), b.as<T>(), args.output.as<T>());
}

template <class F, class T>
void binary_forward(const ForwardArgs& args) {
  const Operand &a = args.inputs[0], &b = args.inputs[1], &y = args.output;
  if (a.numel == y.numel && b.numel == y.numel)
    kernels::binary<F>(y.numel, a.as<T>(), b.as<T>(), y.as<T>());
  else
    broadcast_forward<F, T>(args);
}

kernels::GradPlan grad_plan_of(const Operand& dy, const Operand& a, const Operand& b, int operand) {
  if (a.numel != dy.numel || b.numel != dy.numel) return kernels::grad_plan(dy.shape(), a.shape(), b.shape(), operand);
  kernels::GradPlan plan;
  plan.elementwise.numel = plan.elementwise.inner = dy.numel;
  return plan;
}

template <class F, class T>
void binary_backward(const BackwardArgs& args) {
  const Operand &a = args.inputs[0], &b = args.inputs[1], &dy = args.output_gradient;
  for (int k = 0; k < 2; ++k) {
    const GradientSlot& slot = args.input_gradients[std::size_t(k)];
    if (!slot) continue;
    kernels::binary_grad<F>(grad_plan_of(dy, a, b, k), k, dy.as<T>(), a.as<T>(), b.as<T>(), slot.as<T>(), slot.add);
  }
}

struct Needs {
  std::uint32_t a, b;
};
constexpr Needs kNone{0, 0}, kOther{autograd::needs_input(1), autograd::needs_input(0)}, kBoth{3, 3};

template <class F>
constexpr Op binary_op(const char* name, const char* derivative, Needs needs, std::uint32_t passes = 0) {
  return {.name = name,
          .derivative = derivative,
          .forward = {binary_forward<F, float>, binary_forward<F, double>, binary_forward<F, std::int64_t>},
          .backward = {binary_backward<F, float>, binary_backward<F, double>, nullptr},
          .needs = {needs.a, needs.b},
          .passes_gradient = passes};
}

/// For operations that give fractions, which integers cannot hold.
template <class F>
constexpr Op floating_op(const char* name, const char* derivative, Needs needs) {
  return {.name = name,
          .derivative = derivative,
          .forward = {binary_forward<F, float>, binary_forward<F, double>, nullptr},
          .backward = {binary_backward<F, float>, binary_backward<F, double>, nullptr},
          .needs = {needs.a, needs.b}};
}

template <class F, class T>
void compare_forward(const ForwardArgs& args) {
  const Operand &a = args.inputs[0], &b = args.inputs[1];
  kernels::compare<F>(plan_of(args.output, a, b), a.as<T>(), b.as<T>(), args.output.as<std::int64_t>());
}

template <class F>
constexpr Op compare_op(const char* name) {
  return {.name = name,
          .derivative = "none",
          .forward = {compare_forward<F, float>, compare_forward<F, double>, compare_forward<F, std::int64_t>},
          .backward = {}};
}

constexpr Op kAdd = binary_op<kernels::Add>("add", "da = dy, db = dy", kNone, 3);
constexpr Op kSub = binary_op<kernels::Sub>("sub", "da = dy, db = -dy", kNone, 1);
constexpr Op kMul = binary_op<kernels::Mul>("mul", "da = dy * b, db = dy * a", kOther);
constexpr Op kDiv =
    floating_op<kernels::Div>("div", "da = dy / b, db = -dy * a / b^2", Needs{autograd::needs_input(1), 3});
constexpr Op kPow = floating_op<kernels::Power>("pow", "da = dy * b * a^(b-1), db = dy * y * log(a)", kBoth);
constexpr Op kMaximum = binary_op<kernels::Maximum>("maximum", "the larger gets dy, equals half each", kBoth);
constexpr Op kMinimum = binary_op<kernels::Minimum>("minimum", "the smaller gets dy, equals half each", kBoth);

constexpr Op kEq = compare_op<kernels::Eq>("eq");
constexpr Op kNe = compare_op<kernels::Ne>("ne");
constexpr Op kLt = compare_op<kernels::Lt>("lt");
constexpr Op kLe = compare_op<kernels::Le>("le");
constexpr Op kGt = compare_op<kernels::Gt>("gt");
constexpr Op kGe = compare_op<kernels::Ge>("ge");

constexpr Op kAddScalar = map_op<kernels::AddScalar>("add_scalar", "dx = dy");
constexpr Op kScalarSub = map_op<kernels::ScalarSub>("scalar_sub", "dx = -dy");
constexpr Op kMulScalar = map_op<kernels::MulScalar>("mul_scalar", "dx = dy * c");
constexpr Op kDivScalar = map_op<kernels::DivScalar>("div_scalar", "dx = dy / c");
constexpr Op kScalarDiv = map_op<kernels::ScalarDiv>("scalar_div", "dx = -dy * c / x^2");
constexpr Op kPowScalar = map_op<kernels::Pow>("pow_scalar", "dx = dy * c * x^(c-1)");

// --- calls ----------------------------------------------------------------------------------------------------------

Shape common_shape(const char* where, const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return a.shape();
  const auto shape = kernels::broadcast_shape(a.shape(), b.shape());
  if (!shape) [[unlikely]]
    fail(ErrorKind::shape, where, ": shapes do not broadcast: expected equal extents or 1 counted from the back, got ",
         a.shape(), " and ", b.shape());
  return *shape;
}

/// For operands that are broadcast or converted. Not a part of `binary`, whose usual case is done sooner without.
[[gnu::noinline]] Tensor unequal(const Op& op, const Tensor& a, const Tensor& b, DType dtype) {
  const Shape shape = common_shape(op.name, a, b);
  if (a.dtype() == dtype && b.dtype() == dtype) return apply(op, {a, b}, shape, dtype);
  return apply(op, {to(a, dtype), to(b, dtype)}, shape, dtype);
}

[[gnu::always_inline]] inline Tensor binary(const Op& op, const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype() && a.shape() == b.shape()) return detail::apply_to_two(op, a, b, a.shape(), a.dtype());
  return unequal(op, a, b, promoted(a.dtype(), b.dtype()));
}

/// For operations that give fractions.
Tensor floating(const Op& op, const Tensor& a, const Tensor& b) {
  const DType dtype = promoted(a.dtype(), b.dtype());
  return is_floating(dtype) ? binary(op, a, b) : unequal(op, a, b, DType::float32);
}

Tensor compare(const Op& op, const Tensor& a, const Tensor& b) {
  const Shape shape = common_shape(op.name, a, b);
  const DType dtype = promoted(a.dtype(), b.dtype());
  return apply(op, {to(a, dtype), to(b, dtype)}, shape, DType::int64);
}

/// A plain number as a tensor beside `x`: a fraction raises int64 to float32, nothing else changes the type.
Tensor beside(const Tensor& x, Scalar value) {
  return full(Shape(), value, is_floating(x.dtype()) || value.is_integer ? x.dtype() : DType::float32);
}

template <class F>
Tensor map_scalar(const Op& op, const Tensor& x, const F& f) {
  return apply(op, {x}, x.shape(), x.dtype(), f);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return binary(kAdd, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return binary(kSub, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return binary(kMul, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return floating(kDiv, a, b); }
Tensor pow(const Tensor& base, const Tensor& exponent) { return floating(kPow, base, exponent); }
Tensor maximum(const Tensor& a, const Tensor& b) { return binary(kMaximum, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary(kMinimum, a, b); }

Tensor add(const Tensor& a, Scalar b) {
  return is_floating(a.dtype()) ? map_scalar(kAddScalar, a, kernels::AddScalar{b.value}) : add(a, beside(a, b));
}
Tensor sub(const Tensor& a, Scalar b) {
  return is_floating(a.dtype()) ? map_scalar(kAddScalar, a, kernels::AddScalar{-b.value}) : sub(a, beside(a, b));
}
Tensor sub(Scalar a, const Tensor& b) {
  return is_floating(b.dtype()) ? map_scalar(kScalarSub, b, kernels::ScalarSub{a.value}) : sub(beside(b, a), b);
}
Tensor mul(const Tensor& a, Scalar b) {
  return is_floating(a.dtype()) ? map_scalar(kMulScalar, a, kernels::MulScalar{b.value}) : mul(a, beside(a, b));
}
Tensor div(const Tensor& a, Scalar b) {
  return is_floating(a.dtype()) ? map_scalar(kDivScalar, a, kernels::DivScalar{b.value}) : div(a, beside(a, b));
}
Tensor div(Scalar a, const Tensor& b) {
  return is_floating(b.dtype()) ? map_scalar(kScalarDiv, b, kernels::ScalarDiv{a.value}) : div(beside(b, a), b);
}
Tensor pow(const Tensor& base, Scalar exponent) {
  return is_floating(base.dtype()) ? map_scalar(kPowScalar, base, kernels::Pow{exponent.value})
                                   : pow(base, beside(base, exponent));
}

Tensor eq(const Tensor& a, const Tensor& b) { return compare(kEq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare(kNe, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare(kLt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare(kLe, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare(kGt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare(kGe, a, b); }
Tensor eq(const Tensor& a, Scalar b) { return eq(a, beside(a, b)); }
Tensor ne(const Tensor& a, Scalar b) { return ne(a, beside(a, b)); }
Tensor lt(const Tensor& a, Scalar b) { return lt(a, beside(a, b)); }
Tensor le(const Tensor& a, Scalar b) { return le(a, beside(a, b)); }
Tensor gt(const Tensor& a, Scalar b) { return gt(a, beside(a, b)); }
Tensor ge(const Tensor& a, Scalar b) { return ge(a, beside(a, b)); }

// --- choice ---------------------------------------------------------------------------------------------------------

namespace {

// Inputs: a, b, condition.
template <class T>
void where_forward(const ForwardArgs& args) {
  const Operand &a = args.inputs[0], &b = args.inputs[1], &condition = args.inputs[2];
  kernels::where(kernels::broadcast_plan(args.output.shape(), {condition.shape(), a.shape(), b.shape()}),
                 condition.as<std::int64_t>(), a.as<T>(), b.as<T>(), args.output.as<T>());
}

template <class T>
void where_backward(const BackwardArgs& args) {
  const Operand &dy = args.output_gradient, &condition = args.inputs[2];
  for (int k = 0; k < 2; ++k) {
    const GradientSlot& slot = args.input_gradients[std::size_t(k)];
    if (!slot) continue;
    const auto plan = kernels::grad_plan(dy.shape(), args.inputs[std::size_t(k)].shape(), condition.shape(), 0);
    kernels::where_grad(plan, k, condition.as<std::int64_t>(), dy.as<T>(), slot.as<T>(), slot.add);
  }
}

constexpr Op kWhere{.name = "where",
                    .derivative = "da = dy where condition, db = dy elsewhere",
                    .forward = {where_forward<float>, where_forward<double>, where_forward<std::int64_t>},
                    .backward = {where_backward<float>, where_backward<double>, nullptr},
                    .needs = {autograd::needs_input(2), autograd::needs_input(2)}};

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (condition.dtype() != DType::int64)
    fail(ErrorKind::type, "where: the condition must be a comparison's result: expected int64, got ",
         condition.dtype());
  const Shape values = common_shape("where", a, b);
  const auto shape = kernels::broadcast_shape(values, condition.shape());
  if (!shape)
    fail(ErrorKind::shape, "where: shapes do not broadcast: expected equal extents or 1 counted from the back, got ",
         condition.shape(), " and ", values);
  const DType dtype = promoted(a.dtype(), b.dtype());
  return apply(kWhere, {to(a, dtype), to(b, dtype), condition}, *shape, dtype);
}

// --- in place -------------------------------------------------------------------------------------------------------

namespace {

void check_in_place(const Op& op, const Tensor& target, const Tensor& other) {
  const auto shape = kernels::broadcast_shape(target.shape(), other.shape());
  if (!shape || !(*shape == target.shape()))
    fail(ErrorKind::shape, op.name, "_: the operand does not broadcast to the tensor it changes: expected ",
         target.shape(), ", got ", other.shape());
}

const Tensor& binary_in_place(const Op& op, const Tensor& target, const Tensor& other) {
  check_in_place(op, target, other);
  if (promoted(target.dtype(), other.dtype()) != target.dtype() && !is_floating(target.dtype()))
    fail(ErrorKind::type, op.name, "_: the result does not fit the tensor's element type: expected int64, got ",
         other.dtype());
  const Tensor converted = to(other, target.dtype());
  apply_in_place(op, std::initializer_list<Input>{target, converted});
  return target;
}

template <class F>
const Tensor& map_in_place(const Op& op, const Tensor& target, const F& f) {
  apply_in_place(op, std::initializer_list<Input>{target}, &f, sizeof f);
  return target;
}

// The target's old value plays no part in its new one.
template <class T>
void overwrite_forward(const ForwardArgs& args) {
  kernels::broadcast_copy(kernels::broadcast_plan(args.output.shape(), {args.inputs[1].shape()}),
                          args.inputs[1].as<T>(), args.output.as<T>());
}

template <class T>
void overwrite_backward(const BackwardArgs& args) {
  const Operand &dy = args.output_gradient, &source = args.inputs[1];
  if (const GradientSlot& slot = args.input_gradients[0])
    kernels::map_grad<kernels::MulScalar, T>(dy.as<T>(), nullptr, slot.as<T>(), dy.numel, kernels::MulScalar{0.0},
                                             slot.add);
  if (const GradientSlot& slot = args.input_gradients[1])
    kernels::reduce_to(kernels::grad_plan(dy.shape(), source.shape(), source.shape(), 0), dy.as<T>(), slot.as<T>(),
                       slot.add);
}

constexpr Op kCopy{.name = "copy",
                   .derivative = "dx = 0, dsource = dy",
                   .forward = {overwrite_forward<float>, overwrite_forward<double>, overwrite_forward<std::int64_t>},
                   .backward = {overwrite_backward<float>, overwrite_backward<double>, nullptr},
                   .passes_gradient = 2};

}  // namespace

const Tensor& Tensor::add_(const Tensor& other, Scalar alpha) const {
  return binary_in_place(kAdd, *this, alpha.value == 1 ? other : mul(other, alpha));
}
const Tensor& Tensor::sub_(const Tensor& other) const { return binary_in_place(kSub, *this, other); }
const Tensor& Tensor::mul_(const Tensor& other) const { return binary_in_place(kMul, *this, other); }
const Tensor& Tensor::div_(const Tensor& other) const { return binary_in_place(kDiv, *this, other); }
const Tensor& Tensor::add_(Scalar other) const {
  return is_floating(dtype()) ? map_in_place(kAddScalar, *this, kernels::AddScalar{other.value})
                              : binary_in_place(kAdd, *this, beside(*this, other));
}
const Tensor& Tensor::mul_(Scalar other) const {
  return is_floating(dtype()) ? map_in_place(kMulScalar, *this, kernels::MulScalar{other.value})
                              : binary_in_place(kMul, *this, beside(*this, other));
}
const Tensor& Tensor::copy_(const Tensor& source) const {
  check_in_place(kCopy, *this, source);
  const Tensor converted = source.dtype() == dtype() ? source : taper::to(source, dtype());
  apply_in_place(kCopy, std::initializer_list<Input>{*this, converted});
  return *this;
}
const Tensor& Tensor::fill_(Scalar value) const { return copy_(full(Shape(), value, dtype())); }
const Tensor& Tensor::zero_() const { return fill_(0); }

}  // namespace taper
