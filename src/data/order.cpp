#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/fail.hpp"
#include "base/random.hpp"
#include "taper/creation.hpp"
#include "taper/data.hpp"

namespace taper::data {

namespace {

std::vector<std::int64_t> counting(std::int64_t n) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

std::vector<std::int64_t> class_sizes(const std::int64_t* classes, std::int64_t n) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < n; ++i) {
    if (classes[i] >= std::int64_t(sizes.size())) sizes.resize(std::size_t(classes[i]) + 1);
    ++sizes[std::size_t(classes[i])];
  }
  return sizes;
}

/// How many samples each class gives: its share rounded down, and one more for those with the largest remainders until
/// the total is right. A class keeps at least one sample.
std::vector<std::int64_t> quotas(const std::vector<std::int64_t>& sizes, double share, std::int64_t total) {
  std::vector<std::int64_t> quota(sizes.size());
  std::vector<double> remainder(sizes.size());
  std::int64_t given = 0;
  for (std::size_t c = 0; c < sizes.size(); ++c) {
    const double exact = share * double(sizes[c]);
    quota[c] = std::int64_t(exact);
    remainder[c] = exact - double(quota[c]);
    given += quota[c];
  }
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return remainder[a] != remainder[b] ? remainder[a] > remainder[b] : a < b; });
  for (const std::size_t c : order) {
    if (given >= total) break;
    if (quota[c] + 1 >= sizes[c]) continue;
    ++quota[c];
    ++given;
  }
  return quota;
}

}  // namespace

std::pair<Dataset, Dataset> split_dataset(const Dataset& dataset, double share, std::uint64_t seed) {
  if (!(share > 0 && share < 1)) fail(ErrorKind::config, "split: share: expected a number in (0, 1), got ", share);
  const std::int64_t n = dataset.size();
  // Numbers are one class.
  const Tensor classes = dataset.has_classes() ? dataset.targets : zeros({n}, DType::int64);
  const std::int64_t* of = classes.data<std::int64_t>();
  auto left = quotas(class_sizes(of, n), share, std::llround(share * double(n)));

  std::vector<std::int64_t> order = counting(n), rest, taken;
  Generator generator{.seed = seed, .stream = Stream::split};
  shuffle(order.data(), n, generator);
  for (const std::int64_t i : order) (left[std::size_t(of[i])]-- > 0 ? taken : rest).push_back(i);
  if (rest.empty() || taken.empty())
    fail(ErrorKind::config, "split: one part would be empty: expected at least one sample in each, got ", rest.size(),
         " and ", taken.size(), " of ", n, " samples with share ", share);
  std::sort(rest.begin(), rest.end());
  std::sort(taken.begin(), taken.end());
  const auto index = [](const std::vector<std::int64_t>& v) { return from_data(v, {std::int64_t(v.size())}); };
  return {dataset.subset(index(rest)), dataset.subset(index(taken))};
}

Tensor epoch_order(std::int64_t n, std::uint64_t seed, std::int64_t epoch, bool shuffled) {
  std::vector<std::int64_t> order = counting(n);
  if (shuffled) {
    // Every epoch has a stream of its own, so that no epoch has to be drawn to know the next one.
    Generator generator{.seed = random_bits(seed, Stream::shuffle, std::uint64_t(epoch)), .stream = Stream::shuffle};
    shuffle(order.data(), n, generator);
  }
  return from_data(order, {n});
}

}  // namespace taper::data
