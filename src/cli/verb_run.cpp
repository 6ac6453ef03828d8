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

/// An array that a file must hold.
struct Wanted {
  std::string name;
  DType dtype;
};

/// The array as the type wanted; floating ones are converted into each other, indices are taken as they are.
Tensor fitted(const std::string& path, const Wanted& wanted, const Tensor& array) {
  if (is_floating(array.dtype()) != is_floating(wanted.dtype))
    fail(ErrorKind::type, path, ": wrong element type of ", io::printable(wanted.name), ": expected ",
         is_floating(wanted.dtype) ? "a floating one" : "whole numbers", ", got ", array.dtype());
  return to(array, wanted.dtype);
}

/// The array of an NPY file, or the tensors of a safetensors file by their names.
std::vector<Tensor> load_arrays(const std::string& path, const std::vector<Wanted>& wanted) {
  if (is_npy(path)) {
    std::vector<std::string> names;
    for (const Wanted& one : wanted) names.push_back(one.name);
    if (wanted.size() != 1)
      fail(ErrorKind::format, path, ": an npy file holds one array: expected a safetensors file with ", joined(names),
           ", got npy");
    return {fitted(path, wanted[0], io::load_npy(path))};
  }
  const io::SafetensorsFile file = io::load_safetensors(path);
  std::vector<Tensor> arrays;
  for (const Wanted& one : wanted) {
    const Tensor* found = file.find(one.name);
    if (!found) {
      std::vector<std::string> names;
      for (const NamedTensor& entry : file.tensors) names.push_back(entry.name);
      fail(ErrorKind::format, path, ": a tensor is missing: expected ", io::printable(one.name), ", got ",
           joined(names));
    }
    arrays.push_back(fitted(path, one, *found));
  }
  return arrays;
}

/// Names and types of a model's values; `unnamed` is the name of the only one where the model gives none.
std::vector<Wanted> wanted_of(const std::vector<config::NamedOutline>& values, const char* unnamed, DType dtype) {
  std::vector<Wanted> wanted;
  for (const config::NamedOutline& value : values)
    wanted.push_back({value.name, value.outline.elements == nn::Elements::int64 ? DType::int64 : dtype});
  if (values.empty()) wanted.push_back({unnamed, dtype});
  return wanted;
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
    arguments.text({"--input", "FILE", "npy, or safetensors with \"input\" or every input by its name", true}, input_);
    arguments.text({"--grad-output", "FILE", "the gradient to send back: npy, or safetensors with \"output\""},
                   grad_output_);
    arguments.text({"--output", "FILE", "safetensors to write", true}, output_);
    arguments.choice({"--dtype", "TYPE", "float32 or float64: what is computed in [float32]"}, kDTypes, dtype_);
    arguments.choice({"--mode", "MODE", "eval or train: for Dropout, and norms with running statistics [eval]"}, kModes,
                     mode_);
    arguments.number({"--seed", "N", "of initial values and Dropout [0]"}, 0, INT64_MAX, seed_);
    arguments.number({"--threads", "N", "at most so many; results do not depend on it"}, 1, kMostThreads, threads_);
  }

  int run() override {
    const config::LoadedModel loaded = read_model(model_);
    if (!loaded.model.complete || !loaded.errors.empty()) {
      say_errors(loaded);
      return kUsage;
    }
    use_threads(threads_);
    manual_seed(std::uint64_t(seed_.value_or(0)));
    const DType dtype = dtype_ == 0 ? DType::float32 : DType::float64;
    const Shared<nn::Module> module = config::build_model(loaded.model);
    module->to(dtype);
    module->train(mode_ == 1);
    std::vector<NamedTensor> inputs;
    failing_with(kFailed, [&] {
      if (!weights_.empty()) load_weights(*module, weights_, dtype);
      const std::vector<Wanted> wanted = wanted_of(loaded.model.inputs, "input", dtype);
      const std::vector<Tensor> arrays = load_arrays(input_, wanted);
      for (std::size_t i = 0; i < wanted.size(); ++i) inputs.push_back({wanted[i].name, arrays[i]});
    });
    std::vector<std::string> outputs;
    for (const Wanted& one : wanted_of(loaded.model.outputs, "output", dtype)) outputs.push_back(one.name);
    const std::vector<NamedTensor> results = compute(*module, inputs, outputs);
    failing_with(kFailed, [&] { io::save_safetensors(output_, results); });
    return kDone;
  }

 private:
  std::vector<NamedTensor> compute(nn::Module& module, const std::vector<NamedTensor>& inputs,
                                   const std::vector<std::string>& output_names) const {
    const bool backward = !grad_output_.empty();
    const autograd::GradModeGuard mode(backward);
    std::vector<NamedTensor> leaves;
    std::vector<Tensor> arguments, outputs;
    for (const NamedTensor& input : inputs) {
      arguments.push_back(input.tensor);
      if (is_floating(input.tensor.dtype())) leaves.push_back(input);
    }
    if (backward)
      for (const NamedTensor& leaf : leaves) leaf.tensor.requires_grad_();
    if (output_names.size() > 1)
      outputs = module.forward_outputs(arguments);
    else
      outputs = {module.forward_all(arguments)};
    const std::vector<NamedTensor> parameters = module.named_parameters();
    std::vector<NamedTensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) results.push_back({output_names[i], outputs[i].detach()});
    if (weights_.empty())
      for (const auto& [name, parameter] : parameters) results.push_back({"param." + name, parameter.detach()});
    if (module.is_training())
      for (const auto& [name, buffer] : module.named_buffers()) results.push_back({"buffer." + name, buffer.detach()});
    if (!backward) return results;
    leaves.insert(leaves.end(), parameters.begin(), parameters.end());
    add_gradients(output_names, outputs, leaves, results);
    return results;
  }

  /// Sends the gradients of all floating outputs back, and adds those of the leaves to `results`.
  void add_gradients(const std::vector<std::string>& output_names, const std::vector<Tensor>& outputs,
                     const std::vector<NamedTensor>& leaves, std::vector<NamedTensor>& results) const {
    std::vector<Wanted> wanted;
    std::vector<Tensor> floating, sent, given, sources;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_floating(outputs[i].dtype())) continue;
      wanted.push_back({output_names[i], outputs[i].dtype()});
      floating.push_back(outputs[i]);
    }
    failing_with(kFailed, [&] { given = load_arrays(grad_output_, wanted); });
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!(given[i].shape() == floating[i].shape()))
        fail(ErrorKind::shape, "run: --grad-output has another shape than ",
             wanted.size() == 1 ? "the output" : io::printable(wanted[i].name), ": expected ", floating[i].shape(),
             ", got ", given[i].shape());
      if (!floating[i].requires_grad()) continue;
      sources.push_back(floating[i]);
      sent.push_back(given[i]);
    }
    std::vector<Tensor> tensors, reached(leaves.size());
    for (const NamedTensor& leaf : leaves) tensors.push_back(leaf.tensor);
    if (!sources.empty()) reached = autograd::grad(sources, tensors, sent, {.allow_unused = true});
    for (std::size_t i = 0; i < leaves.size(); ++i)
      results.push_back({"grad." + leaves[i].name,
                         reached[i].defined() ? reached[i] : zeros(tensors[i].shape(), tensors[i].dtype())});
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
  taper run norms.json --mode train --weights w.safetensors --input x.npy --output out.safetensors
      also "buffer.NAME" for every running statistic, as it is after the call
  taper run pair.json --input left_and_right.safetensors --grad-output gy.safetensors --output out.safetensors
      a model that names its inputs and outputs: every array by its name
  taper run forum.json --seed 3 --dtype float64 --input x.safetensors --output out.safetensors
      initialises the parameters and writes them as "param.NAME"
)",
                   make_command<Run>};

}  // namespace taper::cli
