#include "config/model_json.hpp"

#include <sstream>

#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/model_json.hpp"
#include "taper/config.hpp"
#include "taper/creation.hpp"
#include "taper/nn/conv.hpp"
#include "taper/nn/embedding.hpp"
#include "taper/nn/graph.hpp"
#include "taper/nn/join.hpp"
#include "taper/ops.hpp"

// Models in JSON with several inputs and outputs, and blocks with connections of their own.
using namespace taper;
using namespace taper::config;
using test::errors_of;
using test::model_of;

namespace {

/// The sentences of the errors alone.
std::vector<std::string> sentences_of(const std::string& text) {
  try {
    model_from_json(text);
    return {};
  } catch (const Error& error) {
    std::vector<std::string> lines;
    std::istringstream text_of(error.what());
    for (std::string line; std::getline(text_of, line);) lines.push_back(line);
    return lines;
  }
}

std::vector<std::string> sentence(const std::string& text) { return {text}; }

std::vector<std::string> parameter_names(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.named_parameters()) names.push_back(name);
  return names;
}

const char* const kPair = R"({
  "inputs": {"left": {"shape": [5]}, "right": {"shape": [7]}},
  "layers": [
    {"type": "Linear", "name": "a", "inputs": ["left"], "out_features": 3},
    {"type": "Linear", "name": "b", "inputs": ["right"], "out_features": 3},
    {"type": "Add", "name": "sum", "inputs": ["a", "b"]},
    {"type": "Concat", "name": "all", "inputs": ["sum", "left", "right"]}],
  "outputs": ["all", "b", "right"]})";

}  // namespace

TEST_CASE("a model names several inputs and outputs") {
  const ModelSpec model = model_of(kPair);
  REQUIRE(model.inputs.size() == 2);
  CHECK(model.inputs[0].name == "left");
  CHECK(model.inputs[1].outline.shape == Shape{1, 7});
  CHECK(model.output() == Shape{15});
  REQUIRE(model.outputs.size() == 3);
  CHECK(model.outputs[1].outline.shape == Shape{1, 3});
  const auto module = build_model(model);
  const Tensor left = randn({2, 5}), right = randn({2, 7});
  const auto outputs = module->forward_outputs(std::vector<Tensor>{left, right});
  REQUIRE(outputs.size() == 3);
  CHECK(outputs[0].shape() == Shape{2, 15});
  CHECK(outputs[1].shape() == Shape{2, 3});
  CHECK(outputs[2].to_vector<float>() == right.to_vector<float>());
  const std::string text = json_of(model).dump();
  CHECK(json_of(model_of(text)).dump() == text);
}

TEST_CASE("the element types of a model's values are followed from layer to layer") {
  const ModelSpec model = model_of(R"({"input": {"shape": [3], "dtype": "int64"}, "layers": [
    {"type": "Identity"}, {"type": "Concat", "inputs": ["0", "input"]}]})");
  CHECK(model.inputs[0].outline.elements == nn::Elements::int64);
  CHECK(model.layers[1].elements == nn::Elements::int64);
  CHECK(json_of(model)["input"]["dtype"] == "int64");
  const Tensor x = tensor({{1, 2, 3}}, DType::int64);
  CHECK((*build_model(model))(x).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 2, 3, 1, 2, 3});
  CHECK(model_of(kPair).layers[3].elements == nn::Elements::floating);

  CHECK(
      errors_of(R"({"input": {"shape": [3], "dtype": "int64"}, "layers": [
  {"type": "Flatten"}, {"type": "Linear", "out_features": 2}]})") ==
      R"(m.json:2:24: error: /layers/1 (layer Linear 1): Linear takes another element type: expected a floating one, got int64 from "0"
    2 |   {"type": "Flatten"}, {"type": "Linear", "out_features": 2}]}
      |                        ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
)");
  CHECK(sentences_of(R"({"inputs": {"x": {"shape": [3]}, "i": {"shape": [3], "dtype": "int64"}}, "layers": [
  {"type": "Concat", "inputs": ["x", "i"]}]})") ==
        sentence("/layers/0/inputs/1 (layer Concat 0, line 2): Concat takes another element type: expected a floating "
                 "one, got int64 from \"i\""));
  CHECK(sentences_of(R"({"input": {"shape": [3], "dtype": "float64"}, "layers": [{"type": "Identity"}]})") ==
        sentence("/input/dtype (line 1): expected float32 or int64, got float64; did you mean float32?"));
}

TEST_CASE("wrong inputs and outputs of a model are each a sentence of their own") {
  CHECK(sentences_of(R"({"input": {"shape": [3]}, "inputs": {"a": {"shape": [3]}}, "layers": [{"type": "ReLU"}]})") ==
        sentence("/inputs (line 1): the model's inputs are given twice: expected input or inputs, got both"));
  CHECK(sentences_of(R"({"inputs": {}, "layers": [{"type": "ReLU"}]})") ==
        sentence("/inputs (line 1): a model needs an input: expected at least 1, got none"));
  CHECK(sentences_of(R"({"inputs": [3], "layers": [{"type": "ReLU"}]})") ==
        sentence("/inputs (line 1): expected an object, got an array"));
  CHECK(
      sentences_of(R"({"inputs": {"a.b": {"shape": [3]}}, "layers": [{"type": "ReLU"}]})") ==
      sentence("/inputs/a.b (line 1): an input's name must not be empty or hold a dot: expected a word, got \"a.b\""));
  CHECK(
      sentences_of(R"({"inputs": {"a": {"shape": [0]}, "b": {"sahpe": [3]}}, "layers": [
  {"type": "Add", "inputs": ["a", "c"]}]})") ==
      std::vector<std::string>{
          "/inputs/a/shape/0 (line 1): expected >= 1, got 0",
          "/inputs/b (line 1): missing key: expected shape, got none",
          "/inputs/b/sahpe (line 1): unknown key; did you mean shape?",
          "/layers/0/inputs/1 (layer Add 0, line 2): no earlier layer has this name: expected one of the layers above "
          "or \"a\", \"b\", got \"c\""});
  CHECK(sentences_of(R"({"inputs": {"a": {"shape": [3]}, "b": {"shape": [3]}}, "layers": [
  {"type": "ReLU", "name": "b"}]})") ==
        sentence("/layers/0/name (line 2): the name is the model's own input's: expected another, got \"b\""));
  const auto outputs = [](const char* names) {
    return sentences_of(
        std::string(R"({"input": {"shape": [3]}, "layers": [{"type": "ReLU", "name": "relu"}], "outputs": )") + names +
        "}");
  };
  CHECK(outputs("[]") == sentence("/outputs (line 1): expected at least 1 name, got none"));
  CHECK(outputs("\"relu\"") == sentence("/outputs (line 1): expected an array of strings, got a string \"relu\""));
  CHECK(outputs(R"(["relu", "rleu"])") ==
        sentence("/outputs/1 (line 1): no earlier layer has this name: expected one of the layers above or \"input\", "
                 "got \"rleu\"; did you mean relu?"));
  CHECK(outputs(R"(["relu", "relu"])") ==
        sentence("/outputs/1 (line 1): the output is named twice: expected each once, got \"relu\""));
}

TEST_CASE("a nested graph has connections of its own, and its input is the block's") {
  const char* const text = R"({"input": {"shape": [3, 11]}, "layers": [
    {"type": "Conv1d", "name": "stem", "out_channels": 5, "kernel_size": 3},
    {"type": "Graph", "name": "block", "layers": [
      {"type": "Conv1d", "name": "conv", "out_channels": 5, "kernel_size": 3, "padding": 1},
      {"type": "Tanh"},
      {"type": "Add", "inputs": ["1", "input"]}]},
    {"type": "Sequential", "name": "tail", "layers": [{"type": "Graph", "layers": [
      {"type": "ReLU"}, {"type": "Multiply", "inputs": ["0", "input"]}]}]},
    {"type": "Concat", "inputs": ["tail", "block", "stem"]}]})";
  const ModelSpec model = model_of(text);
  CHECK(model.output() == Shape{15, 9});
  const std::string resolved = json_of(model).dump();
  CHECK(json_of(model_of(resolved)).dump() == resolved);
  manual_seed(7);
  const auto built = build_model(model);
  CHECK(parameter_names(*built) ==
        std::vector<std::string>{"stem.weight", "stem.bias", "block.conv.weight", "block.conv.bias"});
  manual_seed(7);
  nn::Conv1d stem({.in_channels = 3, .out_channels = 5, .kernel_size = 3});
  nn::Conv1d conv({.in_channels = 5, .out_channels = 5, .kernel_size = 3, .padding = 1});
  const Tensor x = randn({2, 3, 11}), s = stem(x), b = add(tanh(conv(s)), s), t = mul(relu(b), b);
  CHECK((*built)(x).to_vector<float>() == cat({t, b, s}, 1).to_vector<float>());
}

TEST_CASE("what a nested graph gives beside its main result is read by the block's name and its own") {
  const ModelSpec model = model_of(R"({"input": {"shape": [3, 11]}, "layers": [
    {"type": "Graph", "name": "block", "outputs": ["halved", "first", "input"], "layers": [
      {"type": "Conv1d", "name": "first", "out_channels": 2, "kernel_size": 3, "padding": 1},
      {"type": "AvgPool1d", "name": "halved", "kernel_size": 2}]},
    {"type": "Tanh", "name": "tanh"},
    {"type": "Concat", "name": "both", "inputs": ["block.first", "block.input"]}],
    "outputs": ["tanh", "both", "block.first"]})");
  CHECK(model.layers[0].output == Shape{1, 2, 5});
  CHECK(model.layers[2].output == Shape{1, 5, 11});
  const std::string resolved = json_of(model).dump();
  CHECK(json_of(model_of(resolved)).dump() == resolved);
  const auto module = build_model(model);
  CHECK(module->further_outputs() == std::vector<std::string>{"both", "block.first"});
  const Tensor x = randn({7, 3, 11});
  const auto outputs = module->forward_outputs(std::vector<Tensor>{x});
  CHECK(outputs[0].shape() == Shape{7, 2, 5});
  CHECK(outputs[1].to_vector<float>() == cat({outputs[2], x}, 1).to_vector<float>());
}

TEST_CASE("a further result that a layer does not have is refused with those it has") {
  const auto reading = [](const char* name) {
    return sentences_of(std::string(R"({"input": {"shape": [3, 11]}, "layers": [
 {"type": "Graph", "name": "block", "outputs": ["0", "first"], "layers": [{"type": "ReLU", "name": "first"}]},
 {"type": "Graph", "name": "block2", "inputs": ["input"], "outputs": ["b", "first"], "layers": [
   {"type": "ReLU", "name": "first"}, {"type": "ReLU", "name": "b"}]},
 {"type": "Tanh", "name": "tanh"}, {"type": "Tanh", "inputs": [")") +
                        name + "\"]}]}");
  };
  const std::string wrong_block =
      "/layers/0/outputs/0 (layer block, line 2): no earlier layer has this name: expected one of the layers above or "
      "\"input\", got \"0\"";
  CHECK(reading("block.anything") == sentence(wrong_block));
  CHECK(reading("block2.frist") ==
        std::vector<std::string>{wrong_block,
                                 "/layers/3/inputs/0 (layer Tanh 3, line 5): Graph has no further result of "
                                 "this name: expected \"block2.first\", got \"block2.frist\"; did you mean "
                                 "block2.first?"});
  CHECK(reading("tanh.indices") ==
        std::vector<std::string>{wrong_block,
                                 "/layers/3/inputs/0 (layer Tanh 3, line 5): Tanh gives no further results "
                                 "with these options: expected \"tanh\", got \"tanh.indices\""});
}

TEST_CASE("a nested graph reads several values under names of its own") {
  const char* const text =
      R"({"inputs": {"x": {"shape": [3, 11]}, "words": {"shape": [5], "dtype": "int64"}}, "layers": [
    {"type": "Conv1d", "name": "stem", "inputs": ["x"], "out_channels": 2, "kernel_size": 3},
    {"type": "Graph", "name": "block", "inputs": {"w": "words", "x": "stem", "skip": "x"}, "outputs": ["all", "w"],
     "layers": [
      {"type": "Embedding", "num_embeddings": 7, "embedding_dim": 13},
      {"type": "Graph", "name": "inner", "inputs": {"input": "x"}, "layers": [
        {"type": "Tanh"}, {"type": "Add", "inputs": ["0", "input"]}]},
      {"type": "Flatten", "name": "a", "inputs": ["inner"]}, {"type": "Flatten", "name": "b", "inputs": ["0"]},
      {"type": "Flatten", "name": "c", "inputs": ["skip"]},
      {"type": "Concat", "name": "all", "inputs": ["a", "b", "c"]}]}],
    "outputs": ["block", "block.w"]})";
  const ModelSpec model = model_of(text);
  CHECK(model.layers[1].output == Shape{1, 18 + 65 + 33});
  REQUIRE(model.outputs.size() == 2);
  CHECK(model.outputs[1].outline.elements == nn::Elements::int64);
  const Json resolved = json_of(model);
  CHECK(resolved["layers"][1]["inputs"].dump() == R"({"w":"words","x":"stem","skip":"x"})");
  CHECK_FALSE(resolved["layers"][1]["layers"][0].contains("inputs"));
  CHECK(json_of(model_of(resolved.dump())).dump() == resolved.dump());
  manual_seed(7);
  const auto built = build_model(model);
  CHECK(parameter_names(*built) == std::vector<std::string>{"stem.weight", "stem.bias", "block.0.weight"});
  const Tensor x = randn({2, 3, 11}), words = tensor({{0, 1, 2, 3, 4}, {6, 5, 4, 3, 2}}, DType::int64);
  const auto outputs = built->forward_outputs(std::vector<Tensor>{x, words});
  const auto parameters = built->parameters();
  const Tensor s = nn::functional::conv1d(x, parameters[0], parameters[1]),
               e = nn::functional::embedding(words, parameters[2]);
  const Tensor expected = cat({add(tanh(s), s).flatten(1), e.flatten(1), x.flatten(1)}, 1);
  CHECK(outputs[0].to_vector<float>() == expected.to_vector<float>());
  CHECK(outputs[1].to_vector<std::int64_t>() == words.to_vector<std::int64_t>());
}

TEST_CASE("what a block cannot read is refused, each with a sentence of its own") {
  const auto block = [](const std::string& type, const std::string& inputs, const std::string& inside = "") {
    return sentences_of(R"({"input": {"shape": [3]}, "layers": [{"type": "ReLU", "name": "relu"},
 {"type": ")" + type + R"(", "inputs": )" +
                        inputs + R"(, "layers": [{"type": "Tanh")" + inside + "}]}]}");
  };
  CHECK(block("Graph", R"({"a": "relu", "b": "input"})", R"(, "inputs": ["b"])").empty());
  CHECK(block("Graph", R"(["relu", "input"])") ==
        sentence("/layers/1/inputs (layer Graph 1, line 2): a Graph names the values that it reads when they are "
                 "several: expected an object as {\"left\": \"relu\"}, got a list of 2"));
  CHECK(block("Sequential", R"(["relu", "input"])") ==
        sentence("/layers/1/inputs (layer Sequential 1, line 2): Sequential takes another number of inputs: expected "
                 "1, got 2"));
  CHECK(block("Sequential", R"({"a": "relu"})") ==
        sentence("/layers/1/inputs (layer Sequential 1, line 2): only a Graph names what it reads: expected a list of "
                 "names, got an object"));
  CHECK(block("Graph", "{}") ==
        sentence("/layers/1/inputs (layer Graph 1, line 2): expected at least 1 name, got none"));
  CHECK(block("Graph", R"({"a": "relu", "b": "rleu"})") ==
        sentence("/layers/1/inputs/b (layer Graph 1, line 2): no earlier layer has this name: expected one of the "
                 "layers above or \"input\", got \"rleu\"; did you mean relu?"));
  CHECK(block("Graph", R"({"a": "relu", "b": 3})") ==
        sentence("/layers/1/inputs/b (layer Graph 1, line 2): expected a string, got 3; write \"3\""));
  CHECK(block("Graph", R"({"a.b": "relu", "": "input"})") ==
        std::vector<std::string>{"/layers/1/inputs/a.b (layer Graph 1, line 2): an input's name must not be empty or "
                                 "hold a dot: expected a word, got \"a.b\"",
                                 "/layers/1/inputs/ (layer Graph 1, line 2): an input's name must not be empty or "
                                 "hold a dot: expected a word, got \"\""});
  CHECK(block("Graph", R"({"a": "relu", "b": "input"})", R"(, "inputs": ["input"])") ==
        sentence("/layers/1/layers/0/inputs/0 (layer Tanh 0, line 2): no earlier layer has this name: expected one of "
                 "the layers above or \"a\", \"b\", got \"input\""));
  CHECK(block("Graph", R"({"a": "relu", "b": "input"})", R"(, "name": "b")") ==
        sentence("/layers/1/layers/0/name (line 2): the name is the model's own input's: expected another, got \"b\""));
  CHECK(block("Graph", R"({"a": "relu", "a": "input"})").size() == 1);
  CHECK(sentences_of(R"({"input": {"shape": [3]}, "layers": [{"type": "Add", "inputs": {"a": "input"}}]})") ==
        sentence("/layers/0/inputs (layer Add 0, line 1): only a Graph names what it reads: expected a list of names, "
                 "got an object"));
  CHECK(sentences_of(R"({"inputs": {"x": {"shape": [3]}, "i": {"shape": [3], "dtype": "int64"}}, "layers": [
  {"type": "Graph", "inputs": {"a": "x", "b": "i"}, "layers": [{"type": "Add", "inputs": ["a", "b"]}]}]})") ==
        sentence("/layers/0/layers/0/inputs/1 (layer Add 0, line 2): Add takes another element type: expected a "
                 "floating one, got int64 from \"b\""));
}

TEST_CASE("only a graph's layers choose what they read") {
  CHECK(
      sentences_of(R"({"input": {"shape": [3]}, "layers": [
 {"type": "Sequential", "layers": [{"type": "ReLU", "inputs": ["input"]}]}]})") ==
      sentence("/layers/0/layers/0/inputs (layer ReLU 0, line 2): a layer inside a Sequential reads the one before it: "
               "expected no inputs, got some; in a Graph layers have inputs"));
  CHECK(sentences_of(R"({"input": {"shape": [3]}, "layers": [
 {"type": "Sequential", "outputs": ["0"], "layers": [{"type": "ReLU"}]}]})") ==
        sentence("/layers/0/outputs (layer Sequential 0, line 2): unknown key: expected type, name, inputs or layers"));
  CHECK(sentences_of(R"({"input": {"shape": [3]}, "layers": [
 {"type": "Graph", "name": "g", "layers": [{"type": "ReLU", "name": "r", "inputs": ["outside"]}]}]})") ==
        sentence("/layers/0/layers/0/inputs/0 (layer r, line 2): no earlier layer has this name: expected one of the "
                 "layers above or \"input\", got \"outside\""));
}

TEST_CASE("training refuses models that it cannot feed") {
  const std::string rest = R"(, "data": {"train": {"path": "t.npz"}, "normalize": "standard"},
    "loss": {"type": "MSELoss"}, "optimizer": {"type": "Adam"}})";
  const auto errors = [&](const std::string& model) {
    try {
      parse_training_config("{\"model\": " + model + rest, "c.json");
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(errors(kPair) ==
        "/model/inputs (line 2): training feeds a model one input: expected 1, got 2; taper run takes several\n"
        "/model/outputs (line 8): a loss takes one output: expected 1, got 3; taper run gives several");
  CHECK(errors(R"({"input": {"shape": [3], "dtype": "int64"}, "layers": [{"type": "Identity"}]})") ==
        "/data/normalize (line 1): indices are not scaled: expected \"none\", got \"standard\"");
  CHECK(errors(R"({"inputs": {"x": {"shape": [3]}}, "layers": [{"type": "ReLU"}], "outputs": ["0"]})") == "");
}

TEST_CASE("a block without layers gives back its input, as an empty Sequential does in PyTorch") {
  for (const char* type : {"Sequential", "Graph"}) {
    const ModelSpec model =
        model_of(std::string(R"({"input": {"shape": [3]}, "layers": [{"type": ")") + type +
                 R"(", "name": "shortcut", "layers": []}, {"type": "Add", "inputs": ["shortcut", "input"]}]})");
    CHECK(json_of(model_of(json_of(model).dump())) == json_of(model));
    CHECK((*build_model(model))(tensor({{1.0, 2.0, 3.0}})).to_vector<float>() == std::vector<float>{2, 4, 6});
  }
}
