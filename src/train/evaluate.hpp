#pragma once

#include <csignal>
#include <cstdint>

#include "taper/nn/loss.hpp"
#include "taper/plan.hpp"
#include "train/metrics.hpp"

namespace taper::train {

/// Set from outside, by a signal handler for example; 0: go on.
using StopFlag = const volatile std::sig_atomic_t*;

/// What the model says to `inputs` [N, ...]: [N, ...]. In evaluation mode, without recording, `batch_size` samples at a
/// time.
Tensor predict(nn::Module& model, const Tensor& inputs, std::int64_t batch_size = 256);

struct Evaluation {
  MetricSums sums;       ///< loss and all metrics
  Tensor outputs;        ///< [N, ...], if they were to be kept
  bool complete = true;  ///< false: stopped before the last batch
};

struct EvaluateOptions {
  std::int64_t batch_size = 256;
  bool sum_reduction = false;  ///< whether the loss adds up its samples instead of averaging them
  bool keep_outputs = false;
  std::int64_t limit_batches = INT64_MAX;
  StopFlag stop = nullptr;
};

/// Loss and metrics over prepared samples, in evaluation mode and without recording graphs. Batches after the first are
/// replayed, also those of later calls.
class Evaluator {
 public:
  /// Model and loss must outlive it.
  Evaluator(nn::Module& model, nn::Loss& loss);
  Evaluation run(const Tensor& inputs, const Tensor& targets, const EvaluateOptions& options = {});

 private:
  nn::Module& model_;
  CapturedStep step_;  ///< of a batch: its inputs and targets to outputs and loss
};

/// One run of an `Evaluator`.
Evaluation evaluate(nn::Module& model, nn::Loss& loss, const Tensor& inputs, const Tensor& targets,
                    const EvaluateOptions& options = {});

/// Adds the loss and the metrics of one batch.
void add_batch(MetricSums& sums, const Tensor& outputs, const Tensor& targets, double loss, bool sum_reduction);

}  // namespace taper::train
