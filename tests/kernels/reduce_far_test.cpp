#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/linear.hpp"
#include "kernels/softmax.hpp"
#include "support/catch.hpp"
#include "support/reduce_case.hpp"

// Reductions of columns of more than caches hold, which are worked on in wider groups and in another order than others:
// against those of the left and the right half of the columns, which are few enough.

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

using FarFloats = std::vector<float>;

/// x as [outer, n, width], whose middle dimension is reduced.
struct FarColumns {
  std::int64_t outer, n, width;
  FarFloats x;

  FarColumns(std::int64_t o, std::int64_t rows, std::int64_t w)
      : outer(o), n(rows), width(w), x(numbers<float>(o * rows * w, 17, -1, 2)) {
    REQUIRE(double(x.size()) * sizeof(float) >= 1 << 24);
  }
  ReducePlan plan(std::int64_t columns) const { return reduce_plan(Shape{outer, n, columns}, 0b010); }
};

/// `count` columns of [rows, width], from number `first` on.
FarFloats far_columns(const FarFloats& x, std::int64_t width, std::int64_t first, std::int64_t count) {
  FarFloats some;
  for (std::size_t row = 0; row < x.size(); row += std::size_t(width))
    some.insert(some.end(), x.begin() + std::ptrdiff_t(row) + first, x.begin() + std::ptrdiff_t(row) + first + count);
  return some;
}

/// A kernel that reduces x to y, or that finds the gradient by x of its result y for dy.
using FarReduction = std::function<void(const ReducePlan&, const float* x, float* y)>;
using FarGradient = std::function<void(const ReducePlan&, const float* dy, const float* x, const float* y, float* dx)>;

FarFloats far_result(const ReducePlan& plan, const FarFloats& x, const FarReduction& forward) {
  FarFloats y(std::size_t(plan.outputs), 77);
  forward(plan, x.data(), y.data());
  return y;
}

FarFloats far_gradient(const ReducePlan& plan, const FarFloats& x, const FarReduction& forward,
                       const FarGradient& backward) {
  const FarFloats y = far_result(plan, x, forward);
  FarFloats dx(x.size(), 0.5f), dy(y.size());
  for (std::size_t o = 0; o < dy.size(); ++o) dy[o] = 1 + y[o] / 8;
  backward(plan, dy.data(), x.data(), y.data(), dx.data());
  return dx;
}

/// The distance of what `run(plan, x)` gives for all columns from what it gives for those of both halves.
double distance_from_halves(const FarColumns& c,
                            const std::function<FarFloats(const ReducePlan&, const FarFloats&)>& run) {
  const FarFloats all = run(c.plan(c.width), c.x);
  double worst = 0;
  for (const auto& [first, count] :
       {std::pair(std::int64_t{0}, c.width / 2), std::pair(c.width / 2, c.width - c.width / 2)})
    worst = std::max(worst, distance(far_columns(all, c.width, first, count),
                                     run(c.plan(count), far_columns(c.x, c.width, first, count))));
  return worst;
}

struct FarKernel {
  std::string name;
  FarReduction forward;
  FarGradient backward;
  double accuracy = 1e-6;
};

FarKernel far_norm(double p) {
  return {"norm " + std::to_string(p), [=](auto& plan, auto x, auto y) { reduce_norm(plan, p, x, y); },
          [=](auto& plan, auto dy, auto x, auto y, auto dx) { reduce_norm_grad(plan, p, dy, x, y, dx, true); }};
}

FarKernel far_extreme(Extreme which) {
  return {which == Extreme::max ? "max" : "min", [=](auto& plan, auto x, auto y) { reduce_extreme(plan, which, x, y); },
          [](auto& plan, auto dy, auto x, auto y, auto dx) { reduce_extreme_grad(plan, dy, x, y, dx, true); }, 0};
}

const std::vector<FarKernel> kFarKernels = {
    {"sum", [](auto& plan, auto x, auto y) { reduce_sum(plan, x, y); },
     [](auto& plan, auto dy, auto, auto, auto dx) { reduce_sum_grad(plan, dy, dx, true); }},
    {"mean", [](auto& plan, auto x, auto y) { reduce_mean(plan, x, y); },
     [](auto& plan, auto dy, auto, auto, auto dx) { reduce_mean_grad(plan, dy, dx, false); }},
    {"var", [](auto& plan, auto x, auto y) { reduce_var(plan, 1, x, y); },
     [](auto& plan, auto dy, auto x, auto, auto dx) { reduce_var_grad(plan, 1, dy, x, dx, false); }},
    {"logsumexp", [](auto& plan, auto x, auto y) { reduce_logsumexp(plan, x, y); },
     [](auto& plan, auto dy, auto x, auto y, auto dx) { reduce_logsumexp_grad(plan, dy, x, y, dx, false); }},
    far_extreme(Extreme::max),
    far_extreme(Extreme::min),
    far_norm(1),
    far_norm(2),
    far_norm(3),
    far_norm(kInf),
    far_norm(-kInf)};

}  // namespace

TEST_CASE("columns that no cache holds are reduced as fewer are, and so are their gradients") {
  const FarColumns wide(1, 4195, 1000), narrow(1, 419431, 10);
  for (const FarKernel& k : kFarKernels)
    for (const FarColumns* c : {&wide, &narrow}) {
      if (c == &narrow && k.name != "sum" && k.name != "var") continue;
      CAPTURE(k.name, c->width);
      CHECK(distance_from_halves(*c, [&](auto& plan, auto& x) { return far_result(plan, x, k.forward); }) <=
            k.accuracy);
      CHECK(distance_from_halves(
                *c, [&](auto& plan, auto& x) { return far_gradient(plan, x, k.forward, k.backward); }) <= k.accuracy);
    }
}

TEST_CASE("columns that no cache holds have the same bits on any number of threads, wide or narrow, once or often") {
  for (const FarColumns& c :
       {FarColumns(1, 3817, 1100), FarColumns(3, 1500, 940), FarColumns(1, 65551, 64), FarColumns(70, 22, 2750)})
    for (const FarKernel& k : {kFarKernels[0], kFarKernels[2], kFarKernels[3], kFarKernels[4]}) {
      CAPTURE(k.name, c.width);
      CHECK(distance_from_halves(c, [&](auto& plan, auto& x) { return far_result(plan, x, k.forward); }) <= k.accuracy);
      CHECK(same_on_any_threads([&] { return far_result(c.plan(c.width), c.x, k.forward); }));
      if (k.name == "var")
        CHECK(same_on_any_threads([&] { return far_gradient(c.plan(c.width), c.x, k.forward, k.backward); }));
    }
}

TEST_CASE("products and places of extremes of columns that no cache holds are found") {
  FarColumns c(1, 4195, 1000);
  for (std::size_t i = 0; i < c.x.size(); ++i) c.x[i] = i % 3 == 0 ? 2.0f : i % 3 == 1 ? 0.5f : 1.0f;
  for (std::int64_t k = 0; k < c.width; ++k) c.x[std::size_t((k * 4 % c.n) * c.width + k)] = k % 7 == 0 ? 0.0f : 8.0f;
  const ReducePlan plan = c.plan(c.width);
  const FarReduction product = [](auto& p, auto x, auto y) { reduce_prod(p, x, y); };
  CHECK(distance_from_halves(c, [&](auto& p, auto& x) { return far_result(p, x, product); }) == 0);
  CHECK(distance_from_halves(c, [&](auto& p, auto& x) {
          return far_gradient(p, x, product, [](auto& q, auto dy, auto from, auto, auto dx) {
            reduce_prod_grad(q, dy, from, dx, false);
          });
        }) < 1e-6);
  std::vector<std::int64_t> index(std::size_t(c.width), -7);
  arg_extreme(plan, Extreme::max, c.x.data(), static_cast<float*>(nullptr), index.data());
  FarFloats dx(c.x.size(), 77), dy(std::size_t(c.width), 3);
  arg_extreme_grad(plan, dy.data(), index.data(), dx.data(), false);
  double sum = 0;
  for (const float d : dx) sum += double(d);
  CHECK(sum == 3.0 * double(c.width));
  for (std::int64_t k = 0; k < c.width; ++k) {
    CAPTURE(k);
    const std::int64_t row = k * 4 % c.n;
    REQUIRE((k % 7 == 0 ? c.x[std::size_t(index[std::size_t(k)] * c.width + k)] == 2.0f
                        : index[std::size_t(k)] == row && dx[std::size_t(row * c.width + k)] == 3.0f));
  }
}

TEST_CASE("the gradient of a bias is the sum over rows that no cache holds") {
  for (const FarColumns& c : {FarColumns(1, 4195, 1000), FarColumns(1, 2097, 2001), FarColumns(1, 65551, 64)}) {
    const auto bias_gradient = [](const ReducePlan& plan, const FarFloats& dy) {
      const std::int64_t features = plan.outputs, rows = plan.count;
      FarFloats db(std::size_t(features), 0.25f);
      linear_backward_bias({.rows = rows, .in_features = 1, .out_features = features}, dy.data(), db.data(), true);
      return db;
    };
    CAPTURE(c.width);
    CHECK(distance_from_halves(c, bias_gradient) < 1e-6);
  }
}

TEST_CASE("softmax over columns that no cache holds is that of fewer") {
  for (const FarColumns& c : {FarColumns(1, 4195, 1000), FarColumns(5, 21, 40000)})
    for (const bool log : {false, true}) {
      const auto run = [=](const ReducePlan& plan, const FarFloats& x) {
        FarFloats y(x.size(), 77), dx(x.size(), 77);
        const std::int64_t columns = plan.outputs / c.outer;
        (log ? log_softmax<float> : softmax<float>)(x.data(), y.data(), c.outer, c.n, columns);
        (log ? log_softmax_grad<float> : softmax_grad<float>)(x.data(), y.data(), dx.data(), c.outer, c.n, columns,
                                                              false);
        y.insert(y.end(), dx.begin(), dx.end());
        return y;
      };
      CAPTURE(c.n, log);
      CHECK(distance_from_halves(c, run) < 1e-6);
    }
}
