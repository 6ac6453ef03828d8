#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/json_values.hpp"
#include "config/model_config.hpp"

namespace taper::config {

/// Something a layer can read: its outline is nothing where it could not be worked out.
struct Readable {
  std::string name;
  std::optional<nn::Outline> outline;
};

/// What is wrong with the name of an input, "" if nothing.
std::string wrong_input_name(const std::string& name);

/// "[12, 25]": a shape as the config writes it, without the batch.
Shape without_batch(const Shape& shape);

/// Reads the layers of one list, in order, and carries the outlines along. Whatever is wrong goes to the reader's
/// diagnostics.
class LayersReader {
 public:
  /// Layers of a list without `named_inputs` read the one before them.
  LayersReader(Reader& reader, const std::vector<Readable>& inputs, bool named_inputs);

  void read(const Json& layers, const std::string& pointer);
  /// What the list gives by the names in `json`, the main result first; nothing when one of them is wrong.
  std::optional<std::vector<NamedOutline>> read_outputs(const Json& json, const std::string& pointer);

  std::vector<LayerSpec> take() { return std::move(specs_); }
  /// Whether all layers are there and correct.
  bool complete() const { return complete_; }
  /// The last layer's result, if every outline on the way is known.
  std::optional<nn::Outline> output() const { return values_.at(previous_); }

 private:
  void read_layer(const Json& json, std::size_t index, LayerSpec& spec);
  void remember(const LayerSpec& spec, bool good);
  bool read_name(const Json& json, std::size_t index, LayerSpec& spec);
  bool read_inputs(const Json& json, const std::optional<std::string>& type, LayerSpec& spec);
  std::optional<std::vector<std::string>> read_named_inputs(const Json& json, const std::optional<std::string>& type,
                                                            LayerSpec& spec);
  bool read_body(const Json& json, const std::string& type, LayerSpec& spec);
  bool read_container(const Json& json, const std::vector<Readable>& inputs, LayerSpec& spec);
  bool is_there(const std::string& name) const;
  std::string missing(const std::string& wanted) const;
  bool check_input_count(const LayerSpec& spec, std::size_t low, std::size_t high);
  bool check_elements(const Json& json, const std::vector<Readable>& inputs, const LayerSpec& spec);
  bool infer(const Json& json, const std::vector<Readable>& inputs, LayerSpec& spec);

  Reader& reader_;
  bool named_inputs_;
  std::map<std::string, std::optional<nn::Outline>> values_;  // inputs, layers, and "layer.further"
  std::map<std::string, std::string> types_;                  // of the layers so far
  std::string input_names_;                                   // "input" in quotes, or several with commas
  std::string previous_;                                      // what a layer without inputs reads
  std::string trail_;                                         // the outlines on the way, for messages
  std::vector<LayerSpec> specs_;
  bool complete_ = true;
};

}  // namespace taper::config
