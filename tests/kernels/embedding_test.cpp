#include "kernels/embedding.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using kernels::EmbeddingParams;

namespace {

std::vector<std::int64_t> random_indices(std::int64_t count, std::int64_t rows, std::uint64_t seed) {
  std::vector<std::int64_t> index(std::size_t(count), 0);
  for (std::size_t i = 0; i < index.size(); ++i)
    index[i] = std::int64_t(random_bits(seed, Stream::data, i) % std::uint64_t(rows));
  return index;
}

/// The definition, in double and in the order of the indices.
std::vector<double> summed_rows(const EmbeddingParams& p, const std::vector<std::int64_t>& index,
                                const std::vector<double>& dy, std::vector<double> dw) {
  std::vector<double> times(std::size_t(p.rows), 0), sums(dw.size(), 0);
  for (const std::int64_t row : index) times[std::size_t(row)] += 1;
  for (std::size_t j = 0; j < index.size(); ++j)
    for (std::int64_t i = 0; i < p.width; ++i)
      if (index[j] != p.padding_row)
        sums[std::size_t(index[j] * p.width + i)] += dy[j * std::size_t(p.width) + std::size_t(i)];
  for (std::size_t k = 0; k < dw.size(); ++k) {
    const double n = times[k / std::size_t(p.width)];
    dw[k] += p.by_frequency && n > 0 ? sums[k] / n : sums[k];
  }
  return dw;
}

}  // namespace

TEST_CASE("a table's gradient is the sum over the places that read each row") {
  std::uint64_t seed = 1;
  for (const std::int64_t rows : {1, 2, 7, 101})
    for (const std::int64_t width : {1, 3, 64, 67, 131})
      for (const std::int64_t count : {0, 1, 5, 211})
        for (const std::int64_t padding : {std::int64_t(-1), std::int64_t(0), rows - 1})
          for (const bool by_frequency : {false, true})
            for (const bool add : {false, true}) {
              const EmbeddingParams p{rows, width, count, padding, by_frequency};
              INFO(rows << ' ' << width << ' ' << count << ' ' << padding << ' ' << by_frequency << ' ' << add);
              const auto index = random_indices(count, rows, ++seed);
              const auto dy = test::numbers<double>(count * width, ++seed);
              const auto before = test::numbers<double>(rows * width, ++seed);
              auto dw = before;
              kernels::embedding_backward(p, index.data(), dy.data(), dw.data(), add);
              const auto expected = summed_rows(p, index, dy, add ? before : std::vector<double>(before.size(), 0));
              double worst = 0;
              for (std::size_t i = 0; i < dw.size(); ++i) worst = std::max(worst, std::abs(dw[i] - expected[i]));
              CHECK(worst < 1e-12);
            }
}

TEST_CASE("a row read very often is summed in double, with the same bits on any number of threads") {
  const std::int64_t count = (1 << 24) + 3;
  const std::vector<std::int64_t> index(std::size_t(count), 1);
  const std::vector<float> dy(std::size_t(count), 1.0f);
  std::vector<float> dw(2);
  kernels::embedding_backward<float>({2, 1, count, -1, false}, index.data(), dy.data(), dw.data(), false);
  CHECK(dw == std::vector<float>{0, float(count)});  // a float32 sum would stick at 2^24
  const auto mixed = random_indices(30011, 997, 3);
  const auto gradient = test::numbers<float>(30011 * 19, 5);
  CHECK(test::same_on_any_threads([&] {
    std::vector<float> table(997 * 19);
    kernels::embedding_backward<float>({997, 19, 30011, 5, true}, mixed.data(), gradient.data(), table.data(), false);
    return table;
  }));
}

TEST_CASE("rows read and longer than the bound are scaled once, with the same bits on any number of threads") {
  const auto index = random_indices(1009, 211, 7);
  std::vector<bool> read(311);
  for (const std::int64_t row : index) read[std::size_t(row)] = true;
  const auto table = test::numbers<double>(311 * 13, 11);
  const kernels::EmbeddingParams p{311, 13, 1009, -1, false};
  for (const auto& [type, bound] : {std::pair{1.0, 13.0}, {2.0, 4.15}, {3.0, 2.95}}) {
    int shortened = 0, kept = 0;
    auto w = table;
    kernels::embedding_renorm<double>(p, {bound, type}, index.data(), w.data());
    double worst = 0;
    for (std::size_t row = 0; row < 311; ++row) {
      double sum = 0;
      for (std::size_t j = 0; j < 13; ++j) sum += std::pow(std::abs(table[row * 13 + j]), type);
      const double norm = std::pow(sum, 1 / type), scale = read[row] && norm > bound ? bound / (norm + 1e-7) : 1;
      ++(norm > bound ? shortened : kept);
      for (std::size_t j = 0; j < 13; ++j)
        worst = std::max(worst, std::abs(w[row * 13 + j] - table[row * 13 + j] * scale));
    }
    INFO(type);
    CHECK(worst < 1e-14);
    CHECK(shortened > 50);
    CHECK(kept > 50);
  }
  const auto single = test::numbers<float>(311 * 13, 13);
  CHECK(test::same_on_any_threads([&] {
    std::vector<float> w = single;
    kernels::embedding_renorm<float>(p, {0.5, 2}, index.data(), w.data());
    return w;
  }));
}
