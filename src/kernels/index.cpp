#include "kernels/index.hpp"

#include <algorithm>

#include "kernels/ceil_div.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Columns that one unit of a scatter works on: a cache line of doubles or two.
constexpr std::int64_t kScatterColumns = 16;

std::int64_t elements_of(std::span<const std::int64_t> extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  return n;
}

/// Calls `body(at, from)` for the elements [first, last) of the index, `at` being the element and `from` the one of x
/// that it names.
template <class Body>
void for_each_gathered(const GatherShape& s, const std::int64_t* index, std::int64_t first, std::int64_t last,
                       const Body& body) {
  const std::size_t dim = static_cast<std::size_t>(s.dim);
  for (std::int64_t at = first; at < last; ++at) {
    std::int64_t rest = at, from = 0, stride = 1;
    for (std::size_t d = s.x_shape.size(); d-- > 0;) {
      from += (d == dim ? index[at] : rest % s.index_shape[d]) * stride;
      rest /= s.index_shape[d];
      stride *= s.x_shape[d];
    }
    body(at, from);
  }
}

}  // namespace

std::int64_t find_bad_index(const std::int64_t* index, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i)
    if (index[i] < 0 || index[i] >= n) return i;
  return -1;
}

template <class T>
void index_select(const T* x, const std::int64_t* index, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner,
                  std::int64_t count) {
  // y_oj = x_o,index(j)
  parallel_for(outer * count, std::max<std::int64_t>(inner, 1), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit)
      std::copy_n(x + (unit / count * n + index[unit % count]) * inner, inner, y + unit * inner);
  });
}

template <class T>
void index_select_grad(const T* dy, const std::int64_t* index, T* dx, std::int64_t outer, std::int64_t n,
                       std::int64_t inner, std::int64_t count, bool add) {
  if (inner == 0) return;
  const std::int64_t blocks = ceil_div(inner, kScatterColumns);
  // dx_o,index(j) += dy_oj for j in order, a unit owning its columns of dx
  parallel_for(outer * blocks, (n + count) * std::min(inner, kScatterColumns),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t unit = begin; unit < end; ++unit) {
                   const std::int64_t o = unit / blocks, first = unit % blocks * kScatterColumns,
                                      last = std::min(inner, first + kScatterColumns);
                   T* const slice = dx + o * n * inner;
                   if (!add)
                     for (std::int64_t r = 0; r < n; ++r)
                       std::fill(slice + r * inner + first, slice + r * inner + last, T(0));
                   for (std::int64_t j = 0; j < count; ++j)
                     for (std::int64_t i = first; i < last; ++i)
                       slice[index[j] * inner + i] += dy[(o * count + j) * inner + i];
                 }
               });
}

template <class T>
void gather(const GatherShape& s, const T* x, const std::int64_t* index, T* y) {
  // y_i = x_from(i)
  parallel_for(elements_of(s.index_shape), 16, [&](std::int64_t first, std::int64_t last) {
    for_each_gathered(s, index, first, last, [=](std::int64_t at, std::int64_t from) { y[at] = x[from]; });
  });
}

template <class T>
void gather_grad(const GatherShape& s, const T* dy, const std::int64_t* index, T* dx, bool add) {
  if (!add) std::fill_n(dx, elements_of(s.x_shape), T(0));
  const std::int64_t count = elements_of(s.index_shape);
  if (count == 0) return;
  // Slices along the first dimension share no element of dx, unless that is the dimension indexed.
  const std::int64_t slices = s.dim == 0 ? 1 : s.index_shape[0], each = count / slices;
  // dx_from(i) += dy_i for i in order
  parallel_for(slices, 16 * each, [&](std::int64_t first, std::int64_t last) {
    for_each_gathered(s, index, first * each, last * each,
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
