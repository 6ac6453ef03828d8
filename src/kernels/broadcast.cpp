#include "kernels/broadcast.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/parallel.hpp"
#include "kernels/sum_terms.hpp"

namespace taper::kernels {

namespace {

/// Signed overflow is undefined, so integers go through their unsigned type.
template <class T>
using Arithmetic = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

template <class T>
bool is_nan(T x) {
  return x != x;
}

}  // namespace

// Each operation: `f`, its value; `da` and `db`, its gradients with respect to the operands.

struct Add {
  template <class T>
  static T f(T a, T b) {
    return T(Arithmetic<T>(a) + Arithmetic<T>(b));
  }
  template <class T>
  static T da(T dy, T, T) {
    return dy;
  }
  template <class T>
  static T db(T dy, T, T) {
    return dy;
  }
};

struct Sub {
  template <class T>
  static T f(T a, T b) {
    return T(Arithmetic<T>(a) - Arithmetic<T>(b));
  }
  template <class T>
  static T da(T dy, T, T) {
    return dy;
  }
  template <class T>
  static T db(T dy, T, T) {
    return -dy;
  }
};

struct Mul {
  template <class T>
  static T f(T a, T b) {
    return T(Arithmetic<T>(a) * Arithmetic<T>(b));
  }
  template <class T>
  static T da(T dy, T, T b) {
    return dy * b;
  }
  template <class T>
  static T db(T dy, T a, T) {
    return dy * a;
  }
};

struct Div {
  template <class T>
  static T f(T a, T b) {
    return a / b;
  }
  template <class T>
  static T da(T dy, T, T b) {
    return dy / b;
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return -dy * ((a / b) / b);
  }
};

struct Power {
  template <class T>
  static T f(T a, T b) {
    return std::pow(a, b);
  }
  template <class T>
  static T da(T dy, T a, T b) {
    return b == 0 ? T(0) : dy * (b * std::pow(a, b - 1));
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return a == 0 && b >= 0 ? T(0) : dy * (std::pow(a, b) * std::log(a));
  }
};

struct Maximum {
  template <class T>
  static T f(T a, T b) {
    return a > b || is_nan(a) ? a : b;
  }
  template <class T>
  static T da(T dy, T a, T b) {
    return a == b ? dy / 2 : a < b ? T(0) : dy;
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return a == b ? dy / 2 : a > b ? T(0) : dy;
  }
};

struct Minimum {
  template <class T>
  static T f(T a, T b) {
    return a < b || is_nan(a) ? a : b;
  }
  template <class T>
  static T da(T dy, T a, T b) {
    return a == b ? dy / 2 : a > b ? T(0) : dy;
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return a == b ? dy / 2 : a < b ? T(0) : dy;
  }
};

struct Eq {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a >= b;
  }
};

/// Whether the gradients of `Op` read the operands.
template <class Op>
constexpr bool kReadsOperands = !std::is_same_v<Op, Add> && !std::is_same_v<Op, Sub>;

namespace {

/// Long rows are cut into pieces of this many elements, so that one row can keep several threads busy.
constexpr std::int64_t kPiece = 16384;

/// Calls `row(y, offsets, n)` for every piece of every row of the plan.
template <class Row>
void for_each_row(const BroadcastPlan& p, std::int64_t cost, const Row& row) {
  if (p.numel == 0) return;
  if (p.outer_rank == 0 && p.inner <= kPiece) {
    const std::int64_t at[BroadcastPlan::kOperands] = {0, 0, 0};
    row(0, at, p.inner);
    return;
  }
  const std::int64_t pieces = (p.inner + kPiece - 1) / kPiece;
  parallel_for(p.numel / p.inner * pieces, std::min(p.inner, kPiece) * cost,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t unit = first; unit < last; ++unit) {
                   const std::int64_t outer = pieces == 1 ? unit : unit / pieces;
                   const std::int64_t start = (unit - outer * pieces) * kPiece;
                   std::int64_t at[BroadcastPlan::kOperands], rest = outer;
                   for (int k = 0; k < BroadcastPlan::kOperands; ++k) at[k] = start * p.inner_stride[k];
                   for (int d = p.outer_rank - 1; d >= 0; --d) {
                     const std::int64_t quotient = d == 0 ? 0 : rest / p.extent[d];
                     const std::int64_t i = rest - quotient * p.extent[d];
                     rest = quotient;
                     for (int k = 0; k < BroadcastPlan::kOperands; ++k) at[k] += i * p.stride[k][d];
                   }
                   row(outer * p.inner + start, at, std::min(p.inner - start, kPiece));
                 }
               });
}

/// y_i = f(a_i, b_i) in one row, each operand advancing by 0 or 1.
template <class T, class Y, class F>
void row_of(const T* a, int sa, const T* b, int sb, Y* y, std::int64_t n, const F& f) {
  if (sa != 0 && sb != 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (sa != 0) {
    const T fixed = *b;
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], fixed);
  } else {
    const T fixed = *a;
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(fixed, b[i]);
  }
}

template <class T, class Y, class F>
void apply(const BroadcastPlan& p, const T* a, const T* b, Y* y, std::int64_t cost, const F& f) {
  for_each_row(p, cost, [&](std::int64_t out, const std::int64_t* at, std::int64_t n) {
    row_of(a + at[0], p.inner_stride[0], b + at[1], p.inner_stride[1], y + out, n, f);
  });
}

/// dx_i = f(dy_i, a_i, b_i) where x is not repeated.
template <class T, class B, class F>
void grad_elementwise(const BroadcastPlan& p, const T* dy, const T* a, const B* b, T* dx, bool add, const F& f) {
  for_each_row(p, 4, [&](std::int64_t out, const std::int64_t* at, std::int64_t n) {
    const T* const g = dy + at[0];
    const T* const u = a + at[1];
    const B* const v = b + at[2];
    const int su = p.inner_stride[1], sv = p.inner_stride[2];
    T* const d = dx + out;
    if (add) {
      for (std::int64_t i = 0; i < n; ++i) d[i] += f(g[i], u[i * su], v[i * sv]);
    } else if (su == 1 && sv == 1) {
      for (std::int64_t i = 0; i < n; ++i) d[i] = f(g[i], u[i], v[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) d[i] = f(g[i], u[i * su], v[i * sv]);
    }
  });
}

/// dx_o = sum of f(dy, a, b) over what was read with x_o.
template <class T, class B, class F>
void grad_reduced(const ReducePlan& p, const T* dy, const T* a, const B* b, T* dx, bool add, const F& f) {
  const std::int64_t* const rs = p.rows.stride;
  const std::int64_t* const cs = p.columns.stride;
  for_each_group(p, 4, [&](std::int64_t out, std::int64_t width, const Offsets& start) {
    double sum[kReduceColumns] = {};
    for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
      const T* const g = dy + o.at[0];
      const T* const u = a + o.at[1];
      const B* const v = b + o.at[2];
      if (width == 1) {
        sum[0] += sum_terms(p.rows.extent, [&](std::int64_t j) { return f(g[j * rs[0]], u[j * rs[1]], v[j * rs[2]]); });
        return;
      }
      for (std::int64_t j = 0; j < p.rows.extent; ++j)
        for (std::int64_t c = 0; c < width; ++c)
          sum[c] +=
              static_cast<double>(f(g[j * rs[0] + c * cs[0]], u[j * rs[1] + c * cs[1]], v[j * rs[2] + c * cs[2]]));
    });
    for (std::int64_t c = 0; c < width; ++c) dx[out + c] = add ? dx[out + c] + T(sum[c]) : T(sum[c]);
  });
}

template <class T, class B, class F>
void grad_of(const GradPlan& p, const T* dy, const T* a, const B* b, T* dx, bool add, const F& f) {
  if (p.repeated)
    grad_reduced(p.reduce, dy, a, b, dx, add, f);
  else
    grad_elementwise(p.elementwise, dy, a, b, dx, add, f);
}

/// The plan of a gradient that reads dy alone: the operands take the strides of dy, so that any pointer will do.
GradPlan reads_dy_alone(const GradPlan& plan) {
  GradPlan p = plan;
  const auto alone = [](ReducePlan::Dim& dim) { dim.stride[1] = dim.stride[2] = dim.stride[0]; };
  for (int d = 0; d < p.reduce.kept_rank; ++d) alone(p.reduce.kept[d]);
  for (int d = 0; d < p.reduce.reduced_rank; ++d) alone(p.reduce.reduced[d]);
  alone(p.reduce.rows);
  alone(p.reduce.columns);
  p.elementwise = same_shape_plan(plan.elementwise.numel);
  return p;
}

}  // namespace

template <class Op, class T>
void binary(const BroadcastPlan& plan, const T* a, const T* b, T* y) {
  apply(plan, a, b, y, std::is_same_v<Op, Power> ? 24 : 1, [](T u, T v) { return Op::f(u, v); });
}

template <class Op, class T>
void compare(const BroadcastPlan& plan, const T* a, const T* b, std::int64_t* y) {
  apply(plan, a, b, y, 1, [](T u, T v) { return Op::f(u, v); });
}

template <class T>
void where(const BroadcastPlan& plan, const std::int64_t* condition, const T* a, const T* b, T* y) {
  for_each_row(plan, 2, [&](std::int64_t out, const std::int64_t* at, std::int64_t n) {
    const std::int64_t* const c = condition + at[0];
    const T* const u = a + at[1];
    const T* const v = b + at[2];
    const int sc = plan.inner_stride[0], su = plan.inner_stride[1], sv = plan.inner_stride[2];
    // y_i = c_i ? a_i : b_i
    for (std::int64_t i = 0; i < n; ++i) y[out + i] = c[i * sc] != 0 ? u[i * su] : v[i * sv];
  });
}

template <class T>
void broadcast_copy(const BroadcastPlan& plan, const T* x, T* y) {
  for_each_row(plan, 1, [&](std::int64_t out, const std::int64_t* at, std::int64_t n) {
    if (plan.inner_stride[0] != 0)
      std::copy_n(x + at[0], n, y + out);
    else
      std::fill_n(y + out, n, x[at[0]]);
  });
}

template <class Op, class T>
void binary_grad(const GradPlan& plan, int operand, const T* dy, const T* a, const T* b, T* dx, bool add) {
  const auto da = [](T g, T u, T v) { return Op::da(g, u, v); };
  const auto db = [](T g, T u, T v) { return Op::db(g, u, v); };
  if constexpr (!kReadsOperands<Op>) {
    const GradPlan p = reads_dy_alone(plan);
    operand == 0 ? grad_of(p, dy, dy, dy, dx, add, da) : grad_of(p, dy, dy, dy, dx, add, db);
  } else {
    // An operand that the operation did not save is not used either: dy, which is no smaller, stands in for it.
    const T* const u = a ? a : dy;
    const T* const v = b ? b : dy;
    operand == 0 ? grad_of(plan, dy, u, v, dx, add, da) : grad_of(plan, dy, u, v, dx, add, db);
  }
}

template <class T>
void where_grad(const GradPlan& plan, int operand, const std::int64_t* condition, const T* dy, T* dx, bool add) {
  GradPlan p = plan;
  // The operand itself is not read: its place is taken by dy's first element.
  for (int d = 0; d < p.reduce.kept_rank; ++d) p.reduce.kept[d].stride[1] = 0;
  for (int d = 0; d < p.reduce.reduced_rank; ++d) p.reduce.reduced[d].stride[1] = 0;
  p.reduce.rows.stride[1] = p.reduce.columns.stride[1] = 0;
  for (std::int64_t& s : p.elementwise.stride[1]) s = 0;
  p.elementwise.inner_stride[1] = 0;
  const bool taken = operand == 0;
  // dx = dy where the condition chose x
  grad_of(p, dy, dy, condition, dx, add, [taken](T g, T, std::int64_t c) { return (c != 0) == taken ? g : T(0); });
}

template <class T>
void reduce_to(const GradPlan& plan, const T* dy, T* dx, bool add) {
  binary_grad<Add, T>(plan, 0, dy, nullptr, nullptr, dx, add);
}

#define TAPER_INSTANTIATE_BINARY(Op, T) template void binary<Op, T>(const BroadcastPlan&, const T*, const T*, T*)
#define TAPER_INSTANTIATE_COMPARE(Op, T) \
  template void compare<Op, T>(const BroadcastPlan&, const T*, const T*, std::int64_t*)
#define TAPER_INSTANTIATE_ALL(T)                                                             \
  TAPER_INSTANTIATE_BINARY(Add, T);                                                          \
  TAPER_INSTANTIATE_BINARY(Sub, T);                                                          \
  TAPER_INSTANTIATE_BINARY(Mul, T);                                                          \
  TAPER_INSTANTIATE_BINARY(Maximum, T);                                                      \
  TAPER_INSTANTIATE_BINARY(Minimum, T);                                                      \
  TAPER_INSTANTIATE_COMPARE(Eq, T);                                                          \
  TAPER_INSTANTIATE_COMPARE(Ne, T);                                                          \
  TAPER_INSTANTIATE_COMPARE(Lt, T);                                                          \
  TAPER_INSTANTIATE_COMPARE(Le, T);                                                          \
  TAPER_INSTANTIATE_COMPARE(Gt, T);                                                          \
  TAPER_INSTANTIATE_COMPARE(Ge, T);                                                          \
  template void where<T>(const BroadcastPlan&, const std::int64_t*, const T*, const T*, T*); \
  template void broadcast_copy<T>(const BroadcastPlan&, const T*, T*)
TAPER_INSTANTIATE_ALL(float);
TAPER_INSTANTIATE_ALL(double);
TAPER_INSTANTIATE_ALL(std::int64_t);

#define TAPER_INSTANTIATE_GRAD(Op, T) \
  template void binary_grad<Op, T>(const GradPlan&, int, const T*, const T*, const T*, T*, bool)
#define TAPER_INSTANTIATE_FLOATING(T)                                                         \
  TAPER_INSTANTIATE_BINARY(Div, T);                                                           \
  TAPER_INSTANTIATE_BINARY(Power, T);                                                         \
  TAPER_INSTANTIATE_GRAD(Add, T);                                                             \
  TAPER_INSTANTIATE_GRAD(Sub, T);                                                             \
  TAPER_INSTANTIATE_GRAD(Mul, T);                                                             \
  TAPER_INSTANTIATE_GRAD(Div, T);                                                             \
  TAPER_INSTANTIATE_GRAD(Power, T);                                                           \
  TAPER_INSTANTIATE_GRAD(Maximum, T);                                                         \
  TAPER_INSTANTIATE_GRAD(Minimum, T);                                                         \
  template void where_grad<T>(const GradPlan&, int, const std::int64_t*, const T*, T*, bool); \
  template void reduce_to<T>(const GradPlan&, const T*, T*, bool)
TAPER_INSTANTIATE_FLOATING(float);
TAPER_INSTANTIATE_FLOATING(double);

}  // namespace taper::kernels
