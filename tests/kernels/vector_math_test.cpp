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

template <class T, class F, class Oracle>
double worst_ulps(const F& f, const Oracle& oracle) {
  double worst = 0;
  for (T x : everywhere<T>(sizeof(T) == sizeof(float) ? 97 : 13))
    worst = std::max(worst, ulps(f(x), oracle(static_cast<long double>(x))));
  return worst;
}

template <class T>
void check_accuracy() {
  using L = long double;
  CHECK(worst_ulps<T>([](T x) { return vector_exp(x); }, [](L x) { return std::exp(x); }) < 1);
  CHECK(worst_ulps<T>([](T x) { return vector_log(x); }, [](L x) { return std::log(x); }) < 1);
  CHECK(worst_ulps<T>([](T x) { return vector_log1p(x); }, [](L x) { return std::log1p(x); }) < 1.5);
  CHECK(worst_ulps<T>([](T x) { return vector_tanh(x); }, [](L x) { return std::tanh(x); }) < 1.5);
  CHECK(worst_ulps<T>([](T x) { return vector_expm1_negative(-std::abs(x)); },
                      [](L x) { return std::expm1(-std::abs(x)); }) < 1);
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
  const auto sigmoid = [](long double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); };
  CHECK(worst_ulps<float>([](float x) { return vector_sigmoid(x); }, sigmoid) < 2);
  CHECK(worst_ulps<float>([](float x) { return vector_erf(x); }, [](long double x) { return std::erf(x); }) < 2);
}

TEST_CASE("a map gives an element the same value at any place of any array") {
  check_position<Exp, float>();
  check_position<Exp, double>();
  check_position<Log, float>();
  check_position<Log1p, float>();
  check_position<Tanh, float>();
  check_position<Tanh, double>();
  check_position<Sigmoid, float>();
  check_position<Silu, float>();
  check_position<Gelu, float>();
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
  CHECK(same_values(mapped<Gelu>(std::vector<float>{inf, -inf, nan, 0, 7, -7}), {inf, nan, nan, 0, 7, 0}));
  CHECK(same_values(mapped<Softplus>(std::vector<float>{inf, -inf, nan, 21}), {inf, 0, nan, 21}));
  CHECK(same_values(mapped<Elu>(std::vector<float>{inf, -inf, nan, 0, -200, 200}), {inf, -1, nan, 0, -1, 200}));
  const double infinity = INFINITY;
  CHECK(same_values(mapped<Exp>(std::vector<double>{infinity, -infinity, NAN, 0, 710, -746, -745}),
                    {infinity, 0, NAN, 1, infinity, 0, 4.9406564584124654e-324}));
  CHECK(same_values(mapped<Tanh>(std::vector<double>{infinity, -infinity, NAN, 0, 400}), {1, -1, NAN, 0, 1}));
}
