#include "kernels/gemm.hpp"

#include "kernels/gemm_sharing.hpp"
#include "kernels/product_vector.hpp"
#ifdef TAPER_BLAS
#include "kernels/blas.hpp"
#endif

namespace taper::kernels {

namespace {

/// Whether `n` rows, `row` elements apart, lie so near each other that nothing is gained by bringing them together. The
/// wider the vectors, the longer a tile computes with what it loads, and may wait for the second-level cache.
template <class T>
bool is_near(std::int64_t row, std::int64_t n) {
  constexpr std::int64_t bytes = kVectorWidth == 64 ? 1 << 18 : 3 << 13;
  return row * n <= bytes / static_cast<std::int64_t>(sizeof(T));  // they are in memory: no overflow
}

/// Whether a product of few terms has so many results that storing them takes longest: it does so along their rows.
template <class T>
bool stores_along(const GemmParams& p) {
  constexpr std::int64_t many = (1 << 19) / static_cast<std::int64_t>(sizeof(T));
  return kVectorWidth == 64 && p.k <= kChain<T> && !p.packed_b && p.m * p.n >= many;
}

/// Whether the rows that it reads, `row` elements apart, push each other out of the nearest cache.
template <class T>
bool pushes_out(const GemmParams& p, std::int64_t row) {
  constexpr std::int64_t some = 8;  // as many as one set of the cache holds, at least
  return stores_along<T>(p) && is_pages_apart<T>(row) && p.k > some;
}

/// Whether a block of `rows` rows of op(A) is multiplied where it lies.
template <class T>
bool is_left_near(const GemmParams& p, std::int64_t rows, std::int64_t depth) {
  // The tiles walk down the columns of A: far rows are brought together unless the block is read only once, and with
  // narrower vectors all that are read often enough for terms next to each other to save more.
  if (p.transpose_a)
    return p.n <= kPanel<T> || (!pushes_out<T>(p, p.lda) && is_near<T>(p.lda, depth) &&
                                (kVectorWidth == 64 || p.n <= 2 * kPanel<T> || depth <= kChain<T>));
  // Wide vectors have time to wait for the second-level cache.
  return kVectorWidth == 64 || !is_pages_apart<T>(p.lda) || rows <= 4 || p.n <= 32;
}
template <class T>
Left<T> near_left(const GemmParams& p, const T* a, std::int64_t i, std::int64_t k) {
  return p.transpose_a ? Left<T>{a + k * p.lda + i, 1, p.lda} : Left<T>{a + i * p.lda + k, p.lda, 1};
}

/// The rows [i, i + rows) of op(A) for the terms [k, k + depth).
template <class T>
Left<T> left_operand(const GemmParams& p, const T* a, std::int64_t i, std::int64_t rows, std::int64_t k,
                     std::int64_t depth) {
  const Left<T> near = near_left(p, a, i, k);
  if (is_left_near<T>(p, rows, depth)) return near;
  T* packed = scratch<T>().left;
  const std::int64_t row = packed_row<T>(depth);
  if (p.transpose_a)
    pack_transposed(near.data, p.lda, depth, rows, packed, row);
  else
    for (std::int64_t r = 0; r < rows; ++r) copy_run(near.data + r * p.lda, depth, packed + r * row);
  return {packed, row, 1};
}

/// Whether a block of `columns` columns of B is multiplied where it lies.
template <class T>
bool is_right_near(const GemmParams& p, std::int64_t columns, std::int64_t depth) {
  if (p.transpose_b || pushes_out<T>(p, p.ldb) || (columns % kLanes<T> != 0 && columns <= kLanes<T>)) return false;
  // What one block of rows reads need not be brought together if the second-level cache holds all of it.
  if (kVectorWidth == 64 && p.m <= kBlockRows && is_near<T>(p.ldb / 8, p.k)) return true;
  return p.m <= 24 || is_near<T>(p.ldb, depth);
}
template <class T>
Right<T> near_right(const GemmParams& p, const T* b, std::int64_t j, std::int64_t columns, std::int64_t k) {
  return {b + k * p.ldb + j, p.ldb, kPanel<T>, columns % kLanes<T> != 0};
}

/// The columns [j, j + columns) of op(B) for the terms [k, k + depth), brought together in `packed` where that pays.
template <class T>
Right<T> right_operand(const GemmParams& p, const T* b, std::int64_t j, std::int64_t columns, std::int64_t k,
                       std::int64_t depth, T* packed) {
  if (p.packed_b) return {b + j * p.k + k * kPanel<T>, kPanel<T>, p.k * kPanel<T>};
  if (is_right_near<T>(p, columns, depth)) return near_right(p, b, j, columns, k);
  pack_right(depth, columns, p.transpose_b ? b + j * p.ldb + k : b + k * p.ldb + j, p.ldb, p.transpose_b, packed);
  return {packed, kPanel<T>, depth * kPanel<T>};
}

/// Whether a product is one block of one chain, whose operands are multiplied where they lie.
template <class T>
bool is_one_block(const GemmParams& p) {
  return p.batch == 1 && p.k <= kChain<T> && is_one_unit(p.m, p.n, p.k) && !p.packed_b &&
         is_left_near<T>(p, p.m, p.k) && is_right_near<T>(p, p.n, p.k);
}

/// c = bias, or 0 if that is null.
template <class T>
void begin(const GemmParams& p, const T* bias, T* c) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    for (std::int64_t row = 0; row < p.m; ++row) {
      T* y = c + i * p.stride_c + row * p.ldc;
      if (bias != nullptr)
        copy_run(bias, p.n, y);
      else
        zero_run(p.n, y);
    }
}

/// The terms that fill as many bytes as `kDeepBlock` of float32.
template <class T>
constexpr std::int64_t kDeepest = kDeepBlock* std::int64_t{sizeof(float)} / std::int64_t{sizeof(T)};

/// Products of at most this many terms are done sooner than it takes to choose a way to do them.
constexpr std::int64_t kTiny = 1024;

template <class T>
bool is_tiny(const GemmParams& p) {
  return p.k <= kChain<T> && !p.transpose_b && !p.packed_b && p.batch == 1 && p.m <= kTiny && p.n <= kTiny &&
         p.m * p.n * p.k <= kTiny;
}

template <class T>
void multiply_tiny(const GemmParams& p, const T* a, const T* b, T* c, const T* bias) {
  const std::int64_t row = p.transpose_a ? 1 : p.lda, term = p.transpose_a ? p.lda : 1;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; j += kLanes<T>) {
      const int width = static_cast<int>(std::min<std::int64_t>(kLanes<T>, p.n - j));
      // c_ij = sum over k of a_ik b_kj
      Vector<T> sum{};
      for (std::int64_t k = 0; k < p.k; ++k)
        sum = multiply_add(a[i * row + k * term] - Vector<T>{}, load_first(b + k * p.ldb + j, width), sum);
      if (bias != nullptr) sum += load_first(bias + j, width);
      store_part(sum, width, c + i * p.ldc + j, p.add);
    }
}

/// Whether products of a column or a row and a row or a matrix have loops of their own.
template <class T>
constexpr bool kByRows = kVectorWidth > 16 && sizeof(T) == sizeof(float);

/// Columns of a row of products that a thread takes at least.
constexpr std::int64_t kRowUnit = 64;

/// Whether a product is of a column and a long row without gaps, not added to anything.
[[maybe_unused]] bool is_outer(const GemmParams& p) {
  return p.k == 1 && p.n >= 64 && p.batch == 1 && !p.add && !p.packed_b && (!p.transpose_b || p.ldb == 1);
}

/// Row by row, as the results lie in memory: tiles, of which each reaches into some rows, take three times as long.
template <class T>
void multiply_outer(const GemmParams& p, const T* a, const T* b, T* c) {
  parallel_for(p.m, p.n, [=, &p](std::int64_t i, std::int64_t last) {
    for (; i < last; ++i) {
      // c_ij = a_i b_j; the last vector may overlap the one before.
      const Vector<T> left = a[i * (p.transpose_a ? 1 : p.lda)] - Vector<T>{};
      T* const row = c + i * p.ldc;
      for (std::int64_t j = 0, n = p.n; j < n; j += kLanes<T>) {
        const std::int64_t at = std::min(j, n - kLanes<T>);
        store<T>(multiply_add(left, load(b + at), Vector<T>{}), row + at);
      }
    }
  });
}

/// Whether a product is of a row and a matrix of long rows, not added to anything.
[[maybe_unused]] bool is_row(const GemmParams& p) {
  return p.m == 1 && p.n >= kRowUnit && p.k <= kLongSum && p.batch == 1 && !p.add && !p.packed_b && !p.transpose_b;
}

/// y = (y, if `more`) + the sum over R terms k of a_k b_k, for columns that are whole vectors.
template <int R, class T>
void sum_rows(const T* a, std::int64_t a_term, const T* b, std::int64_t ldb, std::int64_t columns, bool more, T* y) {
  Vector<T> left[R];
#pragma GCC unroll 8
  for (int k = 0; k < R; ++k) left[k] = a[k * a_term] - Vector<T>{};
  for (std::int64_t j = 0; j < columns; j += kLanes<T>) {
    Vector<T> sum = more ? load(y + j) : Vector<T>{};
#pragma GCC unroll 8
    for (int k = 0; k < R; ++k) sum = multiply_add(left[k], load(b + k * ldb + j), sum);
    store<T>(sum, y + j);
  }
}

/// Row by row, as the matrix lies in memory: tiles, which go down a few columns, take up to twice as long.
template <class T>
void multiply_row(const GemmParams& p, const T* a, const T* b, T* c) {
  const std::int64_t term = p.transpose_a ? p.lda : 1, units = p.n / kRowUnit, whole = p.n / kLanes<T> * kLanes<T>;
  parallel_for(units, parallel_work(kRowUnit, p.k), [=, &p](std::int64_t first, std::int64_t last) {
    constexpr std::int64_t most = 16 * kRowUnit, together = 8;
    T sums[most];
    const std::int64_t end = last == units ? whole : last * kRowUnit;
    for (std::int64_t at = first * kRowUnit, columns; at < end; at += columns) {
      columns = std::min(end - at, most);
      for (std::int64_t k = 0; k < p.k;) {
        const std::int64_t chain = k, chain_end = std::min(k + kChain<T>, p.k);
        T* const y = chain == 0 ? c + at : sums;
        for (; k + together <= chain_end; k += together)
          sum_rows<together>(a + k * term, term, b + k * p.ldb + at, p.ldb, columns, k > chain, y);
        for (; k < chain_end; ++k) sum_rows<1>(a + k * term, term, b + k * p.ldb + at, p.ldb, columns, k > chain, y);
        for (std::int64_t j = 0; chain > 0 && j < columns; j += kLanes<T>)
          store<T>(load(c + at + j) + load(sums + j), c + at + j);
      }
    }
  });
  // The last columns as a vector that begins among those before; four sums, so that no term waits for the one before.
  if (whole == p.n) return;
  const auto added = [&](std::int64_t k, const Vector<T>& sum) __attribute__((always_inline)) {
    return multiply_add(a[k * term] - Vector<T>{}, load(b + k * p.ldb + p.n - kLanes<T>), sum);
  };
  Vector<T> all{};
  for (std::int64_t k = 0; k < p.k;) {
    Vector<T> sum[4] = {};
    const std::int64_t end = std::min(k + kChain<T>, p.k);
    for (; k + 4 <= end; k += 4)
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) sum[r] = added(k + r, sum[r]);
    for (; k < end; ++k) sum[0] = added(k, sum[0]);
    all += (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
  T columns[kLanes<T>];
  store<T>(all, columns);
  std::copy_n(columns + kLanes<T> - (p.n - whole), p.n - whole, c + whole);
}

/// Whether a BLAS takes the product.
bool is_for_blas([[maybe_unused]] const GemmParams& p) {
#ifdef TAPER_BLAS
  return blas::takes(p);
#else
  return false;
#endif
}

/// Whether the rows of both operands run along k and packing the larger one costs more than it saves: one has few rows,
/// or, in any order, some more of long sums, whose lanes are folded once.
template <class T>
bool is_few(const GemmParams& p) {
  if (p.transpose_a || !p.transpose_b || p.packed_b) return false;
  constexpr std::int64_t few = 4, most = kVectorWidth == 16 ? few : kVectorWidth == 64 && sizeof(T) == 4 ? 24 : 6;
  const std::int64_t rows = std::min(p.m, p.n);
  return rows <= few || (p.any_order && rows <= std::min(p.n < p.m ? most / 2 : most, p.k / 20));
}

/// A product of few rows or few columns whose operands both run along k: dot products.
template <class T>
void multiply_few(const GemmParams& p, const T* a, const T* b, T* c) {
  const bool few_columns = p.n < p.m;
  const T* few = few_columns ? b : a;
  const T* many = few_columns ? a : b;
  const std::int64_t few_rows = few_columns ? p.n : p.m, many_rows = few_columns ? p.m : p.n;
  const std::int64_t ld_few = few_columns ? p.ldb : p.lda, ld_many = few_columns ? p.lda : p.ldb;
  const std::int64_t row = few_columns ? 1 : p.ldc, column = few_columns ? p.ldc : 1;
  const std::int64_t stride_few = few_columns ? p.stride_b : p.stride_a;
  const std::int64_t stride_many = few_columns ? p.stride_a : p.stride_b;
  constexpr std::int64_t step = 16;
  const std::int64_t blocks = ceil_div(many_rows, step);
  parallel_for(p.batch * blocks, parallel_work(few_rows * step, p.k), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t matrix = unit / blocks, j = unit % blocks * step;
      multiply_contiguous(few_rows, std::min(step, many_rows - j), p.k, few + matrix * stride_few, ld_few,
                          many + matrix * stride_many + j * ld_many, ld_many, c + matrix * p.stride_c + j * column, row,
                          column, p.add);
    }
  });
}

#if defined(__AVX512F__)

/// A region of a product that stores its results along their rows; `bias` is the region's, or null.
template <class T>
TAPER_FOR_SIZE void multiply_shallow(const GemmParams& p, std::int64_t row_step, const SharedBlocks& region, const T* a,
                                     const T* b, T* c, const T* bias) {
  const std::int64_t columns = region.columns;
  const Right<T> right = right_operand(p, b, region.j, columns, 0, p.k, scratch<T>().panels);
  // What is left behind them has as many columns as a vector, at least.
  const std::int64_t part = columns % kAlong<T>, fewest = part > 0 && part < kLanes<T> ? part + kAlong<T> : part;
  const std::int64_t along = std::max<std::int64_t>(columns - fewest, 0);
  for (std::int64_t r = 0, rows; r < region.rows; r += rows) {
    rows = std::min(row_step, region.rows - r);
    Operands<T> x{left_operand(p, a, region.i + r, rows, 0, p.k), right, bias};
    T* const y = c + r * p.ldc;
    if (along > 0) multiply_along<T>(rows, along, p.k, x, y, p.ldc, p.add);
    if (along == columns) continue;
    x.b.data += along / kPanel<T> * right.panel;
    if (bias != nullptr) x.bias += along;
    multiply_block<T>(rows, columns - along, p.k, x, y + along, p.ldc, p.add);
  }
}

#endif

template <class T>
[[gnu::noinline]] void multiply_shared(const GemmParams& p, const Grid& grid, const SharedBlocks& region, const T* a,
                                       const T* b, T* c, const T* bias) {
  const std::int64_t i = region.i, j = region.j, rows = region.rows, columns = region.columns;
  const std::int64_t row_step = equal_step(rows, grid.row_step, kRowMultiple);
  const std::int64_t column_step = equal_step(columns, kBlockColumns, kPanel<T>);
  a += region.matrix * p.stride_a;
  b += region.matrix * p.stride_b;
  T start[kBlocksTogether * kBlockColumns];
  if (bias != nullptr) {
    copy_run(bias + j, columns, start);
    fill_last_vector<T>(columns, 1, start, columns);
  }
  c += region.matrix * p.stride_c + i * p.ldc + j;
#if defined(__AVX512F__)
  if (stores_along<T>(p)) return multiply_shallow<T>(p, row_step, region, a, b, c, bias != nullptr ? start : nullptr);
#endif
  // Sums begin with what they are added to where all columns do: tiles with a part of a vector cannot, and which
  // columns are in one depends on how threads share them.
  const bool may_continue = p.n % kLanes<T> == 0;
  const auto multiply = [&](std::int64_t k, std::int64_t depth, T* y, std::int64_t ldy, bool more) {
    Right<T> right[kBlocksTogether];
    const auto width = [&](std::int64_t at) { return std::min(column_step, columns - at); };
    T* packed = scratch<T>().panels;
    for (std::int64_t at = 0, block = 0; at < columns; at += column_step, ++block, packed += kPanelsSize)
      right[block] = right_operand(p, b, j + at, width(at), k, depth, packed);
    for (std::int64_t r = 0; r < rows; r += row_step) {
      const std::int64_t n = std::min(row_step, rows - r);
      const Left<T> left = left_operand(p, a, i + r, n, k, depth);
      for (std::int64_t at = 0, block = 0; at < columns; at += column_step, ++block)
        multiply_block<T>(
            n, width(at), depth,
            Operands<T>{left, right[block], bias != nullptr && !more ? start + at : nullptr, may_continue && k == 0},
            y + r * ldy + at, ldy, more);
    }
  };
  sum_in_steps<T>(rows, columns, p.k, multiply, c, p.ldc, p.add, kBlockColumns, step_of(p.k, kDeepest<T>));
}

/// The same for a region of any size, in parts that there is room for.
template <class T>
void multiply_region(const GemmParams& p, const Grid& grid, const SharedBlocks& region, const T* a, const T* b, T* c,
                     const T* bias) {
  const bool joins_sums = sizeof(T) == sizeof(float) && p.k > kLongSum;  // in a block of their own
  const std::int64_t below = joins_sums ? grid.row_step : region.rows;
  const std::int64_t beside = joins_sums ? grid.column_step : kBlocksTogether * grid.column_step;
  for (std::int64_t j = 0; j < region.columns; j += beside)
    for (std::int64_t i = 0; i < region.rows; i += below)
      multiply_shared(p, grid,
                      SharedBlocks{region.matrix, region.i + i, region.j + j, std::min(below, region.rows - i),
                                   std::min(beside, region.columns - j)},
                      a, b, c, bias);
}

/// Whether the transposed product is faster: it brings A's rows together instead of the more that B has, and turns the
/// results. Each vector of results reads the rows of B again.
template <class T>
bool is_turned(const GemmParams& p) {
  if (p.transpose_a || !p.transpose_b || p.packed_b || p.add) return false;
  if (p.m > (is_pages_apart<T>(p.ldb) ? 64 : kBlockColumns)) return false;
  if (ceil_div(p.m, kPanel<T>) * kPanel<T> * p.k > kBlocksTogether * kPanelsSize) return false;
  // Times in multiplications: an element that is brought there takes so many, and a result that is turned. A single
  // vector keeps the processor waiting for its operands.
  constexpr double pack = 6, turn = 16, single = 0.6;
  const auto columns = [](std::int64_t n) {
    const std::int64_t vectors = ceil_div(n, kLanes<T>);
    return double(kLanes<T>) * (double(vectors) + single * double(vectors % 2));
  };
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  return n * columns(p.m) * k + m * (pack * k + turn * n) < (m + pack) * columns(p.n) * k;
}

/// C^T = B A^T, block by block: B is read where it lies.
template <class T>
void multiply_turned(const GemmParams& p, const T* a, const T* b, T* c, const T* bias) {
  // An even number of blocks, so that two threads have equal parts, in whole vectors of C.
  const std::int64_t row = packed_row<T>(p.m), most = kResultSize / row / kLanes<T> * kLanes<T>;
  const std::int64_t wanted = ceil_div(p.n, std::min(cut(p.n, p.m, p.k, p.batch).row_step, most));
  const std::int64_t step = ceil_div(ceil_div(p.n, wanted > 1 ? wanted + wanted % 2 : 1), kLanes<T>) * kLanes<T>;
  const std::int64_t blocks = ceil_div(p.n, step);
  parallel_for(p.batch * blocks, parallel_work(step * p.m, p.k), [&](std::int64_t first, std::int64_t last) {
    const Scratch<T>& own = scratch<T>();
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t matrix = unit / blocks, i = unit % blocks * step, rows = std::min(step, p.n - i);
      if (unit == first || i == 0) pack_right(p.k, p.m, a + matrix * p.stride_a, p.lda, true, own.panels);
      const auto operands = [&](std::int64_t k, std::int64_t) {
        return Operands<T>{{b + matrix * p.stride_b + i * p.ldb + k, p.ldb, 1},
                           {own.panels + k * kPanel<T>, kPanel<T>, p.k * kPanel<T>},
                           nullptr,
                           k == 0,
                           bias != nullptr && k == 0 ? bias + i : nullptr};
      };
      sum_block<T>(rows, p.m, p.k, operands, own.result, row, false, row, step_of(p.k, kDeepest<T>));
      pack_transposed(own.result, row, rows, p.m, c + matrix * p.stride_c + i, p.ldc, false);
    }
  });
}

}  // namespace

template <class T>
void gemm(const GemmParams& p, const T* a, const T* b, T* c, const T* bias) {
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  if (p.add) bias = nullptr;
  if (p.k <= 0) {
    if (!p.add) begin(p, bias, c);
    return;
  }
  if (is_tiny<T>(p)) return multiply_tiny(p, a, b, c, bias);
  if (p.n == 1 && !p.transpose_b && p.ldb == 1 && !p.packed_b) {
    // A column vector without gaps is also a row vector.
    GemmParams q = p;
    q.transpose_b = true;
    q.ldb = p.k;
    return gemm(q, a, b, c, bias);
  }
  if (p.n == 1 && p.transpose_a && p.transpose_b && !p.packed_b && p.ldc == 1 && bias == nullptr) {
    // (A^T b)^T = b^T A, whose vectors lie along A's rows.
    GemmParams q = p;
    q.m = 1, q.n = p.m, q.ldc = p.m;
    q.lda = p.k, q.ldb = p.lda;
    q.transpose_a = q.transpose_b = false;
    std::swap(q.stride_a, q.stride_b);
    return gemm(q, b, a, c, bias);
  }
  const bool few = is_few<T>(p);
  if (bias != nullptr && (few || p.k > kLongSum || is_for_blas(p))) {
    begin(p, bias, c);
    GemmParams q = p;
    q.add = true;
    return gemm<T>(q, a, b, c, nullptr);
  }
  if (few) return multiply_few(p, a, b, c);
  if constexpr (kByRows<T>) {
    if (bias == nullptr && is_outer(p)) return multiply_outer(p, a, b, c);
    if (bias == nullptr && is_row(p)) return multiply_row(p, a, b, c);
  }
#ifdef TAPER_BLAS
  if (is_for_blas(p)) return blas::multiply(p, a, b, c);
#endif
  if (is_one_block<T>(p) && (bias == nullptr || p.n % kLanes<T> == 0))
    return multiply_block<T>(p.m, p.n, p.k, Operands<T>{near_left(p, a, 0, 0), near_right(p, b, 0, p.n, 0), bias, true},
                             c, p.ldc, p.add);
  if (is_turned<T>(p)) return multiply_turned(p, a, b, c, bias);
  const Grid grid = cut(p.m, p.n, p.k, p.batch, p.packed_b ? kWidestPanel : kWidestPanel / 2);
  if (grid.units() == 1) {
    parallel_for(p.batch, grid.work, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        multiply_shared(p, grid, SharedBlocks{i, 0, 0, p.m, p.n}, a, b, c, bias);
    });
    return;
  }
  const Sharing sharing(p, grid);
  parallel_for(p.batch * sharing.down * sharing.across, parallel_work(sharing.rows * Sharing::kColumns, p.k),
               [&](std::int64_t first, std::int64_t last) {
                 const std::int64_t end = sharing.rows_before(last);
                 for (std::int64_t at = sharing.rows_before(first); at < end;)
                   multiply_region(p, grid, sharing.next(at, end), a, b, c, bias);
               });
}

template <class T>
[[gnu::noinline]] void pack_right(std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, bool transpose_b,
                                  T* packed) {
  // Several panels of a row at a time, as its elements lie one after the other in memory.
  const std::int64_t step = transpose_b ? kPanel<T> : 8 * kPanel<T>;
  for (std::int64_t j = 0; j < n; j += step, packed += step * k) {
    const std::int64_t columns = std::min(step, n - j);
    if (transpose_b)
      pack_transposed(b + j * ldb, ldb, columns, k, packed, kPanel<T>);
    else
      pack_rows(b + j, ldb, columns, k, packed);
  }
}

template void pack_right(std::int64_t, std::int64_t, const float*, std::int64_t, bool, float*);
template void pack_right(std::int64_t, std::int64_t, const double*, std::int64_t, bool, double*);
template void gemm(const GemmParams&, const float*, const float*, float*, const float*);
template void gemm(const GemmParams&, const double*, const double*, double*, const double*);

}  // namespace taper::kernels
