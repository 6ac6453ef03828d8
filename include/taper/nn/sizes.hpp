#pragma once

#include <array>

#include "taper/fields.hpp"

namespace taper::nn {

/// One number for every spatial dimension, or a list with one for each: `3`, `{2, 3}`.
template <int N>
struct Sizes {
  std::array<std::int64_t, N> values{};

  Sizes() = default;
  Sizes(int all) { values.fill(all); }
  Sizes(std::int64_t all) { values.fill(all); }
  /// Errors: `ErrorKind::config` unless there is one number or N.
  Sizes(std::initializer_list<std::int64_t> list);

  std::int64_t operator[](int i) const { return values[std::size_t(i)]; }
  bool operator==(const Sizes&) const = default;
};

/// As `Sizes`, but a dimension may be left open: `{std::nullopt, 7}` keeps the input's first spatial extent.
template <int N>
struct OptionalSizes {
  std::array<std::optional<std::int64_t>, N> values{};

  OptionalSizes() = default;
  OptionalSizes(int all) { values.fill(all); }
  OptionalSizes(std::int64_t all) { values.fill(all); }
  OptionalSizes(std::initializer_list<std::optional<std::int64_t>> list);

  std::optional<std::int64_t> operator[](int i) const { return values[std::size_t(i)]; }
};

/// A convolution's padding: numbers, "same" or "valid".
template <int N>
struct ConvPadding {
  enum Kind { numbers, same, valid } kind = numbers;
  Sizes<N> amounts = 0;

  ConvPadding() = default;
  ConvPadding(int all) : amounts(all) {}
  ConvPadding(std::int64_t all) : amounts(all) {}
  ConvPadding(std::initializer_list<std::int64_t> list) : amounts(list) {}
  /// Errors: `ErrorKind::config` unless "same" or "valid".
  ConvPadding(const char* word);
};

template <int N>
FieldType field_type(const Sizes<N>*) {
  return {.kind = FieldType::sizes, .arity = N};
}
template <int N>
Value to_value(const Sizes<N>& value);
template <int N>
std::string from_value(const Value& from, Sizes<N>& to);

template <int N>
FieldType field_type(const OptionalSizes<N>*) {
  return {.kind = FieldType::sizes, .nullable = true, .arity = N};
}
template <int N>
Value to_value(const OptionalSizes<N>& value);
template <int N>
std::string from_value(const Value& from, OptionalSizes<N>& to);

template <int N>
FieldType field_type(const ConvPadding<N>*) {
  return {.kind = FieldType::padding, .arity = N};
}
template <int N>
Value to_value(const ConvPadding<N>& value);
template <int N>
std::string from_value(const Value& from, ConvPadding<N>& to);

}  // namespace taper::nn
