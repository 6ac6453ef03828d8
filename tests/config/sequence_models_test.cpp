#include "config/model_json.hpp"
#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/nn/attention.hpp"
#include "taper/nn/graph.hpp"
#include "taper/nn/rnn.hpp"
#include "train/trainer.hpp"

// Models of recurrent layers and attention, described in JSON.
using namespace taper;
using namespace taper::config;

namespace {

constexpr const char* kTranslator = R"({
  "inputs": {"source": {"shape": [7, 5]}, "target": {"shape": [3, 2]}},
  "layers": [
    {"type": "LSTM", "name": "encoder", "inputs": ["source"], "hidden_size": 4, "num_layers": 2, "batch_first": true},
    {"type": "LSTM", "name": "decoder", "inputs": ["target", "encoder.h_n", "encoder.c_n"], "hidden_size": 4,
     "num_layers": 2, "batch_first": true},
    {"type": "MultiheadAttention", "name": "attention", "inputs": ["decoder", "encoder", "encoder"], "num_heads": 2,
     "batch_first": true},
    {"type": "Linear", "name": "fc", "out_features": 11}],
  "outputs": ["fc", "attention.attn_weights", "encoder.h_n", "decoder.c_n"]})";

}  // namespace

TEST_CASE("an encoder hands its states to a decoder that attends to it, all from JSON") {
  const LoadedModel loaded = parse_model(kTranslator, "m.json");
  INFO(loaded.errors);
  REQUIRE(loaded.model.complete);
  manual_seed(3);
  const auto model = build_model(loaded.model);
  const Tensor source = uniform({13, 7, 5}, -1, 1), target = uniform({13, 3, 2}, -1, 1), inputs[] = {source, target};
  const auto results = model->forward_outputs(inputs);
  REQUIRE(results.size() == 4);

  nn::LSTM encoder({.input_size = 5, .hidden_size = 4, .num_layers = 2, .batch_first = true});
  nn::LSTM decoder({.input_size = 2, .hidden_size = 4, .num_layers = 2, .batch_first = true});
  nn::MultiheadAttention attention({.embed_dim = 4, .num_heads = 2, .batch_first = true});
  nn::Linear fc({.in_features = 4, .out_features = 11});
  struct Whole : nn::Module {
    Whole(Module& a, Module& b, Module& c, Module& d) {
      register_modules({{"encoder", a}, {"decoder", b}, {"attention", c}, {"fc", d}});
    }
  } whole(encoder, decoder, attention, fc);
  whole.load_state_dict(model->state_dict());
  const auto encoded = encoder.forward_with_state(source);
  const auto decoded = decoder.forward_with_state(target, {encoded.h_n, encoded.c_n});
  const auto attended = attention.attend(decoded.output, encoded.output, encoded.output);
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && test::same_bits(a.to_vector<float>(), b.to_vector<float>());
  };
  CHECK(same(results[0], fc(attended.output)));
  CHECK(same(results[1], attended.weights));
  CHECK(same(results[2], encoded.h_n));
  CHECK(same(results[3], decoded.c_n));
}

TEST_CASE("a model in JSON says which states and weights a layer does not give or take") {
  const auto error = [](const std::string& layers) {
    const std::string text =
        parse_model(R"({"input": {"shape": [7, 5]}, "layers": [)" + layers + "]}", "m.json").errors;
    const std::size_t from = text.find("error: ");
    return text.substr(from, text.find('\n', from) - from);
  };
  const std::string gru = R"({"type": "GRU", "name": "gru", "hidden_size": 3, "batch_first": true})";
  CHECK(error(gru + R"(, {"type": "Linear", "inputs": ["gru.c_n"], "out_features": 2})") ==
        "error: /layers/1/inputs/0 (layer Linear 1): GRU has no further result of this name: expected \"gru.h_n\", got "
        "\"gru.c_n\"; did you mean gru.h_n?");
  CHECK(error(gru + R"(, {"type": "LSTM", "inputs": ["input", "gru.h_n"], "hidden_size": 3, "batch_first": true})") ==
        "error: /layers/1/inputs (layer LSTM 1): LSTM: takes the input and all initial states or none: expected 1 or 3 "
        "inputs, got 2; shapes: input [7, 5] -> gru [7, 3] -> LSTM");
  CHECK(error(gru + R"(, {"type": "GRU", "inputs": ["input", "gru.h_n"], "hidden_size": 2, "batch_first": true})") ==
        "error: /layers/1 (layer GRU 1): gru: h_0 does not fit: expected [1, N, 2], got [1, 1, 3]; shapes: input "
        "[7, 5] -> gru [7, 3] -> GRU");
}

TEST_CASE("the last step of a recurrent layer feeds a Linear, whatever way round the input comes") {
  const LoadedModel loaded = parse_model(R"({"input": {"shape": [5, 7]}, "layers": [
    {"type": "Permute", "dims": [0, 2, 1]},
    {"type": "GRU", "name": "gru", "hidden_size": 3, "batch_first": true},
    {"type": "Select", "dim": 1, "index": -1},
    {"type": "Linear", "name": "fc", "out_features": 2}]})",
                                         "m.json");
  INFO(loaded.errors);
  REQUIRE(loaded.model.complete);
  manual_seed(3);
  const auto model = build_model(loaded.model);
  nn::GRU gru({.input_size = 5, .hidden_size = 3, .batch_first = true});
  nn::Linear fc({.in_features = 3, .out_features = 2});
  struct Whole : nn::Module {
    Whole(Module& a, Module& b) { register_modules({{"gru", a}, {"fc", b}}); }
  } whole(gru, fc);
  whole.load_state_dict(model->state_dict());
  const Tensor x = uniform({11, 5, 7}, -1, 1);
  const Tensor expected = fc(gru.forward_with_state(x.transpose(1, 2)).h_n.select(0, 0));
  CHECK(test::same_bits((*model)(x).to_vector<float>(), expected.to_vector<float>()));
}

TEST_CASE("a small LSTM described in JSON learns who speaks") {
  const TempFolder folder;
  const auto config = parse_training_config(R"({
  "model": {"input": {"shape": [12, 25]}, "layers": [
    {"type": "Transpose", "dim0": 1, "dim1": 2},
    {"type": "LSTM", "hidden_size": 16, "bidirectional": true, "batch_first": true},
    {"type": "MultiheadAttention", "num_heads": 4, "batch_first": true},
    {"type": "Select", "dim": 1, "index": 12},
    {"type": "Linear", "out_features": 9}]},
  "data": {
    "train": {"path": ")" TAPER_SOURCE_DIR R"(/data/japanese_vowels.npz", "inputs": "x_train", "targets": "y_train"},
    "validation": {"path": ")" TAPER_SOURCE_DIR R"(/data/japanese_vowels.npz", "inputs": "x_test", "targets": "y_test"},
    "normalize": "standard"},
  "loss": {"type": "CrossEntropyLoss"},
  "optimizer": {"type": "Adam", "lr": 0.01},
  "train": {"epochs": 8, "batch_size": 16, "seed": 1},
  "metrics": ["accuracy"]})",
                                            "vowels.json");
  const auto result = train::train(config, train::RunDirectory::create_at(folder / "run"));
  REQUIRE(result.columns.back() == "val_accuracy");
  CHECK(result.last_row.back() > 0.9);
}
