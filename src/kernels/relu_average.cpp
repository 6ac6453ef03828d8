#include "kernels/relu_average.hpp"

#include <algorithm>

#include "kernels/avg_pool_small.hpp"
#include "kernels/ceil_div.hpp"
#include "kernels/lane_mask.hpp"
#include "kernels/parallel.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

using average::Factors;
using Floats = Vector<float>;

constexpr std::int64_t kWidth = kLanes<float>;
using All = std::make_integer_sequence<int, static_cast<int>(kWidth)>;

/// Rows of results, and of bits: four words for each vector of results, of the elements in front and behind in two
/// rows.
struct Rows {
  std::int64_t count, width, bits;

  explicit Rows(const AvgPoolParams& p)
      : count(p.planes * p.out[1]), width(p.out[2]), bits(4 * ceil_div(width, kWidth)) {}
};

/// A quarter, as `avg_pool` takes it.
Factors<float>::Pair quarter() {
  alignas(64) float table[2 * kWidth];
  Factors<float>::set(table, 0, 4);
  for (std::int64_t l = 1; l < kWidth; ++l) Factors<float>::repeat(table, l);
  return Factors<float>::at(table, 0);
}

/// The first n lanes, at most all.
class FirstLanes {
 public:
#if defined(__AVX512F__)
  explicit FirstLanes(std::int64_t n) : lanes_(lanes_between(0, n)) {}

  [[gnu::always_inline]] Floats load(const float* x) const { return load_lanes(lanes_, x); }
  [[gnu::always_inline]] void store(const Floats& v, float* y) const { _mm512_mask_storeu_ps(y, lanes_, v); }

 private:
  LaneMask lanes_;
#else
  explicit FirstLanes(std::int64_t n) : n_(n) {}

  [[gnu::always_inline]] Floats load(const float* x) const { return average::load_some<float>(x, n_); }
  [[gnu::always_inline]] void store(const Floats& v, float* y) const { average::store_some<float>(v, n_, y); }

 private:
  std::int64_t n_;
#endif
};

bool is_pairs(const AvgPoolParams& p, int d) {
  return p.kernel[d] == 2 && p.stride[d] == 2 && p.in[d] % 2 == 0 && p.padding_left[d] == 0 &&
         p.padding_right[d] == 0 && p.dilation[d] == 1;
}

}  // namespace

bool relu_average_fits(const AvgPoolParams& p) {
  // Planes that one row of windows covers, or whose rows are long, are averaged in another order.
  return p.planes > 0 && p.in[0] == 1 && p.out[0] == 1 && p.kernel[0] == 1 && is_pairs(p, 1) && is_pairs(p, 2) &&
         p.in[2] > 2 && p.in[2] <= 1024 && (p.divisor_override == 0 || p.divisor_override == 4);
}

std::int64_t relu_average_bits(const AvgPoolParams& p) {
  const Rows rows(p);
  return rows.count * rows.bits;
}

void relu_average(const AvgPoolParams& p, const float* x, float* y, std::uint16_t* positive) {
  const Rows rows(p);
  parallel_for(rows.count, 5 * rows.width, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t width = rows.width;
    const Factors<float>::Pair factor = quarter();
    std::uint16_t* kept = positive + begin * rows.bits;
    for (std::int64_t row = begin; row < end; ++row) {
      const float *const above = x + 4 * row * width, *const below = above + 2 * width;
      // y_o = (max(x_{2 o}, 0) + max(x_{2 o + 1}, 0)) times its factor in both axes
      for (std::int64_t o = 0; o < width; o += kWidth, kept += 4) {
        const std::int64_t c = 2 * o, d = c + kWidth, n = 2 * (width - o);
        const FirstLanes first(n), second(n - kWidth), results(width - o);
        const Floats front =
            positive_part(first.load(above + c), kept[0]) + positive_part(first.load(below + c), kept[1]);
        Floats back{};
        if (n > kWidth)
          back = positive_part(second.load(above + d), kept[2]) + positive_part(second.load(below + d), kept[3]);
        results.store(factor.times(average::sum_pairs(front, back, All())), y + row * width + o);
      }
    }
  });
}

void relu_average_backward(const AvgPoolParams& p, const float* dy, const std::uint16_t* positive, float* dx) {
  const Rows rows(p);
  parallel_for(rows.count, 5 * rows.width, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t width = rows.width;
    const Factors<float>::Pair factor = quarter();
    const std::uint16_t* kept = positive + begin * rows.bits;
    for (std::int64_t row = begin; row < end; ++row) {
      float *const above = dx + 4 * row * width, *const below = above + 2 * width;
      // dx_{2 o}, dx_{2 o + 1} = dy_o times its factor in both axes where they are kept, else 0
      for (std::int64_t o = 0; o < width; o += kWidth, kept += 4) {
        const std::int64_t c = 2 * o, d = c + kWidth, n = 2 * (width - o);
        const FirstLanes first(n), second(n - kWidth), results(width - o);
        const Floats each = factor.times(results.load(dy + row * width + o)), front = in_turns<0>(each, each, All());
        first.store(kept_part(front, kept[0]), above + c);
        first.store(kept_part(front, kept[1]), below + c);
        if (n <= kWidth) continue;
        const Floats back = in_turns<1>(each, each, All());
        second.store(kept_part(back, kept[2]), above + d);
        second.store(kept_part(back, kept[3]), below + d);
      }
    }
  });
}

#else

bool relu_average_fits(const AvgPoolParams&) { return false; }
std::int64_t relu_average_bits(const AvgPoolParams&) { return 0; }
void relu_average(const AvgPoolParams&, const float*, float*, std::uint16_t*) {}
void relu_average_backward(const AvgPoolParams&, const float*, const std::uint16_t*, float*) {}

#endif

}  // namespace taper::kernels
