#pragma once

#include <limits>

#include "base/checked.hpp"
#include "kernels/conv_sweep.hpp"

namespace taper::kernels {

using checked::floor_div;

/// What some whole lines of positions, or a part of one, need of the signal, copied once: all taps of a channel find
/// their elements in the copy, each at a distance of its own, so nothing is copied once for each tap.
///
/// A channel's slab holds one grid for each remainder of the elements' coordinates by the strides, so that positions
/// next to each other find elements next to each other. Or it holds a part of the signal as it is, over which positions
/// step; the sweep then has strides of one.
struct Slab {
  bool use = false;                  ///< whether it was found to fit
  double time = 0;                   ///< about what a term of a vector of results takes, in products of vectors
  bool direct;                       ///< results go from the registers to where they belong
  bool overlap = false;              ///< a line's last vector ends where the line does
  std::int64_t lines, width;         ///< of positions in a full region
  std::int64_t result_line;          ///< distance of the lines in a block of results
  std::int64_t low[3];               ///< the first element of a grid, counted from the first position's
  std::int64_t extent[3];            ///< of a grid
  std::uint64_t phases[3];           ///< bit r: some tap needs the grid of remainder r
  std::int64_t volume;               ///< of a channel
  std::int64_t row;                  ///< distance of the rows in a block of results
  std::int64_t step[3] = {1, 1, 1};  ///< of the positions, in elements of a grid

  std::int64_t columns() const { return (lines - 1) * result_line + width; }
  /// Whether each line begins with a vector of its own.
  bool own_vectors(std::int64_t lanes) const { return lines == 1 || result_line % lanes == 0; }

  /// Where a tap's elements begin in the slab of its channel.
  std::int64_t element(const Sweep& s, const Place& tap) const {
    std::int64_t phase = 0, element = 0;
    for (int d = 0; d < 3; ++d) {
      const Axis& axis = s.axis[d];
      const std::int64_t u = axis.shift + tap.at[d] * axis.shift_step;
      const std::int64_t e = axis.stride == 1 ? u : floor_div(u, axis.stride);
      phase = phase * axis.stride + (u - e * axis.stride);
      element = element * extent[d] + (e - low[d]);
    }
    return phase * (extent[0] * extent[1] * extent[2]) + element;
  }

  /// Where each vector of columns lies, counted from the first.
  void list_vectors(std::int64_t lanes, std::int64_t* list) const {
    const std::int64_t in_line = ceil_div(lines > 1 ? result_line : width, lanes);
    for (std::int64_t v = 0; v * lanes < columns(); ++v) {
      list[v] = lines > 1 && own_vectors(lanes) ? v / in_line * extent[2] + v % in_line * lanes : v * lanes;
      if (overlap && (v + 1) % in_line == 0) list[v] -= in_line * lanes - width;
    }
  }
};

/// The largest stride of a signal that slabs are made for.
inline constexpr std::int64_t kSlabStride = 64;

/// The most columns of a block with a slab.
inline constexpr std::int64_t kSlabColumns = 1024;

/// Some lines [h, h + lines) of positions, or the part [w, w + width) of one line.
struct Region {
  std::int64_t sample, d, h, w, lines, width;
};

/// The regions of a sweep that have up to so many lines, or up to so many positions of one line.
struct RegionGrid {
  const Sweep& s;
  std::int64_t lines, width;
  std::int64_t extent[3];  ///< regions of a sample along each dimension

  RegionGrid(const Sweep& sweep, std::int64_t most_lines, std::int64_t most_width)
      : s(sweep),
        lines(most_lines),
        width(most_width),
        extent{s.positions[0], lines < s.positions[1] ? ceil_div(s.positions[1], lines) : 1,
               width < s.positions[2] ? ceil_div(s.positions[2], width) : 1} {}
  std::int64_t count() const { return s.batch * extent[0] * extent[1] * extent[2]; }
  [[gnu::noinline]] Region at(std::int64_t index) const {
    const Place p = locate(index, extent);
    const std::int64_t h = p.at[1] * lines, w = p.at[2] * width;
    return {p.sample, p.at[0], h, w, std::min(lines, s.positions[1] - h), std::min(width, s.positions[2] - w)};
  }
};

inline Region region(const Sweep& s, const Slab& slab, std::int64_t index) {
  return RegionGrid(s, slab.lines, slab.width).at(index);
}
inline std::int64_t region_count(const Sweep& s, const Slab& slab) {
  return RegionGrid(s, slab.lines, slab.width).count();
}

/// How far the taps of a sweep reach beyond its positions, in elements of a grid.
struct Reach {
  bool fits = false;  ///< whether slabs are made for it
  std::int64_t span[3], grids = 1;
  double used = 1;  ///< of the grids
};

/// The reach of a sweep; tells the slab where its grids begin and which of them are needed.
TAPER_FOR_SIZE inline Reach find_reach(const Sweep& s, Slab& slab) {
  constexpr std::int64_t longest = 1024;
  Reach reach;
  for (int d = 0; d < 3; ++d) {
    const Axis& axis = s.axis[d];
    if (axis.stride > kSlabStride || s.taps[d] > longest) return reach;
    const std::int64_t last = (s.taps[d] - 1) * axis.shift_step;
    slab.low[d] = floor_div(axis.shift + std::min<std::int64_t>(last, 0), axis.stride);
    reach.span[d] = floor_div(axis.shift + std::max<std::int64_t>(last, 0), axis.stride) - slab.low[d];
    if (reach.span[d] > longest) return reach;
    slab.phases[d] = 0;
    for (std::int64_t t = 0; t < s.taps[d]; ++t) {
      const std::int64_t u = axis.shift + t * axis.shift_step;
      slab.phases[d] |= std::uint64_t{1} << (u - floor_div(u, axis.stride) * axis.stride);
    }
    reach.grids *= axis.stride;
    reach.used *= __builtin_popcountll(slab.phases[d]);
  }
  reach.fits = true;
  return reach;
}

/// The most columns of blocks of `rows` rows: those of few rows are longer, unless that leaves too few of them for
/// several threads.
TAPER_FOR_SIZE inline std::int64_t most_columns(const Sweep& s, std::int64_t rows, std::int64_t lanes) {
  const std::int64_t size = s.positions[1] * s.positions[2];
  const std::int64_t blocks = s.groups * ceil_div(s.rows, rows) * s.batch * s.positions[0];
  const std::int64_t shared = size <= kSlabColumns ? blocks * size / 16 / lanes * lanes : kSlabColumns;
  const std::int64_t longer = std::min(kSlabColumns, kBlockRows * kBlockColumns / rows / lanes * lanes);
  return std::max(kBlockColumns, std::min(longer, shared));
}

/// The fastest slab among those that are considered for a sweep whose blocks have `rows` rows.
template <class T>
class FastestSlab {
 public:
  FastestSlab(const Sweep& s, std::int64_t rows, std::int64_t columns) : s_(s), rows_(rows), columns_(columns) {
    best_.time = std::numeric_limits<double>::infinity();
    reach_ = find_reach(s, best_);
  }
  const Reach& reach() const { return reach_; }
  const Slab& best() const { return best_; }

  /// A slab for some lines or a part of one, whose results lie `result_line` apart in a block.
  [[gnu::noinline]] void consider(std::int64_t lines, std::int64_t part, std::int64_t result_line) {
    const std::int64_t taps = s_.tap_count(), depth = s_.channels * taps;
    Slab slab = best_;
    slab.lines = lines;
    slab.width = part;
    slab.result_line = result_line;
    slab.extent[0] = 1 + reach_.span[0], slab.extent[1] = lines + reach_.span[1],
    slab.extent[2] = part + reach_.span[2];
    if (lines == 1) slab.extent[2] = ceil_div(slab.extent[2], kStep) * kStep;
    slab.row = ceil_div(slab.columns(), kStep) * kStep;
    if (slab.row > columns_) return;
    slab.direct = s_.axis[2].to_step == 1 && depth <= kLongSum && slab.own_vectors(kStep);
    const std::int64_t grid = slab.extent[0] * slab.extent[1] * slab.extent[2];
    const std::int64_t channels = std::min(s_.channels, (step_of(depth) + taps - 2) / taps + 1);
    if (grid > kRightSize<T> || grid * reach_.grids * channels + kStep > kRightSize<T>) return;
    slab.volume = grid * reach_.grids;
    slab.use = true;
    slab.time = time_of(slab);
    if (slab.time < best_.time) best_ = slab;
  }

 private:
  static constexpr std::int64_t kStep = kLanes<T>;

  /// The time for one vector of results and one tap, measured in products of vectors. Each copied line and each region
  /// cost some time of their own. Packing what each tap finds, the other way, was slower for all of a thousand sizes.
  [[gnu::always_inline]] inline double time_of(const Slab& slab) const {
    const std::int64_t height = s_.positions[1], width = s_.positions[2];
    const bool is_short = std::is_same_v<T, float> && kVectorWidth > 16 && s_.axis[2].stride == 1 && width <= 48;
    const double copy = s_.axis[2].stride > 1 ? kVectorWidth / 4.0 : 4, per_line = is_short ? 8 : 25, per_region = 600,
                 store = 2, copied_store = 6, per_stored_line = 6;
    // The last part of a line is a shorter one.
    const std::int64_t parts = ceil_div(width, slab.width), in_block = ceil_div(slab.columns(), kStep);
    const double vectors = slab.lines == 1 ? double(ceil_div(width, kStep)) / double(parts) : double(in_block);
    const double share = double(height * width) / double(ceil_div(height, slab.lines) * parts * kStep);
    const double stores = slab.direct ? store * vectors : copied_store * vectors + per_stored_line * double(slab.lines);
    const double copies = reach_.used * double(slab.extent[0] * slab.extent[1]) *
                          (per_line + copy * double(slab.extent[2]) / double(kStep));
    const double others =
        (copies + (per_region + double(rows_) * stores) / double(s_.channels)) / double(s_.tap_count());
    // A single vector keeps the processor waiting for its operands.
    const double waiting = in_block % 2 != 0 ? 0.6 : 0;
    return (vectors + waiting + others / double(std::max<std::int64_t>(rows_, 2))) / share;
  }

  const Sweep& s_;
  std::int64_t rows_, columns_;
  Slab best_{};
  Reach reach_;
};

/// The slab of a sweep whose blocks have `rows` rows.
template <class T>
TAPER_FOR_SIZE Slab plan_slab(const Sweep& s, std::int64_t rows) {
  constexpr std::int64_t lanes = kLanes<T>;
  const std::int64_t height = s.positions[1], width = s.positions[2];
  if (height * width < 32) return {};  // positions of many samples fill a block better
  const std::int64_t most = most_columns(s, rows, lanes);
  FastestSlab<T> slabs(s, rows, most);
  if (!slabs.reach().fits) return {};
  const auto whole = [](std::int64_t n) { return ceil_div(n, lanes) * lanes; };
  if (width > most) {
    // The longest parts that fit; an odd vector has a tile of its own. For many rows, what several taps find is packed
    // in less time than shorter parts are copied.
    const std::int64_t fewest = ceil_div(width, most);
    const std::int64_t last = s.tap_count() == 1 || rows <= 12 ? ceil_div(width, kBlockColumns) : fewest;
    for (std::int64_t parts = fewest; !slabs.best().use && parts <= last; ++parts) {
      const std::int64_t part = std::min(most, ceil_div(ceil_div(width, parts), 2 * lanes) * 2 * lanes);
      slabs.consider(1, part, part);
    }
  } else {
    // Of regions as many to a plane, the lowest.
    for (std::int64_t lines = std::min(height, most / width); lines >= 1; --lines) {
      lines = ceil_div(height, ceil_div(height, lines));
      slabs.consider(lines, width, whole(width));
      slabs.consider(lines, width, width + slabs.reach().span[2]);
    }
  }
  return slabs.best();
}

/// Fills the slab of the channels [first, first + n): grid element e of a channel stands for the signal's element
/// (low + e) * stride + remainder, counted from the region's first position; zero outside of the signal.
template <class T>
void fill_slab(const Sweep& s, const Slab& slab, const Region& region, const T* x, std::int64_t first, std::int64_t n,
               T* to);

/// Where most of what a region's slab of `n` channels holds is copied from; elements have `size` bytes.
Ahead source(const Sweep& s, const Slab& slab, const Region& r, std::int64_t n, const char* x, std::int64_t size);
template <class T>
Ahead source(const Sweep& s, const Slab& slab, const Region& r, const T* x, std::int64_t n) {
  return source(s, slab, r, n, reinterpret_cast<const char*>(x), static_cast<std::int64_t>(sizeof(T)));
}

}  // namespace taper::kernels
