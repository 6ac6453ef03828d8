#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ceil_div.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

/// The sum of a block of terms, by a body that is known by its address.
using BlockSum = double (*)(const void* body, std::int64_t first, std::int64_t size);

/// The sum of `of_block(body, first, size)` for consecutive blocks that cover n terms, in parallel: their size depends
/// on n alone, and they are joined by a fixed tree. `cost` is the number of elementary operations of one term.
[[gnu::noinline]] inline double join_blocks(std::int64_t n, std::int64_t cost, BlockSum of_block, const void* body) {
  constexpr std::int64_t kSlots = 256;
  const std::int64_t block = std::max<std::int64_t>(4096, ceil_div(n, kSlots));
  const std::int64_t blocks = ceil_div(n, block);
  if (blocks == 0) return 0;
  double slots[kSlots];
  parallel_for(blocks, block * cost, [=, to = slots](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) to[b] = of_block(body, b * block, std::min(block, n - b * block));
  });
  tree_sum(slots, blocks, 1);
  return slots[0];
}

/// The same for any `of_block(first, size)`.
template <class Block>
double sum_of_blocks(std::int64_t n, std::int64_t cost, const Block& of_block) {
  const BlockSum sum = [](const void* body, std::int64_t first, std::int64_t size) {
    return (*static_cast<const Block*>(body))(first, size);
  };
  return join_blocks(n, cost, sum, &of_block);
}

}  // namespace taper::kernels
