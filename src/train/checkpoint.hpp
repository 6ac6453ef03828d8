#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/training_config.hpp"
#include "core/random_state.hpp"
#include "taper/data.hpp"
#include "taper/nn/module.hpp"
#include "train/metrics.hpp"
#include "train/monitor.hpp"

/// A checkpoint is one safetensors file. Its tensors are the model's parameters and buffers under PyTorch's names, and
/// beside them the state of the training under names that begin with `optimizer.`, `scheduler.`, `normalization.` and
/// `progress.`. Its metadata hold the config (`taper.config`), the names of the classes (`taper.labels`), the
/// fingerprints of the data (`taper.fingerprints`) and where the training is (`taper.training`), each as JSON, and
/// `taper.format_version`. Nothing in it depends on time, place or threads: the same training leaves the same bytes.
namespace taper::train {

inline constexpr std::int64_t kFormatVersion = 1;

/// Where a training is, so that it can go on from there bit for bit.
struct Progress {
  std::int64_t epoch = 0;  ///< epochs finished
  std::int64_t batch = 0;  ///< batches of the next one that are done
  std::int64_t step = 0;   ///< steps of the optimiser
  MetricSums sums;         ///< over those batches
  Best best, stopping;     ///< for best.safetensors, and for early stopping
};

struct Checkpoint {
  std::string config;  ///< resolved
  nn::StateDict model;
  std::vector<NamedTensor> optimizer, scheduler;  ///< names begin with `optimizer.`, `scheduler.`
  data::Normalization normalization;
  std::vector<std::string> labels;
  std::vector<std::pair<std::string, std::string>> fingerprints;  ///< of "train", "validation"
  Progress progress;
  detail::RandomState random;
};

/// Refuses parameters that a checkpoint could not tell from the state of the training.
/// Errors: `ErrorKind::config`, `layer name is taken by checkpoints: ...`.
void check_names(const nn::StateDict& model);

/// Replaces the file, all or nothing. Errors: `ErrorKind::io`.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Errors: `ErrorKind::io`, `ErrorKind::format` (damaged, of a newer format version, or plain weights).
Checkpoint load_checkpoint(const std::string& path);

/// Copies the weights of a file into a model by name, all or nothing. The file may be a checkpoint, or any state dict
/// that was saved as safetensors. Errors: as `load_checkpoint` and `Module::load_state_dict`, with the path in front.
void load_weights(const std::string& path, nn::Module& model);

/// A trained model with all that is needed to use it.
struct TrainedModel {
  config::TrainingConfig config;
  Shared<nn::Module> model;  ///< in evaluation mode
  data::Normalization normalization;
  std::vector<std::string> labels;

  /// Samples as the data files have them, as the model wants them: standardised, and in the model's shape.
  Tensor prepare(const Tensor& inputs) const;
};

/// Needs no other file. Errors: as `load_checkpoint`; everything is checked before the model is returned.
TrainedModel load_for_prediction(const std::string& path);

}  // namespace taper::train
