#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/max_pool.hpp"
#include "kernels/max_pool_gather.hpp"
#include "kernels/max_pool_pairs.hpp"
#include "kernels/max_pool_plan.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

namespace {

/// Positions of one unit of work that goes by outputs.
constexpr std::int64_t kMaxPoolBlock = 2048;

/// The outputs whose windows reach into positions [first, last).
IndexRange outputs_over(const PoolAxis& axis, std::int64_t first, std::int64_t last) {
  return {axis.over(first).first, axis.over(last - 1).last};
}

/// Whether a position lies in so few windows, eight, that the sum of their gradients needs no double.
TAPER_FOR_SIZE bool is_in_few(const MaxPool& p) {
  std::int64_t most = 1;
  for (const PoolAxis* axis : {&p.d, &p.h, &p.w}) {
    if (axis->is_adaptive) return false;
    most *= std::min<std::int64_t>(axis->window.dilation * (axis->window.kernel - 1) / axis->window.stride, 8) + 1;
  }
  return most <= 8;
}

/// Some positions of a plane, `n` of them from `origin` on, and the outputs that may have chosen them.
struct Block {
  std::int64_t origin, n;
  IndexRange d, h, w;
  std::uintptr_t read_ahead, fill_ahead;  ///< how far ahead memory is asked for; 0: not at all
};

/// Calls visit(i, o) for all outputs o of a block's windows, i being the place in the block that was chosen; places
/// elsewhere are not below its size.
template <class Visit>
void for_choices(const MaxPool& p, const Block& b, const std::int64_t* index, const Visit& visit) {
  for (std::int64_t i = b.d.first; i < b.d.last; ++i)
    for (std::int64_t j = b.h.first; j < b.h.last; ++j) {
      const std::int64_t row = (i * p.h.out + j) * p.w.out;
      if (b.read_ahead > 0) fetch_run(index + row, p.w.out, b.read_ahead);
      for (std::int64_t o = row + b.w.first; o < row + b.w.last; ++o)
        visit(static_cast<std::uint64_t>(index[o]) - static_cast<std::uint64_t>(b.origin), o);
    }
}

/// dx_i = sum of dy_o over the outputs o with index_o = i, for the positions of a block.
template <class T>
void backward_block(const MaxPool& p, const Block& b, const T* dy, const std::int64_t* index, T* dx, bool add) {
  double sum[kMaxPoolBlock + 1];  // behind the last position: what went elsewhere
  std::fill(sum, sum + b.n, 0.0);
  const auto n = static_cast<std::uint64_t>(b.n);
  for_choices(p, b, index,
              [&](std::uint64_t at, std::int64_t o) { sum[std::min(at, n)] += static_cast<double>(dy[o]); });
  dx += b.origin;
  if (add)
    for (std::int64_t i = 0; i < b.n; ++i) dx[i] += static_cast<T>(sum[i]);
  else
    for (std::int64_t i = 0; i < b.n; ++i) dx[i] = static_cast<T>(sum[i]);
}

/// The same where few outputs can have chosen one position.
template <class T>
void backward_few(const MaxPool& p, const Block& b, const T* dy, const std::int64_t* index, T* dx, bool add) {
  dx += b.origin;
  if (b.fill_ahead > 0) fetch_run(dx, b.n, b.fill_ahead);
  if (!add) std::fill(dx, dx + b.n, T(0));
  const auto n = static_cast<std::uint64_t>(b.n);
  for_choices(p, b, index, [&](std::uint64_t at, std::int64_t o) {
    if (at < n) dx[at] += dy[o];
  });
}

/// The blocks that a plane is cut into: each is one run of memory, a part of a row, rows of a slice, or slices.
class PoolBlocks {
 public:
  /// Of planes that take so many bytes with their outputs.
  TAPER_FOR_SIZE PoolBlocks(const MaxPool& p, double bytes) : p_(p) {
    if (!is_near(bytes)) read_ahead_ = beside_ahead();
    if (bytes >= kFarFilled) fill_ahead_ = beside_ahead();
    const std::int64_t depth = p.d.in, height = p.h.in, width = p.w.in;
    w_ = std::min(width, kMaxPoolBlock);
    h_ = std::max<std::int64_t>(std::min(height, kMaxPoolBlock / width), 1);
    d_ = std::max<std::int64_t>(std::min(depth, kMaxPoolBlock / (height * width)), 1);
    across_ = ceil_div(width, w_), down_ = ceil_div(height, h_), count = across_ * down_ * ceil_div(depth, d_);
  }

  TAPER_FOR_SIZE Block at(std::int64_t block) const {
    const std::int64_t depth = p_.d.in, height = p_.h.in, width = p_.w.in;
    const std::int64_t d = block / (across_ * down_) * d_, h = block / across_ % down_ * h_, w = block % across_ * w_;
    const std::int64_t d1 = std::min(d + d_, depth), h1 = std::min(h + h_, height), w1 = std::min(w + w_, width);
    return {(d * height + h) * width + w,
            (d1 - d) * (h1 - h) * (w1 - w),
            outputs_over(p_.d, d, d1),
            outputs_over(p_.h, h, h1),
            outputs_over(p_.w, w, w1),
            read_ahead_,
            fill_ahead_};
  }

  std::int64_t count;

 private:
  const MaxPool& p_;
  std::int64_t d_, h_, w_, across_, down_;
  std::uintptr_t read_ahead_ = 0, fill_ahead_ = 0;
};

/// Calls run(unit, dy, index, dx) for all units of each plane, with what belongs to the plane.
template <class T, class Run>
void for_units(const MaxPool& p, std::int64_t units, const T* dy, const std::int64_t* index, T* dx, const Run& run) {
  const std::int64_t size = p.size(), outputs = p.outputs();
  parallel_for(p.planes * units, (size + 8 * outputs) / units, [=, &run](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      const std::int64_t plane = unit / units;
      run(unit % units, dy + plane * outputs, index + plane * outputs, dx + plane * size);
    }
  });
}

/// dx_i = sum of dy_o over the outputs o with index_o = i, position by position.
void gather_gradients(const MaxPool& p, const float* dy, const std::int64_t* index, float* dx, bool add) {
  const GatherPlan plan(p);
  for_units(p, plan.units, dy, index, dx,
            [&](std::int64_t unit, const float* gradients, const std::int64_t* chosen, float* to) {
              gather_unit(p, plan, unit, gradients, chosen, to, add);
            });
}

/// The same output by output.
template <class T>
void scatter(const MaxPool& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  const PoolBlocks blocks(p, p.gradient_bytes(sizeof(T)));
  const Block only = blocks.at(0);
  const auto add_to = is_in_few(p) ? backward_few<T> : backward_block<T>;
  for_units(p, blocks.count, dy, index, dx,
            [&](std::int64_t unit, const T* gradients, const std::int64_t* chosen, T* to) {
              add_to(p, unit == 0 ? only : blocks.at(unit), gradients, chosen, to, add);
            });
}

/// The rows of the input that windows beside each other cover: how far each lies behind their first.
struct WindowRows {
  static constexpr std::int64_t kMost = 32;
  int count = 0;
  std::int32_t at[kMost];

  TAPER_FOR_SIZE explicit WindowRows(const MaxPool& p) {
    for (std::int64_t i = 0; i < p.d.window.kernel; ++i)
      for (std::int64_t j = 0; j < p.h.window.kernel; ++j)
        at[count++] = static_cast<std::int32_t>((i * p.h.in + j) * p.w.in);
  }
};

/// Whether windows cover all of the input side by side, in pairs or fours along rows of a vector or more.
bool is_side_by_side(const MaxPool& p) {
  return kVectorWidth > 16 && p.d.is_tiled() && p.h.is_tiled() && p.w.is_tiled() &&
         (p.w.window.kernel == 2 || p.w.window.kernel == 4) && p.w.out >= kLanes<float> && p.has_narrow_places() &&
         p.d.window.kernel * p.h.window.kernel <= WindowRows::kMost;
}

/// Windows of `K` elements side by side, one in each lane. Parts of 16 bytes can be rearranged faster than vectors: the
/// windows are in such an order that theirs follow each other in memory when each part has its elements in order.
template <int K, int N = kLanes<float>, class = std::make_integer_sequence<int, N>>
struct WindowLanes;

template <int K, int N, int... l>
struct WindowLanes<K, N, std::integer_sequence<int, l...>> {
  static constexpr int kPart = 4, kWindows = kPart / K;  ///< a part of the results has so many windows

  template <class V>
  [[gnu::always_inline]] static V of(V windows) {
    return __builtin_shufflevector(windows, windows,
                                   (l % kPart / kWindows * (N / K) + l / kPart * kWindows + l % kPart % kWindows)...);
  }
  /// The lanes of each part of a and b in turns: the first half of them, or the second.
  template <int kHalf, class V>
  [[gnu::always_inline]] static V turns(V a, V b) {
    return __builtin_shufflevector(a, b, (l / kPart * kPart + kHalf * 2 + l % kPart / 2 + l % 2 * N)...);
  }
  /// From the vectors of first, second... elements to vectors of elements that follow each other.
  template <class V>
  [[gnu::always_inline]] static void order(V (&y)[K]) {
    // y_0, y_2 and y_1, y_3 take turns, then both.
    for (int step = 1; step < K; step *= 2) {
      V z[K];
#pragma GCC unroll 2
      for (int k = 0; k < K / 2; ++k)
        z[2 * k] = turns<0>(y[k], y[k + K / 2]), z[2 * k + 1] = turns<1>(y[k], y[k + K / 2]);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) y[k] = z[k];
    }
  }
};

/// dx_i = dy_o if index_o = i, or 0, for the positions i of a row of `out` windows o, which are `K` wide; the first
/// position is at `place` of its plane, and at dx.
template <int K>
void spread_row(const WindowRows& rows, std::int64_t out, const float* dy, const std::int64_t* index,
                std::int64_t place, float* dx) {
  constexpr int N = kLanes<float>;
  using Place = std::int32_t;
  using Places = typename Several<Place, N>::type;
  using Windows = WindowLanes<K>;
  Places corners;
  for (int l = 0; l < N; ++l) corners[l] = static_cast<Place>(l * K);
  for (std::int64_t block = 0; block < out; block += N) {
    // The last vector overlaps the one before, which changes nothing.
    const std::int64_t o = std::min(block, out - N);
    // Counted from the first element of the window.
    const Places chosen = Windows::of(narrow_places<N>(index + o)) - Windows::of(corners) -
                          static_cast<Place>(place + o * K),
                 gradient = Windows::of(several_at<Place, N>(reinterpret_cast<const Place*>(dy + o)));
    for (int r = 0; r < rows.count; ++r) {
      Places y[K];
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) y[k] = gradient & (chosen - k == Places{} + rows.at[r]);
      Windows::order(y);
      float* const to = dx + rows.at[r] + o * K;
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) std::memcpy(to + k * N, &y[k], sizeof y[k]);
    }
  }
}

[[gnu::noinline]] void spread(const MaxPool& p, const float* dy, const std::int64_t* index, float* dx) {
  const std::int64_t rows = p.d.out * p.h.out, size = p.size(), each = size / rows;
  parallel_for(p.planes * rows, each, [=, &p, of_windows = WindowRows(p)](std::int64_t first, std::int64_t last) {
    const auto run = p.w.window.kernel == 2 ? spread_row<2> : spread_row<4>;
    const std::int64_t down = p.h.window.kernel * p.w.in, deep = (p.d.window.kernel - 1) * p.h.in * p.w.in;
    std::int64_t h = first % p.h.out, place = first % rows / p.h.out * (deep + p.h.out * down) + h * down;
    float* to = dx + first / rows * size;
    for (std::int64_t unit = first; unit < last; ++unit) {
      run(of_windows, p.w.out, dy + unit * p.w.out, index + unit * p.w.out, place, to + place);
      place += down;
      if (++h == p.h.out) h = 0, place += deep;
      if (place == size) place = 0, to += size;
    }
  });
}

template <class T>
void backward(const MaxPool& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  if constexpr (std::is_same_v<T, float>) {
    if (!add && is_side_by_side(p)) return spread(p, dy, index, dx);
    if (kVectorWidth > 16 && GatherPlan::suits(p)) return gather_gradients(p, dy, index, dx, add);
  }
  scatter(p, dy, index, dx, add);
}

}  // namespace

template <class T>
void max_pool_backward(const SlidingPoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  backward(make_max_pool(p), dy, index, dx, add);
}

template <class T>
void adaptive_max_pool_backward(const AdaptivePoolParams& p, const T* dy, const std::int64_t* index, T* dx, bool add) {
  if (!p.is_empty()) return backward(make_max_pool(p), dy, index, dx, add);
  if (!add) std::fill(dx, dx + p.planes * p.in[0] * p.in[1] * p.in[2], T(0));
}

template void max_pool_backward(const SlidingPoolParams&, const float*, const std::int64_t*, float*, bool);
template void adaptive_max_pool_backward(const AdaptivePoolParams&, const float*, const std::int64_t*, float*, bool);
template void max_pool_backward(const SlidingPoolParams&, const double*, const std::int64_t*, double*, bool);
template void adaptive_max_pool_backward(const AdaptivePoolParams&, const double*, const std::int64_t*, double*, bool);

}  // namespace taper::kernels
