#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/checked.hpp"

namespace taper {

/// The geometry of every windowed operation, in any number of spatial dimensions: output sizes, window bounds
/// and what an average divides by. Forward, backward, shape inference, config checks and export all ask here.
/// Everything is 64-bit integer arithmetic that does not overflow once `output_size` has passed.
/// What kernels call in their loops is static: a copy that is compiled for one instruction set serves nobody else.

/// How a window slides along one dimension.
struct Window1d {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding_left = 0;
  std::int64_t padding_right = 0;
  std::int64_t dilation = 1;
  bool ceil_mode = false;
};

/// A pool's padding is at most half its kernel, an average pool's half its dilated kernel, so that no window lies in
/// padding alone; a convolution may pad as far as it likes and always rounds its output length down. Each may pad its
/// two sides differently.
enum class WindowKind { pool, average_pool, convolution };

/// Refuses options that no input could make valid; what a layer's constructor calls.
///
/// One `Window1d` per spatial dimension. `where` is the operation's name. Checked in this order, each over all
/// dimensions: stride >= 1 (unless it repeats a bad kernel, as a stride left out does), kernel >= 1,
/// dilation >= 1, padding >= 0, for pools padding <= kernel / 2 (average pools: half the dilated kernel),
/// dilation * (kernel - 1) + 1 below 2^63.
/// A message names the dimension when the dimensions were given different values.
/// Errors: `ErrorKind::config`.
void check_options(const char* where, std::span<const Window1d> windows, WindowKind kind);

/// Gives windows the padding that keeps the input's size: dilation * (kernel - 1) zeros,
/// an odd one on the right. Errors: `ErrorKind::config`, also when a stride is not 1.
void pad_same(const char* where, std::span<Window1d> windows);

/// Writes the output size of windows over `input` to `output`, one extent per dimension; checks the options too.
///
///   out = floor or ceil((input + padding - (dilation * (kernel - 1) + 1)) / stride) + 1
///
/// rounded on true quotients; with `ceil_mode` a last window that would start beyond the input and its left
/// padding is dropped. (PyTorch, `pooling_output_shape` and `Conv1d`.)
/// Errors: `ErrorKind::shape` for an empty input, a size beyond 63 bits, an output size below 1, for a convolution a
/// padded input smaller than the dilated kernel, and for a pool a dilated window whose positions all lie in padding.
void output_size(const char* where, std::span<const Window1d> windows, WindowKind kind,
                 std::span<const std::int64_t> input, std::span<std::int64_t> output);

/// The same for windows that have passed `check_options`.
void checked_output_size(const char* where, std::span<const Window1d> windows, WindowKind kind,
                         std::span<const std::int64_t> input, std::span<std::int64_t> output);

/// Refuses what a transposed convolution may not append to its output: expected at least 0 and less than the stride or
/// the dilation, whichever is larger. One number for each dimension. The windows must have passed `check_options`.
/// Errors: `ErrorKind::config`.
void check_output_padding(const char* where, std::span<const Window1d> windows,
                          std::span<const std::int64_t> output_padding);

/// Writes the output size of a transposed convolution over `input` to `output`, whose windows take the output back to
/// the input; checks the options too.
///
///   out = (input - 1) * stride - padding + dilation * (kernel - 1) + output_padding + 1
///
/// (PyTorch, `ConvTranspose1d`.) Errors: `ErrorKind::shape` for an empty input, a size beyond 63 bits and an output
/// size below 1.
void transposed_output_size(const char* where, std::span<const Window1d> windows,
                            std::span<const std::int64_t> output_padding, std::span<const std::int64_t> input,
                            std::span<std::int64_t> output);

/// Refuses negative extents of an adaptive pool's output; 0 is an empty result. Errors: `ErrorKind::config`.
void check_adaptive(const char* where, std::span<const std::int64_t> output);

/// Refuses an adaptive pool's input with an empty spatial extent. Errors: `ErrorKind::shape`.
void check_adaptive_input(const char* where, std::span<const std::int64_t> input);

/// Where one window lies: `[start, end)` in the padded input, `[first, last)` in the input itself, counted from
/// the input's first element. What hangs over the right padding belongs to neither.
struct WindowBounds {
  std::int64_t start, end;
  std::int64_t first, last;

  /// How many positions an average counts: all of the padded input, or those of the input.
  std::int64_t counted(bool count_include_pad) const noexcept { return count_include_pad ? end - start : last - first; }
};

/// A half-open range of positions or of outputs.
struct IndexRange {
  std::int64_t first, last;
};

/// The window of output `i` over an input of `length`, 0 <= i < output length. A dilated window is the range
/// it spans; `taps_between` says where its elements are.
static inline WindowBounds window_bounds(const Window1d& w, std::int64_t length, std::int64_t i) noexcept {
  const std::int64_t start = i * w.stride - w.padding_left;
  const std::int64_t span = w.dilation * (w.kernel - 1) + 1;
  const std::int64_t limit = length + w.padding_right;
  const std::int64_t end = span < limit - start ? start + span : limit;
  return {start, end, std::max<std::int64_t>(start, 0), std::min(end, length)};
}

/// The taps of a window that begins at `start` whose positions start + tap * dilation lie in [low, high).
static inline IndexRange taps_between(const Window1d& w, std::int64_t start, std::int64_t low,
                                      std::int64_t high) noexcept {
  const auto below = [&](std::int64_t limit) {
    return limit <= start ? 0 : std::min(w.kernel, (limit - start - 1) / w.dilation + 1);
  };
  return {below(low), below(high)};
}

/// How many positions the average of output `i` counts, for any dilation: all of the padded input, or those of the
/// input. Only a dilated window may count none of the latter: it then steps over the whole input.
static inline std::int64_t counted_taps(const Window1d& w, std::int64_t length, std::int64_t i,
                                        bool count_include_pad) noexcept {
  const std::int64_t start = i * w.stride - w.padding_left;
  const IndexRange taps =
      taps_between(w, start, count_include_pad ? start : 0, count_include_pad ? length + w.padding_right : length);
  return taps.last - taps.first;
}

/// The positions of the input that a window holds: `first`, `first + step`, ... below `last`.
struct Taps {
  std::int64_t first, last, step;
};

/// The positions that the window of output `i` holds; a start in front of the input moves into it by steps of the
/// dilation. A step longer than the input is as long as the input.
static inline Taps window_taps(const Window1d& w, std::int64_t length, std::int64_t i) noexcept {
  const WindowBounds b = window_bounds(w, length, i);
  std::int64_t first = b.first;
  if (b.start < 0 && w.dilation > 1) {
    const std::int64_t rest = b.start % w.dilation;
    first = rest < 0 ? rest + w.dilation : 0;
  }
  return {first, b.last, std::min(w.dilation, length)};
}

/// The outputs whose window spans input position `i`, of an output of `outputs` windows.
static inline IndexRange windows_over(const Window1d& w, std::int64_t outputs, std::int64_t i) noexcept {
  const std::int64_t span = w.dilation * (w.kernel - 1) + 1;
  const std::int64_t at = i + w.padding_left;
  const std::int64_t last = std::min(at / w.stride + 1, outputs);
  return {at < span ? 0 : std::min((at - span) / w.stride + 1, last), last};
}

/// floor(i * numerator / denominator) and its ceiling, exact although the product may pass 2^63; all >= 0, the
/// quotient within 63 bits.
static inline std::int64_t floor_scaled(std::int64_t i, std::int64_t numerator, std::int64_t denominator) noexcept {
  if (const auto product = checked::mul(i, numerator)) [[likely]]
    return *product / denominator;
  __extension__ using int128 = __int128;
  return static_cast<std::int64_t>(int128{i} * numerator / denominator);
}
static inline std::int64_t ceil_scaled(std::int64_t i, std::int64_t numerator, std::int64_t denominator) noexcept {
  if (const auto product = checked::mul(i, numerator)) [[likely]]
    return *product / denominator + (*product % denominator != 0 ? 1 : 0);
  __extension__ using int128 = __int128;
  const int128 product = int128{i} * numerator;
  return static_cast<std::int64_t>(product / denominator + (product % denominator != 0 ? 1 : 0));
}

/// The window of output `i` of an adaptive pool: [floor(i * L / O), ceil((i + 1) * L / O)).
static inline WindowBounds adaptive_bounds(std::int64_t length, std::int64_t outputs, std::int64_t i) noexcept {
  const std::int64_t first = floor_scaled(i, length, outputs);
  const std::int64_t last = ceil_scaled(i + 1, length, outputs);
  return {first, last, first, last};
}

/// The outputs of an adaptive pool whose window holds input position `i`: the same formula, lengths exchanged.
static inline IndexRange adaptive_windows_over(std::int64_t length, std::int64_t outputs, std::int64_t i) noexcept {
  return {floor_scaled(i, outputs, length), ceil_scaled(i + 1, outputs, length)};
}

}  // namespace taper
