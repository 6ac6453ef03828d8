#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/avg_pool_plan.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels::average {

/// Planes of few elements, for which what a pass does for each plane would take longer than its elements: where each
/// window lies is listed once for all planes. Of float32; sums are in double.
class TinyPlanes {
 public:
  /// Whether this serves the windows of `c`, which goes forward. Planes that windows cut without a rest, and those of
  /// one row, are joined faster; some small windows have loops of their own.
  TAPER_FOR_SIZE static bool fits(const Course& c) {
    const auto is_plain = [](const Reads& r) { return r.from <= kMost && r.step == 1 && r.dilation == 0; };
    return c.h.from > 1 && c.d.from == 1 && c.d.to == 1 && c.d.takes_one() && is_plain(c.h) && is_plain(c.w) &&
           c.h.from * c.w.from <= kMost && c.h.to <= kMost && c.w.to <= kMost && c.h.most() <= kMost &&
           c.w.most() <= kMost && c.h.to * c.w.to * c.h.most() * c.w.most() <= kMostReads &&
           !(c.h.is_tiled() && c.w.is_tiled()) && small_of(c) == Small::none;
  }

  TAPER_FOR_SIZE explicit TinyPlanes(const Course& c) : row_(c.w.from), elements_(c.h.from * c.w.from) {
    const Pool& p = c.pool;
    ReadsCursor rows(c.h, 0);
    for (std::int64_t i = 0; i < c.h.to; ++i, rows.next()) {
      const Taps down = rows.taps();
      ReadsCursor columns(c.w, 0);
      for (std::int64_t j = 0; j < c.w.to; ++j, columns.next()) {
        const Taps along = columns.taps();
        const std::int64_t counted = p.h.counted(i, p.count_include_pad) * p.w.counted(j, p.count_include_pad);
        windows_[count_++] = {down.first * row_ + along.first, down.last - down.first, along.last - along.first,
                              p.divisor != 0 ? p.divisor : static_cast<double>(std::max<std::int64_t>(counted, 1))};
      }
    }
  }

  /// y_o = the sum of the elements of window o / its divisor, for the planes [first, last).
  void average(const float* x, float* y, std::int64_t first, std::int64_t last) const {
    x += first * elements_, y += first * count_;
    for (; first < last; ++first, x += elements_, y += count_)
      for (std::int64_t o = 0; o < count_; ++o) {
        const Window& w = windows_[o];
        double sum = 0;
        const float* from = x + w.first;
        for (std::int64_t i = 0; i < w.rows; ++i, from += row_)
          for (std::int64_t j = 0; j < w.columns; ++j) {
            asm volatile("");  // few: no vectors
            sum += static_cast<double>(from[j]);
          }
        y[o] = static_cast<float>(sum / w.divisor);
      }
  }

  /// dx_i = the sum of dy_o / divisor_o over the windows o that hold element i, or added to what is there.
  void spread(const float* dy, float* dx, bool add, std::int64_t first, std::int64_t last) const {
    dy += first * count_, dx += first * elements_;
    double sums[kMost];
    for (; first < last; ++first, dy += count_, dx += elements_) {
      clear(sums, elements_);
      for (std::int64_t o = 0; o < count_; ++o) {
        const Window& w = windows_[o];
        const double g = static_cast<double>(dy[o]) / w.divisor;
        double* to = sums + w.first;
        for (std::int64_t i = 0; i < w.rows; ++i, to += row_)
          for (std::int64_t j = 0; j < w.columns; ++j) {
            asm volatile("");
            to[j] += g;
          }
      }
      for (std::int64_t i = 0; i < elements_; ++i) {
        const auto sum = static_cast<float>(sums[i]);
        dx[i] = add ? dx[i] + sum : sum;
      }
    }
  }

  /// Elementary operations for one plane.
  std::int64_t work() const { return 8 * elements_; }

 private:
  static constexpr std::int64_t kMost = 128, kMostReads = 160;

  struct Window {
    std::int64_t first, rows, columns;
    double divisor;
  };

  std::int64_t row_, elements_, count_ = 0;
  Window windows_[kMostReads];
};

}  // namespace taper::kernels::average
