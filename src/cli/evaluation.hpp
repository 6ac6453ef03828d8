#pragma once

#include <string>

#include "config/json_text.hpp"
#include "taper/data.hpp"
#include "train/checkpoint.hpp"
#include "train/evaluate.hpp"

namespace taper::cli {

/// What a trained model makes of samples whose targets are known.
struct TestResult {
  train::MetricSums sums;
  Tensor outputs, targets;          ///< [N, ...]
  std::vector<std::string> labels;  ///< a name for each output when targets are classes, else empty
};

/// A model from a checkpoint, or from a run directory: its best epoch if the run restores that, else the last.
/// Errors: as `train::load_for_prediction`.
train::TrainedModel load_trained(const std::string& path);

/// Errors: as `data::load_dataset`, `train::fit_inputs` and `train::fit_targets`.
TestResult evaluate_trained(const train::TrainedModel& trained, const data::SourceOptions& source);

/// The loss, or a metric by its name; nothing for a name that there is not.
std::optional<double> value_of(const train::MetricSums& sums, const std::string& name);

/// What to read: for classes the report in scikit-learn's layout; the answer that never looks at its input beside it.
std::string report_text(const TestResult& result);
config::Json report_json(const TestResult& result);

/// How often the class of the row was taken for that of the column; "" when targets are no classes.
std::string confusion_csv(const TestResult& result);

/// Outputs as a user wants them: probabilities where the loss makes scores of them, else the outputs themselves.
Tensor to_predictions(const train::TrainedModel& trained, const Tensor& outputs);
/// A line a sample: index, the target if there are any, label, and a column for each output.
std::string predictions_csv(const train::TrainedModel& trained, const Tensor& outputs, const Tensor& targets = {});

}  // namespace taper::cli
