// Steps of training ask the system for nothing once the first ones are done: every allocation of this program is
// counted, whoever makes it.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>

#include "support/layer_case.hpp"
#include "taper/taper.hpp"

namespace {

std::atomic<long> allocations{0};

}  // namespace

// glibc's own functions behind the ones that are counted; `operator new` comes by here too.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t n, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(n, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(block, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
}

namespace {

using namespace taper;

/// A convolution, a pool and a linear layer.
struct PooledModel : nn::Module {
  nn::Conv1d conv1{{.in_channels = 3, .out_channels = 32, .kernel_size = 3, .padding = 1}};
  nn::AvgPool1d avg_pool{{.kernel_size = 10}};
  nn::Linear fc{{.in_features = 32, .out_features = 5}};
  PooledModel() { register_modules({{"conv1", conv1}, {"avg_pool", avg_pool}, {"fc", fc}}); }
  Tensor forward(const Tensor& x) override { return fc(avg_pool(relu(conv1(x))).squeeze(2)); }
};

/// What a step allocates after a few: the largest number of five more.
template <class Step>
long allocations_of(const Step& step) {
  for (int i = 0; i < 3; ++i) step();
  long most = 0;
  for (int i = 0; i < 5; ++i) {
    const long before = allocations;
    step();
    most = std::max<long>(most, allocations - before);
  }
  return most;
}

long training_step(std::int64_t batch) {
  PooledModel model;
  optim::Adam adam(model.parameters(), {.lr = 1e-3});
  const Tensor x = randn({batch, 3, 10}), y = randint(0, 5, {batch});
  return allocations_of([&] {
    adam.zero_grad();
    nn::functional::cross_entropy(model(x), y).backward();
    adam.step();
  });
}

long replayed_step(std::int64_t batch) {
  PooledModel model;
  optim::Adam adam(model.parameters(), {.lr = 1e-3});
  const Tensor x = randn({batch, 3, 10}), y = randint(0, 5, {batch});
  CapturedStep captured([&](const Tensor& inputs, const Tensor& targets) {
    adam.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(model(nn::functional::dropout(inputs, 0.25)), targets);
    loss.backward();
    adam.step();
    return loss;
  });
  return allocations_of([&] { captured(x, y); });
}

/// Results of several shapes, gradients that meet, values changed in place.
long operations() {
  const Tensor w = randn({7, 5}).requires_grad_(), v = randn({5}).requires_grad_();
  return allocations_of([&] {
    w.zero_grad();
    const Tensor h = tanh(w * v + 0.5);
    const Tensor y = softmax(matmul(h, v.reshape({5, 1})), 0) * 2.0;
    y.mul_(3);
    (sum(y * y) + mean(h.transpose(0, 1))).backward();
  });
}

/// Forward and backward of a layer on the inputs of its example.
long layer_step(const nn::LayerType& type, bool training) {
  const auto layer = test::build(type, DType::float32);
  layer->train(training);
  const std::vector<Tensor> inputs = test::random_inputs(type, DType::float32);
  return allocations_of([&] {
    const Tensor y = layer->forward_all(inputs);
    if (y.requires_grad()) sum(y * y).backward();
  });
}

/// A loss and its gradient.
long loss_step(const nn::LossType& type) {
  const auto loss = type.make(type.new_options().get());
  const Tensor x = uniform({17, 5}, 0.1, 0.9).requires_grad_();
  const Tensor y = type.takes_classes ? randint(0, 5, {17}) : uniform({17, 5}, 0.1, 0.9);
  return allocations_of([&] { loss->forward(x, y).backward(); });
}

/// An update of two parameters.
long update(const optim::OptimizerType& type) {
  std::vector<NamedTensor> parameters = {{"w", randn({7, 5})}, {"b", randn({5})}};
  for (const NamedTensor& named : parameters) {
    named.tensor.requires_grad_();
    named.tensor.set_grad(randn(named.tensor.shape()));
  }
  const auto optimizer = type.make(type.new_options().get(), parameters);
  return allocations_of([&] { optimizer->step(); });
}

bool check(const std::string& what, long counted) {
  if (counted != 0) std::printf("%s: expected 0 allocations in a step, got %ld\n", what.c_str(), counted);
  return counted == 0;
}

}  // namespace

int main() {
  const long before = allocations;
  const Tensor first = ones({3});
  if (allocations == before) {
    std::printf("the counter does not see the allocations of the library\n");
    return 1;
  }
  bool ok = true;
  for (const std::int64_t batch : {2, 32, 257}) ok &= check("training step", training_step(batch));
  for (const std::int64_t batch : {2, 32, 257}) ok &= check("replayed step", replayed_step(batch));
  ok &= check("operations", operations());
  for (const nn::LayerType& type : nn::layer_types())
    for (const bool training : {true, false})
      ok &= check(type.name + (training ? " in training" : " in evaluation"), layer_step(type, training));
  for (const nn::LossType& type : nn::loss_types()) ok &= check(type.name, loss_step(type));
  for (const optim::OptimizerType& type : optim::optimizer_types()) ok &= check(type.name, update(type));
  return ok ? 0 : 1;
}
