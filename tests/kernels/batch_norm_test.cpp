#include "kernels/batch_norm.hpp"

#include <algorithm>

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

std::int64_t numel_of(const BatchNormParams& p) { return p.samples * p.channels * p.spatial; }

template <class T>
struct Fixed {
  std::vector<T> mean, variance;
};

template <class T>
struct BatchNormRun {
  std::vector<T> y, dx, dw, db;
};

/// Forward and backward with the batch's moments, or those of `fixed`. Gradients are added to 0.5 with `add`.
template <class T>
BatchNormRun<T> run_batch_norm(BatchNormParams p, const std::vector<T>& x, const std::vector<T>& w,
                               const std::vector<T>& b, const std::vector<T>& dy, const Fixed<T>& fixed = {},
                               bool add = false) {
  const T start = add ? T(0.5) : std::numeric_limits<T>::quiet_NaN();
  const auto channels = std::size_t(p.channels);
  BatchNormRun<T> r{std::vector<T>(x.size()), std::vector<T>(x.size(), start), std::vector<T>(channels, start),
                    std::vector<T>(channels, start)};
  std::vector<Moments> moments(std::size_t(batch_norm_memory(p)));
  p.fixed = !fixed.mean.empty();
  if (p.fixed)
    fixed_moments(p, fixed.mean.data(), fixed.variance.data(), moments.data());
  else
    batch_moments(p, x.data(), moments.data());
  const T *const weight = w.empty() ? nullptr : w.data(), *const bias = b.empty() ? nullptr : b.data();
  batch_norm(p, x.data(), weight, bias, moments.data(), r.y.data());
  batch_norm_backward<T>(p, dy.data(), x.data(), weight, moments.data(),
                         {r.dx.data(), r.dw.data(), r.db.data(), add, add, add});
  return r;
}

/// On both sides of where short channels are taken side by side.
BatchNormParams random_batch_norm(std::uint64_t seed) {
  return {.samples = pick(seed, 0, {1, 2, 3, 11, 300}),
          .channels = pick(seed, 1, {1, 5, 13, 67}),
          .spatial = pick(seed, 2, {1, 1, 4, 7, 15, 16, 29, 33, 49}),
          .eps = seed % 2 ? 1e-5 : 0.125};
}

template <class T>
void check_batch_norm(const BatchNormParams& p, std::uint64_t seed, double mean, double bound) {
  const auto x = numbers<T>(numel_of(p), seed, mean - 2, mean + 2), dy = numbers<T>(numel_of(p), seed + 1);
  const auto w = seed % 3 ? numbers<T>(p.channels, seed + 2) : std::vector<T>();
  const auto b = seed % 5 ? numbers<T>(p.channels, seed + 3) : std::vector<T>();
  const bool is_fixed = seed % 4 == 0;
  const Fixed<T> fixed = is_fixed ? Fixed<T>{numbers<T>(p.channels, seed + 4, mean - 1, mean + 1),
                                             numbers<T>(p.channels, seed + 5, 0.1, 3)}
                                  : Fixed<T>{};
  Norm oracle = Norm::batch(p.samples, p.channels, p.spatial);
  oracle.eps = p.eps;
  if (is_fixed) {
    oracle.fixed_mean = as<double>(fixed.mean);
    oracle.fixed_variance = as<double>(fixed.variance);
  }
  const auto expected = oracle.backward(as<double>(dy), as<double>(x), as<double>(w));
  const auto got = run_batch_norm(p, x, w, b, dy, fixed), added = run_batch_norm(p, x, w, b, dy, fixed, true);
  INFO("seed " << seed << ": " << p.samples << " " << p.channels << " " << p.spatial << " " << is_fixed);
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

bool is_tried(const BatchNormParams& p) {
  // Fewer elements leave a gradient that is a difference of nearly equal numbers; more take the definition long.
  return p.samples * p.spatial >= 4 && numel_of(p) < 3000;
}

}  // namespace

TEST_CASE("batch norm and its gradients agree with the definition on random sizes") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const BatchNormParams p = random_batch_norm(seed * 97);
    if (!is_tried(p)) continue;
    check_batch_norm<double>(p, seed * 97, 0, 1e-12);
    check_batch_norm<float>(p, seed * 97, 0, 1e-6);
  }
}

TEST_CASE("channels side by side are normalised each as by itself, whatever their number, and nothing else is stored") {
  constexpr std::int64_t kSamples = 37, kBeside = 64;  // samples are summed some at a time
  for (std::int64_t channels = 1; channels <= 70; ++channels) {
    CAPTURE(channels);
    const BatchNormParams p{.samples = kSamples, .channels = channels, .spatial = 1, .eps = 1e-5};
    const auto x = numbers<float>(numel_of(p), 31), w = numbers<float>(channels, 32), b = numbers<float>(channels, 33);
    std::vector<Moments> moments(std::size_t(batch_norm_memory(p)));
    batch_moments(p, x.data(), moments.data());
    std::vector<float> y(x.size() + 2 * kBeside, 77);
    batch_norm(p, x.data(), w.data(), b.data(), moments.data(), y.data() + kBeside);
    CHECK(std::count(y.begin(), y.begin() + kBeside, 77.0f) == kBeside);
    CHECK(std::count(y.end() - kBeside, y.end(), 77.0f) == kBeside);
    const Norm oracle = [&] {
      Norm norm = Norm::batch(p.samples, p.channels, p.spatial);
      norm.eps = p.eps;
      return norm;
    }();
    const std::vector<float> stored(y.begin() + kBeside, y.end() - kBeside);
    CHECK(test::relative_error(stored, oracle.forward(as<double>(x), as<double>(w), as<double>(b))) < 1e-6);
  }
}

TEST_CASE("batch norm keeps its digits where the mean is a million deviations") {
  for (const double mean : {1e4, -1e5, 1e6})
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const BatchNormParams p = random_batch_norm(seed * 89);
      if (!is_tried(p)) continue;
      check_batch_norm<double>(p, seed * 89, mean, 1e-12);
      check_batch_norm<float>(p, seed * 89, mean, 1e-6);
    }
}

TEST_CASE("gradients of few elements normalised together keep their digits where they nearly cancel") {
  for (const auto& [samples, spatial] : {std::pair{1, 16}, {1, 49}, {3, 20}, {15, 4}, {63, 1}}) {
    const BatchNormParams p{.samples = samples, .channels = 9, .spatial = spatial, .eps = 1e-5};
    const auto x = numbers<float>(numel_of(p), 1, -2, 2), small = numbers<float>(numel_of(p), 2);
    std::vector<float> dy(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) dy[i] = 1000 + 2000 * x[i] + small[i];
    Norm oracle = Norm::batch(p.samples, p.channels, p.spatial);
    oracle.eps = p.eps;
    const auto expected = oracle.backward(as<double>(dy), as<double>(x), {});
    INFO(samples << " samples of " << spatial);
    CHECK(test::relative_error(run_batch_norm<float>(p, x, {}, {}, dy).dx, expected.dx) < 1.2e-4);
  }
}

TEST_CASE("batch norm of constants gives the bias") {
  for (const std::int64_t spatial : {1, 5, 23}) {
    const BatchNormParams p{.samples = 3, .channels = 7, .spatial = spatial, .eps = 1e-5};
    const auto w = numbers<float>(7, 1), b = numbers<float>(7, 2), dy = numbers<float>(numel_of(p), 3);
    for (const float constant : {0.0F, 0.1F, -1e6F, 3e30F}) {
      const auto got = run_batch_norm(p, std::vector<float>(dy.size(), constant), w, b, dy);
      for (std::size_t i = 0; i < got.y.size(); ++i) CHECK(got.y[i] == b[i / std::size_t(spatial) % 7]);
      CHECK(got.dw == std::vector<float>(7, 0.0F));
      for (const float d : got.dx) CHECK(std::isfinite(d));
    }
  }
}

TEST_CASE("a NaN or an infinity in a channel makes this channel NaN and no other") {
  for (const std::int64_t spatial : {1, 17})
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const BatchNormParams p{.samples = 3, .channels = 5, .spatial = spatial, .eps = 1e-5};
      auto x = numbers<float>(numel_of(p), 1);
      x[std::size_t(7 * spatial)] = bad;
      const auto y = run_batch_norm<float>(p, x, {}, {}, x).y;
      for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / std::size_t(spatial) % 5 == 2));
    }
}

TEST_CASE("with fixed moments the gradient does not depend on x, even where it is infinite") {
  for (const std::int64_t spatial : {1, 17}) {
    const BatchNormParams p{.samples = 3, .channels = 5, .spatial = spatial, .eps = 0.25, .fixed = true};
    auto x = numbers<float>(numel_of(p), 1);
    const auto dy = numbers<float>(numel_of(p), 2);
    const Fixed<float> fixed{std::vector<float>(5, 1.0F), std::vector<float>(5, 2.0F)};
    const auto expected = run_batch_norm<float>(p, x, {}, {}, dy, fixed).dx;
    x[1] = std::numeric_limits<float>::infinity();
    CHECK(run_batch_norm<float>(p, x, {}, {}, dy, fixed).dx == expected);
  }
}

TEST_CASE("running statistics move towards the samples' mean and unbiased variance") {
  // Two channels of three elements: means 1 and 2, variances 3 and 6, once more for a second sample.
  const std::vector<Moments> moments = {{1, 0, 3, 0}, {2, 0.5, 6, 0}, {3, 0, 9, 0}, {4, 0, 2, 0}};
  Values mean{10, 20}, variance{1, 2};
  update_running(0.25, 3, 2, 2, moments.data(), mean.data(), variance.data());
  CHECK(mean == Values{0.75 * 10 + 0.25 * 2, 0.75 * 20 + 0.25 * 3.25});
  CHECK(variance == Values{0.75 * 1 + 0.25 * 9, 0.75 * 2 + 0.25 * 6});
  update_running(1.0, 2, 1, 2, moments.data(), mean.data(), variance.data());
  CHECK(mean == Values{1, 2.5});
  CHECK(variance == Values{6, 12});
  update_running(0.0, 2, 1, 2, moments.data(), mean.data(), variance.data());
  CHECK(mean == Values{1, 2.5});
}

TEST_CASE("batch norm without elements gives gradients of 0") {
  for (const BatchNormParams& p : {BatchNormParams{.samples = 0, .channels = 5, .spatial = 7, .eps = 1e-5},
                                   BatchNormParams{.samples = 0, .channels = 5, .spatial = 23, .eps = 1e-5},
                                   BatchNormParams{.samples = 0, .channels = 5, .spatial = 0, .eps = 1e-5}})
    for (const bool fixed : {false, true}) {
      const auto got = run_batch_norm<float>(p, {}, {}, {}, {},
                                             fixed ? Fixed<float>{{1, 2, 3, 4, 5}, {1, 1, 1, 1, 1}} : Fixed<float>{});
      CHECK(got.dw == std::vector<float>(5, 0.0F));
      CHECK(got.db == std::vector<float>(5, 0.0F));
    }
}

TEST_CASE("batch norm computes only the gradients that are asked for") {
  for (const bool is_fixed : {false, true})
    for (const std::int64_t spatial : {3, 19}) {
      BatchNormParams p{.samples = 2, .channels = 5, .spatial = spatial, .eps = 1e-5};
      const auto x = numbers<double>(numel_of(p), 1), dy = numbers<double>(numel_of(p), 2);
      const Fixed<double> fixed{numbers<double>(5, 3), numbers<double>(5, 4, 1, 2)};
      const auto all = run_batch_norm<double>(p, x, {}, {}, dy, is_fixed ? fixed : Fixed<double>{});
      p.fixed = is_fixed;
      Values dx(x.size()), dw(5), db(5);
      std::vector<Moments> moments(std::size_t(batch_norm_memory(p)));
      is_fixed ? fixed_moments(p, fixed.mean.data(), fixed.variance.data(), moments.data())
               : batch_moments(p, x.data(), moments.data());
      batch_norm_backward<double>(p, dy.data(), x.data(), nullptr, moments.data(), {.dx = dx.data()});
      batch_norm_backward<double>(p, dy.data(), x.data(), nullptr, moments.data(), {.dw = dw.data()});
      batch_norm_backward<double>(p, dy.data(), x.data(), nullptr, moments.data(), {.db = db.data()});
      CHECK(same_bits(dx, all.dx));
      CHECK(same_bits(dw, all.dw));
      CHECK(same_bits(db, all.db));
    }
}

TEST_CASE("batch norm gives the same bits on any number of threads") {
  for (const BatchNormParams& p : {BatchNormParams{.samples = 1009, .channels = 131, .spatial = 1, .eps = 1e-5},
                                   BatchNormParams{.samples = 211, .channels = 31, .spatial = 7, .eps = 1e-5},
                                   BatchNormParams{.samples = 7, .channels = 13, .spatial = 1009, .eps = 1e-5}})
    for (const bool fixed : {false, true}) {
      const auto x = numbers<float>(numel_of(p), 1), dy = numbers<float>(numel_of(p), 2);
      const auto w = numbers<float>(p.channels, 3), mean = numbers<float>(p.channels, 4);
      const auto variance = numbers<float>(p.channels, 5, 0.5, 2);
      CHECK(test::same_on_any_threads([&] {
        const auto r = run_batch_norm(p, x, w, {}, dy, fixed ? Fixed<float>{mean, variance} : Fixed<float>{});
        std::vector<float> all;
        for (const auto* part : {&r.y, &r.dx, &r.dw, &r.db}) all.insert(all.end(), part->begin(), part->end());
        return all;
      }));
    }
}
