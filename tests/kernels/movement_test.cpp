#include "kernels/movement.hpp"

#include <algorithm>
#include <numeric>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

/// Element by element from coordinates.
template <class T>
std::vector<T> permuted(const Shape& shape, const std::vector<int>& dims, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    std::int64_t rest = std::int64_t(i), from = 0;
    for (std::size_t k = dims.size(); k-- > 0;) {
      std::int64_t stride = 1;
      for (int d = dims[k] + 1; d < shape.rank(); ++d) stride *= shape[d];
      from += rest % shape[dims[k]] * stride;
      rest /= shape[dims[k]];
    }
    y[i] = x[std::size_t(from)];
  }
  return y;
}

}  // namespace

TEST_CASE("permutations move every element, whatever the rank") {
  const std::vector<std::pair<Shape, std::vector<int>>> cases = {{{}, {}},
                                                                 {{7}, {0}},
                                                                 {{3, 5}, {1, 0}},
                                                                 {{131, 37}, {1, 0}},
                                                                 {{2, 3, 5}, {0, 2, 1}},
                                                                 {{2, 3, 5}, {1, 0, 2}},
                                                                 {{2, 3, 5}, {2, 1, 0}},
                                                                 {{2, 3, 5, 7}, {0, 2, 3, 1}},
                                                                 {{2, 3, 5, 7}, {3, 1, 2, 0}},
                                                                 {{37, 3, 41}, {2, 1, 0}},
                                                                 {{3, 33, 2, 70}, {3, 0, 2, 1}},
                                                                 {{2, 35, 3, 34}, {2, 3, 0, 1}},
                                                                 {{2, 1, 3, 1, 5, 1, 2, 3}, {7, 0, 6, 2, 1, 4, 3, 5}},
                                                                 {{3, 0, 5}, {2, 1, 0}}};
  for (const auto& [shape, dims] : cases) {
    INFO(to_string(shape));
    const auto x = numbers<float>(shape.numel(), 1);
    std::vector<float> y(x.size(), 9), added(x.size(), 2);
    permute(shape, dims, x.data(), y.data());
    const auto expected = permuted(shape, dims, x);
    CHECK(y == expected);
    permute(shape, dims, x.data(), added.data(), true);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(added[i] == 2 + expected[i]);
  }
}

TEST_CASE("runs of every length change places") {
  for (std::int64_t length = 1; length <= 60; ++length) {
    CAPTURE(length);
    const Shape shape{3, 5, length};
    const auto x = numbers<float>(shape.numel(), std::uint64_t(length));
    std::vector<float> y(x.size() + 8, 9);
    permute(shape, std::vector{1, 0, 2}, x.data(), y.data());
    auto expected = permuted(shape, {1, 0, 2}, x);
    expected.resize(y.size(), 9);
    CHECK(y == expected);
  }
}

TEST_CASE("a part is cut out, and its gradient goes back to where it was") {
  Ints x(2 * 5 * 3), y(2 * 2 * 3);
  std::iota(x.begin(), x.end(), 0);
  narrow(x.data(), y.data(), 2, 5, 3, 1, 2);
  CHECK(y == Ints{3, 4, 5, 6, 7, 8, 18, 19, 20, 21, 22, 23});

  const Values dy(y.begin(), y.end());
  Values dx(30, 7), expected(30, 0), summed(12, 1);
  narrow_grad(dy.data(), dx.data(), 2, 5, 3, 1, 2, false);
  for (std::int64_t v : y) expected[std::size_t(v)] = double(v);
  CHECK(dx == expected);
  narrow_grad(dy.data(), dx.data(), 2, 5, 3, 1, 2, true);
  for (double& v : expected) v *= 2;
  CHECK(dx == expected);
  narrow_add(dx.data(), summed.data(), 2, 5, 3, 1, 2);
  for (std::size_t i = 0; i < 12; ++i) CHECK(summed[i] == 1 + 2 * dy[i]);
}

TEMPLATE_TEST_CASE("runs of every length are cut out and placed, and nothing beside them", "", float, double,
                   std::int64_t) {
  for (std::int64_t length = 0; length <= 60; ++length)
    for (const std::int64_t outer : {1, 2, 7}) {
      CAPTURE(length, outer);
      const std::int64_t n = length + 5, start = 3;
      std::vector<TestType> x(std::size_t(outer * n)), cut(std::size_t(outer * length) + 8, TestType(-1)), placed = x;
      std::iota(x.begin(), x.end(), TestType(1));
      narrow(x.data(), cut.data(), outer, n, 1, start, length);
      place(cut.data(), placed.data(), outer, n, 1, start, length);
      for (std::int64_t i = 0; i < outer * n; ++i) {
        const std::int64_t at = i % n - start;
        const bool is_part = at >= 0 && at < length;
        if (is_part) CHECK(cut[std::size_t(i / n * length + at)] == x[std::size_t(i)]);
        CHECK(placed[std::size_t(i)] == (is_part ? x[std::size_t(i)] : 0));
      }
      CHECK(std::all_of(cut.end() - 8, cut.end(), [](TestType v) { return v == -1; }));
    }
}

TEST_CASE("parts placed one after the other make a concatenation") {
  const Ints a = {1, 2, 3, 4}, b = {5, 6, 7, 8, 9, 10};
  Ints y(10);
  place(a.data(), y.data(), 2, 5, 1, 0, 2);
  place(b.data(), y.data(), 2, 5, 1, 2, 3);
  CHECK(y == Ints{1, 2, 5, 6, 7, 3, 4, 8, 9, 10});
}

TEST_CASE("fills, ranges and even spacings") {
  std::vector<float> f(3);
  fill(f.data(), 3, 2.5f);
  CHECK(f == std::vector<float>{2.5f, 2.5f, 2.5f});
  Ints i(3);
  arange<std::int64_t>(i.data(), 3, 5, -2);
  CHECK(i == Ints{5, 3, 1});
  arange<std::int64_t>(i.data(), 3, INT64_MAX, 1);
  CHECK(i[1] == INT64_MIN);
  Values d(5);
  arange(d.data(), 5, 1.0, 0.25);
  CHECK(d == Values{1, 1.25, 1.5, 1.75, 2});
  linspace(d.data(), 5, -1, 0.1);
  CHECK(d.front() == -1);
  CHECK(d.back() == 0.1);
  CHECK(distance(d, Values{-1, -0.725, -0.45, -0.175, 0.1}) < 1e-15);
  linspace(d.data(), 1, 3, 4);
  CHECK(d[0] == 3);
}

TEST_CASE("moves give the same bits on any number of threads") {
  const Shape shape{61, 37, 53};
  const auto x = numbers<float>(shape.numel(), 1);
  const std::vector<int> dims = {2, 0, 1};
  CHECK(same_on_any_threads([&] {
    std::vector<float> y(x.size());
    permute(shape, dims, x.data(), y.data());
    return y;
  }));
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(61 * 41 * 53);
    narrow_grad(x.data(), dx.data(), 61, 41, 53, 2, 37, false);
    return dx;
  }));
}

TEMPLATE_TEST_CASE("large matrices of any size are transposed, and others moved with them", "", float, double,
                   std::int64_t) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {1, 16, 16}, {3, 37, 53}, {2, 48, 64}, {1, 129, 71}, {5, 8, 130}};
  const std::vector<std::vector<int>> orders = {{0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {1, 0, 2}};
  for (const auto& shape : shapes)
    for (const auto& order : orders) {
      std::vector<TestType> x(std::size_t(shape[0] * shape[1] * shape[2])), y(x.size(), 77), expected;
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = TestType(i + 1);
      const std::int64_t stride[] = {shape[1] * shape[2], shape[2], 1};
      const auto extent = [&](int k) { return shape[std::size_t(order[std::size_t(k)])]; };
      const auto step = [&](int k) { return stride[order[std::size_t(k)]]; };
      for (std::int64_t i = 0; i < extent(0); ++i)
        for (std::int64_t j = 0; j < extent(1); ++j)
          for (std::int64_t k = 0; k < extent(2); ++k)
            expected.push_back(x[std::size_t(i * step(0) + j * step(1) + k * step(2))]);
      permute<TestType>(shape, order, x.data(), y.data());
      CHECK(y == expected);
      permute<TestType>(shape, order, x.data(), y.data(), true);
      for (TestType& v : expected) v += v;
      CHECK(y == expected);
    }
}

TEST_CASE("a matrix that caches do not hold is transposed") {
  constexpr std::int64_t rows = 1501, columns = 1409;
  std::vector<float> x(rows * columns), y(x.size()), expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 8191);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) expected[std::size_t(c * rows + r)] = x[std::size_t(r * columns + c)];
  permute<float>(std::vector<std::int64_t>{rows, columns}, std::vector<int>{1, 0}, x.data(), y.data());
  CHECK(y == expected);
}
