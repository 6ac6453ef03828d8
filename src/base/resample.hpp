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
    double place = 0;
    if (rule == Rule::linear)
      place = std::max((step != 0 ? step : double(in) / double(out)) * (double(i) + 0.5) - 0.5, 0.0);
    else if (out > 1)
      place = double(in - 1) / double(out - 1) * double(i);
    if (place >= double(in - 1)) return {in - 1, in - 1, 0};
    const auto first = static_cast<std::int64_t>(place);
    return {first, first + 1, place - double(first)};
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

/// The outputs that read input position `j`: [first, last).
inline IndexRange outputs_over(const Resampling& axis, std::int64_t j) noexcept {
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
  return {begin([&](const Resampling::Source& s) { return s.second >= j; }),
          begin([&](const Resampling::Source& s) { return s.first > j; })};
}

}  // namespace taper
