// A model of one's own, twice: as a C++ struct, the way a PyTorch class is written, and as JSON. Both are the same
// layers, so the same seed gives them the same parameters, outputs and gradients, bit for bit.
#include <cstdio>
#include <cstring>
#include <taper/taper.hpp>

using namespace taper;

namespace {

constexpr std::int64_t kChannels = 3, kLength = 10, kClasses = 5;

// Members are the layers; register_modules gives them the names that parameters and checkpoints carry.
struct MyModel : nn::Module {
  nn::Conv1d conv1;
  nn::ReLU relu1;
  nn::AvgPool1d avg_pool;
  nn::Linear fc;

  MyModel(std::int64_t input_channels, std::int64_t sequence_length, std::int64_t num_classes)
      : conv1({.in_channels = input_channels, .out_channels = 32, .kernel_size = 3, .padding = 1}),
        avg_pool({.kernel_size = sequence_length}),  // one window: the mean over the whole sequence
        fc({.in_features = 32, .out_features = num_classes}) {
    register_modules({{"conv1", conv1}, {"relu1", relu1}, {"avg_pool", avg_pool}, {"fc", fc}});
  }

  Tensor forward(const Tensor& input) override {
    Tensor x = conv1(input);
    x = relu1(x);
    x = avg_pool(x);
    x = x.squeeze(2);  // [N, 32, 1] to [N, 32]: what a linear layer reads
    return fc(x);
  }

  // C++ does not tell a program its own names; this one is for the printed form.
  std::string type_name() const override { return "MyModel"; }
};

// in_channels and in_features are left out: they follow from the shapes.
const char* const kJson = R"({
  "input": {"shape": [3, 10]},
  "layers": [
    {"type": "Conv1d", "name": "conv1", "out_channels": 32, "kernel_size": 3, "padding": 1},
    {"type": "ReLU", "name": "relu1"},
    {"type": "AvgPool1d", "name": "avg_pool", "kernel_size": 10},
    {"type": "Squeeze", "dim": 2},
    {"type": "Linear", "name": "fc", "out_features": 5}
  ]
})";

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data<float>(), b.data<float>(), std::size_t(a.numel()) * sizeof(float)) == 0;
}

}  // namespace

int main() {
  manual_seed(7);
  MyModel by_hand(kChannels, kLength, kClasses);
  manual_seed(7);
  const auto from_json = model_from_json(kJson);
  std::printf("%s\n\n", by_hand.to_string().c_str());

  const Tensor input = randn({2, kChannels, kLength});
  const Tensor output = by_hand(input);
  const Tensor other = (*from_json)(input);
  std::printf("%s -> %s, from C++ and from JSON: %s\n", to_string(input.shape()).c_str(),
              to_string(output.shape()).c_str(), same_bits(output, other) ? "same bits" : "DIFFERENT");

  output.sum().backward();
  other.sum().backward();
  const auto mine = by_hand.named_parameters(), theirs = from_json->named_parameters();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const Tensor &a = mine[i].tensor, &b = theirs[i].tensor;
    const bool same = mine[i].name == theirs[i].name && same_bits(a, b) && same_bits(a.grad(), b.grad());
    std::printf("%-13s %-11s %s\n", mine[i].name.c_str(), to_string(a.shape()).c_str(),
                same ? "same values and gradients" : "DIFFERENT");
  }

  // Equal names also mean that either model loads what the other has saved, and what PyTorch has saved.
  std::printf("state dict fits: %s\n",
              from_json->load_state_dict(by_hand.state_dict()).complete() ? "completely" : "NO");

  // Mistakes in JSON are all reported at once, before a single parameter is made.
  try {
    model_from_json(R"({
  "input": {"shape": [3, 10]},
  "layers": [
    {"type": "Conv1d", "out_channels": 32, "kernal_size": 3},
    {"type": "AvgPool1D", "kernel_size": 10}
  ]
})");
  } catch (const Error& error) {
    std::printf("\n%s\n", error.what());
  }
}
