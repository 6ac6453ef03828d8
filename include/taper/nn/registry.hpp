#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "taper/nn/module.hpp"

namespace taper::nn {

/// For `LayerType::max_inputs`: no limit.
inline constexpr std::size_t kManyInputs = std::size_t(-1);

/// A layer as JSON, `taper layers` and the tests of every layer know it.
struct LayerType {
  std::string name;                   ///< the class name and JSON "type"
  std::string summary;                ///< one sentence with the shape law
  std::string example;                ///< a JSON object of options that builds the layer on `example_input`
  std::vector<Shape> example_inputs;  ///< with a batch extent in front
  std::size_t min_inputs = 1, max_inputs = 1;

  std::shared_ptr<void> (*new_options)() = nullptr;  ///< with all defaults
  void (*visit)(void* options, FieldVisitor& visitor) = nullptr;
  /// Fills in what follows from the input shapes (batched; the batch extent is a placeholder), checks the options
  /// against them and returns the output shape. Takes no memory. Errors: as the layer's own.
  Shape (*infer)(void* options, std::span<const Shape> inputs) = nullptr;
  std::shared_ptr<Module> (*make)(const void* options) = nullptr;
};

/// The entry of layer class `M`, which has `M::Options` with `kType`, `fields(Options&, FieldVisitor&)`, a constructor
/// from options, and `static Shape infer(Options&, std::span<const Shape>)`.
template <class M>
LayerType layer_type(std::string summary, std::string example, std::vector<Shape> example_inputs,
                     std::size_t min_inputs = 1, std::size_t max_inputs = 1) {
  using O = typename M::Options;
  LayerType type;
  type.name = O::kType;
  type.summary = std::move(summary);
  type.example = std::move(example);
  type.example_inputs = std::move(example_inputs);
  type.min_inputs = min_inputs;
  type.max_inputs = max_inputs;
  type.new_options = []() -> std::shared_ptr<void> { return std::make_shared<O>(); };
  type.visit = [](void* options, FieldVisitor& visitor) { fields(*static_cast<O*>(options), visitor); };
  type.infer = [](void* options, std::span<const Shape> inputs) { return M::infer(*static_cast<O*>(options), inputs); };
  type.make = [](const void* options) -> std::shared_ptr<Module> {
    return std::make_shared<M>(*static_cast<const O*>(options));
  };
  return type;
}

/// Every layer that JSON knows, in the order of the documentation; yours after the library's.
const std::vector<LayerType>& layer_types();
/// Null when there is none of that name.
const LayerType* find_layer_type(const std::string& name);
/// Adds a layer of your own. Call it before models are built; not from several threads.
/// Errors: `ErrorKind::config` for a name taken.
void register_layer(LayerType type);
template <class M>
void register_layer(std::string summary, std::string example, std::vector<Shape> example_inputs) {
  register_layer(layer_type<M>(std::move(summary), std::move(example), std::move(example_inputs)));
}

}  // namespace taper::nn
