#include "config/options_reader.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace taper::config {

Json json_of(const Value& value) {
  if (const auto* flag = value.get<bool>()) return *flag;
  if (const auto* integer = value.get<std::int64_t>()) return *integer;
  if (const auto* number = value.get<double>()) return *number;
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* list = value.get<Value::List>()) {
    Json array = Json::array();
    for (const Value& item : *list) array.push_back(json_of(item));
    return array;
  }
  return nullptr;
}

Value value_of(const Json& json) {
  Value value;
  if (json.is_boolean()) value = Value(json.get<bool>());
  if (json.is_number_integer()) value = Value(json.get<std::int64_t>());
  if (json.is_number_float()) value = Value(json.get<double>());
  if (json.is_string()) value = Value(json.get<std::string>());
  if (json.is_array()) {
    Value::List list;
    for (const Json& item : json) list.push_back(value_of(item));
    value = Value(std::move(list));
  }
  return value;
}

namespace {

/// A list of integers that may hold nulls, or lists of integers, as the type allows.
bool sizes_fit(Reader& reader, const FieldType& type, const Json& list, const std::string& pointer) {
  bool fits = true;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = cat(pointer, '/', i);
    if (type.nullable && list[i].is_null()) continue;
    const bool pair = type.kind == FieldType::padding && list[i].is_array();
    fits &= pair ? reader.integers(list[i], at).has_value() : reader.integer(list[i], at).has_value();
  }
  return fits;
}

/// Whether `json` has the JSON type of the field; says what is wrong if not. Ranges and lengths are the field's own
/// affair.
bool type_fits(Reader& reader, const FieldType& type, const Json& json, const std::string& pointer) {
  if (json.is_null() && type.nullable) return true;
  const bool list = json.is_array();
  switch (type.kind) {
    case FieldType::boolean:
      return reader.boolean(json, pointer).has_value();
    case FieldType::integer:
      return reader.integer(json, pointer).has_value();
    case FieldType::number:
      return reader.number(json, pointer).has_value();
    case FieldType::text:
      return reader.string(json, pointer).has_value();
    case FieldType::numbers:
      if (type.arity == 1 && !list) return reader.number(json, pointer).has_value();
      return reader.numbers(json, pointer).has_value();
    case FieldType::texts:
      return list ? reader.strings(json, pointer).has_value() : reader.string(json, pointer).has_value();
    case FieldType::choice: {
      const std::vector<std::string_view> names(type.choices.begin(), type.choices.end());
      return reader.one_of(json, pointer, names).has_value();
    }
    case FieldType::padding:
      if (json.is_string()) return true;
      [[fallthrough]];
    case FieldType::sizes:
      return list ? sizes_fit(reader, type, json, pointer) : reader.integer(json, pointer).has_value();
  }
  return true;
}

}  // namespace

OptionsReader::OptionsReader(Reader& reader, const Json& object, std::string pointer,
                             std::vector<std::string_view> other_keys)
    : reader_(reader), object_(object), pointer_(std::move(pointer)), keys_(std::move(other_keys)) {}

void OptionsReader::visit(const Field& field, FieldAccess& access) {
  keys_.push_back(field.key);
  if (!object_.contains(field.key)) {
    if (field.required) good_ &= reader_.required(object_, pointer_, field.key) != nullptr;
    return;
  }
  const Json& json = object_[field.key];
  const std::string pointer = pointer_ + "/" + field.key;
  if (!type_fits(reader_, access.type(), json, pointer)) {
    good_ = false;
    return;
  }
  const Value value = value_of(json);
  std::string problem = access.set(value);
  if (problem.empty()) problem = check_rule(field.rule, value);
  if (problem.empty()) return;
  reader_.error(pointer, problem);
  good_ = false;
}

bool OptionsReader::finish() {
  for (const auto& [key, value] : object_.items()) good_ &= std::find(keys_.begin(), keys_.end(), key) != keys_.end();
  reader_.refuse_unknown_keys(object_, pointer_, keys_);
  return good_;
}

}  // namespace taper::config
