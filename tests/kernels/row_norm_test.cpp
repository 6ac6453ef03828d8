#include "kernels/row_norm.hpp"

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"
#include "support/oracle_norm.hpp"

using namespace taper;
using namespace taper::kernels;
using oracle::Norm;
using test::as;
using test::numbers;
using test::pick;
using test::same_bits;
using test::Values;

namespace {

std::size_t rows_of(const RowNormParams& p) { return std::size_t(p.samples * p.groups); }
std::size_t numel_of(const RowNormParams& p) { return rows_of(p) * std::size_t(p.channels * p.spatial); }

Norm oracle_of(const RowNormParams& p) {
  Norm norm = Norm::rows(p.samples, p.groups, p.channels, p.spatial);
  norm.eps = p.eps;
  norm.centered = p.centered;
  return norm;
}

/// Null for an empty vector, as the kernels have it.
template <class T>
T* data(std::vector<T>& x) {
  return x.empty() ? nullptr : x.data();
}

template <class T>
struct RowNormRun {
  std::vector<T> y, dx, dw, db;
};

/// Forward and backward; gradients are added to 0.5 with `add`. An empty w or b is none.
template <class T>
RowNormRun<T> run_row_norm(const RowNormParams& p, std::vector<T> x, std::vector<T> w, std::vector<T> b,
                           const std::vector<T>& dy, bool add = false) {
  const T start = add ? T(0.5) : std::numeric_limits<T>::quiet_NaN();
  const std::size_t channels = std::size_t(p.groups * p.channels);
  RowNormRun<T> r{std::vector<T>(x.size()), std::vector<T>(x.size(), start), std::vector<T>(channels, start),
                  std::vector<T>(channels, start)};
  std::vector<Moments> moments(std::size_t(row_norm_memory(p)));
  row_norm(p, x.data(), data(w), data(b), moments.data(), r.y.data());
  row_norm_backward<T>(p, dy.data(), x.data(), data(w), moments.data(),
                       {r.dx.data(), r.dw.data(), r.db.data(), add, add, add});
  return r;
}

/// Sizes that differ from each other; a third of the cases has one element a channel, a quarter no mean.
RowNormParams random_row_norm(std::uint64_t seed) {
  return {.samples = pick(seed, 0, {1, 2, 3, 11}),
          .groups = pick(seed, 1, {1, 1, 3, 5}),
          .channels = pick(seed, 2, {1, 2, 7, 13, 67}),
          .spatial = pick(seed, 3, {1, 1, 4, 9, 17, 49}),
          .eps = seed % 2 ? 1e-5 : 0.125,
          .centered = seed % 4 != 0};
}

bool is_tried(const RowNormParams& p) {
  // Fewer elements leave a gradient that is a difference of nearly equal numbers; more take the definition long.
  return p.channels * p.spatial >= 4 && numel_of(p) < 3000;
}

template <class T>
void check_row_norm(const RowNormParams& p, std::uint64_t seed, double mean, double bound) {
  const auto n = std::int64_t(numel_of(p)), channels = p.groups * p.channels;
  const auto x = numbers<T>(n, seed, mean - 2, mean + 2), dy = numbers<T>(n, seed + 1);
  const auto w = seed % 3 ? numbers<T>(channels, seed + 2) : std::vector<T>();
  const auto b = seed % 5 ? numbers<T>(channels, seed + 3) : std::vector<T>();
  const Norm oracle = oracle_of(p);
  const auto expected = oracle.backward(as<double>(dy), as<double>(x), as<double>(w));
  const auto got = run_row_norm(p, x, w, b, dy), added = run_row_norm(p, x, w, b, dy, true);
  INFO("seed " << seed << ": " << p.samples << " " << p.groups << " " << p.channels << " " << p.spatial);
  CHECK(test::relative_error(got.y, oracle.forward(as<double>(x), as<double>(w), as<double>(b))) < bound);
  CHECK(test::relative_error(got.dx, expected.dx) < bound);
  CHECK(test::relative_error(got.dw, expected.dw) < bound);
  CHECK(test::relative_error(got.db, expected.db) < bound);
  for (const auto& [plain, sum] : {std::pair(&got.dx, &added.dx), {&got.dw, &added.dw}, {&got.db, &added.db}}) {
    Values shifted = as<double>(*plain);
    for (double& v : shifted) v += 0.5;
    CHECK(test::relative_error(*sum, shifted) < test::tolerance<T>());
  }
}

}  // namespace

TEST_CASE("row norms and their gradients agree with the definition on random sizes") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RowNormParams p = random_row_norm(seed * 97);
    if (!is_tried(p)) continue;
    check_row_norm<double>(p, seed * 97, 0, 1e-12);
    check_row_norm<float>(p, seed * 97, 0, 1e-6);
  }
}

TEST_CASE("row norms keep their digits where the mean is a million deviations") {
  for (const double mean : {1e4, -1e5, 1e6})
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      RowNormParams p = random_row_norm(seed * 89);
      if (!is_tried(p)) continue;
      p.centered = true;
      check_row_norm<double>(p, seed * 89, mean, 1e-12);
      check_row_norm<float>(p, seed * 89, mean, 1e-6);
    }
}

TEST_CASE("gradients of small groups keep their digits where they nearly cancel") {
  for (const auto& [channels, spatial] : {std::pair{1, 49}, {3, 20}, {9, 7}, {15, 4}}) {
    const RowNormParams p{.samples = 3, .groups = 2, .channels = channels, .spatial = spatial, .eps = 1e-5};
    const auto n = std::int64_t(numel_of(p));
    const auto x = numbers<float>(n, 1, -2, 2), small = numbers<float>(n, 2);
    std::vector<float> dy(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) dy[i] = 1000 + 2000 * x[i] + small[i];
    const auto expected = oracle_of(p).backward(as<double>(dy), as<double>(x), {});
    INFO(channels << " channels of " << spatial);
    CHECK(test::relative_error(run_row_norm<float>(p, x, {}, {}, dy).dx, expected.dx) < 1.2e-4);
  }
}

TEST_CASE("row norms of constants give the bias, and no NaN with eps") {
  for (const std::int64_t spatial : {1, 5}) {
    const RowNormParams p{.samples = 2, .groups = 3, .channels = 7, .spatial = spatial, .eps = 1e-5};
    const auto n = std::int64_t(numel_of(p));
    const auto w = numbers<float>(21, 1), b = numbers<float>(21, 2), dy = numbers<float>(n, 3);
    for (const float constant : {0.0F, 0.1F, -1e6F, 3e30F}) {
      const auto got = run_row_norm(p, std::vector<float>(std::size_t(n), constant), w, b, dy);
      for (std::size_t i = 0; i < got.y.size(); ++i) CHECK(got.y[i] == b[i / std::size_t(spatial) % 21]);
      CHECK(got.dw == std::vector<float>(21, 0.0F));
      for (const float d : got.dx) CHECK(std::isfinite(d));
    }
  }
}

TEST_CASE("a NaN or an infinity in a row makes this row NaN and no other") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const RowNormParams p{.samples = 3, .channels = 17, .eps = 1e-5};
    auto x = numbers<float>(51, 1);
    x[20] = bad;
    const auto y = run_row_norm(p, x, {}, {}, x).y;
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 17 == 1));
  }
}

TEST_CASE("row norms without rows give gradients of 0, without elements too") {
  for (const RowNormParams& p : {RowNormParams{.samples = 0, .groups = 2, .channels = 3, .spatial = 5, .eps = 1e-5},
                                 RowNormParams{.samples = 0, .channels = 3, .eps = 1e-5},
                                 RowNormParams{.samples = 0, .groups = 3, .channels = 1, .spatial = 0, .eps = 1e-5},
                                 RowNormParams{.samples = 0, .channels = std::int64_t{1} << 62, .spatial = 0}}) {
    if (p.channels > 100) {
      const float none = 0;
      float y = 7;
      row_norm<float>(p, &none, nullptr, nullptr, nullptr, &y);
      row_norm_backward<float>(p, &none, &none, nullptr, nullptr, {.dx = &y});
      CHECK(y == 7);
      continue;
    }
    const auto got = run_row_norm<float>(p, {}, {}, {}, {});
    CHECK(got.dw == std::vector<float>(got.dw.size(), 0.0F));
    CHECK(got.db == got.dw);
  }
}

TEST_CASE("row norms compute only the gradients that are asked for") {
  const RowNormParams p{.samples = 2, .groups = 3, .channels = 5, .spatial = 7, .eps = 1e-5};
  const auto x = numbers<double>(210, 1), dy = numbers<double>(210, 2);
  const auto all = run_row_norm<double>(p, x, {}, {}, dy);
  Values y(210), dx(210), dw(15), db(15);
  std::vector<Moments> moments(std::size_t(row_norm_memory(p)));
  row_norm<double>(p, x.data(), nullptr, nullptr, moments.data(), y.data());
  row_norm_backward<double>(p, dy.data(), x.data(), nullptr, moments.data(), {.dx = dx.data()});
  row_norm_backward<double>(p, dy.data(), x.data(), nullptr, moments.data(), {.dw = dw.data()});
  row_norm_backward<double>(p, dy.data(), x.data(), nullptr, moments.data(), {.db = db.data()});
  CHECK(same_bits(dx, all.dx));
  CHECK(same_bits(dw, all.dw));
  CHECK(same_bits(db, all.db));
}

TEST_CASE("row norms give the same bits on any number of threads") {
  for (const RowNormParams& p :
       {RowNormParams{.samples = 701, .channels = 131, .eps = 1e-5},
        RowNormParams{.samples = 7, .groups = 5, .channels = 3, .spatial = 1009, .eps = 1e-5},
        RowNormParams{.samples = 3, .groups = 2, .channels = 5003, .eps = 1e-5, .centered = false}}) {
    const auto n = std::int64_t(numel_of(p)), channels = p.groups * p.channels;
    const auto x = numbers<float>(n, 1), dy = numbers<float>(n, 2), w = numbers<float>(channels, 3);
    CHECK(test::same_on_any_threads([&] {
      const auto r = run_row_norm(p, x, w, {}, dy);
      std::vector<float> all;
      for (const auto* part : {&r.y, &r.dx, &r.dw, &r.db}) all.insert(all.end(), part->begin(), part->end());
      return all;
    }));
  }
}
