#include "kernels/upsample.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/upsample_pairs.hpp"

namespace taper::kernels {

namespace {

/// Columns of a row that are worked on at once; what the buffers on the stack hold.
constexpr std::int64_t kUpsampleTile = 512;

/// What one output of an axis reads: the sum of weight[k] * x[at[k]] for k < count, without weights of 0.
struct Taps {
  std::int64_t first, second;  ///< the outermost positions that it may read
  std::int64_t at[4];
  double weight[4];
  int count;
};

/// An axis that is resized by a linear rule, or by a cubic at the places that this gives.
struct UpsampleAxis {
  using Source = Taps;

  UpsampleAxis(const Resampling& its_rule, bool is_cubic) : rule(its_rule), out(rule.out), cubic(is_cubic) {}

  /// What output i reads, in place: what is stored in parts takes long to copy. There is one copy of this code.
  [[gnu::noinline]] void show(std::int64_t i, Taps& taps) const {
    taps.count = 0;
    const auto add = [&](std::int64_t position, double weight) {
      if (weight == 0) return;
      taps.at[taps.count] = position;
      taps.weight[taps.count++] = weight;
    };
    if (cubic) {
      const CubicResampling::Source s = CubicResampling{rule}.at(i);
      taps.first = s.first, taps.second = s.second;
#pragma GCC unroll 1
      for (int k = 0; k < 4; ++k) add(s.at[k], s.weight[k]);
    } else {
      const Resampling::Source s = rule.at(i);
      taps.first = s.first, taps.second = s.second;
      add(s.first, 1 - s.weight);
      add(s.second, s.weight);
    }
  }
  Taps at(std::int64_t i) const {
    Taps taps;
    show(i, taps);
    return taps;
  }
  /// The most positions that an output reads.
  int most() const { return cubic ? 4 : 2; }

  const Resampling& rule;
  std::int64_t out;
  bool cubic;
};

/// An axis whose outputs are asked for again and again: a tile of them or a few more side by side.
class Remembered {
 public:
  explicit Remembered(const UpsampleAxis& axis) : axis_(axis) {}
  /// What `n` outputs from i on read, at most kMost.
  const Taps* from(std::int64_t i, std::int64_t n) {
    if (i < begin_ || i + n > end_) [[unlikely]]
      remember(i);
    return taps_ + (i - begin_);
  }
  const Taps& at(std::int64_t i) { return *from(i, 1); }

  /// The outputs that may read input position `j`, which mostly follows the one asked for before.
  [[gnu::noinline]] IndexRange over(std::int64_t j) {
    if (j == 0 || j == j_ + 1) {
      if (j == 0) over_ = {0, 0};
      while (over_.first < axis_.out && at(over_.first).second < j) ++over_.first;
      while (over_.last < axis_.out && at(over_.last).first <= j) ++over_.last;
    } else if (j != j_) {
      over_ = taper::outputs_over(axis_, j);
    }
    j_ = j;
    return over_;
  }

 private:
  [[gnu::noinline]] void remember(std::int64_t first) {
    begin_ = first;
    end_ = std::min(axis_.out, first + kMost);
    for (std::int64_t i = first; i < end_; ++i) axis_.show(i, taps_[i - first]);
  }

  static constexpr std::int64_t kMost = kUpsampleTile + 8;  // what a tile of inputs sends to twice as many outputs

  const UpsampleAxis axis_;
  Taps taps_[kMost];
  std::int64_t begin_ = 0, end_ = 0;  ///< the outputs that are remembered
  std::int64_t j_ = 0;
  IndexRange over_{0, 0};
};

std::int64_t inputs(const UpsampleParams& p) { return p.axis[0].in * p.axis[1].in * p.axis[2].in; }
std::int64_t outputs(const UpsampleParams& p) { return p.axis[0].out * p.axis[1].out * p.axis[2].out; }

/// What each column of a tile of outputs reads of the input's positions that the tile reads: all from the first to the
/// last or, where these are far apart, one for each reading.
struct ColumnTaps {
  static constexpr std::int64_t kMost = 4 * kUpsampleTile;

  /// Goes to the tile that begins with column `first`, of rows whose elements have this size.
  TAPER_FOR_SIZE void show(const UpsampleAxis& axis, std::int64_t first, std::size_t size) {
    taps = axis.most();
    is_nearest = axis.rule.is_nearest();
    count = std::min(kUpsampleTile, axis.out - first);
    const bool has_pairs = kVectorWidth > 16 && size == sizeof(float) && taps == 2;
    is_doubled = has_pairs && doubles(axis.rule) && count >= 2 * kDoubles;
    is_blended = is_doubled && !is_nearest;
    is_halved = has_pairs && halves(axis.rule);
    from = axis.at(first).first;
    reads_before = first > 0;
    read = axis.at(first + count - 1).second + 1 - from;
    in_order = read <= 4 * count;
    if (!in_order) read = taps * count;
    if (is_doubled || is_halved) return;  // pairs are found without tables
    for (std::int64_t i = 0; i < count; ++i) {
      const Taps its = axis.at(first + i);
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
  bool is_nearest = false, is_doubled = false, is_blended = false, is_halved = false, in_order = true,
       reads_before = false;
  std::int64_t position[kMost];          ///< behind `from`, of what is read unless that is all in order
  std::int32_t place[4][kUpsampleTile];  ///< of what each column reads among that
  double weight[4][kUpsampleTile];
};

/// As many rows of outputs as are worked on at once, at most.
constexpr int kRowsTogether = 4;

/// One tile of a row of outputs, or of `n` of doubled ones, from element `to` of y on, of the plane from element `from`
/// of x on.
using ForwardTile = void(const UpsampleParams& p, const ColumnTaps& columns, const Taps& d, const Taps* h, int n,
                         const void* x, std::int64_t from, void* y, std::int64_t to);

/// Row (d, h) of inputs, from a tile's first position on.
template <class T>
[[gnu::always_inline]] inline const T* row_read(const UpsampleParams& p, const ColumnTaps& columns, std::int64_t d,
                                                std::int64_t h, const T* x) {
  return x + (d * p.axis[1].in + h) * p.axis[2].in + columns.from;
}

/// The rows of inputs that a row of outputs reads.
template <class T>
struct RowsRead {
  [[gnu::always_inline]] RowsRead(const UpsampleParams& p, const ColumnTaps& columns, const Taps& d, const Taps& h,
                                  const T* x, double scale) {
    for (int i = 0; i < d.count; ++i)
      for (int j = 0; j < h.count; ++j, ++count) {
        asm volatile("");  // one or two mostly: no vectors
        rows[count] = row_read(p, columns, d.at[i], h.at[j], x);
        weights[count] = d.weight[i] * h.weight[j] * scale;
      }
  }
  /// sum_r = the sum of weight x at position r over depth and height
  [[gnu::always_inline]] void add_up(const ColumnTaps& columns, double* sum) const {
    const auto total = [&](auto at) __attribute__((always_inline)) {
      auto all = weights[0] * at(rows[0]);
      for (int k = 1; k < count; ++k) all += weights[k] * at(rows[k]);
      return all;
    };
    if (columns.in_order && columns.read >= kDoubles) {
      for (std::int64_t r = 0; r < columns.read; r += kDoubles) {
        const std::int64_t at = std::min(r, columns.read - kDoubles);
        store<double>(total(ElementsAt{at}), sum + at);
      }
    } else {
      for (std::int64_t r = 0; r < columns.read; ++r)
        sum[r] = total(ElementAt{columns.in_order ? r : columns.position[r]});
    }
  }

  const T* rows[8];
  double weights[8];
  int count = 0;
};

/// A tile of `n` rows of blended pairs. All rows are added up first: what was stored a moment ago cannot be loaded in
/// other parts at once.
[[maybe_unused]] void blend_rows(const UpsampleParams& p, const ColumnTaps& columns, const Taps& d, const Taps* h,
                                 int n, const float* x, float* y) {
  constexpr std::int64_t kApart = kUpsampleTile / 2 + 2 + 2;
  double sums[kRowsTogether][kApart];
  for (int i = 0; i < n; ++i) {
    double* const sum = sums[i] + 1;
    RowsRead<float>(p, columns, d, h[i], x, 1).add_up(columns, sum);
    // A tile reads one position before its own and one behind, but where the row ends, whose last element goes on.
    sum[-1] = sum[0], sum[columns.read] = sum[columns.read - 1];
  }
  for (int i = 0; i < n; ++i)
    blend_twice(sums[i] + (columns.reads_before ? 2 : 1), columns.count / 2, y + i * p.axis[2].out);
}

template <class T>
void forward_tile(const UpsampleParams& p, const ColumnTaps& columns, const Taps& d, const Taps* h, int n,
                  const void* all_x, std::int64_t from, void* all_y, std::int64_t to) {
  const T* const x = static_cast<const T*>(all_x) + from;
  T* const y = static_cast<T*>(all_y) + to;
  if constexpr (kDoubling<T>)
    if (columns.is_blended) return blend_rows(p, columns, d, h, n, x, y);
  if (columns.is_nearest) {
    const T* const row = row_read(p, columns, d.at[0], h->at[0], x);
    if constexpr (kDoubling<T>) {
      const std::int64_t pairs = columns.count / 2;
      if (columns.is_doubled && pairs >= kLanes<T>) return copy_twice<Vector<T>>(row, pairs, y);
      if (columns.is_doubled) return copy_twice<AsManyFloats>(row, pairs, y);
    }
    const std::int64_t count = columns.count;
    if (!columns.in_order)
      for (std::int64_t c = 0; c < count; ++c) y[c] = row[columns.position[c]];
    else
#pragma GCC unroll 4
      for (std::int64_t c = 0; c < count; ++c) {
        asm volatile("");  // vectors would be gathered
        y[c] = row[columns.place[0][c]];
      }
    return;
  }
  const bool is_halved = kDoubling<T> && columns.is_halved;
  const RowsRead<T> read(p, columns, d, *h, x, is_halved ? 0.5 : 1);
  double sum[ColumnTaps::kMost + 1];
  sum[ColumnTaps::kMost] = -0.0;  // which readings of weight 0 have, so that they change nothing
  read.add_up(columns, sum);
  if constexpr (kDoubling<T>)
    if (is_halved) return join_pairs(sum, columns.count, true, y, false);
  // y_c = the sum of weight times sum at the places that column c reads
  const auto term = [&](int k, std::int64_t c) { return columns.weight[k][c] * sum[columns.place[k][c]]; };
  for (std::int64_t c = 0; c < columns.count; ++c) {
    asm volatile("");  // vectors would be put together element by element
    double value = term(0, c) + term(1, c);
    if (columns.taps > 2) value += term(2, c) + term(3, c);
    y[c] = static_cast<T>(value);
  }
}

/// dx_j = sum_j, or added to it; sum_j is 0 then.
template <class T>
[[gnu::noinline]] void move_sums(double* sum, std::int64_t n, T* dx, bool add) {
  std::int64_t j = 0;
  if constexpr (kVectorWidth > 16 && sizeof(T) < sizeof(double))
    for (; j + kDoubles <= n && !add; j += kDoubles) {
      const AsManyFloats v = as_floats(load(sum + j));
      std::memcpy(dx + j, &v, sizeof v);
      store<double>(Doubles{}, sum + j);
    }
  for (; j < n; ++j) {
    dx[j] = static_cast<T>(add ? static_cast<double>(dx[j]) + sum[j] : sum[j]);
    sum[j] = 0;
  }
}

/// The weight with which an output reads position `j`.
double weight_of(const Taps& taps, std::int64_t j) {
  double weight = 0;
  for (int k = 0; k < taps.count; ++k) {
    asm volatile("");  // one or two mostly: no vectors
    if (taps.at[k] == j) weight += taps.weight[k];
  }
  return weight;
}

/// Rows with a weight each, a few of which are added up in one pass.
template <class T>
class WeightedRows {
 public:
  /// sum_i += weight * row_i for i < n, sooner or later; the first rows are not added to what is there.
  void add(double weight, const T* row, std::int64_t n, double* sum) {
    weights_[count_] = weight;
    rows_[count_++] = row;
    if (count_ == kTogether) flush(n, sum);
  }
  /// Adds what is left; false if there was nothing.
  bool finish(std::int64_t n, double* sum) {
    if (count_ > 0) flush(n, sum);
    return any_;
  }

 private:
  static constexpr int kTogether = 4;

  [[gnu::noinline]] void flush(std::int64_t n, double* sum) {
    const auto total = [&](auto at) __attribute__((always_inline)) {
      auto all = weights_[0] * at(rows_[0]);
      if (any_) all = at(static_cast<const double*>(sum)) + all;
      for (int k = 1; k < count_; ++k) all += weights_[k] * at(rows_[k]);
      return all;
    };
    std::int64_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) store<double>(total(ElementsAt{i}), sum + i);
    for (; i < n; ++i) sum[i] = total(ElementAt{i});
    any_ = true;
    count_ = 0;
  }

  double weights_[kTogether];
  const T* rows_[kTogether];
  int count_ = 0;
  bool any_ = false;
};

/// sum_i = the sum of weight * dy_i over the rows of outputs that read input row (d, h) of a plane; false if there are
/// none.
template <class T>
bool gather_rows(const UpsampleParams& p, Remembered& depth, Remembered& height, std::int64_t d, std::int64_t h,
                 const T* dy, std::int64_t n, double* sum) {
  const IndexRange over_d = depth.over(d), over_h = height.over(h);
  WeightedRows<T> rows;
  for (std::int64_t i = over_d.first; i < over_d.last; ++i) {
    const double weight_d = weight_of(depth.at(i), d);
    const T* row = dy + (i * p.axis[1].out + over_h.first) * p.axis[2].out;
    for (std::int64_t j = over_h.first; j < over_h.last; ++j, row += p.axis[2].out) {
      const double weight = weight_d * weight_of(height.at(j), h);
      if (weight != 0) rows.add(weight, row, n, sum);
    }
  }
  return rows.finish(n, sum);
}

void forward(const UpsampleParams& p, const void* x, void* y, ForwardTile* tile, std::size_t size) {
  const std::int64_t height = p.axis[1].out, width = p.axis[2].out;
  // y_i = sum of x_j times the weight with which output i reads j, along each axis
  parallel_for(p.planes * p.axis[0].out * height, 4 * width, [&](std::int64_t begin, std::int64_t end) {
    const UpsampleAxis over_depth(p.axis[0], false), over_width(p.axis[2], p.cubic);
    ColumnTaps columns;
    Remembered heights({p.axis[1], p.cubic});
    for (std::int64_t c = 0; c < width; c += kUpsampleTile) {
      columns.show(over_width, c, size);
      const std::int64_t together = columns.is_blended ? kRowsTogether : 1;
      for (std::int64_t unit = begin; unit < end;) {
        // The rows of one place of the depth.
        const std::int64_t slab = unit / height, last = std::min(end, (slab + 1) * height);
        const std::int64_t from = slab / p.axis[0].out * inputs(p);
        const Taps depth = over_depth.at(slab % p.axis[0].out);
        for (std::int64_t h = unit - slab * height; unit < last;) {
          const int n = static_cast<int>(std::min(together, last - unit));
          tile(p, columns, depth, heights.from(h, n), n, x, from, y, unit * width + c);
          unit += n, h += n;
        }
      }
    }
  });
}

}  // namespace

template <class T>
void upsample(const UpsampleParams& p, const T* x, T* y) {
  forward(p, x, y, forward_tile<T>, sizeof(T));
}

template <class T>
void upsample_backward(const UpsampleParams& p, const T* dy, T* dx, bool add) {
  const std::int64_t height = p.axis[1].in, width = p.axis[2].in, rows = p.axis[0].in * height;
  if (p.planes <= 0 || rows <= 0) return;
  const UpsampleAxis over_width(p.axis[2], p.cubic);
  const bool has_pairs = kVectorWidth > 16 && !p.cubic, is_doubled = has_pairs && doubles(p.axis[2]);
  const bool is_halved = kDoubling<T> && has_pairs && !add && halves(p.axis[2]);
  // dx_j = sum of dy_i times the weight with which output i reads j
  parallel_for(p.planes * rows, 4 * (outputs(p) / rows + width), [&](std::int64_t begin, std::int64_t end) {
    // A tile of columns, of which doubled ones are read by twice as many outputs and by one more on either side.
    constexpr std::int64_t kTile = kUpsampleTile / 2, kOutputs = kUpsampleTile + 2;
    constexpr int kBeside = 3;  // what an output reads beside the tile at most
    Remembered columns(over_width), heights({p.axis[1], p.cubic}), depths({p.axis[0], false});
    for (std::int64_t j = 0; j < width; j += kTile) {
      const std::int64_t count = std::min(kTile, width - j), first = taper::outputs_over(over_width, j).first,
                         last = taper::outputs_over(over_width, j + count - 1).last;
      double gathered[kTile + 2 * kBeside];
      std::fill_n(gathered, count + 2 * kBeside, 0.0);
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t plane = unit / rows, row = unit % rows;
        bool is_written = false;
        for (std::int64_t c = first; c < last; c += kOutputs) {
          const std::int64_t n = std::min(kOutputs, last - c);
          double with_ends[1 + kOutputs + 2], *const sum = with_ends + 1;
          if (!gather_rows(p, depths, heights, row / height, row % height, dy + plane * outputs(p) + c, n, sum)) break;
          if (is_doubled) {
            is_written = true;
            // Where the row ends, its last element goes on.
            if (j == 0) sum[-1] = sum[0];
            if (j + count == width) sum[n] = sum[n - 1];
            join_pairs(sum + 2 * j - first, count, p.axis[2].is_nearest(), dx + unit * width + j, add);
            break;
          }
          if constexpr (kDoubling<T>)
            if (is_halved && n >= kDoubles) {
              is_written = true;
              const auto at = [&](std::int64_t i) __attribute__((always_inline)) {
                return as_floats(0.5 * load(sum + i));
              };
              copy_twice<AsManyFloats>(at, n, dx + unit * width + j);
              break;
            }
          // What the gradient of an output sends to each position that it reads.
          const Taps* const taps = columns.from(c, n);
          for (std::int64_t i = 0; i < n; ++i)
#pragma GCC unroll 1
            for (int k = 0; k < taps[i].count; ++k) gathered[taps[i].at[k] - j + kBeside] += taps[i].weight[k] * sum[i];
        }
        if (!is_written) move_sums(gathered + kBeside, count, dx + unit * width + j, add);
      }
    }
  });
}

template void upsample(const UpsampleParams&, const float*, float*);
template void upsample_backward(const UpsampleParams&, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void upsample(const UpsampleParams&, const double*, double*);
template void upsample_backward(const UpsampleParams&, const double*, double*, bool);
#endif

}  // namespace taper::kernels
