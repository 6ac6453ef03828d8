#include "support/avg_pool_runs.hpp"
#include "support/catch.hpp"

using namespace taper::test;

namespace {

/// The stored values have four decimals.
bool close(const Values& got, const Values& expected) {
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) < 5.1e-5)) return false;
  return true;
}

/// x = 1, 2, 3, ...; the loss weighs the outputs 1, 2, 3, ...
void check_golden(const AvgPool& pool, const Values& y, const Values& dx) {
  CAPTURE(pool.in, pool.kernel, pool.stride, pool.padding, pool.adaptive, pool.ceil_mode, pool.count_include_pad);
  CHECK(close(run_forward(pool, rising(inputs(pool))), y));
  if (!dx.empty()) CHECK(close(run_backward(pool, rising(outputs(pool))), dx));
}

}  // namespace

TEST_CASE("1-d average pools give PyTorch's values") {
  const auto p1 = [](std::int64_t length, std::int64_t k, std::int64_t s, std::int64_t p = 0, bool ceil_mode = false,
                     bool count_include_pad = true) {
    return fixed({length}, {k}, {s}, {p}, ceil_mode, count_include_pad);
  };
  check_golden(p1(5, 2, 2, 0, true), {1.5, 3.5, 5}, {.5, .5, 1, 1, 3});
  check_golden(p1(5, 3, 2, 1), {1, 3, 3}, {.3333, 1, .6667, 1.6667, 1});
  check_golden(p1(5, 3, 2, 1, false, false), {1.5, 3, 4.5}, {.5, 1.1667, .6667, 2.1667, 1.5});
  check_golden(p1(6, 3, 2, 1, true), {1, 3, 5, 3}, {.3333, 1, .6667, 1.6667, 1, 3});
  check_golden(p1(6, 3, 2, 1, true, false), {1.5, 3, 5, 6}, {.5, 1.1667, .6667, 1.6667, 1, 5});
  check_golden(p1(6, 4, 3, 2, true), {.75, 3.5, 2.75}, {.25, .75, .5, .5, 1.25, .75});
  check_golden(p1(6, 4, 3, 2, true, false), {1.5, 3.5, 5.5}, {.5, 1, .5, .5, 2, 1.5});
  check_golden(p1(6, 2, 2, 1, true), {.5, 2.5, 4.5, 3}, {.5, 1, 1, 1.5, 1.5, 2});
  check_golden(p1(5, 2, 3, 0, true), {1.5, 4.5}, {.5, .5, 0, 1, 1});
  check_golden(p1(6, 2, 4, 1, true), {.5, 4.5}, {.5, 0, 0, 1, 1, 0});
  check_golden(p1(6, 2, 7, 1, true), {.5}, {.5, 0, 0, 0, 0, 0});
  check_golden(p1(2, 1, 3, 0, true), {1}, {1, 0});
  check_golden(p1(4, 1, 3, 0, true), {1, 4}, {1, 0, 0, 2});
  check_golden(p1(5, 4, 1, 2), {.75, 1.5, 2.5, 3.5, 3, 2.25}, {1.5, 2.5, 3.5, 4.5, 3.75});
  check_golden(p1(5, 6, 6, 0, true), {3}, {.2, .2, .2, .2, .2});
  check_golden(p1(7, 3, 1), {2, 3, 4, 5, 6}, {.3333, 1, 2, 3, 4, 3, 1.6667});
  for (const bool count_include_pad : {true, false})
    check_golden(p1(2, 3, 2, 0, true, count_include_pad), {1.5}, {.5, .5});
}

TEST_CASE("2-d and 3-d average pools give PyTorch's values") {
  const auto p2 = [](std::int64_t p, bool ceil_mode, bool count_include_pad, std::int64_t divisor) {
    return fixed({3, 3}, {2, 2}, {2, 2}, {p, p}, ceil_mode, count_include_pad, divisor);
  };
  check_golden(p2(0, true, true, 0), {3, 4.5, 7.5, 9}, {.25, .25, 1, .25, .25, 1, 1.5, 1.5, 4});
  check_golden(p2(1, false, true, 0), {.25, 1.25, 2.75, 7}, {.25, .5, .5, .75, 1, 1, .75, 1, 1});
  check_golden(p2(1, false, false, 0), {1, 2.5, 5.5, 7}, {1, 1, 1, 1.5, 1, 1, 1.5, 1, 1});
  check_golden(p2(1, false, true, 3), {.3333, 1.6667, 3.6667, 9.3333},
               {.3333, .6667, .6667, 1, 1.3333, 1.3333, 1, 1.3333, 1.3333});
  check_golden(p2(0, true, true, 3), {4, 3, 5, 3}, {.3333, .3333, .6667, .3333, .3333, .6667, 1, 1, 1.3333});
  check_golden(fixed({3, 3, 3}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, true), {7.5, 9, 12, 13.5, 21, 22.5, 25.5, 27}, {});
  check_golden(fixed({3, 3, 3}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, false, false),
               {7.5, 8.5, 10.5, 11.5, 16.5, 17.5, 19.5, 20.5}, {});
}

TEST_CASE("adaptive average pools give PyTorch's values") {
  check_golden(adaptive({7}, {2}), {2.5, 5.5}, {.25, .25, .25, .75, .5, .5, .5});
  check_golden(adaptive({7}, {3}), {2, 4, 6}, {.3333, .3333, 1, .6667, 1.6667, 1, 1});
  check_golden(adaptive({7}, {5}), {1.5, 2.5, 4, 5.5, 6.5}, {.5, 1.5, 2, 1, 3, 4.5, 2.5});
  check_golden(adaptive({7}, {9}), {1, 1.5, 2.5, 3.5, 4, 4.5, 5.5, 6.5, 7}, {2, 2.5, 3.5, 10, 6.5, 7.5, 13});
  check_golden(adaptive({5}, {3}), {1.5, 3, 4.5}, {.5, 1.1667, .6667, 2.1667, 1.5});
  check_golden(adaptive({3, 3}, {2, 2}), {3, 4, 6, 7}, {.25, .75, .5, 1, 2.5, 1.5, .75, 1.75, 1});
  check_golden(adaptive({3, 3}, {2, 1}), {3.5, 6.5}, {.1667, .1667, .1667, .5, .5, .5, .3333, .3333, .3333});
}
