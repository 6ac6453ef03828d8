#pragma once

#include <algorithm>
#include <cmath>

#include "support/spread.hpp"
#include "taper/ops.hpp"

namespace taper::test {

/// How far a linear function and its gradient are from being adjoint: |<A x, g> - <x, A* g>|, relative to the sum of
/// the products' magnitudes. Checks forward and backward against each other without difference quotients.
template <class F>
double adjoint_error(const F& function, const Shape& shape) {
  const Tensor x = spread(shape).requires_grad_();
  const Tensor y = function(x);
  const Tensor g = spread(y.shape(), 0.53);
  y.backward(g);
  const auto product = [](const Tensor& a, const Tensor& b) {
    const auto p = a.to_vector<double>(), q = b.to_vector<double>();
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      sum += p[i] * q[i];
      size += std::abs(p[i] * q[i]);
    }
    return std::pair{sum, size};
  };
  const auto [forward, forward_size] = product(y, g);
  const auto [backward, backward_size] = product(x, x.grad());
  return std::abs(forward - backward) / std::max({forward_size, backward_size, 1e-300});
}

}  // namespace taper::test
