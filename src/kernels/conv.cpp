#include "kernels/conv.hpp"

#include <numeric>
#include <utility>

#include "kernels/conv_depthwise.hpp"
#include "kernels/conv_few.hpp"
#include "kernels/conv_flat.hpp"
#include "kernels/conv_geometry.hpp"
#include "kernels/conv_planes.hpp"
#include "kernels/conv_short.hpp"
#include "kernels/conv_slab.hpp"
#include "kernels/conv_terms.hpp"
#include "kernels/conv_turned.hpp"

// All products run on the tiles of `product_tiles.hpp`, which find what they need in the signal, or in a copy made
// block by block that stays in the cache. Nothing of the size of the input times the kernel is ever written.

namespace taper::kernels {

namespace {

/// How often the taps of a dimension take turns: those that reach the same positions of the input are so far apart.
std::int64_t period(const ConvParams& p, int d) { return p.stride[d] / std::gcd(p.stride[d], p.dilation[d]); }

/// dx from dy, for the positions q of the input that tap `first[d]` of each dimension d reaches: those with the
/// remainder r of q by the stride. Tap t reads (q + padding - t * dilation) / stride. No positions if there are none.
TAPER_FOR_SIZE Sweep input_sweep(const ConvParams& p, const std::int64_t (&first)[3]) {
  const Group group(p);
  Sweep s{};
  s.batch = p.batch, s.groups = p.groups, s.rows = group.in, s.channels = group.out;
  s.w_row = taps_of(p), s.w_channel = group.in * s.w_row, s.w_group = group.out * s.w_channel;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t reach = first[d] * p.dilation[d] - p.padding[d],
                       r = reach - floor_div(reach, p.stride[d]) * p.stride[d];
    s.positions[d] = p.in[d] > r ? (p.in[d] - r - 1) / p.stride[d] + 1 : 0;
    s.taps[d] = (p.kernel[d] - 1 - first[d]) / period(p, d) + 1;
    s.kernel[d] = p.kernel[d], s.result[d] = p.in[d];
    s.axis[d] = {p.out[d],
                 1,
                 (r - reach) / p.stride[d],
                 s.taps[d] > 1 ? -(period(p, d) * p.dilation[d] / p.stride[d]) : 0,
                 first[d],
                 period(p, d),
                 r,
                 p.stride[d]};
  }
  s.measure();
  s.lines_only = unit(p, 0) && unit(p, 1);
  return s;
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

/// y[2 l] = x[l] + b for one vector of x; what lies between is written as it was, and nothing beyond the last result.
template <class T, std::size_t... I>
inline void spread_part(const T* x, T b, T* y, std::index_sequence<I...>) {
  constexpr std::size_t n = sizeof...(I);
  typedef T Part __attribute__((vector_size(n * sizeof(T))));
  Part v, low, high;
  std::memcpy(&v, x, sizeof v);
  std::memcpy(&low, y, sizeof low);
  std::memcpy(&high, y + n - 1, sizeof high);
  v += b;
  // Results have even places in `low`, odd ones in `high`, which counts from n - 1.
  low = __builtin_shufflevector(low, v, (I % 2 == 0 ? n + I / 2 : I)...);
  high = __builtin_shufflevector(high, v, (I % 2 != 0 ? n + n / 2 + I / 2 : I)...);
  std::memcpy(y, &low, sizeof low);
  std::memcpy(y + n - 1, &high, sizeof high);
}

/// y[2 l] = x[l] + b for l < n.
template <class T>
void spread_bias_run(const T* x, std::int64_t n, T b, T* y) {
  for_parts<T, kVectorWidth>(
      n,
      [&](std::int64_t l, auto bytes) {
        spread_part(x + l, b, y + 2 * l, std::make_index_sequence<decltype(bytes)::value / sizeof(T)>());
      },
      [&](std::int64_t l) { y[2 * l] = x[l] + b; });
}

/// Where the results of one block of rows go: `y` is its first channel in sample 0; `b` may be null.
template <class T>
struct Target {
  const Sweep& s;
  std::int64_t rows, row;  ///< how many, and their distance in the block
  const T* b;
  T* y;
  bool add;

  /// Stores a run of columns of all rows; `from` is the first of them, `to` where it goes in a channel.
  [[gnu::noinline]] void store(const T* from, std::int64_t n, std::int64_t sample, std::int64_t to,
                               std::int64_t stride) const {
    const std::int64_t channel = s.result_size;
    T* first = y + sample * s.result_sample() + to;
    if (stride <= 2 && !add) {
      for (std::int64_t r = 0; r < rows; ++r)
        (stride == 1 ? add_bias_run<T> : spread_bias_run<T>)(from + r * row, n, b != nullptr ? b[r] : T(0),
                                                             first + r * channel);
      return;
    }
    // y[l * stride] = x[l] + b, or +=
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* result = from + r * row;
      T* line = first + r * channel;
      const T bias = b != nullptr ? b[r] : T(0);
      if (stride == 1)
        for (std::int64_t l = 0; l < n; ++l) line[l] += result[l] + bias;
      else
        for (std::int64_t l = 0; l < n; ++l) line[l * stride] = (add ? line[l * stride] : T(0)) + (result[l] + bias);
    }
  }
  /// Where a position lies in a channel, given the first of a run.
  std::int64_t place(const Run& run) const {
    const auto at = [&](int d, std::int64_t i) { return s.axis[d].to_first + i * s.axis[d].to_step; };
    return at(0, run.d) * s.result[1] * s.result[2] + at(1, run.h) * s.result_line + at(2, run.first);
  }
  /// What a region's results, and those beside them, are stored over.
  Ahead results(const Region& r) const {
    const std::int64_t lines = r.lines * s.axis[1].to_step;
    const T* first = y + r.sample * s.result_sample() + place({r.sample, r.d, r.h, r.w, r.w, 0});
    if (lines > 1 && s.result_line != s.result[2]) return {first, s.result_line, lines, rows * s.result_size};
    return {first, s.result_size, rows, (lines - 1) * s.result_line + r.width * s.axis[2].to_step};
  }
  /// Stores the positions [first, last) of a line.
  void store_line(const T* from, const Run& run) const {
    store(from, run.last - run.first, run.sample, place(run), s.axis[2].to_step);
  }
  /// Stores the columns [j, j + n) of all samples.
  void store_columns(const T* from, std::int64_t j, std::int64_t n) const {
    if (s.contiguous())
      for_plane_runs(j, n, s.position_count(),
                     [&](const Run& run) { store(from + run.at, run.last - run.first, run.sample, run.first, 1); });
    else
      for_runs(locate(j, s.positions), n, s.positions, [&](const Run& run) { store_line(from + run.at, run); });
  }
};

/// Where the results of one block of rows go: those of group `g` from row `i` on.
template <class T>
Target<T> target(const Sweep& s, std::int64_t g, std::int64_t i, std::int64_t rows, std::int64_t row, const T* b, T* y,
                 bool add) {
  const std::int64_t channel = g * s.rows + i;
  return {s, rows, row, b != nullptr ? b + channel : nullptr, y + channel * s.result_size, add};
}

/// Packs what each block needs, one row for each channel and tap.
template <class T>
void run_packed(const Sweep& s, Grid grid, const T* x, const T* w, const T* b, T* y, bool add) {
  const std::int64_t depth = s.channels * s.tap_count();
  // Packing takes time for each element and each line of them.
  grid.work += depth * std::min(grid.column_step, s.batch * s.position_count()) * (2 + 32 / s.positions[2]);
  for_blocks(grid, s.groups, s.rows, s.batch * s.position_count(),
             [&](auto g, auto i, auto rows, auto j, auto columns) {
               const Scratch<T>& own = scratch<T>();
               const std::int64_t row = packed_row<T>(columns);
               const T* weight = w + g * s.w_group + i * s.w_row;
               Terms<T> terms;
               terms.begin(s, nullptr);
               terms.list_results(1, columns, 0);
               const auto operands = [&](std::int64_t k, std::int64_t n) {
                 pack_taps(s, x + g * s.channels * s.signal_size, k, n, j, columns, own.right, row);
                 fill_last_vector(columns, n, own.right, row);
                 terms.list_a(k, n);
                 for (std::int64_t q = 0; q < n; ++q) terms.b[q] = q * row;
                 return ListedOperands<T>{weight,  s.w_row, terms.a,      terms.a_step, own.right,
                                          terms.b, row,     terms.result, terms.result, terms.count};
               };
               sum_block<T>(rows, columns, depth, operands, own.result, kBlockColumns, false);
               target(s, g, i, rows, kBlockColumns, b, y, add).store_columns(own.result, j, columns);
             });
}

/// Where a region begins in a line of the signal if whole vectors of it find all their elements there, which a few taps
/// may read from the second-level cache: more taps gain by a copy in the first-level one, and so do narrow vectors.
/// Null otherwise.
template <class T>
const T* within_line(const Sweep& s, const Region& r, const T* x) {
  constexpr std::int64_t most_taps = kVectorWidth == 64 ? 4 : 0;
  if (s.tap_count() != s.taps[2] || s.taps[2] > most_taps || r.lines > 1 || r.width % kLanes<T> != 0) return nullptr;
  const Axis& axis = s.axis[2];
  const std::int64_t d = s.axis[0].element(r.d, 0), h = s.axis[1].element(r.h, 0), last = r.w + r.width - 1;
  const auto inside = [&](std::int64_t t) { return axis.element(r.w, t) >= 0 && axis.element(last, t) >= 0; };
  if (axis.stride != 1 || d < 0 || h < 0 || !inside(0) || !inside(s.taps[2] - 1)) return nullptr;
  return x + d * s.axis[1].length * axis.length + h * s.signal_line + r.w;
}

/// Sweeps whose blocks have slabs, of the same regions and into the same result.
struct Sweeps {
  static constexpr int kMost = 4;
  Sweep sweep[kMost];
  Slab slab[kMost];
  int count;
  bool shared;  ///< a region has one slab for all

  /// Gives all sweeps the slab that holds what each of them needs, if it fits `room` elements and all terms one step,
  /// and saves time. Blocks have `rows` rows.
  TAPER_FOR_SIZE void share(std::int64_t rows, std::int64_t lanes, std::int64_t room) {
    shared = false;
    Slab one = slab[0];
    std::int64_t most = 0, taps = 0;
    bool spread = false;  // results beside each other need lines as far apart as in the slab
    for (int i = 0; i < count; ++i) {
      if (sweep[i].axis[0].stride * sweep[i].axis[1].stride * sweep[i].axis[2].stride > 1) return;
      spread = spread || !slab[i].own_vectors(lanes);
      taps += sweep[i].tap_count();
      most = std::max(most, sweep[i].channels * sweep[i].tap_count());
      for (int d = 0; d < 3; ++d) {
        const std::int64_t end = std::max(one.low[d] + one.extent[d], slab[i].low[d] + slab[i].extent[d]);
        one.low[d] = std::min(one.low[d], slab[i].low[d]);
        one.extent[d] = end - one.low[d];
      }
    }
    if (count == 1 || most > step_of(most)) return;
    const std::int64_t height = sweep[0].positions[1], before = one.result_line, all_lines = one.lines;
    const auto fits = [&] {
      one.volume = one.extent[0] * one.extent[1] * one.extent[2];
      return one.volume * sweep[0].channels + lanes <= room;
    };
    // Fewer lines are copied more often, but once for all sweeps.
    while (!fits()) {
      const std::int64_t fewer = ceil_div(height, ceil_div(height, one.lines) + 1);
      if (fewer == one.lines || fewer * one.width < kBlockColumns / 2) return;
      one.extent[1] -= one.lines - fewer;
      one.lines = fewer;
    }
    if (spread) one.result_line = one.extent[2], one.direct = one.overlap = false;
    // Times as in `FastestSlab`: of lines that are not copied again, and of more results for which there is no use.
    const std::int64_t line = rows * taps, all = one.lines * one.result_line * line / lanes;
    const std::int64_t more = one.lines * (one.result_line - before) * line / lanes;
    const std::int64_t saved = (count - 1) * one.extent[0] * one.extent[1] * (8 + 4 * ceil_div(one.extent[2], lanes));
    if ((spread || one.lines < all_lines) && 8 * (saved - more) < all) return;
    one.row = ceil_div(one.columns(), lanes) * lanes;
    if (one.row > kSlabColumns || rows * one.row > kResultSize) return;
    std::fill_n(slab, count, one);
    shared = true;
  }
};

/// Sums of sweeps with slabs: each unit is a region's results of some rows.
template <class T>
struct SlabSums {
  const Sweeps& all;
  std::int64_t row_step, bands, regions;  ///< rows of a unit; units of a region; regions of all samples
  const T *x, *w, *b;
  T* y;
  bool add;

  std::int64_t units() const { return all.sweep[0].groups * bands * regions; }

  /// The signal that the region `r` of unit `index` reads.
  const T* signal_of(const Sweep& s, std::int64_t index, const Region& r) const {
    return x + r.sample * s.signal_sample() + index / (bands * regions) * s.channels * s.signal_size;
  }
  /// Sums one sweep of unit `index`; `last` if nobody goes on with the next, `filled` once the slab that sweeps share
  /// is.
  TAPER_FOR_SIZE void sum(int which, std::int64_t index, bool last, bool& filled, Terms<T>& terms) const {
    const Scratch<T>& own = scratch<T>();
    const Sweep& s = all.sweep[which];
    const Slab& slab = all.slab[which];
    const std::int64_t taps = s.tap_count(), depth = s.channels * taps;
    const std::int64_t g = index / (bands * regions), i = index / regions % bands * row_step;
    const std::int64_t rows = std::min(row_step, s.rows - i);
    const Region area = region(s, slab, index % regions), next = region(s, slab, (index + 1) % regions);
    const T *signal = signal_of(s, index, area), *next_signal = last ? nullptr : signal_of(s, index + 1, next);
    const T* weight = w + g * s.w_group + i * s.w_row;
    const T* direct = within_line(s, area, signal);
    const Target<T> to = target(s, g, i, rows, slab.row, b, y, add);
    Ahead ahead[2];
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      const std::int64_t c = k / taps, end = (k + n - 1) / taps + 1;
      if (direct == nullptr && !(filled && all.shared)) fill_slab(s, slab, area, signal, c, end - c, own.right);
      filled = filled || direct == nullptr;
      terms.list_a(k, n);
      terms.list_b(k, n, direct != nullptr);
      ListedOperands<T> pair{
          weight,       s.w_row,      terms.a,      terms.a_step, direct != nullptr ? direct : own.right, terms.b,
          terms.b_step, terms.vector, terms.result, terms.count,  slab.direct && k == 0 ? to.b : nullptr};
      ahead[0] = k + n < depth
                     ? source(s, slab, area, signal + end * s.signal_size, std::min(end - c, s.channels - end))
                 : last ? Ahead{}
                        : source(s, slab, next, next_signal, std::min(end, s.channels));
      ahead[1] = k + n == depth && which == 0 && !slab.direct ? to.results(area) : Ahead{};
      pair.ahead = ahead;
      return pair;
    };
    const std::int64_t columns = (area.lines - 1) * slab.result_line + area.width;
    T* c = own.result;
    std::int64_t row = slab.row;
    if (slab.direct) {
      terms.list_results(area.lines, area.width, s.axis[1].to_step * s.result_line, slab.overlap);
      c = to.y + area.sample * s.result_sample() + to.place({area.sample, area.d, area.h, area.w, area.w, 0});
      row = s.result_size;
    } else {
      terms.list_results(1, columns, 0);
    }
    sum_block<T>(rows, columns, depth, operands, c, row, slab.direct && add, slab.row, step_of(depth));
    if (slab.direct) return;
    for (std::int64_t line = 0; line < area.lines; ++line)
      to.store_line(own.result + line * slab.result_line,
                    {area.sample, area.d, area.h + line, area.w, area.w + area.width, 0});
  }
};

/// Sums sweeps one after another in each region, whose results lie between each other.
template <class T>
TAPER_FOR_SIZE void run_slabs(const Sweeps& all, std::int64_t row_step, const T* x, const T* w, const T* b, T* y,
                              bool add) {
  const SlabSums<T> sums{
      all, row_step, ceil_div(all.sweep[0].rows, row_step), region_count(all.sweep[0], all.slab[0]), x, w, b, y, add};
  std::int64_t depth = 0;
  for (int i = 0; i < all.count; ++i) depth += all.sweep[i].channels * all.sweep[i].tap_count();
  parallel_for(sums.units(), parallel_work(row_step * all.slab[0].columns(), depth),
               [&](std::int64_t first, std::int64_t last) {
                 Terms<T> terms[Sweeps::kMost];
                 for (int i = 0; i < all.count; ++i) {
                   terms[i].begin(all.sweep[i], &all.slab[i]);
                   all.slab[i].list_vectors(kLanes<T>, terms[i].vector);
                 }
                 for (std::int64_t index = first; index < last; ++index) {
                   bool filled = false;
                   for (int i = 0; i < all.count; ++i)
                     sums.sum(i, index, i + 1 < all.count || index + 1 == last, filled, terms[i]);
                 }
               });
}

/// y = the sum of each sweep plus `b`, which may be null, or += with `add`.
template <class T>
TAPER_FOR_SIZE void run(const Sweep* sweeps, int count, const T* x, const T* w, const T* b, T* y, bool add) {
  Sweeps together;
  together.count = 0;
  std::int64_t row_step = 0;
  const auto run_together = [&] {
    if (together.count == 0) return;
    together.share(row_step, kLanes<T>, kRightSize<T>);
    run_slabs(together, row_step, x, w, b, y, add);
    together.count = 0;
  };
  for (int i = 0; i < count; ++i) {
    const Sweep& s = sweeps[i];
    const std::int64_t columns = s.batch * s.position_count();
    if (s.rows <= 0 || columns <= 0) continue;
    const Grid grid = cut(s.rows, columns, s.channels * s.tap_count(), s.groups);
    const Sweep lines = s.lines_only ? s.stacked() : s;
    Slab slab = plan_slab<T>(lines, grid.row_step);
    if (!slab.use) {
      run_packed(s, grid, x, w, b, y, add);
      continue;
    }
    // Results that are stored once may as well be stored twice.
    const std::int64_t depth = s.channels * s.tap_count();
    slab.overlap =
        slab.direct && !add && slab.width == lines.positions[2] && slab.width >= kLanes<T> && depth <= step_of(depth);
    const Sweep& first = together.sweep[0];
    const auto same = [&](int d) { return first.positions[d] == lines.positions[d]; };
    if (together.count > 0 &&
        (row_step != grid.row_step || !same(0) || !same(1) || !same(2) || together.slab[0].lines != slab.lines ||
         together.slab[0].width != slab.width || together.count == Sweeps::kMost))
      run_together();
    row_step = grid.row_step;
    together.sweep[together.count] = lines;
    together.slab[together.count++] = slab;
  }
  run_together();
}

}  // namespace

template <class T>
void conv_forward(const ConvParams& params, const T* x, const T* w, const T* b, T* y, bool add) {
  const ConvParams p = merged(params);
  if (p.in_channels == p.groups && flat_sum(forward_sweep(p), x, w, b, y, add)) return;
  if (!add && short_forward(p, x, w, b, y)) return;
  const std::int64_t out = outputs(p);
  if (p.batch <= 0 || p.out_channels <= 0 || out <= 0) return;
  // y[n, o, i] = b[o] + sum over (c, t) of w[o, c, t] x[n, c, i s + t d - pad]
  if (p.in_channels > 0 && taps_of(p) > 0) {
    const Sweep s = forward_sweep(p);
    if (!depthwise_sum(&s, 1, x, w, b, y, add) && !few_sum(&s, 1, x, w, b, y, add) &&
        !turned_sum(&s, 1, x, w, b, y, add))
      run(&s, 1, x, w, b, y, add);
    return;
  }
  for (std::int64_t i = 0; i < p.batch * p.out_channels && !add; ++i)
    fill(out, b != nullptr ? b[i % p.out_channels] : T(0), y + i * out);
}

template <class T>
void conv_backward_input(const ConvParams& params, const T* dy, const T* w, T* dx, bool add, const T* b) {
  const ConvParams p = merged(params);
  if (p.batch <= 0 || p.in_channels <= 0 || inputs(p) <= 0) return;
  const bool nothing = p.out_channels <= 0 || outputs(p) <= 0 || taps_of(p) <= 0;
  std::int64_t turns[3];
  bool complete = !nothing;
  for (int d = 0; d < 3; ++d) {
    turns[d] = std::min(p.kernel[d], period(p, d));
    complete = complete && turns[d] == p.stride[d];
  }
  const std::int64_t count = turns[0] * turns[1] * turns[2];
  const auto sweep = [&](std::int64_t i) {
    return input_sweep(p, {i / (turns[1] * turns[2]), i / turns[2] % turns[1], i % turns[2]});
  };
  Sweep sweeps[kMostTurns];
  const bool is_listed = sizeof(T) == sizeof(float) && !nothing && count <= kMostTurns;
  for (std::int64_t i = 0; is_listed && i < count; ++i) sweeps[i] = sweep(i);
  const int listed = static_cast<int>(count);
  if (is_listed && count == 1 && flat_sum(sweeps[0], dy, w, b, dx, add)) return;
  if (is_listed && (depthwise_sum(sweeps, listed, dy, w, b, dx, add) || few_sum(sweeps, listed, dy, w, b, dx, add) ||
                    turned_sum(sweeps, listed, dy, w, b, dx, add)))
    return;
  if (b != nullptr && (!complete || p.stride[2] == 1)) {
    // dx[n, c, q] = b[c], to which the products are added
    const std::int64_t positions = inputs(p), channels = p.in_channels;
    parallel_for(p.batch * channels, positions, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t plane = first; plane < last; ++plane)
        fill(positions, b[plane % channels], dx + plane * positions);
    });
    b = nullptr;
    add = true;
  }
  if (b == nullptr && plane_backward_input(p, dy, w, dx, add)) return;
  if (!complete && !add) fill(p.batch * p.in_channels * inputs(p), T(0), dx);
  if (nothing) return;
  // dx[n, c, q] = sum over (o, t) of w[o, c, t] dy[n, o, i], i s = q + pad - t d
  for (std::int64_t first = 0; first < count; first += Sweeps::kMost) {
    const std::int64_t some = std::min<std::int64_t>(Sweeps::kMost, count - first);
    for (std::int64_t i = 0; !is_listed && i < some; ++i) sweeps[i] = sweep(first + i);
    run(sweeps + (is_listed ? first : 0), static_cast<int>(some), dy, w, b, dx, add);
  }
}

template void conv_forward(const ConvParams&, const float*, const float*, const float*, float*, bool);
template void conv_backward_input(const ConvParams&, const float*, const float*, float*, bool, const float*);
#ifndef TAPER_ONLY_FLOAT32
template void conv_forward(const ConvParams&, const double*, const double*, const double*, double*, bool);
template void conv_backward_input(const ConvParams&, const double*, const double*, double*, bool, const double*);
#endif
}  // namespace taper::kernels
