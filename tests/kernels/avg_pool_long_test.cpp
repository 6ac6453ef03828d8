#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/avg_pool_runs.hpp"
#include "support/catch.hpp"

using namespace taper::test;

namespace {

/// Values whose sums are not exact.
Values thirds(std::int64_t n, Draw& draw) {
  Values x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(draw.value() / 3);
  return x;
}

/// Gradients that are added to zeros are those that are stored, and each plane's results are those of the plane alone,
/// on any number of threads.
template <class T>
bool has_one_result(const AvgPool& pool, Draw& draw) {
  const auto x = as<T>(thirds(inputs(pool), draw)), dy = as<T>(thirds(outputs(pool), draw));
  const auto y = run_forward(pool, x), dx = run_backward(pool, dy);
  std::vector<T> sum(dx.size(), T(0));
  run_backward(pool, dy, sum, true);
  bool same = same_bits(sum, dx);
  AvgPool alone = pool;
  alone.planes = 1;
  for (const std::int64_t p : {std::int64_t{0}, pool.planes - 1}) {
    same &= same_bits(part_of(y, p, pool.planes), run_forward(alone, part_of(x, p, pool.planes)));
    same &= same_bits(part_of(dx, p, pool.planes), run_backward(alone, part_of(dy, p, pool.planes)));
  }
  return same && same_on_any_threads([&] { return run_forward(pool, x); }) &&
         same_on_any_threads([&] { return run_backward(pool, dy); });
}

}  // namespace

TEST_CASE("long windows that overlap equal their definition, at each element and at some") {
  Draw draw(31);
  for (const bool count_include_pad : {false, true})
    for (const auto& [length, k, s, p] : std::vector<std::array<std::int64_t, 4>>{{131, 17, 1, 8},
                                                                                  {257, 33, 1, 0},
                                                                                  {1301, 129, 1, 64},
                                                                                  {5003, 255, 1, 0},
                                                                                  {263, 18, 4, 5},
                                                                                  {131, 33, 2, 16},
                                                                                  {1301, 67, 2, 33},
                                                                                  {1301, 101, 3, 0},
                                                                                  {1301, 128, 4, 64},
                                                                                  {2311, 257, 5, 9},
                                                                                  {2311, 301, 17, 150},
                                                                                  {9001, 509, 7, 3},
                                                                                  {5003, 1201, 67, 600},
                                                                                  {5003, 2048, 2, 0}}) {
      CAPTURE(length, k, s, p, count_include_pad);
      CHECK(agrees(fixed({length}, {k}, {s}, {p}, true, count_include_pad, 0, 2), draw));
    }
}

TEST_CASE("windows over many rows that overlap equal their definition") {
  Draw draw(32);
  for (const bool count_include_pad : {false, true})
    for (const auto& [h, w, kh, kw, s, p] : std::vector<std::array<std::int64_t, 6>>{{37, 41, 16, 16, 1, 0},
                                                                                     {53, 37, 17, 17, 1, 8},
                                                                                     {41, 67, 32, 5, 1, 2},
                                                                                     {67, 71, 33, 33, 2, 16},
                                                                                     {83, 19, 64, 3, 7, 1},
                                                                                     {67, 3, 19, 1, 1, 0},
                                                                                     {29, 1301, 18, 21, 1, 9},
                                                                                     {31, 4201, 16, 2, 3, 1},
                                                                                     {23, 1021, 19, 509, 1, 9},
                                                                                     {151, 13, 101, 2, 1, 1}}) {
      CAPTURE(h, w, kh, kw, s, p, count_include_pad);
      CHECK(agrees(fixed({h, w}, {kh, kw}, {s, s}, {p, std::min(p, kw / 2)}, true, count_include_pad), draw));
    }
  CHECK(agrees(fixed({23, 29, 31}, {3, 17, 17}, {1, 1, 1}, {1, 8, 8}), draw));
  AvgPool uneven = fixed({53, 31}, {17, 2}, {1, 1}, {8, 1});
  uneven.padding_right = {3, 0};
  CHECK(agrees(uneven, draw));
}

TEST_CASE("long windows give the same bits on any number of threads, written or added, of all planes or one") {
  Draw draw(33);
  for (const AvgPool& pool :
       {fixed({4099}, {100}, {1}, {50}, false, true, 0, 31), fixed({9001}, {509}, {1}, {0}, false, true, 0, 7),
        fixed({9001}, {509}, {2}, {0}, false, false, 0, 7), fixed({4099}, {101}, {3}, {50}, false, false, 0, 31),
        fixed({131, 127}, {32, 32}, {1, 1}, {0, 0}, false, true, 0, 13),
        fixed({131, 127}, {33, 33}, {1, 1}, {16, 16}, false, false, 0, 13),
        fixed({131, 127}, {33, 3}, {2, 1}, {16, 1}, false, true, 0, 13),
        fixed({199, 211}, {19, 3}, {1, 1}, {9, 1}, false, true, 0, 103),
        fixed({67, 1301}, {17, 20}, {1, 1}, {8, 10}, false, false, 0, 5)}) {
    CAPTURE(pool.in, pool.kernel, pool.stride);
    CHECK(has_one_result<float>(pool, draw));
    CHECK(has_one_result<double>(pool, draw));
  }
}

TEST_CASE("long windows of float64 keep its precision, and do not feel a large element beside them") {
  Draw draw(34);
  for (const auto& [k, s] :
       std::vector<std::array<std::int64_t, 2>>{{17, 1}, {100, 1}, {1009, 1}, {2048, 1}, {67, 2}, {1009, 5}}) {
    CAPTURE(k, s);
    const AvgPool pool = fixed({3301}, {k}, {s}, {0});
    Values x = thirds(3301, draw);
    for (double& v : x) v += 1000;
    const std::int64_t at = 1501;
    x[std::size_t(at)] = 1e24;
    const Values y = run_forward(pool, x);
    double worst = 0;
    for (std::int64_t o = 0; o < std::int64_t(y.size()); ++o) {
      if (at >= o * s && at < o * s + k) continue;
      long double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) sum += static_cast<long double>(x[std::size_t(o * s + j)]);
      const long double mean = sum / static_cast<long double>(k);
      worst = std::max(worst, double(std::abs(static_cast<long double>(y[std::size_t(o)]) - mean) / mean));
    }
    CHECK(worst < 2e-15);
  }
}
