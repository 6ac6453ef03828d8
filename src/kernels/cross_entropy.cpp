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

/// lse_c = max + log(sum e^(x_j - max)) of the rows of a group.
template <class T>
void log_sum_exp(const SoftmaxGroup& g, const T* x, double* lse) {
  T top[kSoftmaxRows];
  log_sums(g, x, top, lse);
  for (std::int64_t c = 0; c < g.width; ++c) lse[c] += static_cast<double>(top[c]);
}

/// The softmax of one element.
template <class T>
double probability_of(T x, double lse) {
  return static_cast<double>(vector_exp(T(static_cast<double>(x) - lse)));
}

/// y_j = scale e^(x_j - lse) over a contiguous row, or added to it.
template <class T>
void scaled_softmax(const T* x, std::int64_t n, double lse, T scale, T* y, bool add) {
  const T whole = T(lse), rest = T(lse - static_cast<double>(whole));
  store_packs(
      y, n, add, [=](auto at) __attribute__((always_inline)) { return vector_exp((at(x) - whole) - rest) * scale; });
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
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](const SoftmaxGroup& group) {
    const std::int64_t width = group.width, row = group.row;
    log_sum_exp(group, x, lse + row);
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      if (t == p.ignore_index) {
        loss[row + c] = 0;
        continue;
      }
      // surprise_j = lse - x_j
      const auto surprise = [&](std::int64_t j) { return lse[row + c] - static_cast<double>(x[group.at(j, c)]); };
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
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](const SoftmaxGroup& group) {
    const std::int64_t width = group.width, row = group.row;
    double mass[kSoftmaxRows], hit[kSoftmaxRows], g[kSoftmaxRows];
    for (std::int64_t c = 0; c < width; ++c) {
      const bool ignored = target[row + c] == p.ignore_index;
      hit[c] = ignored ? 0 : (1 - smooth) * weight_of(weight, target[row + c]);
      mass[c] = hit[c] + spread;
      g[c] = ignored ? 0 : dy.at(row + c);
    }
    if (group.contiguous() && smooth == 0) {
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t begin = group.begin(c), t = target[row + c];
        if (t == p.ignore_index) {
          if (!add) std::fill_n(dx + begin, p.classes, T(0));
          continue;
        }
        const T d = T(hit[c] * (probability_of(x[begin + t], lse[row + c]) - 1) * g[c]);
        const T value = add ? dx[begin + t] + d : d;
        // dx_j = hit (softmax_j - [j = t]) dy
        scaled_softmax(x + begin, p.classes, lse[row + c], T(hit[c] * g[c]), dx + begin, add);
        dx[begin + t] = value;
      }
      return;
    }
    // dx_j = ((hit + spread) softmax_j - hit [j = t] - s / classes w_j) dy
    for (std::int64_t j = 0; j < p.classes; ++j) {
      const double part = smooth > 0 ? each * weight_of(weight, j) : 0;
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = group.at(j, c), t = target[row + c];
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
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](const SoftmaxGroup& group) {
    const std::int64_t width = group.width, row = group.row;
    log_sum_exp(group, x, lse + row);
    double sum[kSoftmaxRows] = {};
    // loss = sum_j w_j q_j (lse - x_j)
    for (std::int64_t j = 0; j < p.classes; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = group.at(j, c);
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
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](const SoftmaxGroup& group) {
    const std::int64_t width = group.width, row = group.row;
    const auto wq = [&](std::int64_t j, std::int64_t i) {
      return weight_of(weight, j) * ((1 - smooth) * static_cast<double>(probability[i]) + each);
    };
    double mass[kSoftmaxRows] = {};
    // mass = sum_j w_j q_j
    for (std::int64_t j = 0; j < p.classes; ++j)
      for (std::int64_t c = 0; c < width; ++c) mass[c] += wq(j, group.at(j, c));
    // dx_j = (mass softmax_j - w_j q_j) dy,  dq_j = (1 - s) w_j (lse - x_j) dy
    for (std::int64_t j = 0; j < p.classes; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = group.at(j, c);
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
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](const SoftmaxGroup& group) {
    const std::int64_t width = group.width, row = group.row;
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      const bool ignored = t == p.ignore_index;
      loss[row + c] = ignored ? T(0) : T(-weight_of(weight, t) * static_cast<double>(x[group.at(t, c)]));
    }
  });
}

template <class T>
void nll_grad(const ClassLoss& p, const LossGrad<T>& dy, const std::int64_t* target, const T* weight, T* dx, bool add) {
  // dx_t = -w_t dy, the others 0
  for_each_softmax_group(p.outer, p.classes, p.inner, [&](const SoftmaxGroup& group) {
    const std::int64_t width = group.width, row = group.row;
    if (!add)
      for (std::int64_t j = 0; j < p.classes; ++j)
        for (std::int64_t c = 0; c < width; ++c) dx[group.at(j, c)] = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      if (t != p.ignore_index) dx[group.at(t, c)] += T(-weight_of(weight, t) * dy.at(row + c));
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
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_CLASS_LOSS(double);
#endif

}  // namespace taper::kernels
