#include "kernels/conv_average.hpp"

#include "kernels/conv_short_parts.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

/// A line of so many elements is summed in another order.
constexpr std::int64_t kMostPositions = 16;

/// The averages of one group: a row for each position, a column for each channel.
class AverageGroup {
 public:
  AverageGroup(const ConvParams& p, std::int64_t g)
      : p_(p),
        g_(g),
        inputs_(p.in_channels / p.groups),
        channels_(p.out_channels / p.groups),
        row_(ceil_div(channels_, kWidth) * kWidth) {
    for (std::int64_t c = 0; c < inputs_; ++c)
      for (std::int64_t t = 0; t < p.kernel[2]; ++t) from_[terms_++] = c * kLine + t * p.dilation[2];
    for (std::int64_t i = 0; i < kLine; i += kWidth) {
      const std::int64_t q = i - p.padding[2];
      inside_[i / kWidth] = lanes_between(-q, p.in[2] - q);
    }
  }

  /// Elements of a padded line.
  static constexpr std::int64_t kLine = 2 * kMostPositions;

  /// weights[0, f] = b[f], weights[1 + k, f] = w[f, k]
  void pack_weights(const float* w, const float* b, float* weights) const {
    const std::int64_t first = g_ * channels_;
    for (std::int64_t f = 0; f < channels_; ++f) weights[f] = b != nullptr ? b[first + f] : 0.0f;
    pack_transposed(w + first * terms_, terms_, channels_, terms_, weights + row_, row_);
    fill_last_vector(channels_, 1, weights, row_);
  }

  /// The averages of sample `n`.
  void run(std::int64_t n, double divisor, const float* x, const float* weights, float* y,
           std::uint16_t* positive) const {
    alignas(64) float lines[kChain<float> * kLine];
    // A tile of positions may pass the last one.
    const std::int64_t words = row_ / kWidth, size = inputs_ * p_.in[2],
                       line = std::min(p_.in[2] + 2 * p_.padding[2] + kTile - 1, kLine);
    const bool amid = is_amid(p_, n, g_, size);
    x += (n * p_.groups + g_) * size - p_.padding[2];
    for (std::int64_t c = 0; c < inputs_; ++c, x += p_.in[2])
      for (std::int64_t i = 0; i < line; i += kWidth)
        store<float>(load_lanes(inside_[i / kWidth], x + i, amid), lines + c * kLine + i);
    positive += (g_ * p_.batch + n) * p_.out[2] * words;
    y += n * p_.out_channels + g_ * channels_;
    std::int64_t j = 0;
    for (; j + kWidth < row_; j += 2 * kWidth) average<2>(j, lines, weights, divisor, positive, y);
    if (j < row_) average<1>(j, lines, weights, divisor, positive, y);
  }

 private:
  /// Positions whose sums are in registers at a time.
  static constexpr int kTile = 5;

  /// y[j] = sum over the line of max(0, b[j] + sum over k of w[j, k] x[i, k]) / divisor, for `W` vectors.
  template <int W>
  void average(std::int64_t j, const float* lines, const float* weights, double divisor, std::uint16_t* bits,
               float* y) const {
    const std::int64_t out = p_.out[2], words = row_ / kWidth;
    Long total[W];
    for (std::int64_t first = 0; first < out; first += kTile) {
      Vector<float> sum[kTile][W];
#pragma GCC unroll 8
      for (int i = 0; i < kTile; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < W; ++v) sum[i][v] = load(weights + j + v * kWidth);
      for (std::int64_t k = 0; k < terms_; ++k)
#pragma GCC unroll 8
        for (int i = 0; i < kTile; ++i) {
          const Vector<float> left = lines[from_[k] + first + i] - Vector<float>{};
#pragma GCC unroll 2
          for (int v = 0; v < W; ++v)
            sum[i][v] = multiply_add(left, load(weights + (1 + k) * row_ + j + v * kWidth), sum[i][v]);
        }
#pragma GCC unroll 8
      for (int i = 0; i < kTile; ++i) {
        if (first + i == out) break;
#pragma GCC unroll 2
        for (int v = 0; v < W; ++v) {
          total[v] += Long(positive_part(sum[i][v], bits[(first + i) * words + j / kWidth + v]));
        }
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < W; ++v) store_lanes(total[v].divided(divisor), channels_ - j - v * kWidth, y + j + v * kWidth);
  }

  const ConvParams& p_;
  std::int64_t g_, inputs_, channels_, row_, terms_ = 0, from_[kChain<float>];
  LaneMask inside_[kLine / kWidth];
};

/// sum += wide in the lanes whose bits are set; `kept` is that part of it.
inline void add_kept(Long& sum, [[maybe_unused]] const Long& wide, [[maybe_unused]] const Vector<float>& kept,
                     [[maybe_unused]] std::uint16_t bits) {
#if defined(__AVX512F__)
  sum.low = _mm512_mask_add_pd(sum.low, static_cast<__mmask8>(bits), sum.low, wide.low);
  sum.high = _mm512_mask_add_pd(sum.high, static_cast<__mmask8>(bits >> 8), sum.high, wide.high);
#else
  sum += Long(kept);
#endif
}

}  // namespace

// A block of results has room for 64 channels.
bool conv_average_fits(const ConvParams& p) {
  return is_short(p) && p.out[2] < kMostPositions && (p.kernel[2] - 1) * p.dilation[2] < kMostPositions &&
         p.out_channels / p.groups <= 64;
}

std::int64_t conv_average_bits(const ConvParams& p) {
  return p.groups * p.batch * p.out[2] * ceil_div(p.out_channels / p.groups, kWidth);
}

void conv_average(const ConvParams& p, double divisor, const float* x, const float* w, const float* b, float* y,
                  std::uint16_t* positive) {
  const std::int64_t terms = p.in_channels / p.groups * p.kernel[2];
  parallel_for(p.groups * p.batch, parallel_work(p.out_channels / p.groups * p.out[2], terms + 8),
               [=, &p](std::int64_t first, std::int64_t last) {
                 const Scratch<float>& own = scratch<float>();
                 while (first < last) {
                   const std::int64_t g = first / p.batch, begin = g * p.batch, end = std::min(last, begin + p.batch);
                   const AverageGroup group(p, g);
                   group.pack_weights(w, b, own.right);
                   for (; first < end; ++first) group.run(first - begin, divisor, x, own.right, y, positive);
                 }
               });
}

void conv_average_backward(const ConvParams& p, double divisor, const float* dy, const std::uint16_t* positive,
                           const float* x, float* dw, bool add_dw, float* db, bool add_db) {
  const std::int64_t out = p.out[2], channels = p.out_channels / p.groups, words = ceil_div(channels, kWidth);
  // A quotient of two floats is the same when it is rounded to double first.
  const auto by = static_cast<float>(divisor);
  short_gradients(p, x, dw, add_dw, db, add_db,
                  [=](const ShortGradient& s, std::int64_t first, std::int64_t samples, float* turned, double* bias) {
                    const std::int64_t positions = out, step = words, row = s.row();
                    for (std::int64_t j = 0; j < s.columns; j += kWidth) {
                      const std::int64_t at = s.f + j, n = std::min<std::int64_t>(s.columns - j, kWidth);
                      Long sum;
                      if (bias != nullptr) sum = Long::load(bias + j);
                      const float* from = dy + first * p.out_channels + s.g * channels + at;
                      const std::uint16_t* bits = positive + (s.g * p.batch + first) * out * words + at / kWidth;
                      float* to = turned + j;
                      for (std::int64_t m = 0; m < samples; ++m, from += p.out_channels) {
                        const Vector<float> each = (n == kWidth ? load(from) : load_first(from, n)) / by;
                        const Long wide(each);
                        for (std::int64_t i = 0; i < positions; ++i, bits += step, to += row) {
                          const Vector<float> kept = kept_part(each, *bits);
                          store<float>(kept, to);
                          add_kept(sum, wide, kept, *bits);
                        }
                      }
                      if (bias != nullptr) sum.store(bias + j);
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
