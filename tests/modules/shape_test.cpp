#include "taper/nn/shape.hpp"

#include "support/catch.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;

namespace {

template <class Options>
Shape infer(Options options, const Shape& input) {
  return nn::find_layer_type(Options::kType)->infer(&options, {&input, 1});
}

}  // namespace

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

TEST_CASE("Identity gives back the same tensor") {
  const Tensor x = tensor({1, 2});
  CHECK(nn::Identity()(x).impl() == x.impl());
  CHECK(infer(nn::IdentityOptions{}, {1, 3}) == Shape{1, 3});
}
