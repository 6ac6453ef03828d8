#include "kernels/softmax.hpp"

#include "kernels/softmax_driver.hpp"

namespace taper::kernels {

namespace {

// One contiguous row each.

template <class T>
void softmax_row(const T* x, T* y, std::int64_t n) {
  const double scale = 1 / sum_exp(x, n, extreme_of<true>(x, n), y);
  // y_j = e^(x_j - max) / sum
  for (std::int64_t j = 0; j < n; ++j) y[j] = T(static_cast<double>(y[j]) * scale);
}

template <class T>
void softmax_grad_row(const T* dy, const T* y, T* dx, std::int64_t n, bool add) {
  const double dot = sum_of(
      n, [=](auto at) __attribute__((always_inline)) { return at(dy) * at(y); });
  // dx_j = y_j (dy_j - dot)
  store_run(dx, n, add, [=](std::int64_t j) { return static_cast<double>(y[j]) * (static_cast<double>(dy[j]) - dot); });
}

template <class T>
void log_softmax_row(const T* x, T* y, std::int64_t n) {
  const T top = extreme_of<true>(x, n);
  const double below = static_cast<double>(top), log_sum = std::log(sum_exp<T>(x, n, top, nullptr));
  // y_j = (x_j - max) - log(sum e^(x_j - max))
  TAPER_INDEPENDENT_TURNS
  for (std::int64_t j = 0; j < n; ++j) y[j] = T((static_cast<double>(x[j]) - below) - log_sum);
}

template <class T>
void log_softmax_grad_row(const T* dy, const T* y, T* dx, std::int64_t n, bool add) {
  const double sum = sum_of(
      n, [=](auto at) __attribute__((always_inline)) { return at(dy); });
  // dx_j = dy_j - e^(y_j) sum
  store_run(dx, n, add,
            [=](std::int64_t j) { return static_cast<double>(dy[j]) - static_cast<double>(vector_exp(y[j])) * sum; });
}

}  // namespace

template <class T>
void softmax(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  for_each_softmax_group(outer, n, inner, [=](std::int64_t at, std::int64_t width, std::int64_t) {
    if (inner == 1 && n >= kLongRow) return softmax_row(x + at, y + at, n);
    T top[kSoftmaxColumns];
    double sum[kSoftmaxColumns] = {};
    row_maximum(x + at, n, inner, width, top);
    // y_j = e^(x_j - max), sum = y_0 + y_1 + ...
    const auto below_top = [&](std::int64_t i, std::int64_t c) { return x[i] - top[c]; };
    for_each_exp<T>(at, n, inner, width, below_top, [&](std::int64_t, std::int64_t c, std::int64_t i, T e) {
      y[i] = e;
      sum[c] += static_cast<double>(e);
    });
    // y_j = y_j / sum
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = at + j * inner + c;
        y[i] = T(static_cast<double>(y[i]) / sum[c]);
      }
  });
}

template <class T>
void softmax_grad(const T* dy, const T* y, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner, bool add) {
  for_each_softmax_group(outer, n, inner, [=](std::int64_t at, std::int64_t width, std::int64_t) {
    if (inner == 1 && n >= kLongRow) return softmax_grad_row(dy + at, y + at, dx + at, n, add);
    double dot[kSoftmaxColumns] = {};
    // dot = sum dy_j y_j
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = at + j * inner + c;
        dot[c] += static_cast<double>(dy[i]) * static_cast<double>(y[i]);
      }
    // dx_j = y_j (dy_j - dot)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = at + j * inner + c;
        const T d = T(static_cast<double>(y[i]) * (static_cast<double>(dy[i]) - dot[c]));
        dx[i] = add ? dx[i] + d : d;
      }
  });
}

template <class T>
void clear_masked_rows(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  constexpr T kMasked = -std::numeric_limits<T>::infinity();
  // y_j = 0 where x_0 = x_1 = .. = -inf
  parallel_for(rows, n, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const T* const begin = x + row * n;
      if (std::all_of(begin, begin + n, [](T v) { return v == kMasked; })) std::fill_n(y + row * n, n, T(0));
    }
  });
}

template <class T>
void log_softmax(const T* x, T* y, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  for_each_softmax_group(outer, n, inner, [=](std::int64_t at, std::int64_t width, std::int64_t) {
    if (inner == 1 && n >= kLongRow) return log_softmax_row(x + at, y + at, n);
    T top[kSoftmaxColumns];
    double log_sum[kSoftmaxColumns] = {};
    row_maximum(x + at, n, inner, width, top);
    // log_sum = log(sum e^(x_j - max))
    const auto below_top = [&](std::int64_t i, std::int64_t c) { return x[i] - top[c]; };
    for_each_exp<T>(at, n, inner, width, below_top,
                    [&](std::int64_t, std::int64_t c, std::int64_t, T e) { log_sum[c] += static_cast<double>(e); });
    for (std::int64_t c = 0; c < width; ++c) log_sum[c] = std::log(log_sum[c]);
    // y_j = (x_j - max) - log_sum
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t i = at + j * inner + c;
        y[i] = T((static_cast<double>(x[i]) - static_cast<double>(top[c])) - log_sum[c]);
      }
  });
}

template <class T>
void log_softmax_grad(const T* dy, const T* y, T* dx, std::int64_t outer, std::int64_t n, std::int64_t inner,
                      bool add) {
  for_each_softmax_group(outer, n, inner, [=](std::int64_t at, std::int64_t width, std::int64_t) {
    if (inner == 1 && n >= kLongRow) return log_softmax_grad_row(dy + at, y + at, dx + at, n, add);
    double sum[kSoftmaxColumns] = {};
    // sum = dy_0 + dy_1 + ...
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(dy[at + j * inner + c]);
    // dx_j = dy_j - e^(y_j) sum
    const auto output = [&](std::int64_t i, std::int64_t) { return y[i]; };
    for_each_exp<T>(at, n, inner, width, output, [&](std::int64_t, std::int64_t c, std::int64_t i, T e) {
      const T d = T(static_cast<double>(dy[i]) - static_cast<double>(e) * sum[c]);
      dx[i] = add ? dx[i] + d : d;
    });
  });
}

#define TAPER_INSTANTIATE_SOFTMAX(T)                                                                     \
  template void softmax<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t);                      \
  template void softmax_grad<T>(const T*, const T*, T*, std::int64_t, std::int64_t, std::int64_t, bool); \
  template void clear_masked_rows<T>(const T*, T*, std::int64_t, std::int64_t);                          \
  template void log_softmax<T>(const T*, T*, std::int64_t, std::int64_t, std::int64_t);                  \
  template void log_softmax_grad<T>(const T*, const T*, T*, std::int64_t, std::int64_t, std::int64_t, bool)
TAPER_INSTANTIATE_SOFTMAX(float);
TAPER_INSTANTIATE_SOFTMAX(double);

}  // namespace taper::kernels
