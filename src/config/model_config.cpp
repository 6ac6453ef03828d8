#include "config/model_json.hpp"

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "config/nearest.hpp"
#include "config/options_reader.hpp"
#include "taper/nn/graph.hpp"

namespace taper::config {

namespace {

constexpr const char* kInput = "input";
constexpr const char* kSequential = "Sequential";

/// "[12, 25]": a shape as the config writes it, without the batch.
Shape without_batch(const Shape& shape) { return shape.slice(1, shape.rank()); }

/// Reads the layers of one list, in order, and carries the shapes along.
class LayersReader {
 public:
  LayersReader(Reader& reader, const std::optional<Shape>& input, bool named_inputs)
      : reader_(reader), named_inputs_(named_inputs) {
    shapes_[kInput] = input;
    trail_ = input ? "input " + to_string(without_batch(*input)) : "";
  }

  void read(const Json& layers, const std::string& pointer) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      LayerSpec spec;
      spec.pointer = cat(pointer, '/', i);
      spec.name = cat(i);
      reader_.set_layer("");
      read_layer(layers[i], i, spec);
    }
    reader_.set_layer("");
  }

  std::vector<LayerSpec> take() { return std::move(specs_); }
  bool complete() const { return complete_; }
  /// The output of the last layer, if every shape on the way is known.
  std::optional<Shape> output() const {
    const auto it = shapes_.find(previous_);
    return it == shapes_.end() ? std::nullopt : it->second;
  }

 private:
  void read_layer(const Json& json, std::size_t index, LayerSpec& spec) {
    bool good = reader_.is_object(json, spec.pointer);
    if (good) {
      const Json* type = reader_.required(json, spec.pointer, "type");
      const auto type_name = type ? reader_.string(*type, spec.pointer + "/type") : std::nullopt;
      good = read_name(json, index, spec);
      reader_.set_layer(spec.name == cat(index) ? cat(type_name.value_or("layer"), " ", index) : spec.name);
      good &= read_inputs(json, spec);
      good &= type_name && read_body(json, *type_name, spec);
    }
    if (!good) spec.output = Shape();
    complete_ &= good;
    previous_ = spec.name;
    shapes_[spec.name] = good ? std::optional<Shape>(spec.output) : std::nullopt;
    types_[spec.name] = spec.type_name();
    for (const FurtherOutput& output : spec.further) shapes_[cat(spec.name, '.', output.name)] = output.outline.shape;
    if (good) {
      trail_ += cat(trail_.empty() ? "" : " -> ", label(spec), ' ', without_batch(spec.output));
      if (complete_) specs_.push_back(std::move(spec));
    }
  }

  static std::string label(const LayerSpec& spec) {
    const bool numbered = spec.name.find_first_not_of("0123456789") == std::string::npos;
    return numbered ? spec.type_name() : spec.name;
  }

  bool read_name(const Json& json, std::size_t index, LayerSpec& spec) {
    if (!json.contains("name")) return true;
    const std::string pointer = spec.pointer + "/name";
    const auto name = reader_.string(json["name"], pointer);
    if (!name) return false;
    const bool number = !name->empty() && name->find_first_not_of("0123456789") == std::string::npos;
    std::string problem;
    if (name->empty() || name->find('.') != std::string::npos)
      problem = cat("a layer's name must not be empty or hold a dot: expected a word, got \"", *name, '"');
    else if (*name == kInput)
      problem = "the name is the model's own input's: expected another, got \"input\"";
    else if (number && *name != cat(index))
      problem = cat("a number names the layer at that place: expected a word or \"", index, "\", got \"", *name, '"');
    else if (shapes_.count(*name))
      problem = cat("the name is taken: expected a new one, got \"", *name, '"');
    if (!problem.empty()) {
      reader_.error(pointer, problem);
      return false;
    }
    spec.name = *name;
    return true;
  }

  bool read_inputs(const Json& json, LayerSpec& spec) {
    if (!json.contains("inputs")) {
      spec.inputs = {previous_};
      return true;
    }
    const std::string pointer = spec.pointer + "/inputs";
    if (!named_inputs_) {
      reader_.error_at_key(pointer,
                           "a layer inside a Sequential reads the one before it: expected no inputs, got some");
      return false;
    }
    const auto names = reader_.strings(json["inputs"], pointer);
    if (!names) return false;
    bool good = true;
    if (names->empty()) {
      reader_.error(pointer, "expected at least 1 name, got none");
      good = false;
    }
    for (std::size_t i = 0; i < names->size(); ++i) {
      if (is_there((*names)[i])) continue;
      reader_.error(cat(pointer, '/', i), missing_input((*names)[i]));
      good = false;
    }
    spec.inputs = *names;
    return good;
  }

  /// A layer that is wrong itself may have any further results.
  bool is_there(const std::string& name) const {
    if (shapes_.count(name)) return true;
    const auto layer = shapes_.find(name.substr(0, name.find('.')));
    return layer != shapes_.end() && !layer->second;
  }

  /// Why there is nothing of this name to read.
  std::string missing_input(const std::string& wanted) const {
    const std::string layer = wanted.substr(0, wanted.find('.'));
    const auto type = types_.find(layer);
    const bool asks_further = type != types_.end() && layer != wanted;
    std::vector<std::string_view> known;
    std::string further;
    for (const auto& [name, shape] : shapes_) {
      if (asks_further && !name.starts_with(layer + ".")) continue;
      known.push_back(name);
      if (asks_further) further += cat(further.empty() ? "\"" : " or \"", name, '"');
    }
    const std::string got = cat(", got \"", wanted, '"', did_you_mean(wanted, known));
    if (!asks_further) return "no earlier layer has this name: expected one of the layers above or \"input\"" + got;
    if (known.empty())
      return cat(type->second, " gives no further results with these options: expected \"", layer, '"', got);
    return cat(type->second, " has no further result of this name: expected ", further, got);
  }

  bool read_body(const Json& json, const std::string& type, LayerSpec& spec) {
    std::vector<Shape> inputs;
    bool known = true;
    for (const std::string& name : spec.inputs) {
      const auto& shape = shapes_[name];
      known &= shape.has_value();
      if (shape) inputs.push_back(*shape);
    }
    if (type == kSequential) return read_sequential(json, known ? std::optional(inputs[0]) : std::nullopt, spec);
    spec.type = nn::find_layer_type(type);
    if (!spec.type) {
      std::vector<std::string_view> names{kSequential};
      for (const auto& entry : nn::layer_types()) names.push_back(entry.name);
      const std::string hint = did_you_mean(type, names);
      reader_.error(spec.pointer + "/type", cat("unknown layer type: expected a layer's class name, got \"", type, '"',
                                                hint.empty() ? "; taper layers lists them" : hint));
      return false;
    }
    spec.options = spec.type->new_options();
    OptionsReader visitor(reader_, json, spec.pointer, {"type", "name", "inputs"});
    spec.type->visit(spec.options.get(), visitor);
    if (!visitor.finish() || !check_input_count(spec)) return false;
    return known && infer(json, inputs, spec);
  }

  bool check_input_count(const LayerSpec& spec) {
    const std::size_t n = spec.inputs.size(), low = spec.type->min_inputs, high = spec.type->max_inputs;
    if (n >= low && n <= high) return true;
    const std::string expected = low == high ? cat(low) : high > 1000 ? cat("at least ", low) : cat(low, " to ", high);
    reader_.error(spec.pointer + "/inputs",
                  cat(spec.type->name, " takes another number of inputs: expected ", expected, ", got ", n));
    return false;
  }

  /// Lets the layer work out its output; what it refuses is shown at the option it speaks of, with the way the shapes
  /// came.
  bool infer(const Json& json, const std::vector<Shape>& inputs, LayerSpec& spec) {
    try {
      spec.output = spec.type->infer(spec.options.get(), inputs);
      if (!spec.type->further_outputs) return true;
      const std::vector<std::string> names = spec.type->further_outputs(spec.options.get());
      const std::vector<nn::Outline> outlines = spec.type->infer_further(spec.options.get(), inputs);
      for (std::size_t i = 0; i < names.size(); ++i) spec.further.push_back({names[i], outlines.at(i)});
      return true;
    } catch (const Error& error) {
      const std::string sentence = error.what();
      std::string pointer = spec.pointer;
      std::size_t first = std::string::npos;
      for (const auto& [key, value] : json.items()) {
        const std::size_t at = key == "type" || key == "name" ? std::string::npos : sentence.find(key);
        if (at >= first) continue;
        first = at;
        pointer = spec.pointer + "/" + key;
      }
      reader_.error(pointer, cat(sentence, "; shapes: ", trail_, " -> ", spec.type->name));
      return false;
    }
  }

  bool read_sequential(const Json& json, const std::optional<Shape>& input, LayerSpec& spec) {
    static constexpr std::string_view kKeys[] = {"type", "name", "inputs", "layers"};
    reader_.refuse_unknown_keys(json, spec.pointer, kKeys);
    const Json* layers = reader_.required(json, spec.pointer, "layers");
    const std::string pointer = spec.pointer + "/layers";
    if (!layers || !reader_.is_array(*layers, pointer, "layers")) return false;
    LayersReader inner(reader_, input, false);
    inner.read(*layers, pointer);
    if (!inner.complete() || !inner.output()) return false;
    spec.layers = inner.take();
    spec.output = *inner.output();
    return std::all_of(json.items().begin(), json.items().end(), [](const auto& item) {
      return std::find(std::begin(kKeys), std::end(kKeys), item.key()) != std::end(kKeys);
    });
  }

  Reader& reader_;
  bool named_inputs_;
  std::map<std::string, std::optional<Shape>> shapes_;  // by name; nothing where it could not be worked out
  std::map<std::string, std::string> types_;            // of the layers so far
  std::string previous_ = kInput;
  std::string trail_;
  std::vector<LayerSpec> specs_;
  bool complete_ = true;
};

/// The model's input with a placeholder batch extent, if it is given properly.
std::optional<Shape> read_input(Reader& reader, const Json& model, const std::string& pointer) {
  static constexpr std::string_view kKeys[] = {"shape"};
  const Json* input = reader.required(model, pointer, "input");
  const std::string here = pointer + "/input";
  if (!input || !reader.is_object(*input, here)) return std::nullopt;
  reader.refuse_unknown_keys(*input, here, kKeys);
  const Json* json = reader.required(*input, here, "shape");
  const auto extents = json ? reader.integers(*json, here + "/shape") : std::nullopt;
  if (!extents) return std::nullopt;
  std::vector<std::int64_t> batched = {1};
  for (std::size_t i = 0; i < extents->size(); ++i) {
    if ((*extents)[i] < 1) {
      reader.error(cat(here, "/shape/", i), cat("expected >= 1, got ", (*extents)[i]));
      return std::nullopt;
    }
    batched.push_back((*extents)[i]);
  }
  try {
    return Shape(batched);
  } catch (const Error& error) {
    reader.error(here + "/shape", error.what());
    return std::nullopt;
  }
}

Shared<nn::Module> build_layer(const LayerSpec& spec) {
  if (spec.type) return spec.type->make(spec.options.get());
  auto sequential = Shared<nn::Sequential>::make();
  for (const LayerSpec& layer : spec.layers) sequential->append(layer.name, build_layer(layer));
  return sequential;
}

Json layers_to_json(const std::vector<LayerSpec>& layers) {
  Json array = Json::array();
  std::string previous = kInput;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& spec = layers[i];
    Json object = {{"type", spec.type_name()}};
    if (spec.name != cat(i)) object["name"] = spec.name;
    if (spec.inputs != std::vector<std::string>{previous}) object["inputs"] = spec.inputs;
    if (spec.type) {
      OptionsWriter writer(object);
      spec.type->visit(spec.options.get(), writer);
    } else {
      object["layers"] = layers_to_json(spec.layers);
    }
    array.push_back(std::move(object));
    previous = spec.name;
  }
  return array;
}

}  // namespace

Shape ModelSpec::output() const { return layers.empty() ? input : without_batch(layers.back().output); }

ModelSpec read_model(Reader& reader, const Json& model, const std::string& pointer) {
  static constexpr std::string_view kKeys[] = {"input", "layers"};
  ModelSpec spec;
  if (!reader.is_object(model, pointer)) return spec;
  reader.refuse_unknown_keys(model, pointer, kKeys);
  const auto input = read_input(reader, model, pointer);
  if (input) spec.input = without_batch(*input);
  const Json* layers = reader.required(model, pointer, "layers");
  const std::string layers_pointer = pointer + "/layers";
  if (!layers || !reader.is_array(*layers, layers_pointer, "layers")) return spec;
  if (layers->empty()) {
    reader.error(layers_pointer, "a model needs a layer: expected at least 1, got none");
    return spec;
  }
  LayersReader list(reader, input, true);
  list.read(*layers, layers_pointer);
  spec.complete = input && list.complete();
  spec.layers = list.take();
  return spec;
}

Shared<nn::Module> build_model(const ModelSpec& model) {
  auto graph = Shared<nn::Graph>::make();
  for (const LayerSpec& layer : model.layers) graph->append({layer.name, build_layer(layer), layer.inputs});
  return graph;
}

Json json_of(const ModelSpec& model) {
  const std::vector<std::int64_t> extents(model.input.begin(), model.input.end());
  return {{"input", {{"shape", extents}}}, {"layers", layers_to_json(model.layers)}};
}

}  // namespace taper::config
