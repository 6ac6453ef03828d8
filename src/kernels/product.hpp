#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/ceil_div.hpp"
#include "kernels/copy.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/vectors.hpp"

namespace taper::kernels {

/// The largest block of a product: what one unit of work computes, and the terms it takes at a time.
inline constexpr std::int64_t kBlockRows = 96;
inline constexpr std::int64_t kBlockColumns = 128;
inline constexpr std::int64_t kBlockDepth = 256;

/// The terms that a product of float32 takes at a time: both operands' blocks fit the second-level cache.
inline constexpr std::int64_t kDeepBlock = 512;
/// The blocks beside each other that it computes from the same rows of A: their part of B fits there too.
inline constexpr std::int64_t kBlocksTogether = 4;

/// Terms that are added one after another: the rounding errors of longer float32 sums would add up to more than four
/// units in the last place. What is summed so far then counts as one term.
template <class T>
inline constexpr std::int64_t kChain = sizeof(T) == sizeof(float) ? 64 : kBlockDepth;

/// float32 sums of more terms than this are joined in double.
inline constexpr std::int64_t kLongSum = 4096;

/// Blocks are cut to a multiple of so many rows, a multiple of the tallest tiles', so that few tiles are shorter.
inline constexpr std::int64_t kRowMultiple = kVectorWidth == 32 ? 24 : 12;

/// The left operand of a block: element (i, k) is at `data[i * row + k * column]`.
template <class T>
struct Left {
  const T* data;
  std::int64_t row, column;
};

/// Columns of a panel, in which packed right operands may lie.
template <class T>
inline constexpr std::int64_t kPanel = 2 * kLanes<T>;

/// The right operand of a block: column j of row k is at `data[j / kPanel * panel + k * row + j % kPanel]`. Rows are
/// readable up to a whole number of vectors, or, of at least one vector, up to their last column alone if `exact`.
template <class T>
struct Right {
  const T* data;
  std::int64_t row;
  std::int64_t panel = kPanel<T>;
  bool exact = false;
};

/// One pair of operands: a block of depth `depth` of the product. Results that are not added to others begin with
/// `bias`, one for each column up to a whole number of vectors, or with `row_bias`, one for each row, unless both are
/// null. Sums that are added to others may begin with those if `continues`, which is faster, and as exact where they
/// are the first of a result's.
template <class T>
struct Operands {
  Left<T> a;
  Right<T> b;
  const T* bias = nullptr;
  bool continues = false;
  const T* row_bias = nullptr;
};

/// What is read after a product, and is brought near while it runs: the first `columns` elements of `rows` rows.
struct Ahead {
  const char* data = nullptr;
  std::int64_t rows = 0, row = 0, columns = 0;  ///< distance and length of the rows in bytes

  Ahead() = default;
  template <class T>
  Ahead(const T* x, std::int64_t distance, std::int64_t count, std::int64_t length)
      : data(reinterpret_cast<const char*>(x)),
        rows(count),
        row(distance * static_cast<std::int64_t>(sizeof(T))),
        columns(length * static_cast<std::int64_t>(sizeof(T))) {}
};

/// One pair of operands whose terms lie anywhere: a's element (i, k) is at `a[i * a_row + a_term[k]]`, and b's vector v
/// of row k, which holds the columns from `v * kLanes` on, at `b[b_term[k] + b_vector[v]]`. All vectors are readable.
/// `a_step` and `b_step` are the distance of each term from the one before, or 0 where that differs.
/// The first `c_count[v]` elements of the result's vector v go to `c_vector[v]` of its row. Results that are not added
/// to others begin with `bias`, one for each row, or with `column_bias`, one for each column in the order of c, unless
/// both are null. The first `repeated` elements of the last vector, all of which count, are the vector's before it too.
template <class T>
struct ListedOperands {
  const T* a;
  std::int64_t a_row;
  const std::int64_t* a_term;
  std::int64_t a_step;
  const T* b;
  const std::int64_t* b_term;
  std::int64_t b_step;
  const std::int64_t *b_vector, *c_vector;
  const int* c_count;
  const T* bias = nullptr;
  const T* column_bias = nullptr;
  int repeated = 0;
  bool continues = false;        ///< as in `Operands`
  const Ahead* ahead = nullptr;  ///< two of them, unless null
};

/// c[i, j] = sum over k of a[i, k] b[k, j], or += with `add`; c has rows of `ldc` elements.
/// Each element is summed in the order of k, whatever the size of the block.
template <class T>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Operands<T>& operands, T* c,
                    std::int64_t ldc, bool add);
template <class T>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const ListedOperands<T>& operands,
                    T* c, std::int64_t ldc, bool add);

#if defined(__AVX512F__)
/// Columns that `multiply_along` takes at a time.
template <class T>
inline constexpr std::int64_t kAlong = 4 * kLanes<T>;

/// The same for at most `kChain` terms and a multiple of `kAlong` columns, of which there may be more than a block has:
/// results are stored along their rows.
template <class T>
TAPER_FOR_SIZE void multiply_along(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                   const Operands<T>& operands, T* c, std::int64_t ldc, bool add);
#endif

/// c[i, j] = sum over k of a[i, k] b[j, k], or += with `add`, for operands whose rows run along k; nothing is packed.
/// Element (i, j) of c is at `c[i * row + j * column]`. Made for very few rows. Long float32 sums are joined in double.
template <class T>
void multiply_contiguous(std::int64_t rows, std::int64_t columns, std::int64_t depth, const T* a, std::int64_t lda,
                         const T* b, std::int64_t ldb, T* c, std::int64_t row, std::int64_t column, bool add);

/// Two operands whose terms lie in `lines` lines of `width`: a's row i is at `a + i * a_row`, b's row j at
/// `b + b_row[j]`, and the lines of a row `a_line` and `b_line` apart.
template <class T>
struct LineOperands {
  const T* a;
  std::int64_t a_row, a_line;
  const T* b;
  const std::int64_t* b_row;
  std::int64_t b_line, lines, width;
};

/// The products a_i b_j, summed to one vector each, `sums[(i * columns + j) * kLanes + ..]`, whose elements' sum is the
/// result; += with `more`. The caller keeps a vector's sum short: `kChain` vectors of terms at a time.
template <class T>
void multiply_lines(std::int64_t rows, std::int64_t columns, const LineOperands<T>& operands, T* sums, bool more);

/// Working memory of the calling thread, a few megabytes, of which what large products do not touch costs nothing. It
/// is allocated at a thread's first packed product (the program ends if there is no memory for it), kept until the
/// thread ends and holds nothing between two units of work.
template <class T>
struct Scratch {
  T* left;    ///< packed left operand
  T* right;   ///< packed right operand
  T* panels;  ///< packed right operands of a product of matrices, `kBlocksTogether` blocks of `kPanelsSize`, or blocks
              ///< of results that several threads sum
  T* result;  ///< a block of results, `kBlockRows` rows of `kBlockColumns` or as many elements in other rows
  T* part;    ///< a block of partial sums, likewise
  double* sums;  ///< a block of long sums, likewise
};
template <class T>
const Scratch<T>& scratch() noexcept;

/// Whether rows, `row` elements apart, lie whole pages apart: all share one line of each way of the first-level cache,
/// of which there are eight or more, so that many of them push each other out.
template <class T>
constexpr bool is_pages_apart(std::int64_t row) {
  return row % (kPage / static_cast<std::int64_t>(sizeof(T))) == 0;
}

/// Distance between the rows of a packed block: whole cache lines, an odd number of them, so that
/// the rows spread over all sets of the cache.
template <class T>
constexpr std::int64_t packed_row(std::int64_t columns) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  return (((columns + line - 1) / line) | 1) * line;
}

/// Elements that `Scratch::left`, `Scratch::right` and a block of `Scratch::panels` have room for.
template <class T>
inline constexpr std::int64_t kLeftSize = std::max(kBlockRows* packed_row<T>(kDeepBlock),
                                                   kBlockDepth* packed_row<T>(kBlockRows));
template <class T>
inline constexpr std::int64_t kRightSize = kBlockDepth* packed_row<T>(kBlockColumns);

inline constexpr std::int64_t kPanelsSize = kDeepBlock * kBlockColumns;

/// Elements that the blocks of results have room for.
inline constexpr std::int64_t kResultSize = kBlockRows * kBlockColumns;

/// Calls `part(i, bytes)` for parts of 16 bytes up to a vector that cover n elements, `one(i)` for each of fewer; the
/// last part of a size may overlap the one before. `bytes` is a constant.
template <class T, int Bytes, class Part, class One>
inline void for_parts(std::int64_t n, const Part& part, const One& one) {
  constexpr std::int64_t step = Bytes / static_cast<std::int64_t>(sizeof(T));
  if (n >= step) {
    for (std::int64_t i = 0; i < n - step; i += step) part(i, std::integral_constant<std::size_t, Bytes>());
    part(n - step, std::integral_constant<std::size_t, Bytes>());
  } else if constexpr (Bytes > 16) {
    for_parts<T, Bytes / 2>(n, part, one);
  } else {
    if (n > 0) one(0);
    if (n > 1) one(1);
    if (n > 2) one(2);
  }
}

/// y[i] = x[i] for i < n; made for short runs.
template <class T>
inline void copy_run(const T* x, std::int64_t n, T* y) {
  if (n > 1024)
    copy_elements(x, n, y);
  else
    for_parts<T, kVectorWidth>(
        n, [&](std::int64_t i, auto bytes) { std::memcpy(y + i, x + i, bytes); }, [&](std::int64_t i) { y[i] = x[i]; });
}

/// y[i] = 0 for i < n; made for short runs.
template <class T>
inline void zero_run(std::int64_t n, T* y) {
  if (n > 256)
    std::memset(y, 0, static_cast<std::size_t>(n) * sizeof(T));
  else
    for_parts<T, kVectorWidth>(
        n, [&](std::int64_t i, auto bytes) { std::memset(y + i, 0, bytes); }, [&](std::int64_t i) { y[i] = 0; });
}

/// packed[k, j] = x[j, k] for j < columns, k < depth; x has rows of `ldx`, packed rows of `row` elements. What fills up
/// the last vector of a row is 0 if there is room for it, or is not touched without `fill`.
template <class T>
void pack_transposed(const T* x, std::int64_t ldx, std::int64_t columns, std::int64_t depth, T* packed,
                     std::int64_t row, bool fill = true);

/// Packs a right operand of `columns` columns, x with rows of `ldx`, into panels one after the other, each of `depth`
/// rows. Whole vectors are written: what fills up the last one of a row is 0.
template <class T>
void pack_rows(const T* x, std::int64_t ldx, std::int64_t columns, std::int64_t depth, T* packed);

/// packed[k, j] = 0 for the columns that fill up the last vector of each row.
template <class T>
[[gnu::noinline]] void fill_last_vector(std::int64_t columns, std::int64_t depth, T* packed, std::int64_t row) {
  const std::int64_t rest = (kLanes<T> - columns % kLanes<T>) % kLanes<T>;
  if (rest == 0) return;
  for (std::int64_t k = 0; k < depth; ++k) zero_run(rest, packed + k * row + columns);
}

/// The work of `elements` sums of `depth` products in the units of `parallel_for`, which are worth about four products.
inline std::int64_t parallel_work(std::int64_t elements, std::int64_t depth) {
  return std::max<std::int64_t>(1,
                                std::min<std::int64_t>(elements, 1 << 24) * std::min<std::int64_t>(depth, 1 << 24) / 4);
}

/// Whether a product is one block, too small to be shared by threads.
inline bool is_one_unit(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t kMost = std::int64_t{1} << 19;
  return rows <= kBlockRows && columns <= kBlockColumns && rows * columns * std::min(depth, kMost) <= kMost;
}

/// How a product is cut into units of work: a grid of blocks that depends on the size of the problem only. The columns
/// of a block but the last are a multiple of `column_multiple`.
struct Grid {
  std::int64_t row_step, column_step;  ///< extents of one block
  std::int64_t row_units, column_units;
  std::int64_t work;  ///< of one block, in the units of `parallel_for`

  std::int64_t units() const { return row_units * column_units; }
};
Grid cut(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t batch,
         std::int64_t column_multiple = 16);

/// A function that sums the terms [first, first + n) to y, or adds them with `more`, and what it is called with.
template <class T>
struct SumTerms {
  void (*sum)(const void* body, std::int64_t first, std::int64_t n, T* y, std::int64_t row, bool more);
  const void* body;
};

/// The terms to take at a time out of so many: steps of about equal length, none longer than `most`.
inline std::int64_t step_of(std::int64_t depth, std::int64_t most = kDeepBlock) {
  constexpr std::int64_t chain = kChain<float>;
  if (depth <= chain || depth > kLongSum) return most;
  return equal_step(depth, most, chain);
}

/// c = a block's sum over `depth` terms, or c += with `add`: takes them in steps of at most `step`, which divides
/// `kLongSum` where there are more terms than that, and joins long float32 sums in double. `row` is the distance of the
/// rows of a block in the working memory; rows * row elements fit it.
template <class T>
void sum_in_steps(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t step,
                  const SumTerms<T>& terms, T* c, std::int64_t ldc, bool add, std::int64_t row);

/// The same for a lambda. Its type is known to nothing else, so that the steps are compiled once.
template <class T, class Multiply>
void sum_in_steps(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Multiply& multiply, T* c,
                  std::int64_t ldc, bool add, std::int64_t row = kBlockColumns, std::int64_t step = kBlockDepth) {
  const auto sum = [](const void* body, std::int64_t k, std::int64_t n, T* y, std::int64_t ldy, bool more) {
    (*static_cast<const Multiply*>(body))(k, n, y, ldy, more);
  };
  sum_in_steps<T>(rows, columns, depth, step, SumTerms<T>{sum, &multiply}, c, ldc, add, row);
}

/// The same for operands: `operands(first, n)` gives those of the terms [first, first + n).
template <class T, class MakeOperands>
void sum_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const MakeOperands& operands, T* c,
               std::int64_t ldc, bool add, std::int64_t row = kBlockColumns, std::int64_t step = kBlockDepth) {
  const auto multiply = [&](std::int64_t k, std::int64_t n, T* y, std::int64_t ldy, bool more) {
    multiply_block<T>(rows, columns, n, operands(k, n), y, ldy, more);
  };
  sum_in_steps(rows, columns, depth, multiply, c, ldc, add, row, step);
}

}  // namespace taper::kernels
