#include "base/threads.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "kernels/parallel.hpp"
#include "support/catch.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;

namespace {

struct KeptThreads {
  int kept = threads::max_threads();
  ~KeptThreads() { threads::set_max_threads(kept); }
};

/// What a kernel's elements give when each is the product of two numbers whose result is denormal.
std::vector<float> denormal_products(std::int64_t n) {
  const Tensor a = full({n}, 1e-30), b = full({n}, 1e-10);
  return (a * b).to_vector<float>();
}

}  // namespace

TEST_CASE("little work stays on one thread, much work gets as many as there are") {
  const KeptThreads kept;
  threads::set_max_threads(3);
  CHECK(threads::Team(1000, 1000).size() == 1);
  CHECK(threads::Team(1000, 1e15).size() == 3);
  CHECK(threads::Team(2, 1e15).size() == 2);
  CHECK(threads::Team(1, 1e15).size() == 1);
  threads::set_max_threads(1);
  CHECK(threads::Team(1000, 1e15).size() == 1);
}

TEST_CASE("kernels that run at a time share one budget of threads") {
  const KeptThreads kept;
  threads::set_max_threads(4);
  const threads::Team first(3, 1e15);
  CHECK(first.size() == 3);
  {
    const threads::Team second(1000, 1e15), third(1000, 1e15);
    CHECK(second.size() == 2);
    CHECK(third.size() == 1);
  }
  CHECK(threads::Team(1000, 1e15).size() == 2);
}

TEST_CASE("every unit runs once, whatever the team") {
  const KeptThreads kept;
  for (const int n : {1, 2, 3, 5}) {
    threads::set_max_threads(n);
    for (const std::int64_t units : {1, 2, 7, 1009}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(units));
      kernels::parallel_for(units, std::int64_t{1} << 40, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) ++runs[static_cast<std::size_t>(i)];
      });
      int once = 0;
      for (const auto& run : runs) once += run == 1;
      CHECK(once == units);
    }
  }
}

TEST_CASE("a thread that has done its units takes what a slower one has not begun") {
  const KeptThreads kept;
  threads::set_max_threads(2);
  if (threads::Team(2, 1e15).size() < 2) return;
  constexpr std::int64_t units = 1000, last_of_slow = units / 2 - 1;
  std::atomic<bool> is_taken{false};
  bool was_taken = false;
  kernels::parallel_for(units, std::int64_t{1} << 40, [&](std::int64_t first, std::int64_t last) {
    if (first == 0) {
      // The first thread is as slow as to wait for the end of its own units.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (!is_taken && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      was_taken = is_taken;
    }
    if (first <= last_of_slow && last_of_slow < last) is_taken = true;
  });
  CHECK(was_taken);
}

TEST_CASE("denormal numbers are kept by default, and flushed on all threads that work for one that flushes") {
  const KeptThreads kept;
  threads::set_max_threads(3);
  const std::int64_t n = 1 << 20;
  const auto count_zeros = [](const std::vector<float>& x) {
    std::int64_t zeros = 0;
    for (const float v : x) zeros += v == 0;
    return zeros;
  };
  CHECK(count_zeros(denormal_products(n)) == 0);
  REQUIRE(set_flush_denormal(true));
  const std::vector<float> flushed = denormal_products(n);
  REQUIRE(set_flush_denormal(false));
  CHECK(count_zeros(flushed) == n);
  CHECK(count_zeros(denormal_products(n)) == 0);
  {
    const threads::FlushDenormals flush(true);
    CHECK(threads::FloatMode::current().flushes_denormals());
  }
  CHECK_FALSE(threads::FloatMode::current().flushes_denormals());
}
