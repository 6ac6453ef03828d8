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

/// What is not added may be of any type of this size.
template <class T>
void put(T* y, const T* x, bool add) {
  if (add)
    *y += *x;
  else
    std::memcpy(y, x, sizeof(T));
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

/// y [rows, columns] from x where rows are `row_step` and columns `column_step` apart. What is read and filled two
/// tiles later is asked for if it `is_far`: both lie across the order of memory.
template <class T>
void copy_matrix(const T* x, std::int64_t row_step, std::int64_t column_step, T* y, std::int64_t rows,
                 std::int64_t columns, bool add, bool is_far) {
  if (column_step == 1) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) put(y + r * columns + c, x + r * row_step + c, add);
    return;
  }
  // In tiles that stay in the cache whichever side is read across, a cache line wide. They follow x, since what is read
  // has to be waited for.
  constexpr std::int64_t kTile = 64 / sizeof(T), kSquare = kVectorWidth / sizeof(T);
  const bool squares = row_step == 1 && !add;
  for (std::int64_t c0 = 0; c0 < columns; c0 += kTile)
    for (std::int64_t r0 = 0; r0 < rows; r0 += kTile) {
      const std::int64_t r1 = std::min(rows, r0 + kTile), c1 = std::min(columns, c0 + kTile);
      if (squares && r1 - r0 == kTile && c1 - c0 == kTile) {
        if (is_far) {
          fetch_rows(x + r0 + (c0 + 2 * kTile) * column_step, kTile, column_step, kTile);
          fetch_rows(y + r0 * columns + c0 + 2 * kTile, kTile, columns, kTile);
        }
        for (std::int64_t r = r0; r < r1; r += kSquare)
          for (std::int64_t c = c0; c < c1; c += kSquare)
            transpose_square(x + r + c * column_step, column_step, y + r * columns + c, columns);
        continue;
      }
      for (std::int64_t r = r0; r < r1; ++r)
        for (std::int64_t c = c0; c < c1; ++c) put(y + r * columns + c, x + r * row_step + c * column_step, add);
    }
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
  PermutePlan p = permute_plan(x_shape, dims);
  if (p.numel == 0) return;
  const std::int64_t columns = p.rank > 0 ? p.extent[p.rank - 1] : 1,
                     column_step = p.rank > 0 ? p.stride[p.rank - 1] : 1;
  // Rows are grouped so that a tile has both sides; one group is one unit of work.
  constexpr std::int64_t kRows = 64;
  const std::int64_t rows = p.rank > 1 ? p.extent[p.rank - 2] : 1, row_step = p.rank > 1 ? p.stride[p.rank - 2] : 0;
  const std::int64_t groups = ceil_div(rows, kRows), outer = p.numel / columns / rows;
  const bool is_far = 2 * double(p.numel) * sizeof(T) > kFarRead;
  parallel_for(outer * groups, std::min(rows, kRows) * columns, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t o = unit / groups, row = unit % groups * kRows;
      std::int64_t from = row * row_step, rest = o;
      for (int d = p.rank - 3; d >= 0; --d) {
        from += rest % p.extent[d] * p.stride[d];
        rest /= p.extent[d];
      }
      copy_matrix(x + from, row_step, column_step, y + (o * rows + row) * columns, std::min(rows - row, kRows), columns,
                  add, is_far);
    }
  });
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
  template void narrow<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t); \
  template void place<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t);  \
  template void fill<T>(T*, std::int64_t, T);                                                                  \
  template void arange<T>(T*, std::int64_t, RangeNumber<T>, RangeNumber<T>)
#define TAPER_INSTANTIATE_MOVEMENT_FLOATING(T)                                                                     \
  template void permute<T>(std::span<const std::int64_t>, std::span<const int>, const T*, T*, bool);               \
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

/// Integers have no gradients to add: they are moved as what else has their size.
template <>
void permute(std::span<const std::int64_t> x_shape, std::span<const int> dims, const std::int64_t* x, std::int64_t* y,
             bool) {
  static_assert(sizeof(double) == sizeof(std::int64_t));
  permute(x_shape, dims, reinterpret_cast<const double*>(x), reinterpret_cast<double*>(y), false);
}
#endif

}  // namespace taper::kernels
