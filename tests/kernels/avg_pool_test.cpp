#include "kernels/avg_pool.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/parallel.hpp"
#include "kernels/sum_run.hpp"
#include "support/accuracy.hpp"
#include "support/avg_pool_runs.hpp"
#include "support/catch.hpp"
#include "taper/error.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("every valid 1-d average pool of the sweep equals its definition, forward and backward") {
  Draw draw(1);
  int valid = 0, wrong = 0;
  for (std::int64_t length = 0; length <= 12; ++length)
    for (std::int64_t k = 0; k <= 7; ++k)
      for (std::int64_t s = 0; s <= 4; ++s)
        for (std::int64_t p = 0; p <= 4; ++p)
          for (const bool ceil_mode : {false, true})
            for (const bool count_include_pad : {false, true}) {
              const AvgPool pool = fixed({length}, {k}, {s}, {p}, ceil_mode, count_include_pad, 0, 3);
              if (!pool.length(0)) continue;
              ++valid;
              if (!agrees(pool, draw)) ++wrong;
            }
  CHECK(valid == 3224);
  CHECK(wrong == 0);
}

TEST_CASE("windows of at most sixteen columns equal their definition at every stride") {
  Draw draw(31);
  int wrong = 0;
  for (std::int64_t k = 1; k <= 17; ++k)
    for (std::int64_t s = 3; s <= 18; ++s)
      for (const std::int64_t windows : {1, 4, 7, 16, 21})
        for (const std::int64_t rows : {0, 3, 5}) {
          // With a margin of zeros, or rows that are read where they lie.
          const std::int64_t padding = windows == 7 ? k / 2 : 0, length = (windows - 1) * s + k - padding;
          const AvgPool pool =
              rows == 0 ? fixed({length}, {k}, {s}, {padding}, true, false, 0, 3)
                        : fixed({2 * rows + 1, length}, {rows, k}, {rows, s}, {0, padding}, false, windows % 2 == 0);
          if (!agrees(pool, draw)) ++wrong;
        }
  CHECK(wrong == 0);
}

TEST_CASE("windows of any terms at each or every second element equal their definition, near and far apart") {
  Draw draw(32);
  // Few windows, and more than are taken at a time; each row of windows reads one row or some.
  for (const std::int64_t s : {1, 2})
    for (std::int64_t k = 1; k <= 17; ++k)
      for (const std::int64_t dilation : {1, 2, 3, 4})
        for (const std::int64_t windows : {5, 8, 21, 523})
          for (const std::int64_t rows : {1, 3}) {
            CAPTURE(s, k, dilation, windows, rows);
            const std::int64_t padding = windows == 8 ? 0 : k / 2;
            AvgPool pool = fixed({rows + 4, (windows - 1) * s + dilation * (k - 1) + 1 - padding}, {rows, k}, {1, s},
                                 {0, padding}, true, k % 2 == 0, windows == 21 ? 3 : 0);
            pool.dilation = {1, dilation};
            CHECK(agrees(pool, draw));
          }
  for (const auto& [k, dilation] : std::vector<std::array<std::int64_t, 2>>{{2, 2047}, {3, 1365}, {64, 63}, {63, 64}}) {
    CAPTURE(k, dilation);
    AvgPool pool = fixed({3, 5501}, {2, k}, {1, 2}, {0, 0});
    pool.dilation = {1, dilation};
    CHECK(agrees(pool, draw));
  }
}

TEST_CASE("random 2-d and 3-d average pools equal their definition") {
  Draw draw(2);
  const std::int64_t primes[] = {2, 3, 5, 7, 11, 13};
  int tried = 0;
  for (int round = 0; round < 6000; ++round) {
    AvgPool pool = fixed({}, {}, {}, {});
    const std::int64_t rank = round % 5 == 0 ? 3 : 2;
    pool.planes = 1 + draw.below(3);
    pool.ceil_mode = draw.below(2) != 0;
    pool.count_include_pad = draw.below(2) != 0;
    pool.divisor_override = draw.below(4) == 0 ? 1 + draw.below(7) : 0;
    for (std::int64_t d = 0; d < rank; ++d) {
      pool.in.push_back(primes[draw.below(rank == 3 ? 4 : 6)]);
      pool.kernel.push_back(draw.below(5) == 0 ? pool.in.back() : 1 + draw.below(7));
      pool.stride.push_back(draw.below(3) == 0 ? pool.kernel.back() : 1 + draw.below(4));
      pool.padding.push_back(draw.below(pool.kernel.back() / 2 + 1));
    }
    bool admitted = true;
    for (std::size_t d = 0; d < pool.in.size(); ++d) admitted = admitted && pool.length(d);
    if (!admitted) continue;
    ++tried;
    CAPTURE(pool.planes, pool.in, pool.kernel, pool.stride, pool.padding, pool.ceil_mode, pool.count_include_pad,
            pool.divisor_override);
    if (!agrees(pool, draw)) FAIL("differs from the definition");
  }
  CHECK(tried > 3000);
}

TEST_CASE("adaptive average pools equal their definition, also with more outputs than inputs") {
  Draw draw(3);
  for (std::int64_t length = 1; length <= 17; ++length)
    for (std::int64_t out = 1; out <= 23; ++out) {
      CAPTURE(length, out);
      if (!agrees(adaptive({length}, {out}, 2), draw)) FAIL("differs from the definition");
    }
  for (int round = 0; round < 1000; ++round) {
    AvgPool pool = adaptive({}, {}, 1 + draw.below(3));
    for (int d = 0; d < (round % 4 == 0 ? 3 : 2); ++d) {
      pool.in.push_back(1 + draw.below(11));
      pool.adaptive.push_back(draw.below(4) == 0 ? pool.in.back() : 1 + draw.below(13));
    }
    CAPTURE(pool.in, pool.adaptive);
    if (!agrees(pool, draw)) FAIL("differs from the definition");
  }
}

TEST_CASE("adaptive pools of many rows equal their definition, each row as alone") {
  Draw draw(5);
  for (const auto& [length, out, planes] : std::vector<std::array<std::int64_t, 3>>{{87, 10, 523},
                                                                                    {312, 50, 83},
                                                                                    {3, 2, 1031},
                                                                                    {16, 15, 11},
                                                                                    {31, 2, 19},
                                                                                    {263, 17, 7},
                                                                                    {211, 16, 5},
                                                                                    {997, 301, 3},
                                                                                    {83, 7, 3001}}) {
    CAPTURE(length, out, planes);
    const AvgPool pool = adaptive({length}, {out}, planes), row = adaptive({length}, {out});
    CHECK(agrees(pool, draw));
    const auto x = as<float>(draw.values(inputs(pool))), dy = as<float>(draw.values(outputs(pool)));
    const auto y = run_forward(pool, x), dx = run_backward(pool, dy);
    const auto of_row = [](const std::vector<float>& all, std::int64_t i, std::int64_t size) {
      return std::vector<float>(all.begin() + i * size, all.begin() + (i + 1) * size);
    };
    for (const std::int64_t i : {std::int64_t{0}, planes / 2, planes - 1}) {
      CHECK(same_bits(of_row(y, i, out), run_forward(row, of_row(x, i, length))));
      CHECK(same_bits(of_row(dx, i, length), run_backward(row, of_row(dy, i, out))));
    }
    // Gradients that are added to zeros are those that are stored.
    std::vector<float> sum(dx.size(), 0.0f);
    run_backward(pool, dy, sum, true);
    CHECK(same_bits(sum, dx));
  }
}

TEST_CASE("rows and windows longer than the buffers are pooled in pieces") {
  Draw draw(4);
  for (const bool count_include_pad : {false, true}) {
    for (const auto& [k, s, p] : std::vector<std::array<std::int64_t, 3>>{
             {3, 1, 1}, {2, 2, 0}, {3, 2, 1}, {3, 3, 1}, {25, 1, 12}, {25, 25, 3}, {9, 4, 4}, {2, 5, 1}}) {
      CAPTURE(k, s, p, count_include_pad);
      CHECK(agrees(fixed({2311}, {k}, {s}, {p}, true, count_include_pad), draw));
      CHECK(agrees(fixed({3, 1511}, {2, k}, {1, s}, {1, p}, true, count_include_pad), draw));
    }
    CHECK(agrees(fixed({1699}, {1201}, {1}, {600}, false, count_include_pad), draw));
    CHECK(agrees(fixed({3, 1399}, {2, 1201}, {1, 7}, {1, 600}, false, count_include_pad), draw));
    CHECK(agrees(fixed({3, 1301}, {2, 1201}, {1, 1}, {1, 600}, true, count_include_pad), draw));
    CHECK(agrees(fixed({211, 3}, {5, 2}, {2, 1}, {2, 1}, true, count_include_pad), draw));
    for (const auto& [k, s, p] :
         std::vector<std::array<std::int64_t, 3>>{{3, 1, 1}, {2, 2, 0}, {4, 4, 1}, {31, 1, 15}, {509, 1, 0}}) {
      CAPTURE(k, s, p, count_include_pad);
      CHECK(agrees(fixed({9001}, {k}, {s}, {p}, true, count_include_pad, 0, 2), draw));
    }
  }
  // Rows that no window holds.
  CHECK(agrees(fixed({3, 211}, {1, 3}, {3, 1}, {0, 0}, false, true, 0, 5), draw));
  CHECK(agrees(adaptive({2311}, {3}), draw));
  CHECK(agrees(adaptive({3, 2311}, {2, 2}), draw));
  CHECK(agrees(adaptive({2311}, {1801}), draw));
  CHECK(agrees(adaptive({2}, {2311}), draw));
  CHECK(agrees(adaptive({3, 2}, {2, 2311}), draw));
  CHECK(agrees(adaptive({5, 1301}, {3, 1511}), draw));
}

TEST_CASE("planes of more rows than a block, under windows of two and three in each direction, are pooled in pieces") {
  Draw draw(17);
  for (const bool count_include_pad : {false, true})
    for (const auto& [k, s, p] :
         std::vector<std::array<std::int64_t, 3>>{{2, 2, 0}, {3, 1, 1}, {3, 2, 1}, {2, 1, 0}, {3, 3, 0}}) {
      CAPTURE(k, s, p, count_include_pad);
      CHECK(agrees(fixed({263, 61}, {k, k}, {s, s}, {p, p}, true, count_include_pad), draw));
      CHECK(agrees(fixed({23, 1021}, {k, k}, {s, s}, {p, p}, true, count_include_pad), draw));
      CHECK(agrees(fixed({5, 83, 101}, {k, k, k}, {s, s, s}, {p, p, p}, true, count_include_pad), draw));
      CHECK(agrees(fixed({7, 19, 47}, {3, k, k}, {2, s, s}, {1, p, p}, true, count_include_pad, 0, 2), draw));
    }
}

TEST_CASE("dilated windows and uneven padding, rows longer than the buffers") {
  Draw draw(13);
  const auto with = [](AvgPool pool, std::vector<std::int64_t> right, std::vector<std::int64_t> dilation) {
    pool.padding_right = std::move(right);
    pool.dilation = std::move(dilation);
    return pool;
  };
  for (const bool cip : {false, true})
    for (const std::int64_t divisor : {0, 5}) {
      CAPTURE(cip, divisor);
      CHECK(agrees(with(fixed({2311}, {3}, {1}, {1}, true, cip, divisor), {2}, {2}), draw));
      CHECK(agrees(with(fixed({2311}, {25}, {7}, {600}, true, cip, divisor), {500}, {61}), draw));
      CHECK(agrees(with(fixed({2311}, {2}, {1}, {1000}, false, cip, divisor), {0}, {2100}), draw));
      CHECK(agrees(with(fixed({3, 1511}, {2, 5}, {1, 2}, {1, 3}, true, cip, divisor), {0, 4}, {2, 3}), draw));
      CHECK(agrees(
          with(fixed({7, 5, 1201}, {2, 3, 2}, {2, 1, 3}, {1, 0, 4}, true, cip, divisor), {2, 1, 7}, {3, 1, 17}), draw));
      CHECK(agrees(with(fixed({2311}, {25}, {1}, {3}, true, cip, divisor), {12}, {1}), draw));
      CHECK(agrees(with(fixed({1511}, {2}, {2}, {0}, true, cip, divisor), {1}, {1}), draw));
      CHECK(agrees(with(fixed({3, 1511}, {3, 3}, {1, 1}, {0, 1}, false, cip, divisor), {1, 0}, {1, 1}), draw));
    }
}

TEST_CASE("a dilated window without an element gives 0 and takes no gradient") {
  for (const bool cip : {false, true}) {
    const AvgPool pool{.planes = 1,
                       .in = {1},
                       .kernel = {2},
                       .stride = {1},
                       .padding = {1},
                       .count_include_pad = cip,
                       .padding_right = {1},
                       .dilation = {2}};
    CHECK(run_forward(pool, Values{7}) == Values{0});
    CHECK(run_backward(pool, Values{1}) == Values{0});
    AvgPool plane = pool;
    plane.in = {3, 1};
    plane.kernel = {2, 2};
    plane.stride = {1, 1};
    plane.padding = plane.padding_right = {0, 1};
    plane.dilation = {1, 2};
    CHECK(run_forward(plane, rising(3)) == Values{0, 0});
    CHECK(run_backward(plane, Values{1, 1}) == Values{0, 0, 0});
  }
}

TEST_CASE("an output that holds the whole plane is the same as its mean, bit for bit") {
  Draw draw(5);
  for (const auto& [h, w] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{7, 5}, {1, 10}, {13, 1}, {31, 37}, {3, 1511}}) {
    CAPTURE(h, w);
    const std::int64_t planes = 3;
    Values x;
    for (std::int64_t i = 0; i < planes * h * w; ++i) x.push_back(draw.value() / 3);
    Values mean;
    for (std::int64_t plane = 0; plane < planes; ++plane)
      mean.push_back(kernels::sum_run(x.data() + plane * h * w, h * w) / double(h * w));
    CHECK(same_bits(run_forward(fixed({h, w}, {h, w}, {h, w}, {0, 0}, false, true, 0, planes), x), mean));
    CHECK(same_bits(run_forward(fixed({h, w}, {h, w}, {1, 3}, {0, 0}, false, false, 0, planes), x), mean));
    CHECK(same_bits(run_forward(adaptive({h, w}, {1, 1}, planes), x), mean));
    CHECK(
        same_bits(run_forward(fixed({h, w}, {h + 1, w + 1}, {h + 1, w + 1}, {0, 0}, true, true, 0, planes), x), mean));
    CHECK(same_bits(run_forward(fixed({h * w}, {h * w}, {h * w}, {0}, false, true, 0, planes), x), mean));
    CHECK(same_bits(run_forward(adaptive({h * w}, {1}, planes), x), mean));
    CHECK(same_bits(run_forward(fixed({1, h, w}, {1, h, w}, {1, 1, 1}, {0, 0, 0}, false, true, 0, planes), x), mean));
  }
}

TEST_CASE("a pool with unit dimensions is the pool without them, bit for bit") {
  Draw draw(6);
  const auto x = as<float>(draw.values(2 * 101));
  for (const bool count_include_pad : {false, true})
    for (const auto& [k, s, p] :
         std::vector<std::array<std::int64_t, 3>>{{3, 2, 1}, {7, 1, 3}, {19, 5, 9}, {2, 2, 0}, {101, 3, 0}}) {
      CAPTURE(k, s, p, count_include_pad);
      const auto y = run_forward(fixed({101}, {k}, {s}, {p}, false, count_include_pad, 0, 2), x);
      CHECK(same_bits(run_forward(fixed({1, 101}, {1, k}, {1, s}, {0, p}, false, count_include_pad, 0, 2), x), y));
      CHECK(same_bits(run_forward(fixed({101, 1}, {k, 1}, {s, 1}, {p, 0}, false, count_include_pad, 0, 2), x), y));
      CHECK(same_bits(
          run_forward(fixed({1, 101, 1}, {1, k, 1}, {1, s, 1}, {0, p, 0}, false, count_include_pad, 0, 2), x), y));
    }
}

TEST_CASE("a strided pool is every s-th output of the pool with stride 1") {
  Draw draw(7);
  const auto x = as<double>(draw.values(29 * 31));
  for (const std::int64_t k : {2, 3, 6, 19}) {
    const auto dense = run_forward(fixed({29, 31}, {3, k}, {1, 1}, {0, 0}), x);
    const auto strided = run_forward(fixed({29, 31}, {3, k}, {2, 5}, {0, 0}), x);
    const std::int64_t across = 31 - k + 1, strided_across = (31 - k) / 5 + 1;
    bool same = true;
    for (std::int64_t i = 0; i < 14; ++i)
      for (std::int64_t j = 0; j < strided_across; ++j)
        same &= strided[std::size_t(i * strided_across + j)] == dense[std::size_t(2 * i * across + 5 * j)];
    CHECK(same);
  }
}

TEST_CASE("pooling to the same size copies every bit") {
  const std::vector<float> x = {-0.0f, 0.0f, 1e-45f, -3.4e38f, INFINITY, 1.5f};
  CHECK(same_bits(run_forward(adaptive({6}, {6}), x), x));
  CHECK(same_bits(run_forward(adaptive({2, 3}, {2, 3}), x), x));
  CHECK(same_bits(run_forward(fixed({2, 3}, {1, 1}, {1, 1}, {0, 0}), x), x));
}

TEST_CASE("a padding of half a huge kernel neither wraps nor reads outside") {
  const std::int64_t huge = std::int64_t{1} << 61;
  const Values y = run_forward(fixed({5}, {huge}, {1}, {huge / 2}, false, false), rising(5));
  CHECK(y == Values{3, 3, 3, 3, 3, 3});
  CHECK(run_forward(fixed({5, 3}, {huge, 2}, {1, 1}, {huge / 2, 1}, false, false), rising(15)).size() == 24);
  CHECK(near(run_backward(fixed({5}, {huge}, {1}, {huge / 2}, false, false), Values(6, 1.0)), Values(5, 1.2)));
}

TEST_CASE("an empty adaptive output gives zero gradients, an empty batch nothing") {
  CHECK(run_forward(adaptive({5}, {0}), rising(5)).empty());
  CHECK(run_backward(adaptive({5}, {0}), Values{}) == Values(5, 0.0));
  CHECK(run_backward(adaptive({2, 3}, {0, 2}, 2), Values{}) == Values(12, 0.0));
  Values kept = rising(6);
  run_backward(adaptive({2, 3}, {4, 0}), Values{}, kept, true);
  CHECK(kept == rising(6));
  CHECK(run_forward(fixed({5}, {2}, {1}, {0}, false, true, 0, 0), Values{}).empty());
  CHECK(run_backward(fixed({5}, {2}, {1}, {0}, false, true, 0, 0), Values{}).empty());
  CHECK(run_backward(adaptive({5}, {3}, 0), Values{}).empty());
}

TEST_CASE("averages of float32 are exact to one unit in the last place") {
  const std::vector<float> ones(std::size_t{1} << 25, 1.0f);
  CHECK(run_forward(fixed({1 << 25}, {1 << 25}, {1}, {0}), ones)[0] == 1.0f);
  CHECK(run_forward(fixed({8192, 4096}, {8192, 4096}, {1, 1}, {0, 0}), ones)[0] == 1.0f);
  // Values near 1000 with a cancelling pair: sums in float32 would lose what is left.
  Draw draw(10);
  std::vector<float> x;
  for (int i = 0; i < 4096; ++i) x.push_back(float(1000 + draw.value()) * (i % 2 == 0 ? 1.0f : -1.0f));
  for (const std::int64_t k : {2, 4, 25, 1000}) {
    const auto y = run_forward(fixed({4096}, {k}, {1}, {0}), x);
    bool exact = true;
    for (std::size_t o = 0; o < y.size(); ++o) {
      long double sum = 0;
      for (std::size_t j = 0; j < std::size_t(k); ++j) sum += static_cast<long double>(x[o + j]);
      const auto expected = float(sum / static_cast<long double>(k));
      exact &=
          y[o] == expected || y[o] == std::nextafter(expected, INFINITY) || y[o] == std::nextafter(expected, -INFINITY);
    }
    CHECK(exact);
  }
}

TEST_CASE("long windows of float32 at each element keep to the tolerance, and what only double holds") {
  Draw draw(18);
  for (const std::int64_t k : {17, 31, 64, 257, 1009})
    for (const double offset : {0.0, 1.0, 1000.0}) {
      CAPTURE(k, offset);
      Values x;
      for (int i = 0; i < 3 * 2311; ++i) x.push_back(double(float(offset + draw.value() / 3)));
      const AvgPool pool = fixed({2311}, {k}, {1}, {k / 2}, false, false, 0, 3);
      CHECK(relative_error(run_forward(pool, as<float>(x)), run_forward(pool, x)) < tolerance<float>());
      Values dy = x;
      dy.resize(std::size_t(outputs(pool)), offset);  // one more a plane where k is even
      CHECK(relative_error(run_backward(pool, as<float>(dy)), run_backward(pool, dy)) < tolerance<float>());
    }
  const std::vector<float> large(311, 3e38f);
  for (const float y : run_forward(fixed({311}, {31}, {1}, {0}), large)) CHECK(y == Approx(3e38f).epsilon(1e-6));
}

TEST_CASE("a large element is not felt by the long windows beside it") {
  for (const std::int64_t k : {17, 31, 33, 100, 640}) {
    const AvgPool pool = fixed({1301}, {k}, {1}, {0});
    std::vector<float> x(1301, 1.0f), dy(std::size_t(outputs(pool)), 1.0f);
    const std::int64_t at = 653, chosen = std::int64_t(dy.size()) / 2;
    x[std::size_t(at)] = dy[std::size_t(chosen)] = 1e8f;
    const auto y = run_forward(pool, x), dx = run_backward(pool, dy);
    CAPTURE(k);
    for (std::int64_t o = 0; o < std::int64_t(y.size()); ++o)
      if (at < o || at >= o + k) CHECK(y[std::size_t(o)] == Approx(1).epsilon(4e-7));
    for (std::int64_t i = k - 1; i < std::int64_t(dy.size()); ++i)
      if (i < chosen || i >= chosen + k) CHECK(dx[std::size_t(i)] == Approx(1).epsilon(4e-7));
  }
}

template <class T>
bool spoils_its_windows_alone(std::int64_t k, std::int64_t s, std::int64_t p, T value) {
  const std::int64_t length = 311, at = 97;
  const AvgPool pool = fixed({length}, {k}, {s}, {p});
  const auto holds = [&](std::int64_t o, std::int64_t i) { return o * s - p <= i && i < o * s - p + k; };
  std::vector<T> x(std::size_t(length), T(1)), dy(std::size_t(outputs(pool)), T(1));
  const std::size_t chosen = dy.size() / 3;
  x[std::size_t(at)] = dy[chosen] = value;
  const auto y = run_forward(pool, x), dx = run_backward(pool, dy);
  bool alone = true;
  for (std::size_t o = 0; o < y.size(); ++o) alone &= std::isfinite(y[o]) != holds(std::int64_t(o), at);
  for (std::size_t i = 0; i < dx.size(); ++i)
    alone &= std::isfinite(dx[i]) != holds(std::int64_t(chosen), std::int64_t(i));
  return alone;
}

TEST_CASE("an infinity or a NaN spoils the windows that hold it alone, forward and backward") {
  for (const auto& [k, s] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                                               {2, 2},
                                                                               {3, 1},
                                                                               {3, 2},
                                                                               {3, 3},
                                                                               {5, 5},
                                                                               {7, 3},
                                                                               {11, 1},
                                                                               {25, 1},
                                                                               {25, 4},
                                                                               {25, 25},
                                                                               {101, 1},
                                                                               {101, 7}})
    for (const std::int64_t p : {std::int64_t{0}, k / 2}) {
      CAPTURE(k, s, p);
      CHECK(spoils_its_windows_alone(k, s, p, INFINITY));
      CHECK(spoils_its_windows_alone(k, s, p, double(NAN)));
      CHECK(spoils_its_windows_alone(k, s, p, -double(INFINITY)));
      CHECK(spoils_its_windows_alone(k, s, p, NAN));
    }
}

TEST_CASE("average pools give the same bits on any number of threads") {
  Draw draw(11);
  const int before = kernels::max_threads();
  for (const AvgPool& pool :
       {fixed({67, 131}, {3, 5}, {1, 2}, {1, 2}, true, false, 0, 17),
        fixed({4099}, {25}, {1}, {12}, false, true, 0, 31), fixed({257}, {257}, {257}, {0}, false, true, 0, 509),
        fixed({521, 257}, {3, 3}, {2, 2}, {1, 1}), dilated({67, 131}, {3, 5}, {2, 3}, 19),
        adaptive({67, 131}, {7, 11}, 13), adaptive({523, 67}, {3, 1}), adaptive({87}, {10}, 4099)}) {
    CAPTURE(pool.in, pool.kernel, pool.adaptive);
    const auto x = as<float>(draw.values(inputs(pool))), dy = as<float>(draw.values(outputs(pool)));
    kernels::set_max_threads(1);
    const auto y = run_forward(pool, x), dx = run_backward(pool, dy);
    for (const int threads : {2, 3}) {
      kernels::set_max_threads(threads);
      CHECK(same_bits(run_forward(pool, x), y));
      CHECK(same_bits(run_backward(pool, dy), dx));
    }
  }
  kernels::set_max_threads(before);
}
