// Everything avg_pool2d can be told, on a 3 by 3 image whose averages can be checked in the head.
#include <cstdio>
#include <taper/taper.hpp>

using namespace taper;
namespace F = taper::nn::functional;

namespace {

void print(const char* what, const Tensor& tensor) {
  std::printf("%s\n", what);
  const std::vector<double> values = tensor.to_vector<double>();
  const std::int64_t columns = tensor.size(-1);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::printf("%8.4f%s", values[i], std::int64_t(i + 1) % columns == 0 ? "\n" : "");
}

}  // namespace

int main() {
  const Tensor image = arange(1, 10, 1, DType::float32).reshape({1, 1, 3, 3});
  print("the image", image);

  // The options are PyTorch's arguments by name; what is left out has PyTorch's default, the stride the kernel size.
  print("2x2: one whole window, the rest is dropped", F::avg_pool2d(image, {.kernel_size = 2}));

  // A border of zeros. It counts by default: the corner is (0 + 0 + 0 + 1) / 4. Borders then come out darker than they
  // are, which count_include_pad = false avoids by dividing by the real elements only: 1 / 1.
  print("2x2, padding 1, counted", F::avg_pool2d(image, {.kernel_size = 2, .padding = 1}));
  print("2x2, padding 1, not counted",
        F::avg_pool2d(image, {.kernel_size = 2, .padding = 1, .count_include_pad = false}));

  // Windows that hang over the edge are kept. What hangs over is no padding and is never counted: 9 / 1 in the corner.
  print("2x2, ceil_mode", F::avg_pool2d(image, {.kernel_size = 2, .ceil_mode = true}));

  // One divisor for all windows, whatever they hold: 1 makes a sum pool. Taper refuses divisors below 1.
  print("2x2, ceil_mode, divisor 1: sums",
        F::avg_pool2d(image, {.kernel_size = 2, .ceil_mode = true, .divisor_override = 1}));

  // Rows and columns can differ: one number each, height first.
  print("2x3, stride 1", F::avg_pool2d(image, {.kernel_size = {2, 3}, .stride = 1}));

  // Each input gets its window's gradient over its window's divisor, so a full cover by averages sums to the outputs.
  const Tensor x = image.clone().requires_grad_();
  F::avg_pool2d(x, {.kernel_size = 2, .ceil_mode = true}).sum().backward();
  print("gradient of the sum of the ceil_mode averages", x.grad());

  const std::int64_t batch_size = 2;
  const Tensor features = randn({batch_size, 64, 32, 32});
  std::printf("halved:  %s -> %s\n", to_string(features.shape()).c_str(),
              to_string(F::avg_pool2d(features, {.kernel_size = 2}).shape()).c_str());

  // Before a classifier: one average a channel, then the two extents of 1 are folded away.
  const Tensor deep = randn({batch_size, 512, 7, 7});
  const Tensor global_avg = F::avg_pool2d(deep, {.kernel_size = {7, 7}});
  const Tensor flattened = global_avg.reshape({batch_size, 512});
  std::printf("global:  %s -> %s -> %s\n", to_string(deep.shape()).c_str(), to_string(global_avg.shape()).c_str(),
              to_string(flattened.shape()).c_str());

  // A white image stays white up to its border when padding is not counted.
  const Tensor white = ones({1, 3, 10, 10});
  const nn::AvgPool2dOptions blur{.kernel_size = 3, .stride = 1, .padding = 1, .count_include_pad = false};
  const Tensor blurred = F::avg_pool2d(white, blur);
  std::printf("blurred: %s -> %s, darkest pixel %g\n", to_string(white.shape()).c_str(),
              to_string(blurred.shape()).c_str(), blurred.min().item());
}
