#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "cli/common.hpp"
#include "cli/evaluation.hpp"
#include "cli/failure.hpp"
#include "cli/gate.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/verb.hpp"
#include "train/trainer.hpp"

namespace taper::cli {

namespace {

constexpr const char* kStyles[] = {"auto", "bar", "line", "none"};

volatile std::sig_atomic_t stop_signal = 0;

extern "C" void note_signal(int number) {
  if (stop_signal != 0) ::_exit(kSignal + number);
  stop_signal = number;
}

/// Lets the first Ctrl-C or SIGTERM end the training after its batch; the second ends the program.
void watch_signals() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
}

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  const bool plain =
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=-+:,@%") ==
      std::string::npos;
  if (plain && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

class Train final : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("CONFIG", "the training; not with --resume", config_, false);
    arguments.text({"--out", "DIR", "where the run goes [runs/NAME/0001, 0002, ...]"}, out_);
    arguments.flag("--force", "replace an older run in --out", force_);
    arguments.text({"--resume", "RUN", "go on with a run from its last checkpoint"}, resume_);
    arguments.number({"--epochs", "N", "train.epochs"}, 1, INT64_MAX, epochs_);
    arguments.number({"--seed", "N", "train.seed"}, 0, INT64_MAX, seed_);
    arguments.texts({"--set", "KEY=VALUE", "changes a value of the config, as in optimizer.lr=0.01"}, set_);
    arguments.number({"--threads", "N", "at most so many; results do not depend on it"}, 1, kMostThreads, threads_);
    arguments.choice({"--progress", "STYLE", "auto, bar, line or none [auto]"}, kStyles, style_);
    arguments.flag("-q,--quiet", "say nothing but errors", quiet_);
    arguments.texts({"--fail-under", "NAME=X", "end with 3 unless the model reaches it, as in acc=0.95"}, gates_);
  }

  int run() override {
    if (config_.empty() == resume_.empty())
      refuse("train: what to train is not clear: expected CONFIG or --resume RUN, got ",
             config_.empty() ? "neither" : "both");
    if (!resume_.empty() && (!out_.empty() || force_))
      refuse("train: --resume continues in its own directory: expected no --out and no --force, got one of them");
    if (force_ && out_.empty()) refuse("train: --force replaces the run in --out: expected --out DIR, got none");
    use_threads(threads_);
    const config::TrainingConfig config = load_config();
    const std::vector<Gate> gates = parse_gates(gates_, config);
    watch_signals();
    const train::RunDirectory directory = open_directory(config);
    Progress progress(quiet_ ? ProgressStyle::none : ProgressStyle(style_));
    const train::TrainControls controls{.listener = &progress, .stop = &stop_signal, .command_line = command_line};
    const train::TrainResult result =
        resume_.empty() ? train::train(config, directory, controls) : train::resume(config, directory, controls);
    if (result.reason == train::StopReason::interrupted) return report_stop(directory);
    return finish(result, gates, directory);
  }

 private:
  config::TrainingConfig load_config() const {
    std::vector<config::Override> overrides = parse_overrides("train", set_);
    if (epochs_) overrides.push_back({"train.epochs", cat(*epochs_)});
    if (seed_) overrides.push_back({"train.seed", cat(*seed_)});
    if (!resume_.empty()) return train::load_run_config(resume_, overrides);
    return failing_with(kUsage, [&] { return config::load_training_config(config_, overrides); });
  }

  train::RunDirectory open_directory(const config::TrainingConfig& config) const {
    if (!resume_.empty()) return train::RunDirectory::open(resume_);
    return out_.empty() ? train::RunDirectory::create(config.name) : train::RunDirectory::create_at(out_, force_);
  }

  int report_stop(const train::RunDirectory& directory) const {
    say(cat("stopped and saved; go on with: taper train --resume ", quoted(directory.path()), "\n"));
    print(directory.path() + "\n");
    return kSignal + stop_signal;
  }

  int finish(const train::TrainResult& result, const std::vector<Gate>& gates,
             const train::RunDirectory& directory) const {
    std::optional<TestResult> test;
    if (result.trained.config.data.test) test = test_and_write(result.trained, directory);
    print(directory.path() + "\n");
    const std::string missed = unmet(gates, result, test ? &*test : nullptr);
    say(missed);
    return missed.empty() ? kDone : kGate;
  }

  TestResult test_and_write(const train::TrainedModel& trained, const train::RunDirectory& directory) const {
    TestResult test = evaluate_trained(trained, *trained.config.data.test);
    std::error_code ignored;  // writing into the folder tells what is wrong with it
    std::filesystem::create_directories(directory.file("eval"), ignored);
    directory.write("eval/test.json",
                    report_json(test).dump(2, ' ', false, config::Json::error_handler_t::replace) + "\n");
    if (const std::string confusion = confusion_csv(test); !confusion.empty())
      directory.write("eval/confusion.csv", confusion);
    directory.write("eval/predictions.csv", predictions_csv(trained, test.outputs, test.targets));
    if (!quiet_) say("\ntest data\n" + report_text(test));
    return test;
  }

  std::string config_, out_, resume_;
  bool force_ = false, quiet_ = false;
  std::size_t style_ = 0;
  std::optional<std::int64_t> epochs_, seed_, threads_;
  std::vector<std::string> set_, gates_;
};

}  // namespace

const Verb kTrain = {"train", "trains what a config describes and leaves a run directory",
                     R"(  taper train forum.json
  taper train forum.json --out runs/a --set optimizer.lr=0.01 --set model.layers[0].out_channels=64
  taper train forum.json --fail-under acc=0.95
  taper train --resume runs/forum/0001 --epochs 60
)",
                     make_command<Train>};

}  // namespace taper::cli
