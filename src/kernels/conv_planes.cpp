#include "kernels/conv_planes.hpp"

#include "kernels/conv_short_parts.hpp"

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

/// Four fifths of one time are longer than another.
bool is_shorter(std::int64_t time, std::int64_t other) { return time * 5 < other * 4; }

/// Elements of the longest line whose sums are gathered, and taps of its kernel.
constexpr int kLongestLine = 16, kMostTaps = 32;

/// The sums of one line of dx: what each tap gave, `row` apart, moved to where the tap reads.
class Gathering {
 public:
  TAPER_FOR_SIZE Gathering(const ConvParams& p, std::int64_t row) : p_(p), row_(row) {
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

bool plane_backward_input(const ConvParams& p, const float* dy, const float* w, float* dx, bool add) {
  const std::int64_t channels = p.in_channels / p.groups, columns = p.out_channels / p.groups;
  const std::int64_t taps = taps_of(p), n = outputs(p), row = vectors(n) * kWidth, some = kResultSize / (taps * row);
  // What the outputs give to each tap, or what the inputs take of the taps. A single channel is a few products, which
  // take no longer line by line than what they give takes to be gathered.
  if (channels * columns == 1 || !is_plane(p) || p.in[2] > kLongestLine || p.out[2] > kLongestLine ||
      p.kernel[2] > kMostTaps || columns > kBlockDepth || row > kBlockColumns || some < 1 ||
      !is_shorter(vectors(n), p.in[1] * vectors(p.in[2])))
    return false;
  const Gathering gathering(p, row);
  // A sum takes as long to be gathered as some products.
  parallel_for(p.batch * p.groups, parallel_work(channels * taps * row, columns + 16),
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

bool plane_backward_input(const ConvParams&, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
