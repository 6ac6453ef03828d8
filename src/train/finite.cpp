#include "train/finite.hpp"

#include <bit>
#include <cmath>

namespace taper::train {

namespace {

/// Whether all exponents are below the one of NaN and infinity, in a form that compilers turn into vector code.
template <class Bits, class T>
bool all_finite(const T* x, std::int64_t n) {
  constexpr Bits kExponent = std::bit_cast<Bits>(T(INFINITY));
  Bits bad = 0;
  for (std::int64_t i = 0; i < n; ++i) bad |= Bits((std::bit_cast<Bits>(x[i]) & kExponent) == kExponent);
  return bad == 0;
}

template <class Bits, class T>
std::int64_t find(const T* x, std::int64_t n) {
  if (all_finite<Bits>(x, n)) return -1;
  std::int64_t i = 0;
  while (std::isfinite(x[i])) ++i;
  return i;
}

}  // namespace

std::int64_t find_non_finite(const Tensor& tensor) {
  if (tensor.dtype() == DType::float32) return find<std::uint32_t>(tensor.data<float>(), tensor.numel());
  if (tensor.dtype() == DType::float64) return find<std::uint64_t>(tensor.data<double>(), tensor.numel());
  return -1;
}

}  // namespace taper::train
