#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "taper/nn/module.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

/// For `LayerType::max_inputs`: no limit.
inline constexpr std::size_t kManyInputs = std::size_t(-1);

/// What is called of a layer class whose type is not said.
struct LayerCalls {
  Shared<void> (*new_options)() = nullptr;  ///< with all defaults
  void (*visit)(void* options, FieldVisitor& visitor) = nullptr;
  /// Fills in what follows from the input shapes (batched; the batch extent is a placeholder), checks the options
  /// against them and returns the output shape. Takes no memory. Errors: as the layer's own.
  Shape (*infer)(void* options, std::span<const Shape> inputs) = nullptr;
  Shared<Module> (*make)(const void* options) = nullptr;

  /// What the layer gives beside its main result; null: nothing.
  std::vector<std::string> (*further_outputs)(const void* options) = nullptr;
  /// Their outlines in the same order, from options that `infer` has accepted.
  std::vector<Outline> (*infer_further)(const void* options, std::span<const Shape> inputs) = nullptr;
};

/// A layer as JSON, `taper layers` and the tests of every layer know it.
struct LayerType : LayerCalls {
  LayerType();
  ~LayerType();
  LayerType(const LayerType&);
  LayerType(LayerType&&) noexcept;
  LayerType& operator=(const LayerType&);
  LayerType& operator=(LayerType&&) noexcept;

  std::string name;                   ///< the class name and JSON "type"
  std::string summary;                ///< one sentence with the shape law
  std::string example;                ///< a JSON object of options that builds the layer on `example_input`
  std::vector<Shape> example_inputs;  ///< with a batch extent in front
  std::size_t min_inputs = 1, max_inputs = 1;
  /// Of each input; the last stands for all that follow.
  std::vector<Elements> reads;
  std::int64_t example_indices = 0;  ///< int64 example inputs hold 0 <= index < this; neighbours differ
};

/// What `layer_type` takes from a layer class.
struct LayerClass {
  const char* name;
  LayerCalls calls;
  std::span<const Elements> reads;
  std::int64_t example_indices;
};

template <class M>
constexpr LayerClass layer_class() {
  using O = typename M::Options;
  LayerClass layer{.name = O::kType, .calls = {}, .reads = {}, .example_indices = 0};
  layer.calls = {
      .new_options = []() -> Shared<void> { return Shared<O>::make(); },
      .visit = [](void* options, FieldVisitor& visitor) { fields(*static_cast<O*>(options), visitor); },
      .infer = [](void* options, std::span<const Shape> inputs) { return M::infer(*static_cast<O*>(options), inputs); },
      .make = [](const void* options) -> Shared<Module> { return Shared<M>::make(*static_cast<const O*>(options)); }};
  if constexpr (requires { M::kReads; }) layer.reads = M::kReads;
  if constexpr (requires { M::kExampleIndices; }) layer.example_indices = M::kExampleIndices;
  if constexpr (requires(const O& options) { M::further_outputs(options); }) {
    layer.calls.further_outputs = [](const void* options) {
      return M::further_outputs(*static_cast<const O*>(options));
    };
    layer.calls.infer_further = [](const void* options, std::span<const Shape> inputs) {
      return M::infer_further(*static_cast<const O*>(options), inputs);
    };
  }
  return layer;
}

template <class M>
[[gnu::visibility("hidden")]] inline constexpr LayerClass kLayerClass = layer_class<M>();

LayerType layer_type(const LayerClass& layer, std::string_view summary, std::string_view example,
                     std::span<const Shape> example_inputs, std::size_t min_inputs, std::size_t max_inputs);

/// The entry of layer class `M`, which has `M::Options` with `kType`, `fields(Options&, FieldVisitor&)`, a constructor
/// from options, and `static Shape infer(Options&, std::span<const Shape>)`. It may have
/// - `static constexpr Elements kReads[]`, when not all its inputs are floating, and then `kExampleIndices`,
/// - `static std::vector<std::string> further_outputs(const Options&)` together with
///   `static std::vector<Outline> infer_further(const Options&, std::span<const Shape>)`, for further results; their
///   names are also what its `further_outputs()` gives.
template <class M>
LayerType layer_type(std::string_view summary, std::string_view example, const std::vector<Shape>& example_inputs,
                     std::size_t min_inputs = 1, std::size_t max_inputs = 1) {
  return layer_type(kLayerClass<M>, summary, example, example_inputs, min_inputs, max_inputs);
}

/// Every layer that JSON knows, in the order of the documentation; yours after the library's.
const std::vector<LayerType>& layer_types();
/// Null when there is none of that name.
const LayerType* find_layer_type(const std::string& name);
/// Adds a layer of your own. Call it before models are built; not from several threads.
/// Errors: `ErrorKind::config` for a name taken.
void register_layer(LayerType type);
template <class M>
void register_layer(std::string_view summary, std::string_view example, const std::vector<Shape>& example_inputs) {
  register_layer(layer_type<M>(summary, example, example_inputs));
}

}  // namespace taper::nn

#pragma GCC visibility pop
