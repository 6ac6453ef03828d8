#include "config/model_json.hpp"

#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/model_json.hpp"
#include "support/temp_folder.hpp"
#include "taper/config.hpp"
#include "taper/creation.hpp"
#include "taper/nn/conv.hpp"
#include "taper/nn/linear.hpp"
#include "taper/ops.hpp"

using namespace taper;
using namespace taper::config;
using test::errors_of;
using test::model_of;

namespace {

const char* const kForum = R"({
  "input": {"shape": [12, 25]},
  "layers": [
    {"type": "Conv1d", "name": "conv1", "out_channels": 32, "kernel_size": 3, "padding": 1},
    {"type": "ReLU"},
    {"type": "AvgPool1d", "kernel_size": 25},
    {"type": "Flatten"},
    {"type": "Linear", "name": "fc", "out_features": 9}
  ]
})";

}  // namespace

TEST_CASE("shapes are propagated and what follows from them is filled in") {
  const ModelSpec model = model_of(kForum);
  CHECK(model.layers.size() == 5);
  CHECK(model.layers[0].output == Shape({1, 32, 25}));
  CHECK(model.output() == Shape({9}));
  CHECK(json_of(model)["layers"][0]["in_channels"] == 12);
  CHECK(json_of(model)["layers"][4]["in_features"] == 32);
}

TEST_CASE("a built model names its parameters as PyTorch does and takes a batch or one sample of any size") {
  const auto module = build_model(model_of(kForum));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module->named_parameters()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"conv1.weight", "conv1.bias", "fc.weight", "fc.bias"});
  CHECK(module->forward(ones({7, 12, 25})).shape() == Shape({7, 9}));
  CHECK(module->forward(ones({0, 12, 25})).shape() == Shape({0, 9}));
}

TEST_CASE("a resolved model reads back as the same model") {
  const ModelSpec model = model_of(kForum);
  const std::string text = json_of(model).dump();
  CHECK(json_of(model_of(text)).dump() == text);
}

TEST_CASE("layers without a name are numbered as in a Sequential, nested ones below their parent") {
  const ModelSpec model = model_of(R"({"input": {"shape": [3, 11]}, "layers": [
    {"type": "Sequential", "name": "block", "layers": [{"type": "Conv1d", "out_channels": 5, "kernel_size": 3}, {"type": "ReLU"}]},
    {"type": "Conv1d", "out_channels": 2, "kernel_size": 2}]})");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : build_model(model)->named_parameters()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"block.0.weight", "block.0.bias", "1.weight", "1.bias"});
}

TEST_CASE("layers read earlier layers by name") {
  const ModelSpec model = model_of(R"({"input": {"shape": [3, 11]}, "layers": [
    {"type": "Conv1d", "name": "a", "out_channels": 3, "kernel_size": 3, "padding": 1},
    {"type": "ReLU", "name": "b"},
    {"type": "Add", "inputs": ["b", "input"]},
    {"type": "Concat", "inputs": ["a", "b", "2"]}]})");
  CHECK(model.output() == Shape({9, 11}));
  CHECK(build_model(model)->forward(ones({2, 3, 11})).shape() == Shape({2, 9, 11}));
}

TEST_CASE("an unknown key is shown where it stands, with the nearest one") {
  CHECK(errors_of(R"({"input": {"shape": [3, 11]},
 "layers": [{"type": "AvgPool1d", "kernal_size": 2}]})") ==
        "m.json:2:13: error: /layers/0 (layer AvgPool1d 0): missing key: expected kernel_size, got none\n"
        "    2 |  \"layers\": [{\"type\": \"AvgPool1d\", \"kernal_size\": 2}]}\n"
        "      |             ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
        "m.json:2:35: error: /layers/0/kernal_size (layer AvgPool1d 0): unknown key; did you mean kernel_size?\n"
        "    2 |  \"layers\": [{\"type\": \"AvgPool1d\", \"kernal_size\": 2}]}\n"
        "      |                                   ^~~~~~~~~~~~~\n");
}

TEST_CASE(
    "all errors of a model are reported in one run, each at the option it speaks of, with the way the shapes came") {
  const std::string errors = errors_of(R"({
  "input": {"shape": [12, 25]},
  "layers": [
    {"type": "Conv1d", "name": "conv1", "out_channels": 32, "kernel_size": 3, "in_channels": 3},
    {"type": "Conv1D", "out_channels": 4, "kernel_size": 3},
    {"type": "AvgPool1d", "kernel_size": 2.9},
    {"type": "AvgPool1d", "kernel_size": 0},
    {"type": "Linear", "name": "conv1", "out_features": "9"},
    {"type": "Add", "inputs": ["conv2", "input"]}
  ]})");
  CHECK(
      errors ==
      R"(m.json:4:94: error: /layers/0/in_channels (layer conv1): conv1d: in_channels does not fit the input: expected 12, got 3 in [N, 12, 25]; shapes: input [12, 25] -> Conv1d
    4 |     {"type": "Conv1d", "name": "conv1", "out_channels": 32, "kernel_size": 3, "in_channels": 3},
      |                                                                                              ^
m.json:5:14: error: /layers/1/type (layer Conv1D 1): unknown layer type: expected a layer's class name, got "Conv1D"; did you mean Conv1d?
    5 |     {"type": "Conv1D", "out_channels": 4, "kernel_size": 3},
      |              ^~~~~~~~
m.json:6:42: error: /layers/2/kernel_size (layer AvgPool1d 2): expected an integer, got 2.9
    6 |     {"type": "AvgPool1d", "kernel_size": 2.9},
      |                                          ^~~
m.json:7:42: error: /layers/3/kernel_size (layer AvgPool1d 3): expected >= 1, got 0
    7 |     {"type": "AvgPool1d", "kernel_size": 0},
      |                                          ^
m.json:8:32: error: /layers/4/name: the name is taken: expected a new one, got "conv1"
    8 |     {"type": "Linear", "name": "conv1", "out_features": "9"},
      |                                ^~~~~~~
m.json:8:57: error: /layers/4/out_features (layer Linear 4): expected an integer, got a string "9"; write 9 without quotes
    8 |     {"type": "Linear", "name": "conv1", "out_features": "9"},
      |                                                         ^~~
m.json:9:32: error: /layers/5/inputs/0 (layer Add 5): no earlier layer has this name: expected one of the layers above or "input", got "conv2"; did you mean conv1?
    9 |     {"type": "Add", "inputs": ["conv2", "input"]}
      |                                ^~~~~~~
)");
}

TEST_CASE("a pool that does not fit names the layer, the option and the shapes on the way") {
  CHECK(
      errors_of(R"({"input": {"shape": [3, 11]},
 "layers": [{"type": "ReLU"}, {"type": "AvgPool1d", "kernel_size": 4, "padding": 3}]})") ==
      R"(m.json:2:82: error: /layers/1/padding (layer AvgPool1d 1): avg_pool1d: padding must be at most half the kernel size: expected <= 2, got 3; shapes: input [3, 11] -> ReLU [3, 11] -> AvgPool1d
    2 |  "layers": [{"type": "ReLU"}, {"type": "AvgPool1d", "kernel_size": 4, "padding": 3}]}
      |                                                                                  ^
)");
  CHECK(
      errors_of(R"({"input": {"shape": [3, 11]},
 "layers": [{"type": "ReLU"}, {"type": "AvgPool1d", "kernel_size": 13, "stride": 1}]})") ==
      R"(m.json:2:68: error: /layers/1/kernel_size (layer AvgPool1d 1): avg_pool1d: output size is too small: expected >= 1, got -1; input size 11, kernel_size 13, stride 1, padding 0, dilation 1; shapes: input [3, 11] -> ReLU [3, 11] -> AvgPool1d
    2 |  "layers": [{"type": "ReLU"}, {"type": "AvgPool1d", "kernel_size": 13, "stride": 1}]}
      |                                                                    ^~
)");
  CHECK(
      errors_of(R"({"input": {"shape": [3, 11]},
 "layers": [{"type": "Linear", "in_features": 7, "out_features": 13}]})") ==
      R"(m.json:2:47: error: /layers/0/in_features (layer Linear 0): linear: in_features does not fit the input: expected 11, got 7 in [N, 3, 11]; shapes: input [3, 11] -> Linear
    2 |  "layers": [{"type": "Linear", "in_features": 7, "out_features": 13}]}
      |                                               ^
)");
}

TEST_CASE("a model file is an object with an input and layers") {
  CHECK(errors_of("[]") == "m.json:1:1: error: expected an object, got an array\n    1 | []\n      | ^~\n");
  CHECK(errors_of("{}") ==
        "m.json:1:1: error: missing key: expected input, got none\n    1 | {}\n      | ^~\n"
        "m.json:1:1: error: missing key: expected layers, got none\n    1 | {}\n      | ^~\n");
  CHECK(errors_of(R"({"input": {"shape": [3, 0]}, "layers": []})") ==
        R"(m.json:1:25: error: /input/shape/1: expected >= 1, got 0
    1 | {"input": {"shape": [3, 0]}, "layers": []}
      |                         ^
m.json:1:40: error: /layers: a model needs a layer: expected at least 1, got none
    1 | {"input": {"shape": [3, 0]}, "layers": []}
      |                                        ^~
)");
}

TEST_CASE("a model from JSON text is the one that the same layers make in C++ after the same seed") {
  manual_seed(5);
  nn::Conv1d conv({.in_channels = 3, .out_channels = 7, .kernel_size = 2});
  nn::Linear fc({.in_features = 5, .out_features = 11});
  manual_seed(5);
  const auto model = model_from_json(R"({"input": {"shape": [3, 6]}, "layers": [
    {"type": "Conv1d", "out_channels": 7, "kernel_size": 2}, {"type": "Linear", "out_features": 11}]})");
  const Tensor x = randn({2, 3, 6});
  CHECK((*model)(x).to_vector<float>() == fc(conv(x)).to_vector<float>());
}

TEST_CASE("a model is read from a file, alone or in a training config whose other sections are wrong") {
  const TempFolder folder;
  const std::string alone = folder.write("model.json", kForum);
  CHECK(model_from_file(alone)->parameter_count() == 12 * 32 * 3 + 32 + 32 * 9 + 9);
  const std::string whole = folder.write("whole.json", std::string(R"({"loss": 3, "model": )") + kForum + "}");
  CHECK(model_from_file(whole)->parameter_count() == 12 * 32 * 3 + 32 + 32 * 9 + 9);
  CHECK_THROWS_AS(model_from_file(folder / "none.json"), Error);
}

TEST_CASE("a wrong model is one error with a sentence for each mistake") {
  CHECK_THROWS_WITH(model_from_json(R"({"input": {"shape": [3]},
 "layers": [{"type": "Linear", "out_feature": 2}, {"type": "relu"}]})"),
                    "/layers/0 (layer Linear 0, line 2): missing key: expected out_features, got none\n"
                    "/layers/0/out_feature (layer Linear 0, line 2): unknown key; did you mean out_features?\n"
                    "/layers/1/type (layer relu 1, line 2): unknown layer type: expected a layer's class name, got "
                    "\"relu\"; did you mean ReLU?");
}
