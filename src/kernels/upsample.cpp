#include "kernels/upsample.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Columns of a row that are worked on at once; what the buffers on the stack hold.
constexpr std::int64_t kUpsampleTile = 512;

/// The positions that an output may read.
template <class Axis>
constexpr int kTapsOf = std::is_same_v<Axis, Resampling> ? 2 : 4;

/// What output i of an axis reads; there is one copy of this code.
template <class Axis>
[[gnu::noinline]] typename Axis::Source source_of(const Axis& axis, std::int64_t i) {
  return axis.at(i);
}

/// What each column of a tile reads; the same for all rows.
template <class Axis>
class Columns {
 public:
  using Source = typename Axis::Source;

  explicit Columns(const Axis& axis) : axis_(axis) {}

  /// Goes to the tile that begins with column `first`.
  void show(std::int64_t first) {
    if (first == first_) return;
    first_ = first;
    count_ = std::min(kUpsampleTile, axis_.out - first);
    for (std::int64_t i = 0; i < count_; ++i) source_[i] = source_of(axis_, first + i);
  }
  std::int64_t count() const { return count_; }
  const Source& operator[](std::int64_t i) const { return source_[i]; }

 private:
  const Axis& axis_;
  std::int64_t first_ = -1, count_ = 0;
  Source source_[kUpsampleTile];
};

/// Whether outputs 2 j and 2 j + 1 are copies of input j: what images are mostly resized by.
[[maybe_unused]] TAPER_FOR_SIZE bool doubles(const Resampling& axis) {
  return axis.is_nearest() && axis.out == 2 * axis.in && (axis.step == 0 || axis.step == 0.5);
}

/// Whether elements of T have loops of their own for that.
template <class T>
constexpr bool kDoubling = kVectorWidth > 16 && sizeof(T) == sizeof(float);

/// An axis whose outputs are asked for again and again.
template <class Axis>
class Remembered {
 public:
  using Source = typename Axis::Source;

  [[gnu::noinline]] explicit Remembered(const Axis& axis) : out(axis.out), axis_(axis) {
    for (std::int64_t i = 0; out <= kUpsampleTile && i < out; ++i) source_[i] = source_of(axis, i);
  }
  const Source& at(std::int64_t i) const { return out <= kUpsampleTile ? source_[i] : found(i); }

  /// The outputs that may read input position `j`, which mostly follows the one asked for before.
  [[gnu::noinline]] IndexRange over(std::int64_t j) {
    if (j == j_ + 1) {
      while (over_.first < out && at(over_.first).second < j) ++over_.first;
      while (over_.last < out && at(over_.last).first <= j) ++over_.last;
    } else if (j != j_) {
      over_ = outputs_over(*this, j);
    }
    j_ = j;
    return over_;
  }

  std::int64_t out;

 private:
  [[gnu::noinline]] const Source& found(std::int64_t i) const { return spare_ = source_of(axis_, i); }

  const Axis& axis_;
  Source source_[kUpsampleTile];
  mutable Source spare_;
  std::int64_t j_ = -1;
  IndexRange over_{0, 0};
};

std::int64_t inputs(const UpsampleParams& p) { return p.axis[0].in * p.axis[1].in * p.axis[2].in; }
std::int64_t outputs(const UpsampleParams& p) { return p.axis[0].out * p.axis[1].out * p.axis[2].out; }

/// The rows that one row reads along depth and height.
struct Taps {
  std::int64_t at[4];
  double weight[4];
  int count = 0;

  explicit Taps(const Resampling::Source& s)
      : at{s.first, s.second}, weight{1 - s.weight, s.weight}, count(s.weight > 0 ? 2 : 1) {}
  explicit Taps(const CubicResampling::Source& s) {
    for (int k = 0; k < 4; ++k) {
      if (s.weight[k] == 0) continue;
      at[count] = s.at[k];
      weight[count++] = s.weight[k];
    }
  }
};

/// What each column of a tile of outputs reads of the input's positions that the tile reads: all from the first to the
/// last or, where these are far apart, one for each reading.
struct ColumnTaps {
  static constexpr std::int64_t kMost = 4 * kUpsampleTile;

  /// Goes to the tile that begins with column `first`.
  template <class Axis>
  TAPER_FOR_SIZE void show(const Axis& axis, std::int64_t first) {
    taps = kTapsOf<Axis>;
    is_nearest = axis.is_nearest();
    is_doubled = kVectorWidth > 16 && doubles(axis);
    count = std::min(kUpsampleTile, axis.out - first);
    from = source_of(axis, first).first;
    read = source_of(axis, first + count - 1).second + 1 - from;
    in_order = read <= 4 * count;
    if (!in_order) read = taps * count;
    for (std::int64_t i = 0; i < count; ++i) {
      const Taps its(source_of(axis, first + i));
      for (int k = 0; k < taps; ++k) {
        const bool is_read = k < its.count;
        const std::int64_t r = its.at[is_read ? k : 0] - from;
        if (!in_order) position[k * count + i] = r;
        place[k][i] = static_cast<std::int32_t>(!is_read ? kMost : in_order ? r : k * count + i);
        weight[k][i] = is_read ? its.weight[k] : 0;
      }
    }
  }

  std::int64_t count = 0, from = 0, read = 0;
  int taps = 0;
  bool is_nearest = false, is_doubled = false, in_order = true;
  std::int64_t position[kMost];          ///< behind `from`, of what is read unless that is all in order
  std::int32_t place[4][kUpsampleTile];  ///< of what each column reads among that
  double weight[4][kUpsampleTile];
};

/// One tile of one row of outputs, from element `to` of y on, of the plane from element `from` of x on.
using ForwardTile = void(const UpsampleParams& p, const ColumnTaps& columns, const Taps& d, const Taps& h,
                         const void* x, std::int64_t from, void* y, std::int64_t to);

template <class T>
void forward_tile(const UpsampleParams& p, const ColumnTaps& columns, const Taps& d, const Taps& h, const void* all_x,
                  std::int64_t from, void* all_y, std::int64_t to) {
  const T* const x = static_cast<const T*>(all_x) + from;
  T* const y = static_cast<T*>(all_y) + to;
  const T* rows[8];
  double weights[8];
  int count = 0;
  for (int i = 0; i < d.count; ++i)
    for (int j = 0; j < h.count; ++j, ++count) {
      asm volatile("");  // one or two mostly: no vectors
      rows[count] = x + (d.at[i] * p.axis[1].in + h.at[j]) * p.axis[2].in + columns.from;
      weights[count] = d.weight[i] * h.weight[j];
    }
  if (columns.is_nearest) {
    constexpr int kAll = kLanes<T>;
    if (kDoubling<T> && columns.is_doubled && columns.count >= 2 * kAll) {
      constexpr auto kEach = std::make_integer_sequence<int, kAll>();
      for (std::int64_t i = 0; i < columns.count; i += 2 * kAll) {
        const std::int64_t c = std::min(i, columns.count - 2 * kAll);
        const Vector<T> v = load(rows[0] + c / 2);
        store<T>(in_turns<0>(v, v, kEach), y + c);
        store<T>(in_turns<1>(v, v, kEach), y + c + kAll);
      }
      return;
    }
    for (std::int64_t c = 0; c < columns.count; ++c)
      y[c] = rows[0][columns.in_order ? columns.place[0][c] : columns.position[c]];
    return;
  }
  // sum_r = the sum of weight x at position r over depth and height
  double sum[ColumnTaps::kMost + 1];
  sum[ColumnTaps::kMost] = -0.0;  // which readings of weight 0 have, so that they change nothing
  const auto total = [&](auto at) __attribute__((always_inline)) {
    auto all = weights[0] * at(rows[0]);
    for (int k = 1; k < count; ++k) all += weights[k] * at(rows[k]);
    return all;
  };
  std::int64_t r = 0;
  if (columns.in_order)
    for (; r + kDoubles <= columns.read; r += kDoubles) store<double>(total(ElementsAt{r}), sum + r);
  for (; r < columns.read; ++r) sum[r] = total(ElementAt{columns.in_order ? r : columns.position[r]});
  // y_c = the sum of weight times sum at the places that column c reads
  const auto term = [&](int k, std::int64_t c) { return columns.weight[k][c] * sum[columns.place[k][c]]; };
  for (std::int64_t c = 0; c < columns.count; ++c) {
    asm volatile("");  // vectors would be put together element by element
    double value = term(0, c) + term(1, c);
    if (columns.taps > 2) value += term(2, c) + term(3, c);
    y[c] = static_cast<T>(value);
  }
}

/// Takes gradients in the order of their columns and writes what each input position gathers, in order.
template <class T, int kTaps>
class Gather {
 public:
  Gather(T* dx, std::int64_t in, bool add) : dx_(dx), in_(in), add_(add) {}

  void take(const Resampling::Source& s, double g) {
    if (s.first != at_) move_to(s.first);
    if (s.weight > 0) {
      sums_[0] += (1 - s.weight) * g;
      sums_[1] += s.weight * g;
    } else {
      sums_[0] += g;
    }
  }
  void take(const CubicResampling::Source& s, double g) {
    if (s.first != at_) move_to(s.first);
    for (int k = 0; k < 4; ++k)
      if (s.weight[k] != 0) sums_[s.at[k] - at_] += s.weight[k] * g;
  }
  /// Writes what is left.
  TAPER_FOR_SIZE static void finish(Gather gather) { gather.move_to(gather.in_); }

 private:
  void move_to(std::int64_t to) {
    for (int n = 0; n < kTaps && at_ < to; ++n, ++at_) {
      dx_[at_] = static_cast<T>(add_ ? static_cast<double>(dx_[at_]) + sums_[0] : sums_[0]);
#pragma GCC unroll 4
      for (int k = 0; k + 1 < kTaps; ++k) sums_[k] = sums_[k + 1];
      sums_[kTaps - 1] = 0;
    }
    if (at_ >= to) return;
    if (!add_) clear(dx_ + at_, dx_ + to);
    at_ = to;
  }
  /// Stores what nothing was gathered for: mostly few elements.
  [[gnu::noinline]] static void clear(T* dx, T* end) {
    for (; dx != end; ++dx) {
      asm volatile("");  // a call takes longer
      *dx = 0;
    }
  }

  T* dx_;
  std::int64_t in_;
  bool add_;
  std::int64_t at_ = 0;
  double sums_[kTaps] = {};  // of position at_ and the next ones
};

/// The weight with which an output reads position `j`.
double weight_of(const Resampling::Source& s, std::int64_t j) {
  if (s.weight > 0) return s.first == j ? 1 - s.weight : s.weight;
  return s.first == j ? 1 : 0;
}

double weight_of(const CubicResampling::Source& s, std::int64_t j) {
  double weight = 0;
  for (int k = 0; k < 4; ++k) weight += s.at[k] == j ? s.weight[k] : 0;
  return weight;
}

/// sum_i = the sum of weight * dy_i over the rows of outputs that read input row (d, h) of a plane; false if there are
/// none.
template <class Axis, class T>
bool gather_rows(const UpsampleParams& p, Remembered<Resampling>& depth, Remembered<Axis>& height, std::int64_t d,
                 std::int64_t h, const T* dy, std::int64_t n, double* sum) {
  const IndexRange over_d = depth.over(d), over_h = height.over(h);
  bool any = false;
  for (std::int64_t i = over_d.first; i < over_d.last; ++i)
    for (std::int64_t j = over_h.first; j < over_h.last; ++j) {
      const double weight = weight_of(depth.at(i), d) * weight_of(height.at(j), h);
      if (weight == 0) continue;
      const T* const row = dy + (i * p.axis[1].out + j) * p.axis[2].out;
      if (!any) std::fill_n(sum, n, 0.0);
      any = true;
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t c = 0; c < n; ++c) sum[c] += weight * static_cast<double>(row[c]);
    }
  return any;
}

template <class Axis>
void forward(const UpsampleParams& p, const Axis& over_height, const Axis& over_width, const void* x, void* y,
             ForwardTile* tile) {
  const std::int64_t height = p.axis[1].out, width = p.axis[2].out;
  // y_i = sum of x_j times the weight with which output i reads j, along each axis
  parallel_for(p.planes * p.axis[0].out * height, 4 * width, [&](std::int64_t begin, std::int64_t end) {
    ColumnTaps columns;
    Remembered<Axis> heights(over_height);
    for (std::int64_t c = 0; c < width; c += kUpsampleTile) {
      columns.show(over_width, c);
      for (std::int64_t unit = begin; unit < end;) {
        // The rows of one place of the depth.
        const std::int64_t slab = unit / height, last = std::min(end, (slab + 1) * height);
        const std::int64_t from = slab / p.axis[0].out * inputs(p);
        const Taps depth(source_of(p.axis[0], slab % p.axis[0].out));
        for (std::int64_t h = unit - slab * height; unit < last; ++unit, ++h)
          tile(p, columns, depth, Taps(heights.at(h)), x, from, y, unit * width + c);
      }
    }
  });
}

template <class Axis, class T>
void backward(const UpsampleParams& p, const Axis& over_height, const Axis& over_width, const T* dy, T* dx, bool add) {
  const std::int64_t height = p.axis[1].in, width = p.axis[2].in, rows = p.axis[0].in * height;
  if (p.planes <= 0 || rows <= 0) return;
  const bool is_doubled = kDoubling<T> && std::is_same_v<Axis, Resampling> && doubles(over_width);
  // dx_j = sum of dy_i times the weight with which output i reads j
  parallel_for(p.planes * rows, outputs(p) / rows + width, [&](std::int64_t begin, std::int64_t end) {
    Columns<Axis> columns(over_width);
    Remembered<Resampling> depths(p.axis[0]);
    Remembered<Axis> heights(over_height);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t plane = unit / rows, row = unit % rows;
      Gather<T, kTapsOf<Axis>> gather(dx + unit * width, width, add);
      bool is_written = false;
      for (std::int64_t c = 0; c < p.axis[2].out; c += kUpsampleTile) {
        columns.show(c);
        double sum[kUpsampleTile];
        if (!gather_rows(p, depths, heights, row / height, row % height, dy + plane * outputs(p) + c, columns.count(),
                         sum))
          continue;
        if (is_doubled) {
          is_written = true;
          T* const to = dx + unit * width + c / 2;
          const std::int64_t pairs = columns.count() / 2;
          TAPER_INDEPENDENT_TURNS
          for (std::int64_t j = 0; j < pairs; ++j) {
            const double both = sum[2 * j] + sum[2 * j + 1];
            to[j] = static_cast<T>(add ? static_cast<double>(to[j]) + both : both);
          }
          continue;
        }
        for (std::int64_t i = 0; i < columns.count(); ++i) gather.take(columns[i], sum[i]);
      }
      if (!is_written) gather.finish(gather);
    }
  });
}

}  // namespace

template <class T>
void upsample(const UpsampleParams& p, const T* x, T* y) {
  if (p.cubic)
    forward(p, CubicResampling{p.axis[1]}, CubicResampling{p.axis[2]}, x, y, forward_tile<T>);
  else
    forward(p, p.axis[1], p.axis[2], x, y, forward_tile<T>);
}

template <class T>
void upsample_backward(const UpsampleParams& p, const T* dy, T* dx, bool add) {
  if (p.cubic)
    backward(p, CubicResampling{p.axis[1]}, CubicResampling{p.axis[2]}, dy, dx, add);
  else
    backward(p, p.axis[1], p.axis[2], dy, dx, add);
}

template void upsample(const UpsampleParams&, const float*, float*);
template void upsample_backward(const UpsampleParams&, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void upsample(const UpsampleParams&, const double*, double*);
template void upsample_backward(const UpsampleParams&, const double*, double*, bool);
#endif

}  // namespace taper::kernels
