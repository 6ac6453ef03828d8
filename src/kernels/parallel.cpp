#include "kernels/parallel.hpp"

#include <algorithm>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace taper::kernels {

namespace {

using UnitRange = void (*)(const void*, std::int64_t, std::int64_t);

/// For more than one unit; by a team if that pays.
[[gnu::noinline]] void share(std::int64_t units, double work, UnitRange range, const void* body) {
#ifdef _OPENMP
  const threads::Team team(units, work);
  if (team.size() > 1) {
    const auto mode = threads::FloatMode::current();
#pragma omp parallel num_threads(team.size())
    {
      const auto own = threads::FloatMode::current();
      mode.set();
      const std::int64_t n = omp_get_num_threads(), t = omp_get_thread_num();
      const std::int64_t each = units / n, rest = units % n;
      // The last threads take one more: the last unit is often smaller than the others.
      const auto start = [&](std::int64_t i) { return i * each + std::max<std::int64_t>(0, i + rest - n); };
      range(body, start(t), start(t + 1));
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
