#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/broadcast.hpp"
#include "kernels/ceil_div.hpp"
#include "kernels/copy.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/vector_base.hpp"

// The walk over a broadcast result, for broadcast.cpp alone: compiled once for all operations and types.

namespace taper::kernels {

namespace {

/// Work is cut into pieces of about this many elements.
constexpr std::int64_t kPiece = 16384;

/// Elements that a buffer holds, and the length from which a row is worth a call of its own, alone and as one of many.
constexpr std::int64_t kBuffer = 512, kLongRow = 32, kManyRows = 48;

/// How far apart the elements of an operand are.
struct Strides {
  std::int64_t row, column;
};

/// An operand, of which no more is known than the size of its elements.
struct Operand {
  const void* data = nullptr;
  int size = 0;

  template <class T>
  explicit Operand(const T* x) : Operand(x, sizeof(T)) {}
  Operand(const void* x, int element) : data(x), size(element) {}
  Operand() = default;

  Operand from(std::int64_t i) const {
    Operand o = *this;
    o.data = static_cast<const char*>(data) + i * size;
    return o;
  }

  /// What stands where a function reads no operand, of which this is one that it reads: nothing is laid out for it.
  Operand unread() const {
    Operand o = *this;
    o.size = 0;
    return o;
  }
};

using Operands = Operand[BroadcastPlan::kOperands];

/// y = the elements of `rows` rows of `n`, one after the other, and anything in the vector behind them.
template <class Element>
void lay_out(const void* x, Strides s, std::int64_t rows, std::int64_t n, void* y) {
  typedef Element Any __attribute__((may_alias));
  const Any* from = static_cast<const Any*>(x);
  Any* to = static_cast<Any*>(y);
  if (s.column == 0) {
    // Vectors that reach into the next row, which is filled after this one.
    constexpr std::int64_t wide = kVectorWidth / sizeof(Element);
    for (; rows > 0; --rows, from += s.row, to += n) {
      const auto repeated = typename Several<Element, wide>::type{} + *from;
      std::int64_t i = 0;
      do std::memcpy(to + i, &repeated, sizeof repeated);
      while ((i += wide) < n);
    }
    return;
  }
  for (; rows > 0; --rows, from += s.row, to += n)
    if (kVectorWidth > 16 && sizeof(Element) == sizeof(float) && s.column == 1)
      std::copy_n(from, n, to);
    else
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * s.column];
}

/// Rows [done, rows) of `size` bytes are those from the first on: twice as many each time.
[[gnu::noinline]] inline void repeat_row(unsigned char* y, std::int64_t size, std::int64_t done, std::int64_t rows) {
#pragma GCC unroll 1
  for (; done < rows; done *= 2) copy_bytes(y, std::min(done, rows - done) * size, y + done * size);
}

/// An operand's elements one after the other: a pointer to them where they are contiguous, else a buffer with a copy.
class OperandRun {
 public:
  /// `rows` rows of `n` elements from the beginning of x on, at most kBuffer together or one row of kFarColumns unless
  /// they are contiguous. Rows that repeat, as they did before, are not filled in again.
  const void* at(const Operand& x, Strides s, std::int64_t rows, std::int64_t n) {
    return x.size == 0 || (s.column == 1 && (rows == 1 || s.row == n)) ? x.data : copied(x, s, rows, n);
  }

 private:
  [[gnu::noinline]] const void* copied(const Operand& x, Strides s, std::int64_t rows, std::int64_t n) {
    const bool repeats = rows == 1 || s.row == 0;
    if (repeats && x.data == repeated_ && rows * n <= filled_) return buffer_;
    std::int64_t done = s.row == 0 ? 1 : rows;
    (x.size == 4 ? lay_out<std::uint32_t> : lay_out<std::uint64_t>)(x.data, s, done, n, buffer_);
    repeat_row(buffer_, n * x.size, done, rows);
    repeated_ = repeats ? x.data : nullptr;
    filled_ = rows * n;
    return buffer_;
  }

  alignas(64) unsigned char buffer_[std::max(kBuffer, kFarColumns) * sizeof(double) + kVectorWidth];
  const void* repeated_ = nullptr;
  std::int64_t filled_ = 0;
};

/// An operation on contiguous elements, y_i = f(x0_i, x1_i, x2_i): it alone knows their types.
using Row = void (*)(const void* x0, const void* x1, const void* x2, void* y, std::int64_t n);

/// What an operation makes of floating numbers and one of them for each row. One of both is the first operand, the
/// other is operand number `operand`.
struct WithNumber {
  enum Operation : std::uint8_t { nothing, sum, difference, product, quotient, larger, smaller } of = nothing;
  int operand = 1;

  /// Whether rows have a loop for it with the number as the first operand, or as the other.
  bool has_loop(bool is_first) const { return of != nothing && (of < quotient || !is_first); }
};

/// y_i = f(x_i, v) or, with `is_first`, f(v, x_i) for `rows` rows with a number v each. Sums, differences and products
/// are x_i factor + addend: nothing is rounded that the operation does not round.
template <class T>
[[gnu::noinline, maybe_unused]] void rows_with_number(WithNumber f, bool is_first, const void* of_rows,
                                                      std::int64_t x_row, const void* of_numbers,
                                                      std::int64_t number_row, std::int64_t rows, std::int64_t n,
                                                      void* result) {
  typedef T Any __attribute__((may_alias));
  const Any *x = static_cast<const Any*>(of_rows), *number = static_cast<const Any*>(of_numbers);
  Any* y = static_cast<Any*>(result);
  const bool is_product = f.of == WithNumber::product;
  const T sign = f.of == WithNumber::difference ? T(-1) : T(1), of_x = is_first ? sign : T(1),
          of_number = is_first ? T(1) : sign;
  for (std::int64_t r = 0; r < rows; ++r, x += x_row, y += n) {
    const T v = number[r * number_row];
    const auto fill = [=](const auto& value) __attribute__((always_inline)) {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = 0; i < n; ++i) y[i] = value(T(x[i]));
    };
    if (f.of == WithNumber::quotient) {
      fill([=](T a) { return a / v; });
    } else if (f.of == WithNumber::larger) {
      fill([=](T a) { return a > v || a != a ? a : v; });
    } else if (f.of == WithNumber::smaller) {
      fill([=](T a) { return a < v || a != a ? a : v; });
    } else {
      const T factor = is_product ? v : of_x, addend = is_product ? -T(0) : of_number * v;
      fill([=](T a) __attribute__((always_inline)) { return fused(a, factor, addend); });
    }
  }
}

/// Elements [out, out + rows n) of a result, and where the operands' elements for them lie.
struct Tile {
  std::int64_t out, rows, n, at[BroadcastPlan::kOperands];
  Strides strides[BroadcastPlan::kOperands];

  void move(std::int64_t row, std::int64_t column) {
    for (int k = 0; k < BroadcastPlan::kOperands; ++k) at[k] += row * strides[k].row + column * strides[k].column;
  }
};

/// How the tiles of a plan are found: as rows of the innermost outer dimension, or as pieces of very long rows.
struct TilePlan {
  int outer_rank;
  std::int64_t rows = 1, height = 1, width, pieces;

  explicit TilePlan(const BroadcastPlan& p) : outer_rank(p.outer_rank), width(std::min(p.inner, kPiece)) {
    if (outer_rank > 0 && p.inner <= kPiece) {
      rows = p.extent[--outer_rank];
      height = std::min(kPiece / p.inner, rows);
    }
    pieces = rows > 1 ? ceil_div(rows, height) : ceil_div(p.inner, width);
  }

  /// The tile that begins with piece `unit` and has as many of those behind it, up to `last`, as lie side by side; what
  /// the first one behind it is.
  Tile tile(const BroadcastPlan& p, std::int64_t& unit, std::int64_t last) const {
    std::int64_t rest = pieces == 1 ? unit : unit / pieces;
    const std::int64_t number = unit - rest * pieces, taken = std::min(last - unit, pieces - number);
    unit += taken;
    const std::int64_t row = rows > 1 ? number * height : 0, column = rows > 1 ? 0 : number * width;
    Tile t{rest * rows * p.inner + row * p.inner + column,
           rows > 1 ? std::min(taken * height, rows - row) : 1,
           rows > 1 ? width : std::min(taken * width, p.inner - column),
           {},
           {}};
    for (int k = 0; k < BroadcastPlan::kOperands; ++k)
      t.strides[k] = {outer_rank < p.outer_rank ? p.stride[k][outer_rank] : 0, p.inner_stride[k]};
    t.move(row, column);
    for (int d = outer_rank - 1; d >= 0; --d) {
      const std::int64_t quotient = d == 0 ? 0 : rest / p.extent[d], i = rest - quotient * p.extent[d];
      rest = quotient;
      for (int k = 0; k < BroadcastPlan::kOperands; ++k) t.at[k] += i * p.stride[k][d];
    }
    return t;
  }
};

/// y = f(x0, x1, x2), in parallel; with `add`, which adds rows, y += f(x0, x1, x2).
[[gnu::noinline]] inline void for_each_run(const BroadcastPlan& p, std::int64_t cost, const Operands& operands, void* y,
                                           int size, Row f, Row add, WithNumber numbers) {
  if (p.numel == 0) return;
  const TilePlan plan(p);
  const bool contiguous = p.inner_stride[0] != 0 && p.inner_stride[1] != 0 && p.inner_stride[2] != 0;
  const std::int64_t widest = add != nullptr || !contiguous ? kBuffer : p.inner;
  const auto work = [=, &p, &operands](std::int64_t first, std::int64_t last) {
    OperandRun runs[BroadcastPlan::kOperands];
    Operand x[BroadcastPlan::kOperands];
    for (std::int64_t unit = first; unit < last;) {
      const Tile t = plan.tile(p, unit, last);
      // An operand's row that many rows share is laid out for them even if they are longer.
      const std::int64_t most = !contiguous ? kBuffer / 2 : t.rows * t.n >= 4 * kBuffer ? kManyRows : kLongRow;
      const std::int64_t height = t.n >= most || t.rows == 1 ? 1 : kBuffer / t.n;
      const std::int64_t width = std::min(widest, t.n);
      for (int k = 0; k < BroadcastPlan::kOperands; ++k) x[k] = operands[k].from(t.at[k]);
      char* const out = static_cast<char*>(y) + t.out * size;
      if constexpr (kVectorWidth > 16) {
        const bool is_first = p.inner_stride[0] == 0;
        const int a = is_first ? numbers.operand : 0, b = numbers.operand - a;
        // Laying a number out for short rows takes longer than they do where vectors are short.
        constexpr std::int64_t least = kAvoidsParts<float> ? kLanes<float> : kLongRow;
        if (numbers.has_loop(is_first) && t.n >= least && p.inner_stride[a] == 1 && p.inner_stride[b] == 0 &&
            add == nullptr) {
          auto rows = rows_with_number<float>;
#ifndef TAPER_ONLY_FLOAT32
          if (size == sizeof(double)) rows = rows_with_number<double>;
#endif
          rows(numbers, is_first, x[a].data, t.strides[a].row, x[b].data, t.strides[b].row, t.rows, t.n, out);
          continue;
        }
      }
      if (contiguous && height == 1 && width == t.n && add == nullptr) {
        for (std::int64_t r = 0; r < t.rows; ++r) {
          const auto row = [&](int k) { return x[k].from(r * t.strides[k].row).data; };
          f(row(0), row(1), row(2), out + r * t.n * size, t.n);
        }
        continue;
      }
      for (std::int64_t r = 0; r < t.rows; r += height)
        for (std::int64_t c = 0; c < t.n; c += width) {
          const std::int64_t rows = std::min(height, t.rows - r), columns = std::min(width, t.n - c);
          const void* run[BroadcastPlan::kOperands] = {};
          for (int k = 0; k < BroadcastPlan::kOperands && x[k].data != nullptr; ++k)
            run[k] = runs[k].at(x[k].from(r * t.strides[k].row + c * t.strides[k].column), t.strides[k], rows, columns);
          void* const to = out + (r * t.n + c) * size;
          alignas(64) unsigned char fresh[kBuffer * sizeof(double)];
          f(run[0], run[1], run[2], add != nullptr ? fresh : to, rows * columns);
          if (add != nullptr) add(to, fresh, nullptr, to, rows * columns);
        }
    }
  };
  parallel_for(p.numel / p.inner / plan.rows * plan.pieces, plan.height * plan.width * cost, work);
}

}  // namespace

}  // namespace taper::kernels
