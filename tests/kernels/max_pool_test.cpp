#include "kernels/max_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/window.hpp"
#include "support/catch.hpp"
#include "support/draw.hpp"
#include "support/guarded.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/oracle_max_pool.hpp"
#include "taper/error.hpp"

using namespace taper;
using oracle::MaxPool;
using test::as;
using test::Draw;
using test::Guarded;
using test::kInf;
using test::kNaN;
using test::same_bits;
using Values = std::vector<double>;
using Sizes = MaxPool::Sizes;

namespace {

kernels::SlidingPoolParams params_of(const MaxPool& pool) {
  kernels::SlidingPoolParams p{.planes = pool.planes};
  std::vector<Window1d> windows;
  for (std::size_t d = 0; d < pool.in.size(); ++d)
    windows.push_back(
        {pool.kernel[d], pool.stride[d], pool.padding[d], pool.padding[d], pool.dilation[d], pool.ceil_mode});
  Sizes out(pool.in.size());
  output_size("max_pool", windows, WindowKind::pool, pool.in, out);
  for (std::size_t d = 0, at = 3 - pool.in.size(); d < pool.in.size(); ++d, ++at) {
    p.in[at] = pool.in[d];
    p.out[at] = out[d];
    p.kernel[at] = pool.kernel[d];
    p.stride[at] = pool.stride[d];
    p.padding_left[at] = p.padding_right[at] = pool.padding[d];
    p.dilation[at] = pool.dilation[d];
  }
  return p;
}

kernels::AdaptivePoolParams adaptive_params_of(const MaxPool& pool) {
  kernels::AdaptivePoolParams p{.planes = pool.planes};
  for (std::size_t d = 0, at = 3 - pool.in.size(); d < pool.in.size(); ++d, ++at) {
    p.in[at] = pool.in[d];
    p.out[at] = pool.adaptive[d];
  }
  return p;
}

template <class T>
struct Result {
  std::vector<T> y;
  Sizes index;
};

template <class T>
void run_forward(const MaxPool& pool, const std::vector<T>& x, T* y, std::int64_t* index) {
  if (pool.adaptive.empty())
    kernels::max_pool(params_of(pool), x.data(), y, index);
  else
    kernels::adaptive_max_pool(adaptive_params_of(pool), x.data(), y, index);
}

template <class T>
Result<T> run_forward(const MaxPool& pool, const std::vector<T>& x) {
  const auto n = static_cast<std::size_t>(pool.outputs());
  Result<T> r{std::vector<T>(n, T(7777)), Sizes(n, -7)};
  run_forward(pool, x, r.y.data(), r.index.data());
  return r;
}

/// What is written when nobody wants the indices.
template <class T>
std::vector<T> run_values(const MaxPool& pool, const std::vector<T>& x) {
  std::vector<T> y(static_cast<std::size_t>(pool.outputs()), T(7777));
  run_forward(pool, x, y.data(), nullptr);
  return y;
}

template <class T>
void run_backward(const MaxPool& pool, const std::vector<T>& dy, const Sizes& index, std::vector<T>& dx, bool add) {
  if (pool.adaptive.empty())
    kernels::max_pool_backward(params_of(pool), dy.data(), index.data(), dx.data(), add);
  else
    kernels::adaptive_max_pool_backward(adaptive_params_of(pool), dy.data(), index.data(), dx.data(), add);
}

/// A gradient buffer that starts as NaN, so that a position left unwritten shows.
template <class T>
std::vector<T> run_backward(const MaxPool& pool, const std::vector<T>& dy, const Sizes& index) {
  std::vector<T> dx(static_cast<std::size_t>(pool.inputs()), std::numeric_limits<T>::quiet_NaN());
  run_backward(pool, dy, index, dx, false);
  return dx;
}

/// Forward with and without indices and backward, overwriting and adding, all exact.
template <class T>
bool agrees(const MaxPool& pool, const Values& x, const Values& dy, const Sizes& index) {
  const Result<T> got = run_forward(pool, as<T>(x));
  if (got.index != index || !test::same_values(got.y, as<T>(pool.forward(x, index)))) return false;
  if (!test::same_values(run_values(pool, as<T>(x)), got.y)) return false;
  const std::vector<T> expected = as<T>(pool.backward(dy, index));
  if (!test::same_values(run_backward(pool, as<T>(dy), index), expected)) return false;
  std::vector<T> added(expected.size()), sums(expected.size());
  for (std::size_t i = 0; i < added.size(); ++i) {
    added[i] = T(double(i % 13) - 6);
    sums[i] = added[i] + expected[i];
  }
  run_backward(pool, as<T>(dy), index, added, true);
  return test::same_values(added, sums);
}

bool agrees(const MaxPool& pool, const Values& x, Draw& draw) {
  const Values dy = draw.values(pool.outputs());
  const Sizes index = pool.indices(x);
  return agrees<double>(pool, x, dy, index) && agrees<float>(pool, x, dy, index);
}

/// What inputs are made of: numbers, few different ones so that many tie, NaN among them, -inf among them or alone, the
/// least float among them.
enum class Kind { numbers, ties, some_nan, some_inf, all_inf, some_least, count };

Values inputs_of(const MaxPool& pool, Kind kind, Draw& draw) {
  Values x = draw.values(pool.inputs());
  for (double& v : x) {
    if (kind != Kind::numbers) v = double(draw.below(3)) - 1;
    if (kind == Kind::some_nan && draw.one_in(4)) v = kNaN;
    if ((kind == Kind::some_inf && !draw.one_in(4)) || kind == Kind::all_inf) v = -kInf;
    if (kind == Kind::some_least && !draw.one_in(8)) v = double(std::numeric_limits<float>::lowest());
    if (kind == Kind::ties && v == 0 && draw.one_in(2)) v = -0.0;
  }
  return x;
}

Kind any_kind(Draw& draw) { return Kind(draw.below(int(Kind::count))); }

MaxPool sliding_max(Sizes in, Sizes kernel, Sizes stride, Sizes padding, Sizes dilation = {}, bool ceil_mode = false,
                    std::int64_t planes = 1) {
  if (dilation.empty()) dilation.resize(in.size(), 1);
  return {planes, in, kernel, stride, padding, dilation, ceil_mode, {}};
}

MaxPool adaptive_max(Sizes in, Sizes out, std::int64_t planes = 1) {
  return {.planes = planes, .in = in, .kernel = {}, .stride = {}, .padding = {}, .dilation = {}, .adaptive = out};
}

/// Checks that planes between pages that nothing may touch give what they give elsewhere, and results end where they
/// should.
template <class T>
void check_fenced(const MaxPool& pool, const Values& x) {
  const auto from = as<T>(x);
  const auto n = static_cast<std::size_t>(pool.outputs());
  const Result<T> expected = run_forward(pool, from);
  for (const bool at_end : {false, true}) {
    const Guarded<T> fenced(from, at_end);
    std::vector<T> y(n + 8, T(7777)), values = y;
    Sizes places(n + 8, -7);
    kernels::max_pool(params_of(pool), fenced.data, y.data(), places.data());
    kernels::max_pool(params_of(pool), fenced.data, values.data(), nullptr);
    CHECK(same_bits(y, values));
    CHECK(std::equal(expected.index.begin(), expected.index.end(), places.begin()));
    CHECK(std::count(y.begin() + std::ptrdiff_t(n), y.end(), T(7777)) == 8);
    CHECK(std::count(places.begin() + std::ptrdiff_t(n), places.end(), -7) == 8);
  }
}

}  // namespace

TEST_CASE("the sweep: every 1-d max pool is refused or equals its definition, forward, indices and backward") {
  Draw draw(1);
  int all = 0, valid = 0, wrong = 0;
  for (std::int64_t length = 0; length <= 12; ++length)
    for (std::int64_t k = 0; k <= 7; ++k)
      for (std::int64_t s = 0; s <= 4; ++s)
        for (std::int64_t p = 0; p <= 4; ++p)
          for (const bool ceil_mode : {false, true}) {
            ++all;
            const MaxPool pool = sliding_max({length}, {k}, {s}, {p}, {1}, ceil_mode, 3);
            bool refused = false;
            try {
              params_of(pool);
            } catch (const Error&) {
              refused = true;
            }
            if (refused == pool.is_admitted()) ++wrong;
            if (refused) continue;
            ++valid;
            for (int kind = 0; kind < int(Kind::count); ++kind)
              if (!agrees(pool, inputs_of(pool, Kind(kind), draw), draw)) ++wrong;
          }
  CHECK(all == 5200);
  CHECK(valid == 3224 / 2);
  CHECK(wrong == 0);
}

TEST_CASE("the sweep with dilation: a window without an element of the input is refused, and nothing else") {
  Draw draw(2);
  int valid = 0, empty = 0, wrong = 0;
  for (std::int64_t length = 1; length <= 9; ++length)
    for (std::int64_t k = 1; k <= 6; ++k)
      for (std::int64_t s = 1; s <= 13; ++s)
        for (std::int64_t p = 0; p <= k / 2; ++p)
          for (std::int64_t d = 1; d <= 11; ++d)
            for (const bool ceil_mode : {false, true}) {
              const MaxPool pool = sliding_max({length}, {k}, {s}, {p}, {d}, ceil_mode, 2);
              std::string refusal;
              try {
                params_of(pool);
              } catch (const Error& e) {
                refusal = e.what();
              }
              if (refusal.empty() != pool.is_admitted()) ++wrong;
              if (refusal.find("holds padding alone") != std::string::npos) ++empty;
              if (!refusal.empty()) continue;
              ++valid;
              if (!agrees(pool, inputs_of(pool, any_kind(draw), draw), draw)) ++wrong;
            }
  CHECK(valid > 3000);
  CHECK(empty > 50);
  CHECK(wrong == 0);
}

TEST_CASE("random 2-d and 3-d max pools of every option equal their definition") {
  Draw draw(3);
  int tried = 0, dilated = 0;
  for (int round = 0; tried < 6000; ++round) {
    const std::size_t rank = round % 4 == 0 ? 3 : 2;
    MaxPool pool = sliding_max(draw.choose({2, 3, 5, 7, rank == 3 ? 4 : 11, rank == 3 ? 6 : 13}, rank), {}, {}, {});
    pool.kernel = draw.choose({1, 2, 3, 5, 4, 7}, rank);
    pool.dilation = draw.one_in(2) ? Sizes(rank, 1) : draw.choose({1, 2, 3, 4}, rank);
    pool.ceil_mode = draw.one_in(2);
    pool.planes = 1 + draw.below(3);
    for (std::size_t d = 0; d < rank; ++d) {
      if (draw.one_in(5)) pool.kernel[d] = pool.in[d];
      pool.stride.push_back(draw.one_in(3) ? pool.kernel[d] : 1 + draw.below(4));
      pool.padding.push_back(draw.below(pool.kernel[d] / 2 + 1));
    }
    if (!pool.is_admitted()) continue;
    ++tried;
    dilated += pool.dilation != Sizes(rank, 1);
    CAPTURE(pool.planes, pool.in, pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil_mode);
    if (!agrees(pool, inputs_of(pool, any_kind(draw), draw), draw)) FAIL("differs from the definition");
  }
  CHECK(dilated > 1000);
}

TEST_CASE("adaptive max pools equal their definition, also with more outputs than inputs") {
  Draw draw(4);
  for (std::int64_t length = 1; length <= 150; ++length)
    for (std::int64_t out = 1; out <= (length <= 17 ? 23 : 1); ++out) {
      CAPTURE(length, out);
      const MaxPool pool = adaptive_max({length}, {out}, 2);
      if (!agrees(pool, inputs_of(pool, any_kind(draw), draw), draw)) FAIL("differs from the definition");
    }
  for (int round = 0; round < 2000; ++round) {
    const std::size_t rank = round % 3 == 0 ? 3 : 2;
    MaxPool pool = adaptive_max(draw.choose({2, 3, 5, 7, 1, rank == 3 ? 4 : 11}, rank), {}, 1 + draw.below(3));
    pool.adaptive = draw.choose({1, 2, 3, 5, 7, rank == 3 ? 4 : 13}, rank);
    CAPTURE(pool.planes, pool.in, pool.adaptive);
    if (!agrees(pool, inputs_of(pool, any_kind(draw), draw), draw)) FAIL("differs from the definition");
  }
}

TEST_CASE("rows, windows and planes longer than the buffers are pooled in pieces") {
  Draw draw(5);
  std::vector<MaxPool> pools;
  for (const auto& [k, s, p, d] : std::vector<std::array<std::int64_t, 4>>{{3, 1, 1, 1},
                                                                           {2, 2, 0, 1},
                                                                           {3, 2, 1, 1},
                                                                           {4, 4, 0, 1},
                                                                           {4, 4, 2, 1},
                                                                           {7, 1, 3, 1},
                                                                           {8, 1, 4, 1},
                                                                           {17, 1, 0, 1},
                                                                           {25, 1, 12, 1},
                                                                           {512, 1, 7, 1},
                                                                           {513, 1, 0, 1},
                                                                           {31, 29, 3, 1},
                                                                           {5, 3, 2, 7},
                                                                           {3, 2, 1, 5}}) {
    pools.push_back(sliding_max({2311}, {k}, {s}, {p}, {d}, true));
    pools.push_back(sliding_max({5, 1511}, {2, k}, {1, s}, {1, p}, {3, d}, true));
  }
  pools.push_back(sliding_max({1699}, {1201}, {1}, {600}));
  pools.push_back(sliding_max({3, 701}, {2, 601}, {1, 7}, {1, 300}));
  pools.push_back(sliding_max({211, 37}, {5, 37}, {2, 1}, {2, 0}, {}, true));
  pools.push_back(sliding_max({7, 11, 67}, {2, 3, 5}, {1, 2, 3}, {0, 1, 2}, {}, true));
  pools.push_back(sliding_max({17, 23, 29}, {3, 2, 1}, {1, 1, 1}, {1, 0, 0}));
  // Windows of a few columns in rows that are cut, as many rows high as there is room for, and more.
  pools.push_back(sliding_max({9, 1511}, {3, 3}, {1, 1}, {1, 1}, {}, false, 3));
  pools.push_back(sliding_max({9, 1511}, {3, 3}, {2, 2}, {1, 1}, {}, false, 3));
  pools.push_back(sliding_max({5, 259}, {2, 3}, {1, 1}, {1, 1}));
  pools.push_back(sliding_max({9, 1511}, {3, 8}, {1, 1}, {1, 4}));
  pools.push_back(sliding_max({9, 1511}, {5, 7}, {2, 2}, {2, 3}));
  pools.push_back(sliding_max({9, 700}, {2, 8}, {2, 2}, {0, 4}));
  pools.push_back(sliding_max({41, 601}, {16, 3}, {2, 1}, {8, 0}));
  pools.push_back(sliding_max({41, 601}, {17, 3}, {1, 2}, {0, 1}));
  // Windows of four side by side, in one row and in several.
  pools.push_back(sliding_max({2308}, {4}, {4}, {0}, {}, false, 3));
  pools.push_back(sliding_max({5, 148}, {1, 4}, {1, 4}, {0, 0}));
  pools.push_back(sliding_max({5, 148}, {2, 4}, {1, 4}, {0, 0}));
  // More rows than are kept, rows of several slices in one place, more columns than fit.
  pools.push_back(sliding_max({67, 41}, {20, 3}, {1, 1}, {9, 1}));
  pools.push_back(sliding_max({3, 16, 33}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}));
  pools.push_back(sliding_max({5, 9001}, {2, 7}, {1, 5}, {0, 3}));
  pools.push_back(sliding_max({3, 4999}, {2, 4097}, {1, 3}, {1, 5}));
  pools.push_back(adaptive_max({7, 4096}, {3, 5}));
  pools.push_back(adaptive_max({7, 4097}, {3, 5}));
  pools.push_back(adaptive_max({2311}, {3}));
  pools.push_back(adaptive_max({67, 61}, {1, 1}));
  pools.push_back(adaptive_max({5, 1301}, {3, 1511}));
  pools.push_back(adaptive_max({17, 19, 23}, {5, 7, 11}));
  for (const MaxPool& pool : pools)
    for (const Kind kind : {Kind::numbers, Kind::ties, Kind::some_nan}) {
      CAPTURE(pool.in, pool.kernel, pool.stride, pool.padding, pool.dilation, pool.adaptive, int(kind));
      CHECK(agrees(pool, inputs_of(pool, kind, draw), draw));
    }
}

TEST_CASE("rows of any number of windows a column or two apart equal their definition") {
  Draw draw(7);
  for (const std::int64_t s : {1, 2})
    for (std::int64_t width = 4; width <= 83; ++width)
      for (std::int64_t k = 2; k <= 5; ++k)
        for (const Kind kind : {Kind::numbers, Kind::ties, Kind::some_nan, Kind::some_inf, Kind::some_least}) {
          MaxPool pool = sliding_max({7, width}, {3, k}, {s, s}, {width % 2, width % (k / 2 + 1)});
          if (width % 3 == 0) pool = sliding_max({3, 4, width}, {2, 3, k}, {1, 2, s}, {0, 0, 1}, {1, 2, 1}, true, 2);
          if (!pool.is_admitted()) continue;
          CAPTURE(pool.planes, pool.in, pool.kernel, pool.padding, int(kind));
          if (!agrees(pool, inputs_of(pool, kind, draw), draw)) FAIL("differs from the definition");
        }
}

TEST_CASE("planes of many rows of windows a column or two apart equal their definition, also with NaN in some") {
  Draw draw(29);
  for (const std::int64_t k : {2, 3})
    for (const std::int64_t s : {1, 2, 3})
      for (const Kind kind : {Kind::numbers, Kind::ties, Kind::some_nan}) {
        const MaxPool pool = sliding_max({2, 101, 37}, {1, k, k}, {1, s, 1 + s % 2}, {0, k / 2, k / 3}, {}, false, 3);
        Values x = inputs_of(pool, kind == Kind::some_nan ? Kind::ties : kind, draw);
        if (kind == Kind::some_nan) x[x.size() / 2] = kNaN;
        CAPTURE(k, s, int(kind));
        CHECK(agrees(pool, x, draw));
      }
}

TEST_CASE("one NaN in any column is the largest of the windows a column or two apart that hold it") {
  Draw draw(37);
  for (const std::int64_t s : {1, 2})
    for (std::int64_t k = 2; k <= 8; ++k) {
      const MaxPool pool = sliding_max({3, k + 9 * s}, {2, k}, {1, s}, {0, 0});
      for (std::int64_t column = 0; column < pool.in[1]; ++column) {
        Values x = inputs_of(pool, Kind::numbers, draw);
        x[std::size_t(pool.in[1] + column)] = kNaN;
        CAPTURE(s, k, column);
        CHECK(agrees(pool, x, draw));
      }
    }
}

TEST_CASE("windows a column or two apart read nothing beside their planes and write nothing behind their results") {
  Draw draw(31);
  for (const std::int64_t s : {1, 2})
    for (const std::int64_t width : {3, 5, 7, 8, 9, 15, 16, 17, 18, 23, 40})
      for (const std::int64_t height : {2, 3, 6})
        for (const std::int64_t k : {2, 3, 5, 6, 8}) {
          const std::int64_t rows = std::min<std::int64_t>(k, height);
          const MaxPool pool = sliding_max({height, width}, {rows, k}, {s, s}, {rows / 2, k / 3}, {}, false, 2);
          if (!pool.is_admitted()) continue;
          CAPTURE(width, height, k, s);
          check_fenced<float>(pool, inputs_of(pool, Kind::numbers, draw));
        }
}

TEST_CASE("values are the same bits with and without indices, also of zeros of both signs") {
  Draw draw(6);
  for (const MaxPool& pool :
       {sliding_max({61}, {3}, {2}, {1}), sliding_max({9, 71}, {3, 3}, {1, 1}, {1, 1}),
        sliding_max({9, 7}, {2, 2}, {1, 1}, {1, 1}), sliding_max({61}, {3}, {1}, {1}),
        sliding_max({14, 13}, {3, 3}, {2, 2}, {1, 1}), sliding_max({8, 8}, {2, 2}, {2, 2}, {0, 0}),
        sliding_max({97}, {61}, {1}, {7}), sliding_max({61}, {5}, {3}, {2}), sliding_max({67}, {4}, {4}, {0}),
        sliding_max({13}, {3}, {3}, {0}), sliding_max({59}, {7}, {5}, {3}),
        sliding_max({7, 61}, {3, 2}, {2, 1}, {1, 0}), sliding_max({9, 71}, {3, 3}, {2, 2}, {1, 1}),
        sliding_max({5, 67}, {5, 67}, {1, 1}, {0, 0}), adaptive_max({5, 13}, {3, 7}), adaptive_max({11, 13}, {1, 1})})
    for (int round = 0; round < 20; ++round) {
      CAPTURE(pool.in, pool.kernel, pool.adaptive);
      const Values x = inputs_of(pool, Kind::ties, draw);
      const Values expected = pool.forward(x, pool.indices(x));
      CHECK(same_bits(run_values(pool, as<float>(x)), as<float>(expected)));
      CHECK(same_bits(run_forward(pool, as<float>(x)).y, as<float>(expected)));
      CHECK(same_bits(run_values(pool, x), expected));
      CHECK(same_bits(run_forward(pool, x).y, expected));
    }
}

TEST_CASE("rows shorter than a vector are written one behind the other, and nothing behind the last") {
  Draw draw(10);
  for (const std::int64_t length : {5, 7, 11, 23})
    for (const std::int64_t k : {2, 3, 5})
      for (const std::int64_t s : {1, 2, 3, 5})
        for (const MaxPool& pool : {sliding_max({length}, {k}, {s}, {1}, {1}, false, 13),
                                    sliding_max({3, length}, {1, k}, {1, s}, {0, 0}, {1, 1}, false, 5),
                                    sliding_max({3, k * length}, {1, k}, {1, k}, {0, 0}, {1, 1}, false, 5)}) {
          CAPTURE(pool.in, pool.kernel, pool.stride);
          const Values x = inputs_of(pool, Kind::some_nan, draw);
          CHECK(agrees(pool, x, draw));
          const auto n = static_cast<std::size_t>(pool.outputs());
          std::vector<float> y(n + 8, 7777.0f), values = y;
          Sizes places(n + 8, -7);
          run_forward(pool, as<float>(x), y.data(), places.data());
          run_forward(pool, as<float>(x), values.data(), nullptr);
          CHECK(std::count(y.begin() + std::ptrdiff_t(n), y.end(), 7777.0f) == 8);
          CHECK(std::count(values.begin() + std::ptrdiff_t(n), values.end(), 7777.0f) == 8);
          CHECK(std::count(places.begin() + std::ptrdiff_t(n), places.end(), -7) == 8);
        }
}

TEST_CASE("planes of short rows of windows two columns apart equal their definition, and nothing beside them is used") {
  Draw draw(37);
  for (std::int64_t width = 1; width <= 21; ++width)
    for (const std::int64_t height : {1, 5, 8})
      for (const std::int64_t planes : {1, 2, 5})
        for (const std::int64_t k : {2, 3})
          for (const std::int64_t padding : {0, 1})
            for (const bool ceil_mode : {false, true}) {
              // A stride that leaves narrow planes one window changes nothing.
              const std::int64_t s = width < 8 && planes == 5 ? 7 : 2;
              MaxPool pool = sliding_max({height, width}, {k, k}, {s, s}, {padding, padding}, {}, ceil_mode, planes);
              if (width % 3 == 0) pool = sliding_max({3, height, width}, {2, 2, k}, {1, 1, 2}, {0, 0, padding});
              if (!pool.is_admitted()) continue;
              CAPTURE(pool.in, pool.kernel, pool.padding, planes, ceil_mode);
              const Values x = inputs_of(pool, any_kind(draw), draw);
              if (!agrees(pool, x, draw)) FAIL("differs from the definition");
              check_fenced<float>(pool, x);
            }
}

TEST_CASE("windows of doubles any number of columns apart equal their definition, and nothing beside them is used") {
  Draw draw(41);
  for (std::int64_t width = 1; width <= 23; ++width)
    for (const std::int64_t s : {1, 2, 3, 4, 5})
      for (const std::int64_t k : {2, 3, 5})
        for (const std::int64_t dilation : {1, 2})
          for (const std::int64_t padding : {0, 1})
            for (const std::int64_t height : {1, 6}) {
              const std::int64_t tall = height == 1 ? 1 : k, down = height == 1 ? 0 : padding;
              const MaxPool pool = sliding_max({height, width}, {tall, k}, {s, s}, {down, padding}, {1, dilation},
                                               draw.one_in(2), draw.one_in(2) ? 1 : 3);
              if (!pool.is_admitted()) continue;
              CAPTURE(pool.in, pool.kernel, pool.stride, pool.padding, pool.dilation);
              const Values x = inputs_of(pool, any_kind(draw), draw);
              if (!agrees(pool, x, draw)) FAIL("differs from the definition");
              check_fenced<double>(pool, x);
            }
}

TEST_CASE("a gradient that many windows send to one element is summed in double") {
  // Of 4096 windows all choose the same element: in float32, 1 + 2^-25 + ... would stay 1.
  const MaxPool pool = sliding_max({4096}, {8191}, {1}, {4095});
  std::vector<float> x(4096, 0.0f);
  x[2048] = 1;
  const auto index = run_forward(pool, x).index;
  REQUIRE(std::all_of(index.begin(), index.end(), [](std::int64_t i) { return i == 2048; }));
  std::vector<float> dy(4096, std::ldexp(1.0f, -25));
  dy[0] = 1;
  CHECK(run_backward(pool, dy, index)[2048] == float(1 + 4095 * std::ldexp(1.0, -25)));
}

TEST_CASE("a strided max pool is every s-th output of the pool with stride 1, bit for bit") {
  Draw draw(7);
  const MaxPool dense = sliding_max({13, 29, 31}, {2, 3, 5}, {1, 1, 1}, {1, 1, 2}, {1, 2, 3});
  MaxPool strided = dense;
  strided.stride = {2, 3, 5};
  const auto x = draw.values(dense.inputs());
  const auto all = run_forward(dense, x), some = run_forward(strided, x);
  const Sizes from = dense.out(), to = strided.out();
  std::size_t at = 0, wrong = 0;
  for (std::int64_t d = 0; d < to[0]; ++d)
    for (std::int64_t h = 0; h < to[1]; ++h)
      for (std::int64_t w = 0; w < to[2]; ++w, ++at) {
        const auto o = std::size_t((2 * d * from[1] + 3 * h) * from[2] + 5 * w);
        wrong += some.y[at] != all.y[o] || some.index[at] != all.index[o];
      }
  CHECK(wrong == 0);
  CHECK(at > 100);
}

TEST_CASE("a max pool with unit dimensions is the pool without them, bit for bit") {
  Draw draw(8);
  for (const auto& [k, s, p, d] : std::vector<std::array<std::int64_t, 4>>{
           {3, 2, 1, 1}, {7, 1, 3, 2}, {19, 5, 9, 1}, {2, 2, 0, 3}, {101, 3, 0, 1}}) {
    CAPTURE(k, s, p, d);
    const MaxPool line = sliding_max({101}, {k}, {s}, {p}, {d}, false, 2);
    const Values x = inputs_of(line, Kind::ties, draw);
    const auto expected = run_forward(line, x);
    const Values dy = draw.values(line.outputs());
    const Values dx = run_backward(line, dy, expected.index);
    for (const MaxPool& pool : {sliding_max({1, 101}, {1, k}, {1, s}, {0, p}, {1, d}, false, 2),
                                sliding_max({101, 1}, {k, 1}, {s, 1}, {p, 0}, {d, 1}, false, 2),
                                sliding_max({1, 1, 101}, {1, 1, k}, {1, 1, s}, {0, 0, p}, {1, 1, d}, false, 2),
                                sliding_max({1, 101, 1}, {1, k, 1}, {1, s, 1}, {0, p, 0}, {1, d, 1}, false, 2),
                                sliding_max({101, 1, 1}, {k, 1, 1}, {s, 1, 1}, {p, 0, 0}, {d, 1, 1}, false, 2)}) {
      const auto got = run_forward(pool, x);
      CHECK(same_bits(got.y, expected.y));
      CHECK(got.index == expected.index);
      CHECK(same_bits(run_backward(pool, dy, got.index), dx));
    }
  }
}

TEST_CASE("max pools give the same bits on any number of threads") {
  Draw draw(9);
  for (const MaxPool& pool :
       {sliding_max({67, 131}, {3, 5}, {1, 2}, {1, 2}, {2, 1}, true, 17),
        sliding_max({4099}, {25}, {1}, {12}, {1}, false, 31), sliding_max({40009}, {3}, {1}, {1}),
        sliding_max({257}, {257}, {257}, {0}, {1}, false, 509), sliding_max({11}, {3}, {2}, {1}, {1}, false, 30011),
        sliding_max({10}, {5}, {5}, {0}, {1}, false, 30011), sliding_max({521, 257}, {3, 3}, {2, 2}, {1, 1}),
        sliding_max({7, 8}, {3, 3}, {2, 2}, {1, 1}, {}, false, 3001), adaptive_max({67, 131}, {7, 11}, 13),
        adaptive_max({523, 67}, {3, 1})}) {
    CAPTURE(pool.in, pool.kernel, pool.adaptive);
    const auto x = as<float>(draw.values(pool.inputs())), dy = as<float>(draw.values(pool.outputs()));
    const Sizes index = run_forward(pool, x).index;
    CHECK(test::same_on_any_threads([&] { return run_forward(pool, x).y; }));
    CHECK(test::same_on_any_threads([&] { return run_forward(pool, x).index; }));
    CHECK(test::same_on_any_threads([&] { return run_values(pool, x); }));
    CHECK(test::same_on_any_threads([&] { return run_backward(pool, dy, index); }));
  }
}

TEST_CASE("an empty output of an adaptive max pool gives zero gradients, an empty batch nothing") {
  CHECK(run_forward(adaptive_max({5}, {0}), Values(5, 1.0)).y.empty());
  CHECK(run_backward(adaptive_max({5}, {0}), Values{}, {}) == Values(5, 0.0));
  CHECK(run_backward(adaptive_max({2, 3}, {0, 2}, 2), Values{}, {}) == Values(12, 0.0));
  Values kept = {1, 2, 3, 4, 5, 6};
  run_backward(adaptive_max({2, 3}, {4, 0}), Values{}, {}, kept, true);
  CHECK(kept == Values{1, 2, 3, 4, 5, 6});
  CHECK(run_forward(sliding_max({5}, {2}, {1}, {0}, {1}, false, 0), Values{}).y.empty());
  CHECK(run_backward(sliding_max({5}, {2}, {1}, {0}, {1}, false, 0), Values{}, {}).empty());
  CHECK(run_backward(adaptive_max({5}, {3}, 0), Values{}, {}).empty());
}

TEST_CASE("extreme but valid options neither wrap nor read outside") {
  const std::int64_t huge = std::int64_t{1} << 61;
  const auto run = [](std::int64_t length, Window1d w, std::int64_t outputs) {
    Sizes out(1), in = {length};
    output_size("max_pool", {&w, 1}, WindowKind::pool, in, out);
    REQUIRE(out[0] == outputs);
    const kernels::SlidingPoolParams p{.planes = 1,
                                       .in = {1, 1, length},
                                       .out = {1, 1, outputs},
                                       .kernel = {1, 1, w.kernel},
                                       .stride = {1, 1, w.stride},
                                       .padding_left = {0, 0, w.padding_left},
                                       .padding_right = {0, 0, w.padding_right},
                                       .dilation = {1, 1, w.dilation}};
    Values x;
    for (std::int64_t i = 0; i < length; ++i) x.push_back(double(i));
    Values y(std::size_t(outputs), kNaN), values = y, dx(std::size_t(length), kNaN), dy(std::size_t(outputs), 1.0);
    Sizes index(std::size_t(outputs), -1);
    kernels::max_pool(p, x.data(), y.data(), index.data());
    kernels::max_pool(p, x.data(), values.data(), nullptr);
    kernels::max_pool_backward(p, dy.data(), index.data(), dx.data(), false);
    CHECK(values == y);
    double total = 0;
    for (const double d : dx) total += d;
    CHECK(total == double(outputs));
    return y;
  };
  CHECK(run(5, {.kernel = huge, .stride = 1, .padding_left = huge / 2, .padding_right = huge / 2}, 6) ==
        Values{4, 4, 4, 4, 4, 4});
  CHECK(run(7, {.kernel = 1, .stride = 3, .dilation = INT64_MAX}, 3) == Values{0, 3, 6});
  CHECK(run(7, {.kernel = 2, .stride = INT64_MAX, .dilation = huge, .ceil_mode = true}, 1) == Values{0});
  CHECK(run(7, {.kernel = 3, .stride = INT64_MAX}, 1) == Values{2});
  CHECK(run(7, {.kernel = 2, .stride = 2, .dilation = 6}, 1) == Values{6});
}

TEST_CASE("indices into planes of more than 2^32 elements are exact") {
  // Pages that nobody writes take no memory, and few are read.
  const std::int64_t length = (std::int64_t{1} << 32) + 4099, stride = length / 3 + 1, kernel = 5;
  void* const memory = mmap(nullptr, std::size_t(length) * sizeof(float), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;  // the system does not lend what it does not have
  float* const x = static_cast<float*>(memory);
  const kernels::SlidingPoolParams p{
      .planes = 1, .in = {1, 1, length}, .out = {1, 1, 3}, .kernel = {1, 1, kernel}, .stride = {1, 1, stride}};
  for (std::int64_t o = 0; o < 3; ++o) x[o * stride + o + 1] = float(o + 2);
  std::vector<float> y(3), values(3);
  Sizes index(3, -1);
  kernels::max_pool(p, x, y.data(), index.data());
  kernels::max_pool(p, x, values.data(), nullptr);
  CHECK(y == std::vector<float>{2, 3, 4});
  CHECK(values == y);
  CHECK(index == Sizes{1, stride + 2, 2 * stride + 3});
  // Of a plane of that many, three rows are read.
  const std::int64_t width = 4096, height = (std::int64_t{1} << 20) + 1, apart = height / 2, out = width - 2;
  const kernels::SlidingPoolParams rows{
      .planes = 1, .in = {1, height, width}, .out = {1, 3, out}, .kernel = {1, 1, 3}, .stride = {1, apart, 1}};
  for (std::int64_t o = 0; o < 3; ++o) x[o * apart * width + 1000] = float(o + 5);
  std::vector<float> all(std::size_t(3 * out));
  Sizes places(all.size(), -1);
  kernels::max_pool(rows, x, all.data(), places.data());
  for (std::int64_t o = 0; o < 3; ++o) {
    CHECK(all[std::size_t(o * out + 999)] == float(o + 5));
    CHECK(places[std::size_t(o * out + 999)] == o * apart * width + 1000);
  }
  munmap(memory, std::size_t(length) * sizeof(float));
}

TEST_CASE("a backward does not write outside its plane, whatever the indices say") {
  const MaxPool pool = sliding_max({9}, {3}, {3}, {0}, {1}, false, 2);
  const Values dy = {1, 2, 3, 4, 5, 6};
  const Values dx = run_backward(pool, dy, {0, 13, -1, INT64_MIN, 4, INT64_MAX});
  CHECK(dx == Values{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0});
}
