#include "train/trainer.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include "io/safe_file.hpp"
#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/tiny_training.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;
using namespace taper::train;

namespace {

std::vector<std::string> file_lines(const std::string& path) {
  std::istringstream text(slurp(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// Notes what it is told.
struct Recorder final : Listener {
  void on_start(const StartReport& report) override {
    batches = report.batches;
    train_samples = report.train_samples;
    validation_samples = report.validation_samples;
  }
  void on_batch(const BatchReport& report) override {
    ++steps;
    last_loss = report.loss;
  }
  void on_epoch(const EpochReport& report) override { rows.push_back(report.values); }
  void on_checkpoint(const std::string&, std::int64_t epoch, bool is_best) override {
    (is_best ? best : last).push_back(epoch);
  }
  void on_warning(const std::string& sentence) override { warnings.push_back(sentence); }
  void on_stop(StopReason reason) override { reasons.push_back(reason); }

  std::int64_t batches = 0, train_samples = 0, validation_samples = 0, steps = 0;
  double last_loss = 0;
  std::vector<std::vector<double>> rows;
  std::vector<std::int64_t> best, last;
  std::vector<StopReason> reasons;
  std::vector<std::string> warnings;
};

struct Trained {
  TrainResult result;
  Recorder recorder;
};

Trained train_tiny(const TinyTraining& tiny, const std::string& name,
                   const std::vector<config::Override>& overrides = {}) {
  const RunDirectory run = RunDirectory::create_at(tiny.path(name));
  Recorder recorder;
  TrainResult result = train::train(tiny.config(overrides), run, {.listener = &recorder});
  return {std::move(result), std::move(recorder)};
}

}  // namespace

TEST_CASE("a training leaves its files and tells what happens") {
  const TinyTraining tiny;
  const auto [result, recorder] = train_tiny(tiny, "run");
  CHECK(result.reason == StopReason::finished);
  CHECK(recorder.train_samples == 11);
  CHECK(recorder.validation_samples == 3);
  CHECK(recorder.batches == 3);
  CHECK(recorder.steps == 9);
  CHECK(recorder.last == std::vector<std::int64_t>{1, 2, 3});
  CHECK(recorder.best.front() == 1);
  CHECK(recorder.reasons == std::vector{StopReason::finished});
  CHECK(result.progress.step == 9);

  const auto lines = file_lines(tiny.path("run/metrics.csv"));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "epoch,lr,train_loss,train_accuracy,train_f1,val_loss,val_accuracy,val_f1");
  CHECK(lines[1].starts_with("1,0.02,"));
  CHECK(lines[3].starts_with("3,0.01,"));
  CHECK(file_lines(tiny.path("run/events.jsonl"))
            .front()
            .starts_with(R"({"event":"start","epoch":0,"batch":0,"step":0,)"));
  CHECK(file_lines(tiny.path("run/events.jsonl")).back().find(R"("reason":"finished")") != std::string::npos);
  CHECK(slurp(tiny.path("run/config.json")) == tiny.config().to_json());
  CHECK(slurp(tiny.path("run/env.json")).find(R"("seed": 7)") != std::string::npos);
}

TEST_CASE("the loss falls and the model learns") {
  const TinyTraining tiny(41);
  const auto [result, recorder] = train_tiny(tiny, "run", {{"train.epochs", "30"}, {"scheduler.step_size", "20"}});
  CHECK(recorder.rows.back()[2] < recorder.rows.front()[2]);
  CHECK(recorder.rows.back()[6] == 1);
}

TEST_CASE("two trainings leave the same bytes, and another seed leaves others") {
  const TinyTraining tiny;
  const std::string first = tiny.last_of("a");
  rand({17});
  CHECK(tiny.last_of("b") == first);
  CHECK(slurp(tiny.path("a/checkpoints/best.safetensors")) == slurp(tiny.path("b/checkpoints/best.safetensors")));
  CHECK(tiny.last_of("c", {{"train.seed", "8"}}) != first);
}

TEST_CASE("every epoch has an order of its own, unless it is not to be shuffled") {
  const TinyTraining tiny;
  struct FirstLosses final : Listener {
    void on_batch(const BatchReport& report) override {
      if (report.batch == 1) losses.push_back(report.loss);
    }
    std::vector<double> losses;
  };
  // With weights that stay as they are, the loss of the first batch tells its samples.
  std::vector<config::Override> overrides = {
      {"optimizer.lr", "0"}, {"model.layers[2].p", "0"}, {"train.shuffle", "true"}};
  FirstLosses shuffled, in_order;
  train::train(tiny.config(overrides), RunDirectory::create_at(tiny.path("a")), {.listener = &shuffled});
  overrides.back().value = "false";
  train::train(tiny.config(overrides), RunDirectory::create_at(tiny.path("b")), {.listener = &in_order});
  CHECK(shuffled.losses[0] != shuffled.losses[1]);
  CHECK(shuffled.losses[1] != shuffled.losses[2]);
  CHECK(in_order.losses == std::vector<double>(3, in_order.losses[0]));
}

TEST_CASE("replayed batches leave the bytes of computed ones") {
  const TinyTraining tiny;
  const std::vector<std::vector<config::Override>> cases = {
      {},
      {{"train.clip_grad_value", "0.01"}, {"optimizer", R"({"type": "SGD", "lr": 0.1, "momentum": 0.9})"}},
      {{"model.layers[1]", R"({"type": "BatchNorm1d", "momentum": null})"}, {"train.drop_last", "true"}},
      {{"scheduler", R"({"type": "OneCycleLR", "max_lr": 0.1, "total_steps": 9})"}}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO("case " << i);
    const std::string name = std::to_string(i);
    Recorder recorder;
    CHECK(tiny.last_of(name + "a", cases[i], {.listener = &recorder}) ==
          tiny.last_of(name + "b", cases[i], {.replay = false}));
    CHECK(recorder.warnings.empty());
  }
}

namespace {

struct LookingOptions {
  static constexpr const char* kType = "Looking";
};
void fields(LookingOptions&, FieldVisitor&) {}

/// A layer that looks at what it computes, which cannot be replayed.
struct Looking : nn::Layer<LookingOptions> {
  explicit Looking(const LookingOptions& options = {}) : Layer(options) {}
  Tensor forward(const Tensor& x) override { return mul(x, x.sum().item() > 0 ? 1.0 : 0.5); }
  static Shape infer(LookingOptions&, std::span<const Shape> inputs) { return inputs[0]; }
};

/// JSON knows the layer while it lives: tests of all layers are about the library's.
struct LookingRegistered {
  LookingRegistered() { nn::register_layer<Looking>("Scales by what it sees: [*] -> [*].", "{}", {{2, 3}}); }
  ~LookingRegistered() { const_cast<std::vector<nn::LayerType>&>(nn::layer_types()).pop_back(); }
};

}  // namespace

TEST_CASE("a layer that looks at values is computed, with a warning") {
  const LookingRegistered registered;
  const TinyTraining tiny;
  const std::vector<config::Override> looking = {{"model.layers[1]", R"({"type": "Looking"})"}};
  Recorder recorder;
  CHECK(tiny.last_of("a", looking, {.listener = &recorder}) == tiny.last_of("b", looking, {.replay = false}));
  CHECK(recorder.warnings ==
        std::vector<std::string>{
            "train: batches are computed operation by operation: capture: elements were read or written inside the "
            "step: expected no item(), to_vector() or data() of what a replay computes anew, got one of the result of "
            "sum []; return the tensor and read it after the step"});
}

TEST_CASE("1, 2 and 3 threads leave the same bytes") {
  const TinyTraining tiny(67);
  // Wide enough for the kernels to share the work out.
  const std::vector<config::Override> wide = {{"model.layers[0].out_channels", "256"}, {"train.batch_size", "53"}};
  const int before = get_num_threads();
  std::vector<std::string> bytes;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    bytes.push_back(tiny.last_of(std::to_string(threads), wide));
  }
  set_num_threads(before);
  CHECK(bytes[1] == bytes[0]);
  CHECK(bytes[2] == bytes[0]);
}

// --- how much of the data -------------------------------------------------------------------------------------------

TEST_CASE("drop_last, limit_batches, overfit_batches and fast_dev_run bound an epoch") {
  const TinyTraining tiny;
  CHECK(train_tiny(tiny, "drop", {{"train.drop_last", "true"}}).recorder.steps == 3 * 2);
  CHECK(train_tiny(tiny, "limit", {{"train.limit_batches", "1"}}).recorder.steps == 3);
  const auto overfit = train_tiny(tiny, "overfit", {{"train.overfit_batches", "2"}});
  CHECK(overfit.recorder.steps == 3 * 2);
  CHECK(overfit.recorder.train_samples == 8);
  const auto fast = train_tiny(tiny, "fast", {{"train.fast_dev_run", "true"}});
  CHECK(fast.recorder.steps == 1);
  CHECK(fast.recorder.rows.size() == 1);
}

TEST_CASE("a batch of one sample that a batch norm cannot take is refused before the first step") {
  const TinyTraining tiny;  // 11 samples to train on
  const auto refused = [&](const char* layers, const char* size, const char* drop_last = "false") {
    static int run = 0;
    return test::message_of([&] {
      train_tiny(tiny, "run" + std::to_string(run++),
                 {{"model.layers", layers}, {"train.batch_size", size}, {"train.drop_last", drop_last}});
    });
  };
  const char* flat = R"([{"type": "Flatten"}, {"type": "Sequential", "layers": [{"type": "BatchNorm1d"}]},
                         {"type": "Linear", "out_features": 3}])";
  const char* spatial = R"([{"type": "BatchNorm1d"}, {"type": "Flatten"}, {"type": "Linear", "out_features": 3}])";
  const std::string sentence =
      "/train/batch_size: a batch of one sample is too small for the BatchNorm1d at /model/layers/1/layers/0: expected "
      "at least 2 samples in each, got 11 in batches of ";
  CHECK(refused(flat, "5") == sentence + "5; drop_last leaves the last one out");
  CHECK(refused(flat, "1") == sentence + "1");
  CHECK(refused(flat, "5", "true") == "no error");
  CHECK(refused(flat, "4") == "no error");
  CHECK(refused(spatial, "5") == "no error");
}

TEST_CASE("a batch larger than the data is one batch, and with drop_last an error") {
  const TinyTraining tiny;
  CHECK(train_tiny(tiny, "large", {{"train.batch_size", "1000"}}).recorder.steps == 3);
  CHECK(test::message_of([&] {
          train_tiny(tiny, "none", {{"train.batch_size", "1000"}, {"train.drop_last", "true"}});
        }) == "/train/batch_size: no batch is full and drop_last leaves out the rest: expected at most 11, got 1000");
}

TEST_CASE("one sample of constant features trains") {
  const TinyTraining tiny;
  io::save_npz(tiny.data_path(), {{"x", full({1, 3, 5}, 4.0)}, {"y", tensor({2})}});
  auto config = tiny.config();
  config.data.validation_split = 0;
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  const TrainResult result = train::train(config, run);
  CHECK(result.progress.step == 3);
  CHECK(result.monitor == "train_loss");
  CHECK(result.columns == std::vector<std::string>{"epoch", "lr", "train_loss", "train_accuracy", "train_f1"});
  for (const double value : result.last_row) CHECK(std::isfinite(value));
}

TEST_CASE("no epochs leave the initial weights") {
  const TinyTraining tiny;
  config::TrainingConfig config = tiny.config();
  config.train.epochs = 0;
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  CHECK(train::train(config, run).last_row.empty());
  CHECK(load_checkpoint(run.last()).progress.step == 0);
}

TEST_CASE("regression trains on tables, with targets in the outputs' shape") {
  const TinyTraining tiny;
  std::string table = "a,b,y\n";
  for (int i = 0; i < 23; ++i)
    table += std::to_string(i) + "," + std::to_string(i * i % 7) + "," + std::to_string(3 * i - i * i % 7) + "\n";
  const std::string path = tiny.folder().write("table.csv", table);
  const std::string text = R"({
    "model": {"input": {"shape": [1, 2]}, "layers": [{"type": "Flatten"}, {"type": "Linear", "out_features": 1}]},
    "data": {"train": {"path": ")" +
                           path + R"("}, "normalize": "standard"},
    "loss": {"type": "MSELoss"}, "optimizer": {"type": "Adam", "lr": 0.5},
    "train": {"epochs": 60, "batch_size": 5}, "metrics": ["rmse", "mae", "r2"]})";
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  const TrainResult result = train::train(config::parse_training_config(text, "c.json"), run);
  CHECK(result.columns.back() == "train_r2");
  CHECK(result.last_row.back() > 0.99);
  CHECK(predict(*result.trained.model, result.trained.prepare(tensor({{10.0, 2.0}}))).item() == Approx(28).margin(3));
}

TEST_CASE("data that does not fit the model is refused before the first step") {
  const TinyTraining tiny;
  const std::string& path = tiny.data_path();
  const auto refusal = [&](const Tensor& x, const Tensor& y) {
    io::save_npz(path, {{"x", x}, {"y", y}});
    return test::message_of([&] { train::train(tiny.config(), RunDirectory::create_at(tiny.path("run"), true)); });
  };
  CHECK(refusal(zeros({8, 5, 3}), zeros({8}, DType::int64)) ==
        "/data/train: inputs do not fit the model: expected [N, 3, 5], got [6, 5, 3]");
  CHECK(refusal(zeros({4, 3, 5}), tensor({0, 3, 1, 1})) ==
        "/data/train: target of sample 1 has no output of the model: expected a class from 0 to 2, got 3");
}

// --- stopping -------------------------------------------------------------------------------------------------------

TEST_CASE("early stopping waits for its patience and ends with the best weights") {
  const TinyTraining tiny;
  // A rate of 0 changes nothing, so that the first epoch stays the best.
  const auto [result, recorder] = train_tiny(tiny, "run",
                                             {{"train.epochs", "20"},
                                              {"optimizer.lr", "0"},
                                              {"optimizer.weight_decay", "0"},
                                              {"train.early_stopping", R"({"patience": 3})"}});
  CHECK(result.reason == StopReason::early_stopping);
  CHECK(recorder.rows.size() == 4);
  CHECK(recorder.best == std::vector<std::int64_t>{1});
  CHECK(result.progress.best.epoch == 1);
  CHECK(file_lines(tiny.path("run/events.jsonl")).back().find(R"("reason":"early_stopping")") != std::string::npos);
}

TEST_CASE("the best weights are restored at the end if wanted") {
  const TinyTraining tiny;
  // The largest training loss is that of the first epochs.
  for (const char* restore : {"true", "false"}) {
    const auto [result, recorder] =
        train_tiny(tiny, restore,
                   {{"train.epochs", "6"},
                    {"train.checkpoint", R"({"monitor": "train_loss", "mode": "max"})"},
                    {"train.early_stopping", std::string(R"({"patience": 100, "restore_best": )") + restore + "}"}});
    REQUIRE(result.progress.best.epoch < 6);
    const bool restored = std::string(restore) == "true";
    const Checkpoint kept = load_checkpoint(
        tiny.path(std::string(restore) + "/checkpoints/" + (restored ? "best" : "last") + ".safetensors"));
    const nn::StateDict state = result.trained.model->state_dict();
    for (const auto& [name, tensor] : kept.model)
      for (const auto& own : state)
        if (own.name == name) CHECK(own.tensor.to_vector<float>() == tensor.to_vector<float>());
  }
}

TEST_CASE("a loss that is not finite stops the training and leaves the last checkpoint") {
  const TinyTraining tiny;
  {
    const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
    StopAfter stop(4);
    train::train(tiny.config(), run, stop.controls());
  }
  const std::string before = slurp(tiny.path("run/checkpoints/last.safetensors"));
  // The weights of the checkpoint are poisoned, as a fault in a layer would.
  Checkpoint poisoned = load_checkpoint(tiny.path("run/checkpoints/last.safetensors"));
  for (auto& [name, tensor] : poisoned.model)
    if (name == "fc.weight") tensor.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  save_checkpoint(tiny.path("run/checkpoints/last.safetensors"), poisoned);
  const std::string with_nan = slurp(tiny.path("run/checkpoints/last.safetensors"));
  const RunDirectory run = RunDirectory::open(tiny.path("run"));
  CHECK(test::message_of([&] { resume(tiny.config(), run); }) ==
        "train: the loss is nan in step 5 (epoch 2, batch 2); first bad tensor: fc.weight, element 5; the step was not "
        "taken; a lower learning rate or clip_grad_norm may help");
  CHECK_THROWS_AS(resume(tiny.config(), run), DivergedError);
  CHECK(slurp(run.last()) == with_nan);
  CHECK(with_nan != before);
  CHECK(file_lines(tiny.path("run/events.jsonl")).back().find(R"("reason":"diverged")") != std::string::npos);
}

TEST_CASE("a gradient that is not finite stops the training before the optimiser sees it") {
  const TinyTraining tiny;
  // Eight samples of one feature near the largest float32: each term of the gradient fits, their sum does not, while a
  // weight of at most 1/20 keeps the loss finite.
  Tensor x = zeros({8, 400});
  for (std::int64_t i = 0; i < 8; ++i) x.data<float>()[i * 400 + 7] = 1e38f;
  io::save_npz(tiny.data_path(), {{"x", x}, {"y", zeros({8})}});
  const std::string text = R"({
    "model": {"input": {"shape": [400]}, "layers": [{"type": "Linear", "name": "fc", "out_features": 1, "bias": false}]},
    "data": {"train": {"path": ")" +
                           tiny.data_path() + R"("}},
    "loss": {"type": "L1Loss", "reduction": "sum"},
    "optimizer": {"type": "SGD", "lr": 1}, "train": {"epochs": 9, "batch_size": 8}})";
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  Recorder recorder;
  CHECK(test::message_of(
            [&] { train::train(config::parse_training_config(text, "c.json"), run, {.listener = &recorder}); }) ==
        "train: the gradient of fc.weight is not finite at element 7 in step 1 (epoch 1, batch 1); the step was not "
        "taken; a lower learning rate or clip_grad_norm may help");
  CHECK(recorder.steps == 0);
  CHECK(test::message_of([&] { load_checkpoint(run.last()); }).ends_with("No such file or directory"));
}

TEST_CASE("a schedule that ends before the training is refused before the first step") {
  const TinyTraining tiny;
  CHECK(test::message_of([&] {
          train_tiny(tiny, "run", {{"scheduler", R"({"type": "OneCycleLR", "max_lr": 0.1, "total_steps": 8})"}});
        }) ==
        "/scheduler/total_steps: the schedule ends before the training: expected at least 9 (3 epochs of 3 batches), "
        "got 8");
}

TEST_CASE("a training that is told to stop during validation saves and goes on there") {
  const TinyTraining tiny;
  const std::string whole = tiny.last_of("whole");
  StopAfter stop(3);  // the last batch of the first epoch: validation is next
  {
    const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
    const TrainResult result = train::train(tiny.config(), run, stop.controls());
    CHECK(result.reason == StopReason::interrupted);
    CHECK(result.progress.epoch == 0);
    CHECK(result.progress.batch == 3);
    CHECK(stop.rows.empty());
  }
  const RunDirectory run = RunDirectory::open(tiny.path("run"));
  resume(tiny.config(), run);
  CHECK(slurp(run.last()) == whole);
}

TEST_CASE("a save that fails ends the training and keeps the checkpoint before") {
  const TinyTraining tiny;
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  struct FailSecondEpoch final : Listener {
    void on_epoch(const EpochReport& report) override {
      if (report.epoch == 2) io::file_calls.allocate = [](int, off_t, off_t) { return ENOSPC; };
    }
  } listener;
  const auto allocate = io::file_calls.allocate;
  const std::string message = test::message_of([&] { train::train(tiny.config(), run, {.listener = &listener}); });
  io::file_calls.allocate = allocate;
  CHECK(message.find("cannot write: No space left on device; free space and resume") != std::string::npos);
  CHECK(load_checkpoint(run.last()).progress.epoch == 1);
  // What was lost is made again.
  resume(tiny.config(), run);
  CHECK(slurp(run.last()) == tiny.last_of("whole"));
}
