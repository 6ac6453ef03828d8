#include "kernels/losses.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/packs.hpp"
#include "kernels/parallel.hpp"
#include "kernels/sum_blocks.hpp"
#include "kernels/sum_run.hpp"
#include "kernels/vector_math.hpp"

namespace taper::kernels {

namespace {

// The losses of pairs and their slopes at d = x - t, for numbers or for vectors of them.

template <class V>
V absolute(V d) {
  return d <= 0 ? 0 - d : d;
}
template <class V>
V sign(V d) {
  const V zero{}, one = zero + 1;
  return (d > 0 ? one : zero) - (d < 0 ? one : zero);
}

template <class V>
V value_of(const Mse&, V d) {
  return d * d;
}
template <class V>
V slope_of(const Mse&, V d) {
  return 2 * d;
}

template <class V>
V value_of(const L1&, V d) {
  return absolute(d);
}
template <class V>
V slope_of(const L1&, V d) {
  return sign(d);
}

template <class V>
V value_of(const SmoothL1& l, V d) {
  const auto beta = static_cast<Element<V>>(l.beta), half = static_cast<Element<V>>(0.5 * l.beta);
  const V z = absolute(d);
  return z < beta ? z * z / (2 * beta) : z - half;
}
template <class V>
V slope_of(const SmoothL1& l, V d) {
  const auto beta = static_cast<Element<V>>(l.beta);
  return absolute(d) < beta ? d / beta : sign(d);
}

template <class V>
V value_of(const Huber& l, V d) {
  const auto delta = static_cast<Element<V>>(l.delta), half = static_cast<Element<V>>(0.5 * l.delta);
  const V z = absolute(d);
  return z <= delta ? z * z / 2 : delta * (z - half);
}
template <class V>
V slope_of(const Huber& l, V d) {
  const auto delta = static_cast<Element<V>>(l.delta);
  return absolute(d) <= delta ? d : delta * sign(d);
}

/// v[i] = slope(i) dy_i for every i, or added.
template <class T, class Slope>
void write(const LossGrad<T>& dy, std::int64_t n, std::int64_t cost, T* v, bool add, const Slope& slope) {
  parallel_for(n, cost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const T d = T(static_cast<double>(slope(i)) * dy.at(i));
      v[i] = add ? v[i] + d : d;
    }
  });
}

template <class T>
T repeated(const T* values, std::int64_t length, std::int64_t i) {
  return values == nullptr ? T(1) : values[length == 1 ? 0 : i % length];
}

/// log(1 + e^-x)
template <class T>
T log1p_exp_minus(T x) {
  return std::log1p(std::exp(-std::abs(x))) + std::max(-x, T(0));
}

constexpr int kBceCost = 40;

/// w ((1 - t) x + (1 + (pw - 1) t) log(1 + e^-x)) of element i.
template <class T>
T bce_at(const BceWithLogits<T>& p, T x, T t, std::int64_t i) {
  const T positive = 1 + (repeated(p.pos_weight, p.pos_weight_length, i) - 1) * t;
  return ((1 - t) * x + positive * log1p_exp_minus(x)) * repeated(p.weight, p.weight_length, i);
}

}  // namespace

template <class L, class T>
void pair_loss(const L& l, const T* x, const T* t, T* loss, std::int64_t n) {
  // loss_i = f(x_i - t_i)
  parallel_for(n, 1, [=](std::int64_t first, std::int64_t last) {
    for_each_pack<T>(
        last - first, [ =, a = x + first, b = t + first, to = loss + first ](auto at)
                          __attribute__((always_inline)) { at.store(to, value_of(l, at(a) - at(b))); });
  });
}

template <class L, class T>
double pair_loss_sum(const L& l, const T* x, const T* t, std::int64_t n) {
  return sum_of_blocks(n, 2, [=](std::int64_t first, std::int64_t size) {
    double sums[1];
    sum_packs<T, 1, 1>(
        size, sums, [ =, a = x + first, b = t + first ](auto at, auto& sum) __attribute__((always_inline)) {
          sum[0] += value_of(l, at(a) - at(b));
        });
    return sums[0];
  });
}

template <class T>
double sum_losses(const T* loss, std::int64_t n) {
  return sum_run(loss, n);
}

template <class L, class T>
void pair_loss_grad(const L& l, const LossGrad<T>& dy, const T* x, const T* t, T* dx, std::int64_t n, bool add) {
  // dx_i = f'(x_i - t_i) dy_i
  parallel_for(n, 2, [=](std::int64_t first, std::int64_t last) {
    const Pack<T> one = pack_of(dy.reduced ? T(dy.at(0)) : T(dy.scale));
    store_packs(
        dx + first, last - first, add,
        [ =, a = x + first, b = t + first, each = dy.dy + first ](auto at) __attribute__((always_inline)) {
          const Pack<T> d = slope_of(l, at(a) - at(b)) * one;
          return dy.reduced ? d : d * at(each);
        });
  });
}

template <class T>
void bce_with_logits(const BceWithLogits<T>& p, const T* x, const T* t, T* loss, std::int64_t n) {
  // loss_i = w ((1 - t_i) x_i + (1 + (pw - 1) t_i) log(1 + e^-x_i))
  parallel_for(n, kBceCost, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) loss[i] = bce_at(p, x[i], t[i], i);
  });
}

template <class T>
double bce_with_logits_sum(const BceWithLogits<T>& p, const T* x, const T* t, std::int64_t n) {
  return sum_blocks(n, kBceCost, [=](std::int64_t i) { return bce_at(p, x[i], t[i], i); });
}

template <class T>
void bce_with_logits_grad(const BceWithLogits<T>& p, const LossGrad<T>& dy, const T* x, const T* t, T* dx,
                          std::int64_t n, bool add) {
  // dx_i = w ((1 - t_i) - (1 + (pw - 1) t_i) / (1 + e^x_i)) dy_i
  write(dy, n, kBceCost, dx, add, [=](std::int64_t i) {
    const T positive = 1 + (repeated(p.pos_weight, p.pos_weight_length, i) - 1) * t[i];
    return ((1 - t[i]) - positive / (1 + std::exp(x[i]))) * repeated(p.weight, p.weight_length, i);
  });
}

template <class T>
void bce_with_logits_target_grad(const BceWithLogits<T>& p, const LossGrad<T>& dy, const T* x, T* dt, std::int64_t n,
                                 bool add) {
  // dt_i = w ((pw - 1) log(1 + e^-x_i) - x_i) dy_i
  write(dy, n, kBceCost, dt, add, [=](std::int64_t i) {
    const T extra = repeated(p.pos_weight, p.pos_weight_length, i) - 1;
    return (extra * log1p_exp_minus(x[i]) - x[i]) * repeated(p.weight, p.weight_length, i);
  });
}

#define TAPER_INSTANTIATE_PAIR(L, T)                                               \
  template void pair_loss<L, T>(const L&, const T*, const T*, T*, std::int64_t);   \
  template double pair_loss_sum<L, T>(const L&, const T*, const T*, std::int64_t); \
  template void pair_loss_grad<L, T>(const L&, const LossGrad<T>&, const T*, const T*, T*, std::int64_t, bool)
#define TAPER_INSTANTIATE_LOSSES(T)                                                                          \
  TAPER_INSTANTIATE_PAIR(Mse, T);                                                                            \
  TAPER_INSTANTIATE_PAIR(L1, T);                                                                             \
  TAPER_INSTANTIATE_PAIR(SmoothL1, T);                                                                       \
  TAPER_INSTANTIATE_PAIR(Huber, T);                                                                          \
  template void bce_with_logits<T>(const BceWithLogits<T>&, const T*, const T*, T*, std::int64_t);           \
  template double sum_losses<T>(const T*, std::int64_t);                                                     \
  template double bce_with_logits_sum<T>(const BceWithLogits<T>&, const T*, const T*, std::int64_t);         \
  template void bce_with_logits_grad<T>(const BceWithLogits<T>&, const LossGrad<T>&, const T*, const T*, T*, \
                                        std::int64_t, bool);                                                 \
  template void bce_with_logits_target_grad<T>(const BceWithLogits<T>&, const LossGrad<T>&, const T*, T*,    \
                                               std::int64_t, bool)
TAPER_INSTANTIATE_LOSSES(float);
TAPER_INSTANTIATE_LOSSES(double);

}  // namespace taper::kernels
