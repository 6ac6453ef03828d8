#include "kernels/upsample.hpp"

#include <limits>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/oracle_upsample.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

using Axis = oracle::UpsampleAxis;

constexpr Axis::Mode kModes[] = {Axis::nearest, Axis::nearest_exact, Axis::linear,
                                 Axis::aligned, Axis::cubic,         Axis::cubic_aligned};

struct UpsampleCase {
  std::int64_t planes = 1;
  Axis axis[3];

  static UpsampleCase random(std::uint64_t seed) {
    std::uint64_t position = 0;
    const auto below = [&](std::int64_t n) {
      return std::int64_t(random_bits(seed, Stream::data, position++) % std::uint64_t(n));
    };
    UpsampleCase c;
    c.planes = 1 + below(3);
    const auto mode = Axis::Mode(below(6));
    const bool cubic = Axis{mode}.is_cubic();
    const bool factors = below(2) == 0;
    const int dims = 1 + int(below(cubic ? 2 : 3));
    for (int d = 3 - dims; d < 3; ++d) {
      const std::int64_t most = dims == 1 ? 40 : dims == 2 ? 9 : 5;
      Axis& a = c.axis[d];
      a = {mode, 1 + below(most), 1 + below(2 * most), 0};
      if (!factors) continue;
      a.factor = double(1 + below(400)) / 100;
      a.out = std::max<std::int64_t>(1, std::int64_t(double(a.in) * a.factor));
    }
    for (int d = 1; cubic && d < 3; ++d) {
      c.axis[d].mode = mode;
    }
    return c;
  }

  UpsampleParams params() const {
    UpsampleParams p{.planes = planes, .axis = {}, .cubic = axis[2].is_cubic()};
    for (int d = 0; d < 3; ++d) {
      const auto rule = axis[d].is_cubic() ? Axis::Mode(axis[d].mode - Axis::cubic + Axis::linear) : axis[d].mode;
      p.axis[d] = {.in = axis[d].in,
                   .out = axis[d].out,
                   .rule = Resampling::Rule(rule),
                   .step = axis[d].factor > 0 ? 1 / axis[d].factor : 0};
    }
    return p;
  }

  std::int64_t inputs() const { return planes * axis[0].in * axis[1].in * axis[2].in; }
  std::int64_t outputs() const { return planes * axis[0].out * axis[1].out * axis[2].out; }

  Values multiply(Values x, bool transpose) const {
    std::int64_t inner = 1;
    for (int d = 2; d >= 0; --d) {
      x = oracle::multiplied(x, axis[d].weights(), std::size_t(inner), transpose);
      inner *= transpose ? axis[d].in : axis[d].out;
    }
    return x;
  }

  std::string text() const {
    std::string out = "mode " + std::to_string(axis[2].mode) + ", planes " + std::to_string(planes);
    for (const Axis& a : axis)
      out += "; " + std::to_string(a.in) + " to " + std::to_string(a.out) + " by " + std::to_string(a.factor);
    return out;
  }
};

/// `slack` times the tolerance of short rows: a place in a row of n elements is known to n units of the last digit.
template <class T>
std::string upsample_difference(const UpsampleCase& c, std::uint64_t seed, double slack = 1) {
  const auto x = numbers<T>(c.inputs(), seed), dy = numbers<T>(c.outputs(), seed + 1);
  const auto before = numbers<T>(c.inputs(), seed + 2);
  std::vector<T> y(dy.size(), T(NAN)), dx(x.size(), T(NAN)), added = before;
  upsample(c.params(), x.data(), y.data());
  upsample_backward(c.params(), dy.data(), dx.data(), false);
  upsample_backward(c.params(), dy.data(), added.data(), true);
  const auto sum = c.multiply({dy.begin(), dy.end()}, true);
  Values both = sum;
  for (std::size_t i = 0; i < both.size(); ++i) both[i] += double(before[i]);
  if (!(relative_error(y, c.multiply({x.begin(), x.end()}, false)) < slack * tolerance<T>())) return "forward";
  if (!(relative_error(dx, sum) < slack * tolerance<T>())) return "gradient";
  return relative_error(added, both) < slack * tolerance<T>() ? "" : "added gradient";
}

/// Rows of in(n) elements resized to out(n) by `factor`, n from one to longer than a tile.
template <class In, class Out>
void check_widths(const In& in, const Out& out, double factor) {
  for (const Axis::Mode mode : {Axis::nearest, Axis::nearest_exact, Axis::linear, Axis::aligned, Axis::cubic})
    for (const double by : {0.0, factor})
      for (std::int64_t n = 1; n <= 900; n += n < 40 ? 1 : 71) {
        UpsampleCase c;
        c.planes = 2;
        c.axis[1] = {mode, 3, n % 3 == 0 ? 6 : n % 3 + 1, 0};
        c.axis[2] = {mode, in(n), out(n), mode == Axis::aligned ? 0 : by};
        INFO(c.text());
        CHECK(upsample_difference<float>(c, std::uint64_t(n)) == "");
        CHECK(upsample_difference<double>(c, std::uint64_t(n), mode == Axis::aligned ? 20 : 1) == "");
      }
}

double dot(const Values& a, const Values& b, bool magnitude) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += magnitude ? std::abs(a[i] * b[i]) : a[i] * b[i];
  return sum;
}

}  // namespace

TEST_CASE("images of twice the width agree with the definition") {
  check_widths([](std::int64_t n) { return n; }, [](std::int64_t n) { return 2 * n; }, 2);
}

TEST_CASE("images of half the width agree with the definition") {
  check_widths([](std::int64_t n) { return 2 * n; }, [](std::int64_t n) { return n; }, 0.5);
}

TEST_CASE("resizing agrees with its definition on 6,000 random cases") {
  int modes[6] = {};
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    const UpsampleCase c = UpsampleCase::random(seed);
    ++modes[c.axis[2].mode];
    const std::string wrong =
        seed % 2 ? upsample_difference<float>(c, 3 * seed) : upsample_difference<double>(c, 3 * seed);
    if (wrong.empty()) continue;
    INFO("case " << seed << ": " << c.text());
    CHECK(wrong == "");
  }
  for (const int count : modes) CHECK(count > 900);
}

TEST_CASE("resizing and its gradient are adjoint") {
  for (std::uint64_t seed = 5001; seed <= 5200; ++seed) {
    const UpsampleCase c = UpsampleCase::random(seed);
    const auto x = numbers<double>(c.inputs(), seed), g = numbers<double>(c.outputs(), seed + 1);
    Values y(g.size()), dx(x.size());
    upsample(c.params(), x.data(), y.data());
    upsample_backward(c.params(), g.data(), dx.data(), false);
    INFO(c.text());
    const double off = std::abs(dot(y, g, false) - dot(x, dx, false));
    CHECK(off <= 1e-12 * std::max(dot(y, g, true), dot(x, dx, true)));
  }
}

TEST_CASE("rows longer than a tile are resized as short ones are") {
  for (const auto mode : kModes)
    for (const auto& [in, out] : {std::pair{700, 1511}, {1511, 701}, {3, 1201}, {2003, 2}}) {
      UpsampleCase c;
      c.planes = 2;
      c.axis[1].mode = c.axis[2].mode = mode;
      c.axis[2] = {mode, in, out, 0};
      INFO(c.text());
      CHECK(upsample_difference<double>(c, 11, 20) == "");
      CHECK(upsample_difference<float>(c, 13) == "");
    }
}

TEST_CASE("columns far apart and rows of high planes are resized as others are") {
  for (const auto mode : kModes) {
    for (const auto& [in, out] : {std::pair{1024, 256}, {1030, 256}, {1700, 400}, {41, 7}, {9, 2}, {2500, 513}}) {
      UpsampleCase c;
      c.axis[1] = {mode, 3, 5, 0};
      c.axis[2] = {mode, in, out, 0};
      INFO(c.text());
      CHECK(upsample_difference<double>(c, 17, 20) == "");
      CHECK(upsample_difference<float>(c, 19) == "");
    }
    for (const auto& [in, out] : {std::pair{3, 257}, {300, 523}, {523, 256}, {523, 300}}) {
      UpsampleCase c;
      c.planes = 2;
      c.axis[1] = {mode, in, out, 0};
      c.axis[2] = {mode, 3, 5, 0};
      if (mode != Axis::cubic && mode != Axis::cubic_aligned) c.axis[0] = {mode, 2, 3, 0};
      INFO(c.text());
      CHECK(upsample_difference<double>(c, 23, 20) == "");
      CHECK(upsample_difference<float>(c, 29) == "");
    }
  }
}

TEMPLATE_TEST_CASE("an element that an output does not need does not reach it, not even as NaN", "", float, double) {
  using T = TestType;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (const auto mode : {Axis::aligned, Axis::cubic_aligned}) {
    UpsampleCase c;
    c.axis[1] = {mode, 1, 1, 0};
    c.axis[2] = {mode, 9, 17, 0};
    const std::vector<T> x = {T(-0.0), 1, nan, 3, inf, T(0.1), -inf, 7, 8};
    std::vector<T> row(17), column(17);
    upsample(c.params(), x.data(), row.data());
    std::swap(c.axis[1], c.axis[2]);
    upsample(c.params(), x.data(), column.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(i);
      CHECK(same_values<T>({row[2 * i], column[2 * i]}, {x[i], x[i]}));
    }
    CHECK(row[3] != row[3]);
    CHECK(column[5] != column[5]);
    CHECK(row[15] == row[15]);
    CHECK(column[15] == column[15]);
  }
}

TEST_CASE("one element spreads over everything and gathers all gradients", "[fault-63]") {
  UpsampleCase c;
  for (const auto mode : {Axis::nearest, Axis::linear, Axis::aligned, Axis::cubic_aligned}) {
    c.axis[1].mode = mode;
    c.axis[2] = {mode, 1, 64, 0};
    const std::vector<float> x = {3}, dy(64, 1.0f);
    std::vector<float> y(64), dx(1);
    upsample(c.params(), x.data(), y.data());
    upsample_backward(c.params(), dy.data(), dx.data(), false);
    CHECK(y == std::vector<float>(64, 3.0f));
    CHECK(dx[0] == 64);
  }
}

TEST_CASE("the same size is a copy, whatever stands beside an element") {
  UpsampleCase c;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Values x = {inf, 1, nan, -2, -inf, 0.1};
  for (const auto mode : kModes)
    for (const double factor : {0.0, 1.0}) {
      c.axis[1] = {mode, 2, 2, factor};
      c.axis[2] = {mode, 3, 3, factor};
      Values y(6, 77), dx(6, 77);
      upsample(c.params(), x.data(), y.data());
      upsample_backward(c.params(), x.data(), dx.data(), false);
      CHECK(same_values(y, x));
      CHECK(same_values(dx, x));
    }
}

TEST_CASE("a million gradients of one add up to a million in float32") {
  UpsampleCase c;
  c.axis[1] = {Axis::nearest, 1, 4099, 0};
  c.axis[2] = {Axis::nearest, 1, 4111, 0};
  const std::vector<float> dy(std::size_t(c.outputs()), 1.0f);
  float dx = 0;
  upsample_backward(c.params(), dy.data(), &dx, false);
  CHECK(dx == 4099.0f * 4111.0f);
}

TEST_CASE("resizing no planes gives nothing") {
  UpsampleCase c;
  c.planes = 0;
  c.axis[2] = {Axis::linear, 3, 5, 0};
  upsample<float>(c.params(), nullptr, nullptr);
  upsample_backward<float>(c.params(), nullptr, nullptr, false);
}

TEST_CASE("resizing gives the same bits on any number of threads") {
  for (const auto mode : {Axis::nearest, Axis::linear, Axis::cubic}) {
    UpsampleCase c;
    c.planes = 3;
    if (mode != Axis::cubic) c.axis[0] = {mode, 5, 11, 0};
    c.axis[1] = {mode, 23, 17, 0};
    c.axis[2] = {mode, 61, 127, 0};
    const auto x = numbers<float>(c.inputs(), 1), dy = numbers<float>(c.outputs(), 2);
    CHECK(same_on_any_threads([&] {
      std::vector<float> y(dy.size());
      upsample(c.params(), x.data(), y.data());
      return y;
    }));
    CHECK(same_on_any_threads([&] {
      std::vector<float> dx(x.size());
      upsample_backward(c.params(), dy.data(), dx.data(), false);
      return dx;
    }));
  }
}
