#include "kernels/pad.hpp"

#include <algorithm>
#include <bit>

#include "kernels/copy.hpp"
#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/vectors.hpp"
#include "kernels/word.hpp"

namespace taper::kernels {

namespace {

constexpr std::int64_t kOutside = -1;

/// One padded dimension.
struct PadAxis {
  PadKind kind;
  std::int64_t in, out, left;

  PadAxis(const PadPlan& p, int d) : kind(p.kind), in(p.in[d]), out(p.out[d]), left(p.left[d]) {}

  /// The outputs [inside, behind) are copies in order, of the input from position inside - left on.
  std::int64_t inside() const { return std::clamp<std::int64_t>(left, 0, out); }
  std::int64_t behind() const { return std::clamp<std::int64_t>(left + in, inside(), out); }

  /// The input position that output `i` copies, or `kOutside`.
  [[gnu::always_inline]] std::int64_t source(std::int64_t i) const {
    const std::int64_t j = i - left;
    return j >= 0 && j < in ? j : source_outside(j);
  }
  [[gnu::noinline]] std::int64_t source_outside(std::int64_t j) const {
    switch (kind) {
      case PadKind::value:
        return kOutside;
      case PadKind::reflect:
        return j < 0 ? -j : 2 * (in - 1) - j;
      case PadKind::replicate:
        return j < 0 ? 0 : in - 1;
      case PadKind::circular: {
        const std::int64_t first = std::max<std::int64_t>(-left, 0), last = std::min(in, out - left);
        return j < 0 ? j + last : j - in + first;
      }
    }
    return kOutside;
  }

  /// The outputs [first, end) that copy input position `j` of a replicate padding.
  struct Copies {
    std::int64_t first, end;
  };
  Copies copies(std::int64_t j) const {
    return {j == 0 ? 0 : std::clamp<std::int64_t>(j + left, 0, out),
            j == in - 1 ? out : std::clamp<std::int64_t>(j + left + 1, 0, out)};
  }
};

/// The outputs in front of those inside and behind them, and what they copy: elements in order or back, one, or none.
struct PadEdges {
  std::int64_t end[2], first[2], source[2], step;

  TAPER_FOR_SIZE explicit PadEdges(const PadAxis& a)
      : end{a.inside(), a.out},
        first{0, a.behind()},
        source{a.source(0), a.source(a.behind())},
        step(a.kind == PadKind::reflect    ? -1
             : a.kind == PadKind::circular ? 1
                                           : 0) {}

  /// Calls `body(i, j)` for outputs i and their source j, or `kOutside`.
  template <class Body>
  [[gnu::always_inline]] void for_each(const Body& body) const {
    for (int side = 0; side < 2; ++side) {
      std::int64_t j = source[side];
      for (std::int64_t i = first[side]; i < end[side]; ++i, j += step) body(i, j);
    }
  }
};

/// The block of all planes' inputs in front of dimension `d` that block `block` of the outputs copies, or `kOutside`.
TAPER_FOR_SIZE std::int64_t source_block(const PadPlan& p, int d, std::int64_t block) {
  std::int64_t at = 0, stride = 1;
  while (--d >= 0) {
    const std::int64_t j = PadAxis(p, d).source(block % p.out[d]);
    if (j == kOutside) return kOutside;
    block /= p.out[d];
    at += j * stride;
    stride *= p.in[d];
  }
  return at + block * stride;
}

std::int64_t rows(const std::int64_t* extent, int rank) {
  std::int64_t n = 1;
  for (int d = 0; d < rank - 1; ++d) n *= extent[d];
  return n;
}

/// Calls `body(out_row)` for the output rows of a plane that copy input row `row` of a replicate padding.
template <class Body>
void for_row_copies(const PadPlan& p, std::int64_t row, const Body& body) {
  PadAxis::Copies copies[Shape::kMaxRank];
  std::int64_t at[Shape::kMaxRank];
  const int outer = p.rank - 1;
  for (int d = outer - 1; d >= 0; --d) {
    copies[d] = PadAxis(p, d).copies(row % p.in[d]);
    at[d] = copies[d].first;
    row /= p.in[d];
    if (copies[d].first >= copies[d].end) return;
  }
  for (;;) {
    std::int64_t out_row = 0;
    for (int d = 0; d < outer; ++d) out_row = out_row * p.out[d] + at[d];
    body(out_row);
    int d = outer - 1;
    for (; d >= 0 && ++at[d] == copies[d].end; --d) at[d] = copies[d].first;
    if (d < 0) return;
  }
}

/// The gradient of one row of a replicate padding, which may copy an element any number of times.
template <class T>
void replicate_row_grad(const PadPlan& p, const PadAxis& last, std::int64_t row, const T* dy_plane, T* dx, bool add) {
  constexpr std::int64_t width = 256;
  const std::int64_t inside = last.inside(), behind = last.behind();
  for (std::int64_t begin = 0; begin < last.in; begin += width) {
    const std::int64_t end = std::min(last.in, begin + width);
    double sum[width];
    for (std::int64_t j = 0; j < end - begin; j += kLanes<double>) store<double>(Doubles{}, sum + j);
    // sum_j = the sum of dy over all copies of element j
    for_row_copies(p, row, [&](std::int64_t out_row) {
      const T* const from = dy_plane + out_row * last.out;
      const std::int64_t first = std::max(begin, inside - last.left), stop = std::min(end, behind - last.left);
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t j = first; j < stop; ++j) sum[j - begin] += static_cast<double>(from[j + last.left]);
      if (begin == 0)
        for (std::int64_t i = 0; i < inside; ++i) sum[0] += static_cast<double>(from[i]);
      if (end == last.in)
        for (std::int64_t i = behind; i < last.out; ++i) sum[end - 1 - begin] += static_cast<double>(from[i]);
    });
    for (std::int64_t j = begin; add && j < end; ++j) {
      asm volatile("");  // seldom done: no vectors
      sum[j - begin] += static_cast<double>(dx[j]);
    }
    for (std::int64_t j = begin; j < end; ++j) dx[j] = static_cast<T>(sum[j - begin]);
  }
}

/// y_i = x_i for i < n: rows are often a vector or two long.
template <class T>
void copy_row(const T* x, std::int64_t n, T* y) {
  constexpr std::int64_t kAll = kLanes<T>;
  if (n < kAll || n > 8 * kAll) {
    copy_elements(x, n, y);
    return;
  }
  for (std::int64_t i = 0; i < n - kAll; i += kAll) store<T>(load(x + i), y + i);
  store<T>(load(x + n - kAll), y + n - kAll);
}

/// Calls `body(unit, row)` for the rows [first, end) of all planes' outputs, with the row of all planes' inputs that
/// each copies, or with `kOutside`.
template <class Body>
[[gnu::always_inline]] inline void for_each_row(const PadPlan& p, std::int64_t first, std::int64_t end,
                                                const Body& body) {
  const int d = p.rank - 2;
  const PadAxis axis(p, std::max(d, 0));
  const std::int64_t out = d < 0 ? 1 : axis.out, in = d < 0 ? 1 : axis.in;
  while (first < end) {
    // Rows that follow each other along one dimension.
    const std::int64_t block = first / out, last = std::min(end, (block + 1) * out);
    const std::int64_t base = source_block(p, d, block);
    for (std::int64_t i = first - block * out; first < last; ++first, ++i) {
      const std::int64_t j = d < 0 ? 0 : axis.source(i);
      body(first, base == kOutside || j == kOutside ? kOutside : base * in + j);
    }
  }
}

/// Planes of few elements with short rows, for which what is done for a row would take longer than the row: where each
/// output of a plane comes from.
class SmallPlane {
 public:
  static constexpr std::int64_t kMost = 256, kFewestPlanes = 8;
  /// Longer rows are copied, and gathered, faster each by itself.
  static constexpr std::int64_t kLongestCopy = 10, kLongestGather = 16;

  static bool fits(const PadPlan& p, std::int64_t longest) {
    const int d = p.rank - 1;
    return p.planes >= kFewestPlanes && p.out[d] <= longest && rows(p.out, p.rank) <= kMost / longest &&
           rows(p.in, p.rank) * p.in[d] < kMost;
  }

  TAPER_FOR_SIZE explicit SmallPlane(const PadPlan& p) : inputs_(rows(p.in, p.rank) * p.in[p.rank - 1]) {
    const std::int64_t n = rows(p.out, p.rank);
    const PadAxis last(p, p.rank - 1);
    for (std::int64_t row = 0; row < n; ++row) {
      const std::int64_t from = source_block(p, p.rank - 1, row);
      for (std::int64_t i = 0; i < last.out; ++i) {
        const std::int64_t j = last.source(i);
        source_[outputs_++] =
            static_cast<std::uint8_t>(from == kOutside || j == kOutside ? inputs_ : from * last.in + j);
      }
    }
  }

  std::int64_t work() const { return std::max<std::int64_t>(outputs_, 1); }

  /// y_i = x_source(i), or `value`, for the planes [first, end).
  template <class T>
  void pad(const T* x, std::int64_t first, std::int64_t end, T* y, T value) const {
    T own[kMost];
    own[inputs_] = value;
    x += first * inputs_, y += first * outputs_;
    for (; first < end; ++first, x += inputs_, y += outputs_) {
      std::copy_n(x, inputs_, own);
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < outputs_; ++i) {
        asm volatile("");  // vectors would be gathered
        y[i] = own[source_[i]];
      }
    }
  }
  /// dx_j = the sum of dy_i over the outputs i that copy element j, or added to it, for the planes [first, end).
  template <class T>
  void pad_grad(const T* dy, std::int64_t first, std::int64_t end, T* dx, bool add) const {
    double sum[kMost];
    dy += first * outputs_, dx += first * inputs_;
    for (; first < end; ++first, dy += outputs_, dx += inputs_) {
      clear(sum, inputs_ + 1);
      for (std::int64_t i = 0; i < outputs_; ++i) {
        asm volatile("");
        sum[source_[i]] += static_cast<double>(dy[i]);
      }
      for (std::int64_t j = 0; j < inputs_; ++j) {
        asm volatile("");  // few: no vectors
        dx[j] = static_cast<T>(add ? static_cast<double>(dx[j]) + sum[j] : sum[j]);
      }
    }
  }

 private:
  std::int64_t inputs_, outputs_ = 0;
  std::uint8_t source_[kMost];  ///< as many as there are inputs stands for the value
};

template <class T>
[[gnu::noinline]] void pad_words(const PadPlan& p, const T* x, T* y, T value) {
  if (SmallPlane::fits(p, SmallPlane::kLongestCopy)) {
    const SmallPlane plane(p);
    return parallel_for(p.planes, plane.work(),
                        [=, &plane](std::int64_t first, std::int64_t end) { plane.pad(x, first, end, y, value); });
  }
  const PadAxis last(p, p.rank - 1);
  const PadEdges outer(last);
  const std::int64_t in = last.in, out = last.out, inside = last.inside(), n = last.behind() - inside,
                     skipped = inside - last.left;
  // y_i = x_source(i), or the value
  parallel_for(p.planes * rows(p.out, p.rank), std::max<std::int64_t>(out, 1),
               [=, &p, &outer](std::int64_t first, std::int64_t end) {
                 const PadEdges edges = outer;  // of which the compiler knows that no result overlaps it
                 for_each_row(p, first, end, [&](std::int64_t unit, std::int64_t row) {
                   T* const to = y + unit * out;
                   if (row == kOutside) {
                     std::fill_n(to, out, value);
                     return;
                   }
                   const T* const from = x + row * in;
                   edges.for_each([=](std::int64_t i, std::int64_t j) { to[i] = j == kOutside ? value : from[j]; });
                   if (n > 0) copy_row(from + skipped, n, to + inside);
                 });
               });
}

/// What takes away what was padded, and pads with a value what was cropped.
PadPlan inverse(const PadPlan& p) {
  PadPlan back = p;
  for (int d = 0; d < p.rank; ++d) {
    back.in[d] = p.out[d];
    back.out[d] = p.in[d];
    back.left[d] = -p.left[d];
  }
  return back;
}

}  // namespace

PadPlan pad_plan(std::span<const std::int64_t> shape, std::span<const std::int64_t> amounts, PadKind kind) {
  PadPlan p;
  p.kind = kind;
  p.rank = static_cast<int>(amounts.size() / 2);
  const std::size_t front = shape.size() - amounts.size() / 2;
  for (std::size_t d = 0; d < front; ++d) p.planes *= shape[d];
  for (int d = 0; d < p.rank; ++d) {
    const std::size_t pair = std::size_t(p.rank - 1 - d) * 2;
    p.in[d] = shape[front + std::size_t(d)];
    p.left[d] = amounts[pair];
    p.out[d] = p.in[d] + amounts[pair] + amounts[pair + 1];
  }
  return p;
}

template <class T>
void pad(const PadPlan& p, const T* x, T* y, T value) {
  pad_words(p, reinterpret_cast<const Word<T>*>(x), reinterpret_cast<Word<T>*>(y), std::bit_cast<Word<T>>(value));
}

template <class T>
void pad_grad(const PadPlan& p, const T* dy, T* dx, bool add) {
  // What is added by nothing else is copied back.
  if (p.kind == PadKind::value && !add) return pad(inverse(p), dy, dx, T(0));
  if (SmallPlane::fits(p, SmallPlane::kLongestGather)) {
    const SmallPlane plane(p);
    return parallel_for(p.planes, plane.work(),
                        [=, &plane](std::int64_t first, std::int64_t end) { plane.pad_grad(dy, first, end, dx, add); });
  }
  const PadAxis last(p, p.rank - 1);
  const PadEdges edges(last);
  const std::int64_t in = last.in, out = last.out, inside = last.inside(), behind = last.behind();
  const std::int64_t in_rows = rows(p.in, p.rank), out_rows = rows(p.out, p.rank);
  // dx_source(i) += dy_i
  parallel_for(
      p.planes, 4 * std::max<std::int64_t>(out_rows * out, in_rows * in), [&](std::int64_t first, std::int64_t end) {
        if (p.kind == PadKind::replicate) {
          for (std::int64_t row = first * in_rows; row < end * in_rows; ++row)
            replicate_row_grad(p, last, row % in_rows, dy + row / in_rows * out_rows * out, dx + row * in, add);
          return;
        }
        if (!add) std::fill_n(dx + first * in_rows * in, (end - first) * in_rows * in, T(0));
        for_each_row(p, first * out_rows, end * out_rows, [&](std::int64_t unit, std::int64_t row) {
          if (row == kOutside) return;
          const T* const from = dy + unit * out;
          T* const to = dx + row * in;
          edges.for_each([=](std::int64_t i, std::int64_t j) {
            if (j != kOutside) to[j] += from[i];
          });
          TAPER_INDEPENDENT_TURNS
          for (std::int64_t i = inside; i < behind; ++i) to[i - last.left] += from[i];
        });
      });
}

template void pad<float>(const PadPlan&, const float*, float*, float);
template void pad_grad<float>(const PadPlan&, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void pad<double>(const PadPlan&, const double*, double*, double);
template void pad<std::int64_t>(const PadPlan&, const std::int64_t*, std::int64_t*, std::int64_t);
template void pad_grad<double>(const PadPlan&, const double*, double*, bool);
#endif

}  // namespace taper::kernels
