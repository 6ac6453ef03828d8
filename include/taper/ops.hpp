#pragma once

#include <initializer_list>
#include <span>

#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

/// The catalogue of operations. All of them record (see `autograd.hpp`) and give PyTorch's numbers.
///
/// Two-operand operations broadcast as NumPy does and promote element types as PyTorch does (int64 with float32 gives
/// float32, float32 with float64 gives float64; a plain number never raises a floating type).
/// Differs: comparisons give int64 0/1; everything is contiguous, so `expand`, `transpose`, `permute` and slices copy.
namespace taper {

// --- arithmetic: [..] op [..] -> broadcast shape --------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, Scalar b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, Scalar b);
Tensor sub(Scalar a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, Scalar b);
/// True division: int64 operands give float32.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, Scalar b);
Tensor div(Scalar a, const Tensor& b);
Tensor pow(const Tensor& base, const Tensor& exponent);
Tensor pow(const Tensor& base, Scalar exponent);
Tensor maximum(const Tensor& a, const Tensor& b);  ///< NaN wins; the gradient of equals is split in half
Tensor minimum(const Tensor& a, const Tensor& b);
/// `condition` (int64) nonzero ? a : b.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
inline Tensor operator+(Scalar a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
inline Tensor operator-(Scalar a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
inline Tensor operator*(Scalar a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
inline Tensor operator/(Scalar a, const Tensor& b) { return div(a, b); }

// --- comparisons: int64 0/1, no gradient ----------------------------------------------------------------------------

Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, Scalar b);
Tensor ne(const Tensor& a, Scalar b);
Tensor lt(const Tensor& a, Scalar b);
Tensor le(const Tensor& a, Scalar b);
Tensor gt(const Tensor& a, Scalar b);
Tensor ge(const Tensor& a, Scalar b);

inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, Scalar b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, Scalar b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, Scalar b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, Scalar b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, Scalar b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, Scalar b) { return ge(a, b); }

// --- functions of one element ---------------------------------------------------------------------------------------

Tensor neg(const Tensor& x);
inline Tensor operator-(const Tensor& x) { return neg(x); }
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
enum class Gelu { none, tanh };  ///< PyTorch's `approximate`
Tensor gelu(const Tensor& x, Gelu approximate = Gelu::none);
Tensor silu(const Tensor& x);
Tensor elu(const Tensor& x, double alpha = 1.0);
Tensor selu(const Tensor& x);
Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max);

/// Another element type; differentiable between the floating ones.
Tensor to(const Tensor& x, DType dtype);
/// A copy with memory of its own, recorded.
Tensor clone(const Tensor& x);

// --- reductions over all, one or several dimensions; `keepdim` leaves an extent of 1 --------------------------------

Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const Dims& dims, bool keepdim = false);
/// Gives exactly what average pooling over the same elements gives.
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false);
/// `correction` 1 is the unbiased estimate. An empty list of dimensions stands for all, here and below.
Tensor var(const Tensor& x);
Tensor var(const Tensor& x, const Dims& dims, bool keepdim = false, double correction = 1);
Tensor std(const Tensor& x);
Tensor std(const Tensor& x, const Dims& dims, bool keepdim = false, double correction = 1);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);
struct ValuesAndIndices {
  Tensor values, indices;
};
/// Largest (smallest) along one dimension, and where: the first of equals; the gradient goes there.
ValuesAndIndices max(const Tensor& x, std::int64_t dim, bool keepdim = false);
ValuesAndIndices min(const Tensor& x, std::int64_t dim, bool keepdim = false);
/// As max and min, but the gradient is spread evenly over equals.
Tensor amax(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim = false);
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmax(const Tensor& x);
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& x);
Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim = false);
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);
/// (sum |x|^p)^(1/p); p may be infinite.
Tensor norm(const Tensor& x, double p = 2);
Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim = false);
Tensor softmax(const Tensor& x, std::int64_t dim);
Tensor log_softmax(const Tensor& x, std::int64_t dim);

// --- products -------------------------------------------------------------------------------------------------------

/// Vectors, matrices and batches with PyTorch's rules: [.., M, K] x [.., K, N] -> [.., M, N].
Tensor matmul(const Tensor& a, const Tensor& b);
/// As `matmul(a', b')`, a' (b') being a (b) with its last two dimensions swapped where asked; nothing is copied.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b);

// --- shape ----------------------------------------------------------------------------------------------------------

/// Same data, other shape; one extent may be -1.
Tensor reshape(const Tensor& x, std::span<const std::int64_t> shape);
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> shape);
Tensor view(const Tensor& x, std::initializer_list<std::int64_t> shape);
Tensor flatten(const Tensor& x, std::int64_t start_dim = 0, std::int64_t end_dim = -1);
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, std::int64_t dim);
Tensor unsqueeze(const Tensor& x, std::int64_t dim);
/// Repeats dimensions of extent 1; -1 keeps an extent.
Tensor expand(const Tensor& x, std::span<const std::int64_t> shape);
Tensor expand(const Tensor& x, std::initializer_list<std::int64_t> shape);
Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1);
Tensor permute(const Tensor& x, std::initializer_list<std::int64_t> dims);
Tensor permute(const Tensor& x, std::span<const std::int64_t> dims);
Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length);
Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index);
/// Rows `index` (int64, one dimension) along `dim`.
Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// out[i][j].. = x with index[i][j].. in place of its coordinate along `dim`.
Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index);
Tensor cat(std::span<const Tensor> parts, std::int64_t dim = 0);
Tensor cat(std::initializer_list<Tensor> parts, std::int64_t dim = 0);
Tensor stack(std::span<const Tensor> parts, std::int64_t dim = 0);
Tensor stack(std::initializer_list<Tensor> parts, std::int64_t dim = 0);
/// Pieces of `size` along `dim`; the last may be smaller.
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t dim);
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);

enum class PadMode { zeros, reflect, replicate, circular };
/// Pads the last dimensions; `amounts` are {left, right} of the last, then of the one before, ... as in PyTorch.
/// `value` counts for mode zeros (PyTorch's "constant"); negative amounts crop, in circular before it repeats.
Tensor pad(const Tensor& x, std::span<const std::int64_t> amounts, PadMode mode = PadMode::zeros, double value = 0);
Tensor pad(const Tensor& x, std::initializer_list<std::int64_t> amounts, PadMode mode = PadMode::zeros,
           double value = 0);

}  // namespace taper

#pragma GCC visibility pop
