#include "kernels/optimizers.hpp"
#include "base/fail.hpp"
#include "taper/optim.hpp"

namespace taper::optim {

using kernels::StepArrays;

namespace {

std::span<const char* const> adam_buffers(bool amsgrad) {
  static constexpr const char* kNames[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {kNames, amsgrad ? 3u : 2u};
}

template <class Options>
kernels::AdamStep adam_step_of(const Options& o, double lr, std::int64_t step, bool decoupled) {
  return {.lr = lr,
          .beta1 = o.betas.first,
          .beta2 = o.betas.second,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .amsgrad = o.amsgrad,
          .decoupled = decoupled,
          .maximize = o.maximize,
          .step = step};
}

void run(const kernels::AdamStep& s, std::span<const StepArrays> parameters, DType dtype) {
  dtype == DType::float32 ? kernels::adam_step<float>(s, parameters) : kernels::adam_step<double>(s, parameters);
}

}  // namespace

// --- SGD ------------------------------------------------------------------------------------------------------------

SGD::SGD(const std::vector<Tensor>& parameters, const Options& options) : SGD(numbered(parameters), options) {}

SGD::SGD(std::vector<NamedTensor> parameters, const Options& options)
    : OptimizerOf(std::move(parameters), options), moves_(options.momentum != 0) {
  if (options.nesterov && options.momentum == 0)
    fail(ErrorKind::config, "SGD: nesterov needs momentum: expected momentum > 0, got 0");
  if (options.nesterov && options.dampening != 0)
    fail(ErrorKind::config, "SGD: nesterov excludes dampening: expected dampening 0, got ", options.dampening);
}

std::span<const char* const> SGD::buffer_names() const {
  static constexpr const char* kNames[] = {"momentum_buffer"};
  return {kNames, moves_ ? 1u : 0u};
}

void SGD::update(std::span<const StepArrays> parameters, DType dtype, std::int64_t step) {
  const kernels::SgdStep s{.lr = lr(),
                           .momentum = options_.momentum,
                           .dampening = options_.dampening,
                           .weight_decay = options_.weight_decay,
                           .nesterov = options_.nesterov,
                           .maximize = options_.maximize,
                           .first = step == 1};
  dtype == DType::float32 ? kernels::sgd_step<float>(s, parameters) : kernels::sgd_step<double>(s, parameters);
}

// --- Adam, AdamW ----------------------------------------------------------------------------------------------------

Adam::Adam(const std::vector<Tensor>& parameters, const Options& options) : Adam(numbered(parameters), options) {}

Adam::Adam(std::vector<NamedTensor> parameters, const Options& options) : OptimizerOf(std::move(parameters), options) {}

std::span<const char* const> Adam::buffer_names() const { return adam_buffers(options_.amsgrad); }

void Adam::update(std::span<const StepArrays> parameters, DType dtype, std::int64_t step) {
  run(adam_step_of(options_, lr(), step, false), parameters, dtype);
}

AdamW::AdamW(const std::vector<Tensor>& parameters, const Options& options) : AdamW(numbered(parameters), options) {}

AdamW::AdamW(std::vector<NamedTensor> parameters, const Options& options)
    : OptimizerOf(std::move(parameters), options) {}

std::span<const char* const> AdamW::buffer_names() const { return adam_buffers(options_.amsgrad); }

void AdamW::update(std::span<const StepArrays> parameters, DType dtype, std::int64_t step) {
  run(adam_step_of(options_, lr(), step, true), parameters, dtype);
}

// --- RMSprop --------------------------------------------------------------------------------------------------------

RMSprop::RMSprop(const std::vector<Tensor>& parameters, const Options& options)
    : RMSprop(numbered(parameters), options) {}

RMSprop::RMSprop(std::vector<NamedTensor> parameters, const Options& options)
    : OptimizerOf(std::move(parameters), options), moves_(options.momentum != 0) {}

std::span<const char* const> RMSprop::buffer_names() const {
  static constexpr const char* kCentered[] = {"square_avg", "grad_avg", "momentum_buffer"};
  static constexpr const char* kPlain[] = {"square_avg", "momentum_buffer"};
  const std::size_t with_momentum = moves_ ? 1 : 0;
  if (options_.centered) return {kCentered, 2 + with_momentum};
  return {kPlain, 1 + with_momentum};
}

void RMSprop::update(std::span<const StepArrays> parameters, DType dtype, std::int64_t) {
  const kernels::RmspropStep s{.lr = lr(),
                               .alpha = options_.alpha,
                               .eps = options_.eps,
                               .weight_decay = options_.weight_decay,
                               .momentum = options_.momentum,
                               .centered = options_.centered,
                               .maximize = options_.maximize};
  dtype == DType::float32 ? kernels::rmsprop_step<float>(s, parameters) : kernels::rmsprop_step<double>(s, parameters);
}

// --- Adagrad --------------------------------------------------------------------------------------------------------

Adagrad::Adagrad(const std::vector<Tensor>& parameters, const Options& options)
    : Adagrad(numbered(parameters), options) {}

Adagrad::Adagrad(std::vector<NamedTensor> parameters, const Options& options)
    : OptimizerOf(std::move(parameters), options) {}

std::span<const char* const> Adagrad::buffer_names() const {
  static constexpr const char* kNames[] = {"sum"};
  return kNames;
}

void Adagrad::update(std::span<const StepArrays> parameters, DType dtype, std::int64_t step) {
  const kernels::AdagradStep s{.lr = lr(),
                               .lr_decay = options_.lr_decay,
                               .weight_decay = options_.weight_decay,
                               .eps = options_.eps,
                               .maximize = options_.maximize,
                               .step = step};
  dtype == DType::float32 ? kernels::adagrad_step<float>(s, parameters) : kernels::adagrad_step<double>(s, parameters);
}

// --- fields ---------------------------------------------------------------------------------------------------------

FieldType field_type(const Betas*) { return {.kind = FieldType::numbers}; }

Value to_value(const Betas& value) { return taper::to_value(std::vector<double>{value.first, value.second}); }

std::string from_value(const Value& from, Betas& to) {
  std::vector<double> numbers;
  std::string problem = taper::from_value(from, numbers);
  if (problem.empty() && numbers.size() != 2)
    problem = cat("expected a list of 2 numbers, got ", numbers.size(), " in ", to_json(from));
  if (problem.empty()) to = {numbers[0], numbers[1]};
  return problem;
}

namespace {

void lr_field(double& lr, FieldVisitor& visit) { visit({"lr", "learning rate", kNonNegative}, lr); }
void eps_field(double& eps, FieldVisitor& visit) {
  visit({"eps", "added to the denominator, so that it is not 0", kNonNegative}, eps);
}
void maximize_field(bool& maximize, FieldVisitor& visit) { visit({"maximize", "climb instead of descend"}, maximize); }
void weight_decay_field(double& decay, FieldVisitor& visit) {
  visit({"weight_decay", "this times the parameter is added to its gradient", kNonNegative}, decay);
}
void betas_field(Betas& betas, FieldVisitor& visit) {
  visit({"betas", "decay of the averages of the gradient and of its square", kDecay}, betas);
}
void amsgrad_field(bool& amsgrad, FieldVisitor& visit) {
  visit({"amsgrad", "divide by the largest average of squares so far"}, amsgrad);
}

}  // namespace

void fields(SGDOptions& o, FieldVisitor& visit) {
  lr_field(o.lr, visit);
  visit({"momentum", "share of the last step that is kept", kNonNegative}, o.momentum);
  visit({"dampening", "share of the gradient that the momentum leaves out"}, o.dampening);
  weight_decay_field(o.weight_decay, visit);
  visit({"nesterov", "look ahead by the momentum"}, o.nesterov);
  maximize_field(o.maximize, visit);
}

void fields(AdamOptions& o, FieldVisitor& visit) {
  lr_field(o.lr, visit);
  betas_field(o.betas, visit);
  eps_field(o.eps, visit);
  weight_decay_field(o.weight_decay, visit);
  amsgrad_field(o.amsgrad, visit);
  maximize_field(o.maximize, visit);
}

void fields(AdamWOptions& o, FieldVisitor& visit) {
  lr_field(o.lr, visit);
  betas_field(o.betas, visit);
  eps_field(o.eps, visit);
  visit({"weight_decay", "this times lr times the parameter is taken off it", kNonNegative}, o.weight_decay);
  amsgrad_field(o.amsgrad, visit);
  maximize_field(o.maximize, visit);
}

void fields(RMSpropOptions& o, FieldVisitor& visit) {
  lr_field(o.lr, visit);
  visit({"alpha", "decay of the average of the squared gradient", kNonNegative}, o.alpha);
  eps_field(o.eps, visit);
  weight_decay_field(o.weight_decay, visit);
  visit({"momentum", "share of the last step that is kept", kNonNegative}, o.momentum);
  visit({"centered", "take the square of the average gradient off"}, o.centered);
  maximize_field(o.maximize, visit);
}

void fields(AdagradOptions& o, FieldVisitor& visit) {
  lr_field(o.lr, visit);
  visit({"lr_decay", "how the rate falls: lr / (1 + (step - 1) lr_decay)", kNonNegative}, o.lr_decay);
  weight_decay_field(o.weight_decay, visit);
  visit({"initial_accumulator_value", "what the sum of squares starts from", kNonNegative},
        o.initial_accumulator_value);
  eps_field(o.eps, visit);
  maximize_field(o.maximize, visit);
}

// --- catalogue ------------------------------------------------------------------------------------------------------

namespace {

template <class M>
OptimizerType optimizer_type(const char* summary) {
  using O = typename M::Options;
  return {.name = O::kType,
          .summary = summary,
          .new_options = []() -> Shared<void> { return Shared<O>::make(); },
          .visit = [](void* options, FieldVisitor& visitor) { fields(*static_cast<O*>(options), visitor); },
          .make = [](const void* options, std::vector<NamedTensor> parameters) -> Shared<Optimizer> {
            return Shared<M>::make(std::move(parameters), *static_cast<const O*>(options));
          }};
}

}  // namespace

const std::vector<OptimizerType>& optimizer_types() {
  static const std::vector<OptimizerType> types = {
      optimizer_type<SGD>("Stochastic gradient descent, with momentum if wanted."),
      optimizer_type<Adam>("Steps scaled by averages of the gradient and of its square."),
      optimizer_type<AdamW>("Adam with weight decay beside the gradient step."),
      optimizer_type<RMSprop>("Steps scaled by an average of the squared gradient."),
      optimizer_type<Adagrad>("Steps scaled by the sum of all squared gradients."),
  };
  return types;
}

const OptimizerType* find_optimizer_type(const std::string& name) {
  for (const OptimizerType& type : optimizer_types())
    if (type.name == name) return &type;
  return nullptr;
}

}  // namespace taper::optim
