#include "kernels/conv.hpp"

#include <limits>

#include "kernels/parallel.hpp"
#include "kernels/product.hpp"

// All three products run on the blocks of `product.hpp`. Their columns (forward, input gradient) or terms (weight
// gradient) are the positions of all samples, one sample after the other, so short signals fill whole vectors too.
// The shifted copies of the signal that a block needs are made block by block and stay in the cache: line by line,
// where a line is what lies along the last dimension.

namespace taper::kernels {

namespace {

std::int64_t inputs(const ConvParams& p) { return p.in[0] * p.in[1] * p.in[2]; }
std::int64_t outputs(const ConvParams& p) { return p.out[0] * p.out[1] * p.out[2]; }
/// Whether dimension `d` is not there.
bool unit(const ConvParams& p, int d) { return p.in[d] == 1 && p.out[d] == 1 && p.kernel[d] == 1 && p.padding[d] == 0; }

/// The same convolution with longer lines: a dimension along which the kernel only copies joins the one before it.
ConvParams merged(ConvParams p) {
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

std::int64_t taps_of(const ConvParams& p) { return p.kernel[0] * p.kernel[1] * p.kernel[2]; }

/// Where a position of all samples lies.
struct Place {
  std::int64_t sample, d, h, w;
};

/// The place of position `j` when every sample has `extent` of them.
inline Place locate(std::int64_t j, const std::int64_t (&extent)[3]) {
  const std::int64_t line = j / extent[2];
  if (extent[0] == 1 && extent[1] == 1) return {line, 0, 0, j % extent[2]};
  const std::int64_t slice = line / extent[1];
  return {slice / extent[0], slice % extent[0], line % extent[1], j % extent[2]};
}

/// Goes on to the next position when every sample has `extent` of them.
inline void step(Place& at, const std::int64_t (&extent)[3]) {
  if (++at.w < extent[2]) return;
  at.w = 0;
  if (++at.h < extent[1]) return;
  at.h = 0;
  if (++at.d < extent[0]) return;
  at.d = 0;
  ++at.sample;
}

/// The positions [first, last) of one line of one sample; the block counts them from `at` on.
struct Run {
  std::int64_t sample, d, h, first, last, at;
};

/// Calls `body(run)` for the runs that make up `n` positions from `start` on.
template <class Body>
inline void for_runs(Place start, std::int64_t n, const std::int64_t (&extent)[3], const Body& body) {
  for (std::int64_t at = 0; at < n;) {
    const std::int64_t count = std::min(extent[2] - start.w, n - at);
    body(Run{start.sample, start.d, start.h, start.w, start.w + count, at});
    at += count;
    start.w = extent[2] - 1;
    step(start, extent);
  }
}

/// The same for samples of `length` positions in one line.
template <class Body>
inline void for_plane_runs(std::int64_t j, std::int64_t n, std::int64_t length, const Body& body) {
  const std::int64_t extent[3] = {1, 1, length};
  for_runs(locate(j, extent), n, extent, body);
}

/// n / d for n >= 0, rounded up.
inline std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d != 0); }

/// What one tap contributes to one run: y[at, at + size) is zero but for y[at + skip + i * to_step] = x[from + i *
/// from_step], i < count.
struct Piece {
  std::int64_t at, size, skip, count, from;
};

/// How positions find their element of a signal of `length` elements along one dimension: by `i * stride + shift`, or
/// `backward`, by the i' for which i' * stride = i + shift. Tap t has the shift `shift + t * shift_step`.
struct Axis {
  std::int64_t length, stride, shift, shift_step;
  bool backward;

  /// The element that tap `tap` finds at position `i`; -1 if there is none.
  std::int64_t element(std::int64_t i, std::int64_t tap) const {
    std::int64_t q = (backward ? i : i * stride) + shift + tap * shift_step;
    if (q < 0) return -1;
    if (backward && stride > 1) {
      if (q % stride != 0) return -1;
      q /= stride;
    }
    return q < length ? q : -1;
  }

  /// What tap `tap` finds along a run.
  Piece piece(const Run& run, std::int64_t tap) const {
    const std::int64_t offset = shift + tap * shift_step, size = run.last - run.first;
    if (backward && stride > 1) {
      const std::int64_t low = run.first + offset, high = run.last + offset;
      const std::int64_t first = low > 0 ? ceil_div(low, stride) : 0;
      const std::int64_t last = high > 0 ? std::min(length, ceil_div(high, stride)) : 0;
      if (first >= last) return {run.at, size, 0, 0, 0};
      return {run.at, size, first * stride - low, last - first, first};
    }
    std::int64_t first = offset >= 0 ? 0 : -offset, last = length - offset;
    if (stride > 1) {
      first = ceil_div(first, stride);
      last = last > 0 ? ceil_div(last, stride) : 0;
    }
    first = std::max(first, run.first);
    last = std::min(last, run.last);
    if (first >= last) return {run.at, size, 0, 0, 0};
    return {run.at, size, first - run.first, last - first, first * stride + offset};
  }
};

/// How the positions of a product find the elements of its signal.
struct Access {
  std::int64_t positions[3];  ///< of one sample
  std::int64_t kernel[3];
  Axis axis[3];
  std::int64_t channel_stride, sample_stride;  ///< of the signal
  bool lines_only;                             ///< one line to a sample

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }

  Piece piece(const Run& run, const Place& tap) const {
    if (lines_only) {
      Piece piece = axis[2].piece(run, tap.w);
      piece.from += run.sample * sample_stride;
      return piece;
    }
    const std::int64_t d = axis[0].element(run.d, tap.d), h = axis[1].element(run.h, tap.h);
    if (d < 0 || h < 0) return {run.at, run.last - run.first, 0, 0, 0};
    Piece piece = axis[2].piece(run, tap.w);
    piece.from += run.sample * sample_stride + (d * axis[1].length + h) * axis[2].length;
    return piece;
  }
};

/// The access to x from the positions of y.
Access to_input(const ConvParams& p) {
  Access a{};
  for (int d = 0; d < 3; ++d) {
    a.positions[d] = p.out[d];
    a.kernel[d] = p.kernel[d];
    a.axis[d] = {p.in[d], p.stride[d], -p.padding[d], p.dilation[d], false};
  }
  a.channel_stride = inputs(p);
  a.sample_stride = p.in_channels * a.channel_stride;
  a.lines_only = unit(p, 0) && unit(p, 1);
  return a;
}

/// The access to dy from the positions of x.
Access to_output(const ConvParams& p) {
  Access a{};
  for (int d = 0; d < 3; ++d) {
    a.positions[d] = p.in[d];
    a.kernel[d] = p.kernel[d];
    a.axis[d] = {p.out[d], p.stride[d], p.padding[d], -p.dilation[d], true};
  }
  a.channel_stride = outputs(p);
  a.sample_stride = p.out_channels * a.channel_stride;
  a.lines_only = unit(p, 0) && unit(p, 1);
  return a;
}

/// Packs the rows (channel, tap) = [k, k + n) of a block: row r holds what the tap finds at the positions
/// [j, j + columns) of all samples. `x` is the first channel of the group in sample 0.
template <class T>
void pack_taps(const Access& access, const T* x, std::int64_t k, std::int64_t n, std::int64_t j, std::int64_t columns,
               T* packed, std::int64_t row) {
  const Axis& last = access.axis[2];
  const bool copies = last.stride == 1;
  const std::int64_t from_step = last.backward ? 1 : last.stride, to_step = last.backward ? last.stride : 1;
  const std::int64_t taps = access.taps();
  const Place start = locate(j, access.positions);
  Place tap = locate(k % taps, access.kernel);
  Piece pieces[std::max(kBlockColumns, kBlockDepth<T>)];
  // The pieces of a tap are the same for all channels.
  for (std::int64_t r = 0; r < std::min(taps, n); ++r) {
    std::int64_t count = 0;
    for_runs(start, columns, access.positions, [&](const Run& run) { pieces[count++] = access.piece(run, tap); });
    for (std::int64_t q = r; q < n; q += taps) {
      const T* from = x + (k + q) / taps * access.channel_stride;
      T* to = packed + q * row;
      for (std::int64_t i = 0; i < count; ++i) {
        const Piece& piece = pieces[i];
        T* y = to + piece.at;
        if (copies) {
          zero_run(piece.skip, y);
          copy_run(from + piece.from, piece.count, y + piece.skip);
          zero_run(piece.size - piece.skip - piece.count, y + piece.skip + piece.count);
        } else {
          zero_run(piece.size, y);
          for (std::int64_t l = 0; l < piece.count; ++l) y[piece.skip + l * to_step] = from[piece.from + l * from_step];
        }
      }
    }
    step(tap, access.kernel);
  }
}

struct Group {
  std::int64_t in, out;  ///< channels of one group
  explicit Group(const ConvParams& p) : in(p.in_channels / p.groups), out(p.out_channels / p.groups) {}
};

/// Calls `body(group, i, rows, j, columns)` for each block of the products of all groups, in parallel.
template <class Body>
void for_blocks(const ConvParams& p, std::int64_t rows, std::int64_t columns, std::int64_t depth, const Body& body) {
  const Grid grid = cut(rows, columns, depth, p.groups);
  parallel_for(p.groups * grid.units(), grid.work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t block = unit % grid.units();
      const std::int64_t i = block / grid.column_units * grid.row_step,
                         j = block % grid.column_units * grid.column_step;
      body(unit / grid.units(), i, std::min(grid.row_step, rows - i), j, std::min(grid.column_step, columns - j));
    }
  });
}

/// y[l] = x[l] + b for l < n; made for short runs.
template <class T>
inline void add_bias_run(const T* x, std::int64_t n, T b, T* y) {
  constexpr std::int64_t step = 16 / static_cast<std::int64_t>(sizeof(T));
  const auto part = [&](std::int64_t l) {
    for (std::int64_t i = 0; i < step; ++i) y[l + i] = x[l + i] + b;
  };
  if (n < step) {
    for (std::int64_t l = 0; l < n; ++l) y[l] = x[l] + b;
    return;
  }
  for (std::int64_t l = 0; l < n - step; l += step) part(l);
  part(n - step);
}

/// y[sample, channel, l] = b[channel] + result[channel, (sample, l)] for a block of results; `b` may be null.
template <class T>
void scatter(const T* result, std::int64_t channels, std::int64_t j, std::int64_t n, std::int64_t positions, const T* b,
             T* y, std::int64_t sample_stride) {
  for_plane_runs(j, n, positions, [&](const Run& run) {
    for (std::int64_t c = 0; c < channels; ++c)
      add_bias_run(result + c * kBlockColumns + run.at, run.last - run.first, b != nullptr ? b[c] : T(0),
                   y + run.sample * sample_stride + c * positions + run.first);
  });
}

/// y[sample, channel, l] += result[channel, (sample, l)] for a block of results.
template <class T>
void scatter_add(const T* result, std::int64_t channels, std::int64_t j, std::int64_t n, std::int64_t positions, T* y,
                 std::int64_t sample_stride) {
  for_plane_runs(j, n, positions, [&](const Run& run) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const T* from = result + c * kBlockColumns + run.at;
      T* to = y + run.sample * sample_stride + c * positions + run.first;
      for (std::int64_t l = 0; l < run.last - run.first; ++l) to[l] += from[l];
    }
  });
}

template <class T>
void fill(std::int64_t n, T value, T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = value;
}

}  // namespace

template <class T>
void conv_forward(const ConvParams& params, const T* x, const T* w, const T* b, T* y, bool add) {
  const ConvParams p = merged(params);
  const std::int64_t in = inputs(p), out = outputs(p);
  if (p.batch <= 0 || p.out_channels <= 0 || out <= 0) return;
  const Group group(p);
  const std::int64_t depth = group.in * taps_of(p);
  const Access access = to_input(p);
  // y[o, (n, i)] = b[o] + sum over (c, t) of w[o, (c, t)] x[n, c, i s + t d - pad]
  for_blocks(p, group.out, p.batch * out, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const std::int64_t o = g * group.out + i, row = packed_row<T>(columns);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      pack_taps(access, x + g * group.in * in, k, n, j, columns, s.right, row);
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{w + o * depth + k, depth, 1}, {s.right, row}};
    };
    if (depth > 0)
      sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    else
      fill(rows * kBlockColumns, T(0), s.result);
    T* to = y + o * out;
    if (add)
      scatter_add(s.result, rows, j, columns, out, to, p.out_channels * out);
    else
      scatter<T>(s.result, rows, j, columns, out, b != nullptr ? b + o : nullptr, to, p.out_channels * out);
  });
}

template <class T>
void conv_backward_input(const ConvParams& params, const T* dy, const T* w, T* dx, bool add) {
  const ConvParams p = merged(params);
  const std::int64_t in = inputs(p), out = outputs(p), taps = taps_of(p);
  if (p.batch <= 0 || p.in_channels <= 0 || in <= 0) return;
  const Group group(p);
  const std::int64_t depth = group.out * taps, w_row = group.in * taps;
  if (depth <= 0 || out <= 0) {
    if (!add) fill(p.batch * p.in_channels * in, T(0), dx);
    return;
  }
  const Access access = to_output(p);
  // dx[c, (n, q)] = sum over (o, t) of w[o, c, t] dy[n, o, i], i s = q + pad - t d
  for_blocks(p, group.in, p.batch * in, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const std::int64_t row = packed_row<T>(columns), left_row = packed_row<T>(rows);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      pack_taps(access, dy + g * group.out * out, k, n, j, columns, s.right, row);
      std::int64_t o = k / taps, t = k % taps;
      for (std::int64_t q = 0; q < n; ++q) {
        const T* from = w + (g * group.out + o) * w_row + i * taps + t;
        for (std::int64_t c = 0; c < rows; ++c) s.left[q * left_row + c] = from[c * taps];
        if (++t == taps) t = 0, ++o;
      }
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{s.left, 1, left_row}, {s.right, row}};
    };
    sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    T* to = dx + (g * group.in + i) * in;
    if (add)
      scatter_add(s.result, rows, j, columns, in, to, p.in_channels * in);
    else
      scatter<T>(s.result, rows, j, columns, in, nullptr, to, p.in_channels * in);
  });
}

template <class T>
void conv_backward_weight(const ConvParams& params, const T* dy, const T* x, T* dw, bool add) {
  const ConvParams p = merged(params);
  const std::int64_t in = inputs(p), out = outputs(p);
  const Group group(p);
  const std::int64_t terms = group.in * taps_of(p), depth = p.batch * out;
  if (p.out_channels <= 0 || terms <= 0) return;
  if (depth <= 0) {
    if (!add) fill(p.out_channels * terms, T(0), dw);
    return;
  }
  const Access access = to_input(p);
  // dw[o, (c, t)] = sum over (n, i) of x[n, c, i s + t d - pad] dy[n, o, i], transposed: o runs along the vectors
  for_blocks(p, terms, group.out, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const std::int64_t o = g * group.out + j, row = packed_row<T>(columns);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      const std::int64_t left_row = packed_row<T>(n);
      pack_taps(access, x + g * group.in * in, i, rows, k, n, s.left, left_row);
      for_plane_runs(k, n, out, [&](const Run& run) {
        const T* from = dy + (run.sample * p.out_channels + o) * out + run.first;
        pack_transposed(from, out, columns, run.last - run.first, s.right + run.at * row, row);
      });
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{s.left, left_row, 1}, {s.right, row}};
    };
    sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    for (std::int64_t c = 0; c < columns; ++c) {
      T* to = dw + (o + c) * terms + i;
      for (std::int64_t r = 0; r < rows; ++r) to[r] = (add ? to[r] : T(0)) + s.result[r * kBlockColumns + c];
    }
  });
}

template <class T>
void conv_backward_bias(const ConvParams& p, const T* dy, T* db, bool add) {
  const std::int64_t out = outputs(p);
  parallel_for(p.out_channels, parallel_work(p.batch, out), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) {
      double sum[8] = {};
      // db[o] = sum over n and i of dy[n, o, i], in eight sums that do not wait for each other
      for (std::int64_t n = 0; n < p.batch; ++n) {
        const T* from = dy + (n * p.out_channels + o) * out;
        std::int64_t l = 0;
        for (; l + 8 <= out; l += 8)
          for (int i = 0; i < 8; ++i) sum[i] += static_cast<double>(from[l + i]);
        if (l + 4 <= out) {
          for (int i = 0; i < 4; ++i) sum[i] += static_cast<double>(from[l + i]);
          l += 4;
        }
        // Constant indices keep the sums in registers.
        if (l < out) sum[4] += static_cast<double>(from[l]);
        if (l + 1 < out) sum[5] += static_cast<double>(from[l + 1]);
        if (l + 2 < out) sum[6] += static_cast<double>(from[l + 2]);
      }
      const double total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
      db[o] = static_cast<T>(add ? static_cast<double>(db[o]) + total : total);
    }
  });
}

template void conv_forward(const ConvParams&, const float*, const float*, const float*, float*, bool);
template void conv_forward(const ConvParams&, const double*, const double*, const double*, double*, bool);
template void conv_backward_input(const ConvParams&, const float*, const float*, float*, bool);
template void conv_backward_input(const ConvParams&, const double*, const double*, double*, bool);
template void conv_backward_weight(const ConvParams&, const float*, const float*, float*, bool);
template void conv_backward_weight(const ConvParams&, const double*, const double*, double*, bool);
template void conv_backward_bias(const ConvParams&, const float*, float*, bool);
template void conv_backward_bias(const ConvParams&, const double*, double*, bool);

}  // namespace taper::kernels
