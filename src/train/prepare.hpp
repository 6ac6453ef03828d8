#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/training_config.hpp"
#include "taper/data.hpp"

namespace taper::train {

/// The samples of a training as the model and the loss want them.
struct TrainingData {
  data::Dataset train, validation;  ///< inputs of validation undefined: there is none
  data::Normalization normalization;

  bool has_validation() const { return validation.inputs.defined(); }
  /// Of "train" and, if it has a file of its own, "validation".
  std::vector<std::pair<std::string, std::string>> fingerprints;
};

/// Reads, splits, standardises and checks the data of a config against its model and loss.
/// Errors: as `data::load_dataset`; `ErrorKind::shape` for samples that do not fit the model, `ErrorKind::format` for
/// classes the model has no output for.
TrainingData prepare_data(const config::TrainingConfig& config);

/// Samples [N, ...] as the model takes them, [N, input...]: a table's rows may fill any shape; whole numbers become
/// int64 where the model wants indices. Errors: `ErrorKind::shape`, `ErrorKind::format`.
Tensor fit_inputs(const std::string& where, const Tensor& inputs, const config::ModelSpec& model);

/// Targets for outputs [N, output...]: numbers in the outputs' shape; classes checked to be below the number of
/// outputs, except those the loss ignores. Errors: `ErrorKind::shape`, `ErrorKind::format`.
Tensor fit_targets(const std::string& where, const Tensor& targets, const Shape& output,
                   const config::Chosen<nn::LossType>& loss);

/// Finds one field among those it visits.
struct FieldFinder final : FieldVisitor {
  explicit FieldFinder(const char* k) : key(k) {}
  void visit(const Field& field, FieldAccess& access) override;

  const std::string_view key;
  Value value = {};
};

/// What an option of a loss, an optimiser or a schedule is set to; null when it has none of that key.
template <class Type>
Value option_of(const config::Chosen<Type>& chosen, const char* key) {
  FieldFinder finder(key);
  chosen.type->visit(chosen.options.get(), finder);
  return finder.value;
}

}  // namespace taper::train
