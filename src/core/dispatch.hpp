#pragma once

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "taper/tensor.hpp"

namespace taper {

template <class T>
struct Type {
  using type = T;
};

/// Calls `body(Type<T>())` with the C++ type of `dtype`.
template <class Body>
decltype(auto) visit_dtype(DType dtype, Body&& body) {
  if (dtype == DType::float32) return body(Type<float>());
  if (dtype == DType::float64) return body(Type<double>());
  return body(Type<std::int64_t>());
}

/// `value` as one element; an integer element must be a whole number in range.
/// Errors: `ErrorKind::type`.
template <class T>
T to_element(const char* where, Scalar value) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    const auto integer = checked::to_int64(value.value);
    if (!integer) [[unlikely]]
      fail(ErrorKind::type, where, ": the number is no int64: expected a whole number, got ", value.value);
    return *integer;
  } else {
    return static_cast<T>(value.value);
  }
}

}  // namespace taper
