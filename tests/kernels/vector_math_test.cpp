#include "kernels/vector_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>

#include "kernels/activations.hpp"
#include "kernels/broadcast.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper;
using namespace taper::kernels;
using namespace taper::test;

namespace {

/// |got - expected| in units of the last place of T at `expected`; infinite if one is infinite or NaN and the other
/// not.
template <class T>
double ulps(T got, long double expected) {
  const T rounded = T(expected);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : INFINITY;
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  using Limits = std::numeric_limits<T>;
  exponent = rounded == 0 ? Limits::min_exponent : std::max(exponent, Limits::min_exponent);
  return double(std::abs(static_cast<long double>(got) - expected) / std::ldexp(1.0L, exponent - Limits::digits));
}

/// Numbers of both signs in every binade, denormal ones too, denser sets where functions bend and where they end, and
/// what is special.
template <class T>
std::vector<T> everywhere() {
  using Limits = std::numeric_limits<T>;
  constexpr bool single = sizeof(T) == sizeof(float);
  std::vector<T> x = numbers<T>(9001, 3, single ? -130 : -800, single ? 130 : 800);
  const std::vector<T> near = numbers<T>(12007, 5, -8, 8), fraction = numbers<T>(single ? 74 : 10, 4, 1, 2);
  x.insert(x.end(), near.begin(), near.end());
  for (int e = Limits::min_exponent - Limits::digits; e < Limits::max_exponent; ++e)
    for (std::size_t i = 0; i < fraction.size(); ++i)
      x.push_back(std::ldexp(i % 2 == 0 ? fraction[i] : -fraction[i], e));
  for (T v :
       {T(0), T(1), Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN()}) {
    x.push_back(v);
    x.push_back(-v);
  }
  return x;
}

using L = long double;

/// The worst of a map or of its gradient, and where: for the message.
struct Worst {
  double ulp = 0, at = 0;
};
bool operator<(const Worst& w, double most) { return w.ulp < most; }
std::ostream& operator<<(std::ostream& out, const Worst& w) { return out << w.ulp << " ulp at " << w.at; }

/// The worst of a map, over numbers of any size in an array: on the processor's instruction set.
template <class T, class F, class Oracle>
Worst worst_of(const F& f, const Oracle& oracle) {
  const std::vector<T> x = everywhere<T>();
  std::vector<T> y(x.size());
  map(x.data(), y.data(), std::int64_t(x.size()), f);
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], oracle(L(x[i])));
    if (error > worst.ulp) worst = {error, double(x[i])};
  }
  return worst;
}

/// The worst of a gradient, given what the map saved: of numbers that are neither 0 nor special, where the gradient is
/// not. Where it passes 0, in [low, high], errors count as if it was 1/4.
template <class T, class F, class Oracle>
Worst worst_slope(const F& f, const Oracle& oracle, double low = 0, double high = 0) {
  const std::vector<T> x = everywhere<T>();
  std::vector<T> y(x.size()), dx(x.size());
  const std::vector<T> dy(x.size(), T(1));
  map(x.data(), y.data(), std::int64_t(x.size()), f);
  const std::vector<T>& saved = F::needs == Needs::output ? y : x;
  map_grad(dy.data(), saved.data(), dx.data(), std::int64_t(x.size()), f, false);
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const L expected = oracle(L(saved[i]));
    if (x[i] == 0 || !std::isfinite(x[i]) || !std::isfinite(T(expected))) continue;
    const bool passes = low < x[i] && x[i] < high;
    const double error =
        passes ? double(std::abs(L(dx[i]) - expected)) / std::numeric_limits<T>::epsilon() * 4 : ulps(dx[i], expected);
    if (error > worst.ulp) worst = {error, double(x[i])};
  }
  return worst;
}

// The functions in long double. A power of e needs an argument with more bits than the argument has: it comes in two
// parts.

struct TwoLong {
  L high, low;
};
TwoLong product(L a, L b) {
  const L p = a * b;
  return {p, std::isinf(p) ? 0 : std::fma(a, b, -p)};
}
L exp_of(TwoLong z) { return std::exp(z.high) * (1 + z.low); }
/// 1 / (1 + e^-z)
L logistic(TwoLong z) {
  const L e = exp_of({-std::abs(z.high), z.high < 0 ? z.low : -z.low});
  return z.high < 0 ? e / (1 + e) : 1 / (1 + e);
}
L logistic(L x) { return logistic(TwoLong{x, 0}); }

constexpr L kRootHalf = 0.707106781186547524382L, kRootHalfLow = 1.89503255889326e-20L;
constexpr L kInvRootTwoPi = 0.39894228040143267794L, kInvRootPi = 0.56418958354775628695L;
L bell(L x) {
  const TwoLong square = product(x, x);
  return kInvRootTwoPi * exp_of({-square.high / 2, -square.low / 2});
}
/// The normal distribution function.
L normal(L x) {
  const TwoLong z = product(-x, kRootHalf);
  const L low = std::isinf(z.high) ? 0 : z.low - x * kRootHalfLow;
  return std::erfc(z.high) / 2 - kInvRootPi * std::exp(-z.high * z.high) * low;
}
/// sqrt(8 / pi) (x + 0.044715 x^3) = x (a + b x^2)
TwoLong tanh_argument(L x) {
  constexpr L kA = 1.59576912160573071171L, kALow = 5.35117775572048e-20L, kB = 0.0713548162726002487772L,
              kBLow = -8.75006214400898e-22L;
  if (std::abs(x) > 1e4) return {x * std::abs(x), 0};
  const TwoLong square = product(x, x), third = product(kB, square.high);
  const L w = kA + third.high, left = w - kA, lost = (kA - (w - left)) + (third.high - left);
  const TwoLong z = product(x, w);
  return {z.high, z.low + x * (lost + third.low + kB * square.low + kBLow * square.high + kALow)};
}
L times_gate(L x, L gate) { return std::isinf(x) && x < 0 ? L(NAN) : x * gate; }
template <class T>
L softplus(L x, T beta) {
  const TwoLong z = product(x, beta);
  return T(z.high) > 20 ? x : std::log1p(exp_of(z)) / beta;
}

template <class T>
void check_accuracy() {
  constexpr double kMost = 2;
  CHECK(worst_of<T>(Exp{}, [](L x) { return std::exp(x); }) < kMost);
  CHECK(worst_of<T>(Log{}, [](L x) { return std::log(x); }) < kMost);
  CHECK(worst_of<T>(Log1p{}, [](L x) { return std::log1p(x); }) < kMost);
  CHECK(worst_of<T>(Sqrt{}, [](L x) { return std::sqrt(x); }) < kMost);
  CHECK(worst_of<T>(Rsqrt{}, [](L x) { return 1 / std::sqrt(x); }) < kMost);
  CHECK(worst_of<T>(Reciprocal{}, [](L x) { return 1 / x; }) < kMost);
  CHECK(worst_of<T>(Sine{}, [](L x) { return std::sin(x); }) < kMost);
  CHECK(worst_of<T>(Sine{.cosine = 1}, [](L x) { return std::cos(x); }) < kMost);
  CHECK(worst_of<T>(Tanh{}, [](L x) { return std::tanh(x); }) < kMost);
  CHECK(worst_of<T>(Sigmoid{}, [](L x) { return logistic(x); }) < kMost);
  CHECK(worst_of<T>(Silu{}, [](L x) { return times_gate(x, logistic(x)); }) < kMost);
  CHECK(worst_of<T>(Gelu{}, [](L x) { return times_gate(x, normal(x)); }) < kMost);
  CHECK(worst_of<T>(GeluTanh{}, [](L x) { return times_gate(x, logistic(tanh_argument(x))); }) < kMost);
  const auto elu = [](L x, L scale, L alpha) { return x > 0 ? scale * x : scale * alpha * std::expm1(x); };
  CHECK(worst_of<T>(Selu{}, [&](L x) { return elu(x, 1.05070098735548049342L, 1.67326324235437728482L); }) < kMost);
  for (double alpha : {1.0, 1.3, 0.1}) CHECK(worst_of<T>(Elu{alpha}, [&](L x) { return elu(x, 1, T(alpha)); }) < kMost);
  CHECK(worst_of<T>(LeakyRelu{0.3}, [](L x) { return x > 0 ? x : T(0.3) * x; }) < kMost);
  for (double beta : {1.0, 1.7, 0.3})
    CHECK(worst_of<T>(Softplus{beta, 20}, [&](L x) { return softplus(x, T(beta)); }) < kMost);
  // Roots have no signs of their own.
  for (double e : {0.5, -0.5})
    CHECK(worst_of<T>(Pow{e}, [e](L x) { return std::pow(std::sqrt(x), L(2 * e)); }) < kMost);
  for (double e : {0., 1., 2., 3., -1., -2., 4., -3., 7., 1.5, 1 / 3., 2.7, -0.01, 1e-3, 100., -101.7, 3000.1, 1e30})
    CHECK(worst_of<T>(Pow{e}, [e](L x) { return std::pow(x, L(T(e))); }) < kMost);
}

template <class T>
void check_slopes() {
  constexpr double kMost = 3;
  CHECK(worst_slope<T>(Exp{}, [](L y) { return y; }) < kMost);
  CHECK(worst_slope<T>(Log{}, [](L x) { return 1 / x; }) < kMost);
  CHECK(worst_slope<T>(Log1p{}, [](L x) { return 1 / (1 + x); }) < kMost);
  CHECK(worst_slope<T>(Sqrt{}, [](L y) { return 0.5L / y; }) < kMost);
  CHECK(worst_slope<T>(Rsqrt{}, [](L y) { return -0.5L * y * y * y; }) < kMost);
  CHECK(worst_slope<T>(Reciprocal{}, [](L y) { return -y * y; }) < kMost);
  CHECK(worst_slope<T>(Sine{}, [](L x) { return std::cos(x); }) < kMost);
  CHECK(worst_slope<T>(Sine{.cosine = 1}, [](L x) { return -std::sin(x); }) < kMost);
  CHECK(worst_slope<T>(Tanh{}, [](L y) { return (1 - y) * (1 + y); }) < kMost);
  CHECK(worst_slope<T>(Sigmoid{}, [](L y) { return (1 - y) * y; }) < kMost);
  CHECK(worst_slope<T>(
            Silu{}, [](L x) { return logistic(x) * (1 + x * logistic(-x)); }, -3, 0) < 5);
  CHECK(worst_slope<T>(
            Gelu{}, [](L x) { return normal(x) + x * bell(x); }, -2, 0) < kMost);
  CHECK(worst_slope<T>(Elu{1.3}, [](L x) { return x > 0 ? 1 : T(1.3) * std::exp(x); }) < kMost);
  CHECK(worst_slope<T>(Softplus{}, [](L x) { return x > 20 ? 1 : logistic(x); }) < kMost);
  CHECK(worst_slope<T>(Pow{2.7}, [](L x) { return L(T(2.7)) * std::pow(x, L(T(2.7 - 1))); }) < kMost);
}

/// Each value alone, the values at every offset within an array of every length up to 23, and in place.
template <class F, class T>
void check_position(const F& f = {}) {
  auto x = numbers<T>(67, 11, -9, 9);
  const std::vector<T> special = {0, T(-0.0), T(-110), T(95), T(1e-40), T(-800), T(720), INFINITY, -INFINITY, NAN, 1};
  x.insert(x.begin() + 31, special.begin(), special.end());
  std::vector<T> alone(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) map(&x[i], &alone[i], 1, f);
  bool same = true;
  for (std::size_t at = 0; at < x.size(); ++at)
    for (std::size_t n = 1; n <= 23 && at + n <= x.size(); ++n) {
      std::vector<T> y(n + 1, T(5)), in_place(x.begin() + std::ptrdiff_t(at), x.begin() + std::ptrdiff_t(at + n));
      map(&x[at], y.data() + 1, std::int64_t(n), f);
      map(in_place.data(), in_place.data(), std::int64_t(n), f);
      const std::vector<T> got(y.begin() + 1, y.end());
      const std::vector<T> expected(alone.begin() + std::ptrdiff_t(at), alone.begin() + std::ptrdiff_t(at + n));
      same = same && same_values(got, expected) && same_values(in_place, expected);
    }
  CHECK(same);
}

template <class F, class T>
std::vector<T> mapped(std::vector<T> x, const F& f = {}) {
  map(x.data(), x.data(), std::int64_t(x.size()), f);
  return x;
}

}  // namespace

TEST_CASE(
    "every function of one element is within 2 units in the last place, wherever its argument and its value lie") {
  check_accuracy<float>();
  check_accuracy<double>();
}

TEST_CASE("square roots are rounded correctly") {
  // Every sixteenth float of two binades, and others in all of them.
  std::vector<float> x;
  for (std::uint32_t bits = 0x3f800000; bits < 0x40800000; bits += 16)
    x.push_back(std::bit_cast<float>(bits + bits / 16 % 16));
  for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 4999) x.push_back(std::bit_cast<float>(bits));
  const auto special = everywhere<float>();
  x.insert(x.end(), special.begin(), special.end());
  std::vector<float> expected;
  for (const float v : x) expected.push_back(std::sqrt(v));
  const auto y = mapped<Sqrt>(x);
  CHECK(same_values(y, expected));
  CHECK(std::signbit(mapped<Sqrt>(std::vector<float>{-0.0f})[0]));
}

TEST_CASE("sines and cosines of floats are accurate near multiples of pi / 2 and from angle to angle") {
  std::vector<float> x;
  for (std::uint32_t bits = 0x30000000; bits < 0x4a000000; bits += 331)  // up to two millions
    x.push_back(std::bit_cast<float>((bits % 2 << 31) + bits));
  for (int n = 1; n < 9000; ++n) {
    const auto near = float(n * 1.57079632679489661923);
    x.insert(x.end(), {std::nextafter(near, 0.0f), near, -near, std::nextafter(near, 1e9f)});
  }
  const auto sine = mapped<Sine>(x), cosine = mapped(x, Sine{.cosine = 1});
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = std::max(ulps(sine[i], std::sin(L(x[i]))), ulps(cosine[i], std::cos(L(x[i]))));
    if (error > worst.ulp) worst = {error, double(x[i])};
  }
  CHECK(worst < 1);
}

TEST_CASE("gradients of functions of one element are within 3 units in the last place of what was saved, silu's 5") {
  check_slopes<float>();
  check_slopes<double>();
}

namespace {

template <class T>
std::vector<T> powers(const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<T> p(x.size());
  binary<Power>(same_shape_plan(std::int64_t(x.size())), x.data(), y.data(), p.data());
  return p;
}

template <class T>
void check_powers() {
  using Limits = std::numeric_limits<T>;
  constexpr bool single = sizeof(T) == sizeof(float);
  // Special values and signs, pair by pair, are those of the standard library.
  const T odd = std::ldexp(T(1), Limits::digits) - 1;
  const std::vector<T> special = {0,
                                  1,
                                  2,
                                  3,
                                  T(0.5),
                                  T(2.5),
                                  odd,
                                  odd / 2,
                                  odd + 1,
                                  2 * odd,
                                  Limits::denorm_min(),
                                  Limits::min(),
                                  Limits::max(),
                                  Limits::infinity(),
                                  Limits::quiet_NaN()};
  std::vector<T> x, y, expected;
  for (T a : special)
    for (T b : special)
      for (int signs = 0; signs < 4; ++signs) {
        x.push_back(signs & 1 ? -a : a);
        y.push_back(signs & 2 ? -b : b);
        expected.push_back(std::pow(x.back(), y.back()));
      }
  const std::vector<T> got = powers(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i] << " ^ " << y[i] << ": " << got[i] << ", expected " << expected[i]);
    const bool close = ulps(got[i], L(expected[i])) < 2;
    if (!close || (!std::isnan(got[i]) && std::signbit(got[i]) != std::signbit(expected[i]))) FAIL_CHECK();
    // And so where nothing else is in a vector, nor in what is left over.
    for (const T alone : powers(std::vector<T>(17, x[i]), std::vector<T>(17, y[i])))
      if (std::isnan(got[i]) ? !std::isnan(alone) : alone != got[i] || std::signbit(alone) != std::signbit(got[i]))
        FAIL_CHECK();
  }
  // Results of any size, from bases of any size and close to 1.
  x = numbers<T>(40009, 21, 0, 3);
  y = numbers<T>(40009, 22, -1, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 2 == 0) x[i] = std::ldexp(x[i], int(i % (2 * Limits::max_exponent)) - Limits::max_exponent);
    if (i % 3 == 0) x[i] = 1 + (x[i] - T(1.5)) * std::sqrt(Limits::epsilon());
    y[i] *= T(single ? 105 : 750) / std::abs(std::log(x[i]));
  }
  const std::vector<T> p = powers(x, y);
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(p[i], std::pow(L(x[i]), L(y[i])));
    if (error > worst.ulp) worst = {error, double(x[i])};
  }
  CHECK(worst < 2);
}

}  // namespace

TEST_CASE("powers are within 2 units in the last place, and special where the standard library's are") {
  check_powers<float>();
  check_powers<double>();
}

TEST_CASE("a map gives an element the same value at any place of any array") {
  check_position<Exp, float>();
  check_position<Pow, float>(Pow{2.7});
  check_position<Pow, double>(Pow{-3});
  check_position<Exp, double>();
  check_position<Log, float>();
  check_position<Log1p, float>();
  check_position<Sine, float>();
  check_position<Sine, float>(Sine{.cosine = 1});
  check_position<Sqrt, float>();
  check_position<Sqrt, double>();
  check_position<Sine, double>(Sine{.cosine = 1});
  check_position<Tanh, float>();
  check_position<Tanh, double>();
  check_position<Sigmoid, float>();
  check_position<Silu, float>();
  check_position<Gelu, float>();
  check_position<Gelu, double>();
  check_position<Sigmoid, double>();
  check_position<Log, double>();
  check_position<GeluTanh, float>();
  check_position<Softplus, float>();
  check_position<Elu, float>();
  check_position<Elu, double>();
}

TEST_CASE("vectorised maps follow PyTorch at infinities, NaN, zeros and the ends of the range") {
  const float inf = INFINITY, nan = NAN, tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x = {inf, -inf, nan, 0, -104, 89, 88.5f, -100, -1};
  CHECK(same_values(mapped<Exp>(x), {inf, 0, nan, 1, 0, inf, std::exp(88.5f), 27 * tiny, std::exp(-1.0f)}));
  const std::vector<float> far = {-105, -200, -700, -999, -1001, -1e6f, -3e38f};
  CHECK(same_values(mapped<Exp>(far), std::vector<float>(7)));
  CHECK(same_values(mapped<Sigmoid>(far), std::vector<float>(7)));
  std::vector<float> masked(35, -inf), powers(35);
  masked[9] = nan, masked[20] = 0, masked[30] = -104;
  powers[9] = nan, powers[20] = 1;
  CHECK(same_values(mapped<Exp>(masked), powers));
  CHECK(same_values(mapped<Log>(x), {inf, nan, nan, -inf, nan, 4.48863637f, 4.48300255f, nan, nan}));
  CHECK(same_values(mapped<Log>(std::vector<float>{tiny}), {-103.278929f}));
  CHECK(same_values(mapped<Log1p>(std::vector<float>{inf, -inf, nan, -1, -2, tiny}), {inf, nan, nan, -inf, nan, tiny}));
  CHECK(std::signbit(mapped<Log1p>(std::vector<float>{-0.0f})[0]));
  CHECK(same_values(mapped<Tanh>(std::vector<float>{inf, -inf, nan, 40, -40, tiny}), {1, -1, nan, 1, -1, tiny}));
  CHECK(std::signbit(mapped<Tanh>(std::vector<float>{-0.0f})[0]));
  CHECK(same_values(mapped<Sigmoid>(std::vector<float>{inf, -inf, nan, 0, 200, -200}), {1, 0, nan, 0.5f, 1, 0}));
  CHECK(same_values(mapped<Silu>(std::vector<float>{inf, -inf, nan, 0, -200}), {inf, nan, nan, 0, -0.0f}));
  CHECK(same_values(mapped<Gelu>(std::vector<float>{inf, -inf, nan, 0, 7, -20}), {inf, nan, nan, 0, 7, 0}));
  CHECK(mapped<Gelu>(std::vector<float>{-7})[0] == Approx(-8.9586876e-12).epsilon(1e-6));
  CHECK(same_values(mapped<Sine>(std::vector<float>{inf, -inf, nan, 0, 1e30f, tiny}),
                    {nan, nan, nan, 0, std::sin(1e30f), tiny}));
  CHECK(std::signbit(mapped<Sine>(std::vector<double>{-0.0})[0]));
  CHECK(same_values(mapped(std::vector<double>{INFINITY, NAN, 0, 1e300}, Sine{.cosine = 1}),
                    {NAN, NAN, 1, std::cos(1e300)}));
  CHECK(same_values(mapped<Softplus>(std::vector<float>{inf, -inf, nan, 21}), {inf, 0, nan, 21}));
  CHECK(same_values(mapped<Elu>(std::vector<float>{inf, -inf, nan, 0, -200, 200}), {inf, -1, nan, 0, -1, 200}));
  const double infinity = INFINITY;
  CHECK(same_values(mapped<Exp>(std::vector<double>{infinity, -infinity, NAN, 0, 710, -746, -745}),
                    {infinity, 0, NAN, 1, infinity, 0, 4.9406564584124654e-324}));
  CHECK(same_values(mapped<Tanh>(std::vector<double>{infinity, -infinity, NAN, 0, 400}), {1, -1, NAN, 0, 1}));
}
