#include "kernels/conv_turned.hpp"

#include <array>

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

/// How a sweep is cut into units of work: `bands` of rows, and of the regions of the slab `together` at a time.
struct Cut {
  Slab slab{};
  std::int64_t band = 0, bands = 0, row = 0;         ///< rows of a band; floats of one position of it
  std::int64_t regions = 0, together = 0, room = 0;  ///< floats of a region's slab
  std::int64_t depth = 0;                            ///< terms
  bool packs_all = false;                            ///< whether the weights of all terms of a band are packed
  bool keeps_all = false;                            ///< and those of all bands, one after another, as are slabs
  bool fills_all = false;                            ///< whether a slab holds all channels
  bool copies = true;                                ///< else what the taps read is all in the signal, and read there
};

/// Whether more of the lanes are used than with positions along the vectors. What each way reaches of the peak where
/// all of them are, is measured.
bool is_faster(const Sweep& s, const Cut& c) {
  const std::int64_t width = s.positions[2], vectors = c.row / kLanes<float>;
  if (width % kLanes<float> == 0) return false;
  const double turned = double(c.band) / double(c.row) * (vectors == 1 ? 0.58 : 0.83);
  const double lanes = double(width) / double(ceil_div(width, kLanes<float>) * kLanes<float>);
  // Planes of few positions are packed once for each tap; the lines of many samples may be one plane.
  const bool is_packed = (s.lines_only ? s.batch : s.positions[1]) * width < 32;
  const double share = is_packed ? 0 : width < 12 ? 0.6 : c.depth > kDeepBlock ? 0.65 : 0.85;
  return turned > lanes * share;
}

/// Tells how; false if that is slower than other ways, or the slabs of one region are too large.
bool plan(const Sweep& s, Cut& c) {
  if (s.tap_count() != s.kernel[0] * s.kernel[1] * s.kernel[2]) return false;  // one of several
  const Reach reach = find_reach(s, c.slab);
  if (!reach.fits) return false;
  c.band = equal_step(s.rows, 4 * 16, 16), c.bands = ceil_div(s.rows, c.band);
  c.row = ceil_div(c.band, kLanes<float>) * kLanes<float>;
  c.depth = s.channels * s.tap_count();
  c.packs_all = c.depth * c.row <= kPackedWeights;
  if (!is_faster(s, c)) return false;
  Slab& slab = c.slab;
  const std::int64_t most = kResultSize / c.row, height = s.positions[1], width = s.positions[2];
  slab.width = equal_step(width, most, 1);
  slab.lines = slab.width < width ? 1 : equal_step(height, most / width, 1);
  for (int d = 0; d < 3; ++d) slab.extent[d] = 1 + reach.span[d];
  slab.extent[1] += slab.lines - 1, slab.extent[2] += slab.width - 1;
  slab.volume = slab.extent[0] * slab.extent[1] * slab.extent[2] * reach.grids;
  const auto is_inside = [&](int d) {
    const Axis& axis = s.axis[d];
    return axis.stride == 1 && slab.low[d] >= 0 && slab.low[d] + reach.span[d] + s.positions[d] <= axis.length;
  };
  if (is_inside(0) && is_inside(1) && is_inside(2)) {
    c.copies = false;
    for (int d = 0; d < 3; ++d) slab.low[d] = 0, slab.extent[d] = s.axis[d].length;
    slab.volume = s.signal_size;
  }
  if (c.copies && slab.volume > kLeftSize<float>) return false;
  // All channels at once where there is room for them.
  const auto room_of = [&](std::int64_t channels) { return c.copies ? slab.volume * channels + kLanes<float> : 1; };
  c.room = room_of(s.channels);
  c.fills_all = c.room <= kLeftSize<float>;
  if (!c.fills_all) c.room = room_of(std::min(s.channels, (kStep - 1) / s.tap_count() + 2));
  if (c.room > kLeftSize<float>) return false;
  c.keeps_all = c.fills_all && c.packs_all && c.bands <= 64 && c.bands * c.depth * c.row <= kPackedWeights;
  c.regions = region_count(s, slab);
  c.together = 1;
  if (slab.lines == height && slab.width == width)
    c.together = std::clamp<std::int64_t>(std::min(most / (height * width), kLeftSize<float> / c.room), 1, c.regions);
  return true;
}

/// packed[q, r] = the weight of term k + q and row r, for n terms and `rows` rows.
void pack_weights(const Sweep& s, const float* w, std::int64_t k, std::int64_t n, std::int64_t rows, float* packed,
                  std::int64_t row) {
  const std::int64_t taps = s.tap_count();
  if (s.w_channel == taps) return pack_transposed(w + k, s.w_row, rows, n, packed, row);
  for (std::int64_t c = k / taps, t = k % taps; n > 0; ++c, t = 0) {
    const std::int64_t some = std::min(n, taps - t);
    pack_transposed(w + c * s.w_channel + t, s.w_row, rows, some, packed, row);
    packed += some * row;
    n -= some;
  }
}

/// y[r, i] = turned[i, r] + b[r], or +=, for `n` positions of `rows` rows; those of y are `channel` apart, positions of
/// `turned` are `row`, and `b` may be null.
[[gnu::noinline]] void store_turned(const float* turned, std::int64_t row, std::int64_t n, std::int64_t rows,
                                    const float* b, float* y, std::int64_t channel, bool add) {
  for (std::int64_t j = 0; j < rows; j += kLanes<float>)
    for (std::int64_t i = 0; i < n; i += kLanes<float>) {
      Vector<float> square[kLanes<float>];
#pragma GCC unroll 16
      for (int l = 0; l < kLanes<float>; ++l) square[l] = load(turned + std::min(i + l, n - 1) * row + j);
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
  Units(const Sweep& s, const Cut& c, const float* x, const float* w) : s_(s), c_(c), x_(x), w_(w) {
    for (std::int64_t q = 0; q < kStep; ++q) weight_term_[q] = q * c.row;
    for (std::int64_t v = 0; v * kLanes<float> < c.row; ++v) vector_[v] = v * kLanes<float>, count_[v] = kLanes<float>;
    terms_.begin(s, &c.slab);
  }

  /// Sums the regions [from, to) for a band of rows of group `g`, from row `f` on.
  void sum(std::int64_t g, std::int64_t f, std::int64_t from, std::int64_t to, const float* b, float* y, bool add) {
    const std::int64_t rows = std::min(c_.band, s_.rows - f), channel = g * s_.rows + f;
    std::int64_t positions = 0;
    for (std::int64_t r = from; r < to; ++r) positions += positions_of(region(s_, c_.slab, r));
    const auto multiply = [&](std::int64_t k, std::int64_t n, float* sums, std::int64_t, bool more) {
      pack(g, f, rows, k, n);
      multiply_step(g, from, to, k, n, sums, more);
    };
    sum_in_steps<float>(positions, c_.row, c_.depth, multiply, own_.result, c_.row, false, c_.row, kStep);
    const float* sums = own_.result;
    for (std::int64_t r = from; r < to; ++r) {
      const Region area = region(s_, c_.slab, r);
      const std::int64_t at = (area.d * s_.result[1] + area.h) * s_.result_line + area.w;
      store_turned(sums, c_.row, positions_of(area), rows, b != nullptr ? b + channel : nullptr,
                   y + area.sample * s_.result_sample() + channel * s_.result_size + at, s_.result_size, add);
      sums += positions_of(area) * c_.row;
    }
  }

 private:
  static std::int64_t positions_of(const Region& r) { return r.lines * r.width; }

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
    pack_weights(s_, w_ + g * s_.w_group + f * s_.w_row, first, count, rows, packed, c_.row);
  }

  /// sums[i, r] = the sum of the terms [k, k + n) at position i of the regions, or +=
  void multiply_step(std::int64_t g, std::int64_t from, std::int64_t to, std::int64_t k, std::int64_t n, float* sums,
                     bool more) {
    const std::int64_t taps = s_.tap_count(), pitch = c_.slab.extent[2];
    const std::int64_t channel = k / taps, channels = (k + n - 1) / taps + 1 - channel;
    terms_.list_b(k, n, false);
    const bool is_filled = c_.fills_all && filled_[0] == g && filled_[1] == from;
    filled_[0] = g, filled_[1] = from;
    ListedOperands<float> pair{nullptr,      1,      terms_.b, terms_.b_step, weights_,
                               weight_term_, c_.row, vector_,  vector_,       count_};
    float* slab = own_.left;
    for (std::int64_t r = from; r < to; ++r, slab += c_.room) {
      const Region area = region(s_, c_.slab, r);
      const float* signal = x_ + area.sample * s_.signal_sample() + g * s_.channels * s_.signal_size;
      if (!c_.copies) {
        pair.a = signal + channel * s_.signal_size + (area.d * s_.axis[1].length + area.h) * pitch + area.w;
      } else if (c_.fills_all) {
        if (!is_filled) fill_slab(s_, c_.slab, area, signal, 0, s_.channels, slab);
        pair.a = slab + channel * c_.slab.volume;
      } else {
        fill_slab(s_, c_.slab, area, signal, channel, channels, slab);
        pair.a = slab;
      }
      pair.lines = area.lines, pair.a_line = pitch;
      if (c_.copies && area.lines == 1) {
        // Regions of one line are the lines of one product.
        if (r + 1 < to) continue;
        pair.a -= (r - from) * c_.room;
        pair.lines = to - from, pair.a_line = c_.room;
      }
      multiply_block<float>(area.width, c_.row, n, pair, sums, c_.row, more);
      sums += positions_of(area) * c_.row;
    }
  }

  const Sweep& s_;
  const Cut& c_;
  const float *const x_, *const w_;
  const Scratch<float>& own_ = scratch<float>();
  Terms<float> terms_;
  std::int64_t weight_term_[kStep], vector_[kBlockColumns / kLanes<float>];
  int count_[kBlockColumns / kLanes<float>];
  const float* weights_ = nullptr;           ///< of the step
  std::array<std::int64_t, 3> packed_ = {};  ///< group, row and term that the packed weights begin with
  std::uint64_t packed_bands_ = 0;           ///< bands of these that are packed
  std::int64_t filled_[2] = {-1, -1};        ///< group and first region of the slabs
};

}  // namespace

bool turned_sum(const Sweep& s, const float* x, const float* w, const float* b, float* y, bool add) {
  Cut c;
  if (!plan(s, c)) return false;
  const std::int64_t blocks = ceil_div(c.regions, c.together), positions = s.batch * s.position_count();
  parallel_for(s.groups * c.bands * blocks, parallel_work(ceil_div(positions, blocks) * c.row, c.depth),
               [=, &s, &c](std::int64_t first, std::int64_t last) {
                 Units units(s, c, x, w);
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

bool turned_sum(const Sweep&, const float*, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
