#include "kernels/embedding.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/array.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sort_places.hpp"

namespace taper::kernels {

namespace {

constexpr std::int64_t kEmbeddingColumns = 64;
/// Rows in front of which their gradients are asked for: they lie anywhere.
constexpr std::int64_t kAhead = 4;

/// Where rows are read: the `places` sorted by their index, equal ones in order, cut into runs of equal indices; run r
/// is [starts[r], starts[r + 1]).
struct SortedPlaces {
  Array<std::int64_t> places, starts;
  std::int64_t runs = 0;

  SortedPlaces(const std::int64_t* index, std::int64_t count, std::int64_t rows) : places(count), starts(count + 1) {
    if (rows / 8 <= count) {
      const Array<std::int64_t> ends(rows + 1);
      sort_places(index, count, rows, places.data(), ends.data());
    } else {
      for (std::int64_t j = 0; j < count; ++j) places[j] = j;
      std::sort(places.data(), places.data() + count,
                [=](std::int64_t a, std::int64_t b) { return index[a] != index[b] ? index[a] < index[b] : a < b; });
    }
    for (std::int64_t j = 0; j < count; ++j)
      if (j == 0 || index[places[j]] != index[places[j - 1]]) starts[runs++] = j;
    starts[runs] = count;
  }
};

/// Larger, or NaN, which then stays.
double larger(double a, double b) { return b > a || std::isnan(b) ? b : a; }

template <class T>
double norm_of(const T* x, std::int64_t n, double p) {
  if (n == 0) return 0;
  double total = 0;
  if (std::isinf(p)) {
    const double sign = p > 0 ? 1 : -1;
    // ||x|| = max_j |x_j|, or min_j |x_j|
    double extreme = sign * std::abs(double(x[0]));
    for (std::int64_t j = 1; j < n; ++j) extreme = larger(extreme, sign * std::abs(double(x[j])));
    return sign * extreme;
  }
  if (p == 0) {
    // ||x|| = the number of j with x_j != 0
    for (std::int64_t j = 0; j < n; ++j) total += x[j] != 0 ? 1 : 0;
    return total;
  }
  if (p == 2) {
    // ||x|| = (sum x_j^2)^(1/2)
    for (std::int64_t j = 0; j < n; ++j) total += double(x[j]) * double(x[j]);
    return std::sqrt(total);
  }
  // ||x|| = (sum |x_j|^p)^(1/p)
  for (std::int64_t j = 0; j < n; ++j) total += std::pow(std::abs(double(x[j])), p);
  return std::pow(total, 1 / p);
}

}  // namespace

template <class T>
void embedding_renorm(const EmbeddingParams& p, const RowBound& bound, const std::int64_t* index, T* w) {
  constexpr double kMargin = 1e-7;  // PyTorch's, so that a row is not scaled down again and again
  const SortedPlaces sorted(index, p.count, p.rows);
  // w_r *= max_norm / (||w_r|| + 1e-7) where ||w_r|| > max_norm
  parallel_for(sorted.runs, p.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* const row = w + index[sorted.places[sorted.starts[r]]] * p.width;
      const double norm = norm_of(row, p.width, bound.norm_type);
      if (!(norm > bound.max_norm)) continue;
      const double scale = bound.max_norm / (norm + kMargin);
      for (std::int64_t j = 0; j < p.width; ++j) row[j] = T(double(row[j]) * scale);
    }
  });
}

template <class T>
void embedding_backward(const EmbeddingParams& p, const std::int64_t* index, const T* dy, T* dw, bool add) {
  const SortedPlaces sorted(index, p.count, p.rows);
  if (!add)
    parallel_for(p.rows, p.width, [=](std::int64_t first, std::int64_t last) {
      std::fill(dw + first * p.width, dw + last * p.width, T(0));
    });
  const std::int64_t mean_length = sorted.runs == 0 ? 0 : p.count / sorted.runs;
  // dw_r += sum of dy_j over the j with index_j = r, divided by their number if that is asked for
  parallel_for(sorted.runs, (mean_length + 1) * p.width, [&](std::int64_t begin, std::int64_t end) {
    double sums[kEmbeddingColumns];
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t begin_run = sorted.starts[r], end_run = sorted.starts[r + 1];
      const std::int64_t row = index[sorted.places[begin_run]];
      if (row == p.padding_row) continue;
      const double divisor = p.by_frequency ? double(end_run - begin_run) : 1;
      for (std::int64_t column = 0; column < p.width; column += kEmbeddingColumns) {
        const std::int64_t n = std::min(kEmbeddingColumns, p.width - column);
        for (std::int64_t k = begin_run; k < end_run; ++k) {
          const T* from = dy + sorted.places[k] * p.width + column;
          fetch_run(dy + sorted.places[std::min(k + kAhead, p.count - 1)] * p.width + column, n, 0);
          for (std::int64_t i = 0; i < n; ++i) sums[i] = (k == begin_run ? 0 : sums[i]) + double(from[i]);
        }
        if (divisor != 1)
          for (std::int64_t i = 0; i < n; ++i) sums[i] /= divisor;
        T* to = dw + row * p.width + column;
        for (std::int64_t i = 0; i < n; ++i) to[i] = T(double(to[i]) + sums[i]);
      }
    }
  });
}

template void embedding_renorm(const EmbeddingParams&, const RowBound&, const std::int64_t*, float*);
template void embedding_backward(const EmbeddingParams&, const std::int64_t*, const float*, float*, bool);
#ifndef TAPER_ONLY_FLOAT32
template void embedding_renorm(const EmbeddingParams&, const RowBound&, const std::int64_t*, double*);
template void embedding_backward(const EmbeddingParams&, const std::int64_t*, const double*, double*, bool);
#endif

}  // namespace taper::kernels
