#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

/// How options are described once and used everywhere: JSON in and out, documentation, printed forms, checks.
///
/// Beside each options struct stands one function `void fields(Options&, FieldVisitor&)` that names every field with
/// its key, its help and its rule; the defaults are the struct's own.
namespace taper {

/// An option's value outside C++, as JSON knows it.
class Value {
 public:
  using List = std::vector<Value>;
  enum class Kind { null, boolean, integer, number, text, list };

  Value();
  Value(bool flag);
  Value(std::int64_t integer);
  Value(double number);
  Value(const char* text);
  Value(std::string text);
  Value(List list);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }

  /// The value if it is a `T` (bool, std::int64_t, double, std::string or List), else null.
  template <class T>
  const T* get() const {
    if constexpr (std::is_same_v<T, bool>) return kind_ == Kind::boolean ? &boolean_ : nullptr;
    if constexpr (std::is_same_v<T, std::int64_t>) return kind_ == Kind::integer ? &integer_ : nullptr;
    if constexpr (std::is_same_v<T, double>) return kind_ == Kind::number ? &number_ : nullptr;
    if constexpr (std::is_same_v<T, std::string>) return kind_ == Kind::text ? &text_ : nullptr;
    if constexpr (std::is_same_v<T, List>) return kind_ == Kind::list ? &list_ : nullptr;
  }

 private:
  Kind kind_ = Kind::null;
  bool boolean_ = false;
  std::int64_t integer_ = 0;
  double number_ = 0;
  std::string text_;
  List list_;
};

/// As JSON text: "null", "true", "3", "0.5", "\"same\"", "[2, 3]".
std::string to_json(const Value& value);

/// The numbers a field takes.
struct Rule {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool exclusive_min = false, exclusive_max = false;
};
inline constexpr Rule kAny{};
inline constexpr Rule kPositive{.min = 1};                                ///< whole numbers from 1
inline constexpr Rule kNonNegative{.min = 0};                             ///< from 0
inline constexpr Rule kAboveZero{.min = 0, .exclusive_min = true};        ///< real numbers above 0
inline constexpr Rule kProbability{.min = 0, .max = 1};                   ///< [0, 1]
inline constexpr Rule kDecay{.min = 0, .max = 1, .exclusive_max = true};  ///< [0, 1)

struct Field {
  const char* key;   ///< PyTorch's argument name and the JSON key
  const char* help;  ///< one line
  Rule rule = kAny;
  bool required = false;
};

/// What kind of value a field holds, for schemas and tables.
struct FieldType {
  enum Kind { boolean, integer, number, text, choice, sizes, padding, numbers, texts } kind;
  bool nullable = false;
  int arity = 0;                              ///< sizes, padding: dimensions, 0 for any; numbers: 1 if one may be alone
  std::span<const char* const> choices = {};  ///< choice: the names
};

/// One field of one options struct, behind a uniform face.
class FieldAccess {
 public:
  virtual ~FieldAccess() = default;
  virtual FieldType type() const = 0;
  virtual Value get() const = 0;
  /// Sets the field, or leaves it and says why not: "expected an integer, got 2.9". Empty when it went well.
  virtual std::string set(const Value& value) = 0;
};

/// "expected >= 1, got 0" when a number in `value` breaks the rule, else empty.
std::string check_rule(const Rule& rule, const Value& value);

// --- the types a field may have -------------------------------------------------------------------------------------
//
// A further type needs these three functions, found by its namespace: `FieldType field_type(const T*)`,
// `Value to_value(const T&)` and `std::string from_value(const Value&, T&)`.

FieldType field_type(const bool*);
FieldType field_type(const std::int64_t*);
FieldType field_type(const double*);
FieldType field_type(const std::string*);
FieldType field_type(const std::vector<double>*);
FieldType field_type(const std::vector<std::string>*);
Value to_value(bool value);
Value to_value(std::int64_t value);
Value to_value(double value);
Value to_value(const std::string& value);
Value to_value(const std::vector<double>& value);
Value to_value(const std::vector<std::string>& value);
std::string from_value(const Value& from, bool& to);
std::string from_value(const Value& from, std::int64_t& to);
std::string from_value(const Value& from, double& to);
std::string from_value(const Value& from, std::string& to);
std::string from_value(const Value& from, std::vector<double>& to);
std::string from_value(const Value& from, std::vector<std::string>& to);  ///< one string is a list of one

/// A value that may be left out or null.
template <class T>
FieldType field_type(const std::optional<T>*) {
  FieldType type = field_type(static_cast<const T*>(nullptr));
  type.nullable = true;
  return type;
}
template <class T>
Value to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : Value();
}
template <class T>
std::string from_value(const Value& from, std::optional<T>& to) {
  if (from.is_null()) {
    to.reset();
    return "";
  }
  T value{};
  std::string problem = from_value(from, value);
  if (problem.empty()) to = value;
  return problem;
}

/// An enumeration with `std::span<const char* const> names_of(E)`, the names in the order of its values.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  std::span<const char* const>(names_of(e));
};

std::string choose(const Value& from, std::span<const char* const> names, std::size_t& index);

template <NamedEnum E>
FieldType field_type(const E*) {
  return {.kind = FieldType::choice, .choices = names_of(E{})};
}
template <NamedEnum E>
Value to_value(E value) {
  return Value(std::string(names_of(value)[std::size_t(value)]));
}
template <NamedEnum E>
std::string from_value(const Value& from, E& to) {
  std::size_t index = 0;
  std::string problem = choose(from, names_of(E{}), index);
  if (problem.empty()) to = E(index);
  return problem;
}

// --- visiting -------------------------------------------------------------------------------------------------------

/// What is done with each field. `fields(options, visitor)` calls the visitor once a field.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  template <class T>
  void operator()(const Field& field, T& value) {
    struct __attribute__((visibility("hidden"))) Access final : FieldAccess {
      explicit Access(T& v) : target(v) {}
      FieldType type() const override { return field_type(static_cast<const T*>(nullptr)); }
      Value get() const override { return to_value(static_cast<const T&>(target)); }
      std::string set(const Value& from) override { return from_value(from, target); }
      T& target;
    };
    Access access(value);
    visit(field, access);
  }

 protected:
  virtual void visit(const Field& field, FieldAccess& access) = 0;
};

/// "kernel_size=3, stride=3, padding=0": every field, in order.
template <class Options>
std::string describe_fields(const Options& options);

/// Refuses options whose numbers break a rule. Errors: `ErrorKind::config`,
/// `where: key is out of range: expected E, got G`.
template <class Options>
void check_fields(const char* where, const Options& options);

namespace detail {

struct FieldPrinter final : FieldVisitor {
  std::string text;
  void visit(const Field& field, FieldAccess& access) override;
};
struct FieldChecker final : FieldVisitor {
  const char* where;
  explicit FieldChecker(const char* w) : where(w) {}
  void visit(const Field& field, FieldAccess& access) override;
};

}  // namespace detail

template <class Options>
std::string describe_fields(const Options& options) {
  detail::FieldPrinter printer;
  Options copy = options;
  fields(copy, printer);
  return printer.text;
}

template <class Options>
void check_fields(const char* where, const Options& options) {
  detail::FieldChecker checker(where);
  Options copy = options;
  fields(copy, checker);
}

}  // namespace taper

#pragma GCC visibility pop
