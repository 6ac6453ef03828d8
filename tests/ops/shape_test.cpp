#include <cstdint>
#include <numeric>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::Values;
using test::values;

namespace {

using Extents = std::span<const std::int64_t>;

Tensor counted_whole(const Shape& shape) { return arange(shape.numel()).reshape(shape); }

}  // namespace

TEST_CASE("reshape and its kin share the data and take one -1") {
  const Tensor x = counted_whole({2, 3, 5});
  for (const Tensor& y : {x.reshape({5, -1}), x.view({30}), x.flatten(), x.flatten(1), x.unsqueeze(-1), x.squeeze()})
    CHECK(y.data<std::int64_t>() == x.data<std::int64_t>());
  CHECK(x.reshape({5, -1}).shape() == Shape{5, 6});
  CHECK(x.reshape(Shape{6, 5}).shape() == Shape{6, 5});
  CHECK(x.flatten(1).shape() == Shape{2, 15});
  CHECK(x.flatten(0, 1).shape() == Shape{6, 5});
  CHECK(x.unsqueeze(-1).shape() == Shape{2, 3, 5, 1});
  CHECK(x.unsqueeze(0).shape() == Shape{1, 2, 3, 5});
  CHECK(zeros({1, 3, 1}).squeeze().shape() == Shape{3});
  CHECK(zeros({1, 3, 1}).squeeze(-1).shape() == Shape{1, 3});
  CHECK(zeros({1, 3, 1}).squeeze(1).shape() == Shape{1, 3, 1});
  CHECK(zeros({0, 3}).reshape({-1, 3}).shape() == Shape{0, 3});
}

TEST_CASE("scalars take part in changes of shape") {
  const Tensor x = tensor(7.0);
  CHECK(x.flatten().shape() == Shape{1});
  CHECK(x.unsqueeze(0).shape() == Shape{1});
  CHECK(x.squeeze(0).shape() == Shape{});
  CHECK(x.reshape({1, 1}).shape() == Shape{1, 1});
  CHECK(x.reshape({1}).reshape(Shape{}).shape() == Shape{});
  CHECK(transpose(x, 0, -1).shape() == Shape{});
  CHECK(expand(x, {2, 3}).shape() == Shape{2, 3});
}

TEST_CASE("reshape refuses extents that do not fit") {
  const Tensor x = counted_whole({2, 3});
  CHECK(test::message_of([&] {
          x.reshape({4, 2});
        }) == "reshape: number of elements differs: expected 6 for [2, 3], got 8 for [4, 2]");
  CHECK(test::message_of([&] { x.view({7}); }) ==
        "view: number of elements differs: expected 6 for [2, 3], got 7 for [7]");
  CHECK(test::message_of([&] {
          x.reshape({-1, -1});
        }) == "reshape: more than one extent is -1: expected at most 1, got [-1, -1]");
  CHECK(test::message_of([&] {
          x.reshape({4, -1});
        }) ==
        "reshape: the extents beside -1 do not divide the number of elements: expected a divisor of 6, got 4 for "
        "[4, -1]");
  CHECK(test::message_of([&] {
          zeros({0, 3}).reshape({0, -1});
        }) == "reshape: -1 stands beside an extent of 0: expected extents that determine it, got [0, -1]");
  CHECK(test::message_of([&] {
          x.reshape({-2, 3});
        }) == "shape: extents must not be negative: expected >= 0, got -2 in dimension 0");
  const std::vector<std::int64_t> many(255, 0);
  CHECK(test::message_of([&] { reshape(x, Extents(many)); }) ==
        "shape: too many dimensions: expected at most 8, got 255");
  CHECK(test::message_of([&] { expand(x, Extents(many)); }) ==
        "shape: too many dimensions: expected at most 8, got 255");
  CHECK(test::message_of([&] { x.flatten(1, 0); }) ==
        "flatten: start_dim comes after end_dim: expected at most 0, got 1");
  CHECK(test::message_of([&] { x.squeeze(2); }) == "squeeze: dimension out of range: expected -2 to 1, got 2");
  CHECK(test::message_of([&] { x.unsqueeze(4); }) == "unsqueeze: dimension out of range: expected -3 to 2, got 4");
}

TEST_CASE("expand repeats extents of 1 and refuses others") {
  const Tensor x = counted_whole({3, 1});
  CHECK(values(x.expand({2, -1, 2})) == Values{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
  CHECK(test::message_of([&] {
          x.expand({2, 5});
        }) == "expand: the shape does not fit: expected extents that repeat [3, 1], got [2, 5]");
  CHECK(test::message_of([&] { x.expand({3}); }) ==
        "expand: the shape does not fit: expected extents that repeat [3, 1], got [3]");
  CHECK(test::message_of([&] {
          x.expand({-1, 3, 1});
        }) == "expand: the shape does not fit: expected extents that repeat [3, 1], got [-1, 3, 1]");
}

TEST_CASE("transpose and permute copy in the new order") {
  const Tensor x = counted_whole({2, 3});
  CHECK(values(x.transpose(0, 1)) == Values{0, 3, 1, 4, 2, 5});
  CHECK(counted_whole({2, 3, 5}).permute({2, 0, 1}).shape() == Shape{5, 2, 3});
  CHECK(test::message_of([&] { x.permute({0}); }) == "permute: one entry for each dimension: expected 2, got 1");
  CHECK(test::message_of([&] {
          x.permute({0, -2});
        }) == "permute: a dimension is named twice: expected different dimensions, got -2 again");
  CHECK(test::message_of([&] { x.permute({0, 2}); }) == "permute: dimension out of range: expected -2 to 1, got 2");
  CHECK(test::message_of([&] { x.transpose(0, 3); }) == "transpose: dimension out of range: expected -2 to 1, got 3");
}

TEST_CASE("narrow and select take ranges and refuse what lies outside") {
  const Tensor x = counted_whole({2, 5});
  CHECK(values(x.narrow(1, -2, 2)) == Values{3, 4, 8, 9});
  CHECK(x.narrow(1, 5, 0).shape() == Shape{2, 0});
  CHECK(values(x.select(0, -1)) == Values{5, 6, 7, 8, 9});
  CHECK(test::message_of([&] { x.narrow(1, 6, 0); }) == "narrow: start out of range: expected -5 to 5, got 6");
  CHECK(test::message_of([&] { x.narrow(1, 3, 3); }) == "narrow: length out of range: expected 0 to 2, got 3");
  CHECK(test::message_of([&] { x.narrow(1, 3, INT64_MAX); }) ==
        "narrow: length out of range: expected 0 to 2, got 9223372036854775807");
  CHECK(test::message_of([&] { x.narrow(1, 0, -1); }) == "narrow: length out of range: expected 0 to 5, got -1");
  CHECK(test::message_of([&] { x.select(1, 5); }) == "select: index out of range: expected -5 to 4, got 5");
  CHECK(test::message_of([&] { tensor(1.0).narrow(0, 0, 1); }) ==
        "narrow: a scalar has no dimension: expected at least 1 dimension, got shape []");
}

TEST_CASE("split and chunk cut as PyTorch does") {
  const Tensor x = counted_whole({7, 2});
  const auto sizes = [](const std::vector<Tensor>& pieces) {
    std::vector<std::int64_t> out;
    for (const Tensor& piece : pieces) out.push_back(piece.size(0));
    return out;
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(sizes(split(x, 3)) == Sizes{3, 3, 1});
  CHECK(sizes(split(x, Sizes{2, 0, 5}, 0)) == Sizes{2, 0, 5});
  CHECK(sizes(chunk(x, 3)) == Sizes{3, 3, 1});
  CHECK(sizes(chunk(x, 5)) == Sizes{2, 2, 2, 1});
  CHECK(sizes(chunk(zeros({0, 3}), 3)) == Sizes{0, 0, 0});
  CHECK(sizes(split(zeros({0, 3}), 3)) == Sizes{0});
  CHECK(values(split(x, 3)[2]) == Values{12, 13});
  CHECK(sizes(split(x, INT64_MAX)) == Sizes{7});
  CHECK(test::message_of([&] { split(x, 0); }) == "split: the size must be positive: expected >= 1, got 0");
  CHECK(test::message_of([&] { chunk(x, -1); }) ==
        "chunk: the number of chunks must be positive: expected >= 1, got -1");
  CHECK(test::message_of([&] {
          split(x, Sizes{3, 3}, 0);
        }) == "split: sizes must add up to the extent: expected 7, got 6");
  CHECK(test::message_of([&] {
          split(x, Sizes{5, 3}, 0);
        }) == "split: sizes must add up to the extent: expected 0 to 2, got 3");
}

TEST_CASE("index_select and gather check every index before they read") {
  const Tensor x = counted_whole({3, 5});
  CHECK(values(x.index_select(0, tensor({2, 0, 2}))) == Values{10, 11, 12, 13, 14, 0, 1, 2, 3, 4, 10, 11, 12, 13, 14});
  CHECK(x.index_select(1, zeros({0}, DType::int64)).shape() == Shape{3, 0});
  CHECK(values(x.gather(1, tensor({{4}, {0}}))) == Values{4, 5});
  CHECK(test::message_of([&] {
          x.index_select(0, tensor({0, 1, 3}));
        }) == "index_select: index out of range: expected 0 to 2, got 3 in row 2");
  CHECK(test::message_of([&] { x.index_select(1, tensor({-1})); }) ==
        "index_select: index out of range: expected 0 to 4, got -1 in row 0");
  CHECK(test::message_of([&] { x.index_select(0, tensor({0.0})); }) ==
        "index_select: indices must be whole numbers: expected int64, got float32");
  CHECK(test::message_of([&] { x.index_select(0, tensor({{0}})); }) ==
        "index_select: the index must be a vector: expected 1 dimension, got [1, 1]");
  CHECK(test::message_of([&] {
          x.gather(1, tensor({{4, 0}, {0, 1000}}));
        }) == "gather: index out of range: expected 0 to 4, got 1000 in row 3");
  CHECK(test::message_of([&] { x.gather(1, tensor({0})); }) ==
        "gather: the index does not fit: expected at most [3, 5] outside the gathered dimension 1, got [1]");
  CHECK(test::message_of([&] {
          x.gather(0, zeros({2, 7}, DType::int64));
        }) == "gather: the index does not fit: expected at most [3, 5] outside the gathered dimension 0, got [2, 7]");
}

TEST_CASE("cat and stack join, promote and refuse") {
  const Tensor a = counted_whole({2, 3}), b = full({2, 1}, 0.5);
  const Tensor joined = cat({a, b}, 1);
  CHECK(joined.dtype() == DType::float32);
  CHECK(values(joined) == Values{0, 1, 2, 0.5, 3, 4, 5, 0.5});
  CHECK(stack({a, a, a}, 2).shape() == Shape{2, 3, 3});
  CHECK(stack({tensor(1.0), tensor(2.0)}).shape() == Shape{2});
  CHECK(cat({a, zeros({0, 3})}, 0).shape() == Shape{2, 3});
  CHECK(test::message_of([] { cat({}); }) == "cat: nothing to join: expected at least 1 tensor, got 0");
  CHECK(test::message_of([] { stack({}); }) == "stack: nothing to join: expected at least 1 tensor, got 0");
  CHECK(test::message_of([&] {
          cat({a, a, b}, 0);
        }) == "cat: shapes differ outside the joined dimension: expected [*, 3], got [2, 1] in part 2");
  CHECK(test::message_of([&] {
          cat({a, tensor({1.0})}, 0);
        }) == "cat: shapes differ outside the joined dimension: expected [*, 3], got [1] in part 1");
  CHECK(test::message_of([] { cat({tensor(1.0)}); }) ==
        "cat: a scalar has no dimension: expected at least 1 dimension, got shape []");
  CHECK(test::message_of([&] { stack({a, b}); }) == "stack: shapes differ: expected [2, 3], got [2, 1] in part 1");
}

TEST_CASE("more parts are joined than a node can have inputs") {
  const Tensor x = tensor({1.0}, DType::float64).requires_grad_(), constant = tensor({2.0}, DType::float64);
  std::vector<Tensor> parts(70001, constant);
  parts.front() = parts[65535] = parts.back() = x;
  const Tensor y = cat(parts);
  CHECK(y.shape() == Shape{70001});
  CHECK(sum(y).item() == 2.0 * 69998 + 3);
  sum(mul(y, arange(70001))).backward();
  CHECK(x.grad().item() == 65535.0 + 70000.0);
}

TEST_CASE("pad crops in every mode as PyTorch does") {
  const Tensor x = tensor({1, 2, 3, 4, 5});
  const auto cropped = [&](std::int64_t left, std::int64_t right, PadMode mode) {
    return values(pad(x, {left, right}, mode));
  };
  CHECK(cropped(-1, 2, PadMode::zeros) == Values{2, 3, 4, 5, 0, 0});
  CHECK(cropped(-3, 4, PadMode::reflect) == Values{4, 5, 4, 3, 2, 1});
  CHECK(cropped(2, -6, PadMode::reflect) == Values{3});
  CHECK(cropped(-6, 2, PadMode::reflect) == Values{3});
  CHECK(cropped(6, -6, PadMode::replicate) == Values{1, 1, 1, 1, 1});
  CHECK(cropped(-6, 6, PadMode::replicate) == Values{5, 5, 5, 5, 5});
  CHECK(cropped(2, -1, PadMode::circular) == Values{3, 4, 1, 2, 3, 4});
  CHECK(cropped(-1, 4, PadMode::circular) == Values{2, 3, 4, 5, 2, 3, 4, 5});
  CHECK(cropped(-4, 1, PadMode::circular) == Values{5, 5});
  CHECK(cropped(-3, -2, PadMode::circular).empty());
}

TEST_CASE("pad follows its mode and refuses amounts that do not fit") {
  const Tensor x = tensor({1, 2, 3, 4});
  CHECK(values(pad(x, {1, 2}, PadMode::zeros, 9)) == Values{9, 1, 2, 3, 4, 9, 9});
  CHECK(values(pad(x, {-1, -2})) == Values{2});
  CHECK(values(pad(x, {3, 1}, PadMode::reflect)) == Values{4, 3, 2, 1, 2, 3, 4, 3});
  CHECK(values(pad(x, {2, 1}, PadMode::replicate)) == Values{1, 1, 1, 2, 3, 4, 4});
  CHECK(values(pad(x, {4, 1}, PadMode::circular)) == Values{1, 2, 3, 4, 1, 2, 3, 4, 1});
  CHECK(pad(x, {-2, -2}).shape() == Shape{0});
  CHECK(test::message_of([&] { pad(x, {}); }) ==
        "pad: amounts come in pairs: expected {left, right} for each dimension, got 0 numbers");
  CHECK(test::message_of([&] {
          pad(x, {1, 2, 3});
        }) == "pad: amounts come in pairs: expected {left, right} for each dimension, got 3 numbers");
  CHECK(test::message_of([&] {
          pad(x, {1, 2, 3, 4});
        }) == "pad: more pairs than dimensions: expected at most 1, got 2");
  CHECK(test::message_of([&] {
          pad(x, {4, 0}, PadMode::reflect);
        }) == "pad: reflect needs amounts below the extent: expected < 4, got 4 in dimension 0");
  CHECK(test::message_of([&] {
          pad(x, {0, 5}, PadMode::circular);
        }) == "pad: circular needs amounts up to the extent: expected <= 4, got 5 in dimension 0");
  CHECK(test::message_of([&] {
          pad(zeros({3, 0}), {1, 0}, PadMode::replicate);
        }) == "pad: replicate needs an edge to repeat: expected an extent >= 1, got 0 in dimension 1");
  CHECK(test::message_of([&] {
          pad(x, {-3, -2});
        }) == "pad: crops more than there is: expected at most 4, got -3 and -2 in dimension 0");
  CHECK(test::message_of([&] {
          pad(x, {5, -5});
        }) == "pad: crops more than there is: expected at most 4, got 5 and -5 in dimension 0");
  CHECK(test::message_of([&] {
          pad(x, {-4, 0}, PadMode::reflect);
        }) == "pad: crops more than there is: expected at most 3, got -4 and 0 in dimension 0");
  CHECK(test::message_of([&] {
          pad(x, {-5, 1}, PadMode::replicate);
        }) == "pad: crops more than there is: expected at most 3, got -5 and 1 in dimension 0");
  CHECK(test::message_of([&] {
          pad(x, {-2, 3}, PadMode::circular);
        }) == "pad: circular needs amounts up to the extent left: expected <= 2, got 3 in dimension 0");
  CHECK(test::message_of([&] {
          pad(x, {INT64_MIN, INT64_MIN});
        }) ==
        "pad: the extent overflows 64 bits: expected below 2^63, got -9223372036854775808 and -9223372036854775808 "
        "around 4");
  CHECK(test::message_of([&] {
          pad(x, {INT64_MAX, 1});
        }) == "pad: the extent overflows 64 bits: expected below 2^63, got 9223372036854775807 and 1 around 4");
  CHECK(test::message_of([&] {
          pad(x, {1, 1}, PadMode::zeros, 0.5);
        }) == "pad: the number is no int64: expected a whole number, got 0.5");
}
