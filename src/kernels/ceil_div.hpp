#pragma once

#include <cstdint>

namespace taper::kernels {

/// n / d for n >= 0, rounded up.
inline std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d != 0); }

}  // namespace taper::kernels
