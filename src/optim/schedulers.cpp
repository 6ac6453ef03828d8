#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/fail.hpp"
#include "optim/state_reader.hpp"
#include "taper/creation.hpp"
#include "taper/optim.hpp"

namespace taper::optim {

// --- what all share -------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kSchedulerPrefix = "scheduler.";

}  // namespace

Scheduler::Scheduler(Optimizer& optimizer) : optimizer_(optimizer), base_lr_(optimizer.lr()) {}

std::vector<Scheduler::Number> Scheduler::numbers() { return {{"base_lr", &base_lr_}}; }

void Scheduler::step(std::optional<double> metric) {
  ++last_epoch_;
  try {
    change_rate(metric);
  } catch (...) {
    --last_epoch_;
    throw;
  }
}

std::vector<NamedTensor> Scheduler::state_dict() const {
  std::vector<NamedTensor> out{{cat(kSchedulerPrefix, "last_epoch"), from_data(&last_epoch_, Shape())}};
  for (const Number& number : const_cast<Scheduler*>(this)->numbers())  // only read
    out.push_back({cat(kSchedulerPrefix, number.name), scalar(*number.value, DType::float64)});
  return out;
}

void Scheduler::load_state_dict(const std::vector<NamedTensor>& state) {
  const std::string where = type_name();
  StateReader reader(where.c_str(), state);
  const std::int64_t epoch = *reader.take(cat(kSchedulerPrefix, "last_epoch"), Shape(), false).data<std::int64_t>();
  if (epoch < 0)
    fail(ErrorKind::config, where, ": ", kSchedulerPrefix, "last_epoch is out of range: expected >= 0, got ", epoch);
  std::vector<double> values;
  for (const Number& number : numbers())
    values.push_back(reader.take(cat(kSchedulerPrefix, number.name), Shape(), true).item());
  reader.refuse_rest();
  last_epoch_ = epoch;
  auto value = values.begin();
  for (const Number& number : numbers()) *number.value = *value++;
  resume();
}

// --- formulas -------------------------------------------------------------------------------------------------------

void FormulaScheduler::change_rate(std::optional<double>) { resume(); }

void FormulaScheduler::resume() { optimizer_.set_lr(lr_at(last_epoch_)); }

StepLR::StepLR(Optimizer& optimizer, const Options& options) : FormulaOf(optimizer, options) { resume(); }

double StepLR::lr_at(std::int64_t epoch) const {
  return base_lr_ * std::pow(options_.gamma, double(epoch / options_.step_size));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const Options& options) : FormulaOf(optimizer, options) { resume(); }

double MultiStepLR::lr_at(std::int64_t epoch) const {
  const auto& epochs = options_.milestones.epochs;
  const auto reached = std::count_if(epochs.begin(), epochs.end(), [&](std::int64_t m) { return m <= epoch; });
  return base_lr_ * std::pow(options_.gamma, double(reached));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, const Options& options) : FormulaOf(optimizer, options) { resume(); }

double ExponentialLR::lr_at(std::int64_t epoch) const { return base_lr_ * std::pow(options_.gamma, double(epoch)); }

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const Options& options) : FormulaOf(optimizer, options) {
  resume();
}

double CosineAnnealingLR::lr_at(std::int64_t epoch) const {
  const double turn = std::cos(std::numbers::pi * double(epoch) / double(options_.T_max));
  return options_.eta_min + (base_lr_ - options_.eta_min) * (1 + turn) / 2;
}

LinearLR::LinearLR(Optimizer& optimizer, const Options& options) : FormulaOf(optimizer, options) { resume(); }

double LinearLR::lr_at(std::int64_t epoch) const {
  const double done = double(std::min(epoch, options_.total_iters)) / double(options_.total_iters);
  return base_lr_ * (options_.start_factor + (options_.end_factor - options_.start_factor) * done);
}

// --- OneCycleLR -----------------------------------------------------------------------------------------------------

OneCycleLR::OneCycleLR(Optimizer& optimizer, const Options& options) : FormulaOf(optimizer, options) {
  if (options.cycle_momentum && !optimizer.momentum())
    fail(ErrorKind::config, "OneCycleLR: the optimiser has no momentum to cycle: expected momentum > 0 or betas, got ",
         optimizer.type_name(), " without; set cycle_momentum to false");
  resume();
}

double OneCycleLR::value_at(std::int64_t epoch, double first, double top, double last) const {
  const double total = double(options_.total_steps), rise = options_.pct_start * total - 1;
  // The ends of the phases, and the values between which they go.
  struct Phase {
    double end, from, to;
  };
  const Phase two[] = {{rise, first, top}, {total - 1, top, last}};
  const Phase three[] = {{rise, first, top}, {2 * rise, top, first}, {total - 1, first, last}};
  const auto phases = options_.three_phase ? std::span<const Phase>(three) : std::span<const Phase>(two);
  double start = 0;
  std::size_t i = 0;
  for (; i + 1 < phases.size() && double(epoch) > phases[i].end; ++i) start = phases[i].end;
  const auto& [end, from, to] = phases[i];
  const double done = (double(epoch) - start) / (end - start);
  if (options_.anneal_strategy == Anneal::linear) return (to - from) * done + from;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * done) + 1);
}

double OneCycleLR::lr_at(std::int64_t epoch) const {
  if (epoch > options_.total_steps)
    fail(ErrorKind::config, "OneCycleLR: all steps are taken: expected at most total_steps ", options_.total_steps,
         ", got ", epoch);
  const double first = options_.max_lr / options_.div_factor;
  return value_at(epoch, first, options_.max_lr, first / options_.final_div_factor);
}

void OneCycleLR::resume() {
  FormulaScheduler::resume();
  if (options_.cycle_momentum)
    *optimizer_.momentum() =
        value_at(last_epoch_, options_.max_momentum, options_.base_momentum, options_.max_momentum);
}

// --- SequentialLR ---------------------------------------------------------------------------------------------------

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<Shared<FormulaScheduler>> schedules, Milestones milestones)
    : FormulaScheduler(optimizer), schedules_(std::move(schedules)), milestones_(std::move(milestones)) {
  const auto& epochs = milestones_.epochs;
  if (schedules_.empty()) fail(ErrorKind::config, "SequentialLR: no schedules: expected at least one, got none");
  if (epochs.size() + 1 != schedules_.size())
    fail(ErrorKind::config, "SequentialLR: one milestone between two schedules: expected ", schedules_.size() - 1,
         ", got ", epochs.size());
  for (std::size_t i = 0; i < epochs.size(); ++i)
    if (epochs[i] <= (i ? epochs[i - 1] : 0))
      fail(ErrorKind::config, "SequentialLR: milestones must rise: expected > ", i ? epochs[i - 1] : 0, ", got ",
           epochs[i]);
  // Making the others has changed the rate, so only the first knows it.
  base_lr_ = schedules_[0]->base_lr_;
  resume();
}

namespace {

/// Which schedule rules at `epoch`.
std::size_t ruling(const Milestones& milestones, std::int64_t epoch) {
  const auto& epochs = milestones.epochs;
  return std::size_t(std::upper_bound(epochs.begin(), epochs.end(), epoch) - epochs.begin());
}

}  // namespace

SequentialLR::~SequentialLR() = default;

double SequentialLR::lr_at(std::int64_t epoch) const {
  const std::size_t i = ruling(milestones_, epoch);
  schedules_[i]->base_lr_ = base_lr_;
  return schedules_[i]->lr_at(i ? epoch - milestones_.epochs[i - 1] : epoch);
}

void SequentialLR::resume() {
  const std::size_t i = ruling(milestones_, last_epoch_);
  FormulaScheduler& schedule = *schedules_[i];
  schedule.base_lr_ = base_lr_;
  schedule.last_epoch_ = i ? last_epoch_ - milestones_.epochs[i - 1] : last_epoch_;
  static_cast<Scheduler&>(schedule).resume();
}

// --- ReduceLROnPlateau ----------------------------------------------------------------------------------------------

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const Options& options)
    : Scheduler(optimizer),
      options_(options),
      best_(options.mode == PlateauMode::min ? std::numeric_limits<double>::infinity()
                                             : -std::numeric_limits<double>::infinity()) {
  check_fields(Options::kType, options_);
}

bool ReduceLROnPlateau::improves(double metric) const {
  const bool relative = options_.threshold_mode == ThresholdMode::rel;
  if (options_.mode == PlateauMode::min)
    return metric < (relative ? best_ * (1 - options_.threshold) : best_ - options_.threshold);
  return metric > (relative ? best_ * (options_.threshold + 1) : best_ + options_.threshold);
}

void ReduceLROnPlateau::change_rate(std::optional<double> metric) {
  if (!metric) fail(ErrorKind::config, "ReduceLROnPlateau: nothing to watch: expected step(metric), got step()");
  const bool better = improves(*metric);
  if (better) best_ = *metric;
  bad_epochs_ = better ? 0 : bad_epochs_ + 1;
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  if (bad_epochs_ <= double(options_.patience)) return;
  cooldown_left_ = double(options_.cooldown);
  bad_epochs_ = 0;
  const double old = optimizer_.lr(), reduced = std::max(old * options_.factor, options_.min_lr);
  if (old - reduced > options_.eps) optimizer_.set_lr(reduced);
}

std::vector<Scheduler::Number> ReduceLROnPlateau::numbers() {
  return {{"base_lr", &base_lr_},
          {"best", &best_},
          {"num_bad_epochs", &bad_epochs_},
          {"cooldown_counter", &cooldown_left_}};
}

}  // namespace taper::optim
