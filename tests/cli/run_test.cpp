#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "taper/autograd.hpp"
#include "taper/io.hpp"

using namespace taper;
using nlohmann::json;

namespace {

constexpr const char* kDropoutModel = R"({"input": {"shape": [3, 11]}, "layers": [
  {"type": "Conv1d", "name": "conv", "out_channels": 5, "kernel_size": 3, "padding": 1},
  {"type": "Tanh"}, {"type": "Dropout", "p": 0.5},
  {"type": "AdaptiveAvgPool1d", "output_size": 1}, {"type": "Squeeze", "dim": -1},
  {"type": "Linear", "name": "fc", "out_features": 2}]})";

/// The tensors that `taper run` leaves; the program must say nothing.
io::SafetensorsFile results(const TempFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--output", "out.safetensors"});
  const Outcome outcome = run_taper(folder.path(), arguments);
  CHECK(outcome.exit == 0);
  CHECK(outcome.err == "");
  CHECK(outcome.out == "");
  return io::load_safetensors(folder / "out.safetensors");
}

/// The largest difference of two tensors of the same shape; infinite for other shapes or a missing tensor.
double distance(const Tensor* a, const Tensor& b) {
  if (!a || !(a->shape() == b.shape()) || a->dtype() != b.dtype()) return INFINITY;
  const auto x = a->to_vector<double>(), y = b.to_vector<double>();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

std::vector<std::string> names(const io::SafetensorsFile& file) {
  std::vector<std::string> out;
  for (const NamedTensor& entry : file.tensors) out.push_back(entry.name);
  std::sort(out.begin(), out.end());
  return out;
}

/// A stored case's model object: a model of its own, or its layer on its input.
json model_of(const json& stored) {
  if (stored.contains("model")) return stored["model"];
  json layer = stored["layer"], shape = stored["input"]["shape"];
  layer["name"] = "layer";
  const std::string type = layer["type"];
  const auto unbatched_rank = type.ends_with("1d") ? 2u : type.ends_with("2d") ? 3u : type.ends_with("3d") ? 4u : 0u;
  const bool unbatched = !type.starts_with("BatchNorm") && shape.size() == unbatched_rank;
  if (!unbatched) shape.erase(0);
  for (json& extent : shape) extent = std::max<std::int64_t>(1, extent);  // an array may be empty, a declared input not
  if (shape.empty()) shape.push_back(1);
  return {{"input", {{"shape", shape}}}, {"layers", json::array({layer})}};
}

}  // namespace

TEST_CASE("run gives what the library gives, forward and backward, batched or not") {
  const TempFolder folder;
  folder.write("m.json", kDropoutModel);
  const config::LoadedModel loaded = config::load_model(folder / "m.json");
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const Shape& shape : {Shape{7, 3, 11}, Shape{3, 11}, Shape{0, 3, 11}, Shape{2, 3, 13}}) {
      manual_seed(5);
      const auto model = config::build_model(loaded.model);
      model->to(dtype);
      model->eval();
      const Tensor x = randn(shape, dtype);
      x.requires_grad_();
      const Tensor y = (*model)(x), gy = randn(y.shape(), dtype);
      y.backward(gy);
      io::save_safetensors(folder / "w.safetensors", model->state_dict());
      io::save_npy(folder / "x.npy", x);
      io::save_safetensors(folder / "gy.safetensors", {{"output", gy}});
      const auto out = results(folder, {"m.json", "--weights", "w.safetensors", "--input", "x.npy", "--grad-output",
                                        "gy.safetensors", "--dtype", name_of(dtype)});
      CHECK(distance(out.find("output"), y) == 0);
      CHECK(distance(out.find("grad.input"), x.grad()) == 0);
      for (const auto& [name, parameter] : model->named_parameters())
        CHECK(distance(out.find("grad." + name), parameter.grad()) == 0);
      CHECK(out.tensors.size() == 6);
    }
  }
}

TEST_CASE("run without weights initialises from the seed and writes the parameters") {
  const TempFolder folder;
  folder.write("m.json", kDropoutModel);
  io::save_npy(folder / "x.npy", ones({2, 3, 11}));
  const auto first = results(folder, {"m.json", "--input", "x.npy", "--seed", "3"});
  CHECK(names(first) ==
        std::vector<std::string>{"output", "param.conv.bias", "param.conv.weight", "param.fc.bias", "param.fc.weight"});
  const auto again = results(folder, {"m.json", "--input", "x.npy", "--seed", "3", "--threads", "1"});
  const auto other = results(folder, {"m.json", "--input", "x.npy", "--seed", "4"});
  for (const NamedTensor& entry : first.tensors) {
    CHECK(distance(again.find(entry.name), entry.tensor) == 0);
    CHECK(distance(other.find(entry.name), entry.tensor) > 0);
  }
}

TEST_CASE("run in train mode drops elements by the seed, in eval mode none") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [1009]}, "layers": [{"type": "Dropout", "p": 0.5}]})");
  io::save_npy(folder / "x.npy", ones({1, 1009}));
  const auto drop = [&](const char* mode, const char* seed) {
    return *results(folder, {"m.json", "--input", "x.npy", "--mode", mode, "--seed", seed}).find("output");
  };
  const Tensor kept = drop("eval", "1"), dropped = drop("train", "1"), same = drop("train", "1");
  CHECK(distance(&kept, ones({1, 1009})) == 0);
  CHECK(distance(&dropped, same) == 0);
  CHECK(distance(&dropped, drop("train", "2")) == 2);
  const auto values = dropped.to_vector<double>();
  const auto zero = std::count(values.begin(), values.end(), 0.0), two = std::count(values.begin(), values.end(), 2.0);
  CHECK(zero + two == 1009);
  CHECK(std::abs(double(zero) - 504.5) < 80);
}

TEST_CASE("run in train mode writes the running statistics as the call leaves them, in eval mode none") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [3, 5]}, "layers": [
    {"type": "BatchNorm1d", "name": "norm"},
    {"type": "Sequential", "layers": [{"type": "InstanceNorm1d", "track_running_stats": true}]}]})");
  const auto model = config::build_model(config::load_model(folder / "m.json").model);
  io::save_safetensors(folder / "w.safetensors", model->state_dict());
  const Tensor x = randn({7, 3, 5});
  io::save_npy(folder / "x.npy", x);
  (*model)(x);
  const std::vector<std::string> arguments{"m.json", "--weights", "w.safetensors", "--input", "x.npy"};
  CHECK(names(results(folder, arguments)) == std::vector<std::string>{"output"});
  std::vector<std::string> training = arguments;
  training.insert(training.end(), {"--mode", "train"});
  const auto out = results(folder, training);
  CHECK(names(out) == std::vector<std::string>{"buffer.1.0.num_batches_tracked", "buffer.1.0.running_mean",
                                               "buffer.1.0.running_var", "buffer.norm.num_batches_tracked",
                                               "buffer.norm.running_mean", "buffer.norm.running_var", "output"});
  for (const auto& [name, buffer] : model->named_buffers()) CHECK(distance(out.find("buffer." + name), buffer) == 0);
}

TEST_CASE("run ignores what a checkpoint holds beside the weights, and takes any floating type") {
  const TempFolder folder;
  folder.write("c.json", R"({"model": {"input": {"shape": [2]}, "layers": [
    {"type": "Linear", "name": "fc", "out_features": 3}]}})");
  const Tensor weight = tensor({{1.5, -2.0}, {0.25, 4.0}, {-1.0, 0.5}}, DType::float64),
               bias = zeros({3}, DType::float64);
  io::save_safetensors(folder / "w.safetensors", {{"fc.weight", weight},
                                                  {"fc.bias", bias},
                                                  {"optimizer.fc.weight.exp_avg", weight},
                                                  {"scheduler.last_epoch", scalar(1, DType::int64)},
                                                  {"progress.loss", bias},
                                                  {"normalization.shift", bias}});
  io::save_safetensors(folder / "x.safetensors", {{"input", tensor({{2.0, 3.0}}, DType::float64)}, {"more", bias}});
  const auto out = results(folder, {"c.json", "--weights", "w.safetensors", "--input", "x.safetensors"});
  CHECK(out.find("output")->dtype() == DType::float32);
  CHECK(out.find("output")->to_vector<double>() == std::vector<double>{-3, 12.5, -0.5});
}

TEST_CASE("parameters the gradient does not reach have gradients of zeros") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [2]}, "layers": [
    {"type": "Linear", "name": "unused", "out_features": 3},
    {"type": "Linear", "name": "used", "inputs": ["input"], "out_features": 1}]})");
  io::save_npy(folder / "x.npy", ones({5, 2}));
  io::save_npy(folder / "gy.npy", ones({5, 1}));
  const auto out = results(folder, {"m.json", "--input", "x.npy", "--grad-output", "gy.npy"});
  CHECK(distance(out.find("grad.unused.weight"), zeros({3, 2})) == 0);
  CHECK(distance(out.find("grad.unused.bias"), zeros({3})) == 0);
  CHECK(distance(out.find("grad.used.weight"), full({1, 2}, 5.0)) == 0);
}

TEST_CASE("run answers PyTorch's stored cases") {
  const TempFolder folder;
  int cases = 0;
  for (const char* file : {"layers_linear.json", "layers_conv.json", "layers_pool1d.json", "layers_pool2d.json",
                           "layers_activation.json", "layers_channel_norm.json", "layers_model.json"}) {
    const json golden = test::read_golden(file);
    const std::size_t stride = std::string(file) == "layers_model.json" ? 1 : 11;  // starting a program takes its time
    for (std::size_t i = 0; i < golden["cases"].size(); i += stride) {
      const json& stored = golden["cases"][i];
      INFO(stored["name"]);
      if (stored.contains("layer") && !nn::find_layer_type(stored["layer"]["type"])) continue;
      const bool whole = stored.contains("model");
      folder.write("m.json", model_of(stored).dump());
      std::vector<NamedTensor> weights;
      for (const char* key : {"parameters", "buffers"}) {
        const json tensors = stored.value(key, json::object());
        for (const auto& [name, value] : tensors.items())
          weights.push_back({whole ? name : "layer." + name, test::golden_tensor(value, DType::float64)});
      }
      io::save_npy(folder / "x.npy", test::golden_tensor(stored["input"], DType::float64));
      io::save_npy(folder / "gy.npy", test::golden_tensor(stored["grad_output"], DType::float64));
      std::vector<std::string> arguments{"m.json",  "--input", "x.npy",  "--grad-output", "gy.npy",
                                         "--dtype", "float64", "--mode", stored["mode"]};
      if (!weights.empty()) {
        io::save_safetensors(folder / "w.safetensors", weights);
        arguments.insert(arguments.end(), {"--weights", "w.safetensors"});
      }
      const auto out = results(folder, arguments);
      const auto difference = [&](const std::string& name, const json& expected) -> std::string {
        const Tensor* found = out.find(name);
        if (!found) return name + " is missing";
        return test::golden_difference(*found, test::golden_tensor(expected, DType::float64), test::kFloat64Tolerance);
      };
      CHECK(difference("output", stored["output"]) == "");
      CHECK(difference("grad.input", stored["grad_input"]) == "");
      for (const auto& [name, value] : stored["grad_parameters"].items())
        CHECK(difference("grad." + (whole ? name : "layer." + name), value) == "");
      ++cases;
    }
  }
  CHECK(cases >= 50);
}

TEST_CASE("run takes several inputs and gives several outputs by the names of the model") {
  const TempFolder folder;
  folder.write("m.json", R"({
    "inputs": {"left": {"shape": [2]}, "index": {"shape": [3], "dtype": "int64"}, "right": {"shape": [5]}},
    "layers": [{"type": "Linear", "name": "a", "inputs": ["left"], "out_features": 5},
               {"type": "Multiply", "name": "product", "inputs": ["a", "right"]},
               {"type": "Identity", "name": "same", "inputs": ["index"]}],
    "outputs": ["product", "same", "a"]})");
  const config::LoadedModel loaded = config::load_model(folder / "m.json");
  manual_seed(5);
  const auto model = config::build_model(loaded.model);
  model->to(DType::float64);
  const Tensor left = randn({7, 2}, DType::float64), right = randn({7, 5}, DType::float64),
               index = tensor({{1, 0, 4}}, DType::int64), gy = randn({7, 5}, DType::float64),
               ga = randn({7, 5}, DType::float64);
  left.requires_grad_();
  right.requires_grad_();
  const auto outputs = model->forward_outputs(std::vector<Tensor>{left, index, right});
  outputs[0].backward(gy, true);
  outputs[2].backward(ga);
  io::save_safetensors(folder / "w.safetensors", model->state_dict());
  io::save_safetensors(folder / "x.safetensors", {{"left", left}, {"index", index}, {"right", right}});
  io::save_safetensors(folder / "gy.safetensors", {{"product", gy}, {"a", ga}});
  const auto out = results(folder, {"m.json", "--weights", "w.safetensors", "--input", "x.safetensors", "--grad-output",
                                    "gy.safetensors", "--dtype", "float64"});
  CHECK(names(out) ==
        std::vector<std::string>{"a", "grad.a.bias", "grad.a.weight", "grad.left", "grad.right", "product", "same"});
  CHECK(distance(out.find("product"), outputs[0]) == 0);
  CHECK(distance(out.find("same"), index) == 0);
  CHECK(distance(out.find("a"), outputs[2]) == 0);
  CHECK(distance(out.find("grad.left"), left.grad()) < 1e-15);
  CHECK(distance(out.find("grad.right"), right.grad()) == 0);
  for (const auto& [name, parameter] : model->named_parameters())
    CHECK(distance(out.find("grad." + name), parameter.grad()) < 1e-14);

  const auto refused = [&](const char* option, const char* file) {
    std::vector<std::string> arguments{"run",           "m.json",         "--input",  "x.safetensors",
                                       "--grad-output", "gy.safetensors", "--output", "out.safetensors"};
    *(std::find(arguments.begin(), arguments.end(), option) + 1) = file;
    const Outcome outcome = run_taper(folder.path(), arguments);
    CHECK(outcome.exit == 1);
    return outcome.err;
  };
  io::save_npy(folder / "x.npy", left);
  CHECK(refused("--input", "x.npy") ==
        "taper: x.npy: an npy file holds one array: expected a safetensors file with left, index, right, got npy\n");
  io::save_safetensors(folder / "less.safetensors", {{"left", left}, {"index", index}});
  CHECK(refused("--input", "less.safetensors") ==
        "taper: less.safetensors: a tensor is missing: expected right, got index, left\n");
  io::save_safetensors(folder / "swapped.safetensors", {{"left", index}, {"index", index}, {"right", right}});
  CHECK(refused("--input", "swapped.safetensors") ==
        "taper: swapped.safetensors: wrong element type of left: expected a floating one, got int64\n");
  io::save_safetensors(folder / "swapped.safetensors", {{"left", left}, {"index", left}, {"right", right}});
  CHECK(refused("--input", "swapped.safetensors") ==
        "taper: swapped.safetensors: wrong element type of index: expected whole numbers, got float64\n");
  io::save_safetensors(folder / "one.safetensors", {{"product", gy}});
  CHECK(refused("--grad-output", "one.safetensors") ==
        "taper: one.safetensors: a tensor is missing: expected a, got product\n");
}

TEST_CASE("run uses a model's own names for a single input and output, from npy files too") {
  const TempFolder folder;
  folder.write("m.json", R"({"inputs": {"x": {"shape": [2]}}, "layers": [
    {"type": "Linear", "name": "fc", "out_features": 3}], "outputs": ["fc"]})");
  io::save_npy(folder / "x.npy", ones({5, 2}));
  io::save_npy(folder / "gy.npy", ones({5, 3}));
  const auto out = results(folder, {"m.json", "--input", "x.npy", "--grad-output", "gy.npy"});
  CHECK(names(out) ==
        std::vector<std::string>{"fc", "grad.fc.bias", "grad.fc.weight", "grad.x", "param.fc.bias", "param.fc.weight"});
}

TEST_CASE("run refuses a model with an unknown key") {
  const TempFolder folder;
  folder.write("m.json", R"({"input": {"shape": [2]}, "layers": [{"type": "ReLU"}], "layres": []})");
  io::save_npy(folder / "x.npy", ones({5, 2}));
  const Outcome outcome = run_taper(folder.path(), {"run", "m.json", "--input", "x.npy", "--output", "o"});
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("unknown key; did you mean layers?") != std::string::npos);
}

TEST_CASE("run answers PyTorch's stored models of several inputs and outputs, with blocks and running statistics") {
  const TempFolder folder;
  using Json = nlohmann::ordered_json;
  Json cases = Json::array();
  for (const char* file : {"models_wired.json", "models_drawn.json"}) {
    const Json golden = test::read_golden<Json>(file);
    cases.insert(cases.end(), golden["cases"].begin(), golden["cases"].end());
  }
  CHECK(cases.size() >= 59);
  int with_buffers = 0;
  // One tensor under `key` alone is the model's only one; several stand under the plural.
  const auto tensors_of = [](const Json& stored, const std::string& key, const char* alone) {
    std::vector<NamedTensor> tensors;
    const Json several = stored.contains(key) ? Json{{alone, stored[key]}} : stored[key + "s"];
    for (const auto& [name, value] : several.items())
      if (!value.is_null()) tensors.push_back({name, test::golden_tensor(value, DType::float64)});
    return tensors;
  };
  for (const Json& stored : cases) {
    INFO(stored["name"]);
    folder.write("m.json", stored["model"].dump());
    std::vector<NamedTensor> weights;
    for (const char* kind : {"parameters", "buffers"})
      if (stored.contains(kind))
        for (const auto& [name, value] : stored[kind].items())
          weights.push_back({name, test::golden_tensor(value, DType::float64)});
    io::save_safetensors(folder / "x.safetensors", tensors_of(stored, "input", "input"));
    io::save_safetensors(folder / "gy.safetensors", tensors_of(stored, "grad_output", "output"));
    std::vector<std::string> arguments{"m.json",  "--input", "x.safetensors", "--grad-output", "gy.safetensors",
                                       "--dtype", "float64", "--mode",        stored["mode"]};
    if (!weights.empty()) {
      io::save_safetensors(folder / "w.safetensors", weights);
      arguments.insert(arguments.end(), {"--weights", "w.safetensors"});
    }
    const auto out = results(folder, arguments);
    std::size_t compared = 0;
    const auto compare = [&](const std::string& prefix, const std::vector<NamedTensor>& expected) {
      for (const auto& [name, tensor] : expected) {
        INFO(prefix + name);
        const Tensor* found = out.find(prefix + name);
        REQUIRE(found);
        CHECK(test::golden_difference(*found, tensor, {.relative = 1e-12, .floor = 1}) == "");
        ++compared;
      }
    };
    compare("", tensors_of(stored, "output", "output"));
    compare("grad.", tensors_of(stored, "grad_input", "input"));
    std::vector<NamedTensor> gradients;
    for (const auto& [name, value] : stored["grad_parameters"].items())
      if (!value.is_null()) gradients.push_back({name, test::golden_tensor(value, DType::float64)});
    compare("grad.", gradients);
    std::vector<NamedTensor> buffers;
    if (stored["mode"] == "train" && stored.contains("buffers_after"))
      for (const auto& [name, value] : stored["buffers_after"].items())
        buffers.push_back({name, test::golden_tensor(value, DType::float64)});
    compare("buffer.", buffers);
    with_buffers += !buffers.empty();
    CHECK(compared == out.tensors.size());
  }
  CHECK(with_buffers > 0);
}
