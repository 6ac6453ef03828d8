#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/vector_power.hpp"

/// The operations of broadcast.hpp; for broadcast.cpp alone.
namespace taper::kernels {

namespace {

/// Signed overflow is undefined, so integers go through their unsigned type.
template <class T>
using Arithmetic = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

template <class T>
bool is_nan(T x) {
  return x != x;
}

}  // namespace

// Each operation: `f`, its value; `da` and `db`, its gradients with respect to the operands.

struct Add {
  template <class T>
  static T f(T a, T b) {
    return T(Arithmetic<T>(a) + Arithmetic<T>(b));
  }
  template <class T>
  static T da(T dy, T, T) {
    return dy;
  }
  template <class T>
  static T db(T dy, T, T) {
    return dy;
  }
};

struct Sub {
  template <class T>
  static T f(T a, T b) {
    return T(Arithmetic<T>(a) - Arithmetic<T>(b));
  }
  template <class T>
  static T da(T dy, T, T) {
    return dy;
  }
  template <class T>
  static T db(T dy, T, T) {
    return -dy;
  }
};

struct Mul {
  template <class T>
  static T f(T a, T b) {
    return T(Arithmetic<T>(a) * Arithmetic<T>(b));
  }
  template <class T>
  static T da(T dy, T, T b) {
    return dy * b;
  }
  template <class T>
  static T db(T dy, T a, T) {
    return dy * a;
  }
};

struct Div {
  template <class T>
  static T f(T a, T b) {
    return a / b;
  }
  template <class T>
  static T da(T dy, T, T b) {
    return dy / b;
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return -dy * ((a / b) / b);
  }
};

struct Power {
  static constexpr bool packs = true;
  template <class T>
  static T f(T a, T b) {
    return vector_power(a, b);
  }
  template <class T>
  static T da(T dy, T a, T b) {
    return b == 0 ? T{} : dy * (b * vector_power(a, b - 1));
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return ((a == 0) & (b >= 0)) ? T{} : dy * (vector_power(a, b) * vector_log(a));
  }
};

struct Maximum {
  template <class T>
  static T f(T a, T b) {
    return a > b || is_nan(a) ? a : b;
  }
  template <class T>
  static T da(T dy, T a, T b) {
    return a == b ? dy / 2 : a < b ? T(0) : dy;
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return a == b ? dy / 2 : a > b ? T(0) : dy;
  }
};

struct Minimum {
  template <class T>
  static T f(T a, T b) {
    return a < b || is_nan(a) ? a : b;
  }
  template <class T>
  static T da(T dy, T a, T b) {
    return a == b ? dy / 2 : a > b ? T(0) : dy;
  }
  template <class T>
  static T db(T dy, T a, T b) {
    return a == b ? dy / 2 : a < b ? T(0) : dy;
  }
};

struct Eq {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static std::int64_t f(T a, T b) {
    return a >= b;
  }
};

/// Whether the gradients of `Op` read the operands.
template <class Op>
constexpr bool kReadsOperands = !std::is_same_v<Op, Add> && !std::is_same_v<Op, Sub>;

}  // namespace taper::kernels
