// Global average pooling in three spellings: a pool as large as the input, an adaptive pool to one value, and a mean.
// In Taper they are the same sum in the same order, so their results and gradients are equal to the last bit.
#include <cstdio>
#include <cstring>
#include <string>
#include <taper/taper.hpp>

using namespace taper;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.data<float>(), b.data<float>(), std::size_t(a.numel()) * sizeof(float)) == 0;
}

const char* verdict(const Tensor& a, const Tensor& b) { return same_bits(a, b) ? "same bits" : "DIFFERENT"; }

// The gradient that `pool` gives its input when every output counts differently.
template <class Pool>
Tensor gradient_of(const Tensor& input, const Pool& pool) {
  const Tensor x = input.clone().requires_grad_();
  const Tensor y = pool(x);
  y.backward(arange(1, 1 + y.numel(), 1, DType::float32).reshape(y.shape()));
  return x.grad();
}

void sequence() {
  const Tensor x = randn({2, 3, 5});
  std::printf("a batch of 2 sequences, 3 channels, 5 steps: %s\n", to_string(x.shape()).c_str());

  // The stride is the kernel size unless given; with the kernel as long as the sequence there is one window anyway.
  nn::AvgPool1d avg_pool({.kernel_size = 5});
  nn::AdaptiveAvgPool1d adaptive({.output_size = 1});
  const Tensor pooled = avg_pool(x);
  const Tensor mean = x.mean(2, /*keepdim=*/true);
  std::printf("  AvgPool1d(5)          %s\n", to_string(pooled.shape()).c_str());
  std::printf("  AdaptiveAvgPool1d(1)  %s  %s\n", to_string(adaptive(x).shape()).c_str(), verdict(adaptive(x), pooled));
  std::printf("  mean(2, keepdim)      %s  %s\n", to_string(mean.shape()).c_str(), verdict(mean, pooled));

  // A mean drops its dimension, a pool keeps it with extent 1: keepdim and squeeze translate between the two.
  std::printf("  mean(2)               %s     %s as AvgPool1d(5) squeezed\n", to_string(x.mean(2).shape()).c_str(),
              verdict(x.mean(2), pooled.squeeze(-1)));
  std::printf("  mean(2, keepdim) squeezed     %s\n", verdict(mean.squeeze(-1), x.mean(2)));

  // A mean is recorded like any operation, inside a module or outside of one, and a pool has no state of its own: there
  // is nothing to choose between them but the line of code that reads best.
  const Tensor by_pool = gradient_of(x, [&](const Tensor& t) { return avg_pool(t); });
  std::printf("  gradients: adaptive   %s\n",
              verdict(gradient_of(x, [&](const Tensor& t) { return adaptive(t); }), by_pool));
  std::printf("  gradients: mean       %s\n",
              verdict(gradient_of(x, [](const Tensor& t) { return t.mean(2, true); }), by_pool));
}

void feature_map() {
  const Tensor x = randn({2, 3, 4, 4});
  std::printf("a batch of 2 feature maps, 3 channels, 4 by 4: %s\n", to_string(x.shape()).c_str());

  nn::AvgPool2d avg_pool({.kernel_size = {4, 4}});
  nn::AdaptiveAvgPool2d adaptive({.output_size = 1});
  const Tensor pooled = avg_pool(x);
  const Tensor mean = x.mean({2, 3}, /*keepdim=*/true);
  std::printf("  AvgPool2d({4, 4})     %s\n", to_string(pooled.shape()).c_str());
  std::printf("  AdaptiveAvgPool2d(1)  %s  %s\n", to_string(adaptive(x).shape()).c_str(), verdict(adaptive(x), pooled));
  std::printf("  mean({2, 3}, keepdim) %s  %s\n", to_string(mean.shape()).c_str(), verdict(mean, pooled));
  std::printf("  mean({2, 3})          %s        %s as AvgPool2d({4, 4}) squeezed twice\n",
              to_string(x.mean({2, 3}).shape()).c_str(), verdict(x.mean({2, 3}), pooled.squeeze(-1).squeeze(-1)));

  const Tensor by_pool = gradient_of(x, [&](const Tensor& t) { return avg_pool(t); });
  std::printf("  gradients: adaptive   %s\n",
              verdict(gradient_of(x, [&](const Tensor& t) { return adaptive(t); }), by_pool));
  std::printf("  gradients: mean       %s\n", verdict(gradient_of(x,
                                                                  [](const Tensor& t) {
                                                                    return t.mean({2, 3}, true);
                                                                  }),
                                                      by_pool));
}

}  // namespace

int main() {
  manual_seed(1);
  sequence();
  feature_map();
}
