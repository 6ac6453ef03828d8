#include "kernels/prelu.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using kernels::PReLUParams;

TEST_CASE("prelu and its gradients are the definition, on every layout") {
  std::uint64_t seed = 1;
  for (const PReLUParams p :
       {PReLUParams{1, 1, 7}, {2, 3, 5}, {3, 5, 1}, {1, 7, 11}, {2, 1, 4099}, {1, 2, 8209}, {0, 3, 5}}) {
    const std::int64_t n = p.outer * p.channels * p.inner;
    auto x = test::numbers<double>(n, ++seed);
    if (n > 2) x[1] = 0;
    const auto w = test::numbers<double>(p.channels, ++seed), dy = test::numbers<double>(n, ++seed);
    std::vector<double> y(std::size_t(n), 0);
    kernels::prelu(p, x.data(), w.data(), y.data());
    for (const bool add : {false, true}) {
      auto dx = test::numbers<double>(n, 3), dw = test::numbers<double>(p.channels, 5);
      std::vector<double> expected_dx = dx, expected_dw = dw, expected_y(y.size());
      if (!add) expected_dx.assign(dx.size(), 0), expected_dw.assign(dw.size(), 0);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i / std::size_t(p.inner) % std::size_t(p.channels);
        expected_y[i] = x[i] > 0 ? x[i] : w[c] * x[i];
        expected_dx[i] += x[i] > 0 ? dy[i] : w[c] * dy[i];
        if (x[i] <= 0) expected_dw[c] += x[i] * dy[i];
      }
      kernels::prelu_backward(p, x.data(), w.data(), dy.data(), dx.data(), add, dw.data(), add);
      CHECK(y == expected_y);
      CHECK(dx == expected_dx);
      for (std::size_t c = 0; c < dw.size(); ++c) CHECK(std::abs(dw[c] - expected_dw[c]) < 1e-11);
      auto alone = dx;
      kernels::prelu_backward<double>(p, x.data(), w.data(), dy.data(), alone.data(), false, nullptr, false);
      std::vector<double> slopes(dw.size());
      kernels::prelu_backward<double>(p, x.data(), w.data(), dy.data(), nullptr, false, slopes.data(), false);
      if (!add) CHECK(alone == dx);
      if (!add) CHECK(slopes == dw);
    }
  }
}

TEMPLATE_TEST_CASE("prelu is the definition bit for bit at all lengths, special values included", "", float, double) {
  using T = TestType;
  constexpr T infinite = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (const PReLUParams p :
       {PReLUParams{2, 3, 1}, {2, 3, 7},    {2, 3, 8},    {2, 3, 15},  {1, 2, 16},   {2, 3, 17}, {2, 1, 33},
        {1, 1, 4099},         {1, 2, 8209}, {1301, 7, 1}, {11, 10, 1}, {19, 50, 1},  {5, 28, 1}, {5, 8, 1},
        {3, 24, 1},           {3, 29, 1},   {2, 64, 1},   {9, 127, 1}, {3, 4099, 1}, {1, 5, 1},  {37, 1, 1}}) {
    const std::int64_t n = p.outer * p.channels * p.inner;
    auto x = test::numbers<T>(n, 1), dy = test::numbers<T>(n, 2);
    const auto w = test::numbers<T>(p.channels, 3);
    std::size_t at = 0;
    for (const T v : {T(0), -T(0), infinite, -infinite, nan})
      if (at < x.size()) x[at++] = v;
    std::vector<T> y(x.size(), T(77));
    kernels::prelu(p, x.data(), w.data(), y.data());
    auto in_place = x;
    kernels::prelu(p, in_place.data(), w.data(), in_place.data());
    CHECK(test::same_values(in_place, y));
    for (const bool add : {false, true}) {
      auto dx = test::numbers<T>(n, 4);
      std::vector<T> expected_y(x.size()), expected_dx(x.size()), dw(w.size());
      std::vector<double> expected_dw(w.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i / std::size_t(p.inner) % w.size();
        expected_y[i] = x[i] > 0 ? x[i] : w[c] * x[i];
        const T step = x[i] > 0 ? dy[i] : w[c] * dy[i];
        expected_dx[i] = add ? dx[i] + step : step;
        if (!(x[i] > 0)) expected_dw[c] += double(x[i]) * double(dy[i]);
      }
      kernels::prelu_backward(p, x.data(), w.data(), dy.data(), dx.data(), add, dw.data(), false);
      INFO(p.outer << " " << p.channels << " " << p.inner);
      CHECK(test::same_values(y, expected_y));
      CHECK(test::same_values(dx, expected_dx));
      for (std::size_t c = 0; c < dw.size(); ++c) {
        const double expected = expected_dw[c];
        CHECK((std::isfinite(expected) ? std::abs(double(dw[c]) - expected) <= 1e-7 * (1 + std::abs(expected))
                                       : test::same_values<T>({dw[c]}, {T(expected)})));
      }
    }
  }
}

TEST_CASE("a slope's gradient is summed in double, with the same bits on any number of threads") {
  const std::int64_t n = (1 << 24) + 5;
  const std::vector<float> x(std::size_t(n), -1.0f), dy(std::size_t(n), 1.0f), w{0.25f};
  std::vector<float> dw(1);
  kernels::prelu_backward<float>({1, 1, n}, x.data(), w.data(), dy.data(), nullptr, false, dw.data(), false);
  CHECK(dw[0] == -float(n));
  const PReLUParams p{3, 5, 9973};
  const auto values = test::numbers<float>(3 * 5 * 9973, 7), gradient = test::numbers<float>(3 * 5 * 9973, 9),
             slopes = test::numbers<float>(5, 11);
  CHECK(test::same_on_any_threads([&] {
    std::vector<float> all(values.size() + 5);
    kernels::prelu_backward(p, values.data(), slopes.data(), gradient.data(), all.data(), false,
                            all.data() + values.size(), false);
    return all;
  }));
  const std::int64_t rows = 30011;
  CHECK(test::same_on_any_threads([&] {
    std::vector<float> slopes_gradient(5);
    kernels::prelu_backward<float>({rows * 3 / 5, 5, 1}, x.data(), slopes.data(), values.data(), nullptr, false,
                                   slopes_gradient.data(), false);
    return slopes_gradient;
  }));
}

TEST_CASE("threads find the channels of the planes they share") {
  for (const std::int64_t inner : {5, 8, 97, 5003}) {
    const PReLUParams p{1 + 1000000 / inner, 7, inner};  // for which threads pay
    const auto x = test::numbers<float>(p.outer * 7 * inner, 12), w = test::numbers<float>(7, 13);
    std::vector<float> expected(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      expected[i] = x[i] > 0 ? x[i] : w[i / std::size_t(inner) % w.size()] * x[i];
    CHECK(test::same_on_any_threads([&] {
      std::vector<float> y(x.size());
      kernels::prelu(p, x.data(), w.data(), y.data());
      CHECK(test::same_values(y, expected));
      return y;
    }));
  }
}
