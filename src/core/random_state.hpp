#pragma once

#include "base/random.hpp"

namespace taper::detail {

/// Takes `n` positions of a stream of the process-wide random numbers; the numbers follow from them. Any thread.
Generator take_positions(Stream stream, std::uint64_t n);

/// What `manual_seed` resets: a seed, and how far each stream has been drawn.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t positions[kStreamCount] = {};
};
RandomState random_state();
void set_random_state(const RandomState& state);

}  // namespace taper::detail
