#include "kernels/vector_math.hpp"

#include <algorithm>
#include <limits>

#include "kernels/activations.hpp"
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

/// Numbers of both signs in every binade, denormal ones too, and a denser set in [-30, 30).
template <class T>
std::vector<T> everywhere(int a_binade) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = numbers<T>(20011, 3, -30, 30);
  const auto fraction = numbers<T>(2 * a_binade, 4, 1, 2);
  for (int e = Limits::min_exponent - Limits::digits; e < Limits::max_exponent; ++e)
    for (std::size_t i = 0; i < fraction.size(); ++i)
      x.push_back(std::ldexp(i % 2 == 0 ? fraction[i] : -fraction[i], e));
  return x;
}

/// The worst of a map, over numbers of any size in an array: on the processor's instruction set.
template <class F, class T, class Oracle>
double worst_ulps(const Oracle& oracle, T most = std::numeric_limits<T>::infinity(), const F& f = {}) {
  const std::vector<T> x = everywhere<T>(sizeof(T) == sizeof(float) ? 97 : 13);
  std::vector<T> y(x.size());
  map(x.data(), y.data(), std::int64_t(x.size()), f);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::abs(x[i]) <= most) worst = std::max(worst, ulps(y[i], oracle(static_cast<long double>(x[i]))));
  return worst;
}

template <class T>
void check_accuracy() {
  using L = long double;
  constexpr bool single = sizeof(T) == sizeof(float);
  CHECK(worst_ulps<Exp, T>([](L x) { return std::exp(x); }) < 1);
  CHECK(worst_ulps<Log, T>([](L x) { return std::log(x); }) < 1);
  CHECK(worst_ulps<Log1p, T>([](L x) { return std::log1p(x); }) < 1.5);
  CHECK(worst_ulps<Tanh, T>([](L x) { return std::tanh(x); }) < 1.5);
  CHECK(worst_ulps<Elu, T>([](L x) { return x > 0 ? x : std::expm1(x); }) < 1);
  CHECK(worst_ulps<Sigmoid, T>([](L x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }) <
        2);
  CHECK(worst_ulps<Sin, T>([](L x) { return std::sin(x); }) < 1);
  CHECK(worst_ulps<Cos, T>([](L x) { return std::cos(x); }) < 1);
  // Products with x: accurate where the other factor is a normal number.
  CHECK(worst_ulps<Silu, T>([](L x) { return x < 0 ? x * std::exp(x) / (1 + std::exp(x)) : x / (1 + std::exp(-x)); },
                            T(single ? 87 : 708)) < 2.5);
  CHECK(worst_ulps<Gelu, T>([](L x) { return x * std::erfc(-x / std::sqrt(L(2))) / 2; }, T(single ? 12.8 : 37)) <
        (single ? 6 : 7));
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

TEST_CASE("vectorised functions are within their bounds over all exponents") {
  check_accuracy<float>();
  check_accuracy<double>();
}

TEST_CASE("a map gives an element the same value at any place of any array") {
  check_position<Exp, float>();
  check_position<Exp, double>();
  check_position<Log, float>();
  check_position<Log1p, float>();
  check_position<Sin, float>();
  check_position<Cos, double>();
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
  CHECK(same_values(mapped<Sin>(std::vector<float>{inf, -inf, nan, 0, 1e30f, tiny}),
                    {nan, nan, nan, 0, std::sin(1e30f), tiny}));
  CHECK(std::signbit(mapped<Sin>(std::vector<double>{-0.0})[0]));
  CHECK(same_values(mapped<Cos>(std::vector<double>{INFINITY, NAN, 0, 1e300}), {NAN, NAN, 1, std::cos(1e300)}));
  CHECK(same_values(mapped<Softplus>(std::vector<float>{inf, -inf, nan, 21}), {inf, 0, nan, 21}));
  CHECK(same_values(mapped<Elu>(std::vector<float>{inf, -inf, nan, 0, -200, 200}), {inf, -1, nan, 0, -1, 200}));
  const double infinity = INFINITY;
  CHECK(same_values(mapped<Exp>(std::vector<double>{infinity, -infinity, NAN, 0, 710, -746, -745}),
                    {infinity, 0, NAN, 1, infinity, 0, 4.9406564584124654e-324}));
  CHECK(same_values(mapped<Tanh>(std::vector<double>{infinity, -infinity, NAN, 0, 400}), {1, -1, NAN, 0, 1}));
}
