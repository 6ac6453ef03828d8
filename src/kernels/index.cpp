#include "kernels/index.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/ceil_div.hpp"
#include "kernels/copy.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sort_places.hpp"
#include "kernels/word.hpp"
#include "taper/shape.hpp"

namespace taper::kernels {

namespace {

/// Columns that one unit of a scatter works on: a cache line of doubles or two.
constexpr std::int64_t kScatterColumns = 16;

/// Whether what takes less time than plain loops is worth its room: the library is kept small.
template <class T>
constexpr bool kIsFast = kVectorWidth > 16 && sizeof(T) == sizeof(float);

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
    if (last_ > 0) pitch = step_[last_ - 1];
    width = extent_[last_];
  }

  /// Goes to the row of an element.
  TAPER_FOR_SIZE Gathered at(std::int64_t element) const {
    Gathered there(*this);
    std::int64_t row = element / width;
    for (int d = last_ - 1; d >= 0; --d) {
      there.at_[d] = row % extent_[d];
      there.from += there.at_[d] * step_[d];
      row /= extent_[d];
    }
    return there;
  }
  /// Goes to the last of the rows that follow at `pitch`; how many they are with this one.
  [[gnu::noinline]] std::int64_t end_of_rows() {
    if (last_ == 0) return 1;
    const std::int64_t some = extent_[last_ - 1] - at_[last_ - 1];
    from += (some - 1) * pitch;
    at_[last_ - 1] += some - 1;
    return some;
  }
  [[gnu::noinline]] void next() {
    for (int d = last_ - 1; d >= 0; --d) {
      from += step_[d];
      if (++at_[d] < extent_[d]) return;
      from -= extent_[d] * step_[d];
      at_[d] = 0;
    }
  }

  std::int64_t from = 0, stride = 1, step = 0, pitch = 0, width = 1, rows = 1, size = 1;

 private:
  int last_;
  std::int64_t extent_[Shape::kMaxRank], step_[Shape::kMaxRank], at_[Shape::kMaxRank];
};

/// Rows of a gradient that are added up in turns: an addition to an element then does not wait for the one before to be
/// stored, which is elsewhere. The elements of row k are dx[from[k] + index[k * width + j] * stride + j * step].
struct Turns {
  static constexpr std::int64_t kRows = 4;
  std::int64_t from[kRows], width, stride, step;

  template <class T>
  [[gnu::noinline]] void add(std::int64_t rows, const T* dy, const std::int64_t* index, T* dx) const {
    const auto add_to = [=, this](std::int64_t k, std::int64_t j) {
      dx[from[k] + index[k * width + j] * stride + j * step] += dy[k * width + j];
    };
    if constexpr (kIsFast<T>)
      if (rows == kRows) {
        for (std::int64_t j = 0; j < width; ++j) {
          add_to(0, j);
          add_to(1, j);
          add_to(2, j);
          add_to(3, j);
        }
        return;
      }
    for (std::int64_t k = 0; k < rows; ++k)
      for (std::int64_t j = 0; j < width; ++j) add_to(k, j);
  }
};

/// The places at which an index names each of some numbers, in order. Where many rows share an index, what they add to
/// an element is so found at once: in the order of the index some processors take every addition for one to the
/// element before, and wait until that is stored.
class Places {
 public:
  static constexpr std::int64_t kMost = 1024, kRows = 4;

  Places(const std::int64_t* index, std::int64_t count, std::int64_t n) { sort_places(index, count, n, place_, end_); }

  /// dx_ri += the sum of dy_rj for all places j of i, for rows r of `n` and `row` elements, kRows at a time.
  template <class T>
  [[gnu::noinline]] void add(std::int64_t rows, const T* dy, std::int64_t row, T* dx, std::int64_t n) const {
    for (; rows >= kRows; rows -= kRows, dy += kRows * row, dx += 3 * n)
      for (std::int64_t i = 0, k = 0; i < n; ++i, ++dx) {
        T a = dx[0], b = dx[n], c = dx[2 * n], d = dx[3 * n];
        for (; k < end_[i]; ++k) {
          const T* const from = dy + place_[k];
          a += from[0];
          b += from[row];
          c += from[2 * row];
          d += from[3 * row];
        }
        dx[0] = a;
        dx[n] = b;
        dx[2 * n] = c;
        dx[3 * n] = d;
      }
  }

 private:
  std::uint16_t place_[kMost], end_[kMost + 1];
};

/// dx_o,index(j) += dy_oj for j in order, of slices of single elements.
template <class T>
TAPER_FOR_SIZE void select_columns_grad(const T* dy, const std::int64_t* index, T* dx, std::int64_t outer,
                                        std::int64_t n, std::int64_t count, bool add) {
  if (!add) clear(dx, outer * n);
  std::int64_t done = 0;
  if (n <= Places::kMost && n <= 2 * count && outer >= Places::kRows) {
    done = outer - outer % Places::kRows;
    for (std::int64_t j = 0; j < count; j += Places::kMost)
      Places(index + j, std::min(count - j, Places::kMost), n).add(done, dy + j, count, dx, n);
  }
  for (; done < outer; ++done)
    for (std::int64_t j = 0; j < count; ++j) dx[done * n + index[j]] += dy[done * count + j];
}

/// Rows of kPart to 2 kPart elements that are copied by their ends: calls for a few elements take longer.
template <int kPart, class T>
[[gnu::always_inline]] inline void copy_short_rows(const T* x, const std::int64_t* index, std::int64_t count, T* y,
                                                   std::int64_t n) {
  for (std::int64_t j = 0; j < count; ++j, y += n) {
    const T *const from = x + index[j] * n, *const back = from + n - kPart;
    std::memcpy(y, from, kPart * sizeof(T));
    std::memcpy(y + n - kPart, back, kPart * sizeof(T));
  }
}

template <class T>
[[gnu::noinline]] void select_words(const T* x, const std::int64_t* index, T* y, std::int64_t outer, std::int64_t n,
                                    std::int64_t inner, std::int64_t count) {
  // y_oj = x_o,index(j)
  parallel_for(outer * count, std::max<std::int64_t>(inner, 1), [=](std::int64_t first, std::int64_t last) {
    const T* slice = x + first / count * n * inner;
    const std::int64_t* from = index + first % count;
    for (; first < last; slice += n * inner, from = index) {
      const std::int64_t some = std::min(last - first, index + count - from);
      T* const to = y + first * inner;
      first += some;
      if (inner == 1)
#pragma GCC unroll 2
        for (std::int64_t j = 0; j < some; ++j) to[j] = slice[from[j]];
      else if (inner > 8)
        for (std::int64_t j = 0; j < some; ++j) copy_elements(slice + from[j] * inner, inner, to + j * inner);
      else if (inner > 4)
        copy_short_rows<4>(slice, from, some, to, inner);
      else if (inner > 1)
        copy_short_rows<2>(slice, from, some, to, inner);
    }
  });
}

/// y_rj = x_r,index(rj) for `rows` rows of n elements.
template <class T>
[[gnu::noinline]] void gather_along(std::int64_t rows, std::int64_t n, const T* x, std::int64_t pitch,
                                    const std::int64_t* index, T* y) {
  for (; rows > 0; --rows, x += pitch) {
    std::int64_t left = n;
    for (; left >= 4; left -= 4, index += 4, y += 4) {
      // read before any is written, of which the processor does not know that it is elsewhere
      const T a = x[index[0]], b = x[index[1]], c = x[index[2]], d = x[index[3]];
      y[0] = a;
      y[1] = b;
      y[2] = c;
      y[3] = d;
    }
    if (left >= 2) {
      const T a = x[index[0]], b = x[index[1]];
      y[0] = a;
      y[1] = b;
      left -= 2, index += 2, y += 2;
    }
    if (left > 0) *y++ = x[*index++];
  }
}

/// y_rj = x[r pitch + index(rj) stride + j step]
template <class T>
[[gnu::noinline]] void gather_across(std::int64_t rows, std::int64_t n, const T* x, std::int64_t pitch,
                                     const std::int64_t* index, std::int64_t stride, std::int64_t step, T* y) {
  for (; rows > 0; --rows, x += pitch) {
    const T* from = x;
    std::int64_t left = n;
    for (; kIsFast<T> && left >= 4; left -= 4, index += 4, y += 4, from += 4 * step) {
      const T a = from[index[0] * stride], b = from[index[1] * stride + step], c = from[index[2] * stride + 2 * step],
              d = from[index[3] * stride + 3 * step];
      y[0] = a;
      y[1] = b;
      y[2] = c;
      y[3] = d;
    }
    for (; left > 0; --left, from += step) *y++ = from[*index++ * stride];
  }
}

template <class T>
[[gnu::noinline]] void gather_words(const GatherShape& s, const T* x, const std::int64_t* index, T* y) {
  const Gathered rows(s);
  // y_i = x_from(i)
  parallel_for(rows.rows * rows.width, 4, [=, &rows](std::int64_t first, std::int64_t last) {
    Gathered row = rows.at(first);
    const std::int64_t stride = row.stride, step = row.step, width = row.width, pitch = row.pitch;
    const bool along = kIsFast<T> && stride == 1 && step == 0;
    for (std::int64_t at = first % width; first < last; row.next()) {
      const T* from = x + row.from + at * step;
      for (std::int64_t some = row.end_of_rows(), n, count; some > 0 && first < last;) {
        // whole rows, or a part of one
        count = at > 0 ? 0 : std::min(some, (last - first) / width);
        n = count > 0 ? width : std::min(width - at, last - first);
        count = std::max<std::int64_t>(count, 1);
        if (along)
          gather_along(count, n, from, pitch, index + first, y + first);
        else
          gather_across(count, n, from, pitch, index + first, stride, step, y + first);
        first += count * n;
        some -= count;
        from += count * pitch - at * step;
        at = 0;
      }
    }
  });
}

}  // namespace

std::int64_t find_bad_index(const std::int64_t* index, std::int64_t count, std::int64_t n) {
  // The sign of i or n - 1 - i is set where i is out of range.
  std::uint64_t signs = 0;
#pragma GCC unroll 2
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(index[i]);
    signs |= at | (static_cast<std::uint64_t>(n) - 1 - at);
  }
  for (std::int64_t i = 0; static_cast<std::int64_t>(signs) < 0 && i < count; ++i)
    if (static_cast<std::uint64_t>(index[i]) >= static_cast<std::uint64_t>(n)) return i;
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
          if (kIsFast<T> && inner == 1)
            return select_columns_grad(dy + unit * count, index, dx + unit * n, end - unit, n, count, add);
          // All columns of a slice that are at hand.
          const std::int64_t o = unit / blocks, block = unit % blocks, some = std::min(end - unit, blocks - block),
                             first = block * kScatterColumns, width = std::min(inner - first, some * kScatterColumns);
          unit += some;
          T* const slice = dx + o * n * inner + first;
          const T* const from = dy + o * count * inner + first;
          if (!add) {
            if (width == inner)
              clear(slice, n * inner);
            else
              for (std::int64_t r = 0; r < n; ++r) clear(slice + r * inner, width);
          }
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
  if (!add) clear(dx, rows.size);
  if (rows.rows * rows.width == 0) return;
  // Slices along the first dimension share no element of dx, unless that is the dimension indexed.
  const std::int64_t slices = s.dim == 0 ? 1 : s.index_shape[0], each = rows.rows * rows.width / slices;
  // dx_from(i) += dy_i for i in order: rows that share an element of dx have it in one column
  parallel_for(slices, 4 * each, [=, &rows](std::int64_t first, std::int64_t last) {
    std::int64_t at = first * each, some;
    Gathered row = rows.at(at);
    const std::int64_t end = last * each, width = std::min(row.width, end - at), skipped = at % row.width * row.step;
    Turns turns{.from = {}, .width = width, .stride = row.stride, .step = row.step};
    for (; at < end; at += some * width) {
      const std::int64_t left = (end - at) / width;
      for (some = 0; some < std::min(Turns::kRows, left); ++some, row.next()) turns.from[some] = row.from + skipped;
      turns.add(some, dy + at, index + at, dx);
    }
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
