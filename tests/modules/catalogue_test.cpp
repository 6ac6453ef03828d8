#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/json.hpp"
#include "support/kernel_check.hpp"
#include "support/layer_case.hpp"
#include "taper/autograd.hpp"
#include "taper/io.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using nlohmann::json;
using nn::LayerType;
using test::build;
using test::call;
using test::call_outputs;
using test::random_inputs;

// What must hold for every layer that JSON knows. Each check says what is wrong with an entry, "" if nothing.
namespace {

/// A number that depends on every floating result.
Tensor summary_of(nn::Module& module, const std::vector<Tensor>& inputs) {
  Tensor sum = scalar(0, DType::float64);
  double factor = 1;
  for (const Tensor& result : call_outputs(module, inputs))
    if (is_floating(result.dtype())) sum = add(sum, mul(result.sum(), factor /= 2));
  return sum;
}

/// The first field whose help says nothing, or "".
std::string undocumented_field(const LayerType& type) {
  struct Search final : FieldVisitor {
    std::string found;
    void visit(const Field& field, FieldAccess&) override {
      if (std::string(field.help).size() < 5) found = field.key;
    }
  } search;
  type.visit(type.new_options().get(), search);
  return search.found;
}

std::string documentation_problem(const LayerType& type) {
  if (type.example.empty()) return "no example";
  if (type.example_inputs.size() < type.min_inputs || type.example_inputs.size() > type.max_inputs)
    return "number of example inputs";
  if (type.summary.size() < 10 || type.summary.back() != '.') return "summary is no sentence";
  if (type.summary.find("->") == std::string::npos) return "summary without shapes";
  const std::string undocumented = undocumented_field(type);
  return undocumented.empty() ? "" : "field without help: " + undocumented;
}

std::string inference_problem(const LayerType& type) {
  const Tensor y = call(*build(type, DType::float64), random_inputs(type, DType::float64));
  for (const bool complete : {true, false}) {
    json example = test::parsed(type.example);
    for (const char* key : {"in_channels", "in_features", "num_features", "num_channels", "input_size", "embed_dim"})
      if (!complete) example.erase(key);
    const auto options = test::options_from(type, example);
    const Shape shape = type.infer(options.get(), type.example_inputs);
    if (!(shape == y.shape())) return "infers " + to_string(shape) + ", gives " + to_string(y.shape());
    if (call(*type.make(options.get()), random_inputs(type, DType::float32)).shape() != y.shape())
      return "inferred options give another shape";
  }
  return "";
}

std::string gradient_problem(const LayerType& type) {
  const auto module = build(type, DType::float64);
  const std::vector<Tensor> inputs = random_inputs(type, DType::float64);
  std::vector<Tensor> checked;
  for (const Tensor& input : inputs)
    if (is_floating(input.dtype())) checked.push_back(input);
  for (const Tensor& parameter : module->parameters()) checked.push_back(parameter);
  if (checked.empty()) return "";
  const auto check = [&](const auto& function) {
    const auto report =
        autograd::gradcheck([&](const std::vector<Tensor>&) { return function(*module, inputs); }, checked);
    return report.ok ? "" : report.to_string();
  };
  const std::string problem = check(call);
  return problem.empty() && type.further_outputs ? check(summary_of) : problem;
}

/// The catalogue's entry and the module must name the same further results, of the same outlines.
std::string further_problem(const LayerType& type) {
  const auto options = test::options_from(type, test::parsed(type.example));
  std::vector<std::string> names;
  if (type.further_outputs) names = type.further_outputs(options.get());
  const auto module = build(type, DType::float64);
  if (module->further_outputs() != names) return "the module names others";
  const auto inputs = random_inputs(type, DType::float64);
  const auto results = call_outputs(*module, inputs);
  if (results.size() != names.size() + 1) return "another number of results";
  if (!test::same_bits(results[0].to_vector<double>(), call(*module, inputs).to_vector<double>()))
    return "the main result is another one";
  if (names.empty()) return "";
  type.infer(options.get(), type.example_inputs);
  const auto outlines = type.infer_further(options.get(), type.example_inputs);
  if (outlines.size() != names.size()) return "another number of outlines";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Tensor& result = results[i + 1];
    if (!(outlines[i].shape == result.shape()))
      return names[i] + ": infers " + to_string(outlines[i].shape) + ", gives " + to_string(result.shape());
    if ((outlines[i].elements == nn::Elements::int64) == is_floating(result.dtype()))
      return names[i] + ": gives " + name_of(result.dtype());
  }
  return "";
}

std::string saving_problem(const LayerType& type) {
  const auto saved = build(type, DType::float32);
  const auto loaded = type.make(test::options_from(type, test::parsed(type.example)).get());
  for (const auto& [name, tensor] : saved->state_dict())  // some layers start with the same parameters each time
    if (is_floating(tensor.dtype())) tensor.copy_(uniform(tensor.shape(), 0.5, 1.5));
  const auto inputs = random_inputs(type, DType::float32);
  const auto expected = call(*saved, inputs).to_vector<float>();
  if (saved->state_dict().empty()) return loaded->state_dict().empty() ? "" : "a state of its own";
  if (call(*loaded, inputs).to_vector<float>() == expected) return "starts alike, so that loading would show nothing";
  loaded->load_state_dict(io::safetensors_from_bytes(io::safetensors_to_bytes(saved->state_dict())).tensors);
  return test::same_bits(call(*loaded, inputs).to_vector<float>(), expected) ? "" : "differs when loaded";
}

/// The output and all gradients, over a batch that is worth several threads.
std::vector<float> step_of(const LayerType& type, std::int64_t batch) {
  const auto module = build(type, DType::float32);
  const auto inputs = random_inputs(type, DType::float32, batch);
  const Tensor y = call(*module, inputs);
  y.backward(uniform(y.shape(), -1, 1));
  std::vector<float> all = y.to_vector<float>();
  std::vector<Tensor> leaves = inputs;
  for (const Tensor& parameter : module->parameters()) leaves.push_back(parameter);
  for (const Tensor& leaf : leaves) {
    if (!is_floating(leaf.dtype())) continue;
    const auto gradient = leaf.grad().to_vector<float>();
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

std::string threads_problem(const LayerType& type) {
  return test::same_on_any_threads([&] { return step_of(type, 4099); }) ? "" : "differs between numbers of threads";
}

/// Layers that count dimensions from the batch read an input without one differently.
bool counts_dimensions(const LayerType& type) {
  const auto keys = test::keys_of(type);
  return std::any_of(keys.begin(), keys.end(), [](const std::string& k) { return k.find("dim") != std::string::npos; });
}

std::string unbatched_problem(const LayerType& type) {
  if (counts_dimensions(type) || test::reads_only_batches(type)) return "";
  const auto module = build(type, DType::float64);
  module->eval();
  const auto inputs = random_inputs(type, DType::float64);
  const Tensor batched = call(*module, inputs);
  for (std::int64_t row = 0; row < batched.size(0); ++row) {
    std::vector<Tensor> alone;
    for (const Tensor& input : inputs) alone.push_back(input.select(0, row));
    const std::string problem =
        test::golden_difference(call(*module, alone), batched.select(0, row), {.relative = 1e-13, .floor = 1});
    if (!problem.empty()) return "row " + std::to_string(row) + " alone: " + problem;
  }
  return "";
}

std::string printing_problem(const LayerType& type) {
  const std::string text = build(type, DType::float32)->to_string();
  if (text.rfind(type.name + "(", 0) != 0) return "printed as " + text;
  for (const std::string& key : test::keys_of(type))
    if (text.find(key + "=") == std::string::npos) return key + " is missing in " + text;
  return "";
}

struct EntryCheck {
  const char* what;
  std::string (*problem)(const LayerType&);
};
constexpr EntryCheck kEntryChecks[] = {{"is documented", documentation_problem},
                                       {"infers the shape its forward gives", inference_problem},
                                       {"has the gradients of its values", gradient_problem},
                                       {"gives the further results it names", further_problem},
                                       {"is the same after saving and loading", saving_problem},
                                       {"gives the same bits on any number of threads", threads_problem},
                                       {"gives each row of a batch what it gives the row alone", unbatched_problem},
                                       {"prints all its options", printing_problem}};

/// All that is wrong with an entry, one line each.
std::string entry_problems(const LayerType& type) {
  std::string all;
  for (const EntryCheck& check : kEntryChecks) {
    std::string problem;
    try {
      problem = check.problem(type);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    if (!problem.empty()) all += std::string(check.what) + ": " + problem + "\n";
  }
  return all;
}

// --- a layer with mistakes ------------------------------------------------------------------------------------------

enum class EntryMistake { none, gradient, shape, rows, further, further_shape };

struct FlawedEntryOptions {
  static constexpr const char* kType = "Flawed";
  std::int64_t times = 3;
};
void fields(FlawedEntryOptions& o, FieldVisitor& visit) { visit({"times", "factor of the input"}, o.times); }

/// Multiplies by `times`, and by a parameter.
template <EntryMistake M>
struct FlawedEntry : nn::Layer<FlawedEntryOptions> {
  explicit FlawedEntry(FlawedEntryOptions options) : Layer(options), weight(uniform({}, 1, 2)) {
    register_parameter("weight", weight);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor factor = M == EntryMistake::gradient ? weight.detach() : weight;
    const Tensor y = mul(mul(x, factor), options_.times);
    return M == EntryMistake::rows && x.dim() == 3 ? mul(y, x.size(0)) : y;
  }
  std::vector<Tensor> forward_outputs(std::span<const Tensor> inputs) override {
    return {forward(inputs[0]), mul(M == EntryMistake::further ? inputs[0].detach() : inputs[0], 2)};
  }
  std::vector<std::string> further_outputs() const override { return further_outputs(options_); }
  static std::vector<std::string> further_outputs(const Options&) { return {"twice"}; }
  static std::vector<nn::Outline> infer_further(const Options&, std::span<const Shape> inputs) {
    return {M == EntryMistake::further_shape ? inputs[0].with(1, 1) : inputs[0]};
  }
  static Shape infer(Options&, std::span<const Shape> inputs) {
    return M == EntryMistake::shape ? inputs[0].with(1, 1) : inputs[0];
  }
  Tensor weight;
};

template <EntryMistake M>
LayerType flawed_entry() {
  return nn::layer_type<FlawedEntry<M>>("Multiplies: [*] -> [*].", R"({"times": 5})", {{2, 3, 7}});
}

}  // namespace

TEST_CASE("every layer keeps what the catalogue promises") {
  for (const LayerType& type : nn::layer_types()) {
    INFO(type.name);
    CHECK(entry_problems(type) == "");
  }
}

TEST_CASE("the checks of the catalogue notice each kind of mistake") {
  CHECK(entry_problems(flawed_entry<EntryMistake::none>()) == "");
  const auto reports = [](const LayerType& type, const std::string& line) {
    const std::string problems = entry_problems(type);
    INFO(problems);
    CHECK(problems.find(line) != std::string::npos);
  };
  reports(flawed_entry<EntryMistake::gradient>(),
          "has the gradients of its values: gradient of mul_scalar with respect to input 1");
  reports(flawed_entry<EntryMistake::shape>(),
          "infers the shape its forward gives: infers [2, 1, 7], gives [2, 3, 7]\n");
  reports(flawed_entry<EntryMistake::rows>(),
          "gives each row of a batch what it gives the row alone: row 0 alone: element 0");
  reports(flawed_entry<EntryMistake::further>(), "has the gradients of its values: ");
  reports(flawed_entry<EntryMistake::further_shape>(),
          "gives the further results it names: twice: infers [2, 1, 7], gives [2, 3, 7]\n");
  LayerType bare = flawed_entry<EntryMistake::none>();
  bare.example.clear();
  reports(bare, "is documented: no example\n");
  bare = flawed_entry<EntryMistake::none>();
  bare.summary = "Multiplies";
  reports(bare, "is documented: summary is no sentence\n");
  bare.summary = "Multiplies things.";
  reports(bare, "is documented: summary without shapes\n");
  bare.name = "Other";
  reports(bare, "prints all its options: printed as Flawed(times=5)\n");
  bare.example = R"({"time": 5})";
  reports(bare, "is the same after saving and loading: unknown key in {\"time\":5}\n");
}

TEST_CASE("the catalogue finds layers by name and refuses a name twice") {
  REQUIRE(nn::find_layer_type("Conv1d") != nullptr);
  CHECK(nn::find_layer_type("Conv1d")->name == "Conv1d");
  CHECK(nn::find_layer_type("conv1d") == nullptr);
  LayerType again = flawed_entry<EntryMistake::none>();
  again.name = "Linear";
  const std::size_t count = nn::layer_types().size();
  CHECK_THROWS_WITH(nn::register_layer(again), "register_layer: the name is taken: expected a new one, got Linear");
  CHECK(nn::layer_types().size() == count);
}
