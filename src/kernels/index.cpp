#include "kernels/index.hpp"

#include <algorithm>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/word.hpp"
#include "taper/shape.hpp"

namespace taper::kernels {

namespace {

/// Columns that one unit of a scatter works on: a cache line of doubles or two.
constexpr std::int64_t kScatterColumns = 16;

/// The element of x that each element of some rows of an index names: `at` of the whole index names
/// x[from + index[at] * stride + j * step], where j counts along the row. Rows are along the last dimension in which
/// the index has more than one element.
class Gathered {
 public:
  TAPER_FOR_SIZE explicit Gathered(const GatherShape& s) : last_(static_cast<int>(s.x_shape.size()) - 1) {
    const int back = last_;
    while (last_ > 0 && s.index_shape[static_cast<std::size_t>(last_)] == 1) --last_;
    for (int d = back; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      extent_[d] = s.index_shape[at];
      step_[d] = d == s.dim ? 0 : size;
      if (d == s.dim) stride = size;
      size *= s.x_shape[at];
      if (d < last_) rows *= extent_[d];
    }
    step = step_[last_];
    width = extent_[last_];
  }

  /// Goes to a row.
  TAPER_FOR_SIZE void show(std::int64_t row) {
    from = 0;
    for (int d = last_ - 1; d >= 0; --d) {
      at_[d] = row % extent_[d];
      from += at_[d] * step_[d];
      row /= extent_[d];
    }
  }
  [[gnu::noinline]] void next() {
    for (int d = last_ - 1; d >= 0; --d) {
      from += step_[d];
      if (++at_[d] < extent_[d]) return;
      from -= extent_[d] * step_[d];
      at_[d] = 0;
    }
  }

  std::int64_t from = 0, stride = 1, step = 0, width = 1, rows = 1, size = 1;

 private:
  int last_;
  std::int64_t extent_[Shape::kMaxRank], step_[Shape::kMaxRank], at_[Shape::kMaxRank];
};

/// Calls `body(at, from)` for the elements [first, last) of the index, `at` being the element and `from` the one of x
/// that it names.
template <class Body>
[[gnu::always_inline]] inline void for_each_gathered(Gathered row, const std::int64_t* index, std::int64_t first,
                                                     std::int64_t last, const Body& body) {
  row.show(first / row.width);
  const std::int64_t stride = row.stride, step = row.step;
  std::int64_t from = row.from + first % row.width * step, end = first - first % row.width;
  for (;;) {
    end += row.width;  // of the row
    const std::int64_t until = std::min(end, last);
#pragma GCC unroll 2
    for (; first < until; ++first, from += step) body(first, from + index[first] * stride);
    if (first == last) return;
    row.next();
    from = row.from;
  }
}

template <class T>
[[gnu::noinline]] void select_words(const T* x, const std::int64_t* index, T* y, std::int64_t outer, std::int64_t n,
                                    std::int64_t inner, std::int64_t count) {
  // y_oj = x_o,index(j)
  parallel_for(outer * count, std::max<std::int64_t>(inner, 1), [=](std::int64_t first, std::int64_t last) {
    while (first < last) {
      const T* const slice = x + first / count * n * inner;
      const std::int64_t* from = index + first % count;
      const std::int64_t end = std::min(last, first + count - first % count);
      if (inner == 1)
#pragma GCC unroll 2
        for (; first < end; ++first) y[first] = slice[*from++];
      else if (inner <= 8) {
        // Columns of short rows: calls for a few elements take longer.
        for (std::int64_t i = 0; i < inner; ++i)
#pragma GCC unroll 2
          for (std::int64_t j = 0; j < end - first; ++j) y[(first + j) * inner + i] = slice[from[j] * inner + i];
        first = end;
      }
      for (; first < end; ++first) std::copy_n(slice + *from++ * inner, inner, y + first * inner);
    }
  });
}

template <class T>
[[gnu::noinline]] void gather_words(const GatherShape& s, const T* x, const std::int64_t* index, T* y) {
  const Gathered rows(s);
  // y_i = x_from(i)
  parallel_for(rows.rows * rows.width, 4, [=, &rows](std::int64_t first, std::int64_t last) {
    for_each_gathered(rows, index, first, last, [=](std::int64_t at, std::int64_t from) { y[at] = x[from]; });
  });
}

}  // namespace

std::int64_t find_bad_index(const std::int64_t* index, std::int64_t count, std::int64_t n) {
  // The sign of i or n - 1 - i is set where i is out of range.
  std::uint64_t signs = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(index[i]);
    signs |= at | (static_cast<std::uint64_t>(n) - 1 - at);
  }
  for (std::int64_t i = 0; static_cast<std::int64_t>(signs) < 0 && i < count; ++i)
    if (index[i] < 0 || index[i] >= n) return i;
  return -1;
}

template <class T>
void index_select(const T* x, const std::int64_t* index, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner,
                  std::int64_t count) {
  select_words(reinterpret_cast<const Word<T>*>(x), index, reinterpret_cast<Word<T>*>(y), outer, n, inner, count);
}

template <class T>
void index_select_grad(const T* dy, const std::int64_t* index, T* dx, std::int64_t outer, std::int64_t n,
                       std::int64_t inner, std::int64_t count, bool add) {
  if (inner == 0) return;
  const std::int64_t blocks = ceil_div(inner, kScatterColumns);
  // dx_o,index(j) += dy_oj for j in order, a unit owning its columns of dx
  parallel_for(
      outer * blocks, (n + count) * std::min(inner, kScatterColumns), [=](std::int64_t unit, std::int64_t end) {
        while (unit < end) {
          // All columns of a slice that are at hand.
          const std::int64_t o = unit / blocks, block = unit % blocks, some = std::min(end - unit, blocks - block),
                             first = block * kScatterColumns, width = std::min(inner - first, some * kScatterColumns);
          unit += some;
          T* const slice = dx + o * n * inner + first;
          const T* const from = dy + o * count * inner + first;
          if (!add) {
            if (width == inner)
              std::fill_n(slice, n * inner, T(0));
            else
              for (std::int64_t r = 0; r < n; ++r) std::fill_n(slice + r * inner, width, T(0));
          }
          if (inner == 1)
            for (std::int64_t j = 0; j < count; ++j) slice[index[j]] += from[j];
          else
            for (std::int64_t j = 0; j < count; ++j) {
              T* const to = slice + index[j] * inner;
              TAPER_INDEPENDENT_TURNS
              for (std::int64_t i = 0; i < width; ++i) to[i] += from[j * inner + i];
            }
        }
      });
}

template <class T>
void gather(const GatherShape& s, const T* x, const std::int64_t* index, T* y) {
  gather_words(s, reinterpret_cast<const Word<T>*>(x), index, reinterpret_cast<Word<T>*>(y));
}

template <class T>
void gather_grad(const GatherShape& s, const T* dy, const std::int64_t* index, T* dx, bool add) {
  const Gathered rows(s);
  if (!add) std::fill_n(dx, rows.size, T(0));
  if (rows.rows * rows.width == 0) return;
  // Slices along the first dimension share no element of dx, unless that is the dimension indexed.
  const std::int64_t slices = s.dim == 0 ? 1 : s.index_shape[0], each = rows.rows * rows.width / slices;
  // dx_from(i) += dy_i for i in order
  parallel_for(slices, 4 * each, [=, &rows](std::int64_t first, std::int64_t last) {
    for_each_gathered(rows, index, first * each, last * each,
                      [=](std::int64_t at, std::int64_t from) { dx[from] += dy[at]; });
  });
}

#define TAPER_INSTANTIATE_INDEX(T)                                                                           \
  template void index_select<T>(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t, std::int64_t, \
                                std::int64_t);                                                               \
  template void gather<T>(const GatherShape&, const T*, const std::int64_t*, T*)
#define TAPER_INSTANTIATE_INDEX_FLOATING(T)                                                                       \
  template void index_select_grad<T>(const T*, const std::int64_t*, T*, std::int64_t, std::int64_t, std::int64_t, \
                                     std::int64_t, bool);                                                         \
  template void gather_grad<T>(const GatherShape&, const T*, const std::int64_t*, T*, bool)
TAPER_INSTANTIATE_INDEX(float);
TAPER_INSTANTIATE_INDEX_FLOATING(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_INDEX(double);
TAPER_INSTANTIATE_INDEX(std::int64_t);
TAPER_INSTANTIATE_INDEX_FLOATING(double);
#endif

}  // namespace taper::kernels
