#include "taper/nn/sizes.hpp"

#include <algorithm>
#include <cstring>

#include "base/fail.hpp"

namespace taper::nn {

namespace {

[[noreturn]] void fail_arity(int expected, std::size_t got) {
  fail(ErrorKind::config, "sizes: one number for all places or one for each: expected 1 or ", expected, ", got ", got);
}

/// Fills `n` entries from one element or from a list of `n`, each by `set_one`.
template <class SetOne>
std::string fill(const Value& from, int n, bool nullable, const SetOne& set_one) {
  const auto* list = from.get<Value::List>();
  if (!list) {
    std::string problem;
    for (int i = 0; i < n && problem.empty(); ++i) problem = set_one(i, from);
    if (problem.empty() || n == 1) return problem;
    return cat("expected an integer or a list of ", n, ", got ", problem.substr(problem.rfind(", got ") + 6));
  }
  if (list->size() != std::size_t(n))
    return cat("expected a list of ", n, nullable ? " integers or nulls" : " integers", ", got ", list->size(), " in ",
               to_json(from));
  std::string problem;
  for (int i = 0; i < n && problem.empty(); ++i) problem = set_one(i, (*list)[std::size_t(i)]);
  return problem;
}

template <class Array>
Value one_or_list(const Array& values) {
  if (std::all_of(values.begin(), values.end(), [&](const auto& v) { return v == values[0]; }))
    return taper::to_value(values[0]);
  Value::List list;
  for (const auto& v : values) list.push_back(taper::to_value(v));
  return Value(std::move(list));
}

}  // namespace

template <int N>
Sizes<N>::Sizes(std::initializer_list<std::int64_t> list) {
  if (list.size() != 1 && list.size() != std::size_t(N)) fail_arity(N, list.size());
  values.fill(*list.begin());
  std::copy(list.begin(), list.end(), values.begin());
}

template <int N>
OptionalSizes<N>::OptionalSizes(std::int64_t all) {
  values.fill(all);
}

template <int N>
OptionalSizes<N>::OptionalSizes(std::initializer_list<std::optional<std::int64_t>> list) {
  if (list.size() != 1 && list.size() != std::size_t(N)) fail_arity(N, list.size());
  values.fill(*list.begin());
  std::copy(list.begin(), list.end(), values.begin());
}

Extents::Extents(std::int64_t one) : values{one} {}
Extents::Extents(std::initializer_list<std::int64_t> list) : values(list) {}
Extents::Extents(const Shape& shape) : values(shape.begin(), shape.end()) {}

Shape Extents::shape() const { return Shape(values); }

template <int N>
ConvPadding<N>::ConvPadding(const char* word) {
  if (std::strcmp(word, "same") != 0 && std::strcmp(word, "valid") != 0)
    fail(ErrorKind::config, "padding: unknown word: expected numbers, \"same\" or \"valid\", got \"", word, '"');
  kind = word[0] == 's' ? same : valid;
}

template <int N>
PoolPadding<N>::PoolPadding(std::initializer_list<PaddingSides> list) {
  if (list.size() != 1 && list.size() != std::size_t(N)) fail_arity(N, list.size());
  sides.fill(*list.begin());
  std::copy(list.begin(), list.end(), sides.begin());
}

template <int N>
PoolPadding<N>::PoolPadding(const char* word) : same(true) {
  if (std::strcmp(word, "same") != 0)
    fail(ErrorKind::config, "padding: unknown word: expected numbers or \"same\", got \"", word, '"');
}

template <int N>
FieldType field_type(const ConvPadding<N>*) {
  static constexpr const char* words[] = {"same", "valid"};
  return {.kind = FieldType::padding, .arity = N, .choices = words};
}
template <int N>
FieldType field_type(const PoolPadding<N>*) {
  static constexpr const char* words[] = {"same"};
  return {.kind = FieldType::padding, .arity = N, .choices = words};
}

template <int N>
Value to_value(const Sizes<N>& value) {
  return one_or_list(value.values);
}
template <int N>
Value to_value(const OptionalSizes<N>& value) {
  return one_or_list(value.values);
}
template <int N>
Value to_value(const MaybeSizes<N>& value) {
  return value ? to_value(*value) : Value();
}
template <int N>
Value to_value(const ConvPadding<N>& value) {
  if (value.kind == ConvPadding<N>::numbers) return to_value(value.amounts);
  return Value(std::string(value.kind == ConvPadding<N>::same ? "same" : "valid"));
}

template <int N>
std::string from_value(const Value& from, Sizes<N>& to) {
  Sizes<N> sizes;
  std::string problem =
      fill(from, N, false, [&](int i, const Value& v) { return taper::from_value(v, sizes.values[std::size_t(i)]); });
  if (problem.empty()) to = sizes;
  return problem;
}
template <int N>
std::string from_value(const Value& from, OptionalSizes<N>& to) {
  OptionalSizes<N> sizes = 0;
  std::string problem =
      fill(from, N, true, [&](int i, const Value& v) { return taper::from_value(v, sizes.values[std::size_t(i)]); });
  if (problem.empty()) to = sizes;
  return problem;
}
template <int N>
std::string from_value(const Value& from, MaybeSizes<N>& to) {
  Sizes<N> sizes;
  std::string problem = from.is_null() ? "" : from_value(from, sizes);
  if (problem.empty()) to = from.is_null() ? MaybeSizes<N>() : sizes;
  return problem;
}
template <int N>
std::string from_value(const Value& from, ConvPadding<N>& to) {
  if (const auto* word = from.get<std::string>()) {
    if (*word != "same" && *word != "valid") return cat("expected numbers, \"same\" or \"valid\", got ", to_json(from));
    to = ConvPadding<N>(word->c_str());
    return "";
  }
  ConvPadding<N> padding;
  std::string problem = from_value(from, padding.amounts);
  if (problem.empty()) to = padding;
  return problem;
}

namespace {

Value to_value(const PaddingSides& sides) {
  if (sides.before == sides.after) return Value(sides.before);
  return Value(Value::List{Value(sides.before), Value(sides.after)});
}

std::string from_value(const Value& from, PaddingSides& to) {
  const auto* pair = from.get<Value::List>();
  if (pair && pair->size() != 2)
    return cat("expected an integer or a pair of them, got ", pair->size(), " in ", to_json(from));
  std::string problem = taper::from_value(pair ? pair->front() : from, to.before);
  return problem.empty() ? taper::from_value(pair ? pair->back() : from, to.after) : problem;
}

}  // namespace

template <int N>
Value to_value(const PoolPadding<N>& value) {
  if (value.same) return Value("same");
  const bool alike = std::all_of(value.sides.begin(), value.sides.end(),
                                 [&](const PaddingSides& sides) { return sides == value.sides[0]; });
  if (alike && value.sides[0].before == value.sides[0].after) return Value(value.sides[0].before);
  Value::List list;
  for (const PaddingSides& sides : value.sides) list.push_back(to_value(sides));
  return Value(std::move(list));
}

template <int N>
std::string from_value(const Value& from, PoolPadding<N>& to) {
  if (const auto* word = from.get<std::string>()) {
    if (*word != "same") return cat("expected numbers or \"same\", got ", to_json(from));
    to = PoolPadding<N>(word->c_str());
    return "";
  }
  PoolPadding<N> padding;
  std::string problem =
      fill(from, N, false, [&](int i, const Value& v) { return from_value(v, padding.sides[std::size_t(i)]); });
  if (problem.empty()) to = padding;
  const auto* list = from.get<Value::List>();
  if (N == 1 && list && list->size() == 2)
    problem += "; the two sides of one dimension are a pair in the list, [[0, 1]]";
  return problem;
}

FieldType field_type(const Extents*) { return {.kind = FieldType::sizes}; }

Value to_value(const Extents& value) {
  if (value.values.size() == 1) return Value(value.values[0]);
  Value::List list;
  for (const std::int64_t extent : value.values) list.emplace_back(extent);
  return Value(std::move(list));
}

std::string from_value(const Value& from, Extents& to) {
  const auto* list = from.get<Value::List>();
  Extents extents;
  const std::size_t count = list ? list->size() : 1;
  if (count == 0 || count > std::size_t(Shape::kMaxRank))
    return cat("expected 1 to ", Shape::kMaxRank, " extents, got ", count);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t extent = 0;
    const std::string problem = taper::from_value(list ? (*list)[i] : from, extent);
    if (!problem.empty()) return problem;
    extents.values.push_back(extent);
  }
  to = extents;
  return "";
}

// Constructors are named one by one: a program makes those that stand in the header itself, and the library need not
// export them.
#define TAPER_INSTANTIATE_SIZES(N)                                                              \
  template Sizes<N>::Sizes(std::initializer_list<std::int64_t>);                                \
  template OptionalSizes<N>::OptionalSizes(std::int64_t);                                       \
  template OptionalSizes<N>::OptionalSizes(std::initializer_list<std::optional<std::int64_t>>); \
  template ConvPadding<N>::ConvPadding(const char*);                                            \
  template PoolPadding<N>::PoolPadding(std::initializer_list<PaddingSides>);                    \
  template PoolPadding<N>::PoolPadding(const char*);                                            \
  template Value to_value(const Sizes<N>&);                                                     \
  template Value to_value(const OptionalSizes<N>&);                                             \
  template FieldType field_type(const ConvPadding<N>*);                                         \
  template FieldType field_type(const PoolPadding<N>*);                                         \
  template Value to_value(const MaybeSizes<N>&);                                                \
  template Value to_value(const ConvPadding<N>&);                                               \
  template Value to_value(const PoolPadding<N>&);                                               \
  template std::string from_value(const Value&, Sizes<N>&);                                     \
  template std::string from_value(const Value&, OptionalSizes<N>&);                             \
  template std::string from_value(const Value&, MaybeSizes<N>&);                                \
  template std::string from_value(const Value&, ConvPadding<N>&);                               \
  template std::string from_value(const Value&, PoolPadding<N>&)
TAPER_INSTANTIATE_SIZES(1);
TAPER_INSTANTIATE_SIZES(2);
TAPER_INSTANTIATE_SIZES(3);
#undef TAPER_INSTANTIATE_SIZES

// Two for each dimension, as padding has them.
#define TAPER_INSTANTIATE_SIDES(N)                               \
  template Sizes<N>::Sizes(std::initializer_list<std::int64_t>); \
  template Value to_value(const Sizes<N>&);                      \
  template std::string from_value(const Value&, Sizes<N>&)
TAPER_INSTANTIATE_SIDES(4);
TAPER_INSTANTIATE_SIDES(6);
#undef TAPER_INSTANTIATE_SIDES

}  // namespace taper::nn
