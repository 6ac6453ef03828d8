#pragma once

#include "kernels/elementwise.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/packs.hpp"
#include "kernels/parallel.hpp"

// The loops of `map` and `map_grad`, for the files that instantiate them. An output may be an input but never overlaps
// one otherwise, so the elements are independent, which is said before each loop.

namespace taper::kernels {

template <class F>
constexpr bool kTakesPacks = requires {
  requires F::packs;
};

/// Stores at y what it makes of n elements each at a and b.
template <class T>
using MapRange = void (*)(const void* f, const T* a, const T* b, T* y, std::int64_t n);

/// Calls `range` for ranges that cover n elements, in parallel if that pays; few are spared the way there.
template <class T>
[[gnu::noinline]] void map_ranges(std::int64_t n, std::int64_t cost, const T* a, const T* b, T* y, const void* f,
                                  MapRange<T> range) {
  if (double(n) * double(cost) < threads::kSerialWork) return range(f, a, b, y, n);
  parallel_for(n, cost,
               [=](std::int64_t first, std::int64_t last) { range(f, a + first, b + first, y + first, last - first); });
}

/// y_i = f(x_i)
template <class F, class T>
[[gnu::noinline]] void map_range(const void* function, const T* x, const T*, T* y, std::int64_t n) {
  const F f = *static_cast<const F*>(function);  // which stays in registers where a function may be called
  if constexpr (requires { f.map_product(x, y, n); })
    if (f.map_product(x, y, n)) return;
  if constexpr (kTakesPacks<F>) {
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(y, f.f(at(x)));
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) y[i] = f.f(x[i]);
  }
}

template <class F>
struct MapGrad {
  F f;
  bool add;
};

/// dx_i = f'(v_i) dy_i, or added to dx_i
template <class F, class T>
[[gnu::noinline]] void map_grad_range(const void* function, const T* dy, const T* v, T* dx, std::int64_t n) {
  const auto [f, add] = *static_cast<const MapGrad<F>*>(function);
  if constexpr (kTakesPacks<F>) {
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const Vector<T> d = f.grad(at(dy), at(v));
      at.store(dx, add ? at(dx) + d : d);
    }
  } else if (add) {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) dx[i] += f.grad(dy[i], v[i]);
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) dx[i] = f.grad(dy[i], v[i]);
  }
}

template <class F, class T>
void map(const T* x, T* y, std::int64_t n, const F& f) {
  map_ranges<T>(n, F::cost, x, x, y, &f, map_range<F, T>);
}

template <class F, class T>
void map_grad(const T* dy, const T* v, T* dx, std::int64_t n, const F& f, bool add) {
  const MapGrad<F> g{f, add};
  map_ranges<T>(n, F::cost, dy, F::needs == Needs::nothing ? dy : v, dx, &g, map_grad_range<F, T>);
}

}  // namespace taper::kernels

#define TAPER_INSTANTIATE_MAP_FOR(F, T)                          \
  template void map<F, T>(const T*, T*, std::int64_t, const F&); \
  template void map_grad<F, T>(const T*, const T*, T*, std::int64_t, const F&, bool)

/// Instantiates one map for the floating types.
#ifdef TAPER_ONLY_FLOAT32
#define TAPER_INSTANTIATE_MAP(F) TAPER_INSTANTIATE_MAP_FOR(F, float)
#else
#define TAPER_INSTANTIATE_MAP(F)       \
  TAPER_INSTANTIATE_MAP_FOR(F, float); \
  TAPER_INSTANTIATE_MAP_FOR(F, double)
#endif
