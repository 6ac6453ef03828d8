#pragma once

#include <cmath>
#include <vector>

#include "taper/creation.hpp"

namespace taper::test {

/// Pseudo-random float64 numbers around 0 that no two elements share.
inline Tensor spread(const Shape& shape, double step = 0.37) {
  std::vector<double> values(std::size_t(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(1.0 + step * double(i) * double(i + 3)) * 1.7;
  return from_data(values, shape);
}

}  // namespace taper::test
