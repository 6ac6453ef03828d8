#pragma once

#include <string>
#include <vector>

#include "config/training_config.hpp"
#include "train/trainer.hpp"

namespace taper::cli {

struct TestResult;

/// A quality gate from --fail-under: what the trained model must reach.
struct Gate {
  std::string metric;  ///< "loss", or the name of a metric
  double bound = 0;
  /// Losses and errors must not be above the bound, everything else not below.
  bool at_most() const;
};

/// "acc=0.95" and its like. Refused with `kUsage`: unknown names, bounds that are no numbers, and what the config will
/// not measure: without test data only the loss and the metrics it lists are known, of its validation data.
std::vector<Gate> parse_gates(const std::vector<std::string>& words, const config::TrainingConfig& config);

/// A sentence for each gate that is not met; `test` is null without test data.
std::string unmet(const std::vector<Gate>& gates, const train::TrainResult& result, const TestResult* test);

}  // namespace taper::cli
