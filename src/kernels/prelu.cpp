#include "kernels/prelu.hpp"

#include <algorithm>

#include "kernels/array.hpp"
#include "kernels/ceil_div.hpp"
#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/packs.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Elements that one unit works on.
constexpr std::int64_t kBlock = 4096;

/// A unit is a block of a plane or, where planes have one element, some rows of channels: `width` elements are worked
/// on at a time, which are several rows of few channels where ends of rows take long.
struct PReLUUnits {
  static constexpr std::int64_t kFew = 256;  ///< elements of rows that are taken together, at most
  bool columns;
  std::int64_t channels, width, all, size, blocks, count, sums;

  TAPER_FOR_SIZE explicit PReLUUnits(const PReLUParams& p)
      : columns(p.inner == 1 && p.channels > 1),
        channels(p.channels),
        width(columns ? channels * rows(p) : p.inner),
        all(p.outer * channels * p.inner),
        size(columns ? std::max<std::int64_t>(kBlock / width, 1) * width : std::min(width, kBlock)),
        blocks(columns ? 1 : ceil_div(width, kBlock)),
        count(columns ? ceil_div(all, size) : p.outer * channels * blocks),
        sums(columns ? width : 1) {}

  /// As many rows as fill vectors, or several at least of very few channels.
  static std::int64_t rows(const PReLUParams& p) {
    const std::int64_t n = p.channels, some = n <= 16 ? 8 : std::min(8 / (n & -n), kFew / n);
    return kVectorWidth == 32 && some > 1 && some <= p.outer ? some : 1;
  }

  /// The elements [first, last) of a unit, and the channel of the first.
  struct Range {
    std::int64_t first, last, channel;
  };
  /// Moves to a unit, which mostly is the one behind.
  TAPER_FOR_SIZE void move(Range& r, std::int64_t unit) const {
    if (columns) {
      r = {unit * size, std::min(unit * size + size, all), 0};
    } else if (blocks == 1 && r.last == unit * width) {
      r = {r.last, r.last + width, r.channel + 1 < channels ? r.channel + 1 : 0};
    } else {
      const std::int64_t plane = unit / blocks, first = plane * width + (unit - plane * blocks) * kBlock;
      r = {first, std::min(first + size, (plane + 1) * width), plane % channels};
    }
  }

  /// The sum of what the units have for a channel: one number, or one for each channel.
  TAPER_FOR_SIZE double joined(const double* of_units, std::int64_t c) const {
    const std::int64_t step = channels * blocks;
    double sum = 0;
    for (std::int64_t u = c * blocks; u < count * sums; u += step)
      for (std::int64_t b = 0; b < blocks; ++b) sum += of_units[u + b];
    return sum;
  }
};

/// dx = dy for x > 0, else w_c dy, if there are `dx` and w; and the sums of x dy over x <= 0 of each unit, if there is
/// `sums`.
template <class T>
[[gnu::noinline]] void sloped(const PReLUUnits& units, const T* x, const T* w, const T* dy, T* dx, bool add,
                              double* sums) {
  T slopes[PReLUUnits::kFew];
  if (kVectorWidth == 32 && dx && units.sums > units.channels) {
    std::copy_n(w, units.channels, slopes);
    for (std::int64_t i = units.channels; i < units.sums; ++i) slopes[i] = slopes[i - units.channels];
    w = slopes;
  }
  const auto each = [=](std::int64_t i, T slope) {
    const T factor = x[i] > 0 ? T(1) : slope, step = factor * dy[i];
    dx[i] = add ? dx[i] + step : step;
  };
  const auto term = [=](auto at) __attribute__((always_inline)) {
    auto v = at(x);
    return v > 0 ? decltype(v){} : v * at(dy);
  };
  parallel_for(units.count, units.size, [=, &units](std::int64_t begin, std::int64_t end) {
    PReLUUnits::Range range{0, -1, 0};
    for (std::int64_t unit = begin; unit < end; ++unit) {
      units.move(range, unit);
      const std::int64_t last = range.last, channel = range.channel;
      std::int64_t first = range.first;
      // Vectors are for what is used most.
      if constexpr (kVectorWidth > 16) {
        double* const sum = sums ? sums + unit * units.sums : nullptr;
        if (sums) std::fill_n(sum, units.sums, 0.0);
        const Vector<T> slope = pack_of(dx ? w[channel] : T(0));
        for (std::int64_t n; first < last; first += n) {
          n = units.columns ? std::min(units.width, last - first) : last - first;
          const T *const from = x + first, *const g = dy + first;
          if (dx)
            store_packs<true>(
                dx + first, n, add, [ =, &units ](auto at) __attribute__((always_inline)) {
                  const Vector<T> some = at(g), other = units.columns ? at(w) : slope;
                  return at(from) > 0 ? some : other * some;
                });
          const auto its = [=](auto at) __attribute__((always_inline)) {
            at.i += first;
            return term(at);
          };
          if (sums && !units.columns) *sum = sum_of(n, its);
          std::int64_t c = sums && units.columns ? 0 : n;
          for (; c + kDoubles <= n; c += kDoubles) store<double>(load(sum + c) + its(ElementsAt{c}), sum + c);
          for (; c < n; ++c) sum[c] += its(ElementAt{c});
        }
        continue;
      }
      const std::int64_t step = units.columns ? 1 : 0, n = units.sums;
      if (sums) std::fill_n(sums + unit * n, n, 0.0);
      for (std::int64_t c = 0; first < last; ++first) {
        if (dx) each(first, w[channel + c]);
        if (sums) sums[unit * n + c] += term(ElementAt{first});
        c = c + step < n ? c + step : 0;
      }
    }
  });
}

/// Whether rows of channels and planes are worked on one by one if they are short, yet fill vectors. Measured with AVX2
/// alone.
template <class T>
constexpr bool kShortRows = kVectorWidth == 32 && sizeof(T) == sizeof(float);

/// y = x for x > 0, else w_c x, for rows of n channels or planes of n elements. The last vector of each may overlap the
/// one before, as parts of one take as long as several; it is computed first, so that y may be x.
template <bool kChannels, class T>
void short_rows(const PReLUParams& p, std::int64_t n, const T* x, const T* w, T* y) {
  const std::int64_t planes = kChannels ? 1 : p.channels;
  parallel_for(p.outer * planes, n, [=](std::int64_t unit, std::int64_t end) {
    const std::int64_t rest = n - kLanes<T>;
    for (std::int64_t c = unit % planes; unit < end; ++unit, c = c + 1 < planes ? c + 1 : 0) {
      const T* const from = x + unit * n;
      T* const to = y + unit * n;
      const auto value = [ from, w, slope = pack_of(w[c]) ](std::int64_t i) __attribute__((always_inline)) {
        const Vector<T> v = load(from + i), other = (kChannels ? load(w + i) : slope) * v;
        return v > 0 ? v : other;
      };
      const Vector<T> last = value(rest);
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < rest; i += kLanes<T>) store<T>(value(i), to + i);
      store<T>(last, to + rest);
    }
  });
}

}  // namespace

template <class T>
void prelu(const PReLUParams& p, const T* x, const T* w, T* y) {
  if constexpr (kShortRows<T>) {
    const bool channels = p.inner == 1 && p.channels > 1;
    const std::int64_t n = channels ? p.channels : p.inner;
    if (channels && n <= kBlock && (n >= 3 * kLanes<T> || n % kLanes<T> == 0)) return short_rows<true>(p, n, x, w, y);
    if (!channels && n >= kLanes<T> && n <= kBlock) return short_rows<false>(p, n, x, w, y);
  }
  // y = x for x > 0, else w_c x
  sloped(PReLUUnits(p), x, w, x, y, false, nullptr);
}

template <class T>
void prelu_backward(const PReLUParams& p, const T* x, const T* w, const T* dy, T* dx, bool add_dx, T* dw, bool add_dw) {
  const PReLUUnits units(p);
  if (!dw) return sloped(units, x, w, dy, dx, add_dx, nullptr);
  const Array<double> sums(units.count * units.sums);
  sloped(units, x, w, dy, dx, add_dx, sums.data());
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double sum = units.joined(sums.data(), c);
    dw[c] = T(add_dw ? double(dw[c]) + sum : sum);
  }
}

template void prelu(const PReLUParams&, const float*, const float*, float*);
template void prelu_backward(const PReLUParams&, const float*, const float*, const float*, float*, bool, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void prelu(const PReLUParams&, const double*, const double*, double*);
template void prelu_backward(const PReLUParams&, const double*, const double*, const double*, double*, bool, double*,
                             bool);
#endif

}  // namespace taper::kernels
