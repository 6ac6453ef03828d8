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

template <class F, class T>
void map(const T* x, T* y, std::int64_t n, const F& f) {
  // y_i = f(x_i)
  parallel_for(n, F::cost, [x, y, f](std::int64_t first, std::int64_t last) {
    if constexpr (requires { f.map_product(x, y, first, last); })
      if (f.map_product(x, y, first, last)) return;
    if constexpr (kTakesPacks<F>) {
      const F mine = f;  // which stays in registers where a function may be called
      for (AnyPack at{first, last}; at; at.next<T>()) at.store(y, mine.f(at(x)));
    } else {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = first; i < last; ++i) y[i] = f.f(x[i]);
    }
  });
}

template <class F, class T>
void map_grad(const T* dy, const T* v, T* dx, std::int64_t n, const F& f, bool add) {
  const T* saved = F::needs == Needs::nothing ? dy : v;
  // dx_i = f'(v_i) dy_i
  parallel_for(n, F::cost, [=](std::int64_t first, std::int64_t last) {
    if constexpr (kTakesPacks<F>) {
      const F mine = f;
      for (AnyPack at{first, last}; at; at.next<T>()) {
        const Vector<T> d = mine.grad(at(dy), at(saved));
        at.store(dx, add ? at(dx) + d : d);
      }
    } else if (add) {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = first; i < last; ++i) dx[i] += f.grad(dy[i], saved[i]);
    } else {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = first; i < last; ++i) dx[i] = f.grad(dy[i], saved[i]);
    }
  });
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
