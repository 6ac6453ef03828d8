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
  T top[kKept];
  log_sums(kWidens<T> ? side_by_side(g) : g, x, top, lse);
  for (std::int64_t c = 0; c < g.width; ++c) lse[c] += static_cast<double>(top[c]);
}

/// The softmax of one element.
template <class T>
double probability_of(T x, double lse) {
  return static_cast<double>(vector_exp(T(static_cast<double>(x) - lse)));
}

/// all_c += sum_j w_j (lse_c - x_j) for the rows of a group.
template <class T>
[[gnu::noinline]] void add_surprises(const SoftmaxGroup& g, const T* x, const T* weight, const double* lse,
                                     double* all) {
  constexpr bool kWide = kVectorWidth > 16;  // the baseline is kept small
  if constexpr (kWide)
    if (g.contiguous()) {
      for (std::int64_t c = 0; c < g.width; ++c)
        all[c] += sum_of(
            g.n, [ =, log = lse[c], from = x + g.begin(c) ](auto at) __attribute__((always_inline)) {
              const auto surprise = log - at(from);
              return weight == nullptr ? surprise : surprise * at(weight);
            });
      return;
    }
  for (std::int64_t j = 0; j < g.n; ++j) {
    const double w = weight_of(weight, j);
    const T* const from = x + g.at(j, 0);
    const std::int64_t pitch = kWide ? 1 : g.pitch;
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t c = 0; c < g.width; ++c) all[c] += w * (lse[c] - static_cast<double>(from[c * pitch]));
  }
}

/// What makes the gradients of a row: dx_j = scale e^(x_j - whole - rest) - less w_j; 0 if it is ignored.
template <class T>
struct ClassSlopes {
  T whole[kSoftmaxRows], rest[kSoftmaxRows], scale[kSoftmaxRows], less[kSoftmaxRows], ignored[kSoftmaxRows];
};

/// The gradients of a group but for what the targets add; `weight` may be null for ones.
template <class T>
[[gnu::noinline]] void class_slopes(const SoftmaxGroup& g, const ClassSlopes<T>& s, const T* x, const T* weight, T* dx,
                                    bool add) {
  const bool along_row = g.contiguous();
  const std::int64_t lines = along_row ? g.width : g.n, length = along_row ? g.n : g.width;
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t begin = along_row ? g.begin(line) : g.at(line, 0);
    for (AnyPack at{0, length}; at; at.next<T>()) {
      const auto its = [&](const T* v) { return along_row ? pack_of(v[line]) : at(v); };
      const Vector<T> w = weight == nullptr ? pack_of(T(1)) : along_row ? at(weight) : pack_of(weight[line]);
      const Vector<T> e = vector_exp((at(x + begin) - its(s.whole)) - its(s.rest));
      const Vector<T> d = its(s.ignored) != 0 ? Vector<T>{} : e * its(s.scale) - w * its(s.less);
      at.store(dx + begin, add ? at(dx + begin) + d : d);
    }
  }
}

}  // namespace

std::int64_t find_bad_target(const std::int64_t* target, std::int64_t count, std::int64_t classes,
                             std::int64_t ignore_index) {
  // The sign of t or classes - 1 - t is set where t is out of range.
  std::uint64_t signs = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    const auto t = static_cast<std::uint64_t>(target[r]), bad = t | (static_cast<std::uint64_t>(classes) - 1 - t);
    signs |= target[r] == ignore_index ? 0 : bad;
  }
  for (std::int64_t r = 0; static_cast<std::int64_t>(signs) < 0 && r < count; ++r)
    if (target[r] != ignore_index && (target[r] < 0 || target[r] >= classes)) return r;
  return -1;
}

template <class T>
double target_weight(const ClassLoss& p, const std::int64_t* target, const T* weight) {
  if (weight == nullptr) {
    std::int64_t kept = 0;
    for (std::int64_t r = 0; r < p.rows(); ++r) kept += target[r] != p.ignore_index;
    return static_cast<double>(kept);
  }
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
    double all[kSoftmaxRows] = {};
    // all = sum_j w_j (lse - x_j)
    if (smooth > 0) add_surprises(group, x, weight, lse + row, all);
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      const bool ignored = t == p.ignore_index;
      const double hit = ignored ? 0 : (1 - smooth) * weight_of(weight, t);
      const double surprise = lse[row + c] - static_cast<double>(x[group.at(ignored ? 0 : t, c)]);
      loss[row + c] = ignored ? T(0) : T(hit * surprise + each * all[c]);
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
    ClassSlopes<T> s{};
    T e[kSoftmaxRows];
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      const bool ignored = t == p.ignore_index;
      const double g = ignored ? 0 : dy.at(row + c), log = lse[row + c];
      const double hit = ignored ? 0 : (1 - smooth) * weight_of(weight, t);
      s.whole[c] = T(log);
      s.rest[c] = T(log - static_cast<double>(s.whole[c]));
      s.scale[c] = T((hit + spread) * g);
      s.less[c] = T(each * g);
      s.ignored[c] = ignored;
      e[c] = T(static_cast<double>(x[group.at(ignored ? 0 : t, c)]) - log);
    }
    // dx_t = (hit (softmax_t - 1) + spread softmax_t - s / classes w_t) dy
    for (AnyPack at{0, width}; at; at.next<T>()) at.store(e, vector_exp(at(e)));
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t t = target[row + c];
      if (t == p.ignore_index) continue;
      const double w = weight_of(weight, t), softmax = static_cast<double>(e[c]);
      const double slope = (1 - smooth) * w * (softmax - 1) + spread * softmax - each * w;
      const T d = T(slope * dy.at(row + c));
      e[c] = add ? dx[group.at(t, c)] + d : d;
    }
    // dx_j = ((hit + spread) softmax_j - s / classes w_j) dy for the others
    class_slopes(group, s, x, smooth > 0 ? weight : nullptr, dx, add);
    for (std::int64_t c = 0; c < width; ++c)
      if (const std::int64_t t = target[row + c]; t != p.ignore_index) dx[group.at(t, c)] = e[c];
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
    if (!add) {
      // All at once, or those beside each other.
      const bool contiguous = group.contiguous();
      for (std::int64_t j = 0; j < (contiguous ? 1 : p.classes); ++j)
        std::fill_n(dx + group.at(j, 0), contiguous ? width * p.classes : width, T(0));
    }
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
