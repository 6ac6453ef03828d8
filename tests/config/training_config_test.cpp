#include "config/training_config.hpp"

#include "config/diagnostics.hpp"

#include "support/catch.hpp"

using namespace taper;
using namespace taper::config;

namespace {

const std::string kTraining = R"({
  "model": {"input": {"shape": [3, 11]}, "layers": [{"type": "AvgPool1d", "kernel_size": 11}, {"type": "Flatten"}, {"type": "Linear", "out_features": 2}]},
  "data": {"train": {"path": "t.npz"}, "validation": {"split": 0.2}, "normalize": "standard"},
  "loss": {"type": "CrossEntropyLoss", "label_smoothing": 0.1},
  "optimizer": {"type": "Adam", "lr": 0.01},
  "scheduler": {"type": "CosineAnnealingLR", "T_max": 40},
  "train": {"epochs": 7, "batch_size": 5, "seed": 3, "early_stopping": {"monitor": "val_loss", "patience": 2}},
  "metrics": ["accuracy", "f1"]
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string training_errors_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parse_training_config(text, "c.json", overrides);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a config is read whole, and resolves to JSON that reads as the same config") {
  const TrainingConfig config = parse_training_config(kTraining, "runs/forum.json");
  CHECK(config.name == "forum");
  CHECK(config.train.epochs == 7);
  CHECK(config.train.early_stopping->patience == 2);
  CHECK(config.data.validation_split == 0.2);
  CHECK(config.metrics.size() == 2);
  CHECK(parse_training_config(config.to_json(), "again").to_json() == config.to_json());
}

TEST_CASE("overrides come after the file's values and are named in errors") {
  const TrainingConfig config = parse_training_config(
      kTraining, "c.json",
      {{"train.epochs", "2"}, {"model.layers[2].out_features", "4"}, {"data.normalize", "minmax"}});
  CHECK(config.train.epochs == 2);
  CHECK(config.model.output() == Shape({4}));
  CHECK(config.data.normalize == data::Normalize::minmax);
  CHECK(training_errors_of(kTraining, {{"train.epochs", "2.5"}}) ==
        "/train/epochs (--set train.epochs): expected an integer, got 2.5");
  CHECK(training_errors_of(kTraining, {{"train.epoch", "2"}}) ==
        "/train/epoch (--set train.epoch): unknown key; did you mean epochs?");
}

TEST_CASE("an override may name a section that the file leaves out") {
  const TrainingConfig config = parse_training_config(
      replaced(kTraining, R"(, "early_stopping": {"monitor": "val_loss", "patience": 2})", ""), "c.json",
      {{"train.early_stopping.patience", "4"}, {"train.checkpoint.every_n_epochs", "2"}});
  CHECK(config.train.early_stopping->patience == 4);
  CHECK(config.train.checkpoint.every_n_epochs == 2);
}

TEST_CASE("every wrong key of every section is reported") {
  CHECK(training_errors_of(replaced(kTraining, "\"lr\": 0.01", "\"lr\": -1, \"beta\": 2")) ==
        "/optimizer/lr (line 5): expected >= 0, got -1\n"
        "/optimizer/beta (line 5): unknown key; did you mean betas?");
  CHECK(training_errors_of(replaced(kTraining, "\"Adam\"", "\"adam\"")) ==
        "/optimizer/type (line 5): expected SGD, Adam, AdamW, RMSprop or Adagrad, got adam; did you mean Adam?");
  CHECK(training_errors_of(replaced(kTraining, "\"epochs\": 7", "\"epochs\": 0")) ==
        "/train/epochs (line 7): expected >= 1, got 0");
  CHECK(training_errors_of(replaced(kTraining, "\"split\": 0.2", "\"split\": 1.5")) ==
        "/data/validation/split (line 3): expected < 1, got 1.5");
  CHECK(training_errors_of(replaced(kTraining, "\"standard\"", "\"zscore\"")) ==
        "/data/normalize (line 3): expected none, standard or minmax, got zscore");
  CHECK(training_errors_of(replaced(kTraining, "\"monitor\": \"val_loss\"", "\"monitor\": \"val_f2\"")) ==
        "/train/early_stopping/monitor (line 7): nothing of this name is measured: expected one of train_loss, "
        "train_accuracy, train_f1, val_loss, val_accuracy, val_f1, got \"val_f2\"; add it to metrics");
  CHECK(
      training_errors_of(
          replaced(kTraining, "[\"accuracy\", \"f1\"]", "[\"accuracy\", \"acuracy\", \"rmse\", \"accuracy\"]")) ==
      "/metrics/1 (line 8): expected accuracy, precision, recall, f1, top5, mse, rmse, mae or r2, got acuracy; did you "
      "mean accuracy?\n"
      "/metrics/2 (line 8): the metric does not go with CrossEntropyLoss: expected one for classes, got \"rmse\"\n"
      "/metrics/3 (line 8): the metric is listed twice: expected each once, got \"accuracy\"");
  CHECK(training_errors_of(replaced(kTraining, "\"metrics\"", "\"metric\"")) ==
        "/metric (line 8): unknown key; did you mean metrics?");
  CHECK(
      training_errors_of(replaced(kTraining, "\"train\": {\"path\": \"t.npz\"}", "\"test\": {\"path\": \"t.npz\"}")) ==
      "/data (line 3): missing key: expected train, got none");
  CHECK(training_errors_of("{}") ==
        "c.json (line 1): missing key: expected model, got none\n"
        "c.json (line 1): missing key: expected data, got none\n"
        "c.json (line 1): missing key: expected loss, got none\n"
        "c.json (line 1): missing key: expected optimizer, got none");
}
