#pragma once

#include <numbers>

#include "kernels/elementwise.hpp"

// The activation functions, as maps for `map` and `map_grad`. Constants and conventions at kinks are PyTorch's.

namespace taper::kernels {

struct Tanh {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 24;
  static constexpr bool packs = true;
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
  static constexpr bool packs = true;
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
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return x <= 0 ? each<T>(alpha) * vector_expm1_negative(x) : x;
  }
  template <class T>
  T grad(T dy, T x) const {
    return x <= 0 ? dy * each<T>(alpha) * vector_exp(x) : dy;
  }
};

/// scale * elu(x, alpha) with the constants of Klambauer et al., "Self-normalizing neural networks" (2017).
struct Selu {
  static constexpr double kAlpha = 1.6732632423543772848170429916717;
  static constexpr double kScale = 1.0507009873554804934193349852946;
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 20;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return x <= 0 ? each<T>(kAlpha * kScale) * vector_expm1_negative(x) : each<T>(kScale) * x;
  }
  template <class T>
  T grad(T dy, T x) const {
    return x <= 0 ? dy * each<T>(kAlpha * kScale) * vector_exp(x) : dy * each<T>(kScale);
  }
};

/// x Phi(x), Phi the standard normal distribution function.
struct Gelu {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 40;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    const auto tail = normal_tail(x);
    return x * (x < 0 ? tail.beyond : 1 - tail.beyond);
  }
  template <class T>
  T grad(T dy, T x) const {
    const auto tail = normal_tail(x);
    const T density = each<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * tail.bell;
    return dy * fused(x, density, x < 0 ? tail.beyond : 1 - tail.beyond);
  }
};

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
struct GeluTanh {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 40;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return each<T>(0.5) * x * (1 + vector_tanh(inner(x)));
  }
  template <class T>
  T grad(T dy, T x) const {
    const T t = vector_tanh(inner(x));
    const T slope = each<T>(kBeta) * (1 + each<T>(3 * kKappa) * x * x), half = each<T>(0.5);
    return dy * (half * (1 + t) + half * x * (1 - t * t) * slope);
  }

 private:
  static constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kKappa = 0.044715;
  template <class T>
  static T inner(T x) {
    return each<T>(kBeta) * (x + each<T>(kKappa) * x * x * x);
  }
};

/// x sigmoid(x)
struct Silu {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 20;
  static constexpr bool packs = true;
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
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    const T z = x * each<T>(beta), soft = vector_log1p(vector_exp(z)) / each<T>(beta);
    return z > each<T>(threshold) ? x : soft;
  }
  template <class T>
  T grad(T dy, T x) const {
    const T scaled = x * each<T>(beta), z = vector_exp(scaled);
    return scaled > each<T>(threshold) ? dy : dy * (z / (z + 1));
  }
};

}  // namespace taper::kernels
