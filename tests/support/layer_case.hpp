#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "support/golden_options.hpp"
#include "support/json.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"

/// A layer of the catalogue with options and inputs, as the tests of all layers use it.
namespace taper::test {

/// Numbers below `limit`, as many different ones in a row as there are.
inline Tensor example_indices(const Shape& shape, std::int64_t limit) {
  Tensor indices = zeros(shape, DType::int64);
  for (std::int64_t i = 0; i < indices.numel(); ++i) indices.data<std::int64_t>()[i] = (limit - 1) * i % limit;
  return indices;
}

/// The example's inputs, filled with numbers that are repeated in each call; a `batch` replaces the first extents.
inline std::vector<Tensor> random_inputs(const nn::LayerType& type, DType dtype, std::int64_t batch = 0) {
  manual_seed(17);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < type.example_inputs.size(); ++i) {
    const Shape& example = type.example_inputs[i];
    const Shape shape = batch > 0 ? example.with(0, batch) : example;
    if (type.reads[std::min(i, type.reads.size() - 1)] == nn::Elements::int64)
      inputs.push_back(example_indices(shape, type.example_indices));
    else
      inputs.push_back(uniform(shape, -2, 2, dtype).requires_grad_());
  }
  return inputs;
}

/// The layer of these options, with the same parameters in each call.
inline taper::Shared<nn::Module> build(const nn::LayerType& type, const nlohmann::json& options, DType dtype) {
  manual_seed(23);
  auto module = type.make(options_from(type, options).get());
  module->to(dtype);
  return module;
}

/// The layer of the entry's example.
inline taper::Shared<nn::Module> build(const nn::LayerType& type, DType dtype) {
  return build(type, parsed(type.example), dtype);
}

/// A call that draws the same random numbers each time.
inline Tensor call(nn::Module& module, const std::vector<Tensor>& inputs) {
  manual_seed(29);
  return module.forward_all(inputs);
}

/// The main result and the further ones; the same random numbers each time.
inline std::vector<Tensor> call_outputs(nn::Module& module, const std::vector<Tensor>& inputs) {
  manual_seed(29);
  return module.forward_outputs(inputs);
}

/// Whether there is no such thing as a sample alone, as in PyTorch.
inline bool reads_only_batches(const nn::LayerType& type) {
  return type.name.starts_with("BatchNorm") || type.name == "GroupNorm" || type.name == "Upsample";
}

/// A model of one layer on its example's inputs, each an input of the model.
inline nlohmann::ordered_json example_model(const nn::LayerType& type, const nlohmann::ordered_json& options) {
  using Json = nlohmann::ordered_json;
  Json layer = {{"type", type.name}}, inputs = Json::object(), names = Json::array();
  layer.update(options);
  for (std::size_t i = 0; i < type.example_inputs.size(); ++i) {
    const Shape& shape = type.example_inputs[i];
    const bool indices = type.reads[std::min(i, type.reads.size() - 1)] == nn::Elements::int64;
    names.push_back("x" + std::to_string(i));
    inputs[names.back()] = {{"shape", std::vector<std::int64_t>(shape.begin() + 1, shape.end())},
                            {"dtype", indices ? "int64" : "float32"}};
  }
  if (names.size() > 1) layer["inputs"] = names;
  return {{"inputs", inputs}, {"layers", Json::array({layer})}};
}

/// The keys of a layer's options.
inline std::vector<std::string> keys_of(const nn::LayerType& type) {
  struct List final : FieldVisitor {
    std::vector<std::string> keys;
    void visit(const Field& field, FieldAccess&) override { keys.emplace_back(field.key); }
  } list;
  type.visit(type.new_options().get(), list);
  return list.keys;
}

}  // namespace taper::test
