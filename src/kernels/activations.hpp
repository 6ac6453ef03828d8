#pragma once

#include "kernels/elementwise.hpp"
#include "kernels/vector_gates.hpp"

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
    return dy * ((1 - y) * (1 + y));
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
    return x <= 0 ? vector_expm1_negative(x, Element<T>(alpha)) : x;
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
  static constexpr double kProductRest = 2.36198e-16;  // what the product loses as a double
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 20;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    using E = Element<T>;
    constexpr E kSlope = E(kAlpha * kScale), kRest = E(kAlpha * kScale - kSlope + kProductRest);
    return x <= 0 ? vector_expm1_negative(x, kSlope, kRest) : each<T>(kScale) * x;
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
    return vector_gelu(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    return dy * vector_gelu_slope(x);
  }
};

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
struct GeluTanh {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 40;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return vector_gelu_tanh(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    return dy * vector_gelu_tanh_slope(x);
  }
};

/// x sigmoid(x)
struct Silu {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 20;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return vector_silu(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    return dy * vector_silu_slope(x);
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
    return x * each<T>(beta) > each<T>(threshold) ? x : vector_softplus(x, Element<T>(beta));
  }
  template <class T>
  T grad(T dy, T x) const {
    return x * each<T>(beta) > each<T>(threshold) ? dy : dy * vector_softplus_slope(x, Element<T>(beta));
  }
};

}  // namespace taper::kernels
