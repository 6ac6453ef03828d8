#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "base/random.hpp"
#include "kernels/parallel.hpp"

// What the tests of the general kernels share.

namespace taper::test {

/// As standard containers count.
inline std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// `n` numbers in [low, high), different for each seed.
template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t seed, double low = -2, double high = 2) {
  std::vector<T> x(static_cast<std::size_t>(n));
  std::uint64_t position = 0;
  for (T& v : x) v = T(low + (high - low) * uniform_double(random_bits(seed, Stream::data, position++)));
  return x;
}

/// The numbers in another type.
template <class T, class From>
std::vector<T> as(const std::vector<From>& x) {
  return std::vector<T>(x.begin(), x.end());
}

/// One of `from`, drawn for each place by itself.
inline std::int64_t pick(std::uint64_t seed, std::uint64_t place, std::initializer_list<std::int64_t> from) {
  return from.begin()[random_bits(seed, Stream::data, 1000 + place) % from.size()];
}

/// The derivative of `f` at `x` by the five-point stencil.
template <class F>
double slope(const F& f, double x, double h = 1e-3) {
  return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h);
}

/// The gradient of `loss(x)` with respect to every element of `x`, by the five-point stencil.
template <class Loss>
std::vector<double> gradient(std::vector<double> x, const Loss& loss, double h = 1e-3) {
  std::vector<double> g(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    g[i] = slope(
        [&](double v) {
          x[i] = v;
          return loss(x);
        },
        kept, h);
    x[i] = kept;
  }
  return g;
}

/// The same bits, NaN included.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Equal as numbers, any NaN being equal to any other.
template <class T>
bool same_values(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]))) return false;
  return true;
}

/// The largest |a - b| / (1 + |b|); infinite when the sizes differ or a NaN is involved.
template <class A, class B>
double distance(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(double(a[i]) - double(b[i])) / (1 + std::abs(double(b[i])));
    if (!(d <= worst)) worst = std::isnan(d) ? INFINITY : d;
  }
  return worst;
}

/// Whether `run()`, which returns a vector, gives the same bits on 1, 2 and 3 threads.
template <class Run>
bool same_on_any_threads(const Run& run) {
  const int kept = kernels::max_threads();
  kernels::set_max_threads(1);
  const auto one = run();
  bool same = true;
  for (int threads : {2, 3}) {
    kernels::set_max_threads(threads);
    same = same && same_bits(one, run());
  }
  kernels::set_max_threads(kept);
  return same;
}

}  // namespace taper::test
