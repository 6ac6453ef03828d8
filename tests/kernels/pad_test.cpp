#include "kernels/pad.hpp"

#include <algorithm>
#include <optional>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/oracle_pad.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

Ints padded(const Ints& x, std::int64_t left, std::int64_t right, PadKind kind) {
  const Ints amounts = {left, right};
  Ints y(std::size_t(std::int64_t(x.size()) + left + right), 77);
  pad<std::int64_t>(pad_plan(Shape{std::int64_t(x.size())}, amounts, kind), x.data(), y.data(), 9);
  return y;
}

/// Padding of up to three dimensions, with what it must give.
struct PadCase {
  std::int64_t planes = 1;
  std::vector<oracle::PadAxis> axes;

  /// One that `pad` admits: small sizes, every third amount a crop.
  static PadCase random(std::uint64_t seed) {
    std::uint64_t position = 0;
    const auto below = [&](std::int64_t n) {
      return std::int64_t(random_bits(seed, Stream::data, position++) % std::uint64_t(n));
    };
    PadCase c{below(2) == 0 ? 8 + below(3) : 1 + below(3), {}};  // small planes of many are taken as wholes
    const auto kind = oracle::PadAxis::Kind(below(4));
    const std::size_t rank = std::size_t(1 + below(3));
    while (c.axes.size() < rank) {
      oracle::PadAxis a{kind, 1 + below(6), 0, 0};
      a.left = below(3) == 0 ? -below(a.in + 2) : below(a.in + 1);
      a.right = below(3) == 0 ? -below(a.in + 2) : below(a.in + 1);
      if (admits(a)) c.axes.push_back(a);
    }
    return c;
  }

  static bool admits(const oracle::PadAxis& a) {
    const std::int64_t most = std::max(a.left, a.right),
                       kept = a.in + std::min<std::int64_t>(a.left, 0) + std::min<std::int64_t>(a.right, 0);
    switch (a.kind) {
      case oracle::PadAxis::value:
        return kept >= 0;
      case oracle::PadAxis::reflect:
        return most < a.in && a.out() > 0;
      case oracle::PadAxis::replicate:
        return a.out() > 0;
      case oracle::PadAxis::circular:
        return kept >= 0 && most <= kept;
    }
    return false;
  }

  PadPlan plan() const {
    Ints shape = {planes}, amounts;
    for (const auto& a : axes) shape.push_back(a.in);
    for (std::size_t d = axes.size(); d-- > 0;) amounts.insert(amounts.end(), {axes[d].left, axes[d].right});
    return pad_plan(shape, amounts, PadKind(axes[0].kind));
  }

  std::int64_t inputs() const {
    std::int64_t n = planes;
    for (const auto& a : axes) n *= a.in;
    return n;
  }

  /// The input element of every output; -1 for the value.
  Ints sources() const {
    Ints sources;
    for (std::int64_t plane = 0; plane < planes; ++plane) sources.push_back(plane);
    for (const auto& a : axes) {
      std::vector<std::optional<std::int64_t>> places;
      for (std::int64_t i = 0; i < a.out(); ++i) places.push_back(a.source(i));
      Ints longer;
      for (const std::int64_t row : sources)
        for (const auto& at : places) longer.push_back(row < 0 || !at ? -1 : row * a.in + *at);
      sources = longer;
    }
    return sources;
  }
};

template <class T>
std::string pad_difference(const PadCase& c, std::uint64_t seed) {
  const Ints sources = c.sources();
  const auto n = std::int64_t(sources.size());
  const auto x = numbers<T>(c.inputs(), seed), dy = numbers<T>(n, seed + 1), before = numbers<T>(c.inputs(), seed + 2);
  std::vector<T> y(sources.size(), T(77)), expected;
  pad(c.plan(), x.data(), y.data(), T(0.5));
  Values sum(x.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    expected.push_back(sources[i] < 0 ? T(0.5) : x[std::size_t(sources[i])]);
    if (sources[i] >= 0) sum[std::size_t(sources[i])] += double(dy[i]);
  }
  if (y != expected) return "forward";
  std::vector<T> dx(x.size(), T(77)), added = before;
  pad_grad(c.plan(), dy.data(), dx.data(), false);
  pad_grad(c.plan(), dy.data(), added.data(), true);
  const double bound = sizeof(T) == sizeof(float) ? 1e-5 : 1e-13;
  if (distance(dx, sum) > bound) return "gradient";
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double(before[i]);
  return distance(added, sum) > bound ? "added gradient" : "";
}

}  // namespace

TEST_CASE("padding of one to three dimensions agrees with the definition on 4,000 random cases") {
  int reflected = 0, cropped = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const PadCase c = PadCase::random(seed);
    reflected += c.axes[0].kind == oracle::PadAxis::reflect;
    cropped += c.axes[0].left < 0 || c.axes[0].right < 0;
    const std::string wrong = seed % 2 ? pad_difference<float>(c, seed) : pad_difference<double>(c, seed);
    if (wrong.empty()) continue;
    INFO("case " << seed << ", kind " << int(c.axes[0].kind));
    for (const auto& a : c.axes) UNSCOPED_INFO("in " << a.in << " left " << a.left << " right " << a.right);
    CHECK(wrong == "");
  }
  CHECK(reflected > 800);
  CHECK(cropped > 1200);
}

TEST_CASE("padding of rows of any length agrees with the definition, crops included") {
  int cases = 0;
  for (int kind = 0; kind < 4; ++kind)
    for (const std::int64_t in : {4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 66, 130, 257, 300, 515})
      for (const auto& [left, right] : {std::pair{1, 1}, {0, 3}, {3, 0}, {-1, 2}, {2, -3}, {-2, -1}, {0, 0}}) {
        PadCase c{2, {}};
        c.axes.push_back({oracle::PadAxis::Kind(kind), 3, 1, 2});
        c.axes.push_back({oracle::PadAxis::Kind(kind), 5, -1, 2});
        c.axes.push_back({oracle::PadAxis::Kind(kind), in, left, right});
        if (!std::all_of(c.axes.begin(), c.axes.end(), PadCase::admits)) continue;
        ++cases;
        INFO("kind " << kind << " in " << in << " left " << left << " right " << right);
        CHECK(pad_difference<float>(c, std::uint64_t(in)) == "");
        CHECK(pad_difference<double>(c, std::uint64_t(in)) == "");
        const Ints sources = c.sources();
        const auto x = numbers<std::int64_t>(c.inputs(), 1, -1e9, 1e9);
        Ints y(sources.size(), 77), expected;
        pad<std::int64_t>(c.plan(), x.data(), y.data(), -9);
        for (const std::int64_t from : sources) expected.push_back(from < 0 ? -9 : x[std::size_t(from)]);
        CHECK(y == expected);
      }
  CHECK(cases > 450);
}

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
    Values y(2 * 6 * 9, 77), middle(2 * 6 * 5, 77), expected(2 * 6 * 9, 77);
    pad(pad_plan(shape, both, kind), x.data(), y.data(), 0.5);
    pad(pad_plan(shape, rows, kind), x.data(), middle.data(), 0.5);
    pad(pad_plan(Shape{2, 6, 5}, columns, kind), middle.data(), expected.data(), 0.5);
    CHECK(y == expected);
  }
}

TEST_CASE("the float32 gradient of an element that was copied a million times is accurate") {
  const Ints amounts = {500, 501, 499, 502};
  const PadPlan plan = pad_plan(Shape{1, 1}, amounts, PadKind::replicate);
  const std::vector<float> dy(1002 * 1002, 0.1f);
  std::vector<float> dx(1);
  pad_grad(plan, dy.data(), dx.data(), false);
  CHECK(std::abs(double(dx[0]) / (double(0.1f) * 1002 * 1002) - 1) < 1e-7);
}

TEST_CASE("the gradient of padding is its adjoint") {
  const Shape shape{2, 3, 5};
  const auto x = numbers<double>(30, 1), dy = numbers<double>(2 * 6 * 9, 2);
  const Ints amounts = {1, 3, 2, 1};
  for (PadKind kind : {PadKind::value, PadKind::reflect, PadKind::replicate, PadKind::circular}) {
    const PadPlan plan = pad_plan(shape, amounts, kind);
    const auto expected = gradient(x, [&](const Values& v) {
      Values y(dy.size());
      pad(plan, v.data(), y.data(), 0.5);
      double loss = 0;
      for (std::size_t i = 0; i < y.size(); ++i) loss += y[i] * dy[i];
      return loss;
    });
    Values dx(30, 77), added(30, 2);
    pad_grad(plan, dy.data(), dx.data(), false);
    CHECK(distance(dx, expected) < 1e-10);
    pad_grad(plan, dy.data(), added.data(), true);
    for (double& v : added) v -= 2;
    CHECK(distance(added, dx) < 1e-14);
  }
  const Ints crop = {-1, 2};
  Values dx(4, 77);
  pad_grad(pad_plan(Shape{4}, crop, PadKind::value), dy.data(), dx.data(), false);
  CHECK(dx == Values{0, dy[0], dy[1], dy[2]});
}

TEST_CASE("padding nothing gives the value, and no planes give nothing") {
  const Ints amounts = {1, 2};
  Values y(3, 77);
  pad<double>(pad_plan(Shape{0}, amounts, PadKind::value), nullptr, y.data(), 0.5);
  CHECK(y == Values{0.5, 0.5, 0.5});
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
  for (const PadKind kind : {PadKind::value, PadKind::replicate}) {
    const PadPlan other = pad_plan(Shape{23, 31, 67}, amounts, kind);
    CHECK(same_on_any_threads([&] {
      std::vector<float> dx(x.size());
      pad_grad(other, dy.data(), dx.data(), false);
      return dx;
    }));
  }
}
