#include "kernels/conv_turned.hpp"

#include <array>
#include <utility>

#include "kernels/conv_terms.hpp"
#include "kernels/lane_mask.hpp"
#include "kernels/parallel.hpp"
#include "kernels/turn_square.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

/// Floats of packed weights that there is room for, and that stay in the second-level cache.
constexpr std::int64_t kPackedWeights = kBlocksTogether * kPanelsSize;

/// Terms that are taken at a time: one chain, whose weights stay in the first-level cache for all positions.
constexpr std::int64_t kStep = kChain<float>;

/// Terms that are listed once for all units of work of a thread.
constexpr std::int64_t kMostListed = 2304;

/// Taps of a kernel whose weights are packed at a time, before those of each sweep go to their place.
constexpr std::int64_t kTapsTogether = 32;

/// More floats than this of signal and result are asked for before they are needed.
constexpr std::int64_t kFarElements = std::int64_t{1} << 19;

/// The most positions of the result, among which those of one sweep are one.
constexpr std::int64_t kMostBetween = 16;

/// How sweeps are cut into units of work: `bands` of rows, and of the regions of the slab `together` at a time. The
/// regions are those of `all`, whose positions reach over the result: a sweep has as many, or one less in a dimension.
/// A slab holds a part of the signal as it is, whose elements the positions step over.
struct Cut {
  const Sweep *all, *sweeps;
  int count;
  std::int64_t between = 1;  ///< positions of the result, among which those of one sweep are one
  Slab slab{};
  std::int64_t band = 0, bands = 0, row = 0;         ///< rows of a band; floats of one position of it
  std::int64_t regions = 0, together = 0, room = 0;  ///< floats of a region's slab
  std::int64_t depth = 0;                            ///< terms of all sweeps
  std::int64_t first_term[kMostTurns];               ///< of each sweep, counted through them
  bool packs_all = false;                            ///< whether the weights of all terms of a band are packed
  bool keeps_all = false;                            ///< and those of all bands, one after another, as are slabs
  bool fills_all = false;                            ///< whether a slab holds all channels
  bool copies = false;                               ///< else what the taps read is all in the signal, and read there
  bool is_far = false;                               ///< whether signal and result lie beyond the second-level cache

  /// Begins with sweeps; several have elements one apart.
  Cut(const Sweep* these, int n) : all(these), sweeps(these), count(n) {
    bool is_stepping = false;
    for (int d = 0; d < 3; ++d) {
      slab.step[d] = these->axis[d].stride, between *= these->axis[d].to_step;
      is_stepping = is_stepping || slab.step[d] > 1;
    }
    if (is_stepping) {
      own_[0] = *these;
      for (Axis& axis : own_[0].axis) axis.stride = 1;
      sweeps = own_;
    }
    if (between > 1) {
      own_[1] = *these;
      for (int d = 0; d < 3; ++d) own_[1].positions[d] = ceil_div(these->result[d], these->axis[d].to_step);
      all = own_ + 1;
    }
    for (int u = 0; u < n; ++u) {
      first_term[u] = depth;
      depth += these->channels * these[u].tap_count();
    }
  }
  Cut(const Cut&) = delete;

 private:
  Sweep own_[2];  ///< the first without steps, and what `all` is if it is none of the sweeps
};

/// Whether more of the lanes are used than with positions along the vectors. What each way reaches of the peak where
/// all of them are, is measured.
bool is_faster(const Cut& c) {
  const Sweep& s = *c.all;
  const std::int64_t width = s.positions[2], vectors = c.row / kLanes<float>;
  const bool is_spread = c.between > 1;
  const bool is_stepping = c.slab.step[2] > 1;
  if (width % kLanes<float> == 0 && !is_spread && !is_stepping) return false;
  // A few products are faster than the lists of several sums.
  if (is_spread && double(s.batch * s.position_count()) * double(s.rows * c.depth) < 4096) return false;
  const double turned = double(c.band) / double(c.row) * (vectors == 1 ? 0.58 : 0.83);
  const double lanes = double(width) / double(ceil_div(width, kLanes<float>) * kLanes<float>);
  // Planes of few positions are packed once for each tap; the lines of many samples may be one plane.
  const bool is_packed =
      (s.lines_only ? s.batch : s.positions[1]) * width < 32 || (is_spread && s.lines_only && width <= 16);
  const double share = is_packed                                 ? 0
                       : is_stepping                             ? (width < 12 ? 0.05 : 0.45)
                       : is_spread && s.lines_only && width < 64 ? 0.3
                       : width < 12                              ? 0.6
                       : is_spread                               ? 0.75
                       : c.depth > kDeepBlock                    ? 0.65
                                                                 : 0.85;
  return turned > lanes * share;
}

/// Finds what the taps of all sweeps reach; false if slabs are not made for it.
bool find_slab(Cut& c) {
  std::int64_t end[3];
  for (int u = 0; u < c.count; ++u) {
    const Sweep& s = c.sweeps[u];
    Slab slab;
    const Reach reach = find_reach(s, slab);
    if (!reach.fits) return false;
    for (int d = 0; d < 3; ++d) {
      const std::int64_t low = slab.low[d], after = low + reach.span[d] + 1;
      end[d] = u > 0 ? std::max(end[d], after) : after;
      c.slab.low[d] = u > 0 ? std::min(c.slab.low[d], low) : low;
      c.copies = c.copies || low < 0 || after + (s.positions[d] - 1) * c.slab.step[d] > s.axis[d].length;
    }
  }
  for (int d = 0; d < 3; ++d) c.slab.extent[d] = end[d] - c.slab.low[d];
  return true;
}

/// Whether the weights of a row lie in the order of its terms.
bool is_in_order(const Cut& c) { return c.count == 1 && c.all->w_channel == c.sweeps->tap_count(); }

/// Cuts the sweeps; false if that is slower than other ways, or the slabs of one region are too large.
TAPER_FOR_SIZE bool plan(Cut& c) {
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
  if (c.between > kMostBetween || !is_faster(c) || !find_slab(c)) return false;
  Slab& slab = c.slab;
  const std::int64_t most = std::min(kResultSize, kRightSize<float> / c.between - c.row) / c.row;
  if (!c.copies) {
    slab.low[0] = slab.low[1] = slab.low[2] = 0;
    for (int d = 0; d < 3; ++d) slab.extent[d] = s.axis[d].length;
    slab.volume = s.signal_size;
  }
  slab.phases[0] = slab.phases[1] = slab.phases[2] = 1;
  // All channels at once where there is room for them.
  const auto room_of = [&](std::int64_t channels) { return c.copies ? slab.volume * channels + kLanes<float> : 1; };
  slab.width = equal_step(width, most, 1);
  slab.lines = slab.width < width ? 1 : equal_step(height, most / width, 1);
  if (c.copies) {
    slab.extent[1] += (slab.lines - 1) * slab.step[1], slab.extent[2] += (slab.width - 1) * slab.step[2];
    slab.volume = slab.extent[0] * slab.extent[1] * slab.extent[2];
    if (slab.extent[2] > kLeftSize<float> || slab.volume > kLeftSize<float>) return false;
  }
  c.room = room_of(s.channels);
  c.fills_all = c.room <= kLeftSize<float>;
  if (!c.fills_all && c.count > 1) return false;
  if (!c.fills_all) c.room = room_of(std::min(s.channels, (kStep - 1) / s.tap_count() + 2));
  if (c.room > kLeftSize<float>) return false;
  c.keeps_all = c.fills_all && c.packs_all && c.bands <= 64 && c.bands * c.depth * c.row <= kPackedWeights;
  c.regions = region_count(s, slab);
  c.is_far = s.batch * (s.signal_sample() + s.result_sample()) > kFarElements;
  c.together = 1;
  if (slab.lines == height && slab.width == width)
    c.together = std::clamp<std::int64_t>(std::min(most / (height * width), kLeftSize<float> / c.room), 1, c.regions);
  return true;
}

/// What a sweep has of a region of all.
Region part_of(const Sweep& s, Region r) {
  r.lines = r.d < s.positions[0] ? std::clamp<std::int64_t>(s.positions[1] - r.h, 0, r.lines) : 0;
  r.width = std::clamp<std::int64_t>(s.positions[2] - r.w, 0, r.width);
  return r;
}

std::int64_t positions_of(const Region& r) { return r.lines * r.width; }

/// packed[q, r] = the weight of term q and row r, for all terms of the sweeps, one sweep after another.
[[gnu::noinline]] void pack_turned(const Cut& c, const float* w, std::int64_t rows, float* packed) {
  const std::int64_t kernel = c.all->kernel[0] * c.all->kernel[1] * c.all->kernel[2], row = c.row;
  if (c.count == 1 && c.depth == kernel * c.all->channels) {
    for (std::int64_t channel = 0; channel < c.all->channels; ++channel, packed += kernel * row)
      pack_transposed(w + channel * c.all->w_channel, c.all->w_row, rows, kernel, packed, row);
    return;
  }
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
  float some[kTapsTogether * 4 * 16];
  for (std::int64_t channel = 0; channel < c.all->channels; ++channel, w += c.all->w_channel)
    for (std::int64_t first = 0; first < kernel; first += kTapsTogether) {
      const std::int64_t n = std::min(kTapsTogether, kernel - first);
      pack_transposed(w + first, c.all->w_row, rows, n, some, row);
      for (std::int64_t t = 0; t < n; ++t) {
        if (to[first + t] < 0) continue;
        float* const y = packed + to[first + t] + channel * next[first + t];
        for (std::int64_t j = 0; j < row; j += kLanes<float>) store(load(some + t * row + j), y + j);
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
  Units(const Cut& c, const float* x, const float* w) : c_(c), s_(*c.all), x_(x), w_(w) {
    for (std::int64_t q = 0; q < kStep; ++q) weight_term_[q] = q * c.row;
    for (std::int64_t v = 0; v * kLanes<float> < c.row; ++v) vector_[v] = v * kLanes<float>, count_[v] = kLanes<float>;
    lists_all_ = c.fills_all && c.depth <= kMostListed;
    for (int u = 0; u < c.count; ++u) {
      const Sweep& s = c.sweeps[u];
      terms_.begin(s, &c.slab);
      const std::int64_t depth = s.channels * s.tap_count();
      for (std::int64_t k = 0; lists_all_ && k < depth; k += kDeepBlock) {
        const std::int64_t n = std::min(kDeepBlock, depth - k), base = k / s.tap_count() * c.slab.volume;
        terms_.list_b(k, n, false);
        for (std::int64_t q = 0; q < n; ++q) term_[c.first_term[u] + k + q] = base + terms_.b[q];
      }
    }
  }

  /// Sums the regions [from, to) for a band of rows of group `g`, from row `f` on.
  void sum(std::int64_t g, std::int64_t f, std::int64_t from, std::int64_t to, const float* b, float* y, bool add) {
    const std::int64_t rows = std::min(c_.band, s_.rows - f), channel = g * s_.rows + f;
    std::int64_t first[kMostTurns + 1] = {};
    for (int u = 0; u < c_.count; ++u) {
      const Sweep& s = c_.sweeps[u];
      if (c_.count > 1 && !lists_all_) terms_.begin(s, &c_.slab);
      std::int64_t positions = 0;
      for (std::int64_t r = from; r < to; ++r) positions += positions_of(area(s, r));
      first[u + 1] = first[u] + positions;
      const auto multiply = [&](std::int64_t k, std::int64_t n, float* sums, std::int64_t, bool more) {
        pack(g, f, rows, c_.first_term[u] + k, n);
        const bool is_last = u + 1 == c_.count && k + n == s.channels * s.tap_count();
        multiply_step(u, {g, from, to, k, n, is_last ? rows : 0}, y + channel * s_.result_size, sums, more);
      };
      if (positions > 0)
        sum_in_steps<float>(positions, c_.row, s.channels * s.tap_count(), multiply, own_.right + first[u] * c_.row,
                            c_.row, false, c_.row, kStep);
    }
    // One more, for the positions that no tap reaches.
    for (std::int64_t j = 0; j < c_.row; j += kLanes<float>)
      store(Vector<float>{}, own_.right + first[c_.count] * c_.row + j);
    for (std::int64_t r = from; r < to; ++r)
      store_region(region(s_, c_.slab, r), first, rows, b != nullptr ? b + channel : nullptr,
                   y + channel * s_.result_size, add);
  }

 private:
  /// What a sweep has of region `r`.
  Region area(const Sweep& s, std::int64_t r) const {
    const Region all = region(s_, c_.slab, r);
    return c_.between > 1 ? part_of(s, all) : all;
  }
  /// Packs the weights of the terms [k, k + n), or of all terms, unless they are.
  void pack(std::int64_t g, std::int64_t f, std::int64_t rows, std::int64_t k, std::int64_t n) {
    const std::int64_t first = c_.packs_all ? 0 : k, count = c_.packs_all ? c_.depth : n;
    const std::int64_t at = c_.keeps_all ? f / c_.band : 0;
    float* const packed = own_.panels + at * c_.depth * c_.row;
    weights_ = packed + (c_.packs_all ? k : 0) * c_.row;
    const std::array needed{g, c_.keeps_all ? 0 : f, first};
    if (packed_ != needed) packed_bands_ = 0;
    packed_ = needed;
    const std::uint64_t bit = std::uint64_t{1} << at;
    if ((packed_bands_ & bit) != 0) return;
    packed_bands_ |= bit;
    const float* const w = w_ + g * s_.w_group + f * s_.w_row;
    if (is_in_order(c_))
      pack_transposed(w + first, s_.w_row, rows, count, packed, c_.row);
    else
      pack_turned(c_, w, rows, packed);
  }

  /// The terms [k, k + n) of the regions [from, to), after which `stored` rows of results are stored.
  struct Step {
    std::int64_t g, from, to, k, n, stored;
  };

  /// The signal of the first channel of group `g` in the sample of a region.
  const float* signal_of(const Sweep& s, std::int64_t g, const Region& area) const {
    return x_ + area.sample * s.signal_sample() + g * s.channels * s.signal_size;
  }
  /// What slabs are filled from in a later step: `n` channels from `channel` on of region `r`.
  Ahead<float> source_of(const Sweep& s, std::int64_t g, std::int64_t r, std::int64_t channel, std::int64_t n) const {
    if (r >= c_.regions) return {};
    const Region next = area(s, r);
    return source(s, c_.slab, next, signal_of(s, g, next) + channel * s.signal_size, std::min(n, s.channels - channel));
  }

  /// sums[i, r] = the sum of the terms of a step of sweep `u` at position i of the regions, or +=; `y` is where the
  /// results of the first row go
  void multiply_step(int u, const Step& now, const float* y, float* sums, bool more) {
    const Sweep& s = c_.sweeps[u];
    const auto [g, from, to, k, n, stored] = now;
    const std::int64_t taps = s.tap_count(), pitch = c_.slab.extent[2];
    const std::int64_t channel = k / taps, channels = (k + n - 1) / taps + 1 - channel;
    const std::int64_t first = c_.fills_all ? 0 : channel;  // that the slabs hold
    const std::int64_t* term = term_ + c_.first_term[u] + k;
    if (!lists_all_) {
      terms_.list_b(k, n, false);
      term = terms_.b;
    }
    const std::int64_t listed = lists_all_ ? 0 : channel;  // that the terms are counted from
    const bool is_filled = c_.fills_all && filled_[0] == g && filled_[1] == from;
    filled_[0] = g, filled_[1] = from;
    ListedOperands<float> pair{nullptr,  c_.slab.step[2], term,   taps > 1 || n == 1 ? 0 : c_.slab.volume,
                               weights_, weight_term_,    c_.row, vector_,
                               vector_,  count_};
    float* slab = own_.left;
    for (std::int64_t r = from; r < to; ++r, slab += c_.room) {
      const Region area = this->area(s, r);
      const float* signal = signal_of(s, g, area);
      if (!c_.copies)
        pair.a = signal + listed * s.signal_size +
                 (area.d * c_.slab.step[0] * s.axis[1].length + area.h * c_.slab.step[1]) * pitch +
                 area.w * c_.slab.step[2];
      else
        pair.a = slab + (listed - first) * c_.slab.volume;
      if (c_.copies && !is_filled)
        fill_slab(s, c_.slab, area, signal, first, c_.fills_all ? s.channels : channels, slab);
      pair.lines = area.lines, pair.a_line = pitch * c_.slab.step[1];
      if (c_.copies && area.lines == 1 && s.positions[0] == s_.positions[0]) {
        // Regions that are all of one line are the lines of one product.
        if (r + 1 < to) continue;
        pair.a -= (r - from) * c_.room;
        pair.lines = to - from, pair.a_line = c_.room;
      }
      Ahead<float> ahead[2] = {};
      if (!c_.fills_all)
        ahead[0] = channel + channels < s.channels ? source_of(s, g, r, channel + channels, channels)
                                                   : source_of(s, g, r + 1, 0, channels);
      else if (!is_filled)
        ahead[0] = source_of(s, g, r + to - from, 0, s.channels);
      if (stored > 0) ahead[1] = results_of(region(s_, c_.slab, r)).of(s_, stored, y);
      pair.ahead = c_.is_far && (!is_filled || stored > 0) ? ahead : nullptr;
      if (positions_of(area) > 0) multiply_block<float>(area.width, c_.row, n, pair, sums, c_.row, more);
      sums += positions_of(area) * c_.row;
    }
  }

  /// Where the results of a region lie: from the first on, of the first row, so many along each dimension.
  struct Results {
    std::int64_t first, extent[3];

    /// Those of some rows.
    Ahead<float> of(const Sweep& s, std::int64_t rows, const float* y) const {
      return {y + first, s.result_size, rows, (extent[1] - 1) * s.result_line + extent[2]};
    }
  };
  Results results_of(const Region& r) const {
    const Axis(&axis)[3] = s_.axis;
    const std::int64_t begin[3] = {r.d * axis[0].to_step, r.h * axis[1].to_step, r.w * axis[2].to_step};
    const auto extent = [&](int d, std::int64_t n) { return std::min(n * axis[d].to_step, s_.result[d] - begin[d]); };
    return {r.sample * s_.result_sample() + (begin[0] * s_.result[1] + begin[1]) * s_.result_line + begin[2],
            {extent(0, 1), extent(1, r.lines), extent(2, r.width)}};
  }

  /// Stores what each sweep has of a region, whose results begin with position `first[u]`, and goes on there.
  TAPER_FOR_SIZE void store_region(const Region& r, std::int64_t (&first)[kMostTurns + 1], std::int64_t rows,
                                   const float* b, float* y, bool add) {
    const Results results = results_of(r);
    const std::int64_t(&extent)[3] = results.extent;
    const std::int64_t plane = extent[1] * extent[2], n = extent[0] * plane;
    std::int32_t place[kRightSize<float> / kLanes<float>];
    std::fill_n(place, n, static_cast<std::int32_t>(first[c_.count]));
    for (int u = 0; u < c_.count; ++u) {
      const Sweep& s = c_.sweeps[u];
      const Region area = part_of(s, r);
      auto at = static_cast<std::int32_t>(first[u]);
      first[u] += positions_of(area);
      std::int32_t* line = place + s.axis[0].to_first * plane + s.axis[1].to_first * extent[2] + s.axis[2].to_first;
      for (std::int64_t h = 0; h < area.lines; ++h, line += s.axis[1].to_step * extent[2])
        for (std::int64_t i = 0; i < area.width; ++i) line[i * s.axis[2].to_step] = at++;
    }
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
  Terms<float> terms_;
  bool lists_all_;                  ///< whether the terms of all sweeps are listed, counted from the first channel
  std::int64_t term_[kMostListed];  ///< these
  std::int64_t weight_term_[kStep], vector_[kBlockColumns / kLanes<float>];
  int count_[kBlockColumns / kLanes<float>];
  const float* weights_ = nullptr;           ///< of the step
  std::array<std::int64_t, 3> packed_ = {};  ///< group, row and term that the packed weights begin with
  std::uint64_t packed_bands_ = 0;           ///< bands of these that are packed
  std::int64_t filled_[2] = {-1, -1};        ///< group and first region of the slabs
};

}  // namespace

bool turned_sum(const Sweep* sweeps, int count, const float* x, const float* w, const float* b, float* y, bool add) {
  Cut c(sweeps, count);
  if (!plan(c)) return false;
  const std::int64_t blocks = ceil_div(c.regions, c.together), positions = c.all->batch * c.all->position_count();
  parallel_for(c.all->groups * c.bands * blocks, parallel_work(ceil_div(positions, blocks) * c.row, c.depth),
               [=, &c](std::int64_t first, std::int64_t last) {
                 Units units(c, x, w);
                 for (std::int64_t unit = first; unit < last; ++unit) {
                   const std::int64_t g = unit / (c.bands * blocks), rest = unit % (c.bands * blocks);
                   // The bands of the same regions follow each other where everything is kept.
                   const std::int64_t band = c.keeps_all ? rest % c.bands : rest / blocks;
                   const std::int64_t some = c.keeps_all ? rest / c.bands : rest % blocks;
                   units.sum(g, band * c.band, some * c.regions / blocks, (some + 1) * c.regions / blocks, b, y, add);
                 }
               });
  return true;
}

#else

bool turned_sum(const Sweep*, int, const float*, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
