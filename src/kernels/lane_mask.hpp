#pragma once

#include <algorithm>

#include "kernels/lanes.hpp"

// Some of the floats of a vector; for processors whose vectors can be read and written in part.
namespace taper::kernels {

/// Floats of a vector.
inline constexpr std::int64_t kLane = kLanes<float>;

#if defined(__AVX512F__)

using LaneMask = __mmask16;

/// The lanes from `first` to before `last`, which may be any numbers.
inline LaneMask lanes_between(std::int64_t first, std::int64_t last) {
  const auto before = [](std::int64_t n) { return first_lanes<float>(std::clamp<std::int64_t>(n, 0, kLanes<float>)); };
  return static_cast<LaneMask>(before(last) & ~before(first));
}

/// What x has in the lanes of the mask, and zeros; nothing else is read, unless the whole vector may be.
inline Vector<float> load_lanes(LaneMask mask, const float* x, bool /*whole*/ = false) {
  return _mm512_maskz_loadu_ps(mask, x);
}

/// Stores the first n lanes, or all where there are no more.
inline void store_lanes(const Vector<float>& v, std::int64_t n, float* y) {
  _mm512_mask_storeu_ps(y, lanes_between(0, n), v);
}

/// v in the lanes whose bits are set, else 0.
[[gnu::always_inline]] inline Vector<float> kept_part(const Vector<float>& v, std::uint16_t bits) {
  return _mm512_maskz_mov_ps(bits, v);
}

/// max(v, 0), and the bits of the lanes that are kept; NaN is.
[[gnu::always_inline]] inline Vector<float> positive_part(const Vector<float>& v, std::uint16_t& bits) {
  bits = _mm512_cmp_ps_mask(v, Vector<float>{}, _CMP_NLE_UQ);
  return kept_part(v, bits);
}

#elif defined(__AVX2__)

using LaneMask = __m256i;

inline LaneMask lanes_between(std::int64_t first, std::int64_t last) {
  const auto before = [](std::int64_t n) { return first_lanes<float>(std::clamp<std::int64_t>(n, 0, kLanes<float>)); };
  return _mm256_andnot_si256(before(first), before(last));
}

inline Vector<float> load_lanes(LaneMask mask, const float* x, bool whole = false) {
  // Loads with a mask take several times as long.
  return whole ? _mm256_and_ps(load(x), _mm256_castsi256_ps(mask)) : _mm256_maskload_ps(x, mask);
}

inline void store_lanes(const Vector<float>& v, std::int64_t n, float* y) {
  if (n >= kLanes<float>)
    store<float>(v, y);
  else
    store_first<float>(v, n, y);
}

[[gnu::always_inline]] inline Vector<float> kept_part(const Vector<float>& v, std::uint16_t bits) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i lanes = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits), bit), bit);
  return _mm256_and_ps(v, _mm256_castsi256_ps(lanes));
}

[[gnu::always_inline]] inline Vector<float> positive_part(const Vector<float>& v, std::uint16_t& bits) {
  const __m256 lanes = _mm256_cmp_ps(v, Vector<float>{}, _CMP_NLE_UQ);
  bits = static_cast<std::uint16_t>(_mm256_movemask_ps(lanes));
  return _mm256_and_ps(v, lanes);
}

#endif

#if defined(__AVX2__)

/// As many doubles as a vector has floats.
struct Long {
  Vector<double> low = {}, high = {};

  Long() = default;
  /// The floats, exactly.
  explicit Long(const Vector<float>& x) : low(as_doubles(half_of<0>(x))), high(as_doubles(half_of<1>(x))) {}
  static Long load(const double* x) {
    Long a;
    a.low = kernels::load(x), a.high = kernels::load(x + kLanes<double>);
    return a;
  }
  void store(double* y) const {
    kernels::store<double>(low, y);
    kernels::store<double>(high, y + kLanes<double>);
  }
  Long& operator+=(const Long& b) { return low += b.low, high += b.high, *this; }

  /// x / divisor
  Vector<float> divided(double divisor) const { return joined(as_floats(low / divisor), as_floats(high / divisor)); }
};

#endif

}  // namespace taper::kernels
