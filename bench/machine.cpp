// What one core of this machine can do at most, as JSON: the bounds that rows are held against.
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "machine_loops.hpp"

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

const std::vector<const MachineLoops*> kLoops = usable_loops();

double peak(double (*MachineLoops::*multiply_add)(), std::size_t bytes) {
  double best = 0;
  for (const MachineLoops* const loops : kLoops) {
    const double flops = 2 * kMultiplyAdds * double(loops->width / bytes);
    best = std::max(best, flops / shortest(0.3, [&] { sink = (loops->*multiply_add)(); }));
  }
  return best;
}

/// Elements a second.
double rate(void (*function)(float*)) {
  alignas(64) float y[kElements];
  for (std::size_t i = 0; i < kElements; ++i) y[i] = 1 + float(i) / kElements;
  return kDivisions / shortest(0.1, [&] { function(y); });
}

constexpr std::size_t kMegabyte = std::size_t(1) << 20;

struct Bandwidth {
  double read, write, copy;
  double update;  ///< in place; each byte counts as read and as written
};

/// Bytes a second, read and written together, of data of so many bytes that is walked again and again.
Bandwidth bandwidth(char* memory, std::size_t bytes) {
  // What is small is walked several times in one timed run.
  const std::size_t passes = std::max<std::size_t>(1, kMegabyte / bytes), walked = bytes / 1024 * 1024;
  const auto rate = [&](const auto& body) {
    return double(walked * passes) / shortest(0.1, [&] {
             for (std::size_t i = 0; i < passes; ++i) {
               body();
               asm volatile("" ::: "memory");
             }
           });
  };
  const MachineLoops& loops = *kLoops.front();
  const std::size_t half = walked / 2;
  char* const middle = memory + half;
  Bandwidth found{rate([&] { loops.read(memory, walked); }), rate([&] { loops.write(memory, walked); }),
                  rate([&] { loops.copy(memory, middle, half); }), 2 * rate([&] { loops.update(memory, walked); })};
  if (bytes >= 8 * kMegabyte) found.read = std::max(found.read, rate([&] { loops.read_apart(memory, walked); }));
  if (bytes >= 2 * kMegabyte) {
    found.write = std::max(found.write, rate([&] { loops.stream(nullptr, memory, walked); }));
    found.copy = std::max(found.copy, rate([&] { loops.stream(memory, middle, half); }));
  }
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
  std::printf("{\n  \"peak_float32\": %.4g,\n  \"peak_float64\": %.4g,\n",
              peak(&MachineLoops::multiply_add_float, sizeof(float)),
              peak(&MachineLoops::multiply_add_double, sizeof(double)));
  std::printf("  \"divisions\": %.4g,\n  \"roots\": %.4g,\n", rate(kLoops.front()->divide),
              rate(kLoops.front()->take_roots));
  // Within the first level, within the second, and from there on steps: the last level may be shared with other
  // programs, so where it ends must be seen.
  std::vector<std::size_t> sizes;
  if (const auto size = std::size_t(cache_size(1)); size > 0) sizes = {size / 2, size * 2};
  if (const auto size = std::size_t(cache_size(2)); size > 0) sizes.push_back(size / 2);
  for (std::size_t size = kMegabyte * 2; size < 4 * std::size_t(std::max(cache_size(3), 32 * long(kMegabyte)));
       size *= 2) {
    sizes.push_back(size);
    sizes.push_back(size / 2 * 3);
  }
  if (sizes.back() < 256 * kMegabyte) sizes.push_back(256 * kMegabyte);
  auto* memory = static_cast<char*>(::operator new(sizes.back(), std::align_val_t(4096)));
  std::memset(memory, 1, sizes.back());
  std::printf("  \"bandwidths\": [\n");
  for (const std::size_t size : sizes) {
    const Bandwidth found = bandwidth(memory, size);
    std::printf("    {\"size\": %zu, \"read\": %.4g, \"write\": %.4g, \"copy\": %.4g, \"update\": %.4g}%s\n", size,
                found.read, found.write, found.copy, found.update, size == sizes.back() ? "" : ",");
  }
  std::printf("  ],\n  \"fork\": %.3g\n}\n", fork_cost());
  ::operator delete(memory, std::align_val_t(4096));
}
