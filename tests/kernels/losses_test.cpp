#include "kernels/losses.hpp"

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

/// Checks a loss of the difference against `oracle`, and its gradient against the stencil of it.
template <class L, class Oracle>
void check_pair(const L& l, const Oracle& oracle) {
  const auto x = numbers<double>(37, 1), t = numbers<double>(37, 2), dy = numbers<double>(37, 3);
  Values loss(37), expected(37), slopes(37), dx(37, 7), added(37, 0.5), one(37);
  for (std::size_t i = 0; i < 37; ++i) {
    expected[i] = oracle(x[i] - t[i]);
    slopes[i] = slope(oracle, x[i] - t[i], 1e-5) * dy[i] * 3;
  }
  pair_loss(l, x.data(), t.data(), loss.data(), 37);
  CHECK(distance(loss, expected) < 1e-14);
  const LossGrad<double> each{dy.data(), false, 3};
  pair_loss_grad(l, each, x.data(), t.data(), dx.data(), 37, false);
  CHECK(distance(dx, slopes) < 1e-8);
  pair_loss_grad(l, each, x.data(), t.data(), added.data(), 37, true);
  for (std::size_t i = 0; i < 37; ++i) CHECK(added[i] == 0.5 + dx[i]);

  const double whole = 2;
  pair_loss_grad(l, LossGrad<double>{&whole, true, 0.25}, x.data(), t.data(), one.data(), 37, false);
  for (std::size_t i = 0; i < 37; ++i) CHECK(one[i] == Approx(dx[i] / dy[i] / 6).margin(1e-14));
}

/// The gradient of one pair whose difference is `d`.
template <class L>
double slope_at(const L& l, double d) {
  const double zero = 0, one = 1;
  double dx = 7;
  pair_loss_grad(l, LossGrad<double>{&one, true}, &d, &zero, &dx, 1, false);
  return dx;
}

const Values kX = {-30, -0.7, 0, 0.4, 2, 40}, kT = {0, 0.3, 1, 0.5, 1, 0.2};
const Values kWeight = {2, 0.5, 1}, kPositive = {1.5, 3};
const BceWithLogits<double> kBce{kWeight.data(), 3, kPositive.data(), 2};

}  // namespace

TEST_CASE("losses of a difference agree with their definitions and gradients") {
  check_pair(Mse{}, [](double d) { return d * d; });
  check_pair(L1{}, [](double d) { return std::abs(d); });
  check_pair(SmoothL1{0.7}, [](double d) { return std::abs(d) < 0.7 ? 0.5 * d * d / 0.7 : std::abs(d) - 0.35; });
  check_pair(Huber{0.7}, [](double d) { return std::abs(d) <= 0.7 ? 0.5 * d * d : 0.7 * (std::abs(d) - 0.35); });
}

TEST_CASE("losses of a difference have PyTorch's gradient at their kinks") {
  CHECK(slope_at(L1{}, 0) == 0);
  CHECK(slope_at(SmoothL1{0}, 0) == 0);
  CHECK(slope_at(SmoothL1{0}, -0.1) == -1);
  CHECK(slope_at(SmoothL1{2}, -2) == -1);
  CHECK(slope_at(Huber{2}, -2) == -2);
  CHECK(slope_at(Huber{2}, 5) == 2);
}

TEST_CASE("binary cross entropy of logits agrees with PyTorch and stays finite") {
  Values loss(6);
  bce_with_logits(kBce, kX.data(), kT.data(), loss.data(), 6);
  // Stored from PyTorch 2.13.
  const Values expected = {1.8474111129762605e-13, 0.6375488391083663,  1.0397207708399179,
                           2.4520610095998103,     0.09519600828222938, 32.0};
  for (std::size_t i = 0; i < 6; ++i) CHECK(loss[i] == Approx(expected[i]).epsilon(1e-13));

  const Values dy = {1, 2, 3, 4, 5, 6};
  const auto total = [&](const Values& x, const Values& t) {
    Values l(6);
    bce_with_logits(kBce, x.data(), t.data(), l.data(), 6);
    double s = 0;
    for (std::size_t i = 0; i < 6; ++i) s += dy[i] * l[i];
    return s;
  };
  const LossGrad<double> each{dy.data(), false};
  Values dx(6, 7), dt(6, 7), added(6, 0.5);
  bce_with_logits_grad(kBce, each, kX.data(), kT.data(), dx.data(), 6, false);
  bce_with_logits_target_grad(kBce, each, kX.data(), dt.data(), 6, false);
  CHECK(distance(dx, gradient(kX, [&](const Values& x) { return total(x, kT); })) < 1e-9);
  CHECK(distance(dt, gradient(kT, [&](const Values& t) { return total(kX, t); })) < 1e-9);
  bce_with_logits_grad(kBce, each, kX.data(), kT.data(), added.data(), 6, true);
  for (std::size_t i = 0; i < 6; ++i) CHECK(added[i] == 0.5 + dx[i]);

  const double huge[] = {1000, -1000}, target[] = {0, 1};
  bce_with_logits({}, huge, target, loss.data(), 2);
  bce_with_logits_grad({}, each, huge, target, dx.data(), 2, false);
  CHECK(loss[0] == 1000);
  CHECK(loss[1] == 1000);
  CHECK(dx[0] == 1);
  CHECK(dx[1] == -2);
}

TEST_CASE("gradients of many losses are those of all times each one's") {
  constexpr std::int64_t kMany = 700;
  const auto x = numbers<double>(kMany, 1), t = numbers<double>(kMany, 2), dy = numbers<double>(kMany, 3);
  const double one = 1;
  const auto check = [&](const auto& gradient) {
    Values all(kMany, 7), each(kMany, 7), added(kMany, 0.5);
    gradient(LossGrad<double>{&one, true}, all.data(), false);
    gradient(LossGrad<double>{dy.data(), false}, each.data(), false);
    gradient(LossGrad<double>{dy.data(), false}, added.data(), true);
    for (std::size_t i = 0; i < kMany; ++i) {
      CHECK(each[i] == all[i] * dy[i]);
      CHECK(added[i] == 0.5 + each[i]);
    }
  };
  check([&](const LossGrad<double>& d, double* dx, bool add) {
    pair_loss_grad(Huber{0.7}, d, x.data(), t.data(), dx, kMany, add);
  });
  check([&](const LossGrad<double>& d, double* dx, bool add) {
    bce_with_logits_grad(kBce, d, x.data(), t.data(), dx, kMany, add);
  });
  check([&](const LossGrad<double>& d, double* dt, bool add) {
    bce_with_logits_target_grad(kBce, d, x.data(), dt, kMany, add);
  });
}

TEST_CASE("losses of pairs give the same bits on any number of threads") {
  const auto x = numbers<float>(50021, 1), t = numbers<float>(50021, 2, 0, 1);
  const float one = 1;
  CHECK(same_on_any_threads([&] {
    std::vector<float> loss(x.size());
    bce_with_logits({}, x.data(), t.data(), loss.data(), 50021);
    return loss;
  }));
  CHECK(same_on_any_threads([&] {
    std::vector<float> dx(x.size());
    pair_loss_grad(Huber{}, LossGrad<float>{&one, true}, x.data(), t.data(), dx.data(), 50021, false);
    return dx;
  }));
}
