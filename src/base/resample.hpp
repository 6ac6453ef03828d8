#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/window.hpp"

namespace taper {

/// How one dimension is resized: which positions of the input each output reads, and with what weights. Forward and
/// backward ask here alone, so that each is exactly the other's adjoint.
struct Resampling {
  enum class Rule {
    nearest,        ///< the input position at the output's left edge
    nearest_exact,  ///< the one at the output's centre
    linear,         ///< the two around the output's centre; outside of the outer centres the outer one
    aligned,        ///< the two around the place that the line from first to first, last to last gives
  };

  std::int64_t in = 1, out = 1;
  Rule rule = Rule::nearest;
  /// The input positions from one output to the next; 0: in / out. Of no matter for `aligned`.
  double step = 0;

  bool is_nearest() const noexcept { return rule == Rule::nearest || rule == Rule::nearest_exact; }

  /// What an output reads: x[first] * (1 - weight) + x[second] * weight; `second` is `first` or the one after it.
  struct Source {
    std::int64_t first, second;
    double weight;
  };

  /// For 0 <= i < out. Neither position falls as `i` grows.
  Source at(std::int64_t i) const noexcept {
    if (is_nearest()) {
      const std::int64_t j = nearest(i);
      return {j, j, 0};
    }
    const double place = std::max(this->place(i), 0.0);
    if (place >= double(in - 1)) return {in - 1, in - 1, 0};
    const auto first = static_cast<std::int64_t>(place);
    return {first, first + 1, place - double(first)};
  }

  /// Where output i lies between the input positions, of the linear rules; it may lie a little outside.
  double place(std::int64_t i) const noexcept {
    if (rule == Rule::linear) return (step != 0 ? step : double(in) / double(out)) * (double(i) + 0.5) - 0.5;
    return out > 1 ? double(in - 1) / double(out - 1) * double(i) : 0;
  }

 private:
  std::int64_t nearest(std::int64_t i) const noexcept {
    const bool exact = rule == Rule::nearest_exact;
    // Without a step of its own the place is a fraction, which whole numbers give exactly.
    if (step == 0) return exact ? floor_scaled(2 * i + 1, in, 2 * out) : floor_scaled(i, in, out);
    const double place = (double(i) + (exact ? 0.5 : 0.0)) * step;
    if (place >= double(in - 1)) return in - 1;
    // PyTorch rounds the place to float, which forgives steps that are a little short, as 1 / 3 is. Far out, where that
    // would skip positions, it stays as it is.
    constexpr double kFar = 1 << 20;
    return static_cast<std::int64_t>(place < kFar ? double(static_cast<float>(place)) : place);
  }
};

/// Resizing by a cubic through the two positions on either side of the places that a linear rule gives; outside of the
/// input the outer element goes on. Source: Keys (1981) with a = -3/4, as in PyTorch.
struct CubicResampling : Resampling {
  /// What an output reads: the sum of x[at[k]] * weight[k]. Positions next to each other may be the same at the ends.
  struct Source {
    std::int64_t first, second;  ///< the outer ones of `at`
    std::int64_t at[4];
    double weight[4];
  };

  /// Always inline: kernels have their own, compiled for their processor.
  [[gnu::always_inline]] Source at(std::int64_t i) const noexcept {
    const double place = this->place(i), base = std::min(std::floor(place), double(in - 1));
    const double t = std::min(place - base, 1.0);
    Source source{};
    for (int k = 0; k < 4; ++k) {
      source.at[k] = std::clamp<std::int64_t>(static_cast<std::int64_t>(base) + k - 1, 0, in - 1);
      source.weight[k] = weight(std::abs(t + 1 - k));
    }
    source.first = source.at[0];
    source.second = source.at[3];
    return source;
  }

 private:
  /// The weight of an element so far away, 0 at 1 and at 2.
  static double weight(double distance) noexcept {
    constexpr double a = -0.75;
    if (distance <= 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
  }
};

/// The outputs that may read input position `j`: [first, last).
template <class Axis>
static IndexRange outputs_over(const Axis& axis, std::int64_t j) noexcept {
  const auto begin = [&](const auto& reached) {
    std::int64_t low = 0, high = axis.out;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (reached(axis.at(middle)))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  };
  return {begin([&](const typename Axis::Source& s) { return s.second >= j; }),
          begin([&](const typename Axis::Source& s) { return s.first > j; })};
}

}  // namespace taper
