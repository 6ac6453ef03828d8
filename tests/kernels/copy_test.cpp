#include "kernels/copy.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

/// Whether `n` elements are copied from and to places so far behind the beginnings of two arrays, and nothing beside.
template <class T>
bool copies(std::int64_t n, std::int64_t from, std::int64_t to) {
  const auto x = numbers<T>(from + n, std::uint64_t(n), 1, 2);
  std::vector<T> y(size(to + n + 20), T(-1)), expected = y;
  std::copy(x.begin() + from, x.end(), expected.begin() + to);
  copy_elements(x.data() + from, n, y.data() + to);
  return y == expected;
}

}  // namespace

TEST_CASE("elements are copied however many they are and wherever they lie, and nothing beside them is written") {
  for (std::int64_t n = 0; n < 200; ++n)
    for (const std::int64_t from : {0, 1, 7})
      for (std::int64_t to = 0; to < 17; ++to) {
        INFO(n << " elements from " << from << " to " << to);
        CHECK(copies<float>(n, from, to));
        CHECK(copies<double>(n, from, to));
      }
  for (const std::int64_t n : {511, 512, 513, 1000, 4099, 70001})
    for (std::int64_t to = 0; to < 17; ++to) {
      INFO(n << " elements to " << to);
      CHECK(copies<float>(n, 3, to));
      CHECK(copies<double>(n, 2, to));
    }
}
