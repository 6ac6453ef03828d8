#pragma once

#include <algorithm>
#include <cstdint>

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

  /// Whether the windows are all of the input, side by side and of one size.
  [[gnu::noinline]] bool is_tiled() const noexcept {
    return !is_adaptive && window.kernel == window.stride && window.dilation == 1 && window.padding_left == 0 &&
           window.kernel <= in &&
           static_cast<std::uint64_t>(window.kernel) * static_cast<std::uint64_t>(out) ==
               static_cast<std::uint64_t>(in);
  }
  /// What an average over window `o` divides by.
  [[gnu::noinline]] std::int64_t counted(std::int64_t o, bool count_include_pad) const noexcept {
    if (!is_adaptive) return counted_taps(window, in, o, count_include_pad);
    const WindowBounds b = at(o);
    return b.last - b.first;
  }
  /// What every window counts, if all count the same; else 0.
  [[gnu::noinline]] std::int64_t uniform_count(bool count_include_pad) const noexcept {
    if (is_adaptive) return 0;
    if (is_tiled()) return window.kernel;
    const std::int64_t first = counted(0, count_include_pad), last = counted(out - 1, count_include_pad);
    return first != last || (first != window.kernel && out > 2) ? 0 : first;
  }
};

}  // namespace taper::kernels
