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

/// sum_c = x_c + x_{c + step} + ... of k rows, as `sum_few_rows` takes it. Zeros complete the last vector.
[[gnu::always_inline]] inline void sum_rows_in_order(const float* x, std::int64_t step, std::int64_t k, std::int64_t n,
                                                     float* sum) {
  for (std::int64_t c = 0; c < n; c += 64) {
    constexpr int kVectors = 4;
    const std::uint64_t columns = n - c < 64 ? (std::uint64_t{1} << (n - c)) - 1 : ~std::uint64_t{0};
    const auto row = [=](const float* from, int v) __attribute__((always_inline)) {
      return Vector<float>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(columns >> 16 * v), from + 16 * v));
    };
    Vector<float> s[kVectors], first[kVectors], second[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) s[v] = -Vector<float>{};
    const float* at = x + c;
    std::int64_t left = k;
    for (; left >= 4; left -= 4, at += 4 * step) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) first[v] = row(at, v);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) first[v] += row(at + step, v);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) second[v] = row(at + 2 * step, v);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) s[v] += first[v] + (second[v] + row(at + 3 * step, v));
    }
    for (; left > 0; --left, at += step)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) s[v] += row(at, v);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      if (c + 16 * v < n) store<float>(s[v], sum + c + 16 * v);
  }
}

/// Rows whose columns are summed before, `step` apart and `width` wide; none where `columns` is null.
struct SummedRows {
  const float* x;
  const Row* rows;
  std::int64_t step, width;
  float* columns;  ///< has room for those of one line
  bool is_far;
};

/// y_o = (x_{s o} + ... + x_{s o + k - 1}) times its factor, of `count` lines. Reads at most 64 elements from the last
/// window on.
template <bool is_wide>
[[gnu::noinline, gnu::aligned(64)]] void average_strided(const Line<float, float>* lines, std::int64_t count,
                                                         std::int64_t n, FourStrided four, std::int64_t by_step,
                                                         const SummedRows& summed) {
  constexpr std::make_integer_sequence<int, 16> turns;
  for (std::int64_t l = 0; l < count; ++l) {
    const Line<float, float> line = lines[l];
    if (summed.columns) {
      const auto [from, rows, to, copies, counted] = summed.rows[l];
      const float* const x = summed.x + from;
      // Memory is fastest when it is asked for in its order, not a few columns of each row at a time, and in good time.
      if (summed.is_far) {
        const std::int64_t some = rows * summed.step;
        fetch_run(x, some, farther(static_cast<std::uintptr_t>(2 * some) * sizeof(float) + kLine));
      }
      sum_rows_in_order(x, summed.step, rows, summed.width, summed.columns);
    }
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
                            const FourStrided& four, std::int64_t by_step, const SummedRows& summed) {
  auto* average = four.is_wide ? average_strided<true> : average_strided<false>;
  average(lines, count, n, four, by_step, summed);
}
#else
inline constexpr bool kHasStrided = false;
struct FourStrided {};
inline void list_fours(std::int64_t, std::int64_t, FourStrided&) {}
#endif

}  // namespace taper::kernels::average
