#pragma once

#include <cstdlib>
#include <memory>

#include "peer.hpp"

// The task "product" of a library that multiplies matrices in memory.
namespace bench {

template <class T>
using Memory = std::shared_ptr<T[]>;

/// Filled as inputs of the frameworks are, on a cache line of its own.
template <class T>
Memory<T> aligned(std::size_t n, std::uint32_t seed) {
  const std::size_t bytes = (n * sizeof(T) + 63) / 64 * 64;
  Memory<T> out(static_cast<T*>(std::aligned_alloc(64, bytes)), [](T* p) { std::free(p); });
  fill(out.get(), n, seed);
  return out;
}

template <class T>
struct Product {
  bool ta, tb;
  std::int64_t m, n, k;
  const T *a, *b;  ///< row-major, [m, k] and [k, n], or transposed
  T* c;            ///< [m, n]
};

template <class T, class Multiply>
Work product_of(const Task& t, Multiply multiply) {
  const std::int64_t m = t["m"], n = t["n"], k = t["k"];
  const Memory<T> a = aligned<T>(std::size_t(m * k), 1), b = aligned<T>(std::size_t(k * n), 2);
  const Memory<T> c = aligned<T>(std::size_t(m * n), 3);
  const Product<T> product{t["ta"] != 0, t["tb"] != 0, m, n, k, a.get(), b.get(), c.get()};
  return {[=, keep = std::make_shared<std::pair<Memory<T>, Memory<T>>>(a, b)] { multiply(product); },
          [=](Values& values) { values.add(c.get(), std::size_t(m * n)); }};
}

/// `multiply` takes a `Product` of floats or doubles.
template <class Multiply>
Work product(const Task& t, Multiply multiply) {
  return t.get("double", 0) ? product_of<double>(t, multiply) : product_of<float>(t, multiply);
}

}  // namespace bench
