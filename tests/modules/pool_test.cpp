#include "taper/nn/pool.hpp"

#include <array>
#include <functional>

#include "support/adjoint.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "support/pools.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using nlohmann::json;
using test::PoolKind;
using test::same_bits;
using test::with_extents;
namespace F = taper::nn::functional;

namespace {

std::vector<PoolKind> averages(std::span<const PoolKind> pools) {
  std::vector<PoolKind> kinds;
  for (const PoolKind& pool : pools)
    if (pool.average) kinds.push_back(pool);
  return kinds;
}
const std::vector<PoolKind> kSliding = averages(test::pools::kSliding), kAdaptive = averages(test::pools::kAdaptive);

/// Not on a grid: sums round.
Tensor random(const Shape& shape, DType dtype = DType::float64) {
  manual_seed(std::uint64_t(shape.numel()));
  return uniform(shape, -2, 2, dtype);
}

/// The output and the gradient, one after the other, as bits compare.
std::vector<double> both(const Tensor& x, const std::function<Tensor(const Tensor&)>& pool) {
  const Tensor leaf = x.clone().requires_grad_();
  const Tensor y = pool(leaf);
  y.backward(random(y.shape(), y.dtype()));
  std::vector<double> values = y.to_vector<double>();
  const auto gradient = leaf.grad().to_vector<double>();
  values.insert(values.end(), gradient.begin(), gradient.end());
  return values;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && same_bits(a.to_vector<double>(), b.to_vector<double>());
}

}  // namespace

TEST_CASE("adaptive_avg_pool1d of 0..13 to 4 spreads its gradient as the forum thread shows") {
  const Tensor x = arange(0, 14, 1, DType::float32).requires_grad_();
  const Tensor y = F::adaptive_avg_pool1d(x.reshape({1, 1, 14}), {.output_size = 4});
  CHECK(y.to_vector<float>() == std::vector<float>{1.5F, 4.5F, 8.5F, 11.5F});
  y.backward(arange(1, 5, 1, DType::float32).reshape({1, 1, 4}));
  CHECK(x.grad().to_vector<float>() ==
        std::vector<float>{.25F, .25F, .25F, .75F, .5F, .5F, .5F, .75F, .75F, .75F, 1.75F, 1.F, 1.F, 1.F});
}

TEST_CASE("pools refuse bad options in the constructor, in the function and where the input does not fit") {
  CHECK_THROWS_WITH(nn::AvgPool2d({.kernel_size = {3, 2}, .padding = {1, 2}}),
                    "avg_pool2d: padding must be at most half the kernel size: expected <= 1, got 2 in dimension 1");
  CHECK_THROWS_WITH(F::avg_pool1d(ones({2, 3, 5}), {.kernel_size = 2, .stride = 0}),
                    "avg_pool1d: stride must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(F::avg_pool2d(ones({2, 3, 5, 7}), {.kernel_size = 2, .divisor_override = 0}),
                    "avg_pool2d: divisor_override must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(
      F::avg_pool1d(ones({2, 3, 5, 7}), {.kernel_size = 2}),
      "avg_pool1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D [2, 3, 5, 7]");
  CHECK_THROWS_WITH(
      F::adaptive_avg_pool1d(ones({2, 3}, DType::int64), {.output_size = 2}),
      "adaptive_avg_pool1d: element type not supported: expected float32 or float64, got int64; convert with to()");
}

TEST_CASE("a pool prints all its options") {
  CHECK(nn::AvgPool2d({.kernel_size = {2, 3}}).to_string() ==
        "AvgPool2d(kernel_size=[2, 3], stride=null, padding=0, dilation=1, ceil_mode=false, count_include_pad=true, "
        "divisor_override=null)");
}

TEST_CASE("stride, padding and sizes read like PyTorch's tuples in C++ and in JSON") {
  const auto shape = [](const nn::AvgPool2dOptions& options) {
    return to_string(F::avg_pool2d(ones({2, 3, 5, 7}), options).shape());
  };
  CHECK(shape({.kernel_size = {2, 3}, .stride = {1, 2}}) == "[2, 3, 4, 3]");
  CHECK(shape({.kernel_size = {2, 3}, .stride = {}}) == "[2, 3, 2, 2]");
  CHECK(shape({.kernel_size = 3, .stride = 1, .padding = {1, 0}}) == "[2, 3, 5, 5]");
  CHECK(shape({.kernel_size = 3, .stride = 1, .padding = {{1, 0}, {0, 1}}}) == "[2, 3, 4, 6]");
  CHECK(shape({.kernel_size = 3, .stride = 1, .padding = {{0, 1}}}) == "[2, 3, 4, 6]");
  CHECK(shape({.kernel_size = {3, 4}, .stride = 1, .padding = {1, {1, 2}}}) == "[2, 3, 5, 7]");
  CHECK(shape({.kernel_size = {2, 4}, .stride = 1, .padding = "same", .dilation = {3, 1}}) == "[2, 3, 5, 7]");
  CHECK(F::avg_pool1d(ones({3, 7}), {.kernel_size = 4, .stride = 1, .padding = {{1, 2}}}).shape() == Shape{3, 7});
  const auto printed = [](const char* padding) {
    const auto& type = *nn::find_layer_type("AvgPool2d");
    const auto options = test::options_from(type, {{"kernel_size", 3}, {"padding", test::parsed(padding)}});
    const std::string text = type.make(options.get())->to_string();
    const std::size_t from = text.find("padding=") + 8;
    return text.substr(from, text.find(", dilation") - from);
  };
  CHECK(printed("1") == "1");
  CHECK(printed("[1, 1]") == "1");
  CHECK(printed("[1, 0]") == "[1, 0]");
  CHECK(printed("[[1, 1], [0, 0]]") == "[1, 0]");
  CHECK(printed("[[0, 1], 1]") == "[[0, 1], 1]");
  CHECK(printed("[[0, 1], [0, 1]]") == "[[0, 1], [0, 1]]");
  CHECK_THROWS_WITH(nn::AvgPool2d({.kernel_size = 3, .padding = {1, 1, 1}}),
                    "sizes: one number for all places or one for each: expected 1 or 2, got 3");
  CHECK_THROWS_WITH(nn::AvgPool2d({.kernel_size = 3, .padding = "valid"}),
                    "padding: unknown word: expected numbers or \"same\", got \"valid\"");
  CHECK_THROWS_WITH(nn::AdaptiveAvgPool2d({.output_size = {}}),
                    "sizes: one number for all places or one for each: expected 1 or 2, got 0");
}

TEST_CASE("uneven padding and dilation are refused alike by functions, layers and JSON") {
  for (const PoolKind& pool : kSliding) {
    INFO(pool.op);
    const Shape x = with_extents({2, 3}, pool.dims);
    json sides(std::size_t(pool.dims), json(0));
    sides.back() = {1, 2};
    const std::string place = pool.dims > 1 ? " in dimension " + std::to_string(pool.dims - 1) : "";
    CHECK(pool.refusal(x, {{"kernel_size", 3}, {"padding", sides}}) ==
          "padding must be at most half the kernel size: expected <= 1, got 2" + place);
    sides.back() = {0, -1};
    CHECK(pool.refusal(x, {{"kernel_size", 3}, {"padding", sides}}) ==
          "padding must not be negative: expected >= 0, got -1" + place);
    CHECK(pool.refusal(x, {{"kernel_size", 3}, {"dilation", 2}, {"padding", 3}}) ==
          "padding must be at most half the dilated kernel: expected <= 2, got 3");
    CHECK(pool.refusal(x, {{"kernel_size", 3}, {"dilation", 2}, {"padding", 2}}) == "no error");
    CHECK(pool.refusal(x, {{"kernel_size", 3}, {"dilation", 0}}) == "dilation must be positive: expected >= 1, got 0");
    CHECK(pool.refusal(x, {{"kernel_size", 3}, {"padding", "same"}}) ==
          "padding 'same' needs stride 1: expected 1, got 3");
    CHECK(pool.refusal(x, {{"kernel_size", 3}, {"padding", "same"}, {"stride", 1}}) == "no error");
  }
  const auto in_json = [](const char* type, const char* padding) {
    return test::json_error(type, std::string("\"kernel_size\": 3, \"padding\": ") + padding,
                            std::string(type) == "AvgPool1d" ? "[3, 11]" : "[3, 7, 11]");
  };
  const std::string one = "error: /layers/0/padding (layer AvgPool1d 0): ",
                    two = "error: /layers/0/padding (layer AvgPool2d 0): ";
  CHECK(in_json("AvgPool1d", "[0, 1]") ==
        one +
            "expected a list of 1 integers, got 2 in [0, 1]; the two sides of one dimension are a pair in the list, "
            "[[0, 1]]");
  CHECK(in_json("AvgPool2d", "[[0, 1]]") == two + "expected a list of 2 integers, got 1 in [[0, 1]]");
  CHECK(in_json("AvgPool2d", "[[0, 1, 0], 1]") == two + "expected an integer or a pair of them, got 3 in [0, 1, 0]");
  CHECK(in_json("AvgPool2d", "\"valid\"") == two + "expected numbers or \"same\", got \"valid\"");
  CHECK(in_json("AvgPool2d", "[[0, 1.5], 1]") ==
        "error: /layers/0/padding/0/1 (layer AvgPool2d 0): expected an integer, got 1.5");
  CHECK(in_json("AvgPool2d", "[[0, 18446744073709551615], 1]") ==
        "error: /layers/0/padding/0/1 (layer AvgPool2d 0): expected an integer from -9223372036854775808 to "
        "9223372036854775807, got 18446744073709551615");
}

TEST_CASE("a pool over the whole input, an adaptive one to 1 and the mean are the same, bit for bit") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (std::size_t i = 0; i < 3; ++i) {
      const Dims over[] = {{2}, {2, 3}, {2, 3, 4}};
      const int dims = kSliding[i].dims;
      for (const std::vector<std::int64_t>& extents :
           {std::vector<std::int64_t>{3, 7, 5}, {2, 31, 37}, {1, 3, 1511}, {5, 13, 1}, {17, 19, 23}}) {
        const Shape spatial = Shape(extents).slice(3 - dims, 3), shape = Shape{2, 3}.concat(spatial);
        CAPTURE(dims, extents);
        const std::vector<std::int64_t> kernel(spatial.begin(), spatial.end());
        const Tensor x = random(shape, dtype);
        const auto mean = both(x, [&](const Tensor& t) { return t.mean(over[i], true); });
        CHECK(same_bits(both(x, [&](const Tensor& t) { return kSliding[i](t, {{"kernel_size", kernel}}); }), mean));
        CHECK(same_bits(both(x, [&](const Tensor& t) { return kAdaptive[i](t, {{"output_size", 1}}); }), mean));
      }
    }
}

TEST_CASE("a constant stays a constant where padding does not count") {
  for (const PoolKind& pool : kSliding)
    for (const json& options : {json{{"kernel_size", 3}, {"stride", 2}, {"ceil_mode", true}},
                                json{{"kernel_size", 3}, {"padding", 1}, {"count_include_pad", false}},
                                json{{"kernel_size", 4},
                                     {"dilation", 2},
                                     {"stride", 1},
                                     {"padding", 3},
                                     {"ceil_mode", true},
                                     {"count_include_pad", false}}}) {
      INFO(pool.op << options);
      const Shape shape = with_extents({2, 3}, pool.dims, 13);
      for (const double value : pool(full(shape, 0.1, DType::float32), options).to_vector<double>())
        CHECK(value == double(0.1F));
      for (const double value : pool(full(shape, 1.5, DType::float64), options).to_vector<double>())
        CHECK(value == 1.5);
    }
  for (const PoolKind& pool : kAdaptive)
    for (const float value :
         pool(full(with_extents({2, 3}, pool.dims), 0.1, DType::float32), {{"output_size", 4}}).to_vector<float>())
      CHECK(value == 0.1F);
}

TEST_CASE("an adaptive average of no channels is empty, as of no samples") {
  for (const PoolKind& pool : kAdaptive)
    for (const std::int64_t n : {0, 3}) {
      const Tensor x = ones(with_extents({n, 0}, pool.dims)).requires_grad_();
      const Tensor y = pool(x, {{"output_size", 3}});
      CHECK(y.shape() == (pool.dims == 1 ? Shape{n, 0, 3} : pool.dims == 2 ? Shape{n, 0, 3, 3} : Shape{n, 0, 3, 3, 3}));
      CHECK(pool.module(x, {{"output_size", 3}}).shape() == y.shape());
      y.backward(ones(y.shape()));
      CHECK(x.grad().shape() == x.shape());
    }
}

TEST_CASE("adaptive pools to the input's size copy every bit") {
  const Tensor x = from_data(std::vector<float>{-0.0F, 0.0F, 1e-45F, -3.4e38F, INFINITY, 1.5F}, {1, 6});
  for (const PoolKind& pool : kAdaptive) {
    const Shape shape = pool.dims == 1 ? Shape{1, 6} : pool.dims == 2 ? Shape{1, 2, 3} : Shape{1, 2, 1, 3};
    const json size = pool.dims == 1 ? json(6) : pool.dims == 2 ? json{2, nullptr} : json{nullptr, nullptr, 3};
    CHECK(same_bits(pool(x.reshape(shape), {{"output_size", size}}).to_vector<float>(), x.to_vector<float>()));
  }
}

TEST_CASE("a 3-d pool of unit depth is the 2-d pool, and of unit height the 1-d pool, bit for bit") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const std::int64_t dilation : {1, 3})
      for (const auto& [k, s, p] :
           std::vector<std::array<std::int64_t, 3>>{{3, 2, 1}, {19, 5, 9}, {2, 2, 0}, {7, 1, 3}}) {
        CAPTURE(k, s, p, dilation);
        const Tensor x = random({2, 3, 101}, dtype), image = random({2, 3, 13, 101}, dtype);
        const auto row = both(x, [&](const Tensor& t) {
          return F::avg_pool1d(t, {.kernel_size = k, .stride = s, .padding = {{p, p / 2}}, .dilation = dilation});
        });
        const nn::AvgPool2dOptions flat{
            .kernel_size = {1, k}, .stride = {1, s}, .padding = {0, {p, p / 2}}, .dilation = {1, dilation}};
        CHECK(same_bits(both(x.unsqueeze(2), [&](const Tensor& t) { return F::avg_pool2d(t, flat); }), row));
        const nn::AvgPool3dOptions deep{
            .kernel_size = {1, 1, k}, .stride = {1, 1, s}, .padding = {0, 0, {p, p / 2}}, .dilation = {1, 1, dilation}};
        CHECK(
            same_bits(both(x.unsqueeze(2).unsqueeze(2), [&](const Tensor& t) { return F::avg_pool3d(t, deep); }), row));
        const auto plane = both(image, [&](const Tensor& t) {
          return F::avg_pool2d(
              t, {.kernel_size = {3, k}, .stride = {2, s}, .padding = {1, {p, p / 2}}, .dilation = {dilation, 1}});
        });
        CHECK(same_bits(both(image.unsqueeze(2),
                             [&](const Tensor& t) {
                               return F::avg_pool3d(t, {.kernel_size = {1, 3, k},
                                                        .stride = {1, 2, s},
                                                        .padding = {0, 1, {p, p / 2}},
                                                        .dilation = {1, dilation, 1}});
                             }),
                        plane));
      }
  const Tensor x = random({2, 3, 101});
  const auto row = both(x, [](const Tensor& t) { return F::adaptive_avg_pool1d(t, {.output_size = 7}); });
  CHECK(same_bits(both(x.unsqueeze(2),
                       [](const Tensor& t) {
                         return F::adaptive_avg_pool2d(t, {.output_size = {1, 7}});
                       }),
                  row));
  CHECK(same_bits(both(x.unsqueeze(2).unsqueeze(2),
                       [](const Tensor& t) {
                         return F::adaptive_avg_pool3d(t, {.output_size = {1, 1, 7}});
                       }),
                  row));
}

TEST_CASE("zeros written out and no padding are counted padding, bit for bit") {
  for (const std::int64_t dilation : {1, 2})
    for (const std::int64_t k : {2, 3, 5, 11}) {
      CAPTURE(k, dilation);
      const std::int64_t before = k / 2, after = k / 2 - 1;
      const Tensor x = random({2, 3, 5, 17, 29});
      const std::vector<std::int64_t> amounts = {before, after, 1, 0, 0, 1};
      const auto padded =
          F::avg_pool3d(pad(x, amounts), {.kernel_size = {2, 3, k}, .stride = 1, .dilation = {1, 1, dilation}});
      CHECK(same(F::avg_pool3d(x, {.kernel_size = {2, 3, k},
                                   .stride = 1,
                                   .padding = {{0, 1}, {1, 0}, {before, after}},
                                   .dilation = {1, 1, dilation}}),
                 padded));
      const Tensor row = x.reshape({2, 3 * 5 * 17, 29}), padded_row = pad(row, std::vector{before, after});
      for (const std::int64_t stride : {1, 2, 3, 5}) {
        CAPTURE(stride);
        CHECK(same(F::avg_pool1d(
                       row, {.kernel_size = k, .stride = stride, .padding = {{before, after}}, .dilation = dilation}),
                   F::avg_pool1d(padded_row, {.kernel_size = k, .stride = stride, .dilation = dilation})));
      }
    }
}

TEST_CASE("padding \"same\" keeps the size and is the padding it stands for, the odd zero behind") {
  const Tensor x = random({2, 3, 7, 11});
  for (const std::int64_t dilation : {1, 2, 3})
    for (const std::int64_t k : {1, 2, 3, 4}) {
      const std::int64_t total = dilation * (k - 1);
      const Tensor y =
          F::avg_pool2d(x, {.kernel_size = {2, k}, .stride = 1, .padding = "same", .dilation = {1, dilation}});
      CHECK(y.shape() == x.shape());
      CHECK(same(y, F::avg_pool2d(x, {.kernel_size = {2, k},
                                      .stride = 1,
                                      .padding = {{0, 1}, {total / 2, total - total / 2}},
                                      .dilation = {1, dilation}})));
    }
  CHECK(F::avg_pool1d(ones({1, 3}, DType::float64), {.kernel_size = 2, .stride = 1, .padding = "same"})
            .to_vector<double>() == std::vector<double>{1, 1, .5});
}

TEST_CASE("a pool of stride s is every s-th window of the pool of stride 1, bit for bit") {
  for (const PoolKind& pool : kSliding)
    for (const std::int64_t k : {2, 3, 6, 19})
      for (const std::int64_t dilation : {1, 2}) {
        INFO(pool.op << " " << k);
        const std::int64_t stride = 5, span = dilation * (k - 1) + 1;
        const Shape shape = pool.dims == 1   ? Shape{2, 3, 43}
                            : pool.dims == 2 ? Shape{2, 3, 2, 43}
                                             : Shape{2, 3, 2, 3, 43};
        json kernel(std::size_t(pool.dims), json(2)), strides(std::size_t(pool.dims), json(1)), step = strides;
        kernel.back() = k, strides.back() = stride, step.back() = dilation;
        const Tensor x = random(shape);
        const auto run = [&](const json& s) {
          return pool(x, {{"kernel_size", kernel}, {"stride", s}, {"dilation", step}});
        };
        const Tensor dense = run(1), strided = run(strides);
        const int last = pool.dims + 1;
        REQUIRE(strided.size(last) == (43 - span) / stride + 1);
        for (std::int64_t i = 0; i < strided.size(last); ++i)
          CHECK(same(strided.select(last, i), dense.select(last, i * stride)));
      }
}

TEST_CASE("channels and samples in another order, and a batch in parts, give the same bits") {
  const auto check = [](const PoolKind& pool, const json& options) {
    INFO(pool.op);
    const Tensor x = random(with_extents({3, 5}, pool.dims));
    const Tensor y = pool(x, options);
    const Tensor channels = tensor({3, 0, 4, 1, 2}), samples = tensor({2, 0, 1});
    CHECK(same(pool(index_select(x, 1, channels), options), index_select(y, 1, channels)));
    CHECK(same(pool(index_select(x, 0, samples), options), index_select(y, 0, samples)));
    CHECK(same(pool(x.narrow(0, 1, 2), options), y.narrow(0, 1, 2)));
    CHECK(same(pool(x.select(0, 2), options), y.select(0, 2)));
  };
  for (const PoolKind& pool : kSliding) {
    check(pool, {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}, {"ceil_mode", true}});
    check(pool, {{"kernel_size", 2}, {"stride", 1}, {"dilation", 3}, {"count_include_pad", false}});
  }
  for (const PoolKind& pool : kAdaptive) check(pool, {{"output_size", 4}});
}

TEST_CASE("the gradient of an average pool is its adjoint") {
  const auto error = [](const PoolKind& pool, const json& options) {
    return test::adjoint_error([&](const Tensor& x) { return pool(x, options); }, with_extents({2, 3}, pool.dims));
  };
  for (const PoolKind& pool : kSliding)
    for (const json& options : {json{{"kernel_size", 3}, {"stride", 2}, {"padding", 1}, {"ceil_mode", true}},
                                json{{"kernel_size", 4}, {"stride", 1}, {"padding", 2}, {"count_include_pad", false}},
                                json{{"kernel_size", 2}, {"stride", 1}, {"dilation", 3}, {"padding", 1}},
                                json{{"kernel_size", 2}, {"stride", 1}, {"padding", "same"}}}) {
      INFO(pool.op << options);
      CHECK(error(pool, options) < 1e-12);
    }
  for (const PoolKind& pool : kAdaptive)
    for (const int size : {1, 3, 4, 13}) CHECK(error(pool, {{"output_size", size}}) < 1e-12);
}
