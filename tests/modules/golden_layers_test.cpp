#include <algorithm>
#include <filesystem>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/golden_options.hpp"
#include "taper/nn/graph.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using nlohmann::json;

namespace {

const nn::LayerType& type_of(const json& layer) {
  const auto name = layer.at("type").get<std::string>();
  const nn::LayerType* type = nn::find_layer_type(name);
  if (!type) throw std::runtime_error("no layer of type " + name);
  return *type;
}

std::shared_ptr<nn::Module> build_layer(const json& layer) {
  const nn::LayerType& type = type_of(layer);
  return type.make(test::options_from(type, layer).get());
}

/// The graph of a `model` object; a nested Sequential is a graph too.
std::shared_ptr<nn::Graph> build_model(const json& model) {
  const auto graph = std::make_shared<nn::Graph>();
  for (json layer : model.at("layers")) {
    nn::Graph::Node node{.name = layer.value("name", ""),
                         .module = nullptr,
                         .inputs = layer.value("inputs", std::vector<std::string>{})};
    layer.erase("name");
    layer.erase("inputs");
    node.module = layer.at("type") == "Sequential" ? build_model(layer) : build_layer(layer);
    graph->append(std::move(node));
  }
  return graph;
}

/// What a float32 run may be off by: a millionth of the largest number.
test::Tolerance float32_tolerance(const Tensor& expected) {
  double scale = 1;
  for (const double value : expected.to_vector<double>())
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  return {1e-6, scale, 1e37};
}

/// Where `got` differs from the stored tensor, which is null where there is none; empty if nowhere.
std::string difference(const Tensor& got, const json& stored, DType dtype) {
  if (stored.is_null()) return got.defined() ? "a gradient, expected none" : "";
  if (!got.defined()) return "nothing, expected a gradient";
  const Tensor expected = test::golden_tensor(stored, DType::float64);
  return test::golden_difference(got, expected,
                                 dtype == DType::float64 ? test::kFloat64Tolerance : float32_tolerance(expected));
}

/// What one stored case and the module differ in, each with its name; empty if nothing.
std::vector<std::string> differences(nn::Module& module, const json& item, DType dtype) {
  module.to(dtype);
  nn::StateDict state;
  for (const auto& [name, stored] : item.at("parameters").items())
    state.push_back({name, test::golden_tensor(stored, dtype)});
  module.load_state_dict(state);
  module.train(item.at("mode") == "train");
  const Tensor x = test::golden_tensor(item.at("input"), dtype).requires_grad_();
  const Tensor y = module(x);
  y.backward(test::golden_tensor(item.at("grad_output"), dtype));

  std::vector<std::string> found;
  const auto note = [&](const std::string& what, const std::string& problem) {
    if (!problem.empty()) found.push_back(item.at("name").get<std::string>() + ": " + what + ": " + problem);
  };
  note("output", difference(y, item.at("output"), dtype));
  note("grad_input", difference(x.grad(), item.at("grad_input"), dtype));
  const auto parameters = module.named_parameters();
  const json& gradients = item.at("grad_parameters");
  if (parameters.size() != gradients.size()) note("parameters", "another number of them");
  for (const auto& [name, tensor] : parameters) note(name, difference(tensor.grad(), gradients.at(name), dtype));
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
  const json golden = test::read_golden(name);
  CHECK(golden.at("cases").size() > 9);
  for (const json& item : golden.at("cases"))
    for (const DType dtype : {DType::float64, DType::float32}) {
      INFO(name << ": " << item.at("name") << ", " << name_of(dtype));
      try {
        CHECK(joined(differences(*build(item), item, dtype)) == "");
      } catch (const std::exception& e) {
        FAIL_CHECK(e.what());
      }
    }
}

}  // namespace

TEST_CASE("every layer gives PyTorch's stored outputs and gradients") {
  CHECK(layer_files().size() >= 5);
  for (const std::string& name : layer_files())
    check_file(name, [](const json& item) { return build_layer(item.at("layer")); });
}

TEST_CASE("models give PyTorch's stored outputs and gradients") {
  check_file("layers_model.json", [](const json& item) { return build_model(item.at("model")); });
}

TEST_CASE("inference from shapes agrees with the stored outputs of all batched cases") {
  int checked = 0;
  for (const std::string& name : layer_files()) {
    const json golden = test::read_golden(name);
    for (const json& item : golden.at("cases")) {
      json layer = item.at("layer");
      const auto type = layer.at("type").get<std::string>();
      const Shape input = test::golden_tensor(item.at("input"), DType::float64).shape();
      const int batched_rank = type.ends_with("1d") ? 3 : type.ends_with("2d") ? 4 : type == "Linear" ? 2 : 1;
      if (input.rank() < batched_rank) continue;
      layer.erase("in_channels");
      layer.erase("in_features");
      INFO(item.at("name"));
      const auto options = test::options_from(type_of(layer), layer);
      CHECK(type_of(layer).infer(options.get(), {&input, 1}) ==
            test::golden_tensor(item.at("output"), DType::float64).shape());
      ++checked;
    }
  }
  CHECK(checked > 200);
}

TEST_CASE("the comparison with stored layers notices each kind of mistake") {
  json item = test::read_golden("layers_linear.json").at("cases").at(0);
  REQUIRE(item.at("layer").at("type") == "Linear");
  const auto noticed = [&](const json& changed) {
    return differences(*build_layer(changed.at("layer")), changed, DType::float64).size();
  };
  CHECK(noticed(item) == 0);
  const auto nudge = [](json& number) { number = number.get<double>() + 1e-9; };
  json output = item, gradient = item, weight = item, absent = item;
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
