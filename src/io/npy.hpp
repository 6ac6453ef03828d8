#pragma once

#include <string>

#include "io/byte_source.hpp"
#include "taper/tensor.hpp"

namespace taper::io {

inline constexpr std::string_view kNpyMagic("\x93NUMPY", 6);

/// An NPY array that takes all of `reader`. Errors: `ErrorKind::format`, `where: ...`.
Tensor read_npy(ByteReader& reader, const std::string& where);

/// The bytes before the elements.
std::string npy_header(const Tensor& tensor);

}  // namespace taper::io
