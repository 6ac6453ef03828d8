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

std::unique_ptr<Scheduler> make_scheduler(const nlohmann::json& config, Optimizer& optimizer) {
  if (config.at("type") != "SequentialLR") {
    const SchedulerType* type = find_scheduler_type(config.at("type"));
    REQUIRE(type != nullptr);
    return type->make(test::options_from(*type, config).get(), optimizer);
  }
  std::vector<std::unique_ptr<FormulaScheduler>> parts;
  for (const auto& part : config.at("schedulers"))
    parts.emplace_back(dynamic_cast<FormulaScheduler*>(make_scheduler(part, optimizer).release()));
  Milestones milestones;
  milestones.epochs = config.at("milestones").get<std::vector<std::int64_t>>();
  return std::make_unique<SequentialLR>(optimizer, std::move(parts), milestones);
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
