#include "kernels/broadcast.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/broadcast_tiles.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/packs.hpp"
#include "kernels/reduce_driver.hpp"
#include "kernels/vector_power.hpp"

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
  static constexpr bool packs = true;
  template <class T>
  static T f(T a, T b) {
    return vector_power(a, b);
  }
  template <class T>
  static T da(T dy, T a, T b) {
    return b == 0 ? T{} : dy * (b * vector_power(a, b - 1));
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return ((a == 0) & (b >= 0)) ? T{} : dy * (vector_power(a, b) * vector_log(a));
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

// An operation is compiled once, as a loop over contiguous operands. The loops around it, one for each type, call it by
// its address and lay operands that lie otherwise into a buffer first.

/// y_i = f(a_i, b_i), and d_i = f(g_i, a_i, b_i) for a gradient g.
template <class T, class Y>
using Row = void (*)(const T* a, const T* b, Y* y, std::int64_t n);
template <class T, class B>
using GradRow = void (*)(const T* g, const T* a, const B* b, T* d, std::int64_t n);

/// y = f(a, b)
template <class T, class Y>
void apply(const BroadcastPlan& p, const T* a, const T* b, Y* y, std::int64_t cost, Row<T, Y> f) {
  const bool buffered = p.inner_stride[0] == 0 || p.inner_stride[1] == 0;
  for_each_tile(p, cost, buffered, [=](Buffers& buffers, const Tile& t) {
    f(t.operand(buffers, 0, a), t.operand(buffers, 1, b), y + t.out, t.rows * t.n);
  });
}

/// dx_i = f(dy_i, a_i, b_i) where x is not repeated.
template <class T, class B>
void grad_elementwise(const BroadcastPlan& p, const T* dy, const T* a, const B* b, T* dx, bool add, GradRow<T, B> f) {
  const bool buffered = add || p.inner_stride[1] == 0 || p.inner_stride[2] == 0;
  for_each_tile(p, 4, buffered, [=](Buffers& buffers, const Tile& t) {
    T *const d = dx + t.out, *const fresh = add ? buffers.room<T>() : d;
    const std::int64_t n = t.rows * t.n;
    f(dy + t.out, t.operand(buffers, 1, a), t.operand(buffers, 2, b), fresh, n);
    if (add)
      for (std::int64_t i = 0; i < n; ++i) d[i] += fresh[i];
  });
}

/// dx_o = sum of f(dy, a, b) over what was read with x_o; of dy itself if `f` is null.
template <class T, class B>
void grad_reduced(const ReducePlan& p, const T* dy, const T* a, const B* b, T* dx, bool add, GradRow<T, B> f) {
  const std::int64_t* const rs = p.rows.stride;
  for_each_group(p, 4, [=, &p](std::int64_t out, std::int64_t width, const Offsets& start) {
    double sum[kReduceColumns] = {};
    Buffers buffers;
    // A run is a row, of which a part is worked on at once; else as many rows as there is room for.
    const bool run = width == 1 && rs[0] == 1;
    const std::int64_t* const cs = run ? rs : p.columns.stride;
    const std::int64_t step = run ? kBuffer : kBuffer / width;
    // Rows whose elements lie side by side need not be brought together.
    const bool alone = !run && width >= kLongRow / 2;
    for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
      if (f == nullptr && (run || p.columns.stride[0] == 1)) {
        const T* const from = dy + o.at[0];
        return run ? void(sum[0] += sum_run(from, p.rows.extent)) : add_block(from, p.rows.extent, rs[0], width, sum);
      }
      for (std::int64_t j = 0; j < p.rows.extent; j += step) {
        const std::int64_t taken = std::min(step, p.rows.extent - j);
        const std::int64_t rows = run || alone ? 1 : taken, n = run ? taken : width;
        T* const terms = buffers.room<T>();
        for (std::int64_t r = 0; r < (alone ? taken : 1); ++r) {
          const std::int64_t row = j + r;
          const T* const g = buffers.operands[0].at(dy + o.at[0] + row * rs[0], {rs[0], cs[0]}, rows, n);
          if (f == nullptr)
            std::copy_n(g, rows * n, terms + r * n);
          else
            f(g, buffers.operands[1].at(a + o.at[1] + row * rs[1], {rs[1], cs[1]}, rows, n),
              buffers.operands[2].at(b + o.at[2] + row * rs[2], {rs[2], cs[2]}, rows, n), terms + r * n, rows * n);
        }
        run ? void(sum[0] += sum_row(terms, n)) : add_rows(terms, taken, width, width, sum);
      }
    });
    for (std::int64_t c = 0; c < width; ++c) dx[out + c] = add ? dx[out + c] + T(sum[c]) : T(sum[c]);
  });
}

template <class T, class B>
void grad_of(const GradPlan& p, const T* dy, const T* a, const B* b, T* dx, bool add, GradRow<T, B> f) {
  const BroadcastPlan& e = p.elementwise;
  const bool contiguous = !p.repeated && e.outer_rank == 0 && e.inner_stride[1] == 1 && e.inner_stride[2] == 1;
  if (contiguous && !add && e.numel <= kPiece)
    f(dy, a, b, dx, e.numel);
  else if (p.repeated)
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

template <class Op>
constexpr bool kInPacks = requires {
  Op::packs;
};

template <class Op, class T, class Y>
[[gnu::noinline]] void row_of(const T* a, const T* b, Y* y, std::int64_t n) {
  // y_i = f(a_i, b_i)
  if constexpr (kInPacks<Op>) {
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(y, Op::f(at(a), at(b)));
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) y[i] = Op::f(a[i], b[i]);
  }
}

template <class Op, class T>
[[gnu::noinline]] void da_of(const T* g, const T* a, const T* b, T* d, std::int64_t n) {
  // d_i = (df / da)(a_i, b_i) g_i
  if constexpr (kInPacks<Op>) {
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(d, Op::da(at(g), at(a), at(b)));
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) d[i] = Op::da(g[i], a[i], b[i]);
  }
}

template <class Op, class T>
[[gnu::noinline]] void db_of(const T* g, const T* a, const T* b, T* d, std::int64_t n) {
  // d_i = (df / db)(a_i, b_i) g_i
  if constexpr (kInPacks<Op>) {
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(d, Op::db(at(g), at(a), at(b)));
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) d[i] = Op::db(g[i], a[i], b[i]);
  }
}

}  // namespace

template <class Op, class T>
void binary(const BroadcastPlan& plan, const T* a, const T* b, T* y) {
  apply<T, T>(plan, a, b, y, std::is_same_v<Op, Power> ? 24 : 1, row_of<Op, T, T>);
}

template <class Op, class T>
void binary(std::int64_t n, const T* a, const T* b, T* y) {
  if (n <= kPiece)
    row_of<Op>(a, b, y, n);
  else
    binary<Op>(same_shape_plan(n), a, b, y);
}

template <class Op, class T>
void compare(const BroadcastPlan& plan, const T* a, const T* b, std::int64_t* y) {
  apply<T, std::int64_t>(plan, a, b, y, 1, row_of<Op, T, std::int64_t>);
}

template <class T>
void where(const BroadcastPlan& plan, const std::int64_t* condition, const T* a, const T* b, T* y) {
  const bool buffered = plan.inner_stride[0] == 0 || plan.inner_stride[1] == 0 || plan.inner_stride[2] == 0;
  for_each_tile(plan, 2, buffered, [=](Buffers& buffers, const Tile& t) {
    const std::int64_t* const chosen = t.operand(buffers, 0, condition);
    const T *const yes = t.operand(buffers, 1, a), *const no = t.operand(buffers, 2, b);
    T* const to = y + t.out;
    // y_i = c_i ? a_i : b_i
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < t.rows * t.n; ++i) {
      const T first_choice = yes[i], second_choice = no[i];
      to[i] = chosen[i] != 0 ? first_choice : second_choice;
    }
  });
}

template <class T>
void broadcast_copy(const BroadcastPlan& plan, const T* x, T* y) {
  for_each_tile(plan, 1, false, [=](Buffers&, const Tile& t) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const T* const from = x + t.at[0] + r * t.strides[0].row;
      if (t.strides[0].column != 0)
        std::copy_n(from, t.n, y + t.out + r * t.n);
      else
        std::fill_n(y + t.out + r * t.n, t.n, *from);
    }
  });
}

template <class Op, class T>
void binary_grad(const GradPlan& plan, int operand, const T* dy, const T* a, const T* b, T* dx, bool add) {
  if constexpr (!kReadsOperands<Op>) {
    // Where the gradient is dy itself its sum needs no function.
    const bool itself = operand == 0 || std::is_same_v<Op, Add>;
    const GradRow<T, T> f = itself ? (plan.repeated ? nullptr : da_of<Op, T>) : db_of<Op, T>;
    grad_of<T, T>(reads_dy_alone(plan), dy, dy, dy, dx, add, f);
  } else {
    // An operand that the operation did not save is not used either: dy, which is no smaller, stands in for it.
    grad_of<T, T>(plan, dy, a ? a : dy, b ? b : dy, dx, add, operand == 0 ? da_of<Op, T> : db_of<Op, T>);
  }
}

namespace {

/// d_i = g_i where the condition chose the operand
template <bool chosen, class T>
void chosen_row(const T* g, const T*, const std::int64_t* condition, T* d, std::int64_t n) {
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = 0; i < n; ++i) {
    const T from = g[i];
    d[i] = (condition[i] != 0) == chosen ? from : T(0);
  }
}

}  // namespace

template <class T>
void where_grad(const GradPlan& plan, int operand, const std::int64_t* condition, const T* dy, T* dx, bool add) {
  GradPlan p = plan;
  // The operand itself is not read: its place is taken by dy's first element.
  for (int d = 0; d < p.reduce.kept_rank; ++d) p.reduce.kept[d].stride[1] = 0;
  for (int d = 0; d < p.reduce.reduced_rank; ++d) p.reduce.reduced[d].stride[1] = 0;
  p.reduce.rows.stride[1] = p.reduce.columns.stride[1] = 0;
  for (std::int64_t& s : p.elementwise.stride[1]) s = 0;
  p.elementwise.inner_stride[1] = 0;
  grad_of<T, std::int64_t>(p, dy, dy, condition, dx, add, operand == 0 ? chosen_row<true, T> : chosen_row<false, T>);
}

template <class T>
void reduce_to(const GradPlan& plan, const T* dy, T* dx, bool add) {
  binary_grad<Add, T>(plan, 0, dy, nullptr, nullptr, dx, add);
}

#define TAPER_INSTANTIATE_BINARY(Op, T)                                      \
  template void binary<Op, T>(const BroadcastPlan&, const T*, const T*, T*); \
  template void binary<Op, T>(std::int64_t, const T*, const T*, T*)
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
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_ALL(double);
TAPER_INSTANTIATE_ALL(std::int64_t);
TAPER_INSTANTIATE_FLOATING(double);
#endif

}  // namespace taper::kernels
