#include "cli/common.hpp"

#include "cli/failure.hpp"
#include "cli/output.hpp"
#include "io/printable.hpp"
#include "taper/creation.hpp"

namespace taper::cli {

void use_threads(const std::optional<std::int64_t>& threads) {
  if (threads) set_num_threads(int(*threads));
}

std::vector<config::Override> parse_overrides(const char* verb, const std::vector<std::string>& words) {
  std::vector<config::Override> overrides;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos || at == 0)
      refuse(verb, ": --set takes a key and its value: expected a.b=value, got ", io::printable(word));
    overrides.push_back({word.substr(0, at), word.substr(at + 1)});
  }
  return overrides;
}

config::LoadedModel read_model(const std::string& path, const std::vector<config::Override>& overrides) {
  return failing_with(kUsage, [&] { return config::load_model(path, overrides); });
}

void say_errors(const config::LoadedModel& loaded) {
  const bool ended = loaded.errors.empty() || loaded.errors.back() == '\n';
  say(cat(loaded.errors, ended ? "" : "\n", loaded.summary, "\n"));
}

}  // namespace taper::cli
