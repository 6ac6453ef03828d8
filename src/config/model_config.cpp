#include <algorithm>

#include "base/fail.hpp"
#include "config/layers_reader.hpp"
#include "config/model_json.hpp"
#include "config/options_reader.hpp"
#include "taper/nn/graph.hpp"

namespace taper::config {

namespace {

constexpr const char* kInput = "input";
constexpr const char* kFloating = "float32";
constexpr const char* kInt64 = "int64";

/// The shape of one input with a placeholder batch extent, if it is given properly.
std::optional<Shape> read_shape(Reader& reader, const Json& json, const std::string& pointer) {
  const auto extents = reader.integers(json, pointer);
  if (!extents) return std::nullopt;
  std::vector<std::int64_t> batched = {1};
  for (std::size_t i = 0; i < extents->size(); ++i) {
    if ((*extents)[i] < 1) {
      reader.error(cat(pointer, '/', i), cat("expected >= 1, got ", (*extents)[i]));
      return std::nullopt;
    }
    batched.push_back((*extents)[i]);
  }
  try {
    return Shape(batched);
  } catch (const Error& error) {
    reader.error(pointer, error.what());
    return std::nullopt;
  }
}

/// {"shape": [12, 25], "dtype": "float32"}.
std::optional<nn::Outline> read_input(Reader& reader, const Json& json, const std::string& pointer) {
  static constexpr std::string_view kKeys[] = {"shape", "dtype"};
  static constexpr std::string_view kTypes[] = {kFloating, kInt64};
  if (!reader.is_object(json, pointer)) return std::nullopt;
  reader.refuse_unknown_keys(json, pointer, kKeys);
  const Json* shape_json = reader.required(json, pointer, "shape");
  const auto shape = shape_json ? read_shape(reader, *shape_json, pointer + "/shape") : std::nullopt;
  std::optional<std::string> type = kFloating;
  if (json.contains("dtype")) type = reader.one_of(json["dtype"], pointer + "/dtype", kTypes);
  if (!shape || !type) return std::nullopt;
  return nn::Outline(*shape, *type == kInt64 ? nn::Elements::int64 : nn::Elements::floating);
}

/// "inputs", an object of several, or "input", the only one. A model without either still has one of unknown shape.
std::vector<Readable> read_inputs(Reader& reader, const Json& model, const std::string& pointer) {
  const std::vector<Readable> unknown{{kInput, std::nullopt}};
  if (!model.contains("inputs")) {
    const Json* input = reader.required(model, pointer, kInput);
    return {{kInput, input ? read_input(reader, *input, pointer + "/input") : std::nullopt}};
  }
  const std::string here = pointer + "/inputs";
  if (model.contains(kInput))
    reader.error_at_key(here, "the model's inputs are given twice: expected input or inputs, got both");
  if (!reader.is_object(model["inputs"], here)) return unknown;
  std::vector<Readable> inputs;
  for (const auto& [name, json] : model["inputs"].items()) {
    const std::string pointer_of_one = child(here, name);
    if (const std::string problem = wrong_input_name(name); !problem.empty())
      reader.error_at_key(pointer_of_one, problem);
    inputs.push_back({name, read_input(reader, json, pointer_of_one)});
  }
  if (!inputs.empty()) return inputs;
  reader.error(here, "a model needs an input: expected at least 1, got none");
  return unknown;
}

bool all_known(const std::vector<Readable>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const Readable& input) { return input.outline.has_value(); });
}

Shared<nn::Module> build_layers(const std::vector<LayerSpec>& layers, const std::vector<std::string>& inputs,
                                const std::vector<std::string>& outputs);

Shared<nn::Module> build_layer(const LayerSpec& spec) {
  if (spec.type) return spec.type->make(spec.options.get());
  if (spec.is_graph) return build_layers(spec.layers, spec.inner_names(), spec.outputs);
  auto sequential = Shared<nn::Sequential>::make();
  for (const LayerSpec& layer : spec.layers) sequential->append(layer.name, build_layer(layer));
  return sequential;
}

Shared<nn::Module> build_layers(const std::vector<LayerSpec>& layers, const std::vector<std::string>& inputs,
                                const std::vector<std::string>& outputs) {
  auto graph = Shared<nn::Graph>::make(std::vector<nn::Graph::Node>(), inputs);
  for (const LayerSpec& layer : layers) graph->append({layer.name, build_layer(layer), layer.inputs});
  if (!outputs.empty()) graph->set_outputs(outputs);
  return graph;
}

std::vector<std::string> names_of(const std::vector<NamedOutline>& values) {
  std::vector<std::string> names;
  for (const NamedOutline& value : values) names.push_back(value.name);
  return names;
}

Json layers_to_json(const std::vector<LayerSpec>& layers, std::string previous) {
  Json array = Json::array();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& spec = layers[i];
    Json object = {{"type", spec.type_name()}};
    if (spec.name != cat(i)) object["name"] = spec.name;
    if (!spec.names.empty())
      for (std::size_t k = 0; k < spec.names.size(); ++k) object["inputs"][spec.names[k]] = spec.inputs[k];
    else if (spec.inputs != std::vector<std::string>{previous})
      object["inputs"] = spec.inputs;
    if (spec.type) {
      OptionsWriter writer(object);
      spec.type->visit(spec.options.get(), writer);
    } else {
      object["layers"] = layers_to_json(spec.layers, spec.inner_names().front());
      if (!spec.outputs.empty()) object["outputs"] = spec.outputs;
    }
    array.push_back(std::move(object));
    previous = spec.name;
  }
  return array;
}

Json input_to_json(const nn::Outline& outline) {
  const Shape shape = without_batch(outline.shape);
  return {{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
          {"dtype", outline.elements == nn::Elements::int64 ? kInt64 : kFloating}};
}

}  // namespace

Shape ModelSpec::input() const { return without_batch(inputs.at(0).outline.shape); }

Shape ModelSpec::output() const {
  if (!outputs.empty()) return without_batch(outputs[0].outline.shape);
  return layers.empty() ? input() : without_batch(layers.back().output);
}

ModelSpec read_model(Reader& reader, const Json& model, const std::string& pointer) {
  static constexpr std::string_view kKeys[] = {"input", "inputs", "layers", "outputs"};
  ModelSpec spec;
  if (!reader.is_object(model, pointer)) return spec;
  reader.refuse_unknown_keys(model, pointer, kKeys);
  const std::vector<Readable> inputs = read_inputs(reader, model, pointer);
  if (all_known(inputs))
    for (const Readable& input : inputs) spec.inputs.push_back({input.name, *input.outline});
  const Json* layers = reader.required(model, pointer, "layers");
  const std::string layers_pointer = pointer + "/layers";
  if (!layers || !reader.is_array(*layers, layers_pointer, "layers")) return spec;
  if (layers->empty()) {
    reader.error(layers_pointer, "a model needs a layer: expected at least 1, got none");
    return spec;
  }
  LayersReader list(reader, inputs, true);
  list.read(*layers, layers_pointer);
  spec.complete = !spec.inputs.empty() && list.complete();
  if (model.contains("outputs")) {
    const auto outputs = list.read_outputs(model["outputs"], pointer + "/outputs");
    spec.complete &= outputs.has_value();
    if (outputs) spec.outputs = *outputs;
  }
  spec.layers = list.take();
  return spec;
}

Shared<nn::Module> build_model(const ModelSpec& model) {
  return build_layers(model.layers, names_of(model.inputs), names_of(model.outputs));
}

Json json_of(const ModelSpec& model) {
  Json object = Json::object();
  if (names_of(model.inputs) == std::vector<std::string>{kInput}) {
    object[kInput] = input_to_json(model.inputs[0].outline);
  } else {
    object["inputs"] = Json::object();
    for (const NamedOutline& input : model.inputs) object["inputs"][input.name] = input_to_json(input.outline);
  }
  object["layers"] = layers_to_json(model.layers, model.inputs.at(0).name);
  if (!model.outputs.empty()) object["outputs"] = names_of(model.outputs);
  return object;
}

}  // namespace taper::config
