#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace taper::oracle {

/// A convolution over depth, height and width; dimensions that are not there have the extent 1.
struct Conv {
  using Extents = std::array<std::int64_t, 3>;
  std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  Extents length{1, 1, 1}, out_length{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, pad{0, 0, 0}, dilation{1, 1, 1};
  enum Fill { zeros, reflect, replicate, circular } fill = zeros;

  /// The position along dimension `d` that stands for `q`, which may lie outside; -1 for a zero.
  std::int64_t filled(std::size_t d, std::int64_t q) const {
    const std::int64_t last = length[d] - 1;
    if (q >= 0 && q <= last) return q;
    if (fill == reflect) return q < 0 ? -q : 2 * last - q;
    if (fill == replicate) return q < 0 ? 0 : last;
    if (fill == circular) return q < 0 ? q + length[d] : q - length[d];
    return -1;
  }
};

inline std::int64_t product(const Conv::Extents& extents) { return extents[0] * extents[1] * extents[2]; }

/// Calls `body(index, coordinates)` for every element of a row-major array.
template <class Body>
void for_elements(const Conv::Extents& extents, const Body& body) {
  std::int64_t index = 0;
  for (std::int64_t d = 0; d < extents[0]; ++d)
    for (std::int64_t h = 0; h < extents[1]; ++h)
      for (std::int64_t w = 0; w < extents[2]; ++w) body(index++, Conv::Extents{d, h, w});
}

/// Calls `term(x index, w index, y index)` for every product x w that the definition of the convolution adds to y.
template <class Term>
void for_terms(const Conv& p, const Term& term) {
  const std::int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups;
  const std::int64_t inputs = product(p.length), outputs = product(p.out_length), taps = product(p.kernel);
  struct Place {
    std::int64_t from, tap, position;
  };
  std::vector<Place> places;  // of one pair of channels
  for_elements(p.out_length, [&](std::int64_t position, const Conv::Extents& l) {
    for_elements(p.kernel, [&](std::int64_t tap, const Conv::Extents& t) {
      std::int64_t from = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        const std::int64_t q = p.filled(d, l[d] * p.stride[d] + t[d] * p.dilation[d] - p.pad[d]);
        if (q < 0) return;
        from = from * p.length[d] + q;
      }
      places.push_back({from, tap, position});
    });
  });
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t o = 0; o < p.out_channels; ++o)
      for (std::int64_t c = 0; c < in; ++c) {
        const std::int64_t x = (n * p.in_channels + o / out * in + c) * inputs, w = (o * in + c) * taps,
                           y = (n * p.out_channels + o) * outputs;
        for (const Place& at : places)
          term(static_cast<std::size_t>(x + at.from), static_cast<std::size_t>(w + at.tap),
               static_cast<std::size_t>(y + at.position));
      }
}

/// y = x * w + b; `b` may be empty.
template <class T>
std::vector<double> conv_forward(const Conv& p, const std::vector<T>& x, const std::vector<T>& w,
                                 const std::vector<T>& b) {
  const std::int64_t outputs = product(p.out_length);
  std::vector<double> y(static_cast<std::size_t>(p.batch * p.out_channels * outputs), 0.0);
  if (!b.empty())
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = static_cast<double>(b[i / static_cast<std::size_t>(outputs) % b.size()]);
  for_terms(p, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    y[yi] += static_cast<double>(x[xi]) * static_cast<double>(w[wi]);
  });
  return y;
}

struct ConvGradients {
  std::vector<double> dx, dw, db;
};

/// The gradients of the sum of dy y.
template <class T>
ConvGradients conv_backward(const Conv& p, const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& dy) {
  ConvGradients g{std::vector<double>(x.size(), 0.0), std::vector<double>(w.size(), 0.0),
                  std::vector<double>(static_cast<std::size_t>(p.out_channels), 0.0)};
  for_terms(p, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    g.dx[xi] += static_cast<double>(w[wi]) * static_cast<double>(dy[yi]);
    g.dw[wi] += static_cast<double>(x[xi]) * static_cast<double>(dy[yi]);
  });
  const auto outputs = static_cast<std::size_t>(product(p.out_length));
  for (std::size_t i = 0; i < dy.size(); ++i) g.db[i / outputs % g.db.size()] += static_cast<double>(dy[i]);
  return g;
}

}  // namespace taper::oracle
