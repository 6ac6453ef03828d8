#include "train/evaluate.hpp"

#include <algorithm>
#include <vector>

#include "base/fail.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

namespace taper::train {

namespace {

/// Puts a module into evaluation mode for its lifetime; afterwards every part has its own mode again, so that parts
/// that were frozen in evaluation mode stay so.
class EvalGuard {
 public:
  explicit EvalGuard(nn::Module& model) {
    remember(model);
    model.eval();
  }
  ~EvalGuard() {
    for (const auto& [module, was_training] : modes_) module->train(was_training);
  }
  EvalGuard(const EvalGuard&) = delete;
  EvalGuard& operator=(const EvalGuard&) = delete;

 private:
  /// A module before its children, because `train` reaches these too.
  void remember(nn::Module& module) {
    modes_.emplace_back(&module, module.is_training());
    for (const auto& [name, child] : module.named_children()) remember(*child);
  }

  std::vector<std::pair<nn::Module*, bool>> modes_;
};

/// Calls `visit(first sample, outputs)` for each batch until it says no.
template <class Visit>
void each_batch(nn::Module& model, const Tensor& inputs, std::int64_t batch_size, const Visit& visit) {
  if (batch_size < 1) fail(ErrorKind::config, "evaluate: batch_size: expected >= 1, got ", batch_size);
  const NoGradGuard no_grad;
  const EvalGuard eval(model);
  const std::int64_t n = inputs.size(0);
  for (std::int64_t first = 0; first < n; first += batch_size) {
    const std::int64_t count = std::min(batch_size, n - first);
    if (!visit(first, model(count == n ? inputs : narrow(inputs, 0, first, count)))) return;
  }
}

Tensor joined(const std::vector<Tensor>& parts) { return parts.size() == 1 ? parts[0] : cat(parts, 0); }

}  // namespace

void add_batch(MetricSums& sums, const Tensor& outputs, const Tensor& targets, double loss, bool sum_reduction) {
  const std::int64_t n = outputs.size(0);
  sums.add_loss(sum_reduction ? loss : loss * double(n), n);
  if (targets.dtype() == DType::int64)
    sums.add_classes(outputs, targets);
  else
    sums.add_numbers(outputs, targets);
}

Tensor predict(nn::Module& model, const Tensor& inputs, std::int64_t batch_size) {
  std::vector<Tensor> parts;
  each_batch(model, inputs, batch_size, [&](std::int64_t, const Tensor& outputs) {
    parts.push_back(outputs);
    return true;
  });
  if (parts.empty()) fail(ErrorKind::shape, "predict: expected at least one sample, got ", inputs.shape());
  return joined(parts);
}

Evaluation evaluate(nn::Module& model, nn::Loss& loss, const Tensor& inputs, const Tensor& targets,
                    const EvaluateOptions& options) {
  Evaluation result;
  std::vector<Tensor> parts;
  std::int64_t done = 0;
  each_batch(model, inputs, options.batch_size, [&](std::int64_t first, const Tensor& outputs) {
    if (options.stop && *options.stop) {
      result.complete = false;
      return false;
    }
    const Tensor t = narrow(targets, 0, first, outputs.size(0));
    add_batch(result.sums, outputs, t, loss(outputs, t).item(), options.sum_reduction);
    if (options.keep_outputs) parts.push_back(outputs);
    return ++done < options.limit_batches;
  });
  if (!parts.empty()) result.outputs = joined(parts);
  return result;
}

}  // namespace taper::train
