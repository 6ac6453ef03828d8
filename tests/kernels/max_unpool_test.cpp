#include "kernels/max_unpool.hpp"

#include "support/catch.hpp"
#include "support/draw.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using Indices = std::vector<std::int64_t>;

namespace {

struct UnpoolCase {
  kernels::MaxUnpoolParams params;
  Indices index;

  UnpoolCase(std::int64_t planes, std::int64_t in, std::int64_t out, test::Draw& draw) : params{planes, in, out} {
    for (std::int64_t i = 0; i < planes * in; ++i) index.push_back(draw.below(out));
  }
};

template <class T>
std::vector<T> run_unpool(const UnpoolCase& c, const std::vector<T>& x) {
  std::vector<T> y(std::size_t(c.params.planes * c.params.out), T(-7));
  kernels::max_unpool(c.params, x.data(), c.index.data(), y.data());
  return y;
}

template <class T>
std::vector<T> run_unpool_backward(const UnpoolCase& c, const std::vector<T>& dy, T start, bool add) {
  std::vector<T> dx(c.index.size(), start);
  kernels::max_unpool_backward(c.params, dy.data(), c.index.data(), dx.data(), add);
  return dx;
}

template <class T>
void check_unpool(const UnpoolCase& c) {
  const auto x = test::numbers<T>(std::int64_t(c.index.size()), 3),
             dy = test::numbers<T>(c.params.planes * c.params.out, 5);
  std::vector<T> y(dy.size()), dx, sum;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t place = i / std::size_t(c.params.in) * std::size_t(c.params.out) + std::size_t(c.index[i]);
    y[place] = x[i];
    dx.push_back(dy[place]);
    sum.push_back(T(2) + dy[place]);
  }
  CHECK(run_unpool(c, x) == y);
  CHECK(run_unpool_backward(c, dy, T(-7), false) == dx);
  CHECK(run_unpool_backward(c, dy, T(2), true) == sum);
}

}  // namespace

TEST_CASE("unpooling puts elements at their places and zeros elsewhere; the last of several stays") {
  test::Draw draw(1);
  for (const auto& [planes, in, out] :
       std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {3, 5, 11}, {2, 13, 7}, {5, 3, 2}, {0, 3, 5}}) {
    CAPTURE(planes, in, out);
    const UnpoolCase c(planes, in, out, draw);
    check_unpool<float>(c);
    check_unpool<double>(c);
  }
  UnpoolCase twice(1, 2, 3, draw);
  twice.index = {2, 2};
  CHECK(run_unpool<float>(twice, {5, 7}) == std::vector<float>{0, 0, 7});
  CHECK(run_unpool_backward<float>(twice, {1, 2, 3}, 0, false) == std::vector<float>{3, 3});
}

TEST_CASE("unpooling gives the same bits on any number of threads") {
  test::Draw draw(2);
  const UnpoolCase c(131, 499, 997, draw);
  const auto x = test::numbers<float>(131 * 499, 7), dy = test::numbers<float>(131 * 997, 9);
  CHECK(test::same_on_any_threads([&] { return run_unpool(c, x); }));
  CHECK(test::same_on_any_threads([&] { return run_unpool_backward(c, dy, 0.0f, false); }));
}
