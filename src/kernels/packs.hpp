#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/lanes.hpp"

// Rows of contiguous elements, worked on as many at a time as fill the processor's vectors. What is left over at the
// end of a row is one more vector, of which only a part is read and stored: a row of ten costs little more than one of
// sixteen.

namespace taper::kernels {

/// v in every lane.
template <class T>
[[gnu::always_inline]] inline Vector<T> pack_of(T v) {
  return Vector<T>{} + v;
}

/// The larger of both, lane by lane; b where a is NaN.
template <class V>
[[gnu::always_inline]] inline V larger_of(V a, V b) {
  return a > b ? a : b;
}

/// The pack of elements from `i` on: what a term reads by `at(x)` where it means x[i].
struct WholePack {
  std::int64_t i;

  template <class T>
  [[gnu::always_inline]] Vector<T> operator()(const T* x, T = 0) const {
    return load(x + i);
  }
  template <class T>
  [[gnu::always_inline]] void store(T* y, Vector<T> v) const {
    kernels::store<T>(v, y + i);
  }
};

/// The elements [i, i + count), fewer than fill a pack. The lanes without an element are given a value.
struct PartPack {
  std::int64_t i;
  int count;

#if defined(__AVX512F__)
  [[gnu::always_inline]] Vector<float> operator()(const float* x, float absent = 0) const {
    return Vector<float>(_mm512_mask_loadu_ps(__m512(pack_of(absent)), first_lanes<float>(count), x + i));
  }
  [[gnu::always_inline]] Vector<double> operator()(const double* x, double absent = 0) const {
    return Vector<double>(_mm512_mask_loadu_pd(__m512d(pack_of(absent)), first_lanes<double>(count), x + i));
  }
  template <class T>
  [[gnu::always_inline]] void store(T* y, Vector<T> v) const {
    store_first<T>(v, count, y + i);
  }
#elif defined(__AVX2__)
  [[gnu::always_inline]] Vector<float> operator()(const float* x, float absent = 0) const {
    const __m256 lanes = __m256(first_lanes<float>(count)), v = _mm256_maskload_ps(x + i, __m256i(lanes));
    return Vector<float>(_mm256_blendv_ps(__m256(pack_of(absent)), v, lanes));
  }
  [[gnu::always_inline]] Vector<double> operator()(const double* x, double absent = 0) const {
    const __m256d lanes = __m256d(first_lanes<double>(count)), v = _mm256_maskload_pd(x + i, __m256i(lanes));
    return Vector<double>(_mm256_blendv_pd(__m256d(pack_of(absent)), v, lanes));
  }
  template <class T>
  [[gnu::always_inline]] void store(T* y, Vector<T> v) const {
    store_halves(__m256(v), count * static_cast<int>(sizeof(T) / sizeof(float)), y + i);
  }

 private:
  // Stores with a mask take several times as long. Out of line: every loop over packs ends with them.
  [[gnu::noinline]] static void store_halves(__m256 v, int floats, void* y) {
    auto* to = static_cast<float*>(y);
    __m128 part = half_of<0>(v);
    if ((floats & 4) != 0) {
      _mm_storeu_ps(to, part);
      part = half_of<1>(v);
      to += 4;
    }
    if ((floats & 2) != 0) {
      _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
      part = _mm_movehl_ps(part, part);
      to += 2;
    }
    if ((floats & 1) != 0) _mm_store_ss(to, part);
  }
#else
  template <class T>
  [[gnu::always_inline]] Vector<T> operator()(const T* x, T absent = 0) const {
    return loaded(x + i, count, absent);
  }
  template <class T>
  [[gnu::always_inline]] void store(T* y, Vector<T> v) const {
    stored(y + i, count, v);
  }

 private:
  // Out of line: every loop over packs ends with them.
  template <class T>
  [[gnu::noinline]] static Vector<T> loaded(const T* x, int count, T absent) {
    T lanes[kLanes<T>];
    for (int k = 0; k < kLanes<T>; ++k) lanes[k] = k < count ? x[k] : absent;
    Vector<T> v;
    std::memcpy(&v, lanes, sizeof v);
    return v;
  }
  template <class T>
  [[gnu::noinline]] static void stored(T* y, int count, Vector<T> v) {
    T lanes[kLanes<T>];
    std::memcpy(lanes, &v, sizeof v);
    for (int k = 0; k < count; ++k) y[k] = lanes[k];
  }
#endif
};

/// The elements [i, last), or as many of them as fill a pack: for loops whose body is too long to be there twice.
struct AnyPack {
  std::int64_t i, last;

  explicit operator bool() const { return i < last; }
  template <class T>
  void next() {
    i += kLanes<T>;
  }
  /// Begins earlier where that makes it whole: for what may be computed twice.
  template <class T>
  [[gnu::always_inline]] void lean_back() {
    if (kAvoidsParts<T> && i > last - kLanes<T>) i = last > kLanes<T> ? last - kLanes<T> : 0;
  }
  template <class T>
  [[gnu::always_inline]] Vector<T> operator()(const T* x, T absent = 0) const {
    return last - i >= kLanes<T> ? WholePack{i}(x) : PartPack{i, static_cast<int>(last - i)}(x, absent);
  }
  template <class T>
  [[gnu::always_inline]] void store(T* y, Vector<T> v) const {
    last - i >= kLanes<T> ? WholePack{i}.store(y, v) : PartPack{i, static_cast<int>(last - i)}.store(y, v);
  }
};

/// The part of a row [0, i + count) from `i` on, to be read alone: the last lanes of a pack where the row has one.
#if defined(__AVX2__) && !defined(__AVX512F__)
struct EndPack {
  std::int64_t i;
  int count;

  [[gnu::always_inline]] Vector<float> operator()(const float* x, float absent = 0) const {
    if (i == 0) return PartPack{i, count}(x, absent);
    const __m256 before = __m256(first_lanes<float>(kLanes<float> - count));
    return Vector<float>(
        _mm256_blendv_ps(__m256(load(x + i + count - kLanes<float>)), __m256(pack_of(absent)), before));
  }
  [[gnu::always_inline]] Vector<double> operator()(const double* x, double absent = 0) const {
    return PartPack{i, count}(x, absent);
  }
};
#else
using EndPack = PartPack;
#endif

/// Calls `body(at)` for the packs of `n` elements of T.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_pack(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) body(WholePack{i});
  if (i < n) body(PartPack{i, static_cast<int>(n - i)});
}

/// The same for a body that stores over nothing it reads: where masks take long, the last pack of several begins within
/// the one before it.
template <class T, class Body>
[[gnu::always_inline]] inline void map_packs(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) body(WholePack{i});
  if (i == n) return;
  if (kAvoidsParts<T> && i > 0)
    body(WholePack{n - kLanes<T>});
  else
    body(PartPack{i, static_cast<int>(n - i)});
}

/// `for_each_pack` with one copy of the body: AVX-512 takes every pack for a part, others choose. For a body that does
/// much with a pack; one that is short takes up to a third more time.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_pack_of(std::int64_t n, const Body& body) {
  constexpr std::int64_t kAll = kLanes<T>;
  for (std::int64_t c = 0; c < n; c += kAll)
#if defined(__AVX512F__)
    body(PartPack{c, static_cast<int>(n - c < kAll ? n - c : kAll)});
#else
    body(AnyPack{c, n});
#endif
}

/// y_i = value(at), or += with `add`; with `kOver` the values may be of elements that are stored over.
template <bool kOver = false, class T, class Value>
[[gnu::always_inline]] inline void store_packs(T* y, std::int64_t n, bool add, const Value& value) {
  const auto plain = [=](auto at) __attribute__((always_inline)) { at.store(y, value(at)); };
  const auto sum = [=](auto at) __attribute__((always_inline)) { at.store(y, add ? at(y) + value(at) : value(at)); };
  // One loop for both takes up to a quarter more time; what is not float32 or has no wide vectors is kept small.
  if (kVectorWidth <= 16 || sizeof(T) != sizeof(float) || add)
    for_each_pack<T>(n, sum);
  else if (kOver)
    for_each_pack<T>(n, plain);
  else
    map_packs<T>(n, plain);
}

/// The lanes of a pack as doubles: in two vectors, or in the first.
template <class T>
struct LongPack {
  static constexpr bool kTwo = sizeof(T) < sizeof(double);
  Doubles low, high = {};

  [[gnu::always_inline]] explicit LongPack(const Vector<T>& v) {
    if constexpr (kTwo)
      low = as_doubles(half_of<0>(v)), high = as_doubles(half_of<1>(v));
    else
      low = v;
  }
  [[gnu::always_inline]] explicit LongPack(const double* x) : low(load(x)) {
    if constexpr (kTwo) high = load(x + kDoubles);
  }
  [[gnu::always_inline]] void store(double* y) const {
    kernels::store<double>(low, y);
    if constexpr (kTwo) kernels::store<double>(high, y + kDoubles);
  }
  [[gnu::always_inline]] Vector<T> rounded() const {
    if constexpr (kTwo)
      return joined(as_floats(low), as_floats(high));
    else
      return low;
  }

  [[gnu::always_inline]] LongPack& operator+=(const LongPack& b) { return low += b.low, high += b.high, *this; }
  [[gnu::always_inline]] LongPack& operator-=(const LongPack& b) { return low -= b.low, high -= b.high, *this; }
  [[gnu::always_inline]] LongPack& operator/=(const LongPack& b) {
    low /= b.low;
    if constexpr (kTwo) high /= b.high;
    return *this;
  }
  [[gnu::always_inline]] LongPack& operator*=(const LongPack& b) { return low *= b.low, high *= b.high, *this; }

  /// The sum of the lanes.
  [[gnu::always_inline]] double sum() const {
    Doubles all[1] = {kTwo ? low + high : low};
    return fold(all);
  }
  /// f of each vector in its place.
  template <class F>
  [[gnu::always_inline]] void apply(const F& f) {
    low = f(low);
    if constexpr (kTwo) high = f(high);
  }
};

/// The sum of a pack's lanes; in double from half of them on.
[[gnu::always_inline]] inline double sum_of_lanes(Vector<double> v) {
  Doubles sum[1] = {v};
  return fold(sum);
}
[[gnu::always_inline]] inline double sum_of_lanes(Vector<float> v) {
  return sum_of_lanes(as_doubles(half_of<0>(v) + half_of<1>(v)));
}

/// The sums of K terms over `n` elements, in double: `add(at, sums)` adds the terms of a pack to K packs. Chains of few
/// additions run in T, `kChains` (1 or 4) beside each other, and are joined in double: an order that depends on n
/// alone.
template <class T, int K, int kChains, class Add>
[[gnu::always_inline]] inline void sum_packs(std::int64_t n, double (&totals)[K], const Add& add) {
  constexpr std::int64_t kAll = kLanes<T>, kBlock = 16 * kChains * kAll;
  for (double& total : totals) total = 0;
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t end = n - first < kBlock ? n : first + kBlock;
    Vector<T> sum[K] = {}, more[3][K] = {};
    std::int64_t i = first;
    if constexpr (kChains == 4)
      for (; i + 4 * kAll <= end; i += 4 * kAll) {
        add(WholePack{i}, sum);
        add(WholePack{i + kAll}, more[0]);
        add(WholePack{i + 2 * kAll}, more[1]);
        add(WholePack{i + 3 * kAll}, more[2]);
      }
    for (; i + kAll <= end; i += kAll) add(WholePack{i}, sum);
    if (i < end) add(std::conditional_t<kChains == 4, EndPack, PartPack>{i, static_cast<int>(end - i)}, more[0]);
    const auto total = [&](int k) __attribute__((always_inline)) {
      return sum_of_lanes((sum[k] + more[0][k]) + (more[1][k] + more[2][k]));
    };
    totals[0] += total(0);
    if constexpr (K > 1) totals[1] += total(1);
  }
}

template <int kDistance, class V, std::size_t... kLane>
[[gnu::always_inline]] inline V exchanged(V v, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(v, v, static_cast<int>(kLane ^ kDistance)...);
}

/// The largest lane of v, in every lane.
template <class T, int kDistance = kLanes<T> / 2>
[[gnu::always_inline]] inline Vector<T> largest_lane(Vector<T> v) {
  if constexpr (kDistance > 0) {
    const Vector<T> other = exchanged<kDistance>(v, std::make_index_sequence<kLanes<T>>());
    return largest_lane<T, kDistance / 2>(larger_of(other, v));
  } else {
    return v;
  }
}

/// The largest of `n` elements that is not NaN, in every lane; -inf if there is none.
template <class T>
[[gnu::always_inline]] inline Vector<T> largest_of(const T* x, std::int64_t n) {
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  constexpr std::int64_t kAll = kLanes<T>;
  Vector<T> top = pack_of(kNone), other = top;
  std::int64_t i = 0;
  for (; i + 2 * kAll <= n; i += 2 * kAll) {
    top = larger_of(WholePack{i}(x), top);
    other = larger_of(WholePack{i + kAll}(x), other);
  }
  for_each_pack<T>(
      n - i, [&, rest = x + i ](auto at) __attribute__((always_inline)) { top = larger_of(at(rest, kNone), top); });
  return largest_lane<T>(larger_of(other, top));
}

/// v_i = v_(i - n) for i from n to before `end`, and for some behind it.
template <class V>
[[gnu::noinline]] void repeat_all(V* v, std::int64_t n, std::int64_t end) {
  if (n == end) return;
  // A vector reaches into what is repeated next, or was for numbers that come before in v.
  for (std::int64_t c = (n - 1) & -kLanes<V>; c >= 0; c -= kLanes<V>) {
    const Vector<V> some = n == 1 ? pack_of(v[0]) : load(v + c);
    for (std::int64_t i = c + n; i < end; i += n == 1 ? kLanes<V> : n) store<V>(some, v + i);
  }
}

}  // namespace taper::kernels
