#include <cstdio>
#include <taper/taper.hpp>
using namespace taper;
struct ForumModel : nn::Module {
  nn::Conv1d conv1{{.in_channels = 12, .out_channels = 32, .kernel_size = 3, .padding = 1}};
  nn::AvgPool1d avg_pool{{.kernel_size = 25}};
  nn::Linear fc{{.in_features = 32, .out_features = 9}};
  ForumModel() { register_modules({{"conv1", conv1}, {"avg_pool", avg_pool}, {"fc", fc}}); }
  Tensor forward(const Tensor& x) override { return fc(avg_pool(relu(conv1(x))).squeeze(2)); }
};

int main() {
  const auto load = [](const char* name) { return io::load_npz("data/japanese_vowels.npz", name); };
  const Tensor x = load("x_train"), y = load("y_train"), x_test = load("x_test"), y_test = load("y_test");
  ForumModel model;
  optim::Adam adam(model.parameters(), {.lr = 0.01});
  for (int step = 0; step <= 200; ++step) {
    adam.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(model(x), y);
    loss.backward();
    adam.step();
    if (step % 50 == 0) std::printf("step %3d  loss %.4f\n", step, loss.item());
  }
  std::printf("accuracy %.3f\n", mean((model(x_test).argmax(1) == y_test).to(DType::float32)).item());
}
