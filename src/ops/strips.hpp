#pragma once

#include <cstdint>
#include <span>

namespace taper {

/// An array seen as [outer, n, inner] around one of its dimensions.
struct Strips {
  std::int64_t outer = 1, n = 1, inner = 1;
};

inline Strips strips_of(std::span<const std::int64_t> shape, int dim) {
  Strips s;
  for (int d = 0; d < int(shape.size()); ++d) (d < dim ? s.outer : d == dim ? s.n : s.inner) *= shape[std::size_t(d)];
  return s;
}

}  // namespace taper
