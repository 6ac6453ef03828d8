#include "taper/nn/max_pool.hpp"

#include <cmath>

#include "config/model_json.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/max_pools.hpp"
#include "support/numbers.hpp"
#include "support/oracle_max_pool.hpp"
#include "support/spread.hpp"
#include "taper/autograd.hpp"
#include "taper/nn/graph.hpp"
#include "taper/nn/max_unpool.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::kInf;
using test::kNaN;
using test::options_of;
using test::pooled;
using test::pooled_both;
using test::same_bits;
namespace F = taper::nn::functional;
using Values = std::vector<double>;
using Indices = std::vector<std::int64_t>;

namespace {

/// Pools a row as 1-d, 2-d and 3-d; the loss weighs the outputs 1, 2, 3, ...
template <class O>
void check_row(const Values& x, const std::string& options, const Values& y, const Values& dx, const Indices& index) {
  INFO(O::kType << " " << options);
  Shape shape{1, 1};
  for (int d = 1; d < O::kDims; ++d) shape = shape.concat({1});
  const Tensor input = from_data(x, Shape{std::int64_t(x.size())}).requires_grad_();
  const nn::MaxPooled pooled =
      pooled_both(input.reshape(shape.concat({std::int64_t(x.size())})), options_of<O>(options));
  const Tensor values = pooled.values, indices = pooled.indices;
  CHECK(test::same_values(values.to_vector<double>(), y));
  CHECK(indices.dtype() == DType::int64);
  CHECK(indices.to_vector<std::int64_t>() == index);
  values.backward(arange(1, double(y.size()) + 1, 1, DType::float64).reshape(values.shape()));
  CHECK(input.grad().to_vector<double>() == dx);
}

/// `per_row` are JSON options whose numbers N are given for the last dimension: {"kernel_size": N}.
void check_rows(const Values& x, Indices geometry, bool ceil_mode, const Values& y, const Values& dx,
                const Indices& index) {
  const auto options = [&](int dims) {
    std::string text;
    const char* keys[] = {"kernel_size", "stride", "padding", "dilation"};
    const std::int64_t unit[] = {1, 1, 0, 1};
    for (std::size_t i = 0; i < 4; ++i) {
      text += std::string("\"") + keys[i] + "\": [";
      for (int d = 1; d < dims; ++d) text += std::to_string(unit[i]) + ", ";
      text += std::to_string(geometry[i]) + "], ";
    }
    return text + "\"ceil_mode\": " + (ceil_mode ? "true" : "false");
  };
  check_row<nn::MaxPool1dOptions>(x, options(1), y, dx, index);
  check_row<nn::MaxPool2dOptions>(x, options(2), y, dx, index);
  check_row<nn::MaxPool3dOptions>(x, options(3), y, dx, index);
}

void check_adaptive_rows(const Values& x, int out, const Values& y, const Values& dx, const Indices& index) {
  const std::string o = std::to_string(out);
  check_row<nn::AdaptiveMaxPool1dOptions>(x, "\"output_size\": " + o, y, dx, index);
  check_row<nn::AdaptiveMaxPool2dOptions>(x, "\"output_size\": [null, " + o + "]", y, dx, index);
  check_row<nn::AdaptiveMaxPool3dOptions>(x, "\"output_size\": [1, null, " + o + "]", y, dx, index);
}

/// What pools of one kind share: options in their dimensions and an input with different extents.
struct Sample {
  nn::MaxPool3dOptions options = {.kernel_size = {2, 3, 3}, .stride = {1, 2, 1}, .padding = {1, 0, 1}};
  Tensor x = test::spread({3, 5, 5, 7, 11});
};

}  // namespace

TEST_CASE("max pools give PyTorch's values, gradients and indices in one, two and three dimensions") {
  const Values x = {3, 1, 1, 5, 5, 2};
  check_rows(x, {3, 1, 0, 1}, false, {3, 5, 5, 5}, {1, 0, 0, 9, 0, 0}, {0, 3, 3, 3});
  check_rows(x, {2, 2, 1, 1}, false, {3, 1, 5, 2}, {1, 2, 0, 3, 0, 4}, {0, 1, 3, 5});
  check_rows(x, {2, 1, 0, 2}, false, {3, 5, 5, 5}, {1, 0, 0, 6, 3, 0}, {0, 3, 4, 3});
  check_rows(x, {4, 3, 0, 1}, true, {5, 5}, {0, 0, 0, 3, 0, 0}, {3, 3});
  check_adaptive_rows(x, 4, {3, 1, 5, 5}, {1, 2, 0, 3, 4, 0}, {0, 1, 3, 4});
}

TEST_CASE("the sweep: max_pool1d refuses exactly what the size rule refuses, and gives its lengths") {
  int refused = 0, wrong = 0;
  for (std::int64_t length = 0; length <= 12; ++length)
    for (std::int64_t k = 0; k <= 7; ++k)
      for (std::int64_t s = 0; s <= 4; ++s)
        for (std::int64_t p = 0; p <= 4; ++p)
          for (const bool ceil_mode : {false, true}) {
            const oracle::MaxPool pool{
                .in = {length}, .kernel = {k}, .stride = {s}, .padding = {p}, .dilation = {1}, .ceil_mode = ceil_mode};
            try {
              const Tensor y = F::max_pool1d(ones({2, 3, length}),
                                             {.kernel_size = k, .stride = s, .padding = p, .ceil_mode = ceil_mode});
              wrong += !pool.is_admitted() || !(y.shape() == Shape{2, 3, *pool.length(0)});
            } catch (const Error&) {
              ++refused;
              wrong += pool.is_admitted();
            }
          }
  CHECK(refused == 7176 / 2);
  CHECK(wrong == 0);
}

TEST_CASE("adaptive max pools choose PyTorch's elements of a rising row") {
  const auto indices = [](int length, int out) {
    return F::adaptive_max_pool1d_with_indices(arange(1, length + 1).to(DType::float32).reshape({1, length}),
                                               {.output_size = out})
        .indices.to_vector<std::int64_t>();
  };
  CHECK(indices(7, 2) == Indices{3, 6});
  CHECK(indices(7, 3) == Indices{2, 4, 6});
  CHECK(indices(7, 5) == Indices{1, 2, 4, 5, 6});
  CHECK(indices(7, 9) == Indices{0, 1, 2, 3, 3, 4, 5, 6, 6});
  CHECK(indices(5, 3) == Indices{1, 3, 4});
}

TEST_CASE("NaN is larger than any number, and of several NaN in a window the last one is chosen") {
  const Values x = {1, kNaN, 2, kNaN, 3, 4};
  check_rows(x, {6, 1, 0, 1}, false, {kNaN}, {0, 0, 0, 1, 0, 0}, {3});
  check_rows(x, {3, 1, 0, 1}, false, {kNaN, kNaN, kNaN, kNaN}, {0, 1, 0, 9, 0, 0}, {1, 3, 3, 3});
  check_adaptive_rows(x, 1, {kNaN}, {0, 0, 0, 1, 0, 0}, {3});
}

TEST_CASE("a window of minus infinity alone chooses its first element, never padding") {
  check_rows({-kInf, -kInf, -kInf, -kInf}, {2, 2, 1, 1}, false, {-kInf, -kInf, -kInf}, {1, 2, 0, 3}, {0, 1, 3});
}

TEST_CASE("the function without indices gives the values of the one with them, whether recording or not") {
  const Sample s;
  const Tensor values = pooled_both(s.x, s.options).values;
  CHECK(same_bits(pooled(s.x, s.options).to_vector<double>(), values.to_vector<double>()));
  const Tensor leaf = s.x.clone().requires_grad_();
  CHECK(same_bits(pooled(leaf, s.options).to_vector<double>(), values.to_vector<double>()));
  CHECK(values.shape() == Shape({3, 5, 6, 3, 11}));
  CHECK(pooled(s.x.select(0, 2), s.options).shape() == Shape({5, 6, 3, 11}));
}

TEST_CASE("the maximum of -x is minus the minimum of x") {
  const Tensor x = test::spread({2, 3, 7, 11});
  const Tensor y = F::max_pool2d(neg(x), {.kernel_size = {3, 5}, .stride = {2, 3}});
  const Tensor a = F::adaptive_max_pool1d(neg(x.reshape({6, 77})), {.output_size = 7});
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      CHECK(y.select(3, j).select(2, i).to_vector<double>() ==
            neg(x.narrow(2, 2 * i, 3).narrow(3, 3 * j, 5).amin({2, 3})).to_vector<double>());
  for (std::int64_t i = 0; i < 7; ++i)
    CHECK(a.select(1, i).to_vector<double>() ==
          neg(x.reshape({6, 77}).narrow(1, 11 * i, 11).amin(1)).to_vector<double>());
}

TEST_CASE("channels, samples and batches cut in parts give the same bits") {
  const Sample s;
  const auto [values, indices] = pooled_both(s.x, s.options);
  const Tensor channels = tensor({3, 0, 4, 1, 2}), samples = tensor({2, 0, 1});
  const auto same = [&](const nn::MaxPooled& got, const Tensor& y, const Tensor& index) {
    return same_bits(got.values.to_vector<double>(), y.to_vector<double>()) &&
           got.indices.to_vector<std::int64_t>() == index.to_vector<std::int64_t>();
  };
  CHECK(same(pooled_both(index_select(s.x, 1, channels), s.options), index_select(values, 1, channels),
             index_select(indices, 1, channels)));
  CHECK(same(pooled_both(index_select(s.x, 0, samples), s.options), index_select(values, 0, samples),
             index_select(indices, 0, samples)));
  for (std::int64_t n = 0; n < 3; ++n)
    CHECK(same(pooled_both(s.x.select(0, n), s.options), values.select(0, n), indices.select(0, n)));
}

TEST_CASE("gradients of overlapping windows and both inputs of a sum add up") {
  // Numbers 0.05 apart, so that no step of the difference quotient changes what is chosen.
  std::vector<double> apart(2 * 3 * 7 * 5);
  for (std::size_t i = 0; i < apart.size(); ++i) apart[i] = 0.05 * double(i * 97 % apart.size()) - 5;
  const Tensor x = from_data(apart, {2, 3, 7, 5}).requires_grad_();
  const auto report = autograd::gradcheck(
      [](const std::vector<Tensor>& in) {
        const Tensor y = F::max_pool2d(in[0], {.kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 0}});
        const Tensor z = F::adaptive_max_pool2d(in[0], {.output_size = {4, 4}});
        return add(y, mul(z, 0.37));
      },
      {x});
  INFO(report.to_string());
  CHECK(report.ok);
}

TEST_CASE("an adaptive max pool to the input's size copies every bit") {
  const std::vector<float> x = {-0.0f, 0.0f, 1e-45f, -3.4e38f, INFINITY, 1.5f};
  const auto same = [&](const Tensor& y) { return same_bits(y.to_vector<float>(), x); };
  CHECK(same(F::adaptive_max_pool1d(from_data(x, {1, 6}), {.output_size = 6})));
  CHECK(same(F::adaptive_max_pool2d(from_data(x, {1, 2, 3}), {.output_size = {std::nullopt, 3}})));
  CHECK(same(F::adaptive_max_pool3d(from_data(x, {1, 1, 2, 3}), {.output_size = {1, std::nullopt, std::nullopt}})));
}

TEST_CASE("an empty batch gives empty values and indices, an output size of 0 no gradient") {
  const auto [values, indices] = F::max_pool2d_with_indices(ones({0, 3, 5, 7}), {.kernel_size = 2});
  CHECK(values.shape() == Shape({0, 3, 2, 3}));
  CHECK(indices.shape() == Shape({0, 3, 2, 3}));
  const Tensor x = ones({2, 3, 5, 7}).requires_grad_();
  const Tensor y = F::adaptive_max_pool2d(x, {.output_size = {0, 3}});
  CHECK(y.shape() == Shape({2, 3, 0, 3}));
  y.sum().backward();
  CHECK(x.grad().abs().sum().item() == 0);
}

TEST_CASE("indices that were changed before the backward are noticed") {
  const Tensor x = test::spread({1, 7}).requires_grad_();
  const auto [values, indices] = F::max_pool1d_with_indices(x, {.kernel_size = 3});
  indices.fill_(1000000);
  CHECK(test::message_of([&, y = values] { y.sum().backward(); }).find("was changed in place") != std::string::npos);
}

TEST_CASE("max pool layers give values, and indices when asked") {
  nn::MaxPool1d pool({.kernel_size = 2, .stride = 1});
  const Tensor x = tensor({3.0, 1.0, 4.0, 1.0, 5.0}).reshape({1, 5});
  CHECK(pool(x).to_vector<double>() == Values{3, 4, 4, 5});
  CHECK(pool.forward_with_indices(x).indices.to_vector<std::int64_t>() == Indices{0, 2, 2, 4});
  CHECK(pool.further_outputs().empty());
  CHECK(pool.forward_outputs({&x, 1}).size() == 1);
  nn::AdaptiveMaxPool2d both({.output_size = {std::nullopt, 2}, .return_indices = true});
  const Tensor plane = x.reshape({1, 1, 5});
  CHECK(both.further_outputs() == std::vector<std::string>{"indices"});
  const auto outputs = both.forward_outputs({&plane, 1});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].to_vector<double>() == Values{4, 5});
  CHECK(outputs[1].to_vector<std::int64_t>() == Indices{2, 4});
}

TEST_CASE("a max pool prints all its options") {
  CHECK(nn::MaxPool2d({.kernel_size = {2, 3}, .dilation = {1, 2}}).to_string() ==
        "MaxPool2d(kernel_size=[2, 3], stride=null, padding=0, dilation=[1, 2], return_indices=false, "
        "ceil_mode=false)");
  CHECK(nn::AdaptiveMaxPool3d({.output_size = {2, std::nullopt, 5}}).to_string() ==
        "AdaptiveMaxPool3d(output_size=[2, null, 5], return_indices=false)");
}

TEST_CASE("a max pool describes its windows, without divisors") {
  CHECK(nn::MaxPool1d({.kernel_size = 3, .stride = 2, .padding = 1, .dilation = 2}).describe(8).to_string() ==
        R"(MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=2, return_indices=false, ceil_mode=false)
input 8, output 3, dropped 0
window  positions  elements  padding  overlap
     0    [-1, 4)         2        1        -
     1     [1, 6)         3        0        2
     2     [3, 8)         3        0        2
)");
  CHECK(nn::AdaptiveMaxPool1d({.output_size = 3}).describe(5).to_string() ==
        R"(AdaptiveMaxPool1d(output_size=3, return_indices=false)
input 5, output 3, dropped 0
window  positions  elements  padding  overlap
     0     [0, 2)         2        0        -
     1     [1, 4)         3        0        1
     2     [3, 5)         2        0        1
)");
  CHECK(nn::MaxPool3d({.kernel_size = {1, 2, 3}}).describe({2, 3, 5}).dimensions[2].dropped == 2);
}

TEST_CASE("in JSON, a later layer reads a max pool's indices by name") {
  const auto loaded = config::parse_model(R"({"input": {"shape": [3, 7, 11]}, "layers": [
    {"type": "MaxPool2d", "name": "pool", "kernel_size": [2, 3], "return_indices": true},
    {"type": "ReLU"},
    {"type": "MaxUnpool2d", "inputs": ["1", "pool.indices"], "kernel_size": [2, 3], "output_size": [7, 11]}]})",
                                          "m.json");
  INFO(loaded.errors);
  REQUIRE(loaded.model.complete);
  CHECK(loaded.model.output() == Shape({3, 7, 11}));
  const Tensor x = test::spread({2, 3, 7, 11}).to(DType::float32);
  const auto [values, indices] = F::max_pool2d_with_indices(x, {.kernel_size = {2, 3}});
  const Tensor expected = F::max_unpool2d(relu(values), indices, {.kernel_size = {2, 3}, .output_size = {7, 11}});
  CHECK(same_bits(config::build_model(loaded.model)->forward(x).to_vector<float>(), expected.to_vector<float>()));
}

TEST_CASE("in JSON, indices are refused where they do not fit or were not asked for") {
  const auto errors = [](const std::string& pool, const std::string& unpool) {
    const std::string text = config::parse_model(R"({"input": {"shape": [3, 12]}, "layers": [
      {"type": "MaxPool1d", "name": "pool", )" + pool +
                                                     R"(},
      {"type": "MaxUnpool1d", "name": "back", )" + unpool +
                                                     "}]}",
                                                 "m.json")
                                 .errors;
    const std::size_t from = text.find("error: ");
    return from == std::string::npos ? "no error" : text.substr(from, text.find('\n', from) - from);
  };
  const std::string two = R"("kernel_size": 2)", asked = R"("kernel_size": 2, "return_indices": true)";
  CHECK(errors(asked, R"("kernel_size": 2, "inputs": ["pool", "pool.indices"])") == "no error");
  const auto back = [](const char* key, const char* problem) {
    return std::string("error: /layers/1") + key + " (layer back): " + problem;
  };
  CHECK(errors(two, R"("kernel_size": 2, "inputs": ["pool", "pool.indices"])") ==
        back("/inputs/1",
             "MaxPool1d gives no further results with these options: expected \"pool\", got "
             "\"pool.indices\""));
  CHECK(errors(asked, R"("kernel_size": 2, "inputs": ["pool", "pool.index"])") ==
        back("/inputs/1",
             "MaxPool1d has no further result of this name: expected \"pool.indices\", got "
             "\"pool.index\"; did you mean pool.indices?"));
  CHECK(errors(asked, R"("kernel_size": 2, "inputs": ["input", "pool.indices"])") ==
        back("",
             "max_unpool1d: indices do not fit the input: expected [N, 3, 12], got [N, 3, 6]; shapes: input [3, 12] "
             "-> pool [3, 6] -> MaxUnpool1d"));
  CHECK(errors(asked, R"("kernel_size": 2, "inputs": ["pool", "pool"])") ==
        back("/inputs/1", "MaxUnpool1d takes another element type: expected int64, got a floating one from \"pool\""));
  CHECK(errors(asked, R"("kernel_size": 2, "inputs": ["pool"])") ==
        back("/inputs", "MaxUnpool1d takes another number of inputs: expected 2, got 1"));
  CHECK(errors(asked, R"("kernel_size": 2, "output_size": 14, "inputs": ["pool", "pool.indices"])") ==
        back("/output_size",
             "max_unpool1d: output_size does not fit the input: expected 11 to 13, got 14; input size "
             "6; shapes: input [3, 12] -> pool [3, 6] -> MaxUnpool1d"));
  const std::string inputs = R"(, "inputs": ["pool", "pool.indices"])";
  CHECK(errors(asked, R"("kernel_size": 0)" + inputs) == back("/kernel_size", "expected >= 1, got 0"));
  CHECK(errors(asked, R"("kernel_size": 2, "stride": 0)" + inputs) == back("/stride", "expected >= 1, got 0"));
  CHECK(errors(asked, R"("kernel_size": 2, "padding": -1)" + inputs) == back("/padding", "expected >= 0, got -1"));
  CHECK(errors(asked, R"("kernel_size": 2, "output_size": 0)" + inputs) ==
        back("/output_size", "expected >= 1, got 0"));
}
