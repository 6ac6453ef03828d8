#include "base/nearest.hpp"
#include "cli/catalogue.hpp"
#include "cli/failure.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "io/printable.hpp"

namespace taper::cli {

namespace {

std::string overview(const std::vector<CatalogueEntry>& entries) {
  std::string text, group;
  Table table;
  for (const CatalogueEntry& entry : entries) {
    if (entry.group != group) table.add({(group.empty() ? "" : "\n") + (group = entry.group)});
    table.add({"  " + entry.name, entry.summary});
  }
  return table.to_string() + "\ntaper layers NAME shows one with its options.\n";
}

std::string page(const CatalogueEntry& entry) {
  std::string text = cat(entry.name, "\n\n", entry.summary, "\n");
  if (entry.options.empty()) {
    text += "\nNo options.\n";
  } else {
    Table table({"option", "type", "default", "rule", "meaning"});
    for (const CatalogueOption& option : entry.options)
      table.add(
          {option.key, option.type, option.required ? "required" : option.default_value, option.rule, option.help});
    text += "\n" + table.to_string();
  }
  if (entry.is_layer)
    text +=
        "\nEvery layer also takes \"name\", and \"inputs\": names of earlier layers, their further "
        "results\n(\"pool1.indices\") or \"input\".\n";
  return text + cat("\nExample\n  ", entry.example, "\n");
}

const CatalogueEntry& find_entry(const std::vector<CatalogueEntry>& entries, const std::string& name) {
  std::vector<std::string_view> names;
  for (const CatalogueEntry& entry : entries) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  const std::string hint = did_you_mean(name, names);
  refuse("layers: unknown name: expected a layer, loss, optimizer or scheduler, got ", io::printable(name),
         hint.empty() ? "; taper layers lists them" : hint);
}

class Layers final : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("NAME", "one of them in detail", name_, false);
    arguments.flag("--json", "as JSON", json_);
  }

  int run() override {
    std::vector<CatalogueEntry> entries = catalogue();
    if (!name_.empty()) entries = {find_entry(entries, name_)};
    if (json_)
      print(to_json(entries));
    else
      print(name_.empty() ? overview(entries) : page(entries.front()));
    return kDone;
  }

 private:
  std::string name_;
  bool json_ = false;
};

}  // namespace

const Verb kLayers = {"layers", "lists layers, losses, optimizers and schedulers, or shows one with its options",
                      R"(  taper layers
  taper layers AvgPool2d
  taper layers AvgPool2d --json
)",
                      make_command<Layers>};

}  // namespace taper::cli
