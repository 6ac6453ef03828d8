#include "base/resample.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace taper;
using Rule = Resampling::Rule;

namespace {

std::vector<std::int64_t> firsts(const Resampling& axis) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < axis.out; ++i) all.push_back(axis.at(i).first);
  return all;
}

using Places = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("nearest takes the element at the edge, nearest-exact the one at the centre") {
  CHECK(firsts({5, 3, Rule::nearest}) == Places{0, 1, 3});
  CHECK(firsts({5, 3, Rule::nearest_exact}) == Places{0, 2, 4});
  CHECK(firsts({3, 7, Rule::nearest}) == Places{0, 0, 0, 1, 1, 2, 2});
  CHECK(firsts({3, 7, Rule::nearest_exact}) == Places{0, 0, 1, 1, 1, 2, 2});
  // By the factor 1.7, places are multiples of 1 / 1.7 and not of 5 / 8.
  CHECK(firsts({5, 8, Rule::nearest}) == Places{0, 0, 1, 1, 2, 3, 3, 4});
  CHECK(firsts({5, 8, Rule::nearest, 1 / 1.7}) == Places{0, 0, 1, 1, 2, 2, 3, 4});
}

TEST_CASE("nearest places of sizes are exact, also where quotients of floats fall short") {
  CHECK(Resampling{2, 82, Rule::nearest}.at(41).first == 1);
  const std::int64_t large = (std::int64_t{1} << 62) - 1;
  CHECK(Resampling{large, large, Rule::nearest}.at(large - 1).first == large - 1);
  CHECK(Resampling{large, 3, Rule::nearest}.at(2).first == large / 3 * 2);
  CHECK(Resampling{7, large, Rule::nearest_exact}.at(large - 1).first == 6);
}

TEST_CASE("linear places lie between centres and stay inside") {
  const Resampling doubled{3, 6, Rule::linear};
  CHECK(doubled.at(0).weight == 0);
  CHECK(doubled.at(1).first == 0);
  CHECK(doubled.at(1).weight == 0.25);
  CHECK(doubled.at(2).weight == 0.75);
  CHECK(doubled.at(5).first == 2);
  CHECK(doubled.at(5).second == 2);
  const Resampling aligned{3, 5, Rule::aligned};
  CHECK(aligned.at(1).weight == 0.5);
  CHECK(aligned.at(2).first == 1);
  CHECK(aligned.at(2).weight == 0);
  CHECK(Resampling{7, 1, Rule::aligned}.at(0).first == 0);
}

TEST_CASE("the outputs over a position are those that read it, for every rule and small size") {
  int checked = 0;
  for (const Rule rule : {Rule::nearest, Rule::nearest_exact, Rule::linear, Rule::aligned})
    for (std::int64_t in = 1; in <= 13; ++in)
      for (std::int64_t out = 1; out <= 29; ++out)
        for (const double step : {0.0, 0.3, 0.77, 2.6}) {
          const Resampling axis{in, out, rule, step};
          for (std::int64_t j = 0; j < in; ++j) {
            IndexRange expected{out, 0};
            for (std::int64_t i = 0; i < out; ++i) {
              const auto s = axis.at(i);
              const bool right =
                  s.first >= 0 && s.second < in && s.second - s.first <= 1 && s.weight >= 0 && s.weight < 1;
              if (!right) FAIL("place " << i << " of " << in << " to " << out);
              if (s.first != j && s.second != j) continue;
              expected = {std::min(expected.first, i), i + 1};
            }
            const IndexRange over = outputs_over(axis, j);
            ++checked;
            if (expected.last == 0 ? over.first != over.last
                                   : over.first != expected.first || over.last != expected.last)
              FAIL_CHECK("position " << j << " of " << in << " to " << out << ", rule " << int(rule) << ", step "
                                     << step);
          }
        }
  CHECK(checked > 40000);
}

TEST_CASE("cubic places hold the two elements on either side, and their weights add up to 1") {
  const CubicResampling doubled{{3, 6, Rule::linear}};
  const auto second = doubled.at(1);  // at 0.25
  CHECK(std::vector<std::int64_t>(second.at, second.at + 4) == Places{0, 0, 1, 2});
  CHECK(std::vector<double>(second.weight, second.weight + 4) ==
        std::vector<double>{-0.10546875, 0.87890625, 0.26171875, -0.03515625});
  const auto first = doubled.at(0);  // at -0.25
  CHECK(std::vector<std::int64_t>(first.at, first.at + 4) == Places{0, 0, 0, 1});
  const auto even = CubicResampling{{3, 3, Rule::aligned}}.at(1);
  CHECK(std::vector<double>(even.weight, even.weight + 4) == std::vector<double>{0, 1, 0, 0});
  int checked = 0;
  for (const Rule rule : {Rule::linear, Rule::aligned})
    for (std::int64_t in = 1; in <= 11; ++in)
      for (std::int64_t out = 1; out <= 23; ++out)
        for (const double step : {0.0, 0.3, 0.77, 2.6}) {
          const CubicResampling axis{{in, out, rule, step}};
          for (std::int64_t j = 0; j < in; ++j) {
            const IndexRange over = outputs_over(axis, j);
            for (std::int64_t i = 0; i < out; ++i) {
              const auto s = axis.at(i);
              const bool reads = std::find(s.at, s.at + 4, j) != s.at + 4;
              const double sum = s.weight[0] + s.weight[1] + s.weight[2] + s.weight[3];
              if (std::abs(sum - 1) > 1e-14 || s.first != s.at[0] || s.second != s.at[3] || s.first < 0 ||
                  s.second >= in || s.second - s.first > 3 || !std::is_sorted(s.at, s.at + 4))
                FAIL("place " << i << " of " << in << " to " << out);
              if (reads && (i < over.first || i >= over.last))
                FAIL_CHECK("position " << j << " of " << in << " to " << out << ", step " << step);
              ++checked;
            }
          }
        }
  CHECK(checked > 100000);
}

TEST_CASE("places by a factor never fall, far out too") {
  for (const double step : {1.0 / 3, 0.999999, 1.7})
    for (const Rule rule : {Rule::nearest, Rule::nearest_exact, Rule::linear}) {
      const Resampling axis{std::int64_t{1} << 40, std::int64_t{1} << 40, rule, step};
      for (const std::int64_t around :
           {std::int64_t{1} << 20, 3 * (std::int64_t{1} << 20), std::int64_t{1} << 23, std::int64_t{1} << 30})
        for (std::int64_t i = around - 2000; i < around + 2000; ++i)
          if (axis.at(i + 1).first < axis.at(i).first) FAIL_CHECK("at " << i << ", step " << step);
    }
}
