#pragma once

#include "taper/nn/registry.hpp"

// What each file of layers contributes to the registry.
namespace taper::nn {

std::vector<LayerType> pool_layers();

}  // namespace taper::nn
