#pragma once

#include <cstdint>

#include "base/random.hpp"

namespace taper::kernels {

// Random numbers as pure functions of (seed, stream, first position, element): element i depends on position
// first + i, so any number of threads, and any cut of the work, gives the same bits.

/// Where a fill starts; `Generator::reserve` gives `first`.
struct RandomStart {
  std::uint64_t seed;
  Stream stream;
  std::uint64_t first;
};

/// Uniform in [low, high): the rounding that could reach `high` is sent to the number below it.
template <class T>
void fill_uniform(const RandomStart& r, T* y, std::int64_t n, double low, double high);

/// Normal with the given mean and standard deviation. Elements come in pairs that use both their positions, so a fill
/// of n takes `normal_positions(n)` of them.
template <class T>
void fill_normal(const RandomStart& r, T* y, std::int64_t n, double mean, double std);
constexpr std::uint64_t normal_positions(std::int64_t n) { return std::uint64_t(n) + std::uint64_t(n & 1); }

/// Integers in [low, high), low < high.
void fill_randint(const RandomStart& r, std::int64_t* y, std::int64_t n, std::int64_t low, std::int64_t high);

/// `scale` with probability 1 - p, else 0: a dropout mask when scale is 1 / (1 - p).
template <class T>
void fill_dropout_mask(const RandomStart& r, T* y, std::int64_t n, double p, double scale);

}  // namespace taper::kernels
