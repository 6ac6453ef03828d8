#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/infer.hpp"
#include "support/json_error.hpp"
#include "support/kernel_check.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/nn/norm.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;
using test::infer;
namespace F = taper::nn::functional;
using test::relative_error;

namespace {

using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("instance norm gives hand-worked values, each channel of each sample by itself") {
  const Tensor x = tensor({{{1, 3}, {-4, 4}}, {{7, 7}, {0, 2}}}, DType::float64);
  const Tensor y =
      F::instance_norm(x, {}, {}, tensor({1, 2}, DType::float64), tensor({0, 10}, DType::float64), {.eps = 3});
  const double s = 1 / std::sqrt(1.0 + 3), t = 4 / std::sqrt(16.0 + 3);
  CHECK(relative_error(y.to_vector<double>(), {-s, s, 10 - 2 * t, 10 + 2 * t, 0, 0, 10 - 2 * s, 10 + 2 * s}) < 1e-15);
}

TEST_CASE("InstanceNorm tracks the average of the samples' statistics, and counts no batches, as PyTorch") {
  nn::InstanceNorm1d norm({.num_features = 1, .momentum = 0.25, .track_running_stats = true});
  norm(tensor({{{1, 3}}, {{-4, 4}}}, DType::float32));
  CHECK(norm.running_mean.to_vector<double>() == Doubles{0.25 * (2 + 0) / 2});
  CHECK(norm.running_var.to_vector<double>() == Doubles{0.75 + 0.25 * (2 + 32) / 2});
  CHECK(norm.num_batches_tracked.item() == 0);
  norm.eval();
  const Tensor y = norm(tensor({{{2, 0}}}, DType::float32));
  const double r = 1 / std::sqrt(5.0 + 1e-5);
  CHECK(relative_error(y.to_vector<float>(), {1.75 * r, -0.25 * r}) < 1e-6);
  CHECK(norm.running_mean.to_vector<double>() == Doubles{0.25});
}

TEST_CASE("InstanceNorm has neither parameters nor buffers unless asked, and the same result in both modes") {
  nn::InstanceNorm2d norm({.num_features = 3});
  CHECK(norm.state_dict().empty());
  const Tensor x = rand({2, 3, 5, 7});
  const auto trained = norm(x).to_vector<float>();
  norm.eval();
  CHECK(norm(x).to_vector<float>() == trained);
  CHECK(nn::InstanceNorm3d({.num_features = 3, .affine = true, .track_running_stats = true}).state_dict().size() == 5);
  CHECK(nn::InstanceNorm3d({.num_features = 3, .affine = true, .bias = false}).state_dict().size() == 1);
}

TEST_CASE("InstanceNorm takes a sample alone, with the same bits as in a batch") {
  nn::InstanceNorm1d one({.num_features = 3, .affine = true});
  const Tensor x = rand({1, 3, 7});
  CHECK(one(x.squeeze(0)).shape() == Shape{3, 7});
  CHECK(one(x.squeeze(0)).to_vector<float>() == one(x).to_vector<float>());
  nn::InstanceNorm3d three({.num_features = 3});
  CHECK(three(rand({3, 2, 5, 7})).shape() == Shape{3, 2, 5, 7});
}

TEST_CASE("instance norm without elements gives an empty result, zero gradients, and leaves the running statistics",
          "[fault-72]") {
  for (const Shape& shape : {Shape{0, 3, 5}, Shape{2, 3, 0}})
    for (const bool tracked : {false, true}) {
      nn::InstanceNorm1d norm({.num_features = 3, .affine = true, .track_running_stats = tracked});
      const Tensor x = empty(shape).requires_grad_();
      const Tensor y = norm(x);
      CHECK(y.shape() == shape);
      y.sum().backward();
      CHECK(norm.weight.grad().to_vector<double>() == Doubles{0, 0, 0});
      CHECK(norm.bias.grad().to_vector<double>() == Doubles{0, 0, 0});
      if (tracked) CHECK(norm.running_var.to_vector<double>() == Doubles{1, 1, 1});
    }
}

TEST_CASE("instance norm of one value for each channel is refused unless running statistics are used") {
  nn::InstanceNorm1d norm({.num_features = 3});
  const std::string sentence =
      "instance_norm: too few values for each channel of a sample: expected more than 1, got 1 in ";
  CHECK_THROWS_WITH(norm(ones({2, 3, 1})), sentence + "[2, 3, 1]");
  norm.eval();
  CHECK_THROWS_WITH(norm(ones({3, 1})), sentence + "[1, 3, 1]");
  CHECK_THROWS_WITH(F::instance_norm(ones({2, 3})), sentence + "[2, 3]");
  nn::InstanceNorm2d tracked({.num_features = 3, .track_running_stats = true});
  CHECK_THROWS_WITH(tracked(ones({2, 3, 1, 1})), sentence + "[2, 3, 1, 1]");
  CHECK(tracked.running_mean.to_vector<double>() == Doubles{0, 0, 0});
  tracked.eval();
  CHECK(relative_error(tracked(ones({2, 3, 1, 1})).to_vector<double>(), Doubles(6, 1)) < 1e-5);
}

TEST_CASE("instance_norm names what does not fit") {
  const Tensor x = ones({2, 6, 5}), six = ones({6}), one = ones({1});
  CHECK_THROWS_WITH(F::instance_norm(x, {}, {}, one),
                    "instance_norm: weight does not fit the channels: expected [6], got [1]");
  CHECK_THROWS_WITH(F::instance_norm(x, {}, {}, six, ones({5})),
                    "instance_norm: bias does not fit the channels: expected [6], got [5]");
  CHECK_THROWS_WITH(F::instance_norm(x, one, six),
                    "instance_norm: running_mean does not fit the channels: expected [6], got [1]");
  CHECK_THROWS_WITH(
      F::instance_norm(x, six),
      "instance_norm: one of the running statistics is missing: expected running_mean and running_var, got "
      "running_mean alone");
  CHECK_THROWS_WITH(F::instance_norm(x, {}, {}, six, six, {.use_input_stats = false}),
                    "instance_norm: running statistics are missing: expected running_mean and running_var without "
                    "use_input_stats, got none");
  CHECK_THROWS_WITH(F::instance_norm(ones({6})),
                    "instance_norm: wrong number of dimensions: expected at least 2-D input, got 1-D [6]");
  CHECK_THROWS_WITH(F::instance_norm(ones({1, 0, 3})), "instance_norm: no channels: expected >= 1, got 0 in [1, 0, 3]");
  CHECK_THROWS_WITH(F::instance_norm(x, {}, {}, {}, {}, {.eps = -1}),
                    "instance_norm: eps is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(F::instance_norm(x, {}, {}, {}, {}, {.momentum = -1}),
                    "instance_norm: momentum is out of range: expected 0 to 1, got -1");
  CHECK_THROWS_WITH(
      F::instance_norm(ones({2, 6, 5}, DType::int64)),
      "instance_norm: element type not supported: expected float32 or float64, got int64; convert with to()");
  CHECK_THROWS_WITH(F::instance_norm(x, {}, {}, six, ones({6}, DType::float64)),
                    "instance_norm: element types differ: expected float32, got float64 of bias; convert with to()");
}

TEST_CASE("InstanceNorm takes the dimensions and channels it is made for") {
  nn::InstanceNorm1d one({.num_features = 3});
  nn::InstanceNorm2d two({.num_features = 3, .affine = true});
  CHECK_THROWS_WITH(one(ones({2, 3, 5, 7})),
                    "InstanceNorm1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 4-D "
                    "[2, 3, 5, 7]");
  CHECK_THROWS_WITH(one(ones({3})),
                    "InstanceNorm1d: wrong number of dimensions: expected 2-D unbatched or 3-D batched input, got 1-D "
                    "[3]");
  CHECK_THROWS_WITH(one(ones({2, 5, 7})),
                    "InstanceNorm1d: input does not fit num_features: expected 3 channels, got 5 in [2, 5, 7]");
  CHECK_THROWS_WITH(two(ones({5, 3, 7})),
                    "InstanceNorm2d: input does not fit num_features: expected 3 channels, got 5 in [5, 3, 7]");
  CHECK_THROWS_WITH(one(ones({0, 5})), "InstanceNorm1d: no channels: expected >= 1, got 0 in [0, 5]");
}

TEST_CASE("InstanceNorm's constructor and inference refuse what no input could make valid") {
  CHECK_THROWS_WITH(nn::InstanceNorm1d({}),
                    "InstanceNorm1d: num_features is missing: expected a number, got none; only a model that knows its "
                    "input's shape can infer it");
  CHECK_THROWS_WITH(nn::InstanceNorm2d({.num_features = 0}),
                    "InstanceNorm2d: num_features is out of range: expected >= 1, got 0");
  CHECK_THROWS_WITH(nn::InstanceNorm3d({.num_features = 3, .eps = -1}),
                    "InstanceNorm3d: eps is out of range: expected >= 0, got -1");
  CHECK_THROWS_WITH(nn::InstanceNorm1d({.num_features = 3, .momentum = 2}),
                    "InstanceNorm1d: momentum is out of range: expected <= 1, got 2");
  nn::InstanceNorm1dOptions options;
  const Shape input{1, 5, 7};
  CHECK(nn::find_layer_type("InstanceNorm1d")->infer(&options, {&input, 1}) == input);
  CHECK(options.num_features == 5);
  CHECK_THROWS_WITH(infer(nn::InstanceNorm2dOptions{.num_features = 3}, {1, 5, 2, 7}),
                    "InstanceNorm2d: num_features does not fit the input: expected 5, got 3 in [N, 5, 2, 7]");
  CHECK_THROWS_WITH(infer(nn::InstanceNorm2dOptions{}, {1, 5, 7}),
                    "InstanceNorm2d: wrong number of dimensions: expected 4-D with the batch, got 3-D [N, 5, 7]");
  CHECK_THROWS_WITH(infer(nn::InstanceNorm1dOptions{}, {1, 5, 1}),
                    "InstanceNorm1d: too few values for each channel of a sample: expected more than 1, got 1 in "
                    "[N, 5, 1]");
  CHECK(infer(nn::InstanceNorm1dOptions{.track_running_stats = true}, {1, 5, 1}) == Shape{1, 5, 1});
}

TEST_CASE("JSON says what is wrong with an InstanceNorm") {
  const auto error = [](const char* options, const char* shape = "[5, 7]") {
    return test::json_error("InstanceNorm1d", options, shape);
  };
  const std::string layer = " (layer InstanceNorm1d 0): ", place = "error: /layers/0";
  CHECK(error("") == "no error");
  CHECK(error(R"("momentum": null)") == place + "/momentum" + layer + "expected a number, got null");
  CHECK(error(R"("num_features": -1)") == place + "/num_features" + layer + "expected >= 1, got -1");
  CHECK(error(R"("track_running_stats": 1)") ==
        place + "/track_running_stats" + layer + "expected true or false, got 1; write true");
  CHECK(error("", "[5, 1]") ==
        place + layer +
            "InstanceNorm1d: too few values for each channel of a sample: expected more than 1, got 1 in [N, 5, 1]; "
            "shapes: input [5, 1] -> InstanceNorm1d");
}
