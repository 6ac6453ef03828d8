#pragma once

#include "kernels/gemm.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product.hpp"

/// How threads share products; for gemm.cpp alone.
namespace taper::kernels {

namespace {  // out of line, but no kernels to be chosen between

/// A part of a matrix whose blocks share packed operands: those below each other the columns of B, those beside each
/// other the rows of A.
struct SharedBlocks {
  std::int64_t matrix, i, j, rows, columns;
};

/// How threads share products: each gets as many cells of a few rows and columns, down one strip of columns after the
/// other, so that it packs few of them. Gradients of weights that have rows enough are one strip: each thread gets rows
/// side by side in memory, as optimizers share weights, and finds in its caches what it has computed.
struct Sharing {
  static constexpr std::int64_t kColumns = 16;  ///< of a cell
  static constexpr std::int64_t kEnough = 48;   ///< rows for a thread

  std::int64_t m, n, rows;    ///< of a matrix, and rows of a cell
  std::int64_t down, across;  ///< cells of a matrix
  std::int64_t width;         ///< cells of a strip but the last
  std::int64_t strips;

  TAPER_FOR_SIZE Sharing(const GemmParams& p, const Grid& grid) : m(p.m), n(p.n), across(ceil_div(n, kColumns)) {
    const bool by_rows = p.transpose_a && !p.transpose_b && m >= kEnough * max_threads();
    rows = by_rows ? 4 : std::min<std::int64_t>(m, 24);
    down = ceil_div(m, rows);
    width = by_rows ? across : ceil_div(grid.column_step, kColumns);
    strips = by_rows ? 1 : grid.column_units;
  }

  /// The rows of cells, of one strip after the other, in front of a cell: to the nearest.
  TAPER_FOR_SIZE std::int64_t rows_before(std::int64_t cell) const {
    const std::int64_t matrix = cell / (down * across), in_matrix = cell % (down * across);
    const std::int64_t strip = in_matrix / (down * width), in_strip = in_matrix % (down * width);
    const std::int64_t cells = std::min(width, across - strip * width);
    return (matrix * strips + strip) * down + (in_strip + cells / 2) / cells;
  }
  /// What lies in the same strip, or in strips beside it that are whole, of the rows of cells [first, last); moves
  /// `first` behind it.
  TAPER_FOR_SIZE SharedBlocks next(std::int64_t& first, std::int64_t last) const {
    const std::int64_t strip = first / down % strips, matrix = first / down / strips, top = first % down;
    const std::int64_t below = std::min(last - first, down - top);
    const std::int64_t beside = below == down ? std::min((last - first) / down, strips - strip) : 1;
    first += below * beside;
    const std::int64_t i = top * rows, j = strip * width * kColumns;
    return {matrix, i, j, std::min(below * rows, m - i), std::min(beside * width * kColumns, n - j)};
  }
};

}  // namespace

}  // namespace taper::kernels
