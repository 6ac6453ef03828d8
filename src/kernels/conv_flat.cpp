#include "kernels/conv_flat.hpp"

#include "kernels/lane_mask.hpp"
#include "kernels/packs.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product_vector.hpp"

namespace taper::kernels {

#if defined(__AVX2__) && !defined(__AVX512F__)

namespace {

/// Masks of all taps and parts, those that stay in the first-level cache beside what they are for, what a tap moves a
/// plane by at most, and planes that are not worth the masks.
constexpr std::int64_t kMostMasks = 512, kNearMasks = 400, kFarthest = 4096, kFewPlanes = 8;

/// Whether each result is one chain over one channel of a plane as wide as that of the results, all of which are there.
TAPER_FOR_SIZE bool is_flat(const Sweep& s) {
  const Axis(&axis)[3] = s.axis;
  if (s.channels != 1 || s.rows != 1 || s.taps[0] != 1 || s.result[0] != 1 || axis[0].length != 1 ||
      axis[0].stride != 1 || axis[0].shift != 0 || axis[2].length != s.result[2] || s.batch * s.groups < kFewPlanes)
    return false;
  for (int d = 1; d < 3; ++d)
    if (axis[d].stride != 1 || axis[d].to_step != 1 || axis[d].to_first != 0 || s.positions[d] != s.result[d] ||
        std::abs(axis[d].shift) > kFarthest || std::abs(axis[d].shift_step) > kFarthest || s.taps[d] > kChain<float>)
      return false;
  const std::int64_t taps = s.tap_count(), most = kMostMasks * kLane;
  return taps <= kChain<float> && s.result_size > 0 && s.result_size <= most && s.signal_size > 0 &&
         s.signal_size <= most && taps * ceil_div(s.result_size, kLane) <= kMostMasks;
}

/// Whether results take less time from planes as they are than from a copy that has zeros around them, all of whose
/// lines are whole vectors. Times are about thirds of that of a product under a mask.
TAPER_FOR_SIZE bool is_faster_flat(const Sweep& s) {
  const std::int64_t taps = s.tap_count(), lines = s.result[1], masked = taps * ceil_div(s.result_size, kLane),
                     whole = lines * ceil_div(s.result_line, kLane);
  const std::int64_t won = whole * (2 * taps + 5) + 10 * lines - 3 * masked;
  return masked <= kNearMasks && s.batch * s.groups * won > 10 * taps * whole;
}

/// Where the taps find the elements of a plane, vector by vector of the results.
class Flat {
 public:
  bool use;
  std::int64_t taps, parts;  ///< the latter are vectors of a plane of results
  std::int64_t offset[kChain<float>], weight[kChain<float>];
  alignas(
      kVectorWidth) std::int32_t inside[(kMostMasks + 1) * kLane];  ///< part after part of each tap: all bits, or none

  TAPER_FOR_SIZE Flat(const Sweep& s, bool always) : use(is_flat(s) && (always || is_faster_flat(s))), s_(s) {
    if (!use) return;
    taps = s.tap_count(), parts = ceil_div(s.result_size, kLane);
    Place place{};
    std::int32_t* to = inside;
    for (std::int64_t t = 0; t < taps; ++t, step(place, s.taps), to += parts * kLane) {
      const Axis &height = s.axis[1], &width = s.axis[2];
      const std::int64_t line = s.signal_line, across = width.shift + place.at[2] * width.shift_step;
      offset[t] = (height.shift + place.at[1] * height.shift_step) * line + across;
      weight[t] = s.weight(place);
      low_ = std::min(low_, offset[t]), high_ = std::max(high_, offset[t]);
      const auto set = [&](std::int64_t i, LaneMask lanes) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), lanes);
      };
      set((parts - 1) * kLane, LaneMask{});
      // What goes beyond a line is written again with the next, or tap.
      for (std::int64_t h = 0; h < s.positions[1]; ++h) {
        const std::int64_t end = height.element(h, place.at[1]) < 0 ? 0 : std::min(line, line - across);
        for (std::int64_t l = 0; l < line; l += kLane) set(h * line + l, lanes_between(-across - l, end - l));
      }
    }
    use = std::max(-low_, high_) <= kFarthest;
  }

  Vector<float> mask(std::int64_t tap, std::int64_t part) const {
    return load(reinterpret_cast<const float*>(inside) + (tap * parts + part) * kLane);
  }

  /// A plane of the signal around which vectors may be read: where it lies, or a copy.
  const float* signal(const float* x, std::int64_t plane) const {
    const std::int64_t at = plane * s_.signal_size;
    if (at + low_ >= 0 && at + high_ + parts * kLane <= s_.batch * s_.groups * s_.signal_size) return x + at;
    return std::copy_n(x + at, s_.signal_size, scratch<float>().right + kFarthest) - s_.signal_size;
  }

 private:
  const Sweep& s_;
  std::int64_t low_ = 0, high_ = 0;
};
static_assert(2 * kFarthest + (kMostMasks + 1) * kLane <= kRightSize<float> && kMostMasks * kLane <= kResultSize);

[[gnu::always_inline]] inline Vector<float> kept_lanes(const Vector<float>& v, const Vector<float>& mask) {
  return _mm256_and_ps(v, mask);
}

/// y[i] = b + sum over taps t of w[t] x[t + i] for the elements of R parts.
template <int R>
[[gnu::always_inline]] inline void sum_flat_parts(const Flat& flat, std::int64_t part, const float* x, const float* w,
                                                  float b, float* y) {
  Vector<float> sum[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) sum[r] = b - Vector<float>{};
  for (std::int64_t t = 0; t < flat.taps; ++t) {
    const float* const from = x + part * kLane + flat.offset[t];
    const Vector<float> weight = w[flat.weight[t]] - Vector<float>{};
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      sum[r] = multiply_add(weight, kept_lanes(load(from + r * kLane), flat.mask(t, part + r)), sum[r]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) store(sum[r], y + (part + r) * kLane);
}

/// The same for a plane.
void sum_flat(const Flat& flat, const float* x, const float* w, float b, float* y) {
  std::int64_t i = 0;
  for (; i + 4 <= flat.parts; i += 4) sum_flat_parts<4>(flat, i, x, w, b, y);
  const auto rest = flat.parts - i;
  if (rest == 3)
    sum_flat_parts<3>(flat, i, x, w, b, y);
  else if (rest == 2)
    sum_flat_parts<2>(flat, i, x, w, b, y);
  else if (rest == 1)
    sum_flat_parts<1>(flat, i, x, w, b, y);
}

/// Taps whose sums run beside each other.
constexpr int kTaps = 3;

/// sums[t] += the vectors of dy[i] x[t + i] over a plane, for `kTaps` taps at a time. What is summed for more taps than
/// there are is that of the last.
[[gnu::noinline]] void add_flat(const Flat& flat, const float* dy, const Vector<float>* inside, const float* x,
                                Vector<float>* sums) {
  for (std::int64_t t = 0; t < flat.taps; t += kTaps) {
    Vector<float> sum[kTaps];
    const float *from[kTaps], *mask[kTaps];
#pragma GCC unroll 3
    for (int r = 0; r < kTaps; ++r) {
      const std::int64_t tap = std::min(t + r, flat.taps - 1);
      sum[r] = sums[t + r], from[r] = x + flat.offset[tap];
      mask[r] = reinterpret_cast<const float*>(flat.inside) + tap * flat.parts * kLane;
    }
    for (std::int64_t i = 0; i < flat.parts * kLane; i += kLane) {
      const Vector<float> gradient = kept_lanes(load(dy + i), inside[i == (flat.parts - 1) * kLane]);
#pragma GCC unroll 3
      for (int r = 0; r < kTaps; ++r)
        sum[r] = multiply_add(gradient, kept_lanes(load(from[r] + i), load(mask[r] + i)), sum[r]);
    }
#pragma GCC unroll 3
    for (int r = 0; r < kTaps; ++r) sums[t + r] = sum[r];
  }
}

}  // namespace

bool flat_sum(const Sweep& s, const float* x, const float* w, const float* b, float* y, bool add) {
  const Flat flat(s, false);
  if (!flat.use) return false;
  // y[n, g, i] = b[g] + sum over t of w[g, t] x[n, g, i + t]
  parallel_for(s.batch * s.groups, parallel_work(2 * flat.parts * kLane, flat.taps),
               [=, &s, &flat](std::int64_t first, std::int64_t last) {
                 float* const own = scratch<float>().result;
                 for (std::int64_t plane = first; plane < last; ++plane) {
                   const std::int64_t g = plane % s.groups;
                   float* const to = y + plane * s.result_size;
                   // What goes beyond a plane is written again with the next ones.
                   const bool direct = !add && (last - plane) * s.result_size >= flat.parts * kLane;
                   sum_flat(flat, flat.signal(x, plane), w + g * s.w_group, b != nullptr ? b[g] : 0.0f,
                            direct ? to : own);
                   for (std::int64_t i = 0; !direct && i < s.result_size; ++i) to[i] = add ? to[i] + own[i] : own[i];
                 }
               });
  return true;
}

bool flat_gradient(const Sweep& s, const float* dy, const float* x, float* dw, bool add) {
  const Flat flat(s, s.result_line % kLane != 0);
  if (!flat.use) return false;
  const std::int64_t size = s.result_size, rest = size - (flat.parts - 1) * kLane;
  // dw[g, t] = sum over n and i of dy[n, g, i] x[n, g, i + t]
  parallel_for(s.groups, parallel_work(flat.taps, s.batch * size),
               [=, &s, &flat](std::int64_t first, std::int64_t last) {
                 float* const own = scratch<float>().result;
                 const Vector<float> inside[2] = {_mm256_castsi256_ps(lanes_between(0, kLane)),
                                                  _mm256_castsi256_ps(lanes_between(0, rest))};
                 Vector<float> sums[kChain<float> + kTaps - 1];
                 Long total[kChain<float>];
                 for (std::int64_t g = first; g < last; ++g) {
                   std::fill_n(total, flat.taps, Long());
                   for (std::int64_t n = 0; n < s.batch;) {
                     std::fill_n(sums, flat.taps + kTaps - 1, Vector<float>{});
                     std::int64_t vectors = 0;  // in each sum
                     do {
                       const std::int64_t plane = n * s.groups + g;
                       const float* gradient = dy + plane * size;
                       if ((s.batch * s.groups - plane) * size < flat.parts * kLane)
                         gradient = std::copy_n(gradient, size, own) - size;
                       add_flat(flat, gradient, inside, flat.signal(x, plane), sums);
                       vectors += flat.parts;
                     } while (++n < s.batch && vectors + flat.parts <= kChain<float>);
                     for (std::int64_t t = 0; t < flat.taps; ++t) total[t] += Long(sums[t]);
                   }
                   for (std::int64_t t = 0; t < flat.taps; ++t) {
                     float& to = dw[g * s.w_group + flat.weight[t]];
                     to = (add ? to : 0.0f) + static_cast<float>(sum_of_lanes(total[t].low + total[t].high));
                   }
                 }
               });
  return true;
}

#else

bool flat_sum(const Sweep&, const float*, const float*, const float*, float*, bool) { return false; }
bool flat_gradient(const Sweep&, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
