#include "train/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/fail.hpp"
#include "base/threads.hpp"
#include "config/json_text.hpp"
#include "taper/creation.hpp"
#include "taper/ops.hpp"
#include "train/finite.hpp"
#include "train/prepare.hpp"
#include "train/run_config.hpp"

namespace taper::train {

namespace {

constexpr const char* kReasons[] = {"finished", "early_stopping", "interrupted"};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

std::vector<std::string> metric_columns(const config::TrainingConfig& config, bool has_validation) {
  std::vector<std::string> columns = {"epoch", "lr"};
  for (const char* part : {"train_", "val_"}) {
    if (part[0] == 'v' && !has_validation) continue;
    columns.push_back(cat(part, "loss"));
    for (const Metric metric : config.metrics) columns.push_back(cat(part, name_of(metric)));
  }
  return columns;
}

/// One training from its first to its last step.
class Trainer {
 public:
  Trainer(const config::TrainingConfig& config, const RunDirectory& run, const TrainControls& controls);

  void restore(const Checkpoint& checkpoint);
  TrainResult run();

 private:
  bool has_validation() const { return data_.has_validation(); }
  bool is_stopped() const { return controls_.stop && *controls_.stop; }
  std::int64_t count_batches() const;
  void check_batch_sizes() const;
  void check_schedule() const;
  void start();
  bool train_epoch();
  void train_batch(std::int64_t first, std::int64_t count);
  std::vector<Tensor> differentiate_batch(const Tensor& index);
  void check_gradients() const;
  std::vector<double> row_of(const MetricSums& validation) const;
  double in_row(const std::string& column, const std::vector<double>& row) const;
  bool end_of_epoch(const std::vector<double>& row);
  Checkpoint checkpoint() const;
  void save(const std::string& path, bool is_best);
  [[noreturn]] void fail_diverged(const std::string& what) const;
  void event(config::Json json) const;
  TrainResult stop(StopReason reason);

  const config::TrainingConfig& config_;
  const TrainOptions& options_;
  const RunDirectory& run_;
  const TrainControls& controls_;
  Listener silent_;
  Listener& listener_;
  const std::string config_text_;

  TrainingData data_;
  Shared<nn::Module> model_;
  Shared<nn::Loss> loss_;
  Shared<optim::Optimizer> optimizer_;
  Shared<optim::Scheduler> scheduler_;
  CapturedStep batch_;  ///< from indices of samples to loss, outputs, targets and gradients
  std::optional<Evaluator> evaluator_;
  std::vector<Tensor> parameters_;
  bool sum_reduction_, steps_each_batch_;
  std::int64_t epochs_, batches_;
  std::vector<std::string> columns_;
  std::string monitor_;

  Progress progress_;
  Tensor order_;  ///< of the samples in this epoch
  std::vector<double> last_row_;
  std::int64_t saved_step_ = -1;  ///< the step last.safetensors holds; -1: none of this run
  std::int64_t saved_epoch_ = -1;
  Clock::time_point epoch_start_;
  std::int64_t epoch_samples_ = 0;  ///< since `epoch_start_`
};

Trainer::Trainer(const config::TrainingConfig& config, const RunDirectory& run, const TrainControls& controls)
    : config_(config),
      options_(config.train),
      run_(run),
      controls_(controls),
      listener_(controls.listener ? *controls.listener : silent_),
      config_text_(config.to_json()),
      data_(prepare_data(config)),
      batch_([this](const Tensor& index) { return differentiate_batch(index); },
             {.enabled = controls.replay, .eager_if_refused = true}) {
  const auto seed = std::uint64_t(options_.seed);
  if (options_.overfit_batches > 0) {
    const std::int64_t n = std::min(data_.train.size(), options_.overfit_batches * options_.batch_size);
    data_.train = data_.train.subset(narrow(data::epoch_order(data_.train.size(), seed, 0), 0, 0, n));
  }
  manual_seed(seed);
  model_ = config::build_model(config.model);
  check_names(model_->state_dict());
  loss_ = config.loss.type->make(config.loss.options.get());
  optimizer_ = config.optimizer.type->make(config.optimizer.options.get(), model_->named_parameters());
  if (config.scheduler.type) scheduler_ = config.scheduler.type->make(config.scheduler.options.get(), *optimizer_);
  parameters_ = model_->parameters();
  evaluator_.emplace(*model_, *loss_);

  const Value reduction = option_of(config.loss, "reduction");
  const auto* reduced = reduction.get<std::string>();
  if (reduced && *reduced == "none")
    fail(ErrorKind::config, "/loss/reduction: a training needs one number: expected mean or sum, got none");
  sum_reduction_ = reduced && *reduced == "sum";
  // PyTorch's one schedule that counts steps of the optimiser.
  steps_each_batch_ = scheduler_ && config.scheduler.type->name == "OneCycleLR";
  epochs_ = options_.fast_dev_run ? std::min<std::int64_t>(options_.epochs, 1) : options_.epochs;
  batches_ = count_batches();
  check_batch_sizes();
  if (steps_each_batch_) check_schedule();
  columns_ = metric_columns(config, has_validation());
  monitor_ = options_.checkpoint.monitor;
  if (monitor_.empty() && options_.early_stopping) monitor_ = options_.early_stopping->monitor;
  if (monitor_.empty()) monitor_ = has_validation() ? "val_loss" : "train_loss";
  for (const auto& column : {monitor_, options_.early_stopping ? options_.early_stopping->monitor : monitor_})
    if (std::find(columns_.begin() + 2, columns_.end(), column) == columns_.end())
      fail(ErrorKind::config, "train: nothing measures ", column, ": expected a column of metrics.csv");
}

std::int64_t Trainer::count_batches() const {
  const std::int64_t n = data_.train.size(), size = options_.batch_size;
  std::int64_t batches = n / size + (!options_.drop_last && n % size != 0 ? 1 : 0);
  if (batches == 0)
    fail(ErrorKind::config, "/train/batch_size: no batch is full and drop_last leaves out the rest: expected at most ",
         n, ", got ", size);
  if (options_.limit_batches) batches = std::min(batches, *options_.limit_batches);
  return options_.fast_dev_run ? 1 : batches;
}

namespace {

/// The first layer that cannot be trained on one sample: a batch norm of one value for each channel of it.
const config::LayerSpec* first_that_needs_two(std::span<const config::LayerSpec> layers) {
  for (const config::LayerSpec& layer : layers) {
    if (layer.type_name().starts_with("BatchNorm") && layer.output.numel() == layer.output[1]) return &layer;
    if (const auto* inner = first_that_needs_two(layer.layers)) return inner;
  }
  return nullptr;
}

}  // namespace

/// What would fail at the end of the first epoch is refused before it.
void Trainer::check_batch_sizes() const {
  const std::int64_t n = data_.train.size(), size = options_.batch_size;
  if (size > 1 && n - (batches_ - 1) * size != 1) return;
  if (const config::LayerSpec* layer = first_that_needs_two(config_.model.layers))
    fail(ErrorKind::config, "/train/batch_size: a batch of one sample is too small for the ", layer->type_name(),
         " at ", layer->pointer, ": expected at least 2 samples in each, got ", n, " in batches of ", size,
         size > 1 ? "; drop_last leaves the last one out" : "");
}

/// A schedule with an end must not reach it in the middle of the training.
void Trainer::check_schedule() const {
  const Value total = option_of(config_.scheduler, "total_steps");
  const std::int64_t steps = epochs_ * batches_;
  if (*total.get<std::int64_t>() < steps)
    fail(ErrorKind::config, "/scheduler/total_steps: the schedule ends before the training: expected at least ", steps,
         " (", epochs_, " epochs of ", batches_, " batches), got ", *total.get<std::int64_t>());
}

void Trainer::restore(const Checkpoint& c) {
  model_->load_state_dict(c.model);
  optimizer_->load_state_dict(c.optimizer);
  if (scheduler_) scheduler_->load_state_dict(c.scheduler);
  progress_ = c.progress;
  if (progress_.batch > batches_)
    fail(ErrorKind::format, run_.last(), ": batch: expected at most ", batches_, ", got ", progress_.batch);
  detail::set_random_state(c.random);
  saved_step_ = progress_.step;
  saved_epoch_ = progress_.epoch;
}

// --- the loop -------------------------------------------------------------------------------------------------------

TrainResult Trainer::run() {
  const threads::FlushDenormals flush(options_.flush_denormal);
  start();
  model_->train();
  while (progress_.epoch < epochs_) {
    if (!train_epoch()) return stop(StopReason::interrupted);
    Evaluation validation;
    if (has_validation()) {
      validation = evaluator_->run(data_.validation.inputs, data_.validation.targets,
                                   {.batch_size = options_.batch_size,
                                    .sum_reduction = sum_reduction_,
                                    .limit_batches = options_.fast_dev_run ? 1 : INT64_MAX,
                                    .stop = controls_.stop});
      if (!validation.complete) return stop(StopReason::interrupted);
    }
    if (end_of_epoch(row_of(validation.sums))) return stop(StopReason::early_stopping);
    if (is_stopped() && progress_.epoch < epochs_) return stop(StopReason::interrupted);
  }
  return stop(StopReason::finished);
}

void Trainer::start() {
  run_.write("config.json", config_text_);
  run_.write("env.json", env_json({.command_line = controls_.command_line,
                                   .base_directory = absolute(config_.data.train->base_directory),
                                   .seed = options_.seed,
                                   .fingerprints = data_.fingerprints}));
  run_.start_metrics(columns_, progress_.epoch);
  event({{"event", "start"}, {"epoch", progress_.epoch}, {"batch", progress_.batch}, {"step", progress_.step}});
  listener_.on_start({.config = config_,
                      .run = run_.path(),
                      .parameters = model_->parameter_count(),
                      .train_samples = data_.train.size(),
                      .validation_samples = has_validation() ? data_.validation.size() : 0,
                      .batches = batches_,
                      .epochs = epochs_,
                      .first_epoch = progress_.epoch,
                      .first_batch = progress_.batch,
                      .columns = columns_});
}

/// False when it was stopped before the last batch.
bool Trainer::train_epoch() {
  order_ = data::epoch_order(data_.train.size(), std::uint64_t(options_.seed), progress_.epoch, options_.shuffle);
  epoch_start_ = Clock::now();
  epoch_samples_ = 0;
  while (progress_.batch < batches_) {
    if (is_stopped()) return false;
    const std::int64_t first = progress_.batch * options_.batch_size;
    const std::int64_t count = std::min(options_.batch_size, data_.train.size() - first);
    const double lr = optimizer_->lr();
    train_batch(first, count);
    ++progress_.batch;
    ++progress_.step;
    epoch_samples_ += count;
    listener_.on_batch({.epoch = progress_.epoch + 1,
                        .batch = progress_.batch,
                        .batches = batches_,
                        .samples_per_second = double(epoch_samples_) / std::max(1e-9, seconds_since(epoch_start_)),
                        .loss = progress_.sums.mean_loss(),
                        .accuracy = data_.train.has_classes() ? progress_.sums.value(Metric::accuracy) : NAN,
                        .lr = lr});
  }
  return true;
}

/// What is the same for all batches of one size, and therefore replayed; what depends on values comes after it.
std::vector<Tensor> Trainer::differentiate_batch(const Tensor& index) {
  const Tensor targets = index_select(data_.train.targets, 0, index);
  const Tensor outputs = (*model_)(index_select(data_.train.inputs, 0, index));
  const Tensor loss = (*loss_)(outputs, targets);
  optimizer_->zero_grad();
  loss.backward();
  return {loss, outputs, targets};
}

void Trainer::train_batch(std::int64_t first, std::int64_t count) {
  const bool was_replayed = batch_.refusal().empty();
  const auto& results = batch_(narrow(order_, 0, first, count));
  if (was_replayed && !batch_.refusal().empty())
    listener_.on_warning(cat("train: batches are computed operation by operation: ", batch_.refusal()));
  const Tensor &loss = results[0], &outputs = results[1], &targets = results[2];
  const double value = loss.item();
  if (!std::isfinite(value)) fail_diverged(cat("the loss is ", value));
  check_gradients();
  if (options_.clip_grad_value) optim::clip_grad_value_(parameters_, *options_.clip_grad_value);
  if (options_.clip_grad_norm) optim::clip_grad_norm_(parameters_, *options_.clip_grad_norm);
  optimizer_->step();
  if (steps_each_batch_) scheduler_->step();
  add_batch(progress_.sums, outputs, targets, value, sum_reduction_);
}

void Trainer::check_gradients() const {
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    const std::int64_t bad = find_non_finite(gradient);
    if (bad >= 0) fail_diverged(cat("the gradient of ", name, " is not finite at element ", bad));
  }
}

void Trainer::fail_diverged(const std::string& what) const {
  std::string sentence = cat("train: ", what, " in step ", progress_.step + 1, " (epoch ", progress_.epoch + 1,
                             ", batch ", progress_.batch + 1, ')');
  for (const auto& [name, parameter] : optimizer_->parameters())
    if (const std::int64_t bad = find_non_finite(parameter); bad >= 0) {
      sentence += cat("; first bad tensor: ", name, ", element ", bad);
      break;
    }
  sentence += "; the step was not taken; a lower learning rate or clip_grad_norm may help";
  event({{"event", "stop"}, {"reason", "diverged"}, {"message", sentence}});
  throw DivergedError(sentence);
}

// --- the end of an epoch --------------------------------------------------------------------------------------------

std::vector<double> Trainer::row_of(const MetricSums& validation) const {
  std::vector<double> row = {double(progress_.epoch + 1), optimizer_->lr()};
  for (const MetricSums* sums : {&progress_.sums, &validation}) {
    if (sums == &validation && !has_validation()) continue;
    row.push_back(sums->mean_loss());
    for (const Metric metric : config_.metrics) row.push_back(sums->value(metric));
  }
  return row;
}

double Trainer::in_row(const std::string& column, const std::vector<double>& row) const {
  return row[std::size_t(std::find(columns_.begin(), columns_.end(), column) - columns_.begin())];
}

/// Writes down what the epoch gave; whether early stopping ends the run.
bool Trainer::end_of_epoch(const std::vector<double>& row) {
  const double monitored = in_row(monitor_, row);
  if (scheduler_ && !steps_each_batch_) scheduler_->step(monitored);
  ++progress_.epoch;
  progress_.batch = 0;
  progress_.sums = {};

  std::string line;
  config::Json json = {{"event", "epoch"}};
  for (std::size_t i = 0; i < row.size(); ++i) {
    line += i == 0 ? cat(progress_.epoch) : cat(',', row[i]);
    json[columns_[i]] = row[i];
  }
  run_.append("metrics.csv", line);
  event(std::move(json));
  last_row_ = row;
  listener_.on_epoch({.epoch = progress_.epoch,
                      .epochs = epochs_,
                      .columns = columns_,
                      .values = last_row_,
                      .seconds = seconds_since(epoch_start_)});

  const bool is_best =
      progress_.best.offer(monitored, progress_.epoch, larger_is_better(monitor_, options_.checkpoint.mode));
  bool ends = false;
  if (const auto& early = options_.early_stopping) {
    progress_.stopping.offer(in_row(early->monitor, row), progress_.epoch,
                             larger_is_better(early->monitor, early->mode), early->min_delta);
    ends = progress_.stopping.waited >= early->patience;
  }
  if (is_best) save(run_.best(), true);
  if (options_.checkpoint.save_last && progress_.epoch % options_.checkpoint.every_n_epochs == 0)
    save(run_.last(), false);
  return ends;
}

Checkpoint Trainer::checkpoint() const {
  return {.config = config_text_,
          .model = model_->state_dict(),
          .optimizer = optimizer_->state_dict(),
          .scheduler = scheduler_ ? scheduler_->state_dict() : std::vector<NamedTensor>{},
          .normalization = data_.normalization,
          .labels = data_.train.labels,
          .fingerprints = data_.fingerprints,
          .progress = progress_,
          .random = detail::random_state()};
}

void Trainer::save(const std::string& path, bool is_best) {
  save_checkpoint(path, checkpoint());
  if (!is_best) saved_step_ = progress_.step, saved_epoch_ = progress_.epoch;
  event({{"event", "checkpoint"},
         {"file", is_best ? "best" : "last"},
         {"epoch", progress_.epoch},
         {"step", progress_.step}});
  listener_.on_checkpoint(path, progress_.epoch, is_best);
}

TrainResult Trainer::stop(StopReason reason) {
  const bool is_saved = saved_step_ == progress_.step && saved_epoch_ == progress_.epoch;
  if (options_.checkpoint.save_last && !is_saved) save(run_.last(), false);
  event({{"event", "stop"},
         {"reason", kReasons[std::size_t(reason)]},
         {"epoch", progress_.epoch},
         {"step", progress_.step}});
  TrainResult result{
      .reason = reason,
      .progress = progress_,
      .columns = columns_,
      .last_row = last_row_,
      .monitor = monitor_,
      .trained = {
          .config = config_, .model = model_, .normalization = data_.normalization, .labels = data_.train.labels}};
  if (reason != StopReason::interrupted && options_.early_stopping && options_.early_stopping->restore_best &&
      progress_.best.value)
    load_weights(run_.best(), *model_);
  model_->eval();
  listener_.on_stop(reason);
  return result;
}

void Trainer::event(config::Json json) const {
  json["time"] =
      double(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
                 .count()) /
      1000;
  run_.append("events.jsonl", json.dump(-1, ' ', false, config::Json::error_handler_t::replace));
}

}  // namespace

std::span<const char* const> names_of(StopReason) { return kReasons; }

TrainResult train(const config::TrainingConfig& config, const RunDirectory& run, const TrainControls& controls) {
  return Trainer(config, run, controls).run();
}

TrainResult resume(const config::TrainingConfig& config, const RunDirectory& run, const TrainControls& controls) {
  const Checkpoint checkpoint = load_checkpoint(run.last());
  check_same_run(run.last(), checkpoint, config);
  Trainer trainer(config, run, controls);
  trainer.restore(checkpoint);
  return trainer.run();
}

}  // namespace taper::train
