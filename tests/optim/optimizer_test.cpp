#include <set>

#include "base/memory.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/golden_options.hpp"
#include "support/message_of.hpp"
#include "taper/autograd.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"
#include "taper/optim.hpp"

using namespace taper;
using namespace taper::optim;
using test::message_of;

namespace {

Tensor row(const nlohmann::json& stored) {
  const auto values = stored.get<std::vector<double>>();
  return from_data(values, {std::int64_t(values.size())});
}

/// Two parameters of pairwise different sizes and the optimiser of a config.
struct Training {
  Tensor a = full({2, 3}, 0.5, DType::float64).requires_grad_(), b = full({5}, -0.25).requires_grad_();
  Shared<Optimizer> optimizer;

  explicit Training(const nlohmann::json& config) {
    const OptimizerType* type = find_optimizer_type(config.at("type"));
    REQUIRE(type != nullptr);
    optimizer = type->make(test::options_from(*type, config).get(), {{"fc.weight", a}, {"fc.bias", b}});
  }
  void set_gradients(int step) const {
    std::vector<double> wide(6);
    std::vector<float> narrow(5);
    for (std::size_t i = 0; i < 6; ++i) wide[i] = std::sin(1.0 + 2.3 * step + 0.7 * double(i));
    for (std::size_t i = 0; i < 5; ++i) narrow[i] = float(std::cos(0.4 * step + 1.1 * double(i)));
    a.set_grad(from_data(wide, {2, 3}));
    b.set_grad(from_data(narrow, {5}));
  }
  void run(int first, int last) const {
    for (int i = first; i < last; ++i) {
      set_gradients(i);
      optimizer->step();
    }
  }
};

const nlohmann::json kOptimizerConfigs[] = {
    {{"type", "SGD"}, {"lr", 0.1}, {"momentum", 0.75}, {"dampening", 0.25}, {"weight_decay", 0.125}},
    {{"type", "SGD"}, {"lr", 0.1}},
    {{"type", "Adam"}, {"lr", 0.01}, {"betas", {0.7, 0.8}}, {"eps", 1e-3}, {"weight_decay", 0.125}, {"amsgrad", true}},
    {{"type", "AdamW"}, {"lr", 0.01}, {"betas", {0.7, 0.8}}, {"weight_decay", 0.125}, {"maximize", true}},
    {{"type", "RMSprop"}, {"lr", 0.01}, {"alpha", 0.5}, {"momentum", 0.5}, {"centered", true}},
    {{"type", "Adagrad"}, {"lr", 0.1}, {"lr_decay", 0.25}, {"initial_accumulator_value", 0.5}},
};

std::vector<std::string> names_in(const std::vector<NamedTensor>& state) {
  std::vector<std::string> names;
  for (const auto& entry : state) names.push_back(entry.name);
  return names;
}

}  // namespace

TEST_CASE("ten steps of every optimiser give PyTorch's values", "[optim]") {
  std::set<std::string> seen, offered;
  const auto golden = test::read_golden("optimizers.json");
  for (const auto& stored : golden.at("cases")) {
    CAPTURE(stored.at("name").get<std::string>());
    const std::string name = stored.at("optimizer").at("type");
    const OptimizerType* type = find_optimizer_type(name);
    REQUIRE(type != nullptr);
    seen.insert(name);
    const Tensor p = row(stored.at("initial")).requires_grad_();
    const auto optimizer = type->make(test::options_from(*type, stored.at("optimizer")).get(), {{"p", p}});
    for (std::size_t i = 0; i < stored.at("gradients").size(); ++i) {
      p.set_grad(row(stored.at("gradients")[i]));
      optimizer->step();
      CHECK(test::golden_difference(p, row(stored.at("values")[i]), {1e-13, 1e-3}) == "");
    }
  }
  for (const OptimizerType& type : optimizer_types()) offered.insert(type.name);
  CHECK(seen == offered);
}

TEST_CASE("a training that goes on from a saved state gives the same bits", "[optim]") {
  for (const auto& config : kOptimizerConfigs) {
    CAPTURE(config.dump());
    const Training through(config), broken(config), resumed(config);
    through.run(0, 7);
    broken.run(0, 3);
    resumed.a.detach().copy_(broken.a.detach());
    resumed.b.detach().copy_(broken.b.detach());
    resumed.run(0, 0);
    resumed.optimizer->load_state_dict(broken.optimizer->state_dict());
    broken.run(3, 5);  // must not reach into the other one's state
    resumed.run(3, 7);
    CHECK(resumed.a.to_vector<double>() == through.a.to_vector<double>());
    CHECK(resumed.b.to_vector<float>() == through.b.to_vector<float>());
  }
}

TEST_CASE("the state has the names of the parameters and PyTorch's names of the buffers", "[optim]") {
  const Training training(kOptimizerConfigs[2]);
  CHECK(names_in(training.optimizer->state_dict()) == std::vector<std::string>{"optimizer.lr"});
  training.set_gradients(0);
  training.b.zero_grad();
  training.optimizer->step();
  CHECK(names_in(training.optimizer->state_dict()) ==
        std::vector<std::string>{"optimizer.lr", "optimizer.fc.weight.step", "optimizer.fc.weight.exp_avg",
                                 "optimizer.fc.weight.exp_avg_sq", "optimizer.fc.weight.max_exp_avg_sq"});
  CHECK(numbered({training.a, training.b})[1].name == "1");
}

TEST_CASE("a state that does not fit is refused and changes nothing", "[optim]") {
  const Training training(kOptimizerConfigs[3]), other(kOptimizerConfigs[3]);
  training.run(0, 2);
  const auto good = training.optimizer->state_dict();
  const auto load = [&](auto change) {
    auto state = good;
    change(state);
    return message_of([&] { other.optimizer->load_state_dict(state); });
  };
  using State = std::vector<NamedTensor>;
  CHECK(load([](State& s) { s.erase(s.begin()); }) ==
        "AdamW: the state is not complete: expected optimizer.lr, got none of that name");
  CHECK(load([](State& s) { s.erase(s.begin() + 2); }) ==
        "AdamW: the state is not complete: expected optimizer.fc.weight.exp_avg, got none of that name");
  CHECK(load([](State& s) {
          s[2].tensor = zeros({3, 2}, DType::float64);
        }) == "AdamW: optimizer.fc.weight.exp_avg has another shape: expected [2, 3], got [3, 2]");
  CHECK(load([](State& s) {
          s[2].tensor = zeros({2, 3}, DType::int64);
        }) == "AdamW: optimizer.fc.weight.exp_avg has another element type: expected float32 or float64, got int64");
  CHECK(load([](State& s) { s[1].tensor = scalar(0, DType::int64); }) ==
        "AdamW: optimizer.fc.weight.step is out of range: expected >= 1, got 0");
  CHECK(load([](State& s) { s[0].tensor = scalar(-1, DType::float64); }) ==
        "AdamW: lr is out of range: expected a finite number >= 0, got -1");
  CHECK(load([](State& s) {
          s.push_back({"optimizer.fc.weight.sum", zeros({2})});
        }) == "AdamW: the state belongs to something else: expected its own names only, got optimizer.fc.weight.sum");
  CHECK(names_in(other.optimizer->state_dict()) == std::vector<std::string>{"optimizer.lr"});
  CHECK(load([](State&) {}) == "no error");
}

TEST_CASE("a step skips parameters without gradient and counts versions of the others", "[optim]") {
  const Training training(kOptimizerConfigs[0]);
  training.set_gradients(0);
  training.b.zero_grad();
  const auto version = [](const Tensor& t) { return t.impl()->buffer->version; };
  const auto a = version(training.a), b = version(training.b);
  training.optimizer->step();
  CHECK(version(training.a) == a + 1);
  CHECK(version(training.b) == b);
  CHECK(training.b.to_vector<float>() == std::vector<float>(5, -0.25f));
  training.optimizer->zero_grad();
  CHECK_FALSE(training.a.grad().defined());
}

TEST_CASE("a step between forward and backward is caught where the gradient reads the parameter", "[optim]") {
  const Tensor p = tensor({1.5, 2.5}).requires_grad_();
  SGD optimizer({p}, {.lr = 0.5});
  p.set_grad(tensor({1.0, 1.0}));
  const Tensor y = mul(p, p);
  optimizer.step();
  CHECK(message_of([&] { y.backward(tensor({1.0, 1.0})); }) != "no error");
}

TEST_CASE("steps allocate nothing in steady state", "[optim]") {
  for (const auto& config : kOptimizerConfigs) {
    CAPTURE(config.dump());
    const Training training(config);
    training.run(0, 2);
    const auto before = detail::memory_stats();
    for (int i = 0; i < 20; ++i) training.optimizer->step();
    const auto after = detail::memory_stats();
    CHECK(after.system_allocations == before.system_allocations);
    CHECK(after.live_bytes == before.live_bytes);
  }
}

TEST_CASE("optimisers refuse parameters and options that make no sense", "[optim]") {
  const Tensor p = zeros({3}).requires_grad_(), q = zeros({2}).requires_grad_();
  const std::vector<Tensor> good{p, q};
  CHECK(message_of([&] { SGD(std::vector<Tensor>{}); }) == "SGD: no parameters: expected at least one, got none");
  CHECK(message_of([&] { SGD({p, q, p}); }) == "SGD: a parameter is given twice: expected each once, got 0 and 2");
  CHECK(message_of([&] {
          Adam(std::vector<NamedTensor>{{"w", p}, {"w", q}});
        }) == "Adam: a name is given twice: expected each once, got w and w");
  CHECK(message_of([&] { Adam({mul(p, p)}); }) ==
        "Adam: parameter 0 was computed: expected a leaf, got the result of an operation; detach() it");
  CHECK(message_of([&] { Adam({zeros({2}, DType::int64)}); }) ==
        "Adam: parameter 0 cannot be optimised: expected float32 or float64, got int64");
  CHECK(message_of([&] { Adam(good, {.lr = -1}); }) ==
        "Adam: lr is out of range: expected a finite number >= 0, got -1");
  CHECK(message_of([&] { Adam(good, {.betas = {0.9, 1}}); }) == "Adam: betas is out of range: expected < 1, got 1");
  CHECK(message_of([&] { AdamW(good, {.eps = -1}); }) == "AdamW: eps is out of range: expected >= 0, got -1");
  CHECK(message_of([&] { RMSprop(good, {.alpha = -0.5}); }) ==
        "RMSprop: alpha is out of range: expected >= 0, got -0.5");
  CHECK(message_of([&] { Adagrad(good, {.lr_decay = -2}); }) ==
        "Adagrad: lr_decay is out of range: expected >= 0, got -2");
  CHECK(message_of([&] { SGD(good, {.weight_decay = -1}); }) ==
        "SGD: weight_decay is out of range: expected >= 0, got -1");
  CHECK(message_of([&] { SGD(good, {.nesterov = true}); }) ==
        "SGD: nesterov needs momentum: expected momentum > 0, got 0");
  CHECK(message_of([&] { SGD(good, {.momentum = 0.5, .dampening = 0.25, .nesterov = true}); }) ==
        "SGD: nesterov excludes dampening: expected dampening 0, got 0.25");
  SGD optimizer(good);
  CHECK(message_of([&] { optimizer.set_lr(INFINITY); }) ==
        "SGD: lr is out of range: expected a finite number >= 0, got inf");
  Betas betas;
  CHECK(from_value(to_value(std::vector<double>{0.5}), betas) == "expected a list of 2 numbers, got 1 in [0.5]");
}

TEST_CASE("the norm of all gradients together is clipped as PyTorch clips it", "[optim]") {
  const Tensor a = zeros({3}, DType::float64).requires_grad_(), b = zeros({2}).requires_grad_();
  const Tensor without = zeros({7}).requires_grad_();
  const auto set = [&] {
    a.set_grad(tensor({3, -1, 2}, DType::float64));
    b.set_grad(tensor({-4, 0.5}));
  };
  set();
  CHECK(clip_grad_norm_({a, b, without}, 2) == 5.5);
  const Tensor expected = tensor({1.0909088925620196, -0.36363629752067317, 0.7272725950413463}, DType::float64);
  CHECK(test::golden_difference(a.grad(), expected, {1e-15, 1}) == "");
  CHECK(test::golden_difference(b.grad(), tensor({-1.4545451900826927, 0.18181814876033658}, DType::float64),
                                {1e-7, 1}) == "");
  set();
  CHECK(clip_grad_norm_({a, b}, 6) == 5.5);
  CHECK(a.grad().to_vector<double>() == std::vector<double>{3, -1, 2});
  clip_grad_value_({a, b, without}, 1.5);
  CHECK(a.grad().to_vector<double>() == std::vector<double>{1.5, -1, 1.5});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{-1.5, 0.5});
  CHECK(message_of([&] { clip_grad_norm_({a}, -1); }) ==
        "clip_grad_norm_: max_norm is out of range: expected >= 0, got -1");
  CHECK(message_of([&] { clip_grad_value_({a}, NAN); }) ==
        "clip_grad_value_: clip_value is out of range: expected >= 0, got nan");
}
