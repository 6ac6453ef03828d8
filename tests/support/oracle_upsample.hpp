#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace taper::oracle {

/// Resizing of one dimension by its definition: the whole matrix of weights, one row an output.
struct UpsampleAxis {
  enum Mode { nearest, nearest_exact, linear, aligned, cubic, cubic_aligned };
  Mode mode = nearest;
  std::int64_t in = 1, out = 1;
  double factor = 0;  ///< 0: of the sizes

  std::vector<std::vector<double>> weights() const {
    std::vector<std::vector<double>> rows;
    for (std::int64_t i = 0; i < out; ++i) {
      std::vector<double> row(std::size_t(in), 0.0);
      if (mode == nearest || mode == nearest_exact) {
        row[std::size_t(nearest_of(i))] = 1;
      } else if (is_cubic()) {
        // Elements before the first and after the last are like these.
        const double place = std::min(place_of(i), double(in));
        for (std::int64_t j = -3; j < in + 3; ++j)
          row[std::size_t(std::clamp<std::int64_t>(j, 0, in - 1))] += keys(place - double(j));
      } else {
        const double place = std::clamp(place_of(i), 0.0, double(in - 1));
        for (std::int64_t j = 0; j < in; ++j) row[std::size_t(j)] = std::max(0.0, 1 - std::abs(place - double(j)));
      }
      rows.push_back(row);
    }
    return rows;
  }

  bool is_cubic() const { return mode == cubic || mode == cubic_aligned; }

 private:
  /// Keys's cubic convolution with a = -3/4.
  static double keys(double distance) {
    const double a = -0.75, s = std::abs(distance);
    if (s < 1) return (a + 2) * s * s * s - (a + 3) * s * s + 1;
    return s < 2 ? a * (s * s * s - 5 * s * s + 8 * s - 4) : 0;
  }

  double place_of(std::int64_t i) const {
    if (mode == aligned || mode == cubic_aligned) return out == 1 ? 0 : double(i) * double(in - 1) / double(out - 1);
    const double centre = double(i) + 0.5;
    return (factor > 0 ? centre / factor : centre * double(in) / double(out)) - 0.5;
  }

  /// The last element that begins at or before the output's edge or centre.
  std::int64_t nearest_of(std::int64_t i) const {
    const std::int64_t halves = 2 * i + (mode == nearest_exact ? 1 : 0);
    std::int64_t j = 0;
    if (factor > 0) {
      const float place = float(double(halves) / 2 * (1 / factor));
      while (j + 1 < in && float(j + 1) <= place) ++j;
    } else {
      while (j + 1 < in && (j + 1) * 2 * out <= halves * in) ++j;
    }
    return j;
  }
};

/// `x` with its dimension of extent `rows[0].size()`, behind `outer` and before `inner` elements, multiplied by the
/// matrix; or by its transpose. Weights of 0, almost all, are passed over.
inline std::vector<double> multiplied(const std::vector<double>& x, const std::vector<std::vector<double>>& rows,
                                      std::size_t inner, bool transpose) {
  const std::size_t out = rows.size(), in = rows[0].size();
  const std::size_t from = transpose ? out : in, to = transpose ? in : out, outer = x.size() / inner / from;
  std::vector<double> y(outer * to * inner);
  for (std::size_t i = 0; i < out; ++i)
    for (std::size_t j = 0; j < in; ++j) {
      const double weight = rows[i][j];
      if (weight == 0) continue;
      for (std::size_t a = 0; a < outer; ++a)
        for (std::size_t b = 0; b < inner; ++b)
          y[(a * to + (transpose ? j : i)) * inner + b] += weight * x[(a * from + (transpose ? i : j)) * inner + b];
    }
  return y;
}

}  // namespace taper::oracle
