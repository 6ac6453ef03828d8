#include "support/catch.hpp"
#include "support/reduce_case.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

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
    const Values expected = naive(c, Values(x.begin(), x.end()), [](const Values& g) {
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
    CHECK(distance(y, Values(std::size_t(width), 1)) < 1e-6);
  }
}

TEMPLATE_TEST_CASE("sums over dimensions on both sides of others are accurate, and their gradients reach every element",
                   "", float, double) {
  using T = TestType;
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
                        Case{{2, 9, 5}, 0b101},
                        Case{{3, 700, 3}, 0b101},
                        Case{{7, 131, 17}, 0b101},
                        Case{{5, 129, 64}, 0b101},
                        Case{{4, 70, 65}, 0b101},
                        Case{{12, 8, 5}, 0b101},
                        Case{{2, 3, 70, 5}, 0b1011},
                        Case{{67, 5, 3}, 0b101}}) {
    INFO(to_string(c.shape));
    const auto x = numbers<T>(c.shape.numel(), 12, -1, 2);
    const ReducePlan plan = reduce_plan(c.shape, c.dims);
    const auto sums = [&] {
      std::vector<T> y(std::size_t(plan.outputs), 77);
      reduce_sum(plan, x.data(), y.data());
      return y;
    };
    CHECK(distance(sums(), naive(c, Values(x.begin(), x.end()), sum)) < 1e-7);
    CHECK(same_on_any_threads(sums));
    if (plan.count > 0) {
      std::vector<T> means(size(plan.outputs), 77);
      reduce_mean(plan, x.data(), means.data());
      auto expected = naive(c, Values(x.begin(), x.end()), sum);
      for (double& v : expected) v /= double(plan.count);
      CHECK(distance(means, expected) < 1e-7);
    }

    const auto dy = numbers<T>(plan.outputs, 13);
    std::vector<T> dx(x.size(), T(kNaN)), added(x.size(), T(1.5));
    reduce_mean_grad(plan, dy.data(), dx.data(), false);
    reduce_mean_grad(plan, dy.data(), added.data(), true);
    const auto each = groups(c, Values(dx.begin(), dx.end()));
    bool right = true;
    for (std::size_t o = 0; o < each.size(); ++o)
      for (const double v : each[o]) right = right && T(v) == dy[o] / T(plan.count);
    for (std::size_t i = 0; i < dx.size(); ++i) right = right && added[i] == T(1.5) + dx[i];
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
      const auto of_x = groups(c, Values(x.begin(), x.end())), of_dx = groups(c, Values(dx.begin(), dx.end()));
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
        const Values expected = naive(c, Values(x.begin(), x.end()), [=](const Values& g) {
          const double total = sum_of(g, [=](double v) { return v == 0 ? 0 : std::pow(std::abs(v) / scale, p); });
          return p == 0 ? total : scale * std::pow(total, 1 / p);
        });
        const double most = sizeof(T) == 4 ? 2e-7 : 1e-13;
        bool right = true;
        for (std::size_t o = 0; o < y.size(); ++o)
          right = right && std::abs(double(y[o]) - expected[o]) <= most * expected[o];
        const auto dy = numbers<T>(plan.outputs, 17);
        reduce_norm_grad(plan, p, dy.data(), x.data(), y.data(), dx.data(), false);
        const auto of_x = groups(c, Values(x.begin(), x.end())), of_dx = groups(c, Values(dx.begin(), dx.end()));
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

TEST_CASE("gradients of sums and means of runs of any length fill them alone") {
  for (std::int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 17})
    for (std::int64_t runs : {1, 2, 3, 5, 8, 19, 4099}) {
      INFO(n << " " << runs);
      const ReducePlan plan = reduce_plan(Shape{runs, n}, 0b10);
      const auto dy = numbers<float>(runs, 21), before = numbers<float>(runs * n + 32, 22);
      for (const bool add : {false, true})
        for (const bool mean : {false, true}) {
          auto dx = before, expected = before;
          for (std::int64_t i = 0; i < runs * n; ++i) {
            const float d = mean ? float(double(dy[std::size_t(i / n)]) / double(n)) : dy[std::size_t(i / n)];
            float& of = expected[std::size_t(i + 16)];
            of = add ? of + d : d;
          }
          mean ? reduce_mean_grad(plan, dy.data(), dx.data() + 16, add)
               : reduce_sum_grad(plan, dy.data(), dx.data() + 16, add);
          CHECK(same_bits(dx, expected));
        }
    }
  const ReducePlan many = reduce_plan(Shape{20011, 5}, 0b10);
  const auto dy = numbers<float>(20011, 23);
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(5 * dy.size());
    reduce_sum_grad(many, dy.data(), dx.data(), false);
    return dx;
  }));
}

TEST_CASE("gradients of variances and deviations of runs far from 0 are exact to float's last bits") {
  for (std::int64_t n : {2, 3, 4, 5, 7, 8, 13, 64, 65, 131, 4095})
    for (std::int64_t runs : {1, 3, 67}) {
      INFO(n << " " << runs);
      const ReducePlan plan = reduce_plan(Shape{runs, n}, 0b10);
      const auto x = numbers<float>(runs * n, 24, 1000, 1002), dy = numbers<float>(runs, 25, 1, 2);
      const auto before = numbers<float>(runs * n + 16, 26);
      std::vector<float> y(dy.size());
      reduce_std(plan, 1, x.data(), y.data());
      for (const bool root : {false, true}) {
        const auto gradient = [&](bool add) {
          auto dx = before;
          root ? reduce_std_grad(plan, 1, dy.data(), x.data(), y.data(), dx.data() + 8, add)
               : reduce_var_grad(plan, 1, dy.data(), x.data(), dx.data() + 8, add);
          return dx;
        };
        const auto dx = gradient(false), added = gradient(true);
        bool right = true;
        for (std::int64_t r = 0; r < runs; ++r) {
          const float* const run = x.data() + r * n;
          double mean = 0;
          for (std::int64_t i = 0; i < n; ++i) mean += double(run[i]) / double(n);
          const double slope = double(dy[std::size_t(r)]) / (root ? double(y[std::size_t(r)]) : 0.5) / double(n - 1);
          for (std::int64_t i = 0; i < n; ++i) {
            const std::size_t at = std::size_t(8 + r * n + i);
            const double d = slope * (double(run[i]) - mean);
            right &= std::abs(double(dx[at]) - d) <= 1e-7 * std::abs(d) + 1e-11 * slope;
            right &= added[at] == before[at] + dx[at];
          }
        }
        for (std::size_t i = 0; i < 8; ++i)
          for (const std::size_t at : {i, before.size() - 1 - i})
            right &= dx[at] == before[at] && added[at] == before[at];
        CHECK(right);
        CHECK(same_on_any_threads([&] { return gradient(false); }));
      }
    }
}

TEMPLATE_TEST_CASE("short runs, however many, give the bits of each alone", "", float, double) {
  using T = TestType;
  using Elements = std::vector<T>;
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
        const auto all_of = [&](std::int64_t first, std::int64_t count, bool add, Elements& y, Elements& dx) {
          const ReducePlan plan = reduce_plan(Shape{count, n}, 0b10);
          kinds[k].reduce(plan, x.data() + first * n, y.data() + first);
          kinds[k].gradient(plan, dy.data() + first, x.data() + first * n, y.data() + first, dx.data() + first * n,
                            add);
        };
        for (const bool add : {false, true}) {
          Elements y(std::size_t(runs), 77), alone = y, dx = before, dx_alone = before;
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

TEST_CASE("sums and extremes of many short runs are those of each, and fill their outputs alone") {
  const double inf = kInf, nan = kNaN;
  bool right = true, kept = true;
  for (std::int64_t n = 1; n <= 17; ++n)
    for (std::int64_t runs : {1, 3, 4, 5, 6, 7, 11, 63, 67, 129, 1031})
      for (double special : {0.5, inf, -inf, nan}) {
        auto x = numbers<float>(runs * n, 21, -2, 2);
        for (std::int64_t r = 0; r < runs; r += 2) x[std::size_t(r * n + r % n)] = float(special);
        const ReducePlan plan = reduce_plan(Shape{runs, n}, 0b10);
        std::vector<float> sums(std::size_t(runs) + 4, 77), largest = sums, smallest = sums;
        reduce_sum(plan, x.data(), sums.data());
        reduce_extreme(plan, Extreme::max, x.data(), largest.data());
        reduce_extreme(plan, Extreme::min, x.data(), smallest.data());
        for (std::int64_t r = 0; r < runs; ++r) {
          const float* const run = x.data() + r * n;
          double sum = 0;
          bool has_nan = false;
          for (std::int64_t k = 0; k < n; ++k) sum += double(run[k]), has_nan |= std::isnan(run[k]);
          const auto [least, most] = std::minmax_element(run, run + n);
          const auto i = std::size_t(r);
          right &= (n > 15 || same_values<float>({sums[i]}, {float(sum)})) &&
                   same_values<float>({largest[i], smallest[i]},
                                      {has_nan ? float(nan) : *most, has_nan ? float(nan) : *least});
        }
        for (std::size_t i = std::size_t(runs); i < sums.size(); ++i)
          kept &= sums[i] == 77 && largest[i] == 77 && smallest[i] == 77;
      }
  CHECK(right);
  CHECK(kept);
}

TEMPLATE_TEST_CASE("small planes of columns, however many, give the bits of each alone", "", float, double) {
  using T = TestType;
  using Elements = std::vector<T>;
  constexpr std::int64_t fence = 4;
  for (std::int64_t n : {2, 3, 5, 8, 20, 33})
    for (std::int64_t m : {2, 3, 4, 8, 31})
      for (std::int64_t count : {1, 15, 16, 17, 64, 65, 131}) {
        const auto x = numbers<T>(count * n * m, 24, -2, 2), dy = numbers<T>(count * m, 25);
        const auto before = numbers<T>(count * n * m + fence, 26);
        const auto reduced = [&](bool mean, std::int64_t first, std::int64_t some, Elements& y) {
          const ReducePlan plan = reduce_plan(Shape{some, n, m}, 0b010);
          (mean ? reduce_mean<T> : reduce_sum<T>)(plan, x.data() + first * n * m, y.data() + first * m);
        };
        const auto spread = [&](bool mean, std::int64_t first, std::int64_t some, bool add, Elements& dx) {
          const ReducePlan plan = reduce_plan(Shape{some, n, m}, 0b010);
          (mean ? reduce_mean_grad<T> : reduce_sum_grad<T>)(plan, dy.data() + first * m, dx.data() + first * n * m,
                                                            add);
        };
        for (const bool mean : {false, true}) {
          INFO(n << " " << m << " " << count << " " << mean);
          Elements y(std::size_t(count * m + fence), 77), alone = y;
          reduced(mean, 0, count, y);
          for (std::int64_t o = 0; o < count; ++o) reduced(mean, o, 1, alone);
          CHECK(same_bits(y, alone));
          for (const bool add : {false, true}) {
            Elements dx = before, dx_alone = before;
            spread(mean, 0, count, add, dx);
            for (std::int64_t o = 0; o < count; ++o) spread(mean, o, 1, add, dx_alone);
            CHECK(same_bits(dx, dx_alone));
          }
        }
      }
  const ReducePlan many = reduce_plan(Shape{5003, 3, 4}, 0b010);
  const auto x = numbers<T>(5003 * 12, 27);
  CHECK(same_on_any_threads([&] {
    Elements y(5003 * 4), dx(x.size());
    reduce_sum(many, x.data(), y.data());
    reduce_sum_grad(many, y.data(), dx.data(), false);
    return dx;
  }));
}
