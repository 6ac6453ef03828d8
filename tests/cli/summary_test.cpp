#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/layer_case.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "taper/nn/registry.hpp"

using namespace taper;
using nlohmann::json;

namespace {

/// The row of a layer in the table, its columns one space apart.
std::string line_of(const Outcome& outcome, const std::string& name) {
  const std::size_t from = outcome.out.find("\n" + name + " ") + 1;
  std::string text = outcome.out.substr(from, outcome.out.find('\n', from) - from);
  for (std::size_t two; (two = text.find("  ")) != std::string::npos;) text.erase(two, 1);
  return text;
}

}  // namespace

TEST_CASE("summary shows shapes, parameters, work, fields and dropped tails") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [3, 23]}, "layers": [
  {"type": "Conv1d", "name": "conv", "out_channels": 5, "kernel_size": 3, "padding": 1},
  {"type": "ReLU"},
  {"type": "AvgPool1d", "kernel_size": 4, "stride": 4},
  {"type": "Sequential", "name": "head", "layers": [
    {"type": "Flatten"}, {"type": "Linear", "out_features": 2}]}]})");
  const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
  CHECK(outcome.exit == 0);
  CHECK(outcome.err == "");
  CHECK(
      outcome.out ==
      R"(layer   type                                                             output   parameters  mult-adds  field  sees
------  ---------------------------------------------------------------  -------  ----------  ---------  -----  ----------------
input                                                                    [3, 23]                         1
conv    Conv1d(in_channels=3, out_channels=5, kernel_size=3, padding=1)  [5, 23]  50          1,035      3      23 of 23
1       ReLU()                                                           [5, 23]  -           -          3
2       AvgPool1d(kernel_size=4, stride=4)                               [5, 5]   -           -          6      20 of 23, tail 3
head    Sequential                                                       [2]
head.0  Flatten()                                                        [25]     -           -          6
head.1  Linear(in_features=25, out_features=2)                           [2]      52          50         all

parameters   102 (408 bytes as float32)
mult-adds    1,085 a sample
activations  282 a sample (1.1 KiB as float32)
)");
}

TEST_CASE("summary follows places through padding, resizing and transposed convolutions") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [3, 5, 7]}, "layers": [
  {"type": "ConvTranspose2d", "out_channels": 4, "kernel_size": [2, 5], "stride": [3, 2], "groups": 1},
  {"type": "ReflectionPad2d", "padding": [1, 2, 3, 0]},
  {"type": "Conv2d", "out_channels": 2, "kernel_size": 3},
  {"type": "ZeroPad1d", "padding": [-1, 4]},
  {"type": "AvgPool2d", "kernel_size": [1, 2]},
  {"type": "Upsample", "scale_factor": [2, 1.5], "mode": "bilinear"},
  {"type": "Upsample", "size": [3, 5]}]})");
  const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
  CHECK(outcome.err == "");
  CHECK(line_of(outcome, "0") ==
        "0 ConvTranspose2d(in_channels=3, out_channels=4, kernel_size=[2, 5], stride=[3, 2]) [4, 14, 17] 124 4,200 "
        "1 x 3 5 of 5 x 7 of 7");
  CHECK(line_of(outcome, "1") == "1 ReflectionPad2d(padding=[1, 2, 3, 0]) [4, 17, 20] - - 1 x 3");
  CHECK(line_of(outcome, "2") ==
        "2 Conv2d(in_channels=4, out_channels=2, kernel_size=3) [2, 15, 18] 74 19,440 2 x 4 17 of 17 x 20 of 20");
  CHECK(line_of(outcome, "3") == "3 ZeroPad1d(padding=[-1, 4]) [2, 15, 21] - - 2 x 4");
  CHECK(line_of(outcome, "4") == "4 AvgPool2d(kernel_size=[1, 2]) [2, 15, 10] - - 2 x 4 15 of 15 x 20 of 21, tail 1");
  CHECK(line_of(outcome, "5") == R"(5 Upsample(scale_factor=[2.0, 1.5], mode="bilinear") [2, 30, 15] - - 2 x 5)");
  CHECK(line_of(outcome, "6") == "6 Upsample(size=[3, 5]) [2, 3, 5] - - 2 x 5");
}

TEST_CASE("summary knows what a bicubic element and a mean of an area read") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [3, 11, 13]}, "layers": [
  {"type": "Upsample", "size": [17, 29], "mode": "bicubic"}, {"type": "Upsample", "size": [17, 5], "mode": "area"}]})");
  const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
  CHECK(outcome.err == "");
  CHECK(line_of(outcome, "0") == R"(0 Upsample(size=[17, 29], mode="bicubic") [3, 17, 29] - - 4 x 4)");
  CHECK(line_of(outcome, "1") == R"(1 Upsample(size=[17, 5], mode="area") [3, 17, 5] - - 4 x 7)");
}

TEST_CASE("summary follows places through a max pool and its inverse") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [3, 11]}, "layers": [
  {"type": "MaxPool1d", "name": "pool", "kernel_size": 3, "stride": 2, "return_indices": true},
  {"type": "MaxUnpool1d", "name": "back", "inputs": ["pool", "pool.indices"], "kernel_size": 3, "stride": 2}]})");
  const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
  CHECK(outcome.err == "");
  CHECK(line_of(outcome, "pool") ==
        "pool MaxPool1d(kernel_size=3, stride=2, return_indices=true) [3, 5] - - 3 11 of 11");
  CHECK(line_of(outcome, "back") == "back MaxUnpool1d(kernel_size=3, stride=2) [3, 11] - - 5 5 of 5");
}

TEST_CASE("summary shows every input, and what blocks give") {
  const TempFolder folder;
  folder.write("m.json", R"({"inputs": {"left": {"shape": [3, 23]}, "right": {"shape": [5]}}, "layers": [
  {"type": "Graph", "name": "block", "outputs": ["sum", "pool"], "layers": [
    {"type": "AvgPool1d", "name": "pool", "kernel_size": 3},
    {"type": "Add", "name": "sum", "inputs": ["pool", "pool"]}]},
  {"type": "AvgPool1d", "inputs": ["block.pool"], "kernel_size": 2},
  {"type": "Linear", "inputs": ["right"], "out_features": 2}]})");
  const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
  CHECK(outcome.err == "");
  CHECK(outcome.out.substr(0, outcome.out.find("\nparameters")) ==
        R"(layer       type                                   output   parameters  mult-adds  field  sees
----------  -------------------------------------  -------  ----------  ---------  -----  ----------------
left                                               [3, 23]                         1
right                                              [5]
block       Graph                                  [3, 7]
block.pool  AvgPool1d(kernel_size=3)               [3, 7]   -           -          3      21 of 23, tail 2
block.sum   Add()                                  [3, 7]   -           -          3
1           AvgPool1d(kernel_size=2)               [3, 3]   -           -          6      6 of 7, tail 1
2           Linear(in_features=5, out_features=2)  [2]      12          10
)");
}

TEST_CASE("summary follows several values into a block") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [3, 23]}, "layers": [
  {"type": "AvgPool1d", "name": "pool", "kernel_size": 3, "stride": 1, "padding": 1},
  {"type": "Graph", "name": "block", "inputs": {"wide": "pool", "narrow": "input"}, "outputs": ["wider", "narrow"],
   "layers": [{"type": "AvgPool1d", "name": "wider", "kernel_size": 2}]},
  {"type": "AvgPool1d", "inputs": ["block.narrow"], "kernel_size": 4}]})");
  const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
  CHECK(outcome.err == "");
  CHECK(line_of(outcome, "block") == "block Graph [3, 11]");
  CHECK(line_of(outcome, "block.wider") == "block.wider AvgPool1d(kernel_size=2) [3, 11] - - 4 22 of 23, tail 1");
  CHECK(line_of(outcome, "2") == "2 AvgPool1d(kernel_size=4) [3, 5] - - 4 20 of 23, tail 3");
}

TEST_CASE("summary counts the parameters of norms, and knows which of them see all places") {
  const TempFolder folder;
  const auto field_of = [&](const std::string& norm) {
    folder.write("m.json", R"({"input": {"shape": [6, 7]}, "layers": [{"type": )" + norm + "}]}");
    const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
    INFO(outcome.err);
    CHECK(outcome.out.find("\nparameters   12 (") != std::string::npos);
    const std::size_t row = outcome.out.find("\n0 ") + 1, end = outcome.out.find('\n', row);
    const std::string line = outcome.out.substr(row, end - row);
    return line.substr(line.find_last_of(' ') + 1);
  };
  CHECK(field_of(R"("BatchNorm1d")") == "1");
  CHECK(field_of(R"("GroupNorm", "num_groups": 2)") == "all");
  CHECK(field_of(R"("InstanceNorm1d", "affine": true)") == "all");
}

TEST_CASE("summary stops at the layer that does not fit, and takes changes") {
  const TempFolder folder;
  folder.write("late.json",
               "{\"model\": {\"input\": {\"shape\": [3, 7]}, \"layers\": [\n  {\"type\": \"AvgPool1d\", "
               "\"kernel_size\": 2},\n  {\"type\": \"AvgPool1d\", \"kernel_size\": 5}\n]}}\n");
  const Outcome failed = run_taper(folder.path(), {"summary", "late.json"});
  CHECK(failed.exit == 2);
  CHECK(failed.out.find("\n0      AvgPool1d(kernel_size=2)  [3, 3]") != std::string::npos);
  CHECK(failed.out.find("kernel_size=5") == std::string::npos);
  CHECK(
      failed.err ==
      R"(late.json:3:40: error: /model/layers/1/kernel_size (layer AvgPool1d 1): avg_pool1d: output size is too small: expected >= 1, got 0; input size 3, kernel_size 5, stride 5, padding 0, dilation 1; shapes: input [3, 7] -> AvgPool1d [3, 3] -> AvgPool1d
    3 |   {"type": "AvgPool1d", "kernel_size": 5}
      |                                        ^
1 error in late.json
)");
  const Outcome changed = run_taper(folder.path(), {"summary", "late.json", "--set", "model.layers[1].kernel_size=3"});
  CHECK(changed.err == "");
  CHECK(changed.exit == 0);
  CHECK(changed.out.find("\n1      AvgPool1d(kernel_size=3)  [3, 1]  -           -              6  3 of 3") !=
        std::string::npos);
}

TEST_CASE("summary counts the parameters of every layer of the catalogue as the layer itself does") {
  const TempFolder folder;
  for (const nn::LayerType& type : nn::layer_types()) {
    const auto model = test::example_model(type, taper::test::parsed<nlohmann::ordered_json>(type.example));
    folder.write("m.json", model.dump());
    const config::LoadedModel loaded = config::load_model(folder / "m.json");
    INFO(type.name);
    REQUIRE(loaded.errors == "");
    const std::int64_t count = config::build_model(loaded.model)->parameter_count();
    if (count == 0 && type.name.find("Pool") == std::string::npos) continue;  // starting a program takes its time
    const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
    CHECK(outcome.out.find("\nparameters   " + std::to_string(count) + " (") != std::string::npos);
  }
}

TEST_CASE("summary counts the work of recurrent layers and of attention, which see the whole sequence") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [7, 5]}, "layers": [
  {"type": "LSTM", "hidden_size": 3, "num_layers": 2, "bidirectional": true, "batch_first": true},
  {"type": "GRU", "hidden_size": 4, "batch_first": true},
  {"type": "MultiheadAttention", "num_heads": 2, "batch_first": true, "add_zero_attn": true},
  {"type": "Flatten"}, {"type": "GRUCell", "hidden_size": 2}]})");
  const Outcome outcome = run_taper(folder.path(), {"summary", "m.json"});
  CHECK(outcome.err == "");
  // 7 steps of 2 directions: 12 x (5 + 3) and 12 x (6 + 3) weights; 12 x (6 + 4); 4 x 16 x 7 and 2 x 7 x 8 x 4; 6 x 30.
  CHECK(outcome.out.find(" 504         2,856      all") != std::string::npos);
  CHECK(outcome.out.find(" 144         840        all") != std::string::npos);
  CHECK(outcome.out.find(" 80          896        all") != std::string::npos);
  CHECK(outcome.out.find(" 192         180        all") != std::string::npos);
  folder.write("p.json", R"({"input": {"shape": [7, 5]}, "layers": [
  {"type": "LSTM", "hidden_size": 3, "num_layers": 2, "bidirectional": true, "batch_first": true, "proj_size": 2}]})");
  // 7 steps of 2 directions: 12 x (5 + 2) and 12 x (4 + 2) weights, each then 2 x 3 of the projection.
  CHECK(run_taper(folder.path(), {"summary", "p.json"}).out.find(" 432         2,352      all") != std::string::npos);
}
