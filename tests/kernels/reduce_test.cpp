#include "kernels/reduce.hpp"

#include <functional>
#include <limits>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Doubles = std::vector<double>;
using Ints = std::vector<std::int64_t>;

struct Case {
  Shape shape;
  std::uint32_t dims;
};

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

/// The elements of `x` that belong to each output, in row-major order, found coordinate by coordinate.
std::vector<Doubles> groups(const Case& c, const Doubles& x) {
  std::int64_t outputs = 1;
  for (int d = 0; d < c.shape.rank(); ++d) outputs *= (c.dims >> d & 1u) != 0 ? 1 : c.shape[d];
  std::vector<Doubles> g(std::size_t(outputs), Doubles{});
  for (std::int64_t i = 0; i < c.shape.numel(); ++i) {
    std::int64_t rest = i, out = 0, stride = 1;
    for (int d = c.shape.rank() - 1; d >= 0; --d) {
      const std::int64_t at = rest % c.shape[d];
      rest /= c.shape[d];
      if ((c.dims >> d & 1u) != 0) continue;
      out += at * stride;
      stride *= c.shape[d];
    }
    g[std::size_t(out)].push_back(x[std::size_t(i)]);
  }
  return g;
}

using Group = std::function<double(const Doubles&)>;

Doubles naive(const Case& c, const Doubles& x, const Group& f) {
  Doubles y;
  for (const Doubles& g : groups(c, x)) y.push_back(f(g));
  return y;
}

/// Checks forward and backward of one reduction over all cases, in double and float.
template <class Forward, class Backward>
void check(const Group& oracle, const Forward& forward, const Backward& backward, double low = -2) {
  for (const Case& c : kCases) {
    INFO(to_string(c.shape) << " over mask " << c.dims);
    const ReducePlan plan = reduce_plan(c.shape, c.dims);
    const Doubles x = numbers<double>(c.shape.numel(), 4, low);
    const Doubles expected = naive(c, x, oracle);
    Doubles y(expected.size(), 77);
    REQUIRE(plan.outputs == std::int64_t(y.size()));
    forward(plan, x.data(), y.data());
    CHECK(distance(y, expected) < 1e-13);

    const std::vector<float> xf(x.begin(), x.end());
    std::vector<float> yf(y.size(), 77);
    forward(plan, xf.data(), yf.data());
    CHECK(distance(yf, expected) < 3e-6);

    const Doubles dy = numbers<double>(plan.outputs, 5);
    const Doubles expected_dx = gradient(
        x,
        [&](const Doubles& v) {
          const Doubles z = naive(c, v, oracle);
          double loss = 0;
          for (std::size_t o = 0; o < z.size(); ++o) loss += dy[o] * z[o];
          return loss;
        },
        1e-4);
    Doubles dx(x.size(), kNaN), added(x.size(), 1.5);
    backward(plan, dy.data(), x.data(), y.data(), dx.data(), false);
    CHECK(distance(dx, expected_dx) < 1e-8);
    backward(plan, dy.data(), x.data(), y.data(), added.data(), true);
    for (double& v : added) v -= 1.5;
    CHECK(distance(added, dx) < 1e-13);
  }
}

double sum(const Doubles& g) {
  double s = 0;
  for (const double v : g) s += v;
  return s;
}
double sum_of(const Doubles& g, const std::function<double(double)>& f) {
  double s = 0;
  for (const double v : g) s += f(v);
  return s;
}
double variance(const Doubles& g, double correction) {
  const double mean = sum(g) / double(g.size());
  return sum_of(g, [&](double v) { return (v - mean) * (v - mean); }) / (double(g.size()) - correction);
}

/// One row reduced to a number.
template <class Forward>
double row(const Doubles& x, const Forward& forward) {
  const ReducePlan plan = reduce_plan(Shape{std::int64_t(x.size())}, 1);
  double y = 77;
  forward(plan, x.data(), &y);
  return y;
}

}  // namespace

TEST_CASE("sum, mean and product reduce any set of dimensions") {
  check(
      sum, [](auto& p, auto* x, auto* y) { reduce_sum(p, x, y); },
      [](auto& p, auto* dy, auto*, auto*, auto* dx, bool add) { reduce_sum_grad(p, dy, dx, add); });
  check([](const Doubles& g) { return sum(g) / double(g.size()); },
        [](auto& p, auto* x, auto* y) { reduce_mean(p, x, y); },
        [](auto& p, auto* dy, auto*, auto*, auto* dx, bool add) { reduce_mean_grad(p, dy, dx, add); });
  check(
      [](const Doubles& g) {
        double product = 1;
        for (const double v : g) product *= v;
        return product;
      },
      [](auto& p, auto* x, auto* y) { reduce_prod(p, x, y); },
      [](auto& p, auto* dy, auto* x, auto*, auto* dx, bool add) { reduce_prod_grad(p, dy, x, dx, add); });
}

TEST_CASE("variance and deviation use the correction they are given") {
  for (double correction : {0.0, 0.25}) {
    check(
        [=](const Doubles& g) { return variance(g, correction); },
        [=](auto& p, auto* x, auto* y) { reduce_var(p, correction, x, y); },
        [=](auto& p, auto* dy, auto* x, auto*, auto* dx, bool add) { reduce_var_grad(p, correction, dy, x, dx, add); });
  }
  const Doubles x = {1, 2, 4, 7};
  CHECK(row(x, [](auto& p, auto* in, auto* y) { reduce_var(p, 1, in, y); }) == Approx(7));
  CHECK(row(x, [](auto& p, auto* in, auto* y) { reduce_std(p, 1, in, y); }) == Approx(std::sqrt(7.0)));
  CHECK(std::isnan(row({3}, [](auto& p, auto* in, auto* y) { reduce_var(p, 1, in, y); })));
  CHECK(row({1, 2}, [](auto& p, auto* in, auto* y) { reduce_var(p, 3, in, y); }) == kInf);
  CHECK(std::isnan(row({}, [](auto& p, auto* in, auto* y) { reduce_var(p, 0, in, y); })));

  const ReducePlan plan = reduce_plan(Shape{4}, 1);
  const double dy = 3;
  double y = 0;
  Doubles dx(4, kNaN);
  reduce_std(plan, 1, x.data(), &y);
  reduce_std_grad(plan, 1, &dy, x.data(), &y, dx.data(), false);
  const auto expected = gradient(x, [](const Doubles& v) { return 3 * std::sqrt(variance(v, 1)); });
  CHECK(distance(dx, expected) < 1e-9);
  const Doubles flat(4, 2.5);
  reduce_std(plan, 1, flat.data(), &y);
  reduce_std_grad(plan, 1, &dy, flat.data(), &y, dx.data(), false);
  CHECK(y == 0);
  CHECK(dx == Doubles(4, 0.0));
}

TEST_CASE("variance of large numbers does not cancel") {
  const std::vector<float> x = {1e4f, 1e4f + 1, 1e4f + 2};
  float y = 0;
  reduce_var(reduce_plan(Shape{3}, 1), 1, x.data(), &y);
  CHECK(y == 1);
}

TEST_CASE("log-sum-exp and norms reduce any set of dimensions") {
  check([](const Doubles& g) { return std::log(sum_of(g, [](double v) { return std::exp(v); })); },
        [](auto& p, auto* x, auto* y) { reduce_logsumexp(p, x, y); },
        [](auto& p, auto* dy, auto* x, auto* y, auto* dx, bool add) { reduce_logsumexp_grad(p, dy, x, y, dx, add); });
  for (double power : {1.0, 1.5, 2.0, 3.0})
    check(
        [=](const Doubles& g) {
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
  const auto norm = [](double p, const Doubles& x) {
    return row(x, [=](auto& plan, auto* in, auto* y) { reduce_norm(plan, p, in, y); });
  };
  const auto grad = [&](double p, const Doubles& x) {
    const double dy = 6, y = norm(p, x);
    Doubles dx(x.size(), kNaN);
    reduce_norm_grad(reduce_plan(Shape{std::int64_t(x.size())}, 1), p, &dy, x.data(), &y, dx.data(), false);
    return dx;
  };
  CHECK(norm(kInf, {1, -3, 3, 2}) == 3);
  CHECK(norm(-kInf, {2, -1, 3}) == 1);
  CHECK(norm(0, {0, -1, 3}) == 2);
  CHECK(norm(2, {}) == 0);
  CHECK(std::isnan(norm(kInf, {1, kNaN, 2})));
  CHECK(grad(kInf, {1, -3, 3, 2}) == Doubles{0, -3, 3, 0});
  CHECK(grad(0, {0, -1, 3}) == Doubles{0, 0, 0});
  for (double p : {1.0, 1.5, 2.0, 3.0, 0.5}) CHECK(grad(p, {0, 0}) == Doubles{0, 0});
  CHECK(grad(0.5, {0, 4}) == Doubles{0, 6});
}

TEST_CASE("sums over nothing are 0, products 1, means NaN") {
  const ReducePlan plan = reduce_plan(Shape{3, 0}, 0b10);
  const double* none = nullptr;
  Doubles y(3, 77);
  reduce_sum(plan, none, y.data());
  CHECK(y == Doubles{0, 0, 0});
  reduce_prod(plan, none, y.data());
  CHECK(y == Doubles{1, 1, 1});
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
  const Doubles x = {2, 0, 5, 0, 0, 7, 2, 3, 4}, dy = {1, 1, 1};
  Doubles dx(9, kNaN);
  reduce_prod_grad(reduce_plan(Shape{3, 3}, 0b10), dy.data(), x.data(), dx.data(), false);
  CHECK(dx == Doubles{0, 10, 0, 0, 0, 0, 12, 8, 6});
}

TEST_CASE("extremes carry NaN and spread their gradient over equals") {
  const Doubles x = {3, 1, 3, kNaN, 2, 5, -1, -1, -1}, dy = {6, 6, 6};
  const ReducePlan plan = reduce_plan(Shape{3, 3}, 0b10);
  Doubles y(3), dx(9, kNaN);
  reduce_extreme(plan, Extreme::min, x.data(), y.data());
  CHECK(same_values(y, {1, kNaN, -1}));
  reduce_extreme(plan, Extreme::max, x.data(), y.data());
  CHECK(same_values(y, {3, kNaN, -1}));
  reduce_extreme_grad(plan, dy.data(), x.data(), y.data(), dx.data(), false);
  CHECK(dx == Doubles{3, 0, 3, 6, 0, 0, 2, 2, 2});
  reduce_extreme(reduce_plan(Shape{3, 3}, 0b01), Extreme::max, x.data(), y.data());
  CHECK(same_values(y, {kNaN, 2, 5}));
}

TEST_CASE("the place of an extreme is the first of equals, or the first NaN") {
  const Doubles x = {3, 1, 3, 2, kNaN, kNaN, -kInf, -kInf, -kInf};
  const ReducePlan plan = reduce_plan(Shape{3, 3}, 0b10);
  Doubles y(3);
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

  const Doubles dy = {5, 6, 7};
  Doubles dx(6, 1);
  arg_extreme_grad(reduce_plan(Shape{2, 3}, 0b01), dy.data(), at.data(), dx.data(), true);
  CHECK(dx == Doubles{1, 7, 8, 6, 1, 1});
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
    for (std::int64_t width : {1, 3, 41})
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

TEST_CASE("sums of runs and columns of any length are accurate, with the same bits on any number of threads") {
  for (std::int64_t n : {63, 4096, 4097, 40009, 300007, 4200007})
    for (std::int64_t width : {1, 3, 67, 271, 1013}) {
      if (n * width > 5000000) continue;
      const auto x = numbers<float>(n * width, 10, -1, 2);
      std::vector<double> exact(std::size_t(width), 0);
      for (std::int64_t i = 0; i < n * width; ++i) exact[std::size_t(i % width)] += double(x[std::size_t(i)]);
      const ReducePlan plan = reduce_plan(Shape{n, width}, 0b01);
      const auto sums = [&] {
        std::vector<float> y(std::size_t(width), 77);
        reduce_sum(plan, x.data(), y.data());
        return y;
      };
      INFO(n << " " << width);
      CHECK(distance(sums(), exact) < 1e-7);
      CHECK(same_on_any_threads(sums));
    }
}

namespace {

/// Lengths around those of vectors and of what is worked on together.
const std::vector<std::int64_t> kLengths = {1, 2, 3, 5, 8, 13, 16, 31, 32, 33, 47, 63, 64, 65, 67, 100, 129, 197};
const std::vector<std::int64_t> kWidths = {1, 2, 3, 8, 15, 16, 17, 33, 64, 67, 131};

template <class T>
std::vector<T> as(const Doubles& x) {
  return std::vector<T>(x.begin(), x.end());
}

/// Calls `check(case)` for columns and for rows of all lengths.
template <class Check>
void for_lengths(const Check& check) {
  for (std::int64_t n : kLengths)
    for (std::int64_t width : kWidths) {
      check(Case{{n, width}, 0b01});
      if (width <= 3) check(Case{{width, n}, 0b10});
    }
}

}  // namespace

TEMPLATE_TEST_CASE("products of runs and columns of any length are exact to the last bits", "", float, double) {
  using T = TestType;
  for_lengths([](const Case& c) {
    INFO(to_string(c.shape));
    auto x = numbers<T>(c.shape.numel(), 11, 0.5, 1.7);
    if (c.shape[0] > 40) x[0] = T(-1.5);
    const ReducePlan plan = reduce_plan(c.shape, c.dims);
    const auto product = [&] {
      std::vector<T> y(std::size_t(plan.outputs), T(77));
      reduce_prod(plan, x.data(), y.data());
      return y;
    };
    const Doubles expected = naive(c, Doubles(x.begin(), x.end()), [](const Doubles& g) {
      long double all = 1;
      for (const double v : g) all *= static_cast<long double>(v);
      return double(all);
    });
    const auto y = product();
    for (std::size_t o = 0; o < y.size(); ++o)
      CHECK(std::abs(double(y[o]) - expected[o]) <= (sizeof(T) == 4 ? 6e-8 : 3e-14) * std::abs(expected[o]));
    CHECK(same_on_any_threads(product));
    // A zero, then NaN, wherever it stands.
    const std::size_t at = x.size() - 1, last = y.size() - 1;
    x[at] = 0;
    CHECK(product()[last] == 0);
    x[at] = T(kNaN);
    CHECK(std::isnan(product()[last]));
    CHECK(same_values(std::vector<T>(y.begin(), y.end() - 1), [&] {
      auto z = product();
      z.pop_back();
      return z;
    }()));
  });
}

TEST_CASE("float products that leave float's range on the way come back") {
  for (std::int64_t width : {1, 19}) {
    std::vector<float> x(std::size_t(40 * width)), y(std::size_t(width), 77);
    for (std::int64_t i = 0; i < 40 * width; ++i)
      x[std::size_t(i)] = i / width < 8 ? 1e30f : i / width < 16 ? 1e-30f : 1;
    reduce_prod(reduce_plan(Shape{40, width}, 0b01), x.data(), y.data());
    CHECK(distance(y, Doubles(std::size_t(width), 1)) < 1e-6);
  }
}

TEST_CASE("sums over dimensions on both sides of others are accurate, and their gradients reach every element") {
  for (const Case& c : {Case{{7, 3, 5}, 0b101},
                        Case{{8, 3, 5}, 0b101},
                        Case{{33, 2, 131}, 0b101},
                        Case{{17, 2, 300}, 0b101},
                        Case{{9, 2, 4096}, 0b101},
                        Case{{9, 2, 4099}, 0b101},
                        Case{{3, 2, 11, 3, 19}, 0b10101},
                        Case{{11, 2, 3, 5, 19}, 0b10101},
                        Case{{1031, 3, 2}, 0b101},
                        Case{{19, 5, 1}, 0b101},
                        Case{{0, 3, 5}, 0b101},
                        Case{{9, 3, 0}, 0b101},
                        Case{{9, 0, 5}, 0b101},
                        Case{{63, 5}, 0b01},
                        Case{{64, 5}, 0b01},
                        Case{{1031, 5}, 0b01},
                        Case{{131, 32}, 0b01},
                        Case{{131, 33}, 0b01},
                        Case{{131, 64}, 0b01},
                        Case{{131, 65}, 0b01},
                        Case{{3, 97, 7}, 0b010},
                        Case{{5, 79, 3, 2}, 0b1010},
                        Case{{67, 5, 3}, 0b101}}) {
    INFO(to_string(c.shape));
    const auto x = numbers<float>(c.shape.numel(), 12, -1, 2);
    const ReducePlan plan = reduce_plan(c.shape, c.dims);
    const auto sums = [&] {
      std::vector<float> y(std::size_t(plan.outputs), 77);
      reduce_sum(plan, x.data(), y.data());
      return y;
    };
    CHECK(distance(sums(), naive(c, Doubles(x.begin(), x.end()), sum)) < 1e-7);
    CHECK(same_on_any_threads(sums));

    const auto dy = numbers<float>(plan.outputs, 13);
    std::vector<float> dx(x.size(), float(kNaN)), added(x.size(), 1.5f);
    reduce_mean_grad(plan, dy.data(), dx.data(), false);
    reduce_mean_grad(plan, dy.data(), added.data(), true);
    const auto each = groups(c, Doubles(dx.begin(), dx.end()));
    bool right = true;
    for (std::size_t o = 0; o < each.size(); ++o)
      for (const double v : each[o]) right = right && float(v) == dy[o] / float(plan.count);
    for (std::size_t i = 0; i < dx.size(); ++i) right = right && added[i] == 1.5f + dx[i];
    CHECK(right);
    CHECK(same_on_any_threads([&] {
      reduce_mean_grad(plan, dy.data(), dx.data(), false);
      return dx;
    }));
  }
}

TEMPLATE_TEST_CASE("extremes spread their gradient over equals in runs and columns of any length", "", float, double) {
  using T = TestType;
  for (bool magnitudes : {false, true})
    for_lengths([=](const Case& c) {
      INFO(to_string(c.shape) << " " << magnitudes);
      // Few different values, so that there are ties; zeros of both signs; a column of zeros; a NaN.
      auto x = numbers<T>(c.shape.numel(), 14, -3, 3);
      for (T& v : x) v = std::trunc(v);
      const ReducePlan plan = reduce_plan(c.shape, c.dims);
      if (c.dims == 0b01 && c.shape[1] > 2)
        for (std::int64_t j = 0; j < c.shape[0]; ++j) x[std::size_t(j * c.shape[1] + 1)] = T(j % 2 == 0 ? 0.0 : -0.0);
      if (x.size() > 20) x[x.size() - 1] = T(kNaN);
      if (x.size() > 200) x[x.size() - 102] = T(kNaN);
      std::vector<T> y(std::size_t(plan.outputs), T(77));
      magnitudes ? reduce_norm(plan, kInf, x.data(), y.data()) : reduce_extreme(plan, Extreme::max, x.data(), y.data());
      const auto dy = numbers<T>(plan.outputs, 15, 1, 2);
      const auto gradient_of = [&](bool add) {
        std::vector<T> dx(x.size(), T(add ? 0.5 : kNaN));
        magnitudes ? reduce_norm_grad(plan, kInf, dy.data(), x.data(), y.data(), dx.data(), add)
                   : reduce_extreme_grad(plan, dy.data(), x.data(), y.data(), dx.data(), add);
        return dx;
      };
      const auto dx = gradient_of(false), added = gradient_of(true);
      const auto of_x = groups(c, Doubles(x.begin(), x.end())), of_dx = groups(c, Doubles(dx.begin(), dx.end()));
      bool right = true;
      for (std::size_t o = 0; o < of_x.size(); ++o) {
        const auto is_it = [&](double v) {
          const double size = magnitudes ? std::abs(v) : v;
          return size == double(y[o]) || (std::isnan(size) && std::isnan(y[o]));
        };
        std::int64_t count = 0;
        for (const double v : of_x[o]) count += is_it(v) ? 1 : 0;
        for (std::size_t i = 0; i < of_x[o].size(); ++i) {
          const double v = of_x[o][i], sign = magnitudes ? (v > 0) - (v < 0) : 1;
          right = right && of_dx[o][i] == (is_it(v) ? sign * double(dy[o] / T(count)) : 0);
        }
      }
      for (std::size_t i = 0; i < dx.size(); ++i) right = right && added[i] == T(0.5) + dx[i];
      CHECK(right);
      CHECK(same_on_any_threads([&] { return gradient_of(false); }));
    });
}

TEMPLATE_TEST_CASE("norms of any order of runs and columns of any length keep their accuracy", "", float, double) {
  using T = TestType;
  for (double p : {0.0, 1.0, 2.0, 3.0, 2.7, 0.5, -1.3})
    for (double scale : {1.0, 1e30, 1e-30})
      for_lengths([=](const Case& c) {
        if (p < 1 && scale != 1.0) return;
        INFO(to_string(c.shape) << " " << p << " " << scale);
        auto x = numbers<T>(c.shape.numel(), 16, -2 * scale, 2 * scale);
        if (x.size() > 20 && p > 0) x[x.size() / 2] = 0;
        const ReducePlan plan = reduce_plan(c.shape, c.dims);
        std::vector<T> y(std::size_t(plan.outputs), T(77)), dx(x.size(), T(kNaN));
        reduce_norm(plan, p, x.data(), y.data());
        const Doubles expected = naive(c, Doubles(x.begin(), x.end()), [=](const Doubles& g) {
          const double total = sum_of(g, [=](double v) { return v == 0 ? 0 : std::pow(std::abs(v) / scale, p); });
          return p == 0 ? total : scale * std::pow(total, 1 / p);
        });
        const double most = sizeof(T) == 4 ? 2e-7 : 1e-13;
        bool right = true;
        for (std::size_t o = 0; o < y.size(); ++o)
          right = right && std::abs(double(y[o]) - expected[o]) <= most * expected[o];
        const auto dy = numbers<T>(plan.outputs, 17);
        reduce_norm_grad(plan, p, dy.data(), x.data(), y.data(), dx.data(), false);
        const auto of_x = groups(c, Doubles(x.begin(), x.end())), of_dx = groups(c, Doubles(dx.begin(), dx.end()));
        for (std::size_t o = 0; o < y.size(); ++o)
          for (std::size_t i = 0; i < of_x[o].size(); ++i) {
            const double v = of_x[o][i], sign = (v > 0) - (v < 0);
            const double d = p == 0 || v == 0 ? 0 : sign * std::pow(std::abs(v) / double(y[o]), p - 1) * double(dy[o]);
            right = right && std::abs(of_dx[o][i] - d) <= (sizeof(T) == 4 ? 5e-7 : 1e-12) * (std::abs(d) + 1e-30);
          }
        CHECK(right);
      });
  std::vector<float> x(67, 1), y(1);
  x[60] = float(kNaN);
  for (double p : {1.0, 2.0, 3.0, 0.5}) {
    reduce_norm(reduce_plan(Shape{67}, 1), p, x.data(), y.data());
    CHECK(std::isnan(y[0]));
  }
}

TEMPLATE_TEST_CASE("short runs, however many, give the bits of each alone", "", float, double) {
  using T = TestType;
  using Values = std::vector<T>;
  struct Kind {
    std::function<void(const ReducePlan&, const T*, T*)> reduce;
    std::function<void(const ReducePlan&, const T*, const T*, const T*, T*, bool)> gradient;
  };
  std::vector<Kind> kinds = {
      {[](auto& p, auto* x, auto* y) { reduce_prod(p, x, y); },
       [](auto& p, auto* dy, auto* x, auto*, auto* dx, bool add) { reduce_prod_grad(p, dy, x, dx, add); }},
      {[](auto& p, auto* x, auto* y) { reduce_extreme(p, Extreme::min, x, y); }, reduce_extreme_grad<T>},
      {[](auto& p, auto* x, auto* y) { reduce_logsumexp(p, x, y); }, reduce_logsumexp_grad<T>}};
  for (const double power : {2.0, 3.0, kInf})
    kinds.push_back({[=](auto& p, auto* x, auto* y) { reduce_norm(p, power, x, y); },
                     [=](auto& p, auto* dy, auto* x, auto* y, auto* dx, bool add) {
                       reduce_norm_grad(p, power, dy, x, y, dx, add);
                     }});
  for (std::int64_t n : {1, 2, 5, 10, 16, 33, 64, 65, 131})
    for (std::int64_t runs : {1, 3, 64, 65, 131}) {
      auto x = numbers<T>(runs * n, 18, -2, 2);
      if (n > 5) x[std::size_t(runs / 2 * n + 3)] = 0, x[0] = T(kNaN), x[std::size_t((runs - 1) * n + 1)] = T(kInf);
      const auto dy = numbers<T>(runs, 19), before = numbers<T>(runs * n, 20);
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        INFO(k << " " << n << " " << runs);
        const auto all_of = [&](std::int64_t first, std::int64_t count, bool add, Values& y, Values& dx) {
          const ReducePlan plan = reduce_plan(Shape{count, n}, 0b10);
          kinds[k].reduce(plan, x.data() + first * n, y.data() + first);
          kinds[k].gradient(plan, dy.data() + first, x.data() + first * n, y.data() + first, dx.data() + first * n,
                            add);
        };
        for (const bool add : {false, true}) {
          Values y(std::size_t(runs), 77), alone = y, dx = before, dx_alone = before;
          all_of(0, runs, add, y, dx);
          for (std::int64_t r = 0; r < runs; ++r) all_of(r, 1, add, alone, dx_alone);
          CHECK(same_bits(y, alone));
          CHECK(same_bits(dx, dx_alone));
          if (add) {
            bool added = true;
            all_of(0, runs, false, y, dx_alone);
            for (std::size_t i = 0; i < dx.size(); ++i)
              added &= dx[i] == before[i] + dx_alone[i] || (std::isnan(dx[i]) && std::isnan(dx_alone[i]));
            CHECK(added);
          }
        }
      }
    }
}
