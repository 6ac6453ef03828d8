#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <thread>

#include "core/random_state.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/message_of.hpp"
#include "support/values.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::Values;
using test::values;

namespace {

using Whole = std::vector<std::int64_t>;

/// Puts back what a test does to the process-wide random numbers.
struct KeptRandomState {
  detail::RandomState state = detail::random_state();
  ~KeptRandomState() { detail::set_random_state(state); }
};

}  // namespace

TEST_CASE("arange counts as PyTorch does and picks int64 for whole arguments") {
  const Tensor whole = arange(5, -3, -2);
  CHECK(whole.dtype() == DType::int64);
  CHECK(whole.to_vector<std::int64_t>() == Whole{5, 3, 1, -1});
  CHECK(arange(3).to_vector<std::int64_t>() == Whole{0, 1, 2});
  CHECK(arange(2, 2).shape() == Shape{0});
  const Tensor real = arange(0, 1, 0.1);
  CHECK(real.dtype() == DType::float32);
  CHECK(real.to_vector<float>() == std::vector<float>{0, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f});
  CHECK(arange(1, 2.5, 0.3).numel() == 5);
  CHECK(arange(0, 3, 1, DType::float64).dtype() == DType::float64);
  CHECK(arange(3.0).dtype() == DType::float32);
}

TEST_CASE("arange refuses steps that lead nowhere and ranges too long") {
  CHECK(test::message_of([] { arange(0, 5, 0); }) ==
        "arange: the step does not lead from start to end: expected a positive step, got 0");
  CHECK(test::message_of([] { arange(0, 5, -1); }) ==
        "arange: the step does not lead from start to end: expected a positive step, got -1");
  CHECK(test::message_of([] { arange(5, 0); }) ==
        "arange: the step does not lead from start to end: expected a negative step, got 1");
  CHECK(test::message_of([] { arange(0, 1e300, 1.0); }) ==
        "arange: number of elements overflows 64 bits: expected finite numbers, got start 0, end 1e+300, step 1");
  CHECK(test::message_of([] { arange(0, NAN); }) ==
        "arange: number of elements overflows 64 bits: expected finite numbers, got start 0, end nan, step 1");
  CHECK(test::message_of([] { arange(0, 3, 0.5, DType::int64); }) ==
        "arange: the number is no int64: expected a whole number, got 0.5");
}

TEST_CASE("linspace includes both ends") {
  CHECK(values(linspace(-1, 2, 7, DType::float64)) == Values{-1, -0.5, 0, 0.5, 1, 1.5, 2});
  CHECK(values(linspace(3, 5, 1, DType::float64)) == Values{3});
  CHECK(linspace(0, 1, 0).shape() == Shape{0});
  CHECK(test::message_of([] { linspace(0, 1, -2); }) ==
        "linspace: the number of steps is negative: expected >= 0, got -2");
  CHECK(test::message_of([] { linspace(0, 1, 3, DType::int64); }) ==
        "linspace: element type not supported: expected float32 or float64, got int64");
}

TEST_CASE("eye, full and their like fill as they say") {
  CHECK(values(eye(2, 3)) == Values{1, 0, 0, 0, 1, 0});
  CHECK(eye(3).shape() == Shape{3, 3});
  CHECK(eye(2, 2, DType::int64).to_vector<std::int64_t>() == Whole{1, 0, 0, 1});
  CHECK(test::message_of([] { eye(-2); }) ==
        "shape: extents must not be negative: expected >= 0, got -2 in dimension 0");
  const Tensor x = full({2, 3}, 2.5, DType::float64);
  CHECK(values(ones_like(x)) == Values(6, 1));
  CHECK(values(zeros_like(x)) == Values(6, 0));
  CHECK(values(full_like(x, 7)) == Values(6, 7));
  CHECK(empty_like(x).dtype() == DType::float64);
  CHECK(test::message_of([] { full({2}, 2.5, DType::int64); }) ==
        "full: the number is no int64: expected a whole number, got 2.5");
}

TEST_CASE("tensor reads nested lists and refuses ragged ones") {
  CHECK(tensor({{1, 2, 3}, {4, 5, 6}}).shape() == Shape{2, 3});
  CHECK(tensor({1, 2}).dtype() == DType::int64);
  CHECK(tensor({1, 2.5}).dtype() == DType::float32);
  CHECK(tensor({1, 2}, DType::float64).dtype() == DType::float64);
  CHECK(tensor({INT64_MAX, INT64_MIN}).to_vector<std::int64_t>() == Whole{INT64_MAX, INT64_MIN});
  CHECK(tensor(3.5).shape() == Shape{});
  CHECK(test::message_of([] {
          tensor({{1, 2}, {3}});
        }) == "tensor: ragged list: expected 2 elements in dimension 1, got 1");
  CHECK(test::message_of([] {
          tensor({{1, 2}, 3});
        }) == "tensor: ragged list: expected the same nesting everywhere, got numbers beside lists in dimension 0");
  CHECK(test::message_of([] { tensor({1.5}, DType::int64); }) ==
        "tensor: the number is no int64: expected a whole number, got 1.5");
  CHECK(test::message_of([] {
          from_data(std::vector<double>{1, 2, 3}, {2, 2});
        }) == "from_data: the elements do not fill the shape: expected 4 for [2, 2], got 3");
}

TEST_CASE("shapes too large are refused before anything is allocated") {
  CHECK(test::message_of([] { empty({std::int64_t(1) << 61}, DType::float64); }) ==
        "empty: number of bytes overflows 64 bits: expected below 2^63, got shape [2305843009213693952]");
  CHECK(test::message_of([] {
          zeros({(std::int64_t(1) << 60) - 1, (std::int64_t(1) << 60) - 1});
        }) ==
        "shape: number of elements overflows 64 bits: expected a product below 2^63, got 1152921504606846975 in "
        "dimension 1");
  CHECK(test::message_of([] {
          zeros({1, 1, 1, 1, 1, 1, 1, 1, 1});
        }) == "shape: too many dimensions: expected at most 8, got 9");
}

// --- random numbers -------------------------------------------------------------------------------------------------

TEST_CASE("a seed and a sequence of calls give the same numbers, another seed others") {
  const KeptRandomState kept;
  const auto draw = [](std::uint64_t seed) {
    manual_seed(seed);
    return std::vector<Values>{values(rand({7})), values(randn({5}, DType::float64)), values(randint(-3, 11, {13})),
                               values(randperm(17)), values(uniform({3}, -2, 5))};
  };
  const auto first = draw(3);
  CHECK(draw(3) == first);
  CHECK(draw(4) != first);
  CHECK(values(rand({7})) != first[0]);
}

TEST_CASE("random tensors are the same for 1, 2 and 3 threads") {
  const KeptRandomState kept;
  CHECK(test::same_on_any_threads([] {
    manual_seed(5);
    auto all = randn({40009}).to_vector<double>();
    for (const Tensor& x : {rand({30011}), uniform({20011}, -1, 3), to(randint(0, 97, {50021}), DType::float32),
                            to(randperm(10007), DType::float32)}) {
      const auto more = x.to_vector<double>();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }));
}

TEST_CASE("random numbers have the range and the moments they promise") {
  const KeptRandomState kept;
  manual_seed(11);
  const auto in_range = [](const Tensor& x, double low, double high) {
    const Values v = values(x);
    return std::all_of(v.begin(), v.end(), [=](double u) { return u >= low && u < high; });
  };
  const Tensor u = rand({100003}), n = randn({100003}, DType::float64), w = uniform({100003}, -3, 5);
  CHECK(in_range(u, 0, 1));
  CHECK(in_range(w, -3, 5));
  CHECK(mean(u).item() == Approx(0.5).margin(0.005));
  CHECK(mean(w).item() == Approx(1).margin(0.04));
  CHECK(mean(n).item() == Approx(0).margin(0.015));
  CHECK(taper::std(n).item() == Approx(1).margin(0.01));
  const Tensor k = randint(-2, 3, {100003});
  CHECK(k.dtype() == DType::int64);
  for (std::int64_t value = -2; value < 3; ++value)
    CHECK(mean(to(eq(k, value), DType::float64)).item() == Approx(0.2).margin(0.01));
  Whole order = randperm(1009).to_vector<std::int64_t>();
  CHECK(!std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  Whole expected(1009);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
  CHECK(randperm(0).shape() == Shape{0});
  CHECK(rand_like(n).dtype() == DType::float64);
  CHECK(randn_like(u).shape() == Shape{100003});
}

TEST_CASE("random functions refuse empty ranges and whole types") {
  CHECK(test::message_of([] { rand({2}, DType::int64); }) ==
        "rand: element type not supported: expected float32 or float64, got int64");
  CHECK(test::message_of([] { randn({2}, DType::int64); }) ==
        "randn: element type not supported: expected float32 or float64, got int64");
  CHECK(test::message_of([] { uniform({2}, 3, 1); }) ==
        "uniform: the range must be finite and not turned around: expected low <= high, got low 3, high 1");
  CHECK(test::message_of([] { uniform({2}, 0, INFINITY); }) ==
        "uniform: the range must be finite and not turned around: expected low <= high, got low 0, high inf");
  CHECK(test::message_of([] { randint(5, 5, {2}); }) ==
        "randint: the range is empty: expected low < high, got low 5, high 5");
  CHECK(test::message_of([] { randperm(-1); }) ==
        "shape: extents must not be negative: expected >= 0, got -1 in dimension 0");
}

TEST_CASE("threads never draw the same positions") {
  const KeptRandomState kept;
  manual_seed(1);
  std::vector<std::uint64_t> firsts[2];
  const auto take = [&](int which) {
    for (int i = 0; i < 1000; ++i) firsts[which].push_back(detail::take_positions(Stream::init, 3).position);
  };
  std::thread a(take, 0), b(take, 1);
  a.join();
  b.join();
  std::vector<std::uint64_t> all = firsts[0];
  all.insert(all.end(), firsts[1].begin(), firsts[1].end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == 3 * i);
}

TEST_CASE("the number of threads is at least one") {
  const int kept = get_num_threads();
  set_num_threads(3);
  CHECK(get_num_threads() == 3);
  CHECK(test::message_of([] { set_num_threads(0); }) ==
        "set_num_threads: the number of threads must be positive: expected >= 1, got 0");
  CHECK(get_num_threads() == 3);
  set_num_threads(kept);
}
