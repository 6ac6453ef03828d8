#pragma once

#include <string>

#include "train/checkpoint.hpp"

namespace taper::train {

/// Refuses to resume with another model, loss, optimiser or data than the checkpoint's.
/// Errors: `ErrorKind::config` with a line for each difference.
void check_same_run(const std::string& path, const Checkpoint& checkpoint, const config::TrainingConfig& config);

}  // namespace taper::train
