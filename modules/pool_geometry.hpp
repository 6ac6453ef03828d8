#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/window.hpp"
#include "spatial.hpp"
#include "taper/nn/pool_description.hpp"

namespace taper::nn {

// What pools of every kind share, for any number of spatial dimensions. `O` are the options of a pool over `O::kDims`.

/// The sliding pools; the others are adaptive.
template <class O>
concept Sliding = requires(O o) {
  o.kernel_size;
};

/// What a kernel needs to know, and the shape it fills.
template <class Params>
struct Geometry {
  Params params;
  Shape output;
};

/// The geometry of a sliding pool with checked windows. `where` is the operation's name.
/// Errors: as `check_spatial_input`, `output_size`.
template <class Params, std::size_t N>
Geometry<Params> sliding_geometry(const char* where, const std::array<Window1d, N>& windows, WindowKind kind,
                                  const Shape& input) {
  check_spatial_input(where, input, int(N));
  Geometry<Params> geometry;
  Params& p = geometry.params;
  const std::span<const std::int64_t> in(input.end() - N, N);
  const std::span<std::int64_t> out(p.out + 3 - N, N);
  output_size(where, windows, kind, in, out);
  for (std::size_t d = 0; d < N; ++d) {
    const Window1d& window = windows[d];
    const std::size_t at = 3 - N + d;
    p.in[at] = in[d];
    p.kernel[at] = window.kernel;
    p.stride[at] = window.stride;
    p.padding_left[at] = window.padding_left;
    p.padding_right[at] = window.padding_right;
    p.dilation[at] = window.dilation;
  }
  p.planes = planes(input, int(N));
  geometry.output = with_last(input, out);
  return geometry;
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

/// The geometry of an adaptive pool of at least so many channels. Errors: as `check_spatial_input`, `check_adaptive`,
/// `check_adaptive_input`.
template <class Params, class O>
Geometry<Params> adaptive_geometry(const char* where, const O& options, const Shape& input,
                                   std::int64_t least_channels) {
  constexpr int N = O::kDims;
  check_spatial_input(where, input, N, least_channels);
  const std::span<const std::int64_t> in(input.end() - N, std::size_t(N));
  const auto out = extents_of(options, in);
  check_adaptive(where, out);
  check_adaptive_input(where, in);
  Geometry<Params> geometry;
  std::copy(in.begin(), in.end(), geometry.params.in + 3 - N);
  std::copy(out.begin(), out.end(), geometry.params.out + 3 - N);
  geometry.params.planes = planes(input, N);
  geometry.output = with_last(input, out);
  return geometry;
}

/// Completes `head` (everything but the dimensions) with the windows of a sliding pool over extents `input`: what
/// `describe` of a layer returns. `where` is the operation's name.
/// Errors: as `output_size`; `ErrorKind::shape` for more than a million windows along a dimension.
PoolDescription describe_sliding(PoolDescription head, const char* where, std::span<const Window1d> windows,
                                 WindowKind kind, std::span<const std::int64_t> input);

/// The same for an adaptive pool with extents `output`. Errors: as `check_adaptive`, `check_adaptive_input`.
PoolDescription describe_adaptive(PoolDescription head, const char* where, std::span<const std::int64_t> input,
                                  std::span<const std::int64_t> output);

}  // namespace taper::nn
