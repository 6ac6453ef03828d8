#include <numeric>
#include <utility>

#include "kernels/conv.hpp"
#include "kernels/conv_flat.hpp"
#include "kernels/conv_geometry.hpp"
#include "kernels/conv_short.hpp"
#include "kernels/conv_slab.hpp"
#include "kernels/lanes.hpp"
#include "kernels/sum_row.hpp"

// The gradient of the weight: dw[o, c, t] = sum over samples n and positions i of dy[n, o, i] x[n, c, i s + t d - pad].
// Its sums run over the positions, region by region, and every tap finds its elements in the region's slab.

namespace taper::kernels {

namespace {

/// What one block of the gradient is: channels [c, c + rows) of the input and [o, o + columns) of the output of a
/// group, taps [t, t + taps).
struct WeightBlock {
  std::int64_t group, c, rows, o, columns, t, taps;
};

/// What regions and their slabs are limited to.
struct RegionLimits {
  std::int64_t positions, vectors;  ///< of a region, in vectors of `lanes` positions of a line
  std::int64_t lanes, room;         ///< elements of the slabs of all channels together
};

/// A slab for `channels` channels; the positions take `step` elements of its grids.
TAPER_FOR_SIZE Slab plan_weight_slab(const Sweep& s, const std::int64_t (&step)[3], std::int64_t channels,
                                     const RegionLimits& most) {
  Slab slab{};
  std::copy_n(step, 3, slab.step);
  const Reach reach = find_reach(s, slab);
  if (!reach.fits) return slab;
  // Parts of a line are whole vectors.
  const std::int64_t parts = ceil_div(s.positions[2], std::min(most.positions / most.lanes, most.vectors) * most.lanes);
  slab.width = ceil_div(ceil_div(s.positions[2], parts), most.lanes) * most.lanes;
  slab.width = std::min(slab.width, s.positions[2]);
  const std::int64_t in_line = ceil_div(slab.width, most.lanes);
  slab.lines =
      std::clamp<std::int64_t>(std::min(most.positions / slab.width, most.vectors / in_line), 1, s.positions[1]);
  // As many in each region, of which threads take as many.
  slab.lines = ceil_div(s.positions[1], ceil_div(s.positions[1], slab.lines));
  for (;;) {
    slab.extent[0] = 1 + reach.span[0], slab.extent[1] = 1 + (slab.lines - 1) * step[1] + reach.span[1];
    slab.extent[2] = 1 + (slab.width - 1) * step[2] + reach.span[2];
    if (s.axis[2].stride == 2) slab.extent[2] = ceil_div(slab.extent[2], most.lanes) * most.lanes;  // are filled faster
    const std::int64_t grid = slab.extent[0] * slab.extent[1] * slab.extent[2];
    slab.volume = grid * reach.grids;
    slab.use = grid <= most.room && slab.volume * channels + most.lanes <= most.room;
    if (slab.use || (slab.lines == 1 && slab.width <= most.lanes)) return slab;
    if (slab.lines > 1)
      slab.lines = (slab.lines + 1) / 2;
    else
      slab.width = ceil_div(slab.width, 2 * most.lanes) * most.lanes;
  }
}

/// Where the sums of a block lie: that of channels o and c and tap t at o * channel + c * row + t * tap.
struct BlockSteps {
  std::int64_t channel, row, tap;
};

/// dw = the sums of a block, or += with `add`.
template <class T>
void store_block(const Sweep& s, const WeightBlock& b, const T* sums, const BlockSteps& step, T* dw, bool add) {
  // One matrix, to be turned, where its rows lie in dw as they do in the block.
  if (!add && step.channel == 1 && b.taps == s.w_channel && step.row == b.taps * step.tap)
    return pack_transposed(sums, step.tap, b.rows * b.taps, b.columns,
                           dw + b.group * s.w_group + b.o * s.w_row + b.c * s.w_channel, s.w_row, false);
  for (std::int64_t o = 0; o < b.columns; ++o)
    for (std::int64_t c = 0; c < b.rows; ++c) {
      T* to = dw + b.group * s.w_group + (b.o + o) * s.w_row + (b.c + c) * s.w_channel + b.t;
      const T* from = sums + o * step.channel + c * step.row;
      for (std::int64_t t = 0; t < b.taps; ++t) to[t] = (add ? to[t] : T(0)) + from[t * step.tap];
    }
}

/// Regions [first, last) of the signal and of dy.
struct Regions {
  std::int64_t first, last;
};

/// The first element of a region in channel `o` of dy.
template <class T>
const T* region_of(const Sweep& s, const Region& r, std::int64_t o, const T* dy) {
  return dy + r.sample * s.result_sample() + o * s.result_size + r.d * s.result[1] * s.result[2] + r.h * s.result_line +
         r.w;
}

/// The channels of a block of the signal, in the sample of a region.
template <class T>
const T* signal_of(const Sweep& s, const Region& r, const WeightBlock& b, const T* x) {
  return x + r.sample * s.signal_sample() + (b.group * s.channels + b.c) * s.signal_size;
}

/// What `columns` channels of dy in a region are packed from.
template <class T>
Ahead gradient_of(const Sweep& s, const Region& r, std::int64_t columns, const T* from) {
  if (r.lines > 1 && s.result_line != s.result[2]) return {from, s.result_line, r.lines, columns * s.result_size};
  return {from, s.result_size, columns, (r.lines - 1) * s.result_line + r.width};
}

/// Whether every position finds its element of the signal where a step for each position before it leads.
bool is_pointwise(const Sweep& s, const Slab& slab) {
  for (int d = 0; d < 3; ++d)
    if (s.taps[d] != 1 || s.axis[d].shift != 0 || s.axis[d].length <= (s.positions[d] - 1) * slab.step[d]) return false;
  return true;
}

/// How the sums of a block lie that has the channels of the output along the vectors.
template <class T>
BlockSteps product_steps(const WeightBlock& b) {
  const std::int64_t row = ceil_div(b.columns, kLanes<T>) * kLanes<T>;
  return {1, b.taps * row, row};
}

/// The sums of a block over some regions with the channels of the output along the vectors: one product for each tap.
template <class T>
void sum_products(const Sweep& s, const Slab& slab, const WeightBlock& b, const Regions& regions, const T* dy,
                  const T* x, T* y) {
  const Scratch<T>& own = scratch<T>();
  const BlockSteps steps = product_steps<T>(b);
  const std::int64_t row = steps.tap, dy_row = packed_row<T>(row), size = b.taps * b.rows * row;
  std::int64_t signal_term[kDeepBlock], dy_term[kDeepBlock], vector[kBlockColumns / kLanes<T>];
  int count[kBlockColumns / kLanes<T>];
  for (std::int64_t v = 0; v * kLanes<T> < row; ++v) vector[v] = v * kLanes<T>, count[v] = kLanes<T>;
  for (std::int64_t k = 0; k < kDeepBlock; ++k) dy_term[k] = k * dy_row;
  const bool pointwise = is_pointwise(s, slab);
  const std::int64_t line = pointwise ? s.signal_line : slab.extent[2];
  std::int64_t terms = 0;  // in y
  bool joined = false;     // earlier ones are in `sums`
  const auto join = [&] {
    // sums[i] = (joined ? sums[i] : 0) + y[i]
    for (std::int64_t i = 0; i < size; ++i) own.sums[i] = (joined ? own.sums[i] : 0) + static_cast<double>(y[i]);
    joined = true;
    terms = 0;
  };
  Region next = region(s, slab, regions.first);
  for (std::int64_t index = regions.first; index < regions.last; ++index) {
    const Region r = next;
    const std::int64_t n = r.lines * r.width;
    if (sizeof(T) == sizeof(float) && terms + n > kLongSum) join();
    const T* signal = signal_of(s, r, b, x);
    if (pointwise)
      signal += (r.d * slab.step[0] * s.axis[1].length + r.h * slab.step[1]) * s.signal_line + r.w * slab.step[2];
    else
      fill_slab(s, slab, r, signal, 0, b.rows, own.left);
    const T* from = region_of(s, r, b.group * s.rows + b.o, dy);
    // Whole lines lie one after another.
    const std::int64_t packed = r.width == s.result_line ? n : r.width;
    for (std::int64_t k = 0, h = 0; k < n; k += packed, ++h)
      pack_transposed(from + h * s.result_line, s.result_size, b.columns, packed, own.right + k * dy_row, dy_row);
    for (std::int64_t h = 0, k = 0; h < r.lines; ++h)
      for (std::int64_t l = 0; l < r.width; ++l) signal_term[k++] = h * slab.step[1] * line + l * slab.step[2];
    ListedOperands<T> pair{
        signal, pointwise ? s.signal_size : slab.volume, signal_term, 0, own.right, dy_term, dy_row, vector, vector,
        count};
    Ahead ahead[3] = {};  // of what is copied, of what is turned, and none
    if (index + 1 < regions.last) {
      next = region(s, slab, index + 1);
      ahead[0] = source(s, slab, next, signal_of(s, next, b, x), b.rows);
      ahead[1] = gradient_of(s, next, b.columns, region_of(s, next, b.group * s.rows + b.o, dy));
    }
    Place tap = locate(b.t, s.taps);
    // y[c, t, o] = sum over the positions k of the region of slab[c, k + t] dy[k, o], or +=
    for (std::int64_t t = 0; t < b.taps; ++t, step(tap, s.taps)) {
      if (!pointwise) pair.a = own.left + slab.element(s, tap);
      const Ahead both[2] = {ahead[std::min<std::int64_t>(t, 2)], ahead[b.taps > 1 ? 2 : 1]};
      pair.ahead = both;
      multiply_block<T>(b.rows, row, n, pair, y + t * steps.tap, steps.row, terms > 0);
    }
    terms += n;
  }
  if (!joined) return;
  join();
  for (std::int64_t i = 0; i < size; ++i) y[i] = static_cast<T>(own.sums[i]);
}

/// How the sums of a block lie that has the positions along the vectors.
BlockSteps line_steps(const WeightBlock& b) { return {b.rows * b.taps, b.taps, 1}; }

/// The sums of a block over some regions with the positions along the vectors, for few channels.
template <class T>
void sum_lines(const Sweep& s, const Slab& slab, const WeightBlock& b, const Regions& regions, const T* dy, const T* x,
               T* y) {
  const Scratch<T>& own = scratch<T>();
  const std::int64_t columns = b.rows * b.taps;
  std::int64_t element[kResultSize / kLanes<T>];
  Place tap = locate(b.t, s.taps);
  for (std::int64_t t = 0; t < b.taps; ++t, step(tap, s.taps)) {
    const std::int64_t first = slab.element(s, tap);
    for (std::int64_t c = 0; c < b.rows; ++c) element[c * b.taps + t] = first + c * slab.volume;
  }
  for (std::int64_t index = regions.first; index < regions.last; ++index) {
    const Region r = region(s, slab, index);
    fill_slab(s, slab, r, signal_of(s, r, b, x), 0, b.rows, own.left);
    const std::int64_t done = index - regions.first, chain = done % kChain<T>;
    multiply_lines<T>(b.columns, columns,
                      {region_of(s, r, b.group * s.rows + b.o, dy), s.result_size, s.result_line, own.left, element,
                       slab.extent[2], r.lines, r.width},
                      own.part, chain > 0);
    if (chain + 1 < kChain<T> && index + 1 < regions.last) continue;
    // sums[o, (c, t)] += the elements of its vector
    for (std::int64_t j = 0; j < b.columns * columns; ++j) {
      const T* const part = own.part + j * kLanes<T>;
      own.sums[j] = (done < kChain<T> ? 0 : own.sums[j]) + fold_row<1>(Lanes<kLanes<T>>::load(part), part, 0).v;
    }
  }
  for (std::int64_t j = 0; j < b.columns * columns; ++j) y[j] = static_cast<T>(own.sums[j]);
}

/// The blocks of a gradient.
struct WeightGrid {
  std::int64_t rows, columns, taps;  ///< of a block
  std::int64_t row_units, column_units, tap_units;

  WeightGrid(const Sweep& s, std::int64_t row_step, std::int64_t column_step, std::int64_t most_taps)
      : rows(row_step),
        columns(column_step),
        row_units(ceil_div(s.channels, row_step)),
        column_units(ceil_div(s.rows, column_step)) {
    const std::int64_t all = s.tap_count(), parts = ceil_div(all, std::max<std::int64_t>(most_taps, 1));
    taps = ceil_div(all, parts);
    tap_units = ceil_div(all, taps);
  }
  std::int64_t blocks(const Sweep& s) const { return s.groups * row_units * column_units * tap_units; }
  WeightBlock block(const Sweep& s, std::int64_t unit) const {
    const std::int64_t t = unit % tap_units * taps, o = unit / tap_units % column_units * columns,
                       c = unit / tap_units / column_units % row_units * rows;
    return {unit / tap_units / column_units / row_units,
            c,
            std::min(rows, s.channels - c),
            o,
            std::min(columns, s.rows - o),
            t,
            std::min(taps, s.tap_count() - t)};
  }
};

/// How the blocks of a gradient are summed, and how their sums lie.
template <class T>
struct BlockSums {
  void (*sum)(const Sweep&, const Slab&, const WeightBlock&, const Regions&, const T* dy, const T* x, T* y);
  BlockSteps (*steps)(const WeightBlock&);
};

/// Products that are worth a thread, and the positions that are: joining a slice takes as long as a few products.
constexpr double kUnitProducts = 1 << 18;
constexpr std::int64_t kSliceDepth = 256;

/// Sums the blocks of a gradient. Where they are too few for several threads, each is summed in slices of the regions,
/// which are joined in double.
template <class T>
void sum_blocks(const Sweep& s, const Slab& slab, const WeightGrid& grid, std::int64_t depth, const BlockSums<T>& of,
                const T* dy, const T* x, T* dw, bool add) {
  constexpr std::int64_t most = 16;
  static_assert(most * kResultSize <= kBlocksTogether * kPanelsSize);
  const std::int64_t blocks = grid.blocks(s), regions = region_count(s, slab),
                     size = grid.rows * grid.columns * grid.taps;
  const double units = std::min(double(most), double(blocks) * double(size) * double(depth) / kUnitProducts);
  std::int64_t slices = std::max<std::int64_t>(1, static_cast<std::int64_t>(units) / blocks);
  // As many for each of two or four threads.
  if (slices > 1) slices = std::min(ceil_div(slices, 4) * 4, most / blocks);
  slices = std::max<std::int64_t>(1, std::min({slices, regions, depth / kSliceDepth}));
  const std::int64_t room = ceil_div(grid.columns, kLanes<T>) * kLanes<T> * grid.rows * grid.taps;
  T* const slots = scratch<T>().panels;
  parallel_for(blocks * slices, parallel_work(size, ceil_div(depth, slices)),
               [=, &s, &slab, &grid](std::int64_t first, std::int64_t last) {
                 for (std::int64_t unit = first; unit < last; ++unit) {
                   const WeightBlock block = grid.block(s, unit / slices);
                   const std::int64_t slice = unit % slices;
                   T* y = slices > 1 ? slots + unit * room : scratch<T>().result;
                   of.sum(s, slab, block, {slice * regions / slices, (slice + 1) * regions / slices}, dy, x, y);
                   if (slices == 1) store_block(s, block, y, of.steps(block), dw, add);
                 }
               });
  if (slices == 1) return;
  double* const sums = scratch<T>().sums;
  for (std::int64_t unit = 0; unit < blocks; ++unit) {
    T* y = slots + unit * slices * room;
    // y[i] = sum over the slices of their i-th sums
    for (std::int64_t i = 0; i < room; ++i) sums[i] = static_cast<double>(y[i]);
    for (std::int64_t slice = 1; slice < slices; ++slice)
      for (std::int64_t i = 0; i < room; ++i) sums[i] += static_cast<double>(y[slice * room + i]);
    for (std::int64_t i = 0; i < room; ++i) y[i] = static_cast<T>(sums[i]);
    const WeightBlock block = grid.block(s, unit);
    store_block(s, block, y, of.steps(block), dw, add);
  }
}

/// Blocks with all taps if they fit, whose operands cost least: the channels of the input are copied once for each
/// block beside another, those of the output turned once for each below another, and tiles of one vector load about as
/// much as tiles of two. A position takes `strides` elements of the signal.
template <class T>
TAPER_FOR_SIZE WeightGrid product_grid(const Sweep& s, std::int64_t strides, std::int64_t depth) {
  constexpr std::int64_t lanes = kLanes<T>;
  const std::int64_t taps = s.tap_count();
  // Times of an element, in those of a product of vectors.
  const double copy = 0.25 * double(strides), turn = 0.5, single = 0.4;
  const auto step = [](std::int64_t n, std::int64_t most) { return ceil_div(n, ceil_div(n, most)); };
  double least = 0;
  std::int64_t best_rows = 0, best_columns = 0;
  for (std::int64_t most = lanes; most <= kBlockColumns; most += lanes) {
    const std::int64_t columns = std::min(s.rows, ceil_div(step(s.rows, most), lanes) * lanes);
    const std::int64_t row = ceil_div(columns, lanes) * lanes;
    const std::int64_t rows = step(s.channels, std::clamp<std::int64_t>(kResultSize / (row * taps), 12, kBlockRows));
    const std::int64_t vectors = ceil_div(s.rows, columns) * (row / lanes);
    const double time = double(ceil_div(s.rows, columns) * s.channels) * copy +
                        double(ceil_div(s.channels, rows) * s.rows) * turn +
                        (row == lanes ? double(s.channels * taps * vectors) * single : 0);
    if (best_rows > 0 && time >= least) continue;
    least = time, best_rows = rows, best_columns = columns;
  }
  // Where there are too few positions for slices, several threads share the channels.
  constexpr std::int64_t fewest = 12;
  const double products = double(s.channels * taps) * double(s.rows * depth);
  const bool is_shared = s.groups == 1 && depth < 2 * kSliceDepth && products >= 2 * kUnitProducts;
  if (is_shared && best_rows == s.channels && best_columns == s.rows && best_rows >= 2 * fewest)
    best_rows = ceil_div(best_rows, 2);
  return {s, best_rows, best_columns, kResultSize / (best_rows * (ceil_div(best_columns, lanes) * lanes))};
}

/// The gradient by slabs; false if the signal reaches too far for them.
template <class T>
TAPER_FOR_SIZE bool slab_gradient(Sweep s, std::int64_t depth, const T* dy, const T* x, T* dw, bool add) {
  if (s.rows * 2 < kLanes<T> || s.channels <= 2) {
    // Positions along the vectors, where channels would leave most of a vector empty.
    constexpr std::int64_t pairs = kResultSize / kLanes<T>;
    const std::int64_t taps = std::min(s.tap_count(), pairs);
    const std::int64_t channels = std::clamp<std::int64_t>(pairs / (taps * std::min<std::int64_t>(s.rows, 6)), 1,
                                                           std::min<std::int64_t>(s.channels, 16));
    const std::int64_t rows = std::clamp<std::int64_t>(pairs / (taps * channels) / 6 * 6, 1, s.rows);
    const Slab slab = plan_weight_slab(s, {1, 1, 1}, channels, {1024, 64, kLanes<T>, kLeftSize<T>});
    if (!slab.use) return false;
    sum_blocks<T>(s, slab, {s, channels, rows, pairs / (channels * rows)}, depth, {sum_lines<T>, line_steps}, dy, x, dw,
                  add);
    return true;
  }
  // Products take the elements of the signal one by one, wherever they lie.
  std::int64_t step[3];
  for (int d = 0; d < 3; ++d) step[d] = std::exchange(s.axis[d].stride, 1);
  const WeightGrid grid = product_grid<T>(s, step[0] * step[1] * step[2], depth);
  const std::int64_t positions = std::min(kDeepBlock, kRightSize<T> / packed_row<T>(grid.columns));
  const Slab slab = plan_weight_slab(s, step, grid.rows, {positions, kDeepBlock, kLanes<T>, kLeftSize<T>});
  if (!slab.use) return false;
  sum_blocks<T>(s, slab, grid, depth, {sum_products<T>, product_steps<T>}, dy, x, dw, add);
  return true;
}

/// The gradient by packing what each tap finds, for signals of any reach.
template <class T>
TAPER_FOR_SIZE void packed_gradient(const ConvParams& p, const Sweep& sweep, const T* dy, const T* x, T* dw, bool add) {
  const std::int64_t in = inputs(p), out = outputs(p);
  const Group group(p);
  const std::int64_t terms = group.in * taps_of(p), depth = p.batch * out;
  // Channels of the output run along the vectors, or positions if the channels would leave most of a vector empty.
  const bool few = group.out * 2 < kLanes<T>;
  const Grid grid = cut(terms, group.out, depth, p.groups);
  // dw[o, (c, t)] = sum over (n, i) of x[n, c, i s + t d - pad] dy[n, o, i], transposed
  for_blocks(grid, p.groups, terms, group.out, [&](auto g, auto i, auto rows, auto j, auto columns) {
    const Scratch<T>& s = scratch<T>();
    const std::int64_t o = g * group.out + j;
    const auto pack_signal = [&](std::int64_t k, std::int64_t n) {
      pack_taps(sweep, x + g * group.in * in, i, rows, k, n, s.left, packed_row<T>(n));
    };
    const auto operands = [&](std::int64_t k, std::int64_t n) {
      const std::int64_t row = packed_row<T>(columns);
      pack_signal(k, n);
      for_plane_runs(k, n, out, [&](const Run& run) {
        const T* from = dy + (run.sample * p.out_channels + o) * out + run.first;
        pack_transposed(from, out, columns, run.last - run.first, s.right + run.at * row, row);
      });
      return Operands<T>{{s.left, packed_row<T>(n), 1}, {s.right, row}};
    };
    const auto multiply = [&](std::int64_t k, std::int64_t n, T* y, std::int64_t ldy, bool more) {
      const std::int64_t row = packed_row<T>(n);
      pack_signal(k, n);
      for_plane_runs(k, n, out, [&](const Run& run) {
        const T* from = dy + (run.sample * p.out_channels + o) * out + run.first;
        for (std::int64_t c = 0; c < columns; ++c)
          copy_run(from + c * out, run.last - run.first, s.right + c * row + run.at);
      });
      multiply_contiguous<T>(columns, rows, n, s.right, row, s.left, row, y, 1, ldy, more);
    };
    if (few)
      sum_in_steps(rows, columns, depth, multiply, s.result, kBlockColumns, false);
    else
      sum_block<T>(rows, columns, depth, operands, s.result, kBlockColumns, false);
    for (std::int64_t c = 0; c < columns; ++c) {
      T* to = dw + (o + c) * terms + i;
      for (std::int64_t r = 0; r < rows; ++r) to[r] = (add ? to[r] : T(0)) + s.result[r * kBlockColumns + c];
    }
  });
}

/// The gradient of the bias for few positions: those of neighbouring channels are summed side by side.
template <class T>
void sum_short_channels(const ConvParams& p, std::int64_t out, const T* dy, T* db, bool add) {
  constexpr std::int64_t most = 256;
  const std::int64_t each = most / out, blocks = ceil_div(p.out_channels, each), sample = p.out_channels * out;
  parallel_for(blocks, p.batch * each * out, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t block = first; block < last; ++block) {
      const std::int64_t o = block * each, channels = std::min(each, p.out_channels - o);
      double sum[most] = {};
      // sum[c, i] = sum over n of dy[n, o + c, i]
      for (std::int64_t n = 0; n < p.batch; ++n)
        for (std::int64_t i = 0; i < channels * out; ++i) sum[i] += static_cast<double>(dy[n * sample + o * out + i]);
      for (std::int64_t c = 0; c < channels; ++c) {
        double total = 0;
        for (std::int64_t i = 0; i < out; ++i) total += sum[c * out + i];
        db[o + c] = static_cast<T>(add ? static_cast<double>(db[o + c]) + total : total);
      }
    }
  });
}

}  // namespace

template <class T>
void conv_backward_weight(const ConvParams& params, const T* dy, const T* x, T* dw, bool add) {
  const ConvParams p = merged(params);
  const std::int64_t terms = p.in_channels / p.groups * taps_of(p), depth = p.batch * outputs(p);
  if (p.out_channels <= 0 || terms <= 0) return;
  if (depth <= 0) {
    if (!add) fill(p.out_channels * terms, T(0), dw);
    return;
  }
  const Sweep sweep = forward_sweep(p);
  if (flat_gradient(sweep, dy, x, dw, add)) return;
  if (!slab_gradient(sweep.lines_only ? sweep.stacked() : sweep, depth, dy, x, dw, add))
    packed_gradient(p, sweep, dy, x, dw, add);
}

template <class T>
void conv_backward_bias(const ConvParams& p, const T* dy, T* db, bool add) {
  const std::int64_t out = outputs(p);
  if (out > 0 && out <= 32) return sum_short_channels(p, out, dy, db, add);
  parallel_for(p.out_channels, p.batch * out, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) {
      double total = 0;
      // db[o] = sum over n and i of dy[n, o, i]
      for (std::int64_t n = 0; n < p.batch; ++n)
        total += sum_of(out, [from = dy + (n * p.out_channels + o) * out](auto at) { return at(from); });
      db[o] = static_cast<T>(add ? static_cast<double>(db[o]) + total : total);
    }
  });
}

template <class T>
void conv_backward_parameters(const ConvParams& params, const T* dy, const T* x, T* dw, bool add_dw, T* db,
                              bool add_db) {
  const ConvParams p = merged(params);
  const bool flat = dw != nullptr && p.in_channels == p.groups && flat_gradient(forward_sweep(p), dy, x, dw, add_dw);
  if (dw != nullptr && !flat && short_backward_parameters(p, dy, x, dw, add_dw, db, add_db)) return;
  if (dw != nullptr && !flat) conv_backward_weight(p, dy, x, dw, add_dw);
  if (db != nullptr) conv_backward_bias(p, dy, db, add_db);
}

template void conv_backward_weight(const ConvParams&, const float*, const float*, float*, bool);
template void conv_backward_bias(const ConvParams&, const float*, float*, bool);
template void conv_backward_parameters(const ConvParams&, const float*, const float*, float*, bool, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void conv_backward_weight(const ConvParams&, const double*, const double*, double*, bool);
template void conv_backward_bias(const ConvParams&, const double*, double*, bool);
template void conv_backward_parameters(const ConvParams&, const double*, const double*, double*, bool, double*, bool);
#endif

}  // namespace taper::kernels
