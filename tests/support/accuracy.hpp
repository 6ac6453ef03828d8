#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace taper::test {

/// The largest difference, relative to the largest expected value (at least 1); infinite if a size or a NaN differs.
template <class T>
double relative_error(const std::vector<T>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double largest = 1, error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - expected[i]);
    if (std::isnan(difference)) return INFINITY;
    error = std::fmax(error, difference);
    largest = std::fmax(largest, std::abs(expected[i]));
  }
  return error / largest;
}

/// What a result of this type may be off by in `relative_error`: four units in the last place of a float32.
template <class T>
constexpr double tolerance() {
  return sizeof(T) == sizeof(float) ? 4 * double(std::numeric_limits<float>::epsilon()) : 1e-13;
}

}  // namespace taper::test
