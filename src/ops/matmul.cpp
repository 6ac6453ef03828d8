#include <algorithm>

#include "base/fail.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/gemm.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

namespace taper {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::Op;
using autograd::Operand;
using kernels::GemmParams;

namespace {

using Extents = std::span<const std::int64_t>;

/// A stored operand as a batch of matrices; a vector is one row on the left and one column on the right.
struct Matrices {
  std::int64_t rows = 0, columns = 0;
  Extents batch;
};

Matrices left_matrices(Extents shape) {
  if (shape.size() == 1) return {1, shape[0], {}};
  return {shape[shape.size() - 2], shape.back(), shape.first(shape.size() - 2)};
}

Matrices right_matrices(Extents shape) {
  if (shape.size() == 1) return {shape[0], 1, {}};
  return left_matrices(shape);
}

struct Transposed {
  bool a = false, b = false;
};

/// The products Y = op(A) op(B) of a call, matrix by matrix: `batch` has an element for each matrix of Y, its operands
/// are the matrices of A and B that belong to it.
struct Products {
  std::int64_t m = 0, n = 0, k = 0;
  Matrices a, b;
  kernels::BroadcastPlan batch;
  Transposed transposed;
};

std::int64_t product(Extents extents) {
  std::int64_t n = 1;
  for (const std::int64_t extent : extents) n *= extent;
  return n;
}

Products products_of(Extents a_shape, Extents b_shape, Transposed transposed) {
  Products p;
  p.a = left_matrices(a_shape);
  p.b = right_matrices(b_shape);
  p.transposed = transposed;
  const bool batched = !p.a.batch.empty() || !p.b.batch.empty();
  // One matrix B for a whole batch of A: the rows of all A are the rows of one product.
  if (batched && !transposed.a && product(p.b.batch) == 1) {
    p.a.rows *= product(p.a.batch);
    p.a.batch = p.b.batch = {};
  }
  p.m = transposed.a ? p.a.columns : p.a.rows;
  p.k = transposed.a ? p.a.rows : p.a.columns;
  p.n = transposed.b ? p.b.rows : p.b.columns;
  if (p.a.batch.empty() && p.b.batch.empty())
    p.batch = kernels::same_shape_plan(1);
  else
    p.batch = kernels::broadcast_plan(*kernels::broadcast_shape(p.a.batch, p.b.batch), {p.a.batch, p.b.batch});
  return p;
}

/// Calls `body(count, y, a, b)` for each run of `count` matrices that each operand either steps through or repeats;
/// `y`, `a` and `b` are the numbers of the first ones.
template <class Body>
void for_each_run(const kernels::BroadcastPlan& plan, const Body& body) {
  for (std::int64_t y = 0; y < plan.numel; y += plan.inner) {
    std::int64_t rest = y / plan.inner, a = 0, b = 0;
    for (int d = plan.outer_rank - 1; d >= 0; --d) {
      const std::int64_t i = rest % plan.extent[d];
      rest /= plan.extent[d];
      a += i * plan.stride[0][d];
      b += i * plan.stride[1][d];
    }
    body(plan.inner, y, a, b);
  }
}

template <class T>
void matmul_forward(const ForwardArgs& args) {
  const Products p = products_of(args.inputs[0].shape(), args.inputs[1].shape(), args.attributes_as<Transposed>());
  const std::int64_t a_size = p.a.rows * p.a.columns, b_size = p.b.rows * p.b.columns, y_size = p.m * p.n;
  GemmParams gemm{.m = p.m,
                  .n = p.n,
                  .k = p.k,
                  .lda = p.a.columns,
                  .ldb = p.b.columns,
                  .ldc = p.n,
                  .transpose_a = p.transposed.a,
                  .transpose_b = p.transposed.b,
                  .stride_a = a_size * p.batch.inner_stride[0],
                  .stride_b = b_size * p.batch.inner_stride[1],
                  .stride_c = y_size};
  for_each_run(p.batch, [&](std::int64_t count, std::int64_t y, std::int64_t a, std::int64_t b) {
    gemm.batch = count;
    kernels::gemm(gemm, args.inputs[0].as<T>() + a * a_size, args.inputs[1].as<T>() + b * b_size,
                  args.output.as<T>() + y * y_size);
  });
}

/// One product of the backward pass: which of dY and the other operand stands on the left, and how both are read.
struct GradientProduct {
  GemmParams gemm;
  bool dy_left;
};

/// dA = dY op(B)^T, or its transpose when A is stored transposed.
GradientProduct product_for_a(const Products& p) {
  if (!p.transposed.a)
    return {{.m = p.m, .n = p.k, .k = p.n, .lda = p.n, .ldb = p.b.columns, .ldc = p.k, .transpose_b = !p.transposed.b},
            true};
  return {{.m = p.k,
           .n = p.m,
           .k = p.n,
           .lda = p.b.columns,
           .ldb = p.n,
           .ldc = p.m,
           .transpose_a = p.transposed.b,
           .transpose_b = true},
          false};
}

/// dB = op(A)^T dY, or its transpose when B is stored transposed.
GradientProduct product_for_b(const Products& p) {
  if (!p.transposed.b)
    return {{.m = p.k, .n = p.n, .k = p.m, .lda = p.a.columns, .ldb = p.n, .ldc = p.n, .transpose_a = !p.transposed.a},
            false};
  return {{.m = p.n,
           .n = p.k,
           .k = p.m,
           .lda = p.n,
           .ldb = p.a.columns,
           .ldc = p.k,
           .transpose_a = true,
           .transpose_b = p.transposed.a},
          true};
}

/// The gradient of operand `which`, summed over the products it took part in, in their order.
template <class T>
void operand_backward(const BackwardArgs& args, const Products& p, int which, GradientProduct product) {
  const GradientSlot& slot = args.input_gradients[std::size_t(which)];
  const T *dy = args.output_gradient.as<T>(), *other = args.inputs[std::size_t(1 - which)].as<T>();
  const std::int64_t a_size = p.a.rows * p.a.columns, b_size = p.b.rows * p.b.columns, y_size = p.m * p.n;
  const std::int64_t x_size = which == 0 ? a_size : b_size, other_size = which == 0 ? b_size : a_size;
  GemmParams& gemm = product.gemm;
  if (p.batch.numel == 0) {  // no product at all: the gradient is 0
    gemm.k = 0;
    gemm.batch = x_size == 0 ? 0 : slot.gradient.numel / x_size;
    gemm.stride_c = x_size;
    gemm.add = slot.add;
    return kernels::gemm(gemm, dy, other, slot.as<T>());
  }
  const bool repeated = p.batch.inner_stride[which] == 0;
  const std::int64_t other_step = other_size * p.batch.inner_stride[1 - which];
  const std::int64_t dy_step = y_size;
  gemm.stride_a = product.dy_left ? dy_step : other_step;
  gemm.stride_b = product.dy_left ? other_step : dy_step;
  gemm.stride_c = x_size;
  std::int64_t reached = 0;  // matrices of the gradient are reached in order; below this one they hold a contribution
  for_each_run(p.batch, [&](std::int64_t count, std::int64_t y, std::int64_t a, std::int64_t b) {
    const std::int64_t x = which == 0 ? a : b, z = which == 0 ? b : a;
    const std::int64_t runs = repeated ? count : 1;
    gemm.batch = repeated ? 1 : count;
    for (std::int64_t i = 0; i < runs; ++i) {
      const T* from_dy = dy + y * y_size + i * dy_step;
      const T* from_other = other + z * other_size + i * other_step;
      gemm.add = slot.add || x < reached || i > 0;
      kernels::gemm(gemm, product.dy_left ? from_dy : from_other, product.dy_left ? from_other : from_dy,
                    slot.as<T>() + x * x_size);
    }
    reached = std::max(reached, x + gemm.batch);
  });
}

template <class T>
void matmul_backward(const BackwardArgs& args) {
  const Products p = products_of(args.inputs[0].shape(), args.inputs[1].shape(), args.attributes_as<Transposed>());
  if (args.input_gradients[0]) operand_backward<T>(args, p, 0, product_for_a(p));
  if (args.input_gradients[1]) operand_backward<T>(args, p, 1, product_for_b(p));
}

constexpr Op kMatmul{.name = "matmul",
                     .derivative = "da = dy b^T, db = a^T dy",
                     .forward = {matmul_forward<float>, matmul_forward<double>, nullptr},
                     .backward = {matmul_backward<float>, matmul_backward<double>, nullptr},
                     .needs = {autograd::needs_input(1), autograd::needs_input(0)}};

void check_operand(const char* name, const Tensor& x, bool transposed) {
  if (x.dim() == 0)
    fail(ErrorKind::shape, "matmul: ", name, " is a scalar: expected at least 1 dimension, got shape []; use mul");
  if (transposed && x.dim() == 1)
    fail(ErrorKind::shape, "matmul: ", name,
         " is a vector and cannot be transposed: expected at least 2 dimensions, got ", x.shape());
}

[[noreturn]] void fail_inner(const Tensor& b, bool transpose_b, std::int64_t k) {
  const char* const before = b.dim() > 2 ? "..., " : "";
  const std::string expected = b.dim() == 1  ? cat('[', k, ']')
                               : transpose_b ? cat('[', before, "*, ", k, ']')
                                             : cat('[', before, k, ", *]");
  fail(ErrorKind::shape, "matmul: inner dimensions differ: expected ", expected, ", got ", b.shape());
}

/// The shape of the result: the batch, then the rows of a' and the columns of b', which vectors do not have.
Shape result_shape(const Tensor& a, const Tensor& b, Transposed transposed) {
  const Matrices left = left_matrices(a.shape()), right = right_matrices(b.shape());
  const std::int64_t k = transposed.a ? left.rows : left.columns;
  if (k != (transposed.b ? right.columns : right.rows)) fail_inner(b, transposed.b, k);
  std::int64_t extents[Shape::kMaxRank + 2];
  std::size_t rank = 0;
  if (!left.batch.empty() || !right.batch.empty()) {
    const auto batch = kernels::broadcast_shape(left.batch, right.batch);
    if (!batch)
      fail(ErrorKind::shape,
           "matmul: batches do not broadcast: expected equal extents or 1 counted from the back, got ", a.shape(),
           " and ", b.shape());
    for (const std::int64_t extent : *batch) extents[rank++] = extent;
  }
  if (a.dim() > 1) extents[rank++] = transposed.a ? left.columns : left.rows;
  if (b.dim() > 1) extents[rank++] = transposed.b ? right.rows : right.columns;
  return Shape(extents, rank);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return matmul(a, b, false, false); }

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  check_operand("a", a, transpose_a);
  check_operand("b", b, transpose_b);
  if (a.dtype() != b.dtype())
    fail(ErrorKind::type, "matmul: element types differ: expected ", a.dtype(), ", got ", b.dtype(),
         "; convert with to()");
  const Transposed transposed{transpose_a, transpose_b};
  return apply(kMatmul, {a, b}, result_shape(a, b, transposed), a.dtype(), transposed);
}

}  // namespace taper
