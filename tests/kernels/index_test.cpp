#include "kernels/index.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "taper/shape.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("the first index out of range is found") {
  const Ints index = {0, 2, 3, -1};
  CHECK(find_bad_index(index.data(), 4, 3) == 2);
  CHECK(find_bad_index(index.data(), 4, 4) == 3);
  CHECK(find_bad_index(index.data(), 3, 4) == -1);
}

TEST_CASE("rows are selected, and the gradients of a repeated row add up") {
  const Ints x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // [2, 3, 2]
  const Ints index = {2, 0, 2, 2};
  Ints y(16);
  index_select(x.data(), index.data(), y.data(), 2, 3, 2, 4);
  CHECK(y == Ints{5, 6, 1, 2, 5, 6, 5, 6, 11, 12, 7, 8, 11, 12, 11, 12});
  const Doubles dy = {1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80};
  Doubles dx(12, 99);
  index_select_grad(dy.data(), index.data(), dx.data(), 2, 3, 2, 4, false);
  CHECK(dx == Doubles{3, 4, 0, 0, 13, 16, 30, 40, 0, 0, 130, 160});
  index_select_grad(dy.data(), index.data(), dx.data(), 2, 3, 2, 4, true);
  CHECK(dx == Doubles{6, 8, 0, 0, 26, 32, 60, 80, 0, 0, 260, 320});
  index_select_grad<double>(nullptr, nullptr, dx.data(), 2, 3, 2, 0, false);
  CHECK(dx == Doubles(12, 0));
}

TEST_CASE("gather reads along any dimension, from an index that may be smaller") {
  const Shape xs{3, 4, 2};
  Doubles x(24);
  for (std::size_t i = 0; i < 24; ++i) x[i] = double(i);
  for (int dim : {0, 1, 2}) {
    const Shape is = dim == 1 ? Shape{2, 5, 1} : dim == 0 ? Shape{5, 3, 2} : Shape{2, 3, 4};
    Ints index(std::size_t(is.numel()));
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = std::int64_t(i * 5 % 7) % xs[dim];
    Doubles y(index.size()), dy = numbers<double>(is.numel(), 1), dx(24, 99), added(24, 1), expected(24, 0);
    for (std::int64_t a = 0, i = 0; a < is[0]; ++a)
      for (std::int64_t b = 0; b < is[1]; ++b)
        for (std::int64_t c = 0; c < is[2]; ++c, ++i) {
          std::int64_t at[3] = {a, b, c};
          at[dim] = index[std::size_t(i)];
          const auto from = std::size_t((at[0] * 4 + at[1]) * 2 + at[2]);
          y[std::size_t(i)] = x[from];
          expected[from] += dy[std::size_t(i)];
        }
    Doubles gathered(index.size(), 99);
    const GatherShape s{xs, is, dim};
    gather(s, x.data(), index.data(), gathered.data());
    CHECK(gathered == y);
    gather_grad(s, dy.data(), index.data(), dx.data(), false);
    CHECK(distance(dx, expected) < 1e-15);
    gather_grad(s, dy.data(), index.data(), added.data(), true);
    for (double& v : added) v -= 1;
    CHECK(distance(added, expected) < 1e-14);
  }
}

TEST_CASE("gradients by index have the same bits on any number of threads") {
  Ints index(3001);
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = std::int64_t(i * i % 11);
  const auto dy = numbers<float>(3001 * 53, 1);
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(11 * 53);
    index_select_grad(dy.data(), index.data(), dx.data(), 1, 11, 53, 3001, false);
    return dx;
  }));
  Ints each(3001 * 53);
  for (std::size_t i = 0; i < each.size(); ++i) each[i] = std::int64_t(i * i % 11);
  CHECK(same_on_any_threads([&] {
    const Shape xs{3001, 11}, is{3001, 53};
    std::vector<float> dx(3001 * 11);
    gather_grad(GatherShape{xs, is, 1}, dy.data(), each.data(), dx.data(), false);
    return dx;
  }));
}
