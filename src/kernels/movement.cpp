#include "kernels/movement.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/turn_square.hpp"

namespace taper::kernels {

namespace {

/// A permutation as loops over y: extents of y and strides in x, neighbours that stay together being merged.
struct PermutePlan {
  int rank = 0;
  std::int64_t extent[Shape::kMaxRank], stride[Shape::kMaxRank], numel = 1;
};

PermutePlan permute_plan(std::span<const std::int64_t> shape, std::span<const int> dims) {
  std::int64_t stride[Shape::kMaxRank], step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    stride[d] = step;
    step *= shape[d];
  }
  PermutePlan p;
  p.numel = step;
  for (const int dim : dims) {
    const std::int64_t extent = shape[std::size_t(dim)], by = stride[dim];
    if (extent == 1) continue;
    if (p.rank > 0 && p.stride[p.rank - 1] == by * extent) {
      p.extent[p.rank - 1] *= extent;
      p.stride[p.rank - 1] = by;
    } else {
      p.extent[p.rank] = extent;
      p.stride[p.rank++] = by;
    }
  }
  return p;
}

/// y_{r, c} = x_{c, r} of a square of one vector a side, whose rows are `x_row` and `y_row` apart.
template <class T>
void transpose_square(const T* x, std::int64_t x_row, T* y, std::int64_t y_row) {
  constexpr int n = kVectorWidth / static_cast<int>(sizeof(T));
  Vector<T> v[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(&v[i], x + i * x_row, sizeof v[i]);
  turn_square<T>(v);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(y + i * y_row, &v[i], sizeof v[i]);
}

/// Part of a permutation: y [rows, columns] from x where rows are `row_step` and columns `column_step` apart.
struct Matrix {
  std::int64_t from, row_step, column_step;  ///< elements of x
  std::int64_t to, rows, columns;            ///< of y
  bool is_far;                               ///< whether caches hardly hold x and y
};

/// Calls visit(r0, r1, c0, c1) for tiles that stay in the cache whichever side is read across, a cache line wide. They
/// follow x, since what is read has to be waited for.
template <std::int64_t kTile, class Visit>
[[gnu::always_inline]] inline void for_tiles(const Matrix& m, const Visit& visit) {
  for (std::int64_t c0 = 0; c0 < m.columns; c0 += kTile)
    for (std::int64_t r0 = 0; r0 < m.rows; r0 += kTile)
      visit(r0, std::min(m.rows, r0 + kTile), c0, std::min(m.columns, c0 + kTile));
}

/// Moves a matrix of elements that have the size of T. What is read and filled two tiles later is asked for if it is
/// far: both lie across the order of memory.
template <class T>
void move_matrix(const void* all_x, void* all_y, const Matrix& m) {
  const T* const x = static_cast<const T*>(all_x) + m.from;
  T* const y = static_cast<T*>(all_y) + m.to;
  const auto move = [ =, row_step = m.row_step, column_step = m.column_step, columns = m.columns ](
      std::int64_t r, std::int64_t c) __attribute__((always_inline)) {
    std::memcpy(y + r * columns + c, x + r * row_step + c * column_step, sizeof(T));
  };
  if (m.column_step == 1) {
    for (std::int64_t r = 0; r < m.rows; ++r)
      std::memcpy(y + r * m.columns, x + r * m.row_step, static_cast<std::size_t>(m.columns) * sizeof(T));
    return;
  }
  constexpr std::int64_t kTile = 64 / sizeof(T), kSquare = kVectorWidth / sizeof(T);
  for_tiles<kTile>(m, [&](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
    if (m.row_step != 1 || r1 - r0 != kTile || c1 - c0 != kTile) {
      for (std::int64_t r = r0; r < r1; ++r)
        for (std::int64_t c = c0; c < c1; ++c) move(r, c);
      return;
    }
    if (m.is_far) {
      fetch_rows(x + r0 + (c0 + 2 * kTile) * m.column_step, kTile, m.column_step, kTile);
      fetch_rows(y + r0 * m.columns + c0 + 2 * kTile, kTile, m.columns, kTile);
    }
    for (std::int64_t r = r0; r < r1; r += kSquare)
      for (std::int64_t c = c0; c < c1; c += kSquare)
        transpose_square(x + r + c * m.column_step, m.column_step, y + r * m.columns + c, m.columns);
  });
}

/// The same with +=.
template <class T>
void add_matrix(const void* all_x, void* all_y, const Matrix& m) {
  const T* const x = static_cast<const T*>(all_x) + m.from;
  T* const y = static_cast<T*>(all_y) + m.to;
  for_tiles<64 / sizeof(T)>(m, [&](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
    for (std::int64_t r = r0; r < r1; ++r)
      for (std::int64_t c = c0; c < c1; ++c) y[r * m.columns + c] += x[r * m.row_step + c * m.column_step];
  });
}

/// Calls visit(x, y, matrix) for the matrices of a permutation of elements of `size` bytes.
void for_matrices(const PermutePlan& p, std::size_t size, void (*visit)(const void*, void*, const Matrix&),
                  const void* x, void* y) {
  if (p.numel == 0) return;
  const std::int64_t columns = p.rank > 0 ? p.extent[p.rank - 1] : 1,
                     column_step = p.rank > 0 ? p.stride[p.rank - 1] : 1;
  // Rows are grouped so that a tile has both sides; one group is one unit of work.
  constexpr std::int64_t kRows = 64;
  const std::int64_t rows = p.rank > 1 ? p.extent[p.rank - 2] : 1, row_step = p.rank > 1 ? p.stride[p.rank - 2] : 0;
  const std::int64_t groups = ceil_div(rows, kRows), outer = p.numel / columns / rows;
  const bool is_far = 2 * double(p.numel) * double(size) > kFarRead;
  parallel_for(outer * groups, std::min(rows, kRows) * columns, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t o = unit / groups, row = unit % groups * kRows;
      std::int64_t from = row * row_step, rest = o;
      for (int d = p.rank - 3; d >= 0; --d) {
        from += rest % p.extent[d] * p.stride[d];
        rest /= p.extent[d];
      }
      visit(x, y,
            {from, row_step, column_step, (o * rows + row) * columns, std::min(rows - row, kRows), columns, is_far});
    }
  });
}

/// Calls `body(o)` for each of the `outer` slices, `work` elements each.
template <class Body>
void for_each_slice(std::int64_t outer, std::int64_t work, const Body& body) {
  parallel_for(outer, std::max<std::int64_t>(work, 1), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) body(o);
  });
}

}  // namespace

template <class T>
void permute(std::span<const std::int64_t> x_shape, std::span<const int> dims, const T* x, T* y, bool add) {
  using AsLarge = std::conditional_t<sizeof(T) == sizeof(float), float, double>;
  for_matrices(permute_plan(x_shape, dims), sizeof(T), add ? add_matrix<T> : move_matrix<AsLarge>, x, y);
}

template <class T>
void narrow(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
            std::int64_t length) {
  for_each_slice(outer, length * inner, [=](std::int64_t o) {
    std::copy_n(x + (o * n + start) * inner, length * inner, y + o * length * inner);
  });
}

template <class T>
void narrow_add(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
                std::int64_t length) {
  for_each_slice(outer, length * inner, [=](std::int64_t o) {
    const T* const from = x + (o * n + start) * inner;
    T* const to = y + o * length * inner;
    for (std::int64_t i = 0; i < length * inner; ++i) to[i] += from[i];
  });
}

template <class T>
void place(const T* part, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
           std::int64_t length) {
  for_each_slice(outer, length * inner, [=](std::int64_t o) {
    std::copy_n(part + o * length * inner, length * inner, y + (o * n + start) * inner);
  });
}

template <class T>
void narrow_grad(const T* dy, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
                 std::int64_t length, bool add) {
  for_each_slice(outer, n * inner, [=](std::int64_t o) {
    const T* const from = dy + o * length * inner;
    T* const slice = dx + o * n * inner;
    T* const part = slice + start * inner;
    if (add) {
      for (std::int64_t i = 0; i < length * inner; ++i) part[i] += from[i];
      return;
    }
    std::fill(slice, part, T(0));
    std::copy_n(from, length * inner, part);
    std::fill(part + length * inner, slice + n * inner, T(0));
  });
}

template <class T>
void fill(T* y, std::int64_t n, T value) {
  parallel_for(n, 1, [=](std::int64_t first, std::int64_t last) { std::fill(y + first, y + last, value); });
}

template <class T>
void arange(T* y, std::int64_t n, RangeNumber<T> start, RangeNumber<T> step) {
  // y_i = start + i step
  parallel_for(n, 1, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      if constexpr (std::is_integral_v<T>)
        y[i] = T(std::uint64_t(start) + std::uint64_t(i) * std::uint64_t(step));
      else
        y[i] = T(start + static_cast<double>(i) * step);
    }
  });
}

template <class T>
void linspace(T* y, std::int64_t n, double start, double end) {
  const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  // y_i = start + i step in the first half, end - (n - 1 - i) step in the second
  parallel_for(n, 1, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      y[i] =
          T(i < n / 2 || n == 1 ? start + static_cast<double>(i) * step : end - static_cast<double>(n - 1 - i) * step);
  });
}

#define TAPER_INSTANTIATE_MOVEMENT(T)                                                                          \
  template void permute<T>(std::span<const std::int64_t>, std::span<const int>, const T*, T*, bool);           \
  template void narrow<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t); \
  template void place<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t);  \
  template void fill<T>(T*, std::int64_t, T);                                                                  \
  template void arange<T>(T*, std::int64_t, RangeNumber<T>, RangeNumber<T>)
#define TAPER_INSTANTIATE_MOVEMENT_FLOATING(T)                                                                     \
  template void narrow_add<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t); \
  template void narrow_grad<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, \
                               bool);                                                                              \
  template void linspace<T>(T*, std::int64_t, double, double)
TAPER_INSTANTIATE_MOVEMENT(float);
TAPER_INSTANTIATE_MOVEMENT_FLOATING(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_MOVEMENT(double);
TAPER_INSTANTIATE_MOVEMENT(std::int64_t);
TAPER_INSTANTIATE_MOVEMENT_FLOATING(double);
#endif

}  // namespace taper::kernels
