#include "kernels/cross_entropy.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

// The values below were computed by PyTorch 2.13 for this x [2, 3, 5] and these targets, ignoring -1.
const Values kScores = [] {
  Values x;
  for (int i = 1; i <= 30; ++i) x.push_back(i * 37 % 11 / 4.0 - 1);
  return x;
}();
const Ints kTarget = {0, 2, -1, 1, 1, 2, -1, 0, 2, 1};
const Values kClassWeight = {0.5, 2, 1.25};

ClassLoss small_loss(double smoothing) { return {2, 3, 5, -1, smoothing}; }

double ramp(const Values& g) {
  double s = 0;
  for (std::size_t i = 0; i < g.size(); ++i) s += g[i] * double(i + 1);
  return s;
}

/// softmax(2 x) with the classes in reverse order.
Values probabilities() {
  Values q(30);
  for (std::size_t o = 0; o < 2; ++o)
    for (std::size_t c = 0; c < 5; ++c) {
      double total = 0;
      for (std::size_t j = 0; j < 3; ++j) total += std::exp(2 * kScores[(o * 3 + j) * 5 + c]);
      for (std::size_t j = 0; j < 3; ++j)
        q[(o * 3 + j) * 5 + c] = std::exp(2 * kScores[(o * 3 + 2 - j) * 5 + c]) / total;
    }
  return q;
}

}  // namespace

TEST_CASE("cross entropy with class indices agrees with PyTorch, smoothing, weights and ignored rows included") {
  struct Expected {
    double smoothing;
    bool weighted;
    double mean, slope, sum, first;
  };
  for (const Expected& e :
       {Expected{0, false, 1.4072627001512035, -1.621993960539182, 11.258101601209624, 0.680269670641735},
        Expected{0, true, 1.5530034820046648, -1.9811898454041397, 16.694787431550147, 0.340134835320867},
        Expected{0.1, false, 1.38955436681787, -1.5594939605391829, 11.116434934542959, 0.730269670641735},
        Expected{0.1, true, 1.5214407493221396, -1.9688377409138809, 16.355488055213, 0.466155060618997}}) {
    const ClassLoss p = small_loss(e.smoothing);
    const double* w = e.weighted ? kClassWeight.data() : nullptr;
    Values loss(10, kNaN), lse(10), dx(30, kNaN), added(30, 0.25);
    cross_entropy(p, kScores.data(), kTarget.data(), w, loss.data(), lse.data());
    CHECK(sum(loss) == Approx(e.sum).epsilon(1e-13));
    CHECK(loss[0] == Approx(e.first).epsilon(1e-13));
    CHECK(loss[2] == 0);
    const double total = target_weight(p, kTarget.data(), w), one = 1;
    CHECK(sum(loss) / total == Approx(e.mean).epsilon(1e-13));
    const LossGrad<double> dy{&one, true, 1 / total};
    cross_entropy_grad(p, dy, kScores.data(), kTarget.data(), w, lse.data(), dx.data(), false);
    CHECK(ramp(dx) == Approx(e.slope).epsilon(1e-12));
    for (std::size_t j : {2u, 7u, 12u, 16u, 21u, 26u}) CHECK(dx[j] == 0);
    cross_entropy_grad(p, dy, kScores.data(), kTarget.data(), w, lse.data(), added.data(), true);
    for (std::size_t i = 0; i < 30; ++i) CHECK(added[i] == 0.25 + dx[i]);
  }
}

TEST_CASE("cross entropy without reduction passes each row its own gradient") {
  const ClassLoss p = small_loss(0.1);
  const auto dy = numbers<double>(10, 3);
  Values loss(10), lse(10), dx(30, kNaN);
  cross_entropy(p, kScores.data(), kTarget.data(), kClassWeight.data(), loss.data(), lse.data());
  cross_entropy_grad(p, LossGrad<double>{dy.data(), false}, kScores.data(), kTarget.data(), kClassWeight.data(),
                     lse.data(), dx.data(), false);
  const auto expected = gradient(kScores, [&](const Values& x) {
    Values l(10), scratch(10);
    cross_entropy(p, x.data(), kTarget.data(), kClassWeight.data(), l.data(), scratch.data());
    double s = 0;
    for (std::size_t r = 0; r < 10; ++r) s += dy[r] * l[r];
    return s;
  });
  CHECK(distance(dx, expected) < 1e-9);
}

TEST_CASE("cross entropy with class probabilities agrees with PyTorch") {
  struct Expected {
    double smoothing;
    bool weighted;
    double mean, slope, slope_q;
  };
  const Values q = probabilities();
  for (const Expected& e : {Expected{0, false, 1.5318614557128007, -1.280821751009094, 62.04499737540947},
                            Expected{0, true, 1.724222335650164, -3.197382908947613, 86.04697303027214},
                            Expected{0.1, false, 1.5074280117684622, -1.185567328422557, 55.84049763786852},
                            Expected{0.1, true, 1.7183659791188248, -3.0436793086958183, 77.44227572724493}}) {
    const ClassLoss p = small_loss(e.smoothing);
    const double* w = e.weighted ? kClassWeight.data() : nullptr;
    Values loss(10), lse(10), dx(30, kNaN), dq(30, kNaN), added(30, 1), added_q(30, 2);
    cross_entropy_probabilities(p, kScores.data(), q.data(), w, loss.data(), lse.data());
    CHECK(sum(loss) / 10 == Approx(e.mean).epsilon(1e-13));
    const double one = 1;
    const LossGrad<double> dy{&one, true, 0.1};
    cross_entropy_probabilities_grad(p, dy, kScores.data(), q.data(), w, lse.data(), dx.data(), false, dq.data(),
                                     false);
    CHECK(ramp(dx) == Approx(e.slope).epsilon(1e-12));
    CHECK(ramp(dq) == Approx(e.slope_q).epsilon(1e-12));
    cross_entropy_probabilities_grad<double>(p, dy, kScores.data(), q.data(), w, lse.data(), added.data(), true,
                                             nullptr, false);
    cross_entropy_probabilities_grad<double>(p, dy, kScores.data(), q.data(), w, lse.data(), nullptr, false,
                                             added_q.data(), true);
    for (std::size_t i = 0; i < 30; ++i) {
      CHECK(added[i] == 1 + dx[i]);
      CHECK(added_q[i] == 2 + dq[i]);
    }
  }
}

TEST_CASE("ignored rows give no loss and no gradient, whatever they hold") {
  const Ints ignored = {-1, -1};
  const Values x = {kNaN, 1, 2, 3, 4, 5};
  const ClassLoss p{2, 3, 1, -1, 0.1};
  Values loss(2, 7), lse(2), dx(6, 7);
  const double dy = kNaN;
  cross_entropy<double>(p, x.data(), ignored.data(), nullptr, loss.data(), lse.data());
  cross_entropy_grad<double>(p, {&dy, true, 1}, x.data(), ignored.data(), nullptr, lse.data(), dx.data(), false);
  CHECK(loss == Values{0, 0});
  CHECK(dx == Values(6, 0));
  CHECK(target_weight<double>(p, ignored.data(), nullptr) == 0);
}

TEST_CASE("negative log likelihood picks the target and weighs it") {
  const ClassLoss p{1, 3, 2, 2};
  const Values x = {-1, -2, -3, -4, -5, -6}, dy = {10, 100};
  const Ints t = {1, 2}, u = {0, 1};
  Values loss(2, 7), dx(6, 7);
  nll(p, x.data(), t.data(), kClassWeight.data(), loss.data());
  CHECK(loss == Values{6, 0});
  nll(p, x.data(), u.data(), kClassWeight.data(), loss.data());
  CHECK(loss == Values{0.5, 8});
  nll_grad<double>(p, {dy.data(), false, 0.5}, t.data(), kClassWeight.data(), dx.data(), false);
  CHECK(dx == Values{0, 0, -10, 0, 0, 0});
  nll_grad<double>(p, {dy.data(), false, 0.5}, u.data(), nullptr, dx.data(), true);
  CHECK(dx == Values{-5, 0, -10, -50, 0, 0});
}

TEST_CASE("the first bad target is found, and ignored ones are not bad") {
  const Ints t = {0, -100, 2, 3, -1};
  CHECK(find_bad_target(t.data(), 5, 3, -100) == 3);
  CHECK(find_bad_target(t.data(), 5, 4, -100) == 4);
  CHECK(find_bad_target(t.data(), 5, 3, 3) == 1);
  CHECK(find_bad_target(t.data(), 3, 3, -100) == -1);
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{7}, INT64_MIN, INT64_MAX})
    for (std::int64_t r = 0; r < 23; ++r) {
      Ints many(23, 6);
      many[std::size_t(22 - r)] = -100;
      CHECK(find_bad_target(many.data(), 23, 7, -100) == -1);
      many[std::size_t(r)] = bad;
      CHECK(find_bad_target(many.data(), 23, 7, -100) == r);
    }
}

TEST_CASE("large logits keep their float precision") {
  const ClassLoss p{1, 3, 1};
  const std::vector<float> x = {10000, 10001, 9999};
  const Ints t = {1};
  float loss = 0;
  double lse = 0;
  std::vector<float> dx(3);
  const float one = 1;
  cross_entropy<float>(p, x.data(), t.data(), nullptr, &loss, &lse);
  cross_entropy_grad<float>(p, {&one, true, 1}, x.data(), t.data(), nullptr, &lse, dx.data(), false);
  const double total = 1 + std::exp(-1.0) + std::exp(-2.0);
  CHECK(loss == Approx(std::log(total)).epsilon(1e-6));
  CHECK(dx[0] == Approx(std::exp(-1.0) / total).epsilon(1e-6));
  CHECK(dx[1] == Approx(1 / total - 1).epsilon(1e-6));
}

TEMPLATE_TEST_CASE("cross entropy and its gradient are the definition at any number of classes and neighbours", "",
                   float, double) {
  using T = TestType;
  const double bound = sizeof(T) == sizeof(float) ? 2e-6 : 1e-14;
  for (const std::int64_t classes : {1, 2, 7, 8, 9, 16, 17, 33, 100})
    for (const std::int64_t inner : {1, 5, 8, 17, 64, 71})
      for (const double smoothing : {0.0, 0.1})
        for (const bool weighted : {false, true}) {
          const ClassLoss p{3, classes, inner, -1, smoothing};
          const auto rows = static_cast<std::size_t>(p.rows());
          auto x = numbers<T>(p.rows() * classes, 1, -5, 5);
          const auto weights = numbers<T>(classes, 2, 0.5, 2), dy = numbers<T>(p.rows(), 3);
          const T* const weight = weighted ? weights.data() : nullptr;
          Ints target(rows);
          for (std::size_t r = 0; r < rows; ++r) target[r] = r % 5 == 2 ? -1 : std::int64_t(r * 7) % classes;
          const auto at = [&](std::size_t r, std::int64_t j) {
            const auto row = std::int64_t(r);
            return std::size_t((row / inner * classes + j) * inner + row % inner);
          };
          // Far below the others, and not a number where it counts nothing.
          if (classes > 1) x[at(0, target[0] == 0 ? 1 : 0)] = T(-500);
          x[at(2, 0)] = std::numeric_limits<T>::quiet_NaN();
          Values expected_loss(rows), expected(x.size());
          for (std::size_t r = 0; r < rows; ++r) {
            if (target[r] < 0) continue;
            double top = -1e300, sum = 0, all = 0, spread = 0;
            const auto w = [&](std::int64_t j) { return weighted ? double(weights[std::size_t(j)]) : 1.0; };
            for (std::int64_t j = 0; j < classes; ++j) top = std::max(top, double(x[at(r, j)]));
            for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(double(x[at(r, j)]) - top);
            const double lse = top + std::log(sum), each = smoothing / double(classes);
            for (std::int64_t j = 0; j < classes; ++j) all += each * w(j) * (lse - double(x[at(r, j)]));
            for (std::int64_t j = 0; j < classes; ++j) spread += each * w(j);
            const std::int64_t t = target[r];
            const double hit = (1 - smoothing) * w(t);
            expected_loss[r] = hit * (lse - double(x[at(r, t)])) + all;
            for (std::int64_t j = 0; j < classes; ++j)
              expected[at(r, j)] =
                  ((hit + spread) * std::exp(double(x[at(r, j)]) - lse) - (j == t ? hit : 0) - each * w(j)) *
                  double(dy[r]) * 0.5;
          }
          std::vector<T> loss(rows, T(77)), dx(x.size(), T(77)), added(x.size(), T(0.25));
          Values lse(rows);
          const LossGrad<T> g{dy.data(), false, 0.5};
          cross_entropy(p, x.data(), target.data(), weight, loss.data(), lse.data());
          cross_entropy_grad(p, g, x.data(), target.data(), weight, lse.data(), dx.data(), false);
          cross_entropy_grad(p, g, x.data(), target.data(), weight, lse.data(), added.data(), true);
          INFO(classes << " classes, " << inner << " neighbours, smoothing " << smoothing
                       << (weighted ? ", weights" : ""));
          CHECK(distance(loss, expected_loss) < bound);
          CHECK(distance(dx, expected) < bound);
          for (double& v : expected) v += 0.25;
          CHECK(distance(added, expected) < bound);
          double total = 0;
          for (std::size_t r = 0; r < rows; ++r)
            if (target[r] >= 0) total += weighted ? double(weights[std::size_t(target[r])]) : 1;
          CHECK(std::abs(target_weight(p, target.data(), weight) - total) < 1e-9);
        }
}

TEST_CASE("the gradient of negative log likelihood is 0 but for the targets, on every layout") {
  for (const std::int64_t inner : {1, 7, 64, 71})
    for (const std::int64_t classes : {1, 5, 100}) {
      const ClassLoss p{23, classes, inner, -1};
      Ints target(std::size_t(p.rows()));
      for (std::size_t r = 0; r < target.size(); ++r) target[r] = r % 3 == 1 ? -1 : std::int64_t(r) % classes;
      const auto dy = numbers<float>(p.rows(), 1);
      std::vector<float> dx(std::size_t(p.rows() * classes), 77.0f), expected(dx.size());
      for (std::size_t r = 0; r < target.size(); ++r) {
        const auto row = std::int64_t(r);
        if (target[r] >= 0) expected[std::size_t((row / inner * classes + target[r]) * inner + row % inner)] = -dy[r];
      }
      nll_grad<float>(p, {dy.data(), false, 1}, target.data(), nullptr, dx.data(), false);
      CHECK(dx == expected);
    }
}

TEST_CASE("cross entropy gives the same bits on any number of threads") {
  for (const ClassLoss& p : {ClassLoss{701, 11, 1, -100, 0.1}, ClassLoss{3, 11, 701, -100, 0.1}}) {
    const auto x = numbers<float>(p.rows() * p.classes, 1);
    Ints t(std::size_t(p.rows()));
    for (std::size_t r = 0; r < t.size(); ++r) t[r] = std::int64_t(r * 7 % 11);
    std::vector<double> lse(t.size());
    const float one = 1;
    CHECK(same_on_any_threads([&] {
      std::vector<float> loss(t.size());
      cross_entropy<float>(p, x.data(), t.data(), nullptr, loss.data(), lse.data());
      return loss;
    }));
    CHECK(same_on_any_threads([&] {
      std::vector<float> dx(x.size());
      cross_entropy_grad<float>(p, {&one, true, 1}, x.data(), t.data(), nullptr, lse.data(), dx.data(), false);
      return dx;
    }));
  }
}

TEMPLATE_TEST_CASE("a row of cross entropy has the same bits beside others and alone", "", float, double) {
  using T = TestType;
  constexpr std::int64_t kRows = 37;
  bool same = true;
  for (std::int64_t n = 1; n <= 64; ++n)
    for (double smoothing : {0.0, 0.1}) {
      const ClassLoss all{kRows, n, 1, -1, smoothing}, one{1, n, 1, -1, smoothing};
      const auto x = numbers<T>(kRows * n, 13, -6, 6), q = numbers<T>(kRows * n, 14, 0, 1);
      const auto dy = numbers<T>(kRows, 15);
      Ints target(kRows);
      for (std::int64_t r = 0; r < kRows; ++r) target[std::size_t(r)] = r * 5 % n;
      std::vector<T> loss(kRows), soft(kRows), dx(x.size()), dx_soft(x.size()), dq(x.size());
      Values lse(kRows);
      const T* const none = nullptr;
      cross_entropy_probabilities(all, x.data(), q.data(), none, soft.data(), lse.data());
      cross_entropy(all, x.data(), target.data(), none, loss.data(), lse.data());
      cross_entropy_grad(all, {dy.data(), false}, x.data(), target.data(), none, lse.data(), dx.data(), false);
      cross_entropy_probabilities_grad(all, {dy.data(), false}, x.data(), q.data(), none, lse.data(), dx_soft.data(),
                                       false, dq.data(), false);
      for (std::int64_t r = 0; r < kRows; ++r) {
        const std::int64_t at = r * n;
        const auto is_row = [=](const std::vector<T>& row, const std::vector<T>& rows) {
          return same_bits(row, std::vector<T>(rows.begin() + at, rows.begin() + at + n));
        };
        T one_loss = 0, one_soft = 0;
        double one_lse = 0;
        std::vector<T> row(static_cast<std::size_t>(n)), row_q(row);
        cross_entropy_probabilities(one, x.data() + at, q.data() + at, none, &one_soft, &one_lse);
        cross_entropy(one, x.data() + at, &target[std::size_t(r)], none, &one_loss, &one_lse);
        same = same && same_bits<T>({one_loss, one_soft}, {loss[std::size_t(r)], soft[std::size_t(r)]}) &&
               same_bits<double>({one_lse}, {lse[std::size_t(r)]});
        const LossGrad<T> g{&dy[std::size_t(r)], false};
        cross_entropy_grad(one, g, x.data() + at, &target[std::size_t(r)], none, &one_lse, row.data(), false);
        same = same && is_row(row, dx);
        cross_entropy_probabilities_grad(one, g, x.data() + at, q.data() + at, none, &one_lse, row.data(), false,
                                         row_q.data(), false);
        same = same && is_row(row, dx_soft) && is_row(row_q, dq);
      }
    }
  CHECK(same);
}
