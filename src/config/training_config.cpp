#include "config/training_config.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "config/model_json.hpp"
#include "config/options_reader.hpp"
#include "io/byte_source.hpp"
#include "taper/config.hpp"

namespace taper::config {

namespace {

// --- one section each -----------------------------------------------------------------------------------------------

/// Reads {"type": "Adam", ...options} by a catalogue of entries with `name`, `new_options` and `visit`.
template <class Type>
Chosen<Type> read_chosen(Reader& reader, const Json& json, const std::string& pointer,
                         const std::vector<Type>& catalogue) {
  Chosen<Type> chosen;
  if (!reader.is_object(json, pointer)) return chosen;
  const Json* type = reader.required(json, pointer, "type");
  std::vector<std::string_view> names;
  for (const Type& entry : catalogue) names.push_back(entry.name);
  const auto name = type ? reader.one_of(*type, pointer + "/type", names) : std::nullopt;
  if (!name) return chosen;
  const auto entry = std::find_if(catalogue.begin(), catalogue.end(), [&](const Type& t) { return t.name == *name; });
  chosen.type = &*entry;
  chosen.options = entry->new_options();
  OptionsReader visitor(reader, json, pointer, {"type"});
  entry->visit(chosen.options.get(), visitor);
  visitor.finish();
  return chosen;
}

template <class Type>
Json json_of(const Chosen<Type>& chosen) {
  Json object = {{"type", chosen.type->name}};
  OptionsWriter writer(object);
  chosen.type->visit(chosen.options.get(), writer);
  return object;
}

std::optional<data::SourceOptions> read_source(Reader& reader, const Json& data, const std::string& pointer,
                                               const char* key) {
  if (!data.contains(key)) return std::nullopt;
  data::SourceOptions source;
  read_options(reader, data[key], pointer + "/" + key, source);
  return source;
}

/// The one setting that is a field of `data` itself.
struct NormalizeField {
  data::Normalize normalize = data::Normalize::none;
};
void fields(NormalizeField& o, FieldVisitor& visit) {
  visit({"normalize", "how inputs are scaled, channel by channel, by the training data"}, o.normalize);
}

struct ValidationSplit {
  double split = 0.2;
};
void fields(ValidationSplit& o, FieldVisitor& visit) {
  visit({"split", "share of the training data set aside",
         Rule{.min = 0, .max = 1, .exclusive_min = true, .exclusive_max = true}},
        o.split);
}

DataConfig read_data(Reader& reader, const Json& json, const std::string& pointer) {
  DataConfig config;
  if (!reader.is_object(json, pointer)) return config;
  NormalizeField normalize;
  read_options(reader, json, pointer, normalize, {"train", "validation", "test"});
  config.normalize = normalize.normalize;
  if (reader.required(json, pointer, "train")) config.train = read_source(reader, json, pointer, "train");
  config.test = read_source(reader, json, pointer, "test");
  if (json.contains("validation") && json["validation"].is_object() && json["validation"].contains("split")) {
    ValidationSplit split;
    read_options(reader, json["validation"], pointer + "/validation", split);
    config.validation_split = split.split;
  } else {
    config.validation = read_source(reader, json, pointer, "validation");
  }
  return config;
}

Json json_of(const DataConfig& config) {
  Json object = Json::object();
  if (config.train) object["train"] = write_options(*config.train);
  if (config.validation) object["validation"] = write_options(*config.validation);
  if (config.validation_split > 0) object["validation"] = write_options(ValidationSplit{config.validation_split});
  if (config.test) object["test"] = write_options(*config.test);
  object.update(write_options(NormalizeField{config.normalize}));
  return object;
}

train::TrainOptions read_train(Reader& reader, const Json& json, const std::string& pointer) {
  train::TrainOptions options;
  if (!read_options(reader, json, pointer, options, {"early_stopping", "checkpoint"}) && !json.is_object())
    return options;
  if (json.contains("early_stopping") && !json["early_stopping"].is_null())
    read_options(reader, json["early_stopping"], pointer + "/early_stopping", options.early_stopping.emplace());
  if (json.contains("checkpoint"))
    read_options(reader, json["checkpoint"], pointer + "/checkpoint", options.checkpoint);
  return options;
}

Json json_of(const train::TrainOptions& options) {
  Json object = write_options(options);
  if (options.early_stopping) object["early_stopping"] = write_options(*options.early_stopping);
  object["checkpoint"] = write_options(options.checkpoint);
  return object;
}

/// `loss` may be null; with one, its metrics must speak of the same kind of targets.
std::vector<train::Metric> read_metrics(Reader& reader, const Json& json, const std::string& pointer,
                                        const nn::LossType* loss) {
  std::vector<train::Metric> metrics;
  const auto names = reader.strings(json, pointer);
  if (!names) return metrics;
  const auto known = names_of(train::Metric{});
  const std::vector<std::string_view> all(known.begin(), known.end());
  for (std::size_t i = 0; i < names->size(); ++i) {
    const std::string here = cat(pointer, '/', i);
    if (!reader.one_of(json[i], here, all)) continue;
    const auto metric = train::Metric(std::find(all.begin(), all.end(), (*names)[i]) - all.begin());
    if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end())
      reader.error(here, cat("the metric is listed twice: expected each once, got \"", (*names)[i], '"'));
    if (loss && needs_classes(metric) != loss->takes_classes)
      reader.error(here, cat("the metric does not go with ", loss->name, ": expected one for ",
                             loss->takes_classes ? "classes" : "numbers", ", got \"", (*names)[i], '"'));
    metrics.push_back(metric);
  }
  return metrics;
}

// --- what the sections must agree on --------------------------------------------------------------------------------

void check_monitor(Reader& reader, const TrainingConfig& config, const std::string& monitor,
                   const std::string& pointer) {
  if (monitor.empty()) return;
  const bool validated = config.data.validation || config.data.validation_split > 0;
  std::vector<std::string> columns;
  for (const char* prefix : {"train_", "val_"}) {
    if (prefix[0] == 'v' && !validated) continue;
    columns.push_back(cat(prefix, "loss"));
    for (const train::Metric metric : config.metrics)
      columns.push_back(cat(prefix, names_of(metric)[std::size_t(metric)]));
  }
  if (std::find(columns.begin(), columns.end(), monitor) != columns.end()) return;
  std::string all;
  for (const auto& column : columns) all += (all.empty() ? "" : ", ") + column;
  const bool asks_validation = monitor.rfind("val_", 0) == 0 && !validated;
  reader.error(pointer, cat("nothing of this name is measured: expected one of ", all, ", got \"", monitor, '"',
                            asks_validation ? "; add data.validation" : "; add it to metrics"));
}

/// Training feeds one array of samples to the model and one output to the loss.
void check_ends(Reader& reader, const TrainingConfig& config) {
  const ModelSpec& model = config.model;
  if (model.inputs.size() > 1)
    reader.error("/model/inputs", cat("training feeds a model one input: expected 1, got ", model.inputs.size(),
                                      "; taper run takes several"));
  if (model.outputs.size() > 1)
    reader.error("/model/outputs",
                 cat("a loss takes one output: expected 1, got ", model.outputs.size(), "; taper run gives several"));
  const bool scaled = config.data.normalize != data::Normalize::none;
  if (scaled && model.inputs.size() == 1 && model.inputs[0].outline.elements == nn::Elements::int64)
    reader.error("/data/normalize", cat("indices are not scaled: expected \"none\", got \"",
                                        names_of(config.data.normalize)[std::size_t(config.data.normalize)], '"'));
}

void check_agreement(Reader& reader, const TrainingConfig& config) {
  check_ends(reader, config);
  if (config.train.early_stopping)
    check_monitor(reader, config, config.train.early_stopping->monitor, "/train/early_stopping/monitor");
  check_monitor(reader, config, config.train.checkpoint.monitor, "/train/checkpoint/monitor");
}

TrainingConfig read_config(Reader& reader, const Json& root) {
  static constexpr std::string_view kKeys[] = {"$schema",   "model",     "data",  "loss",
                                               "optimizer", "scheduler", "train", "metrics"};
  TrainingConfig config;
  if (!reader.is_object(root, "")) return config;
  reader.refuse_unknown_keys(root, "", kKeys);
  if (const Json* model = reader.required(root, "", "model")) config.model = read_model(reader, *model, "/model");
  if (const Json* data = reader.required(root, "", "data")) config.data = read_data(reader, *data, "/data");
  if (const Json* loss = reader.required(root, "", "loss"))
    config.loss = read_chosen(reader, *loss, "/loss", nn::loss_types());
  if (const Json* optimizer = reader.required(root, "", "optimizer"))
    config.optimizer = read_chosen(reader, *optimizer, "/optimizer", optim::optimizer_types());
  if (root.contains("scheduler") && !root["scheduler"].is_null())
    config.scheduler = read_chosen(reader, root["scheduler"], "/scheduler", optim::scheduler_types());
  if (root.contains("train")) config.train = read_train(reader, root["train"], "/train");
  if (root.contains("metrics")) config.metrics = read_metrics(reader, root["metrics"], "/metrics", config.loss.type);
  check_agreement(reader, config);
  return config;
}

// --- overrides ------------------------------------------------------------------------------------------------------

/// "model.layers[0].padding" as "/model/layers/0/padding".
std::string pointer_of(const std::string& path) {
  std::string pointer = "/";
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '.' || path[i] == '[')
      pointer += '/';
    else if (path[i] == '~')
      pointer += "~0";
    else if (path[i] == '/')
      pointer += "~1";
    else if (path[i] != ']')
      pointer += path[i];
  }
  return pointer;
}

/// The JSON a value stands for; a word that is no JSON is a string, so that no quotes need quoting.
Json parse_value(const std::string& text) {
  Diagnostics problems(Source("--set", text));
  const auto document = parse_json(problems);
  return document && problems.empty() ? document->root() : Json(text);
}

/// Makes the objects on the way to `pointer` that the file leaves out.
void make_way(Document& document, const std::string& pointer, const std::string& origin) {
  for (std::size_t slash = pointer.find('/', 1); slash != std::string::npos; slash = pointer.find('/', slash + 1)) {
    const Json::json_pointer way(pointer.substr(0, slash));
    if (!document.root().contains(way) || document.root().at(way).is_null())
      if (!document.set(pointer.substr(0, slash), Json::object(), origin)) return;
  }
}

void apply_overrides(Document& document, Diagnostics& diagnostics, const std::vector<Override>& overrides) {
  for (const Override& change : overrides) {
    const std::string origin = "--set " + change.path, pointer = pointer_of(change.path);
    make_way(document, pointer, origin);
    if (!document.set(pointer, parse_value(change.value), origin))
      diagnostics.add(
          {.pointer = pointer,
           .message =
               "no such place in the config: expected a path to an existing object or element, got " + change.path,
           .layer = "",
           .span = std::nullopt,
           .origin = origin});
  }
}

std::string stem(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  const std::string name = file.substr(0, file.find_last_of('.'));
  return name.empty() ? "config" : name;
}

std::string read_text(const std::string& path) {
  constexpr std::int64_t kMostBytes = 16 << 20;
  return io::read_file(path, kMostBytes);
}

/// The model of a model file or of a whole config, as far as it can be read.
ModelSpec read_model_document(Diagnostics& diagnostics, const std::vector<Override>& overrides) {
  auto document = parse_json(diagnostics);
  if (!document) return {};
  apply_overrides(*document, diagnostics, overrides);
  Reader reader(*document, diagnostics);
  const Json& root = document->root();
  const bool whole = root.is_object() && root.contains("model");
  return read_model(reader, whole ? root["model"] : root, whole ? "/model" : "");
}

Shared<nn::Module> checked_model(const std::string& text, const std::string& name) {
  Diagnostics diagnostics(Source(name, text));
  const ModelSpec model = read_model_document(diagnostics, {});
  diagnostics.throw_if_any();
  return build_model(model);
}

}  // namespace

std::string TrainingConfig::to_json() const {
  Json root = Json::object();
  root["model"] = json_of(model);
  root["data"] = json_of(data);
  root["loss"] = json_of(loss);
  root["optimizer"] = json_of(optimizer);
  if (scheduler.type) root["scheduler"] = json_of(scheduler);
  root["train"] = json_of(train);
  Json names = Json::array();
  for (const train::Metric metric : metrics) names.push_back(names_of(metric)[std::size_t(metric)]);
  root["metrics"] = names;
  return root.dump(2) + "\n";
}

TrainingConfig parse_training_config(const std::string& text, const std::string& name,
                                     const std::vector<Override>& overrides) {
  Diagnostics diagnostics(Source(name, text));
  TrainingConfig config;
  if (auto document = parse_json(diagnostics)) {
    apply_overrides(*document, diagnostics, overrides);
    Reader reader(*document, diagnostics);
    config = read_config(reader, document->root());
  }
  diagnostics.throw_if_any();
  config.name = stem(name);
  return config;
}

TrainingConfig load_training_config(const std::string& path, const std::vector<Override>& overrides) {
  TrainingConfig config = parse_training_config(read_text(path), path, overrides);
  const auto slash = path.find_last_of('/');
  for (auto* source : {&config.data.train, &config.data.validation, &config.data.test})
    if (*source) (*source)->base_directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return config;
}

LoadedModel parse_model(const std::string& text, const std::string& name, const std::vector<Override>& overrides) {
  Diagnostics diagnostics(Source(name, text));
  LoadedModel loaded{.model = read_model_document(diagnostics, overrides), .errors = "", .summary = ""};
  if (!diagnostics.empty()) {
    loaded.errors = diagnostics.render();
    loaded.summary = diagnostics.summary();
  }
  return loaded;
}

LoadedModel load_model(const std::string& path, const std::vector<Override>& overrides) {
  return parse_model(read_text(path), path, overrides);
}

}  // namespace taper::config

namespace taper {

Shared<nn::Module> model_from_json(const std::string& text) { return config::checked_model(text, "model"); }

Shared<nn::Module> model_from_file(const std::string& path) {
  return config::checked_model(config::read_text(path), path);
}

}  // namespace taper
