#include "kernels/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace taper::kernels {

namespace {

using UnitRange = void (*)(const void*, std::int64_t, std::int64_t);

#ifdef _OPENMP

/// What each thread of a team has to do: consecutive units, of long work in pieces. A thread that has done its own
/// takes what is left of the others', which are slower or came later: cores differ, and some do other programs' work.
/// Short work is over before that pays for what comes from one core's cache to the other's.
class TeamWork {
 public:
  TeamWork(std::int64_t units, std::int64_t threads, double work)
      : units_(units), threads_(threads), pieces_(work < kLongWork ? 1 : kMostPieces) {
    thread_local std::vector<Next> kept;  // by the thread that calls, as a step allocates nothing
    if (std::ssize(kept) < threads) kept = std::vector<Next>(std::size_t(threads));
    next_ = kept.data();
    for (std::int64_t t = 0; t < threads; ++t) next_[t].piece.store(0, std::memory_order_relaxed);
  }

  /// Thread t's share, and then the next ones'.
  void work(std::int64_t t, UnitRange range, const void* body) const {
    for (std::int64_t i = 0; i < threads_; ++i, t = t + 1 < threads_ ? t + 1 : 0) {
      const std::int64_t first = start(t), n = start(t + 1) - first;
      for (int piece; (piece = next_[t].piece.fetch_add(1, std::memory_order_relaxed)) < pieces_;) {
        const std::int64_t begin = first + n - left(n, piece), end = first + n - left(n, piece + 1);
        if (begin < end) range(body, begin, end);
      }
    }
  }

 private:
  static constexpr double kLongWork = 1 << 22;  ///< elementary operations: half a millisecond of one thread
  static constexpr int kMostPieces = 4;
  struct alignas(64) Next {  // with a line of its own
    std::atomic<int> piece{0};
  };

  /// Where thread t's share begins. The last threads have a unit more: the last one is often smaller than the others.
  std::int64_t start(std::int64_t t) const {
    return t * (units_ / threads_) + std::max<std::int64_t>(0, t + units_ % threads_ - threads_);
  }
  /// What is left of n units after so many pieces, each half of what was there: few calls, and a short end.
  std::int64_t left(std::int64_t n, int pieces) const { return pieces < pieces_ ? n >> pieces : 0; }

  std::int64_t units_, threads_;
  int pieces_;
  Next* next_;
};

#endif

/// For more than one unit; by a team if that pays.
[[gnu::noinline]] void share(std::int64_t units, double work, UnitRange range, const void* body) {
#ifdef _OPENMP
  const threads::Team team(units, work);
  if (team.size() > 1) {
    const auto mode = threads::FloatMode::current();
    const TeamWork all(units, team.size(), work);
#pragma omp parallel num_threads(team.size())
    {
      const auto own = threads::FloatMode::current();
      mode.set();
      all.work(omp_get_thread_num(), range, body);
      own.set();
    }
    return;
  }
#endif
  (void)work;
  range(body, 0, units);
}

}  // namespace

void parallel_ranges(std::int64_t units, std::int64_t work_per_unit, UnitRange range, const void* body) {
  const double work = double(units) * double(work_per_unit);
  if (units > 1 && work >= threads::kSerialWork)
    share(units, work, range, body);
  else if (units > 0)
    range(body, 0, units);
}

}  // namespace taper::kernels
