#pragma once

#include "kernels/conv_geometry.hpp"
#include "kernels/lane_mask.hpp"
#include "kernels/product_vector.hpp"

// What convolutions along short lines are made of; for processors whose vectors can be read and written in part.
namespace taper::kernels {

#if defined(__AVX2__)

/// Positions in a vector.
inline constexpr int kWidth = kLanes<float>;
/// A short line has fewer positions.
inline constexpr int kShortLine = 32;

/// Whether a sample is one short line a channel, and a result one chain of few terms.
inline bool is_short(const ConvParams& p) {
  const std::int64_t terms = p.in_channels / p.groups * p.kernel[2];
  return unit(p, 0) && unit(p, 1) && p.stride[2] == 1 && p.out[2] > 0 && p.out[2] < kShortLine && p.batch > 0 &&
         p.out_channels > 0 && terms > 0 && terms < kChain<float>;
}

/// Whether x goes on by the padding before the lines of group `g` of sample `n`, which are `size` elements, and by that
/// and two vectors after them.
inline bool is_amid(const ConvParams& p, std::int64_t n, std::int64_t g, std::int64_t size) {
  const std::int64_t at = n * p.groups + g, beyond = p.padding[2] + 2 * kWidth;
  return at * size >= beyond && (p.batch * p.groups - at - 1) * size >= beyond;
}

/// Some neighbouring positions of a line, side by side in a vector.
class ShortPart {
 public:
  ShortPart() = default;
  ShortPart(const ConvParams& p, std::int64_t i) { find(p, i); }

  /// The positions from `i` on.
  void find(const ConvParams& p, std::int64_t i) {
    count_ = static_cast<int>(std::min<std::int64_t>(p.out[2] - i, kWidth));
    terms_ = p.in_channels / p.groups * p.kernel[2];
    for (std::int64_t t = 0; t < p.kernel[2]; ++t) {
      std::int64_t q = i + t * p.dilation[2] - p.padding[2];
      const LaneMask inside = lanes_between(-q, std::min<std::int64_t>(p.in[2] - q, count_));
      for (std::int64_t k = t; k < terms_; k += p.kernel[2], q += p.in[2]) inside_[k] = inside, from_[k] = q;
    }
  }

  std::int64_t terms() const { return terms_; }
  int count() const { return count_; }
  /// What term `k` finds in the line at `x`, which is the first channel's; `amid` others or not.
  Vector<float> read(std::int64_t k, const float* x, bool amid) const {
    return load_lanes(inside_[k], x + from_[k], amid);
  }

 private:
  int count_;
  LaneMask inside_[kChain<float>];
  std::int64_t terms_, from_[kChain<float>];
};

/// The positions whose products are summed at a time: what is packed of them stays in the first-level cache.
inline constexpr std::int64_t kPositions = 128;

/// The gradient of the channels [f, f + columns) of group `g`, a row for each term.
struct ShortGradient {
  const ConvParams& p;
  const ShortPart* parts;
  std::int64_t g, f, columns;

  std::int64_t rows() const { return parts[0].terms(); }
  std::int64_t row() const { return ceil_div(columns, kWidth) * kWidth; }

  /// signal[k, m * out + i] = what term k finds at position i of sample n + m, for `samples` samples.
  void pack_signal(const float* x, std::int64_t n, std::int64_t samples, float* signal) const {
    const std::int64_t out = p.out[2], line = p.in_channels / p.groups * p.in[2];
    for (const std::int64_t end = n + samples; n < end; ++n, signal += out) {
      const float* from = x + (n * p.groups + g) * line;
      const bool amid = is_amid(p, n, g, line);
      // What is written too much is overwritten by the next sample.
      for (std::int64_t i = 0; i < out; i += kWidth)
        for (std::int64_t k = 0; k < rows(); ++k)
          store<float>(parts[i / kWidth].read(k, from, amid), signal + k * kSignalRow + i);
    }
  }

  static constexpr std::int64_t kSignalRow = kPositions + kWidth;
};

/// The gradients to weight and bias: overwritten, or added to; `db` may be null. `pack(how, s, n, samples, turned,
/// bias)` sets turned[m * out + i, f] to the gradient of channel f at position i of sample n + m, `s.row()` channels
/// each, and adds them in that order to bias[f] unless that is null.
using PackGradient = void (*)(const void* how, const ShortGradient& s, std::int64_t n, std::int64_t samples,
                              float* turned, double* bias);
[[gnu::noinline]] inline void short_gradients(const ConvParams& p, const float* x, float* dw, bool add_dw, float* db,
                                              bool add_db, PackGradient pack, const void* how) {
  const std::int64_t columns = p.out_channels / p.groups, out = p.out[2], depth = p.batch * out;
  ShortPart parts[kShortLine / kWidth];
  for (std::int64_t i = 0; i < out; i += kWidth) parts[i / kWidth].find(p, i);
  const std::int64_t rows = parts[0].terms(),
                     step = columns <= kShortLine ? columns : cut(rows, columns, depth, p.groups).column_step;
  const std::int64_t bands = ceil_div(columns, step), most = std::max<std::int64_t>(kPositions / out, 1);
  const auto band = [=, &parts](std::int64_t unit) {
    const Scratch<float>& own = scratch<float>();
    const std::int64_t f = unit % bands * step;
    const ShortGradient s{p, parts, unit / bands, f, std::min(step, columns - f)};
    const std::int64_t row = s.row(), size = rows * row, channel = s.g * columns + f;
    std::int64_t signal_term[kPositions], dy_term[kPositions], vector[kBlockColumns / kWidth];
    int count[kBlockColumns / kWidth];
    for (std::int64_t k = 0; k < kPositions; ++k) signal_term[k] = k, dy_term[k] = k * row;
    for (std::int64_t v = 0; v * kWidth < row; ++v) vector[v] = v * kWidth, count[v] = kWidth;
    const ListedOperands<float> pair{
        own.left, ShortGradient::kSignalRow, signal_term, 1, own.right, dy_term, row, vector, vector, count};
    double bias[kBlockColumns];
    fill(row, 0.0, bias);
    std::int64_t positions = 0;  // in `part`
    bool joined = false;         // earlier ones are in `sums`
    const auto join = [&] {
      // sums[i] = (joined ? sums[i] : 0) + part[i]
      for (std::int64_t i = 0; i < size; ++i)
        own.sums[i] = (joined ? own.sums[i] : 0) + static_cast<double>(own.part[i]);
      joined = true;
      positions = 0;
    };
    for (std::int64_t n = 0; n < p.batch; n += most) {
      const std::int64_t samples = std::min(most, p.batch - n);
      if (positions + samples * out > kLongSum) join();
      s.pack_signal(x, n, samples, own.left);
      pack(how, s, n, samples, own.right, db != nullptr ? bias : nullptr);
      // part[k, f] = sum over the positions of the samples of x[k, :] dy[:, f], or +=
      multiply_block<float>(rows, row, samples * out, pair, own.part, row, positions > 0);
      positions += samples * out;
    }
    if (joined) {
      join();
      for (std::int64_t i = 0; i < size; ++i) own.part[i] = static_cast<float>(own.sums[i]);
    }
    // dw[f, k] = part[k, f], or +=
    float *to = dw + channel * rows, *turned = add_dw ? own.right : to;
    pack_transposed(own.part, row, rows, s.columns, turned, rows);
    for (std::int64_t i = 0; add_dw && i < s.columns * rows; ++i) to[i] += turned[i];
    for (std::int64_t i = 0; db != nullptr && i < s.columns; ++i)
      db[channel + i] = static_cast<float>(add_db ? static_cast<double>(db[channel + i]) + bias[i] : bias[i]);
  };
  parallel_for(p.groups * bands, parallel_work(rows * step, depth), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) band(unit);
  });
}

/// The same, and `how` is a function of the rest.
template <class Pack>
void short_gradients(const ConvParams& p, const float* x, float* dw, bool add_dw, float* db, bool add_db,
                     const Pack& pack) {
  const PackGradient call = [](const void* how, const ShortGradient& s, std::int64_t n, std::int64_t samples,
                               float* turned,
                               double* bias) { (*static_cast<const Pack*>(how))(s, n, samples, turned, bias); };
  short_gradients(p, x, dw, add_dw, db, add_db, call, &pack);
}

#endif

}  // namespace taper::kernels
