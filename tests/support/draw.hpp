#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace taper::test {

/// A reproducible sequence of small numbers, for random test cases.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::int64_t below(std::int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return std::int64_t(state_ >> 33) % n;
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  /// Within 4 of 0, on a grid that float32 holds and whose sums are exact.
  double value() { return double(below(4001) - 2000) / 512.0; }
  std::vector<double> values(std::int64_t n) {
    std::vector<double> v(static_cast<std::size_t>(n));
    for (double& x : v) x = value();
    return v;
  }
  /// Thirds of them: their sums are rounded, and differ by their order.
  template <class T>
  std::vector<T> thirds(std::int64_t n) {
    std::vector<double> v = values(n);
    for (double& x : v) x /= 3;
    return {v.begin(), v.end()};
  }
  /// `n` different ones of `from`, in any order.
  std::vector<std::int64_t> choose(std::vector<std::int64_t> from, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) std::swap(from[i], from[i + std::size_t(below(std::int64_t(from.size() - i)))]);
    from.resize(n);
    return from;
  }

 private:
  std::uint64_t state_;
};

}  // namespace taper::test
