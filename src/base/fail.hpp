#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "taper/dtype.hpp"
#include "taper/error.hpp"
#include "taper/shape.hpp"

namespace taper {

namespace detail {

/// What a part of a message is, and how it is handed over: text, text and shapes by address.
enum class PartKind : std::uint64_t {
  end,
  literal,
  string,
  view,
  character,
  flag,
  integer,
  natural,
  single,
  real,
  shape,
  dtype
};

inline const char* pass(const char* text) { return text; }
inline const std::string* pass(const std::string& text) { return &text; }
inline const std::string_view* pass(const std::string_view& text) { return &text; }
inline int pass(char character) { return character; }
inline int pass(bool value) { return value; }
inline int pass(DType dtype) { return int(dtype); }
inline const Shape* pass(const Shape& shape) { return &shape; }
template <std::signed_integral T>
std::int64_t pass(T value) {
  return value;
}
template <std::unsigned_integral T>
std::uint64_t pass(T value) {
  return value;
}
template <std::floating_point T>
double pass(T value) {
  return value;
}

template <class T>
constexpr PartKind part_kind() {
  if constexpr (std::is_same_v<T, std::string>)
    return PartKind::string;
  else if constexpr (std::is_same_v<T, std::string_view>)
    return PartKind::view;
  else if constexpr (std::is_same_v<T, char>)
    return PartKind::character;
  else if constexpr (std::is_same_v<T, bool>)
    return PartKind::flag;
  else if constexpr (std::is_same_v<T, float>)
    return PartKind::single;
  else if constexpr (std::is_same_v<T, double>)
    return PartKind::real;
  else if constexpr (std::is_same_v<T, Shape>)
    return PartKind::shape;
  else if constexpr (std::is_same_v<T, DType>)
    return PartKind::dtype;
  else if constexpr (std::signed_integral<T>)
    return PartKind::integer;
  else if constexpr (std::unsigned_integral<T>)
    return PartKind::natural;
  else
    return PartKind::literal;
}

/// The kinds of all parts in one number, four bits each, the first in the lowest.
template <class... Parts>
constexpr std::uint64_t part_kinds() {
  static_assert(sizeof...(Parts) < 16);
  std::uint64_t kinds = 0;
  int at = 0;
  ((kinds |= std::uint64_t(part_kind<Parts>()) << at, at += 4), ...);
  return kinds;
}

// Messages are made in hundreds of places. Handing their parts over as C does, with a number that says what they are,
// takes a few instructions in each.
std::string join_parts(std::uint64_t kinds, ...);
[[noreturn, gnu::cold]] void fail_parts(ErrorKind kind, std::uint64_t kinds, ...);

}  // namespace detail

/// Joins text, numbers, shapes and dtypes into one string; numbers take their shortest exact form.
template <class... Parts>
requires requires(const Parts&... parts) { (detail::pass(parts), ...); }
[[gnu::always_inline]] inline std::string cat(const Parts&... parts) {
  return detail::join_parts(detail::part_kinds<Parts...>(), detail::pass(parts)...);
}

/// Throws an `Error` made of `parts`. Out of line and cold, so that a check costs its caller a branch.
template <class... Parts>
[[noreturn, gnu::always_inline]] inline void fail(ErrorKind kind, const Parts&... parts) {
  detail::fail_parts(kind, detail::part_kinds<Parts...>(), detail::pass(parts)...);
}

}  // namespace taper
