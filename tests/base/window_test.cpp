#include "base/window.hpp"

#include <array>
#include <optional>
#include <vector>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "taper/error.hpp"

using namespace taper;

namespace {

constexpr std::int64_t kTop = INT64_MAX;

Window1d pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0, bool ceil_mode = false,
              std::int64_t dilation = 1) {
  return {kernel, stride, padding, padding, dilation, ceil_mode};
}

void check(const char* where, std::vector<Window1d> windows) { check_options(where, windows, WindowKind::pool); }

std::vector<std::int64_t> sizes(const char* where, std::vector<Window1d> windows, std::vector<std::int64_t> input,
                                WindowKind kind = WindowKind::pool) {
  std::vector<std::int64_t> output(input.size());
  output_size(where, windows, kind, input, output);
  return output;
}

std::int64_t length(const Window1d& window, std::int64_t input, WindowKind kind = WindowKind::pool) {
  return sizes(kind == WindowKind::pool ? "avg_pool1d" : "conv1d", {window}, {input}, kind)[0];
}

ErrorKind kind_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  FAIL("nothing was thrown");
  return {};
}

/// The number of windows by the definition, without a formula: count the starts that are admitted.
std::optional<std::int64_t> counted_windows(std::int64_t length, std::int64_t k, std::int64_t s, std::int64_t p,
                                            bool ceil_mode) {
  if (length < 1 || k < 1 || s < 1 || p > k / 2) return std::nullopt;
  std::int64_t n = 0;
  if (!ceil_mode)
    for (std::int64_t start = -p; start + k <= length + p; start += s) ++n;
  else
    // A window is needed while the one before has not reached the padded input's end.
    for (std::int64_t start = -p;
         (start == -p ? start + k < length + p + s : start - s + k < length + p) && start < length; start += s)
      ++n;
  if (n == 0) return std::nullopt;
  return n;
}

}  // namespace

TEST_CASE("window options are refused with the parameter, its rule and its value") {
  CHECK_THROWS_WITH(check("avg_pool1d", {pool(3, 0)}), "avg_pool1d: stride must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(check("avg_pool1d", {pool(3, -2)}), "avg_pool1d: stride must be positive: expected >= 1, got -2");
  CHECK_THROWS_WITH(check("avg_pool1d", {pool(0, 2)}),
                    "avg_pool1d: kernel_size must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(check("max_pool1d", {pool(3, 2, 1, false, 0)}),
                    "max_pool1d: dilation must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(check("avg_pool1d", {pool(3, 2, -1)}),
                    "avg_pool1d: padding must not be negative: expected >= 0, got -1");
  CHECK_THROWS_WITH(check("avg_pool2d", {pool(3, 2, 2), pool(3, 2, 2)}),
                    "avg_pool2d: padding must be at most half the kernel size: expected <= 1, got 2");
  CHECK_THROWS_WITH(check("max_pool1d", {pool(3, 2, 2, false, 5)}),
                    "max_pool1d: padding must be at most half the kernel size: expected <= 1, got 2");
  CHECK_THROWS_WITH(check("max_pool1d", {pool(1250999896764, 1, 0, false, 1250999896764)}),
                    "max_pool1d: dilated kernel overflows 64 bits: expected dilation * (kernel_size - 1) + 1 below "
                    "2^63, got dilation 1250999896764 and kernel_size 1250999896764");
  CHECK(kind_of([] { check("avg_pool1d", {pool(3, 0)}); }) == ErrorKind::config);
  CHECK(kind_of([] { check("max_pool1d", {pool(kTop, 1, 0, false, 2)}); }) == ErrorKind::config);
}

TEST_CASE("an error names the dimension when the dimensions differ") {
  CHECK_THROWS_WITH(check("avg_pool2d", {pool(3, 2), pool(3, 0)}),
                    "avg_pool2d: stride must be positive: expected >= 1, got 0 in dimension 1");
  CHECK_THROWS_WITH(check("avg_pool2d", {pool(3, 0), pool(3, 0)}),
                    "avg_pool2d: stride must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(check("max_pool3d", {pool(2, 1), pool(2, 1), pool(0, 1)}),
                    "max_pool3d: kernel_size must be positive: expected >= 1, got 0 in dimension 2");
  CHECK_THROWS_WITH(check("max_pool3d", {pool(2, 1), pool(2, 1), pool(-1, 1)}),
                    "max_pool3d: kernel_size must be positive: expected >= 1, got -1 in dimension 2");
  CHECK_THROWS_WITH(check("avg_pool2d", {pool(3, 2, 1), pool(5, 2, 3)}),
                    "avg_pool2d: padding must be at most half the kernel size: expected <= 2, got 3 in dimension 1");
  CHECK_THROWS_WITH(check("avg_pool2d", {pool(3, 2, 1), pool(3, 2, -1)}),
                    "avg_pool2d: padding must not be negative: expected >= 0, got -1 in dimension 1");
}

TEST_CASE("the first bad option is the one reported") {
  CHECK_THROWS_WITH(check("avg_pool1d", {pool(kTop, -1, 0, true)}),
                    "avg_pool1d: stride must be positive: expected >= 1, got -1");
  // A stride that was left out repeats the kernel: the kernel is at fault.
  CHECK_THROWS_WITH(check("avg_pool2d", {pool(0, 0), pool(0, 0)}),
                    "avg_pool2d: kernel_size must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(check("avg_pool2d", {pool(0, 1), pool(2, 0)}),
                    "avg_pool2d: stride must be positive: expected >= 1, got 0 in dimension 1");
  CHECK_THROWS_WITH(check("max_pool1d", {pool(0, 1, -1, false, 0)}),
                    "max_pool1d: kernel_size must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(check("max_pool1d", {pool(2, 1, -1, false, 0)}),
                    "max_pool1d: dilation must be positive: expected >= 1, got 0");
}

TEST_CASE("an input is refused when it is empty or gives no window") {
  CHECK_THROWS_WITH(length(pool(2, 1), 0), "avg_pool1d: input size must be positive: expected >= 1, got 0");
  CHECK_THROWS_WITH(sizes("avg_pool2d", {pool(1, 1), pool(1, 1)}, {5, 0}),
                    "avg_pool2d: input size must be positive: expected >= 1, got 0 in dimension 1");
  CHECK_THROWS_WITH(sizes("avg_pool2d", {pool(2, 2), pool(2, 2)}, {-536870912, -536870912}),
                    "avg_pool2d: input size must be positive: expected >= 1, got -536870912 in dimension 0");
  CHECK_THROWS_WITH(sizes("max_pool1d", {pool(4, 1, 0, true)}, {1}),
                    "max_pool1d: output size is too small: expected >= 1, got -2; input size 1, kernel_size 4, "
                    "stride 1, padding 0, dilation 1");
  CHECK_THROWS_WITH(sizes("max_pool1d", {pool(2, 2)}, {1}),
                    "max_pool1d: output size is too small: expected >= 1, got 0; input size 1, kernel_size 2, "
                    "stride 2, padding 0, dilation 1");
  CHECK_THROWS_WITH(sizes("avg_pool2d", {pool(2, 1), pool(7, 3, 1)}, {5, 3}),
                    "avg_pool2d: output size is too small: expected >= 1, got [4, 0]; input size [5, 3], kernel_size "
                    "[2, 7], stride [1, 3], padding [0, 1], dilation [1, 1]");
  CHECK_THROWS_WITH(length(pool(kTop, 1, kTop / 2), 5),
                    "avg_pool1d: padded input overflows 64 bits: expected a size below 2^63, got input size 5 and "
                    "padding 4611686018427387903");
  CHECK(kind_of([] { length(pool(4, 1, 0, true), 1); }) == ErrorKind::shape);
  CHECK(kind_of([] { length(pool(2, 1), 0); }) == ErrorKind::shape);
  // Bad options come before a bad input.
  CHECK_THROWS_WITH(length(pool(3, 0), 0), "avg_pool1d: stride must be positive: expected >= 1, got 0");
}

TEST_CASE("a convolution may pad further and on one side, and never rounds up") {
  const auto conv = [](Window1d w, std::int64_t input) { return length(w, input, WindowKind::convolution); };
  CHECK(conv({3, 2, 1, 1, 1, false}, 5) == 3);
  CHECK(conv({3, 1, 0, 0, 2, false}, 7) == 3);
  CHECK(conv({2, 1, 7, 3, 1, false}, 5) == 14);
  CHECK_THROWS_WITH(conv({3, 1, 0, 0, 2, false}, 3),
                    "conv1d: padded input is smaller than the dilated kernel: expected >= 5, got 3");
  CHECK_THROWS_WITH(sizes("conv2d", {{2, 1}, {5, 1, 1, 0, 1, false}}, {3, 3}, WindowKind::convolution),
                    "conv2d: padded input is smaller than the dilated kernel: expected >= 5, got 4 in dimension 1");
  CHECK_THROWS_WITH(conv({2, 1, 1, -1, 1, false}, 5), "conv1d: padding must not be negative: expected >= 0, got -1");
  CHECK_THROWS_WITH(conv({1, 1, 1, 1, 1, false}, 0), "conv1d: input size must be positive: expected >= 1, got 0");
}

TEST_CASE("same padding keeps the size, the odd zero on the right") {
  for (std::int64_t k = 1; k <= 5; ++k)
    for (std::int64_t d = 1; d <= 3; ++d) {
      Window1d w{k, 1, 9, 9, d, false};
      pad_same("conv1d", {&w, 1});
      CHECK(w.padding_left == d * (k - 1) / 2);
      CHECK(w.padding_right == d * (k - 1) - w.padding_left);
      CHECK(length(w, 7, WindowKind::convolution) == 7);
    }
  std::array<Window1d, 2> strided{Window1d{3, 1}, Window1d{3, 2}};
  CHECK_THROWS_WITH(pad_same("conv2d", strided),
                    "conv2d: padding 'same' needs stride 1: expected 1, got 2 in dimension 1");
}

TEST_CASE("output sizes of known cases") {
  CHECK(length(pool(3, 2, 0, true), 2) == 1);
  CHECK(length(pool(3, 1, 1), 2) == 2);
  CHECK(length(pool(6, 6, 0, true), 5) == 1);
  CHECK_THROWS(length(pool(6, 1, 0, true), 5));
  CHECK(length(pool(2, 7, 1, true), 6) == 1);
  CHECK(length(pool(1, 3, 0, true), 2) == 1);
  CHECK(length(pool(1, 2, 0, true), 4) == 2);
  CHECK(sizes("avg_pool2d", {pool(1, 2, 0, true), pool(2, 2, 1, true)}, {4, 4}) == std::vector<std::int64_t>{2, 3});
  CHECK(sizes("avg_pool3d", {pool(1, 2, 0, true), pool(2, 2, 0, true), pool(3, 2, 0, true)}, {4, 4, 4}) ==
        std::vector<std::int64_t>{2, 2, 2});
  CHECK(sizes("max_pool2d", {pool(3, 4, 0, true), pool(3, 4, 0, true)}, {8, 10}) == std::vector<std::int64_t>{2, 3});
  CHECK(sizes("max_pool2d", {pool(3, 3, 1, true), pool(3, 3, 1, true)}, {5, 5}) == std::vector<std::int64_t>{2, 2});
  const std::int64_t wide = std::int64_t{1} << 31;
  CHECK(sizes("avg_pool2d", {pool(3, wide), pool(3, wide)}, {50, 32}) == std::vector<std::int64_t>{1, 1});
  CHECK(sizes("avg_pool3d", {pool(2, 1, 0), pool(3, 2, 1), pool(5, 3, 2)}, {7, 11, 13}) ==
        std::vector<std::int64_t>{6, 6, 5});
}

TEST_CASE("output sizes at the edge of 64 bits neither wrap nor trap") {
  for (const bool ceil_mode : {false, true})
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{2}, kTop / 2, kTop - 1, kTop})
      for (const std::int64_t s : {std::int64_t{1}, kTop / 2 + 2, kTop - 1, kTop})
        for (const std::int64_t input : {std::int64_t{1}, kTop / 2, kTop - 1, kTop}) {
          __extension__ using int128 = __int128;
          const int128 travel = int128{input} - k;
          int128 steps = travel / s - (travel % s < 0 ? 1 : 0);
          if (ceil_mode && travel % s != 0) ++steps;
          if (ceil_mode && steps * s >= input) --steps;
          CAPTURE(ceil_mode, k, s, input);
          if (steps + 1 < 1) {
            CHECK_THROWS_AS(length(pool(k, s, 0, ceil_mode), input), Error);
            continue;
          }
          const std::int64_t outputs = length(pool(k, s, 0, ceil_mode), input);
          CHECK(int128{outputs} == steps + 1);
          const auto last = window_bounds(pool(k, s, 0, ceil_mode), input, outputs - 1);
          CHECK(last.first < last.last);
          CHECK(last.end <= input);
        }
  CHECK(length(pool(std::int64_t{1} << 61, 1, std::int64_t{1} << 60), 5) == 6);
}

TEST_CASE("of 10400 average pools 3224 are valid and every window of theirs touches the input", "[fault-7]") {
  int valid = 0, refused = 0;
  for (std::int64_t input = 0; input <= 12; ++input)
    for (std::int64_t k = 0; k <= 7; ++k)
      for (std::int64_t s = 0; s <= 4; ++s)
        for (std::int64_t p = 0; p <= 4; ++p)
          for (const bool ceil_mode : {false, true})
            for (const bool count_include_pad : {false, true}) {
              const Window1d w = pool(k, s, p, ceil_mode);
              const auto expected = counted_windows(input, k, s, p, ceil_mode);
              CAPTURE(input, k, s, p, ceil_mode);
              std::int64_t outputs = 0;
              try {
                outputs = length(w, input);
              } catch (const Error&) {
                ++refused;
                if (expected) FAIL("refused a valid pool");
                continue;
              }
              ++valid;
              if (!expected || *expected != outputs) FAIL("output length " << outputs);
              for (std::int64_t i = 0; i < outputs; ++i) {
                const auto b = window_bounds(w, input, i);
                if (b.start != i * s - p || b.end > b.start + k || b.end > input + p || b.first >= b.last ||
                    b.first < 0 || b.last > input || b.counted(count_include_pad) < 1)
                  FAIL("window " << i);
              }
            }
  CHECK(valid == 3224);
  CHECK(refused == 7176);
}

TEST_CASE("the windows over a position are those whose bounds hold it") {
  bool wrong = false;
  for (std::int64_t input = 1; input <= 11; ++input)
    for (std::int64_t k = 1; k <= 7; ++k)
      for (std::int64_t s = 1; s <= 5; ++s)
        for (std::int64_t p = 0; p <= k / 2; ++p)
          for (const bool ceil_mode : {false, true}) {
            const Window1d w = pool(k, s, p, ceil_mode);
            const auto outputs = counted_windows(input, k, s, p, ceil_mode);
            if (!outputs) continue;
            for (std::int64_t i = 0; i < input; ++i) {
              const IndexRange over = windows_over(w, *outputs, i);
              for (std::int64_t o = 0; o < *outputs; ++o) {
                const auto b = window_bounds(w, input, o);
                wrong |= (b.first <= i && i < b.last) != (over.first <= o && o < over.last);
              }
            }
          }
  for (std::int64_t input = 1; input <= 17; ++input)
    for (std::int64_t outputs = 1; outputs <= 19; ++outputs)
      for (std::int64_t i = 0; i < input; ++i) {
        const IndexRange over = adaptive_windows_over(input, outputs, i);
        for (std::int64_t o = 0; o < outputs; ++o) {
          const auto b = adaptive_bounds(input, outputs, o);
          wrong |= (b.first <= i && i < b.last) != (over.first <= o && o < over.last);
        }
      }
  CHECK_FALSE(wrong);
}

TEST_CASE("adaptive windows end at the ceiling") {
  const auto bounds = [](std::int64_t input, std::int64_t outputs) {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (std::int64_t i = 0; i < outputs; ++i) {
      const auto b = adaptive_bounds(input, outputs, i);
      all.emplace_back(b.first, b.last);
    }
    return all;
  };
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(bounds(10, 3) == Pairs{{0, 4}, {3, 7}, {6, 10}});
  CHECK(bounds(5, 3) == Pairs{{0, 2}, {1, 4}, {3, 5}});
  CHECK(bounds(3, 7) == Pairs{{0, 1}, {0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}, {2, 3}});
  // 224 -> 13: 4 * 224 / 13 = 68.9, 5 * 224 / 13 = 86.2.
  CHECK(adaptive_bounds(224, 13, 4).first == 68);
  CHECK(adaptive_bounds(224, 13, 4).last == 87);
}

TEST_CASE("adaptive windows of long inputs are exact") {
  // The last window ends with the input, where 32-bit and floating-point products go wrong.
  for (const auto& [input, outputs] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{70000, 40000},
                                                          {5877, 2855},
                                                          {4757, 3527},
                                                          {560, 2219},
                                                          {kTop, kTop - 1},
                                                          {std::int64_t{1} << 62, 12345677}}) {
    CAPTURE(input, outputs);
    const auto last = adaptive_bounds(input, outputs, outputs - 1);
    CHECK(last.last == input);
    CHECK(last.first < input);
    CHECK(adaptive_bounds(input, outputs, 0).first == 0);
    __extension__ using int128 = __int128;
    const std::int64_t middle = outputs / 2 + 1;
    CHECK(adaptive_bounds(input, outputs, middle).first == std::int64_t(int128{middle} * input / outputs));
  }
}

TEST_CASE("adaptive output sizes may be zero but not negative") {
  const auto adaptive = [](const char* where, std::vector<std::int64_t> output) { check_adaptive(where, output); };
  CHECK_NOTHROW(adaptive("adaptive_avg_pool1d", {0}));
  CHECK_THROWS_WITH(adaptive("adaptive_avg_pool1d", {-2}),
                    "adaptive_avg_pool1d: output_size must not be negative: expected >= 0, got -2");
  CHECK_THROWS_WITH(adaptive("adaptive_avg_pool2d", {576460752303423488, -274877906944}),
                    "adaptive_avg_pool2d: output_size must not be negative: expected >= 0, got -274877906944 in "
                    "dimension 1");
  CHECK(kind_of([&] { adaptive("adaptive_avg_pool1d", {-2}); }) == ErrorKind::config);
  const std::array<std::int64_t, 2> empty{5, 0};
  CHECK_THROWS_WITH(check_adaptive_input("adaptive_avg_pool2d", empty),
                    "adaptive_avg_pool2d: input size must be positive: expected >= 1, got 0 in dimension 1");
}

TEST_CASE("a transposed convolution's output has the convolution's input size, up to what the stride leaves open") {
  int checked = 0;
  for (std::int64_t k = 1; k <= 5; ++k)
    for (std::int64_t s = 1; s <= 4; ++s)
      for (std::int64_t p = 0; p <= 4; ++p)
        for (std::int64_t d = 1; d <= 3; ++d)
          for (std::int64_t input = 1; input <= 13; ++input) {
            const Window1d window{k, s, p, p, d, false};
            if (input + 2 * p < d * (k - 1) + 1) continue;
            const std::int64_t output = length(window, input, WindowKind::convolution);
            // What the windows of the convolution do not reach at the end is the output padding.
            const std::int64_t rest = (input + 2 * p - d * (k - 1) - 1) % s;
            std::int64_t back = 0;
            transposed_output_size("t", {&window, 1}, {&rest, 1}, {&output, 1}, {&back, 1});
            CHECK(back == input);
            ++checked;
          }
  CHECK(checked > 2000);
}

TEST_CASE("sizes of transposed convolutions name what does not fit") {
  const auto error = [](std::vector<Window1d> windows, std::vector<std::int64_t> added, std::vector<std::int64_t> in) {
    return test::message_of([&] {
      std::vector<std::int64_t> out(in.size());
      transposed_output_size("t", windows, added, in, out);
    });
  };
  CHECK(error({{3, 2}, {2, 0}}, {0, 0}, {5, 7}) == "t: stride must be positive: expected >= 1, got 0 in dimension 1");
  CHECK(error({{3, 2}, {2, 1}}, {0, -1}, {5, 7}) ==
        "t: output_padding must not be negative: expected >= 0, got -1 in dimension 1");
  CHECK(error({{3, 2}, {2, 1}}, {1, 1}, {5, 7}) ==
        "t: output_padding must be less than stride or dilation: expected < 1, got 1 in dimension 1; stride 1, "
        "dilation 1");
  CHECK(error({{3, 2}, {2, 1}}, {1, 0}, {5, 0}) ==
        "t: input size must be positive: expected >= 1, got 0 in dimension 1");
  CHECK(error({{3, 1, 4, 4}}, {0}, {6}) ==
        "t: output size is too small: expected >= 1, got 0; input size 6, kernel_size 3, stride 1, padding 4, "
        "dilation 1");
  CHECK(error({{1, kTop}}, {kTop - 1}, {2}) ==
        "t: output size overflows 64 bits: expected below 2^63, got input size 2, kernel_size 1, stride "
        "9223372036854775807, padding 0, dilation 1");
  CHECK(error({{2, 1, kTop, kTop}}, {0}, {2}) ==
        "t: output size overflows 64 bits: expected below 2^63, got input size 2, kernel_size 2, stride 1, padding "
        "9223372036854775807, dilation 1");
  CHECK(error({{1, kTop}}, {0}, {2}) ==
        "t: output size overflows 64 bits: expected below 2^63, got input size 2, "
        "kernel_size 1, stride 9223372036854775807, padding 0, dilation 1");
}

TEST_CASE("an average pool's padding reaches to half its dilated kernel, a max pool's to half its kernel") {
  const auto refusal = [](Window1d window, WindowKind kind) -> std::string {
    try {
      check_options("pool", std::array{window}, kind);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Window1d dilated{3, 1, 2, 2, 2, false};
  CHECK(refusal(dilated, WindowKind::average_pool) == "");
  CHECK(refusal(dilated, WindowKind::convolution) == "");
  CHECK(refusal(dilated, WindowKind::pool) ==
        "pool: padding must be at most half the kernel size: expected <= 1, got 2");
  CHECK(refusal({3, 1, 0, 3, 2, false}, WindowKind::average_pool) ==
        "pool: padding must be at most half the dilated kernel: expected <= 2, got 3");
  CHECK(refusal({3, 1, 0, 2, 1, false}, WindowKind::average_pool) ==
        "pool: padding must be at most half the kernel size: expected <= 1, got 2");
  CHECK(refusal({3, 1, 0, -1, 1, false}, WindowKind::average_pool) ==
        "pool: padding must not be negative: expected >= 0, got -1");
  CHECK(refusal({kTop, 1, 0, 0, 2, false}, WindowKind::average_pool).starts_with("pool: dilated kernel overflows"));
  // "same" is at most half the dilated kernel, whatever the kernel.
  for (std::int64_t k = 1; k <= 7; ++k)
    for (std::int64_t d = 1; d <= 4; ++d) {
      Window1d window{k, 1, 0, 0, d, false};
      pad_same("pool", {&window, 1});
      CHECK(refusal(window, WindowKind::average_pool) == "");
    }
}

TEST_CASE("a size error shows paddings that differ between the sides") {
  CHECK_THROWS_WITH(
      sizes("avg_pool2d", {{3, 1, 1, 0, 1, false}, {5, 1, 0, 0, 1, false}}, {5, 3}, WindowKind::average_pool),
      "avg_pool2d: output size is too small: expected >= 1, got [4, -1]; input size [5, 3], kernel_size "
      "[3, 5], stride [1, 1], padding [[1, 0], 0], dilation [1, 1]");
}

TEST_CASE("taps and what they count are those found by looking at each") {
  bool wrong = false;
  for (std::int64_t input = 1; input <= 9; ++input)
    for (std::int64_t k = 1; k <= 5; ++k)
      for (std::int64_t d = 1; d <= 4; ++d)
        for (std::int64_t left = 0; left <= (d * (k - 1) + 1) / 2; ++left)
          for (const std::int64_t right : {std::int64_t{0}, left / 2, (d * (k - 1) + 1) / 2})
            for (const bool ceil_mode : {false, true}) {
              const Window1d w{k, 2, left, right, d, ceil_mode};
              std::int64_t outputs = 0;
              try {
                outputs = length(w, input, WindowKind::average_pool);
              } catch (const Error&) {
                continue;
              }
              for (std::int64_t o = 0; o < outputs; ++o) {
                const std::int64_t start = 2 * o - left;
                std::int64_t inside = 0, padded = 0, before = 0;
                for (std::int64_t tap = 0; tap < k; ++tap) {
                  const std::int64_t at = start + tap * d;
                  before += at < 0;
                  inside += at >= 0 && at < input;
                  padded += at < input + right;
                }
                const IndexRange taps = taps_between(w, start, 0, input);
                wrong |= taps.first != before || taps.last - taps.first != inside;
                wrong |= counted_taps(w, input, o, false) != inside || counted_taps(w, input, o, true) != padded;
              }
            }
  CHECK_FALSE(wrong);
  // At the edge of 64 bits.
  const Window1d wide{2, 1, kTop / 2, 0, kTop - 1, false};
  CHECK(taps_between(wide, -(kTop / 2), 0, 5).first == 1);
  CHECK(taps_between(wide, 4, 0, kTop).last == 1);
}
