// One network for inputs of any length: adaptive pooling turns every length into the size the next layer was built for.
#include <cstdio>
#include <string>
#include <taper/taper.hpp>
#include <vector>

using namespace taper;
namespace F = taper::nn::functional;

namespace {

// The last window of `outputs` over `length` elements: where it starts, in whole numbers.
std::int64_t last_start(std::int64_t length, std::int64_t outputs) { return (outputs - 1) * length / outputs; }

// Whether the last output is the mean of the last window, computed the plain way.
const char* check(const Tensor& x, const Tensor& y) {
  Tensor window = x, value = y;
  for (std::int64_t d = 2; d < x.dim(); ++d) {
    const std::int64_t start = last_start(x.size(d), y.size(d));
    window = window.narrow(d, start, x.size(d) - start);
    value = value.narrow(d, y.size(d) - 1, 1);
  }
  const Tensor mean = x.dim() == 3 ? window.mean(2, true) : window.mean({2, 3}, true);
  return (mean - value).abs().max().item() <= 1e-6 ? "ok" : "WRONG";
}

void report(const char* what, const Tensor& x, const Tensor& y) {
  std::printf("%-30s %-20s -> %-18s %s\n", what, to_string(x.shape()).c_str(), to_string(y.shape()).c_str(),
              check(x, y));
}

void pool1d(const char* what, const Shape& shape, std::int64_t output_size) {
  const Tensor x = randn(shape);
  report(what, x, F::adaptive_avg_pool1d(x, {.output_size = output_size}));
}

void pool2d(const char* what, const Shape& shape, const nn::AdaptiveAvgPool2dOptions& options) {
  const Tensor x = randn(shape);
  report(what, x, F::adaptive_avg_pool2d(x, options));
}

// A classifier of sequences that never learns how long they are.
struct AnyLength : nn::Module {
  nn::Conv1d conv{{.in_channels = 6, .out_channels = 16, .kernel_size = 5}};
  nn::AdaptiveAvgPool1d pool{{.output_size = 10}};
  nn::Linear fc{{.in_features = 160, .out_features = 4}};
  AnyLength() { register_modules({{"conv", conv}, {"pool", pool}, {"fc", fc}}); }
  Tensor forward(const Tensor& x) override { return fc(pool(relu(conv(x))).flatten(1)); }
};

}  // namespace

int main() {
  manual_seed(4);
  pool1d("sequences, global", {8, 64, 100}, 1);
  pool1d("87 steps to 10", {4, 128, 87}, 10);
  pool1d("200 steps to 10", {4, 128, 200}, 10);
  pool1d("audio, 312 frames to 50", {1, 80, 312}, 50);
  pool1d("deep features, global", {32, 512, 7}, 1);

  // Fewer images and channels than in earnest where the planes are large; they are pooled one by one anyway.
  pool2d("deep images, global", {32, 2048, 7, 7}, {.output_size = 1});
  pool2d("small images to 7", {2, 64, 56, 56}, {.output_size = 7});
  pool2d("large images to 7", {2, 64, 112, 112}, {.output_size = 7});
  pool2d("pyramid level to 7 by 7", {8, 256, 14, 14}, {.output_size = {7, 7}});
  pool2d("100 by 100 to 10 by 10", {2, 16, 100, 100}, {.output_size = {10, 10}});
  pool2d("height and width on their own", {2, 5, 31, 47}, {.output_size = {3, 8}});
  // An open extent keeps the input's, PyTorch's None.
  pool2d("only the width", {2, 5, 31, 47}, {.output_size = {std::nullopt, 8}});
  // More outputs than inputs repeat some: 5 elements cannot hold 8 different stretches.
  pool1d("5 steps to 8", {2, 3, 5}, 8);

  AnyLength model;
  for (const std::int64_t length : {std::int64_t(87), std::int64_t(200)})
    std::printf("the same model on %d steps: %s\n", int(length),
                to_string(model(randn({4, 6, length})).shape()).c_str());
}
