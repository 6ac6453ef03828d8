#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace taper::oracle {

/// Norms by their definition, in extended precision: every element belongs to a group, whose mean and variance it is
/// normalised by, and to a channel, whose weight and bias it gets. Shares nothing with the library's kernels.
struct Norm {
  using Doubles = std::vector<double>;
  using Indices = std::vector<std::size_t>;
  using Wide = long double;

  Indices group, channel;  ///< of each element
  double eps = 1e-5;
  bool centered = true;
  std::optional<Doubles> fixed_mean = {}, fixed_variance = {};  ///< of each group, in place of the elements' own

  /// x [samples, groups, channels, spatial] by rows of one group of one sample.
  static Norm rows(std::int64_t samples, std::int64_t groups, std::int64_t channels, std::int64_t spatial) {
    Norm norm;
    for (std::int64_t n = 0; n < samples; ++n)
      for (std::int64_t g = 0; g < groups; ++g)
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t i = 0; i < spatial; ++i) {
            norm.group.push_back(std::size_t(n * groups + g));
            norm.channel.push_back(std::size_t(g * channels + c));
          }
    return norm;
  }
  /// x [samples, channels, spatial] by channels.
  static Norm batch(std::int64_t samples, std::int64_t channels, std::int64_t spatial) {
    Norm norm = rows(samples, 1, channels, spatial);
    norm.group = norm.channel;
    return norm;
  }

  static std::size_t count_of(const Indices& indices) {
    std::size_t count = 0;
    for (const std::size_t index : indices) count = index + 1 > count ? index + 1 : count;
    return count;
  }

  struct Moments {
    std::vector<Wide> mean, variance, count;
  };
  Moments moments(const Doubles& x) const {
    const std::size_t groups = count_of(group);
    Moments m{std::vector<Wide>(groups), std::vector<Wide>(groups), std::vector<Wide>(groups)};
    for (std::size_t i = 0; i < x.size(); ++i) m.count[group[i]] += 1;
    if (centered)
      for (std::size_t i = 0; i < x.size(); ++i) m.mean[group[i]] += Wide(x[i]) / m.count[group[i]];
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Wide d = Wide(x[i]) - m.mean[group[i]];
      m.variance[group[i]] += d * d / m.count[group[i]];
    }
    for (std::size_t g = 0; g < groups && fixed_mean; ++g) {
      m.mean[g] = (*fixed_mean)[g];
      m.variance[g] = (*fixed_variance)[g];
    }
    return m;
  }

  /// h = (x - mean) / sqrt(variance + eps)
  std::vector<Wide> normalised(const Doubles& x) const {
    const Moments m = moments(x);
    std::vector<Wide> h(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      h[i] = (Wide(x[i]) - m.mean[group[i]]) / std::sqrt(m.variance[group[i]] + Wide(eps));
    return h;
  }

  /// An empty weight is 1, an empty bias 0.
  Doubles forward(const Doubles& x, const Doubles& w, const Doubles& b) const {
    const auto h = normalised(x);
    Doubles y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = double(h[i] * (w.empty() ? 1 : Wide(w[channel[i]])) + (b.empty() ? 0 : Wide(b[channel[i]])));
    return y;
  }

  struct Gradients {
    Doubles dx, dw, db;
  };
  /// By the whole Jacobian: dh_j / dx_i = (d_ij - 1/n - h_i h_j / n) / sqrt(variance + eps) within a group.
  Gradients backward(const Doubles& dy, const Doubles& x, const Doubles& w) const {
    const Moments m = moments(x);
    const auto h = normalised(x);
    const std::size_t channels = count_of(channel);
    std::vector<Wide> dw(channels), db(channels);
    Gradients out{Doubles(x.size()), Doubles(channels), Doubles(channels)};
    for (std::size_t j = 0; j < x.size(); ++j) {
      dw[channel[j]] += Wide(dy[j]) * h[j];
      db[channel[j]] += Wide(dy[j]);
    }
    std::vector<Indices> members(count_of(group));
    for (std::size_t i = 0; i < x.size(); ++i) members[group[i]].push_back(i);
    for (std::size_t i = 0; i < x.size(); ++i) {
      Wide sum = 0;
      for (const std::size_t j : members[group[i]]) {
        const Wide n = m.count[group[i]], g = Wide(dy[j]) * (w.empty() ? 1 : Wide(w[channel[j]]));
        const Wide own = i == j ? 1 : 0;
        sum += g * (fixed_mean ? own : own - (centered ? 1 / n : 0) - h[i] * h[j] / n);
      }
      out.dx[i] = double(sum / std::sqrt(m.variance[group[i]] + Wide(eps)));
    }
    for (std::size_t c = 0; c < channels; ++c) {
      out.dw[c] = double(dw[c]);
      out.db[c] = double(db[c]);
    }
    return out;
  }
};

}  // namespace taper::oracle
