#include "kernels/upsample.hpp"

#include <algorithm>

#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Columns of a row that are worked on at once; what the buffers on the stack hold.
constexpr std::int64_t kUpsampleTile = 512;

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

template <class T>
double value_at(const Resampling::Source& s, const T* x) {
  const double first = static_cast<double>(x[s.first]);
  return s.weight > 0 ? (1 - s.weight) * first + s.weight * static_cast<double>(x[s.second]) : first;
}

template <class T>
double value_at(const CubicResampling::Source& s, const T* x) {
  double value = 0;
  for (int k = 0; k < 4; ++k)
    if (s.weight[k] != 0) value += s.weight[k] * static_cast<double>(x[s.at[k]]);
  return value;
}

/// One tile of one row of outputs of the plane `x`.
template <class Axis, class T>
void forward_tile(const UpsampleParams& p, const Columns<Axis>& columns, const Taps& d, const Taps& h, const T* x,
                  T* y) {
  const auto row = [&](int i, int j) { return x + (d.at[i] * p.axis[1].in + h.at[j]) * p.axis[2].in; };
  if (p.axis[2].is_nearest()) {
    const T* const from = row(0, 0);
    for (std::int64_t i = 0; i < columns.count(); ++i) y[i] = from[columns[i].first];
    return;
  }
  double sum[kUpsampleTile] = {};
  for (int i = 0; i < d.count; ++i)
    for (int j = 0; j < h.count; ++j) {
      const T* const from = row(i, j);
      const double weight = d.weight[i] * h.weight[j];
      // sum_c += weight * x at the place of column c
      for (std::int64_t c = 0; c < columns.count(); ++c) sum[c] += weight * value_at(columns[c], from);
    }
  for (std::int64_t i = 0; i < columns.count(); ++i) y[i] = static_cast<T>(sum[i]);
}

/// Takes gradients in the order of their columns and writes what each input position gathers, in order.
template <class T>
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
  void finish() { move_to(in_); }

 private:
  void move_to(std::int64_t to) {
    for (; at_ < to; ++at_) {
      dx_[at_] = static_cast<T>(add_ ? static_cast<double>(dx_[at_]) + sums_[0] : sums_[0]);
      for (int k = 0; k < 3; ++k) sums_[k] = sums_[k + 1];
      sums_[3] = 0;
    }
  }

  T* dx_;
  std::int64_t in_;
  bool add_;
  std::int64_t at_ = 0;
  double sums_[4] = {};  // of position at_ and the next ones
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

/// sum_i += weight * dy_i over the rows of outputs that read input row (d, h) of a plane.
template <class Axis, class T>
void gather_rows(const UpsampleParams& p, const Axis& height, std::int64_t d, std::int64_t h, const T* dy,
                 std::int64_t n, double* sum) {
  const IndexRange over_d = outputs_over(p.axis[0], d), over_h = outputs_over(height, h);
  for (std::int64_t i = over_d.first; i < over_d.last; ++i)
    for (std::int64_t j = over_h.first; j < over_h.last; ++j) {
      const double weight = weight_of(source_of(p.axis[0], i), d) * weight_of(source_of(height, j), h);
      if (weight == 0) continue;
      const T* const row = dy + (i * p.axis[1].out + j) * p.axis[2].out;
      for (std::int64_t c = 0; c < n; ++c) sum[c] += weight * static_cast<double>(row[c]);
    }
}

template <class Axis, class T>
void forward(const UpsampleParams& p, const Axis& over_height, const Axis& over_width, const T* x, T* y) {
  const std::int64_t height = p.axis[1].out, width = p.axis[2].out, rows = p.axis[0].out * height;
  // y_i = sum of x_j times the weight with which output i reads j, along each axis
  parallel_for(p.planes * rows, 4 * width, [&](std::int64_t begin, std::int64_t end) {
    Columns<Axis> columns(over_width);
    for (std::int64_t c = 0; c < width; c += kUpsampleTile) {
      columns.show(c);
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t plane = unit / rows, row = unit % rows;
        forward_tile(p, columns, Taps(source_of(p.axis[0], row / height)), Taps(source_of(over_height, row % height)),
                     x + plane * inputs(p), y + unit * width + c);
      }
    }
  });
}

template <class Axis, class T>
void backward(const UpsampleParams& p, const Axis& over_height, const Axis& over_width, const T* dy, T* dx, bool add) {
  const std::int64_t height = p.axis[1].in, width = p.axis[2].in, rows = p.axis[0].in * height;
  if (p.planes <= 0 || rows <= 0) return;
  // dx_j = sum of dy_i times the weight with which output i reads j
  parallel_for(p.planes * rows, outputs(p) / rows + width, [&](std::int64_t begin, std::int64_t end) {
    Columns<Axis> columns(over_width);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t plane = unit / rows, row = unit % rows;
      Gather<T> gather(dx + unit * width, width, add);
      for (std::int64_t c = 0; c < p.axis[2].out; c += kUpsampleTile) {
        columns.show(c);
        double sum[kUpsampleTile] = {};
        gather_rows(p, over_height, row / height, row % height, dy + plane * outputs(p) + c, columns.count(), sum);
        for (std::int64_t i = 0; i < columns.count(); ++i) gather.take(columns[i], sum[i]);
      }
      gather.finish();
    }
  });
}

}  // namespace

template <class T>
void upsample(const UpsampleParams& p, const T* x, T* y) {
  if (p.cubic)
    forward(p, CubicResampling{p.axis[1]}, CubicResampling{p.axis[2]}, x, y);
  else
    forward(p, p.axis[1], p.axis[2], x, y);
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
