// What one operation and one small training step cost beside their arithmetic.
#include <benchmark/benchmark.h>

#include "taper/taper.hpp"

using namespace taper;

namespace {

/// The model of the forum thread: Conv1d, ReLU, AvgPool1d, squeeze, Linear.
struct ForumModel : nn::Module {
  nn::Conv1d conv1{{.in_channels = 3, .out_channels = 32, .kernel_size = 3, .padding = 1}};
  nn::AvgPool1d avg_pool{{.kernel_size = 10}};
  nn::Linear fc{{.in_features = 32, .out_features = 5}};
  ForumModel() { register_modules({{"conv1", conv1}, {"avg_pool", avg_pool}, {"fc", fc}}); }
  Tensor forward(const Tensor& x) override { return fc(avg_pool(relu(conv1(x))).squeeze(2)); }
};

void add_one_element(benchmark::State& state) {
  const bool record = state.range(0) != 0;
  const Tensor a = ones({1}).requires_grad_(record), b = ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}
BENCHMARK(add_one_element)->ArgName("recorded")->Arg(0)->Arg(1);

void chain_forward_backward(benchmark::State& state) {
  const Tensor a = ones({1}).requires_grad_(), b = ones({1});
  for (auto _ : state) {
    Tensor y = a;
    for (int i = 0; i < 100; ++i) y = y * b;
    y.backward();
    a.zero_grad();
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(chain_forward_backward);

void forum_step(benchmark::State& state) {
  manual_seed(1);
  ForumModel model;
  optim::Adam adam(model.parameters(), {.lr = 1e-3});
  const Tensor x = randn({state.range(0), 3, 10}), y = randint(0, 5, {state.range(0)});
  for (auto _ : state) {
    adam.zero_grad();
    nn::functional::cross_entropy(model(x), y).backward();
    adam.step();
  }
}
BENCHMARK(forum_step)->ArgName("batch")->Arg(2)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace
