#include "core/random_state.hpp"

#include <atomic>

#include "core/capture.hpp"
#include "taper/creation.hpp"

namespace taper {

namespace {

struct Streams {
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::uint64_t> positions[kStreamCount] = {};
};
constinit Streams current;

}  // namespace

namespace detail {

Generator take_positions(Stream stream, std::uint64_t n) {
  const Generator taken{current.seed.load(std::memory_order_relaxed), stream,
                        current.positions[int(stream)].fetch_add(n, std::memory_order_relaxed)};
  if (recorder) [[unlikely]]
    recorder->drew(taken, n);
  return taken;
}

RandomState random_state() {
  RandomState state{.seed = current.seed.load(std::memory_order_relaxed)};
  for (int i = 0; i < kStreamCount; ++i) state.positions[i] = current.positions[i].load(std::memory_order_relaxed);
  return state;
}

void set_random_state(const RandomState& state) {
  if (recorder) [[unlikely]]
    recorder->refuse("the random numbers were set inside the step: expected manual_seed() outside, got one inside");
  current.seed.store(state.seed, std::memory_order_relaxed);
  for (int i = 0; i < kStreamCount; ++i) current.positions[i].store(state.positions[i], std::memory_order_relaxed);
}

}  // namespace detail

void manual_seed(std::uint64_t seed) { detail::set_random_state({.seed = seed}); }

}  // namespace taper
