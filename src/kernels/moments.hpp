#pragma once

#include <cmath>
#include <cstdint>

namespace taper::kernels {

/// What a group of elements is normalised by. The mean is kept as a number and the little that it is off by, so that
/// x - mean keeps its digits where the mean is millions of times the deviation.
struct Moments {
  double mean, rest;  ///< their sum is the mean
  double variance;    ///< biased: divided by the number of elements
  double rstd;        ///< 1 / sqrt(variance + eps)
};

/// Elementary operations for one element in one pass of a norm.
inline constexpr std::int64_t kNormCost = 4;

/// The moments of `n` elements from the sums of x - mean and of (x - mean)^2 over them.
inline Moments moments_from(double mean, double deviations, double squares, std::int64_t n, double eps) {
  const double rest = deviations / static_cast<double>(n);
  const double variance = (squares - deviations * rest) / static_cast<double>(n);
  const double kept = variance < 0 ? 0 : variance;  // NaN stays
  return {mean, rest, kept, 1 / std::sqrt(kept + eps)};
}

/// Element `i` of a weight or bias; `absent` where there is none.
template <class T>
double affine_at(const T* affine, std::int64_t i, double absent) {
  return affine ? static_cast<double>(affine[i]) : absent;
}

/// Where gradients go; null where nobody needs one.
template <class T>
struct NormGradients {
  T* dx = nullptr;
  T* dw = nullptr;
  T* db = nullptr;
  bool add_dx = false, add_dw = false, add_db = false;
};

template <class T>
void store(T* gradient, double value, bool add) {
  *gradient = T(add ? static_cast<double>(*gradient) + value : value);
}

}  // namespace taper::kernels
