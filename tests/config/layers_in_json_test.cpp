#include "config/model_json.hpp"
#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/layer_case.hpp"
#include "support/model_json.hpp"
#include "taper/nn/registry.hpp"

// What holds for every layer of the catalogue when it comes from JSON.
using namespace taper;
using namespace taper::config;
using test::errors_of;
using test::example_model;
using test::keys_of;

namespace {

std::vector<std::int64_t> without_batch(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }

Json example_of(const nn::LayerType& type) { return test::parsed<Json>(type.example); }

}  // namespace

TEST_CASE("every layer is built from JSON, and its resolved JSON reads back as the same") {
  for (const auto& type : nn::layer_types()) {
    INFO(type.name);
    const LoadedModel loaded = parse_model(example_model(type, example_of(type)).dump(), "m.json");
    INFO(loaded.errors);
    REQUIRE(loaded.model.complete);
    const Json resolved = json_of(loaded.model);
    for (const std::string& key : keys_of(type)) CHECK(resolved["layers"][0].contains(key));
    const LoadedModel again = parse_model(resolved.dump(), "again.json");
    CHECK(json_of(again.model) == resolved);
    const Tensor output = build_model(again.model)->forward_all(test::random_inputs(type, DType::float32));
    CHECK(without_batch(output.shape()) == without_batch(loaded.model.layers[0].output));
  }
}

TEST_CASE("every key of every layer is suggested when it is mistyped") {
  for (const auto& type : nn::layer_types())
    for (const std::string& key : keys_of(type)) {
      INFO(type.name << "." << key);
      if (key.size() == 1) continue;  // two letters could be anything
      Json options = example_of(type);
      options[key + key.back()] = 1;
      CHECK(errors_of(example_model(type, options).dump()).find("unknown key; did you mean " + key + "?") !=
            std::string::npos);
    }
}

TEST_CASE("every key of every layer refuses what is no value of its kind, at its own place") {
  for (const auto& type : nn::layer_types())
    for (const std::string& key : keys_of(type)) {
      INFO(type.name << "." << key);
      for (const char* value : {"{}", "[[1]]", "\"no such word\""}) {
        Json options = example_of(type);
        options[key] = test::parsed<Json>(value);
        const std::string errors = errors_of(example_model(type, options).dump());
        CHECK(errors.find("error: /layers/0/" + key) != std::string::npos);
        CHECK(errors.find("expected") != std::string::npos);
      }
    }
}
