#pragma once

#include <cstdint>

namespace taper::kernels {

/// The inverse of a max pool: `planes` blocks of `in` elements go to places in planes of `out` elements.
struct MaxUnpoolParams {
  std::int64_t planes = 0, in = 0, out = 0;
};

/// y is 0 but for y[index_i] = x_i in each plane; of several elements for one place the last one stays. Indices lie in
/// [0, out): see `find_bad_index`.
template <class T>
void max_unpool(const MaxUnpoolParams& p, const T* x, const std::int64_t* index, T* y);

/// dx_i = dy[index_i] in each plane, for every element that was sent to a place, as PyTorch has it. `add` adds to `dx`
/// instead of overwriting it.
template <class T>
void max_unpool_backward(const MaxUnpoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add);

}  // namespace taper::kernels
