#include "kernels/avg_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/parallel.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/sum_row.hpp"

namespace taper::kernels {

namespace {

/// Elements of a row that are worked on at once; what the buffers on the stack hold.
constexpr std::int64_t kTile = 1024;
/// Input rows of one unit of backward work.
constexpr std::int64_t kRowBlock = 64;

/// A pool in the form the loops take: axes [D, H, W], what is left of the options.
template <class Axis>
struct Pool {
  std::int64_t planes;
  Axis d, h, w;
  bool count_include_pad = false;
  double divisor = 0;  ///< the one divisor of all windows; 0 when it differs between windows
};

/// y_i = s_i / divisor, rounded once.
template <class T>
void divide_row(const double* s, std::int64_t n, double divisor, T* y) {
  // The reciprocal of a power of two is exact, and so is the product with it.
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  if ((std::bit_cast<std::uint64_t>(divisor) & kFraction) == 0) {
    const double inverse = 1 / divisor;
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(s[i] * inverse);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(s[i] / divisor);
  }
}

/// Averages the windows [o0, o1) of one row: `x` is the row (or column sums) from position `origin` on, `rows`
/// what the other axes count for the divisor.
template <class S, class T>
void average_row(const Pool<FixedAxis>& p, double rows, const S* x, std::int64_t origin, std::int64_t o0,
                 std::int64_t o1, T* y) {
  const FixedAxis& axis = p.w;
  const Window1d& w = axis.window;
  const auto divisor = [&](const WindowBounds& b) {
    return p.divisor != 0 ? p.divisor : rows * static_cast<double>(b.counted(p.count_include_pad));
  };
  const auto border = [&](std::int64_t o) {
    const WindowBounds b = axis.at(o);
    y[o] = static_cast<T>(sum_row(x + (b.first - origin), b.last - b.first) / divisor(b));
  };
  // Windows that lie on the input altogether.
  const std::int64_t inside =
      w.kernel > axis.in ? o0 : std::min(o1, (axis.in - w.kernel + w.padding_left) / w.stride + 1);
  std::int64_t o = o0;
  for (; o < o1 && o * w.stride < w.padding_left; ++o) border(o);
  double sums[kTile];
  while (o < inside) {
    const std::int64_t n = std::min(inside - o, kTile);
    sum_runs(x + (o * w.stride - w.padding_left - origin), w.kernel, w.stride, n, sums, 1);
    divide_row(sums, n, divisor(axis.at(o)), y + o);
    o += n;
  }
  for (; o < o1; ++o) border(o);
}

template <class S, class T>
void average_row(const Pool<AdaptiveAxis>& p, double rows, const S* x, std::int64_t origin, std::int64_t o0,
                 std::int64_t o1, T* y) {
  // y_o = (x_first + ... + x_{last - 1}) / (rows * (last - first))
  auto cursor = p.w.cursor(o0);
  for (std::int64_t o = o0; o < o1; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    const std::int64_t n = b.last - b.first;
    y[o] = static_cast<T>(sum_row(x + (b.first - origin), n) / (rows * static_cast<double>(n)));
  }
}

/// The columns of at least two rows, added from the first row down, rounding nothing away below double.
template <class T>
void sum_columns(const T* x, const IndexRange& d, const IndexRange& h, std::int64_t height, std::int64_t pitch,
                 std::int64_t n, double* sum) {
  const T* first = nullptr;
  bool started = false;
  for (std::int64_t i = d.first; i < d.last; ++i)
    for (std::int64_t j = h.first; j < h.last; ++j) {
      const T* row = x + (i * height + j) * pitch;
      if (first == nullptr) {
        first = row;
      } else if (!started) {
        started = true;
        for (std::int64_t c = 0; c < n; ++c) sum[c] = static_cast<double>(first[c]) + static_cast<double>(row[c]);
      } else {
        for (std::int64_t c = 0; c < n; ++c) sum[c] += static_cast<double>(row[c]);
      }
    }
}

/// One row of outputs of one plane: the windows with rows `bd` x `bh`.
template <class Axis, class T>
void forward_row(const Pool<Axis>& p, const WindowBounds& bd, const WindowBounds& bh, const T* x, T* y) {
  const double rows =
      static_cast<double>(bd.counted(p.count_include_pad)) * static_cast<double>(bh.counted(p.count_include_pad));
  const IndexRange d{bd.first, bd.last}, h{bh.first, bh.last};
  const std::int64_t width = p.w.in, outputs = p.w.out;
  if ((d.last - d.first) * (h.last - h.first) == 1) {
    average_row(p, rows, x + (d.first * p.h.in + h.first) * width, 0, 0, outputs, y);
    return;
  }
  const std::int64_t step = p.w.windows_within(kTile);
  if (step > 0) {
    double columns[kTile];
    for (std::int64_t o = 0; o < outputs; o += step) {
      const std::int64_t end = std::min(o + step, outputs);
      const std::int64_t first = p.w.at(o).first, last = p.w.at(end - 1).last;
      sum_columns(x + first, d, h, p.h.in, width, last - first, columns);
      average_row(p, rows, static_cast<const double*>(columns), first, o, end, y);
    }
    return;
  }
  // Windows wider than the buffer: row by row, y_o = (row_0 + row_1 + ...) / divisor
  auto cursor = p.w.cursor(0);
  for (std::int64_t o = 0; o < outputs; ++o, cursor.next()) {
    const WindowBounds b = cursor.bounds();
    double sum = 0;
    for (std::int64_t i = d.first; i < d.last; ++i)
      for (std::int64_t j = h.first; j < h.last; ++j)
        sum += sum_row(x + (i * p.h.in + j) * width + b.first, b.last - b.first);
    const double divisor = p.divisor != 0 ? p.divisor : rows * static_cast<double>(b.counted(p.count_include_pad));
    y[o] = static_cast<T>(sum / divisor);
  }
}

template <class Axis, class T>
void forward(const Pool<Axis>& p, const T* x, T* y) {
  const std::int64_t rows = p.d.out * p.h.out;
  const std::int64_t plane = p.d.in * p.h.in * p.w.in;
  parallel_for(p.planes * rows, plane / rows + p.w.out, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t row = unit % rows;
      forward_row(p, p.d.at(row / p.h.out), p.h.at(row % p.h.out), x + unit / rows * plane, y + unit * p.w.out);
    }
  });
}

/// dx_i = (g_first + ... + g_{last - 1}) / divisor over the windows of position i, for i in [i0, i1); `g` is
/// given from window `origin` on, `dx` from position i0 on.
template <class Axis, class S, class T>
void gather_row(const Axis& axis, const S* g, std::int64_t origin, double divisor, std::int64_t i0, std::int64_t i1,
                T* dx) {
  if (i0 >= i1) return;
  Sweep<Axis> sweep(axis, i0);
  for (std::int64_t i = i0;;) {
    const auto [first, last] = sweep.over();
    const std::int64_t end = std::min(sweep.end(), i1);
    const T value = first < last ? static_cast<T>(sum_row(g + (first - origin), last - first) / divisor) : T(0);
    std::fill(dx + (i - i0), dx + (end - i0), value);
    if (end >= i1) return;
    sweep.to(i = end);
  }
}

/// dx_{K o}, ..., dx_{K o + K - 1} = g_o / divisor
template <int K, class S, class T>
void spread(const S* g, std::int64_t n, double divisor, T* dx) {
  for (std::int64_t o = 0; o < n; ++o) {
    const T value = static_cast<T>(static_cast<double>(g[o]) / divisor);
    for (int j = 0; j < K; ++j) dx[o * K + j] = value;
  }
}

/// The gradient of positions [i0, i1), at most `kTile` of them or windows over them.
template <class S, class T>
void gradient_row(const AdaptiveAxis& axis, const S* g, std::int64_t origin, double divisor, std::int64_t i0,
                  std::int64_t i1, T* dx) {
  gather_row(axis, g, origin, divisor, i0, i1, dx);
}

template <class S, class T>
void gradient_row(const FixedAxis& axis, const S* g, std::int64_t origin, double divisor, std::int64_t i0,
                  std::int64_t i1, T* dx) {
  const auto [k, s, p, unused_right, unused_dilation, unused_ceil] = axis.window;
  std::int64_t a = i0, b = i0;  // the part with a loop of its own
  if (k == s && (k == 2 || k == 3)) {
    const std::int64_t o0 = (i0 + p + s - 1) / s, o1 = std::min(axis.out, (i1 + p) / s);
    if (o0 < o1) {
      a = o0 * s - p, b = o1 * s - p;
      if (k == 2)
        spread<2>(g + (o0 - origin), o1 - o0, divisor, dx + (a - i0));
      else
        spread<3>(g + (o0 - origin), o1 - o0, divisor, dx + (a - i0));
    }
  } else if (s < k && (k - 1) / s < kShortRun) {
    // Positions that no border keeps from a window; those of one phase i % s lie in equally many.
    a = std::max(i0, k - 1 - p);
    b = std::min(i1, axis.out * s - p);
    if (a < b) {
      double sums[kTile];
      for (std::int64_t i = a; i < std::min(a + s, b); ++i) {
        const std::int64_t newest = (i + p) / s, n = (k - 1 - (i + p) % s) / s + 1;
        sum_runs(g + (newest - n + 1 - origin), n, 1, (b - 1 - i) / s + 1, sums + (i - a), s);
      }
      divide_row(sums, b - a, divisor, dx + (a - i0));
    }
  }
  if (a >= b) return gather_row(axis, g, origin, divisor, i0, i1, dx);
  gather_row(axis, g, origin, divisor, i0, a, dx);
  gather_row(axis, g, origin, divisor, b, i1, dx + (b - i0));
}

/// sum_o = sum over the rows of dy_o / divisor of its window, or of dy_o alone when all divisors are the same;
/// `n` windows from `o0` on.
template <class Axis, class T>
void sum_gradients(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, std::int64_t o0,
                   std::int64_t n, double* sum) {
  std::fill(sum, sum + n, 0.0);
  for (std::int64_t i = d.first; i < d.last; ++i)
    for (std::int64_t j = h.first; j < h.last; ++j) {
      const T* row = dy + (i * p.h.out + j) * p.w.out + o0;
      if (p.divisor != 0) {
        for (std::int64_t c = 0; c < n; ++c) sum[c] += static_cast<double>(row[c]);
        continue;
      }
      const double rows = static_cast<double>(p.d.at(i).counted(p.count_include_pad)) *
                          static_cast<double>(p.h.at(j).counted(p.count_include_pad));
      auto cursor = p.w.cursor(o0);
      for (std::int64_t c = 0; c < n; ++c, cursor.next())
        sum[c] +=
            static_cast<double>(row[c]) / (rows * static_cast<double>(cursor.bounds().counted(p.count_include_pad)));
    }
}

/// dx of positions [i0, i1) of a row that the windows `d` x `h` hold.
template <class Axis, class T>
void gradient_tile(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, std::int64_t i0,
                   std::int64_t i1, T* dx) {
  const IndexRange left = p.w.over(i0), right = p.w.over(i1 - 1);
  const std::int64_t origin = left.first, n = right.last - origin;
  if (p.divisor != 0 && (d.last - d.first) * (h.last - h.first) == 1) {
    const T* row = dy + (d.first * p.h.out + h.first) * p.w.out + origin;
    gradient_row(p.w, row, origin, p.divisor, i0, i1, dx);
    return;
  }
  double g[kTile];
  sum_gradients(p, dy, d, h, origin, n, g);
  gradient_row(p.w, static_cast<const double*>(g), origin, p.divisor != 0 ? p.divisor : 1.0, i0, i1, dx);
}

/// As `gradient_tile` when a position lies in more windows than the buffers hold: dx_i = sum over windows, in
/// pieces.
template <class Axis, class T>
T gradient_of_many(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, const IndexRange& w) {
  double g[kTile], sum = 0;
  for (std::int64_t o = w.first; o < w.last; o += kTile) {
    const std::int64_t n = std::min(kTile, w.last - o);
    sum_gradients(p, dy, d, h, o, n, g);
    sum += sum_row(g, n);
  }
  return static_cast<T>(p.divisor != 0 ? sum / p.divisor : sum);
}

/// Writes `value` to, or adds it to, `n` positions of each of `rows` rows.
template <class T>
void store_rows(const T* value, std::int64_t n, std::int64_t rows, std::int64_t pitch, T* dx, bool add) {
  for (std::int64_t r = 0; r < rows; ++r, dx += pitch) {
    if (add) {
      for (std::int64_t i = 0; i < n; ++i) dx[i] += value[i];
    } else if (dx != value) {
      std::memcpy(dx, value, static_cast<std::size_t>(n) * sizeof(T));
    }
  }
}

/// `rows` input rows at `dx` that lie in the same windows `d` x `h`.
template <class Axis, class T>
void backward_rows(const Pool<Axis>& p, const T* dy, const IndexRange& d, const IndexRange& h, std::int64_t rows, T* dx,
                   bool add) {
  const std::int64_t width = p.w.in;
  if (d.first >= d.last || h.first >= h.last) {
    if (!add) std::fill(dx, dx + rows * width, T(0));
    return;
  }
  T buffer[kTile];
  const std::int64_t step = std::min(p.w.positions_within(kTile), kTile);
  if (step > 0) {
    for (std::int64_t i = 0; i < width; i += step) {
      const std::int64_t end = std::min(i + step, width);
      T* const value = add ? buffer : dx + i;
      gradient_tile(p, dy, d, h, i, end, value);
      store_rows(value, end - i, rows, width, dx + i, add);
    }
    return;
  }
  Sweep<Axis> sweep(p.w, 0);
  for (std::int64_t i = 0; i < width;) {
    const IndexRange w = sweep.over();
    const std::int64_t end = std::min({sweep.end(), width, i + kTile});
    std::fill(buffer, buffer + (end - i), w.first < w.last ? gradient_of_many(p, dy, d, h, w) : T(0));
    store_rows(static_cast<const T*>(buffer), end - i, rows, width, dx + i, add);
    if ((i = end) < width) sweep.to(i);
  }
}

template <class Axis, class T>
void backward(const Pool<Axis>& p, const T* dy, T* dx, bool add) {
  const std::int64_t height = p.h.in, width = p.w.in;
  const std::int64_t blocks = (height - 1) / kRowBlock + 1;
  const std::int64_t units = p.d.in * blocks;
  const std::int64_t outputs = p.d.out * p.h.out * p.w.out;
  const std::int64_t work = std::min(height, kRowBlock) * width + outputs / units;
  parallel_for(p.planes * units, work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t plane = unit / units, d = unit % units / blocks;
      const std::int64_t h0 = unit % blocks * kRowBlock, h1 = std::min(h0 + kRowBlock, height);
      const IndexRange over_d = p.d.over(d);
      Sweep<Axis> sweep(p.h, h0);
      for (std::int64_t h = h0;;) {
        const std::int64_t end = std::min(sweep.end(), h1);
        backward_rows(p, dy + plane * outputs, over_d, sweep.over(), end - h,
                      dx + ((plane * p.d.in + d) * height + h) * width, add);
        if (end >= h1) break;
        sweep.to(h = end);
      }
    }
  });
}

/// y_i = (x_{i n} + ... + x_{i n + n - 1}) / divisor
template <class T>
void forward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* x, T* y) {
  parallel_for(runs, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) y[i] = static_cast<T>(sum_row(x + i * n, n) / divisor);
  });
}

/// dx_{i n}, ..., dx_{i n + n - 1} = dy_i / divisor
template <class T>
void backward_runs(std::int64_t runs, std::int64_t n, double divisor, const T* dy, T* dx, bool add) {
  parallel_for(runs, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const T value = static_cast<T>(static_cast<double>(dy[i]) / divisor);
      T* const run = dx + i * n;
      if (add)
        for (std::int64_t j = 0; j < n; ++j) run[j] += value;
      else
        for (std::int64_t j = 0; j < n; ++j) run[j] = value;
    }
  });
}

bool is_unit(const FixedAxis& a) {
  return a.in == 1 && a.out == 1 && a.window.kernel == 1 && a.window.padding_left == 0;
}

/// Windows of one element each, all of them.
bool is_pointwise(const FixedAxis& a) { return a.window.kernel == 1 && a.window.padding_left == 0 && a.in == a.out; }

/// One window that is the whole axis.
bool is_whole(const FixedAxis& a) { return a.out == 1 && a.window.padding_left == 0 && a.window.kernel == a.in; }

FixedAxis make_axis(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  // A single window from the start on never reaches past the input, nor moves.
  if (out == 1 && padding == 0) stride = kernel = std::min(kernel, in);
  return {in, out, {kernel, stride, padding, padding, 1, false}};
}

/// `outer` with `n` contiguous elements in the place of each of its positions, if 64 bits hold that.
std::optional<FixedAxis> widened(const FixedAxis& outer, std::int64_t n) {
  const auto in = checked::mul(outer.in, n), kernel = checked::mul(outer.window.kernel, n);
  const auto stride = checked::mul(outer.window.stride, n), padding = checked::mul(outer.window.padding_left, n);
  if (!in || !kernel || !stride || !padding) return std::nullopt;
  return make_axis(*in, outer.out, *kernel, *stride, *padding);
}

/// The same pool with as few axes as it needs: axes whose one window is the whole axis join the one before,
/// so that a window over whole rows is one run; axes in front with windows of one element become planes.
Pool<FixedAxis> simplified(Pool<FixedAxis> p) {
  while (is_whole(p.w) && !(is_unit(p.h) && is_unit(p.d))) {
    const auto joined = widened(p.h, p.w.in);
    if (!joined) break;
    p.w = *joined;
    p.h = p.d;
    p.d = make_axis(1, 1, 1, 1, 0);
  }
  if (is_pointwise(p.d)) {
    p.planes *= p.d.in;
    p.d = make_axis(1, 1, 1, 1, 0);
    if (is_pointwise(p.h)) {
      p.planes *= p.h.in;
      p.h = make_axis(1, 1, 1, 1, 0);
    }
  }
  return p;
}

Pool<FixedAxis> make_pool(const AvgPoolParams& q) {
  const auto axis = [&](int i) { return make_axis(q.in[i], q.out[i], q.kernel[i], q.stride[i], q.padding[i]); };
  Pool<FixedAxis> p = simplified({q.planes, axis(0), axis(1), axis(2), q.count_include_pad, 0});
  const auto d = p.d.uniform_count(p.count_include_pad), h = p.h.uniform_count(p.count_include_pad),
             w = p.w.uniform_count(p.count_include_pad);
  if (q.divisor_override != 0)
    p.divisor = static_cast<double>(q.divisor_override);
  else if (d && h && w)
    p.divisor = static_cast<double>(*d) * static_cast<double>(*h) * static_cast<double>(*w);
  return p;
}

/// Whether the windows cut each plane into runs of memory, long enough to be taken one by one.
bool is_runs(const Pool<FixedAxis>& p) {
  const Window1d& w = p.w.window;
  return is_unit(p.d) && is_unit(p.h) && w.padding_left == 0 && w.stride == w.kernel && p.w.in % w.kernel == 0 &&
         p.w.in / w.kernel == p.w.out && (w.kernel > kShortRun || p.w.out == 1);
}

/// Windows of an adaptive pool that divide its input evenly are a fixed pool's.
std::optional<AvgPoolParams> even(const AdaptiveAvgPoolParams& q) {
  AvgPoolParams p{.planes = q.planes};
  for (int i = 0; i < 3; ++i) {
    if (q.in[i] % q.out[i] != 0) return std::nullopt;
    p.in[i] = q.in[i];
    p.out[i] = q.out[i];
    p.kernel[i] = p.stride[i] = q.in[i] / q.out[i];
  }
  return p;
}

Pool<AdaptiveAxis> make_pool(const AdaptiveAvgPoolParams& q) {
  return {q.planes, {q.in[0], q.out[0]}, {q.in[1], q.out[1]}, {q.in[2], q.out[2]}, false, 0};
}

bool is_empty(const AdaptiveAvgPoolParams& q) { return q.out[0] == 0 || q.out[1] == 0 || q.out[2] == 0; }

}  // namespace

template <class T>
void avg_pool(const AvgPoolParams& params, const T* x, T* y) {
  const Pool<FixedAxis> p = make_pool(params);
  if (is_runs(p)) return forward_runs(p.planes * p.w.out, p.w.window.kernel, p.divisor, x, y);
  forward(p, x, y);
}

template <class T>
void avg_pool_backward(const AvgPoolParams& params, const T* dy, T* dx, bool add) {
  const Pool<FixedAxis> p = make_pool(params);
  if (is_runs(p)) return backward_runs(p.planes * p.w.out, p.w.window.kernel, p.divisor, dy, dx, add);
  backward(p, dy, dx, add);
}

template <class T>
void adaptive_avg_pool(const AdaptiveAvgPoolParams& params, const T* x, T* y) {
  if (is_empty(params)) return;
  if (const auto fixed = even(params)) return avg_pool(*fixed, x, y);
  forward(make_pool(params), x, y);
}

template <class T>
void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams& params, const T* dy, T* dx, bool add) {
  if (is_empty(params)) {
    if (!add) std::fill(dx, dx + params.planes * params.in[0] * params.in[1] * params.in[2], T(0));
    return;
  }
  if (const auto fixed = even(params)) return avg_pool_backward(*fixed, dy, dx, add);
  backward(make_pool(params), dy, dx, add);
}

template void avg_pool(const AvgPoolParams&, const float*, float*);
template void avg_pool(const AvgPoolParams&, const double*, double*);
template void avg_pool_backward(const AvgPoolParams&, const float*, float*, bool);
template void avg_pool_backward(const AvgPoolParams&, const double*, double*, bool);
template void adaptive_avg_pool(const AdaptiveAvgPoolParams&, const float*, float*);
template void adaptive_avg_pool(const AdaptiveAvgPoolParams&, const double*, double*);
template void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams&, const float*, float*, bool);
template void adaptive_avg_pool_backward(const AdaptiveAvgPoolParams&, const double*, double*, bool);

}  // namespace taper::kernels
