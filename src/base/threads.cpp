#include "base/threads.hpp"

#include <atomic>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace taper::threads {

namespace {

int default_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

std::atomic<int>& limit() {
  static std::atomic<int> threads{default_threads()};
  return threads;
}

}  // namespace

int max_threads() noexcept { return limit().load(std::memory_order_relaxed); }

void set_max_threads(int n) noexcept { limit().store(n < 1 ? 1 : n, std::memory_order_relaxed); }

}  // namespace taper::threads
