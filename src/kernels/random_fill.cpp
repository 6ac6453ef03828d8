#include "kernels/random_fill.hpp"

#include <cmath>
#include <type_traits>

#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

constexpr int kCost = 24;

std::uint64_t bits_at(const RandomStart& r, std::int64_t i) {
  return random_bits(r.seed, r.stream, r.first + std::uint64_t(i));
}

}  // namespace

template <class T>
void fill_uniform(const RandomStart& r, T* y, std::int64_t n, double low, double high) {
  const T a = T(low), b = T(high), top = std::nextafter(b, a);
  // y_i = low + (high - low) u_i
  parallel_for(n, kCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      T u;
      if constexpr (std::is_same_v<T, float>)
        u = uniform_float(bits_at(r, i));
      else
        u = uniform_double(bits_at(r, i));
      const T v = a + (b - a) * u;
      y[i] = v < b ? v : top;
    }
  });
}

template <class T>
void fill_normal(const RandomStart& r, T* y, std::int64_t n, double mean, double std) {
  // (y_2k, y_2k+1) = mean + std (a normal pair)
  parallel_for((n + 1) / 2, 4 * kCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t pair = first; pair < last; ++pair) {
      const std::int64_t i = 2 * pair;
      const auto z = normal_pair(bits_at(r, i), bits_at(r, i + 1));
      y[i] = T(mean + std * z[0]);
      if (i + 1 < n) y[i + 1] = T(mean + std * z[1]);
    }
  });
}

void fill_randint(const RandomStart& r, std::int64_t* y, std::int64_t n, std::int64_t low, std::int64_t high) {
  const std::uint64_t range = std::uint64_t(high) - std::uint64_t(low);
  // y_i = low + floor((high - low) u_i)
  parallel_for(n, kCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      y[i] = std::int64_t(std::uint64_t(low) + random_below(bits_at(r, i), range));
  });
}

template <class T>
void fill_dropout_mask(const RandomStart& r, T* y, std::int64_t n, double p, double scale) {
  const T kept = T(scale);
  // u_i >= p compares whole numbers: u_i is one, times 2^-53
  const std::int64_t least = std::int64_t(std::ceil(p * 0x1p53));
  // y_i = scale [u_i >= p]
  parallel_for(n, kCost, [=](std::int64_t first, std::int64_t last) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = first; i < last; ++i) y[i] = std::int64_t(bits_at(r, i) >> 11) >= least ? kept : T(0);
  });
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
