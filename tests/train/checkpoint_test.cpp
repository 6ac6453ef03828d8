#include "train/checkpoint.hpp"

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/tiny_training.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"
#include "taper/nn/linear.hpp"
#include "taper/ops.hpp"

using namespace taper;
using namespace taper::train;

namespace {

/// A file like `path`, after `change(tensors, metadata)`.
template <class Change>
std::string changed(const TinyTraining& tiny, const std::string& path, Change change) {
  io::SafetensorsFile file = io::load_safetensors(path);
  change(file.tensors, file.metadata);
  const std::string copy = tiny.path("changed.safetensors");
  io::save_safetensors(copy, file.tensors, file.metadata);
  return copy;
}

using Tensors = std::vector<NamedTensor>;

std::string* entry(io::Metadata& metadata, std::string_view key) {
  for (auto& [name, value] : metadata)
    if (name == key) return &value;
  return nullptr;
}

void remove(Tensors& tensors, std::string_view name) {
  std::erase_if(tensors, [&](const NamedTensor& t) { return t.name == name; });
}

}  // namespace

TEST_CASE("a checkpoint is a safetensors file with the model under PyTorch's names") {
  const TinyTraining tiny;
  tiny.last_of("run");
  const io::SafetensorsFile file = io::load_safetensors(tiny.path("run/checkpoints/last.safetensors"));
  for (const char* name :
       {"conv.weight", "conv.bias", "fc.weight", "fc.bias", "optimizer.lr", "optimizer.conv.weight.exp_avg",
        "optimizer.fc.bias.step", "scheduler.last_epoch", "normalization.shift", "normalization.scale"}) {
    INFO(name);
    CHECK(file.find(name));
  }
  CHECK(file.find("conv.weight")->shape() == Shape{4, 3, 3});
  CHECK(*file.find_metadata("taper.format_version") == "1");
  CHECK(*file.find_metadata("taper.config") == tiny.config().to_json());
  CHECK(file.find_metadata("taper.config")->find("run/") == std::string::npos);
}

TEST_CASE("what is saved is what is loaded") {
  const TinyTraining tiny;
  Checkpoint c;
  c.config = "{}";
  c.model = {{"fc.weight", tensor({{1.5, 2.5}})}};
  c.optimizer = {{"optimizer.lr", tensor(0.5)}};
  c.scheduler = {{"scheduler.last_epoch", tensor(3.0)}};
  c.normalization = {tensor({0.1, 0.2}), tensor({1.0, 3.0})};
  c.labels = {"a \"b\"", "\xC3\xA4"};
  c.fingerprints = {{"train", "5-0000"}};
  c.progress.epoch = 2;
  c.progress.batch = 3;
  c.progress.step = 11;
  c.progress.sums.add_loss(0.1, 4);
  c.progress.best = {.value = 1.0 / 3, .epoch = 2, .waited = 1};
  c.random = {.seed = UINT64_MAX, .positions = {1, 2, UINT64_MAX - 1, 4, 5}};
  const std::string path = tiny.path("c.safetensors");
  save_checkpoint(path, c);
  const Checkpoint d = load_checkpoint(path);
  CHECK(d.config == c.config);
  REQUIRE(d.model.size() == 1);
  CHECK(d.model[0].name == "fc.weight");
  CHECK(d.optimizer[0].name == "optimizer.lr");
  CHECK(d.scheduler[0].name == "scheduler.last_epoch");
  CHECK(d.normalization.scale.to_vector<float>() == std::vector<float>{1, 3});
  CHECK(d.labels == c.labels);
  CHECK(d.fingerprints == c.fingerprints);
  CHECK(d.progress.step == 11);
  CHECK(d.progress.sums.loss == 0.1);
  CHECK(d.progress.sums.samples == 4);
  CHECK(d.progress.best.value == 1.0 / 3);
  CHECK_FALSE(d.progress.stopping.value);
  CHECK(d.random.seed == UINT64_MAX);
  CHECK(d.random.positions[2] == UINT64_MAX - 1);
  save_checkpoint(tiny.path("d.safetensors"), d);
  CHECK(slurp(tiny.path("d.safetensors")) == slurp(path));
}

TEST_CASE("a checkpoint alone predicts as the trained model does") {
  const TinyTraining tiny;
  const RunDirectory run = RunDirectory::create_at(tiny.path("run"));
  const TrainResult result = train::train(tiny.config(), run);
  const std::string copy = tiny.folder().write("alone.safetensors", slurp(run.last()));
  std::remove(tiny.data_path().c_str());
  const TrainedModel model = load_for_prediction(copy);
  CHECK_FALSE(model.model->is_training());
  const Tensor x = rand({5, 3, 5});
  const auto expected = predict(*result.trained.model, result.trained.prepare(x)).to_vector<float>();
  CHECK(predict(*model.model, model.prepare(x)).to_vector<float>() == expected);
  CHECK(predict(*model.model, model.prepare(x), 2).to_vector<float>() == expected);
  CHECK(test::message_of([&] {
          model.prepare(zeros({5, 3, 6}));
        }) == "data: inputs do not fit the model: expected [N, 3, 5], got [5, 3, 6]");
}

TEST_CASE("every cut of a checkpoint is refused") {
  const TinyTraining tiny;
  const std::string bytes = tiny.last_of("run");
  for (std::size_t size = 0; size < bytes.size(); size += 97) {
    INFO(size);
    const std::string path = tiny.folder().write("cut.safetensors", std::string_view(bytes).substr(0, size));
    CHECK_THROWS_AS(load_checkpoint(path), Error);
  }
}

TEST_CASE("flipped bits of a checkpoint are refused") {
  const TinyTraining tiny;
  std::string bytes = tiny.last_of("run");
  for (std::size_t i = 0; i < bytes.size(); i += 61) {
    INFO(i);
    bytes[i] = char(bytes[i] ^ 4);
    const std::string path = tiny.folder().write("flipped.safetensors", bytes);
    CHECK_THROWS_AS(load_checkpoint(path), Error);
    bytes[i] = char(bytes[i] ^ 4);
  }
}

TEST_CASE("plain weights, newer formats and damaged metadata are refused as checkpoints") {
  const TinyTraining tiny;
  tiny.last_of("run");
  const std::string last = tiny.path("run/checkpoints/last.safetensors"), copy = tiny.path("changed.safetensors");
  const auto refusal = [&](auto change) {
    changed(tiny, last, change);
    return test::message_of([&] { load_checkpoint(copy); });
  };
  CHECK(refusal([](Tensors&, io::Metadata& m) { m.clear(); }) ==
        copy + ": not a checkpoint: expected the metadata of one, got plain weights; load them into a model");
  CHECK(refusal([](Tensors&, io::Metadata& m) { *entry(m, "taper.format_version") = "2"; }) ==
        copy + ": version of the format: expected at most 1, got 2; a newer Taper reads it");
  CHECK(refusal([](Tensors&, io::Metadata& m) { *entry(m, "taper.training") = "{}"; }) ==
        copy + ": metadata taper.training: expected a member epoch, got none");
  CHECK(refusal([](Tensors&, io::Metadata& m) { *entry(m, "taper.labels") = "3"; }) ==
        copy + ": metadata taper.labels: expected a list, got 3");
  CHECK(refusal([](Tensors&, io::Metadata& m) {
          *entry(m, "taper.labels") = "[[[";
        }).starts_with(copy + ": metadata taper.labels: expected JSON, got "));
  CHECK(refusal([](Tensors& t, io::Metadata&) { remove(t, "normalization.scale"); }) ==
        copy + ": normalization: expected shift and scale, float32 [C], got [3] and none");
}

TEST_CASE("a checkpoint of another model changes nothing of the model it is loaded into") {
  const TinyTraining tiny;
  tiny.last_of("run");
  const std::string last = tiny.path("run/checkpoints/last.safetensors");
  const auto model = config::build_model(tiny.config().model);
  const auto values = [&] {
    std::vector<float> all;
    for (const auto& named : model->state_dict())
      for (const float value : named.tensor.to_vector<float>()) all.push_back(value);
    return all;
  };
  const std::vector<float> before = values();
  for (const auto& change : {+[](Tensors&t, io::Metadata&) { remove(t, "fc.bias"); },
                             +[](Tensors&t, io::Metadata&) {
                               t.push_back({"extra.weight", zeros({2})});
                             },
                             +[](Tensors&t, io::Metadata&) {
                               remove(t, "fc.weight");
                               t.push_back({"fc.weight", zeros({3, 19})});
                             },
                             +[](Tensors&t, io::Metadata&) {
                               remove(t, "fc.weight");
                               t.push_back({"fc.weight", zeros({3, 20}, DType::int64)});
                             }}) {
    const std::string path = changed(tiny, last, change);
    const std::string message = test::message_of([&] { load_weights(path, *model); });
    CHECK(message.starts_with(path + ": "));
    CHECK(values() == before);
    CHECK(test::message_of([&] { load_for_prediction(path); }).starts_with(path + ": "));
  }
  load_weights(last, *model);
  CHECK(values() != before);
}

TEST_CASE("plain weights of PyTorch are loaded into a model") {
  const TinyTraining tiny;
  nn::Linear layer({.in_features = 2, .out_features = 3});
  const std::string path = tiny.path("plain.safetensors");
  io::save_safetensors(path, {{"weight", full({3, 2}, 0.5)}, {"bias", tensor({1.0, 2.0, 3.0})}});
  load_weights(path, layer);
  CHECK(layer(ones({1, 2})).to_vector<float>() == std::vector<float>{2, 3, 4});
}

TEST_CASE("layers whose names would be taken for the state of a training are refused") {
  CHECK_NOTHROW(check_names({{"optimizers.weight", zeros({1})}}));
  CHECK(test::message_of([] {
          check_names({{"optimizer.weight", zeros({1})}});
        }) == "checkpoint: layer name is taken by checkpoints: expected another than optimizer, got optimizer.weight");
}
