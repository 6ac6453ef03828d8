#include "base/checked.hpp"
#include "base/fail.hpp"
#include "base/random.hpp"
#include "support/catch.hpp"
#include "taper/shape.hpp"

using namespace taper;

TEST_CASE("a shape multiplies its extents and refuses what does not fit 63 bits") {
  CHECK(Shape({2, 3, 5}).numel() == 30);
  CHECK(Shape().numel() == 1);
  CHECK(Shape({7, 0, 3}).numel() == 0);
  const std::int64_t big = (std::int64_t{1} << 60) - 1;
  CHECK_THROWS_AS(Shape({big, big}), Error);
  CHECK_THROWS_AS(Shape({0, big, big}), Error);
  CHECK_THROWS_WITH(Shape({2, -3}), "shape: extents must not be negative: expected >= 0, got -3 in dimension 1");
  CHECK(Shape({1, 1, 1, 1, 1, 1, 1, 2}).rank() == 8);
  CHECK_THROWS_WITH(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), "shape: too many dimensions: expected at most 8, got 9");
}

TEST_CASE("checked arithmetic reports overflow") {
  constexpr std::int64_t top = INT64_MAX;
  CHECK_FALSE(checked::add(top, 1));
  CHECK_FALSE(checked::mul(1250999896764, 1250999896764));
  CHECK_FALSE(checked::sub(INT64_MIN, 1));
  CHECK(*checked::align(65, 64) == 128);
  CHECK_FALSE(checked::align(top, 64));
  CHECK(checked::floor_div(-3, 2) == -2);
  CHECK(checked::floor_div(3, 2) == 1);
  CHECK_FALSE(checked::to_int64(1e20));
  CHECK_FALSE(checked::to_int64(2.5));
  CHECK(*checked::to_int64(-9.0) == -9);
}

TEST_CASE("philox gives the published test vectors") {
  // Random123, kat_vectors: philox4x32 with 10 rounds.
  CHECK(philox(0, 0, 0) == std::array<std::uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  CHECK(philox(~0ull, ~0ull, ~0ull) ==
        std::array<std::uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
}
