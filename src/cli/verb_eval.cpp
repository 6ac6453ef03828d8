#include <filesystem>

#include "cli/common.hpp"
#include "cli/evaluation.hpp"
#include "cli/failure.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "train/trainer.hpp"

namespace taper::cli {

namespace {

class Eval final : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("RUN", "a run directory or a checkpoint", path_);
    arguments.text({"--data", "FILE", "samples with targets, in place of the config's test data"}, data_);
    arguments.flag("--json", "as JSON", json_);
    arguments.number({"--threads", "N", "at most so many; results do not depend on it"}, 1, kMostThreads, threads_);
  }

  int run() override {
    use_threads(threads_);
    const TestResult result = failing_with(kFailed, [&] {
      const train::TrainedModel trained = load_trained(path_);
      return evaluate_trained(trained, source_for(trained));
    });
    print(json_ ? report_json(result).dump(2, ' ', false, config::Json::error_handler_t::replace) + "\n"
                : report_text(result));
    return kDone;
  }

 private:
  data::SourceOptions source_for(const train::TrainedModel& trained) const {
    std::error_code ignored;
    // A run knows where its data were; a checkpoint alone looks in the working directory.
    const config::DataConfig data =
        std::filesystem::is_directory(path_, ignored) ? train::load_run_config(path_).data : trained.config.data;
    if (data_.empty()) {
      if (!data.test) refuse("eval: the config has no test data: expected data.test or --data FILE, got none");
      return *data.test;
    }
    data::SourceOptions source = data.test ? *data.test : *data.train;
    source.path = data_;
    source.format = data::Format::automatic;
    source.base_directory.clear();
    return source;
  }

  std::string path_, data_;
  bool json_ = false;
  std::optional<std::int64_t> threads_;
};

}  // namespace

const Verb kEval = {"eval", "measures a trained model on its test data",
                    R"(  taper eval runs/forum/latest
  taper eval runs/forum/latest --json
  taper eval best.safetensors --data more.npz
)",
                    make_command<Eval>};

}  // namespace taper::cli
