// What one core of this machine can do at most, as JSON: the bounds that rows are held against.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

namespace {

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// What one of fifty short runs beats: undisturbed by other programs, and not a stroke of luck.
template <class Body>
double shortest(double total, const Body& body) {
  body();
  std::vector<double> taken;
  for (const double end = seconds() + total; seconds() < end;) {
    const double start = seconds();
    body();
    taken.push_back(seconds() - start);
  }
  const auto best = taken.begin() + std::ptrdiff_t(taken.size() / 50);
  std::nth_element(taken.begin(), best, taken.end());
  return *best;
}

volatile double sink;

// Arithmetic: independent chains of y = y b + c, enough of them to hide the latency.

constexpr int kChains = 10;
constexpr std::int64_t kLinks = 40000;

template <class Vector, class T>
[[gnu::always_inline]] inline T multiply_add() {
  Vector y[kChains], b, c;
  for (std::size_t lane = 0; lane < sizeof(Vector) / sizeof(T); ++lane) {
    b[lane] = T(0.999);
    c[lane] = T(0.001);
    for (int i = 0; i < kChains; ++i) y[i][lane] = T(i);
  }
  // A chain whose value never changes would be left out, and counted.
  asm("" : "+m"(y));
  for (std::int64_t link = 0; link < kLinks; ++link)
    for (int i = 0; i < kChains; ++i) y[i] = y[i] * b + c;
  Vector sum = y[0];
  for (int i = 1; i < kChains; ++i) sum += y[i];
  return sum[0];
}

template <class T>
using Wide [[gnu::vector_size(64)]] = T;
template <class T>
using Middle [[gnu::vector_size(32)]] = T;
template <class T>
using Narrow [[gnu::vector_size(16)]] = T;

#ifdef __x86_64__
template <class T>
[[gnu::target("avx512f")]] T multiply_add_512() {
  return multiply_add<Wide<T>, T>();
}
template <class T>
[[gnu::target("avx2,fma")]] T multiply_add_256() {
  return multiply_add<Middle<T>, T>();
}
#define EACH_LEVEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EACH_LEVEL
#endif

template <class T>
double peak() {
  const auto flops = [](std::size_t bytes, T (*run)()) {
    return 2.0 * kChains * kLinks * double(bytes / sizeof(T)) / shortest(0.3, [&] { sink = double(run()); });
  };
  double best = flops(16, multiply_add<Narrow<T>, T>);
#ifdef __x86_64__
  if (__builtin_cpu_supports("fma")) best = std::max(best, flops(32, multiply_add_256<T>));
  if (__builtin_cpu_supports("avx512f")) best = std::max(best, flops(64, multiply_add_512<T>));
#endif
  return best;
}

// Divisions and square roots, which one unit does several cycles each.

constexpr std::size_t kElements = 512;
constexpr int kTurns = 500;

EACH_LEVEL void divide(float* y) {
  for (int turn = 0; turn < kTurns; ++turn)
    for (std::size_t i = 0; i < kElements; ++i) y[i] = 1.5f / y[i];
}

EACH_LEVEL void take_roots(float* y) {
  for (int turn = 0; turn < kTurns; ++turn)
    for (std::size_t i = 0; i < kElements; ++i) y[i] = std::sqrt(y[i]);
}

/// Elements a second.
double rate(void (*function)(float*)) {
  alignas(64) float y[kElements];
  for (std::size_t i = 0; i < kElements; ++i) y[i] = 1 + float(i) / kElements;
  return double(kElements) * kTurns / shortest(0.1, [&] { function(y); });
}

// Memory.

constexpr std::size_t kMegabyte = std::size_t(1) << 20;

using Lanes [[gnu::vector_size(64)]] = std::int64_t;

/// Blocks of 8 x 64 bytes.
EACH_LEVEL void read(const Lanes* x, std::size_t blocks) {
  Lanes sum[8] = {};
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t i = 0; i < 8; ++i) sum[i] ^= x[8 * b + i];
  for (std::size_t i = 1; i < 8; ++i) sum[0] ^= sum[i];
  sink = double(sum[0][0]);
}

/// The same from eight places at a time: more lines are then on their way from memory.
EACH_LEVEL void read_apart(const Lanes* x, std::size_t blocks) {
  Lanes sum[8] = {};
  const std::size_t part = blocks / 8 * 8;
  for (std::size_t b = 0; b < part; b += 2)
    for (std::size_t i = 0; i < 8; ++i) sum[i] ^= x[i * part + b] ^ x[i * part + b + 1];
  for (std::size_t i = 1; i < 8; ++i) sum[0] ^= sum[i];
  sink = double(sum[0][0]);
}

EACH_LEVEL void write(Lanes* y, std::size_t blocks) {
  const Lanes value = {1};
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t i = 0; i < 8; ++i) y[8 * b + i] = value;
    asm volatile("" ::: "memory");
  }
}

EACH_LEVEL void copy(const Lanes* x, Lanes* y, std::size_t blocks) {
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t i = 0; i < 8; ++i) y[8 * b + i] = x[8 * b + i];
    asm volatile("" ::: "memory");
  }
}

EACH_LEVEL void update(Lanes* y, std::size_t blocks) {
  const Lanes one = {1};
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t i = 0; i < 8; ++i) y[8 * b + i] ^= one;
    asm volatile("" ::: "memory");
  }
}

#ifdef __x86_64__
/// Past the caches.
__attribute__((target("avx512f"))) void stream_512(const Lanes* x, Lanes* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) _mm512_stream_si512((__m512i*)(y + i), x ? (__m512i)x[i] : _mm512_set1_epi32(1));
  _mm_sfence();
}
#endif

struct Bandwidth {
  double read, write, copy;
  double update;  ///< in place; each byte counts as read and as written
};

/// Bytes a second, read and written together, of data of so many bytes that is walked again and again.
Bandwidth bandwidth(Lanes* memory, std::size_t bytes) {
  // What is small is walked several times in one timed run.
  const std::size_t passes = std::max<std::size_t>(1, (std::size_t(1) << 20) / bytes), blocks = bytes / 1024 * 2;
  const auto rate = [&](const auto& body) {
    return double(blocks * 512 * passes) / shortest(0.1, [&] {
             for (std::size_t i = 0; i < passes; ++i) {
               body();
               asm volatile("" ::: "memory");
             }
           });
  };
  Lanes* const middle = memory + blocks * 4;
  Bandwidth found{rate([&] { read(memory, blocks); }), rate([&] { write(memory, blocks); }),
                  rate([&] { copy(memory, middle, blocks / 2); }), 2 * rate([&] { update(memory, blocks); })};
  if (bytes >= 8 * kMegabyte) found.read = std::max(found.read, rate([&] { read_apart(memory, blocks); }));
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && bytes >= (std::size_t(1) << 21)) {
    found.write = std::max(found.write, rate([&] { stream_512(nullptr, memory, blocks * 8); }));
    found.copy = std::max(found.copy, rate([&] { stream_512(memory, middle, blocks * 4); }));
  }
#endif
  return found;
}

/// Bytes of the data cache of this level as the kernel tells, 0 where it does not.
long cache_size(int level) {
  for (int i = 0; i < 6; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    int of = 0;
    long kilobytes = 0;
    std::string kind;
    if (!(std::ifstream(folder + "level") >> of) || of != level) continue;
    if (std::ifstream(folder + "type") >> kind && kind == "Instruction") continue;
    if (std::ifstream(folder + "size") >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Threads.

/// Seconds that an empty parallel region of two threads takes, by the wall: half of the regions took less.
double fork_cost() {
#ifdef _OPENMP
  std::vector<double> taken;
  for (int i = 0; i < 2001; ++i) {
    const double start = seconds();
#pragma omp parallel num_threads(2)
    asm volatile("" ::: "memory");
    taken.push_back(seconds() - start);
  }
  std::nth_element(taken.begin(), taken.begin() + 1000, taken.end());
  return taken[1000];
#else
  return 0;
#endif
}

}  // namespace

int main() {
  std::printf("{\n  \"peak_float32\": %.4g,\n  \"peak_float64\": %.4g,\n", peak<float>(), peak<double>());
  std::printf("  \"divisions\": %.4g,\n  \"roots\": %.4g,\n", rate(divide), rate(take_roots));
  // Within the first level, within the second, and from there on steps: the last level may be shared with other
  // programs, so where it ends must be seen.
  std::vector<std::size_t> sizes;
  if (const auto size = std::size_t(cache_size(1)); size > 0) sizes = {size / 2, size * 2};
  if (const auto size = std::size_t(cache_size(2)); size > 0) sizes.push_back(size / 2);
  for (std::size_t size = kMegabyte * 2; size < 2 * std::size_t(std::max(cache_size(3), 32 * long(kMegabyte)));
       size *= 2) {
    sizes.push_back(size);
    sizes.push_back(size / 2 * 3);
  }
  sizes.push_back(256 * kMegabyte);
  auto* memory = static_cast<Lanes*>(::operator new(sizes.back(), std::align_val_t(4096)));
  std::memset(static_cast<void*>(memory), 1, sizes.back());
  std::printf("  \"bandwidths\": [\n");
  for (const std::size_t size : sizes) {
    const Bandwidth found = bandwidth(memory, size);
    std::printf("    {\"size\": %zu, \"read\": %.4g, \"write\": %.4g, \"copy\": %.4g, \"update\": %.4g}%s\n", size,
                found.read, found.write, found.copy, found.update, size == sizes.back() ? "" : ",");
  }
  std::printf("  ],\n  \"fork\": %.3g\n}\n", fork_cost());
  ::operator delete(memory, std::align_val_t(4096));
}
