#pragma once

#include <cstdint>

#include "kernels/reduce_plan.hpp"

namespace taper::kernels {

// Reductions of a row-major x over the dimensions named by a plan (`reduce_plan(shape, dims)`), one result for every
// kept position, in row-major order. Sums of floating numbers run in double, of float in short chains joined in double,
// in an order fixed by the plan. NaN spreads. The gradients write (or, with `add`, add to) every element of dx, which
// has the shape of x; y is the forward result.

/// Sum; 0 over nothing. float, double, int64 (wraps). A contiguous run is summed by `sum_run`.
template <class T>
void reduce_sum(const ReducePlan& plan, const T* x, T* y);
template <class T>
void reduce_sum_grad(const ReducePlan& plan, const T* dy, T* dx, bool add);

/// Sum divided by the count; NaN over nothing. Over a contiguous run bit-equal to average
/// pooling of that run.
template <class T>
void reduce_mean(const ReducePlan& plan, const T* x, T* y);
template <class T>
void reduce_mean_grad(const ReducePlan& plan, const T* dy, T* dx, bool add);

/// sum (x - mean)^2 / max(0, count - correction), in two passes.
template <class T>
void reduce_var(const ReducePlan& plan, double correction, const T* x, T* y);
template <class T>
void reduce_var_grad(const ReducePlan& plan, double correction, const T* dy, const T* x, T* dx, bool add);

/// The square root of `reduce_var`; its gradient is 0 where it is 0.
template <class T>
void reduce_std(const ReducePlan& plan, double correction, const T* x, T* y);
template <class T>
void reduce_std_grad(const ReducePlan& plan, double correction, const T* dy, const T* x, const T* y, T* dx, bool add);

/// Product; 1 over nothing. float, double, int64 (wraps). The gradient is exact where x has zeros.
template <class T>
void reduce_prod(const ReducePlan& plan, const T* x, T* y);
template <class T>
void reduce_prod_grad(const ReducePlan& plan, const T* dy, const T* x, T* dx, bool add);

/// Which of two elements an extreme prefers.
enum class Extreme { max, min };

/// Largest or smallest. float, double, int64. There must be something to reduce. The gradient is spread evenly over
/// equals, NaN counting as equal to a NaN result.
template <class T>
void reduce_extreme(const ReducePlan& plan, Extreme extreme, const T* x, T* y);
template <class T>
void reduce_extreme_grad(const ReducePlan& plan, const T* dy, const T* x, const T* y, T* dx, bool add);

/// Where the largest or smallest lies, counted row-major over the reduced dimensions: the first of equals, and the
/// first NaN before anything else. `y` receives the value there unless null.
template <class T>
void arg_extreme(const ReducePlan& plan, Extreme extreme, const T* x, T* y, std::int64_t* index);
/// The gradient of the value, all of which goes to `index`.
template <class T>
void arg_extreme_grad(const ReducePlan& plan, const T* dy, const std::int64_t* index, T* dx, bool add);

/// log(sum e^x), stable for large x; -inf over nothing.
template <class T>
void reduce_logsumexp(const ReducePlan& plan, const T* x, T* y);
template <class T>
void reduce_logsumexp_grad(const ReducePlan& plan, const T* dy, const T* x, const T* y, T* dx, bool add);

/// (sum |x|^p)^(1/p); p = inf: the largest |x|, -inf: the smallest, 0: how many are not 0. 0 over nothing (p > 0).
/// The gradient is 0 where the norm or x is 0; with p = +-inf it is spread evenly over equals. Powers of float32 have
/// its accuracy, but double's range.
template <class T>
void reduce_norm(const ReducePlan& plan, double p, const T* x, T* y);
template <class T>
void reduce_norm_grad(const ReducePlan& plan, double p, const T* dy, const T* x, const T* y, T* dx, bool add);

}  // namespace taper::kernels
