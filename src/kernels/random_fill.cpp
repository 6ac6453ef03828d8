#include "kernels/random_fill.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/vectors.hpp"

namespace taper::kernels {

namespace {

constexpr int kCost = kVectorWidth > 16 ? 4 : 24;

#if defined(__AVX2__)

// Words of 32 bits in lanes of 64, above which there may be anything.
using Words = Several<std::uint64_t, kVectorWidth / 8>::type;

inline Words times_word(Words a, std::uint32_t factor) {
#if defined(__AVX512F__)
  return Words(_mm512_maskz_mul_epu32(0xff, __m512i(a), _mm512_set1_epi64(factor)));
#else
  return Words(_mm256_mul_epu32(__m256i(a), _mm256_set1_epi64x(factor)));
#endif
}

/// `random_bits` of each position: `philox` lane by lane.
inline Words random_bits_of(const RandomStart& r, Words position) {
  Words c0 = position, c1 = position >> 32, c2 = Words{} + std::uint64_t(r.stream), c3{};
  std::uint32_t k0 = std::uint32_t(r.seed), k1 = std::uint32_t(r.seed >> 32);
#pragma GCC unroll 1
  for (int round = 0; round < 10; ++round) {
    const Words p0 = times_word(c0, 0xD2511F53u), p1 = times_word(c2, 0xCD9E8D57u);
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c1 << 32 | (c0 & 0xffffffffu);
}

#endif

/// Numbers that are drawn together.
constexpr std::int64_t kDrawn = 64;

/// The bits of the elements [i, i + n), at most `kDrawn`; what is behind them in `bits` may be overwritten.
[[gnu::noinline]] void draw(const RandomStart& r, std::int64_t i, std::int64_t n, std::uint64_t* bits) {
  const std::uint64_t first = r.first + std::uint64_t(i);
#if defined(__AVX2__)
  constexpr std::uint64_t kCount[] = {0, 1, 2, 3, 4, 5, 6, 7};
  constexpr int kAll = kVectorWidth / 8;
  Words position;
  std::memcpy(&position, kCount, sizeof position);
  position += first;
  for (std::int64_t k = 0; k < n; k += 2 * kAll, position += 2 * kAll) {
    const Words some = random_bits_of(r, position), more = random_bits_of(r, position + kAll);
    std::memcpy(bits + k, &some, sizeof some);
    std::memcpy(bits + k + kAll, &more, sizeof more);
  }
#else
  for (std::int64_t k = 0; k < n; ++k) bits[k] = random_bits(r.seed, r.stream, first + std::uint64_t(k));
#endif
}

/// y_i = value(the bits of element i)
template <class T, class Value>
void fill(const RandomStart& r, T* y, std::int64_t n, const Value& value) {
  parallel_for(n, kCost, [=](std::int64_t first, std::int64_t last) {
    std::uint64_t bits[kDrawn];
    for (std::int64_t i = first; i < last; i += kDrawn) {
      const std::int64_t count = std::min(kDrawn, last - i);
      draw(r, i, count, bits);
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t k = 0; k < count; ++k) y[i + k] = value(bits[k]);
    }
  });
}

}  // namespace

template <class T>
void fill_uniform(const RandomStart& r, T* y, std::int64_t n, double low, double high) {
  const T a = T(low), b = T(high), top = std::nextafter(b, a);
  // y_i = low + (high - low) u_i
  fill(r, y, n, [=](std::uint64_t bits) {
    T u;
    if constexpr (std::is_same_v<T, float>)
      u = uniform_float(bits);
    else
      u = uniform_double(bits);
    const T v = a + (b - a) * u;
    return v < b ? v : top;
  });
}

template <class T>
void fill_normal(const RandomStart& r, T* y, std::int64_t n, double mean, double std) {
  // (y_2k, y_2k+1) = mean + std (a normal pair)
  parallel_for(ceil_div(n, kDrawn), 48 * kDrawn, [=](std::int64_t first, std::int64_t last) {
    std::uint64_t bits[kDrawn];
    for (std::int64_t i = first * kDrawn, end = std::min(n, last * kDrawn); i < end; i += 2) {
      const std::int64_t k = i % kDrawn;
      if (k == 0) draw(r, i, std::min(kDrawn, end + 1 - i), bits);
      const auto z = normal_pair(bits[k], bits[k + 1]);
      y[i] = T(mean + std * z[0]);
      if (i + 1 < n) y[i + 1] = T(mean + std * z[1]);
    }
  });
}

void fill_randint(const RandomStart& r, std::int64_t* y, std::int64_t n, std::int64_t low, std::int64_t high) {
  const std::uint64_t range = std::uint64_t(high) - std::uint64_t(low);
  // y_i = low + floor((high - low) u_i)
  fill(r, y, n, [=](std::uint64_t bits) { return std::int64_t(std::uint64_t(low) + random_below(bits, range)); });
}

template <class T>
void fill_dropout_mask(const RandomStart& r, T* y, std::int64_t n, double p, double scale) {
  const T kept = T(scale);
  // u_i >= p compares whole numbers: u_i is one, times 2^-53
  const std::int64_t least = std::int64_t(std::ceil(p * 0x1p53));
  // y_i = scale [u_i >= p]
  fill(r, y, n, [=](std::uint64_t bits) { return kept * T(std::int64_t(bits >> 11) >= least); });
}

#define TAPER_INSTANTIATE_RANDOM(T)                                                    \
  template void fill_uniform<T>(const RandomStart&, T*, std::int64_t, double, double); \
  template void fill_normal<T>(const RandomStart&, T*, std::int64_t, double, double);  \
  template void fill_dropout_mask<T>(const RandomStart&, T*, std::int64_t, double, double)
TAPER_INSTANTIATE_RANDOM(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_RANDOM(double);
#endif

}  // namespace taper::kernels
