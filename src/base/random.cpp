#include "base/random.hpp"

#include <cmath>
#include <numbers>

namespace taper {

std::array<double, 2> normal_pair(std::uint64_t bits_a, std::uint64_t bits_b) {
  // 1 - u lies in (0, 1], so the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_double(bits_a)));
  const double angle = 2.0 * std::numbers::pi * uniform_double(bits_b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace taper
