#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/max_pool_lines.hpp"
#include "kernels/max_pool_plan.hpp"

// The largest elements of windows two or three columns wide, at every second column, with their borders. A vector holds
// one element of each of four neighbouring windows and of four others: rows need not be as long as vectors, and nothing
// is written behind them.

namespace taper::kernels {

#if defined(__AVX2__) && !defined(__AVX512F__)

/// Windows below each other, which a vector of each of some rows of them holds.
struct Halves {
  static constexpr std::int64_t kLanes = kernels::kLanes<float> / 2;
  static constexpr int kColumns = 9;  ///< that are read for the windows of a half
  using Places = Vector<std::int32_t>;

  std::int64_t rows, top, down;  ///< of windows; where the first begins, and each behind the one before
  std::int64_t depth, kernel, height, slice, width;  ///< of windows, and of a plane
  std::int64_t n, y_hop;                             ///< results of a row, those of the second half behind the first
  std::int64_t start, hop;                           ///< where in x the columns begin, the second half's behind them
  std::int64_t place, size;                          ///< where in its plane the first row is; x has so many elements
  std::uintptr_t ahead;                              ///< how many bytes ahead x is asked for
  Places one = Places{} + 1;
  Places columns;     ///< where the windows begin in a row
  Places outside[3];  ///< lanes whose first, second and third columns are padding
  bool is_cut;        ///< whether there are any
  bool has_three;     ///< columns in a window
};

/// Copies what two halves read, as far as it is in x; what is not is of no use.
TAPER_FOR_SIZE inline const float* copy_halves(const Halves& s, const float* x, std::int64_t at, float* copy) {
  for (int c = 0; c < Halves::kColumns; ++c)
    for (int half = 0; half < 2; ++half)
      copy[c + half * Halves::kColumns] = x[std::clamp<std::int64_t>(at + c + half * s.hop, 0, s.size - 1)];
  return copy;
}

/// Stores rows of less than half a vector.
TAPER_FOR_SIZE inline void store_short(const Halves& s, Vector<float> best, Halves::Places where, float* y,
                                       std::int64_t* index) {
  for (std::int64_t l = 0; l < s.n; ++l) {
    const std::int64_t second = s.y_hop + l;
    const float values[] = {best[l], best[Halves::kLanes + l]};
    const std::int32_t places[] = {where[l], where[Halves::kLanes + l]};
    y[l] = values[0], y[second] = values[1];
    if (index) index[l] = places[0], index[second] = places[1];
  }
}

/// The largest elements of the windows, and their places.
template <bool kPlaces>
[[gnu::noinline]] void pool_halves(const Halves& s, const float* x, float* y, std::int64_t* index) {
  using V = Vector<float>;
  using Places = Halves::Places;
  using Lanes = PairLanes<float>;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const auto take = [](const V& v, const Places& at, V& best, Places& where) __attribute__((always_inline)) {
    if constexpr (kPlaces) {
      take_larger(v, at, best, where);
    } else {
      best = v > best ? v : best;
      best = v == v ? best : v;
    }
  };
  const std::int64_t width = s.width;
  const auto limit = static_cast<std::uint64_t>(std::max<std::int64_t>(s.size - s.hop - Halves::kColumns + 1, 0));
  // The last row of windows may be the first one of the windows below.
  std::int64_t kept_at = s.size;
  V kept{};
  Places kept_where{};
  for (std::int64_t r = s.rows, top = s.top; r > 0; --r, top += s.down) {
    const std::int64_t begin = std::max<std::int64_t>(top, 0), tall = std::min(top + s.kernel, s.height) - begin;
    std::int64_t at = s.start + begin * width;
    Places line{}, where{};
    if (kPlaces) line = s.columns + static_cast<std::int32_t>(s.place + begin * width);
    V best{};
    bool is_first = true;
    for (std::int64_t i = s.depth;;) {
      for (std::int64_t j = tall; j > 0; --j, at += width) {
        if (at != kept_at) {
          kept_at = at;
          const float* from = x + at;
          fetch_line(from, s.ahead);
          std::int64_t hop = s.hop;
          float copy[2 * Halves::kColumns];
          if (static_cast<std::uint64_t>(at) >= limit) [[unlikely]]
            from = copy_halves(s, x, at, copy), hop = Halves::kColumns;
          const auto halves = [=](int c) __attribute__((always_inline)) {
            const __m128 first = _mm_loadu_ps(from + c), second = _mm_loadu_ps(from + hop + c);
            return V(_mm256_insertf128_ps(_mm256_castps128_ps256(first), second, 1));
          };
          const auto inside = [&](const V& v, int k) __attribute__((always_inline)) {
            return s.is_cut ? V(_mm256_blendv_ps(v, V{} + kLowest, __m256(s.outside[k]))) : v;
          };
          const V low = halves(0), high = halves(4);
          kept = inside(Lanes::of_pairs<0>(low, high), 0), kept_where = line;
          if (s.is_cut) kept_where -= s.outside[0];  // a column in front of the row
          Places place = line + s.one;
          take(inside(Lanes::of_pairs<1>(low, high), 1), place, kept, kept_where);
          if (s.has_three) take(inside(Lanes::of_pairs<1>(halves(1), halves(5)), 2), place + s.one, kept, kept_where);
        }
        if (is_first)
          best = kept, where = kept_where;
        else
          take(kept, kept_where, best, where);
        is_first = false;
        if (kPlaces) line += static_cast<std::int32_t>(width);
      }
      if (--i == 0) break;
      const std::int64_t skip = s.slice - tall * width;
      at += skip, line += static_cast<std::int32_t>(skip);
    }
    if (s.n < Halves::kLanes) {
      store_short(s, best, where, y, index);
    } else {
      _mm_storeu_ps(y, half_of<0>(best));
      _mm_storeu_ps(y + s.y_hop, half_of<1>(best));
      if constexpr (kPlaces) {
        const __m256i zero{}, front = _mm256_unpacklo_epi32(__m256i(where), zero),
                              behind = _mm256_unpackhi_epi32(__m256i(where), zero);
        auto *const to = reinterpret_cast<__m128i*>(index), *const second = reinterpret_cast<__m128i*>(index + s.y_hop);
        _mm_storeu_si128(to, _mm256_castsi256_si128(front));
        _mm_storeu_si128(to + 1, _mm256_castsi256_si128(behind));
        _mm_storeu_si128(second, _mm256_extracti128_si256(front, 1));
        _mm_storeu_si128(second + 1, _mm256_extracti128_si256(behind, 1));
      }
    }
    y += s.n;
    if (kPlaces) index += s.n;
  }
}

/// The rows [first, last) of such windows.
TAPER_FOR_SIZE inline void pool_by_halves(const MaxPool& p, std::int64_t first, std::int64_t last, const float* x,
                                          float* y, std::int64_t* index) {
  constexpr std::int64_t kHalf = Halves::kLanes, N = 2 * kHalf;
  constexpr std::int64_t kSome = 16;  // rows of windows, whose elements stay near
  using Places = Halves::Places;
  const Window1d &deep = p.d.window, &down = p.h.window, &across = p.w.window;
  const std::int64_t slice = p.h.in * p.w.in, size = p.d.in * slice, n = p.w.out, rows = p.d.out * p.h.out;
  const auto run = index ? pool_halves<true> : pool_halves<false>;
  Halves s;
  s.kernel = down.kernel, s.height = p.h.in, s.down = down.stride, s.slice = slice, s.width = p.w.in, s.n = n;
  s.size = p.planes * size, s.has_three = across.kernel == 3;
  s.ahead = double(s.size) * sizeof(float) < kFarRead ? 0
            : n > N ? static_cast<std::uintptr_t>(kSome * down.stride * s.width) * sizeof(float)
                    : memory_ahead;
  std::int64_t plane = first / rows, d = first % rows / p.h.out, h = first % p.h.out;
  for (std::int64_t planes; first < last; first += s.rows * planes) {
    s.rows = std::min(last - first, std::min(p.h.out - h, n <= N ? p.h.out : kSome));
    // Rows of at most half a vector are those of two planes.
    planes = n <= kHalf && s.rows == rows && last - first >= 2 * rows ? 2 : 1;
    const std::int64_t front = d * deep.stride - deep.padding_left, d_begin = std::max<std::int64_t>(front, 0);
    s.depth = std::min(front + deep.kernel, p.d.in) - d_begin;
    s.place = d_begin * slice;
    s.top = h * down.stride - down.padding_left;
    for (std::int64_t block = 0; block < n; block += N) {
      // The last half overlaps the one before, which changes nothing.
      const std::int64_t o = std::clamp<std::int64_t>(n - N, 0, block), corner = 2 * o - across.padding_left,
                         further = std::clamp<std::int64_t>(n - kHalf, 0, kHalf);
      s.columns = Places{0, 2, 4, 6, 8, 10, 12, 14} + static_cast<std::int32_t>(corner) +
                  Places{0, 0, 0, 0, 2, 2, 2, 2} * static_cast<std::int32_t>(further - kHalf);
      for (int k = 0; k < 3; ++k)
        s.outside[k] = (s.columns + k < 0) | (s.columns + k >= static_cast<std::int32_t>(p.w.in));
      s.is_cut = corner < 0 || corner + 2 * (further + kHalf - 1) + across.kernel > p.w.in;
      s.hop = planes == 2 ? size : 2 * further, s.y_hop = planes == 2 ? rows * n : further;
      s.start = plane * size + s.place + corner;
      run(s, x, y + first * n + o, index ? index + first * n + o : nullptr);
    }
    h += s.rows;
    if (h < p.h.out) continue;
    h = 0;
    if (++d < p.d.out) continue;
    d = 0, plane += planes;
  }
}

#endif

}  // namespace taper::kernels
