#include "train/options.hpp"

namespace taper::train {

namespace {

constexpr const char* kModes[] = {"automatic", "min", "max"};
constexpr const char* kMetrics[] = {"accuracy", "precision", "recall", "f1", "top5", "mse", "rmse", "mae", "r2"};

}  // namespace

std::span<const char* const> names_of(Mode) { return kModes; }
std::span<const char* const> names_of(Metric) { return kMetrics; }

void fields(EarlyStoppingOptions& options, FieldVisitor& visitor) {
  visitor({"monitor", "column of metrics.csv that has to improve"}, options.monitor);
  visitor({"mode", "whether less or more is better; automatic: by the metric"}, options.mode);
  visitor({"patience", "epochs without improvement before the run ends", kPositive}, options.patience);
  visitor({"min_delta", "a smaller change is no improvement", kNonNegative}, options.min_delta);
  visitor({"restore_best", "whether the run ends with the weights of its best epoch"}, options.restore_best);
}

void fields(CheckpointOptions& options, FieldVisitor& visitor) {
  visitor({"save_last", "whether last.safetensors is written, from which a run resumes"}, options.save_last);
  visitor({"monitor",
           "column of metrics.csv that says which epoch is best; empty: val_loss, without validation train_loss"},
          options.monitor);
  visitor({"mode", "whether less or more is better; automatic: by the metric"}, options.mode);
  visitor({"every_n_epochs", "epochs from one last.safetensors to the next", kPositive}, options.every_n_epochs);
}

void fields(TrainOptions& options, FieldVisitor& visitor) {
  visitor({"epochs", "times every sample is seen", kPositive}, options.epochs);
  visitor({"batch_size", "samples of one step", kPositive}, options.batch_size);
  visitor({"seed", "of initial values, order of the samples, dropout and split", kNonNegative}, options.seed);
  visitor({"shuffle", "whether every epoch has another order of the samples"}, options.shuffle);
  visitor({"drop_last", "leave out a last batch that is not full"}, options.drop_last);
  visitor({"clip_grad_norm", "largest norm of all gradients together", kAboveZero}, options.clip_grad_norm);
  visitor({"clip_grad_value", "largest absolute value of a gradient's element", kAboveZero}, options.clip_grad_value);
  visitor({"limit_batches", "at most so many batches an epoch", kPositive}, options.limit_batches);
  visitor({"overfit_batches", "train on the first so many batches only; 0: off", kNonNegative},
          options.overfit_batches);
  visitor({"fast_dev_run", "one batch of everything, to see that it works"}, options.fast_dev_run);
  visitor(
      {"flush_denormal", "whether numbers below 1.2e-38 count as 0: some processors take 100 times longer for them"},
      options.flush_denormal);
}

}  // namespace taper::train
