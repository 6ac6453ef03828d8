#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/max_pool_pairs.hpp"

namespace taper::kernels {

/// The largest element of every column over the rows that a row of windows spans, and where it is: what the windows
/// choose from then, so that they compare one row of elements instead of all. An element and its place are one number,
/// of which the largest is the first of equal elements, or the last NaN. Float32, of places below 2^30.
class ColumnMaxima {
 public:
  /// Columns that there is room for.
  static constexpr std::int64_t kMost = 4096;

  /// Finds the columns [start, start + count) of the rows h of the slices d of the plane x, whose slices have `height`
  /// rows of `width`; what lies beyond them loses to everything.
  [[gnu::noinline]] void find_columns(const Taps& d, const Taps& h, std::int64_t height, std::int64_t width,
                                      const float* x, std::int64_t start, std::int64_t count) {
    const std::int64_t begin = std::clamp<std::int64_t>(-start, 0, count),
                       end = std::clamp(width - start, begin, count);
    std::fill(key_, key_ + begin, std::numeric_limits<Key>::min());
    std::fill(key_ + end, key_ + count, std::numeric_limits<Key>::min());
    const auto find = [&](auto best, auto where, std::int64_t c) __attribute__((always_inline)) {
      const auto zero = where;
      bool is_first = true;
      for (std::int64_t i = d.first; i < d.last; i += d.step)
        for (std::int64_t j = h.first; j < h.last; j += h.step) {
          const std::int64_t row = (i * height + j) * width;
          auto v = best;
          std::memcpy(&v, x + row + start + c, sizeof v);
          const auto is_taken = exceeds(v, best);
          best = is_taken ? v : best;
          where = is_first ? zero + static_cast<Place>(row) : is_taken ? zero + static_cast<Place>(row) : where;
          is_first = false;
        }
      constexpr std::int64_t n = sizeof best / sizeof(float);
      float some[n];
      Place rows[n];
      std::memcpy(some, &best, sizeof best);
      std::memcpy(rows, &where, sizeof where);
      for (std::int64_t l = 0; l < n; ++l) key_[c + l] = key(some[l], rows[l] + static_cast<Place>(start + c + l));
    };
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    // The last vector overlaps the one before, which changes nothing.
    const auto find_all = [&]<int wide>(std::integral_constant<int, wide>) __attribute__((always_inline)) {
      using Elements = typename Several<float, wide>::type;
      using Places = typename Several<Place, wide>::type;
      for (std::int64_t c = begin; c < end; c += wide) find(Elements{} + kLowest, Places{}, std::min(c, end - wide));
    };
    constexpr int half = std::min(N, 8), quarter = std::min(N, 4);
    const std::int64_t n = end - begin;
    if (n >= N) return find_all(std::integral_constant<int, N>());
    if (n >= half) return find_all(std::integral_constant<int, half>());
    if (n >= quarter) return find_all(std::integral_constant<int, quarter>());
    for (std::int64_t c = begin; c < end; ++c) find(kLowest, Place(0), c);
  }

  /// The place of the largest element of the columns `w`, counted from the first.
  std::int64_t find(const Taps& w) const {
    Key largest = key_[w.first];
    std::int64_t c = w.first;
    if (w.step == 1 && w.last - c >= 16) {
      constexpr int kSome = 8;
      Key some[kSome];
      std::copy(key_ + c, key_ + c + kSome, some);
      for (c += kSome; c + kSome <= w.last; c += kSome)
        for (int l = 0; l < kSome; ++l) some[l] = std::max(some[l], key_[c + l]);
      for (int l = 0; l < kSome; ++l) largest = std::max(largest, some[l]);
    }
    for (; c < w.last; c += w.step) largest = std::max(largest, key_[c]);
    const std::int64_t place = largest & kLast;
    return (largest >> 32) == kLast ? place : kLast - place;
  }

 private:
  using Place = std::int32_t;
  using Key = std::int64_t;
  static constexpr int N = kFullVector<float>;
  static constexpr Place kLast = std::numeric_limits<Place>::max();

  /// In front the element as an integer of the same order, behind it the place, of numbers the distance from the last.
  static Key key(float v, Place place) {
    const auto bits = std::bit_cast<Place>(v + 0.0f);  // one zero for both
    const bool is_nan = v != v;
    return (Key(is_nan ? kLast : bits ^ ((bits >> 31) & kLast)) << 32) | (is_nan ? place : kLast - place);
  }

  Key key_[kMost];
};

}  // namespace taper::kernels
