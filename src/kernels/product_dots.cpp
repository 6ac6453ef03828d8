#include "kernels/packs.hpp"
#include "kernels/product_vector.hpp"

// Products whose terms run along the vectors; each sum is that of a vector's elements.
namespace taper::kernels {

namespace {

/// Sums of the lanes of R x C vectors of products, for the terms [k, k + depth).
template <class T, int R, int C>
void add_dots(std::int64_t depth, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, double (&total)[R][C]) {
  Vector<T> sum[R][C] = {};
  const auto add = [&](const auto& get) __attribute__((always_inline)) {
    Vector<T> left[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) left[r] = get(a + r * lda);
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
      const Vector<T> right = get(b + j * ldb);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[r][j] = multiply_add(left[r], right, sum[r][j]);
    }
  };
  for (; depth >= kLanes<T>; depth -= kLanes<T>, a += kLanes<T>, b += kLanes<T>)
    add([](const T* x) { return load(x); });
  if (depth > 0) add([depth](const T* x) { return load_first(x, depth); });
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) total[r][j] += sum_of_lanes(sum[r][j]);
}

/// c[r, j] = sum over k of a[r, k] b[j, k] for R rows of a and C rows of b; long sums are joined in double.
template <class T, int R, int C>
void multiply_dots(std::int64_t depth, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T* c,
                   std::int64_t row, std::int64_t column, bool add) {
  double total[R][C] = {};
  constexpr std::int64_t step = kChain<T> * kLanes<T>;
  for (std::int64_t k = 0; k < depth; k += step)
    add_dots<T, R, C>(std::min(step, depth - k), a + k, lda, b + k, ldb, total);
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < C; ++j) {
      T& y = c[r * row + j * column];
      y = static_cast<T>(add ? static_cast<double>(y) + total[r][j] : total[r][j]);
    }
}

/// Rows of a that are taken together at most: as many as there are registers for; the baseline is kept small.
template <class T>
inline constexpr int kDotRows = kVectorWidth == 16                                 ? 1
                                : kVectorWidth == 64 && sizeof(T) == sizeof(float) ? 4
                                                                                   : 2;

/// The rows of a, R at a time, then fewer, with all rows of b.
template <class T, int R>
void multiply_dot_rows(std::int64_t rows, std::int64_t columns, std::int64_t depth, const T* a, std::int64_t lda,
                       const T* b, std::int64_t ldb, T* c, std::int64_t row, std::int64_t column, bool add) {
  for (; rows >= R; rows -= R, a += R * lda, c += R * row) {
    std::int64_t j = 0;
    for (; j + 4 <= columns; j += 4)
      multiply_dots<T, R, 4>(depth, a, lda, b + j * ldb, ldb, c + j * column, row, column, add);
    for (; j < columns; ++j) multiply_dots<T, R, 1>(depth, a, lda, b + j * ldb, ldb, c + j * column, row, column, add);
  }
  if constexpr (R > 1)
    if (rows > 0) multiply_dot_rows<T, R / 2>(rows, columns, depth, a, lda, b, ldb, c, row, column, add);
}

/// Rows of b that a tile of R rows of a takes at most in `multiply_lines`; the baseline is kept small.
template <int R>
constexpr int kLineColumns = kVectorWidth == 16 || (kVectorWidth<64 && R> 1) ? 4
                             : R > 3                                         ? 24 / R
                                                                             : 8;

/// sums[r, j] = the vectors of a_r b_j for R rows of a and J of b, or += with `more`.
template <class T, int R, int J>
void multiply_line_tile(const LineOperands<T>& x, T* sums, std::int64_t row, bool more) {
  Vector<T> sum[R][J];
  std::int64_t b_row[J];
#pragma GCC unroll 8
  for (int j = 0; j < J; ++j) {
    b_row[j] = x.b_row[j];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r][j] = Vector<T>{};
  }
  const auto add = [&](const T* a, const T* b, const auto& get) __attribute__((always_inline)) {
    Vector<T> left[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) left[r] = get(a + r * x.a_row);
#pragma GCC unroll 8
    for (int j = 0; j < J; ++j) {
      const Vector<T> right = get(b + b_row[j]);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[r][j] = multiply_add(left[r], right, sum[r][j]);
    }
  };
  const std::int64_t rest = x.width % kLanes<T>;
  for (std::int64_t line = 0; line < x.lines; ++line) {
    const T *a = x.a + line * x.a_line, *b = x.b + line * x.b_line;
    for (std::int64_t l = 0; l < x.width - rest; l += kLanes<T>) add(a + l, b + l, [](const T* p) { return load(p); });
    if (rest != 0) add(a + x.width - rest, b + x.width - rest, [rest](const T* p) { return load_first(p, rest); });
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < J; ++j) {
      T* y = sums + (r * row + j) * kLanes<T>;
      store(more ? load(y) + sum[r][j] : sum[r][j], y);
    }
}

/// R rows of a with the rows of b from `j` on: J at a time, then fewer.
template <class T, int R, int J>
void multiply_line_columns(std::int64_t columns, std::int64_t j, LineOperands<T> x, T* sums, bool more) {
  for (; columns - j >= J; j += J, x.b_row += J) multiply_line_tile<T, R, J>(x, sums + j * kLanes<T>, columns, more);
  if constexpr (J > 1)
    if (j < columns) multiply_line_columns<T, R, J / 2>(columns, j, x, sums, more);
}

/// The rows of a, R at a time, then fewer.
template <class T, int R>
void multiply_line_rows(std::int64_t rows, std::int64_t columns, LineOperands<T> x, T* sums, bool more) {
  for (; rows >= R; rows -= R, x.a += R * x.a_row, sums += R * columns * kLanes<T>)
    multiply_line_columns<T, R, kLineColumns<R>>(columns, 0, x, sums, more);
  if constexpr (R > 1)
    if (rows > 0) multiply_line_rows<T, (R > 3 ? 3 : R - 1)>(rows, columns, x, sums, more);
}

}  // namespace

template <class T>
void multiply_contiguous(std::int64_t rows, std::int64_t columns, std::int64_t depth, const T* a, std::int64_t lda,
                         const T* b, std::int64_t ldb, T* c, std::int64_t row, std::int64_t column, bool add) {
  multiply_dot_rows<T, kDotRows<T>>(rows, columns, depth, a, lda, b, ldb, c, row, column, add);
}

template <class T>
void multiply_lines(std::int64_t rows, std::int64_t columns, const LineOperands<T>& x, T* sums, bool more) {
  multiply_line_rows<T, kVectorWidth == 64 ? 6 : kVectorWidth == 32 ? 3 : 1>(rows, columns, x, sums, more);
}

template void multiply_contiguous(std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, const float*,
                                  std::int64_t, float*, std::int64_t, std::int64_t, bool);
template void multiply_contiguous(std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t, const double*,
                                  std::int64_t, double*, std::int64_t, std::int64_t, bool);
template void multiply_lines(std::int64_t, std::int64_t, const LineOperands<float>&, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void multiply_lines(std::int64_t, std::int64_t, const LineOperands<double>&, double*, bool);
#endif

}  // namespace taper::kernels
