#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "support/temp_folder.hpp"
#include "train/trainer.hpp"

/// A training that takes a few milliseconds and has everything: dropout, a schedule, clipping, validation, a last batch
/// that is not full.
class TinyTraining {
 public:
  /// `n` samples of [3, 5] in three classes that can be learnt.
  explicit TinyTraining(std::int64_t n = 14);
  ~TinyTraining();
  TinyTraining(const TinyTraining&) = delete;
  TinyTraining& operator=(const TinyTraining&) = delete;

  /// The config, after `overrides`.
  taper::config::TrainingConfig config(const std::vector<taper::config::Override>& overrides = {}) const;
  std::string data_path() const { return folder_ / "set.npz"; }
  std::string path(const std::string& name) const { return folder_ / name; }
  const TempFolder& folder() const { return folder_; }

  /// Trains into the new folder `name`, and returns the bytes of its last checkpoint.
  std::string last_of(const std::string& name, const std::vector<taper::config::Override>& overrides = {},
                      const taper::train::TrainControls& controls = {}) const;

 private:
  TempFolder folder_;
  int (*sync_)(int);  ///< put back at the end: waiting for the disk is most of a small training
};

/// Stops a training after so many batches of this session, and counts.
struct StopAfter final : taper::train::Listener {
  explicit StopAfter(std::int64_t n) : batches_left(n) {}
  void on_batch(const taper::train::BatchReport& report) override {
    lrs.push_back(report.lr);
    if (--batches_left == 0) flag = 1;
  }
  void on_epoch(const taper::train::EpochReport& report) override { rows.push_back(report.values); }
  taper::train::TrainControls controls() { return {.listener = this, .stop = &flag}; }

  std::int64_t batches_left;
  volatile std::sig_atomic_t flag = 0;
  std::vector<double> lrs;
  std::vector<std::vector<double>> rows;
};
