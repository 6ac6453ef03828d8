#include "taper/nn/embedding.hpp"

#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "taper/autograd.hpp"
#include "taper/config.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;
namespace F = taper::nn::functional;

namespace {

Tensor table() { return tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, DType::float64); }

std::string embedding_error(const std::string& options,
                            const std::string& input = R"({"shape": [3], "dtype": "int64"})") {
  const std::string errors =
      config::parse_model(R"({"input": )" + input + R"(, "layers": [{"type": "Embedding")" + options + "}]}", "m.json")
          .errors;
  const std::size_t from = errors.find("error: ");
  return from == std::string::npos ? "no error" : errors.substr(from, errors.find('\n', from) - from);
}

}  // namespace

TEST_CASE("an embedding gives the rows that its input names, and sums their gradients") {
  const Tensor w = table().requires_grad_();
  const Tensor y = F::embedding(tensor({{2, 0}, {2, 2}}, DType::int64), w);
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(y.to_vector<double>() == std::vector<double>{5, 6, 1, 2, 5, 6, 5, 6});
  y.backward(tensor({{{1.0, 2.0}, {3.0, 4.0}}, {{5.0, 6.0}, {7.0, 8.0}}}, DType::float64));
  CHECK(w.grad().to_vector<double>() == std::vector<double>{3, 4, 0, 0, 13, 16});
  CHECK(F::embedding(scalar(1, DType::int64), w).to_vector<double>() == std::vector<double>{3, 4});
  CHECK(F::embedding(zeros({0, 5}, DType::int64), w).shape() == Shape{0, 5, 2});
}

TEST_CASE("an embedding's padding row gets no gradient, and frequent rows get their mean if asked") {
  const Tensor index = tensor({2, 0, 2, 2}, DType::int64);
  const auto gradient = [&](const nn::EmbeddingFuncOptions& options) {
    const Tensor w = table().requires_grad_();
    F::embedding(index, w, options).backward(tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}, {9.0, 10.0}}, DType::float64));
    return w.grad().to_vector<double>();
  };
  CHECK(gradient({.padding_idx = 2}) == std::vector<double>{3, 4, 0, 0, 0, 0});
  CHECK(gradient({.padding_idx = -3}) == std::vector<double>{0, 0, 0, 0, 15, 18});
  CHECK(gradient({.scale_grad_by_freq = true}) == std::vector<double>{3, 4, 0, 0, 5, 6});
}

TEST_CASE("an embedding scales rows that are read and too long down in its table, unrecorded") {
  const Tensor w = tensor({{3.0, 4.0}, {0.1, -0.2}, {9.0, 9.0}}, DType::float64).requires_grad_();
  const auto version = [&] { return w.impl()->buffer->version; };
  const auto before = version();
  const Tensor y = F::embedding(tensor({0, 1, 0}, DType::int64), w, {.max_norm = 1.0});
  CHECK(version() == before + 1);
  const double scale = 1 / (5 + 1e-7);
  CHECK(w.to_vector<double>() == std::vector<double>{3 * scale, 4 * scale, 0.1, -0.2, 9, 9});
  CHECK(y.to_vector<double>() == std::vector<double>{3 * scale, 4 * scale, 0.1, -0.2, 3 * scale, 4 * scale});
  y.sum().backward();
  CHECK(w.grad().to_vector<double>() == std::vector<double>{2, 2, 1, 1, 0, 0});
  const auto kept = w.to_vector<double>();
  F::embedding(tensor({0, 1}, DType::int64), w, {.max_norm = 1.0});
  CHECK(w.to_vector<double>() == kept);  // no further scaling
  CHECK(version() == before + 2);
  F::embedding(tensor({2}, DType::int64), w);
  CHECK(version() == before + 2);
}

TEST_CASE("the length of an embedding's rows is any p-norm") {
  const auto row = [](double max_norm, double p) {
    const Tensor w = tensor({{3.0, -4.0, 0.0}}, DType::float64);
    return F::embedding(tensor({0}, DType::int64), w, {.max_norm = max_norm, .norm_type = p}).to_vector<double>();
  };
  const auto scaled = [](double s) { return std::vector<double>{3 * s, -4 * s, 0 * s}; };
  CHECK(row(5, 2) == scaled(1));
  CHECK(row(3.5, 1) == scaled(3.5 / (7 + 1e-7)));
  CHECK(row(1, 0) == scaled(1 / (2 + 1e-7)));
  CHECK(row(1, INFINITY) == scaled(1 / (4 + 1e-7)));
  CHECK(row(0.5, -INFINITY) == scaled(1));
  CHECK(row(0.5, -1) == scaled(1));
  CHECK(row(0, 2) == scaled(0));
  CHECK(row(1, NAN) == scaled(1));
  const double cubes = row(1, 3)[0];
  CHECK(cubes == Approx(3 / std::cbrt(27 + 64)).epsilon(1e-7));
}

TEST_CASE("a bounded embedding leaves its table alone when the call is refused, and spoils gradients taken before") {
  const Tensor w = tensor({{3.0, 4.0}, {6.0, 8.0}}, DType::float64).requires_grad_();
  CHECK_THROWS_WITH(F::embedding(tensor({0, 2}, DType::int64), w, {.max_norm = 1.0}),
                    "embedding: index out of range: expected 0 to 1, got 2 at [1]");
  CHECK(w.to_vector<double>() == std::vector<double>{3, 4, 6, 8});
  const Tensor squares = w * w;
  F::embedding(tensor({0}, DType::int64), w, {.max_norm = 1.0});
  CHECK_THROWS_WITH(squares.sum().backward(), Catch::Contains("saved was changed in place"));
}

TEST_CASE("gradients of several readings of one table add up, an empty one adding nothing") {
  const Tensor w = table().requires_grad_();
  const Tensor first = F::embedding(tensor({1}, DType::int64), w),
               second = F::embedding(tensor({1, 2}, DType::int64), w), none = F::embedding(zeros({0}, DType::int64), w);
  add(add(first.sum(), mul(second.sum(), 3)), none.sum()).backward();
  CHECK(w.grad().to_vector<double>() == std::vector<double>{0, 0, 4, 4, 3, 3});
  const Tensor unread = table().requires_grad_();
  F::embedding(zeros({0, 3}, DType::int64), unread).backward(zeros({0, 3, 2}, DType::float64));
  CHECK(unread.grad().to_vector<double>() == std::vector<double>(6, 0));
}

TEST_CASE("an embedding's gradient is right where rows repeat") {
  const Tensor index = tensor({{1, 1, 0}, {2, 1, 2}}, DType::int64);
  const auto report = autograd::gradcheck([&](const std::vector<Tensor>& x) { return F::embedding(index, x[0]); },
                                          {randn({3, 5}, DType::float64).requires_grad_()});
  INFO(report.to_string());
  CHECK(report.ok);
}

TEST_CASE("indices outside the table are refused with value and place, wherever they stand") {
  const Tensor w = table();
  CHECK_THROWS_WITH(F::embedding(tensor({{0, 1}, {2, 3}}, DType::int64), w),
                    "embedding: index out of range: expected 0 to 2, got 3 at [1, 1]");
  CHECK_THROWS_WITH(F::embedding(tensor({0, -1}, DType::int64), w),
                    "embedding: index out of range: expected 0 to 2, got -1 at [1]");
  CHECK_THROWS_WITH(F::embedding(scalar(1000, DType::int64), w),
                    "embedding: index out of range: expected 0 to 2, got 1000 at []");
  CHECK_THROWS_WITH(F::embedding(from_data(std::vector<std::int64_t>(30, INT64_MAX), {2, 3, 5}), w),
                    "embedding: index out of range: expected 0 to 2, got 9223372036854775807 at [0, 0, 0]");
  CHECK_THROWS_WITH(F::embedding(from_data(std::vector<std::int64_t>(2, INT64_MIN), {2}), w),
                    "embedding: index out of range: expected 0 to 2, got -9223372036854775808 at [0]");
  CHECK_THROWS_WITH(F::embedding(tensor({0}, DType::int64), zeros({0, 3})),
                    "embedding: index out of range: expected 0 to -1, got 0 at [0]");
  nn::Embedding layer({.num_embeddings = 5, .embedding_dim = 2});
  CHECK_THROWS_WITH(layer(tensor({{0, 1, 5}}, DType::int64)),
                    "embedding: index out of range: expected 0 to 4, got 5 at [0, 2]");
}

TEST_CASE("an embedding refuses wrong types, tables and options") {
  CHECK_THROWS_WITH(F::embedding(tensor({0.0, 1.0}), table()),
                    "embedding: indices must be whole numbers: expected int64, got float32");
  CHECK_THROWS_WITH(F::embedding(tensor({0, 1}, DType::int64), zeros({3, 2}, DType::int64)),
                    "embedding: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::embedding(tensor({0, 1}, DType::int64), ones({3})),
                    "embedding: weight is no table: expected [num_embeddings, embedding_dim], got [3]");
  for (const std::int64_t padding : {3, -4, 1000})
    CHECK_THROWS_WITH(
        F::embedding(tensor({0}, DType::int64), table(), {.padding_idx = padding}),
        "embedding: padding_idx is no row of the table: expected -3 to 2, got " + std::to_string(padding));
  CHECK_THROWS_WITH(F::embedding(zeros({1, 1, 1, 1, 1, 1, 1, 1}, DType::int64), table()),
                    "shape: too many dimensions: expected at most 8, got 9");
  CHECK_THROWS_WITH(nn::Embedding({.num_embeddings = 5, .embedding_dim = 2, .padding_idx = 5}),
                    "embedding: padding_idx is no row of the table: expected -5 to 4, got 5");
  CHECK_THROWS_WITH(F::embedding(tensor({0}, DType::int64), table(), {.max_norm = -0.5}),
                    "embedding: max_norm is out of range: expected >= 0, got -0.5");
  CHECK_THROWS_WITH(F::embedding(tensor({0}, DType::int64), table(), {.max_norm = NAN}),
                    "embedding: max_norm is out of range: expected >= 0, got nan");
  CHECK_THROWS_WITH(nn::Embedding({.num_embeddings = 5, .embedding_dim = 2, .max_norm = -0.5}),
                    "Embedding: max_norm is out of range: expected >= 0, got -0.5");
  CHECK_THROWS_WITH(nn::Embedding({.num_embeddings = 0, .embedding_dim = 2}),
                    "Embedding: num_embeddings is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::Embedding({.num_embeddings = 5, .embedding_dim = -2}),
                    "Embedding: embedding_dim is out of range: expected >= 1, got -2");
}

TEST_CASE("an embedding in JSON refuses what the layer refuses, and inputs that are no indices") {
  CHECK(embedding_error(R"(, "num_embeddings": 5, "embedding_dim": 2)") == "no error");
  CHECK(embedding_error("") == "error: /layers/0 (layer Embedding 0): missing key: expected num_embeddings, got none");
  CHECK(
      embedding_error(R"(, "num_embeddings": 5, "embedding_dim": 2, "padding_idx": 5)") ==
      "error: /layers/0/padding_idx (layer Embedding 0): embedding: padding_idx is no row of the table: expected -5 to "
      "4, got 5; shapes: input [3] int64 -> Embedding");
  CHECK(embedding_error(R"(, "num_embeddings": 0, "embedding_dim": 2)") ==
        "error: /layers/0/num_embeddings (layer Embedding 0): expected >= 1, got 0");
  CHECK(embedding_error(R"(, "num_embeddings": 9223372036854775807, "embedding_dim": 2)") ==
        "error: /layers/0 (layer Embedding 0): shape: number of elements overflows 64 bits: expected a "
        "product below 2^63, got 2 in dimension 1; shapes: input [3] int64 -> Embedding");
  CHECK(embedding_error(R"(, "num_embeddings": 5, "embedding_dim": 2, "sparse": false)") ==
        "error: /layers/0/sparse (layer Embedding 0): unknown key: expected type, name, inputs, num_embeddings, "
        "embedding_dim, padding_idx, max_norm, norm_type or scale_grad_by_freq");
  CHECK(embedding_error(R"(, "num_embeddings": 5, "embedding_dim": 2, "max_norm": 1.5, "norm_type": 1)") == "no error");
  CHECK(embedding_error(R"(, "num_embeddings": 5, "embedding_dim": 2, "max_norm": -1)") ==
        "error: /layers/0/max_norm (layer Embedding 0): expected >= 0, got -1");
  CHECK(embedding_error(R"(, "num_embeddings": 5, "embedding_dim": 2, "norm_type": "inf")") ==
        "error: /layers/0/norm_type (layer Embedding 0): expected a number, got a string \"inf\"");
  CHECK(
      embedding_error(R"(, "num_embeddings": 5, "embedding_dim": 2)", R"({"shape": [3]})") ==
      "error: /layers/0 (layer Embedding 0): Embedding takes another element type: expected int64, got a floating one "
      "from \"input\"; declare the input with \"dtype\": \"int64\"");
}

TEST_CASE("an embedding starts normal, its padding row at 0") {
  manual_seed(3);
  nn::Embedding layer({.num_embeddings = 499, .embedding_dim = 101, .padding_idx = -2});
  manual_seed(3);
  const Tensor drawn = randn({499, 101});
  const auto values = layer.weight.to_vector<float>(), expected = drawn.to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != (i / 101 == 497 ? 0.0f : expected[i])) FAIL_CHECK("element " << i);
  CHECK(layer.weight.requires_grad());
  CHECK(layer.weight.is_leaf());
  CHECK(std::abs(layer.weight.mean().item()) < 0.02);
  CHECK(layer.to_string() ==
        "Embedding(num_embeddings=499, embedding_dim=101, padding_idx=-2, max_norm=null, norm_type=2.0, "
        "scale_grad_by_freq=false)");
}

TEST_CASE("a model of words is an embedding, a mean and a linear layer") {
  manual_seed(3);
  const auto model = model_from_json(R"({"input": {"shape": [5], "dtype": "int64"}, "layers": [
    {"type": "Embedding", "num_embeddings": 11, "embedding_dim": 3},
    {"type": "Transpose", "dim0": 1, "dim1": 2},
    {"type": "AdaptiveAvgPool1d", "output_size": 1},
    {"type": "Flatten"},
    {"type": "Linear", "out_features": 2}]})");
  const Tensor words = tensor({{1, 2, 3, 4, 10}, {0, 0, 0, 7, 7}}, DType::int64);
  const Tensor y = (*model)(words);
  CHECK(y.shape() == Shape{2, 2});
  y.sum().backward();
  CHECK(model->parameters()[0].grad().shape() == Shape{11, 3});
}
