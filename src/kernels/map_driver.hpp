#pragma once

#include "kernels/elementwise.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/packs.hpp"

// The loops behind `map` and `map_grad`, for the files that instantiate them. An output may be an input but never
// overlaps one otherwise, so the elements are independent, which is said before each loop.

namespace taper::kernels {

template <class F>
constexpr bool kTakesPacks = requires {
  requires F::packs;
};

template <class F, class T>
void map_range(const void* function, const T* x, const T*, T* y, std::int64_t n) {
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

template <class F, class T>
void map_grad_range(const void* function, const T* dy, const T* v, T* dx, std::int64_t n) {
  const F f = *static_cast<const F*>(function);
  if constexpr (kTakesPacks<F>) {
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(dx, f.grad(at(dy), at(v)));
  } else {
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < n; ++i) dx[i] = f.grad(dy[i], v[i]);
  }
}

}  // namespace taper::kernels

#define TAPER_INSTANTIATE_MAP_FOR(F, T)                                             \
  template void map_range<F, T>(const void*, const T*, const T*, T*, std::int64_t); \
  template void map_grad_range<F, T>(const void*, const T*, const T*, T*, std::int64_t)

/// Instantiates one map for the floating types.
#ifdef TAPER_ONLY_FLOAT32
#define TAPER_INSTANTIATE_MAP(F) TAPER_INSTANTIATE_MAP_FOR(F, float)
#else
#define TAPER_INSTANTIATE_MAP(F)       \
  TAPER_INSTANTIATE_MAP_FOR(F, float); \
  TAPER_INSTANTIATE_MAP_FOR(F, double)
#endif
