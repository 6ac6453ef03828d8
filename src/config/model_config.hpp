#pragma once

#include <string>
#include <vector>

#include "taper/nn/registry.hpp"

namespace taper::config {

/// A value of a model by the name that layers read it by.
struct NamedOutline {
  std::string name;
  nn::Outline outline;  ///< with a placeholder batch extent of 1 in front
};

/// One layer of a model as the config describes it, with everything left out filled in.
struct LayerSpec {
  const nn::LayerType* type = nullptr;  ///< null for a nested Sequential or Graph
  bool is_graph = false;                ///< of the two, the Graph
  std::string name;                     ///< state-dict prefix: the given name or the index
  std::vector<std::string> inputs;      ///< what it reads: "input" is the model's own, "layer" or "layer.further"
  std::vector<std::string> names;       ///< of a nested Graph: what its layers call `inputs`; empty: "input" alone
  Shared<void> options;                 ///< of the layer's options struct
  std::vector<LayerSpec> layers;        ///< of a nested Sequential or Graph
  std::vector<std::string> outputs;     ///< of a nested Graph; empty: its last layer's
  std::string pointer;                  ///< where it stands in the config
  Shape output;                         ///< with a placeholder batch extent of 1 in front
  nn::Elements elements = nn::Elements::floating;
  std::vector<NamedOutline> further;  ///< what it gives beside `output`, named without the layer

  /// By what names the layers inside read `inputs`.
  std::vector<std::string> inner_names() const { return names.empty() ? std::vector<std::string>{"input"} : names; }
  std::string type_name() const { return type ? type->name : is_graph ? "Graph" : "Sequential"; }
};

struct ModelSpec {
  std::vector<NamedOutline> inputs;   ///< in the order of `forward_all`; empty when they could not be read
  std::vector<LayerSpec> layers;      ///< up to the first whose shape could not be worked out
  std::vector<NamedOutline> outputs;  ///< as the model names them; empty: the last layer's
  bool complete = false;              ///< whether all layers are there and correct

  /// Of the only input and of the main output, without the batch.
  Shape input() const;
  Shape output() const;
};

/// The module, initialised from the process's random numbers; parameters are named as PyTorch names them.
/// `model` must be complete.
Shared<nn::Module> build_model(const ModelSpec& model);

}  // namespace taper::config
