#include "kernels/broadcast.hpp"

#include <array>
#include <cstring>
#include <limits>

#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/numbers.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

/// The elements of an operand of shape `operand` that belong to those of `out`, coordinate by coordinate.
std::vector<std::size_t> sources(const Shape& out, const Shape& operand) {
  std::vector<std::size_t> at = {0};
  for (int back = out.rank(); back-- > 0;) {
    const std::size_t extent = back < operand.rank() ? size(operand.back(back)) : 1;
    std::vector<std::size_t> longer;
    longer.reserve(at.size() * size(out.back(back)));
    for (const std::size_t row : at)
      for (std::int64_t i = 0; i < out.back(back); ++i) longer.push_back(row * extent + (extent == 1 ? 0 : size(i)));
    at = std::move(longer);
  }
  return at;
}

struct Pair {
  Shape a, b;
};

const std::vector<Pair> kPairs = {{{}, {}},
                                  {{5}, {5}},
                                  {{3, 5}, {5}},
                                  {{3, 5}, {3, 1}},
                                  {{3, 1}, {1, 5}},
                                  {{}, {3, 5}},
                                  {{1, 1}, {5}},
                                  {{2, 3, 5, 7}, {3, 1, 7}},
                                  {{2, 3, 5, 7}, {2, 1, 5, 1}},
                                  {{2, 1, 5, 1}, {3, 1, 7}},
                                  {{7, 1, 3, 1, 2}, {1, 5, 1, 11, 1}},
                                  {{1, 2, 1, 3, 1, 2, 1, 5}, {2, 1, 2, 1, 3, 1, 2, 1}},
                                  {{67, 131}, {131}},
                                  {{0, 5}, {1}},
                                  {{0, 5}, {1, 5}},
                                  {{3, 0}, {3, 1}}};

template <class T, class F>
std::vector<T> naive_broadcast(const Shape& out, const Pair& s, const std::vector<T>& a, const std::vector<T>& b,
                               const F& f) {
  std::vector<T> y(std::size_t(out.numel()));
  const auto from_a = sources(out, s.a), from_b = sources(out, s.b);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = f(a[from_a[i]], b[from_b[i]]);
  return y;
}

template <class Op, class F>
void check_binary(const F& f, double low, bool step = false, double off = 0) {
  for (const Pair& s : kPairs) {
    INFO(to_string(s.a) << " with " << to_string(s.b));
    const Shape out = *broadcast_shape(s.a, s.b);
    auto a = numbers<double>(s.a.numel(), 1, low), b = numbers<double>(s.b.numel(), 2, low);
    const auto forward = [&](const std::vector<double>& u, const std::vector<double>& v) {
      std::vector<double> y(std::size_t(out.numel()), kNaN);
      binary<Op>(broadcast_plan(out, {s.a, s.b}), u.data(), v.data(), y.data());
      return y;
    };
    const auto y = forward(a, b);
    CHECK(distance(y, naive_broadcast(out, s, a, b, f)) <= off);
    if (out.numel() > 2000) continue;

    const auto dy = numbers<double>(out.numel(), 3);
    for (int operand : {0, 1}) {
      const auto expected = gradient(
          operand == 0 ? a : b,
          [&](const std::vector<double>& x) {
            const auto z = operand == 0 ? naive_broadcast(out, s, x, b, f) : naive_broadcast(out, s, a, x, f);
            double loss = 0;
            for (std::size_t i = 0; i < z.size(); ++i) loss += dy[i] * z[i];
            return loss;
          },
          step ? 1e-6 : 1e-3);
      std::vector<double> dx(expected.size(), kNaN), added(expected.size(), 2.5);
      const GradPlan plan = grad_plan(out, s.a, s.b, operand);
      binary_grad<Op>(plan, operand, dy.data(), a.data(), b.data(), dx.data(), false);
      CHECK(distance(dx, expected) < (step ? 1e-7 : 1e-9));
      binary_grad<Op>(plan, operand, dy.data(), a.data(), b.data(), added.data(), true);
      for (double& v : added) v -= 2.5;
      CHECK(distance(added, dx) < 1e-14);
    }
  }
}

template <class Op, class T = double>
std::vector<T> on(std::vector<T> a, std::vector<T> b) {
  std::vector<T> y(a.size());
  binary<Op>(same_shape_plan(std::int64_t(a.size())), a.data(), b.data(), y.data());
  return y;
}

template <class Op>
std::vector<double> grads(int operand, std::vector<double> a, std::vector<double> b) {
  const std::vector<double> dy(a.size(), 1);
  std::vector<double> dx(a.size());
  const std::int64_t n[] = {std::int64_t(a.size())};
  binary_grad<Op>(grad_plan(n, n, n, operand), operand, dy.data(), a.data(), b.data(), dx.data(), false);
  return dx;
}

template <class Op>
std::vector<std::int64_t> compared(std::vector<double> a, std::vector<double> b) {
  std::vector<std::int64_t> y(a.size(), 9);
  compare<Op>(same_shape_plan(std::int64_t(a.size())), a.data(), b.data(), y.data());
  return y;
}

/// Whether y = f(a, b) in every bit, of numbers among which are infinities, NaN and zeros with a sign.
template <class Op, class T, class F>
bool has_bits_of(const Pair& s, const F& f) {
  const Shape out = *broadcast_shape(s.a, s.b);
  auto a = numbers<T>(s.a.numel(), 1), b = numbers<T>(s.b.numel(), 2);
  using Limits = std::numeric_limits<T>;
  const T special[] = {0, -T(0), INFINITY, -INFINITY, NAN, Limits::denorm_min() * 71362, Limits::max() / 1.13f};
  for (auto* const x : {&a, &b})
    for (std::size_t i = 0; i < x->size(); i += 3) (*x)[i] = special[i / 3 % std::size(special)];
  std::vector<T> y(std::size_t(out.numel()), 9);
  binary<Op>(broadcast_plan(out, {s.a, s.b}), a.data(), b.data(), y.data());
  const auto expected = naive_broadcast(out, s, a, b, f);
  return std::equal(y.begin(), y.end(), expected.begin(),
                    [](T u, T v) { return std::isnan(v) ? std::isnan(u) : std::memcmp(&u, &v, sizeof u) == 0; });
}

/// Checks the gradients of both operands, of numbers from `low` on, and added ones against sums of the terms that are
/// given for each.
template <class Op, class T>
void check_gradients(const Pair& s, const std::array<T (*)(T g, T a, T b), 2>& terms, double low = -2) {
  const Shape out = *broadcast_shape(s.a, s.b);
  const auto a = numbers<T>(s.a.numel(), 1, low), b = numbers<T>(s.b.numel(), 2, low), dy = numbers<T>(out.numel(), 3);
  const auto from_a = sources(out, s.a), from_b = sources(out, s.b);
  for (const int operand : {0, 1}) {
    std::vector<double> sums((operand == 0 ? a : b).size());
    for (std::size_t i = 0; i < dy.size(); ++i)
      sums[(operand == 0 ? from_a : from_b)[i]] +=
          double(terms[std::size_t(operand)](dy[i], a[from_a[i]], b[from_b[i]]));
    for (const bool add : {false, true}) {
      std::vector<T> dx(sums.size(), add ? 0 : NAN);
      binary_grad<Op>(grad_plan(out, s.a, s.b, operand), operand, dy.data(), a.data(), b.data(), dx.data(), add);
      CHECK(distance(dx, sums) < 1e-6);
    }
  }
}

}  // namespace

TEST_CASE("shapes broadcast from the back and refuse what does not fit") {
  CHECK(broadcast_shape(Shape{2, 3, 5}, Shape{3, 1}) == Shape{2, 3, 5});
  CHECK(broadcast_shape(Shape{0, 5}, Shape{1, 1}) == Shape{0, 5});
  CHECK_FALSE(broadcast_shape(Shape{2, 3}, Shape{2}));
  CHECK_FALSE(broadcast_shape(Shape{0}, Shape{2}));
}

TEST_CASE("plans merge what is read alike") {
  CHECK(broadcast_plan(Shape{2, 3, 5}, {Shape{2, 3, 5}, Shape{}}).outer_rank == 0);
  CHECK(broadcast_plan(Shape{2, 3, 5, 7}, {Shape{2, 3, 5, 7}, Shape{5, 7}}).outer_rank == 1);
  CHECK(broadcast_plan(Shape{2, 3, 5, 7}, {Shape{2, 3, 5, 7}, Shape{2, 1, 1, 1}}).inner == 105);
  CHECK(broadcast_plan(Shape{2, 3, 5, 7}, {Shape{2, 3, 5, 7}, Shape{1, 3, 1, 1}}).outer_rank == 2);
}

TEST_CASE("two-operand operations broadcast, and their gradients sum back to the operand") {
  check_binary<Add>([](double a, double b) { return a + b; }, -2);
  check_binary<Sub>([](double a, double b) { return a - b; }, -2);
  check_binary<Mul>([](double a, double b) { return a * b; }, -2);
  check_binary<Div>([](double a, double b) { return a / b; }, 0.5);
  check_binary<Power>([](double a, double b) { return std::pow(a, b); }, 0.5, false, 4e-16);
  check_binary<Maximum>([](double a, double b) { return std::max(a, b); }, -2, true);
  check_binary<Minimum>([](double a, double b) { return std::min(a, b); }, -2, true);
}

TEST_CASE("maximum and minimum carry NaN and split the gradient of equals") {
  CHECK(same_values(on<Maximum>({1, kNaN, 1, kInf}, {2, 1, kNaN, 3}), {2, kNaN, kNaN, kInf}));
  CHECK(same_values(on<Minimum>({1, kNaN, 1, kInf}, {2, 1, kNaN, 3}), {1, kNaN, kNaN, 3}));
  CHECK(grads<Maximum>(0, {1, 2, 3}, {2, 2, 2}) == std::vector<double>{0, 0.5, 1});
  CHECK(grads<Maximum>(1, {1, 2, 3}, {2, 2, 2}) == std::vector<double>{1, 0.5, 0});
  CHECK(grads<Minimum>(0, {1, 2, 3}, {2, 2, 2}) == std::vector<double>{1, 0.5, 0});
  CHECK(grads<Minimum>(1, {1, 2, 3}, {2, 2, 2}) == std::vector<double>{0, 0.5, 1});
}

TEST_CASE("powers of zero and to the zero have PyTorch's gradients") {
  CHECK(same_values(grads<Power>(0, {0, 0, 0, 3}, {0, 1, 2, 0}), {0, 1, 0, 0}));
  CHECK(same_values(grads<Power>(1, {0, 0, 0, 1}, {0, 1, -1, 5}), {0, 0, -kInf, 0}));
  CHECK(same_values(grads<Power>(1, {-2}, {2}), {kNaN}));
}

TEST_CASE("comparisons give 0 or 1, and NaN equals nothing") {
  const std::vector<double> a = {1, 2, 3, kNaN}, b = {2, 2, 2, kNaN};
  using Bits = std::vector<std::int64_t>;
  CHECK(compared<Eq>(a, b) == Bits{0, 1, 0, 0});
  CHECK(compared<Ne>(a, b) == Bits{1, 0, 1, 1});
  CHECK(compared<Lt>(a, b) == Bits{1, 0, 0, 0});
  CHECK(compared<Le>(a, b) == Bits{1, 1, 0, 0});
  CHECK(compared<Gt>(a, b) == Bits{0, 0, 1, 0});
  CHECK(compared<Ge>(a, b) == Bits{0, 1, 1, 0});
}

TEST_CASE("integer arithmetic wraps") {
  CHECK(on<Add, std::int64_t>({INT64_MAX}, {1}) == Ints{INT64_MIN});
  CHECK(on<Sub, std::int64_t>({INT64_MIN}, {1}) == Ints{INT64_MAX});
  CHECK(on<Mul, std::int64_t>({INT64_MIN, 3}, {-1, -7}) == Ints{INT64_MIN, -21});
  CHECK(on<Maximum, std::int64_t>({4, -4}, {-5, 5}) == Ints{4, 5});
  const Pair s{{2, 40}, {2, 1}};  // rows that are long, with a number each
  Ints a(80), y(80);
  for (std::size_t i = 0; i < 80; ++i) a[i] = (std::int64_t{1} << 60) + std::int64_t(i);
  const Ints b{3, -5};
  binary<Add>(broadcast_plan(Shape{2, 40}, {s.a, s.b}), a.data(), b.data(), y.data());
  CHECK(y == naive_broadcast(Shape{2, 40}, s, a, b, [](std::int64_t u, std::int64_t v) { return u + v; }));
}

TEST_CASE("where chooses with three shapes, and each side gets the gradient of what it gave") {
  const Shape out{2, 3, 5}, sc{3, 1}, sa{2, 1, 5}, sb{};
  const std::vector<std::int64_t> c = {1, 0, 7};
  const auto a = numbers<float>(10, 1), b = numbers<float>(1, 2), dy = numbers<float>(30, 3);
  std::vector<float> y(30), da(10, 9), db(1, 9), expected(30), expected_da(10, 0), expected_db(1, 0);
  where(broadcast_plan(out, {sc, sa, sb}), c.data(), a.data(), b.data(), y.data());
  where_grad(grad_plan(out, sa, sc, 0), 0, c.data(), dy.data(), da.data(), false);
  where_grad(grad_plan(out, sb, sc, 0), 1, c.data(), dy.data(), db.data(), false);
  const auto of_c = sources(out, sc), of_a = sources(out, sa);
  for (std::size_t i = 0; i < 30; ++i) {
    const bool first = c[of_c[i]] != 0;
    expected[i] = first ? a[of_a[i]] : b[0];
    (first ? expected_da[of_a[i]] : expected_db[0]) += dy[i];
  }
  CHECK(y == expected);
  CHECK(distance(da, expected_da) < 1e-6);
  CHECK(distance(db, expected_db) < 1e-6);
  std::vector<float> dsame(30, 9), everything(30, 0);
  where_grad(grad_plan(out, out, sc, 0), 1, c.data(), dy.data(), dsame.data(), false);
  for (std::size_t i = 0; i < 30; ++i)
    if (c[of_c[i]] == 0) everything[i] = dy[i];
  CHECK(dsame == everything);
}

TEST_CASE("a copy repeats and its gradient sums") {
  const Shape out{2, 3, 5}, in{3, 1};
  const std::vector<double> x = {1, 2, 3};
  std::vector<double> y(30), dx(3, 1), expected(3, 1);
  broadcast_copy(broadcast_plan(out, {in}), x.data(), y.data());
  const auto from = sources(out, in);
  for (std::size_t i = 0; i < 30; ++i) {
    CHECK(y[i] == x[from[i]]);
    expected[from[i]] += double(i);
    y[i] = double(i);
  }
  reduce_to(grad_plan(out, in, in, 0), y.data(), dx.data(), true);
  CHECK(dx == expected);
}

TEMPLATE_TEST_CASE("an operand that is a number for each row gives the bits of the operation", "", float, double) {
  using T = TestType;
  for (const std::int64_t n : {1, 3, 7, 8, 9, 16, 23, 31, 32, 33, 47, 64, 100, 511, 700, 16385, 40000})
    for (const Pair& s : {Pair{{3, n}, {3, 1}}, Pair{{5, 7, n}, {7, 1}}, Pair{{n}, {}}, Pair{{5, 1, n}, {1, 3, 1}},
                          Pair{{3, 70, n % 100}, {70, 1}}})
      for (const Pair& each : {s, Pair{s.b, s.a}}) {
        INFO(to_string(each.a) << " with " << to_string(each.b));
        CHECK(has_bits_of<Add, T>(each, [](T a, T b) { return a + b; }));
        CHECK(has_bits_of<Sub, T>(each, [](T a, T b) { return a - b; }));
        CHECK(has_bits_of<Mul, T>(each, [](T a, T b) { return a * b; }));
        CHECK(has_bits_of<Div, T>(each, [](T a, T b) { return a / b; }));
        CHECK(has_bits_of<Maximum, T>(each, [](T a, T b) { return a > b || a != a ? a : b; }));
        CHECK(has_bits_of<Minimum, T>(each, [](T a, T b) { return a < b || a != a ? a : b; }));
        check_gradients<Mul, T>(each, {[](T g, T, T b) { return g * b; }, [](T g, T a, T) { return g * a; }});
        check_gradients<Div, T>(
            each, {[](T g, T, T b) { return g / b; }, [](T g, T a, T b) { return -g * (a / b / b); }}, 0.5);
        check_gradients<Maximum, T>(
            each, {[](T g, T a, T b) { return a > b ? g : T(0); }, [](T g, T a, T b) { return a > b ? T(0) : g; }});
        check_gradients<Add, T>(each, {[](T g, T, T) { return g; }, [](T g, T, T) { return g; }});
        check_gradients<Sub, T>(each, {[](T g, T, T) { return g; }, [](T g, T, T) { return -g; }});
      }
}

TEMPLATE_TEST_CASE("a gradient that no cache holds is summed beside a number for each row", "", float, double) {
  using T = TestType;
  const Pair s{{(std::int64_t{1} << 24) / std::int64_t{9 * sizeof(T)} + 1}, {9, 1}};
  check_gradients<Mul, T>(s, {[](T g, T, T b) { return g * b; }, [](T g, T a, T) { return g * a; }});
}

TEST_CASE("an operation may write over an operand that is not repeated") {
  auto a = numbers<float>(35, 1);
  const auto b = numbers<float>(5, 2);
  std::vector<float> y(35);
  const auto plan = broadcast_plan(Shape{7, 5}, {Shape{7, 5}, Shape{5}});
  binary<Mul>(plan, a.data(), b.data(), y.data());
  binary<Mul>(plan, a.data(), b.data(), a.data());
  CHECK(a == y);
}

TEST_CASE("a long float sum over repetitions stays accurate") {
  const Shape out{1 << 20}, scalar{};
  const std::vector<float> dy(1 << 20, 0.1f);
  float dx = 0;
  reduce_to(grad_plan(out, scalar, scalar, 0), dy.data(), &dx, false);
  CHECK(dx == float(0.1f * double(1 << 20)));
}

TEST_CASE("broadcasting gives the same bits on any number of threads") {
  const Shape out{211, 3, 331};
  for (const Shape& s : {Shape{3, 1}, Shape{331}, Shape{211, 1, 331}, Shape{}, Shape{211, 3, 331}}) {
    const auto a = numbers<float>(out.numel(), 1), b = numbers<float>(s.numel(), 2),
               dy = numbers<float>(out.numel(), 3);
    CHECK(same_on_any_threads([&] {
      std::vector<float> y(a.size());
      binary<Mul>(broadcast_plan(out, {out, s}), a.data(), b.data(), y.data());
      return y;
    }));
    CHECK(same_on_any_threads([&] {
      std::vector<float> db(b.size());
      binary_grad<Mul>(grad_plan(out, out, s, 1), 1, dy.data(), a.data(), b.data(), db.data(), false);
      return db;
    }));
  }
}

TEMPLATE_TEST_CASE("operands of any layout that need many buffers are read and their gradients summed as they lie", "",
                   float, double) {
  using T = TestType;
  constexpr double kOff = sizeof(T) == sizeof(float) ? 1e-5 : 1e-12;
  const std::vector<Pair> pairs = {{{1009, 7}, {7}},
                                   {{1009, 7}, {1009, 1}},
                                   {{3, 701, 5}, {3, 1, 5}},
                                   {{3, 701, 5}, {701, 1}},
                                   {{37, 2, 31}, {37, 1, 31}},
                                   {{409, 41}, {41}},
                                   {{3, 101, 47}, {3, 1, 47}},
                                   {{23, 101}, {101}},
                                   {{7, 613}, {7, 1}},
                                   {{5003, 1}, {1, 3}},
                                   {{2, 17011}, {17011}},
                                   {{2, 17011}, {2, 1}},
                                   {{17011, 2}, {1, 2}},
                                   {{11, 53, 71}, {53, 1}},
                                   {{13, 1, 67}, {61, 67}},
                                   {{41, 37, 29}, {41, 1, 1}},
                                   {{64, 64, 1}, {64, 1, 64}},
                                   {{5, 67, 1}, {5, 1, 63}},
                                   {{3, 19, 1}, {3, 1, 257}},
                                   {{64, 1, 50}, {1, 40, 50}},
                                   {{11, 1, 19}, {1, 41, 19}},
                                   {{9, 1, 300}, {1, 3, 300}},
                                   {{17, 1, 5}, {1, 23, 5}},
                                   {{3, 1, 7, 1, 13}, {1, 5, 1, 11, 13}},
                                   {{2, 9, 1, 3, 1}, {2, 1, 7, 1, 31}}};
  for (const Pair& s : pairs) {
    INFO(to_string(s.a) << " with " << to_string(s.b));
    const Shape out = *broadcast_shape(s.a, s.b);
    const auto a = numbers<T>(s.a.numel(), 1), b = numbers<T>(s.b.numel(), 2);
    const auto dy = numbers<T>(out.numel(), 3);
    std::vector<T> y(dy.size(), T(kNaN)), chosen(y);
    binary<Mul>(broadcast_plan(out, {s.a, s.b}), a.data(), b.data(), y.data());
    CHECK(same_values(y, naive_broadcast(out, s, a, b, [](T u, T v) { return u * v; })));

    const std::vector<std::int64_t> no(a.size(), 0);
    where(broadcast_plan(out, {s.a, s.a, s.b}), no.data(), a.data(), b.data(), chosen.data());
    CHECK(same_values(chosen, naive_broadcast(out, s, a, b, [](T, T v) { return v; })));

    std::vector<double> da(a.size(), 0), db(b.size(), 0), sums(b.size(), 0);
    const auto of_a = sources(out, s.a), of_b = sources(out, s.b);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double g = double(dy[i]);
      const std::size_t u = of_a[i], v = of_b[i];
      da[u] += g * double(b[v]);
      db[v] += g * double(a[u]);
      sums[v] += g;
    }
    for (bool add : {false, true}) {
      std::vector<T> dx(a.size(), add ? T(0) : T(kNaN)), dz(b.size(), add ? T(0) : T(kNaN)), ds(dz), chosen_grad(dz);
      binary_grad<Mul>(grad_plan(out, s.a, s.b, 0), 0, dy.data(), a.data(), b.data(), dx.data(), add);
      CHECK(distance(dx, da) < kOff);
      binary_grad<Mul>(grad_plan(out, s.a, s.b, 1), 1, dy.data(), a.data(), b.data(), dz.data(), add);
      CHECK(distance(dz, db) < kOff);
      reduce_to(grad_plan(out, s.b, s.b, 0), dy.data(), ds.data(), add);
      CHECK(distance(ds, sums) < kOff);
      where_grad(grad_plan(out, s.b, s.a, 0), 1, no.data(), dy.data(), chosen_grad.data(), add);
      CHECK(distance(chosen_grad, sums) < kOff);
    }
  }
}
