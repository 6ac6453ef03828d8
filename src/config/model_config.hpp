#pragma once

#include <string>
#include <vector>

#include "taper/nn/registry.hpp"

namespace taper::config {

/// What a layer gives beside its main result; layers read it as "layer.name".
struct FurtherOutput {
  std::string name;
  nn::Outline outline;  ///< as `LayerSpec::output`
};

/// One layer of a model as the config describes it, with everything left out filled in.
struct LayerSpec {
  const nn::LayerType* type = nullptr;  ///< null for a nested Sequential
  std::string name;                     ///< state-dict prefix: the given name or the index
  std::vector<std::string> inputs;      ///< what it reads: "input" is the model's own, "layer" or "layer.further"
  Shared<void> options;                 ///< of the layer's options struct
  std::vector<LayerSpec> layers;        ///< of a nested Sequential
  std::string pointer;                  ///< where it stands in the config
  Shape output;                         ///< with a placeholder batch extent of 1 in front
  std::vector<FurtherOutput> further;

  std::string type_name() const { return type ? type->name : "Sequential"; }
};

struct ModelSpec {
  Shape input;                    ///< without the batch
  std::vector<LayerSpec> layers;  ///< up to the first whose shape could not be worked out
  bool complete = false;          ///< whether all layers are there and correct

  Shape output() const;  ///< without the batch
};

/// The module, initialised from the process's random numbers; parameters are named as PyTorch names them.
/// `model` must be complete.
Shared<nn::Module> build_model(const ModelSpec& model);

}  // namespace taper::config
