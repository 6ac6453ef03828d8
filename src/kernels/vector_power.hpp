#pragma once

#include <limits>

#include "kernels/packs.hpp"
#include "kernels/vector_math.hpp"

// a^y of vectors. The logarithm is computed with about as many bits more than a number has as the exponent of the
// result can have: in double for floats, in two parts for doubles.

namespace taper::kernels {

/// log a for positive a, infinity and NaN aside.
inline TwoParts<Doubles> long_log(Doubles a) {
  using V = Doubles;
  // log m = 2 atanh t = 2 t + t^3 (2/3 + z q(z)),  t = r / (2 + r),  z = t^2
  constexpr double kQ[] = {0.40000000000002256, 0.2857142857009967,  0.2222222251989675, 0.18181784370115836,
                           0.15386757163725565, 0.13256822276806907, 0.13196281310812302};
  constexpr double kThirds = 0.6666666666666666, kThirdsLow = 3.700743415417188e-17;
  const auto [r, n] = log_parts(a);
  const V d = 2 + r, lost = r - (d - 2), t = r / d, share = 0.5 - 0.5 * t;  // 1 / (2 + r)
  const V low = (division_rest(r, t, d) - t * lost) * share;
  const V z = t * t, z_low = product_rest(t, t, z) + 2 * t * low;
  const V more = z * polynomial(kQ, z), c = kThirds + more, c_low = (more - (c - kThirds)) + kThirdsLow;
  const V cube = t * z, cube_low = product_rest(t, z, cube) + (t * z_low + low * z);
  const V p = cube * c, p_low = product_rest(cube, c, p) + (cube * c_low + cube_low * c);
  const V log_m = 2 * t + p, log_m_low = (p - (log_m - 2 * t)) + (p_low + 2 * low);
  const V whole = n * 6.93147180369123816490e-1, sum = whole + log_m;
  return {sum, (log_m - (sum - whole)) + (log_m_low + n * 1.90821492927058770002e-10)};
}

/// `p`, which is a^y for the other a from 0 on, or the power of 0 or infinity.
inline Doubles power_with_ends(Doubles a, Doubles y, Doubles p) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Doubles end = y * (a == 0 ? -kInfinity : a);
  return ((a == 0) | !(a < kInfinity)) ? (end < 0 ? Doubles{} : end) : p;
}

/// a^y for a from 0 on, but for a = 1 with an infinite y and for y = 0.
inline Doubles positive_power(Doubles a, Doubles y) {
  // Larger exponents give the same result.
  const TwoParts<Doubles> log = long_log(a);
  const Doubles e = at_most<Doubles>(0x1p66, at_least<Doubles>(-0x1p66, y)), power = e * log.high;
  const Doubles beyond = product_rest(e, log.high, power) + e * log.low;
  const Doubles limited = at_most<Doubles>(710, at_least<Doubles>(-746, power));
  const auto [shifted, rest] = exp_parts(limited, limited == power ? beyond : Doubles{});
  return power_with_ends(a, y, scaled_by_power(1 + rest, shifted));
}

/// a^y within 2^-28, as `positive_power`; if it is to become a float, or `is_wide`.
template <bool is_wide>
inline Doubles rough_positive_power(Doubles a, Doubles y) {
  // log(1 + r) = r + r^2 p(r)
  constexpr double kP[] = {-0.500000000215,  0.333333340435, -0.249999948303,  0.199998981555,
                           -0.166669274472,  0.14290570579,  -0.124974117836,  0.11009618829,
                           -0.0992732419079, 0.100153613732, -0.0987178738712, 0.0535858479367};
  // e^r - 1 = r + r^2 (1/2 + r q(r)), as in `exp_parts`
  constexpr double kQ[] = {0.16666521132, 0.041668266058, 8.3686746657e-3, 1.3820669847e-3};
  const auto [r, n] = log_parts(a);
  const Doubles log = fused(n, 6.93147180559945309417e-1, fused(r * r, polynomial(kP, r), r));
  constexpr double kMost = is_wide ? 710 : 200, kLeast = is_wide ? -746 : -200;
  const Doubles power = at_most<Doubles>(kMost, at_least<Doubles>(kLeast, y * log));
  const Doubles shifted = fused(power, 1.44269504088896340736, Ieee<double>::whole);
  const Doubles rest = fused(shifted - Ieee<double>::whole, -6.93147180559945309417e-1, power);
  const Doubles q = fused(polynomial(kQ, rest), rest, 0.4999999404), less = fused(rest * rest, q, rest);
  if constexpr (is_wide) return power_with_ends(a, y, scaled_by_power(1 + less, shifted));
  const Doubles scale = power_of_two(shifted);
  return power_with_ends(a, y, fused(scale, less, scale));
}
inline Vector<float> positive_power(Vector<float> a, Vector<float> y) {
  return in_doubles(rough_positive_power<false>, a, y);
}

/// x rounded to a whole number, for x from 0 on.
template <class V>
inline V rounded(V x) {
  constexpr auto kWhole = Element<V>(std::uint64_t(1) << Ieee<Element<V>>::mantissa);
  return x < kWhole ? (x + kWhole) - kWhole : x;
}

/// x^y, special values as std::pow has them: 0.9 ulp. It is long, and so compiled once.
template <class V>
[[gnu::noinline]] V vector_power(V x, V y) {
  using Limits = std::numeric_limits<Element<V>>;
#ifdef __AVX2__
  // Of positive numbers nothing is special; what has no end is no number times 0.
  if constexpr (std::is_same_v<V, FullFloat>)
    if (is_all_from(Limits::min(), x + 0 * (x + y))) return positive_power(x, y);
#endif
  const V a = magnitude_of(x), size = magnitude_of(y), half = Element<V>(0.5) * size;
  const auto whole = rounded(size) == size, odd = whole & (rounded(half) != half);
  const V p = positive_power(a, y), signed_p = odd ? with_sign_of(p, x) : p;
  const V real = ((x < 0) & (a < Limits::infinity()) & ~whole) ? each<V>(Limits::quiet_NaN()) : signed_p;
  return ((x == 1) | (y == 0) | ((a == 1) & (size == Limits::infinity()))) ? each<V>(1) : real;
}

}  // namespace taper::kernels
