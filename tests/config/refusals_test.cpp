#include <limits>

#include "config/model_json.hpp"
#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/layer_case.hpp"
#include "support/matches.hpp"

using namespace taper;
using namespace taper::config;
using nlohmann::json;
using nn::LayerType;

// Every option of every layer with values from the edges of its type and beyond: what the layer takes must work, what
// it refuses must be refused with a sentence, and JSON must agree.
namespace {

constexpr std::int64_t kEdges[] = {-1,
                                   0,
                                   1,
                                   (std::int64_t{1} << 31) - 1,
                                   std::int64_t{1} << 31,
                                   (std::int64_t{1} << 32) + 2,
                                   (std::int64_t{1} << 53) + 1,
                                   std::int64_t{1} << 62,
                                   1250999896764,
                                   INT64_MAX,
                                   INT64_MIN};
constexpr double kNumbers[] = {-1.5, -0.0, 0.5, 1.0, 1.5, 2.9, 1e-308, 1e308};

std::vector<json> edge_values(const FieldType& type) {
  std::vector<json> values{nullptr, true, "3", "same", json::array(), json::array({1, 2, 3, 4})};
  for (const std::int64_t edge : kEdges) {
    values.push_back(edge);
    if (type.arity > 1 || type.kind == FieldType::sizes) {
      json list = json::array();
      for (int i = 0; i < type.arity; ++i) list.push_back(i + 1 == type.arity ? edge : 1);
      values.push_back(list);
    }
  }
  for (const double number : kNumbers) values.push_back(number);
  return values;
}

struct Option {
  std::string key;
  FieldType type;
};

std::vector<Option> options_of(const LayerType& type) {
  struct List final : FieldVisitor {
    std::vector<Option> options;
    void visit(const Field& field, FieldAccess& access) override { options.push_back({field.key, access.type()}); }
  } list;
  type.visit(type.new_options().get(), list);
  return list.options;
}

/// Whether building it could ask for much memory without being refused for it.
bool is_large(const json& value) {
  if (value.is_array()) return std::any_of(value.begin(), value.end(), is_large);
  return value.is_number_integer() && std::abs(value.get<double>()) > 1e6;
}

/// "" if the layer takes the options on its example's inputs, then also its result having the inferred shape.
std::string refusal(const LayerType& type, const json& options, bool large) {
  try {
    const auto built = test::options_from(type, options);
    detail::FieldChecker checker(type.name.c_str());
    type.visit(built.get(), checker);
    const Shape inferred = type.infer(built.get(), type.example_inputs);
    if (large || inferred.numel() > 100'000) return "";
    const auto module = type.make(built.get());
    const Shape given = test::call(*module, test::random_inputs(type, DType::float32)).shape();
    return given == inferred ? "" : "infers " + to_string(inferred) + ", gives " + to_string(given);
  } catch (const Error& e) {
    // Of the example's indices, which JSON does not see.
    const std::string sentence = e.what();
    return type.example_indices > 0 && sentence.find(": index out of range: ") != std::string::npos ? "" : sentence;
  }
}

std::string errors_in_json(const LayerType& type, const json& options) {
  return parse_model(test::example_model(type, Json(options)).dump(), "m.json").errors;
}

bool has_grammar(const std::string& sentence) {
  return !test::matches(sentence, ": .*expected .+, got .+").empty();
}

/// What is wrong with how a layer takes one value of one option.
std::string problem_of(const LayerType& type, const std::string& key, const json& value) {
  json options = test::parsed(type.example);
  options[key] = value;
  std::string refused;
  try {
    refused = refusal(type, options, is_large(value));
  } catch (const std::runtime_error& e) {  // of a wrong kind, said by the field itself
    refused = std::string(type.name) + ": " + e.what();
  }
  if (!refused.empty() && !has_grammar(refused)) return "no sentence: " + refused;
  const std::string in_json = errors_in_json(type, options);
  if (refused.empty() != in_json.empty()) return "JSON says otherwise: \"" + refused + "\" and \"" + in_json + "\"";
  if (!in_json.empty() && in_json.find("error: /layers/0") == std::string::npos) return "no place: " + in_json;
  if (!in_json.empty() && !has_grammar(in_json)) return "no sentence in JSON: " + in_json;
  return "";
}

struct CurtOptions {
  static constexpr const char* kType = "Curt";
  std::int64_t size = 1;
};
void fields(CurtOptions& o, FieldVisitor& visit) { visit({"size", "of nothing"}, o.size); }

/// Refuses without a sentence, or infers what it does not give.
struct Curt : nn::Layer<CurtOptions> {
  explicit Curt(CurtOptions options) : Layer(options) {}
  Tensor forward(const Tensor& x) override { return x; }
  static Shape infer(Options& options, std::span<const Shape> inputs) {
    if (options.size < 0) throw Error(ErrorKind::shape, "Curt: too small");
    return options.size == 1 ? inputs[0].with(0, 7) : inputs[0];
  }
};

}  // namespace

TEST_CASE("every option of every layer takes or refuses the values at its edges, and JSON agrees (CVE-2022-35941)",
          "[fault-3]") {
  int tried = 0;
  for (const LayerType& type : nn::layer_types()) {
    for (const auto& [key, field] : options_of(type))
      for (const json& value : edge_values(field)) {
        INFO(type.name << " with " << key << " = " << value);
        CHECK(problem_of(type, key, value) == "");
        ++tried;
      }
  }
  CHECK(tried > 1500);
}

TEST_CASE("the trial of edges notices curt refusals and wrong shapes") {
  const LayerType type = nn::layer_type<Curt>("Nothing: [*] -> [*].", "{}", {{2, 3}});
  CHECK(problem_of(type, "size", -1) == "no sentence: Curt: too small");
  CHECK(problem_of(type, "size", 1) == "no sentence: infers [7, 3], gives [2, 3]");
  CHECK(problem_of(type, "size", 0).find("JSON says otherwise: \"\" and \"m.json") == 0);
}
