#include "config/json_values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "base/nearest.hpp"

namespace taper::config {

namespace {

constexpr const char* kInteger = "an integer";
constexpr const char* kNumber = "a number";
constexpr const char* kBoolean = "true or false";
constexpr const char* kString = "a string";
constexpr std::size_t kMostListed = 12;  // names a message lists
constexpr std::size_t kMostShown = 40;   // code points of a value it shows

bool is_int64(const Json& value) {
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
}

/// "a, b or c", or "" when there are too many to read.
std::string listed(std::span<const std::string_view> names) {
  if (names.empty() || names.size() > kMostListed) return "";
  std::string out(names[0]);
  for (std::size_t i = 1; i < names.size(); ++i) out += cat(i + 1 < names.size() ? ", " : " or ", names[i]);
  return out;
}

/// What a message calls `value`, which is written as `literal`.
std::string described(const Json& value, const std::string& literal) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return cat(value.is_string() ? "a string " : "", shown(literal, kMostShown));
}

/// Whether a string holds what would be a value of the kind `what` without its quotes.
bool is_quoted(std::string_view what, const std::string& text) {
  if (what == kBoolean) return text == "true" || text == "false";
  double number = 0;
  std::int64_t integer = 0;
  const char* end = text.data() + text.size();
  const auto result =
      what == kInteger ? std::from_chars(text.data(), end, integer) : std::from_chars(text.data(), end, number);
  return !text.empty() && result.ec == std::errc() && result.ptr == end && std::isfinite(number);
}

}  // namespace

void Reader::add(const std::string& pointer, std::string message, bool at_key) {
  Diagnostic diagnostic{.pointer = pointer, .message = std::move(message), .layer = layer_};
  if (!diagnostics_.is_full()) {
    Place place = at_key ? document_.key_place(pointer) : document_.value_place(pointer);
    diagnostic.span = place.span;
    diagnostic.origin = std::move(place.origin);
  }
  diagnostics_.add(std::move(diagnostic));
}

void Reader::error(const std::string& pointer, std::string message) { add(pointer, std::move(message), false); }

void Reader::error_at_key(const std::string& pointer, std::string message) { add(pointer, std::move(message), true); }

/// "; write 3 without quotes", where the value shows what was meant.
std::string Reader::hint_for(std::string_view what, const Json& value) const {
  if (value.is_string() && what != kString) {
    const auto& text = value.get_ref<const std::string&>();
    return is_quoted(what, text) ? cat("; write ", shown(text), " without quotes") : "";
  }
  if (what == kInteger && value.is_number_float()) {
    const auto whole = checked::to_int64(value.get<double>());
    return whole ? cat("; write ", *whole) : "";
  }
  if (what == kBoolean && value.is_number_integer() && (value == 0 || value == 1)) {
    return value == 0 ? "; write false" : "; write true";
  }
  return "";
}

void Reader::expected(const char* what, const Json& value, const std::string& pointer) {
  if (diagnostics_.is_full()) return add(pointer, "", false);
  const bool is_scalar = !value.is_structured();
  const std::string literal = is_scalar ? document_.literal(pointer, value) : "";
  std::string hint = hint_for(what, value);
  if (what == kString && value.is_number()) hint = cat("; write \"", shown(literal, kMostShown), "\"");
  error(pointer, cat("expected ", what, ", got ", described(value, literal), hint));
}

std::optional<std::int64_t> Reader::integer(const Json& value, const std::string& pointer) {
  if (is_int64(value)) return value.get<std::int64_t>();
  const bool is_too_big = value.is_number() && std::isfinite(value.get<double>()) &&
                          document_.literal(pointer, value).find_first_of(".eE") == std::string::npos;
  expected(is_too_big ? "an integer from -9223372036854775808 to 9223372036854775807" : kInteger, value, pointer);
  return std::nullopt;
}

std::optional<double> Reader::number(const Json& value, const std::string& pointer) {
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  expected(value.is_number() ? "a finite number" : kNumber, value, pointer);
  return std::nullopt;
}

std::optional<bool> Reader::boolean(const Json& value, const std::string& pointer) {
  if (value.is_boolean()) return value.get<bool>();
  expected(kBoolean, value, pointer);
  return std::nullopt;
}

std::optional<std::string> Reader::string(const Json& value, const std::string& pointer) {
  if (value.is_string()) return value.get<std::string>();
  expected(kString, value, pointer);
  return std::nullopt;
}

std::optional<std::string> Reader::one_of(const Json& value, const std::string& pointer,
                                          std::span<const std::string_view> names) {
  const auto text = string(value, pointer);
  if (!text || std::find(names.begin(), names.end(), *text) != names.end()) return text;
  const std::string list = listed(names);
  error(pointer, cat("expected ", list.empty() ? "a known name" : list, ", got ", shown(*text, kMostShown),
                     did_you_mean(*text, names)));
  return std::nullopt;
}

bool Reader::is_object(const Json& value, const std::string& pointer) {
  if (!value.is_object()) expected("an object", value, pointer);
  return value.is_object();
}

bool Reader::is_array(const Json& value, const std::string& pointer, std::string_view of_what) {
  if (!value.is_array()) expected(cat("an array of ", of_what).c_str(), value, pointer);
  return value.is_array();
}

template <class Element, class Read>
std::optional<std::vector<Element>> Reader::elements(const Json& value, const std::string& pointer, const char* of_what,
                                                     Read read) {
  if (!is_array(value, pointer, of_what)) return std::nullopt;
  std::vector<Element> found;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto element = (this->*read)(value[i], child(pointer, i))) found.push_back(std::move(*element));
  }
  if (found.size() < value.size()) return std::nullopt;
  return found;
}

std::optional<std::vector<std::int64_t>> Reader::integers(const Json& value, const std::string& pointer) {
  return elements<std::int64_t>(value, pointer, "integers", &Reader::integer);
}

std::optional<std::vector<double>> Reader::numbers(const Json& value, const std::string& pointer) {
  return elements<double>(value, pointer, "numbers", &Reader::number);
}

std::optional<std::vector<bool>> Reader::booleans(const Json& value, const std::string& pointer) {
  return elements<bool>(value, pointer, "true and false", &Reader::boolean);
}

std::optional<std::vector<std::string>> Reader::strings(const Json& value, const std::string& pointer) {
  return elements<std::string>(value, pointer, "strings", &Reader::string);
}

void Reader::refuse_unknown_keys(const Json& object, const std::string& pointer,
                                 std::span<const std::string_view> names) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    std::string hint = did_you_mean(key, names);
    const std::string list = listed(names);
    if (hint.empty() && !list.empty()) hint = cat(": expected ", list);
    error_at_key(child(pointer, key), cat("unknown key", hint));
  }
}

const Json* Reader::required(const Json& object, const std::string& pointer, std::string_view key) {
  const auto found = object.find(std::string(key));
  if (found != object.end()) return &*found;
  error(pointer, cat("missing key: expected ", key, ", got none"));
  return nullptr;
}

}  // namespace taper::config
