#include <algorithm>
#include <filesystem>

#include "config/model_json.hpp"
#include "config/training_config.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/conv.hpp"
#include "taper/nn/linear.hpp"
#include "taper/nn/norm.hpp"
#include "taper/nn/pool.hpp"
#include "taper/ops.hpp"

using namespace taper;

namespace {

const std::string kConfigs = TAPER_SOURCE_DIR "/examples/configs/";

nn::Conv2dOptions conv3(std::int64_t in, std::int64_t out, std::int64_t stride = 1) {
  return {.in_channels = in, .out_channels = out, .kernel_size = 3, .stride = stride, .padding = 1, .bias = false};
}

/// The blocks of residual.json, written by hand.
struct Block : nn::Module {
  Block(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(conv3(in, out, stride)),
        norm1({.num_features = out}),
        conv2(conv3(out, out)),
        norm2({.num_features = out}) {
    register_modules({{"conv1", conv1}, {"norm1", norm1}, {"conv2", conv2}, {"norm2", norm2}});
    if (in == out) return;
    shortcut = nn::make<nn::Conv2d>({.in_channels = in, .out_channels = out, .kernel_size = 1, .stride = stride});
    register_module("shortcut", *shortcut);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = norm2(conv2(relu(norm1(conv1(x)))));
    return relu(add(y, shortcut ? (*shortcut)(x) : x));
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d norm1;
  nn::Conv2d conv2;
  nn::BatchNorm2d norm2;
  Shared<nn::Conv2d> shortcut;
};

struct Residual : nn::Module {
  Residual() { register_modules({{"stem", stem}, {"norm", norm}, {"block1", block1}, {"block2", block2}, {"fc", fc}}); }
  Tensor forward(const Tensor& x) override {
    return fc(nn::functional::adaptive_avg_pool2d(block2(block1(relu(norm(stem(x))))), {.output_size = 2}).flatten(1));
  }
  nn::Conv2d stem{conv3(1, 8)};
  nn::BatchNorm2d norm{{.num_features = 8}};
  Block block1{8, 8, 1}, block2{8, 16, 2};
  nn::Linear fc{{.in_features = 64, .out_features = 10}};
};

/// The result, all gradients and all buffers of one step from seed 5, with their names.
std::vector<std::pair<std::string, std::vector<float>>> step(nn::Module& model) {
  manual_seed(11);
  const Tensor x = randn({7, 1, 8, 8}).requires_grad_();
  const Tensor y = model(x);
  y.backward(randn(y.shape()));
  std::vector<std::pair<std::string, std::vector<float>>> all{{"output", y.to_vector<float>()},
                                                              {"input", x.grad().to_vector<float>()}};
  for (const auto& [name, parameter] : model.named_parameters())
    all.push_back({name, parameter.grad().to_vector<float>()});
  for (const auto& [name, buffer] : model.named_buffers()) all.push_back({name, buffer.to_vector<float>()});
  return all;
}

}  // namespace

TEST_CASE("every example config resolves to itself, and its model takes a batch") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs)) {
    INFO(entry.path());
    const config::TrainingConfig read = config::load_training_config(entry.path().string());
    const std::string resolved = read.to_json();
    CHECK(config::parse_training_config(resolved, entry.path().string()).to_json() == resolved);
    const Shape batch = Shape{3}.concat(read.model.input());
    CHECK(config::build_model(read.model)->forward(randn(batch)).shape() == Shape{3}.concat(read.model.output()));
    ++count;
  }
  CHECK(count >= 4);
}

TEST_CASE("the residual example gives the bits of the same blocks written in C++") {
  const config::TrainingConfig read = config::load_training_config(kConfigs + "residual.json");
  manual_seed(5);
  const auto from_json = config::build_model(read.model);
  manual_seed(5);
  Residual by_hand;
  const auto expected = step(by_hand);
  auto got = step(*from_json);
  REQUIRE(got.size() == expected.size());
  for (const auto& wanted : expected) {
    INFO(wanted.first);
    const auto it =
        std::find_if(got.begin(), got.end(), [&](const auto& entry) { return entry.first == wanted.first; });
    REQUIRE(it != got.end());
    CHECK(test::same_bits(it->second, wanted.second));
  }
}
