#include "kernels/conv_planes.hpp"

#include "kernels/conv_short_parts.hpp"
#include "kernels/turn_square.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

/// Vectors that `n` elements fill.
std::int64_t vectors(std::int64_t n) { return ceil_div(n, kWidth); }

/// One plane of channels each, which the kernel moves over step by step.
bool is_plane(const ConvParams& p) {
  return unit(p, 0) && p.batch > 0 && p.in_channels > 0 && p.out_channels > 0 && outputs(p) > 0 && inputs(p) > 0 &&
         taps_of(p) > 0 && p.stride[1] == 1 && p.stride[2] == 1;
}

/// Whether all taps of all positions along dimension `d` read the signal.
bool is_unpadded(const ConvParams& p, int d) {
  return p.padding[d] == 0 && p.out[d] + (p.kernel[d] - 1) * p.dilation[d] <= p.in[d];
}

/// Four fifths of one time are longer than another.
bool is_shorter(std::int64_t time, std::int64_t other) { return time * 5 < other * 4; }

/// y[f, i] = turned[i, f] + b[f] for `n` positions of `channels` channels.
void store_turned(const float* turned, std::int64_t row, std::int64_t n, std::int64_t channels, const float* b,
                  float* y) {
  for (std::int64_t j = 0; j < channels; j += kWidth)
    for (std::int64_t i = 0; i < n; i += kWidth) {
      Vector<float> square[kWidth];
#pragma GCC unroll 16
      for (int l = 0; l < kWidth; ++l) square[l] = load(turned + std::min(i + l, n - 1) * row + j);
      turn_square<float>(square);
      for (int r = 0; r < std::min<std::int64_t>(kWidth, channels - j); ++r)
        store_lanes(square[r] + (b != nullptr ? b[j + r] : 0.0f), n - i, y + (j + r) * n + i);
    }
}

/// Elements of the longest line whose sums are gathered, and taps of its kernel.
constexpr int kLongestLine = 16, kMostTaps = 32;

/// The sums of one line of dx: what each tap gave, `row` apart, moved to where the tap reads.
class Gathering {
 public:
  Gathering(const ConvParams& p, std::int64_t row) : p_(p), row_(row) {
    for (std::int64_t t = 0; t < p.kernel[2]; ++t) {
      shift_[t] = t * p.dilation[2] - p.padding[2];
      for (int i = 0; i < kParts; ++i)
        lanes_[t][i] = lanes_between(shift_[t] - i * kWidth, std::min(p.in[2], p.out[2] + shift_[t]) - i * kWidth);
    }
  }

  /// dx[q, :] = sum over taps t of given[t, q - t], or +=, for line `q`: even and odd taps apart, so that one addition
  /// does not wait for the other.
  void line(const float* given, std::int64_t q, float* dx, bool add) const {
    // Tap (h, u) reads line q + padding - h dilation of what it gave, one of which there must be.
    const std::int64_t width = p_.kernel[2], from = q + p_.padding[1], dilation = p_.dilation[1];
    const std::int64_t first = from < p_.out[1] ? 0 : ceil_div(from - p_.out[1] + 1, dilation),
                       taps = std::min(p_.kernel[1], from / dilation + 1) - first,
                       step = width * row_ - dilation * p_.out[2];
    given += first * step + from * p_.out[2];
    for (int i = 0; i * kWidth < p_.in[2]; ++i, given += kWidth) {
      Vector<float> even = {}, odd = {};
      for (std::int64_t u = 0; u < width; u += 2) {
        const std::int64_t v = u + 1 < width ? u + 1 : u;
        const LaneMask lanes = lanes_[u][i], more = v > u ? lanes_[v][i] : LaneMask{};
        const float *a = given + u * row_ - shift_[u], *b = given + v * row_ - shift_[v];
        for (std::int64_t t = 0; t < taps; ++t, a += step, b += step) {
          even += load_lanes(lanes, a);
          odd += load_lanes(more, b);
        }
      }
      const std::int64_t n = std::min<std::int64_t>(p_.in[2] - i * kWidth, kWidth);
      if (add)
        store_part<float>(even + odd, static_cast<int>(n), dx + i * kWidth, true);
      else
        store_lanes(even + odd, n, dx + i * kWidth);
    }
  }

 private:
  static constexpr int kParts = kLongestLine / kWidth;

  const ConvParams& p_;
  std::int64_t row_, shift_[kMostTaps];
  LaneMask lanes_[kMostTaps][kParts];
};

}  // namespace

bool plane_forward(const ConvParams& p, const float* x, const float* w, const float* b, float* y) {
  const std::int64_t channels = p.in_channels / p.groups, columns = p.out_channels / p.groups;
  const std::int64_t terms = channels * taps_of(p), row = vectors(columns) * kWidth, n = outputs(p);
  // Channels along the vectors, or positions.
  if (!is_plane(p) || !is_unpadded(p, 1) || !is_unpadded(p, 2) || terms > kBlockDepth || n * row > kResultSize ||
      terms * row > kRightSize<float> || !is_shorter(n * vectors(columns), columns * p.out[1] * vectors(p.out[2])))
    return false;
  // y[f, i] = b[f] + sum over k of x[i + k] w[f, k], one line of positions after another
  parallel_for(p.batch * p.groups, parallel_work(n * row, terms), [=, &p](std::int64_t first, std::int64_t last) {
    const Scratch<float>& own = scratch<float>();
    std::int64_t term[kBlockDepth], weight_term[kBlockDepth], vector[kBlockColumns / kWidth], k = 0;
    int count[kBlockColumns / kWidth];
    for (std::int64_t v = 0; v * kWidth < row; ++v) vector[v] = v * kWidth, count[v] = kWidth;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t h = 0; h < p.kernel[1]; ++h)
        for (std::int64_t l = 0; l < p.kernel[2]; ++l, ++k) {
          term[k] = (c * p.in[1] + h * p.dilation[1]) * p.in[2] + l * p.dilation[2];
          weight_term[k] = k * row;
        }
    std::int64_t packed = -1;
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t sample = unit % p.batch, g = unit / p.batch;
      if (packed != g) pack_transposed(w + g * columns * terms, terms, columns, terms, own.right, row);
      packed = g;
      for (std::int64_t h = 0; h < p.out[1]; ++h) {
        const float* line = x + ((sample * p.groups + g) * channels * p.in[1] + h) * p.in[2];
        multiply_block<float>(
            p.out[2], row, terms,
            ListedOperands<float>{line, 1, term, 0, own.right, weight_term, row, vector, vector, count},
            own.result + h * p.out[2] * row, row, false);
      }
      const std::int64_t channel = g * columns;
      store_turned(own.result, row, n, columns, b != nullptr ? b + channel : nullptr,
                   y + (sample * p.out_channels + channel) * n);
    }
  });
  return true;
}

bool plane_backward_input(const ConvParams& p, const float* dy, const float* w, float* dx, bool add) {
  const std::int64_t channels = p.in_channels / p.groups, columns = p.out_channels / p.groups;
  const std::int64_t taps = taps_of(p), n = outputs(p), row = vectors(n) * kWidth, some = kResultSize / (taps * row);
  // What the outputs give to each tap, or what the inputs take of the taps.
  if (!is_plane(p) || p.in[2] > kLongestLine || p.out[2] > kLongestLine || p.kernel[2] > kMostTaps ||
      columns > kBlockDepth || row > kBlockColumns || some < 1 || !is_shorter(vectors(n), p.in[1] * vectors(p.in[2])))
    return false;
  const Gathering gathering(p, row);
  parallel_for(p.batch * p.groups, parallel_work(channels * taps * row, columns),
               [=, &p, &gathering](std::int64_t first, std::int64_t last) {
                 const Scratch<float>& own = scratch<float>();
                 for (std::int64_t unit = first; unit < last; ++unit) {
                   const std::int64_t g = unit % p.groups;
                   for (std::int64_t f = 0; f < columns; ++f)
                     copy_run(dy + (unit * columns + f) * n, n, own.right + f * row);
                   fill_last_vector(n, columns, own.right, row);
                   for (std::int64_t c = 0; c < channels; c += some) {
                     const std::int64_t these = std::min(some, channels - c);
                     // given[c, t, i] = sum over f of w[f, c, t] dy[f, i]
                     multiply_block<float>(
                         these * taps, row, columns,
                         {{w + (g * columns * channels + c) * taps, 1, channels * taps}, {own.right, row}}, own.result,
                         row, false);
                     float* to = dx + (unit * channels + c) * inputs(p);
                     for (std::int64_t i = 0; i < these; ++i)
                       for (std::int64_t q = 0; q < p.in[1]; ++q, to += p.in[2])
                         gathering.line(own.result + i * taps * row, q, to, add);
                   }
                 }
               });
  return true;
}

#else

bool plane_forward(const ConvParams&, const float*, const float*, const float*, float*) { return false; }
bool plane_backward_input(const ConvParams&, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
