#pragma once

#include <limits>

#include "kernels/conv.hpp"
#include "kernels/conv_sweep.hpp"
#include "kernels/parallel.hpp"

// What the kernels of a convolution share: its sizes, and the sum that its forward is.
namespace taper::kernels {

inline std::int64_t inputs(const ConvParams& p) { return p.in[0] * p.in[1] * p.in[2]; }
inline std::int64_t outputs(const ConvParams& p) { return p.out[0] * p.out[1] * p.out[2]; }
inline std::int64_t taps_of(const ConvParams& p) { return p.kernel[0] * p.kernel[1] * p.kernel[2]; }

/// Whether dimension `d` is not there.
inline bool unit(const ConvParams& p, int d) {
  return p.in[d] == 1 && p.out[d] == 1 && p.kernel[d] == 1 && p.padding[d] == 0;
}

/// The same convolution with longer lines: a dimension along which the kernel only copies joins the one before it.
inline ConvParams merged(ConvParams p) {
  for (int turn = 0; turn < 2; ++turn) {
    const std::int64_t n = p.in[2], large = std::numeric_limits<std::int64_t>::max() / 4;
    const bool copies = p.kernel[2] == 1 && p.padding[2] == 0 && p.stride[2] == 1 && p.out[2] == n && n > 0;
    if (!copies || (p.stride[1] != 1 && n != 1) || std::max(p.padding[1], p.dilation[1]) > large / n) break;
    p.in[2] = p.in[1] * n, p.in[1] = p.in[0], p.in[0] = 1;
    p.out[2] = p.out[1] * n, p.out[1] = p.out[0], p.out[0] = 1;
    p.kernel[2] = p.kernel[1], p.kernel[1] = p.kernel[0], p.kernel[0] = 1;
    p.stride[2] = p.stride[1], p.stride[1] = p.stride[0], p.stride[0] = 1;
    p.padding[2] = p.padding[1] * n, p.padding[1] = p.padding[0], p.padding[0] = 0;
    p.dilation[2] = p.dilation[1] * n, p.dilation[1] = p.dilation[0], p.dilation[0] = 1;
  }
  return p;
}

struct Group {
  std::int64_t in, out;  ///< channels of one group
  explicit Group(const ConvParams& p) : in(p.in_channels / p.groups), out(p.out_channels / p.groups) {}
};

/// y from x: position i, tap t reads i * stride + t * dilation - padding.
inline Sweep forward_sweep(const ConvParams& p) {
  const Group group(p);
  Sweep s{};
  s.batch = p.batch, s.groups = p.groups, s.rows = group.out, s.channels = group.in;
  s.w_channel = taps_of(p), s.w_row = group.in * s.w_channel, s.w_group = group.out * s.w_row;
  for (int d = 0; d < 3; ++d) {
    s.positions[d] = s.result[d] = p.out[d];
    s.taps[d] = s.kernel[d] = p.kernel[d];
    s.axis[d] = {p.in[d], p.stride[d], -p.padding[d], p.kernel[d] > 1 ? p.dilation[d] : 0, 0, 1, 0, 1};
  }
  s.measure();
  s.lines_only = unit(p, 0) && unit(p, 1);
  return s;
}

/// Calls `body(group, i, rows, j, columns)` for each block of the products of all groups, in parallel.
template <class Body>
void for_blocks(const Grid& grid, std::int64_t groups, std::int64_t rows, std::int64_t columns, const Body& body) {
  parallel_for(groups * grid.units(), grid.work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t block = unit % grid.units();
      const std::int64_t i = block / grid.column_units * grid.row_step,
                         j = block % grid.column_units * grid.column_step;
      body(unit / grid.units(), i, std::min(grid.row_step, rows - i), j, std::min(grid.column_step, columns - j));
    }
  });
}

template <class T>
inline void fill(std::int64_t n, T value, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = value;
}

}  // namespace taper::kernels
