#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/training_config.hpp"
#include "train/checkpoint.hpp"
#include "train/evaluate.hpp"
#include "train/run_directory.hpp"

namespace taper::train {

/// A loss, gradient or parameter that is not finite any more. The step that found it was not taken, and the
/// checkpoints before it are as they were.
class DivergedError : public Error {
 public:
  explicit DivergedError(const std::string& sentence) : Error(ErrorKind::tape, sentence) {}
};

enum class StopReason { finished, early_stopping, interrupted };
std::span<const char* const> names_of(StopReason);

/// What a training starts with.
struct StartReport {
  const config::TrainingConfig& config;
  std::string run;  ///< path of the run directory
  std::int64_t parameters = 0;
  std::int64_t train_samples = 0, validation_samples = 0;
  std::int64_t batches = 0;                       ///< of an epoch
  std::int64_t epochs = 0;                        ///< of the whole run
  std::int64_t first_epoch = 0, first_batch = 0;  ///< where it goes on; both 0 for a new run
  std::vector<std::string> columns;               ///< of metrics.csv
};

struct BatchReport {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t batch = 0;  ///< of this epoch, done so far
  std::int64_t batches = 0;
  double samples_per_second = 0;
  double loss = 0;      ///< mean since the epoch began
  double accuracy = 0;  ///< likewise; NaN when targets are numbers
  double lr = 0;
};

struct EpochReport {
  std::int64_t epoch = 0, epochs = 0;
  const std::vector<std::string>& columns;  ///< "epoch", "lr", "train_loss", ...
  const std::vector<double>& values;        ///< one a column
  double seconds = 0;
};

/// What happens during a training, for whoever wants to show it. Nothing here is needed.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_start(const StartReport&) {}
  virtual void on_batch(const BatchReport&) {}
  virtual void on_epoch(const EpochReport&) {}
  virtual void on_checkpoint(const std::string& path, std::int64_t epoch, bool is_best) {
    (void)path, (void)epoch, (void)is_best;
  }
  virtual void on_warning(const std::string& sentence) { (void)sentence; }
  virtual void on_stop(StopReason) {}
};

struct TrainControls {
  Listener* listener = nullptr;
  StopFlag stop = nullptr;        ///< looked at after every batch; set: save and return
  std::string command_line = {};  ///< for env.json
  bool replay = true;             ///< off: every batch is computed operation by operation, with the same bits
};

struct TrainResult {
  StopReason reason = StopReason::finished;
  Progress progress;
  std::vector<std::string> columns;
  std::vector<double> last_row;  ///< values of the last finished epoch; empty without one
  std::string monitor;           ///< the column that says which epoch is best
  /// As the run ends: with `early_stopping.restore_best` the weights of the best epoch, else the last ones.
  TrainedModel trained;
};

/// Trains a model and leaves config.json, env.json, metrics.csv, events.jsonl and checkpoints in `run`. The same config
/// gives the same bytes in every checkpoint, on any number of threads.
/// Errors: `DivergedError`; as `prepare_data`; `ErrorKind::io` when `run` cannot be written.
TrainResult train(const config::TrainingConfig& config, const RunDirectory& run, const TrainControls& controls = {});

/// Goes on with the run in `run` from its last checkpoint, bit for bit as if it had never been stopped. `config` may
/// differ from the run's in `train.epochs`, `train.early_stopping` and `train.checkpoint` only.
/// Errors: as `train`; `ErrorKind::config` with all differences when the config or the data are not the run's.
TrainResult resume(const config::TrainingConfig& config, const RunDirectory& run, const TrainControls& controls = {});

/// The config of a run, with the folder in which it looks for data; `overrides` come last.
config::TrainingConfig load_run_config(const std::string& run_path,
                                       const std::vector<config::Override>& overrides = {});

}  // namespace taper::train
