#include "cli/catalogue.hpp"

#include "base/fail.hpp"
#include "config/json_text.hpp"
#include "taper/fields.hpp"
#include "taper/lr_scheduler.hpp"
#include "taper/nn/loss.hpp"
#include "taper/nn/registry.hpp"
#include "taper/optim.hpp"

namespace taper::cli {

namespace {

std::string words_for(const FieldType& type) {
  std::string text;
  switch (type.kind) {
    case FieldType::boolean:
      text = "boolean";
      break;
    case FieldType::integer:
      text = "integer";
      break;
    case FieldType::number:
      text = "number";
      break;
    case FieldType::text:
      text = "string";
      break;
    case FieldType::choice:
      for (const char* name : type.choices) text += cat(text.empty() ? "\"" : " or \"", name, '"');
      break;
    case FieldType::sizes:
    case FieldType::padding:
      if (type.arity == 0)
        text = "integer or list of integers";
      else
        text = type.arity == 1 ? "integer" : cat("integer or ", type.arity, " of them");
      for (const char* word : type.choices) text += cat(word == type.choices.back() ? " or \"" : ", \"", word, '"');
      break;
    case FieldType::numbers:
      text = type.arity == 1 ? "number or list of numbers" : "list of numbers";
      break;
    case FieldType::texts:
      text = "list of strings";
      break;
  }
  return text + (type.nullable ? " or null" : "");
}

std::string words_for(const Rule& rule) {
  const bool low = rule.min != kAny.min, high = rule.max != kAny.max;
  if (low && high)
    return cat(rule.exclusive_min ? "in (" : "in [", rule.min, ", ", rule.max, rule.exclusive_max ? ")" : "]");
  if (low) return cat(rule.exclusive_min ? "> " : ">= ", rule.min);
  if (high) return cat(rule.exclusive_max ? "< " : "<= ", rule.max);
  return "";
}

struct OptionLister final : FieldVisitor {
  std::vector<CatalogueOption> options;

  void visit(const Field& field, FieldAccess& access) override {
    options.push_back({field.key, words_for(access.type()), taper::to_json(access.get()), words_for(field.rule),
                       field.help, field.required});
  }
};

/// The entry of a layer, loss, optimiser or scheduler. Without an example of its own it is the type alone.
template <class Type>
CatalogueEntry entry_of(const char* group, const Type& type, const std::string& example) {
  OptionLister lister;
  const Shared<void> options = type.new_options();
  type.visit(options.get(), lister);
  return {group, type.name, type.summary, example, std::move(lister.options)};
}

/// {"type": "ReLU", ...} with the options of a registry's example.
std::string full_example(const std::string& name, const std::string& options) {
  const std::size_t first = options.find_first_not_of(" {");
  const bool bare = first == std::string::npos || options[first] == '}';
  return cat("{\"type\": \"", name, '"', bare ? "}" : ", " + options.substr(first));
}

CatalogueEntry sequential() {
  return {.group = "Layers",
          .name = "Sequential",
          .summary = "Applies its layers one after another; their parameters are named after it and their place.",
          .example = R"({"type": "Sequential", "layers": [{"type": "ReLU"}, {"type": "Dropout", "p": 0.2}]})",
          .options = {{.key = "layers",
                       .type = "list of layers",
                       .default_value = "",
                       .rule = "",
                       .help = "what is applied, in order; inside there are no \"inputs\"",
                       .required = true}},
          .is_layer = true};
}

CatalogueEntry graph() {
  return {.group = "Layers",
          .name = "Graph",
          .summary =
              "A block whose layers read any earlier ones of it, \"input\" being the block's own, or several "
              "values under names.",
          .example = R"({"type": "Graph", "layers": [{"type": "Tanh"}, {"type": "Add", "inputs": ["0", "input"]}]})",
          .options = {{.key = "layers",
                       .type = "list of layers",
                       .default_value = "",
                       .rule = "",
                       .help = "in order; what the last one gives is the block's result",
                       .required = true},
                      {.key = "inputs",
                       .type = "list or object of strings",
                       .default_value = "null",
                       .rule = "one, or names for several",
                       .help = "what the block reads; of several an object {\"left\": \"conv1\"}, whose keys are their "
                               "names inside",
                       .required = false},
                      {.key = "outputs",
                       .type = "list of strings",
                       .default_value = "null",
                       .rule = "not empty",
                       .help = "names of what the block gives instead, read outside as \"block\" and \"block.name\"",
                       .required = false}},
          .is_layer = true};
}

}  // namespace

std::vector<CatalogueEntry> catalogue() {
  std::vector<CatalogueEntry> entries;
  for (const nn::LayerType& type : nn::layer_types()) {
    entries.push_back(entry_of("Layers", type, full_example(type.name, type.example)));
    entries.back().is_layer = true;
  }
  entries.push_back(sequential());
  entries.push_back(graph());
  for (const auto& type : nn::loss_types()) entries.push_back(entry_of("Losses", type, full_example(type.name, "")));
  for (const auto& type : optim::optimizer_types())
    entries.push_back(entry_of("Optimizers", type, full_example(type.name, "")));
  for (const auto& type : optim::scheduler_types())
    entries.push_back(entry_of("Schedulers", type, full_example(type.name, "")));
  return entries;
}

std::string to_json(const std::vector<CatalogueEntry>& entries) {
  config::Json array = config::Json::array();
  for (const CatalogueEntry& entry : entries) {
    config::Json options = config::Json::array();
    for (const CatalogueOption& option : entry.options) {
      config::Json object = {{"key", option.key}, {"type", option.type}, {"required", option.required}};
      if (!option.required) object["default"] = config::Json::parse(option.default_value);
      if (!option.rule.empty()) object["rule"] = option.rule;
      object["help"] = option.help;
      options.push_back(std::move(object));
    }
    array.push_back({{"group", entry.group},
                     {"name", entry.name},
                     {"summary", entry.summary},
                     {"example", config::Json::parse(entry.example)},
                     {"options", std::move(options)}});
  }
  return array.dump(2) + "\n";
}

}  // namespace taper::cli
