#include "kernels/cross_entropy.hpp"

#include "kernels/softmax_driver.hpp"

namespace taper::kernels {

namespace {

template <class T>
double weight_of(const T* weight, std::int64_t c) {
  return weight == nullptr ? 1.0 : static_cast<double>(weight[c]);
}

template <class T>
double total_weight(const T* weight, std::int64_t classes) {
  double total = 0;
  for (std::int64_t c = 0; c < classes; ++c) total += weight_of(weight, c);
  return total;
}

/// lse_c = max + log(sum e^(x_j - max)) of the rows of a group at x.
template <class T>
void log_sum_exp(const T* x, std::int64_t n, std::int64_t inner, std::int64_t width, double* lse) {
  T top[kSoftmaxColumns];
  row_maximum(x, n, inner, width, top);
  if (inner == 1 && n >= kLongRow) {
    lse[0] = static_cast<double>(top[0]) + std::log(sum_exp<T>(x, n, top[0], nullptr));
    return;
  }
  for (std::int64_t c = 0; c < width; ++c) lse[c] = 0;
  for_each_exp<T>(
      0, n, inner, width, [&](std::int64_t i, std::int64_t c) { return x[i] - top[c]; },
      [&](std::int64_t, std::int64_t c, std::int64_t, T e) { lse[c] += static_cast<double>(e); });
  for (std::int64_t c = 0; c < width; ++c) lse[c] = static_cast<double>(top[c]) + std::log(lse[c]);
}

/// The softmax of one element.
template <class T>
double probability_of(T x, double lse) {
  return static_cast<double>(vector_exp(T(static_cast<double>(x) - lse)));
}

}  // namespace

std::int64_t find_bad_target(const std::int64_t* target, std::int64_t count, std::int64_t classes,
                             std::int64_t ignore_index) {
  for (std::int64_t r = 0; r < count; ++r)
    if (target[r] != ignore_index && (target[r] < 0 || target[r] >= classes)) return r;
  return -1;
}

template <class T>
double target_weight(const ClassLoss& p, const std::int64_t* target, const T* weight) {
  double total = 0;
  for (std::int64_t r = 0; r < p.rows(); ++r)
    if (target[r] != p.ignore_index) total += weight_of(weight, target[r]);
  return total;
}

template <class T>
void cross_entropy(const ClassLoss& p, const T* x, const std::int64_t* target, const T* weight, T* loss, double* lse) {
  const double smooth = p.label_smoothing, each = smooth / static_cast<double>(p.classes);
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](std::int64_t at, std::int64_t width, std::int64_t row) {
    log_sum_exp(x + at, p.classes, p.inner, width, lse + row);
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      if (t == p.ignore_index) {
        loss[row + c] = 0;
        continue;
      }
      // surprise_j = lse - x_j
      const auto surprise = [&](std::int64_t j) { return lse[row + c] - static_cast<double>(x[at + j * p.inner + c]); };
      double value = (1 - smooth) * weight_of(weight, t) * surprise(t);
      if (smooth > 0) {
        double all = 0;
        for (std::int64_t j = 0; j < p.classes; ++j) all += weight_of(weight, j) * surprise(j);
        value += each * all;
      }
      loss[row + c] = T(value);
    }
  });
}

template <class T>
void cross_entropy_grad(const ClassLoss& p, const LossGrad<T>& dy, const T* x, const std::int64_t* target,
                        const T* weight, const double* lse, T* dx, bool add) {
  const double smooth = p.label_smoothing, each = smooth / static_cast<double>(p.classes);
  const double spread = smooth > 0 ? each * total_weight(weight, p.classes) : 0;
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](std::int64_t at, std::int64_t width, std::int64_t row) {
    double mass[kSoftmaxColumns], hit[kSoftmaxColumns], g[kSoftmaxColumns];
    for (std::int64_t c = 0; c < width; ++c) {
      const bool ignored = target[row + c] == p.ignore_index;
      hit[c] = ignored ? 0 : (1 - smooth) * weight_of(weight, target[row + c]);
      mass[c] = hit[c] + spread;
      g[c] = ignored ? 0 : dy.at(row + c);
    }
    if (p.inner == 1 && smooth == 0) {
      const std::int64_t t = target[row];
      T* const to = dx + at;
      if (t == p.ignore_index) return add ? void() : void(std::fill_n(to, p.classes, T(0)));
      const double scale = mass[0] * g[0], shift = lse[row];
      const T d = T((mass[0] * probability_of(x[at + t], shift) - hit[0]) * g[0]), value = add ? to[t] + d : d;
      // dx_j = hit (softmax_j - [j = t]) dy
      store_run(to, p.classes, add,
                [=, from = x + at](std::int64_t j) { return scale * probability_of(from[j], shift); });
      to[t] = value;
      return;
    }
    // dx_j = ((hit + spread) softmax_j - hit [j = t] - s / classes w_j) dy
    for (std::int64_t j = 0; j < p.classes; ++j) {
      const double part = smooth > 0 ? each * weight_of(weight, j) : 0;
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = at + j * p.inner + c, t = target[row + c];
        const double slope = mass[c] * probability_of(x[i], lse[row + c]) - (j == t ? hit[c] : 0) - part;
        const T d = t == p.ignore_index ? T(0) : T(slope * g[c]);
        dx[i] = add ? dx[i] + d : d;
      }
    }
  });
}

template <class T>
void cross_entropy_probabilities(const ClassLoss& p, const T* x, const T* probability, const T* weight, T* loss,
                                 double* lse) {
  const double smooth = p.label_smoothing, each = smooth / static_cast<double>(p.classes);
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](std::int64_t at, std::int64_t width, std::int64_t row) {
    log_sum_exp(x + at, p.classes, p.inner, width, lse + row);
    double sum[kSoftmaxColumns] = {};
    // loss = sum_j w_j q_j (lse - x_j)
    for (std::int64_t j = 0; j < p.classes; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = at + j * p.inner + c;
        const double q = (1 - smooth) * static_cast<double>(probability[i]) + each;
        sum[c] += weight_of(weight, j) * q * (lse[row + c] - static_cast<double>(x[i]));
      }
    for (std::int64_t c = 0; c < width; ++c) loss[row + c] = T(sum[c]);
  });
}

template <class T>
void cross_entropy_probabilities_grad(const ClassLoss& p, const LossGrad<T>& dy, const T* x, const T* probability,
                                      const T* weight, const double* lse, T* dx, bool add_dx, T* dq, bool add_dq) {
  const double smooth = p.label_smoothing, each = smooth / static_cast<double>(p.classes);
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](std::int64_t at, std::int64_t width, std::int64_t row) {
    const auto wq = [&](std::int64_t j, std::int64_t i) {
      return weight_of(weight, j) * ((1 - smooth) * static_cast<double>(probability[i]) + each);
    };
    double mass[kSoftmaxColumns] = {};
    // mass = sum_j w_j q_j
    for (std::int64_t j = 0; j < p.classes; ++j)
      for (std::int64_t c = 0; c < width; ++c) mass[c] += wq(j, at + j * p.inner + c);
    // dx_j = (mass softmax_j - w_j q_j) dy,  dq_j = (1 - s) w_j (lse - x_j) dy
    for (std::int64_t j = 0; j < p.classes; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = at + j * p.inner + c;
        const double g = dy.at(row + c);
        if (dx != nullptr) {
          const T d = T((mass[c] * probability_of(x[i], lse[row + c]) - wq(j, i)) * g);
          dx[i] = add_dx ? dx[i] + d : d;
        }
        if (dq != nullptr) {
          const T d = T((1 - smooth) * weight_of(weight, j) * (lse[row + c] - static_cast<double>(x[i])) * g);
          dq[i] = add_dq ? dq[i] + d : d;
        }
      }
  });
}

template <class T>
void nll(const ClassLoss& p, const T* x, const std::int64_t* target, const T* weight, T* loss) {
  // loss = -w_t x_t
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](std::int64_t at, std::int64_t width, std::int64_t row) {
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      const bool ignored = t == p.ignore_index;
      loss[row + c] = ignored ? T(0) : T(-weight_of(weight, t) * static_cast<double>(x[at + t * p.inner + c]));
    }
  });
}

template <class T>
void nll_grad(const ClassLoss& p, const LossGrad<T>& dy, const std::int64_t* target, const T* weight, T* dx, bool add) {
  // dx_t = -w_t dy, the others 0
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](std::int64_t at, std::int64_t width, std::int64_t row) {
    if (!add)
      for (std::int64_t j = 0; j < p.classes; ++j)
        for (std::int64_t c = 0; c < width; ++c) dx[at + j * p.inner + c] = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      if (t != p.ignore_index) dx[at + t * p.inner + c] += T(-weight_of(weight, t) * dy.at(row + c));
    }
  });
}

#define TAPER_INSTANTIATE_CLASS_LOSS(T)                                                                              \
  template double target_weight<T>(const ClassLoss&, const std::int64_t*, const T*);                                 \
  template void cross_entropy<T>(const ClassLoss&, const T*, const std::int64_t*, const T*, T*, double*);            \
  template void cross_entropy_grad<T>(const ClassLoss&, const LossGrad<T>&, const T*, const std::int64_t*, const T*, \
                                      const double*, T*, bool);                                                      \
  template void cross_entropy_probabilities<T>(const ClassLoss&, const T*, const T*, const T*, T*, double*);         \
  template void cross_entropy_probabilities_grad<T>(const ClassLoss&, const LossGrad<T>&, const T*, const T*,        \
                                                    const T*, const double*, T*, bool, T*, bool);                    \
  template void nll<T>(const ClassLoss&, const T*, const std::int64_t*, const T*, T*);                               \
  template void nll_grad<T>(const ClassLoss&, const LossGrad<T>&, const std::int64_t*, const T*, T*, bool)
TAPER_INSTANTIATE_CLASS_LOSS(float);
TAPER_INSTANTIATE_CLASS_LOSS(double);

}  // namespace taper::kernels
