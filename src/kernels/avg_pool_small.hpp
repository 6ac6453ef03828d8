#pragma once

#include <cstdint>
#include <utility>

#include "kernels/avg_pool_loops.hpp"

/// Planes under the smallest windows: rows and columns are summed in registers.
namespace taper::kernels::average {

/// What is known of the windows: two by two side by side; three by three at each element or at every second one, from
/// one in front of the first element on. Forward, and for the last two backward: where windows begin at each element,
/// that is the same.
enum class Small { none, pairs, threes, strided_threes, pairs_back, strided_threes_back };

/// Lanes of two vectors side by side, from lane `first` on.
template <int first, class V, int... L>
[[gnu::always_inline]] inline V moved(V a, V b, LaneList<L...>) {
  return __builtin_shufflevector(a, b, (L + first)...);
}
/// The lanes of two vectors in turn, from half of them on or not.
template <bool half, class V, int... L>
[[gnu::always_inline]] inline V mixed(V a, V b, LaneList<L...>) {
  constexpr int n = sizeof...(L);
  return __builtin_shufflevector(a, b, (L / 2 + (half ? n / 2 : 0) + (L % 2) * n)...);
}

/// The sums of K rows, each times its factors if there are any, and zeros behind `n` columns.
template <int K, class T>
struct Columns {
  const T *x[K], *by[K];
  std::int64_t n, by_step;

  template <class Load>
  [[gnu::always_inline]] Vec<T> sum(const Load& row) const {
    if constexpr (K == 1) return row(0);
    if constexpr (K == 2) return row(0) + row(1);
    if constexpr (K == 3) return row(0) + (row(1) + row(2));
  }
  template <bool scales>
  [[gnu::always_inline]] Vec<T> at(std::int64_t c) const {
    const auto scaled = [ =, this ](int r, Vec<T> v) __attribute__((always_inline)) {
      return scales ? Factors<T>::multiply(v, by[r], c * by_step) : v;
    };
    if (n - c >= kLanes<T>)
      return sum([ =, this ](int r) __attribute__((always_inline)) { return scaled(r, load<T>(x[r] + c)); });
    if (n <= c) return Vec<T>{};
    return sum([ =, this ](int r) __attribute__((always_inline)) { return scaled(r, load_first<T>(x[r] + c, n - c)); });
  }
};

/// One row of windows.
template <Small kind, int K, class T>
[[gnu::always_inline]] inline void small_forward(const Columns<K, T>& x, const T* by, std::int64_t n, T* y) {
  using All = std::make_integer_sequence<int, kLanes<T>>;
  constexpr int kLast = kLanes<T> - 1;
  Vec<T> before{}, here = kind == Small::threes ? x.template at<false>(0) : before;
  for (std::int64_t o = 0; o < n; o += kLanes<T>) {
    Vec<T> sum;
    if constexpr (kind == Small::threes) {
      const Vec<T> after = x.template at<false>(o + kLanes<T>);
      sum = moved<kLast>(before, here, All()) + (here + moved<1>(here, after, All()));
      before = here;
      here = after;
    } else {
      const Vec<T> a = x.template at<false>(2 * o), b = x.template at<false>(2 * o + kLanes<T>);
      const Vec<T> even = every_second<0>(a, b, All()), odd = every_second<1>(a, b, All());
      sum = even + odd;
      if constexpr (kind == Small::strided_threes) {
        sum += moved<kLast>(before, odd, All());
        before = odd;
      }
    }
    store_some<T>(Factors<T>::multiply(sum, by, o * x.by_step), n - o, y + o);
  }
}

/// One row of elements, from sums of gradients g: dx_{2 j} = g_j; dx_{2 j + 1} = g_j, or g_j + g_{j + 1}.
template <Small kind, int K, class T>
[[gnu::always_inline]] inline void small_backward(const Columns<K, T>& g, std::int64_t n, std::int64_t copies,
                                                  std::int64_t pitch, T* dx) {
  using All = std::make_integer_sequence<int, kLanes<T>>;
  Vec<T> here = g.template at<true>(0);
  for (std::int64_t i = 0; i < n; i += 2 * kLanes<T>) {
    const Vec<T> after = g.template at<true>(i / 2 + kLanes<T>);
    const Vec<T> odd = kind == Small::pairs_back ? here : here + moved<1>(here, after, All());
    T* to = dx + i;
    for (std::int64_t c = 0; c < copies; ++c, to += pitch) {
      store_some<T>(mixed<false>(here, odd, All()), n - i, to);
      store_some<T>(mixed<true>(here, odd, All()), n - i - kLanes<T>, to + kLanes<T>);
    }
    here = after;
  }
}

/// The rows that a row of results is made of, as `Row` has them; `zeros` is read where there is none. The factors of a
/// row of windows, or of the rows of gradients, are `by[l]` and `by[l] + K`.
template <Small kind, int K, class T>
[[gnu::noinline]] void small_rows(const T* x, const Row* rows, std::int64_t count, std::int64_t from, std::int64_t to,
                                  const T* zeros, const T* const* by, std::int64_t by_step, T* y) {
  constexpr bool kBack = kind == Small::pairs_back || kind == Small::strided_threes_back;
  for (std::int64_t l = 0; l < count; ++l, by += kBack ? K : 1) {
    Columns<K, T> columns;
    columns.n = from;
    columns.by_step = by_step;
#pragma GCC unroll 3
    for (int r = 0; r < K; ++r) {
      columns.x[r] = r < rows[l].count ? x + rows[l].from + r * from : zeros;
      columns.by[r] = by[kBack ? r : 0];
    }
    if constexpr (kBack)
      small_backward<kind>(columns, to, rows[l].copies, to, y + rows[l].to);
    else
      small_forward<kind>(columns, by[0], to, y + rows[l].to);
  }
}

template <class T>
auto small_loop(Small kind) {
  return kind == Small::pairs            ? small_rows<Small::pairs, 2, T>
         : kind == Small::threes         ? small_rows<Small::threes, 3, T>
         : kind == Small::strided_threes ? small_rows<Small::strided_threes, 3, T>
         : kind == Small::pairs_back     ? small_rows<Small::pairs_back, 1, T>
                                         : small_rows<Small::strided_threes_back, 2, T>;
}

}  // namespace taper::kernels::average
