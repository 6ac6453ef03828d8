#include "kernels/conv_average.hpp"

#include "kernels/conv_short_parts.hpp"

namespace taper::kernels {

#if defined(__AVX512F__)

namespace {

/// Sixteen doubles.
struct Long {
  Vector<double> low, high;

  explicit Long(const Vector<float>& x)
      : low(as_double(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7))),
        high(as_double(__builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15))) {}

  /// x / divisor
  Vector<float> divided(double divisor) const {
    const __m256 first = as_float(low / divisor), last = as_float(high / divisor);
    return __builtin_shufflevector(first, last, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }

 private:
  // Without a mask, GCC 12 warns of what its own headers leave undefined; for vectors of its own it makes slower code.
  static Vector<double> as_double(__m256 x) { return _mm512_maskz_cvtps_pd(0xff, x); }
  static __m256 as_float(const Vector<double>& x) { return _mm512_maskz_cvtpd_ps(0xff, x); }
};

/// The products of some samples of one group: a row for each position, a column for each channel.
class AverageGroup {
 public:
  AverageGroup(const ConvParams& p, const ShortPart& part, std::int64_t g)
      : p_(p), part_(part), g_(g), channels_(p.out_channels / p.groups), row_(ceil_div(channels_, kWidth) * kWidth) {}

  /// weights[0, f] = b[f], weights[1 + k, f] = w[f, k]
  void pack_weights(const float* w, const float* b, float* weights) const {
    const std::int64_t terms = part_.terms();
    for (std::int64_t j = 0; j < row_; j += kWidth) {
      const std::int64_t first = g_ * channels_ + j, n = std::min<std::int64_t>(kWidth, channels_ - j);
      store(b != nullptr ? load_part(b + first, n) : Vector<float>{}, weights + j);
      for (std::int64_t k = 0; k < terms; k += kWidth) {
        Square square;
#pragma GCC unroll 16
        for (int r = 0; r < kWidth; ++r)
          square[r] = _mm512_maskz_loadu_ps(lanes_before(terms - k),
                                            w + (first + std::min<std::int64_t>(r, n - 1)) * terms + k);
        turn_square<float>(square);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(kWidth, terms - k); ++i)
          store<float>(square[i], weights + (1 + k + i) * row_ + j);
      }
    }
  }

  /// The averages of the samples [n, n + samples).
  void run(std::int64_t n, std::int64_t samples, double divisor, const float* x, const float* weights, float* y,
           std::uint16_t* positive) const {
    const Scratch<float>& own = scratch<float>();
    const std::int64_t out = p_.out[2], words = row_ / kWidth;
    constexpr std::int64_t signal_row = ShortGradient::kSignalRow;
    fill(signal_row, 1.0f, own.left);
    const ShortGradient s{p_, &part_, g_, 0, channels_};
    s.pack_signal(x + n * p_.in_channels * p_.in[2], samples, own.left + signal_row);
    // The bias is the weight of a term that is always one.
    multiply_block<float>(samples * out, row_, 1 + part_.terms(), {{own.left, 1, signal_row}, {weights, row_}},
                          own.result, row_, false);
    const float* from = own.result;
    std::uint16_t* bits = positive + (g_ * p_.batch + n) * out * words;
    for (std::int64_t m = n; m < n + samples; ++m, from += out * row_, bits += out * words)
      for (std::int64_t j = 0; j < row_; j += kWidth) {
        const Vector<float> average = line(from + j, bits + j / kWidth, words).divided(divisor);
        store_part<float>(average, static_cast<int>(std::min<std::int64_t>(kWidth, channels_ - j)),
                          y + m * p_.out_channels + g_ * channels_ + j, false);
      }
  }

 private:
  /// The sums along the lines of sixteen channels.
  Long line(const float* from, std::uint16_t* bits, std::int64_t words) const {
    const auto rectified = [&](std::int64_t i) -> Vector<float> {
      const Vector<float> value = load(from + i * row_);
      const __mmask16 positive = _mm512_cmp_ps_mask(value, Vector<float>{}, _CMP_NLE_UQ);
      bits[i * words] = positive;
      return _mm512_maskz_mov_ps(positive, value);
    };
    Long sum(rectified(0));
    for (std::int64_t i = 1; i < p_.out[2]; ++i) {
      const Long value(rectified(i));
      sum.low += value.low;
      sum.high += value.high;
    }
    return sum;
  }

  const ConvParams& p_;
  const ShortPart& part_;
  std::int64_t g_, channels_, row_;
};

}  // namespace

// A line of 16 elements and more is summed in another order; a block of results has room for 64 channels.
bool conv_average_fits(const ConvParams& p) {
  return is_short(p) && p.out[2] < kWidth && p.out_channels / p.groups <= 64;
}

std::int64_t conv_average_bits(const ConvParams& p) {
  return p.groups * p.batch * p.out[2] * ceil_div(p.out_channels / p.groups, kWidth);
}

void conv_average(const ConvParams& p, double divisor, const float* x, const float* w, const float* b, float* y,
                  std::uint16_t* positive) {
  const std::int64_t most = kPositions / p.out[2], blocks = ceil_div(p.batch, most);
  const ShortPart part(p, 0);
  const std::int64_t terms = part.terms();
  parallel_for(p.groups * blocks, parallel_work(p.out_channels / p.groups * kPositions, terms + 8),
               [=, &p, &part](std::int64_t first, std::int64_t last) {
                 const Scratch<float>& own = scratch<float>();
                 for (std::int64_t unit = first; unit < last; ++unit) {
                   const std::int64_t n = unit % blocks * most;
                   const AverageGroup group(p, part, unit / blocks);
                   if (unit == first || n == 0) group.pack_weights(w, b, own.right);
                   group.run(n, std::min(most, p.batch - n), divisor, x, own.right, y, positive);
                 }
               });
}

void conv_average_backward(const ConvParams& p, double divisor, const float* dy, const std::uint16_t* positive,
                           const float* x, float* dw, bool add_dw, float* db, bool add_db) {
  const std::int64_t out = p.out[2], channels = p.out_channels / p.groups, words = ceil_div(channels, kWidth);
  short_gradients(p, x, dw, add_dw, db, add_db,
                  [=](const ShortGradient& s, std::int64_t first, std::int64_t samples, float* turned) {
                    for (std::int64_t n = first; n < first + samples; ++n, turned += out * s.row())
                      for (std::int64_t j = 0; j < s.columns; j += kWidth) {
                        const float* from = dy + n * p.out_channels + s.g * channels + s.f + j;
                        const Vector<float> each =
                            Long(load_part(from, std::min<std::int64_t>(s.columns - j, kWidth))).divided(divisor);
                        const std::uint16_t* bits = positive + (s.g * p.batch + n) * out * words + (s.f + j) / kWidth;
                        for (std::int64_t i = 0; i < out; ++i, bits += words)
                          store<float>(_mm512_maskz_mov_ps(*bits, each), turned + i * s.row() + j);
                      }
                  });
}

#else

bool conv_average_fits(const ConvParams&) { return false; }
std::int64_t conv_average_bits(const ConvParams&) { return 0; }
void conv_average(const ConvParams&, double, const float*, const float*, const float*, float*, std::uint16_t*) {}
void conv_average_backward(const ConvParams&, double, const float*, const std::uint16_t*, const float*, float*, bool,
                           float*, bool) {}

#endif

}  // namespace taper::kernels
