#pragma once

#include <string>

#include "config/training_config.hpp"
#include "support/catch.hpp"

/// Models as the text of a JSON file.
namespace taper::test {

/// The errors of a model file, rendered; "" when it is right.
inline std::string errors_of(const std::string& text) { return config::parse_model(text, "m.json").errors; }

/// The model, which must be right.
inline config::ModelSpec model_of(const std::string& text) {
  const config::LoadedModel loaded = config::parse_model(text, "m.json");
  INFO(loaded.errors);
  REQUIRE(loaded.model.complete);
  REQUIRE(loaded.errors == "");
  return loaded.model;
}

}  // namespace taper::test
