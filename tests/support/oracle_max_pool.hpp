#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace taper::oracle {

/// Max pools by their definition, any number of dimensions: every tap of every window is looked at, those outside the
/// input are passed over. Shares nothing with the library's geometry.
struct MaxPool {
  using Sizes = std::vector<std::int64_t>;

  std::int64_t planes = 1;
  Sizes in, kernel, stride, padding, dilation;
  bool ceil_mode = false;
  Sizes adaptive = {};  ///< the output size of an adaptive pool; the options above do not matter then

  /// Where window `o` of dimension `d` looks inside the input, in order.
  Sizes taps(std::size_t d, std::int64_t o) const {
    Sizes at;
    if (!adaptive.empty()) {
      for (std::int64_t i = 0; i < in[d]; ++i)  // floor(o L / O) <= i < ceil((o + 1) L / O)
        if ((i + 1) * adaptive[d] > o * in[d] && i * adaptive[d] < (o + 1) * in[d]) at.push_back(i);
      return at;
    }
    for (std::int64_t t = 0; t < kernel[d]; ++t) {
      const std::int64_t i = o * stride[d] - padding[d] + t * dilation[d];
      if (i >= 0 && i < in[d]) at.push_back(i);
    }
    return at;
  }

  /// The output length of dimension `d`, if PyTorch's rules admit it.
  std::optional<std::int64_t> length(std::size_t d) const {
    if (!adaptive.empty()) return adaptive[d];
    const std::int64_t k = kernel[d], s = stride[d], p = padding[d];
    if (in[d] < 1 || k < 1 || s < 1 || p < 0 || dilation[d] < 1 || p > k / 2) return std::nullopt;
    const std::int64_t travel = in[d] + 2 * p - dilation[d] * (k - 1) - 1;
    // The largest o with o * s <= travel, or the smallest with o * s >= travel.
    std::int64_t last = -1000;
    while ((last + 1) * s <= travel) ++last;
    if (ceil_mode && last * s < travel) ++last;
    if (ceil_mode && last * s >= in[d] + p) --last;
    if (last < 0) return std::nullopt;
    return last + 1;
  }

  /// Whether there is an output and no window is empty.
  bool is_admitted() const {
    for (std::size_t d = 0; d < in.size(); ++d) {
      const auto outputs = length(d);
      if (!outputs) return false;
      for (std::int64_t o = 0; o < *outputs; ++o)
        if (taps(d, o).empty()) return false;
    }
    return true;
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
  std::int64_t inputs() const { return planes * numel(in); }
  std::int64_t outputs() const { return planes * numel(out()); }

  /// Flat positions in the plane, in row-major order, that the window of an output holds; `sizes` is `out()`.
  Sizes window(std::int64_t output, const Sizes& sizes) const {
    std::vector<Sizes> each(in.size());
    for (std::size_t d = in.size(); d-- > 0; output /= sizes[d]) each[d] = taps(d, output % sizes[d]);
    Sizes flat = {0};
    for (std::size_t d = 0; d < in.size(); ++d) {
      Sizes next;
      for (const std::int64_t base : flat)
        for (const std::int64_t i : each[d]) next.push_back(base * in[d] + i);
      flat = next;
    }
    return flat;
  }

  /// Where in its plane each output comes from.
  Sizes indices(const std::vector<double>& x) const {
    const Sizes sizes = out();
    const std::int64_t plane_outputs = numel(sizes), plane_inputs = numel(in);
    Sizes found(static_cast<std::size_t>(planes * plane_outputs));
    for (std::int64_t o = 0; o < plane_outputs; ++o) {
      const Sizes places = window(o, sizes);
      for (std::int64_t plane = 0; plane < planes; ++plane) {
        std::int64_t best = places[0];
        double top = -std::numeric_limits<double>::infinity();
        for (const std::int64_t i : places) {
          const double v = x[std::size_t(plane * plane_inputs + i)];
          if (v > top || v != v) top = v, best = i;
        }
        found[std::size_t(plane * plane_outputs + o)] = best;
      }
    }
    return found;
  }

  /// x at `indices`.
  std::vector<double> forward(const std::vector<double>& x, const Sizes& indices) const {
    const std::int64_t plane_outputs = numel(out()), plane_inputs = numel(in);
    std::vector<double> y;
    for (std::int64_t o = 0; o < planes * plane_outputs; ++o)
      y.push_back(x[std::size_t(o / plane_outputs * plane_inputs + indices[std::size_t(o)])]);
    return y;
  }

  std::vector<double> backward(const std::vector<double>& dy, const Sizes& indices) const {
    const std::int64_t plane_outputs = numel(out()), plane_inputs = numel(in);
    std::vector<double> dx(static_cast<std::size_t>(inputs()));
    for (std::int64_t o = 0; o < planes * plane_outputs; ++o)
      dx[std::size_t(o / plane_outputs * plane_inputs + indices[std::size_t(o)])] += dy[std::size_t(o)];
    return dx;
  }
};

}  // namespace taper::oracle
