#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/parallel.hpp"
#include "kernels/sum_terms.hpp"

namespace taper::kernels {

/// term(0) + ... + term(n - 1) in double, in parallel: blocks whose size depends on n alone, joined by a fixed tree.
/// `cost` is the number of elementary operations of one term.
template <class Term>
double sum_blocks(std::int64_t n, std::int64_t cost, const Term& term) {
  constexpr std::int64_t kSlots = 256;
  const std::int64_t block = std::max<std::int64_t>(4096, (n + kSlots - 1) / kSlots);
  const std::int64_t blocks = (n + block - 1) / block;
  if (blocks == 0) return 0;
  double slots[kSlots];
  // slot_b = sum of the terms of block b
  parallel_for(blocks, block * cost, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b)
      slots[b] = sum_terms(std::min(block, n - b * block), [&](std::int64_t i) { return term(b * block + i); });
  });
  tree_sum(slots, blocks, 1);
  return slots[0];
}

}  // namespace taper::kernels
