#pragma once

#include <cstdint>

#include "kernels/avg_pool_loops.hpp"
#include "kernels/ceil_div.hpp"

/// Windows of at most 16 columns which begin at most 16 apart, each as far from the next.
namespace taper::kernels::average {

#ifdef __AVX2__
inline constexpr bool kHasStrided = true;

#ifdef __AVX512F__
/// Takes the elements of four windows of k columns, s apart, by four of each at a time. The windows lie in two vectors,
/// or the last two apart from the first two.
struct FourStrided {
  typedef std::int32_t Ints __attribute__((vector_size(64)));

  bool is_wide;
  std::int64_t s, fours;
  __mmask16 first;  ///< of the first elements, which are those left over by fours
  Ints from[4];
};

TAPER_FOR_SIZE inline void list_fours(std::int64_t k, std::int64_t s, FourStrided& four) {
  four.is_wide = 3 * s + k > 32;
  four.s = s;
  four.fours = ceil_div(k, 4);
  const auto left = static_cast<int>(k % 4);
  four.first = static_cast<__mmask16>(left > 0 ? 0x1111 * (16 - (16 >> left)) : 0xffff);
  for (int t = 0; t < 4; ++t)
    for (int l = 0; l < 16; ++l) {
      const auto begin = static_cast<std::int32_t>((four.is_wide ? l / 4 % 2 : l / 4) * s);
      four.from[t][l] = begin + l % 4 + (left == 0 ? 4 * t : t > 0 ? 4 * t - 4 : static_cast<std::int32_t>(k) - 4);
    }
}

/// The sums of the four windows from x on in four lanes each, as `sum_terms_of` has them. Reads 32 elements from the
/// first on, and if they are wide from the third.
template <bool is_wide>
[[gnu::always_inline]] inline Vector<float> sum_windows(const FourStrided& four, const float* x) {
  const auto load_once = [](const float* at) __attribute__((always_inline)) {
    Vector<float> v = load<float>(at);
    asm("" : "+v"(v));  // what lies across lines takes twice as long each time
    return v;
  };
  const auto take = [](Vector<float> low, FourStrided::Ints from, Vector<float> high) __attribute__((always_inline)) {
    return _mm512_permutex2var_ps(low, reinterpret_cast<__m512i>(from), high);
  };
  const Vector<float> a = load_once(x), b = load_once(x + 16);
  const Vector<float> c = is_wide ? load_once(x + 2 * four.s) : a, d = is_wide ? load_once(x + 2 * four.s + 16) : b;
  const auto taken = [=](FourStrided::Ints from) __attribute__((always_inline)) {
    return is_wide ? _mm512_mask_blend_ps(0xff00, take(a, from, b), take(c, from, d)) : take(a, from, b);
  };
  auto sum = Vector<float>(_mm512_maskz_mov_ps(four.first, taken(four.from[0])));
  if (four.fours > 1) sum += Vector<float>(taken(four.from[1]));
  if (four.fours > 2) sum += Vector<float>(taken(four.from[2]));
  if (four.fours > 3) sum += Vector<float>(taken(four.from[3]));
  return sum;
}
#else
/// Windows of k columns, s apart, of which four columns are taken at a time.
struct FourStrided {
  static constexpr bool is_wide = false;
  std::int64_t s, fours;
  std::int64_t begin, rest;    ///< where the first four begin, and the others
  Vector<std::int32_t> first;  ///< of the first four those that are left over by fours, or all
};

TAPER_FOR_SIZE inline void list_fours(std::int64_t k, std::int64_t s, FourStrided& four) {
  const std::int64_t left = k % 4;
  four.s = s;
  four.fours = ceil_div(k, 4);
  four.begin = left > 0 ? k - 4 : 0;
  four.rest = left > 0 ? 0 : 4;
  four.first = Vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3} >= static_cast<std::int32_t>(left > 0 ? 4 - left : 0);
}

/// The sums of the two windows from x on in four lanes each, as `sum_terms_of` has them. Reads up to three elements in
/// front of windows of fewer than four columns.
template <bool>
[[gnu::always_inline]] inline Vector<float> sum_windows(const FourStrided& four, const float* x) {
  const auto pair = [&four](const float* at) __attribute__((always_inline)) {
    return Vector<float>(_mm256_loadu2_m128(at + four.s, at));
  };
  auto sum = Vector<float>(Vector<std::int32_t>(pair(x + four.begin)) & four.first);
  const float* const rest = x + four.rest;
  if (four.fours > 1) sum += pair(rest);
  if (four.fours > 2) sum += pair(rest + 4);
  if (four.fours > 3) sum += pair(rest + 8);
  return sum;
}
#endif

/// y_o = (x_{s o} + ... + x_{s o + k - 1}) times its factor, of `count` lines. Reads at most 64 elements from the last
/// window on.
template <bool is_wide>
[[gnu::noinline, gnu::aligned(64)]] void average_strided(const Line<float, float>* lines, std::int64_t count,
                                                         std::int64_t n, FourStrided four, std::int64_t by_step) {
  constexpr int kAll = kLanes<float>;
  using All = std::make_integer_sequence<int, kAll>;
  for (std::int64_t l = 0; l < count; ++l) {
    const Line<float, float> line = lines[l];
    auto factor = Factors<float>::at(line.by, 0);
    for (std::int64_t o = 0; o < n; o += kAll) {
      Vector<float> lanes[4] = {};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const std::int64_t first = o + i * kAll / 4;
        if (first < n) lanes[i] = sum_windows<is_wide>(four, line.from + first * four.s);
      }
      if (by_step != 0) factor = Factors<float>::at(line.by, o);
      store_some<float>(factor.times(sum_fours(lanes[0], lanes[1], lanes[2], lanes[3], All()) + 0.0f), n - o,
                        line.to + o);
    }
  }
}

/// The same for any k, s <= 16.
inline void average_strided(const Line<float, float>* lines, std::int64_t count, std::int64_t n,
                            const FourStrided& four, std::int64_t by_step) {
  auto* average = four.is_wide ? average_strided<true> : average_strided<false>;
  average(lines, count, n, four, by_step);
}
#else
inline constexpr bool kHasStrided = false;
struct FourStrided {};
inline void list_fours(std::int64_t, std::int64_t, FourStrided&) {}
#endif

}  // namespace taper::kernels::average
