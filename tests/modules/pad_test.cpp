#include "taper/nn/pad.hpp"

#include "support/adjoint.hpp"
#include "support/catch.hpp"
#include "support/json_error.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using test::json_error;
using test::message_of;

namespace {

using Numbers = std::vector<double>;

template <class Layer>
Numbers padded(typename Layer::Options options, const Tensor& x) {
  return Layer(options)(x).template to_vector<double>();
}

}  // namespace

TEST_CASE("each padding layer fills as its PyTorch namesake does") {
  const Tensor x = tensor({{1, 2, 3, 4}}, DType::float64);
  CHECK(padded<nn::ConstantPad1d>({.padding = {1, 2}, .value = -7.5}, x) == Numbers{-7.5, 1, 2, 3, 4, -7.5, -7.5});
  CHECK(padded<nn::ZeroPad1d>({.padding = {1, 2}}, x) == Numbers{0, 1, 2, 3, 4, 0, 0});
  CHECK(padded<nn::ReflectionPad1d>({.padding = {3, 2}}, x) == Numbers{4, 3, 2, 1, 2, 3, 4, 3, 2});
  CHECK(padded<nn::ReplicationPad1d>({.padding = {5, 1}}, x) == Numbers{1, 1, 1, 1, 1, 1, 2, 3, 4, 4});
  CHECK(padded<nn::CircularPad1d>({.padding = {4, 1}}, x) == Numbers{1, 2, 3, 4, 1, 2, 3, 4, 1});
  CHECK(padded<nn::ZeroPad1d>({.padding = -1}, x) == Numbers{2, 3});
}

TEST_CASE("the first two amounts are for the last dimension, the next for the one before") {
  const Tensor x = tensor({{{1, 2}, {3, 4}, {5, 6}}}, DType::float64);
  CHECK(padded<nn::ZeroPad2d>({.padding = {1, 0, 0, 2}}, x) == Numbers{0, 1, 2, 0, 3, 4, 0, 5, 6, 0, 0, 0, 0, 0, 0});
  CHECK(padded<nn::CircularPad2d>({.padding = {0, 0, 2, 0}}, x) == Numbers{3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  const nn::ReplicationPad3d layer({.padding = {1, 2, 3, 5, 7, 11}});
  CHECK(nn::ReplicationPad3d({.padding = {1, 2, 3, 5, 7, 11}})(ones({2, 1, 1, 2})).shape() == Shape{2, 19, 9, 5});
}

TEST_CASE("one amount is for all sides") {
  CHECK(nn::ConstantPad3d({.padding = 2, .value = 1})(zeros({3, 5, 7, 2})).shape() == Shape{3, 9, 11, 6});
  CHECK(nn::ReflectionPad2d({.padding = 1})(zeros({2, 3, 5, 7})).shape() == Shape{2, 3, 7, 9});
  CHECK_THROWS_WITH(nn::ZeroPad2d({.padding = {1, 2, 3}}),
                    "sizes: one number for all places or one for each: expected 1 or 4, got 3");
}

TEST_CASE("padding with a constant takes any number of dimensions, the other kinds those of images") {
  CHECK(nn::ZeroPad1d({.padding = 1})(zeros({5})).shape() == Shape{7});
  CHECK(nn::ZeroPad1d({.padding = 1})(zeros({2, 3, 5, 7})).shape() == Shape{2, 3, 5, 9});
  CHECK(message_of([] { nn::ZeroPad2d({.padding = 1})(zeros({5})); }) ==
        "pad: more pairs than dimensions: expected at most 1, got 2");
  CHECK(message_of([] {
          nn::ReflectionPad1d({.padding = 1})(zeros({2, 3, 5, 7}));
        }) ==
        "ReflectionPad1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D "
        "[2, 3, 5, 7]");
  CHECK(message_of([] {
          nn::ReplicationPad3d({.padding = 1})(zeros({2, 3, 5}));
        }) ==
        "ReplicationPad3d: wrong number of dimensions: expected 4-D unbatched or 5-D batched input, got 3-D [2, 3, 5]");
  CHECK(message_of([] {
          nn::CircularPad2d({.padding = 1})(zeros({2, 0, 5, 7}));
        }) == "CircularPad2d: no channels: expected >= 1, got 0 in [2, 0, 5, 7]");
}

TEST_CASE("padding layers name the side that does not fit") {
  const Tensor x = zeros({2, 3, 5, 7});
  const auto error = [&](auto layer) { return message_of([&] { layer->forward(x); }); };
  CHECK(error(nn::make<nn::ReflectionPad2d>({.padding = {6, 0, 0, 5}})) ==
        "pad: reflect needs amounts below the extent: expected < 5, got 5 in dimension 2");
  CHECK(error(nn::make<nn::CircularPad2d>({.padding = {8, 0, 0, 5}})) ==
        "pad: circular needs amounts up to the extent: expected <= 7, got 8 in dimension 3");
  CHECK(error(nn::make<nn::CircularPad2d>({.padding = {5, -3, 0, 0}})) ==
        "pad: circular needs amounts up to the extent left: expected <= 4, got 5 in dimension 3");
  CHECK(error(nn::make<nn::ZeroPad2d>({.padding = {0, 0, -3, -4}})) ==
        "pad: crops more than there is: expected at most 5, got -3 and -4 in dimension 2");
  CHECK(error(nn::make<nn::ReplicationPad2d>({.padding = {0, 0, -3, -2}})) ==
        "pad: crops more than there is: expected at most 4, got -3 and -2 in dimension 2");
  CHECK(error(nn::make<nn::ZeroPad2d>({.padding = {1, INT64_MAX, 0, 0}})) ==
        "pad: the extent overflows 64 bits: expected below 2^63, got 1 and 9223372036854775807 around 7");
  CHECK(error(nn::make<nn::ZeroPad2d>({.padding = std::int64_t{1} << 60})).find("shape: ") == 0);
  CHECK(message_of([] {
          nn::ReplicationPad1d({.padding = 1})(zeros({2, 3, 0}));
        }) == "pad: replicate needs an edge to repeat: expected an extent >= 1, got 0 in dimension 2");
}

TEST_CASE("padding and its gradient are adjoint") {
  const auto error = [](auto layer) {
    return test::adjoint_error([&](const Tensor& x) { return layer->forward(x); }, {2, 3, 5, 7});
  };
  CHECK(error(nn::make<nn::ZeroPad2d>({.padding = {2, -3, 5, 1}})) < 1e-12);
  CHECK(error(nn::make<nn::ReflectionPad2d>({.padding = {6, 5, 4, 3}})) < 1e-12);
  CHECK(error(nn::make<nn::ReplicationPad2d>({.padding = {11, 2, -3, 5}})) < 1e-12);
  CHECK(error(nn::make<nn::CircularPad2d>({.padding = {-2, 5, 5, 3}})) < 1e-12);
}

TEST_CASE("a batch of none is padded to a batch of none, with a gradient of its shape") {
  const Tensor x = zeros({0, 3, 5}).requires_grad_();
  const Tensor y = nn::ReflectionPad1d({.padding = {4, 1}})(x);
  CHECK(y.shape() == Shape{0, 3, 10});
  y.sum().backward();
  CHECK(x.grad().shape() == Shape{0, 3, 5});
}

TEST_CASE("padding layers in JSON say what does not fit before a model is built") {
  CHECK(json_error("ReflectionPad1d", R"("padding": [1, 5])", "[3, 5]") ==
        "error: /layers/0 (layer ReflectionPad1d 0): pad: reflect needs amounts below the extent: expected < 5, got 5 "
        "in dimension 2; shapes: input [3, 5] -> ReflectionPad1d");
  CHECK(json_error("CircularPad2d", R"("padding": [1, 2, 3, 8])", "[3, 7, 5]") ==
        "error: /layers/0 (layer CircularPad2d 0): pad: circular needs amounts up to the extent: expected <= 7, got 8 "
        "in dimension 2; shapes: input [3, 7, 5] -> CircularPad2d");
  CHECK(json_error("ZeroPad2d", R"("padding": [1, 2, 3])", "[3, 7, 5]") ==
        "error: /layers/0/padding (layer ZeroPad2d 0): expected a list of 4 integers, got 3 in [1, 2, 3]");
  CHECK(json_error("ZeroPad2d", R"("padding": 2)", "[5]") ==
        "error: /layers/0 (layer ZeroPad2d 0): ZeroPad2d: wrong number of dimensions: expected at least 3-D with the "
        "batch, got 2-D [N, 5]; shapes: input [5] -> ZeroPad2d");
  CHECK(json_error("ReplicationPad1d", R"("padding": 2)", "[5, 7, 11]") ==
        "error: /layers/0 (layer ReplicationPad1d 0): ReplicationPad1d: wrong number of dimensions: expected 3-D with "
        "the batch, got 4-D [N, 5, 7, 11]; shapes: input [5, 7, 11] -> ReplicationPad1d");
  CHECK(json_error("ConstantPad1d", R"("padding": 2)", "[5, 7]") ==
        "error: /layers/0 (layer ConstantPad1d 0): missing key: expected value, got none");
  CHECK(json_error("ConstantPad1d", R"("padding": 2.5, "value": 1)", "[5, 7]") ==
        "error: /layers/0/padding (layer ConstantPad1d 0): expected an integer, got 2.5");
  CHECK(json_error("ConstantPad1d", R"("padding": 2, "value": 1)", "[5, 7]") == "no error");
}

TEST_CASE("padding layers print all their options") {
  CHECK(nn::ConstantPad2d({.padding = {1, 2, 3, 5}, .value = 0.5}).to_string() ==
        "ConstantPad2d(padding=[1, 2, 3, 5], value=0.5)");
  CHECK(nn::ReflectionPad3d({.padding = 2}).to_string() == "ReflectionPad3d(padding=2)");
}
