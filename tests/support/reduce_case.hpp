#pragma once

#include <functional>

#include "kernels/reduce.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"

// What a reduction gives by its definition.

namespace taper::test {

/// A shape, and a bit for each dimension that is reduced.
struct Case {
  Shape shape;
  std::uint32_t dims;
};

/// The elements of `x` that belong to each output, in row-major order, found coordinate by coordinate.
inline std::vector<Values> groups(const Case& c, const Values& x) {
  std::int64_t outputs = 1;
  for (int d = 0; d < c.shape.rank(); ++d) outputs *= (c.dims >> d & 1u) != 0 ? 1 : c.shape[d];
  std::vector<Values> g(std::size_t(outputs), Values{});
  for (std::int64_t i = 0; i < c.shape.numel(); ++i) {
    std::int64_t rest = i, out = 0, stride = 1;
    for (int d = c.shape.rank() - 1; d >= 0; --d) {
      const std::int64_t at = rest % c.shape[d];
      rest /= c.shape[d];
      if ((c.dims >> d & 1u) != 0) continue;
      out += at * stride;
      stride *= c.shape[d];
    }
    g[std::size_t(out)].push_back(x[std::size_t(i)]);
  }
  return g;
}

using Group = std::function<double(const Values&)>;

inline Values naive(const Case& c, const Values& x, const Group& f) {
  Values y;
  for (const Values& g : groups(c, x)) y.push_back(f(g));
  return y;
}

inline double sum_of(const Values& g, const std::function<double(double)>& f) {
  double s = 0;
  for (const double v : g) s += f(v);
  return s;
}

}  // namespace taper::test
