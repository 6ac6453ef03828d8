#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/fail.hpp"
#include "taper/tensor.hpp"

namespace taper::nn {

/// Refuses inputs that are not [N, C, spatial...] or [C, spatial...], or have fewer channels.
/// `where: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got ..`.
void check_spatial_input(const char* where, const Shape& shape, int spatial_dims, std::int64_t least_channels = 1);
/// Refuses int64. Errors: `ErrorKind::type`.
void check_floating(const char* where, DType dtype);

/// A shape whose batch extent is a placeholder, as messages print it: "[N, 12, 25]".
std::string batched_text(const Shape& shape);
/// A shape as it is.
inline std::string plain_text(const Shape& shape) { return to_string(shape); }
/// How a message shows a shape: made only for one.
using ShapeText = std::string (*)(const Shape&);

/// Fills in an option that follows from the input's extent, or refuses one that was given and differs.
/// Errors: `ErrorKind::shape`, `where: key does not fit the input: expected 12, got 3 in [N, 12, 25]`, then `hint`.
void complete_option(const char* where, const char* key, std::optional<std::int64_t>& option, std::int64_t extent,
                     const Shape& input, const std::string& hint = "");

/// The same for the channels of an input with the batch, which is also checked.
/// Errors: `ErrorKind::shape`, as `check_spatial_input` or `where: wrong number of dimensions: expected 3-D with the
/// batch, got ..`.
void complete_channels(const char* where, const char* key, std::optional<std::int64_t>& channels, const Shape& input,
                       int spatial_dims);

/// The value of an option that only a model with a known input may leave out. Errors: `ErrorKind::config`.
std::int64_t given(const char* where, const char* key, const std::optional<std::int64_t>& option);

/// `shape` with other extents in its last dimensions.
inline Shape with_last(const Shape& shape, std::span<const std::int64_t> last) {
  std::int64_t extents[Shape::kMaxRank];
  const std::size_t rank = std::size_t(shape.rank());
  std::copy(shape.begin(), shape.end(), extents);
  std::copy(last.begin(), last.end(), extents + rank - last.size());
  return Shape(extents, rank);
}

/// The number of [spatial...] blocks: N * C.
inline std::int64_t planes(const Shape& shape, int spatial_dims) {
  std::int64_t n = 1;
  for (int d = 0; d < shape.rank() - spatial_dims; ++d) n *= shape[d];
  return n;
}

}  // namespace taper::nn
