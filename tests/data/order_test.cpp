#include <algorithm>
#include <numeric>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/data.hpp"

using namespace taper;

namespace {

using Ints = std::vector<std::int64_t>;

/// Samples whose only feature is their number.
data::Dataset numbered(const Ints& classes) {
  const auto n = std::int64_t(classes.size());
  return data::make_dataset("set", arange(n).to(DType::float32).reshape({n, 1}), from_data(classes, {n}), true);
}

Ints numbers(const data::Dataset& set) { return set.inputs.to_vector<std::int64_t>(); }

std::int64_t count(const data::Dataset& set, std::int64_t label) {
  const Ints classes = set.targets.to_vector<std::int64_t>();
  return std::count(classes.begin(), classes.end(), label);
}

}  // namespace

TEST_CASE("a split takes its share of every class and leaves every sample in one part") {
  Ints classes;
  for (int i = 0; i < 40; ++i) classes.push_back(i % 4 == 0 ? 2 : 0);  // 30 of class 0, 10 of class 2
  const auto [rest, taken] = data::split_dataset(numbered(classes), 0.3, 5);
  CHECK(taken.size() == 12);
  CHECK(count(taken, 0) == 9);
  CHECK(count(taken, 2) == 3);
  Ints all = numbers(rest);
  CHECK(std::is_sorted(all.begin(), all.end()));
  for (const std::int64_t i : numbers(taken)) all.push_back(i);
  std::sort(all.begin(), all.end());
  Ints expected(40);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

TEST_CASE("the total of a split is right when no class has a whole share") {
  // Shares 1.25, 0.75, 1.75 of 15 samples in all; rounded they would be 1, 1, 2.
  const auto [rest, taken] = data::split_dataset(numbered({0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2}), 0.25, 1);
  CHECK(taken.size() == 4);
  CHECK(count(taken, 0) == 1);
  CHECK(count(taken, 1) == 1);
  CHECK(count(taken, 2) == 2);
}

TEST_CASE("a class of one sample stays in training") {
  const auto [rest, taken] = data::split_dataset(numbered({0, 0, 0, 0, 0, 1}), 0.5, 3);
  CHECK(count(rest, 1) == 1);
  CHECK(count(taken, 0) == 3);
}

TEST_CASE("a split depends on its seed alone") {
  const data::Dataset set = numbered(Ints(53, 0));
  CHECK(numbers(data::split_dataset(set, 0.2, 7).second) == numbers(data::split_dataset(set, 0.2, 7).second));
  CHECK(numbers(data::split_dataset(set, 0.2, 7).second) != numbers(data::split_dataset(set, 0.2, 8).second));
}

TEST_CASE("numbers are split without classes") {
  const data::Dataset set = data::make_dataset("set", zeros({10, 3}), zeros({10, 2}), false);
  const auto [rest, taken] = data::split_dataset(set, 0.2, 1);
  CHECK(rest.size() == 8);
  CHECK(taken.targets.shape() == Shape{2, 2});
}

TEST_CASE("a split with an empty part is refused") {
  CHECK(test::message_of([] { data::split_dataset(numbered({0}), 0.5, 1); }) ==
        "split: one part would be empty: expected at least one sample in each, got 1 and 0 of 1 samples with share "
        "0.5");
  CHECK(test::message_of([] {
          data::split_dataset(numbered({0, 0}), 1.0, 1);
        }) == "split: share: expected a number in (0, 1), got 1");
}

TEST_CASE("the order of an epoch is a permutation and a pure function of seed and epoch") {
  const Ints first = data::epoch_order(31, 3, 0).to_vector<std::int64_t>();
  manual_seed(99);
  CHECK(data::epoch_order(31, 3, 0).to_vector<std::int64_t>() == first);
  CHECK(data::epoch_order(31, 3, 1).to_vector<std::int64_t>() != first);
  CHECK(data::epoch_order(31, 4, 0).to_vector<std::int64_t>() != first);
  Ints sorted = first;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == data::epoch_order(31, 3, 0, false).to_vector<std::int64_t>());
  CHECK(first != sorted);
}
