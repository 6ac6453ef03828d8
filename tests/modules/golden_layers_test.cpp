#include <algorithm>
#include <filesystem>

#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/golden_options.hpp"
#include "support/json.hpp"
#include "taper/autograd.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using nlohmann::ordered_json;  // the order of a case's inputs and outputs counts

namespace {

const nn::LayerType& type_of(const ordered_json& layer) {
  const auto name = layer.at("type").get<std::string>();
  const nn::LayerType* type = nn::find_layer_type(name);
  if (!type) throw std::runtime_error("no layer of type " + name);
  return *type;
}

Shared<nn::Module> build_layer(const ordered_json& layer) {
  const nn::LayerType& type = type_of(layer);
  return type.make(test::options_from(type, layer).get());
}

/// The model as a model file describes it.
Shared<nn::Module> build_model(const ordered_json& model) {
  const config::LoadedModel loaded = config::parse_model(model.dump(), "stored");
  if (!loaded.model.complete) throw std::runtime_error(loaded.errors);
  return config::build_model(loaded.model);
}

/// The largest finite number, or `least`.
double largest_finite(const Tensor& expected, double least) {
  for (const double value : expected.to_vector<double>())
    if (std::isfinite(value)) least = std::max(least, std::abs(value));
  return least;
}

/// What a float32 run may be off by: a millionth of the largest number.
test::Tolerance float32_tolerance(const Tensor& expected) { return {1e-6, largest_finite(expected, 1), 1e37}; }

/// Numbers that are small beside the largest are what was left of a sum: they need not be exact to all their places.
test::Tolerance float64_tolerance(const Tensor& expected) {
  test::Tolerance tolerance = test::kFloat64Tolerance;
  tolerance.floor = std::max(tolerance.floor, largest_finite(expected, 0) / 16);
  return tolerance;
}

/// Where `got` differs from the stored tensor, undefined where there is none; empty if nowhere.
std::string difference(const Tensor& got, const Tensor& expected, DType dtype) {
  if (!expected.defined()) return got.defined() ? "a tensor, expected none" : "";
  if (!got.defined()) return "none, expected a tensor";
  return test::golden_difference(got, expected,
                                 dtype == DType::float64 ? float64_tolerance(expected) : float32_tolerance(expected));
}

/// Null stands for an undefined tensor.
Tensor tensor_or_none(const ordered_json& stored, DType dtype) {
  return stored.is_null() ? Tensor() : test::golden_tensor(stored, dtype);
}

/// The stored tensors of `key`: one alone under its singular ("input", named so), or an object or a list under its
/// plural.
std::vector<NamedTensor> tensors_of(const ordered_json& item, const std::string& key, DType dtype) {
  if (item.contains(key)) return {{key, tensor_or_none(item.at(key), dtype)}};
  std::vector<NamedTensor> all;
  for (const auto& [name, stored] : item.at(key + "s").items()) all.push_back({name, tensor_or_none(stored, dtype)});
  return all;
}

/// One backward from all outputs that have a gradient.
void backward(const std::vector<Tensor>& outputs, const std::vector<NamedTensor>& gradients) {
  if (outputs.size() == 1) return outputs[0].backward(gradients.at(0).tensor);
  Tensor total = zeros({}, outputs[0].dtype());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (gradients.at(i).tensor.defined()) total = total + (outputs[i] * gradients[i].tensor).sum();
  total.backward();
}

void load(nn::Module& module, const ordered_json& item, DType dtype) {
  module.to(dtype);
  nn::StateDict state;
  for (const char* key : {"parameters", "buffers"}) {
    const ordered_json tensors = item.value(key, ordered_json::object());
    for (const auto& [name, stored] : tensors.items()) state.push_back({name, test::golden_tensor(stored, dtype)});
  }
  module.load_state_dict(state);
  module.train(item.at("mode") == "train");
}

/// What one stored case and the module differ in, each with its name; empty if nothing.
std::vector<std::string> differences(nn::Module& module, const ordered_json& item, DType dtype) {
  load(module, item, dtype);
  std::vector<Tensor> inputs;
  for (const auto& [name, tensor] : tensors_of(item, "input", dtype)) {
    inputs.push_back(tensor);
    if (tensor.defined() && is_floating(tensor.dtype())) tensor.requires_grad_();
  }
  const std::vector<Tensor> outputs = module.forward_outputs(inputs);
  const auto expected = tensors_of(item, "output", DType::float64);
  std::vector<std::string> found;
  const auto note = [&](const std::string& what, const std::string& problem) {
    if (!problem.empty()) found.push_back(item.at("name").get<std::string>() + ": " + what + ": " + problem);
  };
  if (outputs.size() != expected.size()) {
    note("outputs", std::to_string(outputs.size()) + ", expected " + std::to_string(expected.size()));
    return found;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    note(expected[i].name, difference(outputs[i], expected[i].tensor, dtype));
  backward(outputs, tensors_of(item, "grad_output", dtype));
  const auto gradients = tensors_of(item, "grad_input", DType::float64);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined()) note(gradients.at(i).name, difference(inputs[i].grad(), gradients[i].tensor, dtype));
  const auto compare = [&](const std::string& key, const std::vector<NamedTensor>& actual) {
    const ordered_json stored = item.value(key, ordered_json::object());
    if (actual.size() != stored.size()) return note(key, "another number of them");
    for (const auto& [name, tensor] : actual)
      note(name, difference(tensor, tensor_or_none(stored.at(name), DType::float64), dtype));
  };
  std::vector<NamedTensor> of_parameters;
  for (const auto& [name, tensor] : module.named_parameters()) of_parameters.push_back({name, tensor.grad()});
  compare("grad_parameters", of_parameters);
  compare("buffers_after", module.named_buffers());
  if (item.contains("parameters_after")) compare("parameters_after", module.named_parameters());
  return found;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// The stored files of layers, one for each family, in alphabetical order.
std::vector<std::string> layer_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TAPER_SOURCE_DIR "/tests/golden")) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("layers_") && name != "layers_model.json") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Runs all cases of a file in both types.
template <class Build>
void check_file(const std::string& name, const Build& build) {
  const ordered_json golden = test::read_golden<ordered_json>(name);
  CHECK(golden.at("cases").size() > 9);
  for (const ordered_json& item : golden.at("cases"))
    for (const DType dtype : {DType::float64, DType::float32}) {
      INFO(name << ": " << item.at("name") << ", " << name_of(dtype));
      try {
        CHECK(joined(differences(*build(item), item, dtype)) == "");
      } catch (const std::exception& e) {
        FAIL_CHECK(e.what());
      }
    }
}

/// w a - b and a b, with a buffer that keeps the sum of a.
struct Mixed : nn::Module {
  Tensor w = ones({}), seen = zeros({});
  Mixed() {
    register_parameter("w", w);
    register_buffer("seen", seen);
  }
  std::vector<Tensor> forward_outputs(std::span<const Tensor> in) override {
    {
      NoGradGuard guard;
      seen.add_(in[0].sum());
    }
    return {w * in[0] - in[1], in[0] * in[1]};
  }
};

}  // namespace

TEST_CASE("every layer gives PyTorch's stored outputs and gradients") {
  CHECK(layer_files().size() >= 5);
  for (const std::string& name : layer_files())
    check_file(name, [](const ordered_json& item) { return build_layer(item.at("layer")); });
}

TEST_CASE("models give PyTorch's stored outputs and gradients") {
  for (const char* file : {"layers_model.json", "models_wired.json", "models_drawn.json"})
    check_file(file, [](const ordered_json& item) { return build_model(item.at("model")); });
}

TEST_CASE("inference from shapes agrees with the stored outputs of all batched cases") {
  int checked = 0;
  for (const std::string& name : layer_files()) {
    const ordered_json golden = test::read_golden<ordered_json>(name);
    for (const ordered_json& item : golden.at("cases")) {
      ordered_json layer = item.at("layer");
      const nn::LayerType& type = type_of(layer);
      std::vector<Shape> inputs;
      for (const auto& input : tensors_of(item, "input", DType::float64)) {
        if (!input.tensor.defined()) break;
        inputs.push_back(input.tensor.shape());
      }
      if (inputs[0].rank() < type.example_inputs[0].rank()) continue;
      layer.erase("in_channels");
      layer.erase("in_features");
      INFO(item.at("name"));
      const auto options = test::options_from(type, layer);
      CHECK(type.infer(options.get(), inputs) == tensors_of(item, "output", DType::float64).at(0).tensor.shape());
      ++checked;
    }
  }
  CHECK(checked > 150);
}

TEST_CASE("the comparison with stored layers notices each kind of mistake") {
  ordered_json item = test::read_golden<ordered_json>("layers_linear.json").at("cases").at(0);
  REQUIRE(item.at("layer").at("type") == "Linear");
  const auto noticed = [&](const ordered_json& changed) {
    return differences(*build_layer(changed.at("layer")), changed, DType::float64).size();
  };
  CHECK(noticed(item) == 0);
  const auto nudge = [](ordered_json& number) { number = number.get<double>() + 1e-9; };
  ordered_json output = item, gradient = item, weight = item, absent = item;
  nudge(output["output"]["data"][1]);
  nudge(gradient["grad_input"]["data"][1]);
  nudge(weight["grad_parameters"]["weight"]["data"][1]);
  absent["grad_input"] = nullptr;
  CHECK(noticed(output) == 1);
  CHECK(noticed(gradient) == 1);
  CHECK(noticed(weight) == 1);
  CHECK(noticed(absent) == 1);
  item["layer"]["type"] = "Lineal";
  CHECK_THROWS_WITH(build_layer(item.at("layer")), "no layer of type Lineal");
}

TEST_CASE("a stored case may have several inputs and outputs, and buffers that a step changes") {
  const ordered_json item = test::parsed<nlohmann::ordered_json>(R"({"name": "mixed", "mode": "train",
    "inputs": {"left": {"shape": [2], "data": [3, 5]}, "also": {"shape": [2], "data": [1, 2]}},
    "parameters": {"w": {"shape": [], "data": [7]}}, "buffers": {"seen": {"shape": [], "data": [11]}},
    "outputs": {"sum": {"shape": [2], "data": [20, 33]}, "product": {"shape": [2], "data": [3, 10]}},
    "grad_outputs": [{"shape": [2], "data": [1, 10]}, {"shape": [2], "data": [100, 200]}],
    "grad_inputs": {"left": {"shape": [2], "data": [107, 470]}, "also": {"shape": [2], "data": [299, 990]}},
    "grad_parameters": {"w": {"shape": [], "data": [53]}}, "buffers_after": {"seen": {"shape": [], "data": [19]}}})");
  const auto found = [](const ordered_json& changed) {
    Mixed module;
    return joined(differences(module, changed, DType::float64));
  };
  CHECK(found(item) == "");
  for (const char* key : {"outputs", "grad_inputs", "grad_parameters", "buffers_after"}) {
    ordered_json changed = item;
    const auto last = std::prev(changed[key].end());
    (*last)["data"][0] = 1000;
    INFO(key);
    CHECK(found(changed).find("mixed: " + last.key() + ": element 0: ") == 0);
  }
  ordered_json fewer = item, without = item;
  fewer["buffers_after"] = ordered_json::object();
  CHECK(found(fewer) == "mixed: buffers_after: another number of them\n");
  without["outputs"].erase("product");
  CHECK(found(without) == "mixed: outputs: 2, expected 1\n");
  without = item;
  without["grad_outputs"][1] = nullptr;
  CHECK(found(without).find("mixed: left: element 0: 7.0") == 0);
}
