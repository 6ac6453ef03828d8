#include <algorithm>
#include <atomic>
#include <cstdint>

#include "kernels/ceil_div.hpp"
#include "kernels/max_pool.hpp"
#include "kernels/max_pool_pairs.hpp"
#include "kernels/max_pool_plan.hpp"
#include "kernels/max_pool_small.hpp"
#include "kernels/parallel.hpp"

// Max pools that are faster with vectors of 64 bytes than any way of max_pool.cpp is with those of 32.

namespace taper::kernels {

#if defined(__AVX512F__)

namespace {

/// Whether windows are four neighbours side by side in planes of one row, which are taken as pairs of pairs.
bool is_in_quads(const MaxPool& p) {
  return p.d.in == 1 && p.h.in == 1 && p.is_one_row() && p.w.is_tiled() && p.w.window.kernel == 4 &&
         p.w.out >= kFullVector<float>;
}

void forward_quads(const MaxPool& p, const float* x, float* y, std::int64_t* index) {
  const std::uintptr_t ahead = is_near(p.elements() * sizeof(float)) ? 0 : memory_ahead;
  parallel_for(p.planes, p.size(), [=, &p](std::int64_t first, std::int64_t last) {
    for (std::int64_t plane = first; plane < last; ++plane)
      pool_quads(x + plane * p.size(), 0, p.w.out, ahead, y + plane * p.w.out,
                 index ? index + plane * p.w.out : nullptr);
  });
}

/// Whether rows of windows, two apart and over several rows, have loops of their own, and nearly fill their vectors.
bool is_in_rows(const MaxPool& p) {
  const Window1d &d = p.d.window, &h = p.h.window, &w = p.w.window;
  constexpr std::int64_t N = kLanes<float>;
  return !p.is_one_row() && d.dilation == 1 && h.dilation == 1 && w.dilation == 1 && w.stride == 2 &&
         (w.kernel == 2 || w.kernel == 3) && w.padding_left <= 1 && 8 * p.w.out >= 7 * N * ceil_div(p.w.out, N);
}

/// Returns whether all elements are finite.
bool forward_rows(const MaxPool& p, const float* x, float* y, std::int64_t* index) {
  constexpr std::int64_t kSome = 16;  // rows of windows, whose elements stay near
  const std::int64_t rows = p.d.out * p.h.out, size = p.size();
  const bool is_far = p.elements() * sizeof(float) >= kFarRead;
  std::atomic<bool> is_finite = true;
  parallel_for(p.planes * rows, size / rows + (1 + 2 * p.choices()) * p.w.out,
               [=, &p, &is_finite](std::int64_t first, std::int64_t last) {
                 const Window1d &down = p.h.window, &across = p.w.window;
                 for (std::int64_t unit = first, count; unit < last && is_finite; unit += count) {
                   const std::int64_t h = unit % p.h.out;
                   count = std::min({last - unit, p.h.out - h, kSome});
                   const Taps d = window_taps(p.d.window, p.d.in, unit % rows / p.h.out);
                   const SmallWindows windows{
                       {d.first, d.last},   p.h.in,        p.w.in,  down.kernel, down.stride, down.padding_left,
                       across.padding_left, across.kernel, p.w.out, is_far};
                   if (!pool_small(windows, x + unit / rows * size, h, h + count, y + unit * p.w.out,
                                   index ? index + unit * p.w.out : nullptr))
                     is_finite = false;
                 }
               });
  return is_finite;
}

}  // namespace

bool max_pool_wide(const SlidingPoolParams& q, const float* x, float* y, std::int64_t* index) {
  if (8 * q.out[2] < 7 * kLanes<float>) return false;  // small pools are over sooner than a plan is made
  const MaxPool p = make_max_pool(q);
  if (!p.has_narrow_places()) return false;
  if (is_in_rows(p)) return forward_rows(p, x, y, index);
  if (!is_in_quads(p)) return false;
  forward_quads(p, x, y, index);
  return true;
}

#else

bool max_pool_wide(const SlidingPoolParams&, const float*, float*, std::int64_t*) { return false; }

#endif

}  // namespace taper::kernels
