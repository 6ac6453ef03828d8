#pragma once

#include <cstdint>

namespace taper::kernels {

/// A batch of products C = op(A) op(B), or C += op(A) op(B) with `add`; C is [m, n], op(A) [m, k], op(B) [k, n],
/// all row-major.
///
/// `lda`, `ldb`, `ldc` are the distances between the stored rows, `stride_*` those between the matrices of the batch;
/// a stride of 0 in a or b uses the same matrix for all. A transposed operand is stored the other way round
/// (`transpose_a`: A is [k, m]) and not copied by the caller. With `packed_b` b is what `pack_right` made of it, and
/// `ldb`, `transpose_b` and `stride_b` do not count. With `any_order` sums may be other bits than those of the same b
/// stored the other way round, which is faster for some more rows than few.
struct GemmParams {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false, packed_b = false;
  bool add = false, any_order = false;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

/// Computes the products. c overlaps neither a nor b. Any size may be 0; k = 0 gives zeros, or leaves c when adding.
/// Results that are not added to c begin with `bias`, [n], one for each column, unless that is null.
template <class T>
void gemm(const GemmParams& p, const T* a, const T* b, T* c, const T* bias = nullptr);

/// Columns of the panels that packed operands consist of, on the processors with the widest vectors.
inline constexpr std::int64_t kWidestPanel = 32;

/// Room for a packed [k, n].
constexpr std::int64_t packed_size(std::int64_t k, std::int64_t n) {
  return (n + kWidestPanel - 1) / kWidestPanel * kWidestPanel * k;
}

/// packed = op(B), [k, n], for several products with `packed_b`. It serves the instruction set that made it.
template <class T>
void pack_right(std::int64_t k, std::int64_t n, const T* b, std::int64_t ldb, bool transpose_b, T* packed);

}  // namespace taper::kernels
