#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace taper::oracle {

/// Average pools by their definition: one loop over every output and every element of its window, in double,
/// any number of dimensions. Shares nothing with the library's geometry.
struct AvgPool {
  using Sizes = std::vector<std::int64_t>;

  std::int64_t planes = 1;
  Sizes in, kernel, stride, padding;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::int64_t divisor_override = 0;
  Sizes adaptive = {};  ///< the output size of an adaptive pool; the options above do not matter then

  /// The output length of dimension `d`, if PyTorch admits it.
  std::optional<std::int64_t> length(std::size_t d) const {
    if (!adaptive.empty()) return adaptive[d];
    const std::int64_t k = kernel[d], s = stride[d], p = padding[d], travel = in[d] + 2 * p - k;
    if (in[d] < 1 || k < 1 || s < 1 || p < 0 || 2 * p > k) return std::nullopt;
    // The largest o with o * s <= travel, or the smallest with o * s >= travel.
    std::int64_t last = -1000;
    while ((last + 1) * s <= travel) ++last;
    if (ceil_mode && last * s < travel) ++last;
    if (ceil_mode && last * s >= in[d] + p) --last;
    if (last < 0) return std::nullopt;
    return last + 1;
  }

  Sizes out() const {
    Sizes sizes;
    for (std::size_t d = 0; d < in.size(); ++d) sizes.push_back(*length(d));
    return sizes;
  }

  static std::int64_t numel(const Sizes& sizes) {
    std::int64_t n = 1;
    for (const auto size : sizes) n *= size;
    return n;
  }

  /// Calls visit(plane, output, input, divisor) for every output and every input element its window holds.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const Sizes outs = out();
    const std::size_t rank = in.size();
    const std::int64_t outputs = numel(outs), inputs = numel(in);
    for (std::int64_t plane = 0; plane < planes; ++plane)
      for (std::int64_t o = 0; o < outputs; ++o) {
        Sizes first(rank), last(rank);
        double full = 1, valid = 1;
        for (std::size_t d = rank, rest = std::size_t(o); d-- > 0; rest /= std::size_t(outs[d])) {
          const auto i = std::int64_t(rest % std::size_t(outs[d]));
          std::int64_t start = 0, end = 0;
          if (adaptive.empty()) {
            start = i * stride[d] - padding[d];
            end = std::min(start + kernel[d], in[d] + padding[d]);
          } else {
            start = i * in[d] / outs[d];
            while (end * outs[d] < (i + 1) * in[d]) ++end;
          }
          full *= double(end - start);
          first[d] = std::max<std::int64_t>(start, 0);
          last[d] = std::min(end, in[d]);
          valid *= double(last[d] - first[d]);
        }
        double divisor = count_include_pad ? full : valid;
        if (divisor_override != 0) divisor = double(divisor_override);
        for (std::int64_t j = 0; j < std::int64_t(valid); ++j) {
          std::int64_t i = 0, rest = j, pitch = 1;
          for (std::size_t d = rank; d-- > 0; pitch *= in[d]) {
            i += (first[d] + rest % (last[d] - first[d])) * pitch;
            rest /= last[d] - first[d];
          }
          visit(std::size_t(plane * outputs + o), std::size_t(plane * inputs + i), divisor);
        }
      }
  }

  std::vector<double> forward(const std::vector<double>& x) const {
    std::vector<double> y(std::size_t(planes * numel(out())));
    for_each([&](std::size_t o, std::size_t i, double divisor) { y[o] += x[i] / divisor; });
    return y;
  }

  std::vector<double> backward(const std::vector<double>& dy) const {
    std::vector<double> dx(std::size_t(planes * numel(in)));
    for_each([&](std::size_t o, std::size_t i, double divisor) { dx[i] += dy[o] / divisor; });
    return dx;
  }
};

}  // namespace taper::oracle
