#include "kernels/conv_turned.hpp"

#include <array>
#include <span>
#include <utility>

#include "base/window.hpp"
#include "kernels/conv_inside.hpp"
#include "kernels/conv_slab.hpp"
#include "kernels/lane_mask.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product_rows.hpp"
#include "kernels/turn_square.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

/// Floats of packed weights that there is room for, and that stay in the second-level cache.
constexpr std::int64_t kPackedWeights = kBlocksTogether * kPanelsSize;

/// Terms that are taken at a time: one chain, whose weights stay in the first-level cache for all positions.
constexpr std::int64_t kStep = kChain<float>;

/// Taps of a kernel whose weights are packed at a time, before those of each sweep go to their place.
constexpr std::int64_t kTapsTogether = 32;

/// More floats than this of signal and result are asked for before they are needed.
constexpr std::int64_t kFarElements = std::int64_t{1} << 18;

/// Units of work that are enough for several threads.
constexpr std::int64_t kUnits = 8;

/// The most boxes that a unit of work has of a sweep: each region has one of each kind at most.
constexpr int kMostBoxes = 256;

/// The most positions of the result, among which those of one sweep are one.
constexpr std::int64_t kMostBetween = 16;

/// How sweeps are cut into units of work: `bands` of rows, and regions, of which a thread takes up to `together` at a
/// time: a result is the same beside any others. The regions are those of `all`, whose positions reach over the result:
/// a sweep has as many, or one less in a dimension.
struct Cut {
  const Sweep *all, *sweeps;
  int count;
  std::int64_t between = 1;                   ///< positions of the result, among which those of a sweep are one
  std::int64_t band = 0, bands = 0, row = 0;  ///< rows of a band; floats of one position of it
  std::int64_t lines = 0, width = 0;          ///< of a region
  std::int64_t regions = 0, together = 0;
  std::int64_t depth = 0;               ///< terms of all sweeps
  std::int64_t first_term[kMostTurns];  ///< of each sweep, counted through them
  bool packs_all = false;               ///< whether the weights of all terms of a band are packed
  bool keeps_all = false;               ///< and those of all bands, one after another
  bool is_far = false;                  ///< whether signal and result lie beyond the second-level cache
  Inside inside;

  /// Begins with sweeps; several have elements one apart.
  Cut(const Sweep* these, int n) : all(these), sweeps(these), count(n) {
    for (int d = 0; d < 3; ++d) between *= these->axis[d].to_step;
    if (between > 1) {
      own_ = *these;
      for (int d = 0; d < 3; ++d) own_.positions[d] = ceil_div(these->result[d], these->axis[d].to_step);
      all = &own_;
    }
    for (int u = 0; u < n; ++u) {
      first_term[u] = depth;
      depth += these->channels * these[u].tap_count();
    }
  }
  Cut(const Cut&) = delete;

  RegionGrid grid() const { return {*all, lines, width}; }

 private:
  Sweep own_;  ///< what `all` is if it is none of the sweeps
};

/// What a term of a vector of results takes with positions along the vectors, in products of vectors.
double slab_time(const Sweep& s) {
  const std::int64_t vectors = ceil_div(s.positions[2], kLanes<float>);
  // Lines that are read where they are; measured, as is what packing each term takes at least, and each of its lines.
  constexpr double in_place = 1.12, packed = 4, packed_line = 32;
  if (s.tap_count() == 1 && s.axis[2].stride == 1)
    return in_place * double(vectors * kLanes<float>) / double(s.positions[2]);
  const Grid grid = cut(s.rows, s.batch * s.position_count(), s.channels * s.tap_count(), s.groups);
  const Slab slab = plan_slab<float>(s.lines_only ? s.stacked() : s, grid.row_step);
  return slab.use ? slab.time : std::max(packed, packed_line / double(s.positions[2]));
}

/// The share of the lanes that lines of positions fill, each alone or one after another with what the taps reach.
double used_lanes(const Sweep& s) {
  const std::int64_t width = s.positions[2], reach = std::abs((s.taps[2] - 1) * s.axis[2].shift_step);
  const std::int64_t whole = ceil_div(width, kLanes<float>) * kLanes<float>;
  return double(width) / double(std::min(whole, width + reach));
}

/// Whether that is faster than with positions along the vectors. The times are in products of vectors, for a row of one
/// sample's results.
[[gnu::noinline]] bool is_faster(const Cut& c) {
  const Sweep& s = *c.all;
  const bool is_spread = c.between > 1;
  // A few products are faster than the lists of several sums.
  if (is_spread && double(s.batch * s.position_count()) * double(s.rows * c.depth) < 4096) return false;
  // A single vector keeps the processor waiting for its operands, and two load more than four; a vector of results
  // takes some time to be turned.
  const double product = c.row == kLanes<float> ? 1.2 : c.row <= 32 ? 1.04 : 1, turn = kVectorWidth == 64 ? 12 : 16;
  const double turning = turn * double(s.position_count() * c.between);
  double turned = turning, least = 0, slabs = 0, calls = 0;
  const auto products = [](const Sweep& sweep) {
    return double(sweep.position_count()) * double(sweep.tap_count() * sweep.channels);
  };
  const std::span sweeps(c.sweeps, std::size_t(c.count));
  for (const Sweep& sweep : sweeps) {
    const int u = static_cast<int>(&sweep - c.sweeps);
    turned += product * double(s.channels) * c.inside.found(u);
    calls += double(c.inside.kinds_of(u) * ceil_div(s.channels * sweep.tap_count(), kStep));
    if (sweep.position_count() > 0) least += products(sweep) / used_lanes(sweep);
  }
  // Products of each kind of positions are a call, for all samples of small planes.
  constexpr double call = 60 * double(kLanes<float>);
  turned = (turned * double(c.row) + call * calls / double(s.batch)) * double(c.bands) / double(s.rows);
  if (turned <= least) return true;
  for (const Sweep& sweep : sweeps)
    if (sweep.position_count() > 0) slabs += products(sweep) * slab_time(sweep);
  // Results that lie between each other take time to be stored.
  if (is_spread) slabs = slabs * (s.lines_only && s.positions[2] < 64 ? 2.5 : 1.1) + turning;
  return turned <= slabs;
}

/// Whether the weights of a row lie in the order of its terms.
bool is_in_order(const Cut& c) { return c.count == 1 && c.all->w_channel == c.sweeps->tap_count(); }

/// Cuts the sweeps; false if that is slower than other ways, or there are too many kinds of positions.
[[gnu::noinline]] bool plan(Cut& c) {
  const Sweep& s = *c.all;
  const std::int64_t height = s.positions[1], width = s.positions[2];
  const auto cut_rows = [&](std::int64_t vectors) {
    c.band = equal_step(s.rows, vectors * 16, 16), c.bands = ceil_div(s.rows, c.band);
    c.row = ceil_div(c.band, kLanes<float>) * kLanes<float>;
    c.packs_all = c.depth * c.row <= kPackedWeights;
  };
  const std::int64_t fewest = is_in_order(c) ? 2 : 1;
  for (std::int64_t vectors = 4; vectors >= fewest && !c.packs_all; --vectors) cut_rows(vectors);
  if (!c.packs_all) cut_rows(4);
  if (!is_in_order(c) && (!c.packs_all || s.kernel[0] * s.kernel[1] * s.kernel[2] > kDeepBlock)) return false;
  if (c.between > kMostBetween) return false;
  for (int u = 0; u < c.count; ++u)
    if (!c.inside.begin(c.sweeps[u])) return false;
  if (!is_faster(c)) return false;
  // Weights of a step lie behind those of the taps before it.
  if (!c.packs_all && (kStep + s.tap_count()) * c.row > kPackedWeights) return false;
  for (int u = 0; u < c.count; ++u)
    if (!c.inside.list(u, c.sweeps[u], kStep, c.row)) return false;
  // Large units have tall tiles along the borders of planes; some are left for several threads.
  const std::int64_t room = (kRightSize<float> / c.between - c.row) / c.row,
                     least = std::min(room, kResultSize / c.row);
  const std::int64_t some = s.batch * s.position_count() * s.groups * c.bands / kUnits;
  const std::int64_t most = c.depth > kLongSum ? least : std::clamp(some, least, room);
  c.width = equal_step(width, most, 1);
  c.lines = c.width < width ? 1 : equal_step(height, most / width, 1);
  c.keeps_all = c.packs_all && c.bands <= 64 && c.bands * c.depth * c.row <= kPackedWeights;
  c.regions = c.grid().count();
  c.is_far = s.batch * (s.signal_sample() + s.result_sample()) > kFarElements;
  c.together = 1;
  if (c.lines == height && c.width == width)
    c.together = std::clamp<std::int64_t>(most / (height * width), 1, c.regions);
  if (s.positions[0] > 1) c.together = std::min<std::int64_t>(c.together, kMostBoxes / std::max(c.inside.kinds(), 1));
  return true;
}

/// What a sweep has of a region of all.
Region part_of(const Sweep& s, Region r) {
  r.lines = r.d < s.positions[0] ? std::clamp<std::int64_t>(s.positions[1] - r.h, 0, r.lines) : 0;
  r.width = std::clamp<std::int64_t>(s.positions[2] - r.w, 0, r.width);
  return r;
}

/// Positions that find the same taps, as three dimensions of some: the first has the rows of products, the second their
/// lines.
struct Box {
  int kind;
  std::int64_t from;  ///< the element that the first position's first tap finds, in the first channel of a group
  std::int64_t to;    ///< the first position among the results of a unit
  struct {
    std::int64_t count, from, to;  ///< positions, and how far they lie apart
  } along[3];

  std::int64_t size() const { return along[0].count * along[1].count * along[2].count; }
  /// Puts the dimensions in the order that the fewest tiles cover, which have up to so many rows.
  [[gnu::noinline]] void arrange(std::int64_t rows) {
    const auto tiles = [&](int i, int j, int k) {
      const std::int64_t count = along[i].count;
      return (count <= rows ? 1 : ceil_div(count, rows)) * along[j].count * along[k].count;
    };
    if (tiles(1, 0, 2) < tiles(0, 1, 2)) std::swap(along[0], along[1]);
    if (tiles(2, 0, 1) < tiles(0, 1, 2)) std::swap(along[0], along[2]);
    if (along[1].count < along[2].count) std::swap(along[1], along[2]);
  }
};

/// packed[q, r] = the weight of term q and row r, for all terms of the sweeps, one sweep after another.
[[gnu::noinline]] void pack_turned(const Cut& c, const float* w, std::int64_t rows, float* packed) {
  const std::int64_t kernel = c.all->kernel[0] * c.all->kernel[1] * c.all->kernel[2], row = c.row;
  // Where the weight of a tap goes, and how much further that of the next channel.
  std::int64_t to[kDeepBlock], next[kDeepBlock];
  for (std::int64_t t = 0; t < kernel; ++t) to[t] = -1;
  for (int u = 0; u < c.count; ++u) {
    const Sweep& s = c.sweeps[u];
    const std::int64_t taps = s.tap_count();
    Place tap{};
    for (std::int64_t t = 0; t < taps; ++t, step(tap, s.taps))
      to[s.weight(tap)] = (c.first_term[u] + t) * row, next[s.weight(tap)] = taps * row;
  }
  const bool is_whole = c.count == 1 && c.depth == kernel * c.all->channels;
  float some[kTapsTogether * 4 * 16];
  for (std::int64_t channel = 0; channel < c.all->channels; ++channel, w += c.all->w_channel)
    for (std::int64_t first = 0; first < kernel; first += kTapsTogether) {
      const std::int64_t n = std::min(kTapsTogether, kernel - first);
      pack_transposed(w + first, c.all->w_row, rows, n, is_whole ? packed + (channel * kernel + first) * row : some,
                      row);
      for (std::int64_t t = 0; t < n && !is_whole; ++t) {
        if (to[first + t] < 0) continue;
        copy_run(some + t * row, row, packed + to[first + t] + channel * next[first + t]);
      }
    }
}

/// y[r, i] = turned[place[i], r] + b[r], or +=, for `n` positions of `rows` rows; those of y are `channel` apart, those
/// of `turned` are `row`, and `b` may be null.
[[gnu::noinline]] void store_turned(const float* turned, std::int64_t row, const std::int32_t* place, std::int64_t n,
                                    std::int64_t rows, const float* b, float* y, std::int64_t channel, bool add) {
  for (std::int64_t j = 0; j < rows; j += kLanes<float>)
    for (std::int64_t i = 0; i < n; i += kLanes<float>) {
      Vector<float> square[kLanes<float>];
#pragma GCC unroll 16
      for (int l = 0; l < kLanes<float>; ++l) square[l] = load(turned + place[std::min(i + l, n - 1)] * row + j);
      turn_square<float>(square);
      const LaneMask lanes = lanes_between(0, n - i);
      float* to = y + j * channel + i;
      for (int r = 0; r < std::min<std::int64_t>(kLanes<float>, rows - j); ++r, to += channel) {
        Vector<float> v = square[r] + (b != nullptr ? b[j + r] : 0.0f);
        if (add) v += load_lanes(lanes, to);
        store_lanes(v, n - i, to);
      }
    }
}

/// What sums the units of work of one thread.
class Units {
 public:
  Units(const Cut& c, const float* x, const float* w) : c_(c), s_(*c.all), x_(x), w_(w) {}

  /// Sums the regions [from, to) for a band of rows of group `g`, from row `f` on.
  [[gnu::noinline]] void sum(std::int64_t g, std::int64_t f, std::int64_t from, std::int64_t to, const float* b,
                             float* y, bool add) {
    const std::int64_t rows = std::min(c_.band, s_.rows - f), channel = g * s_.rows + f;
    const RegionGrid grid = c_.grid();
    // Several regions are whole planes, of which the last of a sample may have fewer results.
    const Results results = results_of(grid.at(from));
    const std::int64_t most = s_.axis[0].to_step * results.extent[1] * results.extent[2];
    std::fill_n(place_, (to - from) * most, 0);
    // The first sums are zeros, for positions that no tap reaches.
    float* sums = own_.right;
    for (std::int64_t j = 0; j < c_.row; j += kLanes<float>) store(Vector<float>{}, sums + j);
    sums += c_.row;
    for (int u = 0; u < c_.count; ++u) {
      const Sweep& s = c_.sweeps[u];
      list_boxes(u, from, to, most, results.extent[2]);
      const std::int64_t positions = list_places(static_cast<std::int32_t>((sums - own_.right) / c_.row));
      const std::int64_t depth = s.channels * s.tap_count();
      const auto multiply = [&](std::int64_t k, std::int64_t n, float* part, std::int64_t, bool more) {
        pack(u, g, f, rows, k, n);
        Ahead ahead[2] = {};
        const bool is_last = k + n == depth;
        if (c_.is_far && u == 0)
          ahead[0] = is_last ? signal_of(g, to, 2 * to - from, 0, n) : signal_of(g, from, to, k + n, n);
        if (c_.is_far && is_last && u + 1 == c_.count) {
          const float* const first = y + channel * s_.result_size + results.first;
          if (to > from + 1 && s_.positions[0] == 1)
            ahead[1] = {first, s_.result_sample(), to - from, rows * s_.result_size};
          else
            ahead[1] = {first, s_.result_size, rows, (results.extent[1] - 1) * s_.result_line + results.extent[2]};
        }
        multiply_step(u, g, k, n, part, more, ahead);
      };
      if (positions > 0) sum_in_steps<float>(positions, c_.row, depth, multiply, sums, c_.row, false, c_.row, kStep);
      sums += positions * c_.row;
    }
    for (std::int64_t r = from; r < to; ++r)
      store_region(results_of(grid.at(r)), place_ + (r - from) * most, rows, b != nullptr ? b + channel : nullptr,
                   y + channel * s_.result_size, add);
  }

 private:
  /// Where the results of a region lie: from the first on, of the first row, so many along each dimension.
  struct Results {
    std::int64_t first, extent[3];

    std::int64_t count() const { return extent[0] * extent[1] * extent[2]; }
  };
  Results results_of(const Region& r) const {
    const Axis(&axis)[3] = s_.axis;
    const std::int64_t begin[3] = {r.d * axis[0].to_step, r.h * axis[1].to_step, r.w * axis[2].to_step};
    const auto extent = [&](int d, std::int64_t n) { return std::min(n * axis[d].to_step, s_.result[d] - begin[d]); };
    return {r.sample * s_.result_sample() + (begin[0] * s_.result[1] + begin[1]) * s_.result_line + begin[2],
            {extent(0, 1), extent(1, r.lines), extent(2, r.width)}};
  }

  /// Lists what sweep `u` has of the regions [from, to), whose results lie `each` apart, and their lines `line`.
  [[gnu::noinline]] void list_boxes(int u, std::int64_t from, std::int64_t to, std::int64_t each, std::int64_t line) {
    const Sweep& s = c_.sweeps[u];
    const RegionGrid grid = c_.grid();
    boxes_ = 0;
    largest_ = nullptr;
    for (std::int64_t r = from, last; r < to; r = last) {
      const Region area = part_of(s, grid.at(r));
      last = r + 1;
      const Stretch* const d = c_.inside.along(u, 0).over(area.d);
      if (d == nullptr) continue;
      // Slices of a sample that find the same, or samples of one slice, are one dimension.
      const bool is_flat = s_.positions[0] == 1;
      const std::int64_t plane = s.axis[1].length * s.signal_line;
      const std::int64_t more = is_flat ? to - last : std::min(d->last - 1 - area.d, to - last);
      last += more;
      for (const Stretch& h : c_.inside.along(u, 1).all())
        for (const Stretch& w : c_.inside.along(u, 2).all()) {
          const std::int64_t top = std::max(h.first, area.h), left = std::max(w.first, area.w);
          const std::int64_t lines = std::min(h.last, area.h + area.lines) - top,
                             width = std::min(w.last, area.w + area.width) - left;
          if (lines <= 0 || width <= 0) continue;
          const auto element = [&](int i, std::int64_t at, const Stretch& found) {
            return at * s.axis[i].stride + s.axis[i].shift + found.tap * s.axis[i].shift_step;
          };
          const auto result = [&](int i, std::int64_t at) { return s.axis[i].to_first + at * s.axis[i].to_step; };
          Box& box = box_[boxes_++];
          box = {c_.inside.kind(u, *d, h, w),
                 area.sample * s.signal_sample() + element(0, area.d, *d) * plane + element(1, top, h) * s.signal_line +
                     element(2, left, w),
                 (r - from) * each + s.axis[0].to_first * (each / s.axis[0].to_step) + result(1, top - area.h) * line +
                     result(2, left - area.w),
                 {{width, s.axis[2].stride, s.axis[2].to_step},
                  {lines, s.axis[1].stride * s.signal_line, s.axis[1].to_step * line},
                  {1 + more, is_flat ? s.signal_sample() : s.axis[0].stride * plane, each}}};
          box.arrange(tallest<float>(static_cast<int>(std::min<std::int64_t>(c_.row / kLanes<float>, kMainWidth))));
          if (largest_ == nullptr || box.size() > largest_->size()) largest_ = &box;
        }
    }
  }

  /// Lists where the sums of the boxes are, from `at` on, by the positions of their results; tells how many there are.
  [[gnu::noinline]] std::int64_t list_places(std::int32_t at) {
    const std::int32_t first = at;
    for (const Box& box : std::span(box_, boxes_))
      for (std::int64_t i = 0; i < box.along[2].count; ++i)
        for (std::int64_t j = 0; j < box.along[1].count; ++j) {
          std::int32_t* const place = place_ + box.to + i * box.along[2].to + j * box.along[1].to;
          for (std::int64_t l = 0; l < box.along[0].count; ++l) place[l * box.along[0].to] = at++;
        }
    return at - first;
  }

  /// Packs the weights of the terms [k, k + n) of sweep `u`, or of all terms, unless they are.
  [[gnu::noinline]] void pack(int u, std::int64_t g, std::int64_t f, std::int64_t rows, std::int64_t k,
                              std::int64_t n) {
    const std::int64_t first = c_.packs_all ? 0 : k, count = c_.packs_all ? c_.depth : n;
    const std::int64_t at = c_.keeps_all ? f / c_.band : 0;
    float* const packed = own_.panels + at * c_.depth * c_.row;
    // Where the first channel's begin, of which there may be a part alone.
    const std::int64_t tap = k % c_.sweeps[u].tap_count();
    weights_ = packed + (c_.packs_all ? c_.first_term[u] + k - tap : 0) * c_.row;
    const std::array needed{g, c_.keeps_all ? 0 : f, first};
    if (packed_ != needed) packed_bands_ = 0;
    packed_ = needed;
    const std::uint64_t bit = std::uint64_t{1} << at;
    if ((packed_bands_ & bit) != 0) return;
    packed_bands_ |= bit;
    const float* const w = w_ + g * s_.w_group + f * s_.w_row;
    if (is_in_order(c_))
      pack_transposed(w + first, s_.w_row, rows, count, packed + (c_.packs_all ? 0 : tap) * c_.row, c_.row);
    else
      pack_turned(c_, w, rows, packed);
  }

  /// What `n` terms of the first sweep, from `k` on, read of group `g` in the regions [from, to).
  [[gnu::noinline]] Ahead signal_of(std::int64_t g, std::int64_t from, std::int64_t to, std::int64_t k,
                                    std::int64_t n) const {
    const Sweep& s = *c_.sweeps;
    const std::int64_t taps = s.tap_count(), depth = s.channels * taps, channel = k / taps;
    if (s.positions[0] > 1 || from >= c_.regions) return {};
    const Region area = part_of(s, c_.grid().at(from));
    const float* const x = x_ + area.sample * s.signal_sample() + (g * s.channels + channel) * s.signal_size;
    const std::int64_t channels = (std::min(k + n, depth) - 1) / taps + 1 - channel;
    if (to > from + 1) return {x, s.signal_sample(), std::min(to, c_.regions) - from, channels * s.signal_size};
    const auto range = [&](int d, std::int64_t first, std::int64_t count) {
      const Axis& a = s.axis[d];
      const std::int64_t reach = (s.taps[d] - 1) * a.shift_step, low = first * a.stride + a.shift;
      return IndexRange{
          std::clamp<std::int64_t>(low + std::min<std::int64_t>(reach, 0), 0, a.length),
          std::clamp<std::int64_t>(low + (count - 1) * a.stride + std::max<std::int64_t>(reach, 0) + 1, 0, a.length)};
    };
    const IndexRange h = range(1, area.h, area.lines), w = range(2, area.w, area.width);
    return {x + h.first * s.signal_line + w.first, s.signal_size, channels,
            std::max<std::int64_t>((h.last - h.first - 1) * s.signal_line + w.last - w.first, 0)};
  }

  /// sums[i, r] = the sum of the terms [k, k + n) of sweep `u` at position i of the boxes, or +=; two matrices are
  /// brought near along with the largest box
  [[gnu::noinline]] void multiply_step(int u, std::int64_t g, std::int64_t k, std::int64_t n, float* sums, bool more,
                                       const Ahead (&ahead)[2]) {
    const Sweep& s = c_.sweeps[u];
    const std::int64_t taps = s.tap_count(), channel = k / taps;
    const std::int64_t channels = (k + n) / taps - channel, last = (k + n) % taps;
    const float* const signal = x_ + (g * s.channels + channel) * s.signal_size;
    for (const Box& box : std::span(box_, boxes_)) {
      const FoundTerms found = c_.inside.terms(box.kind, k - channel * taps, channels, last);
      const bool is_even = taps == 1 && n > 1;  // terms are a step apart
      RowOperands<float> pair{signal + box.from, box.along[0].from,   found.a, is_even ? s.signal_size : 0, weights_,
                              found.b,           is_even ? c_.row : 0};
      pair.lines = box.along[1].count, pair.a_line = box.along[1].from;
      const std::int64_t size = pair.lines * box.along[0].count * c_.row;
      pair.ahead = &box == largest_ ? ahead : nullptr;
      for (std::int64_t i = 0; i < box.along[2].count; ++i, pair.a += box.along[2].from, sums += size) {
        if (found.count > 0)
          multiply_rows<float>(box.along[0].count, c_.row / kLanes<float>, found.count, pair, sums, more);
        else if (!more)
          clear(sums, size);
        pair.ahead = nullptr;
      }
    }
  }

  /// Stores the results of a region.
  [[gnu::noinline]] void store_region(const Results& results, const std::int32_t* place, std::int64_t rows,
                                      const float* b, float* y, bool add) {
    const std::int64_t(&extent)[3] = results.extent;
    const std::int64_t plane = extent[1] * extent[2], n = results.count();
    // Whole lines lie one after another.
    const bool is_whole = extent[2] == s_.result[2];
    const std::int64_t run = is_whole ? plane : extent[2];
    y += results.first;
    for (std::int64_t i = 0; i < n; i += run)
      store_turned(own_.right, c_.row, place + i, run, rows, b,
                   y + (i / plane * s_.result[1] + i % plane / extent[2]) * s_.result_line, s_.result_size, add);
  }

  const Cut& c_;
  const Sweep& s_;  ///< what is the same for all sweeps
  const float *const x_, *const w_;
  const Scratch<float>& own_ = scratch<float>();
  Box box_[kMostBoxes];
  std::size_t boxes_ = 0;
  const Box* largest_ = nullptr;
  std::int32_t place_[kRightSize<float> / kLanes<float>];  ///< the sum of each result of a unit
  const float* weights_ = nullptr;           ///< of the step, where they would begin with those of a channel
  std::array<std::int64_t, 3> packed_ = {};  ///< group, row and term that the packed weights begin with
  std::uint64_t packed_bands_ = 0;           ///< bands of these that are packed
};

}  // namespace

bool turned_sum(const Sweep* sweeps, int count, const float* x, const float* w, const float* b, float* y, bool add) {
  Cut c(sweeps, count);
  if (!plan(c)) return false;
  // The bands of the same regions follow each other where everything is kept; these regions are blocks of equal size.
  const bool is_kept = c.keeps_all && c.bands > 1;
  const std::int64_t blocks = is_kept ? ceil_div(c.regions, c.together) : c.regions;
  const std::int64_t positions = c.all->batch * c.all->position_count();
  parallel_for(c.all->groups * c.bands * blocks, parallel_work(ceil_div(positions, blocks) * c.row, c.depth),
               [=, &c](std::int64_t first, std::int64_t last) {
                 Units units(c, x, w);
                 for (std::int64_t unit = first, n = 1; unit < last; unit += n) {
                   const std::int64_t g = unit / (c.bands * blocks), rest = unit % (c.bands * blocks);
                   const std::int64_t band = is_kept ? rest % c.bands : rest / blocks;
                   const std::int64_t some = is_kept ? rest / c.bands : rest % blocks;
                   if (!is_kept) n = equal_step(std::min(last - unit, blocks - some), c.together, 1);
                   units.sum(g, band * c.band, some * c.regions / blocks, (some + n) * c.regions / blocks, b, y, add);
                 }
               });
  return true;
}

#else

bool turned_sum(const Sweep*, int, const float*, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
