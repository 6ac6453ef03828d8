#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "taper/tensor.hpp"
#include "train/options.hpp"

namespace taper::train {

/// Sums over samples, added batch by batch, from which the loss and every metric follow.
struct MetricSums {
  double loss = 0;            ///< sum over samples
  std::int64_t samples = 0;   ///< that `loss` is a sum of
  std::int64_t measured = 0;  ///< predictions that were compared with a target
  std::int64_t top5 = 0;      ///< targets among the five largest scores
  /// One number a class: predicted rightly, predicted, and present in the targets.
  std::vector<std::int64_t> hits, predicted, actual;
  /// One number a column of the outputs: the first target, then sums over t - first, its square, and (y - t)^2.
  std::vector<double> first, sum, squares, errors;
  double absolute = 0;  ///< sum of |y - t|

  void add_loss(double sum_of_losses, std::int64_t n) {
    loss += sum_of_losses;
    samples += n;
  }
  /// Compares scores [N, K] or [N, K, d1, ...] with classes [N] or [N, d1, ...]. Targets that are none of the K classes
  /// are those the loss ignores; they are left out.
  void add_classes(const Tensor& scores, const Tensor& targets);
  /// Compares numbers of one shape, [N] or [N, ...].
  void add_numbers(const Tensor& outputs, const Tensor& targets);

  double mean_loss() const { return samples > 0 ? loss / double(samples) : 0; }
  /// Precision, recall and F1 are means over the classes that were predicted or present, a quotient by zero being 0, as
  /// in scikit-learn. R2 is the mean over the columns.
  double value(Metric metric) const;
  /// What `metric` would be for an answer that never looks at its input: the commonest class, or the mean of the
  /// targets.
  double baseline(Metric metric) const;

  /// For checkpoints, under names that begin with `prefix`; nothing while there is nothing to keep.
  std::vector<NamedTensor> save(const std::string& prefix) const;
  void load(const std::string& prefix, std::span<const NamedTensor> tensors);
};

/// Precision, recall, F1 and number of samples of one class.
struct ClassReport {
  double precision = 0, recall = 0, f1 = 0;
  std::int64_t support = 0;
};
std::vector<ClassReport> class_reports(const MetricSums& sums);

/// How often class i was taken for class j: int64 [K, K]. Targets outside 0..K-1 are left out.
Tensor confusion_matrix(const Tensor& targets, const Tensor& predicted, std::int64_t classes);

/// "accuracy".
const char* name_of(Metric metric);
/// Whether a larger value is better. `column` is a column of metrics.csv: "val_loss", "train_f1".
bool larger_is_better(const std::string& column, Mode mode);

}  // namespace taper::train
