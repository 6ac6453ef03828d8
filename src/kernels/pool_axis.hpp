#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/window.hpp"

namespace taper::kernels {

/// How the windows of one spatial dimension lie, for the pooling kernels: windows of one size and stride, or those of
/// an adaptive pool, [floor(o * in / out), ceil((o + 1) * in / out)).
struct PoolAxis {
  std::int64_t in = 1, out = 1;
  Window1d window = {};
  bool is_adaptive = false;

  /// Steps through the windows in order, through adaptive ones without dividing: a start is first + rest / out with
  /// 0 <= rest < out.
  struct Cursor {
    const PoolAxis* axis;
    std::int64_t o;
    std::int64_t first, rest, quotient, remainder;

    WindowBounds bounds() const noexcept {
      if (!axis->is_adaptive) return window_bounds(axis->window, axis->in, o);
      Cursor after = *this;
      after.next();
      const std::int64_t last = after.first + (after.rest > 0 ? 1 : 0);
      return {first, last, first, last};
    }
    void next() noexcept {
      ++o;
      first += quotient;
      rest += remainder;
      if (rest >= axis->out) {
        ++first;
        rest -= axis->out;
      }
    }
  };

  Cursor cursor(std::int64_t o) const noexcept {
    if (!is_adaptive) return {this, o, 0, 0, 0, 0};
    const std::int64_t quotient = in / out, remainder = in % out;
    if (o == 0) return {this, 0, 0, 0, quotient, remainder};
    const std::int64_t first = floor_scaled(o, in, out);
    // o * in - first * out lies in [0, out); unsigned arithmetic gives it although both products may wrap.
    const auto rest = static_cast<std::uint64_t>(o) * static_cast<std::uint64_t>(in) -
                      static_cast<std::uint64_t>(first) * static_cast<std::uint64_t>(out);
    return {this, o, first, static_cast<std::int64_t>(rest), quotient, remainder};
  }
  WindowBounds at(std::int64_t o) const noexcept {
    if (!is_adaptive) return window_bounds(window, in, o);
    if (out == 1) return {0, in, 0, in};
    return adaptive_bounds(in, out, o);
  }
  /// The windows that hold position `i`.
  IndexRange over(std::int64_t i) const noexcept {
    if (!is_adaptive) return windows_over(window, out, i);
    if (in == 1) return {0, out};
    return adaptive_windows_over(in, out, i);
  }

  /// No window holds more positions; of an adaptive pool each holds as many or one less.
  std::int64_t longest() const noexcept { return is_adaptive ? in / out + (in % out == 0 ? 0 : 2) : window.kernel; }
  /// No position lies in more windows.
  std::int64_t most_windows() const noexcept {
    return is_adaptive ? (out - 1) / in + 2 : (window.kernel - 1) / window.stride + 1;
  }
  /// Whether every window is one position.
  bool takes_one() const noexcept { return is_adaptive ? in == out : window.kernel == 1 && window.padding_left == 0; }
  /// Whether the windows are all of the input, side by side and of one size.
  bool is_tiled() const noexcept {
    return !is_adaptive && window.kernel == window.stride && window.padding_left == 0 && in % window.kernel == 0 &&
           in / window.kernel == out;
  }
  /// How many windows from `o` on lie in the input as that one does, each a stride behind the one before.
  std::int64_t alike_from(std::int64_t o) const noexcept {
    if (is_adaptive) return 1;
    const WindowBounds b = at(o);
    if (b.start < 0 || b.last - b.start < window.kernel) return 1;
    return std::min(out, (in + window.padding_left - window.kernel) / window.stride + 1) - o;
  }
  /// How many neighbouring windows span at most `span` positions together; 0 when one alone is wider.
  std::int64_t windows_within(std::int64_t span) const noexcept {
    if (is_adaptive) return (span - 1) / (in / out + 1);
    return window.kernel > span ? 0 : (span - window.kernel) / window.stride + 1;
  }
  /// How many neighbouring positions lie in at most `n` windows together; 0 when one alone lies in more.
  std::int64_t positions_within(std::int64_t n) const noexcept {
    if (is_adaptive) return (n - 1) / (out / in + 1);
    if ((window.kernel - 1) / window.stride + 1 > n) return 0;
    const auto reach = checked::mul(n - 1, window.stride);
    return reach ? std::max<std::int64_t>(*reach - window.kernel + 2, 1) : in;
  }
  /// What every window counts, if all count the same.
  std::optional<std::int64_t> uniform_count(bool count_include_pad) const noexcept {
    if (is_adaptive) return std::nullopt;
    const std::int64_t first = at(0).counted(count_include_pad), last = at(out - 1).counted(count_include_pad);
    if (first != last || (first != window.kernel && out > 2)) return std::nullopt;
    return first;
  }
  /// Calls visit(a, b, count) for ranges [a, b) of windows in [o0, o1), in order, that count the same.
  template <class Visit>
  void for_counts(bool count_include_pad, std::int64_t o0, std::int64_t o1, const Visit& visit) const {
    if (is_adaptive) {
      Cursor at_o = cursor(o0);
      for (std::int64_t o = o0; o < o1; ++o, at_o.next()) visit(o, o + 1, at_o.bounds().counted(false));
      return;
    }
    const Window1d& w = window;
    std::int64_t o = o0;
    if (!count_include_pad)
      for (; o < o1 && o * w.stride < w.padding_left; ++o) visit(o, o + 1, at(o).counted(false));
    const std::int64_t reach = in + w.padding_left + (count_include_pad ? w.padding_right : 0) - w.kernel;
    const std::int64_t full = reach < 0 ? o : std::min(o1, reach / w.stride + 1);
    if (o < full) {
      visit(o, full, w.kernel);
      o = full;
    }
    for (; o < o1; ++o) visit(o, o + 1, at(o).counted(count_include_pad));
  }
};

/// Follows which windows hold a position while the position moves to the right.
class Sweep {
 public:
  Sweep(const PoolAxis& axis, std::int64_t i)
      : axis_(axis),
        over_(i == 0 ? IndexRange{0, 0} : axis.over(i)),
        low_(axis.cursor(over_.first)),
        high_(axis.cursor(over_.last)) {
    to(i);
  }

  /// Moves to position `i`, which is not left of where the sweep stands.
  void to(std::int64_t i) {
    while (over_.last < axis_.out && high_.bounds().first <= i) {
      ++over_.last;
      high_.next();
    }
    while (over_.first < over_.last && low_.bounds().last <= i) {
      ++over_.first;
      low_.next();
    }
    end_ = axis_.in;
    if (over_.last < axis_.out) end_ = std::min(end_, high_.bounds().first);
    if (over_.first < over_.last) end_ = std::min(end_, low_.bounds().last);
  }

  /// The windows over the position; the same for all positions below `end()`.
  IndexRange over() const { return over_; }
  std::int64_t end() const { return end_; }

 private:
  const PoolAxis& axis_;
  IndexRange over_;
  PoolAxis::Cursor low_, high_;
  std::int64_t end_ = 0;
};

}  // namespace taper::kernels
