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

/// The positions l in [0, positions) for which `l * stride + shift` lies in [0, length).
struct Window {
  std::int64_t first, last;
};

/// n / d for n >= 0, rounded up.
inline std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d != 0); }

inline Window window(std::int64_t positions, std::int64_t length, std::int64_t stride, std::int64_t shift) {
  std::int64_t first = shift >= 0 ? 0 : -shift, last = length - shift;
  if (stride > 1) {
    first = ceil_div(first, stride);
    last = last > 0 ? ceil_div(last, stride) : 0;
  }
  first = std::min(first, positions);
  return {first, std::clamp(last, first, positions)};
}

/// A signal of `channels` rows of `length` a sample, read at `l * stride + shift` or at `(l + shift) / stride`.
template <class T>
struct Signal {
  const T* data;  ///< the first channel of the group in sample 0
  std::int64_t sample_stride, length;
};

/// y[j] = x[l * stride + shift], 0 outside of x, for the positions j = (sample, l) of a block.
template <class T>
inline void gather(const Signal<T>& x, std::int64_t channel, std::int64_t stride, std::int64_t shift,
                   std::int64_t positions, std::int64_t j, std::int64_t n, T* y) {
  const Window inside = window(positions, x.length, stride, shift);
  const T* row = x.data + channel * x.length;
  for_runs(j, n, positions, [&](const Run& run) {
    const std::int64_t first = std::clamp(inside.first, run.first, run.last);
    const std::int64_t last = std::clamp(inside.last, first, run.last);
    const T* from = row + run.sample * x.sample_stride;
    T* to = y + run.at;
    zero_run(first - run.first, to);
    if (stride == 1) {
      if (first < last) copy_run(from + (first + shift), last - first, to + (first - run.first));
    } else {
      for (std::int64_t l = first; l < last; ++l) to[l - run.first] = from[l * stride + shift];
    }
    zero_run(run.last - last, to + (last - run.first));
  });
}

/// y[j] = x[l'] where l' * stride = l + shift, 0 where there is no such l' in x: what `gather` reads, backwards.
template <class T>
inline void gather_back(const Signal<T>& x, std::int64_t channel, std::int64_t stride, std::int64_t shift,
                        std::int64_t positions, std::int64_t j, std::int64_t n, T* y) {
  if (stride == 1) return gather(x, channel, 1, shift, positions, j, n, y);
  const T* row = x.data + channel * x.length;
  for_runs(j, n, positions, [&](const Run& run) {
    const T* from = row + run.sample * x.sample_stride;
    T* to = y + run.at;
    zero_run(run.last - run.first, to);
    const std::int64_t low = run.first + shift, high = run.last + shift;
    const std::int64_t first = low > 0 ? ceil_div(low, stride) : 0;
    const std::int64_t last = high > 0 ? std::min(x.length, ceil_div(high, stride)) : 0;
    for (std::int64_t l = first; l < last; ++l) to[l * stride - low] = from[l];
  });
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

/// y[sample, channel, l] = (add ? y : 0) + b[channel] + result[channel, (sample, l)] for a block of results.
template <class T>
void scatter(const T* result, std::int64_t channels, std::int64_t j, std::int64_t n, std::int64_t positions, const T* b,
             bool add, T* y, std::int64_t sample_stride) {
  for_runs(j, n, positions, [&](const Run& run) {
    const std::int64_t count = run.last - run.first;
    for (std::int64_t c = 0; c < channels; ++c) {
      const T* from = result + c * kBlockColumns + run.at;
      T* to = y + run.sample * sample_stride + c * positions + run.first;
      const T bias = b != nullptr ? b[c] : T(0);
      if (add)
        for (std::int64_t l = 0; l < count; ++l) to[l] += from[l];
      else
        for (std::int64_t l = 0; l < count; ++l) to[l] = from[l] + bias;
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
  // y[o, (n, l)] = b[o] + sum over (c, t) of w[o, (c, t)] x[n, c, l s + t d - pad]
  for_blocks(p, group.out, p.batch * p.out_length, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const Signal<T> signal{x + g * group.in * p.length, p.in_channels * p.length, p.length};
    const std::int64_t o = g * group.out + i, row = packed_row<T>(columns);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      std::int64_t c = k / p.kernel, t = k % p.kernel;
      for (std::int64_t q = 0; q < n; ++q) {
        gather(signal, c, p.stride, t * p.dilation - p.pad_left, p.out_length, j, columns, s.right + q * row);
        if (++t == p.kernel) t = 0, ++c;
      }
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{w + o * depth + k, depth, 1}, {s.right, row}};
    };
    if (depth > 0)
      sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    else
      fill(rows * kBlockColumns, T(0), s.result);
    scatter<T>(s.result, rows, j, columns, p.out_length, b != nullptr ? b + o : nullptr, false, y + o * p.out_length,
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
  // dx[c, (n, q)] = sum over (o, t) of w[o, c, t] dy[n, o, l], l s = q + pad - t d
  for_blocks(p, group.in, p.batch * p.length, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const Signal<T> signal{dy + g * group.out * p.out_length, p.out_channels * p.out_length, p.out_length};
    const std::int64_t row = packed_row<T>(columns), left_row = packed_row<T>(rows);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      std::int64_t o = k / p.kernel, t = k % p.kernel;
      for (std::int64_t q = 0; q < n; ++q) {
        gather_back(signal, o, p.stride, p.pad_left - t * p.dilation, p.length, j, columns, s.right + q * row);
        const T* from = w + (g * group.out + o) * w_row + i * p.kernel + t;
        for (std::int64_t c = 0; c < rows; ++c) s.left[q * left_row + c] = from[c * p.kernel];
        if (++t == p.kernel) t = 0, ++o;
      }
      fill_last_vector(columns, n, s.right, row);
      return Operands<T>{{s.left, 1, left_row}, {s.right, row}};
    };
    sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    scatter<T>(s.result, rows, j, columns, p.length, nullptr, add, dx + (g * group.in + i) * p.length,
               p.in_channels * p.length);
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
  // dw[o, (c, t)] = sum over (n, l) of x[n, c, l s + t d - pad] dy[n, o, l], transposed: o runs along the vectors
  for_blocks(p, taps, group.out, depth, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const Signal<T> signal{x + g * group.in * p.length, p.in_channels * p.length, p.length};
    const std::int64_t o = g * group.out + j, row = packed_row<T>(columns);
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      const std::int64_t left_row = packed_row<T>(n);
      for (std::int64_t r = 0; r < rows; ++r)
        gather(signal, (i + r) / p.kernel, p.stride, (i + r) % p.kernel * p.dilation - p.pad_left, p.out_length, k, n,
               s.left + r * left_row);
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
      double sum[4] = {};
      // db[o] = sum over n and l of dy[n, o, l], in four interleaved sums
      for (std::int64_t n = 0; n < p.batch; ++n) {
        const T* from = dy + (n * p.out_channels + o) * p.out_length;
        std::int64_t l = 0;
        for (; l + 4 <= p.out_length; l += 4)
          for (int i = 0; i < 4; ++i) sum[i] += static_cast<double>(from[l + i]);
        for (; l < p.out_length; ++l) sum[0] += static_cast<double>(from[l]);
      }
      const double total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
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
