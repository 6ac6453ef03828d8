#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/max_pool_plan.hpp"
#include "kernels/max_pool_rows.hpp"

// The largest elements of windows in one row each: a vector holds one element of each of some neighbouring windows.

namespace taper::kernels {

#if defined(__AVX2__) && !defined(__AVX512F__)

/// Whether windows are in one row each and have a loop for that, for places as well if these are asked for.
template <class T>
TAPER_FOR_SIZE bool goes_by_lines(const MaxPool& p, bool places) {
  constexpr std::int64_t kMost = 4096;
  const Window1d& w = p.w.window;
  const std::int64_t longest = w.stride <= 2 ? 16 : kMost;
  const bool has_loop = !places || (std::is_same_v<T, float> && p.has_narrow_places());
  return has_loop && p.is_one_row() && !p.w.is_adaptive && p.d.out == p.d.in && p.h.out == p.h.in &&
         w.kernel <= (p.w.out < 8 ? 8 : longest) && w.stride <= kMost && w.dilation <= kMost;
}

/// What all rows have in common.
struct Lines {
  /// Rows of `in` elements and `out` windows: window o takes `taps` elements, each `step` behind the one before, from
  /// `start + o * stride` on, of which the last is `reach` further.
  std::int64_t in, out, stride, step, taps, start;
  std::uintptr_t ahead;  ///< how far ahead memory is asked for; 0: not at all
  std::int64_t reach = (taps - 1) * step;
  /// No border cuts off the windows [begin, inside), if there are any.
  std::int64_t begin = std::min(out, (stride - 1 - start) / stride);
  std::int64_t inside = start + reach < in ? std::min(out, (in - 1 - reach - start) / stride + 1) : 0;
};

/// A row at place `place` of its plane, and the ends of all that may be read and written.
template <class T>
struct Line {
  const T *x, *x_end;
  T *y, *y_end;
  std::int64_t* index;
  std::int64_t place;
};

/// Places of float32, as many as fill a vector.
using LinePlaces = Vector<std::int32_t>;

/// The largest element of each lane's window so far, and its place if that is asked for.
template <bool kPlaces, class T>
struct LineMaxima {
  Vector<T> best;
  LinePlaces where;

  [[gnu::always_inline]] void take(const Vector<T>& v, [[maybe_unused]] const LinePlaces& at) {
    if constexpr (kPlaces) {
      take_larger(v, at, best, where);
    } else {
      const Vector<T> number = larger(v, best);  // `best` where one of them is NaN
      best = v == v ? number : v;
    }
  }
};

/// The windows that no border cuts off, a vector at a time: the last windows of the last vector may be cut off, or be
/// the first of the next row, and are written again. Returns the first window that is still to do.
/// `read` gives the elements of a vector's windows from that of the first on, `order` brings the windows in order.
template <bool kPlaces, class T, class Read, class Order>
[[gnu::always_inline]] inline std::int64_t pool_inside(const Lines& lines, const Line<T>& line, const Read& read,
                                                       const Order& order) {
  constexpr int N = kLanes<T>;
  const std::int64_t s = lines.stride, most = (N - 1) * s + lines.reach + (s == 2 ? 1 : 0);
  LinePlaces lanes{};
  if constexpr (kPlaces)
    for (int l = 0; l < N; ++l) lanes[l] = static_cast<std::int32_t>(l * s);
  const std::int64_t end = std::min(lines.inside, line.y_end - line.y - N + 1);
  std::int64_t o = lines.begin;
  const T* next = line.x + lines.start + o * s;
  for (std::int64_t room = line.x_end - next; o < end && room > most; o += N, room -= N * s) {
    const T* from = std::exchange(next, next + N * s);
    if (lines.ahead > 0) fetch_run(from, N * s, lines.ahead);
    LinePlaces at = lanes + static_cast<std::int32_t>(line.place + lines.start + o * s);
    LineMaxima<kPlaces, T> all{read(from), at};
    for (std::int64_t t = 1; t < lines.taps; ++t) {
      from += lines.step, at += static_cast<std::int32_t>(lines.step);
      all.take(read(from), at);
    }
    store<T>(order(all.best), line.y + o);
    if constexpr (kPlaces) {
      std::int32_t places[N];
      std::memcpy(places, &all.where, sizeof places);
      for (int l = 0; l < N; ++l) line.index[o + l] = places[l];
    }
  }
  return std::min(o, std::max(lines.inside, lines.begin));
}

/// The same for any stride.
template <bool kPlaces, class T>
[[gnu::always_inline]] inline std::int64_t pool_inside(const Lines& lines, const Line<T>& line) {
  using V = Vector<T>;
  using Lanes = PairLanes<T>;
  const std::int64_t s = lines.stride;
  const auto same = [](const V& v) __attribute__((always_inline)) { return v; };
  const auto ordered = [](const V& v) __attribute__((always_inline)) { return V(Lanes::ordered(v)); };
  const auto one = [](const T* from) __attribute__((always_inline)) { return load(from); };
  const auto two = [](const T* from) __attribute__((always_inline)) {
    return V(Lanes::template of_pairs<0>(load(from), load(from + kLanes<T>)));
  };
  const auto more = [s](const T* from) __attribute__((always_inline)) { return every<V>(from, s); };
  if constexpr (kPlaces) {
    const auto any = [=](const T* from) __attribute__((always_inline)) {
      return s == 1 ? one(from) : s == 2 ? ordered(two(from)) : more(from);
    };
    return pool_inside<true>(lines, line, any, same);
  } else {
    if (s == 1) return pool_inside<false>(lines, line, one, same);
    if (s == 2) return pool_inside<false>(lines, line, two, ordered);
    return pool_inside<false>(lines, line, more, same);
  }
}

/// One window, of which borders cut off what they may.
template <bool kPlaces, class T>
[[gnu::always_inline]] inline void pool_window(const Lines& lines, const Line<T>& line, std::int64_t o) {
  std::int64_t at = lines.start + o * lines.stride;
  const std::int64_t end = std::min(at + lines.reach + 1, lines.in);
  while (at < 0) at += lines.step;
  // Vectors choose without branches.
  const auto place = [&] { return LinePlaces{} + static_cast<std::int32_t>(at); };
  LineMaxima<kPlaces, T> all{every<Vector<T>>(line.x + at, 0), place()};
  while ((at += lines.step) < end) all.take(every<Vector<T>>(line.x + at, 0), place());
  line.y[o] = all.best[0];
  if constexpr (kPlaces) line.index[o] = line.place + all.where[0];
}

/// The rows [first, last) of such windows.
template <bool kPlaces, class T>
[[gnu::noinline]] void pool_lines(const MaxPool& p, std::int64_t first, std::int64_t last, const T* x, T* y,
                                  std::int64_t* index) {
  const Window1d& w = p.w.window;
  // Windows side by side are those of one row, if nobody asks for places.
  const std::int64_t joined = !kPlaces && p.w.is_tiled() ? last - first : 1;
  const std::uintptr_t ahead = p.elements() * std::int64_t{sizeof(T)} < kFarRead ? 0 : memory_ahead;
  const Lines lines{p.w.in * joined, p.w.out * joined, w.stride, w.dilation, w.kernel, -w.padding_left, ahead};
  const std::int64_t in = lines.in, out = lines.out, size = p.d.in * p.h.in * in;
  Line<T> line{x + first * p.w.in,
               x + p.planes * p.size(),
               y + first * p.w.out,
               y + last * p.w.out,
               kPlaces ? index + first * out : nullptr,
               kPlaces ? first * in % size : 0};
  for (; line.y < line.y_end; line.x += in, line.y += out) {
    const std::int64_t rest = pool_inside<kPlaces>(lines, line);
    for (std::int64_t o = lines.begin > 0 ? 0 : rest; o < out; o = o + 1 == lines.begin ? rest : o + 1)
      pool_window<kPlaces>(lines, line, o);
    if (!kPlaces) continue;
    line.index += out, line.place += in;
    if (line.place == size) line.place = 0;
  }
}

#endif

}  // namespace taper::kernels
