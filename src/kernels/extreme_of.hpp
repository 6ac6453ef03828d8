#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/packs.hpp"
#include "kernels/vectors.hpp"

// The largest or smallest of elements; NaN if there is one.

namespace taper::kernels {

template <class T, int N>
[[gnu::always_inline]] inline typename Several<T, N>::type several_at(const T* x) {
  typename Several<T, N>::type v;
  std::memcpy(&v, x, sizeof v);
  return v;
}

/// The better of two, or of each lane's two: NaN before anything else.
template <bool largest, class V>
[[gnu::always_inline]] inline V better_of(V v, V best) {
  return ((largest ? v > best : v < best) | (v != v)) ? v : best;
}

/// The same, but `best` if `v` is NaN.
template <bool largest, class V>
[[gnu::always_inline]] inline V better_number_of(V v, V best) {
  return (largest ? v > best : v < best) ? v : best;
}

/// All lanes joined: halves by `join`, again and again.
template <int N, class T, class Join>
[[gnu::always_inline]] inline T join_lanes(typename Several<T, N>::type v, const Join& join) {
  if constexpr (N * sizeof(T) == 16) {
    if constexpr (N == 2) return join(v[0], v[1]);
    if constexpr (N == 4) return join(join(v[0], v[2]), join(v[1], v[3]));
  } else {
    typename Several<T, N / 2>::type half[2];
    std::memcpy(half, &v, sizeof v);
    return join_lanes<N / 2, T>(join(half[0], half[1]), join);
  }
}

/// How many elements fill the processor's vectors.
template <class T>
inline constexpr int kFullVector = kVectorWidth / static_cast<int>(sizeof(T));

/// How many elements fill the smallest vectors.
template <class T>
inline constexpr int kFewLanes = 16 / static_cast<int>(sizeof(T));

/// The 1 to 3 elements at x in four lanes, some of them more than once.
[[gnu::always_inline]] inline Several<float, 4>::type few_at(const float* x, std::int64_t n) {
  return Several<float, 4>::type{x[0], x[n / 2], x[n - 1], x[n - 1]};
}

/// The best of `n` >= 1 elements.
template <bool largest, class T, int N = kFullVector<T>>
T extreme_of(const T* x, std::int64_t n) {
  using Vector = typename Several<T, N>::type;
  if constexpr (N > kFewLanes<T>)
    if (n < N) return extreme_of<largest, T, N / 2>(x, n);
  T few[N];
  if constexpr (std::is_same_v<T, float> && N == kFewLanes<T>) {
    if (n < N) {
      // Compared one by one, few elements would branch in ways that cannot be foreseen.
      const Vector v = few_at(x, n);
      std::memcpy(few, &v, sizeof v);
      x = few;
      n = N;
    }
  } else if (N == kFewLanes<T> && n < N) {
    return x[0];
  }
  Vector a = several_at<T, N>(x), b = a, zero = {};
  std::int64_t i = 0;
  if (N < kFullVector<T> || n < 4 * N) {
    const auto take = [&](std::int64_t at) __attribute__((always_inline)) {
      const Vector v = several_at<T, N>(x + at);
      a = better_number_of<largest>(v, a);
      zero += v * 0;
    };
    for (; i + N <= n; i += N) take(i);
    take(n - N);
  } else {
    const auto take_four = [&](std::int64_t at) __attribute__((always_inline)) {
      const Vector p = several_at<T, N>(x + at), q = several_at<T, N>(x + at + N), r = several_at<T, N>(x + at + 2 * N),
                   s = several_at<T, N>(x + at + 3 * N);
      a = better_number_of<largest>(r, better_number_of<largest>(p, a));
      b = better_number_of<largest>(s, better_number_of<largest>(q, b));
      zero += ((p + q) + (r + s)) * 0;
    };
    for (; i + 4 * N <= n; i += 4 * N) take_four(i);
    // Vectors that overlap what came before change nothing.
    if (i < n) take_four(n - 4 * N);
  }
  const T best =
      join_lanes<N, T>(better_number_of<largest>(a, b), [](auto c, auto d) { return better_number_of<largest>(c, d); });
  // The zeros are none if there is a NaN among the elements, or an infinite sum.
  if (join_lanes<N, T>(zero, [](auto c, auto d) { return c + d; }) == 0) return best;
  bool has_nan = false;
  for (i = 0; i < n; ++i) has_nan |= x[i] != x[i];
  return has_nan ? std::numeric_limits<T>::quiet_NaN() : best;
}

/// y_i = the best of the n elements at x + i n, for four short runs.
template <bool largest>
[[gnu::noinline]] void extremes_of_four(const float* x, std::int64_t n, float* y) {
  using Four = Several<float, 4>::type;
  Four best = every<Four>(x, n);
  for (std::int64_t k = 1; k < n; ++k) best = better_of<largest>(every<Four>(x + k, n), best);
  std::memcpy(y, &best, sizeof best);
}

#if defined(__AVX2__)
/// The bits of the lanes that are `best`, or NaN.
[[gnu::always_inline]] inline std::uint32_t bits_of_best(const Vector<float>& v, const Vector<float>& best) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(v, best, _CMP_EQ_OQ) | _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
#else
  const __m256 is_it = _mm256_or_ps(_mm256_cmp_ps(v, best, _CMP_EQ_OQ), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return static_cast<std::uint32_t>(_mm256_movemask_ps(is_it));
#endif
}
#endif

/// The first of `n` elements that is `best`, which is one of them; the first NaN if `best` is NaN.
template <class T>
[[gnu::noinline]] std::int64_t place_of(T best, const T* x, std::int64_t n) {
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    for (AnyPack at{0, n}; at; at.next<float>())
      if (const std::uint32_t bits = bits_of_best(at(x), pack_of(best)); bits != 0)
        return at.i + std::countr_zero(bits);
    return n - 1;
  }
#endif
  constexpr std::int64_t kPart = 64;
  std::int64_t i = 0;
  for (; i + kPart <= n; i += kPart) {
    T others = 1;  // 0 if one of the part is it
    for (std::int64_t k = 0; k < kPart; ++k) others = x[i + k] == best ? T(0) : x[i + k] != x[i + k] ? T(0) : others;
    if (others == 0) break;
  }
  while (i < n - 1 && !(x[i] == best || x[i] != x[i])) ++i;
  return i;
}

/// best_c = the best of best_c and of what stands in column c of the `n` rows, which are at least a vector wide where
/// parts of vectors are avoided. Memory that `is_far` is asked for row by row.
template <bool largest, class T>
[[gnu::noinline]] void extreme_of_rows(const T* x, std::int64_t n, std::int64_t row, std::int64_t width, bool is_far,
                                       T* best) {
  if constexpr (std::is_integral_v<T>) {  // there is no NaN
    for (; n > 0; --n, x += row)
      for (std::int64_t i = 0; i < width; ++i) best[i] = better_of<largest>(x[i], best[i]);
    return;
  }
  constexpr int N = kFullVector<T>;
  const auto row_of = [=](std::int64_t j) { return x + (j < n ? j : n - 1) * row; };
  const std::int64_t turns = ceil_div(n, 4), apart = is_far ? turns : 1, step = is_far ? 1 : 4;
  for (std::int64_t k = 0; k < turns; ++k) {
    // The last row may be read more than once, which changes nothing.
    const std::int64_t j = k * step;
    const T *const a = row_of(j), *const b = row_of(j + apart), *const c = row_of(j + 2 * apart),
                   *const d = row_of(j + 3 * apart);
    typename Several<T, N>::type zero = {};
    const auto join = [&](auto better, std::int64_t i) __attribute__((always_inline)) {
      const auto va = several_at<T, N>(a + i), vb = several_at<T, N>(b + i), vc = several_at<T, N>(c + i),
                 vd = several_at<T, N>(d + i);
      zero += ((va + vb) + (vc + vd)) * 0;
      const auto all = better(better(better(va, vb), better(vc, vd)), several_at<T, N>(best + i));
      std::memcpy(best + i, &all, sizeof all);
    };
    const auto join_row = [&](auto better) __attribute__((always_inline)) {
      // The last vector ends where the row does: what is joined again changes nothing.
      for (std::int64_t i = 0; i < width && N <= width; i += N) join(better, std::min(i, width - N));
    };
    join_row([](auto v, auto w) { return better_number_of<largest>(v, w); });
    // As for a run: the zeros are none if there was a NaN, or an infinite sum.
    if (join_lanes<N, T>(zero, [](auto v, auto w) { return v + w; }) != 0)
      join_row([](auto v, auto w) { return better_of<largest>(v, w); });
    if (kAvoidsParts<T> || width >= N) continue;
    for (std::int64_t i = 0; i < width; ++i)
      best[i] = better_of<largest>(better_of<largest>(better_of<largest>(a[i], b[i]), better_of<largest>(c[i], d[i])),
                                   best[i]);
  }
}

/// The same for rows of up to seven elements.
template <bool largest>
[[gnu::noinline]] void extreme_of_narrow_rows(const float* x, std::int64_t n, std::int64_t row, std::int64_t width,
                                              float* best) {
  if (width < 4) {
    auto all = few_at(best, width);
    for (std::int64_t j = 0; j < n; ++j) all = better_of<largest>(few_at(x + j * row, width), all);
    best[0] = all[0], best[width / 2] = all[1], best[width - 1] = all[2];
    return;
  }
  // The first four of a row and the last, which may be some of the same.
  const std::int64_t last = width - 4;
  auto low = several_at<float, 4>(best), high = several_at<float, 4>(best + last);
  for (std::int64_t j = 0; j < n; ++j) {
    low = better_of<largest>(several_at<float, 4>(x + j * row), low);
    high = better_of<largest>(several_at<float, 4>(x + j * row + last), high);
  }
  std::memcpy(best, &low, sizeof low);
  std::memcpy(best + last, &high, sizeof high);
}

}  // namespace taper::kernels
