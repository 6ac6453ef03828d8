#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/parallel.hpp"
#include "kernels/pool_lanes.hpp"

/// Gradients of means and of average pools whose windows cut memory into runs: what `average_runs` does, backward.
namespace taper::kernels::average {

/// dx_i = value for i < n, or += with `add`
template <class T>
[[gnu::noinline]] void fill_run(T value, std::int64_t n, bool add, T* dx) {
  const Vector<T> all = Vector<T>{} + value;
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store<T>(add ? load<T>(dx + i) + all : all, dx + i);
  if (i < n) store_first<T>(add ? load_first<T>(dx + i, n - i) + all : all, n - i, dx + i);
}

/// The same for the first of runs [first, last), with dy_i / divisor, if they are shorter than a vector: each vector
/// reaches into the next runs, which are filled after this one. Returns the first run that has no room for it.
template <class T>
[[gnu::noinline]] std::int64_t fill_short_runs(std::int64_t first, std::int64_t last, std::int64_t n, double divisor,
                                               const T* dy, T* dx) {
  for (; (last - first) * n >= kLanes<T>; ++first)
    store<T>(Vector<T>{} + static_cast<T>(static_cast<double>(dy[first]) / divisor), dx + first * n);
  return first;
}

template <class T, int... L>
[[gnu::always_inline]] inline Vector<T> numbers_in_turn(LaneList<L...>) {
  return Vector<T>{T(L)...};
}

/// dx_{i n}, ..., dx_{i n + n - 1} = value(i) for i < runs, where n elements fill a vector: vectors are stored where
/// they are aligned, with elements of two runs at the end of one.
template <bool streams, class T, class Value>
[[gnu::always_inline]] inline void fill_runs(std::int64_t runs, std::int64_t n, T* dx, const Value& value) {
  const Vector<T> lane = numbers_in_turn<T>(std::make_integer_sequence<int, kLanes<T>>());
  Vector<T> all = Vector<T>{} + value(0);
  const std::int64_t beside = lanes_until_aligned(dx);
  store_some<T>(all, beside, dx);
  std::int64_t left = n - beside;  // of a run
  dx += beside;
  for (std::int64_t run = 0; run < runs; ++run) {
    for (; left >= kLanes<T>; left -= kLanes<T>, dx += kLanes<T>) store_aligned<streams>(all, dx);
    if (run + 1 == runs) return store_some<T>(all, left, dx);
    const Vector<T> next = Vector<T>{} + value(run + 1);
    if (left > 0) {
      // What is stored past the caches beside what is not would be slow.
      store_aligned<streams>(lane < static_cast<T>(left) ? all : next, dx);
      dx += kLanes<T>;
      left -= kLanes<T>;
    }
    left += n;
    all = next;
  }
}

/// dx_{i n}, ..., dx_{i n + n - 1} = dy_i / divisor, or += with `add`
template <class T>
[[gnu::noinline]] void spread_runs(std::int64_t runs, std::int64_t n, double divisor, const T* dy, T* dx, bool add) {
  const bool streams = double(runs) * double(n) * sizeof(T) >= static_cast<double>(beyond_caches);
  parallel_for(runs, std::max<std::int64_t>(n, 8), [=](std::int64_t first, std::int64_t last) {
    const auto value = [=](std::int64_t i) { return static_cast<T>(static_cast<double>(dy[i]) / divisor); };
    const auto value_of = [=](std::int64_t i) { return value(first + i); };
    T* const to = dx + first * n;
    if (add || n < kLanes<T>) {
      std::int64_t i = first;
      if constexpr (kAvoidsParts<T>)
        if (!add) i = fill_short_runs(first, last, n, divisor, dy, dx);
      for (; i < last; ++i) fill_run(value(i), n, add, dx + i * n);
    } else if (streams) {
      fill_runs<true>(last - first, n, to, value_of);
      end_stream();
    } else {
      fill_runs<false>(last - first, n, to, value_of);
    }
  });
}

}  // namespace taper::kernels::average
