#pragma once

#include <span>

#include "taper/ops.hpp"

namespace taper {

// The shapes that operations give, for those who need them without the data.

/// Dimensions `start_dim` to `end_dim` joined into one. Errors: `ErrorKind::shape`.
Shape flattened_shape(const Shape& shape, std::int64_t start_dim, std::int64_t end_dim);

/// Without dimension `dim` when its extent is 1, else unchanged. Errors: `ErrorKind::shape`.
Shape squeezed_shape(const Shape& shape, std::int64_t dim);

/// What `pad` gives. Errors: `ErrorKind::config`, `ErrorKind::shape`, as `pad` documents.
Shape padded_shape(const char* where, const Shape& shape, std::span<const std::int64_t> amounts, PadMode mode);

}  // namespace taper
