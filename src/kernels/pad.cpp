#include "kernels/pad.hpp"

#include <algorithm>

#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

constexpr std::int64_t kOutside = -1;

/// One padded dimension.
struct Axis {
  PadKind kind;
  std::int64_t in, out, left;

  Axis(const PadPlan& p, int d) : kind(p.kind), in(p.in[d]), out(p.out[d]), left(p.left[d]) {}

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
};

/// The input row that output row `row` of a plane copies, or `kOutside`.
std::int64_t source_row(const PadPlan& p, std::int64_t row) {
  std::int64_t at = 0, stride = 1;
  for (int d = p.rank - 2; d >= 0; --d) {
    const std::int64_t j = Axis(p, d).source(row % p.out[d]);
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
  const Axis last(p, p.rank - 1);
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
  const Axis last(p, p.rank - 1);
  const std::int64_t in = last.in, out = last.out, inside = last.inside(), behind = last.behind();
  const std::int64_t in_rows = rows(p.in, p.rank), out_rows = rows(p.out, p.rank);
  // dx_source(i) += dy_i
  const auto plane_grad = [&](const T* dy_plane, T* dx_plane) {
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
template void pad<double>(const PadPlan&, const double*, double*, double);
template void pad<std::int64_t>(const PadPlan&, const std::int64_t*, std::int64_t*, std::int64_t);
template void pad_grad<float>(const PadPlan&, const float*, float*, bool);
template void pad_grad<double>(const PadPlan&, const double*, double*, bool);

}  // namespace taper::kernels
