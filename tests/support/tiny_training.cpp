#include "support/tiny_training.hpp"

#include <utility>

#include "base/random.hpp"
#include "io/safe_file.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

using namespace taper;

TinyTraining::TinyTraining(std::int64_t n) : sync_(std::exchange(io::file_calls.sync, [](int) { return 0; })) {
  Tensor x = empty({n, 3, 5}), y = empty({n}, DType::int64);
  for (std::int64_t i = 0; i < n; ++i) {
    y.data<std::int64_t>()[i] = i % 3;
    for (std::int64_t j = 0; j < 15; ++j)
      x.data<float>()[i * 15 + j] =
          uniform_float(random_bits(5, Stream::data, std::uint64_t(i * 15 + j))) + (j / 5 == i % 3 ? 1.0f : 0.0f);
  }
  io::save_npz(data_path(), {{"x", x}, {"y", y}});
}

TinyTraining::~TinyTraining() { io::file_calls.sync = sync_; }

config::TrainingConfig TinyTraining::config(const std::vector<config::Override>& overrides) const {
  const std::string text = R"({
  "model": {"input": {"shape": [3, 5]}, "layers": [
    {"type": "Conv1d", "name": "conv", "out_channels": 4, "kernel_size": 3, "padding": 1},
    {"type": "ReLU"},
    {"type": "Dropout", "p": 0.3},
    {"type": "Flatten"},
    {"type": "Linear", "name": "fc", "out_features": 3}]},
  "data": {"train": {"path": ")" +
                           data_path() + R"("}, "validation": {"split": 0.2}, "normalize": "standard"},
  "loss": {"type": "CrossEntropyLoss"},
  "optimizer": {"type": "AdamW", "lr": 0.02, "betas": [0.8, 0.95], "weight_decay": 0.1, "amsgrad": true},
  "scheduler": {"type": "StepLR", "step_size": 2, "gamma": 0.5},
  "train": {"epochs": 3, "batch_size": 4, "seed": 7, "clip_grad_norm": 1.5},
  "metrics": ["accuracy", "f1"]})";
  return config::parse_training_config(text, "tiny.json", overrides);
}

std::string TinyTraining::last_of(const std::string& name, const std::vector<config::Override>& overrides,
                                  const train::TrainControls& controls) const {
  const auto run = train::RunDirectory::create_at(folder_ / name);
  train::train(config(overrides), run, controls);
  return slurp(run.last());
}
