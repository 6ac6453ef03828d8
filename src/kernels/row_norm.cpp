#include "kernels/row_norm.hpp"

#include <algorithm>

#include "kernels/ceil_div.hpp"
#include "kernels/norm_loops.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

constexpr std::int64_t kColumns = 64;

/// Samples whose gradients of w and b are summed in T before they are joined in double.
std::int64_t samples_together(const RowNormParams& p) { return std::clamp<std::int64_t>(p.samples / 8, 8, 64); }
std::int64_t sample_blocks(const RowNormParams& p) { return ceil_div(p.samples, samples_together(p)); }

/// Rows whose moments are taken in turn, step by step: each step of a row waits for the one before.
constexpr std::int64_t kRowsInTurn = 8;
/// More elements do not stay in the first cache until they are normalised.
constexpr std::int64_t kElementsInTurn = 2048;

/// The moments of `count` rows, at most kRowsInTurn.
template <class T>
[[gnu::noinline]] void moments_of_rows(const RowNormParams& p, const T* x, std::int64_t n, std::int64_t count,
                                       Moments* moments) {
  T center[kRowsInTurn] = {};
  SumPair sums[kRowsInTurn];
  // mean = sum x / n, which only has to be near: the sums of x - mean and of its square say the rest
  if (p.centered)
    for (std::int64_t r = 0; r < count; ++r) center[r] = T(near_sum(x + r * n, n) / static_cast<double>(n));
  for (std::int64_t r = 0; r < count; ++r) sums[r] = deviations_of(x + r * n, n, center[r]);
  for (std::int64_t r = 0; r < count; ++r)
    moments[r] = moments_from(static_cast<double>(center[r]), p.centered ? sums[r].first : 0, sums[r].second, n, p.eps);
}

/// One row of `spatial` 1: every element has its own weight.
template <class T>
void map_elements(const Moments& m, std::int64_t n, const T* x, const T* w, const T* b, T* y) {
  const Affine<T> normal(m, 1, 0);
  // y_j = (x_j - mean) rstd w_j + b_j
  map_packs<T>(
      n, [=](auto at) __attribute__((always_inline)) {
        Vector<T> v = normal(at(x));
        if (w) v *= at(w);
        if (b) v += at(b);
        at.store(y, v);
      });
}

/// One row of several channels with `spatial` elements each; w and b start at the group's first channel.
template <class T>
void map_channels(const RowNormParams& p, const Moments& m, const T* x, const T* w, const T* b, T* y) {
  // y_i = (x_i - mean) rstd w_c + b_c
  for (std::int64_t c = 0; c < p.channels; ++c)
    map_run(Affine<T>(m, affine_at(w, c, 1), affine_at(b, c, 0)), x + c * p.spatial, p.spatial, y + c * p.spatial);
}

/// mean(g) and mean(g h), g = dy w being the gradient that reaches h; the first is 0 where the mean of x was not taken
/// off.
SumPair row_means(const RowNormParams& p, SumPair sums) {
  const double n = static_cast<double>(p.channels * p.spatial);
  return {p.centered ? sums.first / n : 0, sums.second / n};
}

/// Samples of one group whose channels have one element each, `pitch` apart; `dw` and `db` are null or take the sums
/// over the samples.
template <class T>
struct ElementRows {
  const RowNormParams& p;
  const T *dy, *x, *w;
  const Moments* moments;
  T *dx, *dw, *db;
  bool add;
  std::int64_t pitch = p.groups * p.channels;

  ElementRows from(std::int64_t sample) const {
    const std::int64_t at = sample * pitch;
    return {p, dy + at, x + at, w, moments + sample * p.groups, dx ? dx + at : nullptr, dw, db, add};
  }
};

/// The sums of g and of g h over one row.
template <class T>
SumPair element_sums(const ElementRows<T>& s, const Affine<T>& normal, const T* dy, const T* x) {
  double sums[2];
  sum_packs<T, 2, 4>(
      s.p.channels, sums, [ =, w = s.w ](auto at, auto& sum) __attribute__((always_inline)) {
        Vector<T> g = at(dy);
        if (w) g *= at(w);
        sum[0] += g;
        sum[1] = fused(g, normal(at(x, normal.center)), sum[1]);
      });
  return {sums[0], sums[1]};
}

/// The gradients of R samples; the sums over samples are those of earlier ones and these, or with `first` only these.
template <int R, class T>
void element_gradients(const ElementRows<T>& s, bool first) {
  T center[R], rstd[R], rest[R], slope[R], shift[R];
  for (int r = 0; r < R; ++r) {
    const Moments& m = s.moments[r * s.p.groups];
    const Affine<T> normal(m, 1, 0);
    center[r] = normal.center, rstd[r] = normal.scale, rest[r] = normal.shift;
    if (!s.dx) continue;
    const SumPair means = row_means(s.p, element_sums(s, normal, s.dy + r * s.pitch, s.x + r * s.pitch));
    slope[r] = T(-m.rstd * means.second), shift[r] = T(-m.rstd * means.first);
  }
  for_each_pack<T>(
      s.p.channels, [&](auto at) __attribute__((always_inline)) {
        Vector<T> dw = {}, db = {};
        if (!first && s.dw) dw = at(s.dw), db = at(s.db);
      // dx_j = rstd (dy_j w_j - mean(g) - h_j mean(g h)),  dw_j += dy_j h_j,  db_j += dy_j
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const Vector<T> g = at(s.dy + r * s.pitch), h = fused(at(s.x + r * s.pitch) - center[r], rstd[r], rest[r]);
          dw = fused(g, h, dw);
          db += g;
          if (!s.dx) continue;
          T* const dx = s.dx + r * s.pitch;
          const Vector<T> v = fused(s.w ? g * at(s.w) : g, rstd[r], fused(h, slope[r], shift[r]));
          at.store(dx, s.add ? at(dx) + v : v);
        }
        if (s.dw) at.store(s.dw, dw), at.store(s.db, db);
      });
}

/// y_j = the sum of `count` rows at x, `pitch` apart, or added to it; nothing without y.
template <class T>
void join_rows(const T* x, std::int64_t count, std::int64_t pitch, std::int64_t n, T* y, bool add) {
  if (!y) return;
  double sum[kColumns] = {};
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t j = 0; j < n; ++j) sum[j] += static_cast<double>(x[k * pitch + j]);
  for (std::int64_t j = 0; j < n; ++j) store(y + j, sum[j], add);
}

template <class T>
void backward_elements(const RowNormParams& p, const T* dy, const T* x, const T* w, Moments* moments,
                       const NormGradients<T>& out) {
  const std::int64_t all = p.groups * p.channels, together = samples_together(p), blocks = sample_blocks(p);
  // The sums of every block: those of dw for all channels, then those of db.
  const bool affine = out.dw || out.db;
  T* const sums = reinterpret_cast<T*>(moments + p.samples * p.groups);
  parallel_for(blocks * p.groups, 2 * together * p.channels * kNormCost, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t block = unit / p.groups, group = unit % p.groups, c = group * p.channels;
      T* const dw = affine ? sums + 2 * block * all + c : nullptr;
      const ElementRows<T> rows{p,
                                dy + c,
                                x + c,
                                w ? w + c : nullptr,
                                moments + group,
                                out.dx ? out.dx + c : nullptr,
                                dw,
                                dw ? dw + all : nullptr,
                                out.add_dx};
      const std::int64_t first = block * together, last = std::min(p.samples, first + together);
      std::int64_t sample = first;
      if constexpr (kVectorWidth > 16 && sizeof(T) == sizeof(float))  // the others are kept small
        for (; sample + 4 <= last; sample += 4) element_gradients<4>(rows.from(sample), sample == first);
      for (; sample < last; ++sample) element_gradients<1>(rows.from(sample), sample == first);
    }
  });
  if (!affine) return;
  const std::int64_t columns = ceil_div(all, kColumns);
  parallel_for(columns, blocks * kColumns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t c = unit * kColumns, width = std::min(kColumns, all - c);
      join_rows(sums + c, blocks, 2 * all, width, out.dw ? out.dw + c : nullptr, out.add_dw);
      join_rows(sums + all + c, blocks, 2 * all, width, out.db ? out.db + c : nullptr, out.add_db);
    }
  });
}

/// The gradient of one row of several elements a channel, and the sums of dy and dy h over each of its channels.
template <class T>
void row_of_channels(const RowNormParams& p, const Moments& m, const T* dy, const T* x, const T* w,
                     SumPair* of_channels, T* dx, bool add) {
  const std::int64_t n = p.channels * p.spatial;
  SumPair sums;
  for (std::int64_t c = 0; c < p.channels; ++c) {
    of_channels[c] = gradient_sums(m, p.spatial, n, dy + c * p.spatial, x + c * p.spatial);
    const double weight = affine_at(w, c, 1);
    sums += {weight * of_channels[c].first, weight * of_channels[c].second};
  }
  if (!dx) return;
  const SumPair means = row_means(p, sums);
  // dx_i = rstd (dy_i w_c - mean(g) - h_i mean(g h))
  for (std::int64_t c = 0; c < p.channels; ++c)
    slope_run(m, affine_at(w, c, 1), means, dy + c * p.spatial, x + c * p.spatial, p.spatial, n, dx + c * p.spatial,
              add);
}

template <class T>
void backward_channels(const RowNormParams& p, const T* dy, const T* x, const T* w, Moments* moments,
                       const NormGradients<T>& out) {
  const std::int64_t rows = p.samples * p.groups, n = p.channels * p.spatial, all = p.groups * p.channels;
  auto* const sums = reinterpret_cast<SumPair*>(moments + rows);
  parallel_for(rows, 2 * n * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      row_of_channels(p, moments[row], dy + row * n, x + row * n, w ? w + row % p.groups * p.channels : nullptr,
                      sums + row * p.channels, out.dx ? out.dx + row * n : nullptr, out.add_dx);
  });
  if (!out.dw && !out.db) return;
  // dw_c = sum of dy h, db_c = sum of dy over the samples
  parallel_for(all, p.samples * kNormCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t c = first; c < last; ++c) {
      SumPair total;
      for (std::int64_t sample = 0; sample < p.samples; ++sample) total += sums[sample * all + c];
      if (out.dw) store(out.dw + c, total.second, out.add_dw);
      if (out.db) store(out.db + c, total.first, out.add_db);
    }
  });
}

}  // namespace

std::int64_t row_norm_memory(const RowNormParams& p) {
  const std::int64_t rows = p.samples * p.groups, all = p.groups * p.channels;
  const std::int64_t pairs = p.spatial == 1 ? sample_blocks(p) * all : p.samples * all;
  return rows + ceil_div(pairs, 2);
}

template <class T>
void row_norm(const RowNormParams& p, const T* x, const T* w, const T* b, Moments* moments, T* y) {
  if (p.samples == 0) return;
  const std::int64_t n = p.channels * p.spatial;
  parallel_for(p.samples * p.groups, 2 * n * kNormCost, [=](std::int64_t first, std::int64_t last) {
    const std::int64_t in_turn =
        std::clamp<std::int64_t>(kElementsInTurn / std::max<std::int64_t>(n, 1), 1, kRowsInTurn);
    for (std::int64_t row = first; row < last; ++row) {
      if ((row - first) % in_turn == 0)
        moments_of_rows(p, x + row * n, n, std::min(in_turn, last - row), moments + row);
      const std::int64_t c = row % p.groups * p.channels;
      const T *const weights = w ? w + c : nullptr, *const biases = b ? b + c : nullptr;
      if (p.spatial != 1)
        map_channels(p, moments[row], x + row * n, weights, biases, y + row * n);
      else
        map_elements(moments[row], n, x + row * n, weights, biases, y + row * n);
    }
  });
}

template <class T>
void row_norm_backward(const RowNormParams& p, const T* dy, const T* x, const T* w, Moments* moments,
                       const NormGradients<T>& gradients) {
  if (p.spatial != 1)
    backward_channels(p, dy, x, w, moments, gradients);
  else
    backward_elements(p, dy, x, w, moments, gradients);
}

#define TAPER_INSTANTIATE_ROW_NORM(T)                                                              \
  template void row_norm<T>(const RowNormParams&, const T*, const T*, const T*, Moments*, T*);     \
  template void row_norm_backward<T>(const RowNormParams&, const T*, const T*, const T*, Moments*, \
                                     const NormGradients<T>&)
TAPER_INSTANTIATE_ROW_NORM(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_ROW_NORM(double);
#endif

}  // namespace taper::kernels
