#include <cmath>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/values.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::Values;
using test::values;

TEST_CASE("reductions name dimensions from either end and may keep them") {
  const Tensor x = reshape(arange(30), {2, 3, 5});
  CHECK(values(sum(x, {0, -1})) == Values{95, 145, 195});
  CHECK(sum(x, 1, true).shape() == Shape{2, 1, 5});
  CHECK(sum(x, {0, 1, 2}, true).shape() == Shape{1, 1, 1});
  CHECK(sum(x, {}).shape() == Shape{});
  CHECK(x.sum(-1).shape() == Shape{2, 3});
  CHECK(test::message_of([&] { sum(x, {0, 3}); }) == "sum: dimension out of range: expected -3 to 2, got 3");
  CHECK(test::message_of([&] {
          mean(to(x, DType::float32), {1, -2});
        }) == "mean: a dimension is named twice: expected different dimensions, got -2 again");
  CHECK(test::message_of([&] {
          sum(x, {0, 1, 2, 3, 4, 5, 6, 7, 8});
        }) == "dims: too many dimensions: expected at most 8, got 9");
}

TEST_CASE("whole numbers are summed as whole numbers and have no mean") {
  const Tensor x = tensor({std::int64_t(1) << 60, std::int64_t(1), std::int64_t(1)});
  CHECK(sum(x).to_vector<std::int64_t>() == std::vector<std::int64_t>{(std::int64_t(1) << 60) + 2});
  CHECK(prod(tensor({3, 5, 7})).dtype() == DType::int64);
  CHECK(max(x).dtype() == DType::int64);
  CHECK(logsumexp(tensor({0, 0}), 0).dtype() == DType::float32);
  const std::string tail = ": element type not supported: expected float32 or float64, got int64; convert with to()";
  CHECK(test::message_of([&] { mean(x); }) == "mean" + tail);
  CHECK(test::message_of([&] { var(x); }) == "var" + tail);
  CHECK(test::message_of([&] { taper::std(x); }) == "std" + tail);
  CHECK(test::message_of([&] { norm(x); }) == "norm" + tail);
  CHECK(test::message_of([&] { softmax(x, 0); }) == "softmax" + tail);
  CHECK(test::message_of([&] { log_softmax(x, 0); }) == "log_softmax" + tail);
}

TEST_CASE("reductions over nothing give the neutral element, extremes are refused") {
  const Tensor x = zeros({0, 3});
  CHECK(values(sum(x, 0)) == Values{0, 0, 0});
  CHECK(values(prod(x, 0)) == Values{1, 1, 1});
  CHECK(std::isnan(mean(x).item()));
  CHECK(std::isnan(var(x).item()));
  CHECK(norm(x).item() == 0);
  CHECK(logsumexp(x, {}).item() == -INFINITY);
  CHECK(max(x, 1).values.shape() == Shape{0});
  CHECK(amax(x, 1).shape() == Shape{0});
  CHECK(argmax(x, 1).shape() == Shape{0});
  const std::string tail = ": nothing to reduce: expected at least 1 element in dimension 0, got [0, 3]";
  CHECK(test::message_of([&] { max(x); }) == "max" + tail);
  CHECK(test::message_of([&] { min(x, 0); }) == "min" + tail);
  CHECK(test::message_of([&] { amax(x, {0, 1}); }) == "amax" + tail);
  CHECK(test::message_of([&] { amin(x, 0); }) == "amin" + tail);
  CHECK(test::message_of([&] { argmax(x); }) == "argmax" + tail);
  CHECK(test::message_of([&] { argmin(x, 0); }) == "argmin" + tail);
  CHECK(test::message_of([&] { norm(x, INFINITY); }) == "norm" + tail);
  CHECK(test::message_of([&] { norm(x, NAN); }) == "norm: p is no number: expected a number or infinity, got nan");
}

TEST_CASE("a reduction of nothing has an empty gradient and gives zeros where nothing else arrives") {
  const Tensor x = zeros({0, 3}, DType::float64).requires_grad_();
  sum(sum(x, 0)).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("scalars are reduced along their imagined dimension") {
  const Tensor x = tensor(3.5);
  CHECK(sum(x, 0).item() == 3.5);
  CHECK(mean(x, -1).item() == 3.5);
  CHECK(max(x, 0).indices.item() == 0);
  CHECK(softmax(x, 0).item() == 1);
  CHECK(argmax(x).item() == 0);
  CHECK(test::message_of([&] { sum(x, 1); }) == "sum: dimension out of range: expected -1 to 0, got 1");
}

TEST_CASE("equal extremes: max along a dimension sends the gradient to the first, amax shares it") {
  const auto gradient = [](Tensor (*f)(const Tensor&)) {
    const Tensor x = tensor({2.0, 7.0, 7.0, 1.0}, DType::float64).requires_grad_();
    f(x).backward();
    return values(x.grad());
  };
  CHECK(gradient([](const Tensor& x) { return max(x, 0).values; }) == Values{0, 1, 0, 0});
  CHECK(gradient([](const Tensor& x) { return amax(x, 0); }) == Values{0, 0.5, 0.5, 0});
  CHECK(gradient([](const Tensor& x) { return max(x); }) == Values{0, 0.5, 0.5, 0});
}
