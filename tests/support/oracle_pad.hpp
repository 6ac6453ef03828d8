#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace taper::oracle {

/// Padding of one dimension by its definition: an output's source is found by walking from the place of the first
/// input element, one output at a time.
struct PadAxis {
  enum Kind { value, reflect, replicate, circular };
  Kind kind = value;
  std::int64_t in = 1, left = 0, right = 0;

  std::int64_t out() const { return in + left + right; }

  /// The input element that output `i` is, if any.
  std::optional<std::int64_t> source(std::int64_t i) const {
    const std::int64_t first = kind == circular ? std::max<std::int64_t>(-left, 0) : 0;
    const std::int64_t last = kind == circular ? in - 1 + std::min<std::int64_t>(right, 0) : in - 1;
    std::int64_t at = first, place = left + first;
    const std::int64_t step = i > place ? 1 : -1;
    for (std::int64_t turned = step; place != i; place += step) {
      if (kind == reflect && (at + turned > last || at + turned < first)) turned = -turned;
      at += kind == reflect ? turned : step;
      if (kind == circular && at > last) at = first;
      if (kind == circular && at < first) at = last;
    }
    if (kind == value && (at < 0 || at >= in)) return std::nullopt;
    return std::clamp<std::int64_t>(at, 0, in - 1);
  }
};

}  // namespace taper::oracle
