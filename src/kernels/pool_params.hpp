#pragma once

#include <cstdint>

namespace taper::kernels {

/// A pool over `planes` blocks of `[in[0], in[1], in[2]]` (depth, height, width). Pools with fewer spatial dimensions
/// leave the ones in front as they are here. The sizes come from `output_size`, which sees to it that a max pool's
/// windows hold an element each.
struct SlidingPoolParams {
  std::int64_t planes = 0;
  std::int64_t in[3] = {1, 1, 1};
  std::int64_t out[3] = {1, 1, 1};
  std::int64_t kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t padding_left[3] = {0, 0, 0};
  std::int64_t padding_right[3] = {0, 0, 0};
  std::int64_t dilation[3] = {1, 1, 1};
};

/// An adaptive pool; `in` is positive, an extent of `out` may be 0.
struct AdaptivePoolParams {
  std::int64_t planes = 0;
  std::int64_t in[3] = {1, 1, 1};
  std::int64_t out[3] = {1, 1, 1};

  bool is_empty() const { return out[0] == 0 || out[1] == 0 || out[2] == 0; }
};

}  // namespace taper::kernels
