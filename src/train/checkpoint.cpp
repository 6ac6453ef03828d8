#include "train/checkpoint.hpp"

#include "base/checked.hpp"
#include "base/fail.hpp"
#include "config/json_text.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"
#include "train/prepare.hpp"

namespace taper::train {

namespace {

using config::Json;

constexpr const char* kPrefixes[] = {"optimizer.", "scheduler.", "normalization.", "progress."};
constexpr const char* kVersionKey = "taper.format_version";

/// The kind of state a tensor belongs to, an index into `kPrefixes`; -1 for the model's own.
int state_of(const std::string& name) {
  for (int i = 0; i < 4; ++i)
    if (name.starts_with(kPrefixes[i])) return i;
  return -1;
}

// --- metadata -------------------------------------------------------------------------------------------------------

Json to_json(const Best& best) {
  Json json = {{"value", nullptr}, {"epoch", best.epoch}, {"waited", best.waited}};
  if (best.value) json["value"] = *best.value;
  return json;
}

Json training_json(const Checkpoint& c) {
  Json positions = Json::array();
  for (const std::uint64_t position : c.random.positions) positions.push_back(position);
  return {{"epoch", c.progress.epoch},
          {"batch", c.progress.batch},
          {"step", c.progress.step},
          {"best", to_json(c.progress.best)},
          {"early_stopping", to_json(c.progress.stopping)},
          {"random", {{"seed", c.random.seed}, {"positions", positions}}}};
}

/// Takes values out of the JSON of one metadata entry, distrusting it as any other part of a file.
class MetadataReader {
 public:
  MetadataReader(const std::string& path, const io::SafetensorsFile& file, const char* key)
      : where_(cat(path, ": metadata ", key)) {
    const std::string* text = file.find_metadata(key);
    if (!text) fail(ErrorKind::format, where_, ": expected an entry, got none");
    config::Diagnostics problems(config::Source(key, *text));
    document_ = config::parse_json(problems);
    if (!document_ || !problems.empty()) refuse("JSON", problems.sentences());
  }

  const Json& root() const { return document_->root(); }

  const Json& member(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) refuse(cat("a member ", key), "none");
    return object.at(key);
  }
  std::int64_t count(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_number_integer() || value < 0) refuse(cat("a count as ", key), value.dump());
    return value.get<std::int64_t>();
  }
  std::uint64_t bits(const Json& value) const {
    if (!value.is_number_integer()) refuse("64 bits", value.dump());
    return value.get<std::uint64_t>();
  }
  std::string text(const Json& value) const {
    if (!value.is_string()) refuse("text", value.dump());
    return value.get<std::string>();
  }
  Best best(const Json& object) const {
    Best best{.value = std::nullopt, .epoch = count(object, "epoch"), .waited = count(object, "waited")};
    const Json& value = member(object, "value");
    if (!value.is_null() && !value.is_number()) refuse("a number as value", value.dump());
    if (value.is_number()) best.value = value.get<double>();
    return best;
  }
  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    fail(ErrorKind::format, where_, ": expected ", expected, ", got ", got);
  }

 private:
  std::string where_;
  std::optional<config::Document> document_;
};

void check_version(const std::string& path, const io::SafetensorsFile& file) {
  const std::string* version = file.find_metadata(kVersionKey);
  if (!version)
    fail(ErrorKind::format, path,
         ": not a checkpoint: expected the metadata of one, got plain weights; load them into a model");
  const auto number = version->size() < 10 && version->find_first_not_of("0123456789") == std::string::npos
                          ? std::strtoll(version->c_str(), nullptr, 10)
                          : 0;
  if (number < 1 || number > kFormatVersion)
    fail(ErrorKind::format, path, ": version of the format: expected at most ", kFormatVersion, ", got ", *version,
         "; a newer Taper reads it");
}

// --- tensors --------------------------------------------------------------------------------------------------------

data::Normalization normalization_of(const std::string& path, const io::SafetensorsFile& file) {
  const Tensor *shift = file.find("normalization.shift"), *scale = file.find("normalization.scale");
  if (!shift && !scale) return {};
  const auto fits = [](const Tensor* t) { return t && t->dtype() == DType::float32 && t->dim() == 1; };
  if (!fits(shift) || !fits(scale) || shift->numel() != scale->numel())
    fail(ErrorKind::format, path, ": normalization: expected shift and scale, float32 [C], got ",
         shift ? to_string(shift->shape()) : "none", " and ", scale ? to_string(scale->shape()) : "none");
  return {*shift, *scale};
}

/// The tensors under one prefix; those of the model for -1.
std::vector<NamedTensor> tensors_of(const io::SafetensorsFile& file, int state) {
  std::vector<NamedTensor> tensors;
  for (const auto& named : file.tensors)
    if (state_of(named.name) == state) tensors.push_back(named);
  return tensors;
}

/// Calls `load`, and puts the file's path in front of what it has to say.
template <class Load>
void with_path(const std::string& path, const Load& load) {
  try {
    load();
  } catch (const Error& e) {
    fail(e.kind(), path, ": ", e.what());
  }
}

}  // namespace

void check_names(const nn::StateDict& model) {
  for (const auto& named : model)
    if (const int state = state_of(named.name); state >= 0)
      fail(ErrorKind::config, "checkpoint: layer name is taken by checkpoints: expected another than ",
           std::string_view(kPrefixes[state]).substr(0, std::string_view(kPrefixes[state]).size() - 1), ", got ",
           named.name);
}

void save_checkpoint(const std::string& path, const Checkpoint& c) {
  std::vector<NamedTensor> tensors = c.model;
  for (const auto& state : {c.optimizer, c.scheduler, c.progress.sums.save("progress.")})
    tensors.insert(tensors.end(), state.begin(), state.end());
  if (c.normalization.shift.defined()) {
    tensors.push_back({"normalization.shift", c.normalization.shift});
    tensors.push_back({"normalization.scale", c.normalization.scale});
  }
  Json fingerprints = Json::object();
  for (const auto& [name, fingerprint] : c.fingerprints) fingerprints[name] = fingerprint;
  io::save_safetensors(path, tensors,
                       {{kVersionKey, cat(kFormatVersion)},
                        {"taper.config", c.config},
                        {"taper.labels", Json(c.labels).dump()},
                        {"taper.fingerprints", fingerprints.dump()},
                        {"taper.training", training_json(c).dump()}});
}

Checkpoint load_checkpoint(const std::string& path) {
  const io::SafetensorsFile file = io::load_safetensors(path);
  check_version(path, file);
  Checkpoint c;
  const std::string* config = file.find_metadata("taper.config");
  if (!config) fail(ErrorKind::format, path, ": metadata taper.config: expected an entry, got none");
  c.config = *config;
  c.model = tensors_of(file, -1);
  c.optimizer = tensors_of(file, 0);
  c.scheduler = tensors_of(file, 1);
  c.normalization = normalization_of(path, file);
  with_path(path, [&] { c.progress.sums.load("progress.", file.tensors); });

  const MetadataReader labels(path, file, "taper.labels");
  if (!labels.root().is_array()) labels.refuse("a list", labels.root().dump());
  for (const Json& label : labels.root()) c.labels.push_back(labels.text(label));
  const MetadataReader fingerprints(path, file, "taper.fingerprints");
  if (!fingerprints.root().is_object()) fingerprints.refuse("an object", fingerprints.root().dump());
  for (const auto& [name, value] : fingerprints.root().items())
    c.fingerprints.emplace_back(name, fingerprints.text(value));

  const MetadataReader training(path, file, "taper.training");
  const Json& root = training.root();
  c.progress.epoch = training.count(root, "epoch");
  c.progress.batch = training.count(root, "batch");
  c.progress.step = training.count(root, "step");
  c.progress.best = training.best(training.member(root, "best"));
  c.progress.stopping = training.best(training.member(root, "early_stopping"));
  const Json& random = training.member(root, "random");
  c.random.seed = training.bits(training.member(random, "seed"));
  const Json& positions = training.member(random, "positions");
  if (!positions.is_array() || positions.size() != std::size_t(kStreamCount))
    training.refuse(cat(kStreamCount, " positions"), positions.dump());
  for (std::size_t i = 0; i < positions.size(); ++i) c.random.positions[i] = training.bits(positions[i]);
  return c;
}

void load_weights(const std::string& path, nn::Module& model) {
  const io::SafetensorsFile file = io::load_safetensors(path);
  const bool is_checkpoint = file.find_metadata(kVersionKey) != nullptr;
  if (is_checkpoint) check_version(path, file);
  with_path(path, [&] { model.load_state_dict(is_checkpoint ? tensors_of(file, -1) : file.tensors); });
}

Tensor TrainedModel::prepare(const Tensor& inputs) const {
  return fit_inputs("data", normalization.apply(inputs), config.model);
}

TrainedModel load_for_prediction(const std::string& path) {
  Checkpoint c = load_checkpoint(path);
  TrainedModel trained{.config = config::parse_training_config(c.config, path),
                       .model = nullptr,
                       .normalization = c.normalization,
                       .labels = c.labels};
  trained.model = config::build_model(trained.config.model);
  with_path(path, [&] { trained.model->load_state_dict(c.model); });
  trained.model->eval();
  return trained;
}

}  // namespace taper::train
