#include "kernels/movement.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/ceil_div.hpp"
#include "kernels/copy.hpp"
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

/// y_i = x_i for i < n: what a few vectors hold without a call, which pays for more.
template <class T>
[[gnu::always_inline]] inline void move_run(const T* x, T* y, std::int64_t n) {
  constexpr std::int64_t kStep = 32 / sizeof(T), kMost = 192 / sizeof(T);
  if (n < kStep || n > kMost) {
    copy_elements(x, n, y);
    return;
  }
  for (std::int64_t i = 0; i < n; i += kStep) {
    const std::int64_t at = std::min(i, n - kStep);
    std::memcpy(y + at, x + at, 32);
  }
}

/// Part of a permutation: [rows, columns] elements, in y rows apart, in x rows and columns.
struct Matrix {
  std::int64_t rows, columns;
  std::int64_t from, row_step, column_step;  ///< of x
  std::int64_t to, to_step;                  ///< of y
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

/// Asks for `bytes` of each of `rows` rows, which begin `row` bytes after each other.
[[maybe_unused, gnu::noinline]] void fetch_rows(Next next, std::int64_t rows, std::int64_t row, std::int64_t bytes) {
  asm volatile("");  // without effects it would not be called
  for (; rows > 0; --rows, next.skip(row)) Next(next).fetch(bytes);
}
template <class T>
[[gnu::always_inline]] inline void fetch_rows(const T* x, std::int64_t rows, std::int64_t row, std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(T);
  if constexpr (kVectorWidth > 16) fetch_rows(Next(x, 0), rows, row * kSize, n * kSize);  // the baseline is kept small
}

/// Moves a matrix of elements that have the size of T. What is read and filled two tiles later is asked for if it is
/// far: both lie across the order of memory.
template <class T>
void move_matrix(const void* all_x, void* all_y, const Matrix& m) {
  const T* const x = static_cast<const T*>(all_x) + m.from;
  T* const y = static_cast<T*>(all_y) + m.to;
  const auto move = [ =, row_step = m.row_step, column_step = m.column_step, to_step = m.to_step ](
      std::int64_t r, std::int64_t c) __attribute__((always_inline)) {
    std::memcpy(y + r * to_step + c, x + r * row_step + c * column_step, sizeof(T));
  };
  if (m.column_step == 1) {
    const std::int64_t rows = m.rows, n = m.columns, x_row = m.row_step, y_row = m.to_step;
    for (std::int64_t r = 0; r < rows; ++r) move_run(x + r * x_row, y + r * y_row, n);
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
      fetch_rows(y + r0 * m.to_step + c0 + 2 * kTile, kTile, m.to_step, kTile);
    }
    for (std::int64_t r = r0; r < r1; r += kSquare)
      for (std::int64_t c = c0; c < c1; c += kSquare)
        transpose_square(x + r + c * m.column_step, m.column_step, y + r * m.to_step + c, m.to_step);
  });
}

/// The same with +=.
template <class T>
void add_matrix(const void* all_x, void* all_y, const Matrix& m) {
  const T* const x = static_cast<const T*>(all_x) + m.from;
  T* const y = static_cast<T*>(all_y) + m.to;
  for_tiles<64 / sizeof(T)>(m, [&](std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
    for (std::int64_t r = r0; r < r1; ++r)
      for (std::int64_t c = c0; c < c1; ++c) y[r * m.to_step + c] += x[r * m.row_step + c * m.column_step];
  });
}

/// Calls visit(x, y, matrix) for the matrices of a permutation of elements of `size` bytes: y's last dimension beside
/// the one that is x's last, or where these are one, the one before it.
void for_matrices(const PermutePlan& p, std::size_t size, void (*visit)(const void*, void*, const Matrix&),
                  const void* x, void* y) {
  if (p.numel == 0) return;
  const int last = p.rank - 1;
  std::int64_t to_stride[Shape::kMaxRank];
  int across = last - 1;
  for (std::int64_t d = last, step = 1; d >= 0; step *= p.extent[d--]) {
    to_stride[d] = step;
    if (d < last && p.stride[d] == 1) across = int(d);
  }
  Matrix m{.rows = 1,
           .columns = 1,
           .from = 0,
           .row_step = 0,
           .column_step = 1,
           .to = 0,
           .to_step = 1,
           .is_far = 2 * double(p.numel) * double(size) > kFarRead};
  if (last >= 0) m.columns = p.extent[last], m.column_step = p.stride[last];
  if (across >= 0) m.rows = p.extent[across], m.row_step = p.stride[across], m.to_step = to_stride[across];
  // Rows are grouped so that a tile has both sides; one group is one unit of work.
  constexpr std::int64_t kRows = 64;
  const std::int64_t rows = m.rows, groups = ceil_div(rows, kRows), outer = p.numel / m.columns / rows;
  parallel_for(outer * groups, std::min(rows, kRows) * m.columns, [&](std::int64_t first, std::int64_t end) {
    Matrix part = m;
    for (std::int64_t unit = first; unit < end; ++unit) {
      const std::int64_t row = unit % groups * kRows;
      std::int64_t rest = unit / groups;
      part.from = row * m.row_step, part.to = row * m.to_step, part.rows = std::min(rows - row, kRows);
      for (int d = last - 1; d >= 0; --d) {
        if (d == across) continue;
        const std::int64_t i = rest % p.extent[d];
        part.from += i * p.stride[d], part.to += i * to_stride[d];
        rest /= p.extent[d];
      }
      visit(x, y, part);
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

/// y_o = x_o for `outer` runs of `n` elements of this size, so far apart: short ones without a call for each.
template <class T>
void copy_runs(const void* all_x, std::int64_t x_step, void* all_y, std::int64_t y_step, std::int64_t outer,
               std::int64_t n) {
  const T* const x = static_cast<const T*>(all_x);
  T* const y = static_cast<T*>(all_y);
  parallel_for(outer, std::max<std::int64_t>(n, 1), [=](std::int64_t first, std::int64_t last) {
    constexpr std::int64_t few = 16 / sizeof(T);
    const auto copy = [&](std::int64_t o, std::int64_t at, std::size_t size) __attribute__((always_inline)) {
      std::memcpy(y + o * y_step + at, x + o * x_step + at, size);
    };
    if (n < few) {
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t o = first; o < last; ++o) copy(o, i, sizeof(T));
    } else if (n <= 2 * few) {
      for (std::int64_t o = first; o < last; ++o) copy(o, 0, 16), copy(o, n - few, 16);
    } else if (n <= 4 * few) {
      for (std::int64_t o = first; o < last; ++o) copy(o, 0, 32), copy(o, n - 2 * few, 32);
    } else {
      for (std::int64_t o = first; o < last; ++o) move_run(x + o * x_step, y + o * y_step, n);
    }
  });
}

/// What elements of the size of T are moved as.
template <class T>
using Moved = std::conditional_t<sizeof(T) == sizeof(float), float, double>;

}  // namespace

template <class T>
void permute(std::span<const std::int64_t> x_shape, std::span<const int> dims, const T* x, T* y, bool add) {
  for_matrices(permute_plan(x_shape, dims), sizeof(T), add ? add_matrix<T> : move_matrix<Moved<T>>, x, y);
}

template <class T>
void fill(T* y, std::int64_t n, T value) {
  parallel_for(n, 1, [=](std::int64_t first, std::int64_t last) { std::fill(y + first, y + last, value); });
}

template <class T>
void narrow(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
            std::int64_t length) {
  copy_runs<Moved<T>>(x + start * inner, n * inner, y, length * inner, outer, length * inner);
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
  copy_runs<Moved<T>>(part, length * inner, y + start * inner, n * inner, outer, length * inner);
}

template <class T>
void narrow_grad(const T* dy, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner, std::int64_t start,
                 std::int64_t length, bool add) {
  constexpr std::int64_t kShort = 64;
  if (!add && n * inner < kShort) {  // what is done for a slice would take longer than the slice
    fill(dx, outer * n * inner, T(0));
    place(dy, dx, outer, n, inner, start, length);
    return;
  }
  for_each_slice(outer, n * inner, [=](std::int64_t o) {
    const T* const from = dy + o * length * inner;
    T* const slice = dx + o * n * inner;
    T* const part = slice + start * inner;
    if (add) {
      for (std::int64_t i = 0; i < length * inner; ++i) part[i] += from[i];
      return;
    }
    std::fill(slice, part, T(0));
    copy_elements(from, length * inner, part);
    std::fill(part + length * inner, slice + n * inner, T(0));
  });
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
