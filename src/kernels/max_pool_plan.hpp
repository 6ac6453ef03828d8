#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/loop_hints.hpp"
#include "kernels/pool_axis.hpp"
#include "kernels/pool_params.hpp"

namespace taper::kernels {

/// The windows of a max pool.
struct MaxPool {
  std::int64_t planes;
  PoolAxis d, h, w;

  /// Whether each window lies in one row.
  bool is_one_row() const { return d.window.kernel == 1 && h.window.kernel == 1 && !d.is_adaptive && !h.is_adaptive; }
  /// How many there are to choose from.
  double elements() const { return double(planes * d.in) * double(h.in * w.in); }
  /// Positions of a plane, and its windows.
  std::int64_t size() const { return d.in * h.in * w.in; }
  std::int64_t outputs() const { return d.out * h.out * w.out; }
  /// Bytes that gradients and places take where an element takes so many.
  double gradient_bytes(std::size_t each) const {
    return double(planes) * (double(size() + outputs()) * double(each) + double(outputs()) * sizeof(std::int64_t));
  }
  /// Elements that a window chooses from, or a few of a long one's, which are chosen from together.
  std::int64_t choices() const {
    std::int64_t n = 1;
    for (const PoolAxis* axis : {&d, &h, &w})
      n *= axis->is_adaptive ? axis->in / axis->out + 1 : std::min<std::int64_t>(axis->window.kernel, 8);
    return std::min<std::int64_t>(n, 64);
  }
  /// Whether a place in a plane and some strides together stay below 2^31.
  bool has_narrow_places() const { return size() < std::int64_t{1} << 30; }
};

TAPER_FOR_SIZE inline MaxPool make_max_pool(const SlidingPoolParams& q) {
  const auto axis = [&](int i) {
    // A single window never moves: its stride may be one that small windows have loops for.
    const bool is_single = q.out[i] == 1 && q.kernel[i] < q.in[i] && q.kernel[i] <= 3;
    return PoolAxis{q.in[i],
                    q.out[i],
                    {.kernel = q.kernel[i],
                     .stride = is_single ? 2 : q.stride[i],
                     .padding_left = q.padding_left[i],
                     .padding_right = q.padding_right[i],
                     .dilation = q.dilation[i]}};
  };
  return {q.planes, axis(0), axis(1), axis(2)};
}

/// Windows of an adaptive pool that divide an axis evenly are a fixed pool's.
TAPER_FOR_SIZE inline MaxPool make_max_pool(const AdaptivePoolParams& q) {
  const auto axis = [&](int i) {
    const std::int64_t size = q.in[i] / q.out[i];
    return q.in[i] % q.out[i] == 0 ? PoolAxis{q.in[i], q.out[i], {size, size}} : PoolAxis{q.in[i], q.out[i], {}, true};
  };
  return {q.planes, axis(0), axis(1), axis(2)};
}

}  // namespace taper::kernels
