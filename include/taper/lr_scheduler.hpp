#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "taper/fields.hpp"
#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

/// Schedules of an optimiser's learning rate, step for step as PyTorch's.
namespace taper::optim {

class Optimizer;

// --- options ---------------------------------------------------------------------------------------------

/// Numbers of epochs, in JSON a list.
struct Milestones {
  std::vector<std::int64_t> epochs;
  Milestones() = default;
  Milestones(std::initializer_list<std::int64_t> list);
};
FieldType field_type(const Milestones*);
Value to_value(const Milestones& value);
std::string from_value(const Value& from, Milestones& to);

enum class Anneal { cos, linear };
enum class PlateauMode { min, max };
enum class ThresholdMode { rel, abs };
std::span<const char* const> names_of(Anneal);
std::span<const char* const> names_of(PlateauMode);
std::span<const char* const> names_of(ThresholdMode);

struct StepLROptions {
  static constexpr const char* kType = "StepLR";
  std::int64_t step_size = 0;
  double gamma = 0.1;
};

struct MultiStepLROptions {
  static constexpr const char* kType = "MultiStepLR";
  Milestones milestones = {};
  double gamma = 0.1;
};

struct ExponentialLROptions {
  static constexpr const char* kType = "ExponentialLR";
  double gamma = 0;
};

struct CosineAnnealingLROptions {
  static constexpr const char* kType = "CosineAnnealingLR";
  std::int64_t T_max = 0;
  double eta_min = 0;
};

struct LinearLROptions {
  static constexpr const char* kType = "LinearLR";
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::int64_t total_iters = 5;
};

struct OneCycleLROptions {
  static constexpr const char* kType = "OneCycleLR";
  double max_lr = 0;
  std::int64_t total_steps = 0;
  double pct_start = 0.3;
  Anneal anneal_strategy = Anneal::cos;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};

struct ReduceLROnPlateauOptions {
  static constexpr const char* kType = "ReduceLROnPlateau";
  PlateauMode mode = PlateauMode::min;
  double factor = 0.1;
  std::int64_t patience = 10;
  double threshold = 1e-4;
  ThresholdMode threshold_mode = ThresholdMode::rel;
  std::int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;
};

void fields(StepLROptions& options, FieldVisitor& visitor);
void fields(MultiStepLROptions& options, FieldVisitor& visitor);
void fields(ExponentialLROptions& options, FieldVisitor& visitor);
void fields(CosineAnnealingLROptions& options, FieldVisitor& visitor);
void fields(LinearLROptions& options, FieldVisitor& visitor);
void fields(OneCycleLROptions& options, FieldVisitor& visitor);
void fields(ReduceLROnPlateauOptions& options, FieldVisitor& visitor);

// --- schedules ------------------------------------------------------------------------------------------------------

/// Sets the learning rate of an optimiser, which must outlive it: the first rate when it is made, the next one at each
/// `step`, which is called after the optimiser's steps of an epoch (or after each of its steps, as you choose).
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// `metric` is what `ReduceLROnPlateau` watches; the others ignore it.
  void step(std::optional<double> metric = std::nullopt);
  /// How often it has been stepped.
  std::int64_t last_epoch() const { return last_epoch_; }

  /// Counter and numbers as scalars under "scheduler.last_epoch", "scheduler.base_lr", ...
  std::vector<NamedTensor> state_dict() const;
  /// Takes over such a state, all or nothing, and sets the rate that belongs to it.
  /// Errors: `ErrorKind::config` (names), `ErrorKind::shape`, `ErrorKind::type`.
  void load_state_dict(const std::vector<NamedTensor>& state);

  virtual std::string type_name() const = 0;

 protected:
  struct Number {
    const char* name;
    double* value;
  };
  explicit Scheduler(Optimizer& optimizer);
  virtual void change_rate(std::optional<double> metric) = 0;
  virtual void resume() {}
  /// What the state holds beside the counter.
  virtual std::vector<Number> numbers();

  Optimizer& optimizer_;
  double base_lr_;  ///< the optimiser's rate when the schedule was made
  std::int64_t last_epoch_ = 0;

 private:
  friend class SequentialLR;
};

/// A schedule whose rate is a formula of the counter alone.
/// Differs: a rate set by hand lasts until the next step, where PyTorch goes on from it.
class FormulaScheduler : public Scheduler {
 public:
  /// Errors: `ErrorKind::config` for a step after the last one (`OneCycleLR`).
  virtual double lr_at(std::int64_t epoch) const = 0;

 protected:
  using Scheduler::Scheduler;
  void change_rate(std::optional<double> metric) override;
  void resume() override;
};

/// A formula described by an options struct.
template <class O>
class FormulaOf : public FormulaScheduler {
 public:
  using Options = O;
  const Options& options() const { return options_; }
  std::string type_name() const override { return O::kType; }

 protected:
  FormulaOf(Optimizer& optimizer, O options) : FormulaScheduler(optimizer), options_(std::move(options)) {
    check_fields(O::kType, options_);
  }
  O options_;
};

/// base_lr gamma^floor(epoch / step_size). Source: PyTorch, StepLR.
class StepLR : public FormulaOf<StepLROptions> {
 public:
  StepLR(Optimizer& optimizer, const Options& options);
  double lr_at(std::int64_t epoch) const override;
};

/// base_lr gamma^(milestones reached); a milestone counts as often as it is listed. Source: PyTorch, MultiStepLR.
class MultiStepLR : public FormulaOf<MultiStepLROptions> {
 public:
  MultiStepLR(Optimizer& optimizer, const Options& options);
  double lr_at(std::int64_t epoch) const override;
};

/// base_lr gamma^epoch. Source: PyTorch, ExponentialLR.
class ExponentialLR : public FormulaOf<ExponentialLROptions> {
 public:
  ExponentialLR(Optimizer& optimizer, const Options& options);
  double lr_at(std::int64_t epoch) const override;
};

/// eta_min + (base_lr - eta_min) (1 + cos(pi epoch / T_max)) / 2. Source: PyTorch, CosineAnnealingLR.
class CosineAnnealingLR : public FormulaOf<CosineAnnealingLROptions> {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const Options& options);
  double lr_at(std::int64_t epoch) const override;
};

/// base_lr times a factor that goes from start_factor to end_factor in total_iters steps and stays there.
/// Source: PyTorch, LinearLR.
class LinearLR : public FormulaOf<LinearLROptions> {
 public:
  explicit LinearLR(Optimizer& optimizer, const Options& options = {});
  double lr_at(std::int64_t epoch) const override;
};

/// From max_lr / div_factor up to max_lr and down to far below it, with momentum the other way round; stepped after
/// each step of the optimiser. Source: Smith and Topin 2019; PyTorch, OneCycleLR. Differs: `total_steps` must be given;
/// momentum that is off stays off, so `cycle_momentum` with it is an error.
class OneCycleLR : public FormulaOf<OneCycleLROptions> {
 public:
  OneCycleLR(Optimizer& optimizer, const Options& options);
  double lr_at(std::int64_t epoch) const override;

 protected:
  void resume() override;

 private:
  double value_at(std::int64_t epoch, double first, double top, double last) const;
};

/// One schedule after another: schedule i + 1 starts, from its own epoch 0, at milestone i.
/// Source: PyTorch, SequentialLR.
class SequentialLR : public FormulaScheduler {
 public:
  /// All schedules are of `optimizer`. Errors: `ErrorKind::config` unless there is one milestone less than schedules
  /// and the milestones rise.
  SequentialLR(Optimizer& optimizer, std::vector<Shared<FormulaScheduler>> schedules, Milestones milestones);
  ~SequentialLR() override;
  double lr_at(std::int64_t epoch) const override;
  std::string type_name() const override { return "SequentialLR"; }

 protected:
  void resume() override;

 private:
  std::vector<Shared<FormulaScheduler>> schedules_;
  Milestones milestones_;
};

/// Multiplies the rate by `factor` when the metric has not improved for more than `patience` steps.
/// Source: PyTorch, ReduceLROnPlateau.
class ReduceLROnPlateau : public Scheduler {
 public:
  using Options = ReduceLROnPlateauOptions;
  explicit ReduceLROnPlateau(Optimizer& optimizer, const Options& options = {});
  std::string type_name() const override { return Options::kType; }

 protected:
  /// Errors: `ErrorKind::config` without a metric.
  void change_rate(std::optional<double> metric) override;
  std::vector<Number> numbers() override;

 private:
  bool improves(double metric) const;

  Options options_;
  double best_, bad_epochs_ = 0, cooldown_left_ = 0;
};

// --- catalogue
// --------------------------------------------------------------------------------------------------------

/// A schedule as JSON knows it. `SequentialLR`, which is made of others, has no entry.
struct SchedulerType {
  std::string name;           ///< the class name and JSON "type"
  std::string summary;        ///< one sentence
  bool needs_metric = false;  ///< `step` must be told one

  Shared<void> (*new_options)() = nullptr;  ///< with all defaults
  void (*visit)(void* options, FieldVisitor& visitor) = nullptr;
  Shared<Scheduler> (*make)(const void* options, Optimizer& optimizer) = nullptr;
};

/// Every schedule that JSON knows, in the order of the documentation.
const std::vector<SchedulerType>& scheduler_types();
/// Null when there is none of that name.
const SchedulerType* find_scheduler_type(const std::string& name);

}  // namespace taper::optim

#pragma GCC visibility pop
