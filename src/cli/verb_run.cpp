#include <algorithm>
#include <fstream>

#include "cli/common.hpp"
#include "cli/failure.hpp"
#include "cli/verb.hpp"
#include "io/printable.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"
#include "taper/nn/module.hpp"
#include "taper/ops.hpp"

namespace taper::cli {

namespace {

constexpr const char* kDTypes[] = {"float32", "float64"};
constexpr const char* kModes[] = {"eval", "train"};

bool is_npy(const std::string& path) {
  char magic[6] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "\x93NUMPY" || path.ends_with(".npy");
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += cat(text.empty() ? "" : ", ", io::printable(name));
  return text;
}

/// The array of an NPY file, or the tensor `name` of a safetensors file, as `dtype`.
Tensor load_array(const std::string& path, std::string_view name, DType dtype) {
  Tensor array;
  if (is_npy(path)) {
    array = io::load_npy(path);
  } else {
    const io::SafetensorsFile file = io::load_safetensors(path);
    const Tensor* found = file.find(name);
    if (!found) {
      std::vector<std::string> names;
      for (const NamedTensor& entry : file.tensors) names.push_back(entry.name);
      fail(ErrorKind::format, path, ": a tensor is missing: expected ", name, ", got ", joined(names));
    }
    array = *found;
  }
  if (!is_floating(array.dtype()))
    fail(ErrorKind::type, path, ": wrong element type of ", name, ": expected a floating one, got ", array.dtype());
  return to(array, dtype);
}

/// Whether a tensor is what a checkpoint holds beside the model (train/checkpoint.hpp).
bool belongs_to_training(const std::string& name) {
  constexpr const char* kPrefixes[] = {"optimizer.", "scheduler.", "normalization.", "progress."};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](const char* p) { return name.starts_with(p); });
}

/// Refuses what `load_state_dict` would refuse too, but with both lists in one sentence.
void check_names(const nn::LoadReport& report) {
  if (report.complete()) return;
  const std::string expected = report.missing.empty() ? "no others" : joined(report.missing);
  const std::string got = report.unexpected.empty() ? "none of them" : joined(report.unexpected);
  fail(ErrorKind::config, "the parameters' names are not the model's: expected ", expected, ", got ", got);
}

void load_weights(nn::Module& module, const std::string& path, DType dtype) {
  nn::StateDict weights;
  for (const NamedTensor& entry : io::load_safetensors(path).tensors) {
    if (belongs_to_training(entry.name)) continue;
    weights.push_back({entry.name, is_floating(entry.tensor.dtype()) ? to(entry.tensor, dtype) : entry.tensor});
  }
  try {
    check_names(module.load_state_dict(weights, false));
  } catch (const Error& error) {
    throw Failure(kFailed, cat(path, ": ", error.what()));
  }
}

class Run final : public Command {
 public:
  void declare(Arguments& arguments) override {
    arguments.positional("MODEL", "a model file, or a config with a model in it", model_);
    arguments.text({"--weights", "FILE", "safetensors with every parameter by name; without it they are initialised"},
                   weights_);
    arguments.text({"--input", "FILE", "npy, or safetensors with a tensor \"input\"", true}, input_);
    arguments.text({"--grad-output", "FILE", "npy, or safetensors with \"output\": the gradient to send back"},
                   grad_output_);
    arguments.text({"--output", "FILE", "safetensors to write", true}, output_);
    arguments.choice({"--dtype", "TYPE", "float32 or float64: what is computed in [float32]"}, kDTypes, dtype_);
    arguments.choice({"--mode", "MODE", "eval or train: whether Dropout is active [eval]"}, kModes, mode_);
    arguments.number({"--seed", "N", "of initial values and Dropout [0]"}, 0, INT64_MAX, seed_);
    arguments.number({"--threads", "N", "at most so many; results do not depend on it"}, 1, kMostThreads, threads_);
  }

  int run() override {
    const config::LoadedModel loaded = read_model(model_);
    if (!loaded.model.complete) {
      say_errors(loaded);
      return kUsage;
    }
    use_threads(threads_);
    manual_seed(std::uint64_t(seed_.value_or(0)));
    const DType dtype = dtype_ == 0 ? DType::float32 : DType::float64;
    const Shared<nn::Module> module = config::build_model(loaded.model);
    module->to(dtype);
    module->train(mode_ == 1);
    Tensor input, gradient;
    failing_with(kFailed, [&] {
      if (!weights_.empty()) load_weights(*module, weights_, dtype);
      input = load_array(input_, "input", dtype);
      if (!grad_output_.empty()) gradient = load_array(grad_output_, "output", dtype);
    });
    const std::vector<NamedTensor> results = compute(*module, input, gradient);
    failing_with(kFailed, [&] { io::save_safetensors(output_, results); });
    return kDone;
  }

 private:
  std::vector<NamedTensor> compute(nn::Module& module, const Tensor& input, const Tensor& gradient) const {
    const bool backward = gradient.defined();
    const autograd::GradModeGuard mode(backward);
    if (backward) input.requires_grad_();
    const Tensor output = module(input);
    std::vector<NamedTensor> results{{"output", output.detach()}};
    if (weights_.empty())
      for (const auto& [name, parameter] : module.named_parameters())
        results.push_back({"param." + name, parameter.detach()});
    if (!backward) return results;
    if (!(gradient.shape() == output.shape()))
      fail(ErrorKind::shape, "run: --grad-output has another shape than the output: expected ", output.shape(),
           ", got ", gradient.shape());
    output.backward(gradient);
    const auto add_gradient = [&](const std::string& name, const Tensor& leaf) {
      const Tensor reached = leaf.grad();
      results.push_back({"grad." + name, reached.defined() ? reached : zeros(leaf.shape(), leaf.dtype())});
    };
    add_gradient("input", input);
    for (const auto& [name, parameter] : module.named_parameters()) add_gradient(name, parameter);
    return results;
  }

  std::string model_, weights_, input_, grad_output_, output_;
  std::size_t dtype_ = 0, mode_ = 0;
  std::optional<std::int64_t> seed_, threads_;
};

}  // namespace

const Verb kRun = {"run", "applies a model to arrays, and sends a gradient back through it",
                   R"(  taper run forum.json --weights w.safetensors --input x.npy --output out.safetensors
      writes the tensor "output"
  taper run forum.json --weights w.safetensors --input x.npy --grad-output gy.npy --output out.safetensors
      also "grad.input" and "grad.NAME" for every parameter
  taper run forum.json --seed 3 --dtype float64 --input x.safetensors --output out.safetensors
      initialises the parameters and writes them as "param.NAME"
)",
                   make_command<Run>};

}  // namespace taper::cli
