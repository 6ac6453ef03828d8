#include "kernels/parallel.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace taper::kernels {

void parallel_ranges(std::int64_t units, double work, void (*range)(const void*, std::int64_t, std::int64_t),
                     const void* body) {
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
      const std::int64_t first = t * each + (t < rest ? t : rest);
      range(body, first, first + each + (t < rest ? 1 : 0));
      own.set();
    }
    return;
  }
#endif
  (void)work;
  range(body, 0, units);
}

}  // namespace taper::kernels
