#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/json_values.hpp"
#include "taper/fields.hpp"

namespace taper::config {

Json json_of(const Value& value);
Value value_of(const Json& json);

/// Reads the fields of an options struct from a JSON object; every key that is no field is an error.
class OptionsReader final : public FieldVisitor {
 public:
  /// `other_keys` belong to the object too, but are read by the caller.
  OptionsReader(Reader& reader, const Json& object, std::string pointer, std::vector<std::string_view> other_keys = {});

  /// Reports the keys that no visited field has. Whether all went well.
  bool finish();

 protected:
  void visit(const Field& field, FieldAccess& access) override;

 private:
  Reader& reader_;
  const Json& object_;
  std::string pointer_;
  std::vector<std::string_view> keys_;
  bool good_ = true;
};

/// Reads `options`, whose `fields` are found by its namespace. Whether all went well.
template <class Options>
bool read_options(Reader& reader, const Json& object, const std::string& pointer, Options& options,
                  std::vector<std::string_view> other_keys = {}) {
  if (!reader.is_object(object, pointer)) return false;
  OptionsReader visitor(reader, object, pointer, std::move(other_keys));
  fields(options, visitor);
  return visitor.finish();
}

/// Writes every field into a JSON object, in order.
class OptionsWriter final : public FieldVisitor {
 public:
  explicit OptionsWriter(Json& object) : object_(object) {}

 protected:
  void visit(const Field& field, FieldAccess& access) override { object_[field.key] = json_of(access.get()); }

 private:
  Json& object_;
};

template <class Options>
Json write_options(const Options& options) {
  Json object = Json::object();
  OptionsWriter writer(object);
  Options copy = options;
  fields(copy, writer);
  return object;
}

}  // namespace taper::config
