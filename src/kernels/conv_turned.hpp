#pragma once

#include "kernels/conv_sweep.hpp"
#include "kernels/lane_mask.hpp"
#include "kernels/turn_square.hpp"

namespace taper::kernels {

/// The sum of a sweep plus `b`, which may be null, or added to y with `add`, with the rows of the result along the
/// vectors and its positions one by one: whatever the length of its lines, all lanes are used. Float32, on processors
/// whose vectors can be read and written in part. False where the other ways are faster; it then does nothing.
bool turned_sum(const Sweep& s, const float* x, const float* w, const float* b, float* y, bool add);

inline bool turned_sum(const Sweep&, const double*, const double*, const double*, double*, bool) { return false; }

#if defined(__AVX2__)

/// y[r, i] = turned[i, r] + b[r], or +=, for `n` positions of `rows` rows; those of y are `channel` apart, positions of
/// `turned` are `row`, and `b` may be null.
[[gnu::noinline]] inline void store_turned(const float* turned, std::int64_t row, std::int64_t n, std::int64_t rows,
                                           const float* b, float* y, std::int64_t channel, bool add) {
  for (std::int64_t j = 0; j < rows; j += kLanes<float>)
    for (std::int64_t i = 0; i < n; i += kLanes<float>) {
      Vector<float> square[kLanes<float>];
#pragma GCC unroll 16
      for (int l = 0; l < kLanes<float>; ++l) square[l] = load(turned + std::min(i + l, n - 1) * row + j);
      turn_square<float>(square);
      const LaneMask lanes = lanes_between(0, n - i);
      float* to = y + j * channel + i;
      for (int r = 0; r < std::min<std::int64_t>(kLanes<float>, rows - j); ++r, to += channel) {
        Vector<float> v = square[r] + (b != nullptr ? b[j + r] : 0.0f);
        if (add) v += load_lanes(lanes, to);
        store_lanes(v, n - i, to);
      }
    }
}

#endif

}  // namespace taper::kernels
