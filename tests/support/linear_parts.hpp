#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

namespace taper::test {

/// Numbers in (-2, 2), no two nearer than 4 / n to each other and none nearer than 1.6 / n to 0, in a random order.
inline Tensor scattered(const Shape& shape, std::uint64_t seed) {
  const auto n = std::uint64_t(shape.numel());
  std::vector<double> values;
  for (std::uint64_t i = 0; i < n; ++i) values.push_back(-2 + 4 * (double(i) + 0.4) / double(n));
  for (std::uint64_t i = n; i > 1; --i)
    std::swap(values[i - 1], values[random_below(random_bits(seed, Stream::data, i), i)]);
  return from_data(values, shape);
}

struct AdjointReport {
  std::vector<std::size_t> linear;  ///< the leaves in which the function was found to be affine
  std::string problem;              ///< "" if <A x, y> = <x, A' y> for all of them
};

/// Whether the gradient of `run()` is the adjoint of its linear part, for every float64 leaf in which it is affine, the
/// others being held. `run` reads the leaves, whose values are changed and put back.
template <class Run>
AdjointReport check_adjoint(const Run& run, const std::vector<Tensor>& leaves) {
  AdjointReport report;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& leaf = leaves[i];
    const Tensor x = clone(leaf.detach()), other = scattered(x.shape(), 70 + i);
    const auto at = [&](const Tensor& value) {
      {
        NoGradGuard guard;
        leaf.copy_(value);
      }
      return run();
    };
    const auto copy_at = [&](const Tensor& value) { return clone(at(value).detach()); };  // may share the leaf's data
    const Tensor origin = copy_at(zeros_like(x)), there = copy_at(other), between = copy_at(x * 2.0 - other * 0.5);
    const Tensor y = at(x);
    if (!is_floating(y.dtype()) || !y.requires_grad() || y.numel() == 0) continue;
    const Tensor expected = y.detach() * 2.0 - there * 0.5 - origin * 0.5;
    const double size = y.detach().abs().max().item() + there.abs().max().item() + 1;
    if (!((between - expected).abs().max().item() <= 1e-12 * size)) continue;
    const Tensor dy = scattered(y.shape(), 77);
    const Tensor dx = autograd::grad({y}, {leaf}, {dy}, {.allow_unused = true})[0];
    if (!dx.defined()) continue;
    report.linear.push_back(i);
    const double left = ((y.detach() - origin) * dy).sum().item(), right = (dx * x).sum().item();
    const double scale = ((y.detach().abs() + origin.abs()) * dy.abs()).sum().item() + 1;
    if (!(std::abs(left - right) <= 1e-12 * scale))
      report.problem += "leaf " + std::to_string(i) + ": <A x, y> = " + std::to_string(left) +
                        ", <x, A' y> = " + std::to_string(right) + "; ";
  }
  return report;
}

}  // namespace taper::test
