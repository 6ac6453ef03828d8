#include "taper/nn/pool_description.hpp"

#include "support/catch.hpp"
#include "taper/nn/pool.hpp"

using namespace taper;
using Row = std::vector<std::int64_t>;

namespace {

/// start, end, elements, padding, divisor, overlap of each window along a dimension.
std::vector<Row> rows(const nn::PoolDimension& dimension) {
  std::vector<Row> all;
  for (const nn::PoolWindow& w : dimension.windows)
    all.push_back({w.start, w.end, w.elements, w.padding, w.divisor, w.overlap});
  return all;
}

}  // namespace

TEST_CASE("a pool describes each window, its divisor, the overlap and the dropped tail") {
  const nn::AvgPool1d pool({.kernel_size = 3, .stride = 2, .padding = 1});
  const auto counted = pool.describe(8);
  REQUIRE(counted.dimensions.size() == 1);
  CHECK(rows(counted.dimensions[0]) ==
        std::vector<Row>{{-1, 2, 2, 1, 3, 0}, {1, 4, 3, 0, 3, 1}, {3, 6, 3, 0, 3, 1}, {5, 8, 3, 0, 3, 1}});
  CHECK(counted.dimensions[0].dropped == 0);
  CHECK(counted.divisor({0}) == 3);
  const auto plain =
      nn::AvgPool1d({.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false}).describe(8);
  CHECK(rows(plain.dimensions[0])[0] == Row{-1, 2, 2, 1, 2, 0});
  CHECK(plain.divisor({0}) == 2);
  // The tail is what floor leaves over; ceil_mode takes it in, with what hangs over not counted.
  const auto floor = nn::AvgPool1d({.kernel_size = 3}).describe(8),
             ceil = nn::AvgPool1d({.kernel_size = 3, .ceil_mode = true}).describe(8);
  CHECK(floor.dimensions[0].dropped == 2);
  CHECK(ceil.dimensions[0].dropped == 0);
  CHECK(rows(ceil.dimensions[0]).back() == Row{6, 8, 2, 0, 2, 0});
}

TEST_CASE("a pool of several dimensions describes each, and divides by the product") {
  const auto pool =
      nn::AvgPool2d({.kernel_size = {2, 3}, .stride = {3, 2}, .padding = {{0, 1}, {1, 0}}}).describe({5, 7});
  REQUIRE(pool.dimensions.size() == 2);
  CHECK(rows(pool.dimensions[0]) == std::vector<Row>{{0, 2, 2, 0, 2, 0}, {3, 5, 2, 0, 2, 0}});
  CHECK(rows(pool.dimensions[1]) == std::vector<Row>{{-1, 2, 2, 1, 3, 0}, {1, 4, 3, 0, 3, 1}, {3, 6, 3, 0, 3, 1}});
  CHECK(pool.dimensions[1].dropped == 1);
  CHECK(pool.divisor({1, 2}) == 6);
  CHECK_THROWS_WITH(pool.divisor({1}), "divisor: one index for each spatial dimension: expected 2, got 1");
  CHECK_THROWS_WITH(pool.divisor({1, 3}), "divisor: no such output: expected an index below 3, got 3");
  const auto fixed = nn::AvgPool3d({.kernel_size = 2, .divisor_override = 5}).describe({3, 5, 7});
  CHECK(fixed.divisor({0, 1, 2}) == 5);
}

TEST_CASE("a dilated pool describes the elements it takes, not those it steps over") {
  const auto even = nn::AvgPool1d({.kernel_size = 3, .stride = 2, .padding = 1, .dilation = 2}).describe(8);
  // Taps -1 1 3, 1 3 5, 3 5 7: neighbours share two elements but the padding.
  CHECK(rows(even.dimensions[0]) == std::vector<Row>{{-1, 4, 2, 1, 3, 0}, {1, 6, 3, 0, 3, 2}, {3, 8, 3, 0, 3, 2}});
  const auto odd = nn::AvgPool1d({.kernel_size = 2, .stride = 1, .dilation = 2}).describe(5);
  CHECK(rows(odd.dimensions[0]) == std::vector<Row>{{0, 3, 2, 0, 2, 0}, {1, 4, 2, 0, 2, 0}, {2, 5, 2, 0, 2, 0}});
  // A later window may reach less far than one before it: taps 0 3, then 2 (5).
  const auto short_end = nn::AvgPool1d({.kernel_size = 2, .stride = 2, .dilation = 3, .ceil_mode = true}).describe(5);
  CHECK(rows(short_end.dimensions[0]) == std::vector<Row>{{0, 4, 2, 0, 2, 0}, {2, 5, 1, 0, 1, 0}});
  CHECK(short_end.dimensions[0].dropped == 1);
}

TEST_CASE("an adaptive pool describes its uneven windows") {
  const auto pool = nn::AdaptiveAvgPool1d({.output_size = 3}).describe(7);
  CHECK(rows(pool.dimensions[0]) == std::vector<Row>{{0, 3, 3, 0, 3, 0}, {2, 5, 3, 0, 3, 1}, {4, 7, 3, 0, 3, 1}});
  const auto kept = nn::AdaptiveAvgPool2d({.output_size = {std::nullopt, 2}}).describe({3, 5});
  CHECK(kept.dimensions[0].windows.size() == 3);
  CHECK(rows(kept.dimensions[1]) == std::vector<Row>{{0, 3, 3, 0, 3, 0}, {2, 5, 3, 0, 3, 1}});
  CHECK(kept.divisor({2, 1}) == 3);
  const auto none = nn::AdaptiveAvgPool3d({.output_size = {2, 0, 1}}).describe({3, 5, 7});
  CHECK(none.dimensions[1].windows.empty());
  CHECK(none.dimensions[1].dropped == 5);
}

TEST_CASE("a description is a table to read") {
  CHECK(nn::AvgPool1d({.kernel_size = 3, .stride = 2, .padding = 1}).describe(9).to_string() ==
        R"(AvgPool1d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=false, count_include_pad=true)
padding counts in the divisor
input 9, output 5, dropped 0
window  positions  elements  padding  divisor  overlap
     0    [-1, 2)         2        1        3        -
     1     [1, 4)         3        0        3        1
     2     [3, 6)         3        0        3        1
     3     [5, 8)         3        0        3        1
     4    [7, 10)         2        1        3        1
)");
  CHECK(
      nn::AvgPool2d({.kernel_size = {2, 3}, .count_include_pad = false}).describe({3, 4}).to_string() ==
      R"(AvgPool2d(kernel_size=[2, 3], stride=null, padding=0, dilation=1, ceil_mode=false, count_include_pad=false, divisor_override=null)
padding does not count in the divisor, which is the product over the dimensions
dimension 0: input 3, output 1, dropped 1
window  positions  elements  padding  divisor  overlap
     0     [0, 2)         2        0        2        -
dimension 1: input 4, output 1, dropped 1
window  positions  elements  padding  divisor  overlap
     0     [0, 3)         3        0        3        -
)");
  CHECK(
      nn::AvgPool2d({.kernel_size = 2, .divisor_override = 3}).describe({3, 2}).to_string() ==
      R"(AvgPool2d(kernel_size=2, stride=null, padding=0, dilation=1, ceil_mode=false, count_include_pad=true, divisor_override=3)
divisor 3 for every window
dimension 0: input 3, output 1, dropped 1
window  positions  elements  padding  overlap
     0     [0, 2)         2        0        -
dimension 1: input 2, output 1, dropped 0
window  positions  elements  padding  overlap
     0     [0, 2)         2        0        -
)");
}

TEST_CASE("a long table leaves out its middle") {
  const std::string text = nn::AvgPool1d({.kernel_size = 1}).describe(101).to_string();
  CHECK(text.find("\n    31    [31, 32)") != std::string::npos);
  CHECK(text.find("\n   ...") != std::string::npos);
  CHECK(text.find("[32, 33)") == std::string::npos);
  CHECK(text.find("[68, 69)") == std::string::npos);
  CHECK(text.find("\n    69    [69, 70)") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3 + 1 + 64 + 1);
  const std::string whole = nn::AvgPool1d({.kernel_size = 1}).describe(64).to_string();
  CHECK(whole.find("...") == std::string::npos);
}

TEST_CASE("a description refuses what the pool refuses, and more windows than memory is worth") {
  CHECK_THROWS_WITH(nn::AvgPool1d({.kernel_size = 3}).describe(2),
                    "avg_pool1d: output size is too small: expected >= 1, got 0; input size 2, kernel_size 3, stride "
                    "3, padding 0, dilation 1");
  CHECK_THROWS_WITH(nn::AdaptiveAvgPool2d({.output_size = 2}).describe({3, 0}),
                    "adaptive_avg_pool2d: input size must be positive: expected >= 1, got 0 in dimension 1");
  CHECK_THROWS_WITH(nn::AvgPool1d({.kernel_size = 1}).describe(1'000'001),
                    "avg_pool1d: too many windows to describe: expected <= 1000000, got 1000001");
  CHECK_THROWS_WITH(nn::AdaptiveAvgPool1d({.output_size = std::int64_t{1} << 40}).describe(3),
                    "adaptive_avg_pool1d: too many windows to describe: expected <= 1000000, got 1099511627776");
  CHECK_THROWS_WITH(nn::AvgPool2d({.kernel_size = 1}).describe({1, 2, 3}),
                    "sizes: one number for all places or one for each: expected 1 or 2, got 3");
}
