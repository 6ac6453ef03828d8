#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/loop_hints.hpp"
#include "kernels/vector_math.hpp"
#include "kernels/vector_power.hpp"
#include "kernels/vector_trig.hpp"

namespace taper::kernels {

/// What the gradient of a map is computed from, which is what its op has to save.
enum class Needs : std::uint8_t { nothing, input, output };

/// What is run on one range of the n elements of a map: stores at y what `f` makes of those at a and b.
template <class T>
using MapRange = void (*)(const void* f, const T* a, const T* b, T* y, std::int64_t n);

/// Calls `range` for ranges that cover n elements, in parallel if that pays for `cost` additions an element. With
/// `adds` it also reads y.
template <class T>
void map_ranges(std::int64_t n, std::int64_t cost, const T* a, const T* b, T* y, const void* f, MapRange<T> range,
                bool add = false);

/// y[i] = f(x[i]); `function` is an F.
template <class F, class T>
void map_range(const void* function, const T* x, const T*, T* y, std::int64_t n);

/// dx[i] = f.grad(dy[i], v[i]); `function` is an F.
template <class F, class T>
void map_grad_range(const void* function, const T* dy, const T* v, T* dx, std::int64_t n);

/// y[i] = f(x[i]) for i < n. `y` may be `x`.
///
/// `F` is one of the records below or in activations.hpp; `T` is float or double.
template <class F, class T>
void map(const T* x, T* y, std::int64_t n, const F& f = {}) {
  map_ranges<T>(n, F::cost, x, x, y, &f, map_range<F, T>);
}

/// dx[i] = f.grad(dy[i], v[i]), added to dx[i] if `add`. `v` is the input or the output of the map as `F::needs`
/// says, and is not read (may be null) when nothing is needed. `dx` may be `dy`.
template <class F, class T>
void map_grad(const T* dy, const T* v, T* dx, std::int64_t n, const F& f, bool add) {
  map_ranges<T>(n, F::cost, dy, F::needs == Needs::nothing ? dy : v, dx, &f, map_grad_range<F, T>, add);
}

/// y[i] = To(x[i]), added to y[i] if `add` (the gradient of a cast is the cast back). `From` and `To` are any two
/// of float, double and int64.
///
/// A floating number becomes an integer by dropping its fraction; beyond 64 bits it takes the nearest end of the
/// range, and NaN gives 0. Differs: PyTorch leaves these two cases to the processor.
template <class From, class To>
void cast(const From* x, To* y, std::int64_t n, bool add = false);

// Each map: `f(x)`, its value; `grad(dy, v)`, the gradient with respect to x, where v is x or f(x) as `needs` says;
// `cost`, the work of one element in additions. With `packs` = true, the two are for vectors too (packs.hpp): compilers
// make less of a loop over a long function of numbers.

/// -x
struct Neg {
  static constexpr Needs needs = Needs::nothing;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return -x;
  }
  template <class T>
  T grad(T dy, T) const {
    return -dy;
  }
};

/// |x|; the gradient at 0 is 0.
struct Abs {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return std::abs(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    return dy * sign_of(x);
  }
};

/// -1, 0 or 1; of NaN 0, as in PyTorch.
struct Sign {
  static constexpr Needs needs = Needs::nothing;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return sign_of(x);
  }
  template <class T>
  T grad(T, T) const {
    return 0;
  }
};

/// e^x
struct Exp {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 16;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return vector_exp(x);
  }
  template <class T>
  T grad(T dy, T y) const {
    return dy * y;
  }
};

/// The natural logarithm.
struct Log {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 16;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return vector_log(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    return dy / x;
  }
};

/// log(1 + x)
struct Log1p {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 16;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return vector_log1p(x);
  }
  template <class T>
  T grad(T dy, T x) const {
    return dy / (x + 1);
  }
};

struct Sqrt {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 4;
  static constexpr bool packs = kVectorWidth == 64;
  template <class T>
  T f(T x) const {
    if constexpr (packs)
      return root_of(x);
    else
      return std::sqrt(x);
  }
  template <class T>
  T grad(T dy, T y) const {
    return dy / (2 * y);
  }
};

/// 1 / sqrt(x)
struct Rsqrt {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 8;
  template <class T>
  T f(T x) const {
    return 1 / std::sqrt(x);
  }
  template <class T>
  T grad(T dy, T y) const {
    return dy * ((T(-0.5) * y) * (y * y));
  }
};

/// sin x or, with `cosine` = 1, cos x: one record, so that there is one copy of much code.
struct Sine {
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 16;
  static constexpr bool packs = true;
  std::uint32_t cosine = 0;
  template <class T>
  T f(T x) const {
    return vector_sine(x, cosine);
  }
  template <class T>
  T grad(T dy, T x) const {
    return dy * (cosine != 0 ? Element<T>(-1) : Element<T>(1)) * vector_sine(x, 1 - cosine);
  }
};

/// 1 / x
struct Reciprocal {
  static constexpr Needs needs = Needs::output;
  static constexpr int cost = 4;
  template <class T>
  T f(T x) const {
    return 1 / x;
  }
  template <class T>
  T grad(T dy, T y) const {
    return -dy * (y * y);
  }
};

/// x limited to [min, max]; a missing bound is infinite. NaN stays NaN; max wins when the bounds cross. The gradient
/// passes on the closed interval.
struct Clamp {
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    const T raised = x < T(min) ? T(min) : x;
    return raised > T(max) ? T(max) : raised;
  }
  template <class T>
  T grad(T dy, T x) const {
    return x >= T(min) && x <= T(max) ? dy : T(0);
  }
};

/// x^exponent: by roots, products and quotients where these are few, as in PyTorch, else as std::pow. The gradient for
/// exponent 0 is 0 everywhere.
struct Pow {
  explicit Pow(double e = 1) : exponent(e), value(way_of(e)), slope(e == 0 ? Way::zero : way_of(e - 1)) {}

  double exponent;
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 24;
  static constexpr bool packs = true;
  template <class T>
  T f(T x) const {
    return power(x, exponent, value);
  }
  template <class T>
  T grad(T dy, T x) const {
    return slope == Way::zero ? T{} : dy * (each<T>(exponent) * power(x, exponent - 1, slope));
  }
  /// y[i] = f(x[i]) for i < n by a loop of its own, if that is a square or a cube; returns whether it is.
  /// That takes half the time that the loop for functions of any length does.
  template <class T>
  bool map_product(const T* x, T* y, std::int64_t n) const {
    if (value == Way::square) {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
      return true;
    }
    if (value == Way::cube) {
      TAPER_INDEPENDENT_TURNS
      for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * x[i];
      return true;
    }
    return false;
  }

 private:
  enum class Way : std::uint8_t { zero, one, same, square, cube, root, inverse, inverse_square, inverse_root, any };
  Way value, slope;

  static Way way_of(double e) {
    return e == 0      ? Way::one
           : e == 1    ? Way::same
           : e == 2    ? Way::square
           : e == 3    ? Way::cube
           : e == 0.5  ? Way::root
           : e == -1   ? Way::inverse
           : e == -2   ? Way::inverse_square
           : e == -0.5 ? Way::inverse_root
                       : Way::any;
  }
  template <class T>
  static T power(T x, double e, Way way) {
    switch (way) {
      case Way::zero:
      case Way::one:
        return each<T>(1);
      case Way::same:
        return x;
      case Way::square:
        return x * x;
      case Way::cube:
        return x * x * x;
      case Way::root:
        return root_of(x);
      case Way::inverse:
        return 1 / x;
      case Way::inverse_square:
        return (1 / x) / x;  // the square may be infinite where this is not 0
      case Way::inverse_root:
        return 1 / root_of(x);
      case Way::any:
        break;
    }
    return vector_power(x, each<T>(e));
  }
};

/// x + scalar; x - scalar is the sum with -scalar.
struct AddScalar {
  double scalar = 0;
  static constexpr Needs needs = Needs::nothing;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return x + T(scalar);
  }
  template <class T>
  T grad(T dy, T) const {
    return dy;
  }
};

/// scalar - x
struct ScalarSub {
  double scalar = 0;
  static constexpr Needs needs = Needs::nothing;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return T(scalar) - x;
  }
  template <class T>
  T grad(T dy, T) const {
    return -dy;
  }
};

/// x * scalar
struct MulScalar {
  double scalar = 1;
  static constexpr Needs needs = Needs::nothing;
  static constexpr int cost = 1;
  template <class T>
  T f(T x) const {
    return x * T(scalar);
  }
  template <class T>
  T grad(T dy, T) const {
    return dy * T(scalar);
  }
};

/// x / scalar
struct DivScalar {
  double scalar = 1;
  static constexpr Needs needs = Needs::nothing;
  static constexpr int cost = 4;
  template <class T>
  T f(T x) const {
    return x / T(scalar);
  }
  template <class T>
  T grad(T dy, T) const {
    return dy / T(scalar);
  }
};

/// scalar / x
struct ScalarDiv {
  double scalar = 1;
  static constexpr Needs needs = Needs::input;
  static constexpr int cost = 4;
  template <class T>
  T f(T x) const {
    return T(scalar) / x;
  }
  template <class T>
  T grad(T dy, T x) const {
    return -dy * ((T(scalar) / x) / x);
  }
};

}  // namespace taper::kernels
