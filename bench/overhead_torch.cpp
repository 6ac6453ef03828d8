// The same work as overhead.cpp, by libtorch.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

namespace {

struct ForumModel : torch::nn::Module {
  torch::nn::Conv1d conv1{torch::nn::Conv1dOptions(3, 32, 3).padding(1)};
  torch::nn::AvgPool1d avg_pool{torch::nn::AvgPool1dOptions(10)};
  torch::nn::Linear fc{32, 5};
  ForumModel() {
    register_module("conv1", conv1);
    register_module("avg_pool", avg_pool);
    register_module("fc", fc);
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc(avg_pool(torch::relu(conv1(x))).squeeze(2)); }
};

void add_one_element(benchmark::State& state) {
  const auto a = torch::ones({1}, torch::requires_grad(state.range(0) != 0)), b = torch::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}
BENCHMARK(add_one_element)->ArgName("recorded")->Arg(0)->Arg(1);

void chain_forward_backward(benchmark::State& state) {
  const auto a = torch::ones({1}, torch::requires_grad()), b = torch::ones({1});
  for (auto _ : state) {
    torch::Tensor y = a;
    for (int i = 0; i < 100; ++i) y = y * b;
    y.backward();
    a.mutable_grad().reset();
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(chain_forward_backward);

void forum_step(benchmark::State& state) {
  torch::manual_seed(1);
  torch::set_num_threads(1);
  ForumModel model;
  torch::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(1e-3));
  const auto x = torch::randn({state.range(0), 3, 10}), y = torch::randint(0, 5, {state.range(0)});
  for (auto _ : state) {
    adam.zero_grad();
    torch::nn::functional::cross_entropy(model.forward(x), y).backward();
    adam.step();
  }
}
BENCHMARK(forum_step)->ArgName("batch")->Arg(2)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace
