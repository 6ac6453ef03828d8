#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/double_lanes.hpp"
#include "kernels/lanes.hpp"

/// The vectors that average pools are made of: elements of T become A, in which sums are taken, when they are loaded.
namespace taper::kernels::average {

template <class A>
using Vec = typename Full<A>::type;
template <class A>
inline constexpr int kLanes = kVectorWidth / static_cast<int>(sizeof(A));

template <class A, class T>
[[gnu::always_inline]] inline Vec<A> load(const T* x) {
  if constexpr (std::is_same_v<A, T>) {
    Vec<A> v;
    std::memcpy(&v, x, sizeof v);
    return v;
  } else {
    return Lanes<kDoubles>::load(x).v;
  }
}

template <class A, class T>
[[gnu::always_inline]] inline void store(const Vec<A>& v, T* y) {
  if constexpr (std::is_same_v<A, T>) {
    std::memcpy(y, &v, sizeof v);
  } else {
#if defined(__AVX512F__)
    _mm256_storeu_ps(y, _mm512_maskz_cvtpd_ps(0xff, v));
#elif defined(__AVX2__)
    _mm_storeu_ps(y, _mm256_cvtpd_ps(v));
#else
    const AsManyFloats floats = __builtin_convertvector(v, AsManyFloats);
    std::memcpy(y, &floats, sizeof floats);
#endif
  }
}

/// The first `n` elements, and zeros in the other lanes; nothing beyond them is read.
template <class A, class T>
[[gnu::always_inline]] inline Vec<A> load_first(const T* x, std::int64_t n) {
#if defined(__AVX512F__)
  const auto mask = static_cast<__mmask16>((1u << n) - 1);
  if constexpr (std::is_same_v<A, float>)
    return Vec<A>(_mm512_maskz_loadu_ps(mask, x));
  else if constexpr (std::is_same_v<T, double>)
    return Vec<A>(_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), x));
  else
    return Vec<A>(_mm512_maskz_cvtps_pd(0xff, _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), x)));
#else
  A part[kLanes<A>] = {};
  for (std::int64_t i = 0; i < n; ++i) part[i] = static_cast<A>(x[i]);
  return load<A>(part);
#endif
}

/// Stores the first `n` lanes; nothing beyond them is written.
template <class A, class T>
[[gnu::always_inline]] inline void store_first(const Vec<A>& v, std::int64_t n, T* y) {
#if defined(__AVX512F__)
  const auto mask = static_cast<__mmask16>((1u << n) - 1);
  if constexpr (std::is_same_v<A, float>)
    _mm512_mask_storeu_ps(y, mask, v);
  else if constexpr (std::is_same_v<T, double>)
    _mm512_mask_storeu_pd(y, static_cast<__mmask8>(mask), v);
  else
    _mm256_mask_storeu_ps(y, static_cast<__mmask8>(mask), _mm512_maskz_cvtpd_ps(0xff, v));
#else
  T part[kLanes<A>];
  store<A>(v, part);
  for (std::int64_t i = 0; i < n; ++i) y[i] = part[i];
#endif
}

/// Calls one(i, first) for every vector of `n` elements: `first` is how many of the last one's lanes count, or all.
template <class A, class Whole, class Part>
[[gnu::always_inline]] inline void for_vectors(std::int64_t n, const Whole& whole, const Part& part) {
  std::int64_t i = 0;
  for (; i + kLanes<A> <= n; i += kLanes<A>) whole(i);
  if (i < n) part(i, n - i);
}

// --- lanes in another order -----------------------------------------------------------------------------------------

template <int... L>
using LaneList = std::integer_sequence<int, L...>;

/// Lanes phase, phase + 2, phase + 4, ... of two vectors side by side.
template <int phase, class V, int... L>
[[gnu::always_inline]] inline V every_second(V a, V b, LaneList<L...>) {
  return __builtin_shufflevector(a, b, (2 * L + phase)...);
}
/// Lanes phase, phase + 3, phase + 6, ... of three vectors side by side.
template <int phase, class V, int... L>
[[gnu::always_inline]] inline V every_third(V a, V b, V c, LaneList<L...>) {
  constexpr int n = sizeof...(L);
  const V low = __builtin_shufflevector(a, b, (3 * L + phase < 2 * n ? 3 * L + phase : 0)...);
  return __builtin_shufflevector(low, c, (3 * L + phase < 2 * n ? L : 3 * L + phase - n)...);
}

/// Sums of S neighbouring lanes of S vectors side by side.
template <int S, class A>
[[gnu::always_inline]] inline Vec<A> sum_neighbours(const Vec<A> (&v)[S]) {
  using All = std::make_integer_sequence<int, kLanes<A>>;
  static_assert(S >= 2 && S <= 4);
  if constexpr (S == 2) {
    return every_second<0>(v[0], v[1], All()) + every_second<1>(v[0], v[1], All());
  } else if constexpr (S == 3) {
    return every_third<0>(v[0], v[1], v[2], All()) +
           (every_third<1>(v[0], v[1], v[2], All()) + every_third<2>(v[0], v[1], v[2], All()));
  } else {
    const Vec<A> pairs[2] = {sum_neighbours<2, A>({v[0], v[1]}), sum_neighbours<2, A>({v[2], v[3]})};
    return sum_neighbours<2, A>(pairs);
  }
}

/// Lanes moved up by `by`, with zeros behind.
template <int by, class V, int... L>
[[gnu::always_inline]] inline V moved_up(V v, LaneList<L...>) {
  return __builtin_shufflevector(v, V{}, (L < by ? static_cast<int>(sizeof...(L)) : L - by)...);
}

/// What lane l of a result is taken from; negative: 0.
template <class A>
struct Origins {
  using Index = std::conditional_t<sizeof(A) == 4, std::int32_t, std::int64_t>;
  alignas(kVectorWidth) Index lane[kLanes<A>];
};

template <class A>
[[gnu::always_inline]] inline Vec<A> permuted(const Vec<A>& v, const Origins<A>& from) {
#if defined(__AVX512F__)
  const __m512i index = _mm512_load_si512(from.lane);
  if constexpr (std::is_same_v<A, float>)
    return Vec<A>(_mm512_maskz_permutexvar_ps(_mm512_cmpge_epi32_mask(index, _mm512_setzero_si512()), index, v));
  else
    return Vec<A>(_mm512_maskz_permutexvar_pd(_mm512_cmpge_epi64_mask(index, _mm512_setzero_si512()), index, v));
#else
#if defined(__AVX2__)
  if constexpr (std::is_same_v<A, float>) {
    const __m256i index = _mm256_load_si256(reinterpret_cast<const __m256i*>(from.lane));
    const __m256 none = _mm256_castsi256_ps(_mm256_srai_epi32(index, 31));
    return Vec<A>(_mm256_andnot_ps(none, _mm256_permutevar8x32_ps(v, index)));
  }
#endif
  A in[kLanes<A>], out[kLanes<A>];
  store<A>(v, in);
  for (int l = 0; l < kLanes<A>; ++l) out[l] = from.lane[l] < 0 ? A(0) : in[from.lane[l]];
  return load<A>(out);
#endif
}

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

// --- dividing -------------------------------------------------------------------------------------------------------

/// a b + c, rounded once.
#ifdef __FMA__
template <class V>
[[gnu::always_inline]] inline V multiply_add(V a, V b, V c) {
#ifdef __AVX512F__
  if constexpr (sizeof(V) == 64) return V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#endif
  if constexpr (sizeof(V) == 32) return V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
  if constexpr (sizeof(V) == 16) return V(_mm_fmadd_ps(__m128(a), __m128(b), __m128(c)));
}
#endif

/// What the sums of a row of windows are divided by: all by one number, or each by its own.
template <class A>
struct Divisor {
  /// A product where that is exact, or off by less than 2^-52 of the quotient before it is rounded to float32. For sums
  /// in float32 a product with an inverse in two parts, which is off by less than 2^-46. Else a quotient.
  enum class Kind { product, product_of_parts, quotient };
  Kind kind;
  A by, rest;                    ///< one for all: the divisor, or its inverse in two parts
  const A *each_by, *each_rest;  ///< or for each window; else nothing

  /// `by` and `rest` of one divisor of a pool of T.
  static Kind kind_of(double divisor, std::size_t size) {
    // The inverse of a power of two is exact, and so is the product with it.
    constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
    if (size < sizeof(A) || (std::bit_cast<std::uint64_t>(divisor) & kFraction) == 0) return Kind::product;
    return kPartsOf ? Kind::product_of_parts : Kind::quotient;
  }
  static void set(Kind kind, double divisor, A& by, A& rest) {
    const double inverse = 1 / divisor;
    by = static_cast<A>(kind == Kind::quotient ? divisor : inverse);
    // Below the inverse, so that both parts have one sign and infinities stay what they are.
    if (kind == Kind::product_of_parts) by *= A(1) - std::numeric_limits<A>::epsilon();
    rest = static_cast<A>(inverse - static_cast<double>(by));
  }

  template <class T>
  static Divisor all(double divisor, T) {
    Divisor d{kind_of(divisor, sizeof(T)), 0, 0, nullptr, nullptr};
    set(d.kind, divisor, d.by, d.rest);
    return d;
  }
  /// Of `n` windows that count `counts` and in other axes `rows`; the buffers have room for them.
  template <class T>
  static Divisor each(double rows, const double* counts, std::int64_t n, A* by, A* rest, T) {
    const Kind kind = kind_of(3, sizeof(T));
    for (std::int64_t i = 0; i < n; ++i) set(kind, rows * counts[i], by[i], rest[i]);
    return {kind, 0, 0, by, rest};
  }

  /// Divides sum_l by the divisor of window o + l. A vector that is wider than the processor's is not returned.
  template <class V>
  [[gnu::always_inline]] void divide(std::int64_t o, V& sum) const {
    V first = V{} + by;
    if (each_by) std::memcpy(&first, each_by + o, sizeof first);
    if (kind == Kind::product) {
      sum *= first;
    } else if (kind == Kind::quotient) {
      sum /= first;
    } else {
#ifdef __FMA__
      if constexpr (kPartsOf) {
        V second = V{} + rest;
        if (each_by) std::memcpy(&second, each_rest + o, sizeof second);
        sum = multiply_add(sum, first, sum * second);
      }
#endif
    }
  }
  template <class V>
  [[gnu::always_inline]] V operator()(V sum, std::int64_t o) const {
    divide(o, sum);
    return sum;
  }

 private:
#ifdef __FMA__
  static constexpr bool kPartsOf = std::is_same_v<A, float>;
#else
  static constexpr bool kPartsOf = false;
#endif
};

}  // namespace taper::kernels::average
