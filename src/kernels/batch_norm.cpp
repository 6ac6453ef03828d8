#include "kernels/batch_norm.hpp"

#include <algorithm>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/norm_loops.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Channels of more elements a sample are summed along those; shorter ones side by side, in strips, which pays for few
/// samples where they are shorter still.
constexpr std::int64_t kShortRun = 32, kShortRunOfFew = 15, kFewSamples = 8;
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

  explicit Strips(const BatchNormParams& p) : each(kStripWidth / p.spatial), count(ceil_div(p.channels, each)) {}

  Strip strip(const BatchNormParams& p, std::int64_t i) const {
    const std::int64_t channel = i * each, channels = std::min(each, p.channels - channel);
    return {channel, channels, channel * p.spatial, channels * p.spatial, p.spatial, p.channels * p.spatial};
  }
};

bool is_long(const BatchNormParams& p) { return p.spatial > (p.samples < kFewSamples ? kShortRunOfFew : kShortRun); }

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

/// Repeats one number a channel for its elements of a strip, in place.
template <class T>
TAPER_FOR_SIZE void spread(const Strip& strip, T* numbers) {
  if (strip.spatial == 1) return;
  for (std::int64_t c = strip.channels - 1; c >= 0; --c) {
    const T number = numbers[c];
    for (std::int64_t i = 0; i < strip.spatial; ++i) numbers[c * strip.spatial + i] = number;
  }
}

// --- moments --------------------------------------------------------------------------------------------------------

template <class T>
Moments moments_of_channel(const BatchNormParams& p, const T* x, std::int64_t channel) {
  // mean = sum x / n, which only has to be near: the sums of x - mean and of its square say the rest
  double total = 0;
  for_each_run(p, channel, [&](std::int64_t run) { total += near_sum(x + run, p.spatial); });
  const T center = T(total / static_cast<double>(count_of(p)));
  SumPair sums;
  for_each_run(p, channel, [&](std::int64_t run) { sums += deviations_of(x + run, p.spatial, center); });
  return moments_from(static_cast<double>(center), sums.first, sums.second, count_of(p), p.eps);
}

/// The sums over the samples of K terms of each element of a strip: `add(at, row, sums)` adds those of a pack to K
/// packs, `row` being where the elements of a sample begin. Chains of few additions run in T and are joined in double.
template <class T, int K, class Add>
[[gnu::always_inline]] inline void sum_samples(std::int64_t samples, const Strip& strip,
                                               double (&totals)[K][kStripWidth], const Add& add) {
  constexpr std::int64_t kTogether = 16;
  for (AnyPack at{0, strip.width}; at; at.next<T>()) {
    at.lean_back<T>();
    double* const to = totals[0] + at.i;
    for (std::int64_t first = 0; first < samples; first += kTogether) {
      Vector<T> sum[K] = {};
      const std::int64_t last = std::min(samples, first + kTogether);
      for (std::int64_t sample = first; sample < last; ++sample) add(at, strip.row(sample), sum);
      for (int k = 0; k < K; ++k) {
        LongPack<T> total(sum[k]);
        if (first > 0) total += LongPack<T>(to + k * kStripWidth);
        total.store(to + k * kStripWidth);
      }
    }
  }
}

template <class T>
void moments_of_strip(const BatchNormParams& p, const T* x, const Strip& strip, Moments* moments) {
  const double n = static_cast<double>(count_of(p));
  double sum[1][kStripWidth], sums[2][kStripWidth];
  T center[kStripWidth];
  // mean = sum x / n, which only has to be near: the sums of x - mean and of its square say the rest
  sum_samples<T>(
      p.samples, strip,
      sum, [=](AnyPack at, std::int64_t row, auto& to) __attribute__((always_inline)) { to[0] += at(x + row); });
  for (std::int64_t c = 0; c < strip.channels; ++c) center[c] = T(fold(sum[0], strip, c) / n);
  spread(strip, center);
  sum_samples<T>(
      p.samples, strip, sums, [&](AnyPack at, std::int64_t row, auto& to) __attribute__((always_inline)) {
        const Vector<T> d = at(x + row) - at(center);
        to[0] += d;
        to[1] = fused(d, d, to[1]);
      });
  for (std::int64_t c = 0; c < strip.channels; ++c)
    moments[strip.channel + c] = moments_from(static_cast<double>(center[c * strip.spatial]), fold(sums[0], strip, c),
                                              fold(sums[1], strip, c), count_of(p), p.eps);
}

// --- maps -----------------------------------------------------------------------------------------------------------

template <class T>
void map_runs(const BatchNormParams& p, const T* x, const T* w, const T* b, const Moments* moments, T* y) {
  parallel_for(p.samples * p.channels, p.spatial * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t c = plane % p.channels;
      // y_i = (x_i - mean) rstd w_c + b_c
      map_run(Affine<T>(moments[c], affine_at(w, c, 1), affine_at(b, c, 0)), x + plane * p.spatial, p.spatial,
              y + plane * p.spatial);
    }
  });
}

/// The maps of a strip's elements.
template <class T>
TAPER_FOR_SIZE void list_maps(const Strip& strip, const T* w, const T* b, const Moments* moments, T* center, T* scale,
                              T* shift) {
  for (std::int64_t c = 0; c < strip.channels; ++c) {
    const std::int64_t channel = strip.channel + c;
    const Affine<T> map(moments[channel], affine_at(w, channel, 1), affine_at(b, channel, 0));
    center[c] = map.center, scale[c] = map.scale, shift[c] = map.shift;
  }
  for (T* numbers : {center, scale, shift}) spread(strip, numbers);
}

template <class T>
void map_strips(const BatchNormParams& p, const T* x, const T* w, const T* b, const Moments* moments, T* y) {
  const Strips strips(p);
  const std::int64_t chunks = ceil_div(p.samples, kStripSamples);
  const std::int64_t cost = std::min(p.samples, kStripSamples) * strips.each * p.spatial * kNormCost;
  parallel_for(strips.count * chunks, cost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const Strip strip = strips.strip(p, unit / chunks);
      T center[kStripWidth], scale[kStripWidth], shift[kStripWidth];
      list_maps(strip, w, b, moments, center, scale, shift);
      const std::int64_t from = unit % chunks * kStripSamples, to = std::min(p.samples, from + kStripSamples);
      for (std::int64_t sample = from; sample < to; ++sample) {
        const std::int64_t row = strip.row(sample);
        // y_j = (x_j - mean_j) rstd_j w_j + b_j
        map_packs<T>(
            strip.width,
            [ from = x + row, to = y + row, less = &center[0], by = &scale[0], more = &shift[0] ](auto at)
                __attribute__((always_inline)) { at.store(to, fused(at(from) - at(less), at(by), at(more))); });
      }
    }
  });
}

// --- gradients ------------------------------------------------------------------------------------------------------

template <class T>
void sums_of_strip(const BatchNormParams& p, const T* dy, const T* x, const Moments* moments, const Strip& strip,
                   SumPair* sums) {
  double center[kStripWidth], first[kStripWidth] = {}, second[kStripWidth] = {};
  for (std::int64_t c = 0; c < strip.channels; ++c) center[c] = moments[strip.channel + c].mean;
  spread(strip, center);
  // the sums of dy_j and of dy_j (x_j - mean_j), of so many samples at a time as stay in the first cache
  constexpr std::int64_t kTogether = 8;
  for (std::int64_t from = 0; from < p.samples; from += kTogether)
    for (AnyPack at{0, strip.width}; at; at.next<T>()) {
      const LongPack<T> mean(center + at.i);
      LongPack<T> of_dy(first + at.i), of_both(second + at.i);
      for (std::int64_t sample = from; sample < std::min(p.samples, from + kTogether); ++sample) {
        const LongPack<T> g(at(dy + strip.row(sample)));
        LongPack<T> d(at(x + strip.row(sample)));
        of_dy += g;
        of_both += (d -= mean) *= g;
      }
      of_dy.store(first + at.i), of_both.store(second + at.i);
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

/// mean(g) and mean(g h) of one channel, g = dy w.
SumPair means_of(const BatchNormParams& p, double w, SumPair sums) {
  const double each = w / static_cast<double>(count_of(p));
  return {sums.first * each, sums.second * each};
}

/// dx_i = dy_i own: with fixed moments x does not matter, not even where it is infinite.
template <class T>
void scale_run(const T* dy, std::int64_t n, T own, T* dx, bool add) {
  store_packs(
      dx, n, add, [=](auto at) __attribute__((always_inline)) { return at(dy) * own; });
}

/// Channels of long runs: first the sums over the runs, then dx. Neighbouring channels are taken together: as many as
/// the second-level cache holds between the two; of those that it does not hold, a share for each thread, as they lie
/// in memory.
template <class T>
void gradients_of_runs(const BatchNormParams& p, const T* dy, const T* x, const T* w, Moments* moments,
                       const NormGradients<T>& out) {
  constexpr std::int64_t kNear = 1 << 19;
  const std::int64_t n = p.spatial, channels = p.channels, most = ceil_div(channels, max_threads());
  const std::int64_t bytes = 2 * count_of(p) * std::int64_t{sizeof(T)};
  const std::int64_t together = bytes <= kNear ? std::min(kNear / bytes, most) : most;
  const bool summed = !p.fixed || out.dw || out.db;
  auto* const sums = reinterpret_cast<SumPair*>(moments + channels);
  const std::int64_t work = 2 * together * count_of(p) * kNormCost;
  parallel_for(ceil_div(channels, together), work, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t c0 = first * together; c0 < std::min(last * together, channels); c0 += together) {
      const std::int64_t c1 = std::min(c0 + together, channels);
      for (std::int64_t sample = 0; sample < p.samples && summed; ++sample)
        for (std::int64_t c = c0, run = sample * channels + c; c < c1; ++c, ++run)
          sums[run] = gradient_sums(moments[c], n, count_of(p), dy + run * n, x + run * n);
      // the sums of dy and dy h over a channel, which take the place of those over its first run
      for (std::int64_t c = c0; c < c1 && summed; ++c) {
        for (std::int64_t sample = 1; sample < p.samples; ++sample) sums[c] += sums[sample * channels + c];
        store_affine(out, c, sums[c]);
      }
      for (std::int64_t sample = 0; sample < p.samples && out.dx; ++sample)
        for (std::int64_t c = c0, run = sample * channels + c; c < c1; ++c, ++run) {
          const double weight = affine_at(w, c, 1);
          // dx = w rstd (dy - mean(dy) - h mean(dy h)), h = (x - mean) rstd
          if (p.fixed)
            scale_run(dy + run * n, n, T(weight * moments[c].rstd), out.dx + run * n, out.add_dx);
          else
            slope_run(moments[c], weight, means_of(p, weight, sums[c]), dy + run * n, x + run * n, n, count_of(p),
                      out.dx + run * n, out.add_dx);
        }
    }
  });
}

/// How dx follows from dy and x for a strip's elements.
template <class T>
TAPER_FOR_SIZE void list_slopes(const BatchNormParams& p, const Strip& strip, const T* w, const Moments* moments,
                                const SumPair* sums, double* own, double* center, double* slopes, double* shift) {
  for (std::int64_t c = 0; c < strip.channels; ++c) {
    const double weight = affine_at(w, strip.channel + c, 1);
    const InputSlope<double> slope(moments[strip.channel + c], weight, means_of(p, weight, sums[c]));
    own[c] = slope.own, center[c] = slope.center, slopes[c] = slope.slope, shift[c] = slope.shift;
  }
  for (double* numbers : {own, center, slopes, shift}) spread(strip, numbers);
}

template <class T>
void gradients_of_strip(const BatchNormParams& p, const T* dy, const T* x, const T* w, const Moments* moments,
                        const NormGradients<T>& out, const Strip& strip) {
  SumPair sums[kStripWidth];
  if (!p.fixed || out.dw || out.db) sums_of_strip(p, dy, x, moments, strip, sums);
  for (std::int64_t c = 0; c < strip.channels; ++c) store_affine(out, strip.channel + c, sums[c]);
  if (!out.dx) return;
  double own[kStripWidth], center[kStripWidth], slopes[kStripWidth], shift[kStripWidth];
  list_slopes(p, strip, w, moments, sums, own, center, slopes, shift);
  // dx_j = dy_j own_j + (x_j - mean_j) slope_j + shift_j, with fixed moments dy_j own_j alone
  for (std::int64_t sample = 0; sample < p.samples; ++sample) {
    T* const dx = out.dx + strip.row(sample);
    for (AnyPack at{0, strip.width}; at; at.next<T>()) {
      LongPack<T> sum(at(dy + strip.row(sample)));
      sum *= LongPack<T>(own + at.i);
      if (!p.fixed) {
        LongPack<T> d(at(x + strip.row(sample)));
        sum += ((d -= LongPack<T>(center + at.i)) *= LongPack<T>(slopes + at.i)) += LongPack<T>(shift + at.i);
      }
      if (out.add_dx) sum += LongPack<T>(at(dx));
      at.store(dx, sum.rounded());
    }
  }
}

}  // namespace

std::int64_t batch_norm_memory(const BatchNormParams& p) {
  return p.channels + (is_long(p) ? ceil_div(p.samples * p.channels, 2) : 0);
}

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
void batch_norm_backward(const BatchNormParams& p, const T* dy, const T* x, const T* w, Moments* moments,
                         const NormGradients<T>& gradients) {
  if (count_of(p) == 0) {
    for (std::int64_t c = 0; c < p.channels && (gradients.dw || gradients.db); ++c) store_affine(gradients, c, {});
    return;
  }
  if (is_long(p)) return gradients_of_runs(p, dy, x, w, moments, gradients);
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
  template void batch_norm_backward<T>(const BatchNormParams&, const T*, const T*, const T*, Moments*,       \
                                       const NormGradients<T>&)
TAPER_INSTANTIATE_BATCH_NORM(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_BATCH_NORM(double);
#endif

}  // namespace taper::kernels
