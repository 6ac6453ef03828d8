#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace taper::checked {

/// Integer arithmetic that says when it left 64 bits, instead of wrapping.

inline std::optional<std::int64_t> add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<std::int64_t> sub(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_sub_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<std::int64_t> mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// The same of numbers that may have left them before.
inline std::optional<std::int64_t> add(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? add(*a, *b) : std::nullopt;
}
inline std::optional<std::int64_t> mul(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? mul(*a, *b) : std::nullopt;
}

/// `n` rounded up to a multiple of `alignment` (a positive number).
inline std::optional<std::int64_t> align(std::int64_t n, std::int64_t alignment) {
  const auto raised = add(n, alignment - 1);
  if (!raised) return std::nullopt;
  return *raised - *raised % alignment;
}

/// Quotient rounded toward minus infinity; `b` is positive. Powers of two, which most strides are, take no division.
/// Static because kernels call it: a copy that is compiled for one instruction set serves nobody else.
static constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if ((b & (b - 1)) == 0) return a >> std::countr_zero(static_cast<std::uint64_t>(b));
  return a / b - (a % b < 0 ? 1 : 0);
}

/// The integer `value` stands for, or nothing for fractions, NaN and what 64 bits do not hold.
inline std::optional<std::int64_t> to_int64(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(value >= -kLimit && value < kLimit)) return std::nullopt;
  const auto integer = static_cast<std::int64_t>(value);
  if (static_cast<double>(integer) != value) return std::nullopt;
  return integer;
}

}  // namespace taper::checked
