#pragma once

#include <cstdint>
#include <type_traits>

#include "base/threads.hpp"

namespace taper::kernels {

using threads::max_threads;
using threads::set_max_threads;

/// Becomes a 64-bit integer and nothing else: what takes it cannot have narrower bounds.
struct WideBound {
  template <class I, class = std::enable_if_t<std::is_same_v<I, std::int64_t>>>
  operator I() const;
};

/// Calls `range(body, first, last)` on consecutive ranges that cover `[0, units)`: in parallel when the total work is
/// worth a team of threads, which then treat denormal numbers as the caller does.
void parallel_ranges(std::int64_t units, std::int64_t work_per_unit,
                     void (*range)(const void*, std::int64_t, std::int64_t), const void* body);

/// Calls a range of a body that is known by its address. Out of line, so that every body is compiled once.
template <class Body>
[[gnu::noinline]] void run_range(const void* body, std::int64_t first, std::int64_t last) {
  const Body copy = *static_cast<const Body*>(body);  // of which the compiler knows that no result overlaps it
  copy(first, last);
}

/// Calls `body(first, last)` on consecutive ranges that cover `[0, units)`, in parallel as `parallel_ranges` says.
///
/// Where the ranges are cut depends on the number of threads, so a unit's result must not depend on
/// the range it came in: each unit writes its own outputs, and sums across units go to one slot a unit
/// that are joined afterwards (`tree_sum`). `body` is copied and must not throw.
template <class Body>
inline void parallel_for(std::int64_t units, std::int64_t work_per_unit, const Body& body) {
  static_assert(std::is_invocable_v<const Body&, WideBound, WideBound>, "the body must take 64-bit bounds");
  parallel_ranges(units, work_per_unit, run_range<Body>, &body);  // hundreds of callers: all else is behind it
}

/// Adds the `n` slots of `width` elements each by a binary tree of fixed shape; the sum ends in slot 0.
template <class T>
void tree_sum(T* slots, std::int64_t n, std::int64_t width) {
  for (std::int64_t gap = 1; gap < n; gap *= 2)
    for (std::int64_t i = 0; i + gap < n; i += 2 * gap)
      for (std::int64_t j = 0; j < width; ++j) slots[i * width + j] += slots[(i + gap) * width + j];
}

}  // namespace taper::kernels
