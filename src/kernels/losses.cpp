#include "kernels/losses.hpp"

#include <algorithm>

#include "kernels/elementwise.hpp"
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

/// y_i = scale times what a loss changes by with its x or its t, for elements [first, last), the first of them at `y`.
template <class T>
using Slopes = void (*)(const void* loss, const T* x, const T* t, T scale, std::int64_t first, std::int64_t last, T* y);

/// v_i = slope_i dy_i, or added.
template <class T>
[[gnu::noinline]] void write_slopes(Slopes<T> slopes, const void* loss, const LossGrad<T>& dy, const T* x, const T* t,
                                    std::int64_t n, std::int64_t cost, T* v, bool add) {
  parallel_for(n, cost, [=](std::int64_t first, std::int64_t last) {
    const T scale = dy.reduced ? T(dy.at(0)) : T(dy.scale);
    if (dy.reduced && !add) return slopes(loss, x, t, scale, first, last, v + first);
    constexpr std::int64_t kStep = 256;
    T slope[kStep];
    for (std::int64_t i = first; i < last; i += kStep) {
      const std::int64_t end = std::min(i + kStep, last);
      slopes(loss, x, t, scale, i, end, slope);
      for (AnyPack at{i, end}; at; at.next<T>()) {
        const Vector<T> d = AnyPack{at.i - i, end - i}(slope), whole = dy.reduced ? d : d * at(dy.dy);
        at.store(v, add ? at(v) + whole : whole);
      }
    }
  });
}

/// Elements [i, i + lanes) of values that repeat after `length`; ones where there are none.
template <class T>
[[gnu::noinline]] Vector<T> repeated(const T* values, std::int64_t length, std::int64_t i) {
  if (values == nullptr || length == 1) return pack_of(values == nullptr ? T(1) : values[0]);
  T lanes[kLanes<T>];
  i %= length;
  for (T& lane : lanes) {
    lane = values[i];
    if (++i == length) i = 0;
  }
  return WholePack{0}(lanes);
}

/// log(1 + e^-x)
template <class V>
V log1p_exp_minus(V x) {
  return vector_log1p_fraction(vector_exp_negative(-magnitude_of(x))) + (x < 0 ? -x : V{});
}

constexpr int kBceCost = 40;

/// loss_i = w ((1 - t_i) x_i + (1 + (pw - 1) t_i) log(1 + e^-x_i)) of the elements [first, last), the first of them at
/// `loss`.
template <class T>
[[gnu::flatten, gnu::noinline]] void bce(const BceWithLogits<T>& p, const T* x, const T* t, std::int64_t first,
                                         std::int64_t last, T* loss) {
  for (AnyPack at{first, last}; at; at.next<T>()) {
    const Vector<T> to_one = at(t), logit = at(x);
    const Vector<T> positive = 1 + (repeated(p.pos_weight, p.pos_weight_length, at.i) - 1) * to_one;
    const Vector<T> value = (1 - to_one) * logit + positive * log1p_exp_minus(logit);
    AnyPack{at.i - first, last - first}.store(loss, value * repeated(p.weight, p.weight_length, at.i));
  }
}

/// What a loss changes by with x_i: w ((1 - t_i) - (1 + (pw - 1) t_i) / (1 + e^x_i)).
template <class T>
[[gnu::flatten, gnu::noinline]] void bce_slopes(const void* loss, const T* x, const T* t, T scale, std::int64_t first,
                                                std::int64_t last, T* y) {
  const auto& p = *static_cast<const BceWithLogits<T>*>(loss);
  for (AnyPack at{first, last}; at; at.next<T>()) {
    const Vector<T> to_one = at(t), positive = 1 + (repeated(p.pos_weight, p.pos_weight_length, at.i) - 1) * to_one;
    const Vector<T> slope = (1 - to_one) - positive / (1 + vector_exp(at(x)));
    AnyPack{at.i - first, last - first}.store(y, slope * repeated(p.weight, p.weight_length, at.i) * scale);
  }
}

/// With t_i, whatever that is: w ((pw - 1) log(1 + e^-x_i) - x_i).
template <class T>
[[gnu::flatten, gnu::noinline]] void bce_target_slopes(const void* loss, const T* x, const T*, T scale,
                                                       std::int64_t first, std::int64_t last, T* y) {
  const auto& p = *static_cast<const BceWithLogits<T>*>(loss);
  for (AnyPack at{first, last}; at; at.next<T>()) {
    const Vector<T> extra = repeated(p.pos_weight, p.pos_weight_length, at.i) - 1, logit = at(x);
    const Vector<T> slope = extra * log1p_exp_minus(logit) - logit;
    AnyPack{at.i - first, last - first}.store(y, slope * repeated(p.weight, p.weight_length, at.i) * scale);
  }
}

/// f'(x_i - t_i)
template <class L, class T>
[[gnu::noinline]] void pair_slopes(const void* loss, const T* x, const T* t, T scale, std::int64_t first,
                                   std::int64_t last, T* y) {
  const L l = *static_cast<const L*>(loss);
  x += first, t += first;
  for (AnyPack at{0, last - first}; at; at.next<T>()) at.store(y, slope_of(l, at(x) - at(t)) * scale);
}

/// loss_i = f(x_i - t_i)
template <class L, class T>
[[gnu::noinline]] void pair_loss_range(const void* function, const T* x, const T* t, T* loss, std::int64_t n) {
  const L l = *static_cast<const L*>(function);
  for (AnyPack at{0, n}; at; at.next<T>()) at.store(loss, value_of(l, at(x) - at(t)));
}

}  // namespace

template <class L, class T>
void pair_loss(const L& l, const T* x, const T* t, T* loss, std::int64_t n) {
  map_ranges<T>(n, 1, x, t, loss, &l, pair_loss_range<L, T>);
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
  write_slopes<T>(pair_slopes<L, T>, &l, dy, x, t, n, 2, dx, add);
}

template <class T>
void bce_with_logits(const BceWithLogits<T>& p, const T* x, const T* t, T* loss, std::int64_t n) {
  parallel_for(n, kBceCost, [=](std::int64_t first, std::int64_t last) { bce(p, x, t, first, last, loss + first); });
}

template <class T>
double bce_with_logits_sum(const BceWithLogits<T>& p, const T* x, const T* t, std::int64_t n) {
  return sum_of_blocks(n, kBceCost, [=](std::int64_t first, std::int64_t size) {
    constexpr std::int64_t kStep = 256;
    T losses[kStep];
    double sum = 0;
    for (std::int64_t i = 0; i < size; i += kStep) {
      const std::int64_t count = std::min(kStep, size - i);
      bce(p, x, t, first + i, first + i + count, losses);
      sum += sum_row(losses, count);
    }
    return sum;
  });
}

template <class T>
void bce_with_logits_grad(const BceWithLogits<T>& p, const LossGrad<T>& dy, const T* x, const T* t, T* dx,
                          std::int64_t n, bool add) {
  write_slopes<T>(bce_slopes<T>, &p, dy, x, t, n, kBceCost, dx, add);
}

template <class T>
void bce_with_logits_target_grad(const BceWithLogits<T>& p, const LossGrad<T>& dy, const T* x, T* dt, std::int64_t n,
                                 bool add) {
  write_slopes<T>(bce_target_slopes<T>, &p, dy, x, x, n, kBceCost, dt, add);
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
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_LOSSES(double);
#endif

}  // namespace taper::kernels
