#include "base/fail.hpp"
#include "taper/optim.hpp"

namespace taper::optim {

// --- fields ---------------------------------------------------------------------------------------------------------

Milestones::Milestones(std::initializer_list<std::int64_t> list) : epochs(list) {}

FieldType field_type(const Milestones*) { return {.kind = FieldType::numbers}; }

Value to_value(const Milestones& value) {
  Value::List list;
  for (const std::int64_t epoch : value.epochs) list.push_back({epoch});
  return Value(std::move(list));
}

std::string from_value(const Value& from, Milestones& to) {
  const auto* list = from.get<Value::List>();
  if (!list) return cat("expected a list of integers, got ", to_json(from));
  Milestones milestones;
  for (const Value& item : *list) {
    std::string problem = taper::from_value(item, milestones.epochs.emplace_back());
    if (!problem.empty()) return problem;
  }
  to = std::move(milestones);
  return "";
}

std::span<const char* const> names_of(Anneal) {
  static constexpr const char* kNames[] = {"cos", "linear"};
  return kNames;
}
std::span<const char* const> names_of(PlateauMode) {
  static constexpr const char* kNames[] = {"min", "max"};
  return kNames;
}
std::span<const char* const> names_of(ThresholdMode) {
  static constexpr const char* kNames[] = {"rel", "abs"};
  return kNames;
}

namespace {

void gamma_field(double& gamma, FieldVisitor& visit, bool required) {
  visit({"gamma", "what the rate is multiplied by", kNonNegative, required}, gamma);
}

}  // namespace

void fields(StepLROptions& o, FieldVisitor& visit) {
  visit({"step_size", "epochs from one change to the next", kPositive, true}, o.step_size);
  gamma_field(o.gamma, visit, false);
}

void fields(MultiStepLROptions& o, FieldVisitor& visit) {
  visit({"milestones", "the epochs of the changes", kNonNegative, true}, o.milestones);
  gamma_field(o.gamma, visit, false);
}

void fields(ExponentialLROptions& o, FieldVisitor& visit) { gamma_field(o.gamma, visit, true); }

void fields(CosineAnnealingLROptions& o, FieldVisitor& visit) {
  visit({"T_max", "epochs from the highest rate to the lowest", kPositive, true}, o.T_max);
  visit({"eta_min", "the lowest rate", kNonNegative}, o.eta_min);
}

void fields(LinearLROptions& o, FieldVisitor& visit) {
  visit({"start_factor", "factor at epoch 0", {.min = 0, .max = 1, .exclusive_min = true}}, o.start_factor);
  visit({"end_factor", "factor from epoch total_iters on", kProbability}, o.end_factor);
  visit({"total_iters", "epochs from one factor to the other", kPositive}, o.total_iters);
}

void fields(OneCycleLROptions& o, FieldVisitor& visit) {
  visit({"max_lr", "the highest rate", kNonNegative, true}, o.max_lr);
  visit({"total_steps", "steps of the whole cycle", kPositive, true}, o.total_steps);
  visit({"pct_start", "share of the steps in which the rate rises", kProbability}, o.pct_start);
  visit({"anneal_strategy", "the form of the way up and down"}, o.anneal_strategy);
  visit({"cycle_momentum", "move momentum against the rate"}, o.cycle_momentum);
  visit({"base_momentum", "the lowest momentum", kDecay}, o.base_momentum);
  visit({"max_momentum", "the highest momentum", kDecay}, o.max_momentum);
  visit({"div_factor", "max_lr over the first rate", kAboveZero}, o.div_factor);
  visit({"final_div_factor", "first rate over the last rate", kAboveZero}, o.final_div_factor);
  visit({"three_phase", "come down as slowly as it rose, then on to the last rate"}, o.three_phase);
}

void fields(ReduceLROnPlateauOptions& o, FieldVisitor& visit) {
  visit({"mode", "whether a better metric is smaller or larger"}, o.mode);
  visit({"factor", "what the rate is multiplied by", kDecay}, o.factor);
  visit({"patience", "how many epochs may pass without improvement", kNonNegative}, o.patience);
  visit({"threshold", "what counts as an improvement", kNonNegative}, o.threshold);
  visit({"threshold_mode", "threshold relative to the best metric, or absolute"}, o.threshold_mode);
  visit({"cooldown", "epochs after a change that do not count", kNonNegative}, o.cooldown);
  visit({"min_lr", "the lowest rate", kNonNegative}, o.min_lr);
  visit({"eps", "smaller changes of the rate are not made", kNonNegative}, o.eps);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

namespace {

template <class S>
SchedulerType scheduler_type(const char* summary, bool needs_metric = false) {
  using O = typename S::Options;
  return {.name = O::kType,
          .summary = summary,
          .needs_metric = needs_metric,
          .new_options = []() -> Shared<void> { return Shared<O>::make(); },
          .visit = [](void* options, FieldVisitor& visitor) { fields(*static_cast<O*>(options), visitor); },
          .make = [](const void* options, Optimizer& optimizer) -> Shared<Scheduler> {
            return Shared<S>::make(optimizer, *static_cast<const O*>(options));
          }};
}

}  // namespace

const std::vector<SchedulerType>& scheduler_types() {
  static const std::vector<SchedulerType> types = {
      scheduler_type<StepLR>("Multiplies the rate every few epochs."),
      scheduler_type<MultiStepLR>("Multiplies the rate at given epochs."),
      scheduler_type<ExponentialLR>("Multiplies the rate every epoch."),
      scheduler_type<CosineAnnealingLR>("Half a cosine from the first rate to the lowest."),
      scheduler_type<LinearLR>("A straight line from one factor to another, as for a warm-up."),
      scheduler_type<OneCycleLR>("Up to the highest rate and down again, step by step."),
      scheduler_type<ReduceLROnPlateau>("Multiplies the rate when a metric stops improving.", true),
  };
  return types;
}

const SchedulerType* find_scheduler_type(const std::string& name) {
  for (const SchedulerType& type : scheduler_types())
    if (type.name == name) return &type;
  return nullptr;
}

}  // namespace taper::optim
