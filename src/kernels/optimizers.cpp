#include "kernels/optimizers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "kernels/lanes.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sum_blocks.hpp"

namespace taper::kernels {

namespace {

/// What a gradient is multiplied by, so that a step goes downhill, or uphill.
template <class T>
T direction(bool maximize) {
  return maximize ? T(-1) : T(1);
}

/// One of two, the same for all elements of a loop: by bits, so that the loop is compiled once and without a branch.
template <class T>
class Choice {
 public:
  explicit Choice(bool first) : mask_(first ? ~Bits(0) : Bits(0)) {}
  bool is_first() const { return mask_ != 0; }
  T operator()(T first, T second) const {
    return std::bit_cast<T>((std::bit_cast<Bits>(first) & mask_) | (std::bit_cast<Bits>(second) & ~mask_));
  }

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  Bits mask_;
};

/// How threads share the elements of arrays: small arrays one after the other, then the same share of each large one,
/// which a thread may find in its caches.
struct Shares {
  static constexpr std::int64_t kLarge = 8192, kLine = 16;

  std::int64_t total = 0, small = 0;  ///< elements of all arrays, and of the small ones

  explicit Shares(std::span<const StepArrays> arrays) {
    for (const StepArrays& a : arrays) total += a.n;
    small = total;
    if (total < kLarge) return;
    for (const StepArrays& a : arrays) small -= a.n < kLarge ? 0 : a.n;
  }

  /// Where the share of a large array of n elements ends for who ends at element `at` of all.
  [[gnu::noinline]] std::int64_t end_of_large(std::int64_t n, std::int64_t at) const {
    if (at <= small || at == total) return at == total ? n : 0;
    const double share = static_cast<double>(at - small) / static_cast<double>(total - small);
    return static_cast<std::int64_t>(share * static_cast<double>(n)) / kLine * kLine;
  }
};

/// What a step does to the elements [begin, end) of some arrays.
using Range = void (*)(const void* step, const StepArrays& arrays, std::int64_t begin, std::int64_t end);

/// `kRange` of a step of its own type.
template <class Step, void (*kRange)(const Step&, const StepArrays&, std::int64_t, std::int64_t)>
void range_of(const void* step, const StepArrays& arrays, std::int64_t begin, std::int64_t end) {
  kRange(*static_cast<const Step*>(step), arrays, begin, end);
}

/// Calls `range(step, arrays, begin, end)` so that all elements are covered, in parallel over those of all arrays
/// together.
[[gnu::noinline]] void for_each_range(std::span<const StepArrays> arrays, std::int64_t cost, const void* step,
                                      Range range) {
  const Shares shares(arrays);
  parallel_for(shares.total, cost, [&](std::int64_t first, std::int64_t last) {
    std::int64_t from = first, to = std::min(last, shares.small);  // of the small arrays that follow
    for (const StepArrays& a : arrays) {
      std::int64_t begin = from > 0 ? from : 0, end = to < a.n ? to : a.n;
      if (a.n >= Shares::kLarge) {
        begin = shares.end_of_large(a.n, first);
        end = shares.end_of_large(a.n, last);
      } else {
        from -= a.n;
        to -= a.n;
      }
      if (begin < end) range(step, a, begin, end);
    }
  });
}

template <class T>
T* as(void* array) {
  return static_cast<T*>(array);
}
template <class T>
const T* as(const void* array) {
  return static_cast<const T*>(array);
}

/// Whether Adam without options has a loop of its own: the processor then sees the next root before the last division
/// ends. The baseline is kept small.
constexpr bool kHasPlain = kVectorWidth > 16;

// The arrays of a step never overlap, which `ivdep` says: there are too many of them to be compared at run time.

/// Without `kOptions`: downhill without decay, and with momentum alone after the first step.
template <bool kMomentum, bool kOptions, class T>
void sgd_range(const SgdStep& s, const StepArrays& a, std::int64_t begin, std::int64_t end) {
  T* const p = as<T>(a.p);
  const T* const g = as<T>(a.g);
  T* const momentum = as<T>(a.state[0]);
  const T decay = T(s.weight_decay), mu = T(s.momentum), fresh = T(1 - s.dampening), rate = T(-s.lr);
  const T sign = direction<T>(s.maximize);
  const Choice<T> decays(s.weight_decay != 0), first(s.first), nesterov(s.nesterov);
  // d = g + decay p,  m = mu m + (1 - dampening) d,  p = p - lr (nesterov ? d + mu m : m)
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = begin; i < end; ++i) {
    T d = g[i];
    if constexpr (kOptions) d = decays(sign * d + decay * p[i], sign * d);
    if constexpr (kMomentum) {
      T m = momentum[i] * mu + fresh * d;
      if constexpr (kOptions) m = first(d, m);
      momentum[i] = m;
      d = kOptions ? nesterov(d + mu * m, m) : m;
    }
    p[i] = p[i] + rate * d;
  }
}

/// What an Adam step multiplies by, which is the same for all elements.
template <class T>
struct AdamNumbers {
  T sign, decay, keep, weight1, beta1, beta2, weight2, inverse_root2, eps, rate;
  Choice<T> decays, near_old;

  explicit AdamNumbers(const AdamStep& s)
      : sign(direction<T>(s.maximize)),
        decay(T(s.decoupled ? 0 : s.weight_decay)),
        keep(T(s.decoupled ? 1 - s.lr * s.weight_decay : 1)),
        weight1(T(1 - s.beta1)),
        beta1(T(s.beta1)),
        beta2(T(s.beta2)),
        weight2(T(1 - s.beta2)),
        inverse_root2(T(1 / std::sqrt(1 - std::pow(s.beta2, static_cast<double>(s.step))))),
        eps(T(s.eps)),
        rate(T(-(s.lr / (1 - std::pow(s.beta1, static_cast<double>(s.step)))))),
        decays(decay != 0),
        near_old(1 - s.beta1 < 0.5) {}
};

/// Without `kOptions`: downhill, with no decay in the gradient, and a beta1 above one half.
template <bool kAmsgrad, bool kOptions, class T>
void adam_range(const AdamNumbers<T>& numbers, const StepArrays& a, std::int64_t begin, std::int64_t end) {
  T *const p = as<T>(a.p), *const average = as<T>(a.state[0]), *const square = as<T>(a.state[1]);
  T* const max_square = as<T>(a.state[2]);
  const T* const g = as<T>(a.g);
  const AdamNumbers<T> s = numbers;
  // m = m + (1 - beta1) (d - m),  v = beta2 v + (1 - beta2) d^2,  p = p - lr / bias1 m / (sqrt(v) / sqrt(bias2) + eps)
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = begin; i < end; ++i) {
    const T value = p[i] * s.keep;
    T d = g[i];
    if constexpr (kOptions) d = s.decays(s.sign * d + s.decay * value, s.sign * d);
    const T gap = d - average[i];
    T m = average[i] + s.weight1 * gap;
    // PyTorch's lerp starts from the nearer end.
    if constexpr (kOptions) m = s.near_old(m, d - gap * s.beta1);
    const T v = square[i] * s.beta2 + s.weight2 * d * d;
    average[i] = m;
    square[i] = v;
    T largest = v;
    if constexpr (kAmsgrad) {
      // As torch.maximum: NaN wins.
      largest = max_square[i] > v || max_square[i] != max_square[i] ? max_square[i] : v;
      max_square[i] = largest;
    }
    p[i] = value + s.rate * m / (std::sqrt(largest) * s.inverse_root2 + s.eps);
  }
}

/// What an RMSprop step multiplies by.
template <class T>
struct RmspropNumbers {
  T sign, decay, mu, rate, alpha, fresh, eps;
  Choice<T> decays, near_old;

  explicit RmspropNumbers(const RmspropStep& s)
      : sign(direction<T>(s.maximize)),
        decay(T(s.weight_decay)),
        mu(T(s.momentum)),
        rate(T(-s.lr)),
        alpha(T(s.alpha)),
        fresh(T(1 - s.alpha)),
        eps(T(s.eps)),
        decays(s.weight_decay != 0),
        near_old(1 - s.alpha < 0.5) {}
};

template <bool kCentered, bool kMomentum, class T>
void rmsprop_range(const RmspropNumbers<T>& numbers, const StepArrays& arrays, std::int64_t begin, std::int64_t end) {
  T *const p = as<T>(arrays.p), *const square = as<T>(arrays.state[0]);
  T *const average = as<T>(arrays.state[1]), *const buffer = as<T>(arrays.state[kCentered ? 2 : 1]);
  const T* const g = as<T>(arrays.g);
  const RmspropNumbers<T> s = numbers;
  // v = alpha v + (1 - alpha) d^2,  a = alpha a + (1 - alpha) d,  b = mu b + d / (sqrt(v - a^2) + eps),  p = p - lr b
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = begin; i < end; ++i) {
    T d = s.sign * g[i];
    d = s.decays(d + s.decay * p[i], d);
    T spread = square[i] * s.alpha + s.fresh * d * d;
    square[i] = spread;
    if constexpr (kCentered) {
      // PyTorch's lerp starts from the nearer end.
      const T gap = d - average[i];
      const T a = s.near_old(average[i] + s.fresh * gap, d - gap * s.alpha);
      average[i] = a;
      spread = spread - a * a;
    }
    const T denominator = std::sqrt(spread) + s.eps;
    if constexpr (kMomentum) {
      const T b = buffer[i] * s.mu + d / denominator;
      buffer[i] = b;
      p[i] = p[i] + s.rate * b;
    } else {
      p[i] = p[i] + s.rate * d / denominator;
    }
  }
}

template <class T>
void adagrad_range(const AdagradStep& s, const StepArrays& a, std::int64_t begin, std::int64_t end) {
  const T decay = T(s.weight_decay), eps = T(s.eps), sign = direction<T>(s.maximize);
  const T rate = T(-(s.lr / (1 + static_cast<double>(s.step - 1) * s.lr_decay)));
  const Choice<T> decays(s.weight_decay != 0);
  T *const p = as<T>(a.p), *const sum = as<T>(a.state[0]);
  const T* const g = as<T>(a.g);
  // s = s + d^2,  p = p - lr / (1 + (t - 1) lr_decay) d / (sqrt(s) + eps)
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = begin; i < end; ++i) {
    T d = sign * g[i];
    d = decays(d + decay * p[i], d);
    const T squares = sum[i] + d * d;
    sum[i] = squares;
    p[i] = p[i] + rate * d / (std::sqrt(squares) + eps);
  }
}

}  // namespace

template <class T>
void sgd_step(const SgdStep& s, std::span<const StepArrays> arrays) {
  const bool descends = !s.maximize && s.weight_decay == 0, options = s.first || s.nesterov || !descends;
  Range range = range_of<SgdStep, sgd_range<true, true, T>>;
  if (s.momentum == 0)
    range = descends ? range_of<SgdStep, sgd_range<false, false, T>> : range_of<SgdStep, sgd_range<false, true, T>>;
  else if (!options)
    range = range_of<SgdStep, sgd_range<true, false, T>>;
  for_each_range(arrays, 4, &s, range);
}

template <class T>
void adam_step(const AdamStep& s, std::span<const StepArrays> arrays) {
  using Numbers = AdamNumbers<T>;
  const Numbers numbers(s);
  Range range =
      s.amsgrad ? range_of<Numbers, adam_range<true, true, T>> : range_of<Numbers, adam_range<false, true, T>>;
  if constexpr (kHasPlain)
    if (!s.amsgrad && !s.maximize && !numbers.decays.is_first() && numbers.near_old.is_first())
      range = range_of<Numbers, adam_range<false, false, T>>;
  for_each_range(arrays, 6, &numbers, range);
}

template <class T>
void rmsprop_step(const RmspropStep& s, std::span<const StepArrays> arrays) {
  using Numbers = RmspropNumbers<T>;
  const Numbers numbers(s);
  const bool moves = s.momentum > 0;
  Range range =
      moves ? range_of<Numbers, rmsprop_range<false, true, T>> : range_of<Numbers, rmsprop_range<false, false, T>>;
  if (s.centered)
    range = moves ? range_of<Numbers, rmsprop_range<true, true, T>> : range_of<Numbers, rmsprop_range<true, false, T>>;
  for_each_range(arrays, 6, &numbers, range);
}

template <class T>
void adagrad_step(const AdagradStep& s, std::span<const StepArrays> arrays) {
  for_each_range(arrays, 6, &s, range_of<AdagradStep, adagrad_range<T>>);
}

template <class T>
double sum_of_squares(const T* g, std::int64_t n) {
  return sum_of_blocks(n, 1, [g](std::int64_t first, std::int64_t size) {
    return sum_of(
        size, [from = g + first](auto at) __attribute__((always_inline)) {
          const auto v = at(from);
          return v * v;
        });
  });
}

#define TAPER_INSTANTIATE_OPTIMIZERS(T)                                           \
  template void sgd_step<T>(const SgdStep&, std::span<const StepArrays>);         \
  template void adam_step<T>(const AdamStep&, std::span<const StepArrays>);       \
  template void rmsprop_step<T>(const RmspropStep&, std::span<const StepArrays>); \
  template void adagrad_step<T>(const AdagradStep&, std::span<const StepArrays>); \
  template double sum_of_squares<T>(const T*, std::int64_t)
TAPER_INSTANTIATE_OPTIMIZERS(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_OPTIMIZERS(double);
#endif

}  // namespace taper::kernels
