#include "machine_loops.hpp"

#include <cmath>
#include <cstdint>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr std::size_t kWidth = 64;
#elif defined(__AVX__)
constexpr std::size_t kWidth = 32;
#else
constexpr std::size_t kWidth = 16;
#endif

volatile double sink;

template <class T>
using Vector [[gnu::vector_size(kWidth)]] = T;

/// Independent chains of y = y b + c, enough of them to hide the latency.
template <class T>
double multiply_add() {
  constexpr int kChains = 10;
  constexpr auto kLinks = std::int64_t(kMultiplyAdds) / kChains;
  Vector<T> y[kChains], b, c;
  for (std::size_t lane = 0; lane < kWidth / sizeof(T); ++lane) {
    b[lane] = T(0.999);
    c[lane] = T(0.001);
    for (int i = 0; i < kChains; ++i) y[i][lane] = T(i);
  }
  // A chain whose value never changes would be left out, and counted.
  asm("" : "+m"(y));
  for (std::int64_t link = 0; link < kLinks; ++link)
    for (int i = 0; i < kChains; ++i) y[i] = y[i] * b + c;
  Vector<T> sum = y[0];
  for (int i = 1; i < kChains; ++i) sum += y[i];
  return double(sum[0]);
}

// Divisions and square roots, which one unit does several cycles each.

constexpr int kTurns = int(kDivisions) / int(kElements);

void divide(float* y) {
  for (int turn = 0; turn < kTurns; ++turn)
    for (std::size_t i = 0; i < kElements; ++i) y[i] = 1.5f / y[i];
}

void take_roots(float* y) {
  for (int turn = 0; turn < kTurns; ++turn)
    for (std::size_t i = 0; i < kElements; ++i) y[i] = std::sqrt(y[i]);
}

// Memory, eight vectors at a time.

using Lanes [[gnu::vector_size(kWidth), gnu::may_alias]] = std::int64_t;

void read(const char* from, std::size_t bytes) {
  const auto* x = reinterpret_cast<const Lanes*>(from);
  Lanes sum[8] = {};
  for (std::size_t n = bytes / kWidth / 8; n > 0; --n, x += 8)
    for (std::size_t i = 0; i < 8; ++i) sum[i] ^= x[i];
  for (std::size_t i = 1; i < 8; ++i) sum[0] ^= sum[i];
  sink = double(sum[0][0]);
}

void read_apart(const char* from, std::size_t bytes) {
  const auto* x = reinterpret_cast<const Lanes*>(from);
  Lanes sum[8] = {};
  const std::size_t part = bytes / kWidth / 8;
  for (std::size_t k = 0; k < part; k += 2)
    for (std::size_t i = 0; i < 8; ++i) sum[i] ^= x[i * part + k] ^ x[i * part + k + 1];
  for (std::size_t i = 1; i < 8; ++i) sum[0] ^= sum[i];
  sink = double(sum[0][0]);
}

void write(char* to, std::size_t bytes) {
  auto* y = reinterpret_cast<Lanes*>(to);
  const Lanes value = {1};
  for (std::size_t n = bytes / kWidth / 8; n > 0; --n, y += 8) {
    for (std::size_t i = 0; i < 8; ++i) y[i] = value;
    asm volatile("" ::: "memory");
  }
}

void copy(const char* from, char* to, std::size_t bytes) {
  const auto* x = reinterpret_cast<const Lanes*>(from);
  auto* y = reinterpret_cast<Lanes*>(to);
  for (std::size_t n = bytes / kWidth / 8; n > 0; --n, x += 8, y += 8) {
    for (std::size_t i = 0; i < 8; ++i) y[i] = x[i];
    asm volatile("" ::: "memory");
  }
}

void update(char* in, std::size_t bytes) {
  auto* y = reinterpret_cast<Lanes*>(in);
  const Lanes one = {1};
  for (std::size_t n = bytes / kWidth / 8; n > 0; --n, y += 8) {
    for (std::size_t i = 0; i < 8; ++i) y[i] ^= one;
    asm volatile("" ::: "memory");
  }
}

void stream(const char* from, char* to, std::size_t bytes) {
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < bytes; i += kWidth)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), from ? _mm512_load_si512(from + i) : _mm512_set1_epi32(1));
  _mm_sfence();
#elif defined(__AVX__)
  for (std::size_t i = 0; i < bytes; i += kWidth)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        from ? _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i)) : _mm256_set1_epi32(1));
  _mm_sfence();
#else
  if (from)
    copy(from, to, bytes);
  else
    write(to, bytes);
#endif
}

}  // namespace

// TAPER_MACHINE_LOOPS is the name of the set that this file is compiled for.
extern const MachineLoops TAPER_MACHINE_LOOPS = {
    kWidth, multiply_add<float>, multiply_add<double>, divide, take_roots, read, read_apart, write, copy, update,
    stream};
