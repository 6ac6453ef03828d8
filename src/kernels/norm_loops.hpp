#pragma once

#include "kernels/loop_hints.hpp"
#include "kernels/moments.hpp"
#include "kernels/packs.hpp"
#include "kernels/vector_math.hpp"

// The loops over runs of elements that norms share, whatever they are normalised over.

namespace taper::kernels {

/// Whether the gradients of `n` elements that are normalised together are computed in double: those of few may be
/// differences of nearly equal numbers.
template <class T>
constexpr bool are_few(std::int64_t n) {
  return sizeof(T) < sizeof(double) && n < 64;
}

// Out of line, so that the kernels of rows and of batches share them.

/// The sums of x - center and of its square over `n` elements, in packs.
template <class T>
[[gnu::noinline]] SumPair deviations_of(const T* x, std::int64_t n, T center) {
  double sums[2];
  sum_packs<T, 2, 4>(
      n, sums, [=](auto at, auto& sum) __attribute__((always_inline)) {
        const Vector<T> d = at(x, center) - center;
        sum[0] += d;
        sum[1] = fused(d, d, sum[1]);
      });
  return {sums[0], sums[1]};
}

/// The sum of `n` elements where it only has to be near: unlike `sum_run` it adds short chains in T.
template <class T>
[[gnu::noinline]] double near_sum(const T* x, std::int64_t n) {
  double sums[1];
  sum_packs<T, 1, 4>(
      n, sums, [=](auto at, auto& sum) __attribute__((always_inline)) { sum[0] += at(x); });
  return sums[0];
}

/// y = (x - center) * scale + shift: the normalised element under an affine map. x - center is exact near the mean.
template <class T>
struct Affine {
  T center, scale, shift;

  Affine(const Moments& m, double w, double b)
      : center(T(m.mean)),
        scale(T(m.rstd * w)),
        shift(T(b - (m.mean - static_cast<double>(center) + m.rest) * (m.rstd * w))) {}
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return fused(x - center, scale, shift);
  }
};

/// y = map(x) for `n` elements. In registers the map would be two of its numbers in one, which are stored one by one
/// and loaded together: that load would wait until all stores before it, the results of the run before too, are done.
template <class T>
[[gnu::noinline]] void map_run(const Affine<T>& map, const T* x, std::int64_t n, T* y) {
  map_packs<T>(
      n, [=](auto at) __attribute__((always_inline)) { at.store(y, map(at(x))); });
}

/// How many of `n` elements are taken in packs where everything is in double: without masks a part of a pack takes
/// longer than its elements one by one; what has no wide vectors is kept small.
template <class T>
constexpr std::int64_t in_packs(std::int64_t n) {
  return kVectorWidth == 64 ? n : kVectorWidth == 32 ? n - n % kLanes<T> : 0;
}

/// The sums of dy and of dy h over `n` elements, h being the normalised x, each product in double.
template <class T>
TAPER_FOR_SIZE SumPair exact_gradient_sums(const Moments& m, std::int64_t n, const T* dy, const T* x) {
  const Affine<double> normal(m, 1, 0);
  LongPack<T> first(Vector<T>{}), second = first;
  for (AnyPack at{0, in_packs<T>(n)}; at; at.next<T>()) {
    const LongPack<T> g(at(dy));
    LongPack<T> h(at(x, T(m.mean)));
    h.apply(normal);
    first += g;
    second += h *= g;
  }
  SumPair sums{first.sum(), second.sum()};
  for (std::int64_t i = in_packs<T>(n); i < n; ++i) {
    const auto g = static_cast<double>(dy[i]);
    sums += {g, g * normal(static_cast<double>(x[i]))};
  }
  return sums;
}
/// The same in short chains of T.
template <class T>
[[gnu::noinline]] SumPair near_gradient_sums(const Moments& m, std::int64_t n, const T* dy, const T* x) {
  const Affine<T> normal(m, 1, 0);
  double sums[2];
  sum_packs<T, 2, 4>(
      n, sums, [=](auto at, auto& sum) __attribute__((always_inline)) {
        const Vector<T> g = at(dy);
        sum[0] += g;
        sum[1] = fused(g, normal(at(x, normal.center)), sum[1]);
      });
  return {sums[0], sums[1]};
}

/// The sums of dy and of dy h over `n` elements of `together`, h being the normalised x.
template <class T>
[[gnu::always_inline]] inline SumPair gradient_sums(const Moments& m, std::int64_t n, std::int64_t together,
                                                    const T* dy, const T* x) {
  return (are_few<T>(together) ? exact_gradient_sums<T> : near_gradient_sums<T>)(m, n, dy, x);
}

/// How dx follows from dy and x where one weight holds: dx = dy own + (x - center) slope + shift.
template <class T>
struct InputSlope {
  T own, center, slope, shift;

  /// dx = rstd (dy w - mean(g) - h mean(g h)), h = (x - mean) rstd, the means being `means`.
  InputSlope(const Moments& m, double w, SumPair means) : own(T(w * m.rstd)), center(T(m.mean)) {
    const double steep = -m.rstd * m.rstd * means.second, rest = m.mean - static_cast<double>(center) + m.rest;
    slope = T(steep);
    shift = T(-m.rstd * means.first - rest * steep);
  }
  template <class V>
  [[gnu::always_inline]] V operator()(V dy, V x) const {
    return fused(dy, own, fused(x - center, slope, shift));
  }
};

/// dx from dy and x for `n` elements of the weight w, computed in double.
template <class T>
TAPER_FOR_SIZE void exact_slope_run(const Moments& m, double w, SumPair means, const T* dy, const T* x, std::int64_t n,
                                    T* dx, bool add) {
  const InputSlope<double> slope(m, w, means);
  for (AnyPack at{0, in_packs<T>(n)}; at; at.next<T>()) {
    LongPack<T> g(at(dy)), d(at(x));
    g.apply([&](auto v) __attribute__((always_inline)) { return v * slope.own; });
    d.apply([&](auto v) __attribute__((always_inline)) { return fused(v - slope.center, slope.slope, slope.shift); });
    g += d;
    if (add) g += LongPack<T>(at(dx));
    at.store(dx, g.rounded());
  }
  for (std::int64_t i = in_packs<T>(n); i < n; ++i)
    store(dx + i, slope(static_cast<double>(dy[i]), static_cast<double>(x[i])), add);
}
/// The same in T.
template <class T>
[[gnu::noinline]] void near_slope_run(const Moments& m, double w, SumPair means, const T* dy, const T* x,
                                      std::int64_t n, T* dx, bool add) {
  store_packs(
      dx, n, add, [ =, slope = InputSlope<T>(m, w, means) ](auto at) __attribute__((always_inline)) {
        return slope(at(dy), at(x));
      });
}

/// dx from dy and x for `n` elements of `together`, which have the weight w.
template <class T>
[[gnu::always_inline]] inline void slope_run(const Moments& m, double w, SumPair means, const T* dy, const T* x,
                                             std::int64_t n, std::int64_t together, T* dx, bool add) {
  (are_few<T>(together) ? exact_slope_run<T> : near_slope_run<T>)(m, w, means, dy, x, n, dx, add);
}

}  // namespace taper::kernels
