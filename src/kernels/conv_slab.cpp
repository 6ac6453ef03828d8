#include "kernels/conv_slab.hpp"

#include <utility>

#include "kernels/lane_mask.hpp"
#include "kernels/product_vector.hpp"

namespace taper::kernels {

namespace {

/// y[i] = x[2 i] for one vector of y; nothing beyond the last of them is read.
template <class T, std::size_t... I>
inline void copy_even(const T* x, T* y, std::index_sequence<I...>) {
  constexpr std::size_t n = sizeof...(I);
  typedef T Half __attribute__((vector_size(n * sizeof(T))));
  Half low, high;
  std::memcpy(&low, x, sizeof low);
  std::memcpy(&high, x + n - 1, sizeof high);
  // The second half has an odd place in `high`, which counts from n.
  const Half even = __builtin_shufflevector(low, high, (2 * I < n ? 2 * I : 2 * I + 1)...);
  std::memcpy(y, &even, sizeof even);
}

/// y[i] = x[i * stride] for i < n. Out of line, as all of its kinds take room.
template <class T>
[[gnu::noinline]] void copy_strided(const T* x, std::int64_t n, std::int64_t stride, T* y) {
  if (stride == 1) return copy_run(x, n, y);
  if (stride == 2)
    for_parts<T, kVectorWidth>(
        n,
        [&](std::int64_t i, auto bytes) {
          copy_even(x + 2 * i, y + i, std::make_index_sequence<decltype(bytes)::value / sizeof(T)>());
        },
        [&](std::int64_t i) { y[i] = x[2 * i]; });
  else
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
}

/// y[i] = 0 for i < n; out of line too.
template <class T>
[[gnu::noinline]] void zero_part(std::int64_t n, T* y) {
  zero_run(n, y);
}

/// The same; made for lines of a few vectors.
template <class T>
inline void copy_line(const T* x, std::int64_t n, std::int64_t stride, T* y) {
  if (stride > 1 || n < kLanes<T> || n > 4 * kLanes<T>) return copy_strided(x, n, stride, y);
  const std::int64_t last = n - kLanes<T>;
  for (std::int64_t i = 0; i < last; i += kLanes<T>) store(load(x + i), y + i);
  store(load(x + last), y + last);
}

#if defined(__AVX2__)

/// The lanes of two vectors with even numbers (`kOdd` = 0) or odd ones.
template <int kOdd, int... L>
[[gnu::always_inline]] inline Vector<float> every_other(const Vector<float>& a, const Vector<float>& b,
                                                        std::integer_sequence<int, L...>) {
  return __builtin_shufflevector(a, b, (2 * L + kOdd)...);
}

/// The lines of a slab whose elements [skip, end) lie in the signal: one vector after another is loaded in part and
/// stored whole. What goes beyond a line is written again with the next.
class ShortLines {
 public:
  static constexpr std::int64_t kMost = 8 * kLanes<float>;

  ShortLines(std::int64_t n, std::int64_t skip, std::int64_t end)
      : n_(n), before_(skip), behind_(n + kLanes<float> - end) {
    for (std::int64_t i = 0; i < n; i += kLanes<float>) lanes_[i / kLanes<float>] = lanes_between(skip - i, end - i);
  }
  /// y[l, i] = x[l, i] for those elements of `count` lines, else 0; lines of x are `pitch` apart
  void copy(const float* x, std::int64_t pitch, std::int64_t count, float* y) const {
    // Whether other lines lie where whole vectors pass the ends of line l.
    const auto amid = [ =, this ](std::int64_t l) __attribute__((always_inline)) {
      return l * pitch >= before_ && (count - 1 - l) * pitch >= behind_;
    };
    if (kVectorWidth == 64 && n_ <= kLanes<float>) {
      const LaneMask lanes = lanes_[0];
      for (std::int64_t l = 0; l < count; ++l, x += pitch, y += n_) store(load_lanes(lanes, x, amid(l)), y);
      return;
    }
    for (std::int64_t l = 0; l < count; ++l, x += pitch, y += n_)
      amid(l) ? copy_line(x, y, true) : copy_line(x, y, false);
  }

 private:
  [[gnu::always_inline]] void copy_line(const float* x, float* y, bool is_amid) const {
    const LaneMask* lanes = lanes_;
    for (std::int64_t i = 0; i < n_; i += kLanes<float>, ++lanes) store(load_lanes(*lanes, x + i, is_amid), y + i);
  }

  std::int64_t n_, before_, behind_;
  LaneMask lanes_[kMost / kLanes<float>];
};

#endif

/// y[i] = 0 for i < n, and for what follows up to a whole number of vectors.
template <class T>
inline void zero_vectors(std::int64_t n, T* y) {
  for (std::int64_t i = 0; i < n; i += kLanes<T>) store(Vector<T>{}, y + i);
}

#if defined(__AVX2__)

/// Elements of the longest line of a grid that is filled by whole vectors.
constexpr std::int64_t kLongestWhole = 16 * kLanes<float>;

/// Fills slabs of planes whose lines are whole vectors. With a stride of two, a line's elements of even numbers and of
/// odd ones go to two grids at once.
[[gnu::noinline]] void fill_whole(const Sweep& s, const Slab& slab, const std::int64_t (&base)[3], const float* x,
                                  std::int64_t n, float* to) {
  const auto all = std::make_integer_sequence<int, kLanes<float>>();
  const Axis &height = s.axis[1], &width = s.axis[2];
  const std::int64_t lines = slab.extent[1], size = slab.extent[2], grids = width.stride;
  const std::int64_t grid = lines * size, other = grid * (grids - 1), begin = base[2] * grids;
  // Where whole vectors of a line begin to lie in the signal, and to end.
  const std::int64_t inside = std::min(size, -begin),
                     outside = std::min(size, width.length - begin) - kLanes<float> + 1;
  struct {
    LaneMask lanes;
    std::int64_t at;
  } parts[2 * kLongestWhole / kLanes<float>];
  for (std::int64_t i = 0; i < grids * size; i += kLanes<float>) {
    const std::int64_t at = begin + i;
    // Where nothing is in the signal, it might take long to find no memory there.
    parts[i / kLanes<float>] = {lanes_between(-at, width.length - at),
                                at > -kLanes<float> && at < width.length ? at : 0};
  }
  for (std::int64_t c = 0; c < n; ++c, x += s.signal_size)
    for (std::int64_t rh = 0; rh < height.stride; ++rh, to += grids * grid) {
      if (!(slab.phases[1] >> rh & 1)) continue;
      float* y = to;
      for (std::int64_t l = 0, h = base[1] * height.stride + rh; l < lines; ++l, h += height.stride, y += size) {
        if (h < 0 || h >= height.length) {
          zero_vectors(size, y);
          zero_vectors(size, y + other);
          continue;
        }
        const float* const line = x + h * s.signal_line;
        const bool amid = c * s.signal_size + h * s.signal_line >= kLanes<float> &&
                          (n - 1 - c) * s.signal_size + (height.length - 1 - h) * s.signal_line >= kLanes<float>;
        const auto read = [&](std::int64_t i) {
          const auto& part = parts[i / kLanes<float>];
          return load_lanes(part.lanes, line + part.at, amid);
        };
        if (grids == 1) {
          std::int64_t i = 0;
          for (; i < inside; i += kLanes<float>) store(read(i), y + i);
          for (; i < outside; i += kLanes<float>) store(load(line + begin + i), y + i);
          for (; i < size; i += kLanes<float>) store(read(i), y + i);
          continue;
        }
        for (std::int64_t i = 0; i < size; i += kLanes<float>) {
          const Vector<float> a = read(2 * i), b = read(2 * i + kLanes<float>);
          store(every_other<0>(a, b, all), y + i);
          store(every_other<1>(a, b, all), y + other + i);
        }
      }
    }
  store(Vector<float>{}, to);
}

#endif

}  // namespace

template <class T>
void pack_taps(const Sweep& s, const T* x, std::int64_t k, std::int64_t n, std::int64_t j, std::int64_t columns,
               T* packed, std::int64_t row) {
  const std::int64_t taps = s.tap_count(), channel = s.signal_size;
  const Place start = locate(j, s.positions);
  Place tap = locate(k % taps, s.taps);
  Piece pieces[std::max(kBlockColumns, kBlockDepth)];
  // The pieces of a tap are the same for all channels.
  for (std::int64_t r = 0; r < std::min(taps, n); ++r) {
    std::int64_t count = 0;
    for_runs(start, columns, s.positions, [&](const Run& run) { pieces[count++] = s.piece(run, tap); });
    for (std::int64_t q = r; q < n; q += taps) {
      const T* from = x + (k + q) / taps * channel;
      T* to = packed + q * row;
      for (std::int64_t i = 0; i < count; ++i) {
        const Piece& piece = pieces[i];
        T* y = to + piece.at;
        zero_part(piece.skip, y);
        copy_strided(from + piece.from, piece.count, s.axis[2].stride, y + piece.skip);
        zero_part(piece.size - piece.skip - piece.count, y + piece.skip + piece.count);
      }
    }
    step(tap, s.taps);
  }
}

template <class T>
void fill_slab(const Sweep& s, const Slab& slab, const Region& region, const T* x, std::int64_t first, std::int64_t n,
               T* to) {
  const std::int64_t base[3] = {region.d * slab.step[0] + slab.low[0], region.h * slab.step[1] + slab.low[1],
                                region.w * slab.step[2] + slab.low[2]};
  const Axis *depth = &s.axis[0], *height = &s.axis[1], *width = &s.axis[2];
  // Lines are filled in the order that they lie in: zeros may go on into the next one, and beyond the last.
  const std::int64_t grid = slab.extent[0] * slab.extent[1] * slab.extent[2];
  // The elements [skip, end) of a line lie in the signal: the same for all lines of a remainder.
  std::int64_t skips[kSlabStride], ends[kSlabStride];
  for (std::int64_t rw = 0; rw < width->stride; ++rw) {
    skips[rw] = std::clamp<std::int64_t>(-base[2], 0, slab.extent[2]);
    ends[rw] = std::clamp(floor_div(width->length - 1 - rw, width->stride) + 1 - base[2], skips[rw], slab.extent[2]);
  }
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    const bool is_whole = slab.extent[2] % kLanes<T> == 0 && slab.extent[2] <= kLongestWhole;
    if (is_whole && width->stride <= 2 && (width->stride == 2 || slab.extent[2] > ShortLines::kMost) &&
        slab.extent[0] * depth->stride * depth->length == 1 && base[0] == 0)
      return fill_whole(s, slab, base, x + first * s.signal_size, n, to);
    if (slab.extent[2] <= ShortLines::kMost && depth->stride * height->stride * width->stride == 1) {
      const ShortLines short_lines(slab.extent[2], skips[0], ends[0]);
      // A load under an empty mask would take long where no memory is.
      const std::int64_t lines = slab.extent[1], above = std::clamp<std::int64_t>(-base[1], 0, lines);
      const std::int64_t inside = std::clamp(height->length - base[1], above, lines) - above;
      const std::int64_t plane = height->length * width->length, size = lines * slab.extent[2];
      const auto copy = [&](std::int64_t c, std::int64_t i, std::int64_t pitch, std::int64_t count, float* y) {
        short_lines.copy(x + c * s.signal_size + i * plane + (base[1] + above) * s.signal_line + base[2], pitch, count,
                         y);
      };
      const auto is_plane = [&](std::int64_t i) { return i >= 0 && i < depth->length && skips[0] < ends[0]; };
      if (slab.extent[0] == 1 && lines == 1 && inside == 1 && is_plane(base[0])) {
        copy(first, base[0], s.signal_size, n, to);
        to += n * size;
      } else {
        for (std::int64_t c = first; c < first + n; ++c)
          for (std::int64_t i = base[0]; i < base[0] + slab.extent[0]; ++i, to += size) {
            const std::int64_t before = above * slab.extent[2], count = is_plane(i) ? inside : 0,
                               after = before + count * slab.extent[2];
            zero_vectors(before, to);
            copy(c, i, s.signal_line, count, to + before);
            zero_vectors(size - after, to + after);
          }
      }
      zero_run(kLanes<T>, to);
      return;
    }
  }
#endif
  for (std::int64_t c = first; c < first + n; ++c) {
    const T* from = x + c * s.signal_size;
    for (std::int64_t rd = 0; rd < depth->stride; ++rd)
      for (std::int64_t rh = 0; rh < height->stride; ++rh)
        for (std::int64_t rw = 0; rw < width->stride; ++rw) {
          T* line = to;
          to += grid;
          if (!(slab.phases[0] >> rd & slab.phases[1] >> rh & slab.phases[2] >> rw & 1)) continue;
          const std::int64_t skip = skips[rw], end = ends[rw];
          for (std::int64_t i = 0; i < slab.extent[0]; ++i)
            for (std::int64_t j = 0; j < slab.extent[1]; ++j, line += slab.extent[2]) {
              const std::int64_t d = (base[0] + i) * depth->stride + rd, h = (base[1] + j) * height->stride + rh;
              if (d < 0 || d >= depth->length || h < 0 || h >= height->length || skip == end) {
                zero_vectors(slab.extent[2], line);
                continue;
              }
              const T* row = from + d * height->length * width->length + h * s.signal_line;
              zero_vectors(skip, line);
              copy_line(row + (base[2] + skip) * width->stride + rw, end - skip, width->stride, line + skip);
              zero_vectors(slab.extent[2] - end, line + end);
            }
        }
  }
  zero_run(kLanes<T>, to);  // the last vector may read on
}

TAPER_FOR_SIZE Ahead source(const Sweep& s, const Slab& slab, const Region& r, std::int64_t n, const char* x,
                            std::int64_t size) {
  const std::int64_t first[3] = {r.d, r.h, r.w};
  std::int64_t from[3], count[3];
  for (int d = 0; d < 3; ++d) {
    const Axis& axis = s.axis[d];
    from[d] = std::clamp<std::int64_t>((first[d] * slab.step[d] + slab.low[d]) * axis.stride, 0, axis.length);
    count[d] = std::min(slab.extent[d] * axis.stride, axis.length - from[d]);
  }
  x += (from[0] * s.axis[1].length * s.axis[2].length + from[1] * s.signal_line + from[2]) * size;
  if (count[1] > 1 && s.signal_line != s.axis[2].length)
    return {x, s.signal_line * size, count[1], n * s.signal_size * size};
  return {x, s.signal_size * size, n, (std::max<std::int64_t>(count[1] - 1, 0) * s.signal_line + count[2]) * size};
}

template void pack_taps(const Sweep&, const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float*,
                        std::int64_t);
template void fill_slab(const Sweep&, const Slab&, const Region&, const float*, std::int64_t, std::int64_t, float*);
#ifndef TAPER_ONLY_FLOAT32
template void pack_taps(const Sweep&, const double*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, double*,
                        std::int64_t);
template void fill_slab(const Sweep&, const Slab&, const Region&, const double*, std::int64_t, std::int64_t, double*);
#endif

}  // namespace taper::kernels
