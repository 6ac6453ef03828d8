#include "kernels/conv_depthwise.hpp"

#include <cstdlib>

#include "kernels/conv_slab.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product_vector.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

constexpr std::int64_t kLane = kLanes<float>;

/// Elements of a copy that stays in the first-level cache, and the vectors that are summed beside each other.
constexpr std::int64_t kCopySize = 6144, kBeside = 8;

/// One vector of results: where its elements begin in the copy, where they go in the plane, and how many they are.
struct Part {
  std::int64_t from, to;
  int count;
};

/// Where a tap finds the elements of a position in the copy, and where its weight is.
struct Tap {
  std::int64_t element, weight;
};

/// The parts of some lines of a plane, or of a part of one line, with what the taps find around them: copied once, with
/// zeros beyond the plane. Every tap has a distance of its own in the copy.
class Band {
 public:
  std::int64_t lines, width;  ///< of results

  explicit Band(const Sweep& s) : width(s.positions[2]), s_(s) {
    for (int d = 1; d < 3; ++d) {
      const std::int64_t last = (s.taps[d] - 1) * s.axis[d].shift_step;
      low_[d] = s.axis[d].shift + std::min<std::int64_t>(last, 0);
      span_[d] = std::abs(last);
    }
    if (s.positions[1] == 1) width = std::min(width, kCopySize);
    row_ = ceil_div(width + span_[2], kLane) * kLane;
    lines = std::clamp<std::int64_t>(kCopySize / row_ - span_[1], 1, s.positions[1]);
  }

  /// Whether there is room for it.
  bool fits() const {
    return std::max(span_[1], span_[2]) <= kCopySize && width <= kCopySize && size() <= kRightSize<float>;
  }
  /// Elements of the copy.
  std::int64_t size() const { return (lines + span_[1]) * row_ + kLane; }

  /// Lists where the taps find their elements, and where their weights are.
  void list_taps(Tap* taps) const {
    Place place{};
    for (std::int64_t t = 0; t < s_.tap_count(); ++t, step(place, s_.taps)) {
      const auto reach = [&](int d) { return s_.axis[d].shift + place.at[d] * s_.axis[d].shift_step - low_[d]; };
      taps[t] = {reach(1) * row_ + reach(2), s_.weight(place)};
    }
  }

  /// Lists the vectors of lines of `columns`, and some more that are empty.
  void list_parts(std::int64_t columns, Part* parts) const {
    for (std::int64_t h = 0, l = 0; h < lines; l = l + kLane < columns ? l + kLane : (++h, 0))
      *parts++ = {h * row_ + l, h * s_.result_line + l, static_cast<int>(std::min(kLane, columns - l))};
    for (std::int64_t v = 0; v < kBeside; ++v) parts[v] = {};
  }

  /// Copies what the results of `n` lines from (h, l) on need of plane `x`. In whole lines, zeros at their ends are
  /// there already.
  void copy(std::int64_t h, std::int64_t l, std::int64_t n, const float* x, float* to) const {
    const std::int64_t length = s_.axis[2].length, at = l + low_[2], skip = std::clamp<std::int64_t>(-at, 0, row_);
    const std::int64_t count = std::clamp<std::int64_t>(length - at - skip, 0, row_ - skip);
    for (std::int64_t i = h + low_[1]; i < h + low_[1] + n + span_[1]; ++i, to += row_) {
      const bool inside = i >= 0 && i < s_.axis[1].length;
      if (!inside || (width < s_.positions[2] && count < row_)) zero_run(row_, to);
      if (inside) copy_run(x + i * length + at + skip, count, to + skip);
    }
  }

 private:
  const Sweep& s_;
  std::int64_t low_[3], span_[3];  ///< the first element that a position needs, and how many more
  std::int64_t row_;               ///< from line to line of the copy
};

/// y[v, :] = b + sum over taps t of w[t] x[v, t + :] for `n` parts, or += with `add`.
void sum_parts(const Part* parts, std::int64_t n, const Tap* tap, std::int64_t taps, const float* x, const float* w,
               float b, float* y, bool add) {
  for (std::int64_t i = 0; i < n; i += kBeside, parts += kBeside) {
    Vector<float> sum[kBeside];
    const float* from[kBeside];
    bool whole = !add && n - i >= kBeside;
#pragma GCC unroll 8
    for (int v = 0; v < kBeside; ++v) {
      sum[v] = b - Vector<float>{};
      from[v] = x + parts[v].from;
      whole = whole && parts[v].count == kLane;
    }
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t at = tap[t].element;
      const Vector<float> weight = w[tap[t].weight] - Vector<float>{};
#pragma GCC unroll 8
      for (int v = 0; v < kBeside; ++v) sum[v] = multiply_add(weight, load(from[v] + at), sum[v]);
    }
    if (whole) {
#pragma GCC unroll 8
      for (int v = 0; v < kBeside; ++v) store(sum[v], y + parts[v].to);
      continue;
    }
    float sums[kBeside * kLane];
#pragma GCC unroll 8
    for (int v = 0; v < kBeside; ++v) store(sum[v], sums + v * kLane);
    for (std::int64_t v = 0; v < std::min(kBeside, n - i); ++v)
      store_part<float>(load(sums + v * kLane), parts[v].count, y + parts[v].to, add);
  }
}

}  // namespace

bool depthwise_sum(const Sweep& s, const float* x, const float* w, const float* b, float* y, bool add) {
  bool fits = s.channels == 1 && s.rows == 1 && s.tap_count() <= kChain<float> && s.contiguous();
  fits = fits && s.taps[0] * s.result[0] * s.axis[0].length == 1 && s.axis[0].shift == 0;
  for (const Axis& axis : s.axis) fits = fits && axis.stride == 1 && axis.to_step == 1;
  if (!fits || s.result_size <= 0) return false;
  const Band band(s);
  if (!band.fits()) return false;
  // y[n, g, i] = b[g] + sum over t of w[g, t] x[n, g, i + t]
  const auto planes = [=, &s, &band](std::int64_t first, std::int64_t last) {
    Part parts[kCopySize / kLane + kBeside];
    Tap taps[kChain<float>];
    std::int64_t listed = 0;
    float* const copy = scratch<float>().right;
    zero_run(band.size(), copy);
    band.list_taps(taps);
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t g = plane % s.groups;
      for (std::int64_t h = 0; h < s.positions[1]; h += band.lines)
        for (std::int64_t l = 0; l < s.positions[2]; l += band.width) {
          const std::int64_t lines = std::min(band.lines, s.positions[1] - h);
          const std::int64_t columns = std::min(band.width, s.positions[2] - l);
          if (columns != listed) band.list_parts(columns, parts);
          listed = columns;
          band.copy(h, l, lines, x + plane * s.signal_size, copy);
          sum_parts(parts, lines * ceil_div(columns, kLane), taps, s.tap_count(), copy, w + g * s.w_group,
                    b != nullptr ? b[g] : 0.0f, y + plane * s.result_size + h * s.result_line + l, add);
        }
    }
  };
  parallel_for(s.batch * s.groups, parallel_work(s.result_size, s.tap_count()), planes);
  return true;
}

#else

bool depthwise_sum(const Sweep&, const float*, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
