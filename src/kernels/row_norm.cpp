#include "kernels/row_norm.hpp"

#include <algorithm>

#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

constexpr std::int64_t kColumns = 64;

template <class T>
double mean_of(const T* x, std::int64_t n) {
  return sum_of(
             n, [x](auto at) __attribute__((always_inline)) { return at(x); }) /
         static_cast<double>(n);
}

template <class T>
Moments row_moments(const RowNormParams& p, const T* x, std::int64_t n) {
  // mean = sum x / n; the sums of x - mean and of its square
  const double mean = p.centered ? mean_of(x, n) : 0;
  const SumPair sums = sum_pairs(
      n, [=](auto at) __attribute__((always_inline)) {
        const auto d = at(x) - mean;
        return TermPair{d, d * d};
      });
  return moments_from(mean, p.centered ? sums.first : 0, sums.second, n, p.eps);
}

/// One row of `spatial` 1: every element has its own weight.
template <bool Weighted, bool Biased, class T>
void map_elements(const Moments& m, std::int64_t n, const T* x, const T* w, const T* b, T* y) {
  const Affine normal(m, 1, 0);
  // y_j = (x_j - mean) rstd w_j + b_j
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t j = 0; j < n; ++j) {
    double v = normal(static_cast<double>(x[j]));
    if constexpr (Weighted) v *= static_cast<double>(w[j]);
    if constexpr (Biased) v += static_cast<double>(b[j]);
    y[j] = T(v);
  }
}

template <class T>
void map_elements(const Moments& m, std::int64_t n, const T* x, const T* w, const T* b, T* y) {
  if (w && b) return map_elements<true, true>(m, n, x, w, b, y);
  if (w) return map_elements<true, false>(m, n, x, w, b, y);
  if (b) return map_elements<false, true>(m, n, x, w, b, y);
  map_elements<false, false>(m, n, x, w, b, y);
}

/// One row of several channels with `spatial` elements each; w and b start at the group's first channel.
template <class T>
void map_channels(const RowNormParams& p, const Moments& m, const T* x, const T* w, const T* b, T* y) {
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const Affine map(m, affine_at(w, c, 1), affine_at(b, c, 0));
    const T* const from = x + c * p.spatial;
    T* const to = y + c * p.spatial;
    // y_i = (x_i - mean) rstd w_c + b_c
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t i = 0; i < p.spatial; ++i) to[i] = T(map(static_cast<double>(from[i])));
  }
}

/// The sums of g and of g h over one row, h being the normalised x and g = dy w the gradient that reaches it.
template <bool Weighted, class T>
SumPair element_sums(const Moments& m, std::int64_t n, const T* dy, const T* x, const T* w) {
  const Affine normal(m, 1, 0);
  return sum_pairs(
      n, [=](auto at) __attribute__((always_inline)) {
        auto g = at(dy);
        if constexpr (Weighted) g *= at(w);
        return TermPair{g, g * normal(at(x))};
      });
}

/// The sums of dy and of dy h over `n` elements.
template <class T>
SumPair run_sums(const Moments& m, std::int64_t n, const T* dy, const T* x) {
  return element_sums<false>(m, n, dy, x, x);
}

/// dx_j = rstd (dy_j w_j - mean(g) - h_j mean(g h)), the means being `means`.
template <bool Weighted, class T>
void element_gradients(const Moments& m, std::int64_t n, SumPair means, const T* dy, const T* x, const T* w, T* dx,
                       bool add) {
  const Affine normal(m, 1, 0);
  store_run(dx, n, add, [=](std::int64_t j) {
    double g = static_cast<double>(dy[j]);
    if constexpr (Weighted) g *= static_cast<double>(w[j]);
    return m.rstd * ((g - means.first) - normal(static_cast<double>(x[j])) * means.second);
  });
}

/// mean(g) and mean(g h); the first is 0 where the mean of x was not taken off.
SumPair row_means(const RowNormParams& p, SumPair sums) {
  const double n = static_cast<double>(p.channels * p.spatial);
  return {p.centered ? sums.first / n : 0, sums.second / n};
}

template <bool Weighted, class T>
void row_of_elements(const RowNormParams& p, const Moments& m, const T* dy, const T* x, const T* w, T* dx, bool add) {
  const SumPair means = row_means(p, element_sums<Weighted>(m, p.channels, dy, x, w));
  element_gradients<Weighted>(m, p.channels, means, dy, x, w, dx, add);
}

template <class T>
void row_of_channels(const RowNormParams& p, const Moments& m, const T* dy, const T* x, const T* w, T* dx, bool add) {
  SumPair sums;
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double weight = affine_at(w, c, 1);
    const SumPair run = run_sums(m, p.spatial, dy + c * p.spatial, x + c * p.spatial);
    sums += {weight * run.first, weight * run.second};
  }
  const SumPair means = row_means(p, sums);
  const Affine normal(m, 1, 0);
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double weight = affine_at(w, c, 1);
    const std::int64_t from = c * p.spatial;
    // dx_i = rstd (dy_i w_c - mean(g) - h_i mean(g h))
    store_run(dx + from, p.spatial, add, [=](std::int64_t i) {
      return m.rstd * ((static_cast<double>(dy[from + i]) * weight - means.first) -
                       normal(static_cast<double>(x[from + i])) * means.second);
    });
  }
}

template <class T>
void backward_input(const RowNormParams& p, const T* dy, const T* x, const T* w, const Moments* moments, T* dx,
                    bool add) {
  if (p.samples == 0) return;
  const std::int64_t n = p.channels * p.spatial;
  parallel_for(p.samples * p.groups, 2 * n * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const T* const weights = w ? w + row % p.groups * p.channels : nullptr;
      const std::int64_t at_row = row * n;
      const Moments& m = moments[row];
      if (p.spatial != 1)
        row_of_channels(p, m, dy + at_row, x + at_row, weights, dx + at_row, add);
      else if (weights)
        row_of_elements<true>(p, m, dy + at_row, x + at_row, weights, dx + at_row, add);
      else
        row_of_elements<false>(p, m, dy + at_row, x + at_row, weights, dx + at_row, add);
    }
  });
}

/// dw_c = sum of dy h, db_c = sum of dy over the samples, for channels of one element: columns side by side.
template <class T>
void affine_of_elements(const RowNormParams& p, const T* dy, const T* x, const Moments* moments,
                        const NormGradients<T>& out) {
  const std::int64_t blocks = (p.channels + kColumns - 1) / kColumns, all = p.groups * p.channels;
  parallel_for(p.groups * blocks, p.samples * kColumns * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t group = unit / blocks, column = unit % blocks * kColumns;
      const std::int64_t width = std::min(kColumns, p.channels - column), c = group * p.channels + column;
      double dw[kColumns] = {}, db[kColumns] = {};
      for (std::int64_t sample = 0; sample < p.samples; ++sample) {
        const Affine normal(moments[sample * p.groups + group], 1, 0);
        const T *const g = dy + sample * all + c, *const from = x + sample * all + c;
        // dw_j += dy_j h_j, db_j += dy_j
        for (std::int64_t j = 0; j < width; ++j) {
          db[j] += static_cast<double>(g[j]);
          dw[j] += static_cast<double>(g[j]) * normal(static_cast<double>(from[j]));
        }
      }
      for (std::int64_t j = 0; j < width; ++j) {
        if (out.dw) store(out.dw + c + j, dw[j], out.add_dw);
        if (out.db) store(out.db + c + j, db[j], out.add_db);
      }
    }
  });
}

/// The same for channels of several elements, each of which lie together.
template <class T>
void affine_of_channels(const RowNormParams& p, const T* dy, const T* x, const Moments* moments,
                        const NormGradients<T>& out) {
  const std::int64_t all = p.groups * p.channels;
  parallel_for(all, p.samples * p.spatial * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t c = first; c < last; ++c) {
      SumPair sums;
      for (std::int64_t sample = 0; sample < p.samples; ++sample) {
        const std::int64_t plane = (sample * all + c) * p.spatial;
        sums += run_sums(moments[sample * p.groups + c / p.channels], p.spatial, dy + plane, x + plane);
      }
      if (out.dw) store(out.dw + c, sums.second, out.add_dw);
      if (out.db) store(out.db + c, sums.first, out.add_db);
    }
  });
}

}  // namespace

template <class T>
void row_norm(const RowNormParams& p, const T* x, const T* w, const T* b, Moments* moments, T* y) {
  if (p.samples == 0) return;
  const std::int64_t n = p.channels * p.spatial;
  parallel_for(p.samples * p.groups, 2 * n * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t c = row % p.groups * p.channels;
      const T *const weights = w ? w + c : nullptr, *const biases = b ? b + c : nullptr;
      moments[row] = row_moments(p, x + row * n, n);
      if (p.spatial != 1)
        map_channels(p, moments[row], x + row * n, weights, biases, y + row * n);
      else
        map_elements(moments[row], n, x + row * n, weights, biases, y + row * n);
    }
  });
}

template <class T>
void row_norm_backward(const RowNormParams& p, const T* dy, const T* x, const T* w, const Moments* moments,
                       const NormGradients<T>& gradients) {
  if (gradients.dx) backward_input(p, dy, x, w, moments, gradients.dx, gradients.add_dx);
  if (!gradients.dw && !gradients.db) return;
  if (p.spatial != 1)
    affine_of_channels(p, dy, x, moments, gradients);
  else
    affine_of_elements(p, dy, x, moments, gradients);
}

#define TAPER_INSTANTIATE_ROW_NORM(T)                                                                    \
  template void row_norm<T>(const RowNormParams&, const T*, const T*, const T*, Moments*, T*);           \
  template void row_norm_backward<T>(const RowNormParams&, const T*, const T*, const T*, const Moments*, \
                                     const NormGradients<T>&)
TAPER_INSTANTIATE_ROW_NORM(float);
TAPER_INSTANTIATE_ROW_NORM(double);

}  // namespace taper::kernels
