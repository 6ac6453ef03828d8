#pragma once

#include <numbers>

#include "kernels/elementwise.hpp"

// The activation functions, as maps for `map` and `map_grad`. Constants and conventions at kinks are PyTorch's.

namespace taper::kernels {

struct Tanh {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 24;
  template <class T>
  T f(T x) const {
    return vector_tanh(x);
  }
  template <class T>
  T grad(T dy, T y) const {
    return dy * (1 - y * y);
  }
};

/// 1 / (1 + e^-x)
struct Sigmoid {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 20;
  template <class T>
  T f(T x) const {
    return vector_sigmoid(x);
  }
  template <class T>
  T grad(T dy, T y) const {
    return dy * ((1 - y) * y);
  }
};

/// max(x, 0); NaN stays NaN, the gradient at 0 is 0.
struct Relu {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return x <= 0 ? T(0) : x;
  }
  template <class T>
  T grad(T dy, T y) const {
    return y <= 0 ? T(0) : dy;
  }
};

/// x for x > 0, else x * negative_slope.
struct LeakyRelu {
  double negative_slope = 0.01;
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return x > 0 ? x : x * T(negative_slope);
  }
  template <class T>
  T grad(T dy, T x) const {
    return x > 0 ? dy : dy * T(negative_slope);
  }
};

/// x for x > 0, else alpha (e^x - 1).
struct Elu {
  double alpha = 1;
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 20;
  template <class T>
  T f(T x) const {
    return x <= 0 ? T(alpha) * vector_expm1_negative(x) : x;
  }
  template <class T>
  T grad(T dy, T x) const {
    return x <= 0 ? dy * T(alpha) * vector_exp(x) : dy;
  }
};

/// scale * elu(x, alpha) with the constants of Klambauer et al., "Self-normalizing neural networks" (2017).
struct Selu {
  static constexpr double kAlpha = 1.6732632423543772848170429916717;
  static constexpr double kScale = 1.0507009873554804934193349852946;
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 20;
  template <class T>
  T f(T x) const {
    return x <= 0 ? T(kAlpha * kScale) * vector_expm1_negative(x) : T(kScale) * x;
  }
  template <class T>
  T grad(T dy, T x) const {
    return x <= 0 ? dy * T(kAlpha * kScale) * vector_exp(x) : dy * T(kScale);
  }
};

/// x Phi(x), Phi the standard normal distribution function.
struct Gelu {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 40;
  template <class T>
  T f(T x) const {
    return x * normal_cdf(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    const T power = T(-0.5) * x * x;
    const T density = T(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * vector_exp(power);
    return dy * (normal_cdf(x) + x * density);
  }

 private:
  template <class T>
  static T normal_cdf(T x) {
    return T(0.5) * (1 + vector_erf(x * T(1 / std::numbers::sqrt2)));
  }
};

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
struct GeluTanh {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 40;
  template <class T>
  T f(T x) const {
    return T(0.5) * x * (1 + vector_tanh(inner(x)));
  }
  template <class T>
  T grad(T dy, T x) const {
    const T t = vector_tanh(inner(x));
    const T slope = T(kBeta) * (1 + T(3 * kKappa) * x * x);
    return dy * (T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * slope);
  }

 private:
  static constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kKappa = 0.044715;
  template <class T>
  static T inner(T x) {
    return T(kBeta) * (x + T(kKappa) * x * x * x);
  }
};

/// x sigmoid(x)
struct Silu {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 20;
  template <class T>
  T f(T x) const {
    return x * vector_sigmoid(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    const T s = vector_sigmoid(x);
    return dy * (s * (1 + x * (1 - s)));
  }
};

/// log(1 + e^(beta x)) / beta, and x itself where beta x > threshold.
struct Softplus {
  double beta = 1, threshold = 20;
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 32;
  template <class T>
  T f(T x) const {
    const T z = x * T(beta), soft = vector_log1p(vector_exp(z)) / T(beta);
    return z > T(threshold) ? x : soft;
  }
  template <class T>
  T grad(T dy, T x) const {
    if (x * T(beta) > T(threshold)) return dy;
    const T z = vector_exp(x * T(beta));
    return dy * (z / (z + 1));
  }
};

}  // namespace taper::kernels
