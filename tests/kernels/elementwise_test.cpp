#include "kernels/elementwise.hpp"

#include "base/memory_ahead.hpp"
#include "kernels/activations.hpp"
#include "kernels/broadcast.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/replaced.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

template <class F, class T = double>
std::vector<T> values(const std::vector<T>& x, const F& f = {}) {
  std::vector<T> y(x.size());
  map(x.data(), y.data(), std::int64_t(x.size()), f);
  return y;
}

/// The gradient of sum(f(x)).
template <class F, class T = double>
std::vector<T> slopes(const std::vector<T>& x, const F& f = {}) {
  const std::vector<T> y = values(x, f), dy(x.size(), T(1));
  std::vector<T> dx(x.size(), T(77));
  const T* saved = F::needs == Needs::input ? x.data() : F::needs == Needs::output ? y.data() : nullptr;
  map_grad(dy.data(), saved, dx.data(), std::int64_t(x.size()), f, false);
  return dx;
}

/// Checks f against `oracle`, its gradient against the stencil of `oracle`, float against double, writing against
/// adding, and in place against out of place.
template <class F, class Oracle>
void check_map(const F& f, const Oracle& oracle, double low, double high) {
  const auto x = numbers<double>(37, 5, low, high);
  std::vector<double> expected, expected_slope;
  for (double v : x) {
    expected.push_back(oracle(v));
    expected_slope.push_back(slope(oracle, v));
  }
  CHECK(distance(values(x, f), expected) < 1e-14);
  CHECK(distance(slopes(x, f), expected_slope) < 1e-9);

  const std::vector<float> xf(x.begin(), x.end());
  const std::vector<double> xd(xf.begin(), xf.end());
  CHECK(distance(values(xf, f), values(xd, f)) < 1e-6);
  CHECK(distance(slopes(xf, f), slopes(xd, f)) < 3e-6);

  auto in_place = x;
  map(in_place.data(), in_place.data(), 37, f);
  CHECK(same_bits(in_place, values(x, f)));

  const auto y = values(x, f), dy = numbers<double>(37, 6);
  const double* saved = F::needs == Needs::input ? x.data() : F::needs == Needs::output ? y.data() : nullptr;
  std::vector<double> written(37, kNaN), added(37, 3.0), over = dy;
  map_grad(dy.data(), saved, written.data(), 37, f, false);
  map_grad(dy.data(), saved, added.data(), 37, f, true);
  map_grad(over.data(), saved, over.data(), 37, f, false);
  CHECK(same_bits(over, written));
  const auto unit = slopes(x, f);
  std::vector<double> product(37);
  for (std::size_t i = 0; i < 37; ++i) {
    CHECK(added[i] == 3.0 + written[i]);
    product[i] = unit[i] * dy[i];
  }
  CHECK(distance(written, product) < 1e-14);
}

}  // namespace

TEST_CASE("maps agree with the mathematics and their gradients with a stencil") {
  check_map(
      Neg{}, [](double x) { return -x; }, -2, 2);
  check_map(
      Abs{}, [](double x) { return x < 0 ? -x : x; }, 0.1, 2);
  check_map(
      Abs{}, [](double x) { return x < 0 ? -x : x; }, -2, -0.1);
  check_map(
      Exp{}, [](double x) { return std::exp(x); }, -2, 2);
  check_map(
      Log{}, [](double x) { return std::log(x); }, 0.5, 3);
  check_map(
      Log1p{}, [](double x) { return std::log(1 + x); }, -0.4, 3);
  check_map(
      Sqrt{}, [](double x) { return std::sqrt(x); }, 0.5, 3);
  check_map(
      Rsqrt{}, [](double x) { return std::pow(x, -0.5); }, 0.5, 3);
  check_map(
      Sine{}, [](double x) { return std::sin(x); }, -3, 3);
  check_map(
      Sine{.cosine = 1}, [](double x) { return std::cos(x); }, -3, 3);
  check_map(
      Reciprocal{}, [](double x) { return 1 / x; }, -3, -0.5);
  check_map(
      Clamp{-0.5, 0.75}, [](double x) { return x; }, -0.4, 0.7);
  check_map(
      Clamp{-0.5, 0.75}, [](double) { return 0.75; }, 0.8, 2);
  check_map(
      AddScalar{1.5}, [](double x) { return x + 1.5; }, -2, 2);
  check_map(
      ScalarSub{1.5}, [](double x) { return 1.5 - x; }, -2, 2);
  check_map(
      MulScalar{-1.5}, [](double x) { return x * -1.5; }, -2, 2);
  check_map(
      DivScalar{3}, [](double x) { return x / 3; }, -2, 2);
  check_map(
      ScalarDiv{3}, [](double x) { return 3 / x; }, 0.5, 2);
  for (double e : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.7, 3.0, 4.0})
    check_map(
        Pow{e}, [e](double x) { return std::pow(x, e); }, 0.6, 2);
  for (double e : {-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0})
    check_map(
        Pow{e}, [e](double x) { return std::pow(x, e); }, -2, -0.6);
}

TEST_CASE("activations agree with the mathematics and their gradients with a stencil") {
  const auto sigmoid = [](double x) { return std::exp(x) / (1 + std::exp(x)); };
  check_map(
      Tanh{}, [](double x) { return std::tanh(x); }, -2, 2);
  check_map(Sigmoid{}, sigmoid, -2, 2);
  check_map(
      Relu{}, [](double x) { return x; }, 0.1, 2);
  check_map(
      Relu{}, [](double) { return 0.0; }, -2, -0.1);
  check_map(
      LeakyRelu{0.2}, [](double x) { return 0.2 * x; }, -2, -0.1);
  check_map(
      LeakyRelu{0.2}, [](double x) { return x; }, 0.1, 2);
  check_map(
      Elu{1.3}, [](double x) { return 1.3 * (std::exp(x) - 1); }, -2, -0.1);
  check_map(
      Elu{1.3}, [](double x) { return x; }, 0.1, 2);
  check_map(
      Selu{}, [](double x) { return 1.7580993408473766 * (std::exp(x) - 1); }, -2, -0.1);
  check_map(
      Selu{}, [](double x) { return 1.0507009873554805 * x; }, 0.1, 2);
  check_map(
      Gelu{}, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }, -2, 2);
  check_map(
      GeluTanh{},
      [&](double x) { return x * sigmoid(2 * std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)); }, -2,
      2);
  check_map(
      Silu{}, [&](double x) { return x * sigmoid(x); }, -2, 2);
  check_map(
      Softplus{1.7, 20}, [](double x) { return std::log(1 + std::exp(1.7 * x)) / 1.7; }, -2, 2);
  check_map(
      Softplus{1.7, 1}, [](double x) { return x; }, 0.7, 2);
}

TEST_CASE("maps follow PyTorch at kinks, infinities and NaN") {
  const std::vector<double> x = {-kInf, -1, 0, 1, kInf, kNaN};
  CHECK(same_values(values<Relu>(x), {0, 0, 0, 1, kInf, kNaN}));
  CHECK(same_values(slopes<Relu>(x), {0, 0, 0, 1, 1, 1}));
  CHECK(same_values(slopes<Abs>(x), {-1, -1, 0, 1, 1, 0}));
  CHECK(same_values(values<Sign>(x), {-1, -1, 0, 1, 1, 0}));
  CHECK(same_values(slopes<Sign>(x), {0, 0, 0, 0, 0, 0}));
  CHECK(same_values(values(x, Clamp{-1, 0.5}), {-1, -1, 0, 0.5, 0.5, kNaN}));
  CHECK(same_values(slopes(x, Clamp{-1, 1}), {0, 1, 1, 1, 0, 0}));
  CHECK(same_values(values(x, Clamp{.min = 0}), {0, 0, 0, 1, kInf, kNaN}));
  CHECK(same_values(values(x, Clamp{2, 1}), {1, 1, 1, 1, 1, kNaN}));
  CHECK(same_values(slopes(x, LeakyRelu{0.25}), {0.25, 0.25, 0.25, 1, 1, 0.25}));
  CHECK(same_values(values(x, Pow{0}), {1, 1, 1, 1, 1, 1}));
  CHECK(same_values(slopes(x, Pow{0}), {0, 0, 0, 0, 0, 0}));
  CHECK(same_values(slopes(x, Pow{2}), {-kInf, -2, 0, 2, kInf, kNaN}));
  CHECK(same_values(values<Sigmoid>({-1000, 1000}), {0, 1}));
  CHECK(same_values(values<Silu>({-1000, 1000}), {-0.0, 1000}));
  CHECK(same_values(values<Softplus>({-1000, 20.5}), {0, 20.5}));
  CHECK(same_values(values<Sqrt>({-1, 0}), {kNaN, 0}));
  CHECK(same_values(values<Log>({-1, 0}), {kNaN, -kInf}));
}

TEST_CASE("a gradient of zero stops an infinite upstream gradient where the function is flat") {
  const std::vector<double> x = {-3}, dy = {kInf};
  std::vector<double> dx = {7};
  map_grad(dy.data(), values<Relu>(x).data(), dx.data(), 1, Relu{}, false);
  CHECK(dx[0] == 0);
  map_grad(dy.data(), x.data(), dx.data(), 1, Clamp{-1, 1}, false);
  CHECK(dx[0] == 0);
}

TEST_CASE("casts drop fractions, saturate and add") {
  const std::vector<double> x = {2.9, -2.9, kNaN, kInf, -kInf, 9223372036854775808.0, -9223372036854775808.0};
  std::vector<std::int64_t> y(x.size(), 5);
  cast(x.data(), y.data(), 7);
  CHECK(y == std::vector<std::int64_t>{2, -2, 0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN});
  const std::vector<float> xf = {3e38f, -3e38f, -0.5f};
  cast(xf.data(), y.data(), 3);
  CHECK(std::vector<std::int64_t>(y.begin(), y.begin() + 3) == std::vector<std::int64_t>{INT64_MAX, INT64_MIN, 0});
  const std::vector<std::int64_t> whole = {3, -7};
  std::vector<float> f = {1, 1};
  cast(whole.data(), f.data(), 2, true);
  CHECK(f == std::vector<float>{4, -6});
  std::vector<double> d(3);
  cast(xf.data(), d.data(), 3);
  CHECK(d[2] == -0.5);
}

TEST_CASE("maps give the same bits on any number of threads and none for no elements") {
  const auto x = numbers<float>(100003, 8);
  const auto dy = numbers<float>(100003, 9);
  CHECK(same_on_any_threads([&] { return values<Tanh>(x); }));
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(x.size());
    map_grad(dy.data(), x.data(), dx.data(), std::int64_t(x.size()), Gelu{}, false);
    return dx;
  }));
  for (double e : {2.0, 3.0}) {
    CAPTURE(e);
    std::vector<float> products;
    for (float v : x) products.push_back(e == 2 ? v * v : v * v * v);
    CHECK(same_bits(values(x, Pow{e}), products));
    CHECK(same_on_any_threads([&] { return values(x, Pow{e}); }));
  }
  float untouched = 3;
  map<Exp>(x.data(), &untouched, 0);
  map(x.data(), &untouched, 0, Pow{2});
  CHECK(untouched == 3);
}

TEMPLATE_TEST_CASE("maps stored past the caches are those stored in them", "", float, double) {
  // Pieces and some more, from elements on where vectors begin and where they do not.
  const std::int64_t n = 70013, last = n - 3;
  const auto x = numbers<TestType>(n, 10), dy = numbers<TestType>(n, 11), before = numbers<TestType>(n, 12);
  const auto all = [&](std::int64_t first) {
    std::vector<std::vector<TestType>> results(5, before);
    const std::int64_t size = last - first;
    const TestType *const from = x.data() + first, *const gradient = dy.data() + first;
    map<Tanh>(from, results[0].data() + first, size);
    map_grad(gradient, from, results[1].data() + first, size, Gelu{}, false);
    map_grad(gradient, from, results[2].data() + first, size, Abs{}, true);
    binary<Sub>(size, from, gradient, results[3].data() + first);
    map<Neg>(results[4].data() + first, results[4].data() + first, size);
    return results;
  };
  for (const std::int64_t first : {0, 1, 8}) {
    const auto near = all(first);
    const Replaced no_caches(taper::detail::beyond_caches, 0);
    for (std::size_t i = 0; i < near.size(); ++i) {
      CAPTURE(first, i);
      CHECK(same_on_any_threads([&] {
        const auto far = all(first);
        CHECK(same_bits(far[i], near[i]));
        return far[i];
      }));
    }
  }
}
