#include <sstream>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/tiny_training.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"

using namespace taper;
using namespace taper::train;

namespace {

/// Rows of metrics.csv.
std::string metrics_of(const TinyTraining& tiny, const std::string& name) {
  return slurp(tiny.path(name + "/metrics.csv"));
}

/// Trains `n` batches, then goes on to the end in a second session.
StopReason train_in_two(const TinyTraining& tiny, const std::string& name, std::int64_t n,
                        const std::vector<config::Override>& overrides = {}) {
  StopAfter stop(n);
  StopReason reason;
  {
    const RunDirectory run = RunDirectory::create_at(tiny.path(name));
    reason = train::train(tiny.config(overrides), run, stop.controls()).reason;
  }
  rand({13});  // another process has drawn other numbers
  const RunDirectory run = RunDirectory::open(tiny.path(name));
  resume(tiny.config(overrides), run);
  return reason;
}

}  // namespace

TEST_CASE("a run that was interrupted at any step ends with the same bytes") {
  const TinyTraining tiny;
  const std::string whole = tiny.last_of("whole");
  for (std::int64_t n = 1; n <= 8; ++n) {
    const std::string name = std::to_string(n);
    INFO("interrupted after batch " << n);
    CHECK(train_in_two(tiny, name, n) == StopReason::interrupted);
    CHECK(slurp(tiny.path(name + "/checkpoints/last.safetensors")) == whole);
    CHECK(metrics_of(tiny, name) == metrics_of(tiny, "whole"));
    CHECK(slurp(tiny.path(name + "/checkpoints/best.safetensors")) ==
          slurp(tiny.path("whole/checkpoints/best.safetensors")));
  }
}

TEST_CASE("a run with running statistics that was interrupted at any step ends with the same bytes") {
  for (const char* momentum : {"0.3", "null"}) {
    const TinyTraining tiny;
    const std::vector<config::Override> overrides = {
        {"model.layers", std::string(R"([{"type": "Conv1d", "out_channels": 4, "kernel_size": 3},
          {"type": "BatchNorm1d", "name": "norm", "momentum": )") +
                             momentum + R"(}, {"type": "ReLU"}, {"type": "InstanceNorm1d", "track_running_stats": true},
          {"type": "Flatten"}, {"type": "LayerNorm", "normalized_shape": 12}, {"type": "Linear", "out_features": 3}])"}};
    const std::string whole = tiny.last_of("whole", overrides);
    for (const std::int64_t n : {1, 2, 3, 5, 8}) {
      const std::string name = std::to_string(n);
      INFO("interrupted after batch " << n << ", momentum " << momentum);
      CHECK(train_in_two(tiny, name, n, overrides) == StopReason::interrupted);
      CHECK(slurp(tiny.path(name + "/checkpoints/last.safetensors")) == whole);
      CHECK(metrics_of(tiny, name) == metrics_of(tiny, "whole"));
    }
    const auto state = io::safetensors_from_bytes(whole);
    REQUIRE(state.find("norm.num_batches_tracked") != nullptr);
    CHECK(state.find("norm.num_batches_tracked")->item() == 9);  // 3 epochs of 3 batches; validation counts nothing
    CHECK(state.find("norm.running_mean")->to_vector<double>() != std::vector<double>(4, 0));
    CHECK(state.find("3.running_var") != nullptr);
  }
}

TEST_CASE("a run that was interrupted after its last batch ends with the same bytes") {
  const TinyTraining tiny;
  const std::string whole = tiny.last_of("whole");
  train_in_two(tiny, "late", 9);
  CHECK(slurp(tiny.path("late/checkpoints/last.safetensors")) == whole);
  CHECK(metrics_of(tiny, "late") == metrics_of(tiny, "whole"));
}

TEST_CASE("every schedule goes on where it was") {
  const TinyTraining tiny;
  for (const char* schedule :
       {R"({"type": "StepLR", "step_size": 1, "gamma": 0.3})", R"({"type": "MultiStepLR", "milestones": [1, 2]})",
        R"({"type": "ExponentialLR", "gamma": 0.7})", R"({"type": "CosineAnnealingLR", "T_max": 5})",
        R"({"type": "LinearLR", "total_iters": 2})", R"({"type": "OneCycleLR", "max_lr": 0.1, "total_steps": 9})",
        R"({"type": "ReduceLROnPlateau", "patience": 0, "threshold": 10})"}) {
    INFO(schedule);
    const TinyTraining fresh;
    const std::vector<config::Override> overrides = {{"scheduler", schedule}};
    const std::string whole = fresh.last_of("whole", overrides);
    for (const std::int64_t n : {2, 3, 7}) {
      train_in_two(fresh, std::to_string(n), n, overrides);
      CHECK(slurp(fresh.path(std::to_string(n) + "/checkpoints/last.safetensors")) == whole);
      CHECK(metrics_of(fresh, std::to_string(n)) == metrics_of(fresh, "whole"));
    }
  }
}

TEST_CASE("a run that was interrupted twice, with other numbers of threads, ends with the same bytes") {
  const TinyTraining tiny;
  const std::string whole = tiny.last_of("whole");
  const int before = get_num_threads();
  StopAfter first(2), second(3);
  {
    const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
    train::train(tiny.config(), run, first.controls());
  }
  set_num_threads(3);
  {
    const RunDirectory run = RunDirectory::open(tiny.path("run"));
    CHECK(resume(tiny.config(), run, second.controls()).progress.step == 5);
  }
  set_num_threads(before);
  const RunDirectory run = RunDirectory::open(tiny.path("run"));
  resume(tiny.config(), run);
  CHECK(slurp(run.last()) == whole);
}

TEST_CASE("rows that a killed run wrote after its checkpoint are not written twice") {
  const TinyTraining tiny;
  StopAfter stop(4);
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  train::train(tiny.config(), run, stop.controls());
  run.append("metrics.csv", "2,0.02,1,1,1,1,1,1");
  run.append("metrics.csv", "3,0.0");
  resume(tiny.config(), run);
  tiny.last_of("whole");
  CHECK(metrics_of(tiny, "run") == metrics_of(tiny, "whole"));
}

TEST_CASE("a finished run takes more epochs, as if it had had them from the start") {
  const TinyTraining tiny;
  tiny.last_of("run", {{"train.epochs", "2"}});
  const RunDirectory run = RunDirectory::open(tiny.path("run"));
  const TrainResult result = resume(tiny.config({{"train.epochs", "5"}}), run);
  CHECK(result.progress.epoch == 5);
  CHECK(slurp(run.last()) == tiny.last_of("whole", {{"train.epochs", "5"}}));
  CHECK(resume(tiny.config({{"train.epochs", "5"}}), run).reason == StopReason::finished);
}

TEST_CASE("resuming with another model is refused with every difference") {
  const TinyTraining tiny;
  tiny.last_of("run", {{"train.epochs", "1"}});
  const RunDirectory run = RunDirectory::open(tiny.path("run"));
  CHECK(test::message_of([&] {
          resume(tiny.config({{"model.layers[0].out_channels", "6"}, {"optimizer.lr", "0.5"}, {"train.epochs", "9"}}),
                 run);
        }) == run.last() +
                  ": cannot resume: expected the run's own config and data, got other ones:"
                  "\n  /model/layers/0/out_channels: 4 in the run, 6 now"
                  "\n  /model/layers/4/in_features: 20 in the run, 30 now"
                  "\n  /optimizer/lr: 0.02 in the run, 0.5 now");
}

TEST_CASE("resuming with other data is refused, with the same data elsewhere it is not") {
  const TinyTraining tiny;
  tiny.last_of("run", {{"train.epochs", "1"}});
  const RunDirectory run = RunDirectory::open(tiny.path("run"));
  const std::string elsewhere = tiny.path("moved.npz");
  tiny.folder().write("moved.npz", slurp(tiny.data_path()));
  CHECK(resume(tiny.config({{"data.train.path", '"' + elsewhere + '"'}, {"train.epochs", "2"}}), run).progress.epoch ==
        2);
  io::save_npz(tiny.data_path(), {{"x", zeros({14, 3, 5})}, {"y", zeros({14}, DType::int64)}});
  const std::string message = test::message_of([&] { resume(tiny.config(), run); });
  CHECK(message.starts_with(run.last() +
                            ": cannot resume: expected the run's own config and data, got other ones:\n  " +
                            tiny.data_path() + ": "));
  CHECK(message.ends_with(" now (size and checksum)"));
}

TEST_CASE("the config of a run finds data beside the config it came from") {
  const TinyTraining tiny;
  config::TrainingConfig config = tiny.config();
  config.data.train->path = "set.npz";
  const std::string file = tiny.folder().write("tiny.json", config.to_json());
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  train::train(config::load_training_config(file), run, {.command_line = "taper train \"x\""});
  const config::TrainingConfig again = load_run_config(run.path(), {{"train.epochs", "4"}});
  CHECK(again.train.epochs == 4);
  CHECK(again.data.train->path == "set.npz");
  CHECK(resume(again, run).progress.epoch == 4);
}
