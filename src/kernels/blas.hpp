#pragma once

#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/gemm.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product.hpp"

/// Products by the BLAS that the library is built with (`TAPER_BLAS`), in the place of Taper's own; for gemm.cpp alone.
/// It is called by each of Taper's threads for blocks that depend on the sizes alone, so it should be a sequential one,
/// or be told to take one thread. It sums `kChain` terms at a time, which are added up here, so that sums are as exact
/// as Taper's own; their bits are up to it.
namespace taper::kernels::blas {

/// Extents of a block, and the products from which on a call is worth its cost.
inline constexpr std::int64_t kBlock = 512;
inline constexpr std::int64_t kLeastProducts = 48 * 48 * 48;
static_assert(kBlock * kBlock <= kBlocksTogether * kPanelsSize);

/// Whether the BLAS takes a product: a large one whose sizes its integers hold, and whose rows do not overlap.
inline bool takes(const GemmParams& p) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (p.packed_b || p.m < 4 || p.n < 4 || p.k < 4) return false;
  if (double(p.m) * double(p.n) * double(p.k) < kLeastProducts) return false;
  return p.lda >= (p.transpose_a ? p.m : p.k) && p.ldb >= (p.transpose_b ? p.k : p.n) && p.ldc >= p.n &&
         std::max({p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) <= most;
}

/// c = op(A) op(B), of the sizes in `p`.
template <class T>
void call(const GemmParams& p, const T* a, const T* b, T* c) {
  const auto product = [&](auto* gemm) {
    gemm(CblasRowMajor, p.transpose_a ? CblasTrans : CblasNoTrans, p.transpose_b ? CblasTrans : CblasNoTrans,
         static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), 1, a, static_cast<int>(p.lda), b,
         static_cast<int>(p.ldb), 0, c, static_cast<int>(p.ldc));
  };
  if constexpr (sizeof(T) == sizeof(float))
    product(cblas_sgemm);
  else
    product(cblas_dgemm);
}

/// As `gemm`, for products that `takes` allows. Long float32 sums are joined in double, in blocks that the working
/// memory has room for.
template <class T>
void multiply(const GemmParams& p, const T* a, const T* b, T* c) {
  const bool is_long = sizeof(T) == sizeof(float) && p.k > kLongSum;
  const std::int64_t row_step = is_long ? kBlockRows : kBlock, column_step = is_long ? kBlockColumns : kBlock;
  const std::int64_t row_units = ceil_div(p.m, row_step), units = row_units * ceil_div(p.n, column_step);
  const std::int64_t work = parallel_work(std::min(p.m, row_step) * std::min(p.n, column_step), p.k);
  parallel_for(p.batch * units, work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t matrix = unit / units, i = unit % units % row_units * row_step,
                         j = unit % units / row_units * column_step;
      GemmParams block = p;
      block.m = std::min(row_step, p.m - i);
      block.n = std::min(column_step, p.n - j);
      const T* const block_a = a + matrix * p.stride_a + i * (p.transpose_a ? 1 : p.lda);
      const T* const block_b = b + matrix * p.stride_b + j * (p.transpose_b ? p.ldb : 1);
      const auto terms = [&](std::int64_t k, std::int64_t depth, T* y, std::int64_t ldy, bool more) {
        GemmParams part = block;
        part.k = depth;
        const T* const first_a = block_a + k * (p.transpose_a ? p.lda : 1);
        const T* const first_b = block_b + k * (p.transpose_b ? 1 : p.ldb);
        T* const sums = more ? scratch<T>().panels : y;
        part.ldc = more ? block.n : ldy;
        call(part, first_a, first_b, sums);
        // y_ij += sum over these terms of a_ik b_kj
        if (more)
          for (std::int64_t row = 0; row < block.m; ++row)
            for (std::int64_t column = 0; column < block.n; ++column)
              y[row * ldy + column] += sums[row * block.n + column];
      };
      sum_in_steps<T>(block.m, block.n, p.k, terms, c + matrix * p.stride_c + i * p.ldc + j, p.ldc, p.add,
                      kBlockColumns, kChain<T>);
    }
  });
}

}  // namespace taper::kernels::blas
