#include <algorithm>
#include <vector>

#include "kernels/sum_run.hpp"
#include "support/avg_pool_runs.hpp"
#include "support/catch.hpp"

using namespace taper;
using namespace taper::test;

namespace {

/// Whether a global pool and its gradient are the quotients, with nothing stored beside them, `at` elements behind
/// where memory is aligned.
template <class T>
bool averages_runs(std::int64_t planes, std::int64_t n, std::int64_t at, Draw& draw) {
  const kernels::AvgPoolParams p{{.planes = planes, .in = {1, 1, n}, .out = {1, 1, 1}, .kernel = {1, 1, n}}};
  constexpr T kBeside = 77;
  const auto x = as<T>(draw.values(at + planes * n));
  std::vector<T> y(std::size_t(at + planes + 64), kBeside), dx(std::size_t(at + planes * n + 64), kBeside);
  std::vector<T> expected_y = y, expected_dx = dx;
  kernels::avg_pool(p, x.data() + at, y.data() + at);
  kernels::avg_pool_backward(p, x.data(), dx.data() + at, false);
  for (std::int64_t i = 0; i < planes; ++i) {
    expected_y[std::size_t(at + i)] = T(kernels::sum_run(x.data() + at + i * n, n) / double(n));
    const auto run = expected_dx.begin() + at + i * n;
    std::fill(run, run + n, T(double(x[std::size_t(i)]) / double(n)));
  }
  return same_bits(y, expected_y) && same_bits(dx, expected_dx);
}

}  // namespace

TEST_CASE("global pools of any size, wherever they lie, are their quotients to the last bit, and store nothing else") {
  Draw draw(23);
  for (std::int64_t n = 1; n <= 70; ++n)
    for (const std::int64_t planes : {1, 2, 3, 7, 67}) {
      CAPTURE(n, planes);
      CHECK(averages_runs<float>(planes, n, n % 17, draw));
      CHECK(averages_runs<double>(planes, n, n % 7, draw));
    }
  CHECK(averages_runs<float>(11, 4099, 5, draw));
  // Gradients too many for the caches.
  CHECK(averages_runs<float>(83003, 103, 3, draw));
}

TEST_CASE("small windows store nothing beside their results") {
  Draw draw(29);
  constexpr float kBeside = 77;
  for (const std::int64_t k : {2, 3, 5, 10})
    for (std::int64_t width = 2; width <= 70; ++width) {
      if (k > width) continue;
      CAPTURE(k, width);
      const std::int64_t stride = k < 5 ? 2 : k;
      const AvgPool pool = fixed({17, width}, {k, k}, {stride, stride}, {k / 3, k / 3}, true, false);
      const auto x = as<float>(draw.values(inputs(pool))), dy = as<float>(draw.values(outputs(pool)));
      const auto y = run_forward(pool, x), dx = run_backward(pool, dy);
      std::vector<float> to(y.size() + 64, kBeside), expected = to;
      std::copy(y.begin(), y.end(), expected.begin());
      kernels::avg_pool(params_of(pool), x.data(), to.data());
      CHECK(same_bits(to, expected));
      to.assign(dx.size() + 64, kBeside);
      expected = to;
      std::copy(dx.begin(), dx.end(), expected.begin());
      kernels::avg_pool_backward(params_of(pool), dy.data(), to.data(), false);
      CHECK(same_bits(to, expected));
    }
}

TEST_CASE(
    "planes cut into windows of two by two are averaged as each row of windows alone, and nothing else is stored") {
  Draw draw(31);
  constexpr float kBeside = 77;
  // Rows of less than a vector, of one and of more; the last ones, behind which there is nothing, by themselves.
  for (std::int64_t width = 1; width <= 40; ++width)
    for (const std::int64_t rows : {1, 2, 3, 17, 64}) {
      CAPTURE(width, rows);
      const auto pool = [=](std::int64_t n) {
        return fixed({2, 2 * width}, {2, 2}, {2, 2}, {0, 0}, true, false, 0, n);
      };
      const auto x = as<float>(draw.values(inputs(pool(rows))));
      std::vector<float> y(std::size_t(rows * width + 64), kBeside), expected = y;
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto alone = run_forward(pool(1), part_of(x, row, rows));
        std::copy(alone.begin(), alone.end(), expected.begin() + row * width);
      }
      kernels::avg_pool(params_of(pool(rows)), x.data(), y.data());
      CHECK(same_bits(y, expected));
    }
}

TEST_CASE("many planes under small windows give what each gives alone, and nothing else is stored") {
  // Rows of less than a vector, of one and of more, which may be read and stored on into the ones behind them.
  Draw draw(37);
  constexpr float kBeside = 77;
  const auto beside = [=](const std::vector<float>& all) {
    auto to = all;
    to.insert(to.end(), 64, kBeside);
    return to;
  };
  for (const auto& [k, stride] : {std::pair<std::int64_t, std::int64_t>{2, 2}, {3, 2}, {3, 1}})
    for (std::int64_t width = 3; width <= 40; ++width)
      for (const std::int64_t height : {3, 4, 9, 10})
        for (const bool counts : {true, false}) {
          CAPTURE(k, stride, width, height, counts);
          const auto pool = [&, k = k, stride = stride](std::int64_t n) {
            return fixed({height, width}, {k, k}, {stride, stride}, {k / 3, k / 3}, counts, false, 0, n);
          };
          constexpr std::int64_t kPlanes = 5;
          const auto x = as<float>(draw.values(inputs(pool(kPlanes)))),
                     dy = as<float>(draw.values(outputs(pool(kPlanes))));
          std::vector<float> y, dx;
          for (std::int64_t plane = 0; plane < kPlanes; ++plane) {
            const auto y_alone = run_forward(pool(1), part_of(x, plane, kPlanes));
            const auto dx_alone = run_backward(pool(1), part_of(dy, plane, kPlanes));
            y.insert(y.end(), y_alone.begin(), y_alone.end());
            dx.insert(dx.end(), dx_alone.begin(), dx_alone.end());
          }
          std::vector<float> to(y.size() + 64, kBeside);
          kernels::avg_pool(params_of(pool(kPlanes)), x.data(), to.data());
          CHECK(same_bits(to, beside(y)));
          to.assign(dx.size() + 64, kBeside);
          kernels::avg_pool_backward(params_of(pool(kPlanes)), dy.data(), to.data(), false);
          CHECK(same_bits(to, beside(dx)));
        }
}

TEST_CASE("planes of narrow rows under small windows give the same bits on any number of threads") {
  Draw draw(41);
  for (const std::int64_t width : {3, 5, 8, 13})
    for (const auto& [k, stride] : {std::pair<std::int64_t, std::int64_t>{2, 2}, {3, 2}, {3, 1}}) {
      CAPTURE(width, k, stride);
      const AvgPool pool = fixed({6, width}, {k, k}, {stride, stride}, {k / 3, k / 3}, true, false, 0, 4001);
      const auto x = as<float>(draw.values(inputs(pool))), dy = as<float>(draw.values(outputs(pool)));
      CHECK(same_on_any_threads([&] { return run_forward(pool, x); }));
      CHECK(same_on_any_threads([&] { return run_backward(pool, dy); }));
    }
}
