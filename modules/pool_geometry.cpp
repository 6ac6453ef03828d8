#include "pool_geometry.hpp"

namespace taper::nn {

Shape sliding_geometry(const char* where, std::span<const Window1d> windows, WindowKind kind, const Shape& input,
                       kernels::SlidingPoolParams& p) {
  const int dims = int(windows.size());
  check_spatial_input(where, input, dims);
  const std::span<const std::int64_t> in(input.end() - dims, windows.size());
  std::int64_t* const out = p.out + 3 - dims;
  checked_output_size(where, windows, kind, in, {out, windows.size()});
  for (int d = 0; d < dims; ++d) {
    const Window1d& window = windows[std::size_t(d)];
    const int at = 3 - dims + d;
    p.in[at] = in[std::size_t(d)];
    p.kernel[at] = window.kernel;
    p.stride[at] = window.stride;
    p.padding_left[at] = window.padding_left;
    p.padding_right[at] = window.padding_right;
    p.dilation[at] = window.dilation;
  }
  p.planes = planes(input, dims);
  return with_last(input, {out, windows.size()});
}

Shape adaptive_geometry(const char* where, std::span<const std::optional<std::int64_t>> extents, const Shape& input,
                        std::int64_t least_channels, kernels::AdaptivePoolParams& p) {
  const int dims = int(extents.size());
  check_spatial_input(where, input, dims, least_channels);
  const std::span<const std::int64_t> in(input.end() - dims, extents.size());
  const std::span<std::int64_t> out(p.out + 3 - dims, extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d) {
    p.in[3 - dims + int(d)] = in[d];
    out[d] = extents[d].value_or(in[d]);
  }
  check_adaptive(where, out);
  check_adaptive_input(where, in);
  p.planes = planes(input, dims);
  return with_last(input, out);
}

}  // namespace taper::nn
