#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/broadcast.hpp"
#include "kernels/parallel.hpp"

// The walk over a broadcast result, for broadcast.cpp alone: compiled once for all operations and types.

namespace taper::kernels {

namespace {

/// Work is cut into pieces of about this many elements.
constexpr std::int64_t kPiece = 16384;

/// Elements that a buffer holds, and the length from which a row is worth a call of its own.
constexpr std::int64_t kBuffer = 512, kLongRow = 64;

/// How far apart the elements of an operand are.
struct Strides {
  std::int64_t row, column;
};

/// An operand's elements one after the other: a pointer to them where they are contiguous, else a buffer with a copy.
class Run {
 public:
  /// `rows` rows of `n` elements from `x` on, at most kBuffer together unless they are contiguous. Rows that repeat, as
  /// they did before, are not filled in again.
  template <class T>
  const T* at(const T* x, Strides s, std::int64_t rows, std::int64_t n) {
    return s.column == 1 && (rows == 1 || s.row == n) ? x : copied(x, s, rows, n);
  }

 private:
  template <class T>
  [[gnu::noinline]] const T* copied(const T* x, Strides s, std::int64_t rows, std::int64_t n) {
    T* const buffer = reinterpret_cast<T*>(buffer_);
    const bool repeats = rows == 1 || s.row == 0;
    if (repeats && x == repeated_ && rows * n <= filled_) return buffer;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const from = x + r * s.row;
      T* const to = buffer + r * n;
      if (s.column == 0)
        std::fill_n(to, n, *from);
      else
        for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * s.column];
    }
    repeated_ = repeats ? x : nullptr;
    filled_ = rows * n;
    return buffer;
  }

  alignas(64) unsigned char buffer_[kBuffer * sizeof(double)];
  const void* repeated_ = nullptr;
  std::int64_t filled_ = 0;
};

/// What a thread works with: the operands, and room for kBuffer results.
struct Buffers {
  Run operands[BroadcastPlan::kOperands];
  alignas(64) unsigned char results[kBuffer * sizeof(double)];

  template <class T>
  T* room() {
    return reinterpret_cast<T*>(results);
  }
};

/// Elements [out, out + rows n) of a result, and where the operands' elements for them lie.
struct Tile {
  std::int64_t out, rows, n, at[BroadcastPlan::kOperands];
  Strides strides[BroadcastPlan::kOperands];

  void move(std::int64_t row, std::int64_t column) {
    for (int k = 0; k < BroadcastPlan::kOperands; ++k) at[k] += row * strides[k].row + column * strides[k].column;
  }
  /// Operand `k`, which begins at `x`.
  template <class T>
  const T* operand(Buffers& buffers, int k, const T* x) const {
    return buffers.operands[k].at(x + at[k], strides[k], rows, n);
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
    pieces = rows > 1 ? (rows + height - 1) / height : (p.inner + width - 1) / width;
  }

  Tile piece(const BroadcastPlan& p, std::int64_t unit) const {
    std::int64_t rest = pieces == 1 ? unit : unit / pieces;
    const std::int64_t number = unit - rest * pieces;
    const std::int64_t row = rows > 1 ? number * height : 0, column = rows > 1 ? 0 : number * width;
    Tile t{rest * rows * p.inner + row * p.inner + column,
           std::min(height, rows - row),
           std::min(width, p.inner - column),
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

/// Calls `body(context, buffers, tile)` for tiles that cover the result: rows or parts of them, and short rows several
/// together. With `buffered` they have at most kBuffer elements.
[[gnu::noinline]] inline void for_each_tile(const BroadcastPlan& p, std::int64_t cost, bool buffered,
                                            void (*body)(const void*, Buffers&, const Tile&), const void* context) {
  if (p.numel == 0) return;
  const TilePlan plan(p);
  parallel_for(p.numel / p.inner / plan.rows * plan.pieces, plan.height * plan.width * cost,
               [&p, plan, buffered, body, context](std::int64_t first, std::int64_t last) {
                 Buffers buffers;
                 for (std::int64_t unit = first; unit < last; ++unit) {
                   Tile t = plan.piece(p, unit);
                   const std::int64_t rows = t.rows, n = t.n;
                   const std::int64_t height = n >= kLongRow || rows == 1 ? 1 : kBuffer / n;
                   const std::int64_t width = buffered ? std::min(kBuffer, n) : n;
                   for (std::int64_t r = 0; r < rows; r += height) {
                     t.rows = std::min(height, rows - r);
                     for (std::int64_t c = 0; c < n; c += width) {
                       t.n = std::min(width, n - c);
                       body(context, buffers, t);
                       t.out += t.rows * t.n;
                       t.move(0, t.n);
                     }
                     t.move(t.rows, -n);
                   }
                 }
               });
}

template <class Body>
void for_each_tile(const BroadcastPlan& p, std::int64_t cost, bool buffered, const Body& body) {
  const auto call = [](const void* context, Buffers& buffers, const Tile& t) {
    (*static_cast<const Body*>(context))(buffers, t);
  };
  for_each_tile(p, cost, buffered, call, &body);
}

}  // namespace

}  // namespace taper::kernels
