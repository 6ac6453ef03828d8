#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/byte_source.hpp"
#include "taper/tensor.hpp"

namespace taper::io {

/// Element types of files.
enum class Stored : std::uint8_t { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };

constexpr int size_of(Stored type) {
  switch (type) {
    case Stored::i8:
    case Stored::u8:
    case Stored::boolean:
      return 1;
    case Stored::f16:
    case Stored::bf16:
    case Stored::i16:
    case Stored::u16:
      return 2;
    case Stored::f32:
    case Stored::i32:
    case Stored::u32:
      return 4;
    default:
      return 8;
  }
}

/// What the elements are read as: the narrowest of Taper's types that holds every one of them.
constexpr DType read_as(Stored type) {
  switch (type) {
    case Stored::f16:
    case Stored::bf16:
    case Stored::f32:
      return DType::float32;
    case Stored::f64:
      return DType::float64;
    default:
      return DType::int64;
  }
}

/// The type a tensor is written in.
constexpr Stored stored_as(DType dtype) {
  return dtype == DType::float32 ? Stored::f32 : dtype == DType::float64 ? Stored::f64 : Stored::i64;
}

/// Bytes that elements of these extents take; nothing when a tensor cannot have them. A zero extent does not hide the
/// others: their product must fit all the same.
std::optional<std::int64_t> stored_size(Stored type, std::span<const std::int64_t> extents);

/// The next `shape.numel()` elements of `reader`. `swapped` says that their bytes come most significant first.
/// `crc`, if given, goes on over the bytes as stored.
/// Errors: `ErrorKind::format`, `where: ...`, for a u64 above 2^63 - 1.
Tensor read_elements(ByteReader& reader, Stored type, bool swapped, const Shape& shape, const std::string& where,
                     std::uint32_t* crc = nullptr);

/// The elements of a tensor as bytes, shared with it.
std::string_view bytes_of(const Tensor& tensor);

}  // namespace taper::io
