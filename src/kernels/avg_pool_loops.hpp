#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/double_lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/sum_row.hpp"

/// What the loops of average pools, forward and backward, have in common; for avg_pool.cpp alone.
namespace taper::kernels::average {

/// Elements of a row that are worked on at once; what the buffers on the stack hold.
constexpr std::int64_t kTile = 1024;
/// Positions that the windows of a tile span together at most.
constexpr std::int64_t kSpan = 4096;
/// Rows side by side in `Way::eight_rows`.
constexpr std::int64_t kRows = 8;
/// Groups of input rows that are worked on at once.
constexpr std::int64_t kGroups = 64;
/// Input rows of one unit of backward work.
constexpr std::int64_t kRowBlock = 64;

/// A pool in the form the loops take: axes [D, H, W], what is left of the options.
template <class Axis>
struct Pool {
  std::int64_t planes;
  Axis d, h, w;
  bool count_include_pad = false;
  double divisor = 0;  ///< the one divisor of all windows; 0 when it differs between windows
};

/// Calls `body` with a function that divides by `divisor` what becomes a T: by a product where that gives the same bits
/// and for float, where the product is off by less than 2^-52 of the quotient before the one rounding that counts.
template <class T, class Body>
void with_quotient(double divisor, const Body& body) {
  // The reciprocal of a power of two is exact, and so is the product with it.
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  if (sizeof(T) < sizeof(double) || (std::bit_cast<std::uint64_t>(divisor) & kFraction) == 0)
    body([inverse = 1 / divisor](double s) { return s * inverse; });
  else
    body([divisor](double s) { return s / divisor; });
}

/// y_i = s_i / divisor for a pool of T; rounded once if y is of T too.
template <class T, class Y>
void divide_row(const double* s, std::int64_t n, double divisor, Y* y) {
  with_quotient<T>(divisor, [=](const auto& quotient) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(quotient(s[i]));
  });
}

/// y_i = s_i / (rows count_i) for windows o0 + i < o0 + n, `rows` being what the other axes count.
template <class T, class Y>
void divide_windows(const Pool<FixedAxis>& p, double rows, const double*, const double* s, std::int64_t o0,
                    std::int64_t n, Y* y) {
  p.w.for_counts(p.count_include_pad, o0, o0 + n, [&](std::int64_t a, std::int64_t b, std::int64_t counted) {
    const double divisor = rows * static_cast<double>(counted);
    if (b - a == 1)
      y[a - o0] = static_cast<Y>(s[a - o0] / divisor);
    else
      divide_row<T>(s + (a - o0), b - a, divisor, y + (a - o0));
  });
}
template <class T, class Y>
void divide_windows(const Pool<AdaptiveAxis>&, double rows, const double* count, const double* s, std::int64_t,
                    std::int64_t n, Y* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(s[i] / (rows * count[i]));
}

/// sum_i += x_i
template <class T>
void add_row(const T* x, std::int64_t n, double* sum) {
  std::int64_t i = 0;
  for (; i + kRegisterDoubles <= n; i += kRegisterDoubles) {
    auto s = Lanes<kRegisterDoubles>::load(sum + i);
    (s += Lanes<kRegisterDoubles>::load(x + i)).store(sum + i);
  }
  for (; i < n; ++i) sum[i] += static_cast<double>(x[i]);
}

/// sum_c = the rows `d` x `h` of a plane at column c, from the first row down; at least one row.
template <class T>
void sum_columns(const T* x, const IndexRange& d, const IndexRange& h, std::int64_t height, std::int64_t pitch,
                 std::int64_t n, double* sum) {
  x += (d.first * height + h.first) * pitch;
  const Places slices{height * pitch, d.last - d.first}, rows{pitch, h.last - h.first};
  if (slices.terms * rows.terms <= 9) return sum_places(x, slices, rows, n, sum);
  // Many rows are read one after the other, as the memory likes it.
  for (std::int64_t i = 0; i < slices.terms; ++i)
    for (std::int64_t j = 0; j < rows.terms; ++j) {
      const T* const row = x + i * slices.step + j * rows.step;
      if (i == 0 && j == 0)
        sum_places(row, {0, 1}, {0, 1}, n, sum);
      else
        add_row(row, n, sum);
    }
}

/// count_i = what window o0 + i counts
template <class Axis>
void count_windows(const Axis& axis, bool count_include_pad, std::int64_t o0, std::int64_t n, double* count) {
  axis.for_counts(count_include_pad, o0, o0 + n, [=](std::int64_t first, std::int64_t last, std::int64_t counted) {
    std::fill(count + (first - o0), count + (last - o0), static_cast<double>(counted));
  });
}

/// Where a window of a tile lies in the tile's rows.
struct Span {
  std::int32_t first, last;
};

}  // namespace taper::kernels::average
