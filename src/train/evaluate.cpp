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

/// Calls `visit(first sample, number of samples)` for each batch until it says no, in evaluation mode.
template <class Visit>
void each_batch(nn::Module& model, std::int64_t samples, std::int64_t batch_size, const Visit& visit) {
  if (batch_size < 1) fail(ErrorKind::config, "evaluate: batch_size: expected >= 1, got ", batch_size);
  const NoGradGuard no_grad;
  const EvalGuard eval(model);
  for (std::int64_t first = 0; first < samples; first += batch_size)
    if (!visit(first, std::min(batch_size, samples - first))) return;
}

/// Samples [first, first + count); all of them as they are.
Tensor batch_of(const Tensor& samples, std::int64_t first, std::int64_t count) {
  return count == samples.size(0) ? samples : narrow(samples, 0, first, count);
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
  CapturedStep step([&](const Tensor& x) { return model(x); }, {.eager_if_refused = true});
  std::vector<Tensor> parts;
  each_batch(model, inputs.size(0), batch_size, [&](std::int64_t first, std::int64_t count) {
    parts.push_back(step(batch_of(inputs, first, count))[0]);
    return true;
  });
  if (parts.empty()) fail(ErrorKind::shape, "predict: expected at least one sample, got ", inputs.shape());
  return joined(parts);
}

Evaluator::Evaluator(nn::Module& model, nn::Loss& loss)
    : model_(model),
      step_(
          [&model, &loss](const Tensor& x, const Tensor& t) {
            const Tensor outputs = model(x);
            return std::vector<Tensor>{outputs, loss(outputs, t)};
          },
          {.eager_if_refused = true}) {}

Evaluation Evaluator::run(const Tensor& inputs, const Tensor& targets, const EvaluateOptions& options) {
  Evaluation result;
  std::vector<Tensor> parts;
  std::int64_t done = 0;
  each_batch(model_, inputs.size(0), options.batch_size, [&](std::int64_t first, std::int64_t count) {
    if (options.stop && *options.stop) {
      result.complete = false;
      return false;
    }
    const Tensor t = narrow(targets, 0, first, count);
    const auto& results = step_(batch_of(inputs, first, count), t);
    add_batch(result.sums, results[0], t, results[1].item(), options.sum_reduction);
    if (options.keep_outputs) parts.push_back(results[0]);
    return ++done < options.limit_batches;
  });
  if (!parts.empty()) result.outputs = joined(parts);
  return result;
}

Evaluation evaluate(nn::Module& model, nn::Loss& loss, const Tensor& inputs, const Tensor& targets,
                    const EvaluateOptions& options) {
  return Evaluator(model, loss).run(inputs, targets, options);
}

}  // namespace taper::train
