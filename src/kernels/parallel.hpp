#pragma once

#include <cstdint>
#include <type_traits>

#include "base/threads.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace taper::kernels {

using threads::max_threads;
using threads::set_max_threads;

/// Becomes a 64-bit integer and nothing else: what takes it cannot have narrower bounds.
struct WideBound {
  template <class I, class = std::enable_if_t<std::is_same_v<I, std::int64_t>>>
  operator I() const;
};

/// Calls `body(first, last)` on consecutive ranges that cover `[0, units)`, in parallel when the total
/// work is worth a team of threads, which then treat denormal numbers as the caller does.
///
/// Where the ranges are cut depends on the number of threads, so a unit's result must not depend on
/// the range it came in: each unit writes its own outputs, and sums across units go to one slot a unit
/// that are joined afterwards (`tree_sum`). `body` must not throw.
template <class Body>
void parallel_for(std::int64_t units, std::int64_t work_per_unit, const Body& body) {
  static_assert(std::is_invocable_v<const Body&, WideBound, WideBound>, "the body must take 64-bit bounds");
#ifdef _OPENMP
  const double work = double(units) * double(work_per_unit);
  if (units > 1 && work >= threads::kSerialWork) {
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
        body(first, first + each + (t < rest ? 1 : 0));
        own.set();
      }
      return;
    }
  }
#endif
  (void)work_per_unit;
  if (units > 0) body(std::int64_t{0}, units);
}

/// Adds the `n` slots of `width` elements each by a binary tree of fixed shape; the sum ends in slot 0.
template <class T>
void tree_sum(T* slots, std::int64_t n, std::int64_t width) {
  for (std::int64_t gap = 1; gap < n; gap *= 2)
    for (std::int64_t i = 0; i + gap < n; i += 2 * gap)
      for (std::int64_t j = 0; j < width; ++j) slots[i * width + j] += slots[(i + gap) * width + j];
}

}  // namespace taper::kernels
