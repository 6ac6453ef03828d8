#pragma once

#include <cstdint>

#include "kernels/moments.hpp"

namespace taper::kernels {

/// Rows normalised by moments of their own: x [samples, groups, channels, spatial], a row being one group of one
/// sample. Layer norm is one group of `spatial` 1, instance norm groups of one channel.
struct RowNormParams {
  std::int64_t samples = 1;
  std::int64_t groups = 1;
  std::int64_t channels = 1;  ///< of one group
  std::int64_t spatial = 1;
  double eps = 0;
  bool centered = true;  ///< false: root mean square norm, the mean is taken as 0
};

/// How many moments a call works in: those of every row, and room for the sums of the backward.
std::int64_t row_norm_memory(const RowNormParams& p);

/// y = (x - mean) rstd w + b; w and b [groups * channels], null for 1 and 0. Fills the moments of every row.
template <class T>
void row_norm(const RowNormParams& p, const T* x, const T* w, const T* b, Moments* moments, T* y);

/// `moments` is as the forward left it, [row_norm_memory].
template <class T>
void row_norm_backward(const RowNormParams& p, const T* dy, const T* x, const T* w, Moments* moments,
                       const NormGradients<T>& gradients);

}  // namespace taper::kernels
