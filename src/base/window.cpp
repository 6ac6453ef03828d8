#include "base/window.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.hpp"

namespace taper {

namespace {

using Member = std::int64_t Window1d::*;

bool same_everywhere(std::span<const Window1d> windows, Member member) {
  for (const Window1d& w : windows)
    if (w.*member != windows[0].*member) return false;
  return true;
}

/// " in dimension 1"; nothing when the caller gave one value for every dimension.
std::string in_dimension(std::size_t dimension, bool named) { return named ? cat(" in dimension ", dimension) : ""; }

[[noreturn, gnu::cold, gnu::noinline]] void fail_option(const char* where, std::span<const Window1d> windows,
                                                        std::size_t dimension, const char* option, Member member,
                                                        const char* rule) {
  fail(ErrorKind::config, where, ": ", option, " must ", rule, ", got ", windows[dimension].*member,
       in_dimension(dimension, !same_everywhere(windows, member)));
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_half_kernel(const char* where, std::span<const Window1d> windows,
                                                             std::size_t dimension, std::int64_t limit) {
  const Window1d& w = windows[dimension];
  bool named = false;
  for (const Member m : {&Window1d::kernel, &Window1d::dilation, &Window1d::padding_left, &Window1d::padding_right})
    named |= !same_everywhere(windows, m);
  fail(ErrorKind::config, where, ": padding must be at most half the ",
       limit == w.kernel / 2 ? "kernel size" : "dilated kernel", ": expected <= ", limit, ", got ",
       std::max(w.padding_left, w.padding_right), in_dimension(dimension, named));
}

std::optional<std::int64_t> dilated_kernel(const Window1d& w) {
  const auto gaps = checked::mul(w.dilation, w.kernel - 1);
  return gaps ? checked::add(*gaps, 1) : std::nullopt;
}

void check_at_least(const char* where, std::span<const Window1d> windows, const char* option, Member member,
                    std::int64_t least) {
  for (std::size_t d = 0; d < windows.size(); ++d)
    if (windows[d].*member < least) [[unlikely]]
      fail_option(where, windows, d, option, member,
                  least == 0 ? "not be negative: expected >= 0" : "be positive: expected >= 1");
}

/// "5" for one dimension, "[5, 7]" for more.
template <class Value>
std::string listed(std::size_t n, const Value& value) {
  if (n == 1) return cat(value(0));
  std::string out = "[";
  for (std::size_t d = 0; d < n; ++d) out += cat(d > 0 ? ", " : "", value(d));
  return out + "]";
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_too_small(const char* where, std::span<const Window1d> windows,
                                                           std::span<const std::int64_t> input,
                                                           std::span<const std::int64_t> output) {
  const auto list = [&](Member member) {
    return listed(windows.size(), [&](std::size_t d) { return windows[d].*member; });
  };
  const auto padding = [&](std::size_t d) {
    const auto [left, right] = std::pair(windows[d].padding_left, windows[d].padding_right);
    return left == right ? cat(left) : cat('[', left, ", ", right, ']');
  };
  fail(ErrorKind::shape, where, ": output size is too small: expected >= 1, got ",
       listed(output.size(), [&](std::size_t d) { return output[d]; }), "; input size ",
       listed(input.size(), [&](std::size_t d) { return input[d]; }), ", kernel_size ", list(&Window1d::kernel),
       ", stride ", list(&Window1d::stride), ", padding ", listed(windows.size(), padding), ", dilation ",
       list(&Window1d::dilation));
}

void check_input(const char* where, std::span<const std::int64_t> input) {
  for (std::size_t d = 0; d < input.size(); ++d)
    if (input[d] < 1) [[unlikely]]
      fail(ErrorKind::shape, where, ": input size must be positive: expected >= 1, got ", input[d],
           in_dimension(d, input.size() > 1));
}

/// Refuses a pool whose first window holds no position of the input. The others do, given the padding's limit and an
/// output size: only a dilation beyond the input steps over it, and then no other window starts in front of it.
void check_first_window(const char* where, std::span<const Window1d> windows, std::span<const std::int64_t> input) {
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const Taps taps = window_taps(windows[d], input[d], 0);
    if (taps.first >= input[d]) [[unlikely]]
      fail(ErrorKind::shape, where, ": first window holds padding alone: expected a position below input size ",
           input[d], ", got ", taps.first, "; padding ", windows[d].padding_left, ", dilation ", windows[d].dilation,
           in_dimension(d, windows.size() > 1));
  }
}

/// Whether the stride itself was given badly; one that was left out repeats the kernel, which is then at fault.
bool has_bad_stride(const Window1d& w) { return w.stride < 1 && w.stride != w.kernel; }

/// Output length of checked options over an input of at least 1; may be below 1.
std::int64_t unchecked_length(const Window1d& w, std::int64_t input, std::int64_t padded, std::int64_t dilated) {
  const std::int64_t travel = padded - dilated;
  std::int64_t steps = checked::floor_div(travel, w.stride);
  if (!w.ceil_mode) return steps + 1;
  if (travel % w.stride != 0) ++steps;
  // Window `steps` starts at steps * stride; it must not start in the right padding.
  const std::int64_t reach = input + w.padding_left;
  const std::int64_t starts = (reach - 1) / w.stride + 1;
  return steps >= starts ? steps : steps + 1;
}

/// Whether `refuse_options` finds nothing; every call of a small layer asks.
bool is_valid(const Window1d& w, WindowKind kind) {
  std::int64_t dilated;
  if (std::min({w.stride, w.kernel, w.dilation}) < 1 || std::min(w.padding_left, w.padding_right) < 0 ||
      __builtin_mul_overflow(w.dilation, w.kernel - 1, &dilated) || __builtin_add_overflow(dilated, 1, &dilated))
    return false;
  if (kind == WindowKind::convolution) return true;
  return std::max(w.padding_left, w.padding_right) <= (kind == WindowKind::average_pool ? dilated : w.kernel) / 2;
}

/// Says which of the windows is at fault, in the order of `check_options`.
[[gnu::cold, gnu::noinline]] void refuse_options(const char* where, std::span<const Window1d> windows,
                                                 WindowKind kind) {
  for (std::size_t d = 0; d < windows.size(); ++d)
    if (has_bad_stride(windows[d])) [[unlikely]]
      fail_option(where, windows, d, "stride", &Window1d::stride, "be positive: expected >= 1");
  check_at_least(where, windows, "kernel_size", &Window1d::kernel, 1);
  check_at_least(where, windows, "dilation", &Window1d::dilation, 1);
  check_at_least(where, windows, "padding", &Window1d::padding_left, 0);
  check_at_least(where, windows, "padding", &Window1d::padding_right, 0);
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const Window1d& w = windows[d];
    const auto dilated = dilated_kernel(w);
    const std::int64_t limit = (kind == WindowKind::average_pool && dilated ? *dilated : w.kernel) / 2;
    if (kind != WindowKind::convolution && std::max(w.padding_left, w.padding_right) > limit) [[unlikely]]
      fail_half_kernel(where, windows, d, limit);
    if (!dilated) [[unlikely]]
      fail(ErrorKind::config, where,
           ": dilated kernel overflows 64 bits: expected dilation * (kernel_size - 1) + 1 below 2^63, got dilation ",
           w.dilation, " and kernel_size ", w.kernel, in_dimension(d, windows.size() > 1));
  }
}

}  // namespace

void check_options(const char* where, std::span<const Window1d> windows, WindowKind kind) {
  for (const Window1d& w : windows)
    if (!is_valid(w, kind)) [[unlikely]]
      return refuse_options(where, windows, kind);
}

void pad_same(const char* where, std::span<Window1d> windows) {
  check_options(where, windows, WindowKind::convolution);
  for (std::size_t d = 0; d < windows.size(); ++d)
    if (windows[d].stride != 1) [[unlikely]]
      fail(ErrorKind::config, where, ": padding 'same' needs stride 1: expected 1, got ", windows[d].stride,
           in_dimension(d, !same_everywhere(windows, &Window1d::stride)));
  for (Window1d& w : windows) {
    const std::int64_t total = *dilated_kernel(w) - 1;
    w.padding_left = total / 2;
    w.padding_right = total - w.padding_left;
  }
}

void output_size(const char* where, std::span<const Window1d> windows, WindowKind kind,
                 std::span<const std::int64_t> input, std::span<std::int64_t> output) {
  check_options(where, windows, kind);
  checked_output_size(where, windows, kind, input, output);
}

void checked_output_size(const char* where, std::span<const Window1d> windows, WindowKind kind,
                         std::span<const std::int64_t> input, std::span<std::int64_t> output) {
  check_input(where, input);
  bool too_small = false;
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const Window1d& w = windows[d];
    const auto padding = checked::add(w.padding_left, w.padding_right);
    const auto padded = padding ? checked::add(input[d], *padding) : std::nullopt;
    if (!padded) [[unlikely]]
      fail(ErrorKind::shape, where, ": padded input overflows 64 bits: expected a size below 2^63, got input size ",
           input[d], " and padding ", std::max(w.padding_left, w.padding_right), in_dimension(d, windows.size() > 1));
    const std::int64_t dilated = *dilated_kernel(w);
    if (kind == WindowKind::convolution && *padded < dilated) [[unlikely]]
      fail(ErrorKind::shape, where, ": padded input is smaller than the dilated kernel: expected >= ", dilated,
           ", got ", *padded, in_dimension(d, windows.size() > 1));
    output[d] = unchecked_length(w, input[d], *padded, dilated);
    too_small |= output[d] < 1;
  }
  if (too_small) [[unlikely]]
    fail_too_small(where, windows, input, output);
  if (kind == WindowKind::pool) check_first_window(where, windows, input);
}

void check_output_padding(const char* where, std::span<const Window1d> windows,
                          std::span<const std::int64_t> output_padding) {
  const auto as_first = [&](std::int64_t amount) { return amount == output_padding[0]; };
  const bool named = !std::all_of(output_padding.begin(), output_padding.end(), as_first);
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const Window1d& w = windows[d];
    if (output_padding[d] < 0) [[unlikely]]
      fail(ErrorKind::config, where, ": output_padding must not be negative: expected >= 0, got ", output_padding[d],
           in_dimension(d, named));
    if (output_padding[d] >= std::max(w.stride, w.dilation)) [[unlikely]]
      fail(ErrorKind::config, where, ": output_padding must be less than stride or dilation: expected < ",
           std::max(w.stride, w.dilation), ", got ", output_padding[d], in_dimension(d, windows.size() > 1),
           "; stride ", w.stride, ", dilation ", w.dilation);
  }
}

void transposed_output_size(const char* where, std::span<const Window1d> windows,
                            std::span<const std::int64_t> output_padding, std::span<const std::int64_t> input,
                            std::span<std::int64_t> output) {
  check_options(where, windows, WindowKind::convolution);
  check_output_padding(where, windows, output_padding);
  check_input(where, input);
  bool too_small = false;
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const Window1d& w = windows[d];
    const auto travel = checked::mul(input[d] - 1, w.stride);
    const auto reach = travel ? checked::add(*travel, *dilated_kernel(w)) : std::nullopt;
    const auto full = reach ? checked::add(*reach, output_padding[d]) : std::nullopt;
    const auto padding = checked::add(w.padding_left, w.padding_right);
    if (!full || !padding) [[unlikely]]
      fail(ErrorKind::shape, where, ": output size overflows 64 bits: expected below 2^63, got input size ", input[d],
           ", kernel_size ", w.kernel, ", stride ", w.stride, ", padding ", w.padding_left, ", dilation ", w.dilation,
           in_dimension(d, windows.size() > 1));
    output[d] = *full - *padding;
    too_small |= output[d] < 1;
  }
  if (too_small) [[unlikely]]
    fail_too_small(where, windows, input, output);
}

void check_adaptive(const char* where, std::span<const std::int64_t> output) {
  for (std::size_t d = 0; d < output.size(); ++d)
    if (output[d] < 0) [[unlikely]]
      fail(ErrorKind::config, where, ": output_size must not be negative: expected >= 0, got ", output[d],
           in_dimension(d, output.size() > 1));
}

void check_adaptive_input(const char* where, std::span<const std::int64_t> input) { check_input(where, input); }

}  // namespace taper
