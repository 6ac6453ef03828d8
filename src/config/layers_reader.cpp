#include "config/layers_reader.hpp"

#include <algorithm>
#include <iterator>

#include "base/fail.hpp"
#include "base/nearest.hpp"
#include "config/options_reader.hpp"

namespace taper::config {

namespace {

constexpr const char* kSequential = "Sequential";
constexpr const char* kGraph = "Graph";

bool is_number(const std::string& name) { return name.find_first_not_of("0123456789") == std::string::npos; }

std::string label(const LayerSpec& spec) { return is_number(spec.name) ? spec.type_name() : spec.name; }

/// "[12, 25]", "[25] int64".
std::string described(const nn::Outline& outline) {
  return cat(without_batch(outline.shape), outline.elements == nn::Elements::int64 ? " int64" : "");
}

const char* name_of(nn::Elements elements) { return elements == nn::Elements::int64 ? "int64" : "a floating one"; }

nn::Elements read_by(const nn::LayerType& type, std::size_t input) {
  return type.reads[std::min(input, type.reads.size() - 1)];
}

}  // namespace

std::string wrong_input_name(const std::string& name) {
  if (!name.empty() && name.find('.') == std::string::npos) return "";
  return cat("an input's name must not be empty or hold a dot: expected a word, got \"", name, '"');
}

Shape without_batch(const Shape& shape) { return shape.slice(1, shape.rank()); }

LayersReader::LayersReader(Reader& reader, const std::vector<Readable>& inputs, bool named_inputs)
    : reader_(reader), named_inputs_(named_inputs), previous_(inputs.front().name) {
  for (const Readable& input : inputs) {
    values_[input.name] = input.outline;
    input_names_ += cat(input_names_.empty() ? "\"" : ", \"", input.name, '"');
    if (input.outline) trail_ += cat(trail_.empty() ? "" : ", ", input.name, ' ', described(*input.outline));
  }
}

void LayersReader::read(const Json& layers, const std::string& pointer) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerSpec spec;
    spec.pointer = cat(pointer, '/', i);
    spec.name = cat(i);
    reader_.set_layer("");
    read_layer(layers[i], i, spec);
  }
  reader_.set_layer("");
}

void LayersReader::read_layer(const Json& json, std::size_t index, LayerSpec& spec) {
  bool good = reader_.is_object(json, spec.pointer);
  if (good) {
    const Json* type = reader_.required(json, spec.pointer, "type");
    const auto type_name = type ? reader_.string(*type, spec.pointer + "/type") : std::nullopt;
    good = read_name(json, index, spec);
    reader_.set_layer(spec.name == cat(index) ? cat(type_name.value_or("layer"), " ", index) : spec.name);
    good &= read_inputs(json, type_name, spec);
    good &= type_name && read_body(json, *type_name, spec);
  }
  complete_ &= good;
  remember(spec, good);
  if (complete_) specs_.push_back(std::move(spec));
}

void LayersReader::remember(const LayerSpec& spec, bool good) {
  previous_ = spec.name;
  types_[spec.name] = spec.type_name();
  values_[spec.name] = std::nullopt;
  if (!good) return;
  const nn::Outline outline(spec.output, spec.elements);
  values_[spec.name] = outline;
  for (const NamedOutline& further : spec.further) values_[cat(spec.name, '.', further.name)] = further.outline;
  trail_ += cat(trail_.empty() ? "" : " -> ", label(spec), ' ', described(outline));
}

bool LayersReader::read_name(const Json& json, std::size_t index, LayerSpec& spec) {
  if (!json.contains("name")) return true;
  const std::string pointer = spec.pointer + "/name";
  const auto name = reader_.string(json["name"], pointer);
  if (!name) return false;
  std::string problem;
  if (name->empty() || name->find('.') != std::string::npos)
    problem = cat("a layer's name must not be empty or hold a dot: expected a word, got \"", *name, '"');
  else if (values_.count(*name) && !types_.count(*name))
    problem = cat("the name is the model's own input's: expected another, got \"", *name, '"');
  else if (is_number(*name) && *name != cat(index))
    problem = cat("a number names the layer at that place: expected a word or \"", index, "\", got \"", *name, '"');
  else if (values_.count(*name))
    problem = cat("the name is taken: expected a new one, got \"", *name, '"');
  if (!problem.empty()) {
    reader_.error(pointer, problem);
    return false;
  }
  spec.name = *name;
  return true;
}

bool LayersReader::read_inputs(const Json& json, const std::optional<std::string>& type, LayerSpec& spec) {
  if (!json.contains("inputs")) {
    spec.inputs = {previous_};
    return true;
  }
  const std::string pointer = spec.pointer + "/inputs";
  if (!named_inputs_) {
    reader_.error_at_key(pointer,
                         "a layer inside a Sequential reads the one before it: expected no inputs, got some; "
                         "in a Graph layers have inputs");
    return false;
  }
  const bool named = json["inputs"].is_object();
  const auto names = named ? read_named_inputs(json["inputs"], type, spec) : reader_.strings(json["inputs"], pointer);
  if (!names) return false;
  bool good = true;
  if (names->empty()) {
    reader_.error(pointer, "expected at least 1 name, got none");
    good = false;
  }
  for (std::size_t i = 0; i < names->size(); ++i) {
    if (is_there((*names)[i])) continue;
    reader_.error(named ? child(pointer, spec.names[i]) : cat(pointer, '/', i), missing((*names)[i]));
    good = false;
  }
  spec.inputs = *names;
  return good;
}

/// {"left": "conv1", "right": "input"}: what a Graph reads, by the names that its layers read it by.
std::optional<std::vector<std::string>> LayersReader::read_named_inputs(const Json& json,
                                                                        const std::optional<std::string>& type,
                                                                        LayerSpec& spec) {
  const std::string pointer = spec.pointer + "/inputs";
  if (type != kGraph) {
    if (type) reader_.error(pointer, "only a Graph names what it reads: expected a list of names, got an object");
    return std::nullopt;
  }
  std::vector<std::string> read;
  bool good = true;
  for (const auto& [name, value] : json.items()) {
    const std::string pointer_of_one = child(pointer, name);
    if (const std::string problem = wrong_input_name(name); !problem.empty()) {
      reader_.error_at_key(pointer_of_one, problem);
      good = false;
    }
    const auto wanted = reader_.string(value, pointer_of_one);
    good &= wanted.has_value();
    read.push_back(wanted.value_or(""));
    spec.names.push_back(name);
  }
  if (!good) return std::nullopt;
  return read;
}

/// A layer that is wrong itself may have any further results.
bool LayersReader::is_there(const std::string& name) const {
  if (values_.count(name)) return true;
  const auto layer = values_.find(name.substr(0, name.find('.')));
  return layer != values_.end() && !layer->second;
}

/// Why there is nothing of this name to read.
std::string LayersReader::missing(const std::string& wanted) const {
  const std::string layer = wanted.substr(0, wanted.find('.'));
  const auto type = types_.find(layer);
  const bool asks_further = type != types_.end() && layer != wanted;
  std::vector<std::string_view> known;
  std::string further;
  for (const auto& [name, outline] : values_) {
    if (asks_further && !name.starts_with(layer + ".")) continue;
    known.push_back(name);
    if (asks_further) further += cat(further.empty() ? "\"" : " or \"", name, '"');
  }
  const std::string got = cat(", got \"", wanted, '"', did_you_mean(wanted, known));
  if (!asks_further)
    return cat("no earlier layer has this name: expected one of the layers above or ", input_names_, got);
  if (known.empty())
    return cat(type->second, " gives no further results with these options: expected \"", layer, '"', got);
  return cat(type->second, " has no further result of this name: expected ", further, got);
}

bool LayersReader::read_body(const Json& json, const std::string& type, LayerSpec& spec) {
  std::vector<Readable> inputs;
  for (const std::string& name : spec.inputs) {
    const auto value = values_.find(name);
    inputs.push_back({name, value == values_.end() ? std::nullopt : value->second});
  }
  if (type == kSequential || type == kGraph) {
    spec.is_graph = type == kGraph;
    return read_container(json, inputs, spec);
  }
  spec.type = nn::find_layer_type(type);
  if (!spec.type) {
    std::vector<std::string_view> names{kSequential, kGraph};
    for (const auto& entry : nn::layer_types()) names.push_back(entry.name);
    const std::string hint = did_you_mean(type, names);
    reader_.error(spec.pointer + "/type", cat("unknown layer type: expected a layer's class name, got \"", type, '"',
                                              hint.empty() ? "; taper layers lists them" : hint));
    return false;
  }
  spec.options = spec.type->new_options();
  OptionsReader visitor(reader_, json, spec.pointer, {"type", "name", "inputs"});
  spec.type->visit(spec.options.get(), visitor);
  if (!visitor.finish() || !check_input_count(spec, spec.type->min_inputs, spec.type->max_inputs)) return false;
  const bool known = std::all_of(inputs.begin(), inputs.end(), [](const Readable& x) { return x.outline.has_value(); });
  return known && check_elements(json, inputs, spec) && infer(json, inputs, spec);
}

bool LayersReader::check_input_count(const LayerSpec& spec, std::size_t low, std::size_t high) {
  const std::size_t n = spec.inputs.size();
  if (n >= low && n <= high) return true;
  if (n == 0) return false;  // has been reported
  if (spec.is_graph) {
    reader_.error(spec.pointer + "/inputs",
                  cat("a Graph names the values that it reads when they are several: expected an object as "
                      "{\"left\": \"",
                      spec.inputs[0], "\"}, got a list of ", n));
    return false;
  }
  const std::string expected = low == high ? cat(low) : high > 1000 ? cat("at least ", low) : cat(low, " to ", high);
  reader_.error(spec.pointer + "/inputs",
                cat(spec.type_name(), " takes another number of inputs: expected ", expected, ", got ", n));
  return false;
}

bool LayersReader::check_elements(const Json& json, const std::vector<Readable>& inputs, const LayerSpec& spec) {
  bool good = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const nn::Elements given = inputs[i].outline->elements;
    nn::Elements wanted = read_by(*spec.type, i);
    if (wanted == nn::Elements::any) wanted = inputs[0].outline->elements;
    if (wanted == given) continue;
    const bool is_input = !types_.count(inputs[i].name) && inputs[i].name.find('.') == std::string::npos;
    const bool is_declared_wrong = is_input && wanted == nn::Elements::int64;
    reader_.error(
        json.contains("inputs") ? cat(spec.pointer, "/inputs/", i) : spec.pointer,
        cat(spec.type->name, " takes another element type: expected ", name_of(wanted), ", got ", name_of(given),
            " from \"", inputs[i].name, '"', is_declared_wrong ? "; declare the input with \"dtype\": \"int64\"" : ""));
    good = false;
  }
  return good;
}

/// Lets the layer work out its results; what it refuses is shown at the option it speaks of, with the way the shapes
/// came.
bool LayersReader::infer(const Json& json, const std::vector<Readable>& inputs, LayerSpec& spec) {
  std::vector<Shape> shapes;
  for (const Readable& input : inputs) shapes.push_back(input.outline->shape);
  try {
    spec.output = spec.type->infer(spec.options.get(), shapes);
    if (read_by(*spec.type, 0) == nn::Elements::any) spec.elements = inputs[0].outline->elements;
    if (!spec.type->further_outputs) return true;
    const std::vector<std::string> names = spec.type->further_outputs(spec.options.get());
    const std::vector<nn::Outline> outlines = spec.type->infer_further(spec.options.get(), shapes);
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

bool LayersReader::read_container(const Json& json, const std::vector<Readable>& inputs, LayerSpec& spec) {
  std::vector<std::string_view> keys{"type", "name", "inputs", "layers"};
  if (spec.is_graph) keys.push_back("outputs");
  reader_.refuse_unknown_keys(json, spec.pointer, keys);
  bool good = check_input_count(spec, 1, spec.names.empty() ? 1 : spec.names.size());
  for (const auto& [key, value] : json.items()) good &= std::find(keys.begin(), keys.end(), key) != keys.end();
  const Json* layers = reader_.required(json, spec.pointer, "layers");
  const std::string pointer = spec.pointer + "/layers";
  if (!layers || !reader_.is_array(*layers, pointer, "layers")) return false;
  std::vector<Readable> inside;
  for (const std::string& name : spec.inner_names())
    inside.push_back({name, inside.size() < inputs.size() ? inputs[inside.size()].outline : std::nullopt});
  LayersReader inner(reader_, inside, spec.is_graph);
  const std::string layer = reader_.layer();
  inner.read(*layers, pointer);
  reader_.set_layer(layer);
  if (spec.is_graph && json.contains("outputs")) {
    const auto outputs = inner.read_outputs(json["outputs"], spec.pointer + "/outputs");
    if (!outputs) return false;
    for (const NamedOutline& output : *outputs) spec.outputs.push_back(output.name);
    spec.output = outputs->front().outline.shape;
    spec.elements = outputs->front().outline.elements;
    spec.further.assign(outputs->begin() + 1, outputs->end());
  } else if (const auto output = inner.output()) {
    spec.output = output->shape;
    spec.elements = output->elements;
  } else {
    good = false;
  }
  good &= inner.complete();
  spec.layers = inner.take();
  return good;
}

std::optional<std::vector<NamedOutline>> LayersReader::read_outputs(const Json& json, const std::string& pointer) {
  const auto names = reader_.strings(json, pointer);
  if (!names) return std::nullopt;
  std::vector<NamedOutline> outputs;
  for (std::size_t i = 0; i < names->size(); ++i) {
    const std::string& name = (*names)[i];
    const auto value = values_.find(name);
    if (!is_there(name))
      reader_.error(cat(pointer, '/', i), missing(name));
    else if (std::find(names->begin(), names->begin() + std::ptrdiff_t(i), name) != names->begin() + std::ptrdiff_t(i))
      reader_.error(cat(pointer, '/', i), cat("the output is named twice: expected each once, got \"", name, '"'));
    else if (value != values_.end() && value->second)
      outputs.push_back({name, *value->second});
  }
  if (names->empty()) reader_.error(pointer, "expected at least 1 name, got none");
  if (names->empty() || outputs.size() < names->size()) return std::nullopt;
  return outputs;
}

}  // namespace taper::config
