#include <cmath>
#include <numeric>

#include "support/catch.hpp"
#include "support/draw.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "support/oracle_pool.hpp"
#include "support/sizes.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/pool.hpp"

// Average pools, as users call them, against their definition: all small 1-d pools, and random ones of every kind.
using namespace taper;
using oracle::AvgPool;
using test::Draw;
using test::sizes_of;
namespace F = taper::nn::functional;
using Values = std::vector<double>;

namespace {

// --- calling --------------------------------------------------------------------------------------------------------

template <class O>
O sliding_options_of(const AvgPool& pool) {
  constexpr int N = O::kDims;
  O options;
  options.kernel_size = sizes_of<N>(pool.kernel);
  options.stride = sizes_of<N>(pool.stride);
  for (std::size_t d = 0; d < std::size_t(N); ++d) options.padding.sides[d] = {pool.padding[d], pool.right(d)};
  if (!pool.dilation.empty()) options.dilation = sizes_of<N>(pool.dilation);
  options.ceil_mode = pool.ceil_mode;
  options.count_include_pad = pool.count_include_pad;
  if constexpr (requires { options.divisor_override; })
    if (pool.divisor_override != 0) options.divisor_override = pool.divisor_override;
  return options;
}

template <class O>
O adaptive_options_of(const AvgPool& pool) {
  O options;
  for (std::size_t d = 0; d < std::size_t(O::kDims); ++d) options.output_size.values[d] = pool.adaptive[d];
  return options;
}

Tensor averaged(const AvgPool& pool, const Tensor& x) {
  const bool adaptive = !pool.adaptive.empty();
  switch (pool.in.size()) {
    case 1:
      return adaptive ? F::adaptive_avg_pool1d(x, adaptive_options_of<nn::AdaptiveAvgPool1dOptions>(pool))
                      : F::avg_pool1d(x, sliding_options_of<nn::AvgPool1dOptions>(pool));
    case 2:
      return adaptive ? F::adaptive_avg_pool2d(x, adaptive_options_of<nn::AdaptiveAvgPool2dOptions>(pool))
                      : F::avg_pool2d(x, sliding_options_of<nn::AvgPool2dOptions>(pool));
    default:
      return adaptive ? F::adaptive_avg_pool3d(x, adaptive_options_of<nn::AdaptiveAvgPool3dOptions>(pool))
                      : F::avg_pool3d(x, sliding_options_of<nn::AvgPool3dOptions>(pool));
  }
}

// --- comparing ------------------------------------------------------------------------------------------------------

/// float64: within 1e-13 of the value; float32: within 4 units in the last place of the value rounded once.
bool exact(double got, double expected, DType dtype) {
  if (dtype == DType::float64) return std::abs(got - expected) <= 1e-13 * std::abs(expected);
  const float rounded = float(expected), size = std::abs(rounded);
  return std::abs(got - double(rounded)) <= 4 * double(std::nextafter(size, INFINITY) - size);
}

bool exact(const Tensor& got, const Values& expected, DType dtype) {
  const Values values = got.to_vector<double>();
  if (got.dtype() != dtype || values.size() != expected.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!exact(values[i], expected[i], dtype)) return false;
  return true;
}

/// Whether the pool of [N, C, extents...] gives the definition's values and gradients in both types. Inputs are of
/// either sign with exact sums; gradients are positive, so that no sum of theirs cancels.
bool agrees(const AvgPool& pool, const Shape& lead, Draw& draw) {
  const Shape shape = lead.concat(Shape(pool.in));
  const Values x = draw.values(shape.numel());
  const Values y = pool.forward(x);
  Values dy = draw.values(std::int64_t(y.size()));
  for (double& g : dy) g = std::abs(g) + 1.0 / 512;
  const Values dx = pool.backward(dy);
  const Shape output = lead.concat(Shape(pool.out()));
  for (const DType dtype : {DType::float64, DType::float32}) {
    const Tensor input = from_data(x, shape).to(dtype).requires_grad_();
    const Tensor result = averaged(pool, input);
    if (!(result.shape() == output) || !exact(result, y, dtype)) return false;
    result.backward(from_data(dy, output).to(dtype));
    if (!exact(input.grad(), dx, dtype)) return false;
  }
  return true;
}

void show(const AvgPool& pool, const Shape& lead) {
  FAIL("differs from the definition: " << to_string(lead) << " " << to_string(Shape(pool.in)) << ", kernel "
                                       << to_string(Shape(pool.kernel)) << ", stride " << to_string(Shape(pool.stride))
                                       << ", padding " << to_string(Shape(pool.padding)) << " "
                                       << to_string(Shape(pool.padding_right)) << ", dilation "
                                       << to_string(Shape(pool.dilation)) << ", ceil " << pool.ceil_mode << ", counted "
                                       << pool.count_include_pad << ", divisor " << pool.divisor_override << ", to "
                                       << to_string(Shape(pool.adaptive)));
}

/// Checks a pool against the definition, or that it is refused where the definition admits none. Whether it was run.
bool check_pool(const AvgPool& pool, const Shape& lead, Draw& draw) {
  if (pool.admitted()) {
    if (!agrees(pool, lead, draw)) show(pool, lead);
    return true;
  }
  if (test::message_of([&] { averaged(pool, ones(lead.concat(Shape(pool.in)))); }) == "no error") show(pool, lead);
  return false;
}

// --- drawing --------------------------------------------------------------------------------------------------------

/// A pool over `rank` dimensions with extents that differ from each other and from the batch and the channels; the
/// latter are `lead`.
AvgPool draw_extents(Draw& draw, std::size_t rank, Shape& lead) {
  const auto primes =
      draw.choose(rank == 3 ? AvgPool::Sizes{2, 3, 5, 7, 11} : AvgPool::Sizes{2, 3, 5, 7, 11, 13}, rank + 2);
  // The two smaller of the first three are the batch and the channels, so that there is something to slide over.
  AvgPool::Sizes sorted = primes;
  std::sort(sorted.begin(), sorted.end());
  lead = draw.one_in(2) ? Shape{sorted[0], sorted[1]} : Shape{sorted[1], sorted[0]};
  AvgPool pool{.planes = lead.numel(), .in = {}, .kernel = {}, .stride = {}, .padding = {}};
  pool.in = draw.choose(AvgPool::Sizes(sorted.begin() + 2, sorted.end()), rank);
  return pool;
}

AvgPool draw_sliding(Draw& draw, std::size_t rank, Shape& lead) {
  AvgPool pool = draw_extents(draw, rank, lead);
  pool.kernel = draw.choose({1, 2, 3, 4, 5, 6}, rank);
  if (draw.one_in(7)) pool.kernel[0] = pool.in[0];
  pool.stride = draw.one_in(4) ? pool.kernel : draw.choose({1, 1, 2, 3, 4, 5}, rank);
  pool.ceil_mode = draw.one_in(2);
  pool.count_include_pad = draw.one_in(2);
  if (rank > 1 && draw.one_in(4)) pool.divisor_override = 1 + draw.below(11);
  if (draw.one_in(3)) pool.dilation = draw.choose({1, 2, 3, 4}, rank);
  const bool even = draw.one_in(2);
  for (std::size_t d = 0; d < rank; ++d) {
    pool.padding.push_back(draw.below(pool.span(d) / 2 + 1));
    if (!even) pool.padding_right.push_back(draw.below(pool.span(d) / 2 + 1));
  }
  return pool;
}

}  // namespace

TEST_CASE("of all 10400 small 1-d average pools 3224 are valid and exact, and 7176 are refused") {
  Draw draw(1);
  int valid = 0, refused = 0;
  for (std::int64_t length = 0; length <= 12; ++length)
    for (std::int64_t k = 0; k <= 7; ++k)
      for (std::int64_t s = 0; s <= 4; ++s)
        for (std::int64_t p = 0; p <= 4; ++p)
          for (const bool ceil_mode : {false, true})
            for (const bool count_include_pad : {false, true}) {
              const AvgPool pool{.planes = 6,
                                 .in = {length},
                                 .kernel = {k},
                                 .stride = {s},
                                 .padding = {p},
                                 .ceil_mode = ceil_mode,
                                 .count_include_pad = count_include_pad};
              ++(check_pool(pool, {2, 3}, draw) ? valid : refused);
            }
  CHECK(valid == 3224);
  CHECK(refused == 7176);
}

TEST_CASE("more than 34000 random average pools of every kind are exact") {
  Draw draw(2);
  const auto sliding = [&](std::size_t rank, int rounds) {
    int run = 0;
    for (int round = 0; round < rounds; ++round) {
      Shape lead;
      const AvgPool pool = draw_sliding(draw, rank, lead);
      run += check_pool(pool, lead, draw);
    }
    return run;
  };
  const auto adaptive = [&](std::size_t rank, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      Shape lead;
      AvgPool pool = draw_extents(draw, rank, lead);
      pool.adaptive = draw.choose({1, 2, 3, 4, 5, 7, 9, 13, 17}, rank);
      check_pool(pool, lead, draw);
    }
    return rounds;
  };
  const int one = sliding(1, 6000), two = sliding(2, 15000), three = sliding(3, 11000);
  CHECK(one > 5000);
  CHECK(two > 13000);
  CHECK(three > 9000);
  const int fitted = adaptive(1, 1000) + adaptive(2, 3000) + adaptive(3, 1600);
  CHECK(one + two + three + fitted > 34000);
}

TEST_CASE("the comparison with the definition notices one unit too much and one window less") {
  CHECK(exact(1 + 0.9e-13, 1, DType::float64));
  CHECK_FALSE(exact(1 + 1.1e-13, 1, DType::float64));
  CHECK(exact(1 + 4 * 0x1p-23, 1, DType::float32));
  CHECK_FALSE(exact(1 + 5 * 0x1p-23, 1, DType::float32));
  CHECK_FALSE(exact(1e-30, 0, DType::float64));
  Draw draw(3);
  AvgPool pool{.planes = 6, .in = {7}, .kernel = {3}, .stride = {2}, .padding = {1}};
  CHECK(agrees(pool, {2, 3}, draw));
  // Another divisor, another side or another rounding in the definition shows.
  const Tensor x = from_data(draw.values(42), {2, 3, 7});
  const Tensor y = F::avg_pool1d(x, {.kernel_size = 3, .stride = 2, .padding = 1});
  CHECK(exact(y, pool.forward(x.to_vector<double>()), DType::float64));
  pool.count_include_pad = false;
  CHECK_FALSE(exact(y, pool.forward(x.to_vector<double>()), DType::float64));
  pool = {.planes = 6, .in = {7}, .kernel = {3}, .stride = {2}, .padding = {1}, .padding_right = {0}};
  CHECK_FALSE(exact(y, pool.forward(x.to_vector<double>()), DType::float64));
  pool = {.planes = 6, .in = {7}, .kernel = {3}, .stride = {2}, .padding = {1}, .dilation = {2}};
  CHECK_FALSE(exact(y, pool.forward(x.to_vector<double>()), DType::float64));
}
