#include "kernels/dilated_avg_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/window.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Elements of a row that are worked on at once.
constexpr std::int64_t kTile = 1024;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -checked::floor_div(-a, b); }

/// Calls body(stride), the stride being a constant where that makes loops over neighbours.
template <class Body>
void with_stride(std::int64_t stride, const Body& body) {
  if (stride == 1)
    body(std::integral_constant<std::int64_t, 1>());
  else
    body(stride);
}

/// One dimension with its windows: output o has tap t at o * stride - padding + t * dilation.
struct Axis {
  std::int64_t in, out;
  Window1d window;
  bool count_include_pad;

  std::int64_t start(std::int64_t o) const { return o * window.stride - window.padding_left; }
  /// The taps of output `o` that are elements.
  IndexRange taps(std::int64_t o) const { return taps_between(window, start(o), 0, in); }
  /// The taps that are elements of any output in [o0, o1).
  IndexRange taps(std::int64_t o0, std::int64_t o1) const {
    return {taps_between(window, start(o1 - 1), 0, in).first, taps_between(window, start(o0), 0, in).last};
  }
  double counted(std::int64_t o) const { return static_cast<double>(counted_taps(window, in, o, count_include_pad)); }

  /// The outputs in [o0, o1) whose tap `t` lies in [low, high).
  IndexRange outputs(std::int64_t t, std::int64_t low, std::int64_t high, std::int64_t o0, std::int64_t o1) const {
    const std::int64_t shift = window.padding_left - t * window.dilation;
    const auto from = [&](std::int64_t at) { return std::clamp(ceil_div(at + shift, window.stride), o0, o1); };
    return {from(low), from(high)};
  }
  /// The taps by which any output may hold a position in [low, high).
  IndexRange taps_over(std::int64_t low, std::int64_t high) const {
    const std::int64_t last = high - 1 + window.padding_left;  // of output 0 at the position furthest right
    return {std::max<std::int64_t>(ceil_div(low - start(out - 1), window.dilation), 0),
            std::min(window.kernel, last / window.dilation + 1)};
  }
  /// Calls visit(o) for every output that holds position `i`, with the taps that do so rising.
  template <class Visit>
  void for_outputs_over(std::int64_t i, const Visit& visit) const {
    const IndexRange over = taps_over(i, i + 1);
    for (std::int64_t t = over.first; t < over.last; ++t) {
      const IndexRange o = outputs(t, i, i + 1, 0, out);
      if (o.first < o.last) visit(o.first);
    }
  }
  /// Calls visit(a, b, count) for ranges [a, b) of outputs in [o0, o1), in order, that count the same.
  template <class Visit>
  void for_counts(std::int64_t o0, std::int64_t o1, const Visit& visit) const {
    const std::int64_t span = window.dilation * (window.kernel - 1) + 1;
    const std::int64_t limit = in + (count_include_pad ? window.padding_right : 0);
    // Outputs [full0, full1) count the whole kernel.
    const std::int64_t left = count_include_pad ? 0 : ceil_div(window.padding_left, window.stride);
    const std::int64_t full0 = std::clamp(left, o0, o1);
    const std::int64_t full1 =
        std::clamp(checked::floor_div(limit - span + window.padding_left, window.stride) + 1, full0, o1);
    for (std::int64_t o = o0; o < full0; ++o) visit(o, o + 1, counted(o));
    if (full0 < full1) visit(full0, full1, static_cast<double>(window.kernel));
    for (std::int64_t o = full1; o < o1; ++o) visit(o, o + 1, counted(o));
  }
};

struct Pool {
  Axis d, h, w;
  double divisor;  ///< of all windows; 0: each window's own count
};

Pool make_pool(const AvgPoolParams& p) {
  const auto axis = [&](int i) {
    const Window1d window{p.kernel[i], p.stride[i], p.padding_left[i], p.padding_right[i], p.dilation[i]};
    return Axis{p.in[i], p.out[i], window, p.count_include_pad};
  };
  return {axis(0), axis(1), axis(2), static_cast<double>(p.divisor_override)};
}

/// Outputs [o0, o1) of the row (`d`, `h`) of a plane at `x`.
template <class T>
void forward_tile(const Pool& p, std::int64_t d, std::int64_t h, std::int64_t o0, std::int64_t o1, const T* x, T* y) {
  double sums[kTile];
  std::fill(sums, sums + (o1 - o0), 0.0);
  const IndexRange taps_d = p.d.taps(d), taps_h = p.h.taps(h), taps_w = p.w.taps(o0, o1);
  // sum_o = sum over the taps of x at start_o + t * dilation
  for (std::int64_t i = taps_d.first; i < taps_d.last; ++i)
    for (std::int64_t j = taps_h.first; j < taps_h.last; ++j) {
      const std::int64_t at_d = p.d.start(d) + i * p.d.window.dilation, at_h = p.h.start(h) + j * p.h.window.dilation;
      const T* const row = x + (at_d * p.h.in + at_h) * p.w.in;
      for (std::int64_t t = taps_w.first; t < taps_w.last; ++t) {
        const IndexRange o = p.w.outputs(t, 0, p.w.in, o0, o1);
        if (o.first >= o.last) continue;
        const T* const tap = row + p.w.start(o.first) + t * p.w.window.dilation;
        double* const sum = sums + (o.first - o0);
        with_stride(p.w.window.stride, [&](auto stride) {
          for (std::int64_t n = 0; n < o.last - o.first; ++n) sum[n] += static_cast<double>(tap[n * stride]);
        });
      }
    }
  if (p.divisor != 0) {
    for (std::int64_t n = 0; n < o1 - o0; ++n) y[n] = static_cast<T>(sums[n] / p.divisor);
    return;
  }
  const double rows = p.d.counted(d) * p.h.counted(h);
  p.w.for_counts(o0, o1, [&](std::int64_t a, std::int64_t b, double count) {
    const double divisor = std::max(rows * count, 1.0);  // nothing counted, nothing summed
    for (std::int64_t o = a; o < b; ++o) y[o - o0] = static_cast<T>(sums[o - o0] / divisor);
  });
}

/// Adds to `sums`, of positions [i0, i1), what the row `dy` of outputs gives them; `rows` is what the row counts.
template <class T>
void scatter_row(const Pool& p, const T* dy, double rows, std::int64_t i0, std::int64_t i1, double* sums) {
  const IndexRange taps = p.w.taps_over(i0, i1);
  // dx at start_o + t * dilation grows by dy_o / divisor_o
  for (std::int64_t t = taps.first; t < taps.last; ++t) {
    const IndexRange o = p.w.outputs(t, i0, i1, 0, p.w.out);
    if (o.first >= o.last) continue;
    const auto add = [&](std::int64_t a, std::int64_t b, double count) {
      const double divisor = p.divisor != 0 ? p.divisor : rows * count;
      double* const sum = sums + (p.w.start(a) + t * p.w.window.dilation - i0);
      with_stride(p.w.window.stride, [&](auto stride) {
        for (std::int64_t n = 0; n < b - a; ++n) sum[n * stride] += static_cast<double>(dy[a + n]) / divisor;
      });
    };
    if (p.divisor != 0)
      add(o.first, o.last, 0);
    else
      p.w.for_counts(o.first, o.last, add);
  }
}

}  // namespace

template <class T>
void dilated_avg_pool(const AvgPoolParams& params, const T* x, T* y) {
  const Pool p = make_pool(params);
  const std::int64_t rows = p.d.out * p.h.out, size = p.d.in * p.h.in * p.w.in;
  parallel_for(params.planes * rows, size / rows + p.w.out, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit)
      for (std::int64_t o = 0; o < p.w.out; o += kTile)
        forward_tile(p, unit % rows / p.h.out, unit % p.h.out, o, std::min(o + kTile, p.w.out), x + unit / rows * size,
                     y + unit * p.w.out + o);
  });
}

template <class T>
void dilated_avg_pool_backward(const AvgPoolParams& params, const T* dy, T* dx, bool add) {
  const Pool p = make_pool(params);
  const std::int64_t rows = p.d.in * p.h.in, outputs = p.d.out * p.h.out * p.w.out;
  parallel_for(params.planes * rows, outputs / rows + p.w.in, [&](std::int64_t first, std::int64_t last) {
    double sums[kTile];
    for (std::int64_t unit = first; unit < last; ++unit)
      for (std::int64_t i = 0; i < p.w.in; i += kTile) {
        const std::int64_t end = std::min(i + kTile, p.w.in);
        std::fill(sums, sums + (end - i), 0.0);
        p.d.for_outputs_over(unit % rows / p.h.in, [&](std::int64_t d) {
          p.h.for_outputs_over(unit % p.h.in, [&](std::int64_t h) {
            const T* const row = dy + unit / rows * outputs + (d * p.h.out + h) * p.w.out;
            scatter_row(p, row, p.d.counted(d) * p.h.counted(h), i, end, sums);
          });
        });
        T* const target = dx + unit * p.w.in + i;
        for (std::int64_t n = 0; n < end - i; ++n)
          target[n] = add ? target[n] + static_cast<T>(sums[n]) : static_cast<T>(sums[n]);
      }
  });
}

template void dilated_avg_pool(const AvgPoolParams&, const float*, float*);
template void dilated_avg_pool_backward(const AvgPoolParams&, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void dilated_avg_pool(const AvgPoolParams&, const double*, double*);
template void dilated_avg_pool_backward(const AvgPoolParams&, const double*, double*, bool);
#endif

}  // namespace taper::kernels
