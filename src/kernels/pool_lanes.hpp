#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/stream.hpp"
#include "kernels/vector_base.hpp"

/// The vectors that average pools are made of: of the type of elements, and of that in which sums are taken.
namespace taper::kernels::average {

/// Whether some windows have loops of their own; the baseline is kept small.
inline constexpr bool kHasSmall = kVectorWidth > 16;

/// `n` elements to whole vectors.
template <class A>
constexpr std::int64_t rounded_up(std::int64_t n) {
  return (n + kLanes<A> - 1) / kLanes<A> * kLanes<A>;
}

/// The p-th vector of A that the lanes of v make.
template <class A, class V>
[[gnu::always_inline]] inline Vector<A> part_of(const V& v, int p) {
  if constexpr (std::is_same_v<V, Vector<A>>)
    return v;
  else
    return as_doubles(p == 0 ? half_of<0>(v) : half_of<1>(v));
}

/// Stores a vector of A as T.
template <class A, class T>
[[gnu::always_inline]] inline void store(const Vector<A>& v, T* y) {
  if constexpr (std::is_same_v<A, T>) {
    kernels::store<T>(v, y);
  } else {
    const AsManyFloats floats = as_floats(v);
    std::memcpy(y, &floats, sizeof floats);
  }
}

/// The same of the first `n` lanes; nothing beyond them is written.
template <class A, class T>
[[gnu::always_inline]] inline void store_first(const Vector<A>& v, std::int64_t n, T* y) {
  if constexpr (std::is_same_v<A, T>) {
    kernels::store_first<T>(v, n, y);
  } else {
#if defined(__AVX512F__)
    _mm256_mask_storeu_ps(y, first_lanes<A>(n), as_floats(v));
#elif defined(__AVX2__)
    _mm_maskstore_ps(y, _mm256_castsi256_si128(first_lanes<T>(n)), as_floats(v));
#else
    T part[kLanes<A>];
    store<A>(v, part);
    for (std::int64_t i = 0; i < n; ++i) y[i] = part[i];
#endif
  }
}

/// Stores the first `n` lanes, or all where there are no more; none where n <= 0.
template <class A, class T>
[[gnu::always_inline]] inline void store_some(const Vector<A>& v, std::int64_t n, T* y) {
  if (n >= kLanes<A>) [[likely]]
    store<A>(v, y);
  else if (n > 0)
    store_first<A>(v, n, y);
}

/// y_i = x_i, or y_i += x_i with `add`, for i < n
template <class T>
[[gnu::always_inline]] inline void copy_run(const T* x, std::int64_t n, T* y, bool add = false) {
  for (std::int64_t i = 0; i < n; i += kLanes<T>) {
    if (n - i >= kLanes<T>)
      store<T>(add ? load<T>(y + i) + load<T>(x + i) : load<T>(x + i), y + i);
    else
      store_first<T>(add ? load_first<T>(y + i, n - i) + load_first<T>(x + i, n - i) : load_first<T>(x + i, n - i),
                     n - i, y + i);
  }
}

/// Asks for the memory of `vectors` vectors of float32, `ahead` bytes behind x, unless that is 0.
template <int vectors, class T>
[[gnu::always_inline]] inline void fetch_ahead(const T* x, std::uintptr_t ahead) {
  if (ahead == 0 || !std::is_same_v<T, float>) return;
#pragma GCC unroll 4
  for (std::uintptr_t i = 0; i < vectors * kVectorWidth; i += kLine) fetch_line(x, ahead + i);
}

// --- lanes in another order -----------------------------------------------------------------------------------------

template <int... L>
using LaneList = std::integer_sequence<int, L...>;

/// Lanes phase, phase + 2, phase + 4, ... of two vectors side by side.
template <int phase, class V, int... L>
[[gnu::always_inline]] inline V every_second(V a, V b, LaneList<L...>) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  // Halves that lie side by side first: each step is then one instruction.
  constexpr int n = sizeof...(L), half = n / 2;
  const V low = two_halves<0, 0>(a, b), high = two_halves<1, 1>(a, b);
  return __builtin_shufflevector(low, high,
                                 (L / half * half + 2 * (L % (half / 2)) + (L % half < half / 2 ? 0 : n) + phase)...);
#else
  return __builtin_shufflevector(a, b, (2 * L + phase)...);
#endif
}
/// Lanes phase, phase + 3, phase + 6, ... of three vectors side by side.
template <int phase, class V, int... L>
[[gnu::always_inline]] inline V every_third(V a, V b, V c, LaneList<L...>) {
  constexpr int n = sizeof...(L);
  const V low = __builtin_shufflevector(a, b, (3 * L + phase < 2 * n ? 3 * L + phase : 0)...);
  return __builtin_shufflevector(low, c, (3 * L + phase < 2 * n ? L : 3 * L + phase - n)...);
}

/// Sums of three neighbouring lanes of vectors side by side.
template <class V, int... L>
[[gnu::always_inline]] inline V sum_threes(V a, V b, V c, LaneList<L...> all) {
  return every_third<0>(a, b, c, all) + (every_third<1>(a, b, c, all) + every_third<2>(a, b, c, all));
}

/// Lanes of two vectors side by side, from lane `first` on.
template <int first, class V, int... L>
[[gnu::always_inline]] inline V moved(V a, V b, LaneList<L...>) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  // Through what is half of each, so that each step is one instruction.
  constexpr int n = sizeof...(L), half = n / 2;
  const V middle = two_halves<1, 0>(a, b);
  if constexpr (first < half)
    return __builtin_shufflevector(a, middle,
                                   (L / half * half + L % half + first + (L % half + first < half ? 0 : half))...);
  else
    return __builtin_shufflevector(middle, b,
                                   (L / half * half + L % half + first - (L % half + first < n ? half : 0))...);
#else
  return __builtin_shufflevector(a, b, (L + first)...);
#endif
}
/// The same without a register for indices, for many of different `first`.
template <int first, class V, int... L>
[[gnu::always_inline]] inline V moved_freely(V a, V b, LaneList<L...> all) {
#if defined(__AVX512F__)
  if constexpr (sizeof...(L) == 16)
    return V(_mm512_maskz_alignr_epi32(0xffff, reinterpret_cast<__m512i>(b), reinterpret_cast<__m512i>(a), first));
#endif
  return moved<first>(a, b, all);
}

/// 0, 1, 2, ...
template <int... L>
[[gnu::always_inline]] inline auto lanes_in_turn(LaneList<L...>) {
  return typename Several<std::int32_t, sizeof...(L)>::type{L...};
}

/// Sums of lanes `distance` apart, in turn of as many lanes of a as of b.
template <int distance, class V, int... L>
[[gnu::always_inline]] inline V sum_in_turn(V a, V b, LaneList<L...>) {
  constexpr int n = sizeof...(L);
  return __builtin_shufflevector(a, b, ((L & distance) != 0 ? L + n : L)...) +
         __builtin_shufflevector(a, b, ((L & distance) != 0 ? L - distance + n : L + distance)...);
}
/// Sums of neighbouring lanes of vectors side by side.
template <class V, int... L>
[[gnu::always_inline]] inline V sum_pairs(V a, V b, LaneList<L...> all) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  constexpr int n = sizeof...(L);
  const V sums = sum_in_turn<1>(a, b, all);
  return __builtin_shufflevector(sums, sums, (L % (n / 2) * 2 + L / (n / 2))...);
#else
  return every_second<0>(a, b, all) + every_second<1>(a, b, all);
#endif
}
/// Sums of four neighbouring lanes of four vectors side by side.
template <class V, int... L>
[[gnu::always_inline]] inline V sum_fours(V a, V b, V c, V d, LaneList<L...> all) {
  constexpr int n = sizeof...(L);
  const V sums = sum_in_turn<2>(sum_in_turn<1>(a, b, all), sum_in_turn<1>(c, d, all), all);
  return __builtin_shufflevector(sums, sums, (L % (n / 4) * 4 + L / (n / 4))...);
}

/// Lanes moved up by `by`, with zeros behind.
template <int by, class V, int... L>
[[gnu::always_inline]] inline V moved_up(V v, LaneList<L...> all) {
  return moved_freely<static_cast<int>(sizeof...(L)) - by>(V{}, v, all);
}

/// Sums of each lane and those in front of it.
template <class V, int... L>
[[gnu::always_inline]] inline V sums_up_to(V v, LaneList<L...> all) {
  constexpr int n = sizeof...(L);
  v += moved_up<1>(v, all);
  if constexpr (n > 2) v += moved_up<2>(v, all);
  if constexpr (n > 4) v += moved_up<4>(v, all);
  if constexpr (n > 8) v += moved_up<8>(v, all);
  return v;
}
/// Takes lane l of a result from lane `from[l]` of a vector; where that is negative: 0.
template <class A>
class Permutation {
 public:
#if defined(__AVX512F__)
  explicit Permutation(const std::int32_t* from) {
    if constexpr (std::is_same_v<A, float>) {
      index_ = _mm512_loadu_si512(from);
      lanes_ = _mm512_cmpge_epi32_mask(index_, _mm512_setzero_si512());
    } else {
      index_ = _mm512_maskz_cvtepi32_epi64(0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
      lanes_ = _mm512_cmpge_epi64_mask(index_, _mm512_setzero_si512());
    }
  }
  [[gnu::always_inline]] Vector<A> operator()(Vector<A> v) const {
    if constexpr (std::is_same_v<A, float>)
      return Vector<A>(_mm512_maskz_permutexvar_ps(lanes_, index_, v));
    else
      return Vector<A>(_mm512_maskz_permutexvar_pd(static_cast<__mmask8>(lanes_), index_, v));
  }

 private:
  __m512i index_;
  __mmask16 lanes_;
#elif defined(__AVX2__)
  explicit Permutation(const std::int32_t* from) {
    if constexpr (std::is_same_v<A, float>) {
      index_ = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      none_ = _mm256_srai_epi32(index_, 31);
    } else {
      index_ = _mm256_cvtepi32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
      none_ = _mm256_cmpgt_epi64(_mm256_setzero_si256(), index_);
      // The halves of the doubles.
      const __m256i low = _mm256_add_epi64(index_, index_);
      index_ = _mm256_or_si256(low, _mm256_slli_epi64(_mm256_add_epi64(low, _mm256_set1_epi64x(1)), 32));
    }
  }
  [[gnu::always_inline]] Vector<A> operator()(Vector<A> v) const {
    const __m256 moved = _mm256_permutevar8x32_ps(reinterpret_cast<__m256>(v), index_);
    return reinterpret_cast<Vector<A>>(_mm256_andnot_ps(_mm256_castsi256_ps(none_), moved));
  }

 private:
  __m256i index_, none_;
#else
  explicit Permutation(const std::int32_t* from) : from_(from) {}
  [[gnu::always_inline]] Vector<A> operator()(Vector<A> v) const {
    A in[kLanes<A>], out[kLanes<A>];
    store<A>(v, in);
    for (int l = 0; l < kLanes<A>; ++l) out[l] = from_[l] < 0 ? A(0) : in[from_[l]];
    return load<A>(out);
  }

 private:
  const std::int32_t* from_;
#endif
};

// --- four lanes -----------------------------------------------------------------------------------------------------

template <class A>
struct FourOf;
template <>
struct FourOf<float> {
  typedef float type __attribute__((vector_size(16)));
  typedef std::int32_t Bits __attribute__((vector_size(16)));
};
template <>
struct FourOf<double> {
  typedef double type __attribute__((vector_size(32)));
  typedef std::int64_t Bits __attribute__((vector_size(32)));
};
template <class A>
using Four = typename FourOf<A>::type;

/// sums_j = (v_j0 + v_j1) + (v_j2 + v_j3)
template <class V>
[[gnu::always_inline]] inline void sum_fours(const V (&v)[4], V& sums) {
  const V a = __builtin_shufflevector(v[0], v[1], 0, 2, 4, 6) + __builtin_shufflevector(v[0], v[1], 1, 3, 5, 7);
  const V b = __builtin_shufflevector(v[2], v[3], 0, 2, 4, 6) + __builtin_shufflevector(v[2], v[3], 1, 3, 5, 7);
  sums = __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

// --- factors --------------------------------------------------------------------------------------------------------

/// What a sum is multiplied by to become an average: the inverse of what it is divided by, in two parts, so that the
/// result is the quotient but for rare cases of rounding. Where there is no fused product, the quotient itself is
/// taken.
template <class A>
struct Factors {
#if defined(__AVX2__) && defined(__FMA__)
  static constexpr bool kParts = true;
#else
  static constexpr bool kParts = false;
#endif
  /// How many elements hold the factors of one.
  static constexpr std::int64_t kElements = kParts ? 2 : 1;

  /// Sets the factor of element i of a table, which divides by `divisor`.
  static void set(A* table, std::int64_t i, double divisor) {
    A& first = table[i / kLanes<A> * kLanes<A> * kElements + i % kLanes<A>];
    const double inverse = 1 / divisor;
    first = static_cast<A>(kParts ? inverse : divisor);
#if defined(__AVX2__) && defined(__FMA__)
    // Below the inverse, so that both parts have one sign and infinities stay what they are.
    first *= A(1) - std::numeric_limits<A>::epsilon();
    (&first)[kLanes<A>] = static_cast<A>(__builtin_fma(-static_cast<double>(first), divisor, 1.0) * inverse);
#endif
  }
  /// Sets the factors of a vector, which all divide by `divisor`.
  static void set_all(A* table, double divisor) {
    A own[kLanes<A> + 1];
    set(own, 0, divisor);
    store<A>(Vector<A>{} + own[0], table);
    if constexpr (kParts) store<A>(Vector<A>{} + own[kLanes<A>], table + kLanes<A>);
  }
  /// The factor of element i is that of the one before it, in the same vector.
  static void repeat(A* table, std::int64_t i) {
    A* const at = table + i / kLanes<A> * kLanes<A> * kElements + i % kLanes<A>;
    at[0] = at[-1];
    if constexpr (kParts) at[kLanes<A>] = at[kLanes<A> - 1];
  }
  /// A sum times the factor of element i, where A does not hold the sum.
  static A multiply_one(double sum, const A* table, std::int64_t i) {
    const A* const first = table + i / kLanes<A> * kLanes<A> * kElements + i % kLanes<A>;
    const auto factor = static_cast<double>(first[0]);
    return static_cast<A>(kParts ? sum * (factor + static_cast<double>(first[kLanes<A>])) : sum / factor);
  }
  /// The factors of a vector.
  struct Pair {
    Vector<A> first, rest;

    [[gnu::always_inline]] Vector<A> times(const Vector<A>& v) const {
      if constexpr (kParts)
        return fused(v, first, v * rest);
      else
        return v / first;
    }
  };
  /// Of the vector from element i on, a multiple of the lanes.
  [[gnu::always_inline]] static Pair at(const A* table, std::int64_t i) {
    const A* const first = table + i * kElements;
    return {load<A>(first), load<A>(kParts ? first + kLanes<A> : first)};
  }
  [[gnu::always_inline]] static Vector<A> multiply(const Vector<A>& v, const A* table, std::int64_t i) {
    return at(table, i).times(v);
  }
};

}  // namespace taper::kernels::average
