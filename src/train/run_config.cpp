#include "train/run_config.hpp"

#include <set>

#include "base/fail.hpp"
#include "config/json_text.hpp"
#include "io/byte_source.hpp"
#include "io/checksum.hpp"
#include "train/trainer.hpp"

namespace taper::train {

namespace {

using config::Json;

/// What may be another when a run goes on: none of it changes what a step does. Data files are told by their content.
bool may_change(const std::string& pointer) {
  for (const char* free : {"/train/epochs", "/train/early_stopping", "/train/checkpoint"})
    if (pointer.starts_with(free)) return true;
  return pointer.starts_with("/data/") && pointer.ends_with("/path");
}

std::string shown(const Json& flat, const std::string& pointer) {
  return flat.contains(pointer) ? flat[pointer].dump() : "nothing";
}

std::string differences(const Json& before, const Json& now) {
  const Json old_values = before.flatten(), new_values = now.flatten();
  std::set<std::string> pointers;
  for (const Json* values : {&old_values, &new_values})
    for (const auto& item : values->items()) pointers.insert(item.key());
  std::string lines;
  for (const std::string& pointer : pointers)
    if (shown(old_values, pointer) != shown(new_values, pointer) && !may_change(pointer))
      lines +=
          cat("\n  ", pointer, ": ", shown(old_values, pointer), " in the run, ", shown(new_values, pointer), " now");
  return lines;
}

std::string changed_data(const Checkpoint& checkpoint, const config::TrainingConfig& config) {
  std::string lines;
  for (const auto& [name, before] : checkpoint.fingerprints) {
    const auto& source = name == "train" ? config.data.train : config.data.validation;
    if (!source) continue;
    const std::string path = data::resolve_path(*source), now = data::fingerprint(*source);
    if (now != before) lines += cat("\n  ", path, ": ", before, " in the run, ", now, " now (size and checksum)");
  }
  return lines;
}

Json parsed(const std::string& name, const std::string& text) {
  config::Diagnostics problems(config::Source(name, text));
  const auto document = config::parse_json(problems);
  problems.throw_if_any();
  return document->root();
}

}  // namespace

void check_same_run(const std::string& path, const Checkpoint& checkpoint, const config::TrainingConfig& config) {
  const std::string lines = differences(parsed(path, checkpoint.config), parsed("config", config.to_json())) +
                            changed_data(checkpoint, config);
  if (!lines.empty())
    fail(ErrorKind::config, path, ": cannot resume: expected the run's own config and data, got other ones:", lines);
}

config::TrainingConfig load_run_config(const std::string& run_path, const std::vector<config::Override>& overrides) {
  config::TrainingConfig config = config::load_training_config(run_path + "/config.json", overrides);
  constexpr std::int64_t kMostBytes = 1 << 20;
  const std::string file = run_path + "/env.json";
  const Json env = parsed(file, io::read_file(file, kMostBytes));
  if (!env.contains("base_directory") || !env["base_directory"].is_string()) return config;
  for (auto* source : {&config.data.train, &config.data.validation, &config.data.test})
    if (*source) (*source)->base_directory = env["base_directory"].get<std::string>();
  return config;
}

}  // namespace taper::train
