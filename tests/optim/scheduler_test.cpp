#include <set>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/golden_options.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/optim.hpp"

using namespace taper;
using namespace taper::optim;
using test::message_of;

namespace {

Shared<Scheduler> make_scheduler(const nlohmann::json& config, Optimizer& optimizer) {
  if (config.at("type") != "SequentialLR") {
    const SchedulerType* type = find_scheduler_type(config.at("type"));
    REQUIRE(type != nullptr);
    return type->make(test::options_from(*type, config).get(), optimizer);
  }
  std::vector<Shared<FormulaScheduler>> parts;
  for (const auto& part : config.at("schedulers"))
    parts.push_back(make_scheduler(part, optimizer).as<FormulaScheduler>());
  Milestones milestones;
  milestones.epochs = config.at("milestones").get<std::vector<std::int64_t>>();
  return Shared<SequentialLR>::make(optimizer, std::move(parts), milestones);
}

Tensor parameter() { return tensor({0.5, 0.25}, DType::float64).requires_grad_(); }

std::optional<double> metric_of(const nlohmann::json& stored, std::size_t i) {
  if (!stored.contains("metrics") || i >= stored.at("metrics").size()) return std::nullopt;
  return stored.at("metrics")[i].get<double>();
}

}  // namespace

TEST_CASE("every schedule gives PyTorch's learning rates, also when it is saved and loaded before each step",
          "[optim]") {
  std::set<std::string> seen, offered{"SequentialLR"};
  const auto golden = test::read_golden("schedulers.json");
  for (const auto& stored : golden.at("cases")) {
    CAPTURE(stored.at("name").get<std::string>());
    seen.insert(stored.at("scheduler").at("type"));
    SGD optimizer({parameter()}, {.lr = stored.at("lr")});
    const auto scheduler = make_scheduler(stored.at("scheduler"), optimizer);
    for (std::size_t i = 0; i < stored.at("values").size(); ++i) {
      CHECK(optimizer.lr() == Approx(stored.at("values")[i].get<double>()).epsilon(1e-13).margin(1e-16));
      if (i + 1 == stored.at("values").size()) break;
      SGD other({parameter()}, {.lr = stored.at("lr")});
      const auto resumed = make_scheduler(stored.at("scheduler"), other);
      other.load_state_dict(optimizer.state_dict());
      resumed->load_state_dict(scheduler->state_dict());
      CHECK(other.lr() == optimizer.lr());
      scheduler->step(metric_of(stored, i));
      resumed->step(metric_of(stored, i));
      CHECK(other.lr() == optimizer.lr());
    }
  }
  for (const SchedulerType& type : scheduler_types()) offered.insert(type.name);
  CHECK(seen == offered);
}

TEST_CASE("OneCycleLR moves momentum against the rate as PyTorch does", "[optim]") {
  SGD optimizer({parameter()}, {.lr = 0.5, .momentum = 0.9});
  OneCycleLR scheduler(optimizer, {.max_lr = 0.5, .total_steps = 7});
  for (const double expected : {0.95, 0.8520253513192751, 0.858095594755408, 0.8827317472789346, 0.9142263793315516,
                                0.9400706810933978, 0.95}) {
    CHECK(*optimizer.momentum() == Approx(expected).epsilon(1e-13));
    scheduler.step();
  }
  CHECK(scheduler.last_epoch() == 7);
  CHECK(message_of([&] { scheduler.step(); }) ==
        "OneCycleLR: all steps are taken: expected at most total_steps 7, got 8");
  CHECK(scheduler.last_epoch() == 7);
}

TEST_CASE("schedules refuse options, calls and states that make no sense", "[optim]") {
  SGD optimizer({parameter()}, {.lr = 0.5});
  CHECK(message_of([&] { StepLR(optimizer, {}); }) == "StepLR: step_size is out of range: expected >= 1, got 0");
  CHECK(message_of([&] { MultiStepLR(optimizer, {.milestones = {-3}}); }) ==
        "MultiStepLR: milestones is out of range: expected >= 0, got -3");
  CHECK(message_of([&] { ExponentialLR(optimizer, {.gamma = -0.5}); }) ==
        "ExponentialLR: gamma is out of range: expected >= 0, got -0.5");
  CHECK(message_of([&] { CosineAnnealingLR(optimizer, {}); }) ==
        "CosineAnnealingLR: T_max is out of range: expected >= 1, got 0");
  CHECK(message_of([&] { LinearLR(optimizer, {.start_factor = 0}); }) ==
        "LinearLR: start_factor is out of range: expected > 0, got 0");
  CHECK(message_of([&] { ReduceLROnPlateau(optimizer, {.factor = 1}); }) ==
        "ReduceLROnPlateau: factor is out of range: expected < 1, got 1");
  CHECK(message_of([&] { OneCycleLR(optimizer, {.max_lr = 1, .total_steps = 5}); }) ==
        "OneCycleLR: the optimiser has no momentum to cycle: expected momentum > 0 or betas, got SGD without; set "
        "cycle_momentum to false");
  CHECK(optimizer.lr() == 0.5);

  const auto sequence = [&](Milestones milestones) {
    return message_of([&] {
      std::vector<Shared<FormulaScheduler>> parts;
      for (int i = 0; i < 3; ++i) parts.push_back(Shared<ExponentialLR>::make(optimizer, ExponentialLROptions{0.5}));
      SequentialLR(optimizer, std::move(parts), std::move(milestones));
    });
  };
  CHECK(sequence({5}) == "SequentialLR: one milestone between two schedules: expected 2, got 1");
  CHECK(sequence({5, 5}) == "SequentialLR: milestones must rise: expected > 5, got 5");
  CHECK(message_of([&] { SequentialLR(optimizer, {}, {}); }) ==
        "SequentialLR: no schedules: expected at least one, got none");

  ReduceLROnPlateau plateau(optimizer);
  CHECK(message_of([&] { plateau.step(); }) ==
        "ReduceLROnPlateau: nothing to watch: expected step(metric), got step()");
  CHECK(plateau.last_epoch() == 0);
  StepLR steps(optimizer, {.step_size = 2});
  CHECK(message_of([&] { steps.load_state_dict(plateau.state_dict()); }) ==
        "StepLR: the state belongs to something else: expected its own names only, got scheduler.best");
  CHECK(message_of([&] { plateau.load_state_dict(steps.state_dict()); }) ==
        "ReduceLROnPlateau: the state is not complete: expected scheduler.best, got none of that name");
  auto state = steps.state_dict();
  state[0].tensor = scalar(-1, DType::int64);
  CHECK(message_of([&] { steps.load_state_dict(state); }) ==
        "StepLR: scheduler.last_epoch is out of range: expected >= 0, got -1");
  Milestones milestones;
  CHECK(from_value(Value{2.5}, milestones) == "expected a list of integers, got 2.5");
}
