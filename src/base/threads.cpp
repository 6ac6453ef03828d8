#include "base/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

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

/// Threads at work for the library besides those that called it.
constinit std::atomic<int> helpers{0};

#ifdef _OPENMP

/// Elementary operations in a nanosecond, roughly: what vector code does.
constexpr double kWorkPerNanosecond = 8;

using Clock = std::chrono::steady_clock;

/// Nanoseconds that starting and joining a team of `n` takes at best, here and now. Threads just made may wait for the
/// processor of the one that made them for some regions, before they are given their own.
double measure_fork(int n) {
  constexpr int kSamples = 32, kLeast = 5;
  constexpr double kEnough = 1e6;
  double best = 1e9, total = 0;
  for (int i = 0; i < kSamples && (i < kLeast || total < kEnough); ++i) {
    const auto start = Clock::now();
#pragma omp parallel num_threads(n)
    {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the region is not left out
    }
    const double time = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    if (i == 0) continue;  // makes the threads
    total += time;
    best = std::min(best, time);
  }
  return best;
}

/// What a team costs, measured at the first work that might be worth one, and again when the limit changes. A cost that
/// tells of processors busy with something else is measured again from time to time: they may be free by now.
double fork_cost() {
  constexpr double kBusy = 50e3;
  constexpr std::int64_t kPauses = 30;  // of a measurement's length between two
  static std::atomic<int> measured_for{0};
  static std::atomic<double> cost{0};
  static std::atomic<std::int64_t> next{0};
  const int threads = max_threads();
  const auto now = [] { return std::int64_t(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count()); };
  const bool known = measured_for.load(std::memory_order_acquire) == threads;
  if (!known || (cost.load(std::memory_order_relaxed) > kBusy && now() > next.load(std::memory_order_relaxed))) {
    const std::int64_t start = now();
    cost.store(measure_fork(threads), std::memory_order_relaxed);
    const std::int64_t end = now();
    next.store(end + kPauses * (end - start), std::memory_order_relaxed);
    measured_for.store(threads, std::memory_order_release);
  }
  return cost.load(std::memory_order_relaxed);
}

/// The threads that the work is worth: a team pays when each has eight times the cost of starting it to do. What they
/// work on comes from one processor's caches to the others', and the cost is what it is at best.
int worth(std::int64_t units, double work) {
  const double each = 8 * fork_cost() * kWorkPerNanosecond;
  const double n = std::min({work / each, double(units), double(max_threads())});
  return n < 2 ? 1 : int(n);
}

#endif

}  // namespace

int max_threads() noexcept { return limit().load(std::memory_order_relaxed); }

void set_max_threads(int n) noexcept { limit().store(n < 1 ? 1 : n, std::memory_order_relaxed); }

Team::Team(std::int64_t units, double work) noexcept : size_(1) {
#ifdef _OPENMP
  if (max_threads() < 2 || omp_in_parallel()) return;
  const int wanted = worth(units, work) - 1;
  if (wanted < 1) return;
  const int before = helpers.fetch_add(wanted, std::memory_order_relaxed);
  const int granted = std::clamp(max_threads() - 1 - before, 0, wanted);
  if (granted < wanted) helpers.fetch_sub(wanted - granted, std::memory_order_relaxed);
  size_ += granted;
#else
  (void)units, (void)work;
#endif
}

Team::~Team() {
  if (size_ > 1) helpers.fetch_sub(size_ - 1, std::memory_order_relaxed);
}

}  // namespace taper::threads
