#pragma once

#include <cstdint>

#include "kernels/moments.hpp"

namespace taper::kernels {

/// Channels normalised over all samples: x [samples, channels, spatial]. Where there is no element, nothing is read
/// or written but gradients of 0 for w and b.
struct BatchNormParams {
  std::int64_t samples = 1;
  std::int64_t channels = 1;
  std::int64_t spatial = 1;
  double eps = 0;
  bool fixed = false;  ///< the moments do not depend on x
};

/// How many moments a call works in: those of every channel, and room for the sums of the backward.
std::int64_t batch_norm_memory(const BatchNormParams& p);

/// The moments of every channel of x.
template <class T>
void batch_moments(const BatchNormParams& p, const T* x, Moments* moments);

/// The moments of every channel from a mean and a variance each.
template <class T>
void fixed_moments(const BatchNormParams& p, const T* mean, const T* variance, Moments* moments);

/// mean = (1 - momentum) mean + momentum m, m being the mean of [samples, channels] moments over the samples; the
/// variance likewise, unbiased for moments of `count` elements, count > 1.
template <class T>
void update_running(double momentum, std::int64_t count, std::int64_t samples, std::int64_t channels,
                    const Moments* moments, T* mean, T* variance);

/// y = (x - mean) rstd w + b; w and b [channels], null for 1 and 0.
template <class T>
void batch_norm(const BatchNormParams& p, const T* x, const T* w, const T* b, const Moments* moments, T* y);

/// `moments` is as the forward left it, [batch_norm_memory].
template <class T>
void batch_norm_backward(const BatchNormParams& p, const T* dy, const T* x, const T* w, Moments* moments,
                         const NormGradients<T>& gradients);

}  // namespace taper::kernels
