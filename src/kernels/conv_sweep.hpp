#pragma once

#include "kernels/product.hpp"

// The sum behind the forward and the input gradient of a convolution:
//
//   y[n, r, i] = sum over channels c and taps t of w[r, c, t] x[n, c, i * stride + shift + t * shift_step]
//
// along each dimension, with zeros outside of x. Its columns are the positions i of all samples, one sample after the
// other, so that short signals fill whole vectors too. A line is what lies along the last dimension.
namespace taper::kernels {

/// Where a position of all samples lies.
struct Place {
  std::int64_t sample, at[3];
};

/// The place of position `j` when every sample has `extent` of them.
inline Place locate(std::int64_t j, const std::int64_t (&extent)[3]) {
  const std::int64_t line = j / extent[2], w = j % extent[2];
  if (extent[0] == 1 && extent[1] == 1) return {line, {0, 0, w}};
  const std::int64_t slice = line / extent[1];
  return {slice / extent[0], {slice % extent[0], line % extent[1], w}};
}

/// Goes on to the next position.
inline void step(Place& p, const std::int64_t (&extent)[3]) {
  if (++p.at[2] < extent[2]) return;
  p.at[2] = 0;
  if (++p.at[1] < extent[1]) return;
  p.at[1] = 0;
  if (++p.at[0] < extent[0]) return;
  p.at[0] = 0;
  ++p.sample;
}

/// The positions [first, last) of line (d, h) of one sample; the block counts them from `at` on.
struct Run {
  std::int64_t sample, d, h, first, last, at;
};

/// Calls `body(run)` for the runs that make up `n` positions from `start` on.
template <class Body>
inline void for_runs(Place start, std::int64_t n, const std::int64_t (&extent)[3], const Body& body) {
  for (std::int64_t at = 0; at < n;) {
    const std::int64_t first = start.at[2], count = std::min(extent[2] - first, n - at);
    body(Run{start.sample, start.at[0], start.at[1], first, first + count, at});
    at += count;
    start.at[2] = extent[2] - 1;
    step(start, extent);
  }
}

/// The same for samples of `length` positions in one line.
template <class Body>
inline void for_plane_runs(std::int64_t j, std::int64_t n, std::int64_t length, const Body& body) {
  const std::int64_t extent[3] = {1, 1, length};
  for_runs(locate(j, extent), n, extent, body);
}

/// What one tap contributes to one run: y[at, at + size) is zero but for y[at + skip + i] = x[from + i * stride],
/// i < count.
struct Piece {
  std::int64_t at, size, skip, count, from;
};

/// One dimension: the element of the signal that tap t finds at position i is `i * stride + shift + t * shift_step`.
/// In the kernel, the tap is `first_tap + t * tap_step`; in the result, the position is `to_first + i * to_step`.
struct Axis {
  std::int64_t length, stride, shift, shift_step;
  std::int64_t first_tap, tap_step;  ///< 0 and 1 for all taps
  std::int64_t to_first, to_step;    ///< 0 and 1 for all positions

  /// The element that tap `t` finds at position `i`; -1 if there is none.
  std::int64_t element(std::int64_t i, std::int64_t t) const {
    const std::int64_t q = i * stride + shift + t * shift_step;
    return q >= 0 && q < length ? q : -1;
  }

  /// What tap `t` finds along a run.
  Piece piece(const Run& run, std::int64_t t) const {
    const std::int64_t offset = shift + t * shift_step, size = run.last - run.first;
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

/// One such sum. A group has `rows` rows of results, each a sum over `channels` channels of the signal.
struct Sweep {
  std::int64_t batch, groups, rows, channels;
  std::int64_t positions[3], taps[3];  ///< of one sample, of one channel
  Axis axis[3];
  std::int64_t w_group, w_row, w_channel;  ///< strides of the weight
  std::int64_t kernel[3];                  ///< extents of the weight, of whose taps these may be a part
  std::int64_t result[3];                  ///< extents of the result, of whose positions these may be a part
  std::int64_t signal_line, result_line;   ///< distances of the lines of a plane
  std::int64_t signal_size, result_size;   ///< of a channel
  bool lines_only;                         ///< one line to a sample, on both sides

  std::int64_t position_count() const { return positions[0] * positions[1] * positions[2]; }
  std::int64_t tap_count() const { return taps[0] * taps[1] * taps[2]; }
  std::int64_t signal_sample() const { return groups * channels * signal_size; }
  std::int64_t result_sample() const { return groups * rows * result_size; }
  /// Whether the results of a channel lie one after another.
  bool contiguous() const { return position_count() == result_size; }

  /// Tells the extents of a channel from the axes and `result`.
  void measure() {
    signal_line = axis[2].length;
    signal_size = axis[0].length * axis[1].length * signal_line;
    result_line = result[2];
    result_size = result[0] * result[1] * result_line;
  }
  /// The same sum with the samples as the lines of one plane, for samples of one line.
  Sweep stacked() const {
    Sweep s = *this;
    s.batch = 1;
    s.positions[1] = s.result[1] = s.axis[1].length = batch;
    s.axis[1].stride = s.axis[1].to_step = 1;
    s.axis[1].to_first = 0;
    s.signal_line = signal_sample();
    s.result_line = result_sample();
    s.lines_only = false;
    return s;
  }

  Piece piece(const Run& run, const Place& tap) const {
    if (lines_only) {
      Piece piece = axis[2].piece(run, tap.at[2]);
      piece.from += run.sample * signal_sample();
      return piece;
    }
    const std::int64_t d = axis[0].element(run.d, tap.at[0]), h = axis[1].element(run.h, tap.at[1]);
    if (d < 0 || h < 0) return {run.at, run.last - run.first, 0, 0, 0};
    Piece piece = axis[2].piece(run, tap.at[2]);
    piece.from += run.sample * signal_sample() + (d * axis[1].length + h) * axis[2].length;
    return piece;
  }

  /// Where the weight of a channel and tap lies within its row.
  std::int64_t weight(const Place& term) const {
    std::int64_t tap = 0;
    for (int d = 0; d < 3; ++d) tap = tap * kernel[d] + axis[d].first_tap + term.at[d] * axis[d].tap_step;
    return term.sample * w_channel + tap;
  }
};

/// Packs the rows (channel, tap) = [k, k + n) of a block: row r holds what the tap finds at the positions
/// [j, j + columns) of all samples. `x` is the first channel of the group in sample 0.
template <class T>
void pack_taps(const Sweep& s, const T* x, std::int64_t k, std::int64_t n, std::int64_t j, std::int64_t columns,
               T* packed, std::int64_t row);

}  // namespace taper::kernels
