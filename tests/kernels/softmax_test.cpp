#include "kernels/softmax.hpp"

#include <algorithm>
#include <limits>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

struct Size {
  std::int64_t outer, n, inner;
  std::int64_t numel() const { return outer * n * inner; }
};
const std::vector<Size> kSizes = {{3, 5, 1}, {2, 131, 1}, {2, 3, 7}, {1, 2, 67},
                                  {2, 1, 3}, {5, 11, 2},  {0, 3, 2}, {2, 3, 0}};

Values naive_softmax(const Size& s, const Values& x, bool log) {
  Values y(x.size());
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t c = 0; c < s.inner; ++c) {
      const auto at = [&](std::int64_t j) { return std::size_t((o * s.n + j) * s.inner + c); };
      double sum = 0;
      for (std::int64_t j = 0; j < s.n; ++j) sum += std::exp(x[at(j)]);
      for (std::int64_t j = 0; j < s.n; ++j) y[at(j)] = log ? x[at(j)] - std::log(sum) : std::exp(x[at(j)]) / sum;
    }
  return y;
}

template <class T>
std::vector<T> forward(const Size& s, const std::vector<T>& x, bool log) {
  std::vector<T> y(x.size());
  log ? log_softmax(x.data(), y.data(), s.outer, s.n, s.inner) : softmax(x.data(), y.data(), s.outer, s.n, s.inner);
  return y;
}

template <class T>
void backward(const Size& s, const std::vector<T>& dy, const std::vector<T>& y, std::vector<T>& dx, bool log,
              bool add) {
  log ? log_softmax_grad(dy.data(), y.data(), dx.data(), s.outer, s.n, s.inner, add)
      : softmax_grad(dy.data(), y.data(), dx.data(), s.outer, s.n, s.inner, add);
}

}  // namespace

TEST_CASE("softmax and log_softmax agree with the mathematics along any dimension") {
  for (const Size& s : kSizes)
    for (bool log : {false, true}) {
      INFO(s.outer << " " << s.n << " " << s.inner << " " << log);
      const auto x = numbers<double>(s.numel(), 1, -3, 3);
      const auto y = forward(s, x, log);
      CHECK(distance(y, naive_softmax(s, x, log)) < 1e-14);
      const std::vector<float> xf(x.begin(), x.end());
      CHECK(distance(forward(s, xf, log), forward(s, Values(xf.begin(), xf.end()), log)) < 2e-7);

      const auto dy = numbers<double>(s.numel(), 2);
      const auto expected = gradient(x, [&](const Values& v) {
        const auto z = naive_softmax(s, v, log);
        double loss = 0;
        for (std::size_t i = 0; i < z.size(); ++i) loss += dy[i] * z[i];
        return loss;
      });
      Values dx(x.size(), kNaN), added(x.size(), 0.5), in_place = dy;
      backward(s, dy, y, dx, log, false);
      backward(s, dy, y, added, log, true);
      backward(s, in_place, y, in_place, log, false);
      CHECK(distance(dx, expected) < 1e-9);
      CHECK(same_bits(in_place, dx));
      for (std::size_t i = 0; i < dx.size(); ++i) CHECK(added[i] == 0.5 + dx[i]);
    }
}

TEST_CASE("softmax and its gradient keep float32's accuracy over rows of any length") {
  for (const std::int64_t n : {17, 37, 1031, 4099}) {
    const Size s{3, n, 1};
    const auto x = numbers<float>(s.numel(), 1, -9, 9), dy = numbers<float>(s.numel(), 2);
    const Values xd(x.begin(), x.end()), dyd(dy.begin(), dy.end());
    for (bool log : {false, true}) {
      const auto y = forward(s, x, log);
      const auto yd = forward(s, xd, log);
      CHECK(distance(y, naive_softmax(s, xd, log)) < 2e-7);
      CHECK(distance(yd, naive_softmax(s, xd, log)) < 1e-14);
      std::vector<float> dx(x.size());
      Values expected(x.size());
      backward(s, dy, y, dx, log, false);
      backward(s, dyd, yd, expected, log, false);
      CHECK(distance(dx, expected) < 4e-7);
    }
  }
}

TEST_CASE("rows of softmax and of its gradient are stored for every length, and nothing beside them") {
  constexpr std::int64_t kBeside = 64, kRows = 3;
  const auto is_kept = [](float v) { return v == 77; };
  for (std::int64_t n = 1; n <= 70; ++n)
    for (bool log : {false, true})
      for (bool add : {false, true}) {
        CAPTURE(n, log, add);
        const Size s{kRows, n, 1};
        const auto x = numbers<float>(s.numel(), 21, -6, 6), dy = numbers<float>(s.numel(), 22);
        const Values yd = forward(s, Values(x.begin(), x.end()), log);
        Values expected(x.size(), 77);
        backward(s, Values(dy.begin(), dy.end()), yd, expected, log, add);
        std::vector<float> y(size(s.numel() + 2 * kBeside), 77), dx = y;
        (log ? log_softmax<float> : softmax<float>)(x.data(), y.data() + kBeside, kRows, n, 1);
        (log ? log_softmax_grad<float> : softmax_grad<float>)(dy.data(), y.data() + kBeside, dx.data() + kBeside, kRows,
                                                              n, 1, add);
        for (const auto* all : {&y, &dx}) {
          CHECK(std::all_of(all->begin(), all->begin() + kBeside, is_kept));
          CHECK(std::all_of(all->end() - kBeside, all->end(), is_kept));
        }
        CHECK(distance(std::vector<float>(y.begin() + kBeside, y.end() - kBeside), yd) < 5e-7);
        CHECK(distance(std::vector<float>(dx.begin() + kBeside, dx.end() - kBeside), expected) < (add ? 1e-5 : 1e-6));
      }
}

TEST_CASE("softmax may write over its input") {
  const Size s{3, 5, 7};
  auto x = numbers<float>(s.numel(), 1);
  const auto y = forward(s, x, false);
  softmax(x.data(), x.data(), s.outer, s.n, s.inner);
  CHECK(same_bits(x, y));
}

TEST_CASE("softmax is stable for large numbers and gives NaN where PyTorch does") {
  const Size s{1, 3, 1};
  CHECK(distance(forward<double>(s, {1000, 1001, 1000}, false), naive_softmax(s, {0, 1, 0}, false)) < 1e-15);
  CHECK(distance(forward<double>(s, {-1000, -999, -1000}, true), naive_softmax(s, {0, 1, 0}, true)) < 1e-15);
  CHECK(same_values(forward<double>(s, {-kInf, 0, -kInf}, false), {0, 1, 0}));
  CHECK(same_values(forward<double>(s, {-kInf, 0, -kInf}, true), {-kInf, 0, -kInf}));
  CHECK(same_values(forward<double>(s, {-kInf, -kInf, -kInf}, false), {kNaN, kNaN, kNaN}));
  CHECK(same_values(forward<double>(s, {-kInf, -kInf, -kInf}, true), {kNaN, kNaN, kNaN}));
  CHECK(same_values(forward<double>(s, {1, kNaN, 2}, false), {kNaN, kNaN, kNaN}));
}

TEMPLATE_TEST_CASE("softmax is stable for large numbers in rows of any length", "", float, double) {
  using T = TestType;
  for (const Size& s : {Size{2, 5, 1}, Size{2, 37, 1}, Size{1, 1031, 1}, Size{20, 5, 1}, Size{2, 5, 7}})
    for (const T far : {T(1000), T(-1000)})
      for (bool log : {false, true}) {
        INFO(s.outer << " " << s.n << " " << s.inner << " " << far << " " << log);
        auto x = numbers<T>(s.numel(), 1, -3, 3);
        Values near(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] += far;
          near[i] = static_cast<double>(x[i] - far);
        }
        CHECK(distance(forward(s, x, log), naive_softmax(s, near, log)) < (sizeof(T) == sizeof(float) ? 2e-7 : 1e-14));
      }
}

TEST_CASE("softmax gives the same bits on any number of threads") {
  for (const Size& s : {Size{701, 11, 1}, Size{3, 11, 701}}) {
    const auto x = numbers<float>(s.numel(), 1), dy = numbers<float>(s.numel(), 2);
    for (bool log : {false, true}) {
      const auto y = forward(s, x, log);
      CHECK(same_on_any_threads([&] { return forward(s, x, log); }));
      CHECK(same_on_any_threads([&] {
        std::vector<float> dx(x.size());
        backward(s, dy, y, dx, log, false);
        return dx;
      }));
    }
  }
}

TEMPLATE_TEST_CASE("a row of softmax has the same bits beside others and alone", "", float, double) {
  using T = TestType;
  constexpr std::int64_t kRows = 37;
  bool same = true;
  for (std::int64_t n = 1; n <= 64; ++n)
    for (bool log : {false, true}) {
      const Size all{kRows, n, 1}, one{1, n, 1};
      const auto x = numbers<T>(all.numel(), 11, -6, 6), dy = numbers<T>(all.numel(), 12);
      const auto y = forward(all, x, log);
      std::vector<T> dx(x.size(), T(kNaN)), dx_row(static_cast<std::size_t>(n), T(kNaN));
      backward(all, dy, y, dx, log, false);
      for (std::int64_t r = 0; r < kRows; ++r) {
        const auto row_of = [&](const std::vector<T>& v) {
          return std::vector<T>(v.begin() + r * n, v.begin() + (r + 1) * n);
        };
        const auto y_row = forward(one, row_of(x), log);
        backward(one, row_of(dy), y_row, dx_row, log, false);
        same = same && same_bits(y_row, row_of(y)) && same_bits(dx_row, row_of(dx));
      }
    }
  CHECK(same);
}

TEMPLATE_TEST_CASE("rows of nothing but -inf give zeros where they are masked, and others do not", "", float, double) {
  const TestType inf = std::numeric_limits<TestType>::infinity(), nan = std::numeric_limits<TestType>::quiet_NaN();
  const std::vector<TestType> x = {-inf, -inf, -inf, -inf, 0, -inf, nan, -inf, -inf, inf, -inf, -inf};
  std::vector<TestType> y(12, TestType(7));
  masked_softmax(x.data(), y.data(), 4, 3);
  CHECK(same_values(y, {0, 0, 0, 0, 1, 0, nan, nan, nan, nan, nan, nan}));
}

TEMPLATE_TEST_CASE("softmax along rows of any number that lie side by side", "", float, double) {
  using T = TestType;
  const double most = sizeof(T) == sizeof(float) ? 2e-7 : 1e-14;
  for (const std::int64_t n : {1, 2, 7, 8, 9, 17, 67})
    for (const std::int64_t inner : {2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 131})
      for (bool log : {false, true}) {
        const Size s{2, n, inner};
        INFO(n << " " << inner << " " << log);
        auto x = numbers<T>(s.numel(), 21, -9, 9);
        const auto dy = numbers<T>(s.numel(), 22);
        const Values xd(x.begin(), x.end()), dyd(dy.begin(), dy.end());
        const auto y = forward(s, x, log);
        const Values yd = naive_softmax(s, xd, log);
        CHECK(distance(y, yd) < most * (log ? 1 : 0.5));
        Values expected(x.size());
        for (std::int64_t o = 0; o < s.outer; ++o)
          for (std::int64_t c = 0; c < inner; ++c) {
            const auto at = [&](std::int64_t j) { return std::size_t((o * n + j) * inner + c); };
            double dot = 0;
            for (std::int64_t j = 0; j < n; ++j) dot += log ? dyd[at(j)] : dyd[at(j)] * yd[at(j)];
            for (std::int64_t j = 0; j < n; ++j)
              expected[at(j)] = log ? dyd[at(j)] - std::exp(yd[at(j)]) * dot : yd[at(j)] * (dyd[at(j)] - dot);
          }
        std::vector<T> dx(x.size(), T(kNaN)), added(x.size(), T(0.5)), in_place = dy, over = x;
        backward(s, dy, y, dx, log, false);
        backward(s, dy, y, added, log, true);
        backward(s, in_place, y, in_place, log, false);
        CHECK(distance(dx, expected) < 4 * most);
        CHECK(same_bits(in_place, dx));
        bool sums = true;
        for (std::size_t i = 0; i < dx.size(); ++i) sums = sums && added[i] == T(0.5) + dx[i];
        CHECK(sums);
        log ? log_softmax(over.data(), over.data(), s.outer, n, inner)
            : softmax(over.data(), over.data(), s.outer, n, inner);
        CHECK(same_bits(over, y));
        // What is not finite stays in its row.
        const std::size_t row = std::size_t(inner - 1), place = row + std::size_t((n - 1) * inner);
        for (const double special : {kNaN, kInf, -kInf}) {
          auto v = x;
          v[place] = T(special);
          const auto z = forward(s, v, log);
          bool right = true;
          for (std::size_t i = 0; i < z.size(); ++i) {
            const bool beside = i >= std::size_t(n * inner) || i % std::size_t(inner) != row;
            if (beside)
              right = right && same_bits<T>({z[i]}, {y[i]});
            else if (special != -kInf || n == 1)
              right = right && std::isnan(z[i]);
            else
              right = right && (i == place ? z[i] == (log ? -T(kInf) : T(0)) : std::isfinite(z[i]));
          }
          CHECK(right);
        }
      }
}

TEST_CASE("softmax along a short dimension beside others takes rows together, and writes nothing beside them") {
  constexpr std::int64_t kBeside = 32, kOuter = 9;  // enough of them for rows of more than 64 columns
  const auto is_kept = [](float v) { return v == 77; };
  for (const std::int64_t n : {2, 3, 5, 26, 37, 50})
    for (const std::int64_t inner : {2, 3, 5, 6, 7, 9, 12, 31, 49, 60, 63, 84, 100, 126, 196, 198, 252, 260})
      for (bool log : {false, true}) {
        CAPTURE(n, inner, log);
        const Size s{kOuter, n, inner};
        auto x = numbers<float>(s.numel(), 31, -9, 9);
        const auto dy = numbers<float>(s.numel(), 32);
        // Columns whose numbers are far apart, so that no column may take a maximum or a sum of another.
        for (std::int64_t i = 0; i < s.numel(); ++i) x[size(i)] += float(i % inner % 5 * 60 - 120);
        const Values yd = forward(s, Values(x.begin(), x.end()), log);
        Values expected(x.size());
        backward(s, Values(dy.begin(), dy.end()), yd, expected, log, false);
        std::vector<float> y(size(s.numel() + 2 * kBeside), 77), dx = y;
        (log ? log_softmax<float> : softmax<float>)(x.data(), y.data() + kBeside, kOuter, n, inner);
        (log ? log_softmax_grad<float> : softmax_grad<float>)(dy.data(), y.data() + kBeside, dx.data() + kBeside,
                                                              kOuter, n, inner, false);
        for (const auto* all : {&y, &dx}) {
          CHECK(std::all_of(all->begin(), all->begin() + kBeside, is_kept));
          CHECK(std::all_of(all->end() - kBeside, all->end(), is_kept));
        }
        CHECK(distance(std::vector<float>(y.begin() + kBeside, y.end() - kBeside), yd) < 1e-6);
        CHECK(distance(std::vector<float>(dx.begin() + kBeside, dx.end() - kBeside), expected) < 4e-6);
      }
}
