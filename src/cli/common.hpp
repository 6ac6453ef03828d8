#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/training_config.hpp"

namespace taper::cli {

/// The most threads the program takes: an absurd number would end in the operating system's refusal, not in speed.
inline constexpr std::int64_t kMostThreads = 1024;

void use_threads(const std::optional<std::int64_t>& threads);

/// "model.layers[0].padding=1" from each --set. Refused with `kUsage` without "=".
std::vector<config::Override> parse_overrides(const char* verb, const std::vector<std::string>& words);

/// A model that may be incomplete, from a model file or a config; a file that cannot be read is wrong usage.
config::LoadedModel read_model(const std::string& path, const std::vector<config::Override>& overrides = {});

/// What is wrong with a model, on standard error.
void say_errors(const config::LoadedModel& loaded);

}  // namespace taper::cli
