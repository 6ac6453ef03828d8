#include <cstring>

#include "core/random_state.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/kernel_check.hpp"
#include "support/layer_case.hpp"
#include "support/layer_variations.hpp"
#include "taper/ops.hpp"
#include "taper/optim.hpp"
#include "taper/plan.hpp"

using namespace taper;
using nlohmann::json;
using nn::LayerType;

// For every layer: steps that are replayed leave the same bits everywhere as steps that are not.
namespace {

constexpr int kSteps = 4;

/// The layer, with a factor in front of its floating inputs so that gradients pass through it, and an optimiser.
struct ReplayedTraining {
  ReplayedTraining(const LayerType& type, const json& options, DType dtype, const optim::OptimizerType& optimizer_type)
      : module(test::build(type, options, dtype)), factor(full({1}, 1.25, dtype).requires_grad_()) {
    std::vector<NamedTensor> parameters = module->named_parameters();
    parameters.push_back({"factor", factor});
    optimizer = optimizer_type.make(optimizer_type.new_options().get(), parameters);
    for (const NamedTensor& named : parameters) named.tensor.set_name(named.name);
  }

  std::vector<Tensor> step(std::span<const Tensor> inputs) {
    std::vector<Tensor> scaled;
    for (const Tensor& x : inputs) scaled.push_back(is_floating(x.dtype()) ? mul(x, factor) : x);
    std::vector<Tensor> results = module->forward_outputs(scaled);
    Tensor loss = mul(factor, factor).sum();
    for (const Tensor& result : results)
      if (is_floating(result.dtype())) loss = add(loss, mul(result, result).mean());
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
    results.push_back(loss);
    return results;
  }

  Shared<nn::Module> module;
  Tensor factor;
  Shared<optim::Optimizer> optimizer;
};

void append(std::string& bytes, const Tensor& tensor) {
  bytes += to_string(tensor.shape());
  if (tensor.numel() == 0) return;
  const Tensor plain = tensor.detach();
  bytes.append(static_cast<const char*>(plain.impl()->buffer->data()),
               std::size_t(plain.numel()) * size_of(plain.dtype()));
}

/// Inputs of each step, with other numbers each time.
std::vector<std::vector<Tensor>> inputs_of_steps(const LayerType& type, DType dtype) {
  std::vector<std::vector<Tensor>> steps;
  for (int i = 0; i < kSteps; ++i) {
    std::vector<Tensor> inputs;
    for (const Tensor& x : test::random_inputs(type, dtype))
      inputs.push_back(is_floating(x.dtype()) ? add(x.detach(), 0.125 * i) : clone(x));
    steps.push_back(inputs);
  }
  return steps;
}

struct ReplayCase {
  const LayerType& type;
  json options;
  DType dtype;
  const optim::OptimizerType& optimizer;
  bool training_mode = true;
};

/// All that four steps give and leave behind.
std::string trace(const ReplayCase& c, bool replayed, std::size_t* plans = nullptr) {
  const auto& [type, options, dtype, optimizer, training_mode] = c;
  ReplayedTraining training(type, options, dtype, optimizer);
  training.module->train(training_mode);
  CapturedStep step([&](std::span<const Tensor> inputs) { return training.step(inputs); }, {.enabled = replayed});
  manual_seed(31);
  std::string bytes;
  for (const auto& x : inputs_of_steps(type, dtype)) {
    training.optimizer->set_lr(training.optimizer->lr() * 0.5);
    const auto& results = x.size() == 1 ? step(x[0]) : x.size() == 2 ? step(x[0], x[1]) : step(x[0], x[1], x[2]);
    for (const Tensor& result : results) append(bytes, result);
    for (const Tensor& parameter : training.module->parameters()) append(bytes, parameter.grad());
  }
  for (const NamedTensor& state : training.module->state_dict()) append(bytes, state.tensor);
  for (const NamedTensor& state : training.optimizer->state_dict()) append(bytes, state.tensor);
  for (const std::uint64_t position : detail::random_state().positions) bytes += std::to_string(position) + ' ';
  if (plans) *plans = step.plans().size();
  return bytes;
}

std::string replay_problem(const ReplayCase& c) {
  std::size_t plans = 0;
  if (trace(c, true, &plans) != trace(c, false)) return "other bits";
  return plans == 1 ? "" : "not one plan";
}

}  // namespace

TEST_CASE("A replayed training step of every layer leaves the bits of an eager one, with every optimiser") {
  for (const LayerType& type : nn::layer_types())
    for (const optim::OptimizerType& optimizer : optim::optimizer_types()) {
      INFO(type.name << " with " << optimizer.name);
      CHECK(replay_problem({type, test::parsed(type.example), DType::float32, optimizer}) == "");
    }
}

TEST_CASE("A replayed step of every layer leaves the bits of an eager one in float64 and in evaluation mode") {
  const optim::OptimizerType& sgd = *optim::find_optimizer_type("SGD");
  for (const LayerType& type : nn::layer_types()) {
    INFO(type.name);
    const json example = test::parsed(type.example);
    CHECK(replay_problem({type, example, DType::float64, sgd}) == "");
    CHECK(replay_problem({type, example, DType::float64, sgd, false}) == "");
  }
}

TEST_CASE("A replayed step leaves the bits of an eager one whatever the options of a layer") {
  const optim::OptimizerType& adam = *optim::find_optimizer_type("Adam");
  for (const LayerType& type : nn::layer_types())
    for (const json& options : test::variations(type, 12)) {
      INFO(type.name << ' ' << options.dump());
      CHECK(replay_problem({type, options, DType::float32, adam}) == "");
    }
}
