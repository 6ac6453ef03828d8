#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/window.hpp"
#include "config/model_config.hpp"

namespace taper::cli {

/// What is known of a layer from its options and shapes alone, without memory for its parameters.

/// The options that differ from their defaults: "out_channels=32, kernel_size=3".
std::string changed_options(const config::LayerSpec& layer);

/// Nothing when the number is beyond 63 bits.
std::optional<std::int64_t> parameter_count(const config::LayerSpec& layer);

/// Multiplications with an addition each, for inputs of these shapes; 0 for layers without parameters.
std::optional<std::int64_t> multiply_adds(const config::LayerSpec& layer, std::span<const Shape> inputs);

/// Which positions of the model's input the results at each place see, along each spatial dimension.
class ReceptiveField {
 public:
  /// Of the model's input [1, C, ...].
  explicit ReceptiveField(const Shape& input);
  /// After `layer`, whose inputs had these fields and shapes.
  ReceptiveField(const config::LayerSpec& layer, std::span<const ReceptiveField> fields, std::span<const Shape> shapes);

  /// "3 x 5": the widest; "all" behind a layer that mixes everything; "" without spatial dimensions.
  std::string to_string() const;

 private:
  std::vector<std::vector<IndexRange>> axes_;  // empty once places are no longer in line with the input's
  std::vector<std::int64_t> widths_;
  bool all_ = false;
};

/// What a windowed layer sees of its input: "24 of 25, tail 1" along each dimension, "" for other layers.
std::string coverage(const config::LayerSpec& layer, const Shape& input);

}  // namespace taper::cli
