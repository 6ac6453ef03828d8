#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::Values;
using test::values;

TEST_CASE("matmul gives the shapes of PyTorch") {
  const auto shape = [](const Shape& a, const Shape& b) { return matmul(zeros(a), zeros(b)).shape(); };
  CHECK(shape({5}, {5}) == Shape{});
  CHECK(shape({3, 5}, {5}) == Shape{3});
  CHECK(shape({5}, {5, 2}) == Shape{2});
  CHECK(shape({3, 5}, {5, 2}) == Shape{3, 2});
  CHECK(shape({7, 3, 5}, {5}) == Shape{7, 3});
  CHECK(shape({5}, {7, 5, 2}) == Shape{7, 2});
  CHECK(shape({7, 3, 5}, {5, 2}) == Shape{7, 3, 2});
  CHECK(shape({11, 1, 3, 5}, {7, 5, 2}) == Shape{11, 7, 3, 2});
  CHECK(shape({0, 5}, {5, 2}) == Shape{0, 2});
  CHECK(shape({0, 3, 5}, {5, 2}) == Shape{0, 3, 2});
  CHECK(values(matmul(zeros({2, 0}), zeros({0, 3}))) == Values(6, 0));
}

TEST_CASE("transpose flags give what transposed copies give") {
  const Tensor a = test::counted(0, {7, 3, 5}), b = test::counted(0, {7, 5, 2});
  const Values expected = values(matmul(a, b));
  CHECK(values(matmul(transpose(a, 1, 2), b, true, false)) == expected);
  CHECK(values(matmul(a, transpose(b, 1, 2), false, true)) == expected);
  CHECK(values(matmul(transpose(a, 1, 2), transpose(b, 1, 2), true, true)) == expected);
}

TEST_CASE("gradients of empty products are zeros of the right shape") {
  const auto gradient = [](const Shape& a, const Shape& b, bool transpose_a) {
    const Tensor x = zeros(a, DType::float64), w = ones(b, DType::float64).requires_grad_();
    sum(matmul(x, w, transpose_a, false)).backward();
    return values(w.grad());
  };
  CHECK(gradient({0, 5}, {5, 2}, false) == Values(10, 0));
  CHECK(gradient({0, 3, 5}, {5, 2}, false) == Values(10, 0));
  CHECK(gradient({0, 5, 3}, {5, 2}, true) == Values(10, 0));
}

TEST_CASE("matmul refuses operands that do not fit") {
  CHECK(test::message_of([] {
          matmul(zeros({64, 784}), zeros({128, 10}));
        }) == "matmul: inner dimensions differ: expected [784, *], got [128, 10]");
  CHECK(test::message_of([] {
          matmul(zeros({64, 784}), zeros({128, 10}), false, true);
        }) == "matmul: inner dimensions differ: expected [*, 784], got [128, 10]");
  CHECK(test::message_of([] {
          matmul(zeros({64, 784}), zeros({3, 128, 10}));
        }) == "matmul: inner dimensions differ: expected [..., 784, *], got [3, 128, 10]");
  CHECK(test::message_of([] {
          matmul(zeros({3, 5}), zeros({7}));
        }) == "matmul: inner dimensions differ: expected [5], got [7]");
  CHECK(test::message_of([] { matmul(tensor(1.0), zeros({7})); }) ==
        "matmul: a is a scalar: expected at least 1 dimension, got shape []; use mul");
  CHECK(test::message_of([] { matmul(zeros({7}), tensor(1.0)); }) ==
        "matmul: b is a scalar: expected at least 1 dimension, got shape []; use mul");
  CHECK(test::message_of([] {
          matmul(zeros({7}), zeros({7, 2}), true, false);
        }) == "matmul: a is a vector and cannot be transposed: expected at least 2 dimensions, got [7]");
  CHECK(test::message_of([] {
          matmul(zeros({2, 3, 5}), zeros({7, 5, 2}));
        }) ==
        "matmul: batches do not broadcast: expected equal extents or 1 counted from the back, got [2, 3, 5] and "
        "[7, 5, 2]");
  CHECK(test::message_of([] {
          matmul(zeros({2, 3}), zeros({3, 2}, DType::float64));
        }) == "matmul: element types differ: expected float32, got float64; convert with to()");
  CHECK(test::message_of([] {
          matmul(tensor({1, 2}), tensor({1, 2}));
        }) == "matmul: element type not supported: expected float32 or float64, got int64; convert with to()");
}
