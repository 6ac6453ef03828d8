#include "kernels/softmax.hpp"

#include "kernels/softmax_driver.hpp"

namespace taper::kernels {

namespace {

template <class T>
void softmax_rows(const SoftmaxGroup& g, const T* x, T* y) {
  // The exponentials of short rows stay apart from each other: a part of a pack that is stored holds up the loads from
  // where the rest of it would be.
  alignas(kVectorWidth) T kept[kSoftmaxRows * kShortRow];
  const bool apart = g.n <= kShortRow;
  T top[kSoftmaxRows], scale[kSoftmaxRows];
  row_maxima(g, x, top);
  // y_j = e^(x_j - max), sum = y_0 + y_1 + ...
  for (std::int64_t c = 0; c < g.width; ++c) {
    const T* const from = x + g.begin(c);
    double sum[1];
    if (apart)
      sum[0] = short_exponentials(from, g.n, top[c], kept + c * kShortRow);
    else
      sum_packs<T, 1, 1>(
          g.n, sum, [ =, below = top[c], to = y + g.begin(c) ](auto at, auto& sums) __attribute__((always_inline)) {
            const Vector<T> e = vector_exp(at(from, kNothing<T>) - below);
            at.store(to, e);
            sums[0] += e;
          });
    scale[c] = T(1 / sum[0]);
  }
  // y_j = y_j / sum
  for (std::int64_t c = 0; c < g.width; ++c)
    for_each_pack<T>(
        g.n, [ =, by = scale[c], from = apart ? kept + c * kShortRow : y + g.begin(c), to = y + g.begin(c) ](auto at)
                 __attribute__((always_inline)) { at.store(to, at(from) * by); });
}

template <class T>
void softmax_columns(const SoftmaxGroup& g, const T* x, T* y) {
  T top[kKept];
  double sum[kKept];
  row_maxima(g, x, top);
  // y_j = e^(x_j - max), sum = y_0 + y_1 + ...
  sum_exponentials(
      g, x, top,
      sum, [y](auto at, std::int64_t i, const auto& e) __attribute__((always_inline)) { at.store(y + i, e); });
  // y_j = y_j / sum
  for (std::int64_t c = 0; c < g.columns; ++c) top[c] = T(1 / sum[c]);
  repeat_columns<T>(g, top);
  for_each_element_pack<T>(
      g, [ =, by = &top[0] ](auto at, std::int64_t i)
             __attribute__((always_inline)) { at.store(y + i, at(y + i) * at(by)); });
}

template <class T>
void softmax_turned(const SoftmaxGroup& g, const T* x, T* y) {
  T turned[kShortRow * kSoftmaxRows];
  softmax_columns(turn(g, x, turned), turned, turned);
  pack_transposed(turned, kSoftmaxRows, g.n, g.width, y + g.first, g.n);
}

template <class T>
void softmax_group(const SoftmaxGroup& g, const T* x, T* y) {
  if constexpr (sizeof(T) == sizeof(float))
    if (g.turns) return softmax_turned(g, x, y);
  g.contiguous() ? softmax_rows(g, x, y) : softmax_columns(g, x, y);
}

template <class T>
void softmax_grad_rows(const SoftmaxGroup& g, const T* dy, const T* y, T* dx, bool add) {
  T dot[kSoftmaxRows];
  // dot = sum dy_j y_j
  for (std::int64_t c = 0; c < g.width; ++c) {
    double sum[1];
    sum_packs<T, 1, 4>(
        g.n, sum, [ =, a = dy + g.begin(c), b = y + g.begin(c) ](auto at, auto& sums) __attribute__((always_inline)) {
          sums[0] += at(a) * at(b);
        });
    dot[c] = T(sum[0]);
  }
  // dx_j = y_j (dy_j - dot)
  for (std::int64_t c = 0; c < g.width; ++c)
    store_packs(
        dx + g.begin(c), g.n, add,
        [ =, less = dot[c], a = dy + g.begin(c), b = y + g.begin(c) ](auto at)
            __attribute__((always_inline)) { return at(b) * (at(a) - less); });
}

template <class T>
void softmax_grad_columns(const SoftmaxGroup& g, const T* dy, const T* y, T* dx, bool add) {
  using Long = LongPack<T>;
  double dots[kKept];
  clear(dots, g.width + kLanes<T>);
  // dot = sum dy_j y_j
  for_each_column_pack<T>(
      g, [ =, to = &dots[0] ](auto at, std::int64_t i, std::int64_t rows) __attribute__((always_inline)) {
        Long dot(to + at.i);
        for (; rows > 0; --rows, i += g.step) dot += Long(at(dy + i)) *= Long(at(y + i));
        dot.store(to + at.i);
      });
  add_up_columns<T>(g, dots);
  repeat_columns<T>(g, dots);
  // dx_j = y_j (dy_j - dot)
  for_each_element_pack<T>(
      g, [ =, from = &dots[0] ](auto at, std::int64_t i) __attribute__((always_inline)) {
        Long d(at(dy + i));
        d -= Long(from + at.i);
        d *= Long(at(y + i));
        at.store(dx + i, add ? at(dx + i) + d.rounded() : d.rounded());
      });
}

template <class T>
void log_softmax_group(const SoftmaxGroup& g, const T* x, T* y) {
  T top[kKept];
  double log_sum[kKept];
  log_sums(g, x, top, log_sum);
  // y_j = (x_j - max) - log(sum e^(x_j - max))
  if (g.contiguous()) {
    for (std::int64_t c = 0; c < g.width; ++c)
      map_packs<T>(
          g.n, [ =, above = top[c], log = T(log_sum[c]), from = x + g.begin(c), to = y + g.begin(c) ](auto at)
                   __attribute__((always_inline)) { at.store(to, (at(from) - above) - log); });
    return;
  }
  using Long = LongPack<T>;
  double above[kKept];
  std::copy_n(top, g.width, above);
  repeat_columns<T>(g, log_sum);
  for_each_element_pack<T>(
      g, [ =, most = &above[0], logs = &log_sum[0] ](auto at, std::int64_t i) __attribute__((always_inline)) {
        at.store(y + i, ((Long(at(x + i)) -= Long(most + at.i)) -= Long(logs + at.i)).rounded());
      });
}

template <class T>
void log_softmax_grad_rows(const SoftmaxGroup& g, const T* dy, const T* y, T* dx, bool add) {
  T total[kSoftmaxRows];
  // sum = dy_0 + dy_1 + ...
  for (std::int64_t c = 0; c < g.width; ++c) {
    double sum[1];
    sum_packs<T, 1, 4>(
        g.n, sum,
        [ =, from = dy + g.begin(c) ](auto at, auto& sums) __attribute__((always_inline)) { sums[0] += at(from); });
    total[c] = T(sum[0]);
  }
  // dx_j = dy_j - e^(y_j) sum
  for (std::int64_t c = 0; c < g.width; ++c)
    store_packs(
        dx + g.begin(c), g.n, add,
        [ =, sum = total[c], a = dy + g.begin(c), b = y + g.begin(c) ](auto at)
            __attribute__((always_inline)) { return at(a) - vector_exp(at(b)) * sum; });
}

template <class T>
void log_softmax_grad_columns(const SoftmaxGroup& g, const T* dy, const T* y, T* dx, bool add) {
  using Long = LongPack<T>;
  double sums[kKept];
  clear(sums, g.width + kLanes<T>);
  // sum = dy_0 + dy_1 + ...
  for_each_column_pack<T>(
      g, [ =, to = &sums[0] ](auto at, std::int64_t i, std::int64_t rows) __attribute__((always_inline)) {
        Long sum(to + at.i);
        for (; rows > 0; --rows, i += g.step) sum += Long(at(dy + i));
        sum.store(to + at.i);
      });
  add_up_columns<T>(g, sums);
  repeat_columns<T>(g, sums);
  // dx_j = dy_j - e^(y_j) sum
  for_each_element_pack<T>(
      g, [ =, from = &sums[0] ](auto at, std::int64_t i) __attribute__((always_inline)) {
        Long d(at(dy + i));
        d -= Long(vector_exp(at(y + i))) *= Long(from + at.i);
        at.store(dx + i, add ? at(dx + i) + d.rounded() : d.rounded());
      });
}

/// How many elements of each of `columns` rows [n, columns] are taken together, which fill vectors, if that pays; or 1.
std::int64_t sides_of(std::int64_t n, std::int64_t columns) {
  // Vectors of 64 bytes load parts as fast as whole ones: a few elements do not pay.
  if (columns <= 1 || (kVectorWidth == 64 && n < 8)) return 1;
  const std::int64_t sides = std::min(n, kLanes<float> / (columns & -columns));
  return sides * columns <= std::min(kSideBySide, n * 16) ? sides : 1;
}

/// How many rows of n elements that lie side by side in far memory are taken together, as short parts of it take
/// longer: as many as a core's second cache holds, or all there is room for if that would hold less than the usual,
/// which takes one thread less than two take for half as many each.
std::int64_t far_rows(std::int64_t n) {
  constexpr std::int64_t kNear = std::int64_t{1} << 16;
  return n > 2 * kNear / kSoftmaxRows ? kSideBySide : std::clamp(kNear / n / 16 * 16, kSoftmaxRows, kSideBySide);
}

}  // namespace

SoftmaxGroup side_by_side(const SoftmaxGroup& g) {
  const std::int64_t sides = g.width != g.step ? 1 : sides_of(g.n, g.width);
  if (sides <= 1) return g;
  SoftmaxGroup all = g;
  all.width = all.step = sides * g.columns;
  all.n = g.n / sides;
  all.rest = g.n % sides * g.columns;
  return all;
}

void visit_softmax_groups(std::int64_t outer, std::int64_t n, std::int64_t inner, bool beside,
                          void (*visit)(const void* body, const SoftmaxGroup&), const void* body) {
  constexpr std::int64_t kCost = 16, kElements = 2048, kMany = 8;
  if (inner == 0) return;
  const bool contiguous = inner == 1, turns = contiguous && n <= kShortRow && outer >= kShortRow;
  const std::int64_t length = std::max<std::int64_t>(n, 1);
  // Rows that are to be side by side are taken together, if there are enough units.
  const bool fills = beside && sides_of(n, inner) > 1, all = fills && outer >= kMany;
  const bool far = beside && is_far(double(outer) * double(n) * double(inner) * sizeof(float));
  const std::int64_t most = all ? inner : far ? far_rows(n) : kSoftmaxRows;
  const std::int64_t groups = ceil_div(inner, most);
  const std::int64_t step = contiguous ? std::clamp<std::int64_t>(kElements / length, 1, kSoftmaxRows) : 1;
  parallel_for(outer * groups, length * std::min(inner, most) * kCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; unit += step) {
      const std::int64_t o = groups == 1 ? unit : unit / groups, column = (unit - o * groups) * most;
      const std::int64_t width = contiguous ? last - unit : inner - column;
      SoftmaxGroup g{.first = o * n * inner + column,
                     .width = std::min(width, contiguous ? step : most),
                     .row = o * inner + column,
                     .n = n,
                     .step = inner,
                     .pitch = contiguous ? n : 1,
                     .turns = turns};
      if (fills) g = side_by_side(g);
      visit(body, g);
    }
  });
}

template <class T>
void softmax(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  for_each_softmax_group(
      outer, n, inner, [=](const SoftmaxGroup& g) { softmax_group(g, x, y); }, kWidens<T>);
}

template <class T>
void softmax_grad(const T* dy, const T* y, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner, bool add) {
  for_each_softmax_group(
      outer, n, inner,
      [=](const SoftmaxGroup& g) {
        g.contiguous() ? softmax_grad_rows(g, dy, y, dx, add) : softmax_grad_columns(g, dy, y, dx, add);
      },
      kWidens<T>);
}

template <class T>
void masked_softmax(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  for_each_softmax_group(rows, n, 1, [=](const SoftmaxGroup& g) {
    std::int64_t masked[kSoftmaxRows], count = 0;
    for (std::int64_t c = 0; c < g.width; ++c) {
      const T* const row = x + g.begin(c);
      if (std::all_of(row, row + n, [](T v) { return v == kNothing<T>; })) masked[count++] = g.begin(c);
    }
    softmax_group(g, x, y);
    // y_j = 0 where x_0 = x_1 = .. = -inf
    for (std::int64_t k = 0; k < count; ++k) std::fill_n(y + masked[k], n, T(0));
  });
}

template <class T>
void log_softmax(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  for_each_softmax_group(
      outer, n, inner, [=](const SoftmaxGroup& g) { log_softmax_group(g, x, y); }, kWidens<T>);
}

template <class T>
void log_softmax_grad(const T* dy, const T* y, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner,
                      bool add) {
  for_each_softmax_group(
      outer, n, inner,
      [=](const SoftmaxGroup& g) {
        g.contiguous() ? log_softmax_grad_rows(g, dy, y, dx, add) : log_softmax_grad_columns(g, dy, y, dx, add);
      },
      kWidens<T>);
}

#define TAPER_INSTANTIATE_SOFTMAX(T)                                                                     \
  template void softmax<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t);                      \
  template void softmax_grad<T>(const T*, const T*, T*, std::int64_t, std::int64_t, std::int64_t, bool); \
  template void masked_softmax<T>(const T*, T*, std::int64_t, std::int64_t);                             \
  template void log_softmax<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t);                  \
  template void log_softmax_grad<T>(const T*, const T*, T*, std::int64_t, std::int64_t, std::int64_t, bool)
TAPER_INSTANTIATE_SOFTMAX(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_SOFTMAX(double);
#endif

}  // namespace taper::kernels
