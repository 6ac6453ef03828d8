#include <cstdint>
#include <limits>
#include <vector>

#include "base/memory_ahead.hpp"
#include "kernels/reduce.hpp"
#include "support/catch.hpp"
#include "support/draw.hpp"
#include "support/replaced.hpp"

// Reductions of what is read in several places in turn, as processors do that gain by it from many bytes on.

using namespace taper;
using namespace taper::kernels;
using test::Draw;

namespace {

/// Whether `reduce(plan, x, y)` fills y, for each of `runs` runs, with the bits that it has where all is read in order.
template <class T, class Reduce>
bool is_same_apart(std::int64_t runs, const std::vector<T>& x, const Reduce& reduce) {
  const ReducePlan plan = reduce_plan(Shape{runs, std::int64_t(x.size()) / runs}, 0b10);
  std::vector<T> y(std::size_t(runs), 77), z = y;
  const auto reduce_from = [&](std::int64_t bytes, T* to) {
    const test::Replaced apart(detail::apart_from, bytes);
    reduce(plan, x.data(), to);
  };
  reduce_from(0, y.data());
  reduce_from(std::numeric_limits<std::int64_t>::max(), z.data());
  return y == z;
}

}  // namespace

TEMPLATE_TEST_CASE("runs read in several places in turn are reduced as those in order", "", float, double) {
  using T = TestType;
  Draw draw(41);
  for (const std::int64_t n : {1, 3, 15, 16, 49, 191, 192, 255, 1000, 4096, 4097, 20000})
    for (const std::int64_t runs : {1, 3, 4, 7, 9, 64, 269, 1100}) {
      if (n * runs > 300000) continue;
      const std::vector<T> x = draw.thirds<T>(runs * n);
      CAPTURE(n, runs);
      CHECK(is_same_apart(runs, x, [](const auto& p, const T* from, T* to) { reduce_sum(p, from, to); }));
      CHECK(is_same_apart(runs, x, [](const auto& p, const T* from, T* to) { reduce_mean(p, from, to); }));
      CHECK(is_same_apart(runs, x, [](const auto& p, const T* from, T* to) { reduce_prod(p, from, to); }));
      CHECK(is_same_apart(runs, x, [](const auto& p, const T* from, T* to) { reduce_norm(p, 2, from, to); }));
      CHECK(is_same_apart(runs, x,
                          [](const auto& p, const T* from, T* to) { reduce_extreme(p, Extreme::max, from, to); }));
    }
}

TEMPLATE_TEST_CASE("a run that no cache holds has one sum, which is right", "", float, double) {
  using T = TestType;
  const auto sum = [](const ReducePlan& p, const T* from, T* to) { reduce_sum(p, from, to); };
  const std::int64_t size = (1 << 22) + 70001;
  std::vector<T> x(static_cast<std::size_t>(size));
  double exact = 0;  // of multiples of 1/8, whose sums are
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = double(i * 2654435761U % 8191) / 8 - 300;
    x[i] = T(v);
    exact += v;
  }
  CHECK(is_same_apart(1, x, sum));
  T y = 0;
  sum(reduce_plan(Shape{1, size}, 0b10), x.data(), &y);
  CHECK(y == T(exact));
  for (T& v : x) v /= 3;
  CHECK(is_same_apart(1, x, sum));
}
