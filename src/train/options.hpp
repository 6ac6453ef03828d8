#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "taper/fields.hpp"

namespace taper::train {

enum class Mode { automatic, min, max };
std::span<const char* const> names_of(Mode);

/// What is measured beside the loss. Precision, recall and F1 are means over the classes.
enum class Metric { accuracy, precision, recall, f1, top5, mse, rmse, mae, r2 };
std::span<const char* const> names_of(Metric);
/// Whether it speaks of classes rather than of numbers.
constexpr bool needs_classes(Metric metric) { return metric <= Metric::top5; }

/// "train.early_stopping": ends a run that no longer improves.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";  ///< a column of metrics.csv
  Mode mode = Mode::automatic;       ///< automatic: max for accuracy-like metrics, min for losses
  std::int64_t patience = 10;        ///< epochs without improvement
  double min_delta = 0;
  bool restore_best = true;
};
void fields(EarlyStoppingOptions& options, FieldVisitor& visitor);

/// "train.checkpoint": what is kept, and which epoch is best.
struct CheckpointOptions {
  bool save_last = true;
  std::string monitor = "";  ///< empty: val_loss when there is validation data, else train_loss
  Mode mode = Mode::automatic;
  std::int64_t every_n_epochs = 1;
};
void fields(CheckpointOptions& options, FieldVisitor& visitor);

/// "train": the loop.
struct TrainOptions {
  std::int64_t epochs = 10;
  std::int64_t batch_size = 32;
  std::int64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::optional<double> clip_grad_norm = {};
  std::optional<double> clip_grad_value = {};
  std::optional<std::int64_t> limit_batches = {};  ///< at most so many batches an epoch
  std::int64_t overfit_batches = 0;                ///< train on the first so many batches only; 0: off
  bool fast_dev_run = false;                       ///< one batch of everything, to see that it works
  bool flush_denormal = true;                      ///< numbers too small to matter count as 0
  std::optional<EarlyStoppingOptions> early_stopping = {};
  CheckpointOptions checkpoint = {};
};
/// The plain fields; `early_stopping` and `checkpoint` are objects of their own.
void fields(TrainOptions& options, FieldVisitor& visitor);

}  // namespace taper::train
