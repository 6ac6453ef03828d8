#include "kernels/batch_norm.hpp"

#include <algorithm>

#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Channels of at least so many elements a sample are summed along those; shorter ones side by side, in strips.
constexpr std::int64_t kLongRun = 16;
constexpr std::int64_t kStripWidth = 64;
/// Samples that one thread maps at a time where nothing is summed over them.
constexpr std::int64_t kStripSamples = 256;

/// Some neighbouring channels: in every sample `width` elements together, `spatial` of each channel.
struct Strip {
  std::int64_t channel, channels;
  std::int64_t first, width, spatial, pitch;

  std::int64_t row(std::int64_t sample) const { return sample * pitch + first; }
};

/// How channels are cut into strips.
struct Strips {
  std::int64_t each, count;

  explicit Strips(const BatchNormParams& p) : each(kStripWidth / p.spatial), count((p.channels + each - 1) / each) {}

  Strip strip(const BatchNormParams& p, std::int64_t i) const {
    const std::int64_t channel = i * each, channels = std::min(each, p.channels - channel);
    return {channel, channels, channel * p.spatial, channels * p.spatial, p.spatial, p.channels * p.spatial};
  }
};

bool is_long(const BatchNormParams& p) { return p.spatial >= kLongRun; }

std::int64_t count_of(const BatchNormParams& p) { return p.samples * p.spatial; }

/// Calls `body(sample_run)` for the runs of one channel, in order.
template <class Body>
void for_each_run(const BatchNormParams& p, std::int64_t channel, const Body& body) {
  for (std::int64_t sample = 0; sample < p.samples; ++sample) body((sample * p.channels + channel) * p.spatial);
}

/// total_c = sum of the `spatial` elements of channel c of a strip
double fold(const double* elements, const Strip& strip, std::int64_t c) {
  double total = 0;
  for (std::int64_t i = 0; i < strip.spatial; ++i) total += elements[c * strip.spatial + i];
  return total;
}

/// One number a channel, repeated for its elements of a strip.
template <class Value>
void spread(const Strip& strip, double* elements, const Value& value) {
  for (std::int64_t c = 0; c < strip.channels; ++c) std::fill_n(elements + c * strip.spatial, strip.spatial, value(c));
}

// --- moments --------------------------------------------------------------------------------------------------------

template <class T>
Moments moments_of_channel(const BatchNormParams& p, const T* x, std::int64_t channel) {
  // mean = sum x / n
  double total = 0;
  for_each_run(p, channel, [&](std::int64_t run) {
    total += sum_of(
        p.spatial, [=](auto at) __attribute__((always_inline)) { return at(x + run); });
  });
  const double mean = total / static_cast<double>(count_of(p));
  // the sums of x - mean and of its square
  SumPair sums;
  for_each_run(p, channel, [&](std::int64_t run) {
    sums += sum_pairs(
        p.spatial, [=](auto at) __attribute__((always_inline)) {
          const auto d = at(x + run) - mean;
          return TermPair{d, d * d};
        });
  });
  return moments_from(mean, sums.first, sums.second, count_of(p), p.eps);
}

template <class T>
void moments_of_strip(const BatchNormParams& p, const T* x, const Strip& strip, Moments* moments) {
  double sum[kStripWidth] = {}, mean[kStripWidth], first[kStripWidth] = {}, second[kStripWidth] = {};
  // sum_j += x_j
  for (std::int64_t sample = 0; sample < p.samples; ++sample)
    for (std::int64_t j = 0; j < strip.width; ++j) sum[j] += static_cast<double>(x[strip.row(sample) + j]);
  spread(strip, mean, [&](std::int64_t c) { return fold(sum, strip, c) / static_cast<double>(count_of(p)); });
  // the sums of x_j - mean_j and of its square
  for (std::int64_t sample = 0; sample < p.samples; ++sample)
    for (std::int64_t j = 0; j < strip.width; ++j) {
      const double d = static_cast<double>(x[strip.row(sample) + j]) - mean[j];
      first[j] += d;
      second[j] += d * d;
    }
  for (std::int64_t c = 0; c < strip.channels; ++c)
    moments[strip.channel + c] =
        moments_from(mean[c * strip.spatial], fold(first, strip, c), fold(second, strip, c), count_of(p), p.eps);
}

// --- maps -----------------------------------------------------------------------------------------------------------

template <class T>
void map_runs(const BatchNormParams& p, const T* x, const T* w, const T* b, const Moments* moments, T* y) {
  parallel_for(p.samples * p.channels, p.spatial * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t c = plane % p.channels;
      const Affine map(moments[c], affine_at(w, c, 1), affine_at(b, c, 0));
      const T* const from = x + plane * p.spatial;
      T* const to = y + plane * p.spatial;
      // y_i = (x_i - mean) rstd w_c + b_c
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = 0; i < p.spatial; ++i) to[i] = T(map(static_cast<double>(from[i])));
    }
  });
}

template <class T>
void map_strips(const BatchNormParams& p, const T* x, const T* w, const T* b, const Moments* moments, T* y) {
  const Strips strips(p);
  const std::int64_t chunks = (p.samples + kStripSamples - 1) / kStripSamples;
  const std::int64_t cost = std::min(p.samples, kStripSamples) * strips.each * p.spatial * kNormCost;
  parallel_for(strips.count * chunks, cost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const Strip strip = strips.strip(p, unit / chunks);
      const auto map = [&](std::int64_t c) {
        return Affine(moments[strip.channel + c], affine_at(w, strip.channel + c, 1),
                      affine_at(b, strip.channel + c, 0));
      };
      double center[kStripWidth], scale[kStripWidth], shift[kStripWidth];
      spread(strip, center, [&](std::int64_t c) { return map(c).center; });
      spread(strip, scale, [&](std::int64_t c) { return map(c).scale; });
      spread(strip, shift, [&](std::int64_t c) { return map(c).shift; });
      const std::int64_t from = unit % chunks * kStripSamples, to = std::min(p.samples, from + kStripSamples);
      for (std::int64_t sample = from; sample < to; ++sample) {
        const std::int64_t row = strip.row(sample);
        // y_j = (x_j - mean_j) rstd_j w_j + b_j
        TAPER_INDEPENDENT_TURNS
        for (std::int64_t j = 0; j < strip.width; ++j)
          y[row + j] = T((static_cast<double>(x[row + j]) - center[j]) * scale[j] + shift[j]);
      }
    }
  });
}

// --- gradients ------------------------------------------------------------------------------------------------------

/// The sums of dy and of dy h over one channel, h being the normalised x.
template <class T>
SumPair sums_of_channel(const BatchNormParams& p, const T* dy, const T* x, const Moments& m, std::int64_t channel) {
  const Affine normal(m, 1, 0);
  SumPair sums;
  for_each_run(p, channel, [&](std::int64_t run) {
    sums += sum_pairs(
        p.spatial, [=](auto at) __attribute__((always_inline)) {
          const auto g = at(dy + run);
          return TermPair{g, g * normal(at(x + run))};
        });
  });
  return sums;
}

template <class T>
void sums_of_strip(const BatchNormParams& p, const T* dy, const T* x, const Moments* moments, const Strip& strip,
                   SumPair* sums) {
  double center[kStripWidth], first[kStripWidth] = {}, second[kStripWidth] = {};
  spread(strip, center, [&](std::int64_t c) { return moments[strip.channel + c].mean; });
  // the sums of dy_j and of dy_j (x_j - mean_j)
  for (std::int64_t sample = 0; sample < p.samples; ++sample)
    for (std::int64_t j = 0; j < strip.width; ++j) {
      const double g = static_cast<double>(dy[strip.row(sample) + j]);
      first[j] += g;
      second[j] += g * (static_cast<double>(x[strip.row(sample) + j]) - center[j]);
    }
  for (std::int64_t c = 0; c < strip.channels; ++c) {
    const Moments& m = moments[strip.channel + c];
    const double total = fold(first, strip, c);
    sums[c] = {total, (fold(second, strip, c) - m.rest * total) * m.rstd};
  }
}

template <class T>
void store_affine(const NormGradients<T>& out, std::int64_t channel, SumPair sums) {
  if (out.dw) store(out.dw + channel, sums.second, out.add_dw);
  if (out.db) store(out.db + channel, sums.first, out.add_db);
}

/// How one channel's dx follows from dy and x: dx = dy own + (x - center) slope + shift.
struct InputSlope {
  double own, center, slope, shift;
};

/// dx = w rstd (dy - mean(dy) - h mean(dy h)), h = (x - mean) rstd
InputSlope slope_of(const BatchNormParams& p, const Moments& m, double w, SumPair sums) {
  const double own = w * m.rstd, n = static_cast<double>(count_of(p));
  const double slope = -own * m.rstd * sums.second / n;
  return {own, m.mean, slope, -own * sums.first / n - m.rest * slope};
}

/// dx_i = dy_i own: with fixed moments x does not matter, not even where it is infinite.
template <class T>
void scale_run(const T* dy, std::int64_t n, double own, T* dx, bool add) {
  store_run(dx, n, add, [=](std::int64_t i) { return static_cast<double>(dy[i]) * own; });
}

template <class T>
void gradients_of_channel(const BatchNormParams& p, const T* dy, const T* x, const T* w, const Moments* moments,
                          const NormGradients<T>& out, std::int64_t channel) {
  const Moments& m = moments[channel];
  SumPair sums;
  if (!p.fixed || out.dw || out.db) sums = sums_of_channel(p, dy, x, m, channel);
  store_affine(out, channel, sums);
  if (!out.dx) return;
  const InputSlope s = slope_of(p, m, affine_at(w, channel, 1), sums);
  for_each_run(p, channel, [&](std::int64_t run) {
    if (p.fixed) return scale_run(dy + run, p.spatial, s.own, out.dx + run, out.add_dx);
    // dx_i = dy_i own + (x_i - mean) slope + shift
    store_run(out.dx + run, p.spatial, out.add_dx, [=](std::int64_t i) {
      return static_cast<double>(dy[run + i]) * s.own +
             ((static_cast<double>(x[run + i]) - s.center) * s.slope + s.shift);
    });
  });
}

template <class T>
void gradients_of_strip(const BatchNormParams& p, const T* dy, const T* x, const T* w, const Moments* moments,
                        const NormGradients<T>& out, const Strip& strip) {
  SumPair sums[kStripWidth];
  if (!p.fixed || out.dw || out.db) sums_of_strip(p, dy, x, moments, strip, sums);
  for (std::int64_t c = 0; c < strip.channels; ++c) store_affine(out, strip.channel + c, sums[c]);
  if (!out.dx) return;
  const auto slope = [&](std::int64_t c) {
    return slope_of(p, moments[strip.channel + c], affine_at(w, strip.channel + c, 1), sums[c]);
  };
  double own[kStripWidth], center[kStripWidth], slopes[kStripWidth], shift[kStripWidth];
  spread(strip, own, [&](std::int64_t c) { return slope(c).own; });
  spread(strip, center, [&](std::int64_t c) { return slope(c).center; });
  spread(strip, slopes, [&](std::int64_t c) { return slope(c).slope; });
  spread(strip, shift, [&](std::int64_t c) { return slope(c).shift; });
  for (std::int64_t sample = 0; sample < p.samples; ++sample) {
    const std::int64_t row = strip.row(sample);
    if (p.fixed) {
      // dx_j = dy_j own_j
      store_run(out.dx + row, strip.width, out.add_dx,
                [&, from = dy + row](std::int64_t j) { return static_cast<double>(from[j]) * own[j]; });
      continue;
    }
    // dx_j = dy_j own_j + (x_j - mean_j) slope_j + shift_j
    store_run(out.dx + row, strip.width, out.add_dx, [&, from = dy + row, at = x + row](std::int64_t j) {
      return static_cast<double>(from[j]) * own[j] + ((static_cast<double>(at[j]) - center[j]) * slopes[j] + shift[j]);
    });
  }
}

}  // namespace

template <class T>
void batch_moments(const BatchNormParams& p, const T* x, Moments* moments) {
  if (count_of(p) == 0) return;
  if (is_long(p)) {
    parallel_for(p.channels, 2 * count_of(p) * kNormCost, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t c = first; c < last; ++c) moments[c] = moments_of_channel(p, x, c);
    });
    return;
  }
  const Strips strips(p);
  parallel_for(strips.count, 2 * count_of(p) * strips.each * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) moments_of_strip(p, x, strips.strip(p, i), moments);
  });
}

template <class T>
void fixed_moments(const BatchNormParams& p, const T* mean, const T* variance, Moments* moments) {
  // rstd_c = 1 / sqrt(variance_c + eps)
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double v = static_cast<double>(variance[c]);
    moments[c] = {static_cast<double>(mean[c]), 0, v, 1 / std::sqrt(v + p.eps)};
  }
}

template <class T>
void update_running(double momentum, std::int64_t count, std::int64_t samples, std::int64_t channels,
                    const Moments* moments, T* mean, T* variance) {
  const double n = static_cast<double>(count), unbiased = n / (n - 1);
  for (std::int64_t c = 0; c < channels; ++c) {
    SumPair sums;
    for (std::int64_t s = 0; s < samples; ++s) {
      const Moments& m = moments[s * channels + c];
      sums += {m.mean + m.rest, m.variance * unbiased};
    }
    // running = (1 - momentum) running + momentum sum / samples
    const double share = momentum / static_cast<double>(samples);
    mean[c] = T((1 - momentum) * static_cast<double>(mean[c]) + share * sums.first);
    variance[c] = T((1 - momentum) * static_cast<double>(variance[c]) + share * sums.second);
  }
}

template <class T>
void batch_norm(const BatchNormParams& p, const T* x, const T* w, const T* b, const Moments* moments, T* y) {
  if (count_of(p) == 0) return;
  is_long(p) ? map_runs(p, x, w, b, moments, y) : map_strips(p, x, w, b, moments, y);
}

template <class T>
void batch_norm_backward(const BatchNormParams& p, const T* dy, const T* x, const T* w, const Moments* moments,
                         const NormGradients<T>& gradients) {
  if (count_of(p) == 0) {
    for (std::int64_t c = 0; c < p.channels && (gradients.dw || gradients.db); ++c) store_affine(gradients, c, {});
    return;
  }
  if (is_long(p)) {
    parallel_for(p.channels, 2 * count_of(p) * kNormCost, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t c = first; c < last; ++c) gradients_of_channel(p, dy, x, w, moments, gradients, c);
    });
    return;
  }
  const Strips strips(p);
  parallel_for(strips.count, 2 * count_of(p) * strips.each * kNormCost, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) gradients_of_strip(p, dy, x, w, moments, gradients, strips.strip(p, i));
  });
}

#define TAPER_INSTANTIATE_BATCH_NORM(T)                                                                      \
  template void batch_moments<T>(const BatchNormParams&, const T*, Moments*);                                \
  template void fixed_moments<T>(const BatchNormParams&, const T*, const T*, Moments*);                      \
  template void update_running<T>(double, std::int64_t, std::int64_t, std::int64_t, const Moments*, T*, T*); \
  template void batch_norm<T>(const BatchNormParams&, const T*, const T*, const T*, const Moments*, T*);     \
  template void batch_norm_backward<T>(const BatchNormParams&, const T*, const T*, const T*, const Moments*, \
                                       const NormGradients<T>&)
TAPER_INSTANTIATE_BATCH_NORM(float);
TAPER_INSTANTIATE_BATCH_NORM(double);

}  // namespace taper::kernels
