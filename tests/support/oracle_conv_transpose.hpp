#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace taper::oracle {

/// Transposed convolutions by their definition, over depth, height and width: every input element adds the kernel,
/// times itself, to the output. In double; shares nothing with the library.
struct ConvTranspose {
  std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0},
               output_padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  /// How far the kernels reach, less the padding on both sides, plus the output padding.
  std::int64_t out(int d) const {
    const std::int64_t last = (in[d] - 1) * stride[d] + (kernel[d] - 1) * dilation[d];
    return last + 1 - padding[d] - padding[d] + output_padding[d];
  }
  std::int64_t inputs() const { return in[0] * in[1] * in[2]; }
  std::int64_t outputs() const { return out(0) * out(1) * out(2); }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }

  std::size_t x_size() const { return std::size_t(batch * in_channels * inputs()); }
  std::size_t w_size() const { return std::size_t(in_channels * (out_channels / groups) * taps()); }
  std::size_t y_size() const { return std::size_t(batch * out_channels * outputs()); }

  /// Calls visit(x, w, y) for every product x w that is added to y, by the elements' positions in memory.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::int64_t group_in = in_channels / groups, group_out = out_channels / groups;
    for (std::int64_t i0 = 0; i0 < in[0]; ++i0)
      for (std::int64_t i1 = 0; i1 < in[1]; ++i1)
        for (std::int64_t i2 = 0; i2 < in[2]; ++i2)
          for (std::int64_t t0 = 0; t0 < kernel[0]; ++t0)
            for (std::int64_t t1 = 0; t1 < kernel[1]; ++t1)
              for (std::int64_t t2 = 0; t2 < kernel[2]; ++t2) {
                const std::int64_t q0 = i0 * stride[0] + t0 * dilation[0] - padding[0];
                const std::int64_t q1 = i1 * stride[1] + t1 * dilation[1] - padding[1];
                const std::int64_t q2 = i2 * stride[2] + t2 * dilation[2] - padding[2];
                if (q0 < 0 || q1 < 0 || q2 < 0 || q0 >= out(0) || q1 >= out(1) || q2 >= out(2)) continue;
                const std::int64_t i = (i0 * in[1] + i1) * in[2] + i2, t = (t0 * kernel[1] + t1) * kernel[2] + t2,
                                   q = (q0 * out(1) + q1) * out(2) + q2;
                for (std::int64_t n = 0; n < batch; ++n)
                  for (std::int64_t c = 0; c < in_channels; ++c)
                    for (std::int64_t o = 0; o < group_out; ++o) {
                      const std::int64_t channel = c / group_in * group_out + o;
                      visit(std::size_t((n * in_channels + c) * inputs() + i),
                            std::size_t((c * group_out + o) * taps() + t),
                            std::size_t((n * out_channels + channel) * outputs() + q));
                    }
              }
  }

  /// `b` may be empty.
  std::vector<double> forward(const std::vector<double>& x, const std::vector<double>& w,
                              const std::vector<double>& b) const {
    std::vector<double> y(y_size());
    if (!b.empty())
      for (std::size_t j = 0; j < y.size(); ++j) y[j] = b[j / std::size_t(outputs()) % b.size()];
    for_each([&](std::size_t i, std::size_t t, std::size_t j) { y[j] += x[i] * w[t]; });
    return y;
  }

  struct Gradients {
    std::vector<double> dx, dw, db;
  };

  /// The gradients of the sum of dy y.
  Gradients backward(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& dy) const {
    Gradients g{std::vector<double>(x.size()), std::vector<double>(w.size()),
                std::vector<double>(std::size_t(out_channels))};
    for_each([&](std::size_t i, std::size_t t, std::size_t j) {
      g.dx[i] += w[t] * dy[j];
      g.dw[t] += x[i] * dy[j];
    });
    for (std::size_t j = 0; j < dy.size(); ++j) g.db[j / std::size_t(outputs()) % g.db.size()] += dy[j];
    return g;
  }
};

}  // namespace taper::oracle
