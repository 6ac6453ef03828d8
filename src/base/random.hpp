#pragma once

#include <array>
#include <cstdint>

namespace taper {

/// Named sequences of random numbers that never disturb each other: drawing more in one changes nothing in another.
enum class Stream : std::uint32_t { init, shuffle, dropout, split, data };
inline constexpr int kStreamCount = 5;

/// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): 128 random bits
/// that are a pure function of key and counter, so any element can be drawn alone, by any thread.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                              std::uint64_t counter_high) {
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  std::uint32_t c0 = std::uint32_t(counter_low), c1 = std::uint32_t(counter_low >> 32);
  std::uint32_t c2 = std::uint32_t(counter_high), c3 = std::uint32_t(counter_high >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = std::uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = std::uint32_t(p1);
    c2 = std::uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = std::uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// 64 random bits: element `position` of the stream under `seed`.
constexpr std::uint64_t random_bits(std::uint64_t seed, Stream stream, std::uint64_t position) {
  const auto block = philox(seed, position, std::uint64_t(stream));
  return (std::uint64_t{block[1]} << 32) | block[0];
}

/// A double in [0, 1) with 53 random bits, and a float in [0, 1) with 24.
constexpr double uniform_double(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }
constexpr float uniform_float(std::uint64_t bits) { return float(bits >> 40) * 0x1p-24f; }

/// Two independent standard normal numbers from the bits of one position (Box-Muller).
std::array<double, 2> normal_pair(std::uint64_t bits_a, std::uint64_t bits_b);

/// An integer in [0, n), n > 0, by multiplication; its bias is below n / 2^64.
constexpr std::uint64_t random_below(std::uint64_t bits, std::uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  return std::uint64_t((Wide(bits) * n) >> 64);
}

/// A position in one stream. Drawing reserves positions; the numbers follow from them.
struct Generator {
  std::uint64_t seed = 0;
  Stream stream = Stream::init;
  std::uint64_t position = 0;

  std::uint64_t next() { return random_bits(seed, stream, position++); }
  /// Takes `n` positions and returns the first.
  std::uint64_t reserve(std::uint64_t n) {
    const std::uint64_t first = position;
    position += n;
    return first;
  }
};

/// Shuffles `n` items in place (Fisher-Yates, from the back) with our own distribution, so every platform agrees.
template <class T>
void shuffle(T* items, std::int64_t n, Generator& generator) {
  for (std::int64_t i = n - 1; i > 0; --i) {
    const auto j = std::int64_t(random_below(generator.next(), std::uint64_t(i) + 1));
    const T kept = items[i];
    items[i] = items[j];
    items[j] = kept;
  }
}

}  // namespace taper
