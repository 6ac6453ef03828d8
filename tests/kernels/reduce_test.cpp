#include "kernels/reduce.hpp"

#include "support/catch.hpp"
#include "support/reduce_case.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

const std::vector<Case> kCases = {{{}, 0},
                                  {{7}, 1},
                                  {{7}, 0},
                                  {{3, 37}, 0b10},
                                  {{37, 3}, 0b01},
                                  {{5, 67}, 0b01},
                                  {{3, 5, 7}, 0b010},
                                  {{3, 5, 7}, 0b101},
                                  {{3, 5, 7}, 0b111},
                                  {{2, 3, 5, 7}, 0b1010},
                                  {{2, 3, 5, 7}, 0b0101},
                                  {{2, 3, 5, 7}, 0b0110},
                                  {{2, 1, 3, 1, 5, 1, 2, 3}, 0b10110101},
                                  {{3, 1, 5}, 0b010},
                                  {{0, 3}, 0b10}};

/// Checks forward and backward of one reduction over all cases, in double and float.
template <class Forward, class Backward>
void check_reduction(const Group& oracle, const Forward& forward, const Backward& backward, double low = -2) {
  for (const Case& c : kCases) {
    INFO(to_string(c.shape) << " over mask " << c.dims);
    const ReducePlan plan = reduce_plan(c.shape, c.dims);
    const Values x = numbers<double>(c.shape.numel(), 4, low);
    const Values expected = naive(c, x, oracle);
    Values y(expected.size(), 77);
    REQUIRE(plan.outputs == std::int64_t(y.size()));
    forward(plan, x.data(), y.data());
    CHECK(distance(y, expected) < 1e-13);

    const std::vector<float> xf(x.begin(), x.end());
    std::vector<float> yf(y.size(), 77);
    forward(plan, xf.data(), yf.data());
    CHECK(distance(yf, expected) < 3e-6);

    const Values dy = numbers<double>(plan.outputs, 5);
    const Values expected_dx = gradient(
        x,
        [&](const Values& v) {
          const Values z = naive(c, v, oracle);
          double loss = 0;
          for (std::size_t o = 0; o < z.size(); ++o) loss += dy[o] * z[o];
          return loss;
        },
        1e-4);
    Values dx(x.size(), kNaN), added(x.size(), 1.5);
    backward(plan, dy.data(), x.data(), y.data(), dx.data(), false);
    CHECK(distance(dx, expected_dx) < 1e-8);
    backward(plan, dy.data(), x.data(), y.data(), added.data(), true);
    for (double& v : added) v -= 1.5;
    CHECK(distance(added, dx) < 1e-13);
  }
}

double variance(const Values& g, double correction) {
  const double mean = sum(g) / double(g.size());
  return sum_of(g, [&](double v) { return (v - mean) * (v - mean); }) / (double(g.size()) - correction);
}

/// One row reduced to a number.
template <class Forward>
double row(const Values& x, const Forward& forward) {
  const ReducePlan plan = reduce_plan(Shape{std::int64_t(x.size())}, 1);
  double y = 77;
  forward(plan, x.data(), &y);
  return y;
}

}  // namespace

TEST_CASE("sum, mean and product reduce any set of dimensions") {
  check_reduction(
      sum, [](auto& p, auto* x, auto* y) { reduce_sum(p, x, y); },
      [](auto& p, auto* dy, auto*, auto*, auto* dx, bool add) { reduce_sum_grad(p, dy, dx, add); });
  check_reduction([](const Values& g) { return sum(g) / double(g.size()); },
                  [](auto& p, auto* x, auto* y) { reduce_mean(p, x, y); },
                  [](auto& p, auto* dy, auto*, auto*, auto* dx, bool add) { reduce_mean_grad(p, dy, dx, add); });
  check_reduction(
      [](const Values& g) {
        double product = 1;
        for (const double v : g) product *= v;
        return product;
      },
      [](auto& p, auto* x, auto* y) { reduce_prod(p, x, y); },
      [](auto& p, auto* dy, auto* x, auto*, auto* dx, bool add) { reduce_prod_grad(p, dy, x, dx, add); });
}

TEST_CASE("variance and deviation use the correction they are given") {
  for (double correction : {0.0, 0.25}) {
    check_reduction(
        [=](const Values& g) { return variance(g, correction); },
        [=](auto& p, auto* x, auto* y) { reduce_var(p, correction, x, y); },
        [=](auto& p, auto* dy, auto* x, auto*, auto* dx, bool add) { reduce_var_grad(p, correction, dy, x, dx, add); });
  }
  const Values x = {1, 2, 4, 7};
  CHECK(row(x, [](auto& p, auto* in, auto* y) { reduce_var(p, 1, in, y); }) == Approx(7));
  CHECK(row(x, [](auto& p, auto* in, auto* y) { reduce_std(p, 1, in, y); }) == Approx(std::sqrt(7.0)));
  CHECK(std::isnan(row({3}, [](auto& p, auto* in, auto* y) { reduce_var(p, 1, in, y); })));
  CHECK(row({1, 2}, [](auto& p, auto* in, auto* y) { reduce_var(p, 3, in, y); }) == kInf);
  CHECK(std::isnan(row({}, [](auto& p, auto* in, auto* y) { reduce_var(p, 0, in, y); })));

  const ReducePlan plan = reduce_plan(Shape{4}, 1);
  const double dy = 3;
  double y = 0;
  Values dx(4, kNaN);
  reduce_std(plan, 1, x.data(), &y);
  reduce_std_grad(plan, 1, &dy, x.data(), &y, dx.data(), false);
  const auto expected = gradient(x, [](const Values& v) { return 3 * std::sqrt(variance(v, 1)); });
  CHECK(distance(dx, expected) < 1e-9);
  const Values flat(4, 2.5);
  reduce_std(plan, 1, flat.data(), &y);
  reduce_std_grad(plan, 1, &dy, flat.data(), &y, dx.data(), false);
  CHECK(y == 0);
  CHECK(dx == Values(4, 0.0));
}

TEST_CASE("variance of large numbers does not cancel") {
  const std::vector<float> x = {1e4f, 1e4f + 1, 1e4f + 2};
  float y = 0;
  reduce_var(reduce_plan(Shape{3}, 1), 1, x.data(), &y);
  CHECK(y == 1);
}

TEST_CASE("log-sum-exp and norms reduce any set of dimensions") {
  check_reduction(
      [](const Values& g) { return std::log(sum_of(g, [](double v) { return std::exp(v); })); },
      [](auto& p, auto* x, auto* y) { reduce_logsumexp(p, x, y); },
      [](auto& p, auto* dy, auto* x, auto* y, auto* dx, bool add) { reduce_logsumexp_grad(p, dy, x, y, dx, add); });
  for (double power : {1.0, 1.5, 2.0, 3.0})
    check_reduction(
        [=](const Values& g) {
          return std::pow(sum_of(g, [=](double v) { return std::pow(std::abs(v), power); }), 1 / power);
        },
        [=](auto& p, auto* x, auto* y) { reduce_norm(p, power, x, y); },
        [=](auto& p, auto* dy, auto* x, auto* y, auto* dx, bool add) { reduce_norm_grad(p, power, dy, x, y, dx, add); },
        0.25);
}

TEST_CASE("log-sum-exp is stable at the ends") {
  const auto lse = [](auto& p, auto* x, auto* y) { reduce_logsumexp(p, x, y); };
  CHECK(row({1000, 1000}, lse) == Approx(1000 + std::log(2.0)));
  CHECK(row({-1000, -1000}, lse) == Approx(-1000 + std::log(2.0)));
  CHECK(row({-kInf, -kInf}, lse) == -kInf);
  CHECK(row({kInf, 1}, lse) == kInf);
  CHECK(std::isnan(row({kNaN, 1}, lse)));
  CHECK(row({}, lse) == -kInf);
}

TEST_CASE("norms at zero, of infinite order and of order zero") {
  const auto norm = [](double p, const Values& x) {
    return row(x, [=](auto& plan, auto* in, auto* y) { reduce_norm(plan, p, in, y); });
  };
  const auto grad = [&](double p, const Values& x) {
    const double dy = 6, y = norm(p, x);
    Values dx(x.size(), kNaN);
    reduce_norm_grad(reduce_plan(Shape{std::int64_t(x.size())}, 1), p, &dy, x.data(), &y, dx.data(), false);
    return dx;
  };
  CHECK(norm(kInf, {1, -3, 3, 2}) == 3);
  CHECK(norm(-kInf, {2, -1, 3}) == 1);
  CHECK(norm(0, {0, -1, 3}) == 2);
  CHECK(norm(2, {}) == 0);
  CHECK(std::isnan(norm(kInf, {1, kNaN, 2})));
  CHECK(grad(kInf, {1, -3, 3, 2}) == Values{0, -3, 3, 0});
  CHECK(grad(0, {0, -1, 3}) == Values{0, 0, 0});
  for (double p : {1.0, 1.5, 2.0, 3.0, 0.5}) CHECK(grad(p, {0, 0}) == Values{0, 0});
  CHECK(grad(0.5, {0, 4}) == Values{0, 6});
}

TEST_CASE("sums over nothing are 0, products 1, means NaN") {
  const ReducePlan plan = reduce_plan(Shape{3, 0}, 0b10);
  const double* none = nullptr;
  Values y(3, 77);
  reduce_sum(plan, none, y.data());
  CHECK(y == Values{0, 0, 0});
  reduce_prod(plan, none, y.data());
  CHECK(y == Values{1, 1, 1});
  reduce_mean(plan, none, y.data());
  CHECK(same_values(y, {kNaN, kNaN, kNaN}));
}

TEST_CASE("integer sums and products are exact and wrap") {
  const Ints x = {INT64_MAX, 1, (std::int64_t{1} << 53) + 1, 0, 3, -5};
  Ints y(3);
  reduce_sum(reduce_plan(Shape{3, 2}, 0b10), x.data(), y.data());
  CHECK(y == Ints{INT64_MIN, (std::int64_t{1} << 53) + 1, -2});
  reduce_prod(reduce_plan(Shape{3, 2}, 0b10), x.data(), y.data());
  CHECK(y == Ints{INT64_MAX, 0, -15});
}

TEST_CASE("the product's gradient is exact beside zeros") {
  const Values x = {2, 0, 5, 0, 0, 7, 2, 3, 4}, dy = {1, 1, 1};
  Values dx(9, kNaN);
  reduce_prod_grad(reduce_plan(Shape{3, 3}, 0b10), dy.data(), x.data(), dx.data(), false);
  CHECK(dx == Values{0, 10, 0, 0, 0, 0, 12, 8, 6});
}

TEST_CASE("extremes carry NaN and spread their gradient over equals") {
  const Values x = {3, 1, 3, kNaN, 2, 5, -1, -1, -1}, dy = {6, 6, 6};
  const ReducePlan plan = reduce_plan(Shape{3, 3}, 0b10);
  Values y(3), dx(9, kNaN);
  reduce_extreme(plan, Extreme::min, x.data(), y.data());
  CHECK(same_values(y, {1, kNaN, -1}));
  reduce_extreme(plan, Extreme::max, x.data(), y.data());
  CHECK(same_values(y, {3, kNaN, -1}));
  reduce_extreme_grad(plan, dy.data(), x.data(), y.data(), dx.data(), false);
  CHECK(dx == Values{3, 0, 3, 6, 0, 0, 2, 2, 2});
  reduce_extreme(reduce_plan(Shape{3, 3}, 0b01), Extreme::max, x.data(), y.data());
  CHECK(same_values(y, {kNaN, 2, 5}));
}

TEST_CASE("the place of an extreme is the first of equals, or the first NaN") {
  const Values x = {3, 1, 3, 2, kNaN, kNaN, -kInf, -kInf, -kInf};
  const ReducePlan plan = reduce_plan(Shape{3, 3}, 0b10);
  Values y(3);
  Ints at(3, -1);
  arg_extreme(plan, Extreme::max, x.data(), y.data(), at.data());
  CHECK(at == Ints{0, 1, 0});
  CHECK(same_values(y, {3, kNaN, -kInf}));
  arg_extreme<double>(plan, Extreme::min, x.data(), nullptr, at.data());
  CHECK(at == Ints{1, 1, 0});
  Ints flat(1);
  const Ints whole = {1, 9, 4, 9, 2, 0};
  arg_extreme<std::int64_t>(reduce_plan(Shape{2, 3}, 0b11), Extreme::max, whole.data(), nullptr, flat.data());
  CHECK(flat == Ints{1});
  arg_extreme<std::int64_t>(reduce_plan(Shape{2, 3}, 0b01), Extreme::max, whole.data(), nullptr, at.data());
  CHECK(at == Ints{1, 0, 0});

  const Values dy = {5, 6, 7};
  Values dx(6, 1);
  arg_extreme_grad(reduce_plan(Shape{2, 3}, 0b01), dy.data(), at.data(), dx.data(), true);
  CHECK(dx == Values{1, 7, 8, 6, 1, 1});
}

TEST_CASE("long float sums stay accurate in every direction") {
  const std::int64_t n = 1 << 18;
  const std::vector<float> x(std::size_t(n) * 3, 0.1f);
  for (const Case& c : {Case{{3, n}, 0b10}, Case{{n, 3}, 0b01}}) {
    std::vector<float> y(3);
    reduce_sum(reduce_plan(c.shape, c.dims), x.data(), y.data());
    CHECK(y == std::vector<float>(3, float(double(0.1f) * double(n))));
  }
}

TEST_CASE("reductions give the same bits on any number of threads") {
  const Shape shape{31, 67, 101};
  const auto x = numbers<float>(shape.numel(), 7);
  for (std::uint32_t dims : {0b100u, 0b010u, 0b001u, 0b101u, 0b111u}) {
    const ReducePlan plan = reduce_plan(shape, dims);
    const auto dy = numbers<float>(plan.outputs, 8);
    const auto run = [&](const auto& f) {
      return [&] {
        std::vector<float> y(std::size_t(plan.outputs));
        f(y.data());
        return y;
      };
    };
    CHECK(same_on_any_threads(run([&](float* y) { reduce_mean(plan, x.data(), y); })));
    CHECK(same_on_any_threads(run([&](float* y) { reduce_std(plan, 1, x.data(), y); })));
    CHECK(same_on_any_threads(run([&](float* y) { reduce_logsumexp(plan, x.data(), y); })));
    CHECK(same_on_any_threads([&] {
      std::vector<float> dx(x.size());
      reduce_var_grad(plan, 1, dy.data(), x.data(), dx.data(), false);
      return dx;
    }));
  }
}

TEST_CASE("extremes and their places are right wherever infinities and NaN stand, in runs and in columns") {
  const float inf = INFINITY, nan = NAN;
  bool right = true;
  for (std::int64_t n : {1, 2, 5, 7, 13, 19, 32, 37, 67, 131, 1637})
    for (std::int64_t width : {1, 2, 3, 7, 9, 15, 41, 259})
      for (float special : {0.5f, inf, -inf, nan})
        for (std::int64_t at = 0; at < n; at += 1 + n / 11) {
          auto x = numbers<float>(n * width, 9);
          const std::int64_t column = width / 2;
          x[std::size_t(at * width + column)] = special;
          const ReducePlan plan = reduce_plan(Shape{n, width}, 0b01);
          for (Extreme extreme : {Extreme::max, Extreme::min}) {
            std::vector<float> y(std::size_t(width), 77), there(y);
            Ints index(y.size(), -1);
            reduce_extreme(plan, extreme, x.data(), y.data());
            arg_extreme(plan, extreme, x.data(), there.data(), index.data());
            for (std::int64_t c = 0; c < width; ++c) {
              std::int64_t best = 0;
              for (std::int64_t j = 1; j < n; ++j) {
                const float v = x[std::size_t(j * width + c)], b = x[std::size_t(best * width + c)];
                if ((extreme == Extreme::max ? v > b : v < b) || (std::isnan(v) && !std::isnan(b))) best = j;
              }
              const float expected = x[std::size_t(best * width + c)], got = y[std::size_t(c)];
              right = right && index[std::size_t(c)] == best && same_values<float>({got}, {expected}) &&
                      same_values<float>({there[std::size_t(c)]}, {expected});
            }
          }
        }
  CHECK(right);
}
