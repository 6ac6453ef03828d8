#include "kernels/conv1d.hpp"

#include "kernels/parallel.hpp"
#include "kernels/product.hpp"

// All three products run on the blocks of `product.hpp`. Their columns (forward, input gradient) or terms (weight
// gradient) are the positions of all samples, one sample after the other, so short signals fill whole vectors too.
// The shifted copies of the signal that a block needs are made block by block and stay in the cache.

namespace taper::kernels {

namespace {

/// A step through the positions [first, last) of one sample; the block counts them from `at` on.
struct Run {
  std::int64_t sample, first, last, at;
};

/// Calls `body(run)` for the runs that make up the positions [j, j + n) of all samples, `length` to a sample.
template <class Body>
inline void for_runs(std::int64_t j, std::int64_t n, std::int64_t length, const Body& body) {
  std::int64_t sample = j / length, first = j % length;
  for (std::int64_t at = 0; at < n; ++sample, first = 0) {
    const std::int64_t count = std::min(length - first, n - at);
    body(Run{sample, first, first + count, at});
    at += count;
  }
}

/// n / d for n >= 0, rounded up.
inline std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d != 0); }

/// What one tap contributes to one run: y[at, at + size) is zero but for y[at + skip + i * to_step] = x[from + i *
/// from_step], i < count.
struct Piece {
  std::int64_t at, size, skip, count, from;
};

/// How positions of a block find their element of a signal of `length` elements a row: by `l * stride + shift`, or
/// `backward`, by the l' for which l' * stride = l + shift. Tap t has the shift `shift + t * shift_step`.
struct Access {
  std::int64_t positions, length, stride, shift, shift_step;
  bool backward;

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

/// Packs the rows (channel, tap) = [k, k + n) of a block: row r holds what the tap finds at the positions
/// [j, j + columns) of all samples. `x` is the first channel of the group in sample 0.
template <class T>
void pack_taps(const Access& access, const T* x, std::int64_t sample_stride, std::int64_t kernel, std::int64_t k,
               std::int64_t n, std::int64_t j, std::int64_t columns, T* packed, std::int64_t row) {
  const bool copies = access.stride == 1;
  const std::int64_t from_step = access.backward ? 1 : access.stride, to_step = access.backward ? access.stride : 1;
  Piece pieces[std::max(kBlockColumns, kBlockDepth<T>)];
  // The pieces of a tap are the same for all channels.
  for (std::int64_t r = 0; r < std::min(kernel, n); ++r) {
    const std::int64_t tap = (k + r) % kernel;
    std::int64_t count = 0;
    for_runs(j, columns, access.positions, [&](const Run& run) {
      pieces[count] = access.piece(run, tap);
      pieces[count++].from += run.sample * sample_stride;
    });
    for (std::int64_t q = r; q < n; q += kernel) {
      const T* from = x + (k + q) / kernel * access.length;
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
  }
}

struct Group {
  std::int64_t in, out;  ///< channels of one group
  explicit Group(const Conv1dParams& p) : in(p.in_channels / p.groups), out(p.out_channels / p.groups) {}
};

/// Calls `body(group, i, rows, j, columns)` for each block of the products of all groups, in parallel.
template <class Body>
void for_blocks(const Conv1dParams& p, std::int64_t rows, std::int64_t columns, std::int64_t depth, const Body& body) {
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
  for_runs(j, n, positions, [&](const Run& run) {
    for (std::int64_t c = 0; c < channels; ++c)
      add_bias_run(result + c * kBlockColumns + run.at, run.last - run.first, b != nullptr ? b[c] : T(0),
                   y + run.sample * sample_stride + c * positions + run.first);
  });
}

/// y[sample, channel, l] += result[channel, (sample, l)] for a block of results.
template <class T>
void scatter_add(const T* result, std::int64_t channels, std::int64_t j, std::int64_t n, std::int64_t positions, T* y,
                 std::int64_t sample_stride) {
  for_runs(j, n, positions, [&](const Run& run) {
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
void conv1d_forward(const Conv1dParams& p, const T* x, const T* w, const T* b, T* y) {
  if (p.batch <= 0 || p.out_channels <= 0 || p.out_length <= 0) return;
  const Group group(p);
  const std::int64_t depth = group.in * p.kernel;
  const Access access{p.out_length, p.length, p.stride, -p.pad_left, p.dilation, false};
  // y[o, (n, l)] = b[o] + sum over (c, t) of w[o, (c, t)] x[n, c, l s + t d - pad]
  for_blocks(p, group.out, p.batch * p.out_length, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const std::int64_t o = g * group.out + i, row = packed_row<T>(columns);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      pack_taps(access, x + g * group.in * p.length, p.in_channels * p.length, p.kernel, k, n, j, columns, s.right,
                row);
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{w + o * depth + k, depth, 1}, {s.right, row}};
    };
    if (depth > 0)
      sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    else
      fill(rows * kBlockColumns, T(0), s.result);
    scatter<T>(s.result, rows, j, columns, p.out_length, b != nullptr ? b + o : nullptr, y + o * p.out_length,
               p.out_channels * p.out_length);
  });
}

template <class T>
void conv1d_backward_input(const Conv1dParams& p, const T* dy, const T* w, T* dx, bool add) {
  if (p.batch <= 0 || p.in_channels <= 0 || p.length <= 0) return;
  const Group group(p);
  const std::int64_t depth = group.out * p.kernel, w_row = group.in * p.kernel;
  if (depth <= 0 || p.out_length <= 0) {
    if (!add) fill(p.batch * p.in_channels * p.length, T(0), dx);
    return;
  }
  const Access access{p.length, p.out_length, p.stride, p.pad_left, -p.dilation, true};
  // dx[c, (n, q)] = sum over (o, t) of w[o, c, t] dy[n, o, l], l s = q + pad - t d
  for_blocks(p, group.in, p.batch * p.length, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const std::int64_t row = packed_row<T>(columns), left_row = packed_row<T>(rows);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      pack_taps(access, dy + g * group.out * p.out_length, p.out_channels * p.out_length, p.kernel, k, n, j, columns,
                s.right, row);
      std::int64_t o = k / p.kernel, t = k % p.kernel;
      for (std::int64_t q = 0; q < n; ++q) {
        const T* from = w + (g * group.out + o) * w_row + i * p.kernel + t;
        for (std::int64_t c = 0; c < rows; ++c) s.left[q * left_row + c] = from[c * p.kernel];
        if (++t == p.kernel) t = 0, ++o;
      }
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{s.left, 1, left_row}, {s.right, row}};
    };
    sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    T* to = dx + (g * group.in + i) * p.length;
    if (add)
      scatter_add(s.result, rows, j, columns, p.length, to, p.in_channels * p.length);
    else
      scatter<T>(s.result, rows, j, columns, p.length, nullptr, to, p.in_channels * p.length);
  });
}

template <class T>
void conv1d_backward_weight(const Conv1dParams& p, const T* dy, const T* x, T* dw, bool add) {
  const Group group(p);
  const std::int64_t taps = group.in * p.kernel, depth = p.batch * p.out_length;
  if (p.out_channels <= 0 || taps <= 0) return;
  if (depth <= 0) {
    if (!add) fill(p.out_channels * taps, T(0), dw);
    return;
  }
  const Access access{p.out_length, p.length, p.stride, -p.pad_left, p.dilation, false};
  // dw[o, (c, t)] = sum over (n, l) of x[n, c, l s + t d - pad] dy[n, o, l], transposed: o runs along the vectors
  for_blocks(p, taps, group.out, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const std::int64_t o = g * group.out + j, row = packed_row<T>(columns);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      const std::int64_t left_row = packed_row<T>(n);
      pack_taps(access, x + g * group.in * p.length, p.in_channels * p.length, p.kernel, i, rows, k, n, s.left,
                left_row);
      for_runs(k, n, p.out_length, [&](const Run& run) {
        const T* from = dy + (run.sample * p.out_channels + o) * p.out_length + run.first;
        pack_transposed(from, p.out_length, columns, run.last - run.first, s.right + run.at * row, row);
      });
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{s.left, left_row, 1}, {s.right, row}};
    };
    sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    for (std::int64_t c = 0; c < columns; ++c) {
      T* to = dw + (o + c) * taps + i;
      for (std::int64_t r = 0; r < rows; ++r) to[r] = (add ? to[r] : T(0)) + s.result[r * kBlockColumns + c];
    }
  });
}

template <class T>
void conv1d_backward_bias(const Conv1dParams& p, const T* dy, T* db, bool add) {
  parallel_for(p.out_channels, parallel_work(p.batch, p.out_length), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) {
      double sum[8] = {};
      // db[o] = sum over n and l of dy[n, o, l], in eight sums that do not wait for each other
      for (std::int64_t n = 0; n < p.batch; ++n) {
        const T* from = dy + (n * p.out_channels + o) * p.out_length;
        std::int64_t l = 0;
        for (; l + 8 <= p.out_length; l += 8)
          for (int i = 0; i < 8; ++i) sum[i] += static_cast<double>(from[l + i]);
        if (l + 4 <= p.out_length) {
          for (int i = 0; i < 4; ++i) sum[i] += static_cast<double>(from[l + i]);
          l += 4;
        }
        // Constant indices keep the sums in registers.
        if (l < p.out_length) sum[4] += static_cast<double>(from[l]);
        if (l + 1 < p.out_length) sum[5] += static_cast<double>(from[l + 1]);
        if (l + 2 < p.out_length) sum[6] += static_cast<double>(from[l + 2]);
      }
      const double total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
      db[o] = static_cast<T>(add ? static_cast<double>(db[o]) + total : total);
    }
  });
}

template void conv1d_forward(const Conv1dParams&, const float*, const float*, const float*, float*);
template void conv1d_forward(const Conv1dParams&, const double*, const double*, const double*, double*);
template void conv1d_backward_input(const Conv1dParams&, const float*, const float*, float*, bool);
template void conv1d_backward_input(const Conv1dParams&, const double*, const double*, double*, bool);
template void conv1d_backward_weight(const Conv1dParams&, const float*, const float*, float*, bool);
template void conv1d_backward_weight(const Conv1dParams&, const double*, const double*, double*, bool);
template void conv1d_backward_bias(const Conv1dParams&, const float*, float*, bool);
template void conv1d_backward_bias(const Conv1dParams&, const double*, double*, bool);

}  // namespace taper::kernels
