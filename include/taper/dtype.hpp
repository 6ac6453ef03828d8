#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace taper {

/// Element types. Arithmetic and gradients use the two floating ones; `int64` holds labels, indices
/// and the 0/1 results of comparisons.
enum class DType : std::uint8_t { float32, float64, int64 };

inline constexpr int kDTypeCount = 3;

/// Size of one element in bytes.
constexpr std::size_t size_of(DType dtype) { return dtype == DType::float32 ? 4 : 8; }

constexpr bool is_floating(DType dtype) { return dtype != DType::int64; }

/// "float32", "float64" or "int64".
constexpr const char* name_of(DType dtype) {
  return dtype == DType::float32 ? "float32" : dtype == DType::float64 ? "float64" : "int64";
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::int64;
};

/// The `DType` of the C++ type `T` (`float`, `double` or `std::int64_t`).
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace taper

#pragma GCC visibility pop
