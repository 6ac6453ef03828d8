#pragma once

#include <string>
#include <vector>

#include "support/json.hpp"
#include "taper/nn/registry.hpp"

/// Options that a layer takes on its example's inputs, found from its fields alone.
namespace taper::test {

/// The example's options; those with one field changed to each value worth trying; and as many mixtures of such
/// changes as make `count` in all. Only what the layer accepts, the same in each call.
std::vector<nlohmann::json> variations(const nn::LayerType& type, std::size_t count = 40);

/// The fields that no variation gives another value than the example.
std::vector<std::string> unvaried_fields(const nn::LayerType& type);

}  // namespace taper::test
