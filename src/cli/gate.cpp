#include "cli/gate.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/nearest.hpp"
#include "cli/evaluation.hpp"
#include "cli/failure.hpp"
#include "io/printable.hpp"

namespace taper::cli {

namespace {

double parse_bound(const std::string& word, const std::string& text) {
  double bound = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bound);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(bound))
    refuse("train: --fail-under has no number: expected acc=0.95 or its like, got ", io::printable(word));
  return bound;
}

std::string metric_named(const std::string& name) {
  std::vector<std::string_view> names{"acc", "loss"};
  for (const char* known : train::names_of(train::Metric{})) names.push_back(known);
  if (name == "acc") return "accuracy";
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  refuse("train: --fail-under names no metric: expected loss, acc, f1 or another metric, got ", io::printable(name),
         did_you_mean(name, names));
}

void check_measured(const std::string& metric, const config::TrainingConfig& config) {
  if (config.data.test) return;
  if (!config.data.validation && config.data.validation_split == 0)
    refuse("train: --fail-under needs data to measure on: expected data.test or data.validation, got none");
  const auto is_it = [&](train::Metric listed) { return metric == train::name_of(listed); };
  if (metric != "loss" && std::none_of(config.metrics.begin(), config.metrics.end(), is_it))
    refuse("train: --fail-under names what is not measured: expected loss or one of the config's metrics, got ",
           metric);
}

}  // namespace

bool Gate::at_most() const { return !train::larger_is_better("val_" + metric, train::Mode::automatic); }

std::vector<Gate> parse_gates(const std::vector<std::string>& words, const config::TrainingConfig& config) {
  std::vector<Gate> gates;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos)
      refuse("train: --fail-under has no number: expected acc=0.95 or its like, got ", io::printable(word));
    const Gate gate{metric_named(word.substr(0, at)), parse_bound(word, word.substr(at + 1))};
    check_measured(gate.metric, config);
    gates.push_back(gate);
  }
  return gates;
}

std::string unmet(const std::vector<Gate>& gates, const train::TrainResult& result, const TestResult* test) {
  std::string text;
  for (const Gate& gate : gates) {
    double value = std::nan("");
    if (test) {
      value = value_of(test->sums, gate.metric).value_or(value);
    } else {
      for (std::size_t i = 0; i < result.last_row.size(); ++i)
        if (result.columns[i] == "val_" + gate.metric) value = result.last_row[i];
    }
    if (gate.at_most() ? value <= gate.bound : value >= gate.bound) continue;
    text += cat("taper: train: quality gate not met: expected ", test ? "test " : "validation ", gate.metric,
                gate.at_most() ? " <= " : " >= ", gate.bound, ", got ", value, "\n");
  }
  return text;
}

}  // namespace taper::cli
