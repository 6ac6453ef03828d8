#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/max_pool_pairs.hpp"
#include "kernels/max_pool_plan.hpp"

// The largest elements of windows a few columns wide, at every column or every second one, with their borders: those of
// rows first, once for all windows that share a row, then those of columns. No element may be NaN, for which other
// loops ask at each step.

namespace taper::kernels {

#if defined(__AVX2__) && !defined(__AVX512F__)

/// Windows of some rows, a vector of them at a time; those two columns apart are in the order of `PairLanes` until they
/// are stored. The last vector of a row overlaps the one before, and is stored after it: windows that a border cuts off
/// are right in the first and last vector. A single one may reach into the next row, which is written after it.
class SeparableMaxima {
 public:
  /// Windows of a row, and rows and columns of a window.
  static constexpr std::int64_t kMost = 256, kRows = 16, kColumns = 8;

  TAPER_FOR_SIZE explicit SeparableMaxima(const MaxPool& p)
      : width_(p.w.in), height_(p.h.in), kernel_(p.h.window.kernel), down_(p.h.window.stride), n_(p.w.out) {
    columns_ = p.w.window.kernel, ahead_ = far_ahead_of(p.elements() * sizeof(float));
    for (V& bound : between_.bound) bound = V{} + std::numeric_limits<float>::infinity();
  }

  /// Takes windows [o, o + n) of each row: a vector of them at least, or the row. Returns the column where the first
  /// begins.
  TAPER_FOR_SIZE std::int64_t go_to(const Window1d& w, std::int64_t o, std::int64_t n) {
    constexpr float kAll = std::numeric_limits<float>::infinity();
    const std::int64_t corner = o * w.stride - w.padding_left;
    last_ = std::max<std::int64_t>(n - N, 0), row_ = ceil_div(n, N) * N;
    const std::int64_t ends[] = {corner, corner + last_ * w.stride};
    for (int end = 0; end < 2; ++end) {
      Places low;
      for (int l = 0; l < N; ++l) low[l] = static_cast<std::int32_t>(ends[end]) + l;
      Borders& e = ends_[end];
      e.columns = w.stride == 1 ? low : Pairs::of_pairs<0>(low, low + N);
      e.first = e.columns < 0 ? Places{} : e.columns;
      for (int k = 0; k < kColumns; ++k) {
        const Places column = e.columns + k, inside = (column >= 0) & (column < static_cast<std::int32_t>(width_));
        e.bound[k] = inside ? V{} + kAll : V{} - kAll;
      }
    }
    return corner;
  }
  /// How many rows of them there is room for.
  std::int64_t room() const { return kRoom / row_; }
  /// Elements of a row that are read.
  std::int64_t reach(std::int64_t stride) const { return (last_ + N) * stride + columns_; }

  /// Finds the largest elements of windows of one row for `rows` rows of x, the first of which is at `place` of its
  /// plane, to be numbers `at` and on. Returns whether no element is NaN.
  template <bool kPlaces, int S>
  [[gnu::noinline]] bool find_across(const float* x, std::int64_t rows, std::int64_t place, std::int64_t at) {
    const std::int64_t last = last_, width = width_, row = row_, kernel = columns_;
    V nan{};
    float* to = best_ + at * row;
    const Borders *const first_borders = &ends_[row > N ? 0 : 1], *const last_borders = &ends_[1];
    for (; rows > 0; --rows, x += width, place += width) {
      const Borders* borders = first_borders;
      for (std::int64_t v = 0; v < row; v += N, to += N) {
        const std::int64_t o = std::min(v, last);
        const float* const from = x + o * S;
        fetch_line(from, ahead_);
        const auto bounded = [=](std::int64_t k, const V& column) __attribute__((always_inline)) {
          return V(_mm256_min_ps(borders->bound[k], column));
        };
        const V low = load(from), high = load(from + (S == 1 ? 1 : N)),
                first = bounded(0, S == 1 ? low : Pairs::of_pairs<0>(low, high)),
                second = bounded(1, S == 1 ? high : Pairs::of_pairs<1>(low, high));
        Places columns{};
        if (kPlaces) columns = ends_[0].columns + static_cast<std::int32_t>(place + o * S);
        nan = V(_mm256_or_ps(nan, _mm256_cmp_ps(first, second, _CMP_UNORD_Q)));
        // From the last column to the first, of which the first of equal ones is taken.
        V best = second;
        Places where = columns + 1;
        if (kernel > 2) [[likely]] {
          const auto column = [=](std::int64_t k) __attribute__((always_inline)) {
            const float* const pair = from + (S == 1 ? k : k & -2);
            if constexpr (S == 1) return bounded(k, load(pair));
            const V low_pairs = load(pair), high_pairs = load(pair + N);
            return bounded(
                k, k % 2 == 0 ? Pairs::of_pairs<0>(low_pairs, high_pairs) : Pairs::of_pairs<1>(low_pairs, high_pairs));
          };
          best = column(kernel - 1);
          if (kPlaces) where = columns + static_cast<std::int32_t>(kernel - 1);
          nan = V(_mm256_or_ps(nan, _mm256_cmp_ps(best, best, _CMP_UNORD_Q)));
          if (kernel > 3) [[unlikely]]
            for (std::int64_t k = kernel - 2; k > 1; --k) {
              const V other = column(k);
              nan = V(_mm256_or_ps(nan, _mm256_cmp_ps(other, other, _CMP_UNORD_Q)));
              take<kPlaces>(other, columns + static_cast<std::int32_t>(k), best, where);
            }
          take<kPlaces>(second, columns + 1, best, where);
        }
        take<kPlaces>(first, columns, best, where);
        store<float>(best, to);
        if (kPlaces) {
          const Places least = borders->first + static_cast<std::int32_t>(place);
          where = where > least ? where : least;  // nothing is less than padding
          std::memcpy(to + kRoom, &where, sizeof where);
        }
        borders = v + 2 * N >= row ? last_borders : &between_;
      }
    }
    return _mm256_movemask_ps(nan) == 0;
  }

  /// The largest elements, and their places, of `rows` rows of windows, the first of which begins in row `top` of the
  /// plane; number 0 is its first row.
  template <bool kPlaces>
  [[gnu::noinline]] void find_down(std::int64_t rows, std::int64_t top, bool in_pairs, float* y,
                                   std::int64_t* index) const {
    const std::int64_t last = last_, row = row_, height = height_, down = down_, kernel = kernel_;
    const std::int64_t begin = std::max<std::int64_t>(top, 0);
    const BitsOf<V> lanes{0, 1, 2, 3, 4, 5, 6, 7}, order = in_pairs ? Pairs::ordered(lanes) : lanes;
    for (std::int64_t left = rows * n_; left > 0; left -= n_, top += down, y += n_) {
      const std::int64_t first = std::max<std::int64_t>(top, 0), tall = std::min(top + kernel, height) - first;
      // From the last row to the first; one of three may be there twice.
      const float *a = best_ + (first - begin + tall - 1) * row, *b = tall > 1 ? a - row : a,
                  *c = tall > 2 ? b - row : b;
      for (std::int64_t v = 0; v < row; v += N) {
        const std::int64_t o = std::min(v, last);
        const auto places = [](const float* of) __attribute__((always_inline)) {
          return kPlaces ? several_at<std::int32_t, N>(reinterpret_cast<const std::int32_t*>(of + kRoom)) : Places{};
        };
        V best = load(a + v);
        Places where = places(a + v);
        const auto add = [&](const float* from) __attribute__((always_inline)) {
          take<kPlaces>(load(from), places(from), best, where);
        };
        add(b + v), add(c + v);
        for (std::int64_t r = 3; r < tall; ++r) add(a + v - r * row);
        best = permuted(best, order);
        if (kPlaces) where = Places(permuted(V(where), order));
        if (left < N) {
          store_end<kPlaces>(best, where, n_, y, index);
          break;
        }
        store<float>(best, y + o);
        if constexpr (kPlaces) {
          auto* const to = reinterpret_cast<__m256i*>(index + o);
          _mm256_storeu_si256(to, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(__m256i(where))));
          _mm256_storeu_si256(to + 1, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(__m256i(where), 1)));
        }
      }
      if (kPlaces) index += n_;
    }
  }

 private:
  using V = Vector<float>;
  using Places = Vector<std::int32_t>;
  using Pairs = PairLanes<float>;
  static constexpr int N = kLanes<float>;
  static constexpr std::int64_t kRoom = kMost * kRows;

  /// Takes v, which comes before `best`, if it is not less.
  template <bool kPlaces>
  [[gnu::always_inline]] static void take(const V& v, const Places& at, V& best, Places& where) {
    if (kPlaces) where = v >= best ? at : where;
    best = V(_mm256_max_ps(best, v));  // v where both are equal
  }

  /// Stores the first n lanes.
  template <bool kPlaces>
  TAPER_FOR_SIZE static void store_end(V best, Places where, std::int64_t n, float* y, std::int64_t* index) {
    for (std::int64_t l = 0; l < n; ++l) {
      y[l] = best[l];
      if (kPlaces) index[l] = where[l];
    }
  }

  /// What is padding of a vector of windows, in the order of its lanes.
  struct Borders {
    Places columns, first;  ///< where they begin in a row, and their first columns that are no padding
    V bound[kColumns];      ///< of their columns: infinity, or less than all for padding
  };

  std::int64_t width_, height_, kernel_, down_, n_, columns_, last_ = 0, row_ = 0;
  std::uintptr_t ahead_;                         ///< how far ahead memory is asked for
  Borders ends_[2], between_{};                  ///< of the first and the last vector of a row, and of others
  alignas(kVectorWidth) float best_[2 * kRoom];  ///< and the places
};

/// Whether windows are of that kind, and there is room for their rows.
TAPER_FOR_SIZE inline bool is_separable(const MaxPool& p) {
  const Window1d &h = p.h.window, &w = p.w.window;
  if (p.h.is_adaptive || p.w.is_adaptive || p.d.in * p.d.out != 1 || p.d.window.kernel != 1 || h.dilation != 1 ||
      w.dilation != 1)
    return false;
  return h.kernel <= SeparableMaxima::kRows && w.kernel > 1 && w.kernel <= SeparableMaxima::kColumns &&
         p.has_narrow_places() && (w.stride == 1 || (w.stride == 2 && p.w.out >= kLanes<float>));
}

/// The rows [first, last) of such windows. Those with NaN among them `otherwise` computes, which is called as this
/// function is.
template <auto otherwise>
TAPER_FOR_SIZE void pool_separably(const MaxPool& p, std::int64_t first, std::int64_t last, const float* x, float* y,
                                   std::int64_t* index) {
  using Maxima = SeparableMaxima;
  const Window1d &down = p.h.window, &across = p.w.window;
  const std::int64_t size = p.size(), n = p.w.out, all = p.planes * size;
  const bool in_pairs = across.stride == 2;
  const auto find_across = in_pairs ? index ? &Maxima::find_across<true, 2> : &Maxima::find_across<false, 2>
                           : index ? &Maxima::find_across<true, 1>
                                    : &Maxima::find_across<false, 1>;
  const auto find_down = index ? &Maxima::find_down<true> : &Maxima::find_down<false>;
  Maxima maxima(p);
  for (std::int64_t some; first < last; first += some) {
    const std::int64_t plane = first / p.h.out, h = first % p.h.out, top = h * down.stride - down.padding_left,
                       begin = std::max<std::int64_t>(top, 0);
    bool is_done = true;
    some = std::min(last - first, p.h.out - h);
    for (std::int64_t o = 0; o < n && is_done; o += Maxima::kMost) {
      // The last windows are a vector of them at least, if the row is.
      const std::int64_t from = std::min(o, std::max<std::int64_t>(n - kLanes<float>, 0)),
                         corner = maxima.go_to(across, from, std::min(Maxima::kMost, n - from)),
                         reach = maxima.reach(across.stride);
      if (o == 0) some = std::min(some, (maxima.room() - down.kernel) / down.stride + 1);
      const std::int64_t end = std::min(top + (some - 1) * down.stride + down.kernel, p.h.in);
      for (std::int64_t j = begin, rows; j < end; j += rows) {
        const std::int64_t place = j * p.w.in, at = plane * size + place + corner;
        float copy[2 * Maxima::kMost + Maxima::kColumns];
        const float* row = x + at;
        rows = std::min(end - j, (all - reach - at) / p.w.in + 1);
        if (at < 0 || at + reach > all) {
          // What is not in x is of no use.
          for (std::int64_t c = 0; c < reach; ++c) copy[c] = x[std::clamp<std::int64_t>(at + c, 0, all - 1)];
          row = copy, rows = 1;
        }
        is_done = (maxima.*find_across)(row, rows, place, j - begin) && is_done;
      }
      const std::int64_t to = first * n + from;
      (maxima.*find_down)(some, top, in_pairs, y + to, index ? index + to : nullptr);
    }
    if (!is_done) otherwise(p, first, first + some, x, y, index);
  }
}

#endif

}  // namespace taper::kernels
