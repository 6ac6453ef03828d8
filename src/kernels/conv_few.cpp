#include "kernels/conv_few.hpp"

#include "kernels/lane_mask.hpp"
#include "kernels/product_vector.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

/// Vectors of products, and of elements read for them, that take less time than a plan.
constexpr std::int64_t kFew = 640;

/// Whether a sweep has few products, and each result is one chain.
bool is_few(const Sweep& s) {
  const std::int64_t depth = s.channels * s.tap_count(), columns = s.batch * s.position_count();
  if (depth > kChain<float> || s.rows > kFew || columns > kFew * kLanes<float> || s.groups > kFew) return false;
  const std::int64_t vectors = s.batch * s.positions[0] * s.positions[1] * ceil_div(s.positions[2], kLanes<float>);
  return vectors * s.groups * depth * (s.rows + 2) <= kFew;
}

/// What one tap finds along `size` positions of a line, as many as a vector has lanes or fewer, from position `i` on.
class LinePart {
 public:
  LinePart() = default;
  TAPER_FOR_SIZE LinePart(const Axis& axis, std::int64_t i, std::int64_t size, std::int64_t t) : stride_(axis.stride) {
    const Piece piece = axis.piece({0, 0, 0, i, i + size, 0}, t);
    from_ = piece.from - piece.skip * stride_;
    first_ = piece.skip, last_ = piece.skip + piece.count;
    inside_ = lanes_between(first_, last_);
  }

  Vector<float> read(const float* line) const {
    if (stride_ == 1) return load_lanes(inside_, line + from_);
    alignas(kVectorWidth) float some[kLanes<float>] = {};
    for (std::int64_t l = first_; l < last_; ++l) some[l] = line[from_ + l * stride_];
    return load(some);
  }

 private:
  std::int64_t stride_, from_, first_, last_;
  LaneMask inside_;
};

/// Positions of a line that begin at `i`.
std::int64_t size_from(const Sweep& s, std::int64_t i) {
  return std::min<std::int64_t>(kLanes<float>, s.positions[2] - i);
}

/// y[i * step] = v[i] for i < n, or += with `add`
[[gnu::noinline]] void store_apart(const Vector<float>& v, std::int64_t n, float* y, std::int64_t step, bool add) {
  if (step == 1) return store_part<float>(v, n, y, add);
  alignas(kVectorWidth) float some[kLanes<float>];
  store(v, some);
  for (std::int64_t i = 0; i < n; ++i) y[i * step] = (add ? y[i * step] : 0) + some[i];
}

/// The sums of one sweep, two rows at a time; the last of them may be summed twice.
void sum_sweep(const Sweep& s, const float* x, const float* w, const float* b, float* y, bool add) {
  constexpr int R = 2;
  const auto to = [&s](int d, std::int64_t i) { return s.axis[d].to_first + i * s.axis[d].to_step; };
  const Axis &depth = s.axis[0], &height = s.axis[1];
  LinePart part[kChain<float>];
  const auto sum_line = [&](std::int64_t i, std::int64_t unit, std::int64_t d, std::int64_t h) {
    const std::int64_t g = s.groups > 1 ? unit % s.groups : 0, size = size_from(s, i);
    float* const line_of_y = y + (to(0, d) * s.result[1] + to(1, h)) * s.result_line + to(2, i);
    for (std::int64_t first = 0; first < s.rows; first += R) {
      const auto row = [&](int r) { return std::min(first + r, s.rows - 1); };
      Vector<float> sums[R];
      const float* weight[R];
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        sums[r] = (b != nullptr ? b[g * s.rows + row(r)] : 0.0f) - Vector<float>{};
        weight[r] = w + g * s.w_group + row(r) * s.w_row;
      }
      for (std::int64_t td = 0; td < s.taps[0]; ++td)
        for (std::int64_t th = 0; th < s.taps[1]; ++th) {
          const std::int64_t plane = depth.element(d, td), line = height.element(h, th);
          if (plane < 0 || line < 0) continue;
          const float* from = x + unit * s.channels * s.signal_size + (plane * height.length + line) * s.signal_line;
          std::int64_t k = s.weight({0, {td, th, 0}});
          for (std::int64_t c = 0; c < s.channels; ++c, from += s.signal_size, k += s.w_channel)
            for (std::int64_t t = 0; t < s.taps[2]; ++t) {
              const Vector<float> found = part[t].read(from);
#pragma GCC unroll 2
              for (int r = 0; r < R; ++r)
                sums[r] = multiply_add(weight[r][k + t * s.axis[2].tap_step] - Vector<float>{}, found, sums[r]);
            }
        }
      for (int r = 0; r < std::min<std::int64_t>(R, s.rows - first); ++r)
        store_apart(sums[r], size, line_of_y + (unit * s.rows + first + r) * s.result_size, s.axis[2].to_step, add);
    }
  };
  for (std::int64_t i = 0; i < s.positions[2]; i += kLanes<float>) {
    for (std::int64_t t = 0; t < s.taps[2]; ++t) part[t] = {s.axis[2], i, size_from(s, i), t};
    for (std::int64_t unit = 0; unit < s.batch * s.groups; ++unit)
      for (std::int64_t d = 0; d < s.positions[0]; ++d)
        for (std::int64_t h = 0; h < s.positions[1]; ++h) sum_line(i, unit, d, h);
  }
}

}  // namespace

bool few_sum(const Sweep* sweeps, int count, const float* x, const float* w, const float* b, float* y, bool add) {
  std::int64_t positions = 0;
  for (int u = 0; u < count; ++u) {
    if (!is_few(sweeps[u])) return false;
    positions += sweeps[u].position_count();
  }
  const std::int64_t size = sweeps->result_size, channels = sweeps->groups * sweeps->rows;
  if (positions < size) {
    // No tap reaches the other results.
    for (std::int64_t c = 0; c < sweeps->batch * channels; ++c)
      for (std::int64_t i = 0; i < size; ++i)
        y[c * size + i] = (add ? y[c * size + i] : 0) + (b != nullptr ? b[c % channels] : 0);
    b = nullptr;
    add = true;
  }
  for (int u = 0; u < count; ++u) sum_sweep(sweeps[u], x, w, b, y, add);
  return true;
}

#else

bool few_sum(const Sweep*, int, const float*, const float*, const float*, float*, bool) { return false; }

#endif

}  // namespace taper::kernels
