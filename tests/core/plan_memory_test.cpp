#include "core/plan_memory.hpp"

#include <vector>

#include "support/catch.hpp"
#include "support/draw.hpp"

using taper::detail::largest_need;
using taper::detail::Lifetime;
using taper::detail::place;

namespace {

/// "" unless two arrays are in one place at the same time, or one lies outside the block.
std::string overlap(const std::vector<Lifetime>& arrays, std::size_t size) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Lifetime& a = arrays[i];
    if (a.offset % 64 != 0 || a.offset + a.bytes > size) return "array " + std::to_string(i) + " outside the block";
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& b = arrays[j];
      const bool meet = a.first <= b.last && b.first <= a.last;
      if (meet && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
        return "arrays " + std::to_string(j) + " and " + std::to_string(i);
    }
  }
  return "";
}

}  // namespace

TEST_CASE("Arrays that are not needed at the same time share memory") {
  std::vector<Lifetime> arrays = {{64, 0, 1}, {128, 1, 2}, {64, 2, 3}};
  CHECK(place(arrays) == 192);
  CHECK(largest_need(arrays) == 192);
  CHECK(arrays[1].offset == 0);
  CHECK(arrays[0].offset == 128);
  CHECK(arrays[2].offset == 128);
}

TEST_CASE("An array is put into the lowest gap that is wide enough") {
  std::vector<Lifetime> arrays = {{320, 0, 4}, {256, 0, 9}, {192, 5, 9}, {128, 5, 9}, {64, 0, 9}};
  CHECK(place(arrays) == 640);
  CHECK(arrays[0].offset == 0);
  CHECK(arrays[1].offset == 320);
  CHECK(arrays[2].offset == 0);
  CHECK(arrays[3].offset == 192);
  CHECK(arrays[4].offset == 576);
  CHECK(largest_need(arrays) == 640);
}

TEST_CASE("An array is put into the middle of a gap where that takes no more memory") {
  std::vector<Lifetime> arrays = {{1024, 0, 1}, {256, 2, 3}, {64, 3, 4}};
  CHECK(place(arrays) == 1024);
  CHECK(arrays[1].offset == 384);
  CHECK(arrays[2].offset == 128);

  std::vector<Lifetime> full = {{1024, 0, 1}, {512, 2, 3}, {512, 2, 3}};
  CHECK(place(full) == 1024);
  CHECK(full[1].offset == 0);
  CHECK(full[2].offset == 512);
}

TEST_CASE("Sizes count as multiples of 64, and nothing needs nothing") {
  std::vector<Lifetime> arrays = {{1, 0, 1}, {65, 1, 1}, {0, 0, 1}};
  CHECK(place(arrays) == 192);
  CHECK(largest_need(arrays) == 192);
  CHECK(place({}) == 0);
  CHECK(largest_need({}) == 0);
}

TEST_CASE("No placement overlaps, and random ones stay within a third of what is needed") {
  taper::test::Draw draw(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> arrays;
    for (std::int64_t i = 1 + draw.below(37); i > 0; --i) {
      const std::int64_t first = draw.below(23);
      arrays.push_back({std::size_t(draw.below(1999)), first, first + draw.below(7)});
    }
    const std::size_t size = place(arrays), needed = largest_need(arrays);
    INFO("round " << round << ", " << size << " bytes for " << needed);
    REQUIRE(overlap(arrays, size) == "");
    CHECK(size >= needed);
    CHECK(3 * size <= 4 * needed);
  }
}
