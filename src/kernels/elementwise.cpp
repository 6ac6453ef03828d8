#include "kernels/elementwise.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/map_driver.hpp"
#include "kernels/parallel.hpp"
#include "kernels/stream.hpp"

namespace taper::kernels {

namespace {

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From kLimit = From(9223372036854775808.0);  // 2^63
    if (x >= kLimit) return std::numeric_limits<To>::max();
    if (x < -kLimit) return std::numeric_limits<To>::min();
    if (std::isnan(x)) return 0;
  }
  return static_cast<To>(x);
}

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(std::uint64_t(a) + std::uint64_t(b));
  else
    return a + b;
}

}  // namespace

template <class T>
void map_ranges(std::int64_t n, std::int64_t cost, const T* a, const T* b, T* y, const void* f, MapRange<T> range,
                bool add) {
  if (add) {
    parallel_for(n, cost + 1, [=](std::int64_t first, std::int64_t last) {
      constexpr std::int64_t kSome = 2048 / sizeof(T);
      alignas(kVectorWidth) T some[kSome];
      for (std::int64_t i = first, k; i < last; i += k) {
        k = std::min(kSome, last - i);
        range(f, a + i, b + i, some, k);
        T* const to = y + i;
        TAPER_INDEPENDENT_TURNS
        for (std::int64_t j = 0; j < k; ++j) to[j] += some[j];
      }
    });
    return;
  }
  if (double(n) * double(cost) < threads::kSerialWork) return range(f, a, b, y, n);  // few are spared the way there
  if (y != a && y != b && fills_past(double(n) * sizeof(T)))
    return parallel_for(n, cost, [=](std::int64_t first, std::int64_t last) {
      fill_past(y, first, last, [=](std::int64_t i, std::int64_t some, T* to) {
        fetch_run(a + i, some, memory_ahead);
        if (b != a) fetch_run(b + i, some, memory_ahead);
        range(f, a + i, b + i, to, some);
      });
    });
  parallel_for(n, cost,
               [=](std::int64_t first, std::int64_t last) { range(f, a + first, b + first, y + first, last - first); });
}

template void map_ranges<float>(std::int64_t, std::int64_t, const float*, const float*, float*, const void*,
                                MapRange<float>, bool);
#ifndef TAPER_ONLY_FLOAT32
template void map_ranges<double>(std::int64_t, std::int64_t, const double*, const double*, double*, const void*,
                                 MapRange<double>, bool);
#endif

template <class From, class To>
void cast(const From* x, To* y, std::int64_t n, bool add) {
  // y_i = x_i
  parallel_for(n, 1, [=](std::int64_t first, std::int64_t last) {
    if (add) {
      for (std::int64_t i = first; i < last; ++i) y[i] = plus(y[i], convert<To>(x[i]));
    } else {
      for (std::int64_t i = first; i < last; ++i) y[i] = convert<To>(x[i]);
    }
  });
}

#ifndef TAPER_ONLY_FLOAT32
#define TAPER_INSTANTIATE_CAST(From)                                          \
  template void cast<From, float>(const From*, float*, std::int64_t, bool);   \
  template void cast<From, double>(const From*, double*, std::int64_t, bool); \
  template void cast<From, std::int64_t>(const From*, std::int64_t*, std::int64_t, bool)
TAPER_INSTANTIATE_CAST(float);
TAPER_INSTANTIATE_CAST(double);
TAPER_INSTANTIATE_CAST(std::int64_t);
#endif

TAPER_INSTANTIATE_MAP(Neg);
TAPER_INSTANTIATE_MAP(Abs);
TAPER_INSTANTIATE_MAP(Sign);
TAPER_INSTANTIATE_MAP(Exp);
TAPER_INSTANTIATE_MAP(Log);
TAPER_INSTANTIATE_MAP(Log1p);
TAPER_INSTANTIATE_MAP(Sqrt);
TAPER_INSTANTIATE_MAP(Rsqrt);
TAPER_INSTANTIATE_MAP(Sine);
TAPER_INSTANTIATE_MAP(Reciprocal);
TAPER_INSTANTIATE_MAP(Clamp);
TAPER_INSTANTIATE_MAP(Pow);
TAPER_INSTANTIATE_MAP(AddScalar);
TAPER_INSTANTIATE_MAP(ScalarSub);
TAPER_INSTANTIATE_MAP(MulScalar);
TAPER_INSTANTIATE_MAP(DivScalar);
TAPER_INSTANTIATE_MAP(ScalarDiv);

}  // namespace taper::kernels
