#pragma once

#include <cstdint>

#include "kernels/avg_pool_loops.hpp"
#include "kernels/ceil_div.hpp"

/// Windows of at most 16 columns which begin at most 16 apart, each as far from the next.
namespace taper::kernels::average {

#ifdef __AVX512F__
inline constexpr bool kHasStrided = true;

/// Takes the elements of four windows of k columns, s apart, by four of each at a time. The windows lie in two vectors,
/// or the last two apart from the first two.
struct FourStrided {
  typedef std::int32_t Ints __attribute__((vector_size(64)));

  bool is_wide;
  std::int64_t s, fours;
  __mmask16 first;  ///< of the first elements, which are those left over by fours
  Ints from[4];
};

[[gnu::noinline]] inline void list_fours(std::int64_t k, std::int64_t s, FourStrided& four) {
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

/// The sums of the windows from x on in four lanes each, as `sum_terms_of` has them. Reads 32 elements from the first
/// on, and if they are wide from the third.
template <bool is_wide>
[[gnu::always_inline]] inline Vector<float> sum_four(const FourStrided& four, const float* x) {
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

/// sum_c = x_c + x_{c + step} + ... of each line's rows, as `sum_few_rows` takes it, for up to 16 n columns; of the
/// last vector those in `last`, which zeros complete. For `count` lines of sums, `pitch` apart. Asks for memory that is
/// `ahead` bytes behind what is read, unless that is 0.
template <int n>
[[gnu::noinline, gnu::aligned(64)]] void sum_few_columns(const float* x, const Row* rows, std::int64_t count,
                                                         std::int64_t step, __mmask16 last, std::uintptr_t ahead,
                                                         float* sum, std::int64_t pitch) {
  const auto row = [=](const float* from, int v) __attribute__((always_inline)) {
    return v + 1 < n ? load<float>(from + 16 * v) : Vector<float>(_mm512_maskz_loadu_ps(last, from + 16 * v));
  };
  for (const Row* const end = rows + count; rows != end; ++rows, sum += pitch) {
    const float* at = x + rows->from;
    std::int64_t left = rows->count;
    if (ahead > 0) fetch_run(at, left * step, ahead);
    Vector<float> s[n], first[n], second[n];
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) s[v] = -Vector<float>{};
    for (; left >= 4; left -= 4, at += 4 * step) {
#pragma GCC unroll 4
      for (int v = 0; v < n; ++v) first[v] = row(at, v);
#pragma GCC unroll 4
      for (int v = 0; v < n; ++v) first[v] += row(at + step, v);
#pragma GCC unroll 4
      for (int v = 0; v < n; ++v) second[v] = row(at + 2 * step, v);
#pragma GCC unroll 4
      for (int v = 0; v < n; ++v) s[v] += first[v] + (second[v] + row(at + 3 * step, v));
    }
    for (; left > 0; --left, at += step)
#pragma GCC unroll 4
      for (int v = 0; v < n; ++v) s[v] += row(at, v);
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) store<float>(s[v], sum + 16 * v);
  }
}

/// The same for any number of columns, for results that each take their windows of one line. Memory that `is_far` is
/// asked for in its order, not a few columns of each row at a time, and in good time: it is fastest then.
[[gnu::noinline]] inline void sum_lines_in_order(const float* x, const Row* rows, std::int64_t count, std::int64_t step,
                                                 std::int64_t n, bool is_far, float* sum, std::int64_t pitch) {
  const std::int64_t some = n <= 64 ? count : 1;
  for (std::int64_t l = 0; l < count; l += some, rows += some, sum += some * pitch) {
    std::uintptr_t ahead = is_far ? line_ahead() : 0;
    for (std::int64_t c = 0; c < n; c += 64, ahead = 0) {
      const std::int64_t vectors = std::min<std::int64_t>((n - c + 15) / 16, 4), behind = c + 16 * vectors - n;
      auto* sum_columns = vectors > 2   ? vectors > 3 ? sum_few_columns<4> : sum_few_columns<3>
                            : vectors > 1 ? sum_few_columns<2>
                                        : sum_few_columns<1>;
      const auto last = static_cast<__mmask16>(0xffff >> std::max<std::int64_t>(behind, 0));
      sum_columns(x + c, rows, some, step, last, ahead, sum + c, pitch);
    }
  }
}

/// y_o = (x_{s o} + ... + x_{s o + k - 1}) times its factor, of `count` lines. Reads at most 64 elements from the last
/// window on.
template <bool is_wide>
[[gnu::noinline, gnu::aligned(64)]] void average_strided(const Line<float, float>* lines, std::int64_t count,
                                                         std::int64_t n, FourStrided four, std::int64_t by_step) {
  constexpr std::make_integer_sequence<int, 16> turns;
  for (std::int64_t l = 0; l < count; ++l) {
    const Line<float, float> line = lines[l];
    auto factor = Factors<float>::at(line.by, 0);
    for (std::int64_t o = 0; o < n; o += 16) {
      Vector<float> lanes[4] = {};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i)
        if (o + 4 * i < n) lanes[i] = sum_four<is_wide>(four, line.from + (o + 4 * i) * four.s);
      const Vector<float> low = sum_in_turn<1>(lanes[0], lanes[1], turns),
                          high = sum_in_turn<1>(lanes[2], lanes[3], turns);
      const Vector<float> all = sum_in_turn<2>(low, high, turns);
      const Vector<float> sums =
          __builtin_shufflevector(all, all, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      if (by_step != 0) factor = Factors<float>::at(line.by, o);
      store_some<float>(factor.times(sums + 0.0f), n - o, line.to + o);
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
