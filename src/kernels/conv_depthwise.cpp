#include "kernels/conv_depthwise.hpp"

#include "kernels/conv_slab.hpp"
#include "kernels/lane_mask.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product_vector.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

/// Elements of a copy, and of sums that wait for others, that stay in the first-level cache, and the vectors that are
/// summed beside each other.
constexpr std::int64_t kCopySize = 6144, kBeside = 8;

/// Elements of the copies of whole planes that are made at a time.
constexpr std::int64_t kCopiedTogether = 2048;

/// One vector of results: where its elements begin in the copy, and where they go.
struct Part {
  std::int64_t from, to;
};

/// Where a tap finds the elements of a position in the copy, and where its weight is.
struct Tap {
  std::int64_t element, weight;
};

/// Whether each result is one chain over one channel of a plane, and all results are there: one sweep's, or those of
/// sweeps that take turns along the lines and columns of the result, not more than two along a line.
TAPER_FOR_SIZE bool is_depthwise(const Sweep* sweeps, int count) {
  const Sweep& s = *sweeps;
  const Axis(&axis)[3] = s.axis;
  if (s.channels != 1 || s.rows != 1 || s.taps[0] != 1 || s.result[0] != 1 || axis[0].length != 1 ||
      axis[0].stride != 1 || axis[0].shift != 0 || axis[2].to_step > 2 || axis[1].to_step > count ||
      count != axis[1].to_step * axis[2].to_step)
    return false;
  std::int64_t positions = 0, taps = 0;
  for (int u = 0; u < count; ++u) positions += sweeps[u].position_count(), taps += sweeps[u].tap_count();
  return taps <= kChain<float> && positions == s.result_size && positions > 0;
}

/// Some lines of positions, or a part of one line, of all sweeps, and what the taps find around them, copied once.
class Band {
 public:
  Slab slab{};
  std::int64_t positions[3] = {1, 0, 0}, lines, width;  ///< of a plane, and of a band
  std::int64_t planes = 1;                              ///< that are copied at a time
  std::int64_t row;                                     ///< of the sums of a line
  bool direct;                                          ///< whether sums go to where they belong in whole vectors

  TAPER_FOR_SIZE Band(const Sweep* sweeps, int count, bool add) : sweeps_(sweeps), count_(count) {
    const Axis(&axis)[3] = sweeps->axis;
    std::int64_t span[3];
    for (int d = 1; d < 3; ++d) {
      std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = -low;
      for (int u = 0; u < count; ++u) {
        const Sweep& s = sweeps[u];
        const std::int64_t last = (s.taps[d] - 1) * s.axis[d].shift_step;
        positions[d] = std::max(positions[d], s.positions[d]);
        low = std::min(low, s.axis[d].shift + std::min<std::int64_t>(last, 0));
        high = std::max(high, s.axis[d].shift + std::max<std::int64_t>(last, 0));
      }
      slab.low[d] = floor_div(low, axis[d].stride);
      span[d] = floor_div(high, axis[d].stride) - slab.low[d];
      slab.phases[d] = ~std::uint64_t{0};
      if (axis[d].stride > kSlabStride || span[d] > kCopySize) return;
    }
    const std::int64_t grids = axis[1].stride * axis[2].stride;
    const std::int64_t beside = positions[1] == 1 ? kCopySize / (grids + count) : kCopySize;
    width = std::min(positions[2], beside);
    direct = count == 1 && !add;
    const auto whole = [](std::int64_t n) { return ceil_div(n, kLane) * kLane; };
    row = whole(width);
    slab.extent[0] = 1, slab.extent[2] = whole(width + span[2]);
    slab.phases[0] = 1;
    const std::int64_t copied = slab.extent[2] * grids;
    const std::int64_t room = (kCopySize - span[1] * copied) / (copied + (direct ? 0 : row * count));
    lines = std::max<std::int64_t>(std::min(room, positions[1]), 1);
    slab.extent[1] = lines + span[1];
    slab.volume = slab.extent[1] * copied;
    slab.use = slab.volume + kLane <= kRightSize<float> && lines * row <= kCopySize && size() * count <= kResultSize;
    if (lines == positions[1] && width == positions[2])
      planes = std::max<std::int64_t>(kCopiedTogether / slab.volume, 1);
  }

  /// Of the sums of one sweep.
  std::int64_t size() const { return lines * row; }

  /// Lists where the taps find their elements, and where their weights are: sweep after sweep in the order that results
  /// take turns in, each of which ends at `tap_end`.
  TAPER_FOR_SIZE void list_taps(Tap* tap, std::int64_t* tap_end) const {
    std::int64_t n = 0;
    for (int turn = 0; turn < count_; ++turn)
      for (const Sweep* s = sweeps_; s < sweeps_ + count_; ++s) {
        if (s->axis[1].to_first * s->axis[2].to_step + s->axis[2].to_first != turn) continue;
        Place place{};
        for (std::int64_t t = s->tap_count(); t > 0; --t, step(place, s->taps))
          tap[n++] = {slab.element(*s, place), s->weight(place)};
        tap_end[turn] = n;
      }
  }

  /// Lists the vectors of `n` lines of `columns` and tells how many there are; the last one fills up the vectors that
  /// are summed with it. Where sums go to where they belong, the last vector of a line ends where the line does, or
  /// what goes beyond is written again with the next line.
  TAPER_FOR_SIZE std::int64_t list_parts(std::int64_t n, std::int64_t columns, Part* part) const {
    const Part* const first = part;
    for (std::int64_t h = 0; h < n; ++h)
      for (std::int64_t l = 0; l < columns; l += kLane) {
        const std::int64_t at = direct && columns >= kLane ? std::min(l, columns - kLane) : l;
        *part++ = {h * slab.extent[2] + at, h * (direct ? sweeps_->result_line : row) + at};
      }
    for (std::int64_t v = 0; v < kBeside; ++v) part[v] = part[-1];
    return part - first;
  }

  /// Stores the sums of `n` lines of `columns` from (h, l) on, to the plane `y`. What goes beyond a line is written
  /// again with the next.
  void store_sums(std::int64_t h, std::int64_t l, std::int64_t n, std::int64_t columns, const float* sums, float* y,
                  bool add) const {
    const std::int64_t across = sweeps_->axis[2].to_step, down = sweeps_->axis[1].to_step, pitch = sweeps_->result_line;
    const float* const end = y + sweeps_->result_size;
    for (std::int64_t turn = 0, line = h * down; line < std::min((h + n) * down, sweeps_->result[1]); ++line) {
      const float* from = sums + turn * across * size();
      float* to = y + line * pitch + l * across;
      if (++turn == down) turn = 0, sums += row;
      for (std::int64_t count = std::min(columns * across, pitch - l * across); count > 0; from += kLane) {
        Vector<float> turns[2] = {load(from)};
        if (across == 2) {
          const Vector<float> even = turns[0], odd = load(from + size());
          const auto lanes = std::make_integer_sequence<int, kLane>();
          turns[0] = in_turns<0>(even, odd, lanes), turns[1] = in_turns<1>(even, odd, lanes);
        }
        for (std::int64_t i = 0; i < across && count > 0; ++i, to += kLane, count -= kLane) {
          if (!add && end - to >= kLane)
            store(turns[i], to);
          else
            store_part<float>(turns[i], std::min(count, kLane), to, add);
        }
      }
    }
  }

 private:
  const Sweep* sweeps_;
  int count_;
};

/// What is summed at each position: the taps of `count` sums, one after another.
struct Sums {
  const Tap* tap;
  const std::int64_t* tap_end;
  int count;
  std::int64_t size;  ///< of the results of one
};

/// y[u, v, :] = b + sum over taps t of sum u of w[t] x[v, t + :] for `n` parts, and for those that fill up the last
/// vectors; nothing from `end` on is written.
[[gnu::noinline]] void sum_parts(const Part* parts, std::int64_t n, const Sums& sums, const float* x, const float* w,
                                 float b, float* y, const float* end) {
  for (std::int64_t i = 0; i < n; i += kBeside, parts += kBeside) {
    const float* from[kBeside];
#pragma GCC unroll 8
    for (int v = 0; v < kBeside; ++v) from[v] = x + parts[v].from;
    float* to = y;
    const Tap* tap = sums.tap;
    for (int u = 0; u < sums.count; ++u, to += sums.size) {
      Vector<float> sum[kBeside];
#pragma GCC unroll 8
      for (int v = 0; v < kBeside; ++v) sum[v] = b - Vector<float>{};
      for (const Tap* const tap_end = sums.tap + sums.tap_end[u]; tap != tap_end; ++tap) {
        const std::int64_t at = tap->element;
        const Vector<float> weight = w[tap->weight] - Vector<float>{};
#pragma GCC unroll 8
        for (int v = 0; v < kBeside; ++v) sum[v] = multiply_add(weight, load(from[v] + at), sum[v]);
      }
      if (end - to - parts[kBeside - 1].to >= kLane) {
#pragma GCC unroll 8
        for (int v = 0; v < kBeside; ++v) store(sum[v], to + parts[v].to);
        continue;
      }
      float last[kBeside * kLane];
#pragma GCC unroll 8
      for (int v = 0; v < kBeside; ++v) store(sum[v], last + v * kLane);
      for (int v = 0; v < kBeside; ++v)
        store_lanes(load(last + v * kLane), std::min(kLane, end - to - parts[v].to), to + parts[v].to);
    }
  }
}

}  // namespace

bool depthwise_sum(const Sweep* sweeps, int count, const float* x, const float* w, const float* b, float* y, bool add) {
  if (!is_depthwise(sweeps, count)) return false;
  const Band band(sweeps, count, add);
  if (!band.slab.use) return false;
  const Sweep& s = *sweeps;
  // Lines that are read with steps are not seen ahead by the processor.
  const bool asks_ahead = s.axis[1].stride * s.axis[2].stride > 1 &&
                          !is_near(double(s.batch * s.groups) * double(s.signal_size) * sizeof(float));
  // y[n, g, i] = b[g] + sum over t of w[g, t] x[n, g, i + t]
  const auto sum_planes = [=, &s, &band](std::int64_t first, std::int64_t last) {
    const Scratch<float>& own = scratch<float>();
    Part parts[kCopySize / kLane + kBeside];
    Tap taps[kChain<float>];
    std::int64_t tap_end[kChain<float>];
    band.list_taps(taps, tap_end);
    const Sums sums{taps, tap_end, count, band.size()};
    std::int64_t listed_lines = 0, listed_columns = 0, n = 0;
    for (std::int64_t plane = first; plane < last; plane += band.planes)
      for (std::int64_t h = 0; h < band.positions[1]; h += band.lines)
        for (std::int64_t l = 0; l < band.positions[2]; l += band.width) {
          const std::int64_t lines = std::min(band.lines, band.positions[1] - h),
                             columns = std::min(band.width, band.positions[2] - l),
                             planes = std::min(band.planes, last - plane);
          if (lines != listed_lines || columns != listed_columns) n = band.list_parts(lines, columns, parts);
          listed_lines = lines, listed_columns = columns;
          const std::int64_t read = planes > 1 ? planes * s.signal_size : lines * s.axis[1].stride * s.signal_line;
          if (asks_ahead) Next(x + plane * s.signal_size + h * s.axis[1].stride * s.signal_line, read).fetch(read * 4);
          fill_slab(s, band.slab, {0, 0, h, l, lines, columns}, x + plane * s.signal_size, 0, planes, own.right);
          for (std::int64_t i = 0; i < planes; ++i) {
            const std::int64_t g = (plane + i) % s.groups;
            float* const to = y + (plane + i) * s.result_size;
            sum_parts(parts, n, sums, own.right + i * band.slab.volume, w + g * s.w_group, b != nullptr ? b[g] : 0.0f,
                      band.direct ? to + h * s.result_line + l : own.result,
                      band.direct ? y + last * s.result_size : own.result + kResultSize);
            if (!band.direct) band.store_sums(h, l, lines, columns, own.result, to, add);
          }
        }
  };
  // Copying a line and going to the next take as long as a hundred products or two.
  const std::int64_t lines = s.result_size / s.result_line;
  parallel_for(s.batch * s.groups, parallel_work(s.result_size + 128 * lines, s.kernel[1] * s.kernel[2] / count),
               sum_planes);
  return true;
}

#else

bool depthwise_sum(const Sweep*, int, const float*, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
