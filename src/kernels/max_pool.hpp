#pragma once

#include <cstdint>

namespace taper::kernels {

/// A max pool over `planes` blocks of `[in[0], in[1], in[2]]` (depth, height, width). Pools with fewer spatial
/// dimensions leave the ones in front as they are here. The sizes come from `output_size`, which sees to it that every
/// window holds an element.
struct MaxPoolParams {
  std::int64_t planes = 0;
  std::int64_t in[3] = {1, 1, 1};
  std::int64_t out[3] = {1, 1, 1};
  std::int64_t kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t padding_left[3] = {0, 0, 0};
  std::int64_t padding_right[3] = {0, 0, 0};
  std::int64_t dilation[3] = {1, 1, 1};
};

/// An adaptive max pool; `in` is positive, an extent of `out` may be 0.
struct AdaptiveMaxPoolParams {
  std::int64_t planes = 0;
  std::int64_t in[3] = {1, 1, 1};
  std::int64_t out[3] = {1, 1, 1};
};

/// y_o is the largest element of window o, index_o where in its plane it is: the first of equal ones; a NaN is larger
/// than any number, and of several the last one counts. Padding is never chosen. A null `index` is not written; `y` is
/// the same bits with and without it.
///
/// `x` is [planes, in...], `y` and `index` are [planes, out...]; none overlap.
template <class T>
void max_pool(const MaxPoolParams& p, const T* x, T* y, std::int64_t* index);
template <class T>
void adaptive_max_pool(const AdaptiveMaxPoolParams& p, const T* x, T* y, std::int64_t* index);

/// y = max(y, 0), and -1 for its index where that is 0: what `max_pool` gives of max(x, 0), and the windows whose
/// gradients go nowhere. NaN stays.
void keep_positive(std::int64_t n, float* y, std::int64_t* index);

/// Each input position takes the sum, in double where there may be more than eight, of the gradients of the outputs it
/// was chosen for; 0 where there are none. `add` adds to `dx` instead of overwriting it. `index` is what the forward
/// wrote; one that is outside its window's plane is passed over.
template <class T>
void max_pool_backward(const MaxPoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add);
template <class T>
void adaptive_max_pool_backward(const AdaptiveMaxPoolParams& p, const T* dy, const std::int64_t* index, T* dx,
                                bool add);

}  // namespace taper::kernels
