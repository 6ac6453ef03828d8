#pragma once

#include <algorithm>
#include <cstdint>

namespace taper::kernels {

/// n / d for n >= 0, rounded up.
inline std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d != 0); }

/// The length of as few steps over n > 0 as there are of at most `most`, equal but for whole multiples of `multiple`.
inline std::int64_t equal_step(std::int64_t n, std::int64_t most, std::int64_t multiple) {
  if (n <= most) return n;
  return std::min(n, ceil_div(ceil_div(n, ceil_div(n, most)), multiple) * multiple);
}

}  // namespace taper::kernels
