#include "kernels/broadcast.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/average_runs.hpp"
#include "kernels/broadcast_operations.hpp"
#include "kernels/broadcast_tiles.hpp"
#include "kernels/copy.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/packs.hpp"
#include "kernels/reduce.hpp"
#include "kernels/reduce_driver.hpp"
#include "kernels/stream.hpp"

namespace taper::kernels {

namespace {

// An operation is compiled once, as a row. The loops around them know no types, or of those of the gradients that they
// add, and lay operands that are not contiguous into a buffer first.

template <class Op>
constexpr bool kInPacks = requires {
  Op::packs;
};

/// y_i = f(x_i ...), where it can in packs.
template <class Op, class T, class Y, class F, class... X>
[[gnu::always_inline]] inline void fill_row(void* to, std::int64_t n, const F& f, const X*... x) {
  Y* const y = static_cast<Y*>(to);
  if constexpr (kInPacks<Op>) {
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(y, f(at(static_cast<const T*>(x))...));
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(static_cast<const T*>(x)[i]...);
  }
}

/// y_i = f(a_i, b_i)
template <class Op, class T, class Y = T>
[[gnu::noinline]] void row_of(const void* a, const void* b, const void*, void* y, std::int64_t n) {
  fill_row<Op, T, Y>(
      y, n, [](auto... v) __attribute__((always_inline)) { return Op::f(v...); }, a, b);
}

/// d_i = (df / da)(a_i, b_i) g_i
template <class Op, class T>
[[gnu::noinline]] void da_of(const void* g, const void* a, const void* b, void* d, std::int64_t n) {
  fill_row<Op, T, T>(
      d, n, [](auto... v) __attribute__((always_inline)) { return Op::da(v...); }, g, a, b);
}

/// d_i = (df / db)(a_i, b_i) g_i
template <class Op, class T>
[[gnu::noinline]] void db_of(const void* g, const void* a, const void* b, void* d, std::int64_t n) {
  fill_row<Op, T, T>(
      d, n, [](auto... v) __attribute__((always_inline)) { return Op::db(v...); }, g, a, b);
}

/// y_i = c_i ? a_i : b_i
template <class T>
void chosen_of_both(const void* c, const void* a, const void* b, void* to, std::int64_t n) {
  const auto* const condition = static_cast<const std::int64_t*>(c);
  const T *const yes = static_cast<const T*>(a), *const no = static_cast<const T*>(b);
  T* const y = static_cast<T*>(to);
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = 0; i < n; ++i) {
    const T first_choice = yes[i], second_choice = no[i];
    y[i] = condition[i] != 0 ? first_choice : second_choice;
  }
}

/// d_i = g_i where the condition chose the operand
template <bool chosen, class T>
void chosen_of_one(const void* dy, const void*, const void* c, void* to, std::int64_t n) {
  const T* const g = static_cast<const T*>(dy);
  const auto* const condition = static_cast<const std::int64_t*>(c);
  T* const d = static_cast<T*>(to);
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = 0; i < n; ++i) {
    const T from = g[i];
    d[i] = (condition[i] != 0) == chosen ? from : T(0);
  }
}

/// y_i = x_i
template <class T>
void copy_of(const void* x, const void*, const void*, void* y, std::int64_t n) {
  copy_elements(static_cast<const T*>(x), n, static_cast<T*>(y));
}

/// What `Op` is where one operand is a number for each row.
template <class Op, class T>
constexpr WithNumber::Operation kWithNumber = !std::is_floating_point_v<T>  ? WithNumber::nothing
                                              : std::is_same_v<Op, Add>     ? WithNumber::sum
                                              : std::is_same_v<Op, Sub>     ? WithNumber::difference
                                              : std::is_same_v<Op, Mul>     ? WithNumber::product
                                              : std::is_same_v<Op, Div>     ? WithNumber::quotient
                                              : std::is_same_v<Op, Maximum> ? WithNumber::larger
                                              : std::is_same_v<Op, Minimum> ? WithNumber::smaller
                                                                            : WithNumber::nothing;

/// y = f(x ...)
template <class Y>
void apply(const BroadcastPlan& p, const Operands& x, Y* y, std::int64_t cost, Row f, Row add = nullptr,
           WithNumber numbers = {}) {
  for_each_run(p, cost, x, y, sizeof(Y), f, add, numbers);
}

/// dx_o = sum of f(dy, a, b), or of dy itself if `f` is null, over the short run that was read with x_o: several
/// outputs at a time.
template <class T>
[[gnu::noinline]] void grad_of_runs(const ReducePlan& p, const Operands& x, T* dx, bool add, Row f) {
  const std::int64_t n = p.rows.extent, most = kBuffer / n;
  const ReducePlan::Dim kept = p.kept_rank > 0 ? p.kept[p.kept_rank - 1] : ReducePlan::Dim{1, {0, 0, 0}};
  parallel_for(p.outputs, 4 * n, [=, &p, &x, &kept](std::int64_t first, std::int64_t last) {
    OperandRun runs[BroadcastPlan::kOperands];
    alignas(64) T terms[kBuffer];
    T sums[kBuffer];
    for (std::int64_t o = first, count; o < last; o += count) {
      count = std::min(std::min(most, last - o), kept.extent - o % kept.extent);
      const Offsets start = offsets_of(p.kept, p.kept_rank, o);
      const auto from = [&](int k) {
        return runs[k].at(x[k].from(start.at[k]), {kept.stride[k], p.rows.stride[k]}, count, n);
      };
      const T* summed = terms;
      if (f == nullptr)
        summed = static_cast<const T*>(from(0));
      else
        f(from(0), from(1), from(2), terms, count * n);
      average_runs(count, n, 1, summed, sums);
      for (std::int64_t i = 0; i < count; ++i) dx[o + i] = add ? dx[o + i] + sums[i] : sums[i];
    }
  });
}

/// dx_o = sum of f(dy, a, b) over what was read with x_o; of dy itself if `f` is null.
template <class T>
void grad_reduced(const ReducePlan& p, const Operands& x, T* dx, bool add, Row f) {
  const std::int64_t* const rs = p.rows.stride;
  if (rs[0] == 1 && p.reduced_rank == 0 && p.rows.extent > 0 && p.rows.extent <= kBuffer / 2)
    return grad_of_runs(p, x, dx, add, f);
  if (f == nullptr && !add && in_blocks_of_runs(p)) return reduce_sum(p, static_cast<const T*>(x[0].data), dx);
  const auto sums_of = [=, &p, &x](std::int64_t out, std::int64_t width, const Offsets& start) {
    double sum[kFarColumns];
    std::fill_n(sum, width, 0.0);
    OperandRun runs[BroadcastPlan::kOperands];
    alignas(64) T terms[8 * kFarColumns];
    const bool run = is_run(p, width);
    const std::int64_t* const cs = run ? rs : p.columns.stride;
    // Parts of longer rows, and rows that leave no room for eight, are taken one by one.
    const bool alone = !run && (8 * width > kBuffer || (width >= kLongRow / 2 && rs[0] != width));
    // A run is a row, of which a part is worked on at once; else as many times eight rows as there is room for.
    const std::int64_t room = alone ? 8 * std::max(width, kWideColumns) : kBuffer;
    const std::int64_t step = run ? kBuffer : room / width / 8 * 8;
    for_each_block(p, start, [&](const Offsets& o, std::int64_t) {
      if (f == nullptr) {
        const T* const from = static_cast<const T*>(x[0].data) + o.at[0];
        return run ? void(sum[0] += sum_run(from, p.rows.extent))
                   : add_columns(from, p.rows.extent, rs[0], width, is_far<T>(p), sum);
      }
      for (std::int64_t j = 0; j < p.rows.extent; j += step) {
        const std::int64_t taken = std::min(step, p.rows.extent - j);
        const std::int64_t rows = run || alone ? 1 : taken, n = run ? taken : width;
        Operand at[BroadcastPlan::kOperands];
        for (int k = 0; k < BroadcastPlan::kOperands; ++k) at[k] = x[k].from(o.at[k] + j * rs[k]);
        for (std::int64_t r = 0; r < (alone ? taken : 1); ++r) {
          const auto from = [&](int k) { return runs[k].at(at[k], {rs[k], cs[k]}, rows, n); };
          f(from(0), from(1), from(2), terms + r * n, rows * n);
          for (int k = 0; k < BroadcastPlan::kOperands; ++k) at[k] = at[k].from(rs[k]);
        }
        run ? void(sum[0] += sum_row(terms, n)) : add_rows(terms, taken, width, width, false, sum);
      }
    });
    for (std::int64_t c = 0; c < width; ++c) dx[out + c] = add ? dx[out + c] + T(sum[c]) : T(sum[c]);
  };
  for_each_group<T>(p, 4, sums_of, kWideColumns);
}

template <class T>
void grad_of(const GradPlan& p, const Operands& x, T* dx, bool add, Row f, WithNumber numbers = {}) {
  const BroadcastPlan itself = same_shape_plan(p.elementwise.numel);
  const BroadcastPlan& e = x[1].size == 0 && x[2].size == 0 ? itself : p.elementwise;
  const bool contiguous = !p.repeated && e.outer_rank == 0 && e.inner_stride[1] == 1 && e.inner_stride[2] == 1;
  if (contiguous && !add && e.numel <= kPiece) {
    f(x[0].data, x[1].data, x[2].data, dx, e.numel);
  } else if (p.repeated) {
    grad_reduced(p.reduce, x, dx, add, f);
  } else {
    // dx_i = f(dy_i, a_i, b_i)
    apply(e, x, dx, 4, f, add ? row_of<Add, T> : nullptr, numbers);
  }
}

/// All that the loops know of an operation but its row: the bytes of an element of the operands and of the result.
struct Facts {
  std::uint8_t operand_size, size, cost;
  WithNumber::Operation with_number;
};

template <class Op, class T, class Y = T>
constexpr Facts kFacts{sizeof(T), sizeof(Y), std::is_same_v<Op, Power> ? 24 : 1, kWithNumber<Op, T>};

/// y = f(a, b), or f(a) without b.
[[gnu::noinline]] void apply_rows(const BroadcastPlan& p, const void* a, const void* b, void* y, Row f, Facts facts) {
  for_each_run(p, facts.cost,
               {Operand(a, facts.operand_size), b == nullptr ? Operand() : Operand(b, facts.operand_size)}, y,
               facts.size, f, nullptr, {facts.with_number, 1});
}

/// The same for operands of one shape.
[[gnu::noinline]] void apply_same_shape(std::int64_t n, const void* a, const void* b, void* y, Row f, Facts facts) {
  apply_rows(same_shape_plan(n), a, b, y, f, facts);
}

/// y = a row of a and b, of so many elements that they go past the caches; `row` is a Row.
template <class T>
void map_row(const void* row, const T* a, const T* b, T* y, std::int64_t n) {
  (*static_cast<const Row*>(row))(a, b, nullptr, y, n);
}

/// An operand's gradient: a row of dy and the operands, or dy itself or -dy; or an operation on dy and the other one.
struct OperandGrad {
  Row f;
  enum : std::uint8_t { of_all, same, negated } of;
  WithNumber::Operation with_other;
};

template <class Op, class T>
constexpr OperandGrad kOperandGrads[] = {
    {da_of<Op, T>, kReadsOperands<Op> ? OperandGrad::of_all : OperandGrad::same,
     std::is_same_v<Op, Mul> || std::is_same_v<Op, Div> ? kWithNumber<Op, T> : WithNumber::nothing},
    {db_of<Op, T>,
     kReadsOperands<Op>        ? OperandGrad::of_all
     : std::is_same_v<Op, Add> ? OperandGrad::same
                               : OperandGrad::negated,
     std::is_same_v<Op, Mul> ? kWithNumber<Op, T> : WithNumber::nothing}};

/// dx = the gradient `d` of operand number `operand`. Operands that the operation did not save are not read.
template <class T>
[[gnu::noinline]] void operand_grad(const GradPlan& plan, int operand, const T* dy, const T* a, const T* b, T* dx,
                                    bool add, const OperandGrad& d) {
  const Operand g(dy);
  Operand x[] = {g, g.unread(), g.unread()};
  if (d.of == OperandGrad::of_all && a != nullptr) x[1] = Operand(a);
  if (d.of == OperandGrad::of_all && b != nullptr) x[2] = Operand(b);
  if (d.with_other != WithNumber::nothing) x[1 + operand] = g.unread();
  if (plan.repeated && !add && d.of == OperandGrad::negated) {
    grad_reduced(plan.reduce, x, dx, false, nullptr);
    return d.f(dx, dx, dx, dx, plan.reduce.outputs);
  }
  // The sum of dy itself needs no function.
  grad_of(plan, x, dx, add, plan.repeated && d.of == OperandGrad::same ? nullptr : d.f, {d.with_other, 2 - operand});
}

}  // namespace

template <class Op, class T>
void binary(const BroadcastPlan& plan, const T* a, const T* b, T* y) {
  apply_rows(plan, a, b, y, row_of<Op, T>, kFacts<Op, T>);
}

template <class Op, class T>
void binary(std::int64_t n, const T* a, const T* b, T* y) {
  if (n <= kPiece) return row_of<Op, T>(a, b, nullptr, y, n);
  if constexpr (std::is_floating_point_v<T>)
    if (const Row row = row_of<Op, T>; fills_past(double(n) * sizeof(T)))
      return map_ranges<T>(n, 1, a, b, y, &row, map_row<T>);
  apply_same_shape(n, a, b, y, row_of<Op, T>, kFacts<Op, T>);
}

template <class Op, class T>
void compare(const BroadcastPlan& plan, const T* a, const T* b, std::int64_t* y) {
  apply_rows(plan, a, b, y, row_of<Op, T, std::int64_t>, kFacts<Op, T, std::int64_t>);
}

template <class T>
void where(const BroadcastPlan& plan, const std::int64_t* condition, const T* a, const T* b, T* y) {
  apply(plan, {Operand(condition), Operand(a), Operand(b)}, y, 2, chosen_of_both<T>);
}

template <class T>
void broadcast_copy(const BroadcastPlan& plan, const T* x, T* y) {
  apply_rows(plan, x, nullptr, y, copy_of<T>, {sizeof(T), sizeof(T), 1, WithNumber::nothing});
}

template <class Op, class T>
void binary_grad(const GradPlan& plan, int operand, const T* dy, const T* a, const T* b, T* dx, bool add) {
  operand_grad(plan, operand, dy, a, b, dx, add, kOperandGrads<Op, T>[operand]);
}

template <class T>
void where_grad(const GradPlan& plan, int operand, const std::int64_t* condition, const T* dy, T* dx, bool add) {
  const Operand g(dy);
  grad_of(plan, {g, g.unread(), Operand(condition)}, dx, add,
          operand == 0 ? chosen_of_one<true, T> : chosen_of_one<false, T>);
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
