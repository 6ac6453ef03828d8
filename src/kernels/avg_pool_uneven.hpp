#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "kernels/parallel.hpp"
#include "kernels/pool_lanes.hpp"

/// Short windows of rows whose number does not divide the row; for avg_pool.cpp alone. Window o is
/// [floor(o in / out), ceil((o + 1) in / out)), also of rows side by side as of one: memory is one row, in which the
/// windows repeat after `out` of them.
namespace taper::kernels::average {

/// `out` windows over `in` elements, and so again `periods` times; without common factors.
struct Uneven {
  std::int64_t periods, in, out;
};

#if defined(__AVX2__) && defined(__FMA__)

using Eight = Several<float, 8>::type;
using EightInts = Several<std::int32_t, 8>::type;
using EightLanes = std::make_integer_sequence<int, 8>;

/// Gradients are spread over a whole vector.
using Ints = Several<std::int32_t, kLanes<float>>::type;

/// Windows of so many elements are summed in float32.
inline constexpr std::int64_t kUnevenMost = 16;
/// Repetitions that are worked on at once: a cache line of each is still near when the next results are made of it. All
/// of the gradients' lines should be.
inline constexpr std::int64_t kUnevenTimes = 128, kSpreadTimes = kVectorWidth == 32 ? 64 : 32;
/// The same where the elements do not fit the nearer caches, more than so many: memory is then read in order.
inline constexpr std::int64_t kFarTimes = 8, kNear = 1 << 18;
/// Gradients of windows that are scaled at once.
inline constexpr std::int64_t kUnevenWindows = 8192;
/// Below this, and half above, float32 holds all integers.
inline constexpr std::int64_t kExact = 1 << 23;

inline std::int64_t most_of(const Uneven& u) { return (u.in - 2) / u.out + 2; }

/// Whether the loops hold the numbers of such windows, of which one is not like the other.
inline bool is_small(const Uneven& u) {
  return u.periods > 0 && u.out > 1 && u.out < u.in && u.in < kExact && 8 * (u.in + 1) * u.out < kExact;
}

inline bool is_far(const Uneven& u) { return u.periods * (u.in + u.out) > kNear; }

/// Whether results so many bytes apart take few places of a cache, whose lines repeat after 4096 bytes.
inline bool is_crowded(std::int64_t bytes) {
  for (std::int64_t apart = bytes; apart <= 8 * bytes; apart *= 2)
    if ((apart + 15) % 4096 < 31) return true;
  return false;
}

/// How many periods are worked on as one, so that what is `length` long leaves few of so many lanes without work.
[[gnu::noinline]] inline std::int64_t periods_at_once(const Uneven& u, std::int64_t length, std::int64_t lanes) {
  std::int64_t n = 1;
  while (n < 8 && (lanes - n * length % lanes) % lanes > n * length / 8) n *= 2;
  return std::min(n, u.periods);
}

/// floor((i num + more) / den), exact for dividends below 2^23
template <class I>
[[gnu::always_inline]] inline I quotients(I i, std::int64_t num, std::int64_t more, std::int64_t den) {
  using Floats = typename Several<float, sizeof(I) / sizeof(float)>::type;
  const I dividend = i * static_cast<std::int32_t>(num) + static_cast<std::int32_t>(more);
  const Floats quotient = (__builtin_convertvector(dividend, Floats) + 0.5f) / static_cast<float>(den);
  return __builtin_convertvector(quotient, I);
}

/// i, i + 1, ..., but below n
template <class I>
[[gnu::always_inline]] inline I some_from(std::int64_t i, std::int64_t n) {
  const I all = lanes_in_turn(std::make_integer_sequence<int, sizeof(I) / 4>()) + static_cast<std::int32_t>(i);
  const I last = I{} + static_cast<std::int32_t>(n - 1);
  return all < last ? all : last;
}

/// All lanes of the last eight of these from lane i on.
alignas(64) inline constexpr std::int32_t kLastLanes[16] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};

[[gnu::always_inline]] inline Eight load_masked(const float* x, EightInts mask) {
  return Eight(_mm256_maskload_ps(x, reinterpret_cast<__m256i>(mask)));
}

template <class V, class T>
[[gnu::always_inline]] inline V load_as(const T* x) {
  V v;
  std::memcpy(&v, x, sizeof v);
  return v;
}

/// Eight windows that hold `count` elements in front of `end`: `most` or one fewer.
#ifdef __AVX512F__
/// Of four lanes, and zeros in the others.
[[gnu::always_inline]] inline Eight load_four_masked(const float* x, EightInts mask) {
  return Eight(_mm256_zextps128_ps256(_mm_maskload_ps(x, _mm256_castsi256_si128(reinterpret_cast<__m256i>(mask)))));
}

class EightWindows {
 public:
  [[gnu::always_inline]] EightWindows(const float* x, EightInts end, EightInts count, std::int64_t most)
      : whole_((most - 1) / 8), is_four_(whole_ > 0 && most <= 12) {
    // Eight elements that end where the window does, and in front of them what is left over, the last of eight or four.
#pragma GCC unroll 8
    for (int l = 0; l < 8; ++l) {
      at_[l] = x + (end[l] - 8 * whole_);
      mask_[l] = load_as<EightInts>(kLastLanes + (count[l] - 8 * whole_ + (is_four_ ? 4 : 0)));
    }
  }
  /// The sums of their elements, or of those `further`.
  [[gnu::always_inline]] Eight sums(std::int64_t further) const {
    constexpr EightLanes all;
    Eight v[8];
#pragma GCC unroll 8
    for (int l = 0; l < 8; ++l) {
      const float* const end_of_part = at_[l] + further;
      v[l] = is_four_ ? load_four_masked(end_of_part - 4, mask_[l]) : load_masked(end_of_part - 8, mask_[l]);
    }
    if (whole_ > 0)
#pragma GCC unroll 8
      for (int l = 0; l < 8; ++l) v[l] += load_as<Eight>(at_[l] + further);
    const Eight low = sum_in_turn<2>(sum_in_turn<1>(v[0], v[1], all), sum_in_turn<1>(v[2], v[3], all), all);
    const Eight high = sum_in_turn<2>(sum_in_turn<1>(v[4], v[5], all), sum_in_turn<1>(v[6], v[7], all), all);
    return sum_in_turn<4>(low, high, all);
  }

 private:
  const std::int64_t whole_;
  const bool is_four_;
  const float* at_[8];
  EightInts mask_[8];
};
#else
class EightWindows {
 public:
  [[gnu::always_inline]] EightWindows(const float* x, EightInts end, EightInts count, std::int64_t most)
      : fours_((most - 1) / 4) {
    // Some fours end where the window does; of the four that it begins with, the first are left over.
    const std::int32_t* behind[8];
#pragma GCC unroll 8
    for (int l = 0; l < 8; ++l) {
      end_[l] = x + end[l];
      first_[l] = end_[l] - count[l];
      behind[l] = kLastLanes + (8 + 4 * fours_ - count[l]);
    }
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) left_[l] = ~reinterpret_cast<EightInts>(two_fours(behind, l, 0));
  }
  /// The sums of their elements, or of those `further`.
  [[gnu::always_inline]] Eight sums(std::int64_t further) const {
    Eight v[4];
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) {
      const auto left = reinterpret_cast<__m256i>(left_[l]);
      if (fours_ == 0) [[unlikely]]
        // Nothing may be read behind what holds no four; this takes ten times as long.
        v[l] = _mm256_set_m128(_mm_maskload_ps(first_[l + 4] + further, _mm256_extracti128_si256(left, 1)),
                               _mm_maskload_ps(first_[l] + further, _mm256_castsi256_si128(left)));
      else
        v[l] = _mm256_and_ps(two_fours(first_, l, further), reinterpret_cast<__m256>(left));
    }
    for (std::int64_t f = fours_; f > 0; --f) {
      further -= 4;
#pragma GCC unroll 4
      for (int l = 0; l < 4; ++l) v[l] += Eight(two_fours(end_, l, further));
    }
    return _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  }

 private:
  /// Four elements of window l, and four of the fourth behind it.
  template <class T>
  [[gnu::always_inline]] static __m256 two_fours(const T* const* at, int l, std::int64_t further) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(load_as<__m128>(at[l] + further)),
                                load_as<__m128>(at[l + 4] + further), 1);
  }

  const std::int64_t fours_;
  const float *first_[8], *end_[8];
  EightInts left_[4];
};
#endif

/// y_o = (x_first + ... ) / count for `times` times n windows, which lie `step` elements apart
[[gnu::noinline]] inline void average_uneven(const Uneven& u, std::int64_t n, std::int64_t times, std::int64_t step,
                                             const float* x, float* y) {
  // The elements behind these, some for each eight windows: no masked load makes a processor foresee the next.
  const float *behind = x + times * step, *fetched = behind;
  const std::int64_t share = is_far(u) ? 8 * times * step / n : 0;
  for (std::int64_t done = 0; done < n; done += 8) {
    for (behind += share; fetched < behind; fetched += 16) __builtin_prefetch(fetched);
    const std::int64_t o = std::max<std::int64_t>(0, std::min(done, n - 8));
    const EightInts i = some_from<EightInts>(o, n), first = quotients(i, u.in, 0, u.out);
    const EightInts end = quotients(i + 1, u.in, u.out - 1, u.out), count = end - first;
    const Eight divisor = __builtin_convertvector(count, Eight);
    const EightWindows windows(x, end, count, most_of(u));
    float* to = y + o;
    for (std::int64_t t = 0; t < times; ++t, to += n) {
      const Eight averages = windows.sums(t * step) / divisor;
      std::memcpy(to, &averages, sizeof averages);
    }
  }
}

/// g_o = dy_o times its factor. There is room for what completes the last eight.
[[gnu::noinline]] inline void scale_uneven(const Uneven& u, std::int64_t n, std::int64_t times, const float* dy,
                                           float* g) {
  const std::int64_t most = most_of(u);
  float by[2 * kLanes<float>];
  Factors<float>::set(by, 0, static_cast<double>(most - 1));
  Factors<float>::set(by, 1, static_cast<double>(most));
  const float* const rests = by + kLanes<float>;
  for (std::int64_t o = (n - 1) / 8 * 8; o >= 0; o -= 8) {
    const EightInts i = some_from<EightInts>(o, n);
    const EightInts count = quotients(i + 1, u.in, u.out - 1, u.out) - quotients(i, u.in, 0, u.out);
    const auto is_most = count == static_cast<std::int32_t>(most);
    const Eight first = is_most ? Eight{} + by[1] : Eight{} + by[0];
    const Eight rest = is_most ? Eight{} + rests[1] : Eight{} + rests[0];
    const auto mask = ~load_as<EightInts>(kLastLanes + 8 - std::min<std::int64_t>(n - o, 8));
    for (std::int64_t t = 0; t < times; ++t) {
      const float* const from = dy + o + t * n;
      const Eight v = n - o < 8 ? load_masked(from, mask) : load_as<Eight>(from);
      _mm256_storeu_ps(g + o + t * n, _mm256_fmadd_ps(v, first, v * rest));
    }
  }
}

/// A vector consists of parts whose lanes go to any others of the part by one fast instruction.
#ifdef __AVX512F__
inline constexpr int kPart = kLanes<float>;

[[gnu::always_inline]] inline Ints begins_of_parts(Ints v) { return Ints{} + v[0]; }
[[gnu::always_inline]] inline Vector<float> load_parts(const float* x, Ints begin) { return load(x + begin[0]); }
/// What `taken` takes for each lane, in the place of lane `from` of its part.
[[gnu::always_inline]] inline Ints places_of(Ints from) { return from; }
[[gnu::always_inline]] inline Vector<float> taken(const Vector<float>& v, Ints places) {
  return permuted(v, reinterpret_cast<BitsOf<Vector<float>>>(places));
}
#else
inline constexpr int kPart = 4;

[[gnu::always_inline]] inline Ints begins_of_parts(Ints v) {
  return __builtin_shufflevector(v, v, 0, 0, 0, 0, 4, 4, 4, 4);
}
[[gnu::always_inline]] inline Vector<float> load_parts(const float* x, Ints begin) {
  return Vector<float>(_mm256_loadu2_m128(x + begin[4], x + begin[0]));
}
[[gnu::always_inline]] inline Ints places_of(Ints from) { return from * 0x04040404 + 0x03020100; }
[[gnu::always_inline]] inline Vector<float> taken(const Vector<float>& v, Ints places) {
  return reinterpret_cast<Vector<float>>(
      _mm256_shuffle_epi8(reinterpret_cast<__m256i>(v), reinterpret_cast<__m256i>(places)));
}
#endif

/// dx_i = g_newest, and g_oldest where that is another; for `times` times n elements, whose windows lie `step` apart
[[gnu::noinline]] inline void spread_uneven(const Uneven& u, std::int64_t n, std::int64_t times, std::int64_t step,
                                            const float* g, float* dx) {
  // Whether elements of a part may lie in more windows than it has lanes.
  const bool is_dense = kPart == 4 && 4 * u.out > 3 * u.in;
  for (std::int64_t done = 0; done < n; done += kLanes<float>) {
    const std::int64_t i = std::min(done, n - kLanes<float>);
    const Ints element = some_from<Ints>(i, n), oldest = quotients(element, u.out, 0, u.in);
    const Ints newest = quotients(element + 1, u.out, -1, u.in), two = newest != oldest;
    const Ints begin = begins_of_parts(oldest), begin_one = is_dense ? begins_of_parts(newest) : begin;
    const Ints one = places_of(newest - begin_one), other = places_of(oldest - begin);
    const auto spread = [=](auto dense) __attribute__((always_inline)) {
      const float* from = g;
      float* to = dx + i;
      for (std::int64_t t = 0; t < times; ++t, from += step, to += n) {
        hide(from);
        const Vector<float> v = load_parts(from, begin);
        const Ints more = reinterpret_cast<Ints>(taken(v, other)) & two;
        store<float>(taken(dense ? load_parts(from, begin_one) : v, one) + reinterpret_cast<Vector<float>>(more), to);
      }
    };
    is_dense ? spread(std::true_type()) : spread(std::false_type());
  }
}

/// Calls `part(u, n, some, x, y)` for all periods of x and y, for some times n of them, at most `times`. The last may
/// be among those before: results are then stored twice.
[[gnu::noinline]] inline void for_periods(const Uneven& u, std::int64_t n, std::int64_t times, std::int64_t x_step,
                                          std::int64_t y_step, const float* x, float* y,
                                          void (*part)(const Uneven&, std::int64_t, std::int64_t, const float*,
                                                       float*)) {
  parallel_for(u.periods / n, n * (x_step + y_step), [=, &u](std::int64_t first, std::int64_t last) {
    const std::int64_t block = std::min(is_far(u) ? kFarTimes : times, kUnevenWindows / (n * u.out));
    for (std::int64_t i = first; i < last; i += block)
      part(u, n, std::min(block, last - i), x + i * n * x_step, y + i * n * y_step);
    const std::int64_t rest = u.periods - n;
    if (last == u.periods / n && u.periods % n > 0) part(u, n, 1, x + rest * x_step, y + rest * y_step);
  });
}

inline void average_part(const Uneven& u, std::int64_t n, std::int64_t times, const float* x, float* y) {
  float few[8];
  const bool is_few = n * u.out < 8;
  average_uneven(u, n * u.out, times, n * u.in, x, is_few ? few : y);
  if (is_few) std::copy(few, few + n * u.out, y);
}
inline void spread_part(const Uneven& u, std::int64_t n, std::int64_t times, const float* dy, float* dx) {
  float g[kUnevenWindows + kLanes<float>];
  scale_uneven(u, n * u.out, times, dy, g);
  spread_uneven(u, n * u.in, times, n * u.out, g, dx);
}

/// These return whether they are for such windows.
inline bool forward_uneven(const Uneven& u, const float* x, float* y) {
  if (!is_small(u) || most_of(u) > kUnevenMost) return false;
  for_periods(u, periods_at_once(u, u.out, 8), kUnevenTimes, u.in, u.out, x, y, average_part);
  return true;
}
/// The gradients are those of other loops, bit for bit: these serve where they are faster.
inline bool backward_uneven(const Uneven& u, const float* dy, float* dx) {
  // The elements of a vector lie in at most as many windows as it has lanes.
  if (!is_small(u) || 8 * u.out > 7 * u.in) return false;
  // Vectors that fill whole lines are stored faster, which pays for more different ones where each repeats.
  const std::int64_t whole = kLanes<float> / std::gcd(u.in, std::int64_t{kLanes<float>});
  const std::int64_t n = 16 * whole <= u.periods ? whole : periods_at_once(u, u.in, kLanes<float>);
  if (n * u.in < kLanes<float> || is_crowded(n * u.in * std::int64_t{sizeof(float)})) return false;
  for_periods(u, n, kSpreadTimes, u.out, u.in, dy, dx, spread_part);
  return true;
}
#endif

/// Others have none.
template <class T>
bool forward_uneven(const Uneven&, const T*, T*) {
  return false;
}
template <class T>
bool backward_uneven(const Uneven&, const T*, T*) {
  return false;
}

}  // namespace taper::kernels::average
