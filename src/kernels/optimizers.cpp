#include "kernels/optimizers.hpp"

#include <cmath>

#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sum_blocks.hpp"

namespace taper::kernels {

namespace {

template <class T>
T descent(T g, bool maximize) {
  return maximize ? -g : g;
}

// The buffers of a step never overlap, which `ivdep` says: there are too many of them to be compared at run time.

template <bool kMomentum, class T>
void sgd_range(const SgdStep& s, T* p, const T* g, T* momentum, std::int64_t begin, std::int64_t end) {
  const T decay = T(s.weight_decay), mu = T(s.momentum), fresh = T(1 - s.dampening), rate = T(-s.lr);
  const bool decays = s.weight_decay != 0, first = s.first, nesterov = s.nesterov, maximize = s.maximize;
  // d = g + decay p,  m = mu m + (1 - dampening) d,  p = p - lr (nesterov ? d + mu m : m)
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = begin; i < end; ++i) {
    T d = descent(g[i], maximize);
    d = decays ? d + decay * p[i] : d;
    if constexpr (kMomentum) {
      const T m = first ? d : momentum[i] * mu + fresh * d;
      momentum[i] = m;
      d = nesterov ? d + mu * m : m;
    }
    p[i] = p[i] + rate * d;
  }
}

template <bool kAmsgrad, class T>
void adam_range(const AdamStep& s, T* p, const T* g, T* average, T* square, T* max_square, std::int64_t begin,
                std::int64_t end) {
  const double bias1 = 1 - std::pow(s.beta1, static_cast<double>(s.step));
  const double bias2 = 1 - std::pow(s.beta2, static_cast<double>(s.step));
  const T decay = T(s.decoupled ? 0 : s.weight_decay), keep = T(s.decoupled ? 1 - s.lr * s.weight_decay : 1);
  const T weight1 = T(1 - s.beta1), beta1 = T(s.beta1), beta2 = T(s.beta2), weight2 = T(1 - s.beta2);
  const T root2 = T(std::sqrt(bias2)), eps = T(s.eps), rate = T(-(s.lr / bias1));
  const bool decays = decay != 0, near_old = 1 - s.beta1 < 0.5, maximize = s.maximize;
  // m = m + (1 - beta1) (d - m),  v = beta2 v + (1 - beta2) d^2,  p = p - lr / bias1 m / (sqrt(v) / sqrt(bias2) + eps)
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t i = begin; i < end; ++i) {
    const T value = p[i] * keep;
    T d = descent(g[i], maximize);
    d = decays ? d + decay * value : d;
    // PyTorch's lerp starts from the nearer end.
    const T m = near_old ? average[i] + weight1 * (d - average[i]) : d - (d - average[i]) * beta1;
    const T v = square[i] * beta2 + weight2 * d * d;
    average[i] = m;
    square[i] = v;
    T largest = v;
    if constexpr (kAmsgrad) {
      // As torch.maximum: NaN wins.
      largest = max_square[i] > v || max_square[i] != max_square[i] ? max_square[i] : v;
      max_square[i] = largest;
    }
    p[i] = value + rate * m / (std::sqrt(largest) / root2 + eps);
  }
}

}  // namespace

template <class T>
void sgd_step(const SgdStep& s, T* p, const T* g, T* momentum, std::int64_t n) {
  parallel_for(n, 4, [=](std::int64_t first, std::int64_t last) {
    s.momentum == 0 ? sgd_range<false>(s, p, g, momentum, first, last)
                    : sgd_range<true>(s, p, g, momentum, first, last);
  });
}

template <class T>
void adam_step(const AdamStep& s, T* p, const T* g, T* average, T* square, T* max_square, std::int64_t n) {
  parallel_for(n, 16, [=](std::int64_t first, std::int64_t last) {
    max_square == nullptr ? adam_range<false>(s, p, g, average, square, max_square, first, last)
                          : adam_range<true>(s, p, g, average, square, max_square, first, last);
  });
}

template <class T>
void rmsprop_step(const RmspropStep& s, T* p, const T* g, T* square, T* average, T* buffer, std::int64_t n) {
  const T decay = T(s.weight_decay), mu = T(s.momentum), rate = T(-s.lr);
  const T alpha = T(s.alpha), fresh = T(1 - s.alpha), eps = T(s.eps);
  const bool decays = s.weight_decay != 0, moves = s.momentum > 0, centered = average != nullptr;
  // PyTorch's lerp starts from the nearer end.
  const bool near_old = 1 - s.alpha < 0.5;
  // v = alpha v + (1 - alpha) d^2,  a = alpha a + (1 - alpha) d,  b = mu b + d / (sqrt(v - a^2) + eps),  p = p - lr b
  parallel_for(n, 12, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T d = descent(g[i], s.maximize);
      if (decays) d = d + decay * p[i];
      T spread = square[i] * alpha + fresh * d * d;
      square[i] = spread;
      if (centered) {
        const T a = near_old ? average[i] + fresh * (d - average[i]) : d - (d - average[i]) * alpha;
        average[i] = a;
        spread = spread - a * a;
      }
      const T denominator = std::sqrt(spread) + eps;
      if (moves) {
        buffer[i] = buffer[i] * mu + d / denominator;
        p[i] = p[i] + rate * buffer[i];
      } else {
        p[i] = p[i] + rate * d / denominator;
      }
    }
  });
}

template <class T>
void adagrad_step(const AdagradStep& s, T* p, const T* g, T* sum, std::int64_t n) {
  const T decay = T(s.weight_decay), eps = T(s.eps);
  const T rate = T(-(s.lr / (1 + static_cast<double>(s.step - 1) * s.lr_decay)));
  const bool decays = s.weight_decay != 0;
  // s = s + d^2,  p = p - lr / (1 + (t - 1) lr_decay) d / (sqrt(s) + eps)
  parallel_for(n, 10, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T d = descent(g[i], s.maximize);
      if (decays) d = d + decay * p[i];
      sum[i] = sum[i] + d * d;
      p[i] = p[i] + rate * d / (std::sqrt(sum[i]) + eps);
    }
  });
}

template <class T>
double sum_of_squares(const T* g, std::int64_t n) {
  return sum_blocks(n, 1, [g](std::int64_t i) { return static_cast<double>(g[i]) * static_cast<double>(g[i]); });
}

#define TAPER_INSTANTIATE_OPTIMIZERS(T)                                                      \
  template void sgd_step<T>(const SgdStep&, T*, const T*, T*, std::int64_t);                 \
  template void adam_step<T>(const AdamStep&, T*, const T*, T*, T*, T*, std::int64_t);       \
  template void rmsprop_step<T>(const RmspropStep&, T*, const T*, T*, T*, T*, std::int64_t); \
  template void adagrad_step<T>(const AdagradStep&, T*, const T*, T*, std::int64_t);         \
  template double sum_of_squares<T>(const T*, std::int64_t)
TAPER_INSTANTIATE_OPTIMIZERS(float);
TAPER_INSTANTIATE_OPTIMIZERS(double);

}  // namespace taper::kernels
