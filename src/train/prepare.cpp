#include "train/prepare.hpp"

#include <cmath>
#include <tuple>

#include "base/fail.hpp"
#include "taper/ops.hpp"

namespace taper::train {

namespace {

Shape batched(std::int64_t n, const Shape& shape) { return Shape{n}.concat(shape); }

/// [N, ...] for messages.
std::string samples_of(const Shape& shape) {
  const std::string text = to_string(shape);
  return shape.rank() == 0 ? "[N]" : "[N, " + text.substr(1);
}

void fit(const std::string& where, data::Dataset& set, const data::Normalization& normalization,
         const config::TrainingConfig& config) {
  set.inputs = fit_inputs(where, normalization.apply(set.inputs), config.model);
  set.targets = fit_targets(where, set.targets, config.model.output(), config.loss);
}

/// Files of samples are read as float32, which holds whole numbers exactly up to 2^24.
Tensor as_indices(const std::string& where, const Tensor& inputs) {
  constexpr double kMost = 1 << 24;
  const std::vector<double> numbers = inputs.to_vector<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!(std::abs(numbers[i]) <= kMost) || numbers[i] != std::floor(numbers[i]))
      fail(ErrorKind::format, where, ": input ", i, " is no index: expected a whole number of at most 2^24, got ",
           numbers[i]);
  return inputs.to(DType::int64);
}

}  // namespace

void FieldFinder::visit(const Field& field, FieldAccess& access) {
  if (key == field.key) value = access.get();
}

Tensor fit_inputs(const std::string& where, const Tensor& inputs, const config::ModelSpec& model) {
  const Shape input = model.input(), wanted = batched(inputs.size(0), input);
  const bool takes_indices = model.inputs[0].outline.elements == nn::Elements::int64;
  const Tensor samples = takes_indices ? as_indices(where, inputs) : inputs;
  if (samples.shape() == wanted) return samples;
  if (samples.dim() == 2 && samples.numel() == wanted.numel()) return reshape(samples, {wanted.begin(), wanted.end()});
  fail(ErrorKind::shape, where, ": inputs do not fit the model: expected ", samples_of(input), ", got ",
       inputs.shape());
}

Tensor fit_targets(const std::string& where, const Tensor& targets, const Shape& output,
                   const config::Chosen<nn::LossType>& loss) {
  if (targets.dtype() != DType::int64) {
    const Shape wanted = batched(targets.size(0), output);
    if (targets.numel() != wanted.numel())
      fail(ErrorKind::shape, where, ": targets do not fit the model's output: expected ", samples_of(output), ", got ",
           targets.shape());
    return reshape(targets, {wanted.begin(), wanted.end()});
  }
  if (output.rank() == 0)
    fail(ErrorKind::shape, where, ": the model has no outputs for classes: expected output [N, K], got [N]");
  const Value ignored = option_of(loss, "ignore_index");
  const std::int64_t* classes = targets.data<std::int64_t>();
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    const bool is_ignored = ignored.get<std::int64_t>() && *ignored.get<std::int64_t>() == classes[i];
    if (classes[i] >= output[0] && !is_ignored)
      fail(ErrorKind::format, where, ": target of sample ", i,
           " has no output of the model: expected a class from 0 to ", output[0] - 1, ", got ", classes[i]);
  }
  return targets;
}

TrainingData prepare_data(const config::TrainingConfig& config) {
  TrainingData data;
  const bool classes = config.loss.type->takes_classes;
  if (!config.data.train) fail(ErrorKind::config, "data: expected training data, got none");
  data.train = data::load_dataset(*config.data.train, classes);
  data.fingerprints.emplace_back("train", data.train.fingerprint);
  if (config.data.validation) {
    data.validation = data::load_dataset(*config.data.validation, classes, data.train.labels);
    data.fingerprints.emplace_back("validation", data.validation.fingerprint);
  } else if (config.data.validation_split > 0) {
    std::tie(data.train, data.validation) =
        data::split_dataset(data.train, config.data.validation_split, std::uint64_t(config.train.seed));
  }
  data.normalization = data::Normalization::fit(config.data.normalize, data.train.inputs);
  fit("/data/train", data.train, data.normalization, config);
  if (data.has_validation()) fit("/data/validation", data.validation, data.normalization, config);
  return data;
}

}  // namespace taper::train
