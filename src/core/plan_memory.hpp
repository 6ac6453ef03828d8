#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace taper::detail {

/// Memory that is needed from one step of a sequence to another, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::int64_t first = 0, last = 0;
  std::size_t offset = 0;  ///< where `place` puts it
};

/// Puts arrays into one block so that no two that are needed at the same time overlap: the largest first, each into the
/// lowest gap that is free for its whole life, in its middle unless the block gets larger than with all at their gap's
/// beginning. Returns the size of the block; offsets and size are multiples of 64.
std::size_t place(std::span<Lifetime> arrays);

/// The bytes needed at the same time, where they are most, each array rounded up to a multiple of 64.
std::size_t largest_need(std::span<const Lifetime> arrays);

}  // namespace taper::detail
