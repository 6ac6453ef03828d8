#include "train/monitor.hpp"

#include "support/catch.hpp"
#include "support/numbers.hpp"

using taper::test::kInf;
using taper::test::kNaN;
using taper::train::Best;

TEST_CASE("the first value is the best, then only better ones are") {
  Best best;
  CHECK(best.offer(3, 1, false));
  CHECK_FALSE(best.offer(4, 2, false));
  CHECK(best.offer(2, 3, false));
  CHECK(best.value == 2.0);
  CHECK(best.epoch == 3);
  CHECK(best.waited == 0);
  Best accuracy;
  CHECK(accuracy.offer(0.5, 1, true));
  CHECK(accuracy.offer(0.6, 2, true));
  CHECK_FALSE(accuracy.offer(0.55, 3, true));
  CHECK(accuracy.epoch == 2);
}

TEST_CASE("of equal values the first stays the best") {
  Best best;
  best.offer(2, 1, false);
  CHECK_FALSE(best.offer(2, 2, false));
  CHECK(best.epoch == 1);
  CHECK(best.waited == 1);
}

TEST_CASE("values that are not finite are never the best and never end the waiting") {
  Best first;
  CHECK_FALSE(first.offer(kNaN, 1, false));
  CHECK_FALSE(first.offer(-kInf, 2, false));
  CHECK_FALSE(first.value);
  CHECK(first.waited == 2);
  CHECK(first.offer(9, 3, false));
  CHECK_FALSE(first.offer(kNaN, 4, false));
  CHECK_FALSE(first.offer(kInf, 5, true));
  CHECK(first.waited == 2);
  CHECK(first.value == 9.0);
  CHECK(first.offer(8, 6, false));
}

TEST_CASE("a change of less than min_delta is no improvement") {
  Best best;
  best.offer(1, 1, false, 0.25);
  CHECK_FALSE(best.offer(0.75, 2, false, 0.25));
  CHECK(best.offer(0.5, 3, false, 0.25));
}
