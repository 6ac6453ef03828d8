#pragma once

#include <stdexcept>
#include <string>

#include "support/json.hpp"
#include "taper/fields.hpp"
#include "taper/shared.hpp"

/// Configs of stored cases as options structs.
namespace taper::test {

inline Value value_of(const nlohmann::json& json) {
  if (json.is_boolean()) return {json.get<bool>()};
  if (json.is_number_integer()) return {json.get<std::int64_t>()};
  if (json.is_number()) return {json.get<double>()};
  if (json.is_string()) return {json.get<std::string>()};
  Value value;
  if (json.is_array()) {
    Value::List list;
    for (const auto& item : json) list.push_back(value_of(item));
    value = Value(std::move(list));
  }
  return value;
}

/// Sets each field that the config names and counts them.
struct ConfigReader final : FieldVisitor {
  const nlohmann::json& config;
  std::size_t used = 0;
  explicit ConfigReader(const nlohmann::json& c) : config(c) {}
  void visit(const Field& field, FieldAccess& access) override {
    if (!config.contains(field.key)) return;
    const std::string problem = access.set(value_of(config[field.key]));
    if (!problem.empty()) throw std::runtime_error(std::string(field.key) + ": " + problem);
    ++used;
  }
};

/// The options of a catalogue entry (of a layer, loss, optimiser, ...) as `config` has them, beside its "type".
template <class Entry>
Shared<void> options_from(const Entry& entry, const nlohmann::json& config) {
  auto options = entry.new_options();
  ConfigReader reader(config);
  entry.visit(options.get(), reader);
  if (reader.used + config.count("type") != config.size()) throw std::runtime_error("unknown key in " + config.dump());
  return options;
}

}  // namespace taper::test
