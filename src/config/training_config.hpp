#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/model_config.hpp"
#include "taper/data.hpp"
#include "taper/lr_scheduler.hpp"
#include "taper/nn/loss.hpp"
#include "taper/optim.hpp"
#include "train/options.hpp"

namespace taper::config {

/// A loss, an optimiser or a scheduler: its catalogue entry and its options.
template <class Type>
struct Chosen {
  const Type* type = nullptr;
  Shared<void> options;
};

struct DataConfig {
  std::optional<data::SourceOptions> train, validation, test;
  double validation_split = 0;  ///< share of the training data; 0: none
  data::Normalize normalize = data::Normalize::none;
};

/// A whole config file, checked and with every default in it.
struct TrainingConfig {
  std::string name;  ///< the file's name without ending; runs are filed under it
  ModelSpec model;
  DataConfig data;
  Chosen<nn::LossType> loss;
  Chosen<optim::OptimizerType> optimizer;
  Chosen<optim::SchedulerType> scheduler;  ///< type null: none
  train::TrainOptions train;
  std::vector<train::Metric> metrics;

  /// Resolved JSON, two spaces an indent, which gives the same config when it is read.
  std::string to_json() const;
};

/// "--set model.layers[0].kernel_size=5" and its like.
struct Override {
  std::string path;   ///< "model.layers[0].kernel_size"
  std::string value;  ///< JSON; a bare word is a string
};

/// Reads a config file. `overrides` come after the file's own values.
/// Errors: `ConfigError` with everything that is wrong, `ErrorKind::io` when it cannot be read.
TrainingConfig load_training_config(const std::string& path, const std::vector<Override>& overrides = {});
/// The same for text, `name` standing for the file in messages.
TrainingConfig parse_training_config(const std::string& text, const std::string& name,
                                     const std::vector<Override>& overrides = {});

/// Reads a model from a model file (the "model" object alone) or a whole config; nothing but the model is checked.
/// What is wrong with the model is returned beside what could be read of it. Errors: `ErrorKind::io`.
struct LoadedModel {
  ModelSpec model;
  std::string errors;   ///< rendered diagnostics; empty when complete
  std::string summary;  ///< "2 errors in forum.json"
};
LoadedModel load_model(const std::string& path, const std::vector<Override>& overrides = {});
LoadedModel parse_model(const std::string& text, const std::string& name, const std::vector<Override>& overrides = {});

}  // namespace taper::config
