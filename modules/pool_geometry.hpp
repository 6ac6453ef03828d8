#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/window.hpp"
#include "kernels/pool_params.hpp"
#include "spatial.hpp"
#include "taper/nn/pool_description.hpp"
#include "taper/nn/sizes.hpp"

namespace taper::nn {

// What pools of every kind share, for any number of spatial dimensions. `O` are the options of a pool over `O::kDims`.

/// The sliding pools; the others are adaptive.
template <class O>
concept Sliding = requires(O o) {
  o.kernel_size;
};

/// The windows of a sliding pool, not checked yet. A stride left out is the kernel size, an option that the pool does
/// not have is as in `Window1d`, and padding that is "same" is still to be chosen.
template <Sliding O>
std::array<Window1d, O::kDims> sliding_windows(const O& options) {
  std::array<Window1d, O::kDims> windows;
  for (int d = 0; d < O::kDims; ++d) {
    Window1d& window = windows[std::size_t(d)];
    window.kernel = options.kernel_size[d];
    window.stride = options.stride.value_or(options.kernel_size)[d];
    if constexpr (requires { options.padding; }) {
      const PaddingSides padding = options.padding[d];
      window.padding_left = padding.before;
      window.padding_right = padding.after;
    }
    if constexpr (requires { options.dilation; }) window.dilation = options.dilation[d];
    if constexpr (requires { options.ceil_mode; }) window.ceil_mode = options.ceil_mode;
  }
  return windows;
}

/// The same, checked, with "same" as amounts. Errors: as `check_options`, `pad_same`.
template <Sliding O>
std::array<Window1d, O::kDims> checked_windows(const char* where, WindowKind kind, const O& options) {
  auto windows = sliding_windows(options);
  if constexpr (requires { options.padding.same; })
    if (options.padding.same) pad_same(where, windows);
  check_options(where, windows, kind);
  return windows;
}

/// The geometry of a sliding pool with checked windows: fills in what the kernels must know and returns the shape that
/// they fill. `where` is the operation's name. Errors: as `check_spatial_input`, `output_size`.
Shape sliding_geometry(const char* where, std::span<const Window1d> windows, WindowKind kind, const Shape& input,
                       kernels::SlidingPoolParams& params);

/// The same of an adaptive pool of these extents, of which an open one is the input's, over at least so many channels.
/// Errors: as `check_spatial_input`, `check_adaptive`, `check_adaptive_input`.
Shape adaptive_geometry(const char* where, std::span<const std::optional<std::int64_t>> extents, const Shape& input,
                        std::int64_t least_channels, kernels::AdaptivePoolParams& params);

/// The output extents that an adaptive pool is given; some may be open.
template <class O>
std::array<std::optional<std::int64_t>, O::kDims> given_extents(const O& options) {
  std::array<std::optional<std::int64_t>, O::kDims> extents;
  for (int d = 0; d < O::kDims; ++d) extents[std::size_t(d)] = options.output_size[d];
  return extents;
}

/// Refuses negative output extents; an open one is not known yet.
template <class O>
void check_output_size(const char* where, const O& options) {
  std::array<std::int64_t, O::kDims> known{};
  for (int d = 0; d < O::kDims; ++d) known[std::size_t(d)] = std::optional(options.output_size[d]).value_or(0);
  check_adaptive(where, known);
}

/// The output extents of an adaptive pool; an open one is the input's.
template <class O>
std::array<std::int64_t, O::kDims> extents_of(const O& options, std::span<const std::int64_t> input) {
  std::array<std::int64_t, O::kDims> out;
  for (std::size_t d = 0; d < out.size(); ++d) out[d] = std::optional(options.output_size[int(d)]).value_or(input[d]);
  return out;
}

/// Refuses options of a sliding or adaptive pool that no input could make valid.
template <class O>
void check_pool(const char* where, WindowKind kind, const O& options) {
  if constexpr (Sliding<O>)
    checked_windows(where, kind, options);
  else
    check_output_size(where, options);
}

/// The geometry of either: fills in `params` and returns the output's shape. Adaptive averages may be of no channels.
template <class O, class Params>
Shape pool_geometry(const char* where, WindowKind kind, const O& options, const Shape& input, Params& params) {
  if constexpr (Sliding<O>)
    return sliding_geometry(where, checked_windows(where, kind, options), kind, input, params);
  else
    return adaptive_geometry(where, given_extents(options), input, kind == WindowKind::average_pool ? 0 : 1, params);
}

/// Completes `head` (everything but the dimensions) with the windows of a sliding pool over extents `input`: what
/// `describe` of a layer returns. `where` is the operation's name.
/// Errors: as `output_size`; `ErrorKind::shape` for more than a million windows along a dimension.
PoolDescription describe_sliding(PoolDescription&& head, const char* where, std::span<const Window1d> windows,
                                 WindowKind kind, std::span<const std::int64_t> input);

/// The same for an adaptive pool with extents `output`. Errors: as `check_adaptive`, `check_adaptive_input`.
PoolDescription describe_adaptive(PoolDescription&& head, const char* where, std::span<const std::int64_t> input,
                                  std::span<const std::int64_t> output);

/// The same for either.
template <class O>
PoolDescription describe_pool(PoolDescription&& head, const char* where, WindowKind kind, const O& options,
                              std::span<const std::int64_t> input) {
  if constexpr (Sliding<O>)
    return describe_sliding(std::move(head), where, checked_windows(where, kind, options), kind, input);
  else
    return describe_adaptive(std::move(head), where, input, extents_of(options, input));
}

}  // namespace taper::nn
