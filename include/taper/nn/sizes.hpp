#pragma once

#include <array>

#include "taper/fields.hpp"
#include "taper/shape.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

/// One number for every spatial dimension, or a list with one for each: `3`, `{2, 3}`.
template <int N>
struct Sizes {
  std::array<std::int64_t, N> values{};

  Sizes() = default;
  Sizes(int all) {
    for (auto& value : values) value = all;
  }
  Sizes(std::int64_t all) {
    for (auto& value : values) value = all;
  }
  /// Errors: `ErrorKind::config` unless there is one number or N.
  Sizes(std::initializer_list<std::int64_t> list);

  std::int64_t operator[](int i) const { return values[std::size_t(i)]; }
  bool operator==(const Sizes&) const = default;
};

/// As `Sizes`, but a dimension may be left open: `{std::nullopt, 7}` keeps the input's first spatial extent.
template <int N>
struct OptionalSizes {
  std::array<std::optional<std::int64_t>, N> values{};

  OptionalSizes(int all) : OptionalSizes(std::int64_t(all)) {}
  OptionalSizes(std::int64_t all);
  /// Errors: `ErrorKind::config` unless there is one entry or N.
  OptionalSizes(std::initializer_list<std::optional<std::int64_t>> list);

  std::optional<std::int64_t> operator[](int i) const { return values[std::size_t(i)]; }
};

/// `Sizes` that may be left out, as a pool's stride: `{2, 3}` gives one.
template <int N>
class MaybeSizes {
 public:
  MaybeSizes() = default;
  MaybeSizes(std::nullopt_t) {}
  MaybeSizes(int all) : sizes_(all), given_(true) {}
  MaybeSizes(std::int64_t all) : sizes_(all), given_(true) {}
  MaybeSizes(const Sizes<N>& sizes) : sizes_(sizes), given_(true) {}
  /// Errors: `ErrorKind::config` unless there is one number or N.
  MaybeSizes(std::initializer_list<std::int64_t> list) : sizes_(list), given_(true) {}

  explicit operator bool() const { return given_; }
  const Sizes<N>& operator*() const { return sizes_; }
  const Sizes<N>* operator->() const { return &sizes_; }
  const Sizes<N>& value_or(const Sizes<N>& other) const { return given_ ? sizes_ : other; }

 private:
  Sizes<N> sizes_ = 0;
  bool given_ = false;
};

/// One extent or a list of them: `7`, `{3, 5}`.
struct Extents {
  std::vector<std::int64_t> values;

  Extents() = default;
  Extents(int one) : Extents(std::int64_t(one)) {}
  Extents(std::int64_t one);
  Extents(std::initializer_list<std::int64_t> list);
  Extents(const Shape& shape);

  /// Errors: `ErrorKind::shape` for a negative extent or more than `Shape::kMaxRank`.
  Shape shape() const;
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

/// Padding in front of and behind one dimension; one number stands for both.
struct PaddingSides {
  std::int64_t before = 0, after = 0;

  PaddingSides() = default;
  PaddingSides(int both) : before(both), after(both) {}
  PaddingSides(std::int64_t both) : before(both), after(both) {}
  PaddingSides(std::int64_t first, std::int64_t last) : before(first), after(last) {}
  bool operator==(const PaddingSides&) const = default;
};

/// An average pool's padding: `1` or `{1, 2}` as `Sizes`, a pair for a dimension whose sides differ, `{{0, 1}, 2}`, or
/// "same". In JSON `1`, `[1, 2]`, `[[0, 1], 2]`, `"same"`; in 1-d a pair is `[[0, 1]]`.
/// Beyond PyTorch: pairs and "same".
template <int N>
struct PoolPadding {
  bool same = false;
  std::array<PaddingSides, N> sides{};

  PoolPadding() = default;
  PoolPadding(int all) {
    for (PaddingSides& side : sides) side = all;
  }
  PoolPadding(std::int64_t all) {
    for (PaddingSides& side : sides) side = all;
  }
  /// Errors: `ErrorKind::config` unless there is one entry or N.
  PoolPadding(std::initializer_list<PaddingSides> list);
  /// Errors: `ErrorKind::config` unless "same".
  PoolPadding(const char* word);

  PaddingSides operator[](int i) const { return sides[std::size_t(i)]; }
};

template <int N>
FieldType field_type(const Sizes<N>*) {
  return {.kind = FieldType::sizes, .arity = N};
}
template <int N>
[[gnu::visibility("default")]] Value to_value(const Sizes<N>& value);
template <int N>
[[gnu::visibility("default")]] std::string from_value(const Value& from, Sizes<N>& to);

template <int N>
FieldType field_type(const OptionalSizes<N>*) {
  return {.kind = FieldType::sizes, .nullable = true, .arity = N};
}
template <int N>
[[gnu::visibility("default")]] Value to_value(const OptionalSizes<N>& value);
template <int N>
[[gnu::visibility("default")]] std::string from_value(const Value& from, OptionalSizes<N>& to);

template <int N>
FieldType field_type(const MaybeSizes<N>*) {
  return {.kind = FieldType::sizes, .nullable = true, .arity = N};
}
template <int N>
[[gnu::visibility("default")]] Value to_value(const MaybeSizes<N>& value);
template <int N>
[[gnu::visibility("default")]] std::string from_value(const Value& from, MaybeSizes<N>& to);

template <int N>
[[gnu::visibility("default")]] FieldType field_type(const ConvPadding<N>*);
template <int N>
[[gnu::visibility("default")]] Value to_value(const ConvPadding<N>& value);
template <int N>
[[gnu::visibility("default")]] std::string from_value(const Value& from, ConvPadding<N>& to);

template <int N>
[[gnu::visibility("default")]] FieldType field_type(const PoolPadding<N>*);
template <int N>
[[gnu::visibility("default")]] Value to_value(const PoolPadding<N>& value);
template <int N>
[[gnu::visibility("default")]] std::string from_value(const Value& from, PoolPadding<N>& to);

FieldType field_type(const Extents*);
Value to_value(const Extents& value);
std::string from_value(const Value& from, Extents& to);

}  // namespace taper::nn

#pragma GCC visibility pop
