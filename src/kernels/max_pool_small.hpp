#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/max_pool_pairs.hpp"
#include "kernels/vector_base.hpp"

#if defined(__AVX2__)
#include "kernels/lane_mask.hpp"
#endif

// Rows of windows two or three columns wide, at every second column, with their borders. All elements must be finite:
// the largest are then found without asking for NaN at each step, and their places afterwards, as the first that equal
// them.

namespace taper::kernels {

/// Rows of `n` windows, `kernel_w` = 2 or 3 columns wide and two apart; the first begins `padding_w` columns in front
/// of the plane. They span the slices `depth` of a plane and `kernel_h` rows each, from `padding_h` rows over it on.
struct SmallWindows {
  IndexRange depth;
  std::int64_t height, width;
  std::int64_t kernel_h, stride_h, padding_h, padding_w, kernel_w;
  std::int64_t n;
  bool is_far;  ///< whether memory is asked for, because caches do not hold the planes
};

#if defined(__AVX2__)

/// As many columns of rows of `width` as fill a vector, from column `first` on; beside the rows there is something
/// else.
class Columns {
 public:
  static constexpr std::int64_t N = kLanes<float>;

  Columns(std::int64_t first, std::int64_t width) : first_(first), whole_(first >= 0 && first + N <= width) {
    if (!whole_) inside_ = lanes_between(-first, width - first);
  }

  [[gnu::always_inline]] FullFloat of(const float* row, float other) const {
    if (whole_) return load(row + first_);
#if defined(__AVX512F__)
    return FullFloat(_mm512_mask_loadu_ps(_mm512_set1_ps(other), inside_, row + first_));
#else
    return FullFloat(_mm256_blendv_ps(_mm256_set1_ps(other), _mm256_maskload_ps(row + first_, inside_),
                                      _mm256_castsi256_ps(inside_)));
#endif
  }

 private:
  std::int64_t first_;
  bool whole_;
  LaneMask inside_{};
};

#endif

#if defined(__AVX512F__)

/// y_o = the largest element of window o, index_o its place in the plane `x`, for the rows [first, last) of windows.
/// Returns whether all elements are finite; what is written is of no use otherwise. A null `index` is not written. K is
/// `kernel_w`.
template <int K>
[[gnu::noinline]] bool pool_finite(const SmallWindows& w, const float* x, std::int64_t first, std::int64_t last,
                                   float* y, std::int64_t* index) {
  using V = FullFloat;
  using Places = BitsOf<V>;
  using Lanes = PairLanes<float>;
  constexpr std::int64_t N = kLanes<float>;
  constexpr float kLowest = std::numeric_limits<float>::lowest(), kNone = std::numeric_limits<float>::quiet_NaN();
  constexpr bool three = K == 3;
  const std::int64_t width = w.width, height = w.height, slice = height * width, n = w.n, count = std::min(n, N);
  // What the next rows of windows read and fill is asked for meanwhile.
  const std::int64_t step = std::min(w.stride_h, height) * width, share = step * N / std::max(n, N);
  const std::int64_t results = (last - first) * n;
  Next next_x(x, std::max<std::int64_t>(last * w.stride_h - w.padding_h, 0) * width), next_y(y, results),
      next_index(index, results);
  for (std::int64_t block = 0; block < n; block += N) {
    // The last vector overlaps the one before, which changes nothing.
    const std::int64_t o = n < N ? 0 : std::min(block, n - N), corner = 2 * o - w.padding_w;
    const Columns a(corner, width), b(corner + N, width), c(corner + 2, width), d(corner + N + 2, width);
    const auto taps = [&](const float* row, float other, V(&tap)[3]) __attribute__((always_inline)) {
      const V low = a.of(row, other), high = b.of(row, other);
      tap[0] = Lanes::of_pairs<0>(low, high), tap[1] = Lanes::of_pairs<1>(low, high);
      if (three) tap[2] = Lanes::of_pairs<0>(c.of(row, other), d.of(row, other));
    };
    // The last row of windows may be the first one of the windows below.
    std::int64_t kept_row = -1;
    V kept{};
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t top = r * w.stride_h - w.padding_h;
      const std::int64_t begin = std::max<std::int64_t>(top, 0), end = std::min(top + w.kernel_h, height);
      if (w.is_far) {
        next_x.fetch(share * std::int64_t{sizeof(float)});
        next_y.fetch(N * std::int64_t{sizeof(float)});
        if (index) next_index.fetch(N * std::int64_t{sizeof(*index)});
      }
      V best = each<V>(kLowest), zero{}, zeros{}, tap[3] = {};
      for (std::int64_t i = w.depth.first; i < w.depth.last; ++i)
        for (std::int64_t j = begin; j < end; ++j) {
          if (i * height + j != kept_row) {
            taps(x + i * slice + j * width, kLowest, tap);
            kept = larger(tap[1], tap[0]);
            if (three) kept = larger(tap[2], kept);
            zero = fused(tap[0], V{}, zero);
            zeros = fused(tap[1], V{}, zeros);
            if (three) zero = fused(tap[2], V{}, zero);
            kept_row = i * height + j;
          }
          best = larger(kept, best);
        }
      if (!is_all_from(0, zero + zeros)) return false;
      const V largest = Lanes::ordered(best);
      float* const to = y + (r - first) * n + o;
      if (count < N)
        store_first<float>(largest, count, to);
      else
        store<float>(largest, to);
      if (!index) continue;
      // From the last place to the first.
      Places where{};
      for (std::int64_t i = w.depth.last - 1; i >= w.depth.first; --i)
        for (std::int64_t j = end - 1; j >= begin; --j) {
          const std::int64_t row = i * slice + j * width;
          taps(x + row, kNone, tap);
          const Places at = Places{} + static_cast<std::uint32_t>(row);
          if (three) where = tap[2] == best ? at + 2 : where;
          where = tap[1] == best ? at + 1 : where;
          where = tap[0] == best ? at : where;
        }
      where = Lanes::ordered(where);
      std::int32_t places[N];
      std::memcpy(places, &where, sizeof where);
      std::int64_t* const place = index + (r - first) * n + o;
      for (std::int64_t k = 0; k < count; ++k) place[k] = corner + 2 * k + places[k];
    }
  }
  return true;
}

#endif

/// The same, if there is a loop for it.
template <class T>
bool pool_small([[maybe_unused]] const SmallWindows& w, [[maybe_unused]] const T* x,
                [[maybe_unused]] std::int64_t first, [[maybe_unused]] std::int64_t last, [[maybe_unused]] T* y,
                [[maybe_unused]] std::int64_t* index) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return (w.kernel_w == 2 ? pool_finite<2> : pool_finite<3>)(w, x, first, last, y, index);
#endif
  return false;
}

}  // namespace taper::kernels
