#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "config/model_config.hpp"

// What the summary knows of layers that read a sequence as a whole.
namespace taper::cli {

/// Whether the layer is recurrent or attends: a step then sees whatever the layer reads.
bool reads_sequence(const config::LayerSpec& layer);

/// Multiply-adds of such a layer on inputs of these shapes; nothing when they do not fit 63 bits.
std::optional<std::int64_t> sequence_products(const config::LayerSpec& layer, std::span<const Shape> inputs);

}  // namespace taper::cli
