#include "taper/fields.hpp"

#include <cmath>

#include "base/checked.hpp"
#include "base/fail.hpp"

namespace taper {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string number_text(double value) {
  const std::string text = cat(value);
  const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return looks_whole ? text + ".0" : text;
}

/// How an error names a value: with its kind where the text alone could mislead.
std::string got(const Value& value) {
  if (value.is_null()) return "null";
  if (value.get<std::string>()) return "the string " + to_json(value);
  if (value.get<Value::List>()) return "the list " + to_json(value);
  return to_json(value);
}

std::string expected(const char* what, const Value& value) { return cat("expected ", what, ", got ", got(value)); }

void append_numbers(const Value& value, std::vector<double>& out) {
  if (const auto* integer = value.get<std::int64_t>()) out.push_back(double(*integer));
  if (const auto* number = value.get<double>()) out.push_back(*number);
  if (const auto* list = value.get<Value::List>())
    for (const Value& item : *list) append_numbers(item, out);
}

/// A number as a rule's sentence shows it: "1", "0.5".
std::string plain(double value) {
  const auto whole = checked::to_int64(value);
  return whole ? cat(*whole) : cat(value);
}

}  // namespace

Value::Value() = default;
Value::Value(bool flag) : kind_(Kind::boolean), boolean_(flag) {}
Value::Value(std::int64_t integer) : kind_(Kind::integer), integer_(integer) {}
Value::Value(double number) : kind_(Kind::number), number_(number) {}
Value::Value(const char* text) : Value(std::string(text)) {}
Value::Value(std::string text) : kind_(Kind::text), text_(std::move(text)) {}
Value::Value(List list) : kind_(Kind::list), list_(std::move(list)) {}

std::string to_json(const Value& value) {
  if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = value.get<std::int64_t>()) return cat(*integer);
  if (const auto* number = value.get<double>()) return number_text(*number);
  if (const auto* text = value.get<std::string>()) return quoted(*text);
  if (const auto* list = value.get<Value::List>()) {
    std::string out = "[";
    for (const Value& item : *list) out += (out.size() > 1 ? ", " : "") + to_json(item);
    return out + "]";
  }
  return "null";
}

std::string check_rule(const Rule& rule, const Value& value) {
  std::vector<double> numbers;
  append_numbers(value, numbers);
  for (const double x : numbers) {
    if (std::isnan(x)) return "expected a number, got nan";
    const bool low = rule.exclusive_min ? !(x > rule.min) : !(x >= rule.min);
    const bool high = rule.exclusive_max ? !(x < rule.max) : !(x <= rule.max);
    if (low) return cat("expected ", rule.exclusive_min ? "> " : ">= ", plain(rule.min), ", got ", plain(x));
    if (high) return cat("expected ", rule.exclusive_max ? "< " : "<= ", plain(rule.max), ", got ", plain(x));
  }
  return "";
}

FieldType field_type(const bool*) { return {.kind = FieldType::boolean}; }
FieldType field_type(const std::int64_t*) { return {.kind = FieldType::integer}; }
FieldType field_type(const double*) { return {.kind = FieldType::number}; }
FieldType field_type(const std::string*) { return {.kind = FieldType::text}; }
FieldType field_type(const std::vector<std::string>*) { return {.kind = FieldType::texts}; }
FieldType field_type(const std::vector<double>*) { return {.kind = FieldType::numbers}; }

Value to_value(bool value) { return Value(value); }
Value to_value(std::int64_t value) { return Value(value); }
Value to_value(double value) { return Value(value); }
Value to_value(const std::string& value) { return Value(value); }

namespace {

template <class T>
Value list_value(const std::vector<T>& values) {
  Value::List list;
  for (const T& x : values) list.push_back(to_value(x));
  return Value(std::move(list));
}

template <class T>
std::string from_list(const Value::List& from, std::vector<T>& to) {
  std::vector<T> items;
  for (const Value& item : from) {
    std::string problem = from_value(item, items.emplace_back());
    if (!problem.empty()) return problem;
  }
  to = std::move(items);
  return "";
}

}  // namespace

Value to_value(const std::vector<double>& value) { return list_value(value); }
Value to_value(const std::vector<std::string>& value) { return list_value(value); }

std::string from_value(const Value& from, bool& to) {
  const auto* flag = from.get<bool>();
  if (!flag) return expected("true or false", from);
  to = *flag;
  return "";
}

std::string from_value(const Value& from, std::int64_t& to) {
  const auto* integer = from.get<std::int64_t>();
  if (!integer) return expected("an integer", from);
  to = *integer;
  return "";
}

std::string from_value(const Value& from, double& to) {
  if (const auto* integer = from.get<std::int64_t>()) {
    to = double(*integer);
    return "";
  }
  const auto* number = from.get<double>();
  if (!number || !std::isfinite(*number)) return expected("a number", from);
  to = *number;
  return "";
}

std::string from_value(const Value& from, std::string& to) {
  const auto* text = from.get<std::string>();
  if (!text) return expected("a string", from);
  to = *text;
  return "";
}

std::string from_value(const Value& from, std::vector<double>& to) {
  const auto* list = from.get<Value::List>();
  return list ? from_list(*list, to) : expected("a list of numbers", from);
}

std::string from_value(const Value& from, std::vector<std::string>& to) {
  if (const auto* text = from.get<std::string>()) {
    to = {*text};
    return "";
  }
  const auto* list = from.get<Value::List>();
  return list ? from_list(*list, to) : expected("a string or a list of strings", from);
}

std::string choose(const Value& from, std::span<const char* const> names, std::size_t& index) {
  std::string all;
  for (const char* name : names) all += (all.empty() ? "\"" : " or \"") + std::string(name) + "\"";
  const auto* text = from.get<std::string>();
  for (std::size_t i = 0; text && i < names.size(); ++i) {
    if (*text != names[i]) continue;
    index = i;
    return "";
  }
  return cat("expected ", all, ", got ", to_json(from));
}

namespace detail {

void FieldPrinter::visit(const Field& field, FieldAccess& access) {
  text += cat(text.empty() ? "" : ", ", field.key, '=', to_json(access.get()));
}

void FieldChecker::visit(const Field& field, FieldAccess& access) {
  const std::string problem = check_rule(field.rule, access.get());
  if (!problem.empty()) fail(ErrorKind::config, where, ": ", field.key, " is out of range: ", problem);
}

}  // namespace detail
}  // namespace taper
