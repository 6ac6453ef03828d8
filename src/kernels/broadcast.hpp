#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "kernels/reduce_plan.hpp"
#include "taper/shape.hpp"

namespace taper::kernels {

/// The shape two operands have in common under NumPy's rule: aligned at the back, an extent of 1 repeats. Nothing
/// when they do not fit.
std::optional<Shape> broadcast_shape(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

/// How up to three operands are read to fill a row-major result: `outer_rank` outer dimensions around rows of `inner`
/// elements, neighbouring dimensions that are read alike being merged. A stride of 0 repeats. A plain value; making it
/// allocates nothing.
struct BroadcastPlan {
  static constexpr int kOperands = 3;
  std::int64_t numel = 1, inner = 1;
  int inner_stride[kOperands] = {1, 1, 1};  ///< 0 or 1
  int outer_rank = 0;
  std::int64_t extent[Shape::kMaxRank];  ///< set up to outer_rank, as are the strides
  std::int64_t stride[kOperands][Shape::kMaxRank];
};

/// The plan for operands that are broadcast to `out`; each must fit it.
BroadcastPlan broadcast_plan(std::span<const std::int64_t> out,
                             std::initializer_list<std::span<const std::int64_t>> operands);

/// The plan for operands of one shape with `n` elements.
inline BroadcastPlan same_shape_plan(std::int64_t n) {
  BroadcastPlan plan;
  plan.numel = plan.inner = n;
  return plan;
}

// --- forward: y = f(a, b) over the plan of (a, b); y may be an operand that is not repeated -------------------------

/// Arithmetic for float, double and int64 (whose overflow wraps), except `Div` and `Power`, which are for floating
/// types. `Maximum` and `Minimum` give NaN when an operand is NaN.
struct Add;
struct Sub;
struct Mul;
struct Div;
struct Power;
struct Maximum;
struct Minimum;
template <class Op, class T>
void binary(const BroadcastPlan& plan, const T* a, const T* b, T* y);

/// The same for operands of one shape with `n` elements.
template <class Op, class T>
void binary(std::int64_t n, const T* a, const T* b, T* y);

/// Comparisons of float, double or int64, giving 0 or 1; with NaN only `Ne` is true.
struct Eq;
struct Ne;
struct Lt;
struct Le;
struct Gt;
struct Ge;
template <class Op, class T>
void compare(const BroadcastPlan& plan, const T* a, const T* b, std::int64_t* y);

/// y = condition != 0 ? a : b, over the plan of (condition, a, b).
template <class T>
void where(const BroadcastPlan& plan, const std::int64_t* condition, const T* a, const T* b, T* y);

/// y = x repeated, over the plan of (x).
template <class T>
void broadcast_copy(const BroadcastPlan& plan, const T* x, T* y);

// --- backward: the gradient of one operand, summed over the dimensions in which it was repeated ---------------------

/// How a gradient of shape `out` is summed to an operand's shape, together with the two operands it is computed from.
struct GradPlan {
  BroadcastPlan elementwise;  ///< used when the operand is not repeated; operands (dy, a, b)
  ReducePlan reduce;          ///< used when it is; arrays (dy, a, b)
  bool repeated = false;
};

/// The plan for the gradient of `operand` (0: a, 1: b) of a two-operand operation with result shape `out`.
GradPlan grad_plan(std::span<const std::int64_t> out, std::span<const std::int64_t> a, std::span<const std::int64_t> b,
                   int operand);

/// The gradient of `operand` (0: a, 1: b) of `binary<Op>`, with the plan made for that operand. Operands
/// that the gradient does not use may be null. Sums run in double, in an order fixed by the shapes. Maximum and minimum
/// give each of two equal operands half; the gradient of a power is 0 for the base where the exponent is 0, and for the
/// exponent where the base is 0 and the exponent is not negative.
template <class Op, class T>
void binary_grad(const GradPlan& plan, int operand, const T* dy, const T* a, const T* b, T* dx, bool add);

/// The gradient of `a` (`operand` 0) or `b` (1) of `where`. The plan is made with `condition` in the place of the other
/// operand: grad_plan(out, operand's shape, condition's shape, 0).
template <class T>
void where_grad(const GradPlan& plan, int operand, const std::int64_t* condition, const T* dy, T* dx, bool add);

/// dx = dy summed over the dimensions in which x was repeated: the gradient of `broadcast_copy`, with
/// grad_plan(out, x's shape, x's shape, 0).
template <class T>
void reduce_to(const GradPlan& plan, const T* dy, T* dx, bool add);

}  // namespace taper::kernels
