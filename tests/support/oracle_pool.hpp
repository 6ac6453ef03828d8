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
  Sizes adaptive = {};       ///< the output size of an adaptive pool; the options above do not matter then
  Sizes padding_right = {};  ///< when it differs from `padding`, the left one
  Sizes dilation = {};       ///< when it is not 1

  std::int64_t right(std::size_t d) const { return padding_right.empty() ? padding[d] : padding_right[d]; }
  std::int64_t gap(std::size_t d) const { return dilation.empty() ? 1 : dilation[d]; }
  std::int64_t span(std::size_t d) const { return gap(d) * (kernel[d] - 1) + 1; }

  /// The output length of dimension `d`, if PyTorch admits it.
  std::optional<std::int64_t> length(std::size_t d) const {
    if (!adaptive.empty()) return adaptive[d];
    const std::int64_t k = kernel[d], s = stride[d], p = padding[d];
    if (in[d] < 1 || k < 1 || s < 1 || p < 0 || 2 * std::max(p, right(d)) > span(d)) return std::nullopt;
    const std::int64_t travel = in[d] + p + right(d) - span(d);
    // The largest o with o * s <= travel, or the smallest with o * s >= travel.
    std::int64_t last = -1000;
    while ((last + 1) * s <= travel) ++last;
    if (ceil_mode && last * s < travel) ++last;
    if (ceil_mode && last * s >= in[d] + p) --last;
    if (last < 0) return std::nullopt;
    return last + 1;
  }
  bool admitted() const {
    for (std::size_t d = 0; d < in.size(); ++d)
      if (!length(d)) return false;
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

  /// One window along one dimension: the elements it holds, and how many positions of the padded input.
  struct Window {
    Sizes elements;
    double padded = 0;
  };

  Window window(std::size_t d, std::int64_t i, std::int64_t outputs) const {
    Window w;
    if (!adaptive.empty()) {
      for (std::int64_t j = i * in[d] / outputs; j * outputs < (i + 1) * in[d]; ++j) w.elements.push_back(j);
      return w;
    }
    for (std::int64_t tap = 0; tap < kernel[d]; ++tap) {
      const std::int64_t at = i * stride[d] - padding[d] + tap * gap(d);
      if (at >= in[d] + right(d)) break;
      w.padded += 1;
      if (at >= 0 && at < in[d]) w.elements.push_back(at);
    }
    return w;
  }

  /// Calls visit(output, divisor, each) for every output of a plane; each(body) calls body(input) for every element
  /// that its window holds.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::size_t rank = in.size();
    std::vector<std::vector<Window>> windows(3, {{{0}, 1}});
    Sizes extent(3, 1);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::size_t at = 3 - rank + d;
      extent[at] = in[d];
      windows[at].clear();
      const std::int64_t outputs = *length(d);
      for (std::int64_t i = 0; i < outputs; ++i) windows[at].push_back(window(d, i, outputs));
    }
    std::size_t o = 0;
    for (const Window& a : windows[0])
      for (const Window& b : windows[1])
        for (const Window& c : windows[2]) {
          double divisor = double(a.elements.size()) * double(b.elements.size()) * double(c.elements.size());
          if (adaptive.empty() && count_include_pad) divisor = a.padded * b.padded * c.padded;
          if (divisor_override != 0) divisor = double(divisor_override);
          visit(o++, divisor, [&](const auto& body) {
            for (const std::int64_t i : a.elements)
              for (const std::int64_t j : b.elements)
                for (const std::int64_t k : c.elements) body((i * extent[1] + j) * extent[2] + k);
          });
        }
  }

  /// Sums that are exact give averages that are exactly rounded.
  std::vector<double> forward(const std::vector<double>& x) const {
    const std::size_t outputs = std::size_t(numel(out())), inputs = std::size_t(numel(in));
    std::vector<double> y(std::size_t(planes) * outputs);
    for_each([&](std::size_t o, double divisor, const auto& each) {
      for (std::size_t p = 0; p < std::size_t(planes); ++p) {
        const double* const plane = x.data() + p * inputs;
        double sum = 0;
        each([&](std::int64_t i) { sum += plane[i]; });
        y[p * outputs + o] = sum / divisor;
      }
    });
    return y;
  }

  std::vector<double> backward(const std::vector<double>& dy) const {
    const std::size_t outputs = std::size_t(numel(out())), inputs = std::size_t(numel(in));
    std::vector<double> dx(std::size_t(planes) * inputs);
    for_each([&](std::size_t o, double divisor, const auto& each) {
      for (std::size_t p = 0; p < std::size_t(planes); ++p) {
        double* const plane = dx.data() + p * inputs;
        const double share = dy[p * outputs + o] / divisor;
        each([&](std::int64_t i) { plane[i] += share; });
      }
    });
    return dx;
  }

  /// Whether any window holds an element, for each of a plane.
  std::vector<char> held() const {
    std::vector<char> any(std::size_t(numel(in)), 0);
    for_each([&](std::size_t, double, const auto& each) { each([&](std::int64_t i) { any.data()[i] = 1; }); });
    return any;
  }
};

}  // namespace taper::oracle
