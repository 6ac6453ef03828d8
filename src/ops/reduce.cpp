#include "kernels/reduce.hpp"

#include <cmath>

#include "base/fail.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

namespace taper {

using autograd::apply;
using autograd::BackwardArgs;
using autograd::ForwardArgs;
using autograd::GradientSlot;
using autograd::kNeedsOutput;
using autograd::needs_input;
using autograd::Op;
using autograd::Operand;
using kernels::Extreme;
using kernels::ReducePlan;

namespace {

// --- which dimensions -----------------------------------------------------------------------------------------------

/// The attributes of a reduction: a bit for each dimension that goes, and the one number some of them take.
struct Reduction {
  std::uint32_t dims = 0;
  double number = 0;
};

std::uint32_t all_dims(const Shape& shape) { return (1u << shape.rank()) - 1; }

/// The bits of `dims`; an empty list stands for all.
std::uint32_t bits_of(const char* where, const Shape& shape, const Dims& dims) {
  if (dims.size() == 0) return all_dims(shape);
  std::uint32_t bits = 0;
  for (const std::int64_t dim : dims) {
    const std::uint32_t bit = 1u << normalize_dim(where, dim, shape.rank());
    if (bits & bit)
      fail(ErrorKind::shape, where, ": a dimension is named twice: expected different dimensions, got ", dim, " again");
    bits |= bit;
  }
  return bits & all_dims(shape);  // a scalar has no dimension to name
}

Shape reduced_shape(const Shape& shape, std::uint32_t bits, bool keepdim) {
  std::int64_t extents[Shape::kMaxRank];
  std::size_t rank = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool goes = bits >> d & 1;
    if (!goes || keepdim) extents[rank++] = goes ? 1 : shape[d];
  }
  return Shape(std::span<const std::int64_t>(extents, rank));
}

/// Refuses to look for the largest of nothing.
void check_not_empty(const char* where, const Shape& shape, std::uint32_t bits) {
  for (int d = 0; d < shape.rank(); ++d)
    if ((bits >> d & 1) && shape[d] == 0) [[unlikely]]
      fail(ErrorKind::shape, where, ": nothing to reduce: expected at least 1 element in dimension ", d, ", got ",
           shape);
}

ReducePlan plan_of(const Operand& x, const void* attributes) {
  return kernels::reduce_plan(x.shape(), static_cast<const Reduction*>(attributes)->dims);
}

double number_of(const void* attributes) { return static_cast<const Reduction*>(attributes)->number; }

// --- records --------------------------------------------------------------------------------------------------------

/// A record from a `Kernel` with `forward<T>(plan, number, x, y)` and `backward<T>(plan, number, dy, x, y, dx, add)`.
template <class Kernel, class T>
void forward(const ForwardArgs& args) {
  Kernel::forward(plan_of(args.inputs[0], args.attributes), number_of(args.attributes), args.inputs[0].as<T>(),
                  args.output.as<T>());
}

template <class Kernel, class T>
void backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  Kernel::backward(plan_of(args.inputs[0], args.attributes), number_of(args.attributes), args.output_gradient.as<T>(),
                   args.inputs[0].as<T>(), args.output.as<T>(), dx.as<T>(), dx.add);
}

template <class Kernel>
constexpr Op floating_op(const char* name, const char* derivative, std::uint32_t needs) {
  return {.name = name,
          .derivative = derivative,
          .forward = {forward<Kernel, float>, forward<Kernel, double>, nullptr},
          .backward = {backward<Kernel, float>, backward<Kernel, double>, nullptr},
          .needs = {needs}};
}

/// For reductions of integers, too.
template <class Kernel>
constexpr Op any_op(const char* name, const char* derivative, std::uint32_t needs) {
  Op op = floating_op<Kernel>(name, derivative, needs);
  op.forward[int(DType::int64)] = forward<Kernel, std::int64_t>;
  return op;
}

struct Sum {
  template <class T>
  static void forward(const ReducePlan& plan, double, const T* x, T* y) {
    kernels::reduce_sum(plan, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double, const T* dy, const T*, const T*, T* dx, bool add) {
    kernels::reduce_sum_grad(plan, dy, dx, add);
  }
};

struct Mean {
  template <class T>
  static void forward(const ReducePlan& plan, double, const T* x, T* y) {
    kernels::reduce_mean(plan, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double, const T* dy, const T*, const T*, T* dx, bool add) {
    kernels::reduce_mean_grad(plan, dy, dx, add);
  }
};

struct Var {
  template <class T>
  static void forward(const ReducePlan& plan, double correction, const T* x, T* y) {
    kernels::reduce_var(plan, correction, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double correction, const T* dy, const T* x, const T*, T* dx, bool add) {
    kernels::reduce_var_grad(plan, correction, dy, x, dx, add);
  }
};

struct Std {
  template <class T>
  static void forward(const ReducePlan& plan, double correction, const T* x, T* y) {
    kernels::reduce_std(plan, correction, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double correction, const T* dy, const T* x, const T* y, T* dx,
                       bool add) {
    kernels::reduce_std_grad(plan, correction, dy, x, y, dx, add);
  }
};

struct Prod {
  template <class T>
  static void forward(const ReducePlan& plan, double, const T* x, T* y) {
    kernels::reduce_prod(plan, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double, const T* dy, const T* x, const T*, T* dx, bool add) {
    kernels::reduce_prod_grad(plan, dy, x, dx, add);
  }
};

template <Extreme extreme>
struct Most {
  template <class T>
  static void forward(const ReducePlan& plan, double, const T* x, T* y) {
    kernels::reduce_extreme(plan, extreme, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double, const T* dy, const T* x, const T* y, T* dx, bool add) {
    kernels::reduce_extreme_grad(plan, dy, x, y, dx, add);
  }
};

struct LogSumExp {
  template <class T>
  static void forward(const ReducePlan& plan, double, const T* x, T* y) {
    kernels::reduce_logsumexp(plan, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double, const T* dy, const T* x, const T* y, T* dx, bool add) {
    kernels::reduce_logsumexp_grad(plan, dy, x, y, dx, add);
  }
};

struct Norm {
  template <class T>
  static void forward(const ReducePlan& plan, double p, const T* x, T* y) {
    kernels::reduce_norm(plan, p, x, y);
  }
  template <class T>
  static void backward(const ReducePlan& plan, double p, const T* dy, const T* x, const T* y, T* dx, bool add) {
    kernels::reduce_norm_grad(plan, p, dy, x, y, dx, add);
  }
};

constexpr std::uint32_t kInputAndOutput = needs_input(0) | kNeedsOutput;

constexpr Op kSum = any_op<Sum>("sum", "dx = dy repeated", 0);
constexpr Op kMean = floating_op<Mean>("mean", "dx = dy / n repeated", 0);
constexpr Op kVar = floating_op<Var>("var", "dx = dy * 2 (x - mean) / (n - correction)", needs_input(0));
constexpr Op kStd = floating_op<Std>("std", "dx = dy * (x - mean) / (y (n - correction))", kInputAndOutput);
constexpr Op kProd = any_op<Prod>("prod", "dx = dy * product of the other elements", needs_input(0));
constexpr Op kAmax = any_op<Most<Extreme::max>>("amax", "the largest get dy, equals a share each", kInputAndOutput);
constexpr Op kAmin = any_op<Most<Extreme::min>>("amin", "the smallest get dy, equals a share each", kInputAndOutput);
constexpr Op kLogSumExp = floating_op<LogSumExp>("logsumexp", "dx = dy * e^(x - y)", kInputAndOutput);
constexpr Op kNorm = floating_op<Norm>("norm", "dx = dy * sign(x) (|x| / y)^(p-1)", kInputAndOutput);

Tensor reduce(const Op& op, const Tensor& x, std::uint32_t bits, bool keepdim, double number = 0) {
  return apply(op, {x}, reduced_shape(x.shape(), bits, keepdim), x.dtype(), Reduction{bits, number});
}

Tensor reduce(const Op& op, const Tensor& x, const Dims& dims, bool keepdim, double number = 0) {
  return reduce(op, x, bits_of(op.name, x.shape(), dims), keepdim, number);
}

Tensor reduce_most(const Op& op, const char* where, const Tensor& x, const Dims& dims, bool keepdim) {
  const std::uint32_t bits = bits_of(where, x.shape(), dims);
  check_not_empty(where, x.shape(), bits);
  return reduce(op, x, bits, keepdim);
}

}  // namespace

Tensor sum(const Tensor& x) { return reduce(kSum, x, all_dims(x.shape()), false); }
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) { return reduce(kSum, x, dims, keepdim); }
Tensor mean(const Tensor& x) { return reduce(kMean, x, all_dims(x.shape()), false); }
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) { return reduce(kMean, x, dims, keepdim); }
Tensor var(const Tensor& x) { return var(x, {}); }
Tensor var(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  return reduce(kVar, x, dims, keepdim, correction);
}
Tensor std(const Tensor& x) { return std(x, {}); }
Tensor std(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  return reduce(kStd, x, dims, keepdim, correction);
}
Tensor prod(const Tensor& x) { return reduce(kProd, x, all_dims(x.shape()), false); }
Tensor prod(const Tensor& x, std::int64_t dim, bool keepdim) { return reduce(kProd, x, Dims(dim), keepdim); }
Tensor max(const Tensor& x) { return reduce_most(kAmax, "max", x, {}, false); }
Tensor min(const Tensor& x) { return reduce_most(kAmin, "min", x, {}, false); }
Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) { return reduce_most(kAmax, "amax", x, dims, keepdim); }
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) { return reduce_most(kAmin, "amin", x, dims, keepdim); }

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  return reduce(kLogSumExp, is_floating(x.dtype()) ? x : to(x, DType::float32), dims, keepdim);
}

Tensor norm(const Tensor& x, double p) { return norm(x, p, {}); }
Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  if (std::isnan(p)) fail(ErrorKind::config, "norm: p is no number: expected a number or infinity, got nan");
  const std::uint32_t bits = bits_of("norm", x.shape(), dims);
  if (p < 0 || std::isinf(p)) check_not_empty("norm", x.shape(), bits);
  return reduce(kNorm, x, bits, keepdim, p);
}

// --- where the extreme lies -----------------------------------------------------------------------------------------

namespace {

template <Extreme extreme, class T>
void most_at_forward(const ForwardArgs& args) {
  kernels::arg_extreme(plan_of(args.inputs[0], args.attributes), extreme, args.inputs[0].as<T>(), args.output.as<T>(),
                       args.aux[0].as<std::int64_t>());
}

template <class T>
void most_at_backward(const BackwardArgs& args) {
  const GradientSlot& dx = args.input_gradients[0];
  kernels::arg_extreme_grad(plan_of(args.inputs[0], args.attributes), args.output_gradient.as<T>(),
                            args.aux[0].as<std::int64_t>(), dx.as<T>(), dx.add);
}

/// Values as the result, indices as its companion.
template <Extreme extreme>
constexpr Op most_at_op(const char* name) {
  return {.name = name,
          .derivative = "dx = dy at the index, else 0",
          .forward = {most_at_forward<extreme, float>, most_at_forward<extreme, double>,
                      most_at_forward<extreme, std::int64_t>},
          .backward = {most_at_backward<float>, most_at_backward<double>, nullptr}};
}

template <Extreme extreme, class T>
void arg_forward(const ForwardArgs& args) {
  kernels::arg_extreme(plan_of(args.inputs[0], args.attributes), extreme, args.inputs[0].as<T>(),
                       static_cast<T*>(nullptr), args.output.as<std::int64_t>());
}

template <Extreme extreme>
constexpr Op arg_op(const char* name) {
  return {.name = name,
          .derivative = "none",
          .forward = {arg_forward<extreme, float>, arg_forward<extreme, double>, arg_forward<extreme, std::int64_t>},
          .backward = {}};
}

constexpr Op kMax = most_at_op<Extreme::max>("max");
constexpr Op kMin = most_at_op<Extreme::min>("min");
constexpr Op kArgmax = arg_op<Extreme::max>("argmax");
constexpr Op kArgmin = arg_op<Extreme::min>("argmin");

ValuesAndIndices most_at(const Op& op, const Tensor& x, std::int64_t dim, bool keepdim) {
  const std::uint32_t bits = bits_of(op.name, x.shape(), Dims(dim));
  check_not_empty(op.name, x.shape(), bits);
  const Shape shape = reduced_shape(x.shape(), bits, keepdim);
  const Tensor indices = empty(shape, DType::int64);
  return {apply(op, {x}, shape, x.dtype(), Reduction{bits}, {indices}), indices};
}

Tensor arg(const Op& op, const Tensor& x, const Dims& dims, bool keepdim) {
  const std::uint32_t bits = bits_of(op.name, x.shape(), dims);
  check_not_empty(op.name, x.shape(), bits);
  return apply(op, {x}, reduced_shape(x.shape(), bits, keepdim), DType::int64, Reduction{bits});
}

}  // namespace

ValuesAndIndices max(const Tensor& x, std::int64_t dim, bool keepdim) { return most_at(kMax, x, dim, keepdim); }
ValuesAndIndices min(const Tensor& x, std::int64_t dim, bool keepdim) { return most_at(kMin, x, dim, keepdim); }
Tensor argmax(const Tensor& x) { return arg(kArgmax, x, {}, false); }
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim) { return arg(kArgmax, x, Dims(dim), keepdim); }
Tensor argmin(const Tensor& x) { return arg(kArgmin, x, {}, false); }
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim) { return arg(kArgmin, x, Dims(dim), keepdim); }

}  // namespace taper
