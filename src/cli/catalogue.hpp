#pragma once

#include <string>
#include <vector>

namespace taper::cli {

/// One option as words, from its field.
struct CatalogueOption {
  std::string key, type, default_value, rule, help;
  bool required = false;
};

/// Anything that a config names by "type".
struct CatalogueEntry {
  std::string group, name, summary, example;
  std::vector<CatalogueOption> options;
  bool is_layer = false;
};

/// Everything a config can name, in groups.
std::vector<CatalogueEntry> catalogue();

std::string to_json(const std::vector<CatalogueEntry>& entries);

}  // namespace taper::cli
