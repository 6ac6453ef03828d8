#include "support/layer_variations.hpp"

#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "support/golden_options.hpp"
#include "support/json.hpp"
#include "support/layer_case.hpp"

using nlohmann::json;

namespace taper::test {

namespace {

/// Lists of N numbers that differ pairwise, as far as `values` has so many.
json distinct(int n, std::initializer_list<int> values) {
  json list = json::array();
  for (int i = 0; i < n; ++i) list.push_back(*(values.begin() + i % int(values.size())));
  return list;
}

std::vector<json> values_to_try(const FieldType& type) {
  std::vector<json> values;
  if (type.nullable) values.push_back(nullptr);
  const int places = type.arity > 0 ? type.arity : 2;
  switch (type.kind) {
    case FieldType::boolean:
      values.insert(values.end(), {false, true});
      break;
    case FieldType::integer:
      values.insert(values.end(), {0, 1, 2, 3, 5, -1, -2});
      break;
    case FieldType::number:
      values.insert(values.end(), {0.0, 0.25, 0.5, 2.0, 3.0});
      break;
    case FieldType::choice:
      for (const char* choice : type.choices) values.emplace_back(choice);
      break;
    case FieldType::padding:
      values.insert(values.end(), {"same", "valid"});
      [[fallthrough]];
    case FieldType::sizes:
      values.insert(values.end(), {0, 1, 2, 3});
      for (const auto& list : {distinct(places, {0, 1, 2}), distinct(places, {1, 0, 2}), distinct(places, {1, 2, 3}),
                               distinct(places, {3, 2, 1})})
        values.push_back(list);
      if (type.nullable && type.arity > 1) {
        values.push_back(distinct(type.arity, {2, 3, 1}));
        values.back()[0] = nullptr;
      }
      break;
    case FieldType::numbers:
      if (type.arity == 1) values.insert(values.end(), {0.5, 2.0, 1.7, json::array({1.3, 0.7})});
      break;
    case FieldType::text:
    case FieldType::texts:
      break;
  }
  return values;
}

struct Choice {
  std::string key;
  std::vector<json> values;
};

std::vector<Choice> choices_of(const nn::LayerType& type) {
  struct List final : FieldVisitor {
    std::vector<Choice> choices;
    void visit(const Field& field, FieldAccess& access) override {
      choices.push_back({field.key, values_to_try(access.type())});
    }
  } list;
  type.visit(type.new_options().get(), list);
  return list.choices;
}

/// Whether the layer takes the options, and stays small.
bool accepted(const nn::LayerType& type, const json& options) {
  try {
    const auto built = options_from(type, options);
    if (type.make(built.get())->parameter_count() > 2000) return false;
    const Shape output = type.infer(built.get(), type.example_inputs);
    if (output.numel() == 0 || output.numel() > 2000) return false;
    // Whether the example's indices fit cannot be told from shapes.
    if (type.example_indices > 0) call(*build(type, options, DType::float32), random_inputs(type, DType::float32));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::vector<json> variations(const nn::LayerType& type, std::size_t count) {
  const auto choices = choices_of(type);
  const json example = parsed(type.example);
  std::vector<json> found;
  std::set<std::string> seen;
  const auto offer = [&](const json& options) {
    if (seen.insert(options.dump()).second && accepted(type, options)) found.push_back(options);
  };
  offer(example);
  for (const Choice& choice : choices)
    for (const json& value : choice.values) {
      json changed = example;
      changed[choice.key] = value;
      offer(changed);
    }
  Generator draw{.seed = 31, .stream = Stream::data};
  for (int attempt = 0; attempt < 400 && found.size() < count; ++attempt) {
    json changed = example;
    for (const Choice& choice : choices)
      if (!choice.values.empty() && random_below(draw.next(), 2) == 0)
        changed[choice.key] = choice.values[random_below(draw.next(), choice.values.size())];
    offer(changed);
  }
  return found;
}

std::vector<std::string> unvaried_fields(const nn::LayerType& type) {
  const auto all = variations(type);
  std::vector<std::string> missing;
  for (const Choice& choice : choices_of(type)) {
    std::set<std::string> values;
    for (const json& options : all) values.insert(options.contains(choice.key) ? options[choice.key].dump() : "");
    if (values.size() < 2) missing.push_back(choice.key);
  }
  return missing;
}

}  // namespace taper::test
