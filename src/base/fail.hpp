#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "taper/dtype.hpp"
#include "taper/error.hpp"
#include "taper/shape.hpp"

namespace taper {

namespace detail {

inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, const char* text) { out.append(text, __builtin_strlen(text)); }
inline void append(std::string& out, char character) { out += character; }
inline void append(std::string& out, bool value) { out += value ? "true" : "false"; }
inline void append(std::string& out, const Shape& shape) { out += to_string(shape); }
inline void append(std::string& out, DType dtype) { out += name_of(dtype); }
template <std::integral T>
void append(std::string& out, T value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}
template <std::floating_point T>
void append(std::string& out, T value) {
  char digits[40];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

}  // namespace detail

/// Joins text, numbers, shapes and dtypes into one string; numbers take their shortest exact form.
template <class... Parts>
requires requires(std::string& out, const Parts&... parts) { (detail::append(out, parts), ...); }
std::string cat(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

/// Throws an `Error` made of `parts`. Out of line and cold, so that a check costs its caller a branch.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, cat(parts...));
}

}  // namespace taper
