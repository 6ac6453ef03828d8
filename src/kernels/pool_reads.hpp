#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/pool_axis.hpp"

namespace taper::kernels {

/// Which positions of a source each position of a destination is a sum of, along one axis of an average pool: the
/// elements of a window, or the windows over an element. Position i reads from floor((i num + low) / den) up to
/// floor((i num + high) / den), which may lie outside the source; what does counts as zero.
struct Reads {
  std::int64_t from, to;  ///< extents of the source and of the destination
  std::int64_t num, den, low, high;
  std::int64_t step = 1;      ///< between positions that are read
  std::int64_t dilation = 0;  ///< of windows that are read where they are both dilated and strided; else 0

  /// How many positions any position reads, at least and at most; not of windows both dilated and strided.
  std::int64_t least() const { return parted(high - low); }
  std::int64_t most() const { return parted(high - low - 1) + 1; }
  /// Whether position i reads the `num` positions from i num on, all inside the source.
  bool is_beside() const {
    return step == 1 && dilation == 0 && low == 0 && den == 1 && high == num && from >= to * num;
  }
  /// The same of a source that is no longer.
  bool is_tiled() const { return is_beside() && from == to * num; }
  /// Whether `den` positions beside each other read one, the next as many the next, and so all of the source.
  bool repeats_each() const {
    return step == 1 && dilation == 0 && low == 0 && num == 1 && high == den && to == from * den;
  }
  /// Whether each position reads the one at its place.
  bool takes_one() const { return num == 1 && den == 1 && low == 0 && high == 1 && to <= from; }

 private:
  /// Divisions take longer than small pools.
  std::int64_t parted(std::int64_t n) const { return den == 1 && step == 1 ? n : n / den / step; }
};

/// Steps through the positions of a destination in order.
class ReadsCursor {
 public:
  [[gnu::noinline]] ReadsCursor(const Reads& reads, std::int64_t i)
      : r_(reads),
        i_(i),
        whole_(r_.den == 1 ? r_.num : r_.num / r_.den),
        part_(r_.den == 1 ? 0 : r_.num % r_.den),
        first_(at(r_.low)),
        last_(at(r_.high)) {}

  /// What is read, outside the source too.
  IndexRange range() const { return {first_.quotient, last_.quotient}; }
  /// What is read of the source.
  [[gnu::noinline]] Taps taps() const {
    std::int64_t first = first_.quotient, last = std::min(last_.quotient, r_.from);
    if (first < 0) first = r_.step == 1 || r_.dilation != 0 ? 0 : (first % r_.step + r_.step) % r_.step;
    if (r_.dilation != 0)
      while (first < last && (i_ + r_.high - r_.den - first * r_.den) % r_.dilation != 0) ++first;
    return {first, std::max(first, last), r_.step};
  }
  void next() {
    ++i_;
    advance(first_);
    advance(last_);
  }

 private:
  static constexpr std::int64_t kLarge = std::int64_t{1} << 62;
  struct Quotient {
    std::int64_t quotient, rest;
  };
  Quotient at(std::int64_t offset) const {
    if (r_.den == 1) return {i_ * r_.num + offset, 0};
    std::int64_t quotient, rest;
    if (const auto product = checked::mul(i_, r_.num); product && *product < kLarge && offset < kLarge) [[likely]] {
      quotient = (*product + offset) / r_.den;
      rest = (*product + offset) % r_.den;
    } else {
      __extension__ using int128 = __int128;
      const int128 dividend = int128{i_} * r_.num + offset;
      quotient = static_cast<std::int64_t>(dividend / r_.den);
      rest = static_cast<std::int64_t>(dividend - int128{quotient} * r_.den);
    }
    if (rest < 0) --quotient, rest += r_.den;
    return {quotient, rest};
  }
  void advance(Quotient& q) const {
    // Without a branch: which way it went would be hard to foresee.
    q.rest += part_;
    const bool over = q.rest >= r_.den;
    q.quotient += whole_ + (over ? 1 : 0);
    q.rest -= over ? r_.den : 0;
  }

  const Reads& r_;
  std::int64_t i_, whole_, part_;
  Quotient first_, last_;
};

/// The elements of each window.
inline Reads elements_of_windows(const PoolAxis& a) {
  if (a.is_adaptive) return {a.in, a.out, a.in, a.out, 0, a.in + a.out - 1};
  const Window1d& w = a.window;
  return {a.in, a.out, w.stride, 1, -w.padding_left, w.dilation * (w.kernel - 1) + 1 - w.padding_left, w.dilation};
}

/// The windows over each element.
inline Reads windows_over_elements(const PoolAxis& a) {
  if (a.is_adaptive) return {a.out, a.in, a.out, a.in, 0, a.out + a.in - 1};
  const Window1d& w = a.window;
  const std::int64_t span = w.dilation * (w.kernel - 1) + 1, low = w.padding_left - span + w.stride;
  const std::int64_t high = w.padding_left + w.stride;
  if (w.stride == 1) return {a.out, a.in, 1, 1, low, high, w.dilation};
  if (w.dilation == 1) return {a.out, a.in, 1, w.stride, low, high};
  return {a.out, a.in, 1, w.stride, low, high, w.dilation / std::gcd(w.dilation, w.stride), w.dilation};
}

}  // namespace taper::kernels
