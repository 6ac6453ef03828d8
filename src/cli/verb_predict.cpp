#include "cli/common.hpp"
#include "cli/evaluation.hpp"
#include "cli/failure.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "io/printable.hpp"
#include "io/safe_file.hpp"
#include "taper/io.hpp"

namespace taper::cli {

namespace {

class Predict final : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("RUN", "a run directory or a checkpoint", path_);
    arguments.positional("INPUT", "samples: npy, npz, safetensors or csv", input_);
    arguments.text({"--name", "NAME", "which array of the file; without it the config's, \"input\", or the only one"},
                   name_);
    arguments.text({"--output", "FILE", "csv, or npy with one row of outputs a sample"}, output_);
    arguments.number({"--threads", "N", "at most so many; results do not depend on it"}, 1, kMostThreads, threads_);
  }

  int run() override {
    use_threads(threads_);
    if (!output_.empty() && !output_.ends_with(".csv") && !output_.ends_with(".npy"))
      refuse("predict: --output has another ending: expected .csv or .npy, got ", io::printable(output_));
    failing_with(kFailed, [&] {
      const train::TrainedModel trained = load_trained(path_);
      const Tensor outputs = train::predict(*trained.model, trained.prepare(load_samples(trained)));
      if (output_.ends_with(".npy"))
        io::save_npy(output_, to_predictions(trained, outputs));
      else if (!output_.empty())
        io::write_file(output_, predictions_csv(trained, outputs));
      else
        print(predictions_csv(trained, outputs));
    });
    return kDone;
  }

 private:
  Tensor load_samples(const train::TrainedModel& trained) const {
    data::SourceOptions source;
    if (trained.config.data.train) source = *trained.config.data.train;
    const bool from_table = input_.ends_with(".csv") || input_.ends_with(".tsv") || input_.ends_with(".txt");
    if (from_table)
      return io::load_csv(input_, {.delimiter = source.delimiter,
                                   .header = source.header,
                                   .inputs = source.inputs == data::SourceOptions().inputs ? std::vector<std::string>()
                                                                                           : source.inputs,
                                   .fill = source.fill})
          .inputs;
    const std::vector<NamedTensor> arrays = io::load_arrays(input_);
    Tensor samples = find(arrays, source).to(DType::float32);
    // One sample without the batch is a batch of one.
    return samples.dim() == trained.config.model.input().rank() ? samples.unsqueeze(0) : samples;
  }

  const Tensor& find(const std::vector<NamedTensor>& arrays, const data::SourceOptions& source) const {
    std::vector<std::string> wanted{name_};
    if (name_.empty()) wanted = {source.inputs.empty() ? "x" : source.inputs[0], "input"};
    std::string names;
    for (const std::string& name : wanted)
      for (const NamedTensor& array : arrays)
        if (array.name == name) return array.tensor;
    if (arrays.size() == 1 && name_.empty()) return arrays[0].tensor;
    for (const NamedTensor& array : arrays) names += cat(names.empty() ? "" : ", ", io::printable(array.name));
    fail(ErrorKind::config, input_, ": no array ", io::printable(wanted[0]), ": expected one of ", names,
         "; --name chooses");
  }

  std::string path_, input_, name_, output_;
  std::optional<std::int64_t> threads_;
};

}  // namespace

const Verb kPredict = {"predict", "applies a trained model to new samples",
                       R"(  taper predict runs/forum/latest new.npy
  taper predict best.safetensors new.csv --output predictions.csv
  taper predict best.safetensors set.npz --name x_test --output probabilities.npy
)",
                       make_command<Predict>};

}  // namespace taper::cli
