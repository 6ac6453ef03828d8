#pragma once

#include <cstdint>
#include <span>

#include "taper/shape.hpp"

namespace taper::kernels {

/// What stands outside the input: a value, the input mirrored at its edge element, the edge element, or the input
/// again.
enum class PadKind { value, reflect, replicate, circular };

/// Padding of the last dimensions; negative amounts crop. Reflect and replicate copy what was cropped too, circular
/// repeats what is left. The caller checks the amounts: no extent of the result is negative, reflect pads less than
/// the extent, circular at most what is left of it, replicate only where there is an element.
struct PadPlan {
  PadKind kind = PadKind::value;
  std::int64_t planes = 1;  ///< product of the dimensions in front
  int rank = 0;             ///< padded dimensions, at least one
  std::int64_t in[Shape::kMaxRank] = {}, out[Shape::kMaxRank] = {}, left[Shape::kMaxRank] = {};
};

/// `amounts` are {left, right} of the last dimension, then of the one before it, and so on, for at least one and at
/// most all dimensions of `shape`.
PadPlan pad_plan(std::span<const std::int64_t> shape, std::span<const std::int64_t> amounts, PadKind kind);

/// float, double, int64; `value` is for `PadKind::value`.
template <class T>
void pad(const PadPlan& plan, const T* x, T* y, T value);
/// Sums dy over the places each input element was copied to, in their order; in double for replicate, which may copy
/// an element any number of times.
template <class T>
void pad_grad(const PadPlan& plan, const T* dy, T* dx, bool add);

}  // namespace taper::kernels
