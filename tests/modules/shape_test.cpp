#include "taper/nn/shape.hpp"

#include "support/catch.hpp"
#include "support/infer.hpp"
#include "support/json_error.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using test::infer;
using test::json_error;

TEST_CASE("Flatten joins the dimensions it is told, all but the batch by default") {
  const Tensor x = ones({2, 3, 5, 7});
  CHECK(nn::Flatten()(x).shape() == Shape{2, 105});
  CHECK(nn::Flatten({.start_dim = 1, .end_dim = 2})(x).shape() == Shape{2, 15, 7});
  CHECK(nn::Flatten({.start_dim = -2})(x).shape() == Shape{2, 3, 35});
  CHECK(nn::Flatten()(ones({0, 3, 5})).shape() == Shape{0, 15});
  CHECK(infer(nn::FlattenOptions{}, {1, 3, 5}) == Shape{1, 15});
  CHECK_THROWS_WITH(nn::Flatten()(ones({3})), "flatten: dimension out of range: expected -1 to 0, got 1");
  CHECK_THROWS_WITH(nn::Flatten({.start_dim = 2, .end_dim = 1})(x),
                    "flatten: start_dim comes after end_dim: expected at most 1, got 2");
  CHECK_THROWS_WITH(infer(nn::FlattenOptions{}, {1}), "flatten: dimension out of range: expected -1 to 0, got 1");
  CHECK_THROWS_WITH(infer(nn::FlattenOptions{.start_dim = 2, .end_dim = 1}, {1, 3, 5}),
                    "flatten: start_dim comes after end_dim: expected at most 1, got 2");
  CHECK(nn::Flatten().to_string() == "Flatten(start_dim=1, end_dim=-1)");
}

TEST_CASE("Squeeze removes a dimension of extent 1 and leaves others alone") {
  CHECK(nn::Squeeze()(ones({2, 3, 1})).shape() == Shape{2, 3});
  CHECK(nn::Squeeze({.dim = 1})(ones({2, 1, 3})).shape() == Shape{2, 3});
  CHECK(nn::Squeeze()(ones({2, 3, 5})).shape() == Shape{2, 3, 5});
  CHECK(infer(nn::SqueezeOptions{.dim = 2}, {1, 3, 1}) == Shape{1, 3});
  CHECK_THROWS_WITH(nn::Squeeze({.dim = 2})(ones({2, 1})), "squeeze: dimension out of range: expected -2 to 1, got 2");
  CHECK_THROWS_WITH(infer(nn::SqueezeOptions{.dim = 3}, {1, 3, 1}),
                    "squeeze: dimension out of range: expected -3 to 2, got 3");
  CHECK_THROWS_WITH(infer(nn::SqueezeOptions{.dim = -3}, {1, 3, 1}),
                    "squeeze: dim is the batch: expected a dimension after it, got -3 for [N, 3, 1]");
}

TEST_CASE("Unsqueeze inserts a dimension of extent 1") {
  CHECK(nn::Unsqueeze()(ones({2, 3})).shape() == Shape{2, 3, 1});
  CHECK(nn::Unsqueeze({.dim = 0})(ones({2, 3})).shape() == Shape{1, 2, 3});
  CHECK(infer(nn::UnsqueezeOptions{.dim = 1}, {1, 3}) == Shape{1, 1, 3});
  CHECK(infer(nn::UnsqueezeOptions{.dim = -1}, {1, 3}) == Shape{1, 3, 1});
  CHECK_THROWS_WITH(nn::Unsqueeze({.dim = 3})(ones({2, 3})),
                    "unsqueeze: dimension out of range: expected -3 to 2, got 3");
  CHECK_THROWS_WITH(infer(nn::UnsqueezeOptions{.dim = 4}, {1, 3, 5}),
                    "unsqueeze: dimension out of range: expected -4 to 3, got 4");
  CHECK_THROWS_WITH(infer(nn::UnsqueezeOptions{.dim = -3}, {1, 3}),
                    "unsqueeze: dim is the batch: expected a dimension after it, got -3 for [N, 3]");
  CHECK(
      json_error("Unsqueeze", R"("dim": 0)", "[3]") ==
      "error: /layers/0/dim (layer Unsqueeze 0): unsqueeze: dim is the batch: expected a dimension after it, got 0 for "
      "[N, 3]; shapes: input [3] -> Unsqueeze");
}

TEST_CASE("Select takes one entry along a dimension") {
  const Tensor x = arange(0, 30, 1, DType::float64).reshape({2, 3, 5});
  CHECK(nn::Select({.dim = 1, .index = 2})(x).to_vector<double>() ==
        std::vector<double>{10, 11, 12, 13, 14, 25, 26, 27, 28, 29});
  CHECK(nn::Select({.dim = -1, .index = -5})(x).to_vector<double>() == std::vector<double>{0, 5, 10, 15, 20, 25});
  CHECK(nn::Select({.dim = 1, .index = 0})(tensor({{3, 5}}, DType::int64)).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{3});
  CHECK(infer(nn::SelectOptions{.dim = 2, .index = 4}, {1, 3, 5}) == Shape{1, 3});
  for (const std::int64_t index : {5, -6}) {
    const std::string sentence = "select: index out of range: expected -5 to 4, got " + std::to_string(index);
    CHECK_THROWS_WITH(nn::Select({.dim = 2, .index = index})(x), sentence);
    CHECK_THROWS_WITH(infer(nn::SelectOptions{.dim = 2, .index = index}, {1, 3, 5}), sentence);
  }
  CHECK_THROWS_WITH(nn::Select({.dim = 3, .index = 0})(x), "select: dimension out of range: expected -3 to 2, got 3");
  CHECK_THROWS_WITH(infer(nn::SelectOptions{.dim = 0, .index = 0}, {1, 3}),
                    "select: dim is the batch: expected a dimension after it, got 0 for [N, 3]");
  CHECK(
      json_error("Select", R"("dim": 1, "index": 7)", "[3]") ==
      "error: /layers/0/index (layer Select 0): select: index out of range: expected -3 to 2, got 7; shapes: input [3] "
      "-> Select");
  CHECK(json_error("Select", R"("dim": 1)", "[3]") ==
        "error: /layers/0 (layer Select 0): missing key: expected index, got none");
}

TEST_CASE("Transpose and Permute reorder dimensions behind the batch") {
  const Tensor x = arange(0, 30, 1, DType::float64).reshape({1, 2, 15}).reshape({2, 3, 5});
  const Tensor swapped = nn::Transpose({.dim0 = 1, .dim1 = -1})(x);
  CHECK(swapped.shape() == Shape{2, 5, 3});
  CHECK(nn::Permute({.dims = {0, 2, 1}})(x).to_vector<double>() == swapped.to_vector<double>());
  CHECK(swapped.select(0, 1).to_vector<double>() ==
        std::vector<double>{15, 20, 25, 16, 21, 26, 17, 22, 27, 18, 23, 28, 19, 24, 29});
  CHECK(infer(nn::TransposeOptions{.dim0 = 1, .dim1 = 3}, {1, 3, 5, 7}) == Shape{1, 7, 5, 3});
  CHECK(infer(nn::PermuteOptions{.dims = {0, 3, 1, -2}}, {1, 3, 5, 7}) == Shape{1, 7, 3, 5});
  const std::int64_t large = std::int64_t(1) << 61;  // only with the extents swapped at once their product fits
  CHECK(infer(nn::TransposeOptions{.dim0 = 1, .dim1 = 2}, {1, 3, large}) == Shape{1, large, 3});
  CHECK(infer(nn::PermuteOptions{.dims = {0, 2, 1}}, {1, 3, large}) == Shape{1, large, 3});
  CHECK_THROWS_WITH(nn::Transpose({.dim0 = 1, .dim1 = 3})(x),
                    "transpose: dimension out of range: expected -3 to 2, got 3");
  CHECK_THROWS_WITH(infer(nn::TransposeOptions{.dim0 = 1, .dim1 = -3}, {1, 3, 5}),
                    "transpose: dim1 is the batch: expected a dimension after it, got -3 for [N, 3, 5]");
  CHECK_THROWS_WITH(nn::Permute({.dims = {0, 1}})(x), "permute: one entry for each dimension: expected 3, got 2");
  CHECK_THROWS_WITH(nn::Permute({.dims = {0, 1, 1}})(x),
                    "permute: a dimension is named twice: expected different dimensions, got 1 again");
  CHECK_THROWS_WITH(infer(nn::PermuteOptions{.dims = {0, 1}}, {1, 3, 5}),
                    "permute: one entry in dims for each dimension: expected 3, got 2 for [N, 3, 5]");
  CHECK_THROWS_WITH(infer(nn::PermuteOptions{.dims = {0, 2, 2}}, {1, 3, 5}),
                    "permute: a dimension is named twice: expected different dims, got [0, 2, 2]");
  CHECK_THROWS_WITH(infer(nn::PermuteOptions{.dims = {1, 0, 2}}, {1, 3, 5}),
                    "permute: dims move the batch: expected 0 first, got [1, 0, 2]");
  CHECK_THROWS_WITH(infer(nn::PermuteOptions{.dims = {0, 1, 3}}, {1, 3, 5}),
                    "permute: dimension out of range: expected -3 to 2, got 3");
  CHECK(json_error("Permute", R"("dims": [0, 2])", "[3, 5]") ==
        "error: /layers/0/dims (layer Permute 0): permute: one entry in dims for each dimension: expected 3, got 2 for "
        "[N, "
        "3, 5]; shapes: input [3, 5] -> Permute");
}

TEST_CASE("Unflatten makes several dimensions of one") {
  CHECK(nn::Unflatten({.dim = 1, .unflattened_size = {2, 3}})(ones({5, 6})).shape() == Shape{5, 2, 3});
  CHECK(nn::Unflatten({.dim = -1, .unflattened_size = {2, -1, 3}})(ones({5, 30})).shape() == Shape{5, 2, 5, 3});
  CHECK(nn::Unflatten({.dim = 1, .unflattened_size = {0, 7}})(ones({5, 0})).shape() == Shape{5, 0, 7});
  CHECK(infer(nn::UnflattenOptions{.dim = 2, .unflattened_size = {7, -1}}, {1, 3, 14}) == Shape{1, 3, 7, 2});
  const auto refused = [](nn::Extents sizes, const std::string& sentence) {
    CHECK_THROWS_WITH(nn::functional::unflatten(ones({5, 6}), 1, sizes), sentence + " for [5, 6]");
    CHECK_THROWS_WITH(infer(nn::UnflattenOptions{.dim = 1, .unflattened_size = sizes}, {1, 6}),
                      sentence + " for [1, 6]");
  };
  const std::string product = "unflatten: unflattened_size does not multiply up to dimension 1: expected 6, got ";
  refused({2, 5}, product + "[2, 5]");
  refused({4, -1}, product + "[4, -1]");
  refused({0, -1}, product + "[0, -1]");
  refused(7, product + "7");
  refused({INT64_MAX, INT64_MAX}, product + "[9223372036854775807, 9223372036854775807]");
  CHECK_THROWS_WITH(nn::functional::unflatten(ones({5, 6}), 2, {2, 3}),
                    "unflatten: dimension out of range: expected -2 to 1, got 2");
  CHECK_THROWS_WITH(nn::functional::unflatten(ones({5, 6}), 1, {}),
                    "unflatten: unflattened_size is empty: expected at least 1 size, got none");
  CHECK_THROWS_WITH(nn::Unflatten({.dim = 1, .unflattened_size = {-1, -1}}),
                    "unflatten: unflattened_size is open twice: expected -1 at most once, got [-1, -1]");
  CHECK_THROWS_WITH(nn::Unflatten({.dim = 1, .unflattened_size = {-2, 3}}),
                    "unflatten: unflattened_size is negative: expected >= 0, or -1 once, got -2");
  CHECK_THROWS_WITH(infer(nn::UnflattenOptions{.dim = 0, .unflattened_size = 1}, {1, 6}),
                    "unflatten: dim is the batch: expected a dimension after it, got 0 for [N, 6]");
  CHECK(json_error("Unflatten", R"("dim": 1, "unflattened_size": [2, 5])", "[6]") ==
        "error: /layers/0/unflattened_size (layer Unflatten 0): unflatten: unflattened_size does not multiply up to "
        "dimension 1: expected 6, got [2, 5] for [1, 6]; shapes: input [6] -> Unflatten");
}

TEST_CASE("Identity gives back the same tensor") {
  const Tensor x = tensor({1, 2});
  CHECK(nn::Identity()(x).impl() == x.impl());
  CHECK(infer(nn::IdentityOptions{}, {1, 3}) == Shape{1, 3});
}
