#include "kernels/pad.hpp"

#include <algorithm>

#include "kernels/parallel.hpp"

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
  std::int64_t source(std::int64_t i) const {
    const std::int64_t j = i - left;
    if (j >= 0 && j < in) return j;
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

/// The input row that output row `row` of a plane copies, or `kOutside`.
std::int64_t source_row(const PadPlan& p, std::int64_t row) {
  std::int64_t at = 0, stride = 1;
  for (int d = p.rank - 2; d >= 0; --d) {
    const std::int64_t j = PadAxis(p, d).source(row % p.out[d]);
    if (j == kOutside) return kOutside;
    row /= p.out[d];
    at += j * stride;
    stride *= p.in[d];
  }
  return at;
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
void replicate_row_grad(const PadPlan& p, std::int64_t row, const T* dy_plane, T* dx, bool add) {
  const PadAxis last(p, p.rank - 1);
  constexpr std::int64_t width = 256;
  for (std::int64_t begin = 0; begin < last.in; begin += width) {
    const std::int64_t end = std::min(last.in, begin + width);
    double sum[width] = {};
    // sum_j = the sum of dy over all copies of element j
    for_row_copies(p, row, [&](std::int64_t out_row) {
      const T* const from = dy_plane + out_row * last.out;
      for (std::int64_t j = begin; j < end; ++j)
        for (auto [i, stop] = last.copies(j); i < stop; ++i) sum[j - begin] += static_cast<double>(from[i]);
    });
    for (std::int64_t j = begin; j < end; ++j)
      dx[j] = static_cast<T>(add ? static_cast<double>(dx[j]) + sum[j - begin] : sum[j - begin]);
  }
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
  const PadAxis last(p, p.rank - 1);
  const std::int64_t in = last.in, out = last.out, inside = last.inside(), behind = last.behind();
  const std::int64_t in_rows = rows(p.in, p.rank), out_rows = rows(p.out, p.rank);
  // y_i = x_source(i), or the value
  parallel_for(p.planes * out_rows, std::max<std::int64_t>(out, 1), [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t unit = first; unit < end; ++unit) {
      const std::int64_t row = source_row(p, unit % out_rows);
      T* const to = y + unit * out;
      if (row == kOutside) {
        std::fill_n(to, out, value);
        continue;
      }
      const T* const from = x + (unit / out_rows * in_rows + row) * in;
      const auto edge = [&](std::int64_t i) {
        const std::int64_t j = last.source(i);
        to[i] = j == kOutside ? value : from[j];
      };
      for (std::int64_t i = 0; i < inside; ++i) edge(i);
      if (behind > inside) std::copy_n(from + (inside - last.left), behind - inside, to + inside);
      for (std::int64_t i = behind; i < out; ++i) edge(i);
    }
  });
}

template <class T>
void pad_grad(const PadPlan& p, const T* dy, T* dx, bool add) {
  const PadAxis last(p, p.rank - 1);
  const std::int64_t in = last.in, out = last.out, inside = last.inside(), behind = last.behind();
  const std::int64_t in_rows = rows(p.in, p.rank), out_rows = rows(p.out, p.rank);
  // dx_source(i) += dy_i
  const auto plane_grad = [&](const T* dy_plane, T* dx_plane) {
    if (p.kind == PadKind::replicate) {
      for (std::int64_t row = 0; row < in_rows; ++row) replicate_row_grad(p, row, dy_plane, dx_plane + row * in, add);
      return;
    }
    if (!add) std::fill_n(dx_plane, in_rows * in, T(0));
    for (std::int64_t r = 0; r < out_rows; ++r) {
      const std::int64_t row = source_row(p, r);
      if (row == kOutside) continue;
      const T* const from = dy_plane + r * out;
      T* const to = dx_plane + row * in;
      const auto edge = [&](std::int64_t i) {
        const std::int64_t j = last.source(i);
        if (j != kOutside) to[j] += from[i];
      };
      for (std::int64_t i = 0; i < inside; ++i) edge(i);
      for (std::int64_t i = inside; i < behind; ++i) to[i - last.left] += from[i];
      for (std::int64_t i = behind; i < out; ++i) edge(i);
    }
  };
  parallel_for(p.planes, std::max<std::int64_t>(out_rows * out, in_rows * in),
               [&](std::int64_t first, std::int64_t end) {
                 for (std::int64_t plane = first; plane < end; ++plane)
                   plane_grad(dy + plane * out_rows * out, dx + plane * in_rows * in);
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
