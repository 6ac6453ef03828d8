#pragma once

#include <string>

#include "config/json_values.hpp"
#include "config/model_config.hpp"

namespace taper::config {

/// Reads a "model" object: all layers, their options, and the shapes between them, before any memory is taken.
/// Whatever is wrong goes to the reader's diagnostics.
ModelSpec read_model(Reader& reader, const Json& model, const std::string& pointer);

/// The "model" object with every option written out.
Json json_of(const ModelSpec& model);

}  // namespace taper::config
