#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "taper/fields.hpp"
#include "taper/lr_scheduler.hpp"
#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

/// Optimisers: they change parameters by their gradients, step for step as PyTorch's do.
namespace taper::kernels {
struct StepArrays;
}

namespace taper::optim {

// --- options --------------------------------------------------------------------------------------------------------

/// The decay rates of Adam's two averages; in JSON a list of two.
struct Betas {
  double first = 0.9, second = 0.999;
};
FieldType field_type(const Betas*);
Value to_value(const Betas& value);
std::string from_value(const Value& from, Betas& to);

struct SGDOptions {
  static constexpr const char* kType = "SGD";
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

struct AdamOptions {
  static constexpr const char* kType = "Adam";
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};

struct AdamWOptions {
  static constexpr const char* kType = "AdamW";
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

struct RMSpropOptions {
  static constexpr const char* kType = "RMSprop";
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
};

struct AdagradOptions {
  static constexpr const char* kType = "Adagrad";
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
};

void fields(SGDOptions& options, FieldVisitor& visitor);
void fields(AdamOptions& options, FieldVisitor& visitor);
void fields(AdamWOptions& options, FieldVisitor& visitor);
void fields(RMSpropOptions& options, FieldVisitor& visitor);
void fields(AdagradOptions& options, FieldVisitor& visitor);

// --- optimisers -----------------------------------------------------------------------------------------------------

/// "0", "1", ... for parameters without names.
std::vector<NamedTensor> numbered(const std::vector<Tensor>& parameters);

/// What all optimisers share: the parameters, the learning rate, and the state of each parameter.
///
/// The state of a parameter is made at its first step; later steps allocate nothing. Parameters without a gradient are
/// skipped. An optimiser holds the tensors themselves: make it after `Module::to`, which replaces them.
/// Differs: all parameters share one set of options.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Changes every parameter by its gradient, and its version counter.
  void step();
  /// Drops all gradients, so that the next backward writes instead of adding.
  void zero_grad();

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  /// The learning rate that the next step uses.
  double lr() const { return lr_; }
  /// Errors: `ErrorKind::config` unless it is finite and at least 0.
  void set_lr(double lr);
  /// What a cyclic schedule may move beside the rate: momentum that is on, Adam's first beta; null where neither is.
  virtual double* momentum() { return nullptr; }

  /// The learning rate as "optimizer.lr", and for every parameter that has been stepped its count of steps and its
  /// buffers, as "optimizer.fc.weight.exp_avg". The buffers share the optimiser's data.
  std::vector<NamedTensor> state_dict() const;
  /// Takes over such a state, all or nothing; training goes on bit for bit. Errors: `ErrorKind::config` (names),
  /// `ErrorKind::shape`, `ErrorKind::type`.
  void load_state_dict(const std::vector<NamedTensor>& state);

  /// The class name, "Adam".
  virtual std::string type_name() const = 0;
  virtual void visit_options(FieldVisitor& visitor) = 0;

 protected:
  static constexpr std::size_t kMaxBuffers = 3;
  struct State {
    std::int64_t step = 0;                    ///< steps taken so far
    std::array<Tensor, kMaxBuffers> buffers;  ///< undefined before the first step
  };

  Optimizer(const char* where, std::vector<NamedTensor> parameters, double lr);
  /// The names of the buffers that the options ask for, at most `kMaxBuffers`.
  virtual std::span<const char* const> buffer_names() const = 0;
  /// What a buffer holds before the first step.
  virtual double initial_value() const { return 0; }
  /// The step number `step`, counted from 1, of parameters of one element type, in one pass over all of them. Each has
  /// its buffers in the order of their names.
  virtual void update(std::span<const kernels::StepArrays> parameters, DType dtype, std::int64_t step) = 0;

 private:
  void update_gathered(DType dtype, std::int64_t step);
  void make_buffers(const Tensor& parameter, State& state) const;

  const char* where_;
  std::vector<NamedTensor> parameters_;
  std::vector<State> states_;
  std::vector<kernels::StepArrays> gathered_;  ///< parameters of the step that is being taken
  double lr_;
};

/// An optimiser described by an options struct, as `nn::Layer` is a module of that kind.
template <class O>
class OptimizerOf : public Optimizer {
 public:
  using Options = O;
  /// As they were given, but for a momentum that a cyclic schedule moves; `lr()` is the rate in use.
  const Options& options() const { return options_; }
  std::string type_name() const override { return O::kType; }
  void visit_options(FieldVisitor& visitor) override { fields(options_, visitor); }

 protected:
  OptimizerOf(std::vector<NamedTensor> parameters, const O& options)
      : Optimizer(O::kType, std::move(parameters), options.lr), options_(options) {
    check_fields(O::kType, options_);
  }
  O options_;
};

/// m = momentum m + (1 - dampening) g,  p = p - lr m (with nesterov: g + momentum m); g includes weight_decay p.
/// Source: PyTorch, SGD. Errors: `ErrorKind::config`.
class SGD : public OptimizerOf<SGDOptions> {
 public:
  explicit SGD(std::vector<NamedTensor> parameters, const Options& options = {});
  explicit SGD(const std::vector<Tensor>& parameters, const Options& options = {});
  double* momentum() override { return moves_ ? &options_.momentum : nullptr; }

 protected:
  std::span<const char* const> buffer_names() const override;
  void update(std::span<const kernels::StepArrays> parameters, DType dtype, std::int64_t step) override;

 private:
  const bool moves_;  ///< there is a momentum buffer
};

/// m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  p = p - lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps); g
/// includes weight_decay p; with amsgrad the largest v so far. Source: Kingma and Ba 2015; PyTorch, Adam.
class Adam : public OptimizerOf<AdamOptions> {
 public:
  explicit Adam(std::vector<NamedTensor> parameters, const Options& options = {});
  explicit Adam(const std::vector<Tensor>& parameters, const Options& options = {});
  double* momentum() override { return &options_.betas.first; }

 protected:
  std::span<const char* const> buffer_names() const override;
  void update(std::span<const kernels::StepArrays> parameters, DType dtype, std::int64_t step) override;
};

/// Adam with p = p - lr weight_decay p beside the gradient step. Source: Loshchilov and Hutter 2019; PyTorch, AdamW.
class AdamW : public OptimizerOf<AdamWOptions> {
 public:
  explicit AdamW(std::vector<NamedTensor> parameters, const Options& options = {});
  explicit AdamW(const std::vector<Tensor>& parameters, const Options& options = {});
  double* momentum() override { return &options_.betas.first; }

 protected:
  std::span<const char* const> buffer_names() const override;
  void update(std::span<const kernels::StepArrays> parameters, DType dtype, std::int64_t step) override;
};

/// v = alpha v + (1 - alpha) g^2,  p = p - lr g / (sqrt(v) + eps); centered: v less the square of the average of g;
/// with momentum the quotient is gathered first. Source: PyTorch, RMSprop.
class RMSprop : public OptimizerOf<RMSpropOptions> {
 public:
  explicit RMSprop(std::vector<NamedTensor> parameters, const Options& options = {});
  explicit RMSprop(const std::vector<Tensor>& parameters, const Options& options = {});
  double* momentum() override { return moves_ ? &options_.momentum : nullptr; }

 protected:
  std::span<const char* const> buffer_names() const override;
  void update(std::span<const kernels::StepArrays> parameters, DType dtype, std::int64_t step) override;

 private:
  const bool moves_;  ///< there is a momentum buffer
};

/// s = s + g^2,  p = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps). Source: Duchi et al. 2011; PyTorch, Adagrad.
class Adagrad : public OptimizerOf<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<NamedTensor> parameters, const Options& options = {});
  explicit Adagrad(const std::vector<Tensor>& parameters, const Options& options = {});

 protected:
  std::span<const char* const> buffer_names() const override;
  double initial_value() const override { return options_.initial_accumulator_value; }
  void update(std::span<const kernels::StepArrays> parameters, DType dtype, std::int64_t step) override;
};

// --- gradients ------------------------------------------------------------------------------------------------------

/// Scales the gradients so that the norm of all of them together is at most `max_norm`; returns the norm before.
/// Source: PyTorch, clip_grad_norm_. Errors: `ErrorKind::config` unless `max_norm` >= 0.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm);

/// Limits each element of the gradients to [-clip_value, clip_value]. Source: PyTorch, clip_grad_value_.
/// Errors: `ErrorKind::config` unless `clip_value` >= 0.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

// --- catalogue ------------------------------------------------------------------------------------------------------

/// An optimiser as JSON knows it.
struct OptimizerType {
  std::string name;     ///< the class name and JSON "type"
  std::string summary;  ///< one sentence

  Shared<void> (*new_options)() = nullptr;  ///< with all defaults
  void (*visit)(void* options, FieldVisitor& visitor) = nullptr;
  Shared<Optimizer> (*make)(const void* options, std::vector<NamedTensor> parameters) = nullptr;
};

/// Every optimiser that JSON knows, in the order of the documentation.
const std::vector<OptimizerType>& optimizer_types();
/// Null when there is none of that name.
const OptimizerType* find_optimizer_type(const std::string& name);

}  // namespace taper::optim

#pragma GCC visibility pop
