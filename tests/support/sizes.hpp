#pragma once

#include <algorithm>
#include <iterator>

#include "taper/nn/sizes.hpp"

namespace taper::test {

/// The last `N` of the values.
template <int N, class Range>
nn::Sizes<N> sizes_of(const Range& values) {
  nn::Sizes<N> sizes;
  std::copy(std::end(values) - N, std::end(values), sizes.values.begin());
  return sizes;
}

}  // namespace taper::test
