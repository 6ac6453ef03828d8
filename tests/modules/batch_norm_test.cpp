#include <algorithm>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/infer.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"
#include "taper/nn/norm.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::infer;
namespace F = taper::nn::functional;
using test::relative_error;

namespace {

using Doubles = std::vector<double>;

std::vector<std::string> names_of(const nn::StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("batch norm gives hand-worked values and gradients") {
  // Channel 0 holds 1 and 3 (mean 2, variance 1), channel 1 holds -4 and 4 (mean 0, variance 16).
  const Tensor x = tensor({{1, -4}, {3, 4}}, DType::float64).requires_grad_();
  const Tensor w = tensor({2, 3}, DType::float64).requires_grad_(),
               b = tensor({10, 20}, DType::float64).requires_grad_();
  const Tensor y = F::batch_norm(x, Tensor(), Tensor(), w, b, {.training = true, .eps = 3});
  const double s = 1 / std::sqrt(1.0 + 3), t = 4 / std::sqrt(16.0 + 3);
  CHECK(relative_error(y.to_vector<double>(), {10 - 2 * s, 20 - 3 * t, 10 + 2 * s, 20 + 3 * t}) < 1e-15);
  y.backward(tensor({{1, 1}, {0, 0}}, DType::float64));
  // dy - mean(dy) = +-1/2, mean(dy h) = -s/2: dx = w / sqrt(4) (1/2 - s s / 2) = 2/2 (1/2 - 1/8)
  CHECK(relative_error(x.grad().to_vector<double>(), {0.375, 3 / std::sqrt(19.0) * (0.5 - t * t / 2), -0.375,
                                                      -3 / std::sqrt(19.0) * (0.5 - t * t / 2)}) < 1e-15);
  CHECK(relative_error(w.grad().to_vector<double>(), {-s, -t}) < 1e-15);
  CHECK(b.grad().to_vector<double>() == Doubles{1, 1});
}

TEST_CASE("BatchNorm keeps running statistics as PyTorch does") {
  nn::BatchNorm1d norm({.num_features = 2, .momentum = 0.25});
  norm(tensor({{1, -4}, {3, 4}}, DType::float32));
  CHECK(norm.running_mean.to_vector<double>() == Doubles{0.5, 0});
  CHECK(norm.running_var.to_vector<double>() == Doubles{0.75 + 0.25 * 2, 0.75 + 0.25 * 32});  // unbiased
  CHECK(norm.num_batches_tracked.item() == 1);
  norm.eval();
  const Tensor y = norm(tensor({{1.5, 0}}, DType::float32));
  CHECK(norm.num_batches_tracked.item() == 1);
  CHECK(norm.running_mean.to_vector<double>() == Doubles{0.5, 0});
  CHECK(relative_error(y.to_vector<float>(), {1 / std::sqrt(1.25 + 1e-5), 0}) < 1e-7);
  norm.reset_running_stats();
  CHECK(norm.running_mean.to_vector<double>() == Doubles{0, 0});
  CHECK(norm.running_var.to_vector<double>() == Doubles{1, 1});
  CHECK(norm.num_batches_tracked.item() == 0);
}

TEST_CASE("BatchNorm is a member of a class with its options, of which those left out have PyTorch's defaults") {
  struct Block : nn::Module {
    nn::BatchNorm2d norm{{.num_features = 3}};
    nn::BatchNorm1d plain{{.num_features = 2, .momentum = {}}};
    Block() { register_modules({{"norm", norm}, {"plain", plain}}); }
    Tensor forward(const Tensor& x) override { return norm(x); }
  };
  Block block;
  CHECK(block.norm.options().momentum == 0.1);
  CHECK(!block.plain.options().momentum);
  CHECK(block.parameters().size() == 4);
}

TEST_CASE("BatchNorm without momentum keeps the plain average of all batches") {
  nn::BatchNorm1d norm({.num_features = 1, .momentum = std::nullopt});
  for (const int mean : {3, 6, 12, 24}) norm(tensor({{mean - 2}, {mean + 2}}, DType::float32));
  CHECK(relative_error(norm.running_mean.to_vector<double>(), {45.0 / 4}) < 1e-6);
  CHECK(relative_error(norm.running_var.to_vector<double>(), {8}) < 1e-6);
  CHECK(norm.num_batches_tracked.item() == 4);
}

TEST_CASE("BatchNorm without running statistics takes those of the batch in evaluation too") {
  nn::BatchNorm1d norm({.num_features = 3, .track_running_stats = false});
  const Tensor x = rand({5, 3, 7});
  const auto trained = norm(x).to_vector<float>();
  norm.eval();
  CHECK(norm(x).to_vector<float>() == trained);
  norm.reset_running_stats();
  CHECK(norm.state_dict().size() == 2);
}

TEST_CASE("BatchNorm's state has PyTorch's names and types") {
  nn::BatchNorm2d norm({.num_features = 3});
  CHECK(names_of(norm.state_dict()) ==
        std::vector<std::string>{"weight", "bias", "running_mean", "running_var", "num_batches_tracked"});
  CHECK(names_of(norm.named_parameters()) == std::vector<std::string>{"weight", "bias"});
  CHECK(norm.num_batches_tracked.dtype() == DType::int64);
  CHECK(norm.num_batches_tracked.shape() == Shape{});
  CHECK(norm.weight.to_vector<double>() == Doubles{1, 1, 1});
  CHECK(norm.bias.to_vector<double>() == Doubles{0, 0, 0});
  CHECK(names_of(nn::BatchNorm1d({.num_features = 3, .affine = false, .track_running_stats = false}).state_dict()) ==
        std::vector<std::string>{});
  CHECK(names_of(nn::BatchNorm3d({.num_features = 3, .track_running_stats = false, .bias = false}).state_dict()) ==
        std::vector<std::string>{"weight"});
}

TEST_CASE("BatchNorm loads what PyTorch saved, and saves it again") {
  const nn::StateDict state = {{"weight", tensor({2, 3}, DType::float32)},
                               {"bias", tensor({4, 5}, DType::float32)},
                               {"running_mean", tensor({6, 7}, DType::float32)},
                               {"running_var", tensor({8, 9}, DType::float32)},
                               {"num_batches_tracked", scalar(11, DType::int64)}};
  nn::BatchNorm1d norm({.num_features = 2});
  norm.load_state_dict(io::safetensors_from_bytes(io::safetensors_to_bytes(state)).tensors);
  CHECK(norm.num_batches_tracked.item() == 11);
  CHECK(norm.running_var.to_vector<double>() == Doubles{8, 9});
  CHECK(io::safetensors_to_bytes(norm.state_dict()) == io::safetensors_to_bytes(state));
  nn::StateDict wrong = state;
  wrong[4].tensor = scalar(11, DType::float32);
  CHECK_THROWS_WITH(norm.load_state_dict(wrong),
                    "load_state_dict: num_batches_tracked has another element type: expected int64, got float32");
}

TEST_CASE("BatchNorm in another type keeps counting in int64") {
  nn::BatchNorm1d norm({.num_features = 2});
  norm.to(DType::float64);
  CHECK(norm.num_batches_tracked.dtype() == DType::int64);
  CHECK(norm.running_mean.dtype() == DType::float64);
  norm(tensor({{1, -4}, {3, 4}}, DType::float64));
  CHECK(norm.num_batches_tracked.item() == 1);
  CHECK(norm.running_mean.to_vector<double>() == Doubles{0.1 * 2, 0});
}

TEST_CASE("a batch norm that was recorded keeps its own moments when the running ones move on") {
  nn::BatchNorm1d norm({.num_features = 3});
  norm.eval();
  const Tensor x = rand({5, 3}).requires_grad_();
  const Tensor evaluated = norm(x);
  norm.train();
  const Tensor first = norm(x), second = norm(x);
  (first + second + evaluated).sum().backward();
  CHECK(norm.num_batches_tracked.item() == 2);
  const double slope = 1 / std::sqrt(1.00001);  // of evaluation; the others' slopes add up to 0
  CHECK(relative_error(x.grad().to_vector<float>(), Doubles(15, slope)) < 1e-6);
}

TEST_CASE("a saved value that a training batch norm changes is noticed") {
  nn::BatchNorm1d norm({.num_features = 3});
  const Tensor x = rand({3}).requires_grad_();
  const Tensor y = x * norm.running_mean;
  norm(rand({5, 3}));
  CHECK_THROWS_WITH(y.sum().backward(), Catch::Contains("changed in place"));
}

TEST_CASE("batch norm without elements gives an empty result, zero gradients, and leaves the running statistics",
          "[fault-72]") {
  for (const Shape& shape : {Shape{0, 3}, Shape{0, 3, 5}, Shape{2, 3, 0}}) {
    nn::BatchNorm1d norm({.num_features = 3});
    const Tensor x = empty(shape).requires_grad_();
    const Tensor y = norm(x);
    CHECK(y.shape() == shape);
    y.sum().backward();
    CHECK(x.grad().shape() == shape);
    CHECK(norm.weight.grad().to_vector<double>() == Doubles{0, 0, 0});
    CHECK(norm.bias.grad().to_vector<double>() == Doubles{0, 0, 0});
    CHECK(norm.running_mean.to_vector<double>() == Doubles{0, 0, 0});
    CHECK(norm.running_var.to_vector<double>() == Doubles{1, 1, 1});
    CHECK(norm.num_batches_tracked.item() == 1);  // as in PyTorch
  }
}

TEST_CASE("batch norm of one value for each channel is refused in training, and nothing is changed") {
  nn::BatchNorm1d norm({.num_features = 3});
  CHECK_THROWS_WITH(
      norm(ones({1, 3})),
      "batch_norm: too few values for each channel in training: expected more than 1, got 1 in [1, 3]; use "
      "a larger batch or eval()");
  CHECK_THROWS_WITH(
      norm(ones({1, 3, 1})),
      "batch_norm: too few values for each channel in training: expected more than 1, got 1 in [1, 3, 1]; "
      "use a larger batch or eval()");
  CHECK(norm.num_batches_tracked.item() == 0);
  CHECK(norm.running_mean.to_vector<double>() == Doubles{0, 0, 0});
  norm.eval();
  CHECK(norm(ones({1, 3})).shape() == Shape{1, 3});
  nn::BatchNorm2d untracked({.num_features = 3, .track_running_stats = false});
  untracked.eval();
  CHECK_THROWS_WITH(untracked(ones({1, 3, 1, 1})), Catch::StartsWith("batch_norm: too few values for each channel"));
}

TEST_CASE("batch_norm names what does not fit") {
  const Tensor x = ones({2, 6, 5}), six = ones({6}), one = ones({1});
  CHECK_THROWS_WITH(F::batch_norm(x, six, six, one),
                    "batch_norm: weight does not fit the channels: expected [6], got [1]");
  CHECK_THROWS_WITH(F::batch_norm(x, six, six, six, ones({0})),
                    "batch_norm: bias does not fit the channels: expected [6], got [0]");
  CHECK_THROWS_WITH(F::batch_norm(x, one, six),
                    "batch_norm: running_mean does not fit the channels: expected [6], got [1]");
  CHECK_THROWS_WITH(F::batch_norm(x, six, ones({6, 1})),
                    "batch_norm: running_var does not fit the channels: expected [6], got [6, 1]");
  CHECK_THROWS_WITH(F::batch_norm(x, six, Tensor(), six, six, {.training = true}),
                    "batch_norm: one of the running statistics is missing: expected running_mean and running_var, got "
                    "running_mean alone");
  CHECK_THROWS_WITH(F::batch_norm(x, Tensor(), six),
                    "batch_norm: one of the running statistics is missing: expected running_mean and running_var, got "
                    "running_var alone");
  CHECK_THROWS_WITH(
      F::batch_norm(x, Tensor(), Tensor()),
      "batch_norm: running statistics are missing: expected running_mean and running_var outside training, "
      "got none");
  CHECK_THROWS_WITH(F::batch_norm(ones({6}), six, six),
                    "batch_norm: wrong number of dimensions: expected at least 2-D input, got 1-D [6]");
  CHECK_THROWS_WITH(F::batch_norm(ones({1, 0, 1}), ones({0}), ones({0})),
                    "batch_norm: no channels: expected >= 1, got 0 in [1, 0, 1]");
  CHECK_THROWS_WITH(F::batch_norm(x, six, six, six, six, {.training = true, .eps = 0}),
                    "batch_norm: eps is out of range: expected > 0 in training, got 0");
  CHECK_THROWS_WITH(F::batch_norm(x, six, six, six, six, {.eps = -1e-5}),
                    "batch_norm: eps is out of range: expected >= 0, got -1e-05");
  CHECK_THROWS_WITH(F::batch_norm(x, six, six, six, six, {.training = true, .momentum = 1.5}),
                    "batch_norm: momentum is out of range: expected 0 to 1, got 1.5");
  CHECK_THROWS_WITH(
      F::batch_norm(ones({2, 6}, DType::int64), six, six),
      "batch_norm: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(
      F::batch_norm(x, six, ones({6}, DType::int64)),
      "batch_norm: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(
      F::batch_norm(x, six, ones({6}, DType::float64)),
      "batch_norm: element types differ: expected float32, got float64 of running_var; convert with to()");
  CHECK_THROWS_WITH(F::batch_norm(x, six, six, ones({6}, DType::float64)),
                    "batch_norm: element types differ: expected float32, got float64 of weight; convert with to()");
  CHECK_THROWS_WITH(F::batch_norm(Tensor(), six, six), Catch::Contains("undefined"));
}

TEST_CASE("BatchNorm takes the dimensions and channels it is made for") {
  nn::BatchNorm1d one({.num_features = 3});
  nn::BatchNorm2d two({.num_features = 3});
  nn::BatchNorm3d three({.num_features = 3});
  CHECK(one(ones({2, 3})).shape() == Shape{2, 3});
  CHECK_THROWS_WITH(one(ones({3})),
                    "BatchNorm1d: wrong number of dimensions: expected 2-D or 3-D input with the batch, got 1-D [3]");
  CHECK_THROWS_WITH(
      one(ones({2, 3, 5, 7})),
      "BatchNorm1d: wrong number of dimensions: expected 2-D or 3-D input with the batch, got 4-D [2, 3, 5, 7]");
  CHECK_THROWS_WITH(two(ones({3, 5, 7})),
                    "BatchNorm2d: wrong number of dimensions: expected 4-D input with the batch, got 3-D [3, 5, 7]");
  CHECK_THROWS_WITH(three(ones({2, 3, 5, 7})),
                    "BatchNorm3d: wrong number of dimensions: expected 5-D input with the batch, got 4-D [2, 3, 5, 7]");
  CHECK_THROWS_WITH(two(ones({2, 5, 3, 7})),
                    "BatchNorm2d: input does not fit num_features: expected 3 channels, got 5 in [2, 5, 3, 7]");
  nn::BatchNorm1d plain({.num_features = 3, .affine = false, .track_running_stats = false});
  CHECK_THROWS_WITH(plain(ones({2, 5})),
                    "BatchNorm1d: input does not fit num_features: expected 3 channels, got 5 in [2, 5]");
}

TEST_CASE("BatchNorm's constructor refuses what no input could make valid") {
  CHECK_THROWS_WITH(nn::BatchNorm1d({}),
                    "BatchNorm1d: num_features is missing: expected a number, got none; only a model that knows its "
                    "input's shape can infer it");
  CHECK_THROWS_WITH(nn::BatchNorm2d({.num_features = 0}),
                    "BatchNorm2d: num_features is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::BatchNorm3d({.num_features = -3}),
                    "BatchNorm3d: num_features is out of range: expected >= 1, got -3");
  CHECK_THROWS_WITH(nn::BatchNorm1d({.num_features = 3, .eps = 0}),
                    "BatchNorm1d: eps is out of range: expected > 0, got 0");
  CHECK_THROWS_WITH(nn::BatchNorm1d({.num_features = 3, .momentum = -0.5}),
                    "BatchNorm1d: momentum is out of range: expected >= 0, got -0.5");
  CHECK_THROWS_WITH(nn::BatchNorm1d({.num_features = 3, .momentum = NAN}),
                    "BatchNorm1d: momentum is out of range: expected a number, got nan");
}

TEST_CASE("BatchNorm infers its channels and refuses wrong ones") {
  nn::BatchNorm1dOptions options;
  const Shape input{1, 5, 7};
  CHECK(nn::find_layer_type("BatchNorm1d")->infer(&options, {&input, 1}) == input);
  CHECK(options.num_features == 5);
  CHECK(infer(nn::BatchNorm1dOptions{}, {1, 5}) == Shape{1, 5});
  CHECK(infer(nn::BatchNorm3dOptions{}, {1, 5, 2, 3, 4}) == Shape{1, 5, 2, 3, 4});
  CHECK_THROWS_WITH(infer(nn::BatchNorm2dOptions{.num_features = 3}, {1, 5, 2, 7}),
                    "BatchNorm2d: num_features does not fit the input: expected 5, got 3 in [N, 5, 2, 7]");
  CHECK_THROWS_WITH(infer(nn::BatchNorm2dOptions{}, {1, 5, 7}),
                    "BatchNorm2d: wrong number of dimensions: expected 4-D input with the batch, got 3-D [N, 5, 7]");
  CHECK_THROWS_WITH(infer(nn::BatchNorm1dOptions{}, {1, 0, 7}),
                    "BatchNorm1d: no channels: expected >= 1, got 0 in [N, 0, 7]");
}

TEST_CASE("a state without num_batches_tracked leaves a norm its own, alone and in a model") {
  int counted = 0;
  const auto check = [&](nn::Module& module, const std::string& prefix) {
    nn::StateDict state;
    for (const auto& [name, tensor] : module.state_dict()) state.push_back({name, tensor.clone()});
    const auto counter = std::find_if(state.begin(), state.end(), [&](const NamedTensor& entry) {
      return entry.name == prefix + "num_batches_tracked";
    });
    if (counter == state.end()) return;
    ++counted;
    state.erase(counter);
    for (const NamedTensor& buffer : module.named_buffers())
      if (buffer.name == prefix + "num_batches_tracked") buffer.tensor.fill_(5);
    CHECK(module.load_state_dict(state).complete());
    CHECK(module.named_buffers().back().tensor.item() == 5);
    state.pop_back();
    CHECK_THROWS_WITH(module.load_state_dict(state),
                      "load_state_dict: parameters are missing: expected " + prefix + "running_var, got none of them");
  };
  nn::BatchNorm1d one({.num_features = 3});
  nn::BatchNorm2d two({.num_features = 3});
  nn::BatchNorm3d three({.num_features = 3});
  nn::InstanceNorm1d instance_one({.num_features = 3, .track_running_stats = true});
  nn::InstanceNorm2d instance_two({.num_features = 3, .affine = true, .track_running_stats = true});
  nn::InstanceNorm3d instance_three({.num_features = 3, .track_running_stats = true});
  for (nn::Module* module :
       std::initializer_list<nn::Module*>{&one, &two, &three, &instance_one, &instance_two, &instance_three})
    check(*module, "");
  nn::Sequential model{nn::make<nn::LayerNorm>({.normalized_shape = 5}),
                       nn::make<nn::BatchNorm1d>({.num_features = 3})};
  check(model, "1.");
  CHECK(counted == 7);
}

TEST_CASE("JSON says what is wrong with a BatchNorm") {
  const auto error = [](const char* options, const char* shape = "[5, 7]") {
    return test::json_error("BatchNorm1d", options, shape);
  };
  const std::string layer = " (layer BatchNorm1d 0): ", place = "error: /layers/0";
  CHECK(error("") == "no error");
  CHECK(error(R"("num_features": 5, "momentum": null)") == "no error");
  CHECK(error(R"("num_features": 6)") ==
        place + "/num_features" + layer +
            "BatchNorm1d: num_features does not fit the input: expected 5, got 6 in [N, 5, 7]; shapes: input [5, 7] -> "
            "BatchNorm1d");
  CHECK(error(R"("num_features": 0)") == place + "/num_features" + layer + "expected >= 1, got 0");
  CHECK(error(R"("num_features": 2.5)") == place + "/num_features" + layer + "expected an integer, got 2.5");
  CHECK(error(R"("eps": 0)") == place + "/eps" + layer + "expected > 0, got 0");
  CHECK(error(R"("eps": null)") == place + "/eps" + layer + "expected a number, got null");
  CHECK(error(R"("momentum": 1.5)") == place + "/momentum" + layer + "expected <= 1, got 1.5");
  CHECK(error(R"("afine": false)") == place + "/afine" + layer + "unknown key; did you mean affine?");
  CHECK(error("", "[5, 7, 2]") ==
        place + layer +
            "BatchNorm1d: wrong number of dimensions: expected 2-D or 3-D input with the batch, got 4-D [N, 5, 7, 2]; "
            "shapes: input [5, 7, 2] -> BatchNorm1d");
}
