#pragma once

#include <cstdint>
#include <span>

namespace taper::kernels {

// Reading by index along one dimension of x, for float, double and int64, and the sums of gradients
// that belong to it, for float and double, in the order of the indices. Indices lie in [0, n): see `find_bad_index`.

/// The first of `count` indices outside [0, n); -1 if there is none.
std::int64_t find_bad_index(const std::int64_t* index, std::int64_t count, std::int64_t n);

/// x [outer, n, inner], y [outer, count, inner]: y[o, j, i] = x[o, index[j], i].
template <class T>
void index_select(const T* x, const std::int64_t* index, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner,
                  std::int64_t count);
template <class T>
void index_select_grad(const T* dy, const std::int64_t* index, T* dx, std::int64_t outer, std::int64_t n,
                       std::int64_t inner, std::int64_t count, bool add);

/// y and index have the shape `index_shape`: y[i] = x[i with index[i] in place of its coordinate along `dim`]. The
/// shapes have the same rank, and index_shape may be smaller than x_shape along the other dimensions.
struct GatherShape {
  std::span<const std::int64_t> x_shape, index_shape;
  int dim;
};
template <class T>
void gather(const GatherShape& s, const T* x, const std::int64_t* index, T* y);
template <class T>
void gather_grad(const GatherShape& s, const T* dy, const std::int64_t* index, T* dx, bool add);

}  // namespace taper::kernels
