#include "kernels/pad.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<std::int64_t>;

Ints padded(const Ints& x, std::int64_t left, std::int64_t right, PadKind kind) {
  const Ints amounts = {left, right};
  Ints y(std::size_t(std::int64_t(x.size()) + left + right), 77);
  pad<std::int64_t>(pad_plan(Shape{std::int64_t(x.size())}, amounts, kind), x.data(), y.data(), 9);
  return y;
}

}  // namespace

TEST_CASE("each kind of padding along one dimension") {
  const Ints x = {1, 2, 3, 4};
  CHECK(padded(x, 1, 2, PadKind::value) == Ints{9, 1, 2, 3, 4, 9, 9});
  CHECK(padded(x, 3, 2, PadKind::reflect) == Ints{4, 3, 2, 1, 2, 3, 4, 3, 2});
  CHECK(padded(x, 2, 6, PadKind::replicate) == Ints{1, 1, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4});
  CHECK(padded(x, 4, 1, PadKind::circular) == Ints{1, 2, 3, 4, 1, 2, 3, 4, 1});
  CHECK(padded(x, 0, 0, PadKind::reflect) == x);
}

TEST_CASE("negative amounts crop") {
  const Ints x = {1, 2, 3, 4};
  CHECK(padded(x, -1, 2, PadKind::value) == Ints{2, 3, 4, 9, 9});
  CHECK(padded(x, 2, -3, PadKind::value) == Ints{9, 9, 1});
  CHECK(padded(x, -1, -1, PadKind::value) == Ints{2, 3});
  CHECK(padded(x, 3, -5, PadKind::value) == Ints{9, 9});
  CHECK(padded(x, -5, 3, PadKind::value) == Ints{9, 9});
}

TEST_CASE("padding of several dimensions agrees with padding one after the other") {
  const Shape shape{2, 3, 5};
  const auto x = numbers<double>(30, 1);
  for (PadKind kind : {PadKind::value, PadKind::reflect, PadKind::replicate, PadKind::circular}) {
    const Ints both = {1, 3, 2, 1}, rows = {0, 0, 2, 1}, columns = {1, 3};
    Doubles y(2 * 6 * 9, 77), middle(2 * 6 * 5, 77), expected(2 * 6 * 9, 77);
    pad(pad_plan(shape, both, kind), x.data(), y.data(), 0.5);
    pad(pad_plan(shape, rows, kind), x.data(), middle.data(), 0.5);
    pad(pad_plan(Shape{2, 6, 5}, columns, kind), middle.data(), expected.data(), 0.5);
    CHECK(y == expected);
  }
}

TEST_CASE("the gradient of padding is its adjoint") {
  const Shape shape{2, 3, 5};
  const auto x = numbers<double>(30, 1), dy = numbers<double>(2 * 6 * 9, 2);
  const Ints amounts = {1, 3, 2, 1};
  for (PadKind kind : {PadKind::value, PadKind::reflect, PadKind::replicate, PadKind::circular}) {
    const PadPlan plan = pad_plan(shape, amounts, kind);
    const auto expected = gradient(x, [&](const Doubles& v) {
      Doubles y(dy.size());
      pad(plan, v.data(), y.data(), 0.5);
      double loss = 0;
      for (std::size_t i = 0; i < y.size(); ++i) loss += y[i] * dy[i];
      return loss;
    });
    Doubles dx(30, 77), added(30, 2);
    pad_grad(plan, dy.data(), dx.data(), false);
    CHECK(distance(dx, expected) < 1e-10);
    pad_grad(plan, dy.data(), added.data(), true);
    for (double& v : added) v -= 2;
    CHECK(distance(added, dx) < 1e-14);
  }
  const Ints crop = {-1, 2};
  Doubles dx(4, 77);
  pad_grad(pad_plan(Shape{4}, crop, PadKind::value), dy.data(), dx.data(), false);
  CHECK(dx == Doubles{0, dy[0], dy[1], dy[2]});
}

TEST_CASE("padding nothing gives the value, and no planes give nothing") {
  const Ints amounts = {1, 2};
  Doubles y(3, 77);
  pad<double>(pad_plan(Shape{0}, amounts, PadKind::value), nullptr, y.data(), 0.5);
  CHECK(y == Doubles{0.5, 0.5, 0.5});
  pad<double>(pad_plan(Shape{0, 4}, amounts, PadKind::value), nullptr, nullptr, 0.5);
}

TEST_CASE("padding gives the same bits on any number of threads") {
  const Ints amounts = {3, 5, 2, 1};
  const PadPlan plan = pad_plan(Shape{23, 31, 67}, amounts, PadKind::reflect);
  const auto x = numbers<float>(23 * 31 * 67, 1), dy = numbers<float>(23 * 34 * 75, 2);
  CHECK(same_on_any_threads([&] {
    std::vector<float> y(dy.size());
    pad(plan, x.data(), y.data(), 0.0f);
    return y;
  }));
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(x.size());
    pad_grad(plan, dy.data(), dx.data(), false);
    return dx;
  }));
}
