#include <cmath>
#include <cstdint>
#include <vector>

#include "base/memory_ahead.hpp"
#include "kernels/avg_pool.hpp"
#include "support/avg_pool_runs.hpp"
#include "support/catch.hpp"
#include "support/replaced.hpp"

// Average pools of more than the caches hold.

using namespace taper;
using namespace taper::test;

namespace {

/// Checks the gradients of `pool(planes)`, of more than `least` bytes, against those of some of its planes alone.
template <class Pool>
void check_gradients(Draw& draw, const Pool& pool, std::int64_t planes, std::int64_t least) {
  REQUIRE(inputs(pool(planes)) * std::int64_t{sizeof(float)} > least);
  const auto dy = as<float>(draw.values(outputs(pool(planes))));
  const auto dx = run_backward(pool(planes), dy);
  for (const std::int64_t plane : {std::int64_t{0}, std::int64_t{1}, planes / 2, planes - 1})
    CHECK(same_bits(part_of(dx, plane, planes), run_backward(pool(1), part_of(dy, plane, planes))));
}

}  // namespace

TEST_CASE("gradients too many for the caches are those of each plane alone") {
  Draw draw(14);
  const std::int64_t planes = 211;
  // Windows that share a row, and windows side by side.
  for (const std::int64_t height : {199, 198}) {
    CAPTURE(height);
    const auto pool = [=](std::int64_t n) { return adaptive({height, 211}, {2, 3}, n); };
    check_gradients(draw, pool, planes, std::int64_t{1} << 25);
  }
}

TEST_CASE("gradients of small windows too many for the caches are those of each plane alone") {
  Draw draw(23);
  const std::int64_t planes = 107;
  // Rows that registers hold, and longer ones.
  for (const std::int64_t width : {53, 211, 419})
    for (const std::int64_t k : {2, 3})
      for (const bool counts : {true, false}) {
        CAPTURE(width, k, counts);
        const std::int64_t height = 79 * 1024 / width;
        const auto pool = [=](std::int64_t n) {
          return fixed({height, width}, {k, k}, {2, 2}, {k / 3, k / 3}, counts, false, 0, n);
        };
        check_gradients(draw, pool, planes, std::int64_t{1} << 25);
      }
}

TEST_CASE("gradients of windows side by side too many for the caches are those of each plane alone") {
  Draw draw(29);
  const std::int64_t planes = 1031, k = 7, length = k * 2327;
  const auto pool = [=](std::int64_t n) { return fixed({length}, {k}, {k}, {0}, true, false, 0, n); };
  check_gradients(draw, pool, planes, std::int64_t{1} << 26);
}

TEST_CASE("averages of what is too much for the caches are those of each plane alone") {
  Draw draw(19);
  const std::int64_t planes = 103;
  const auto all = as<float>(draw.values(planes * 199 * 211));
  REQUIRE(all.size() * sizeof(float) > std::size_t{1} << 24);
  // Few rows and many, summed in float32 and in double.
  for (const std::int64_t k : {3, 5, 7, 11, 19, 23}) {
    CAPTURE(k);
    const auto same = [=](std::int64_t n) { return fixed({199, 211}, {k, 3}, {1, 1}, {k / 2, 1}, false, false, 0, n); };
    const auto dy = std::vector<float>(all.begin(), all.begin() + outputs(same(planes)));
    const auto dx = run_backward(same(planes), dy);
    for (const std::int64_t plane : {std::int64_t{0}, planes / 2, planes - 1})
      CHECK(same_bits(part_of(dx, plane, planes), run_backward(same(1), part_of(dy, plane, planes))));
    for (const std::int64_t width : {3, 37}) {
      CAPTURE(width);
      const auto apart = [=](std::int64_t n) {
        return fixed({199, 211}, {k, width}, {k, width}, {0, 0}, true, false, 0, n);
      };
      const auto y = run_forward(apart(planes), all);
      for (const std::int64_t plane : {std::int64_t{0}, planes / 2, planes - 1})
        CHECK(same_bits(part_of(y, plane, planes), run_forward(apart(1), part_of(all, plane, planes))));
    }
  }
}

TEST_CASE("averages along rows that are too much for the caches are those of each row alone") {
  Draw draw(20);
  const std::int64_t rows = 1031, length = 4099;
  const auto all = as<float>(draw.values(rows * length));
  REQUIRE(all.size() * sizeof(float) > std::size_t{1} << 24);
  for (const std::int64_t k : {1, 2, 3, 4, 5, 16})
    for (const std::int64_t s : {std::int64_t{1}, std::int64_t{2}, k}) {
      CAPTURE(k, s);
      const auto pool = [=](std::int64_t n) { return fixed({length}, {k}, {s}, {0}, true, false, 0, n); };
      const auto y = run_forward(pool(rows), all);
      for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1})
        CHECK(same_bits(part_of(y, row, rows), run_forward(pool(1), part_of(all, row, rows))));
    }
}

namespace {

/// `results(to)` where the first element is `shift` behind the beginning of a cache line.
template <class Results>
std::vector<float> stored_at(std::int64_t shift, std::int64_t count, const Results& results) {
  std::vector<float> all(std::size_t(count + shift + 16), std::numeric_limits<float>::quiet_NaN());
  float* line = all.data();
  while (reinterpret_cast<std::uintptr_t>(line) % 64 != 0) ++line;
  results(line + shift);
  return {line + shift, line + shift + count};
}

}  // namespace

TEST_CASE("averages and gradients stored past the caches are those stored in them") {
  Draw draw(37);
  std::vector<AvgPool> pools;
  // Whole vectors of windows and some more, rows of whole vectors and others.
  for (const std::int64_t n : {1024, 1030, 64, 40})
    for (const std::int64_t k : {2, 3, 4, 7}) pools.push_back(fixed({n}, {k}, {k}, {0}, true, false, 0, 5));
  for (const std::int64_t width : {8, 16, 48, 64, 104, 150, 176})
    for (const std::int64_t k : {2, 3})
      for (const bool counts : {true, false})
        pools.push_back(fixed({30, width}, {k, k}, {2, 2}, {k / 3, k / 3}, counts, false, 0, 3));
  pools.push_back(fixed({60}, {60}, {1}, {0}, true, false, 0, 31));
  pools.push_back(adaptive({48, 64}, {6, 8}, 3));
  pools.push_back(adaptive({40, 100}, {7, 9}, 3));
  for (const AvgPool& pool : pools) {
    const auto x = as<float>(draw.values(inputs(pool))), dy = as<float>(draw.values(outputs(pool)));
    const auto y = run_forward(pool, x), dx = run_backward(pool, dy);
    const Replaced no_caches(detail::beyond_caches, 0);
    CAPTURE(pool.in, pool.kernel, pool.stride, pool.adaptive);
    // Lines, vectors and elements that begin nowhere.
    for (const std::int64_t shift : {0, 8, 1}) {
      CHECK(same_bits(stored_at(shift, outputs(pool), [&](float* to) { forward_to(pool, x.data(), to); }), y));
      CHECK(same_bits(stored_at(shift, inputs(pool), [&](float* to) { backward_to(pool, dy.data(), to, false); }), dx));
    }
  }
}
