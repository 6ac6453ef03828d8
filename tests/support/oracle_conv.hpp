#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace oracle {

/// A convolution of any number of spatial dimensions; the vectors hold one entry for each.
struct Conv {
  std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::vector<std::int64_t> length, out_length, kernel, stride, pad, dilation;
};

inline std::int64_t product(const std::vector<std::int64_t>& extents) {
  std::int64_t n = 1;
  for (const std::int64_t extent : extents) n *= extent;
  return n;
}

/// The coordinates of element `index` of a row-major array.
inline std::vector<std::int64_t> coordinates(std::int64_t index, const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> at(extents.size());
  for (std::size_t d = extents.size(); d-- > 0;) {
    at[d] = index % extents[d];
    index /= extents[d];
  }
  return at;
}

/// Calls `term(x index, w index, y index)` for every product x w that the definition of the convolution adds to y.
template <class Term>
void for_terms(const Conv& p, const Term& term) {
  const std::int64_t in = p.in_channels / p.groups, out = p.out_channels / p.groups;
  const std::int64_t inputs = product(p.length), outputs = product(p.out_length), taps = product(p.kernel);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t o = 0; o < p.out_channels; ++o)
      for (std::int64_t position = 0; position < outputs; ++position)
        for (std::int64_t c = 0; c < in; ++c)
          for (std::int64_t tap = 0; tap < taps; ++tap) {
            const auto l = coordinates(position, p.out_length), t = coordinates(tap, p.kernel);
            std::int64_t from = 0;
            bool inside = true;
            for (std::size_t d = 0; d < l.size(); ++d) {
              const std::int64_t q = l[d] * p.stride[d] + t[d] * p.dilation[d] - p.pad[d];
              inside = inside && q >= 0 && q < p.length[d];
              from = from * p.length[d] + q;
            }
            if (!inside) continue;
            const std::int64_t channel = o / out * in + c;
            term(static_cast<std::size_t>((n * p.in_channels + channel) * inputs + from),
                 static_cast<std::size_t>((o * in + c) * taps + tap),
                 static_cast<std::size_t>((n * p.out_channels + o) * outputs + position));
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

}  // namespace oracle
