#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::Values;
using test::values;

TEST_CASE("two element types meet in PyTorch's common one") {
  const Tensor whole = tensor({1, 2}), single = tensor({1.5, 2.5}), wide = tensor({1.5, 2.5}, DType::float64);
  CHECK(add(whole, whole).dtype() == DType::int64);
  CHECK(add(whole, single).dtype() == DType::float32);
  CHECK(mul(single, wide).dtype() == DType::float64);
  CHECK(maximum(whole, wide).dtype() == DType::float64);
  CHECK(where(gt(whole, 1), whole, wide).dtype() == DType::float64);
  CHECK(eq(single, wide).dtype() == DType::int64);
}

TEST_CASE("a plain number raises whole numbers only when it has a fraction, and floating types never") {
  const Tensor whole = tensor({3, -4}), single = tensor({3.0});
  CHECK(add(whole, 2).dtype() == DType::int64);
  CHECK(values(sub(10, whole)) == Values{7, 14});
  CHECK(add(whole, 0.5).dtype() == DType::float32);
  CHECK(mul(single, 2.0).dtype() == DType::float32);
  CHECK(div(whole, 2).dtype() == DType::float32);
  CHECK(values(div(whole, whole)) == Values{1, 1});
  CHECK(values(neg(whole)) == Values{-3, 4});
  CHECK(abs(whole).dtype() == DType::int64);
  CHECK(values(sign(whole)) == Values{1, -1});
  CHECK(relu(whole).dtype() == DType::int64);
  CHECK(exp(whole).dtype() == DType::float32);
  CHECK(clamp(whole, 0, 2).dtype() == DType::int64);
}

TEST_CASE("shapes broadcast from the back or are refused") {
  CHECK(add(zeros({7, 1, 5}), zeros({3, 1})).shape() == Shape{7, 3, 5});
  CHECK(mul(zeros({0, 3}), tensor(1.0)).shape() == Shape{0, 3});
  CHECK(test::message_of([] {
          add(zeros({2, 3}), zeros({2, 5}));
        }) == "add: shapes do not broadcast: expected equal extents or 1 counted from the back, got [2, 3] and [2, 5]");
  CHECK(test::message_of([] {
          where(zeros({7}, DType::int64), zeros({2, 3}), zeros({3}));
        }) == "where: shapes do not broadcast: expected equal extents or 1 counted from the back, got [7] and [2, 3]");
  CHECK(test::message_of([] { where(zeros({3}), zeros({3}), zeros({3})); }) ==
        "where: the condition must be a comparison's result: expected int64, got float32");
}

TEST_CASE("operations in place keep shape and element type of the tensor") {
  const Tensor x = ones({2, 3}), whole = tensor({1, 2});
  CHECK(test::message_of([&] {
          x.add_(ones({7, 2, 3}));
        }) == "add_: the operand does not broadcast to the tensor it changes: expected [2, 3], got [7, 2, 3]");
  CHECK(test::message_of([&] {
          whole.mul_(tensor({0.5, 1.5}));
        }) == "mul_: the result does not fit the tensor's element type: expected int64, got float32");
  x.add_(tensor({1.0, 2.0, 3.0}), 10);
  CHECK(values(x) == Values{11, 21, 31, 11, 21, 31});
  x.sub_(ones({2, 1})).div_(full({}, 10));
  CHECK(values(x) == Values{1, 2, 3, 1, 2, 3});
  x.copy_(tensor({7, 8, 9}));
  CHECK(values(x) == Values{7, 8, 9, 7, 8, 9});
  CHECK(values(x.fill_(0.5)) == Values(6, 0.5));
  CHECK(values(x.zero_()) == Values(6, 0));
}

TEST_CASE("copy_ passes the gradient to its source and cuts off the old value") {
  const Tensor x = tensor({2.0, 3.0}).requires_grad_(), source = tensor({5.0}).requires_grad_();
  const Tensor y = mul(x, 1.0);
  y.copy_(source);
  sum(mul(y, tensor({10.0, 1.0}))).backward();
  CHECK(values(x.grad()) == Values{0, 0});
  CHECK(values(source.grad()) == Values{11});
}

TEST_CASE("a change of element type is differentiated in the type of the input") {
  const Tensor x = tensor({0.5, 2.0}).requires_grad_();
  sum(mul(to(x, DType::float64), tensor({3.0, 5.0}, DType::float64))).backward();
  CHECK(x.grad().dtype() == DType::float32);
  CHECK(values(x.grad()) == Values{3, 5});
  CHECK(!to(x, DType::int64).requires_grad());
}

TEST_CASE("every operation refuses an undefined tensor") {
  const std::string sentence = "tensor: undefined: expected a tensor, got an empty handle";
  const Tensor none, x = ones({2, 2});
  CHECK(test::message_of([&] { add(none, x); }) == sentence);
  CHECK(test::message_of([&] { add(x, none); }) == sentence);
  CHECK(test::message_of([&] { exp(none); }) == sentence);
  CHECK(test::message_of([&] { sum(none); }) == sentence);
  CHECK(test::message_of([&] { matmul(x, none); }) == sentence);
  CHECK(test::message_of([&] { reshape(none, {1}); }) == sentence);
  CHECK(test::message_of([&] { cat({x, none}); }) == sentence);
  CHECK(test::message_of([&] { index_select(x, 0, none); }) == sentence);
  CHECK(test::message_of([&] { none.to_string(); }) == sentence);
  CHECK(test::message_of([&] { squeeze(none); }) == sentence);
}
