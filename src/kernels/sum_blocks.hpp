#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ceil_div.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

/// The sum of `of_block(first, size)` for consecutive blocks that cover n terms, in parallel: their size depends on n
/// alone, and they are joined by a fixed tree. `cost` is the number of elementary operations of one term.
template <class Block>
double sum_of_blocks(std::int64_t n, std::int64_t cost, const Block& of_block) {
  constexpr std::int64_t kSlots = 256;
  const std::int64_t block = std::max<std::int64_t>(4096, ceil_div(n, kSlots));
  const std::int64_t blocks = ceil_div(n, block);
  if (blocks == 0) return 0;
  double slots[kSlots];
  parallel_for(blocks, block * cost, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) slots[b] = of_block(b * block, std::min(block, n - b * block));
  });
  tree_sum(slots, blocks, 1);
  return slots[0];
}

}  // namespace taper::kernels
