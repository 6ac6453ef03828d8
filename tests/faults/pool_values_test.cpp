#include <cmath>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/pools.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"

using namespace taper;
using namespace taper::test;
using nlohmann::json;
using pools::kAdaptive;
using pools::kSliding;

// Valid options for which the pools of other frameworks gave wrong values. The tag is the row of the list in
// tests/faults/README.md.

namespace {

const PoolKind& kind(const std::string& type) {
  for (const auto& list : {std::span(kSliding), std::span(kAdaptive)})
    for (const PoolKind& pool : list)
      if (pool.type == type) return pool;
  throw std::runtime_error("no pool " + type);
}

Tensor rising(const Shape& shape) { return arange(1, shape.numel() + 1, 1, DType::float64).reshape(shape); }

/// The gradient of the sum of the output.
Values gradient(const PoolKind& pool, const Tensor& x, const json& options) {
  const Tensor leaf = x.clone().requires_grad_();
  pool(leaf, options).sum().backward();
  return leaf.grad().to_vector<double>();
}

bool all_finite(const Values& list) {
  for (const double value : list)
    if (!std::isfinite(value)) return false;
  return true;
}

}  // namespace

TEST_CASE("a stride beyond 31 bits gives the one window of a shorter one (pytorch 147613)", "[fault-14]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    const Tensor x = rising(with_extents({2, 3}, pool.dims));
    const json options = {{"kernel_size", 3}, {"stride", std::int64_t{1} << 31}};
    const Tensor y = pool(x, options);
    CHECK(y.shape() == with_extents({2, 3}, pool.dims, 1));
    CHECK(values(y) == values(pool(x, {{"kernel_size", 3}, {"stride", 48}})));
    CHECK(gradient(pool, x, options) == gradient(pool, x, {{"kernel_size", 3}, {"stride", 48}}));
  }
}

TEST_CASE("a kernel larger than the input gives one clipped window in ceil mode", "[fault-17]") {
  for (const PoolKind& pool : kSliding)
    for (const bool counted : {true, false}) {
      json options = {{"kernel_size", 3}, {"stride", 2}, {"ceil_mode", true}};
      if (pool.average) options["count_include_pad"] = counted;
      INFO(pool.op);
      const Tensor x = ones(with_extents({1, 1}, pool.dims, 2), DType::float64);
      CHECK(values(pool(x, options)) == Values{1});
      const double cells = std::pow(2, pool.dims);
      if (pool.average) CHECK(gradient(pool, x, options) == Values(std::size_t(cells), 1 / cells));
    }
}

TEST_CASE(
    "windows cut off by ceil mode are never empty and give no NaN (pytorch 36977, xla 2583, onnx 4958, webnn 935)",
    "[fault-19][fault-21][fault-23][fault-48]") {
  const struct {
    int dims;
    Shape x;
    json options;
    Shape y;
  } cases[] = {
      {1, {1, 16, 4}, {{"kernel_size", 1}, {"stride", 2}}, {1, 16, 2}},
      {2, {1, 16, 4, 4}, {{"kernel_size", {1, 2}}, {"stride", 2}, {"padding", {0, 1}}}, {1, 16, 2, 3}},
      {3, {1, 16, 4, 4, 4}, {{"kernel_size", {1, 2, 3}}, {"stride", 2}}, {1, 16, 2, 2, 2}},
      {2, {1, 1, 8, 10}, {{"kernel_size", 3}, {"stride", 4}}, {1, 1, 2, 3}},
      {2, {1, 2, 5, 5}, {{"kernel_size", 3}, {"stride", 3}, {"padding", 1}}, {1, 2, 2, 2}},
      {1, {1, 2, 6}, {{"kernel_size", 2}, {"stride", 4}, {"padding", 1}}, {1, 2, 2}},
      {1, {1, 2, 6}, {{"kernel_size", 2}, {"stride", 7}, {"padding", 1}}, {1, 2, 1}},
  };
  for (const PoolKind& pool : kSliding)
    for (const auto& [dims, shape, given, expected] : cases)
      for (const bool counted : {true, false}) {
        if (dims != pool.dims || (!pool.average && !counted)) continue;
        json options = given;
        options["ceil_mode"] = true;
        if (pool.average) options["count_include_pad"] = counted;
        INFO(pool.op << options);
        const Tensor x = rising(shape), y = pool(x, options);
        CHECK(y.shape() == expected);
        CHECK(all_finite(values(y)));
        CHECK(all_finite(gradient(pool, x, options)));
      }
}

TEST_CASE("the gradient divides by the clipped window (burn 5604, pytorch 198119)", "[fault-25]") {
  for (const bool counted : {true, false}) {
    const json options = {{"kernel_size", 3}, {"stride", 3}, {"ceil_mode", true}, {"count_include_pad", counted}};
    const Values dx = gradient(kind("AvgPool1d"), rising({1, 1, 5}), options);
    CHECK(relative_error(dx, {1.0 / 3, 1.0 / 3, 1.0 / 3, 0.5, 0.5}) < 1e-16);
    for (const char* type : {"AvgPool2d", "AvgPool3d"}) {
      const PoolKind& pool = kind(type);
      const Values gradients = gradient(pool, rising(with_extents({1, 1}, pool.dims, 5)), options);
      CHECK(gradients.front() == Approx(std::pow(1.0 / 3, pool.dims)));
      CHECK(gradients.back() == Approx(std::pow(0.5, pool.dims)));
    }
  }
}

TEST_CASE("a divisor holds whether padding counts or not (torch-mlir 4144, executorch 18616)", "[fault-26]") {
  for (const char* type : {"AvgPool2d", "AvgPool3d"})
    for (const bool counted : {true, false}) {
      const PoolKind& pool = kind(type);
      const json options = {{"kernel_size", 2}, {"divisor_override", 2}, {"count_include_pad", counted}};
      const Shape shape = with_extents({1, 1}, pool.dims, 4);
      const double sum = std::pow(2.0, pool.dims);
      CHECK(values(pool(ones(shape, DType::float64), options)) == Values(std::size_t(sum), sum / 2));
      CHECK(gradient(pool, ones(shape, DType::float64), options) == Values(std::size_t(shape.numel()), 0.5));
      json padded = options;
      padded["padding"] = 1;
      CHECK(pool(ones(shape, DType::float64), padded).min().item() == 0.5);
    }
}

TEST_CASE("padding of half a kernel over a short input is taken (nki 127, Deeploy 193)", "[fault-29]") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    const Tensor y =
        pool(rising(with_extents({1, 1}, pool.dims, 2)), {{"kernel_size", 3}, {"stride", 1}, {"padding", 1}});
    CHECK(y.shape() == with_extents({1, 1}, pool.dims, 2));
    if (!pool.average) CHECK(y.min().item() == std::pow(2, pool.dims));
  }
}

TEST_CASE("a divisor that JSON leaves out or sets to null is the window's own (TorchSharp 189)", "[fault-30]") {
  const Tensor x = ones({1, 1, 4, 6}, DType::float64);
  for (const char* text : {R"({"kernel_size": 2})", R"({"kernel_size": 2, "divisor_override": null})"})
    CHECK(values(kind("AvgPool2d").module(x, test::parsed(text))) == Values(6, 1.0));
}

TEST_CASE("every dimension has its own kernel, stride and padding (paddle 20997)", "[fault-31]") {
  for (const PoolKind& pool : kSliding) {
    if (pool.dims == 1) continue;
    INFO(pool.op);
    const json three = {{"kernel_size", {2, 3, 5}}, {"stride", {1, 2, 3}}, {"padding", {0, 1, 2}}};
    json options;
    for (const auto& [key, list] : three.items())
      options[key] = json(std::vector<int>(list.begin() + (3 - pool.dims), list.end()));
    const Tensor x = rising(Shape{1, 2}.concat(Shape{7, 11, 13}.slice(3 - pool.dims, 3)));
    const Tensor y = pool(x, options);
    CHECK(y.shape() == Shape{1, 2}.concat(Shape{6, 6, 5}.slice(3 - pool.dims, 3)));
    // The first window has 1 .. 2 x 1 .. 2 x 1 .. 3 elements; its largest is the last of them.
    const double w = 13, plane = 143, last = 1 + 2 + w + (pool.dims == 3 ? plane : 0);
    if (!pool.average) CHECK(values(y)[0] == last);
    if (!pool.average) continue;
    const double first = pool.dims == 3 ? 2 : 1, mean = 2 + w / 2 + (pool.dims == 3 ? plane / 2 : 0);
    CHECK(values(y)[0] == Approx(mean * (first * 2 * 3) / (first * 3 * 5)));
  }
}

TEST_CASE("padding offsets the gradient (pytorch 188344)", "[fault-40]") {
  const Tensor x = arange(32).to(DType::float64).reshape({1, 2, 4, 4});
  json options = {{"kernel_size", 2}, {"stride", 1}, {"padding", 1}};
  CHECK(gradient(kind("AvgPool2d"), x, options) == Values(32, 1.0));
  options["count_include_pad"] = false;
  const Values dx = gradient(kind("AvgPool2d"), x, options);
  for (const std::size_t corner : {0u, 3u, 12u, 15u, 16u, 31u}) CHECK(dx[corner] == 2.25);
  CHECK(dx[5] == 1);
}

TEST_CASE("a batch has the gradients of its samples, bit for bit (pytorch 171869)", "[fault-43]") {
  const auto check = [](const PoolKind& pool, const json& options) {
    INFO(pool.op);
    const Tensor x =
        from_data(numbers<float>(with_extents({2, 3}, pool.dims).numel(), 1), with_extents({2, 3}, pool.dims));
    Values apart;
    for (std::int64_t n = 0; n < 2; ++n) {
      const Values one = gradient(pool, x.select(0, n), options);
      apart.insert(apart.end(), one.begin(), one.end());
    }
    CHECK(same_bits(gradient(pool, x, options), apart));
  };
  for (const PoolKind& pool : kSliding) check(pool, {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}});
  for (const PoolKind& pool : kAdaptive) check(pool, {{"output_size", 3}});
}

TEST_CASE("windows of minus infinity or of NaN alone have an index and a gradient inside (pytorch 1465)",
          "[fault-45]") {
  for (const PoolKind& pool : kSliding) {
    if (pool.average) continue;
    INFO(pool.op);
    const Shape shape = with_extents({1, 1}, pool.dims, 4);
    for (const double value : {-kInf, kNaN}) {
      const Tensor x = full(shape, value, DType::float64);
      for (const double y : values(pool(x, {{"kernel_size", 2}})))
        CHECK((std::isnan(value) ? std::isnan(y) : y == value));
      const Values dx = gradient(pool, x, {{"kernel_size", 2}});
      CHECK(std::count(dx.begin(), dx.end(), 1.0) == std::int64_t(std::pow(2, pool.dims)));
      if (value == -kInf) CHECK(dx[0] == 1);
    }
  }
}

TEST_CASE("NaN is larger than any number (pytorch 7645)", "[fault-46]") {
  for (const PoolKind& pool : kAdaptive) {
    if (pool.average) continue;
    INFO(pool.op);
    for (const bool all : {true, false}) {
      Tensor x = zeros(with_extents({1, 1}, pool.dims, 2), DType::float64);
      for (std::int64_t i = all ? 0 : x.numel() - 1; i < x.numel(); ++i) x.data<double>()[i] = kNaN;
      CHECK(std::isnan(pool(x, {{"output_size", 1}}).item()));
      CHECK(gradient(pool, x, {{"output_size", 1}}).back() == 1);
    }
  }
}

TEST_CASE("of equal elements the first has the whole gradient", "[fault-49]") {
  CHECK(gradient(kind("MaxPool1d"), ones({1, 1, 4}, DType::float64), {{"kernel_size", 2}, {"stride", 2}}) ==
        Values{1, 0, 1, 0});
  CHECK(gradient(kind("MaxPool2d"), ones({1, 4, 2}, DType::float64), {{"kernel_size", 2}}) ==
        Values{1, 0, 0, 0, 1, 0, 0, 0});
  CHECK(gradient(kind("AdaptiveMaxPool1d"), ones({1, 1, 4}, DType::float64), {{"output_size", 2}}) ==
        Values{1, 0, 1, 0});
}

TEST_CASE("long averages of float32 keep every element (candle 3719, cubek 639, MIOpen 2109)", "[fault-50]") {
  constexpr std::int64_t n = std::int64_t{1} << 25;
  const Tensor x = ones({1, 1, n});
  CHECK(kind("AvgPool1d")(x, {{"kernel_size", n}}).item() == 1);
  CHECK(kind("AdaptiveAvgPool1d")(x, {{"output_size", 1}}).item() == 1);
  CHECK(kind("AvgPool2d")(x.reshape({1, 1 << 12, 1 << 13}), {{"kernel_size", {1 << 12, 1 << 13}}}).item() == 1);
}

TEST_CASE("short windows along a long row do not lose what prefix sums would", "[fault-51]") {
  constexpr std::int64_t n = std::int64_t{1} << 20, k = 4;
  Tensor x = empty({1, 1, n});
  const auto noise = numbers<float>(n, 3, 999, 1001);
  std::copy(noise.begin(), noise.end(), x.data<float>());
  const auto y = kind("AvgPool1d")(x, {{"kernel_size", k}, {"stride", 1}}).to_vector<float>();
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double exact = (double(noise[i]) + double(noise[i + 1]) + double(noise[i + 2]) + double(noise[i + 3])) / k;
    worst = std::max(worst, std::abs(double(y[i]) - exact));
  }
  CHECK(worst <= 1001 * 0x1p-24);
}

TEST_CASE("an output size of 0 is an empty result with a zero gradient (pytorch 78868)", "[fault-56]") {
  for (const PoolKind& pool : kAdaptive) {
    INFO(pool.op);
    const Tensor x = ones(with_extents({1, 6}, pool.dims)).requires_grad_();
    const Tensor y = pool(x, {{"output_size", 0}});
    CHECK(y.shape() == with_extents({1, 6}, pool.dims, 0));
    y.sum().backward();
    CHECK(x.grad().to_vector<float>() == std::vector<float>(std::size_t(x.numel()), 0.0F));
  }
}

TEST_CASE("adaptive windows end where whole numbers say (pytorch 81409, 177040, torch-xpu 4734)",
          "[fault-58][fault-60]") {
  const std::int64_t sizes[][2] = {{5877, 2855}, {4757, 3527}, {560, 2219}, {70000, 40000}, {40001, 69997}};
  for (const PoolKind& pool : {kind("AdaptiveAvgPool1d"), kind("AdaptiveMaxPool1d")})
    for (const auto& [in, out] : sizes) {
      INFO(pool.op << " " << in << " -> " << out);
      const Values y = values(pool(arange(in).to(DType::float64).reshape({1, 1, in}), {{"output_size", out}}));
      bool right = true;
      for (std::int64_t o = 0; o < out; ++o) {
        const std::int64_t first = o * in / out, last = ((o + 1) * in + out - 1) / out - 1;
        right &= y[std::size_t(o)] == (pool.average ? double(first + last) / 2 : double(last));
      }
      CHECK(right);
    }
  CHECK(kind("AdaptiveAvgPool2d")(ones({1, 5877, 97}), {{"output_size", {2855, 1}}}).min().item() == 1);
}

TEST_CASE("adaptive windows that do not divide the input overlap (FlagGems 4915)", "[fault-61]") {
  const auto means = [](std::int64_t in, std::int64_t out) {
    return values(kind("AdaptiveAvgPool1d")(rising({1, 1, in}), {{"output_size", out}}));
  };
  CHECK(means(10, 3) == Values{2.5, 5.5, 8.5});  // [0, 4) [3, 7) [6, 10)
  CHECK(means(5, 3) == Values{1.5, 3, 4.5});     // [0, 2) [1, 4) [3, 5)
  CHECK(means(224, 13).front() == 9.5);          // [0, 18)
  CHECK(means(224, 13).back() == 215.5);         // [206, 224)
  const auto largest = [](std::int64_t in, std::int64_t out) {
    return values(kind("AdaptiveMaxPool1d")(rising({1, 1, in}), {{"output_size", out}}));
  };
  CHECK(largest(10, 3) == Values{4, 7, 10});
  CHECK(largest(5, 3) == Values{2, 4, 5});
}

TEST_CASE("an output larger than the input repeats it and gathers its gradients", "[fault-63]") {
  for (const PoolKind& pool : kAdaptive) {
    INFO(pool.op);
    const Tensor one = full(with_extents({1, 2}, pool.dims, 1), 7, DType::float64);
    const double cells = std::pow(64, pool.dims);
    const Tensor y = pool(one, {{"output_size", 64}});
    CHECK(y.min().item() == 7);
    CHECK(y.max().item() == 7);
    CHECK(gradient(pool, one, {{"output_size", 64}}) == Values{cells, cells});
  }
  CHECK(values(kind("AdaptiveAvgPool1d")(rising({1, 1, 3}), {{"output_size", 7}})) == Values{1, 1, 1.5, 2, 2.5, 3, 3});
  CHECK(gradient(kind("AdaptiveMaxPool1d"), rising({1, 1, 3}), {{"output_size", 7}}) == Values{2, 2, 3});
}

TEST_CASE("an open output size keeps its dimension, bit for bit (javacpp 1587)", "[fault-64]") {
  for (const PoolKind& pool : {kind("AdaptiveAvgPool2d"), kind("AdaptiveMaxPool2d")}) {
    const Tensor x = from_data(numbers<float>(64 * 90, 5), {1, 64, 10, 9});
    CHECK(pool(x, {{"output_size", 7}}).shape() == Shape{1, 64, 7, 7});
    CHECK(pool(x, {{"output_size", {5, 7}}}).shape() == Shape{1, 64, 5, 7});
    CHECK(pool(x, {{"output_size", {nullptr, 7}}}).shape() == Shape{1, 64, 10, 7});
    CHECK(same_bits(pool(x, {{"output_size", {nullptr, nullptr}}}).to_vector<float>(), x.to_vector<float>()));
    CHECK(same_bits(pool(x, {{"output_size", {nullptr, 7}}}).to_vector<float>(),
                    pool(x, {{"output_size", {10, 7}}}).to_vector<float>()));
  }
}
