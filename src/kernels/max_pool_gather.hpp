#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/ceil_div.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/max_pool_pairs.hpp"
#include "kernels/max_pool_plan.hpp"

// Gradients of max pools whose windows are one step apart, position by position: a vector of positions compares its
// places with those that the windows around it chose, and adds the gradients of windows that chose it. Nothing is
// added through memory, where neighbouring windows with one choice would wait for each other.

namespace taper::kernels {

/// Numbers of places as 32 bits; one that takes more becomes less than 0.
template <int N = kLanes<float>>
[[gnu::always_inline]] inline auto narrow_places(const std::int64_t* index) {
  using Places = typename Several<std::int32_t, N>::type;
  using Pairs = PairLanes<float, N>;
  // The halves of each number: those in front are places where the others are 0. Floats are moved in fewer steps.
  const auto* const numbers = reinterpret_cast<const float*>(index);
  const auto low = several_at<float, N>(numbers), high = several_at<float, N>(numbers + N);
  const auto front = Places(Pairs::template of_pairs<0>(low, high)),
             behind = Places(Pairs::template of_pairs<1>(low, high));
  return Pairs::ordered(front | Places(behind != 0));
}

/// Windows of a row that a position may be in.
inline constexpr int kWindowsAround = 3;

/// What windows chose, row by row: the places as 32 bits, and the gradients. A position in one row is compared with
/// windows of the next too, which have other places; so rows need nothing between them, if a row has kWindowsAround.
class Choices {
 public:
  static constexpr int kVector = kLanes<float>;
  /// Numbers in all, in front of the first row, behind the last one at least, and of rows.
  static constexpr std::int64_t kMost = 2048, kBefore = kVector, kBehind = 2 * kVector + kWindowsAround,
                                kRoom = kMost - kBefore - kBehind - kVector;
  using Places = typename Several<std::int32_t, kVector>::type;

  std::int32_t place[kMost];
  float dy[kMost];

  void put(std::int64_t i, const Places& places, const Vector<float>& gradients) {
    std::memcpy(place + i, &places, sizeof places);
    store<float>(gradients, dy + i);
  }
  /// Windows [at, end), and some more, choose nothing.
  [[gnu::noinline]] void skip(std::int64_t at, std::int64_t end) {
    for (; at < end; at += kVector) put(at, Places{} - 1, Vector<float>{});
  }
  /// Takes n windows, to be number `at` and on; the next few choose nothing.
  [[gnu::noinline]] void take(const std::int64_t* index, const float* gradient, std::int64_t n, std::int64_t at) {
    skip(at + n, at + n + 1);
    if (n < kVector) return take_few(index, gradient, n, at);
    const auto move = [&](std::int64_t i) __attribute__((always_inline)) {
      put(at + i, narrow_places(index + i), load(gradient + i));
    };
    for (std::int64_t i = 0; i + kVector < n; i += kVector) move(i);
    move(n - kVector);
  }

 private:
  TAPER_FOR_SIZE void take_few(const std::int64_t* index, const float* gradient, std::int64_t n, std::int64_t at) {
    for (std::int64_t i = 0; i < n; ++i) {
      place[at + i] = index[i] >> 31 == 0 ? static_cast<std::int32_t>(index[i]) : -1;
      dy[at + i] = gradient[i];
    }
  }
};

/// Rows of windows around one of positions, in some slices: how many, and how far they are apart.
struct RowsAround {
  std::int64_t slices, slice, rows, pitch;
};

/// The sums of the gradients of `n` positions, which follow each other from `place` of a plane on. `first` is the
/// first window around the first position; each of the next positions has the next window. Meanwhile it asks for what
/// will be read next.
[[gnu::noinline]] inline void gather_run(const RowsAround& around, const std::int32_t* first, std::int64_t place,
                                         std::int64_t n, float* to, bool add, const std::int64_t* next_index,
                                         const float* next_dy) {
  constexpr int N = kLanes<float>;
  Choices::Places at[2];
  for (int l = 0; l < N; ++l) at[0][l] = static_cast<std::int32_t>(place) + l;
  at[1] = at[0] + N;
  for (std::int64_t i = 0; i < n; i += 2 * N, first += 2 * N, at[0] += 2 * N, at[1] += 2 * N) {
    fetch_run(next_index + i, 2 * N, 0), fetch_run(next_dy + i, 2 * N, 0);
    Vector<float> sum[2] = {{}, {}};
    const std::int32_t* slice = first;
    for (std::int64_t d = around.slices; d > 0; --d, slice += around.slice) {
      const std::int32_t* row = slice;
      for (std::int64_t r = around.rows; r > 0; --r, row += around.pitch) {
        const auto chosen_by = [&](int w, int k) __attribute__((always_inline)) {
          const std::int32_t* const window = row + w + k * N;
          return Vector<float>(several_at<std::int32_t, N>(window + Choices::kMost) &
                               (several_at<std::int32_t, N>(window) == at[k]));
        };
        Vector<float> of_row[2] = {chosen_by(0, 0), chosen_by(0, 1)};
#pragma GCC unroll 3
        for (int w = 1; w < kWindowsAround; ++w) of_row[0] += chosen_by(w, 0), of_row[1] += chosen_by(w, 1);
        sum[0] += of_row[0], sum[1] += of_row[1];
      }
    }
    if (n - i >= 2 * N) {
      if (add) sum[0] += load(to + i), sum[1] += load(to + i + N);
      store<float>(sum[0], to + i), store<float>(sum[1], to + i + N);
    } else {
      float some[2 * N];
      store<float>(sum[0], some), store<float>(sum[1], some + N);
      for (std::int64_t k = 0; k < n - i; ++k) to[i + k] = add ? to[i + k] + some[k] : some[k];
    }
  }
}

/// How the positions of a plane are cut into units of work: some rows of a slice, or a part of one, around which there
/// are few enough windows to be `Choices` together.
struct GatherPlan {
  IndexRange h, w;                    ///< windows around a position: in axis h, number y + h.first .. y + h.last - 1
  std::int64_t height, width;         ///< positions of a unit
  std::int64_t pitch;                 ///< windows in a row around them
  std::int64_t across, along, units;  ///< units of a row, of a slice, of a plane
  std::int64_t ahead;                 ///< how many windows ahead memory is asked for

  TAPER_FOR_SIZE explicit GatherPlan(const MaxPool& p) {
    h = around(p.h), w = around(p.w);
    constexpr std::int64_t kNext = kWindowsAround - 1;
    const std::int64_t deep = count(around(p.d)), more = count(h) - 1;
    width = p.w.in, pitch = width;
    height = std::min(Choices::kRoom / deep / pitch - more, p.h.in);
    if (height < 1) {
      height = 1;
      width = std::min(width, Choices::kRoom / deep / (more + 1) - kNext), pitch = width + kNext;
    }
    across = ceil_div(p.w.in, width), along = ceil_div(p.h.in, height), units = p.d.in * along * across;
    ahead = is_near(p.gradient_bytes(sizeof(float))) ? 0 : height * width;
  }

  static constexpr std::int64_t kMostRows = 6;  ///< with as many windows in each, a gradient is in seven sums at most

  static std::int64_t count(const IndexRange& windows) { return windows.last - windows.first; }
  static IndexRange around(const PoolAxis& axis) {
    const std::int64_t padding = axis.window.padding_left;
    return {padding - axis.window.dilation * (axis.window.kernel - 1), padding + 1};
  }
  /// Whether windows are one step apart, so few around a position that no double is needed, and planes large enough for
  /// this to be faster.
  TAPER_FOR_SIZE static bool suits(const MaxPool& p) {
    if (!p.has_narrow_places() || p.size() < 128 || p.w.in < kWindowsAround || p.w.out > p.w.in) return false;
    if (p.w.out < p.w.in && p.w.out < 64) return false;  // rows are moved one by one
    for (const PoolAxis* axis : {&p.d, &p.h, &p.w})
      if (axis->is_adaptive || axis->window.stride != 1 || count(around(*axis)) > kMostRows) return false;
    return count(around(p.w)) <= kWindowsAround && count(around(p.d)) * count(around(p.h)) <= kMostRows;
  }
};

/// dx_i = sum of dy_o over the outputs o with index_o = i, for the positions of one unit of a plane.
inline void gather_unit(const MaxPool& p, const GatherPlan& plan, std::int64_t unit, const float* dy,
                        const std::int64_t* index, float* dx, bool add) {
  const std::int64_t w = unit % plan.across * plan.width, h = unit / plan.across % plan.along * plan.height,
                     d = unit / (plan.across * plan.along), width = std::min(plan.width, p.w.in - w),
                     height = std::min(plan.height, p.h.in - h);
  const IndexRange deep = windows_over(p.d.window, p.d.out, d), down = {h + plan.h.first, h + height - 1 + plan.h.last};
  // Those of them that there are, numbered from the first position on.
  const std::int64_t top = std::max<std::int64_t>(down.first, 0), bottom = std::min(down.last, p.h.out),
                     left = std::max<std::int64_t>(w + plan.w.first, 0),
                     right = std::min(w + width - 1 + plan.w.last, p.w.out);
  // Whole rows of windows follow each other as those of positions do.
  const bool is_whole = p.w.out == plan.pitch;
  const std::int64_t rows = GatherPlan::count(down), slice = rows * plan.pitch, step = is_whole ? bottom - top : 1;
  Choices choices;
  std::int64_t at = Choices::kBefore;
  choices.skip(0, at);
  for (std::int64_t i = deep.first; i < deep.last; ++i, at += slice) {
    choices.skip(at, at + (top - down.first) * plan.pitch);
    for (std::int64_t j = top; j < bottom; j += step) {
      const std::int64_t row = (i * p.h.out + j) * p.w.out + left;
      choices.take(index + row, dy + row, is_whole ? step * plan.pitch : right - left,
                   at + (j - down.first) * plan.pitch + left - w);
    }
    choices.skip(at + (bottom - down.first) * plan.pitch, at + slice);
  }
  choices.skip(at, at + Choices::kBehind);
  const std::int64_t place = (d * p.h.in + h) * p.w.in + w, next = (d * p.h.out + h) * p.w.out + w + plan.ahead;
  gather_run({GatherPlan::count(deep), slice, GatherPlan::count(plan.h), plan.pitch},
             choices.place + Choices::kBefore + plan.w.first, place, height * width, dx + place, add, index + next,
             dy + next);
}

}  // namespace taper::kernels
