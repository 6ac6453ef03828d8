#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/avg_pool_loops.hpp"
#include "kernels/sum_run.hpp"

/// The loops of average pools for long windows at each element of a row.
namespace taper::kernels::average {

// --- of their own elements alone ------------------------------------------------------------------------------------

/// The windows of 1, 2, 4, ... elements, up to half a vector, that end at each element of a vector and of the one in
/// front of it.
template <class A>
class Doublings {
 public:
  /// Moves on to the next vector, which `before` is with the element in front of each. Returns the windows as long as
  /// a vector that end there.
  [[gnu::always_inline]] Vector<A> take(const Vector<A>& x, const Vector<A>& before) { return next<1>(x + before); }

  /// sum_l += x_l + ... + x_{l + rest - 1}, but for the last one where `rest` is odd, for less than a vector. What was
  /// taken last begins at x_{kAll - 1}.
  template <int n = kLanes<A> / 2, int at = 0>
  [[gnu::always_inline]] void add_rest(std::int64_t rest, Vector<A>& sum) const {
    if constexpr (n > 1) {
      if ((rest & n) == 0) return add_rest<n / 2, at>(rest, sum);
      sum += moved_freely<at + n>(before_[level(n)], now_[level(n)], All());
      add_rest<n / 2, at + n>(rest, sum);
    }
  }

 private:
  static constexpr int kAll = kLanes<A>;
  using All = std::make_integer_sequence<int, kAll>;
  static constexpr int level(int n) { return n == 1 ? 0 : 1 + level(n / 2); }
  static constexpr int kLevels = level(kAll);

  template <int l>
  [[gnu::always_inline]] Vector<A> next(const Vector<A>& sums) {
    if constexpr (l == kLevels) {
      return sums;
    } else {
      before_[l] = now_[l];
      now_[l] = sums;
      return next<l + 1>(sums + moved_freely<kAll - (1 << l)>(before_[l], now_[l], All()));
    }
  }

  Vector<A> before_[kLevels] = {}, now_[kLevels] = {};
};

/// v_i += v_{i + 1} + ... + v_{count - 1}, of vectors in place; four at a time are summed before others are added.
template <class A>
[[gnu::always_inline]] inline void add_those_behind(A* v, std::int64_t count) {
  constexpr int kAll = kLanes<A>;
  Vector<A> behind{};
  for (v += count * kAll; count % 4 != 0; --count) {
    v -= kAll;
    behind += load<A>(v);
    store<A>(behind, v);
  }
  for (; count > 0; count -= 4) {
    v -= 4 * kAll;
    const Vector<A> a = load<A>(v), b = load<A>(v + kAll), d = load<A>(v + 3 * kAll), cd = load<A>(v + 2 * kAll) + d;
    store<A>(d + behind, v + 3 * kAll);
    store<A>(cd + behind, v + 2 * kAll);
    store<A>((b + cd) + behind, v + kAll);
    behind += (a + b) + cd;
    store<A>(behind, v);
  }
}

/// Whether a sum became too large for its type while this lives: the processor takes note.
class Overflow {
 public:
#ifdef __SSE__
  bool may_have_been() const { return (_mm_getcsr() & kFlag) != 0; }
  Overflow() { _mm_setcsr(before_ & ~kFlag); }
  ~Overflow() { _mm_setcsr(_mm_getcsr() | (before_ & kFlag)); }
  Overflow(const Overflow&) = delete;
  Overflow& operator=(const Overflow&) = delete;

 private:
  static constexpr unsigned kFlag = 8;
  const unsigned before_ = _mm_getcsr();
#else
  bool may_have_been() const { return true; }
#endif
};

/// Takes results that are not finite again, of sums in double.
template <class A, class T>
[[gnu::noinline]] void take_too_large(const Line<A, T>& line, std::int64_t k, std::int64_t n, std::int64_t by_step) {
  for (std::int64_t o = 0; o < n; ++o)
    if (line.to[o] - line.to[o] != 0)
      line.to[o] = Factors<A>::multiply_one(sum_run(line.from + o, k), line.by, o * by_step);
}

/// The longest windows that `sum_doubled` takes.
inline constexpr std::int64_t kLongest = 2048;

/// y_o = x_o + ... + x_{o + k - 1} times its factor for o < n and kLanes <= k <= kLongest. A window is the sum of
/// windows as long as a vector, which are doubled from single elements, and of what is left over. Where they are more
/// than three they are taken in blocks of as many: those from the first one to the end of its block, and those in front
/// of the last one in the next block, a group at a time. A sum too large for A is taken again in double. Reads two
/// vectors more.
template <class A, class T>
[[gnu::noinline]] void sum_doubled(const Line<A, T>* lines, std::int64_t count, std::int64_t n, std::int64_t k,
                                   std::int64_t by_step) {
  using All = std::make_integer_sequence<int, kLanes<A>>;
  constexpr std::int64_t kAll = kLanes<A>, kGroup = 16;
  const std::int64_t whole = k / kAll, rest = k % kAll;
  const bool is_few = whole <= 3;
  const std::int64_t turns = is_few ? n : whole;
  alignas(kVectorWidth) A block[kLongest];
  const Overflow overflow;
  for (std::int64_t l = 0; l < count; ++l) {
    const Line<A, T> line = lines[l];
    auto factor = Factors<A>::at(line.by, 0);
    const A* x = line.from;
    Doublings<A> doublings;
    doublings.take(moved_up<1>(load<A>(x), All()), moved_up<2>(load<A>(x), All()));
    const auto next = [&]() __attribute__((always_inline)) {
      return doublings.take(load<A>(x + kAll - 1), load<A>(x + kAll - 2));
    };
    Vector<A> last{}, second{}, third{};
    for (std::int64_t j = 0; j < whole; ++j, x += kAll) {
      third = second, second = last, last = next();
      store<A>(last, block + j * kAll);
    }
    for (std::int64_t o = 0; o < n;) {
      if (!is_few) add_those_behind(block, whole);
      Vector<A> in_front{};
      for (std::int64_t j = 0; j < turns && o < n;) {
        Vector<A> group{};
        for (const std::int64_t end = std::min(j + kGroup, turns); j < end && o < n; ++j, o += kAll, x += kAll) {
          Vector<A> sum = last;
          // The longest way is a straight one: jumps would take as long as sums.
          if (is_few) [[unlikely]] {
            if (whole > 1) sum += second;
            if (whole > 2) sum += third;
            third = second, second = last, last = next();
          } else {
            A* const at = block + j * kAll;
            sum = load<A>(at) + (in_front + group);
            const Vector<A> v = next();
            store<A>(v, at);
            group += v;
          }
          if (rest % 2 != 0) sum += load<A>(x + rest - 1);
          if (rest > 1) doublings.add_rest(rest, sum);
          if (by_step != 0) [[unlikely]]
            factor = Factors<A>::at(line.by, o);
          store_some<A>(factor.times(sum), n - o, line.to + o);
        }
        in_front += group;
      }
    }
    if (overflow.may_have_been()) take_too_large(line, k, n, by_step);
  }
}

// --- in double, of others -------------------------------------------------------------------------------------------

/// sum_o = x_o + ... + x_{o + k - 1} for o < n. Each sum is the one before it, plus what comes and less what goes, so
/// that an infinity would spoil those behind it: whether there was none. Reads what windows would hold that complete
/// the last vector.
inline bool slide_sums(const double* x, std::int64_t k, std::int64_t n, double* sum) {
  using All = std::make_integer_sequence<int, kDoubles>;
  Doubles before = Doubles{} + sum_row(x, k);
  // What changes from window o to the ones behind it.
  const auto changes_at = [=](std::int64_t o) {
    return sums_up_to(Doubles(load<double>(x + o + k) - load<double>(x + o)), All());
  };
  for (std::int64_t o = 0; o < n; o += kDoubles) {
    const Doubles changes = changes_at(o);
    store<double>(before + moved_up<1>(changes, All()), sum + o);
    before += Doubles{} + changes[kDoubles - 1];
  }
  return before[0] - before[0] == 0;
}

/// The same of every s-th window. Sums from others are not exact enough for float64, and do not serve windows behind an
/// infinity.
[[gnu::noinline]] inline void sum_long_windows(const double* x, std::int64_t k, std::int64_t s, std::int64_t n,
                                               bool is_exact, double* sums) {
  const std::int64_t all = (n - 1) * s + 1;
  if (is_exact || !slide_sums(x, k, all, sums)) sum_runs(x, k, all, sums);
  if (s > 1)
    for (std::int64_t o = 1; o < n; ++o) sums[o] = sums[o * s];
}

}  // namespace taper::kernels::average
