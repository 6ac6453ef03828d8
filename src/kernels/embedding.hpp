#pragma once

#include <cstdint>

namespace taper::kernels {

/// A table w [rows, width] read at `count` indices. Indices lie in [0, rows): see `find_bad_index`.
struct EmbeddingParams {
  std::int64_t rows, width, count;
  std::int64_t padding_row;  ///< gets no gradient; -1: none
  bool by_frequency;         ///< a row's gradient is divided by how often it was read
};

/// A bound on the length of the rows that are read.
struct RowBound {
  double max_norm;
  double norm_type;  ///< p of the p-norm; 0 counts the elements other than 0, infinities give the extremes
};

/// Every row of w that an index names and that is longer than `max_norm` is scaled down to it, once.
template <class T>
void embedding_renorm(const EmbeddingParams& p, const RowBound& bound, const std::int64_t* index, T* w);

/// The gradient of w for y[j] = w[index[j]]: every row's sum in the order of the indices, in double, so that the same
/// bits come out on any number of threads. Sorts the places by index in scratch memory of its own.
template <class T>
void embedding_backward(const EmbeddingParams& p, const std::int64_t* index, const T* dy, T* dw, bool add);

}  // namespace taper::kernels
