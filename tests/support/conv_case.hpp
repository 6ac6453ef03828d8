#pragma once

#include <algorithm>
#include <sstream>
#include <string>

#include "base/random.hpp"
#include "support/oracle_conv.hpp"
#include "taper/nn/conv.hpp"

/// Convolutions with all their options, drawn at random.
namespace taper::test {

/// A call of conv1d, conv2d or conv3d; what an unused dimension holds does not matter.
struct ConvCase {
  int dims = 1;
  bool batched = true, bias = true;
  enum Padding { numbers, same, valid } padding = numbers;
  std::int64_t amounts[3] = {0, 0, 0};
  oracle::Conv conv;

  /// Whether PyTorch's rules allow it; fills in the output's sizes and the padding's.
  bool legal() {
    for (int d = 3 - dims; d < 3; ++d) {
      const auto i = std::size_t(d);
      const std::int64_t span = conv.dilation[i] * (conv.kernel[i] - 1);
      const std::int64_t total = padding == same ? span : padding == valid ? 0 : 2 * amounts[d];
      if (padding == same && conv.stride[i] != 1) return false;
      conv.pad[i] = total / 2;
      const std::int64_t more = total - conv.pad[i];
      if (conv.fill == oracle::Conv::reflect && more >= conv.length[i]) return false;
      if (conv.fill == oracle::Conv::circular && more > conv.length[i]) return false;
      const std::int64_t travel = conv.length[i] + total - span - 1;
      if (travel < 0) return false;
      conv.out_length[i] = travel / conv.stride[i] + 1;
    }
    return true;
  }

  template <int N>
  nn::ConvFuncOptions<N> options() const {
    nn::ConvFuncOptions<N> o;
    for (int d = 0; d < N; ++d) {
      const auto i = std::size_t(3 - N + d);
      o.stride.values[std::size_t(d)] = conv.stride[i];
      o.dilation.values[std::size_t(d)] = conv.dilation[i];
      o.padding.amounts.values[std::size_t(d)] = amounts[i];
    }
    if (padding == same) o.padding = "same";
    if (padding == valid) o.padding = "valid";
    o.groups = conv.groups;
    o.padding_mode = PadMode(int(conv.fill));
    return o;
  }

  Tensor call(const Tensor& x, const Tensor& w, const Tensor& b) const {
    if (dims == 1) return nn::functional::conv1d(x, w, b, options<1>());
    if (dims == 2) return nn::functional::conv2d(x, w, b, options<2>());
    return nn::functional::conv3d(x, w, b, options<3>());
  }

  Shape spatial(const oracle::Conv::Extents& extents) const {
    return Shape(std::span(extents).last(std::size_t(dims)));
  }
  Shape input() const {
    return (batched ? Shape{conv.batch} : Shape{}).concat({conv.in_channels}).concat(spatial(conv.length));
  }
  Shape weight() const { return Shape{conv.out_channels, conv.in_channels / conv.groups}.concat(spatial(conv.kernel)); }
  Shape output() const {
    return (batched ? Shape{conv.batch} : Shape{}).concat({conv.out_channels}).concat(spatial(conv.out_length));
  }

  std::string text() const {
    static const char* const fills[] = {"zeros", "reflect", "replicate", "circular"};
    std::ostringstream out;
    const auto list = [&](const char* name, const auto& values) {
      out << ' ' << name;
      for (int d = 3 - dims; d < 3; ++d) out << (d == 3 - dims ? ' ' : 'x') << values[std::size_t(d)];
    };
    out << "conv" << dims << "d batch " << (batched ? std::to_string(conv.batch) : "none") << " channels "
        << conv.in_channels << " to " << conv.out_channels << " groups " << conv.groups;
    list("length", conv.length), list("kernel", conv.kernel), list("stride", conv.stride);
    list("dilation", conv.dilation);
    if (padding == numbers)
      list("padding", amounts);
    else
      out << (padding == same ? " same" : " valid");
    out << ' ' << fills[conv.fill] << (bias ? "" : " without bias");
    return out.str();
  }
};

/// Draws from the options of a convolution: extents up to `longest` and up to `most` channels to a group.
inline ConvCase draw_conv(Generator& random, int dims, std::int64_t longest, std::int64_t most) {
  const auto below = [&](std::int64_t n) { return std::int64_t(random_below(random.next(), std::uint64_t(n))); };
  ConvCase c;
  c.dims = dims;
  c.batched = below(4) != 0;
  c.bias = below(3) != 0;
  c.conv.batch = c.batched ? below(12) == 0 ? 0 : 1 + below(3) : 1;
  const bool depthwise = below(6) == 0;
  c.conv.groups = depthwise ? 1 + below(7) : below(3) == 0 ? 2 + below(2) : 1;
  c.conv.in_channels = c.conv.groups * (depthwise ? 1 : 1 + below(most));
  c.conv.out_channels = c.conv.groups * (depthwise ? 1 + below(2) : 1 + below(most));
  c.padding = below(4) == 0 ? ConvCase::same : below(6) == 0 ? ConvCase::valid : ConvCase::numbers;
  c.conv.fill = below(2) == 0 ? oracle::Conv::zeros : oracle::Conv::Fill(below(4));
  const bool strided = c.padding != ConvCase::same && below(2) == 0, dilated = below(3) == 0;
  for (int d = 3 - dims; d < 3; ++d) {
    const auto i = std::size_t(d);
    c.conv.length[i] = 1 + below(longest);
    c.conv.kernel[i] = below(4) == 0 ? 1 : 1 + below(std::min<std::int64_t>(5, longest));
    c.conv.stride[i] = strided ? 1 + below(5) : 1;
    c.conv.dilation[i] = dilated ? 1 + below(4) : 1;
    c.amounts[d] = below(3) == 0 ? 0 : below(5);
  }
  return c;
}

}  // namespace taper::test
