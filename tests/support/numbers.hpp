#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace taper::test {

using Values = std::vector<double>;
using Ints = std::vector<std::int64_t>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// A size whose double does not fit.
inline constexpr std::int64_t kHuge = std::int64_t{1} << 62;

inline double sum(const Values& x) {
  double s = 0;
  for (const double v : x) s += v;
  return s;
}

}  // namespace taper::test
